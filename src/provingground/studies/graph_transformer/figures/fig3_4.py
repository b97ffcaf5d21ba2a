"""Figure 3.4: the test loss in time for labels of which a fraction contradicts the vote."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim, equals
from provingground.stats import Estimate, last
from provingground.study import Experiment, Trainings

from .. import theory
from .shared import PAPER, QUICK, against, doubled


def settling_time(ds: xr.Dataset) -> xr.DataArray:
    r"""Steps until the test loss has made 9/10 of its way from 1 to $2\hat\epsilon_0$."""
    goal = theory.final_loss(ds.inconsistent)
    way = (1 - ds.test_loss) / (1 - goal)
    found = stats.hitting_time(1 - way, 0.1, t=ds.step.astype(float))
    found.attrs = {"long_name": "steps to settle", "symbol": "T"}
    return found


def flip_exponent(ds: xr.Dataset) -> Estimate:
    r"""Exponent of the settling time in $1 - 2\epsilon_0$."""
    kept = 1 - 2 * ds.frac_inconsistent
    made = against(ds, "frac_inconsistent", kept, "labels_kept", r"(1-2\epsilon_0)")
    return stats.power_law(settling_time(made), "labels_kept").slope


def settles(power: float):
    """The Dataset whose loss falls on a line, in a time that is a power of 1 - 2 eps_0."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        luck = xr.DataArray(np.linspace(0.98, 1.02, ds.sizes["seed"]), {"seed": ds.seed}, "seed")
        time = 100 * luck * (1 - 2 * ds.frac_inconsistent) ** power
        part = (ds.step / (time * float(ds.step[-1]) / 300)).clip(0, 1)
        made = 1 - part * (1 - theory.final_loss(ds.inconsistent))
        return ds.assign(test_loss=made.transpose(*ds.test_loss.dims))

    return altered


@claim("(3.10), Figure 3.4", below(0.03), rivals={"eps_0": doubled("inconsistent", 0.5)})
def plateau(ds: xr.Dataset) -> Estimate:
    """the test loss ends at twice the flipped fraction of the test set (largest deviation)"""
    return stats.agreement(last(ds.test_loss), theory.final_loss(ds.inconsistent), relative=False)


@claim("Figure 3.4", above(0), rivals={"no change": settles(0.0)})
def flips_slow_down(ds: xr.Dataset) -> Estimate:
    """more flips take more steps (smallest step up)"""
    return stats.monotone(settling_time(ds), "frac_inconsistent", "increasing")


@claim(
    "gradient flow",
    equals(-1, within=0.3),
    kind="corrected",
    law=settles(-1.0),
    rivals={"-1/2": settles(-0.5), "-2": settles(-2.0)},
)
def flips_law_flow(ds: xr.Dataset) -> Estimate:
    """the steps grow as 1 / (1 - 2 eps_0): flips cancel that share of the gradient (exponent)"""
    return flip_exponent(ds)


@claim(
    "(3.8)",
    equals(-1 / 2, within=0.25),
    expected="fails",
    because=(flips_law_flow,),
    law=settles(-0.5),
    rivals={"-1": settles(-1.0)},
)
def flips_law(ds: xr.Dataset) -> Estimate:
    """the steps grow as (1 - 2 eps_0)^(-1/2) (exponent)"""
    return flip_exponent(ds)


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Labels that contradict the vote", width=4.4)
    plot.curve(ax, ds.test_loss, "step", hue="frac_inconsistent")
    ends = [int(ds.step[0]), int(ds.step[-1])]
    for eps in ds.frac_inconsistent.values:
        plot.theory_curve(ax, ends, [theory.final_loss(eps)] * 2, r"$2\epsilon_0$")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig3_4",
        says="Test loss in time for labels of which a fraction contradicts the vote.",
        trainings=Trainings(
            grid={
                **PAPER,
                "confusion_ratio": 0.0,
                "steps": 6000,
                "samples": 400,
                "frac_inconsistent": [0.0, 0.05, 0.1, 0.15, 0.2],
            },
            seeds=20,
            quick={**QUICK, "steps": 300, "samples": 256, "seeds": 8},
            domain={
                "frac_disc": (0.2, 0.45),
                "key_error": (0.02, 0.4),
                "value_error": (0.01, 0.15),
                "init_scale": (0.003, 0.03),
            },
        ),
        claims=(plateau, flips_slow_down, flips_law, flips_law_flow),
        figure=draw,
    ),
)
