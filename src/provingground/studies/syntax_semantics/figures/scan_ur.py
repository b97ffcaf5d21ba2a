"""Centre against offset: a gate at large u, both sides at small u."""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, between, claim, shuffle
from provingground.stats import Estimate, Everywhere, everywhere, median, rank_correlation, share
from provingground.study import Experiment, Trainings

from ..exact import FLOOR
from .shared import MISSED, NOTHING, ONE_SIDE, ending, levels


def misses(ds: xr.Dataset) -> xr.DataArray:
    gone = (ending(ds.loss_hard, 1) > MISSED).astype(float)
    return gone.assign_attrs(long_name="share that misses the hard part in stage 1", symbol="")


@claim("derived here", above(0.8), kind="own", rivals={"out of order": shuffle("z_norm")})
def gate_shuts(ds: xr.Dataset) -> Estimate:
    """the share of seeds that miss the hard part in stage 1 grows with u (rank correlation)"""
    return rank_correlation(misses(ds), "z_norm")


@claim("derived here", below(0.1), kind="own", scale="paper")
def no_gate(ds: xr.Dataset) -> Estimate:
    """at u = r the large step learns the hard part too: no separate stages"""
    return share(misses(ds).sel(z_norm=3.0))


def final(ds: xr.Dataset, where: slice) -> xr.DataArray:
    return ending(ds.loss_hard, 2).sel(z_norm=where)


@claim("derived here", between(FLOOR, 0.42), kind="own", rivals=ONE_SIDE)
def two_sides(ds: xr.Dataset) -> Estimate:
    """at u = r both sides are learned (median loss at the end)"""
    return median(final(ds, slice(3, 3)).isel(z_norm=0))


@claim("derived here", between(FLOOR, 0.42), kind="own", scale="paper")
def two_sides_4(ds: xr.Dataset) -> Estimate:
    """so they are at u = 4 (median loss at the end)"""
    return median(ending(ds.loss_hard, 2).sel(z_norm=4.0))


@claim("derived here", between(0.51, 0.56), kind="own", rivals=NOTHING)
def one_side(ds: xr.Dataset) -> Everywhere:
    """from u = 9 on only one side is learned (median loss at the end)"""
    return everywhere(median, final(ds, slice(9, None)))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="What the ratio of centre and offset decides")
    plot.curve(left, misses(ds), "z_norm", line=False)
    left.set_ylim(-0.05, 1.05)
    for stage in (1, 2):
        y = ending(ds.loss_hard, stage)
        plot.curve(right, y, "z_norm", label=f"end of stage {stage}", line=False)
    levels(right, (float(ds.z_norm.min()), float(ds.z_norm.max())))
    right.set_ylabel("loss of the hard part, $K^2$")
    return fig


EXPERIMENTS = (
    Experiment(
        "scan_ur",
        says="The hard part's centre against its offset: a gate at large u, both sides at small u.",
        trainings=Trainings(
            grid={"z_norm": [3.0, 4.0, 6.0, 9.0, 12.0, 16.0]},
            seeds=1024,
            quick={"z_norm": [3.0, 6.0, 9.0, 16.0], "seeds": 48},
        ),
        claims=(gate_shuts, no_gate, two_sides, two_sides_4, one_side),
        figure=draw,
    ),
)
