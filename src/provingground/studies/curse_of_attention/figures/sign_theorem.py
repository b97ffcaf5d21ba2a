"""Whether the output keeps the sign of the last value, and what that costs."""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, between, claim
from provingground.stats import Estimate, Everywhere, everywhere, last, mean, paired_ratio
from provingground.study import Experiment

from .shared import TRAINED, WEAK, both


def strong(ds: xr.Dataset) -> list[str]:
    """mix, and unit with gamma of a half or more."""
    return [str(f) for f in ds.features.values if f != WEAK]


@claim("found here", above(0.85), kind="own")
def same_sign(ds: xr.Dataset) -> Everywhere:
    """f x_d >= 0 at the end of training on over 0.85 of the series, in and out of distribution
    (mix, and unit with gamma of a half or more)"""
    at = both(last(ds.same_sign), last(ds.ood_same_sign))
    return everywhere(mean, at.sel(features=strong(ds)))


@claim("found here", below(0.9), kind="own")
def order_is_lost(ds: xr.Dataset) -> Everywhere:
    """by then the premise of the sign theorem is gone: less than 0.9 of the pairs are in order
    (unit)"""
    return everywhere(mean, last(ds.ordered).sel(features=[f for f in strong(ds) if f != "mix"]))


@claim("found here", between(0.4, 0.97), kind="own", scale="paper")
def weak_sign(ds: xr.Dataset) -> Estimate:
    """at gamma = 0.2 outputs keep the sign of the last value on 0.4 to 0.97 of the OOD series"""
    return mean(last(ds.ood_same_sign).sel(features=WEAK))


@claim("found here", above(1), kind="own")
def gap_at_weak_gamma(ds: xr.Dataset) -> Estimate:
    """there, too, the OOD risk is above that of the zero predictor"""
    at = ds.sel(features=WEAK)
    return paired_ratio(last(at.ood_loss), at.zero_ood)


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Does the output keep the sign of the last value?")
    at = ds.isel(step=slice(1, None))
    plot.curve(left, at.ood_same_sign, "step", hue="features", log="x")
    left.set_ylim(0, 1.05)
    ratio = at.ood_loss / at.zero_ood
    ratio.attrs = {"long_name": "OOD risk over that of zero"}
    plot.curve(right, ratio, "step", hue="features", log="x")
    return fig


EXPERIMENTS = (
    Experiment(
        "sign_theorem",
        says="Whether the output keeps the sign of the last value, and what that costs.",
        trainings=TRAINED,
        claims=(same_sign, order_is_lost, weak_sign, gap_at_weak_gamma),
        figure=draw,
    ),
)
