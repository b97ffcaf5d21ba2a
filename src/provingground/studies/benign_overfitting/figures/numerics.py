"""The boundary of Figure 1 with half the step size, and in double precision."""

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import below, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere, jackknife, mean, threshold
from provingground.study import Experiment, Trainings, cases

from .. import theory
from .shared import CUT, QUICK_SNR, reached, snr_of


def moved_with_the_step(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose boundary moves in proportion to the square root of the step size."""
    half, snr = ds.test_loss.sel(numerics="as printed", drop=True), ds.snr
    moved = half.interp(snr=snr * 2**0.5, kwargs={"fill_value": "extrapolate"})
    moved = moved.assign_coords(snr=snr)
    return ds.assign(test_loss=xr.where(ds.numerics == "half step", moved, ds.test_loss))


@claim(
    "numerics",
    equals(1, within=0.15),
    kind="own",
    rivals={"moved with the step": moved_with_the_step},
)
def half_step(ds: xr.Dataset) -> Everywhere:
    """half the step size leaves the critical SNR where it is, at every N at which the axis of SNR
    reaches N SNR^2 = 1000 (ratio)"""

    def ratio(loss: xr.DataArray) -> Estimate:
        def logs(y: xr.DataArray) -> float:
            both = (y.sel(numerics=n) for n in ("half step", "as printed"))
            half, whole = (np.log(threshold(one, "snr", CUT).value) for one in both)
            return float(half - whole)

        return jackknife(logs, loss).map(np.exp)

    return everywhere(ratio, ds.test_loss.sel(samples=reached(ds)), keep=("snr", "numerics"))


@claim("numerics", below(1e-3), kind="own")
def rounding(ds: xr.Dataset) -> Estimate:
    """single and double precision give the same test loss (mean absolute difference)"""
    single, double = (ds.test_loss.sel(numerics=n, drop=True) for n in ("as printed", "float64"))
    return mean(abs(single - double))


def draw(ds: xr.Dataset):
    n = int(ds.samples[-1])
    fig, (ax,) = plot.figure(title=f"Test loss by step size and precision, $N = {n}$", width=4.2)
    plot.curve(ax, ds.test_loss.isel(samples=-1), "snr", hue="numerics", log="x")
    at = theory.boundary_snr(n, float(ds.noise), float(ds.noise_big))
    plot.theory_curve(ax, [at, at], ax.get_ylim(), "derived boundary, $R = 2$")
    return fig


EXPERIMENTS = (
    Experiment(
        "numerics",
        says="The boundary of Figure 1 with half the step size, and in double precision.",
        trainings=Trainings(
            grid={
                "numerics": cases(
                    {
                        "as printed": {},
                        "half step": {"lr": 0.05},
                        "float64": {"precision": "float64"},
                    }
                ),
                "samples": [4, 8, 12, 16, 20],
                "snr": list(snr_of(np.geomspace(25, 100, 12))),
            },
            seeds=8,
            quick={"samples": [8], "snr": QUICK_SNR[5:], "seeds": 5},
        ),
        claims=(half_step, rounding),
        figure=draw,
    ),
)
