"""Figure 7.3: the CoT error against the number of examples, by one of three quantities."""

from typing import Any

import xarray as xr

from provingground.claims import above, below, claim, equals, shuffle
from provingground.stats import Estimate, Everywhere
from provingground.study import Experiment

from ..suites import BY_ALPHA, BY_RHO, BY_TAU, BY_TAU_FIRST
from .laws import ALPHA_LAW, TAU_LAW
from .shared import (
    TRAINED,
    draw_errors,
    error_as,
    error_mean,
    needed,
    smallest_steps,
)

FEW = (2, 4, 8, 16)  # prompt lengths at which every setting still makes mistakes


def votes(ds: xr.Dataset) -> Any:
    """Examples that match, in units of those that the default setting needs."""
    return ds.l_test * ds.alpha_test / 8.0


# ---------------------------------------------------------------------------------- Figure 7.3(a)


@claim(
    "Figure 7.3(a), Theorem 4", above(0), bound="paper", rivals={"any order": shuffle("setting")}
)
def alpha_ordered(ds: xr.Dataset) -> Everywhere:
    """the error falls as alpha' grows, at 2 to 16 examples (smallest step)"""
    return smallest_steps(ds, BY_ALPHA, "cot_error", "alpha_test", FEW)


@claim(
    "counting matched examples",
    equals(-1, within=0.2),
    kind="corrected",
    law=error_as("cot_error", votes),
    rivals={
        "1/alpha'^2": error_as("cot_error", lambda ds: votes(ds) * ds.alpha_test / 0.8),
        "1/sqrt(alpha')": error_as(
            "cot_error", lambda ds: votes(ds) * (0.8 / ds.alpha_test) ** 0.5
        ),
        "no alpha'": error_as("cot_error", lambda ds: votes(ds) * (0.8 / ds.alpha_test)),
    },
)
def alpha_exponent(ds: xr.Dataset) -> Estimate:
    """the examples needed grow as 1/alpha' (exponent)"""
    return needed(ds, BY_ALPHA, "cot_error", "alpha_test").law.slope


@claim(
    "insight P2 and Remark 4: proportional to alpha'^-2",
    equals(-2, within=0.2),
    expected="fails",
    because=(ALPHA_LAW,),
    law=alpha_exponent.rivals["1/alpha'^2"],
    rivals={"1/alpha'": error_as("cot_error", votes)},
)
def alpha_exponent_printed(ds: xr.Dataset) -> Estimate:
    """the examples needed grow as 1/alpha'^2 (exponent)"""
    return needed(ds, BY_ALPHA, "cot_error", "alpha_test").law.slope


@claim("Theorem 4, Proposition 3 (7.24)", below(0.01))
def default_succeeds(ds: xr.Dataset) -> Estimate:
    """64 examples, twice (7.20), are enough in the default setting (error)"""
    return error_mean(ds, "cot_error", "default", 64)


# ---------------------------------------------------------------------------------- Figure 7.3(b)


@claim(
    "Figure 7.3(b), Theorem 4", above(0), bound="paper", rivals={"any order": shuffle("setting")}
)
def tau_ordered(ds: xr.Dataset) -> Everywhere:
    """the error falls as tau grows at a primacy of 0.8, at 2 to 8 examples, errors in all steps
    (smallest step)"""
    return smallest_steps(ds, BY_TAU, "cot_error", "tau", FEW[:-1])


@claim(
    "Figure 7.3(b), Theorem 4", above(0), bound="paper", rivals={"any order": shuffle("setting")}
)
def tau_first_ordered(ds: xr.Dataset) -> Everywhere:
    """the same with errors in step 1 only, up to tau = 0.8; above 0.83 no matrices have that
    primacy"""
    return smallest_steps(ds, BY_TAU_FIRST, "cot_error", "tau", FEW[:-1])


def chains(ds: xr.Dataset) -> Any:
    """Examples that go through the query's whole chain, in units of those that are needed."""
    return ds.l_test * ds.alpha_test * ds.tau / 4.0


@claim(
    "counting matched examples",
    equals(-1, within=0.25),
    kind="corrected",
    law=error_as("cot_error", chains),
    rivals={
        "1/tau^2": error_as("cot_error", lambda ds: chains(ds) * ds.tau / 0.25),
        "1/sqrt(tau)": error_as("cot_error", lambda ds: chains(ds) * (0.25 / ds.tau) ** 0.5),
    },
)
def tau_exponent(ds: xr.Dataset) -> Estimate:
    """the examples needed grow as 1/tau at a primacy of 0.8, errors in all steps (exponent)"""
    return needed(ds, BY_TAU, "cot_error", "tau").law.slope


@claim(
    "insight P2 and Remark 4: proportional to tau^-2",
    equals(-2, within=0.2),
    expected="fails",
    because=(TAU_LAW,),
    law=tau_exponent.rivals["1/tau^2"],
)
def tau_exponent_printed(ds: xr.Dataset) -> Estimate:
    """the examples needed grow as 1/tau^2 at equal primacy (exponent)"""
    return needed(ds, BY_TAU, "cot_error", "tau").law.slope


# ---------------------------------------------------------------------------------- Figure 7.3(c)


@claim(
    "Figure 7.3(c), Theorem 4", above(0), bound="paper", rivals={"any order": shuffle("setting")}
)
def rho_ordered(ds: xr.Dataset) -> Everywhere:
    """the error falls as rho grows, at 8 to 32 examples, errors in step 1 (smallest step)"""
    return smallest_steps(ds, BY_RHO, "cot_error", "rho", (8, 16, 32))


@claim(
    "insight P2 and Remark 4: proportional to rho^-2",
    equals(-2, within=0.5),
    scale="paper",
)
def rho_exponent(ds: xr.Dataset) -> Estimate:
    """the examples needed grow as 1/rho^2 (exponent, from rho = 0.3 on)"""
    return needed(ds, BY_RHO, "cot_error", "rho", (0.25, 1.0)).law.slope


EXPERIMENTS = (
    Experiment(
        "fig7_3a",
        says="CoT error against the number of examples, for several fractions of matching "
        "examples.",
        trainings=TRAINED,
        claims=(alpha_ordered, alpha_exponent, alpha_exponent_printed, default_succeeds),
        figure=draw_errors(BY_ALPHA, "cot_error", "alpha_test", "CoT error by matching fraction"),
    ),
    Experiment(
        "fig7_3b",
        says="CoT error against the number of examples, for several trajectory probabilities at "
        "one primacy.",
        trainings=TRAINED,
        claims=(tau_ordered, tau_first_ordered, tau_exponent, tau_exponent_printed),
        figure=draw_errors(BY_TAU, "cot_error", "tau", "CoT error by trajectory probability"),
    ),
    Experiment(
        "fig7_3c",
        says="CoT error against the number of examples, for several primacies, errors in step 1.",
        trainings=TRAINED,
        claims=(rho_ordered, rho_exponent),
        figure=draw_errors(BY_RHO, "cot_error", "rho", "CoT error by primacy", (0.25, 1.0)),
    ),
)
