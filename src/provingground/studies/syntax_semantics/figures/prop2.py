"""Proposition 2: the gradient of W as printed, from random to aligned weights."""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim
from provingground.stats import Estimate, Everywhere, everywhere, mean, rank_correlation
from provingground.study import Experiment, Trainings


def turned(ds: xr.Dataset) -> xr.Dataset:
    """The errors of aligned weights at random ones, and the other way round."""
    back = ds.printed_error.isel(aligned=slice(None, None, -1))
    return ds.assign(printed_error=ds.printed_error.copy(data=back.data))


@claim("found here", above(0.9), kind="own", rivals={"turned round": turned})
def wrong_signs(ds: xr.Dataset) -> Estimate:
    """the error of the printed gradient follows the share of active tokens whose label is not the
    query's, over margins and alignments (rank correlation): the last line drops both labels"""
    return rank_correlation(ds.printed_error, ds.wrong_share.mean("seed"))


@claim("Proposition 2", below(0.05), expected="fails", because=(wrong_signs,))
def prop2_printed(ds: xr.Dataset) -> Everywhere:
    """the printed gradient is right at a random W, at every margin (relative error below 5%)"""
    return everywhere(mean, ds.printed_error.isel(aligned=0))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Proposition 2 as printed")
    plot.curve(left, ds.printed_error, "aligned", hue="margin")
    plot.curve(right, ds.wrong_share, "aligned", hue="margin")
    return fig


EXPERIMENTS = (
    Experiment(
        "prop2",
        says="Proposition 2's gradient of W as printed, whose last line drops the labels' signs.",
        trainings=Trainings(
            simulator="gradient",
            grid={"margin": [0.25, 0.6, 1.2], "aligned": [0.0, 0.25, 0.5, 1.0, 2.0, 4.0]},
            seeds=32,
            quick={"seeds": 8},
        ),
        claims=(prop2_printed, wrong_signs),
        figure=draw,
    ),
)
