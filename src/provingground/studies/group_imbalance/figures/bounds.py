"""Lemma C.4.4 and (4.10) to (4.12): the bounds beside what they bound."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings

from .shared import geometric


def too_high(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose bound is ten times the eigenvalue."""
    return ds.assign(flattest_bound=10 * ds.flattest)


@claim("Lemma C.4.4 (C.128)", above(0.75), rivals={"ten times the eigenvalue": too_high})
def curvature_bound(ds: xr.Dataset) -> Everywhere:
    """the smallest eigenvalue of the Hessian at the teacher is above (4/K^2) R / (eta tau^K
    kappa^2) (share of teachers; all are meant)"""
    return everywhere(stats.share, ds.flattest_bound <= ds.flattest)


def tight(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose bounds are what they bound."""
    return ds.assign(flattest_bound=ds.flattest, error_bound=ds.error, risk_bound=ds.excess)


TIGHT = {"tight": tight}


@claim("found here", above(5), kind="own", rivals=TIGHT)
def curvature_bound_is_loose(ds: xr.Dataset) -> Estimate:
    """it is more than five times below it (geometric mean of the ratio)"""
    return geometric(ds.flattest / ds.flattest_bound)


@claim("Lemma C.4.4 (C.128)", below(0.06), kind="own")
def largest_curvature(ds: xr.Dataset) -> Everywhere:
    """the largest eigenvalue is below 0.06 M_2: the constant of its upper bound (ratio)"""
    return everywhere(stats.mean, ds.sharpest / ds.moment)


@claim("found here", above(1000), kind="own", rivals=TIGHT)
def error_bound_is_loose(ds: xr.Dataset) -> Estimate:
    """with hidden constants 1 the bound (4.10) is over a thousand times the error (geometric
    mean)"""
    return geometric(ds.error_bound / ds.error)


@claim("found here", above(1000), kind="own", rivals=TIGHT)
def risk_bounds_are_loose(ds: xr.Dataset) -> Everywhere:
    """(4.11) and (4.12) are over a thousand times the excess risks (geometric mean)"""
    return everywhere(geometric, ds.risk_bound / ds.excess)


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(
        title="Bounds of Theorem 2 beside what they bound", width=5.0, seeds=ds.sizes["seed"]
    )
    pairs = {
        r"$\lambda_{\min}$, (C.128)": (ds.flattest, ds.flattest_bound),
        "error, (4.10)": (ds.error, ds.error_bound),
        "average risk, (4.11)": (ds.excess.isel(risk=0), ds.risk_bound.isel(risk=0)),
        "risk of group 2, (4.12)": (ds.excess.isel(risk=2), ds.risk_bound.isel(risk=2)),
    }
    for i, (real, bound) in enumerate(pairs.values()):
        for j, (y, words) in enumerate(((real, "exact"), (bound, "bound, constants 1"))):
            values = np.asarray(y).ravel()
            ax.plot(np.full(len(values), i), values, plot.MARKERS[j], color=plot.PALETTE[j],
                    alpha=0.6, gid="series", label=words if i == 0 else "")  # fmt: skip
    ax.set(yscale="log", xlabel="what is bounded", ylabel="value (each teacher)")
    ax.set_xticks(range(len(pairs)), pairs, rotation=12)
    ax.legend()
    return fig


EXPERIMENTS = (
    Experiment(
        "bounds",
        says="The bounds of Lemma C.4.4 and (4.10) to (4.12) beside local theory.",
        trainings=Trainings(
            simulator="bounds",
            grid={"fraction": 0.5},
            seeds=64,
            quick={"test_samples": 2000, "seeds": 16},
            domain={
                "strength": (0.3, 5.0),
                "mean_1": (-2.0, 2.0),
                "mean_2": (-2.0, 2.0),
                "var_1": (0.3, 5.0),
                "var_2": (0.3, 5.0),
                "fraction": (0.05, 0.9),
            },
        ),
        claims=(
            curvature_bound,
            curvature_bound_is_loose,
            largest_curvature,
            error_bound_is_loose,
            risk_bounds_are_loose,
        ),
        figure=draw,
    ),
)
