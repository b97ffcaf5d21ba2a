"""Section 7.2: what is suggested against the curse, and predictors to compare with."""

from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim
from provingground.stats import Estimate, Everywhere, everywhere, mean, paired_ratio
from provingground.study import Experiment, Trainings, cases

from .. import theory
from .expressivity import measure_risk_law, measure_worse_than_zero
from .shared import FEATURES, replaced

SCALAR: dict[str, dict[str, Any]] = {
    "gradient descent": {"adam": 0.0},
    "Adam": {},
    "Adam, weight decay": {"decay": 0.01},
    "trained $a$": {"read_out": 1.0},
    "diff. softmax": {"second": 1.0},
    "$+x_d$": {"skip": 1.0},
    "position bias": {"position": 1.0},
}
HEAD: dict[str, dict[str, Any]] = {
    "head, no position": {},
    "head, learned": {"learned": 1.0},
    "head, rotary": {"turn": 1.0},
    "head, decay": {"slope": 1.0},
    "head, patch 4": {"patch": 4},
    "head, patch 8": {"patch": 8},
}
VARIANTS = (
    {n: {"simulator": "scalar"} | s for n, s in SCALAR.items()}
    | {n: {"simulator": "head"} | s for n, s in HEAD.items()}
    | {"MLP": {"simulator": "mlp"}}
)
SUGGESTED = ("Adam", "Adam, weight decay", "diff. softmax")  # section 7.2
BLIND = ("gradient descent", *SUGGESTED, "trained $a$", "head, no position")

TRAININGS = Trainings(
    grid={
        "features": FEATURES,
        "samples": 128,
        "width": 64,
        "noise": 0.1,
        "steps": 2000,
        "record": 4,
        "test_samples": 2000,
        "variant": cases(VARIANTS),
    },
    simulator="scalar",
    seeds=8,
    quick={"width": 16, "steps": 200, "test_samples": 1000, "seeds": 4},
)


def only(ds: xr.Dataset, *names: str, features: str = "unit") -> xr.Dataset:
    return ds.sel(features=features, variant=list(names), drop=True)


def over_zero(ds: xr.Dataset) -> Everywhere:
    """OOD risk over that of the zero predictor."""
    return everywhere(paired_ratio, ds.ood_loss, ds.zero_ood)


# ------------------------------------------------------------------------------- suggested


@claim("found here", above(0.9), kind="own")
def blind_stay_blind(ds: xr.Dataset) -> Everywhere:
    """variants that are blind to the order stay above the least risk that such predictors can have
    (unit, in distribution, ratio)"""
    at = only(ds, *BLIND)
    least = theory.order_blind_risk(1, int(ds.tokens), float(ds.gamma), float(ds.noise), ood=False)
    return everywhere(mean, at.test_loss / least)


@claim(
    "section 7.2",
    below(1),
    expected="fails",
    because=(blind_stay_blind, measure_risk_law, measure_worse_than_zero),
)
def relieved(ds: xr.Dataset) -> Everywhere:
    """Adam, weight decay and differential attention bring the OOD risk below that of the zero
    predictor (mix and unit)"""
    return over_zero(ds.sel(variant=list(SUGGESTED)))


@claim("section 7.2, patching", below(0.1))
def patch_helps(ds: xr.Dataset) -> Everywhere:
    """a patch as long as the series brings the OOD risk below 0.1 (mix and unit)"""
    return everywhere(mean, ds.ood_loss.sel(variant=["head, patch 8"]))


@claim("found here", below(1), kind="own")
def rotary_finds_last(ds: xr.Dataset) -> Estimate:
    """rotary positions help one head where the last step is nearly all of the answer (mix, risk
    over that without positions)"""
    at = ds.sel(features="mix")
    return paired_ratio(
        at.test_loss.sel(variant="head, rotary"), at.test_loss.sel(variant="head, no position")
    )


@claim(
    "section 7.2, rotary positions",
    below(1),
    expected="fails",
    because=(rotary_finds_last,),
)
def rotary_helps(ds: xr.Dataset) -> Everywhere:
    """rotary positions bring the OOD risk of one head below that of the zero predictor (unit)"""
    return over_zero(only(ds, "head, rotary"))


# ------------------------------------------------------------------------------- found here


@claim("found here", below(0.5), kind="own")
def bias_helps(ds: xr.Dataset) -> Everywhere:
    """a trained bias of the logits by position brings the OOD risk below half of zero's (unit)"""
    return over_zero(only(ds, "position bias"))


@claim("found here", below(2), kind="own")
def skip_helps_mix(ds: xr.Dataset) -> Estimate:
    """in mix adding the last value comes near the residual linear network: risk below twice its"""
    at = ds.sel(features="mix", variant="$+x_d$")
    return paired_ratio(at.test_loss, at.fitted_loss)


@claim(
    "found here",
    above(1.5),
    kind="own",
    rivals={"zero's": replaced("last_ood", lambda ds: ds.zero_ood)},
)
def last_value_worse(ds: xr.Dataset) -> Everywhere:
    """worse than zero is nothing special: repeating the last value has over 1.5 times the OOD
    risk of predicting zero (mix and unit)"""
    at = ds.isel(variant=0)
    return everywhere(paired_ratio, at.last_ood, at.zero_ood)


@claim(
    "found here",
    below(1),
    kind="own",
    rivals={"attention": replaced("ood_loss", lambda ds: ds.ood_loss.sel(variant="Adam"))},
)
def mlp_better_than_zero(ds: xr.Dataset) -> Everywhere:
    """a small perceptron that sees the order has less OOD risk than zero (unit)"""
    return over_zero(only(ds, "MLP"))


@claim("found here", below(2), kind="own")
def plain_as_residual(ds: xr.Dataset) -> Everywhere:
    """nothing has to be subtracted: the unrestricted linear network has less than twice the OOD
    risk of the residual one (mix and unit)"""
    at = ds.isel(variant=0)
    return everywhere(paired_ratio, at.plain_ood, at.fitted_ood)


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(2, 1, width=6.2, title="What helps: risks of the variants")
    for ax, f in zip(axes, ds.features.values, strict=True):
        here = ds.sel(features=f)
        plot.curve(ax, here.test_loss, "variant", label="ID", line=False, log="y")
        plot.curve(ax, here.ood_loss, "variant", label="OOD", line=False, log="y")
        span = [0, ds.sizes["variant"] - 1]
        for name, words in (
            ("zero_ood", "OOD, zero"),
            ("last_ood", "OOD, last value"),
            ("fitted_ood", "OOD, residual linear"),
        ):
            plot.theory_curve(ax, span, [float(here[name].mean())] * 2, words)
        ax.set_ylabel(f"risk ({f})")
        ax.set_xlabel("variant" if ax is axes[-1] else "")
        ax.tick_params(axis="x", labelbottom=ax is axes[-1])
    return fig


EXPERIMENTS = (
    Experiment(
        "remedies",
        says="Every remedy of section 7.2 side by side, and predictors without attention.",
        trainings=TRAININGS,
        claims=(
            relieved,
            blind_stay_blind,
            patch_helps,
            rotary_helps,
            rotary_finds_last,
            bias_helps,
            skip_helps_mix,
            last_value_worse,
            mlp_better_than_zero,
            plain_as_residual,
        ),
        figure=draw,
    ),
)
