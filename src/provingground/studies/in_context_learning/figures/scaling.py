"""Steps to fit, as one law in all parameters: random settings, not one line through each."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, Claim, above, below, claim, curve, equals
from provingground.stats import Estimate, Everywhere, everywhere, mean
from provingground.study import Experiment, Trainings, axis, points

from ..theory import crowding, iterations_needed, steps_to_fit

# The paper asks for beta of at least 1, and from about 4.7 on trainings with a step size of 1 may
# not fit at all. M_1 is about half of d_X at most. Where other patterns crowd the decisive ones,
# trainings stall (`scaling_crowded`).
RANGES = {
    "lr": (0.2, 1.0),
    "alpha": (0.15, 1.0),
    "beta": (1.0, 4.5),
    "delta": (0.02, 0.2),
    "n_relevant": (4, 16),
}
NAMES = ("lr", "alpha", "beta", "delta", "n_relevant", "width")


def predicted(ds: Mapping[Any, Any]) -> Any:
    return steps_to_fit(
        ds["lr"], ds["alpha"], ds["beta"], ds["delta"], ds["n_relevant"], ds["width"]
    )


def printed(ds: xr.Dataset) -> xr.DataArray:
    return iterations_needed(ds.lr, ds.alpha, ds.beta, ds.n_relevant, ds.delta)


def design(number: int, widths: list[int], most: float, draw: int) -> list[dict[str, Any]]:
    """Random settings at which the law says at most so many steps."""
    rng, found = np.random.default_rng(draw), []
    while len(found) < number:
        s = {n: float(f"{np.exp(rng.uniform(*np.log(r))):.4g}") for n, r in RANGES.items()}
        s |= {"n_relevant": round(s["n_relevant"]), "width": widths[len(found) % len(widths)]}
        free = crowding(s["alpha"], s["n_relevant"]) <= 2
        if free and 40 <= predicted(s) <= most:
            found.append(s | {"n_tasks": s["n_relevant"]})
    return found


TRAININGS = Trainings(
    grid={
        "setting": points(design(64, [40, 100, 200, 400], 3000.0, draw=11)),
        "tokens": 40,
        "eps": 0.1,
        "steps": 9000,
        "test_samples": 100,
    },
    seeds=8,
    quick={
        "setting": points(design(15, [40, 100, 400], 450.0, draw=12)),
        "steps": 1500,
        "seeds": 5,
    },
    domain={"kappa_max": (0.1, 1.0), "tokens": (40, 80)},
)


def coefficient(y: xr.DataArray, columns: list[Any], place: int) -> Estimate:
    """One coefficient of the logarithm of y in these columns, fitted to all settings at once."""
    x = np.column_stack([np.ones(y.sizes["setting"]), *(c.to_numpy() for c in columns)])

    def found(y: xr.DataArray) -> float:
        return np.linalg.lstsq(x, np.log(y.mean("seed").to_numpy()), rcond=None)[0][1 + place]

    return stats.jackknife(found, y)


def logs(ds: xr.Dataset) -> list[Any]:
    return [np.log(ds[n]) for n in NAMES]


def fitted(ds: xr.Dataset, name: str, less: float | xr.DataArray = 1.0) -> Estimate:
    """The exponent of one parameter in a law of all."""
    return coefficient(ds.stopped_at / less, logs(ds), NAMES.index(name))


@claim(
    "(6.10)",
    equals(1, times=1.6),
    kind="corrected",
    law=curve("stopped_at", predicted),
    rivals={
        "(E.62)": curve("stopped_at", printed, scaled=True),
        "beta^(-2/3)": curve(
            "stopped_at", lambda ds: predicted(ds) * ds.beta ** (4 / 3), scaled=True
        ),
        "no width": curve("stopped_at", lambda ds: predicted(ds) * ds.width**-0.88, scaled=True),
    },
)
def steps_law(ds: xr.Dataset) -> Everywhere:
    """the steps are 0.6 m^0.88 M_1^0.45 alpha^-0.85 beta^-2 delta^-1.2 / eta (ratio)"""
    return everywhere(lambda y: mean(y).map(np.exp), np.log(ds.stopped_at / predicted(ds)))


def bent(power: float) -> Altered:
    """Steps of the law, with an exponent in alpha that grows with log(beta delta)."""

    def law(ds: xr.Dataset) -> xr.DataArray:
        return predicted(ds) * ds.alpha ** (power * np.log(ds.beta * ds.delta / 0.25))

    return curve("stopped_at", law)


@claim(
    "found here",
    above(0),
    kind="own",
    law=bent(0.2),
    rivals={"one exponent": bent(0.0), "falls with it": bent(-0.2)},
)
def alpha_by_scale(ds: xr.Dataset) -> Estimate:
    """the exponent of the steps in alpha is no constant, it grows with log(beta delta) (coefficient
    of log(alpha) log(beta delta) in a fit with all parameters)"""
    both = np.log(ds.alpha) * np.log(ds.beta * ds.delta)
    return coefficient(ds.stopped_at * 1.0, [*logs(ds), both], len(NAMES))


def exponent_claim(name: str, source: str, says: str, value: float, holds: bool = False) -> Claim:
    def law(ds: xr.Dataset) -> xr.DataArray:
        return ds[name].astype(float) ** value * (
            np.log(ds[name]) ** 0.5 if name == "n_relevant" else 1
        )

    made = claim(
        source,
        equals(value, within=0.3 if name == "beta" else 0.2),
        name=f"steps_in_{name}",
        says=f"the exponent of the steps in {says}",
        expected="holds" if holds else "fails",
        because=() if holds else (steps_law,),
        law=curve("stopped_at", law, scaled=True),
        rivals={
            "the square": curve("stopped_at", lambda ds: law(ds) * ds[name] ** 0.5, scaled=True)
        },
    )
    return made(lambda ds: fitted(ds, name, np.log(ds.n_relevant) ** 0.5))


EXPONENTS = (
    exponent_claim("lr", "(6.10)", "eta is -1", -1.0, holds=True),
    exponent_claim("beta", "(6.10)", "beta is -2/3", -2 / 3),
    exponent_claim("delta", "(E.62)", "delta is -2/3", -2 / 3),
    exponent_claim("n_relevant", "(6.10)", "M_1 is 1, beside sqrt(log M_1)", 1.0),
    exponent_claim("width", "(6.10), which has no m", "m is 0", 0.0),
)


def draw(ds: xr.Dataset):
    title = "Steps to a training loss of 0.1, at random settings"
    fig, panels = plot.figure(1, 2, title=title, seeds=ds.sizes["seed"])
    y = ds.stopped_at.mean("seed")
    laws: dict[str, Callable[[xr.Dataset], Any]] = {
        "the law found": predicted,
        "(E.62), scaled": printed,
    }
    for ax, (name, law) in zip(panels, laws.items(), strict=True):
        x = law(ds)
        if law is printed:
            x = x * float(np.exp(np.log(y / x).mean()))
        ax.loglog(x, y, ".", color=plot.PALETTE[0], label="settings")
        ends = np.array([float(x.min()), float(x.max())])
        plot.theory_curve(ax, ends, ends, "equal")
        ax.set(xlabel=f"steps by {name}", ylabel="steps, $T$")
    return fig


# ------------------------------------------------------------------- where the law ends

CROWDED = Trainings(
    grid={
        "n_relevant": axis([4, 12], sets=lambda s: {"n_tasks": s["n_relevant"]}),
        "alpha": 0.15,
        "beta": 4.0,
        "delta": 0.15,
        "width": 40,
        "tokens": 40,
        "eps": 0.1,
        "steps": 2500,
        "test_samples": 100,
    },
    seeds=16,
    paper_only=True,
)


def slow(ds: xr.Dataset, patterns: int) -> Estimate:
    """The share of trainings that take over three times as long as the law says."""
    return stats.share((ds.stopped_at > 3 * predicted(ds)).sel(n_relevant=patterns))


@claim("found here", above(0.3), kind="own")
def crowded_stall(ds: xr.Dataset) -> Estimate:
    """where every other pattern is five times as frequent as a decisive one, over 30% stall"""
    return slow(ds, 4)


@claim("found here", below(0.25), kind="own")
def free_fit(ds: xr.Dataset) -> Estimate:
    """with more patterns, each of them rarer, they do not"""
    return slow(ds, 12)


def draw_crowded(ds: xr.Dataset):
    title = "Steps where other patterns crowd the decisive ones"
    fig, (ax,) = plot.figure(title=title, seeds=ds.sizes["seed"])
    for n, patterns in enumerate(ds.n_relevant.values):
        y = np.sort((ds.stopped_at / predicted(ds)).sel(n_relevant=patterns).values)
        ax.plot(
            np.arange(1, len(y) + 1), y, ".", color=plot.PALETTE[n], label=f"$M_1 = {patterns}$"
        )
    ax.set(xlabel="seeds, in order", ylabel="steps over those of the law", yscale="log")
    return fig


EXPERIMENTS = (
    Experiment(
        "scaling",
        says="Steps until the training loss is 0.1, in all parameters at once.",
        trainings=TRAININGS,
        claims=(steps_law, alpha_by_scale, *EXPONENTS),
        figure=draw,
    ),
    Experiment(
        "scaling_crowded",
        says="Steps where the law ends: few patterns, few decisive ones.",
        trainings=CROWDED,
        claims=(crowded_stall, free_fit),
        figure=draw_crowded,
    ),
)
