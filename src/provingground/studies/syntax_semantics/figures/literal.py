"""The paper's orders taken literally: nothing is learned."""

from math import log, sqrt
from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import below, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere, mean
from provingground.study import Experiment, Trainings

from ..exact import LOG2
from .shared import ending, level
from .thm2 import easy_at_rest

ROOT = 1 / sqrt(log(16))
GRID: dict[str, Any] = {
    "tokens": 257,
    "balanced": False,
    "margin": 0.25,
    "z_norm": 0.5,
    "zeta_norm": 0.1,
    "weight_decay": ROOT,
    "init_std": ROOT,
    "lr1": 0.05,
    "lr2": 0.0025,
    "k1": 1.0,
}


@claim("Theorem 2 (b.2) with Assumption 1", below(0.25), expected="fails", because=(easy_at_rest,))
def literal_learned(ds: xr.Dataset) -> Estimate:
    """stage 1 learns the easy part (loss below 0.25)"""
    return mean(ending(ds.loss_easy, 1))


@claim("found here", below(0.1), kind="own", rivals={"as in thm3": level("w_norm", lambda ds: 2)})
def literal_signal(ds: xr.Dataset) -> Estimate:
    """the easy signal stays small to the end, and with it the loss near log 2 (norm)"""
    return mean(ending(ds.w_norm, 2))


@claim("Theorem 2 (b.2)", below(0.25), expected="fails", because=(easy_at_rest,))
def literal_decay_learned(ds: xr.Dataset) -> Everywhere:
    """with a weight decay of 0.01 the easy part is learned by the end of either stage (loss)"""
    both = xr.concat([ending(ds.loss_easy, 1), ending(ds.loss_easy, 2)], "after")
    return everywhere(mean, both.assign_coords(after=[1, 2]))


@claim("found here", equals(LOG2, within=0.01), kind="own")
def literal_decay_hard(ds: xr.Dataset) -> Estimate:
    """and nothing of the hard part is (loss)"""
    return mean(ending(ds.loss_hard, 2))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="The paper's orders, taken literally")
    plot.curve(left, ds.loss_easy, "stage", label="easy part, $K^1$")
    plot.curve(left, ds.loss_hard, "stage", label="hard part, $K^2$")
    left.set_ylabel("loss")
    plot.theory_curve(left, [0, 2], [LOG2] * 2, r"nothing learned: $\log 2$")
    plot.curve(right, ds.w_norm, "stage", label=r"$\|\bar W\|_F$")
    plot.curve(right, ds.v_norm, "stage", label=r"$\|\bar V\|_F$")
    right.set_ylabel("norm of the signal")
    return fig


EXPERIMENTS = (
    Experiment(
        "literal",
        says="The paper's orders taken literally at d = 16: nothing is learned.",
        trainings=Trainings(simulator="full", grid=GRID, seeds=16, quick={"seeds": 4}),
        claims=(literal_learned, literal_signal),
        figure=draw,
    ),
    Experiment(
        "literal_decay",
        says="The literal orders with a weight decay of 0.01: there is room, but too little.",
        trainings=Trainings(
            simulator="full", grid={**GRID, "weight_decay": 0.01}, seeds=8, paper_only=True
        ),
        claims=(literal_decay_learned, literal_decay_hard),
        figure=draw,
    ),
)
