"""Figure 2(a), the headline: the excess loss in time, and what SGD adds to the population's."""

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import claim, equals
from provingground.stats import Everywhere
from provingground.study import Experiment

from .. import theory
from .shared import (
    FIGURE_2,
    as_power,
    each,
    late_slopes,
    of,
    over_excess_law,
    over_floor,
    sgd_is,
)


@claim(
    "Theorem 3.1(3), Figure 2(a)",
    equals(-1, within=0.1),
    law=as_power("test_loss", -1.0),
    rivals={"t^-1/2": as_power("test_loss", -0.5), "t^-2": as_power("test_loss", -2.0)},
)
def slope(ds: xr.Dataset) -> Everywhere:
    """the excess loss of descent on the population falls as 1/t (exponent over the last decade)"""
    return late_slopes(of(ds, "recursion").test_loss)


@claim(
    "Theorem 3.1(1)",
    equals(-1 / 2, within=0.05),
    law=as_power("score_error", -0.5),
    rivals={"1/t": as_power("score_error", -1.0), "t^-1/4": as_power("score_error", -0.25)},
)
def score_slope(ds: xr.Dataset) -> Everywhere:
    """there the distance of the scores falls as t^(-1/2)"""
    return late_slopes(of(ds, "recursion").score_error)


@claim(
    "Theorem 3.1(2)",
    equals(-1 / 2, within=0.1),
    law=as_power("value_error", -0.5),
    rivals={"1/t": as_power("value_error", -1.0), "t^-1/4": as_power("value_error", -0.25)},
)
def value_slope(ds: xr.Dataset) -> Everywhere:
    """there the distance of the values falls as t^(-1/2)"""
    return late_slopes(of(ds, "recursion").value_error)


@claim(
    "derived from Lemma C.2",
    equals(1, within=0.1),
    kind="own",
    law=sgd_is(),
    # Early on the floor is small beside the loss: `floor_law` tells its parts apart.
    rivals={"the floor of a batch of 10": sgd_is(times=10.0)},
)
def sgd_law(ds: xr.Dataset) -> Everywhere:
    """the excess loss of SGD is that of the population plus what noisy labels and the inputs of a
    batch keep up (ratio, last quarter of the training)"""
    return each("task", over_floor, ds)


@claim(
    "Figure 2(a)",
    equals(-1, within=0.1),
    expected="fails",
    because=(slope, sgd_law),
    scale="paper",
)
def sgd_slope(ds: xr.Dataset) -> Everywhere:
    """SGD's own curves have slope -1 (last decade of 20 000 steps)"""
    return late_slopes(of(ds, "SGD").test_loss)


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Excess loss of the student")
    population = of(ds, "recursion")
    # One seed on the left: the energies of the teachers differ, and a mean of losses hides kinks.
    plot.curve(left, of(ds, "SGD").test_loss.isel(seed=[0]), "step", hue="task", log="xy")
    for task in ds.task.values:
        one = population.sel(task=task)
        t = one.step.values
        plot.theory_curve(left, t, one.test_loss.isel(seed=0), "population recursion")
        late = t[t > 3000].astype(float)
        d, k, lr = (float(one[n]) for n in ("tokens", "group", "lr"))
        plot.theory_curve(left, late, theory.excess_law(d, k, lr, late), r"$KD(D-K)/(4\eta t)$")
    ratio = over_excess_law(population.sel(step=slice(5000, None)))
    ratio.attrs = {"long_name": "recursion over", "symbol": r"KD(D-K)/(4\eta t)"}
    plot.curve(right, ratio.transpose("task", "seed", "step"), "step", hue="task", log="x")
    plot.theory_curve(right, ratio.step.values, np.ones(ratio.step.size), "law")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig2a",
        says="Excess loss in time: online SGD, the exact recursion, and the law it tends to.",
        trainings=FIGURE_2,
        claims=(slope, score_slope, value_slope, sgd_law, sgd_slope),
        figure=draw,
    ),
)
