"""Figure 2.2: steps until the training loss is small, by the fraction of relevant tokens."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, claim, curve, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings

from .fig2_1b import scale_saves_steps
from .fig2_3 import cnn_cost_grows, cost, frozen_takes
from .shared import NETWORKS, SMALL, exp_mean, log, of_network


def over_inverse(y: xr.DataArray) -> xr.DataArray:
    r"""The same measurement over $1/\alpha_*$."""
    y = y.assign_coords(inverse=("frac_relevant", 1 / y.frac_relevant.values))
    y = y.swap_dims(frac_relevant="inverse").drop_vars("frac_relevant")
    y.inverse.attrs = {"long_name": "inverse fraction of relevant tokens", "symbol": r"1/\alpha_*"}
    return y


def iterations(ds: xr.Dataset, network: str = "ViT") -> xr.DataArray:
    times = of_network(ds, network).stopped_at.astype(float)
    return over_inverse(times.assign_attrs(ds.stopped_at.attrs))


def takes(law: Callable[[xr.Dataset], Any]) -> Altered:
    return curve("stopped_at", law)


def offset_law(power: float, offset: float) -> Altered:
    return takes(lambda ds: 80 * (offset + ds.frac_relevant**-power))


@claim(
    "Figure 2.2",
    above(0.98),
    law=offset_law(1.0, 1.0),
    rivals={
        "alpha^-2": offset_law(2.0, 1.0),
        "logarithm": takes(lambda ds: -np.log(ds.frac_relevant)),
    },
)
def steps_linear(ds: xr.Dataset) -> Estimate:
    """the steps needed are linear in 1 / alpha (squared correlation)"""
    times = iterations(ds)
    return stats.jackknife(lambda t: xr.corr(t.mean("seed"), t.inverse, dim="inverse") ** 2, times)


@claim(
    "found here",
    above(20),
    kind="corrected",
    law=offset_law(1.0, 1.0),
    rivals={"proportional": offset_law(1.0, 0.0)},
)
def steps_offset(ds: xr.Dataset) -> Estimate:
    """the line has an offset: over 20 steps are taken that no fraction of relevant tokens saves"""
    return stats.linear_law(iterations(ds), "inverse").constant


@claim(
    "Theorem 1 (2.10)",
    equals(1, within=0.1),
    expected="fails",
    because=(steps_offset,),
    rivals={"with an offset": offset_law(1.0, 1.0)},
)
def steps_proportional(ds: xr.Dataset) -> Estimate:
    """the steps needed are proportional to 1 / alpha (exponent)"""
    return stats.power_law(iterations(ds), "inverse").slope


@claim("found here", above(1), kind="own", rivals={"the same T": frozen_takes(lambda ds: 1.0)})
def cnn_takes_more(ds: xr.Dataset) -> Everywhere:
    """the CNN takes more steps than the ViT at every fraction (ratio)"""
    return everywhere(exp_mean, log(cost(ds)))


@claim(
    "Proposition 1",
    equals(0, within=0.1),
    expected="fails",
    because=(cnn_cost_grows,),
    law=frozen_takes(lambda ds: 1.6),
    rivals={"1 + 0.15 / alpha": frozen_takes(lambda ds: 1 + 0.15 / ds.frac_relevant)},
)
def cnn_same_order(ds: xr.Dataset) -> Estimate:
    """the CNN takes the steps T of Theorem 1 as well, of the same order 1 / alpha: its steps over
    the ViT's do not change with alpha (exponent; a constant factor is left open)"""
    return stats.power_law(cost(ds), "frac_relevant").slope


# ------------------------------------------------------------------------------ initial errors


def against_exact(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    times = ds.stopped_at.astype(float)
    exact = times.isel(key_error=0, value_error=0, drop=True)
    return times.isel(key_error=slice(1, None), value_error=slice(1, None)), exact


def errors_cost(ds: xr.Dataset) -> Any:
    return 100 * (1 + ds.key_error + ds.value_error)


@claim(
    "found here",
    equals(1, times=1.35),
    kind="corrected",
    law=takes(lambda ds: 100.0),
    rivals={"T ~ 1 + errors": takes(errors_cost)},
)
def errors_are_free(ds: xr.Dataset) -> Everywhere:
    """steps are those of an exact start, for all initial errors of keys and values (ratio)"""
    return everywhere(stats.paired_ratio, *against_exact(ds))


@claim(
    "Remark 3",
    above(1),
    expected="fails",
    because=(scale_saves_steps,),
    law=takes(errors_cost),
    rivals={"no effect": takes(lambda ds: 100.0)},
)
def better_start_is_faster(ds: xr.Dataset) -> Everywhere:
    """training takes fewer steps from a better initial model: with initial errors of keys and
    values it takes more than from an exact start (ratio)"""
    return everywhere(stats.paired_ratio, *against_exact(ds))


# --------------------------------------------------------------------------------- drawing


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Steps to a training loss of 0.001", width=4.2)
    for name in ("ViT", "CNN"):
        times = iterations(ds, name)
        plot.curve(ax, times, "inverse", label=name, line=False)
        law = stats.linear_law(times, "inverse")
        words = rf"{name}: {law.constant.value:.0f} + {law.slope.value:.0f} $/\alpha_*$"
        plot.theory_curve(ax, times.inverse, law(times.inverse), words)
    ax.set_ylim(bottom=0)
    return fig


def draw_errors(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Steps by initial errors", width=4.2)
    plot.curve(ax, ds.stopped_at, "value_error", hue="key_error")
    ax.set_ylim(bottom=0)
    return fig


EXPERIMENTS = (
    Experiment(
        "fig2_2",
        says="Steps until the training loss is below 0.001 against the fraction of relevant "
        "tokens.",
        trainings=Trainings(
            grid={
                "network": NETWORKS,
                "frac_relevant": [0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15],
                "frac_confusion": 0.02,
                "key_error": 0.4,
                "lr": 0.5,
                "samples": 200,
                "eps": 1e-3,
            },
            seeds=20,
            quick={
                **SMALL,
                "frac_relevant": [0.5, 0.4, 0.33, 0.27, 0.22, 0.18, 0.15],
                "samples": 128,
                "seeds": 5,
            },
        ),
        claims=(steps_linear, steps_offset, steps_proportional, cnn_takes_more, cnn_same_order),
        figure=draw,
    ),
    Experiment(
        "fig2_2_errors",
        says="The same steps against the initial errors of keys and values.",
        trainings=Trainings(
            grid={
                "key_error": [0.0, 0.1, 0.2, 0.3, 0.49],
                "value_error": [0.0, 0.1, 0.3, 1.0],
                "frac_relevant": 0.3,
                "frac_confusion": 0.02,
                "lr": 0.5,
                "samples": 200,
                "eps": 1e-3,
            },
            seeds=20,
            quick={
                **SMALL,
                "key_error": [0.0, 0.2, 0.49],
                "value_error": [0.0, 0.2, 1.0],
                "samples": 128,
                "seeds": 8,
            },
            domain={
                "key_error": (0.0, 0.49),
                "value_error": (0.0, 1.0),
                "frac_relevant": (0.08, 0.8),
                "frac_confusion": (0.0, 0.04),
                "lr": (0.2, 3.0),
                "hidden_init_std": (0.001, 0.03),
            },
        ),
        claims=(better_start_is_faster, errors_are_free),
        figure=draw_errors,
    ),
)
