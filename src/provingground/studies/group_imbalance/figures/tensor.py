"""Error of the tensor initialisation (Subroutine 1) against the number of samples."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, below, claim, equals
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings, cases

from .shared import geometric, log

JOINT, PRINTED = "all samples, joint subspace", "as printed: three parts"
SYMMETRIC, SYMMETRIC_JOINT = "symmetric, as printed", "symmetric, joint subspace"


def power_of_n(y: xr.DataArray) -> Estimate:
    """The power of n in the geometric mean over seeds."""
    logs = log(y)
    return stats.linear_law(logs.assign_coords(samples=log(logs.samples)), "samples").slope


def falls_as(power: float) -> Altered:
    """The Dataset whose errors are a power of n."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        n = ds.samples.astype(float)
        made = ds.relative_error.isel(samples=0, drop=True) * (n / n[0]) ** power
        return ds.assign(relative_error=made.transpose(*ds.relative_error.dims))

    return altered


@claim("(C.87), for the joint subspace", equals(-1 / 2, within=0.4), kind="corrected",
       law=falls_as(-0.5), rivals={"no law": falls_as(0.0), "1/n": falls_as(-1.0)})  # fmt: skip
def tensor_improves(ds: xr.Dataset) -> Estimate:
    """the error of the start from all samples falls with n as n^(-1/2)"""
    return power_of_n(ds.relative_error.sel(variant=JOINT))


@claim("local theory", below(-0.8), kind="own")
def magnitudes_too_small(ds: xr.Dataset) -> Estimate:
    """(C.5) returns |w| E[phi']/K: its weights are 0.8 and more too short, for a symmetric mixture
    too (their norm over the teacher's, less 1, largest n)"""
    return stats.mean(ds.literal_magnitude.sel(variant=SYMMETRIC_JOINT).isel(samples=-1)) - 1


@claim("(C.5)", below(0.5), expected="fails", because=(magnitudes_too_small,))
def printed_magnitudes(ds: xr.Dataset) -> Estimate:
    """with the magnitudes of (C.5) the relative error is below 0.5 at the largest n"""
    return stats.mean(ds.literal_error.sel(variant=JOINT).isel(samples=-1))


@claim(
    "Subroutine 1, lines 4 to 6",
    below(0.6),
    rivals={"no direction found": lambda ds: ds.assign(relative_error=1 + 0 * ds.relative_error)},
)
def symmetric_works(ds: xr.Dataset) -> Estimate:
    """for a symmetric mixture, with a second-order tensor of one random direction as printed, the
    error (geometric mean) is below 0.6 at the largest n"""
    return geometric(ds.relative_error.sel(variant=SYMMETRIC).isel(samples=-1))


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """The first two variants with the errors of each other."""
    order = [1, 0, *range(2, ds.sizes["variant"])]
    moved = ds.relative_error.isel(variant=order).values
    return ds.assign(relative_error=ds.relative_error.copy(data=moved))


@claim(
    "found here",
    below(1),
    kind="own",
    rivals={"the other way": exchanged},
)
def joint_is_better(ds: xr.Dataset) -> Estimate:
    """all samples and the joint subspace give a smaller error than Subroutine 1 as printed, at the
    largest n (geometric mean of the ratio)"""
    at = ds.relative_error.isel(samples=-1)
    return geometric(at.sel(variant=JOINT, drop=True) / at.sel(variant=PRINTED, drop=True))


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Tensor initialisation", width=4.2)
    error = ds.relative_error
    plot.curve(ax, error, "samples", hue="variant", log="xy")
    literal = ds.literal_error.isel(variant=0)
    plot.curve(ax, literal, "samples", label="printed magnitudes (C.5)", log="xy")
    n = ds.samples.values.astype(float)
    first = float(error.isel(variant=0, samples=0).mean("seed"))
    plot.theory_curve(ax, n, first * np.sqrt(n[0] / n), r"(C.87): $\propto n^{-1/2}$")
    return fig


EXPERIMENTS = (
    Experiment(
        "tensor",
        says="Error of the tensor initialisation against the number of samples.",
        trainings=Trainings(
            simulator="tensor",
            grid={
                "samples": [20_000, 50_000, 100_000, 200_000, 400_000],
                "variant": cases(
                    {
                        JOINT: {},
                        PRINTED: {"joint": 0, "split": 1},
                        SYMMETRIC: {"mean_1": 0.5, "mean_2": -0.5, "joint": 0},
                        SYMMETRIC_JOINT: {"mean_1": 0.5, "mean_2": -0.5},
                    }
                ),
            },
            seeds=24,
            quick={"samples": [10_000, 50_000], "seeds": 24},
        ),
        claims=(
            tensor_improves,
            magnitudes_too_small,
            printed_magnitudes,
            symmetric_works,
            joint_is_better,
        ),
        figure=draw,
    ),
)  # fmt: skip
