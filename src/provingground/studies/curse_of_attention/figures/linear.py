"""Proposition 6.3(2): linear networks, and what the residual one needs."""

import xarray as xr

from provingground import plot
from provingground.claims import claim, curve, equals
from provingground.stats import Everywhere, everywhere, mean, power_law
from provingground.study import Experiment, Trainings, cases

from .. import theory
from .shared import ALL_MODES, both, norm, replaced, told

WHERE = ("mode", "tokens", "gamma", "noise")

TRAININGS = Trainings(
    grid={
        "features": cases(ALL_MODES),
        "noise": [0.01, 0.03, 0.1, 0.3],
        "samples": 64,
        "test_samples": 4000,
    },
    simulator="linear",
    seeds=64,
    quick={"seeds": 24},
    domain={"samples": (32, 320), "tokens": [4, 8, 16], "gamma": (0.1, 0.95)},
)


def fitted(ds: xr.Dataset, weights: xr.DataArray) -> xr.DataArray:
    return theory.least_squares_factor(ds.samples, weights)


def residual_risk(ds: xr.Dataset) -> xr.DataArray:
    """Mean risk of the residual linear network fitted by least squares."""
    best = told(ds, theory.best_residual_risk, *WHERE, ood=False)
    return best * fitted(ds, ds.tokens - 1)


@claim(
    "derived from Definition 6.2",
    equals(1, within=0.1),
    kind="own",
    law=curve("fitted_loss", residual_risk),
    rivals={
        "sigma^2 (1 + |c|^2)": curve(
            "fitted_loss", lambda ds: theory.linear_risk_at_c(norm(ds), ds.noise)
        ),
        "no cost of fitting": curve("fitted_loss", lambda ds: 0.85 * residual_risk(ds)),
    },
)
def residual_risk_law(ds: xr.Dataset) -> Everywhere:
    """the trained residual linear network has the risk of the best one times 1 + p/(n-p-1) with
    p = d - 1 (ratio): it has a floor (1 - sum c)^2/d where the weights do not sum to one"""
    return everywhere(mean, ds.fitted_loss / residual_risk(ds))


@claim(
    "Proposition 6.3(2), for features with Properties 1 and 2",
    equals(2, within=0.1),
    expected="fails",
    because=(residual_risk_law,),
)
def linear_sigma_squared(ds: xr.Dataset) -> Everywhere:
    """the OOD risk of the trained residual linear network is O(sigma^2) (exponent)"""
    return everywhere(lambda y: power_law(y, "noise").slope, ds.fitted_ood, keep="noise")


@claim(
    "Proposition 6.3(2), where the weights of the next feature sum to one",
    equals(1, within=0.05),
    kind="corrected",
    law=replaced("linear_ood", lambda ds: theory.linear_risk_at_c(norm(ds), ds.noise)),
    rivals={"sigma^2": replaced("linear_ood", lambda ds: ds.noise**2 + 0 * ds.mode)},
)
def linear_risk(ds: xr.Dataset) -> Everywhere:
    """the residual linear network with w* = c has the risk sigma^2 (1 + |c|^2), in and out of
    distribution, if sum c = 1 (ratio; mix and unit)"""
    at = ds.sel(features=["mix", "unit"])
    exact = theory.linear_risk_at_c(norm(at), at.noise)
    return everywhere(mean, both(at.linear_loss, at.linear_ood) / exact)


@claim(
    "Proposition 6.3(2), without the last value added",
    equals(2, within=0.1),
    kind="corrected",
    rivals={"sigma": curve("plain_ood", lambda ds: ds.noise + 0 * ds.mode, scaled=True)},
)
def plain_sigma_squared(ds: xr.Dataset) -> Everywhere:
    """the OOD risk of the unrestricted linear network is O(sigma^2) whatever the sum (exponent, up
    to sigma = 0.1)"""
    return everywhere(
        lambda y: power_law(y, "noise", window=(0.0, 0.1)).slope, ds.plain_ood, keep="noise"
    )


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 3, title="Linear networks where the weights sum to one, and not")
    for ax, f in zip(axes, ds.features.values, strict=True):
        here = ds.sel(features=f)
        plot.curve(ax, here.fitted_loss, "noise", label="residual linear", log="xy")
        plot.curve(ax, here.plain_loss, "noise", label="linear", log="xy")
        plot.curve(ax, here.blind_loss, "noise", label="best order-blind", log="xy")
        plot.theory_curve(ax, here.noise, residual_risk(here), "law, residual linear")
        ax.set_ylabel(r"risk, $R_{\mathrm{ID}}$")
        ax.set_title(str(f))
        ax.set_ylim(1e-4, 5)
    return fig


EXPERIMENTS = (
    Experiment(
        "linear",
        says="Linear networks by least squares, in and out of distribution.",
        trainings=TRAININGS,
        claims=(residual_risk_law, linear_sigma_squared, linear_risk, plain_sigma_squared),
        figure=draw,
    ),
)
