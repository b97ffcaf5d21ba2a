"""What the boundary depends on, with and without a cut in the test loss."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, claim, curve, equals
from provingground.stats import Estimate, Everywhere, everywhere, jackknife, threshold
from provingground.study import Experiment, Trainings, axis, cases

from .shared import (
    CUT,
    at_ratio,
    inside,
    lead,
    loss_as_the_law,
    loss_of_uniform_queries,
    ratio,
    test_loss_law,
    values_equal_at,
)

VARIATIONS: Mapping[str, dict[str, Any]] = {
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
    "random $y$": {"balanced": False},
    r"with $\Pi$": {"project": True},
}
QUICK = ["base", *list(VARIATIONS)[1:5], "$M = 4$"]
RATIOS = np.geomspace(1, 4, 7)


def ratios(values: Any) -> Any:
    return axis(values, "R", "signal ratio", sets=at_ratio)


# ------------------------------------------------------------------- where the values are equal


@claim(
    "derived from Lemma 5.1",
    equals(2, times=1.5),
    kind="own",
    law=values_equal_at(2.0),
    rivals={"R = 1": values_equal_at(1.0), "R = 4": values_equal_at(4.0)},
)
def value_boundary(ds: xr.Dataset) -> Everywhere:
    """signal and noise end with equal values at R = 2, within a factor 1.5, whatever the noises,
    the number of tokens, the step size, the initial weights and the rest"""
    return everywhere(lambda y: threshold(y, "ratio", 0.0), lead(ds), keep="ratio")


def largest_over_smallest(y: xr.DataArray, level: float, over: Any = 1.0) -> Estimate:
    """The spread of the critical R (over something) among the variations."""
    found = [
        threshold(y.sel(variation=v), "ratio", level)
        / float(over if isinstance(over, float) else over.sel(variation=v))
        for v in y.variation.values
    ]
    top, bottom = stats.worst(found, "high"), stats.worst(found, "low")
    return Estimate(top.value / bottom.value, top.low / bottom.high, top.high / bottom.low)


@claim(
    "found here",
    above(1.5),
    kind="own",
    rivals={"a loss of R alone": curve("test_loss", lambda ds: 0.7 / (1 + 2.5 * (ratio(ds) / 2)))},
)
def cut_moves_it(ds: xr.Dataset) -> Estimate:
    """the R at which the test loss crosses 0.2 moves with the settings by a factor over 1.5: a cut
    in the loss hides how sharp the boundary is"""
    return largest_over_smallest(ds.test_loss, CUT)


def per_n_snr2(ds: xr.Dataset) -> xr.DataArray:
    return (ds.noise / ds.noise_big) ** 2


def equal_at_n_snr2(constant: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """The Dataset whose values are equal where N SNR^2 is a constant."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        made = ds.value_noise * (ds.samples * ds.snr**2 / constant)
        return ds.assign(value_signal=made.transpose(*ds.value_signal.dims))

    return altered


@claim(
    "found here",
    above(20),
    kind="own",
    law=values_equal_at(2.0),
    rivals={"N SNR^2 = 800": equal_at_n_snr2(800.0)},
)
def n_snr2_moves(ds: xr.Dataset) -> Estimate:
    """where the ratio of the noises is not that of Condition 4.1 (10), the N SNR^2 of equal values
    moves by a factor over 20"""
    return largest_over_smallest(lead(ds), 0.0, per_n_snr2(ds))


# ------------------------------------------------------------------------ what coarse steps do


def smaller_step_over_larger(y: xr.DataArray, level: float) -> Estimate:
    """The critical R with the smaller step size over that with the larger one."""

    def logs(y: xr.DataArray) -> float:
        both = (y.sel(lr=float(lr)) for lr in (y.lr.min(), y.lr.max()))
        small, large = (np.log(threshold(one, "ratio", level).value) for one in both)
        return float(small - large)

    return jackknife(logs, y).map(np.exp)


def same_at_each_step(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose test loss does not depend on the step size."""
    one = ds.test_loss.sel(lr=float(ds.lr.max()), drop=True)
    return ds.assign(test_loss=(one + 0 * ds.test_loss).transpose(*ds.test_loss.dims))


@claim("found here", above(1.2), kind="own", rivals={"no effect of the step": same_at_each_step})
def steps_move_the_cut(ds: xr.Dataset) -> Estimate:
    """with four tokens, steps a tenth of Figure 1's move the R at which the test loss crosses 0.2
    up by a factor over 1.2"""
    return smaller_step_over_larger(ds.test_loss, CUT)


def moved_with_the_step(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose values are equal at an R that moves as the cut in the loss does."""
    r = 2 * (ds.lr.max() / ds.lr) ** 0.2
    made = ds.value_noise * (ratio(ds) / r)
    return ds.assign(value_signal=made.transpose(*ds.value_signal.dims))


@claim(
    "found here",
    equals(1, times=1.2),
    kind="own",
    law=values_equal_at(2.0),
    rivals={"moved as the cut is": moved_with_the_step},
)
def steps_leave_equal_values(ds: xr.Dataset) -> Estimate:
    """the same steps move the R of equal values by less than a factor 1.2"""
    return smaller_step_over_larger(lead(ds), 0.0)


@claim(
    "derived from Lemma 5.5",
    equals(1, within=0.15),
    kind="own",
    law=loss_as_the_law,
    rivals={"all queries uniform": loss_of_uniform_queries},
)
def small_steps_law(ds: xr.Dataset) -> Estimate:
    """with four tokens and the smaller steps the test loss from R = 3 to 5 is l(V (2M-1)/M^2)
    (ratio)"""
    at = ds.sel(lr=float(ds.lr.min()))
    return stats.paired_ratio(
        *(inside(ratio(at) > 3, y) for y in (at.test_loss, test_loss_law(at)))
    )


def draw_steps(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Four tokens: what the step size moves")
    for ax, y, words in (
        (axes[0], ds.test_loss, "test loss"),
        (axes[1], lead(ds), "lead of the signal's value"),
    ):
        plot.curve(ax, y.assign_attrs(long_name=words), "ratio", hue="lr", log="x")
    axes[0].axhline(CUT, color=plot.GREY, linewidth=0.8)
    axes[1].axhline(0, color=plot.GREY, linewidth=0.8)
    return fig


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="What the boundary depends on", seeds=ds.sizes["seed"])
    place = ds.variation.drop_attrs()
    place.attrs["long_name"] = "variation of the setting"
    scale = per_n_snr2(ds).broadcast_like(place)
    free = [threshold(lead(ds).sel(variation=v), "ratio", 0.0) for v in place.values]
    cut = [threshold(ds.test_loss.sel(variation=v), "ratio", CUT) for v in place.values]
    left, right = axes
    plot.curve(left, free, place, label="values are equal", line=False)
    plot.curve(left, cut, place, label=f"test loss {CUT}", line=False)
    plot.theory_curve(left, [0, len(place) - 1], [2.0] * 2, "derived: $R = 2$")
    left.set_ylabel("critical $R$")
    left.set_ylim(0, 4)
    moved = [e / float(s) for e, s in zip(free, scale, strict=True)]
    plot.curve(right, moved, place, label="values are equal", line=False, log="y")
    paper = r"paper: $N\,\mathrm{SNR}^2 = 1000$"
    plot.theory_curve(right, [0, len(place) - 1], [1000.0] * 2, paper)
    right.set_ylabel(r"critical $N\,\mathrm{SNR}^2$")
    return fig


def draw_base(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Who is ahead at the end of training", width=4.2)
    ahead = lead(ds).assign_attrs(long_name="lead of the signal's value")
    plot.curve(ax, ahead, "ratio", log="x")
    r = ds.ratio.values.astype(float)
    plot.theory_curve(ax, r, (r - 2) / (r + 2), "first speeds, Lemma 5.1")
    return fig


EXPERIMENTS = (
    Experiment(
        "collapse",
        says="The boundary for other noises, sizes and step sizes: where signal and noise end with "
        "equal values, and where the test loss crosses 0.2.",
        trainings=Trainings(
            grid={
                "samples": 8,
                "key_width": 256,
                "variation": cases(VARIATIONS),
                "ratio": ratios(np.geomspace(0.7, 5, 16)),
            },
            seeds=16,
            quick={
                "variation": cases({k: VARIATIONS[k] for k in QUICK}),
                "ratio": RATIOS,
                "seeds": 6,
            },
        ),
        claims=(value_boundary, cut_moves_it, n_snr2_moves),
        figure=draw,
    ),
    Experiment(
        "collapse_base",
        says="The same at one setting, from which the others of its domain are drawn.",
        trainings=Trainings(
            grid={"samples": 8, "key_width": 256, "ratio": ratios(np.geomspace(0.7, 5, 16))},
            seeds=16,
            quick={"ratio": RATIOS, "seeds": 6},
            domain={
                "samples": (4, 40),
                "noise": (0.05, 0.5),
                "noise_big": (1.0, 10.0),
                "lr": (0.01, 0.1),
                "init_scale": (1 / 64, 1 / 6.4),
                "eps": (0.003, 0.03),
                "tokens": [4, 8, 16],
                "dim": [256, 512, 1024, 2048],
            },
        ),
        claims=(value_boundary,),
        figure=draw_base,
    ),
    Experiment(
        "collapse_steps",
        says="Four tokens, at the step size of Figure 1 and at a tenth of it: the cut in the test "
        "loss moves far, the R of equal values little.",
        trainings=Trainings(
            grid={
                "samples": 8,
                "tokens": 4,
                "key_width": 256,
                "lr": [0.1, 0.01],
                "ratio": ratios(np.geomspace(0.7, 5, 16)),
            },
            seeds=16,
            quick={"ratio": [*RATIOS, 5.0], "seeds": 6},
        ),
        claims=(steps_move_the_cut, steps_leave_equal_values, small_steps_law),
        figure=draw_steps,
    ),
)
