"""One Experiment per figure: the grid, what it should show, and how it is drawn."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import Claim
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings

from .model import Config
from .theory import excess_risk


def predicted(ds: xr.Dataset) -> xr.DataArray:
    noise = ds.noise if "noise" in ds.coords else Config().noise
    return excess_risk(ds.samples, Config().dim, noise)


def measured_over_predicted(ds: xr.Dataset) -> Estimate:
    return stats.mean(ds.test_loss / predicted(ds))


def draw(ds: xr.Dataset):
    at = ds.isel(noise=-1)
    fig, (ax,) = plot.figure(title="Excess risk of least squares")
    plot.law(ax, at.test_loss, "samples", predicted=predicted(at))
    return fig


EXPERIMENTS = (
    Experiment(
        "risk",
        says="Excess risk of least squares against the number of samples and the noise.",
        trainings=Trainings(
            grid={"samples": [30, 50, 80, 120, 200], "noise": [0.5, 1.0, 2.0]},
            seeds=256,
            quick={"seeds": 64},
        ),
        claims=(
            Claim(
                "risk_law",
                "the mean excess risk is sigma^2 d / (N - d - 1)",
                measure=measured_over_predicted,
                within=(0.75, 1.25),
                source="Theorem 1",
            ),
            Claim(
                "noise_exponent",
                "the excess risk is quadratic in the noise",
                measure=lambda ds: stats.power_law(ds.test_loss.sel(samples=80), "noise").slope,
                within=(1.98, 2.02),
                source="Theorem 1",
            ),
        ),
        figure=draw,
    ),
)
