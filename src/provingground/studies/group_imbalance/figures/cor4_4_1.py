"""Corollary 4.4.1: where each of its directions holds, in the scale of the teacher's weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, below, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings, axis, cases

from .excess import group_law
from .fig4_4 import fastest_in_the_middle
from .fig4_7 import group_excess_falls
from .shared import ZERO, beside, log, log10

# What is varied of group 2, from where the corollary says it is better to where it is worse.
DIRECTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "(i) covariance shrinks": ({"var_2": 1.0}, {"var_2": 0.01}),
    "(ii) covariance grows": ({"var_2": 1.0}, {"var_2": 100.0}),
    "(iii) mean leaves 0": ({"mean_2": 0.0}, {"mean_2": -3.0}),
    "(iv) less of the narrower": (
        {**ZERO, "var_1": 10.0, "fraction": 0.5},
        {**ZERO, "var_1": 10.0, "fraction": 0.01},
    ),
    "(v) more of the wider": (
        {**ZERO, "var_2": 10.0, "fraction": 0.01},
        {**ZERO, "var_2": 10.0, "fraction": 0.3},
    ),
}
ENDS = ("better", "worse")
PLACES = {
    f"{name}: {end}": settings
    for name, pair in DIRECTIONS.items()
    for end, settings in zip(ENDS, pair, strict=True)
}
QUANTITIES = {
    "rate": r"$1/(1-v)$, step $c/M_2$",
    "rate_stable": r"$1/(1-v)$, step $1/\lambda_{\max}$",
    "error": "parameter error",
    "group_excess": "excess risk of group 2",
}
STRENGTH = "s.d. of the teacher's weights (other group: s.d. 1)"
WIDE = ("(ii) covariance grows", "(v) more of the wider")
STRONG, WEAK = 4.0, 0.25


# ------------------------------------------------------------------------ where the error turns


def error_ratio(ds: xr.Dataset, along: str, first: float, last: float) -> xr.DataArray:
    """The logarithm of the error at the end of a direction over that at its beginning."""
    return log(ds.error.sel({along: last}, drop=True) / ds.error.sel({along: first}, drop=True))


def turns(ratio: xr.DataArray, unit: xr.DataArray | float = 1.0) -> Everywhere:
    """The strength at which it passes 0, at every setting, times a unit."""

    def at(y: xr.DataArray, unit: xr.DataArray) -> Estimate:
        return stats.threshold(y, "strength", 0.0).map(lambda s: s * float(unit))

    return everywhere(at, ratio, xr.DataArray(unit), keep="strength")


def moved(along: str, power: float) -> Altered:
    """The Dataset whose errors are everywhere those at the first value of an axis, at strengths
    times a power of the value: so the error turns at the inverse power of it."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        u = np.log(ds.strength)
        base = ds.error.isel({along: 0}, drop=True).assign_coords(strength=u)
        shifts = power * np.log(ds[along].values / float(ds[along][0]))
        made = [
            base.interp(strength=u + float(s), kwargs={"fill_value": "extrapolate"}).assign_coords(
                strength=ds.strength
            )
            for s in shifts
        ]
        there = beside(made, along, list(ds[along].values)).transpose(*ds.error.dims)
        return ds.assign(error=there.variable)

    return altered


@claim(
    "found here",
    equals(2.5, times=1.4),
    kind="own",
    law=moved("ratio", 0.0),
    rivals={
        "s.d. of the wider": moved("ratio", 0.5),
        "the geometric mean of both": moved("ratio", 0.25),
        "never": lambda ds: ds.assign(error=ds.error.isel(strength=-1, drop=True) + 0 * ds.error),
    },
)
def error_turns(ds: xr.Dataset) -> Everywhere:
    """direction (v) of the error turns where the teacher's weights times the narrower group's s.d.
    (root mean square over directions) are 2.5, however wide the other group is (for variances 3 to
    100 times as large)"""
    mean_variance = ds.var_1 * (1 + ds.stretch * (ds.dim - 1) / 2)
    return turns(error_ratio(ds, "fraction", 0.01, 0.3), np.sqrt(mean_variance))


@claim(
    "found here",
    equals(-1 / 2, within=0.3),
    kind="own",
    law=moved("dim", 0.5),
    rivals={"one strength for all d": moved("dim", 0.0), "1/d": moved("dim", 1.0)},
)
def error_turns_with_the_mean(ds: xr.Dataset) -> Estimate:
    """direction (iii) of the error turns at a strength that falls as d^(-1/2), so where the norm of
    the teacher's columns has some value (exponent, mean 0 to -3)"""
    ratio = error_ratio(ds, "mean_2", 0.0, -3.0)
    found = stats.phase_boundary(ratio, "strength", "dim", 0.0)
    return stats.UNDECIDED if found.left_out else found.law.slope


# ------------------------------------------------------------------------ the five directions


def worse(ds: xr.Dataset, quantity: str) -> xr.DataArray:
    """The logarithm (base 10) of how many times worse a quantity is at the end of each direction:
    above 0 where the corollary is right."""
    y = log10(ds[quantity].isel(group=1) if quantity == "group_excess" else ds[quantity])
    sign = -1 if quantity.startswith("rate") else 1

    def one(name: str) -> xr.DataArray:
        first, last = (y.sel(place=f"{name}: {end}", drop=True) for end in ENDS)
        return sign * (last - first)

    return beside([one(name) for name in DIRECTIONS], "direction", list(DIRECTIONS))


def several(ds: xr.Dataset, quantities: Sequence[str]) -> xr.DataArray:
    return beside([worse(ds, q) for q in quantities], "quantity", quantities)


PRINTED = ("rate", "rate_printed")  # the step c/M_2 of (C.96), that of Algorithm 1 and Theorem 2
CONVERGE = (*PRINTED, "rate_stable", "error")


def reversed_strengths(ds: xr.Dataset) -> xr.Dataset:
    """Strong teachers with the results of weak ones."""
    made = {n: v.isel(strength=slice(None, None, -1)).assign_coords(strength=ds.strength)
            for n, v in ds.data_vars.items() if "strength" in v.dims}  # fmt: skip
    return ds.assign({n: v.variable for n, v in made.items()})


@claim(
    "found here",
    below(0),
    kind="own",
    rivals={"strong for weak": reversed_strengths},
)
def weak_teachers(ds: xr.Dataset) -> Everywhere:
    """for a weak teacher (weights of s.d. 0.25, features of s.d. 1) the error goes the
    other way in (ii) to (v), and the rates with c/M_2 and with the largest stable step in (v)
    (powers of ten)"""
    at = several(ds, CONVERGE).sel(strength=WEAK)
    found = {f"error, {d}": at.sel(quantity="error", direction=d) for d in list(DIRECTIONS)[1:]}
    rates = ("rate", "rate_stable")
    found |= {f"{q}, (v)": at.sel(quantity=q, direction=WIDE[1]) for q in rates}
    parts = [y.drop_vars(["quantity", "direction"]) for y in found.values()]
    return everywhere(stats.mean, beside(parts, "what", list(found)))


@claim(
    "Corollary 4.4.1",
    above(0),
    kind="corrected",
    rivals={"weak for strong": reversed_strengths},
)
def strong_teachers(ds: xr.Dataset) -> Everywhere:
    """for a strong teacher (weights of s.d. 4 and 8, features of s.d. 1) the rates with all three
    steps and the error get worse in directions (ii) to (v) (powers of ten)"""
    at = several(ds, CONVERGE).sel(strength=slice(STRONG, None))
    return everywhere(stats.mean, at.isel(direction=slice(1, None)))


def reciprocal(ds: xr.Dataset) -> xr.Dataset:
    return ds.assign({name: 1 / ds[name] for name in CONVERGE})


@claim("Corollary 4.4.1(i)", above(0), kind="corrected", rivals={"the reciprocal": reciprocal})
def shrinking_gets_worse(ds: xr.Dataset) -> Everywhere:
    """the rates with all three steps and the error get worse as one covariance shrinks (i), for
    every teacher, at the paper's d, K and means (powers of ten)"""
    return everywhere(stats.mean, several(ds, CONVERGE).isel(direction=0))


def reciprocal_risk(ds: xr.Dataset) -> xr.Dataset:
    return ds.assign(group_excess=1 / ds.group_excess)


@claim("found here", below(0), kind="own",
       rivals={"the reciprocal": reciprocal_risk})  # fmt: skip
def group_risk_reversed(ds: xr.Dataset) -> Everywhere:
    """the risk of a group falls as its covariance shrinks (i) and as more is seen of it though it
    is the wider one (v), for every teacher (powers of ten)"""
    at = worse(ds, "group_excess")
    return everywhere(stats.mean, at.sel(direction=["(i) covariance shrinks", WIDE[1]]))


@claim("Corollary 4.4.1(ii)", above(0), kind="corrected",
       rivals={"the reciprocal": reciprocal_risk})  # fmt: skip
def group_risk_of_wide(ds: xr.Dataset) -> Everywhere:
    """the risk of a group rises as its covariance grows (ii), for every teacher (powers of ten)"""
    return everywhere(stats.mean, worse(ds, "group_excess").sel(direction=WIDE[0]))


@claim("Corollary 4.4.1", above(0), bound="paper", expected="fails",
       because=(fastest_in_the_middle,))  # fmt: skip
def rates_get_worse(ds: xr.Dataset) -> Everywhere:
    """descent gets slower in all five directions, for every teacher, with the step c/M_2 and that
    of Algorithm 1 (powers of ten)"""
    return everywhere(stats.mean, several(ds, PRINTED))


@claim("Corollary 4.4.1", above(0), bound="paper", rivals={"the reciprocal": reciprocal})
def rates_of_the_paper_s_teacher(ds: xr.Dataset) -> Everywhere:
    """descent gets slower in all five directions for the paper's own teacher, weights of s.d. 1,
    with the step c/M_2 and that of Algorithm 1 (powers of ten)"""
    return everywhere(stats.mean, several(ds, PRINTED).sel(strength=1.0))


@claim("Corollary 4.4.1", above(0), bound="paper", expected="fails", because=(error_turns,))
def error_gets_worse(ds: xr.Dataset) -> Everywhere:
    """the parameter error grows in all five directions, for every teacher (powers of ten)"""
    return everywhere(stats.mean, worse(ds, "error"))


@claim("Corollary 4.4.1", above(0), bound="paper", expected="fails", because=(error_turns,))
def error_of_the_paper_s_teacher(ds: xr.Dataset) -> Everywhere:
    """the parameter error grows in all five directions for the paper's own teacher, weights of s.d.
    1 (powers of ten)"""
    return everywhere(stats.mean, worse(ds, "error").sel(strength=1.0))


@claim("Corollary 4.4.1", above(0), bound="paper", expected="fails",
       because=(group_law, group_excess_falls))  # fmt: skip
def group_risk_gets_worse(ds: xr.Dataset) -> Everywhere:
    """the group's risk grows in all five directions, for every teacher (powers of ten)"""
    return everywhere(stats.mean, worse(ds, "group_excess"))


def draw(ds: xr.Dataset):
    """Red: the paper's way; blue: the other. The cross-over lies where it is white."""
    title = "Corollary 4.4.1: times worse, powers of ten (above 0: as the corollary says)"
    fig, axes = plot.figure(2, 2, title=title)
    for ax, (name, words) in zip(axes, QUANTITIES.items(), strict=True):
        y = worse(ds, name).clip(-1, 1)
        short = [d.partition(" ")[0] for d in DIRECTIONS]
        y = y.assign_coords(direction=short)
        y.attrs = {"long_name": "times worse, power of ten"}
        y.direction.attrs = {"long_name": "direction of the corollary"}
        plot.heatmap(ax, y, "strength", "direction", log="x", centre=0.0, limits=(-1, 1))
        plot.theory_curve(ax, [1, 1], ax.get_ylim(), "the paper's teacher")
        ax.set_title(words)
        ax.set_xlabel(STRENGTH)
    return fig


def draw_turns(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Where direction (v) of the error turns", width=4.2)
    y = error_ratio(ds, "fraction", 0.01, 0.3) / np.log(10)
    y.attrs = {"long_name": "error at fraction 0.3 over 0.01, power of ten"}
    plot.curve(ax, y, "strength", hue="ratio", log="x")
    plot.theory_curve(ax, [2.5, 2.5], ax.get_ylim(), "turns at 2.5")
    plot.theory_curve(ax, ds.strength.values, 0.0, "no change")
    ax.set_xlabel("s.d. of the teacher's weights")
    return fig


def draw_mean_turns(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Where direction (iii) of the error turns", width=4.2)
    y = error_ratio(ds, "mean_2", 0.0, -3.0) / np.log(10)
    y.attrs = {"long_name": "error at mean -3 over 0, power of ten"}
    plot.curve(ax, y, "strength", hue="dim", log="x")
    plot.theory_curve(ax, ds.strength.values, 0.0, "no change")
    ax.set_xlabel("s.d. of the teacher's weights")
    return fig


def of_ratio(settings: dict[str, Any]) -> dict[str, float]:
    return {"var_2": settings["ratio"] * settings["var_1"]}


SMALL: dict[str, Any] = {"test_samples": 2000, "seeds": 24}
AROUND = [0.5, 1.0, 1.4, 2.0, 2.8, 4.0, 8.0]
LOW = [0.1, 0.2, 0.4, 0.6, 0.8, 1.1, 1.6]

EXPERIMENTS = (
    Experiment(
        "cor4_4_1",
        says="The five directions of Corollary 4.4.1 for weak and strong teachers, from local "
        "theory.",
        trainings=Trainings(
            simulator="local",
            grid={"place": cases(PLACES), "strength": [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]},
            seeds=64,
            quick=SMALL,
            # The directions fix variances, means and fractions; the s.d. of 1 is the unit of the
            # strength. More in `cor4_4_1_v` and `cor4_4_1_iii`.
            domain={"dim": [3, 5, 8, 12], "width": [2, 3, 4], "stretch": (0.0, 0.5)},
            where=lambda s: s["width"] < s["dim"],
        ),
        claims=(
            rates_get_worse,
            rates_of_the_paper_s_teacher,
            error_gets_worse,
            error_of_the_paper_s_teacher,
            group_risk_gets_worse,
            strong_teachers,
            shrinking_gets_worse,
            weak_teachers,
            group_risk_reversed,
            group_risk_of_wide,
        ),
        figure=draw,
    ),
    Experiment(
        "cor4_4_1_v",
        says="The error in direction (v) for several covariances of the wider group.",
        trainings=Trainings(
            simulator="local",
            grid={
                **ZERO,
                "strength": AROUND,
                "fraction": [0.01, 0.3],
                "ratio": axis([3.0, 10.0, 30.0, 100.0], r"\sigma_2^2/\sigma_1^2",
                              "wider over narrower variance", sets=of_ratio),
            },
            seeds=64,
            quick=SMALL,
            # Not free: var_1, since only strength times s.d. counts (a test); the two fractions.
            domain={"dim": [3, 5, 8, 12], "width": [2, 3, 4], "stretch": (0.0, 0.5)},
            where=lambda s: s["width"] < s["dim"],
        ),
        claims=(error_turns,),
        figure=draw_turns,
    ),
    Experiment(
        "cor4_4_1_iii",
        says="The error in direction (iii) for several dimensions.",
        trainings=Trainings(
            simulator="local",
            grid={"dim": [5, 8, 12], "strength": LOW, "mean_2": [0.0, -3.0]},
            seeds=64,
            quick={**SMALL, "dim": [5, 12], "seeds": 48},
            domain={"dim": [5, 8, 12], "width": [2, 3, 4], "fraction": (0.1, 0.9)},
        ),
        claims=(error_turns_with_the_mean,),
        figure=draw_mean_turns,
    ),
)  # fmt: skip
