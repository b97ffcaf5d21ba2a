"""More positives than negatives in a context: the floor is gone, but training stays there."""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim
from provingground.stats import Everywhere, everywhere, median, share
from provingground.study import Experiment, Trainings, cases

from ..exact import FLOOR, ONE_SIDED
from .shared import LEARNED, ending, level

MORE = ("two thirds", "three quarters")


def more(y: xr.DataArray) -> xr.DataArray:
    return y.sel(positives=list(MORE))


@claim("found here", below(0.1), kind="own", rivals={
    "learned": level("hard_positive", lambda ds: 2.0)})  # fmt: skip
def imbalance_positives(ds: xr.Dataset) -> Everywhere:
    """positives are not learned: share of seeds with g(z) over 0.1 at the end"""
    return everywhere(share, ending(more(ds.hard_positive), 2) > 0.1)


@claim("found here", above(0.51), kind="own", rivals={
    "both sides": level("loss_hard", lambda ds: FLOOR)})  # fmt: skip
def imbalance_loss(ds: xr.Dataset) -> Everywhere:
    """so no more than one side is learned (median loss at the end)"""
    return everywhere(median, ending(more(ds.loss_hard), 2))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="More positives than negatives in a context")
    second = ds.sel(stage=slice(1, 2))  # in stage 1 single bursts are ten times as high
    plot.curve(left, second.loss_hard, "stage", hue="positives")
    plot.theory_curve(left, [1, 2], [ONE_SIDED] * 2, r"one side: $\frac{3}{4}\log 2$")
    done = (ending(ds.loss_hard, 2) < LEARNED).astype(float)
    done.attrs = {"long_name": "share of seeds that learn one side"}
    plot.curve(right, done, "positives", line=False)
    right.set_xlabel("positives in a context")
    right.set_ylim(-0.05, 1.05)
    return fig


EXPERIMENTS = (
    Experiment(
        "imbalance",
        says="More positives than negatives in a context: the floor is gone, training stays there.",
        trainings=Trainings(
            grid={
                "positives": cases(
                    {"half": {}, MORE[0]: {"positive": 2 / 3}, MORE[1]: {"positive": 3 / 4}}
                )
            },
            seeds=1024,
            quick={"seeds": 40},
        ),
        claims=(imbalance_positives, imbalance_loss),
        figure=draw,
    ),
)
