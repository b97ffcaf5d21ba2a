"""What attention can express: the best measure over neurons against the best order-blind
predictor."""

import xarray as xr

from provingground import plot
from provingground.claims import above, claim, curve, equals
from provingground.stats import Everywhere, everywhere, mean, paired_ratio
from provingground.study import Experiment, Trainings, cases

from .. import theory
from .shared import GAMMAS, WEAK, core, replaced, told

WHERE = ("mode", "tokens", "gamma", "noise")
QUICK_GAMMAS = {
    k: GAMMAS[k] for k in ("mix", WEAK, r"unit, $\gamma = 0.5$", r"unit, $\gamma = 0.9$")
}


def blind(ds: xr.Dataset) -> xr.DataArray:
    return told(ds, theory.order_blind_risk, *WHERE, ood=False)


def law_risk(ds: xr.Dataset) -> xr.DataArray:
    """What no order-blind predictor knows, and the part of the last step that neurons miss."""
    return blind(ds) + theory.misfit(ds.tokens) * core(ds) ** 2


@claim(
    "found here",
    equals(1, within=0.15),
    kind="own",
    law=curve("test_loss", law_risk),
    rivals={
        "order-blind alone": curve("test_loss", lambda ds: blind(ds) + 1e-6),
        "a tenth of the whole": curve(
            "test_loss", lambda ds: blind(ds) + 0.1 * ds.zero_loss.mean("seed")
        ),
    },
)
def measure_risk_law(ds: xr.Dataset) -> Everywhere:
    """the best measure over neurons has the risk of the best order-blind predictor plus the
    part kappa c_d^2 of the last step, kappa = 0.2/d^0.4 (ratio)"""
    return everywhere(mean, ds.test_loss / law_risk(ds))


@claim(
    "found here",
    above(1),
    kind="own",
    rivals={"zero's": replaced("ood_loss", lambda ds: 0.9 * ds.zero_ood)},
)
def measure_worse_than_zero(ds: xr.Dataset) -> Everywhere:
    """its OOD risk is above that of the zero predictor"""
    return everywhere(paired_ratio, ds.ood_loss, ds.zero_ood)


@claim("found here", above(1), kind="own")
def blind_worse_than_zero(ds: xr.Dataset) -> Everywhere:
    """in unit the best order-blind predictor, attention or not, has a larger OOD risk than zero"""
    at = ds.sel(features=[f for f in ds.features.values if f != "mix"])
    return everywhere(paired_ratio, at.blind_ood, at.zero_ood)


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="The best measure over neurons")
    names = (("loss", "ID", ds.test_loss), ("ood", "OOD", ds.ood_loss))
    for ax, (kind, words, found) in zip(axes, names, strict=True):
        plot.curve(ax, found, "features", label="best measure", line=False)
        plot.curve(ax, ds[f"blind_{kind}"], "features", label="best order-blind", line=False)
        plot.curve(ax, ds[f"zero_{kind}"], "features", label="zero", line=False)
        ax.set_ylabel(f"risk, {words}")
        ax.set_xlabel("next feature")
    places = range(ds.sizes["features"])
    plot.theory_curve(axes[0], places, law_risk(ds).values, r"order-blind $+\,\kappa c_d^2$")
    return fig


EXPERIMENTS = (
    Experiment(
        "expressivity",
        says="The best signed measure over neurons, fitted in distribution by ridge regression.",
        trainings=Trainings(
            grid={
                "features": cases(GAMMAS),
                "samples": 6000,
                "points": 51,
                "noise": 0.0,
                "test_samples": 4000,
            },
            simulator="ridge",
            seeds=8,
            quick={"features": cases(QUICK_GAMMAS), "seeds": 4},
            # Shorter series have another kappa, and blind predictors that are as good as zero.
            domain={"tokens": [8, 16], "noise": (0.0, 0.3), "samples": (2000, 20000)},
        ),
        claims=(measure_risk_law, measure_worse_than_zero, blind_worse_than_zero),
        figure=draw,
    ),
)
