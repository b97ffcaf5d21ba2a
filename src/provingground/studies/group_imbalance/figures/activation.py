"""Other activations: tanh and erf in the place of the sigmoid (Appendix C.4)."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings

from .cor4_4_1 import error_ratio
from .shared import ZERO, beside, both_rates, log

SLOPE = {"sigmoid": 1 / 4, "tanh": 1 / 2, "erf": np.pi**-0.5}


def steepness(ds: xr.Dataset) -> xr.DataArray:
    """The slope of the activation at 0, over the sigmoid's."""
    values = [4 * SLOPE[str(a)] for a in ds.activation.values]
    return xr.DataArray(values, dims="activation", coords={"activation": ds.activation})


def same_strength(ds: xr.Dataset) -> xr.Dataset:
    """All activations turn where the sigmoid does."""
    first = ds.error.sel(activation="sigmoid", drop=True)
    return ds.assign(error=(first + 0 * ds.error).transpose(*ds.error.dims))


@claim("found here", equals(2.5, times=1.4), kind="own",
       rivals={"one strength for all": same_strength})  # fmt: skip
def error_turns_by_slope(ds: xr.Dataset) -> Everywhere:
    """direction (v) of the error turns where strength times slope at 0, over the sigmoid's, is 2.5,
    for tanh and erf too"""
    ratio = error_ratio(ds, "fraction", 0.01, 0.3)

    def at(y: xr.DataArray, unit: xr.DataArray) -> Estimate:
        return stats.threshold(y, "strength", 0.0).map(lambda s: s * float(unit))

    return everywhere(at, ratio, steepness(ds), keep="strength")


@claim("Corollary 4.4.1(v), Appendix C.4", above(0), kind="corrected")
def strong_with_any_activation(ds: xr.Dataset) -> Everywhere:
    """for a strong teacher (8) more of the wider group slows descent with both step sizes, and
    raises the error, for tanh and erf too (logarithm of the ratio)"""
    at = ds.sel(strength=8.0)
    rates = log(both_rates(at))
    slower = rates.sel(fraction=0.01, drop=True) - rates.sel(fraction=0.3, drop=True)
    error = error_ratio(at, "fraction", 0.01, 0.3)
    parts = [slower.isel(step_size=0), slower.isel(step_size=1), error]
    parts = [p.drop_vars("step_size", errors="ignore") for p in parts]
    return everywhere(stats.mean, beside(parts, "what", ("c/M_2", "1/lambda_max", "error")))


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Error in direction (v) for three activations", width=4.2)
    y = error_ratio(ds, "fraction", 0.01, 0.3) / np.log(10)
    for name, slope in zip(ds.activation.values, steepness(ds).values, strict=True):
        one = y.sel(activation=name)
        one = one.assign_coords(strength=one.strength * slope)
        one.strength.attrs = {"long_name": "strength times slope at 0 (sigmoid: 1)"}
        one.attrs = {"long_name": "error at fraction 0.3 over 0.01, power of ten"}
        plot.curve(ax, one, "strength", label=str(name), log="x")
    plot.theory_curve(ax, ds.strength.values * 2, 0.0, "no change")
    return fig


EXPERIMENTS = (
    Experiment(
        "activation",
        says="The error in direction (v) for sigmoid, tanh and erf.",
        trainings=Trainings(
            simulator="local",
            grid={
                **ZERO,
                "activation": ["sigmoid", "tanh", "erf"],
                "strength": [0.5, 1.0, 1.4, 2.0, 2.8, 4.0, 8.0],
                "fraction": [0.01, 0.3],
                "var_2": 10.0,
            },
            seeds=64,
            quick={"test_samples": 2000, "seeds": 24},
            domain={"var_2": (3.0, 100.0), "dim": [3, 5, 8], "width": [2, 3]},
        ),
        claims=(error_turns_by_slope, strong_with_any_activation),
        figure=draw,
    ),
)
