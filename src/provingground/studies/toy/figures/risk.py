"""Excess risk against the number of samples and the noise."""

import xarray as xr

from provingground import plot
from provingground.claims import claim, curve, equals
from provingground.stats import Estimate, Everywhere, everywhere, mean, power_law
from provingground.study import Experiment, Trainings

from ..theory import excess_risk

TRAININGS = Trainings(
    grid={"samples": [30, 50, 80, 120, 200], "noise": [0.5, 1.0, 2.0]},
    seeds=256,
    quick={"seeds": 128},
    domain={"dim": (2, 20), "samples": (30, 300), "noise": (0.3, 3), "lr": [0.4]},
    where=lambda s: s["dim"] <= 12 or s["steps"] >= 1000,  # or descent has not arrived
)


def predicted(ds: xr.Dataset) -> xr.DataArray:
    return excess_risk(ds.samples, ds.dim, ds.noise)


@claim(
    "Theorem 1",
    equals(1, within=0.25),
    law=curve("test_loss", predicted),
    rivals={
        "d/N": curve("test_loss", lambda ds: ds.noise**2 * ds.dim / ds.samples),
        "sigma d/(N - d - 1)": curve("test_loss", lambda ds: predicted(ds) / ds.noise),
    },
)
def risk_law(ds: xr.Dataset) -> Everywhere:
    """the mean excess risk is sigma^2 d / (N - d - 1) (ratio, at every N)"""
    return everywhere(mean, ds.test_loss / predicted(ds), keep="noise")


@claim(
    "Theorem 1",
    equals(2, within=0.02),
    law=curve("test_loss", predicted),
    rivals={"sigma^1.9": curve("test_loss", lambda ds: predicted(ds) / ds.noise**0.1)},
)
def noise_exponent(ds: xr.Dataset) -> Estimate:
    """the excess risk is quadratic in the noise"""
    return power_law(ds.test_loss.mean("samples"), "noise").slope


def draw(ds: xr.Dataset):
    at = ds.isel(noise=-1)
    fig, (ax,) = plot.figure(title="Excess risk of least squares")
    plot.law(ax, at.test_loss, "samples", predicted=predicted(at))
    return fig


EXPERIMENTS = (
    Experiment(
        "risk",
        says="Excess risk of least squares against the number of samples and the noise.",
        trainings=TRAININGS,
        claims=(risk_law, noise_exponent),
        figure=draw,
    ),
)
