"""Proposition 6.3(1): the risk on series whose last and next value differ in sign."""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, curve, equals
from provingground.stats import Everywhere, everywhere, last, paired_ratio, power_law
from provingground.study import Experiment, Trainings

from .. import theory
from .shared import FEATURES, QUICK, STANDARD, core, norm, replaced

TRAININGS = Trainings(
    grid={**STANDARD, "features": FEATURES, "noise": [0.0, 0.01, 0.03, 0.1]},
    seeds=64,
    quick={**QUICK, "seeds": 8},
    domain={
        "samples": (16, 160),
        "width": (64, 640),
        "tokens": [4, 8, 16],
        "gamma": (0.1, 0.95),
        "lr": (0.1, 1.0),
        "init_scale": (0.3, 3.0),
    },
)


def noisy(ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(noise=ds.noise > 0)


@claim(
    "Proposition 6.3(1)",
    below(1.5),
    rivals={
        "sigma^2": curve("ood_loss", lambda ds: ds.noise**2 + 0 * ds.mode, scaled=False),
        "residual linear": replaced("ood_loss", lambda ds: ds.fitted_ood),
    },
)
def not_sigma_squared(ds: xr.Dataset) -> Everywhere:
    """the OOD risk of attention is not O(sigma^2): its exponent in sigma is below 1.5"""
    risk = last(noisy(ds).ood_loss)
    return everywhere(lambda y: power_law(y, "noise").slope, risk, keep="noise")


@claim(
    "Proposition 6.3(1), by the sign theorem",
    above(1),
    kind="own",
    rivals={
        "residual linear": replaced("ood_loss", lambda ds: ds.fitted_ood),
        "half of zero's": replaced("ood_loss", lambda ds: ds.zero_ood / 2),
    },
)
def worse_than_zero(ds: xr.Dataset) -> Everywhere:
    """the OOD risk of attention is above that of the zero predictor, at every noise and without"""
    return everywhere(paired_ratio, last(ds.ood_loss), ds.zero_ood)


@claim(
    "found here",
    equals(1, within=0.3),
    kind="own",
    law=replaced("ood_loss", lambda ds: ds.last_ood),
    rivals={
        "zero's": replaced("ood_loss", lambda ds: ds.zero_ood),
        "half the last value": replaced("ood_loss", lambda ds: ds.last_ood / 2),
    },
)
def as_last_value(ds: xr.Dataset) -> Everywhere:
    """in mix the OOD risk of attention is that of repeating the last value (ratio)"""
    at = ds.sel(features=["mix"])
    return everywhere(paired_ratio, last(at.ood_loss), at.last_ood)


@claim(
    "Proposition 6.3",
    above(10),
    rivals={"nine times": replaced("ood_loss", lambda ds: 9 * ds.fitted_ood)},
)
def gap(ds: xr.Dataset) -> Everywhere:
    """at sigma = 0.01 attention has over 10 times the OOD risk of the trained linear network"""
    at = ds.sel(noise=[0.01])
    return everywhere(paired_ratio, last(at.ood_loss), at.fitted_ood)


@claim("found here", above(2), kind="own")
def loses_in_distribution(ds: xr.Dataset) -> Everywhere:
    """attention loses in distribution too: over twice the risk of the trained linear network"""
    at = noisy(ds)
    return everywhere(paired_ratio, last(at.test_loss), at.fitted_loss)


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Risk where last and next value differ in sign")
    at = noisy(ds)
    for ax, f in zip(axes, ds.features.values, strict=True):
        here = at.sel(features=f)
        plot.curve(ax, last(here.ood_loss), "noise", label="attention", log="xy")
        plot.curve(ax, here.last_ood, "noise", label="last value", log="xy")
        plot.curve(ax, here.fitted_ood, "noise", label="residual linear", log="xy")
        plot.curve(ax, here.plain_ood, "noise", label="linear", log="xy")
        zero = theory.zero_ood_risk(core(here), norm(here), here.noise)
        plot.theory_curve(ax, here.noise, zero, "zero predictor")
        exact = theory.linear_risk_at_c(norm(here), here.noise)
        plot.theory_curve(ax, here.noise, exact, r"linear, $w^*$: $\sigma^2(1+\|c\|^2)$")
        ax.set_ylabel(r"OOD risk, $R_{\mathrm{OOD}}$")
        ax.set_title(str(f))
    return fig


EXPERIMENTS = (
    Experiment(
        "ood_risk",
        says="Risk on sign-inconsistent series: attention, linear networks, last value, zero.",
        trainings=TRAININGS,
        claims=(not_sigma_squared, worse_than_zero, as_last_value, gap, loses_in_distribution),
        figure=draw,
    ),
)
