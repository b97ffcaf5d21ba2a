"""The start as it is printed in section 3.5.1, beside that of Assumption B.2.1."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import below, claim, exchange
from provingground.stats import Estimate, last
from provingground.study import Experiment, Trainings, cases

from .shared import PAPER, QUICK

PRINTED = dict(key_scale=400.0, key_error=0.0, value_scale=100.0, value_error=0.0)
STARTS = {
    "Assumption B.2.1": {},
    "as printed": PRINTED,
    "long keys alone": dict(key_scale=400.0),
}
exchanged = exchange("start", ("Assumption B.2.1", "as printed"))


def printed(y: xr.DataArray) -> xr.DataArray:
    return last(y).sel(start="as printed", drop=True)


@claim("found here", below(1e-3), kind="own", rivals={"Assumption B.2.1": exchanged})
def start_locks_bias(ds: xr.Dataset) -> Estimate:
    """from the printed start the distance bias does not move (largest entry below 0.001)"""
    return stats.mean(abs(printed(ds.dist_bias)).max("ring"))


@claim(
    "found here",
    below(1e-3),
    kind="own",
    rivals={"Assumption B.2.1": exchange("start", ("Assumption B.2.1", "long keys alone"))},
)
def long_keys_are_enough(ds: xr.Dataset) -> Estimate:
    """nor does it where keys and queries alone are as long as printed (largest below 0.001)"""
    ends = last(ds.dist_bias).sel(start="long keys alone", drop=True)
    return stats.mean(abs(ends).max("ring"))


@claim(
    "section 3.5.1",
    below(0.01),
    expected="fails",
    because=(start_locks_bias, long_keys_are_enough),
)
def start_learns(ds: xr.Dataset) -> Estimate:
    """from the printed start W_K = W_Q = delta^2 I / c_0^2 the test error comes to zero (below
    0.01)"""
    return stats.mean(printed(ds.test_error))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="The printed start and that of the assumption")
    plot.curve(left, ds.test_error, "step", hue="start")
    plot.curve(right, ds.dist_bias.sel(ring=1), "step", hue="start")
    right.set_ylabel("distance bias of ring 1, $b_1$")
    return fig


EXPERIMENTS = (
    Experiment(
        "start",
        says="Training from the printed start, and from that of Assumption B.2.1.",
        trainings=Trainings(
            grid={**PAPER, "samples": 400, "steps": 4000, "start": cases(STARTS)},
            seeds=20,
            quick={**QUICK, "steps": 300, "samples": 128, "seeds": 4},
        ),
        claims=(start_learns, start_locks_bias, long_keys_are_enough),
        figure=draw,
    ),
)
