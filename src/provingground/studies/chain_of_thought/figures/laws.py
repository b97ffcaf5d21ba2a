"""How many examples are needed: (7.20) and what a vote says, at several error levels."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtr

from provingground import plot, stats
from provingground.claims import Altered, Bound, Claim, below, claim, curve, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings

from .. import theory

LEVELS = (0.1, 0.05, 0.02)

DOMAIN = {
    "alpha_test": (0.08, 1.0),
    "tau": (0.08, 0.83),
    "rho": (0.08, 0.83),
    "n_patterns_test": [10, 20, 40],
}


def inside(s: Mapping[str, Any]) -> bool:
    """Whether the matrices exist, an error of 10% takes 20 examples (fewer votes are not normal),
    and the longest prompt is enough for one of 2%."""
    axes = [np.atleast_1d(s[n]) for n in ("alpha_test", "tau", "rho")]
    alpha, tau, rho = np.broadcast_arrays(*np.meshgrid(*axes))
    m = s["n_patterns_test"]
    feasible = (tau <= 1 / (2 - rho)) & ((1 - tau * (2 - rho)) <= (m - 2) * (1 - rho) * tau)
    if not feasible.all():
        return False
    most, least = (theory.examples_for_pair(x, alpha, tau, rho) for x in (LEVELS[-1], LEVELS[0]))
    return bool(most.max() < 0.8 * s["examples_test"] and least.min() > 20)


def settings_of(ds: xr.Dataset) -> list[Any]:
    return [ds[n].astype(float) for n in ("alpha_test", "tau", "rho", "n_patterns_test")]


def law_error(ds: xr.Dataset) -> xr.DataArray:
    alpha, tau, rho, m = settings_of(ds)
    k = int(ds.n_steps)
    correct = theory.correct_steps(str(ds.design.item()), tau, k)
    return theory.vote_error(ds.l_test.astype(float), alpha, correct, rho, m)


def ratios(ds: xr.Dataset, law: Callable[..., Any]) -> Everywhere:
    """The examples needed over those of a law, at every setting and level."""
    level = xr.DataArray(list(LEVELS), dims="level", coords={"level": list(LEVELS)})
    alpha, tau, rho, m = (x.broadcast_like(ds.cot_error.isel(seed=0, l_test=0, drop=True))
                          for x in settings_of(ds))  # fmt: skip
    expected = xr.concat(
        [alpha.copy(data=law(x, alpha.values, tau.values, rho.values, m.values)) for x in LEVELS],
        level,
    )

    def ratio(error: xr.DataArray, expected: xr.DataArray) -> Estimate:
        return stats.threshold(error, "l_test", float(expected.level)) / float(expected)

    bare = expected.drop_vars(set(expected.coords) - set(expected.dims))
    return everywhere(ratio, ds.cot_error, bare, keep="l_test")


def error_for(needed: Callable[..., Any]) -> Altered:
    """The Dataset whose error is that of a vote between two outputs which needs some other number
    of examples."""

    def error(ds: xr.Dataset) -> xr.DataArray:
        spread = needed(*settings_of(ds))
        return xr.apply_ufunc(ndtr, -np.sqrt(ds.l_test / spread))

    return curve("cot_error", error)


BOUND = error_for(lambda a, t, r, m: 1.4 / (a * t * r) ** 2)  # where alpha' and tau vary
RIVALS: dict[str, dict[str, Altered]] = {
    "rho": {
        "without 2-rho": error_for(lambda a, t, r, m: 1 / (a * t * r**2)),
        "1/rho": error_for(lambda a, t, r, m: 4.6 / (a * t * r)),
    },
    "alpha_test": {"(7.20), its best constant": BOUND},
    "tau": {
        "(7.20), its best constant": BOUND,
        "no tau": error_for(lambda a, t, r, m: 12.0 / (a + 0 * t)),
    },
    "n_patterns_test": {
        "log M'": error_for(lambda a, t, r, m: 6.2 / (a * t) * np.log(m) / np.log(10))
    },
}


def law_along(by: str, letter: str, bound: Bound) -> Claim:
    return claim(
        "theory.examples_for",
        bound,
        kind="corrected",
        law=curve("cot_error", law_error),
        rivals=RIVALS[by],
        name=f"{by}_law",
        says="errors of 10%, 5% and 2% take z^2 V examples, with the normal quantile z and "
        "V = (2-rho)/(alpha' tau rho^2) - 1, and more where several wrong outputs are close, for "
        f"every {letter} (ratio)",
    )(lambda ds: ratios(ds, theory.examples_for))


WIDE, NARROW = equals(1, times=1.4), equals(1, within=0.2)  # over the domain; at one alpha', tau
RHO_LAW, ALPHA_LAW = law_along("rho", "rho", WIDE), law_along("alpha_test", "alpha'", WIDE)
TAU_LAW, M_LAW = law_along("tau", "tau", WIDE), law_along("n_patterns_test", "M'", NARROW)


def exponent(by: str) -> Callable[[xr.Dataset], Estimate]:
    return lambda ds: stats.phase_boundary(ds.cot_error, "l_test", by, 0.05).law.slope


def printed(by: str, letter: str, law: Claim) -> Claim:
    return claim(
        f"insight P2 and Remark 4: proportional to {letter}^-2",
        equals(-2, within=0.1),
        expected="fails",
        because=(law,),
        name=f"{by}_power",
        says=f"the examples needed for an error of 5% grow as 1/{letter}^2 (exponent)",
    )(exponent(by))


ALPHA_POWER = printed("alpha_test", "alpha'", ALPHA_LAW)
TAU_POWER, RHO_POWER = printed("tau", "tau", TAU_LAW), printed("rho", "rho", RHO_LAW)


@claim(
    "Theorem 4: zero error from (7.20) on, constant 1",
    below(0.002),
    expected="fails",
    because=(RHO_LAW,),
)
def printed_enough(ds: xr.Dataset) -> Everywhere:
    """with the examples of (7.20) for M = 20 the vote makes no mistakes (error)"""
    alpha, tau, rho, _ = settings_of(ds)
    bound = theory.examples_needed(alpha, tau, rho, 20)

    def error(y: xr.DataArray, bound: xr.DataArray) -> Estimate:
        longest = int(np.argmax(y.l_test.values >= float(bound)))
        return stats.mean(y.isel(l_test=longest))

    return everywhere(error, ds.cot_error, bound.broadcast_like(ds.rho), keep="l_test")


@claim("theory.examples_for; (7.20) has log M", equals(1, within=0.2), kind="own")
def no_logarithm(ds: xr.Dataset) -> Everywhere:
    """with more test patterns at equal alpha', tau and rho the examples needed do not grow: at most
    (1-tau)/((1-rho)tau) outputs are as probable as the runner-up (over those of the fewest)"""
    few = ds.cot_error.isel(n_patterns_test=0, drop=True)
    more = ds.cot_error.isel(n_patterns_test=slice(1, None))

    def ratio(y: xr.DataArray) -> Estimate:
        return stats.jackknife(
            lambda a, b: np.exp(log_needed(a) - log_needed(b)), y, few.drop_vars(
                set(few.coords) - {"seed", "l_test"})
        )  # fmt: skip

    return everywhere(ratio, more, keep="l_test")


def log_needed(y: xr.DataArray) -> float:
    """The logarithm of the examples at which the mean error falls to 5%."""
    mean = y.mean("seed").values
    return float(np.interp(-0.05, -np.minimum.accumulate(mean), np.log(y.l_test.values)))


def draw_by(by: str) -> Callable[[xr.Dataset], Any]:
    def draw(ds: xr.Dataset):
        fig, (left, right) = plot.figure(1, 2, title="Examples needed, by the vote")
        plot.curve(left, ds.cot_error, "l_test", hue=by, log="x")
        for level in LEVELS:
            found = stats.phase_boundary(ds.cot_error, "l_test", by, level)
            plot.law(right, found.points, by, label=f"error {level:g}")
        x = ds[by].values.astype(float)
        names = ("alpha_test", "tau", "rho", "n_patterns_test")
        given: list[Any] = [x if n == by else float(ds[n]) for n in names]
        alpha, tau, rho, m = given
        for level in LEVELS:
            law = theory.examples_for(level, alpha, tau, rho, m)
            plot.theory_curve(right, x, law, "vote, in closed form")
        if by != "n_patterns_test":
            bound = theory.examples_needed(alpha, tau, rho, 20)
            plot.theory_curve(right, x, bound, "(7.20), constant 1")
        right.set_ylabel("examples needed, $l^*$")
        return fig

    return draw


def trainings(by: str, values: list[Any], quick: list[Any]) -> Trainings:
    return Trainings(
        grid={"rho": 0.5, by: values, "examples_test": 2048, "test_samples": 1000},
        seeds=16,
        quick={by: quick, "examples_test": 1024, "test_samples": 1000, "seeds": 8},
        simulator="plurality",
        domain=DOMAIN,
        where=inside,
    )


EXPERIMENTS = (
    Experiment(
        "laws_rho",
        says="Examples needed against the primacy, errors in step 1, by the vote.",
        trainings=trainings("rho", [0.1, 0.15, 0.25, 0.35, 0.5], [0.15, 0.27, 0.5]),
        claims=(RHO_LAW, RHO_POWER, printed_enough),
        figure=draw_by("rho"),
    ),
    Experiment(
        "laws_alpha",
        says="Examples needed against the fraction of matching examples, by the vote.",
        trainings=trainings("alpha_test", [0.08, 0.15, 0.3, 0.8], [0.1, 0.25, 0.8]),
        claims=(ALPHA_LAW, ALPHA_POWER),
        figure=draw_by("alpha_test"),
    ),
    Experiment(
        "laws_tau",
        says="Examples needed against the trajectory probability at equal primacy, by the vote.",
        trainings=trainings("tau", [0.2, 0.28, 0.4, 0.55], [0.2, 0.33, 0.55]),
        claims=(TAU_LAW, TAU_POWER),
        figure=draw_by("tau"),
    ),
    Experiment(
        "laws_m",
        says="Examples needed against the number of test patterns, by the vote.",
        trainings=replace(trainings("n_patterns_test", [10, 20, 40], [10, 20]), domain={}),
        claims=(M_LAW, no_logarithm),
        figure=draw_by("n_patterns_test"),
    ),
)
