"""Descent with noise in the gradient: the distance that is kept (4.8)."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, below, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings, axis

from .shared import TWO, late, opposite


def kept(ds: xr.Dataset) -> xr.DataArray:
    """The root mean square distance over the second half of a descent."""
    return np.sqrt((late(ds).distance ** 2).mean("step"))


def keeps(f: Any) -> Altered:
    """The Dataset whose distances are f at every step."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        made = xr.zeros_like(ds.distance) + f(ds)
        return ds.assign(distance=made.transpose(*ds.distance.dims))

    return altered


def power_of_noise(ds: xr.Dataset, power: float) -> xr.DataArray:
    return ds.floor.mean("noise") * (ds.noise / ds.noise.mean()) ** power


@claim(
    "found here",
    equals(1, within=0.1),
    kind="own",
    law=keeps(lambda ds: ds.floor),
    rivals={
        "its square": keeps(lambda ds: power_of_noise(ds, 2.0)),
        "its root": keeps(lambda ds: power_of_noise(ds, 0.5)),
    },
)
def linear_in_noise(ds: xr.Dataset) -> Estimate:
    """the distance that is kept is as linear in xi as the bound of (4.8) (power)"""
    return stats.power_law(kept(ds), "noise").slope


@claim(
    "local theory",
    equals(1, times=1.25),
    kind="own",
    law=keeps(lambda ds: ds.floor),
    rivals={
        "a bound": keeps(lambda ds: ds.bound),
        "a third": keeps(lambda ds: 3**0.5 * ds.floor),
    },
)
def noise_law(ds: xr.Dataset) -> Everywhere:
    """it is that of an autoregression in each eigendirection (ratio)"""
    return everywhere(stats.mean, kept(ds) / ds.floor)


@claim("(4.8)", below(1), bound="paper", rivals={"200 times it": keeps(lambda ds: 200 * ds.floor)})
def noise_bound(ds: xr.Dataset) -> Everywhere:
    """it lies below the statistical error of (4.8) (ratio)"""
    return everywhere(stats.mean, kept(ds) / ds.bound)


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Noise in the gradient", width=4.2)
    found = kept(ds).assign_attrs(long_name="distance that noise keeps")
    plot.law(ax, found, "noise", fit=stats.power_law(found, "noise"))
    x = ds.noise.values
    plot.theory_curve(ax, x, ds.floor.mean("seed"), "autoregression")
    plot.theory_curve(ax, x, ds.bound.mean("seed"), "bound of (4.8)")
    return fig


EXPERIMENTS = (
    Experiment(
        "noise",
        says="Descent with noise in the gradient: the distance that is kept.",
        trainings=Trainings(
            simulator="descent",
            grid={
                "mean_1": axis(0.05, sets=opposite),
                "noise": [0.01, 0.03, 0.1, 0.3],
                "times": 40.0,
            },
            seeds=32,
            quick={**TWO, "noise": [0.01, 0.1], "times": 20.0, "seeds": 8},
        ),
        claims=(linear_in_noise, noise_law, noise_bound),
        figure=draw,
    ),
)
