"""A trained output bias: the repair that lets the loss of the hard part fall further."""

import xarray as xr

from provingground import plot
from provingground.claims import below, claim
from provingground.stats import Estimate, median
from provingground.study import Experiment, Trainings

from ..exact import FLOOR, ONE_SIDED
from .shared import NOTHING, ending, levels


def final(ds: xr.Dataset, u: float) -> xr.DataArray:
    return ending(ds.loss_hard.sel(z_norm=u, output_bias=1), 2)


@claim("found here", below(ONE_SIDED), kind="own", rivals=NOTHING)
def bias_gate(ds: xr.Dataset) -> Estimate:
    """with a bias the median loss falls below 3/4 log 2 at u = 16"""
    return median(final(ds, 16.0))


@claim("found here", below(FLOOR), kind="own", scale="paper")
def bias_floor(ds: xr.Dataset) -> Estimate:
    """and at u = 4, where most seeds learn both sides, below the floor of all V"""
    return median(final(ds, 4.0))


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="An output bias lifts the floor")
    for ax, u in zip(axes, ds.z_norm.values, strict=True):
        plot.curve(ax, ds.loss_hard.sel(z_norm=u, output_bias=0), "stage", label="no bias")
        plot.curve(ax, ds.loss_hard.sel(z_norm=u, output_bias=1), "stage", label="trained bias")
        levels(ax)
        ax.set_title(f"$u = {u:g}$", loc="left")
    return fig


EXPERIMENTS = (
    Experiment(
        "output_bias",
        says="A trained output bias: the repair that lets the loss of the hard part fall further.",
        trainings=Trainings(
            grid={"z_norm": [4.0, 16.0], "output_bias": [0.0, 1.0]}, seeds=1024, quick={"seeds": 24}
        ),
        claims=(bias_gate, bias_floor),
        figure=draw,
    ),
)
