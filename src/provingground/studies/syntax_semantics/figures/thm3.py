"""Theorem 3: annealing lets the hard part be learned, one side of it; with its controls."""

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import above, below, between, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere, mean, median, paired_ratio, share
from provingground.study import Experiment

from ..exact import FLOOR, LOG2
from .rest import rest_loss, rest_norm
from .shared import (
    BOTH,
    LEARNED,
    MISSED,
    NOTHING,
    ONE_SIDE,
    TWO_STAGES,
    d_log_d,
    ending,
    level,
    levels,
    on,
    rest,
)
from .thm1 import burst_law


@claim(
    "Theorem 3 (c.2)",
    equals(1, within=0.1),
    kind="corrected",
    law=level("loss_hard", lambda ds: rest(ds).loss_hard),
    rivals={**NOTHING, "both sides are learned": level("loss_hard", lambda ds: FLOOR)},
)
def hard_at_rest(ds: xr.Dataset) -> Everywhere:
    """stage 2 lowers the loss of the hard part to that of one side at rest, near 3/4 log 2, with
    either length of stage 1 (median fall over the predicted one)"""
    two = ds.sel(schedule=BOTH)
    return everywhere(median, (LOG2 - ending(two.loss_hard, 2)) / (LOG2 - rest(two).loss_hard))


@claim("Theorem 3 (c.2)", below(0.1), expected="fails", because=(hard_at_rest, rest_loss))
def hard_vanishes(ds: xr.Dataset) -> Everywhere:
    """the loss of the hard part vanishes in stage 2 (below 0.1)"""
    return everywhere(mean, ending(ds.loss_hard.sel(schedule=BOTH), 2))


@claim("Theorem 3 (c.1)", above(2), expected="fails", because=(rest_norm, burst_law))
def hard_grows(ds: xr.Dataset) -> Everywhere:
    """the hard signal ends stage 2 much larger than stage 1 (ratio of the norms)"""
    v = ds.v_norm.sel(schedule=BOTH)
    return everywhere(paired_ratio, ending(v, 2), ending(v, 1))


@claim("Theorem 3 (c.1)", between(0.5, 2), expected="fails", because=(rest_norm,))
def hard_norm(ds: xr.Dataset) -> Everywhere:
    """the hard signal grows to log(1/eps)/eps, eps = 1/d, up to a factor 2 (ratio)"""
    return everywhere(mean, ending(ds.v_norm.sel(schedule=BOTH), 2) / d_log_d(ds))


@claim("found here", above(0.5), kind="own", rivals=NOTHING)
def most_learn(ds: xr.Dataset) -> Everywhere:
    """more than half of the trainings learn one side of the hard part in stage 2"""
    return everywhere(share, ending(ds.loss_hard.sel(schedule=BOTH), 2) < LEARNED)


@claim("control of Theorems 1 and 3", above(0.9), kind="own", rivals=ONE_SIDE)
def annealing_acts(ds: xr.Dataset) -> Estimate:
    """without annealing the hard part is missed four times as long (share of seeds)"""
    return share(ending(on(ds, "large step").loss_hard, 2) > MISSED)


@claim("control of Theorem 1", above(0.6), kind="own", rivals=NOTHING)
def one_stage(ds: xr.Dataset) -> Estimate:
    """with small steps from the start there is one stage: the hard part is there at k = 3"""
    return share(ending(on(ds, "small step").loss_hard, 1) < LEARNED)


@claim("found here", equals(LOG2, within=0.01), kind="own", rivals=ONE_SIDE)
def noise_needed(ds: xr.Dataset) -> Estimate:
    """without gradient noise nothing of the hard part is learned: V stays in its dead zone"""
    return mean(ending(on(ds, "no noise").loss_hard, 2))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Easy first, hard after annealing")
    one = on(ds, "annealed")
    plot.curve(left, one.loss_easy, "stage", label="easy part, $K^1$")
    plot.curve(left, one.loss_hard, "stage", label="hard part, $K^2$")
    levels(left)
    left.set_ylabel("loss")
    shown = ["annealed", "large step", "small step", "no noise"]
    plot.curve(right, ds.loss_hard.sel(schedule=shown), "stage", hue="schedule")
    levels(right)
    right.set_ylim(0.3, float(np.quantile(ds.loss_hard.mean("seed"), 0.98)) + 0.1)
    return fig


EXPERIMENTS = (
    Experiment(
        "thm3",
        says="Two stages: the easy part at a large step, the hard part after annealing; controls.",
        trainings=TWO_STAGES,
        claims=(
            hard_at_rest,
            hard_vanishes,
            hard_grows,
            hard_norm,
            most_learn,
            annealing_acts,
            one_stage,
            noise_needed,
        ),
        figure=draw,
    ),
)
