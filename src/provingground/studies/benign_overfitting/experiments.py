"""One Experiment per figure: the grid, what it should show, and how it is drawn."""

from collections.abc import Callable
from math import inf, sqrt
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.study import Claim, Estimate, Experiment, axis, cases

from . import theory
from .model import Config

CUT = 0.2  # Figure 1(b) calls a test loss below this benign
NOISE, NOISE_BIG, DIM = 0.2, 4.0, 1024  # of Figure 1
SIGNAL_NORMS = np.geomspace(1, 100, 24)
PLAIN = Config()


def snr_of(signal_norm, noise: float = NOISE, dim: int = DIM):
    return signal_norm / (noise * sqrt(dim))


# ------------------------------------------------------------------------------- Figure 1


def boundary(ds: xr.Dataset) -> stats.Boundary:
    """The SNR at which the test loss crosses the cut, for each N from 4 on."""
    return stats.phase_boundary(ds.test_loss, along="snr", of="samples", level=CUT, window=(4, inf))


def ratio(ds: xr.Dataset) -> xr.DataArray:
    return theory.signal_ratio(ds.samples, ds.snr, PLAIN.noise, PLAIN.noise_big)


def boundary_constant(ds: xr.Dataset) -> Estimate:
    r"""$N\,\mathrm{SNR}_c^2$, averaged over N (geometric mean)."""

    def constant(loss: xr.DataArray) -> xr.DataArray:
        points = stats.phase_boundary(loss, "snr", "samples", CUT, window=(4, inf)).points
        return np.exp(np.log(points.samples * points.value**2).mean())

    return stats.jackknife(constant, ds.test_loss)


def on_side(curve_constant: float) -> Callable[[xr.Dataset], Estimate]:
    r"""Share of trainings on the side of $N\,\mathrm{SNR}^2 = c$ that the theory predicts."""

    def measure(ds: xr.Dataset) -> Estimate:
        benign = ds.samples * ds.snr**2 > curve_constant
        return stats.mean(((ds.test_loss < CUT) == benign).astype(float))

    return measure


def mean_where(y: xr.DataArray, region: xr.DataArray) -> Estimate:
    """The mean over the cells of a region of the map."""
    return stats.jackknife(lambda y: y.where(region).mean(), y)


def harmful_error(ds: xr.Dataset) -> Estimate:
    """Test error where the loss is high (over 0.4) although the signal is there (SNR over 5)."""
    return mean_where(ds.test_error, (ds.test_loss.mean("seed") > 0.4) & (ds.snr > 5))


def draw_maps(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Test loss and test error at the end of training")
    curves = {r"$N\,\mathrm{SNR}^2 = 1000$": theory.printed_boundary_snr}
    plot.heatmap(left, ds.test_loss, "samples", "snr", log="y", theory=curves)
    plot.heatmap(right, ds.test_error, "samples", "snr", log="y", theory=curves)
    return fig


def draw_phases(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Benign and harmful overfitting", width=4.2)
    points = boundary(ds).points
    plot.phase_diagram(
        ax,
        ds.test_loss,
        "samples",
        "snr",
        cut=CUT,
        log="y",
        theory={
            r"paper: $N\,\mathrm{SNR}^2 = 1000$": theory.printed_boundary_snr,
            "derived: $R = 2$": lambda n: theory.boundary_snr(n, PLAIN.noise, PLAIN.noise_big),
        },
        boundary=(points.samples, list(zip(*(points[k].values for k in points), strict=True))),
    )
    return fig


QUICK_SNR = list(snr_of(np.geomspace(10, 100, 13)))
FIGURE_1: dict[str, Any] = dict(
    grid={"samples": list(range(2, 21)), "snr": list(snr_of(SIGNAL_NORMS))},
    seeds=8,
    quick={
        "samples": [6, 8, 12, 20],
        "snr": QUICK_SNR,
        "seeds": 6,
    },
)

FIG1B = Experiment(
    "fig1b",
    says="The map of Figure 1(a) cut at test loss 0.2: a sharp transition along a curve.",
    **FIGURE_1,
    claims=(
        Claim(
            "boundary_exponent",
            "the critical SNR falls with the sample size as N^(-1/2)",
            measure=lambda ds: boundary(ds).law.slope,
            within=(-0.6, -0.4),
            source="Theorems 4.1 and 4.2, Figure 1(b)",
        ),
        Claim(
            "boundary_constant",
            "on the boundary N SNR^2 is about 1000",
            measure=boundary_constant,
            within=(700, 1300),
            source="Figure 1(b)",
        ),
        Claim(
            "sides_paper",
            "cells lie on the predicted side of N SNR^2 = 1000",
            measure=on_side(1000),
            within=(0.93, inf),
            source="Figure 1(b)",
        ),
        Claim(
            "sides_derived",
            "cells lie on the predicted side of R = 2, i.e. N SNR^2 = 800",
            measure=on_side(800),
            within=(0.93, inf),
            source="boundary derived from Lemma 5.1",
        ),
    ),
    figure=draw_phases,
)

FIG1A = Experiment(
    "fig1a",
    says="Test loss (and error) at training loss 0.01 over sample size and signal-to-noise ratio.",
    **FIGURE_1,
    claims=(
        Claim(
            "falls_with_ratio",
            "the test loss falls with R = N |mu|^2 / (big noise)^2 d (rank correlation)",
            measure=lambda ds: stats.rank_correlation(ds.test_loss, ratio(ds)),
            within=(-inf, -0.9),
            source="Figure 1(a)",
        ),
        Claim(
            "harmful_loss",
            "below the boundary (R < 0.5) the test loss is of order one",
            measure=lambda ds: mean_where(ds.test_loss, ratio(ds) < 0.5),
            within=(0.2, inf),
            source="Theorem 4.2",
        ),
        Claim(
            "benign_loss",
            "far above the boundary (R > 6) the test loss is small",
            measure=lambda ds: mean_where(ds.test_loss, ratio(ds) > 6),
            within=(-inf, CUT),
            source="Theorem 4.1",
        ),
        Claim(
            "harmful_is_margin",
            "harmful overfitting costs margin, not accuracy: the test error is about zero",
            measure=harmful_error,
            within=(-inf, 0.05),
            source="found here",
        ),
    ),
    figure=draw_maps,
)


# ------------------------------------------------------------------------ numerics of Figure 1


def numerics_claims() -> tuple[Claim, ...]:
    made = []
    for label, name in (("half step", "half_step"), ("float64", "float64")):

        def slope(ds: xr.Dataset, label: str = label) -> Estimate:
            return boundary(ds.sel(numerics=label)).law.slope

        def constant(ds: xr.Dataset, label: str = label) -> Estimate:
            return boundary_constant(ds.sel(numerics=label))

        made += [
            Claim(
                f"exponent_{name}",
                f"the boundary's exponent is -1/2 ({label})",
                measure=slope,
                within=(-0.6, -0.4),
                source="Theorems 4.1 and 4.2",
            ),
            Claim(
                f"constant_{name}",
                f"on the boundary N SNR^2 is about 1000 ({label})",
                measure=constant,
                within=(700, 1300),
                source="Figure 1(b)",
            ),
        ]
    return tuple(made)


def rounding(ds: xr.Dataset) -> Estimate:
    """Mean absolute difference of the test loss between single and double precision."""
    single, double = (ds.test_loss.sel(numerics=n, drop=True) for n in ("as printed", "float64"))
    return stats.mean(abs(single - double))


def draw_numerics(ds: xr.Dataset):
    n = int(ds.samples[-1])
    fig, (ax,) = plot.figure(title=f"Test loss by step size and precision, $N = {n}$", width=4.2)
    plot.curve(ax, ds.test_loss.isel(samples=-1), "snr", hue="numerics", log="x")
    at = theory.boundary_snr(n, PLAIN.noise, PLAIN.noise_big)
    plot.theory_curve(ax, [at, at], ax.get_ylim(), "derived boundary, $R = 2$")
    return fig


NUMERICS = Experiment(
    "numerics",
    says="The boundary of Figure 1 with half the step size, and in double precision.",
    grid={
        "numerics": cases(
            {
                "as printed": {},
                "half step": {"lr": 0.05},
                "float64": {"precision": "float64"},
            }
        ),
        "samples": [4, 8, 12, 16, 20],
        "snr": list(snr_of(np.geomspace(25, 100, 12))),
    },
    seeds=8,
    quick={"samples": [6, 20], "snr": QUICK_SNR, "seeds": 5},
    claims=(
        *numerics_claims(),
        Claim(
            "rounding",
            "single and double precision give the same test loss",
            measure=rounding,
            within=(-inf, 1e-3),
            source="numerics",
        ),
    ),
    figure=draw_numerics,
)


# ---------------------------------------------------------------------------- Figures 3, 4

DYNAMICS = dict(
    tokens=4, dim=2048, key_width=1024, value_width=256, noise=0.05, noise_big=1.0, test_samples=400
)
ATTENTION = cases({"trained": {}, "frozen": {"attention_rate": 0.0}})
BENIGN = dict(samples=16, snr=snr_of(25, 0.05, 2048))
HARMFUL = dict(samples=10, snr=snr_of(15, 0.05, 2048))


def draw_dynamics(title: str):
    def draw(ds: xr.Dataset):
        fig, axes = plot.figure(1, 3, title=title)
        pairs = (
            ("attention", "mean attention"),
            ("score", "query-key product"),
            ("value", "label-signed value, $V$"),
        )
        at = ds.sel(attention="trained")
        at = at.isel(step=slice(0, int(at.stopped_at.max()) + 2))
        for ax, (name, words) in zip(axes, pairs, strict=True):
            plot.curve(ax, at[f"{name}_signal"], "step", label="signal")
            plot.curve(ax, at[f"{name}_noise"], "step", label="noise token 2")
            ax.set_ylabel(words)
        speeds = early_speeds(ds.sel(attention="trained"))
        early = np.arange(0, 6)
        for speed in speeds:
            plot.theory_curve(axes[2], early, early * float(speed.mean()), "Lemma 5.1")
        return fig

    return draw


def early_speeds(ds: xr.Dataset, lr=PLAIN.lr) -> tuple[xr.DataArray, xr.DataArray]:
    """Lemma 5.1 with the realised norm of the read-out."""
    regime = BENIGN if ds.attrs["experiment"] == "fig3" else HARMFUL
    return speeds_of(regime, lr, ds.read_out_norm2)


def speeds_of(regime: dict, lr, norm2) -> tuple[xr.DataArray, xr.DataArray]:
    signal2 = (regime["snr"] * DYNAMICS["noise"]) ** 2 * DYNAMICS["dim"]
    noise2 = DYNAMICS["noise_big"] ** 2 * DYNAMICS["dim"]
    return theory.value_speeds(lr, signal2, noise2, regime["samples"], DYNAMICS["tokens"], norm2)


def early_growth(probe: str) -> Callable[[xr.Dataset], Estimate]:
    """Growth of a value in the first step, over that of Lemma 5.1."""

    def measure(ds: xr.Dataset) -> Estimate:
        signal, noise = early_speeds(ds)
        grown = ds[probe].isel(step=1) - ds[probe].isel(step=0)
        ratio = grown / (signal if probe == "value_signal" else noise)
        return stats.mean(ratio.sel(attention="trained"))

    return measure


def final(ds: xr.Dataset, winner: str, loser: str, attention: str = "trained"):
    """Probes of winner and loser at the end of training."""
    end = ds.sel(attention=attention).isel(step=-1)
    return {k: (end[f"{k}_{winner}"], end[f"{k}_{loser}"]) for k in ("attention", "score", "value")}


def dynamics_claims(winner: str, loser: str, source: str) -> tuple[Claim, ...]:
    """Who wins, the same for both regimes with the roles exchanged."""

    def ratio_of(probe: str) -> Callable[[xr.Dataset], Estimate]:
        return lambda ds: stats.paired_ratio(*final(ds, winner, loser)[probe])

    return (
        Claim(
            f"attention_{winner}",
            f"attention on the {winner} is over 4 times that on the {loser}",
            measure=ratio_of("attention"),
            within=(4, inf),
            source=source,
        ),
        Claim(
            f"value_{winner}",
            f"the value of the {winner} is over 3 times that of the {loser}",
            measure=ratio_of("value"),
            within=(3, inf),
            source=source,
        ),
        Claim(
            f"score_{winner}",
            f"the query-key product with the {winner} is larger by over 3",
            measure=lambda ds: stats.paired_difference(*final(ds, winner, loser)["score"]),
            within=(3, inf),
            source=source,
        ),
        *(
            Claim(
                f"early_{token}_{winner}_wins",
                f"the value of the {token} starts to grow as Lemma 5.1 says (ratio)",
                measure=early_growth(f"value_{token}"),
                within=(0.95, 1.05),
                source="Lemma 5.1",
            )
            for token in ("signal", "noise")
        ),
    )


def test_loss(ds: xr.Dataset, attention: str) -> xr.DataArray:
    return ds.test_loss.sel(attention=attention, drop=True)


FIG3 = Experiment(
    "fig3",
    says="Benign regime: attention, query-key products and values of signal and noise in time.",
    grid={**DYNAMICS, **BENIGN, "steps": 700, "record": 701, "attention": ATTENTION},
    seeds=16,
    claims=(
        *dynamics_claims("signal", "noise", "Figure 3, Lemmas 5.2 and 5.3"),
        Claim(
            "benign_test_loss",
            "the test loss is small",
            measure=lambda ds: stats.mean(test_loss(ds, "trained")),
            within=(-inf, 0.1),
            source="Theorem 4.1, Figure 3",
        ),
        Claim(
            "benign_test_loss_law",
            "the test loss is l(V (2M-1)/M^2), up to a relative deviation",
            measure=lambda ds: stats.mean(
                test_loss(ds, "trained")
                / theory.benign_test_loss(ds.value_signal.isel(step=-1, attention=0, drop=True), 4)
            ),
            within=(0.9, 1.1),
            source="derived from Lemma 5.5",
        ),
        Claim(
            "attention_speeds_up",
            "training the attention saves most of the steps",
            measure=lambda ds: stats.paired_ratio(
                ds.stopped_at.sel(attention="frozen", drop=True),
                ds.stopped_at.sel(attention="trained", drop=True),
            ),
            within=(3, inf),
            source="frozen-attention baseline",
        ),
    ),
    figure=draw_dynamics("Benign regime, $N = 16$, $\\|\\mu\\| = 25$"),
)

FIG4 = Experiment(
    "fig4",
    says="Harmful regime: attention, query-key products and values of signal and noise in time.",
    grid={**DYNAMICS, **HARMFUL, "steps": 700, "record": 701, "attention": ATTENTION},
    seeds=16,
    claims=(
        *dynamics_claims("noise", "signal", "Figure 4, Appendix E"),
        Claim(
            "harmful_test_loss",
            "the test loss stays of order one",
            measure=lambda ds: stats.mean(test_loss(ds, "trained")),
            within=(0.4, inf),
            source="Theorem 4.2, Figure 4",
        ),
        Claim(
            "harmful_test_error",
            "yet the test error is zero",
            measure=lambda ds: stats.mean(ds.test_error.sel(attention="trained")),
            within=(-inf, 0.01),
            source="found here",
        ),
        Claim(
            "attention_does_harm",
            "training the attention raises the test loss over that of frozen attention",
            measure=lambda ds: stats.paired_ratio(
                test_loss(ds, "trained"), test_loss(ds, "frozen")
            ),
            within=(2, inf),
            source="frozen-attention baseline",
        ),
    ),
    figure=draw_dynamics("Harmful regime, $N = 10$, $\\|\\mu\\| = 15$"),
)


# -------------------------------------------------------------------------------- collapse

VARIATIONS = {
    "base": {},
    r"$\tilde\sigma_p = 2$": {"noise_big": 2.0},
    r"$\tilde\sigma_p = 8$": {"noise_big": 8.0},
    r"$\sigma_p = 0.05$": {"noise": 0.05},
    r"$\sigma_p = 0.4$": {"noise": 0.4},
    r"$\epsilon = 0.001$": {"eps": 0.001},
    r"$\eta = 0.05$": {"lr": 0.05},
    r"$c_0 = 1/64$": {"init_scale": 1 / 64},
    r"$c_0 = 1$": {"init_scale": 1.0},
    "$M = 4$": {"tokens": 4},
    "$M = 8$": {"tokens": 8},
    "$d = 512$": {"dim": 512},
    "$d = 2048$": {"dim": 2048},
    "random labels": {"balanced": False},
    r"projected noise": {"project": True},
}
QUICK_VARIATIONS = [*list(VARIATIONS)[:7], "$M = 4$"]


def noises(variation: str) -> tuple[float, float]:
    setting = VARIATIONS[variation]
    return setting.get("noise", NOISE), setting.get("noise_big", NOISE_BIG)


def at_ratio(settings: dict[str, Any]) -> dict[str, float]:
    """The SNR that a ratio R stands for, given the other settings."""
    noise, noise_big = settings.get("noise", NOISE), settings.get("noise_big", NOISE_BIG)
    return {"snr": theory.boundary_snr(settings["samples"], noise, noise_big, settings["ratio"])}


def critical_points(ds: xr.Dataset) -> dict[str, tuple[Estimate, Estimate]]:
    r"""For each variation: the critical $R$ and the critical $N\,\mathrm{SNR}^2$."""
    found = {}
    for variation in map(str, ds.variation.values):
        ratio = stats.threshold(ds.test_loss.sel(variation=variation), "ratio", CUT)
        noise, noise_big = noises(variation)
        found[variation] = ratio, Estimate(*(r * (noise_big / noise) ** 2 for r in ratio))
    return found


def spread(which: int) -> Callable[[xr.Dataset], Estimate]:
    """Largest over smallest critical value among the variations."""

    def measure(ds: xr.Dataset) -> Estimate:
        found = [pair[which] for pair in critical_points(ds).values()]
        top, bottom = stats.worst(found, "high"), stats.worst(found, "low")
        return Estimate(top.value / bottom.value, top.low / bottom.high, top.high / bottom.low)

    return measure


def draw_collapse(ds: xr.Dataset):
    found = critical_points(ds)
    fig, (left, right) = plot.figure(
        1, 2, title="What the boundary depends on", seeds=ds.sizes["seed"]
    )
    place = xr.DataArray(list(found), dims="variation", name="variation")
    place = place.assign_coords(variation=list(found)).variation
    place.attrs["long_name"] = "variation of the setting"
    panels = (
        (left, "", "critical $R$", 2.0, "derived: $R = 2$"),
        (right, "y", r"critical $N\,\mathrm{SNR}^2$", 1000.0, r"paper: $N\,\mathrm{SNR}^2 = 1000$"),
    )
    for which, (ax, log, words, predicted, name) in enumerate(panels):
        estimates = [e[which] for e in found.values()]
        plot.curve(ax, estimates, place, label="measured", line=False, log=log)
        plot.theory_curve(ax, [0, len(found) - 1], [predicted] * 2, name)
        ax.set_ylabel(words)
    left.set_ylim(0, 4)
    return fig


COLLAPSE = Experiment(
    "collapse",
    says="The boundary for other noises, sizes and step sizes: R is the control variable.",
    grid={
        "samples": 8,
        "key_width": 256,
        "variation": cases(VARIATIONS),
        "ratio": axis(np.geomspace(0.7, 5, 16), "R", "signal ratio"),
    },
    derive=at_ratio,
    seeds=8,
    quick={
        "variation": cases({k: VARIATIONS[k] for k in QUICK_VARIATIONS}),
        "ratio": axis(np.geomspace(0.9, 4.2, 10), "R", "signal ratio"),
        "seeds": 8,
    },
    claims=(
        Claim(
            "ratio_low",
            "the critical R is above 1.2 in every variation",
            measure=lambda ds: stats.worst([r for r, _ in critical_points(ds).values()], "low"),
            within=(1.2, inf),
            source="boundary derived from Lemma 5.1",
        ),
        Claim(
            "ratio_high",
            "the critical R is below 3 in every variation",
            measure=lambda ds: stats.worst([r for r, _ in critical_points(ds).values()], "high"),
            within=(-inf, 3),
            source="boundary derived from Lemma 5.1",
        ),
        Claim(
            "n_snr2_moves",
            "the critical N SNR^2 moves by a factor over 20, so it is not the control variable",
            measure=spread(1),
            within=(20, inf),
            source="found here",
        ),
        Claim(
            "n_snr2_universal",
            "the critical N SNR^2 is the same constant whatever the noises (within a factor 2)",
            measure=spread(1),
            within=(1, 2),
            source="Theorems 4.1 and 4.2, read literally",
            expected="fails",
            note="1000 is about 2.5 C_p^2 with the C_p = 20 of Figure 1; R is the invariant.",
        ),
    ),
    figure=draw_collapse,
)


# ---------------------------------------------------------------------------------- stages

LEVELS = (0.1, 0.05, 0.02, 0.01, 0.005)


def smallest_step(ds):
    return ds.sel(lr=float(ds.lr.min()), drop=True)


def hitting_time(ds: xr.Dataset, level: float) -> xr.DataArray:
    """First step at which the training loss is at most `level`, interpolated between steps."""
    below = ds.train_loss <= level
    first = below.argmax("step")
    after = ds.train_loss.isel(step=first)
    before = ds.train_loss.isel(step=np.maximum(first - 1, 0))
    return (first - (level - after) / (before - after)).where(below.any("step")).drop_vars("step")


def hitting_times(ds: xr.Dataset) -> xr.DataArray:
    times = xr.concat([hitting_time(ds, level) for level in LEVELS], dim="inverse")
    times = times.assign_coords(inverse=1 / np.array(LEVELS))
    times.inverse.attrs = {"long_name": "inverse training loss", "symbol": r"(1/\epsilon)"}
    times.attrs = {"long_name": "steps to reach it", "symbol": r"T"}
    return times


def step_invariance(ds: xr.Dataset) -> Estimate:
    r"""Largest relative deviation of $\eta T(0.01)$ from its value at the smallest step size."""
    flow_time = ds.lr * hitting_time(ds, 0.01)
    smallest = smallest_step(flow_time)
    return stats.worst(
        [
            stats.mean(abs(flow_time.sel(lr=lr, regime=r) / smallest.sel(regime=r) - 1))
            for lr in np.sort(ds.lr.values)[1:]
            for r in ds.regime.values
        ]
    )


def local_exponent(ds: xr.Dataset) -> list[Estimate]:
    r"""Exponent of $T$ in $1/\epsilon$ over the last three levels, by regime."""
    times = hitting_times(smallest_step(ds))
    return [
        stats.power_law(times.sel(regime=r, drop=True), "inverse", window=(50, 200)).slope
        for r in ds.regime.values
    ]


def log_growth(ds: xr.Dataset) -> Estimate:
    """Correlation of the winning value with log t in stage three (training loss below 0.05)."""
    at = smallest_step(ds).sel(regime="benign")
    late = (at.train_loss < 0.05) & (at.step <= at.stopped_at)
    value, logt = at.value_signal.where(late), np.log(at.step.where(late) + 1.0)
    return stats.mean(xr.corr(value, logt, dim="step"))


def draw_stages(ds: xr.Dataset):
    fig, (left, middle, right) = plot.figure(1, 3, title="Stages of training")
    small = smallest_step(ds)
    times = hitting_times(small)
    for r in ds.regime.values:
        at = times.sel(regime=r)
        plot.law(
            left, at, "inverse", label=str(r), fit=stats.power_law(at, "inverse", window=(50, 200))
        )
    plot.theory_curve(left, [20, 200], [60, 600], r"theory: exponent 1")
    plot.curve(middle, small.sel(regime="benign").value_signal, "step", label="signal, benign")
    plot.curve(middle, small.sel(regime="harmful").value_noise, "step", label="noise, harmful")
    early = np.arange(0, 40)
    speeds = (
        speeds_of(BENIGN, float(ds.lr.min()), small.read_out_norm2.sel(regime="benign"))[0],
        speeds_of(HARMFUL, float(ds.lr.min()), small.read_out_norm2.sel(regime="harmful"))[1],
    )
    for speed in speeds:
        plot.theory_curve(middle, early, early * float(speed.mean()), "Lemma 5.1")
    middle.set_ylabel("label-signed value, $V$")
    scaled = ds.train_loss.sel(regime="benign")
    for lr in ds.lr.values:
        until = int(ds.stopped_at.sel(regime="benign", lr=lr).min())
        at = scaled.sel(lr=lr, step=slice(0, until)).assign_coords(
            step=scaled.step.sel(step=slice(0, until)) * lr
        )
        at.step.attrs = {"long_name": "rescaled time", "symbol": r"\eta t"}
        plot.curve(right, at.isel(step=slice(1, None)), "step", label=rf"$\eta = {lr:g}$", log="xy")
    return fig


STAGES = Experiment(
    "stages",
    says="Rates: time to a training loss, early growth of the values, logarithmic late growth.",
    grid={
        **DYNAMICS,
        "steps": 1400,
        "record": 1401,
        "eps": 0.005,
        "lr": [0.02, 0.01, 0.005],
        "regime": cases({"benign": BENIGN, "harmful": HARMFUL}),
    },
    seeds=8,
    quick={"lr": [0.02, 0.01], "steps": 700, "record": 701},
    claims=(
        Claim(
            "step_invariance",
            "eta T depends on the step size by less than 2%",
            measure=step_invariance,
            within=(-inf, 0.02),
            source="Theorems 4.1 and 4.2",
        ),
        Claim(
            "time_exponent_low",
            "T grows with 1/eps with an exponent of at least 0.9",
            measure=lambda ds: stats.worst(local_exponent(ds), "low"),
            within=(0.9, inf),
            source="Theorems 4.1 and 4.2",
        ),
        Claim(
            "time_exponent_high",
            "T grows with 1/eps with an exponent of at most 1",
            measure=lambda ds: stats.worst(local_exponent(ds), "high"),
            within=(-inf, 1.0),
            source="Theorems 4.1 and 4.2",
        ),
        Claim(
            "late_log",
            "late values grow with the logarithm of time (correlation)",
            measure=log_growth,
            within=(0.999, inf),
            source="Lemma 5.4",
        ),
    ),
    figure=draw_stages,
)

EXPERIMENTS = (FIG1B, FIG1A, FIG3, FIG4, COLLAPSE, STAGES, NUMERICS)
