"""Figure 7.4: the ICL error against the number of examples, by one of three quantities."""

import xarray as xr

from provingground import stats
from provingground.claims import above, below, claim, equals, shuffle
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment

from .. import theory
from ..suites import BY_ALPHA, BY_RHO, BY_TAU
from .shared import LEVEL, TRAINED, draw_errors, error_as, needed, smallest_steps, sweep

FEW = (2, 4, 8, 16)


def matched(ds: xr.Dataset) -> xr.DataArray:
    return ds.l_test * ds.alpha_test / 18.0


@claim(
    "Figure 7.4(a), Theorem 5", above(0), bound="paper", rivals={"any order": shuffle("setting")}
)
def icl_alpha_ordered(ds: xr.Dataset) -> Everywhere:
    """the ICL error falls as alpha' grows, at 2 to 16 examples (smallest step)"""
    return smallest_steps(ds, BY_ALPHA, "icl_error", "alpha_test", FEW)


@claim(
    "counting matched examples",
    equals(-1, within=0.2),
    kind="corrected",
    scale="paper",
    law=error_as("icl_error", matched),
    rivals={"1/alpha'^2": error_as("icl_error", lambda ds: matched(ds) * ds.alpha_test / 0.8)},
)
def icl_alpha_exponent(ds: xr.Dataset) -> Estimate:
    """the examples needed by ICL grow as 1/alpha' (exponent)"""
    return needed(ds, BY_ALPHA, "icl_error", "alpha_test").law.slope


@claim("Theorem 5(b), (7.22)", below(1), bound="paper")
def icl_bound(ds: xr.Dataset) -> Everywhere:
    """(7.22) with constant 1 is enough for an ICL error of 5%, alpha' from 0.4 on (examples needed
    over it)"""
    part = sweep(ds, BY_ALPHA, "alpha_test").sel(alpha_test=slice(0.3, None))
    given = part.alpha_test, part.tau_io, part.rho_io
    bound = theory.examples_needed(*given, part.n_patterns.astype(float)).mean("seed")

    def ratio(error: xr.DataArray, bound: xr.DataArray) -> Estimate:
        return stats.threshold(error, "l_test", LEVEL) / float(bound)

    return everywhere(ratio, part.icl_error, bound, keep="l_test")


@claim("Remark 5, at equal examples", above(0))
def cot_is_better(ds: xr.Dataset) -> Everywhere:
    """at 2 to 16 examples ICL makes more mistakes than CoT, errors in all steps (difference)"""
    part = ds.sel(setting=BY_ALPHA, l_test=list(FEW))
    return everywhere(stats.paired_difference, part.icl_error, part.cot_error)


@claim(
    "Figure 7.4(b), Theorem 5", above(0), bound="paper", rivals={"any order": shuffle("setting")}
)
def icl_tau_ordered(ds: xr.Dataset) -> Everywhere:
    """the ICL error falls as tau_o grows, at 2 to 8 examples (smallest step)"""
    return smallest_steps(ds, BY_TAU, "icl_error", "tau_io", FEW[:-1])


@claim("found here", below(-1.3), kind="own", scale="paper")
def icl_tau_exponent(ds: xr.Dataset) -> Estimate:
    """varied through tau, the examples needed by ICL fall faster than tau_o^-1.3: the primacy end
    to end moves with tau_o (exponent)"""
    part = sweep(ds, BY_TAU, "tau_io")
    return stats.phase_boundary(part.icl_error, "l_test", "tau_io", LEVEL).law.slope


@claim(
    "Figure 7.4(c), Theorem 5", above(0), bound="paper", rivals={"any order": shuffle("setting")}
)
def icl_rho_ordered(ds: xr.Dataset) -> Everywhere:
    """the ICL error falls as rho_o grows, at 8 to 32 examples, errors in step 1 (smallest step)"""
    return smallest_steps(ds, BY_RHO, "icl_error", "rho_io", (8, 16, 32))


@claim("insight of Remark 5: linear in rho_o^-2", equals(-2, within=0.5), scale="paper")
def icl_rho_exponent(ds: xr.Dataset) -> Estimate:
    """the examples needed by ICL grow as 1/rho_o^2 (exponent, from 0.3 on)"""
    return needed(ds, BY_RHO, "icl_error", "rho_io", (0.25, 1.0)).law.slope


EXPERIMENTS = (
    Experiment(
        "fig7_4a",
        says="ICL error against the number of examples, for several fractions of matching "
        "examples.",
        trainings=TRAINED,
        claims=(icl_alpha_ordered, icl_alpha_exponent, icl_bound, cot_is_better),
        figure=draw_errors(BY_ALPHA, "icl_error", "alpha_test", "ICL error by matching fraction"),
    ),
    Experiment(
        "fig7_4b",
        says="ICL error against the number of examples, for several input-output probabilities.",
        trainings=TRAINED,
        claims=(icl_tau_ordered, icl_tau_exponent),
        figure=draw_errors(BY_TAU, "icl_error", "tau_io", "ICL error by input-output probability"),
    ),
    Experiment(
        "fig7_4c",
        says="ICL error against the number of examples, for several primacies end to end.",
        trainings=TRAINED,
        claims=(icl_rho_ordered, icl_rho_exponent),
        figure=draw_errors(BY_RHO, "icl_error", "rho_io", "ICL error by primacy", (0.25, 1.0)),
    ),
)
