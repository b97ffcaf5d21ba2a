"""Table 4.1 and Corollary 4.4.1: what is varied, and the two readings of it.

Closed forms (Theorem 2, `theory.closed_forms`) and exact local theory (simulator `local`) are
compared along five columns: both covariances, one covariance, one mean, and the fraction of the
group with the smallest and with the largest covariance.
"""

from collections.abc import Callable
from math import inf
from typing import Any, Literal

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Claim
from provingground.stats import Estimate
from provingground.study import Experiment, Scale, Trainings, cases

from . import theory
from .measures import log
from .model import Config

SPREADS = (1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3, 1e4)
COLUMNS: dict[str, dict[float, dict[str, Any]]] = {
    "both covariances": {v: dict(mean_1=0.0, mean_2=0.0, var_1=v, var_2=v) for v in SPREADS},
    "one covariance": {v: dict(var_2=v) for v in (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)},
    "one mean": {m: dict(mean_1=m) for m in (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0)},
    "fraction, smallest": {
        f: dict(mean_1=0.0, mean_2=0.0, var_1=10.0, fraction=f) for f in (0.01, 0.1, 0.3, 0.5)
    },
    "fraction, largest": {
        f: dict(mean_1=0.0, mean_2=0.0, var_2=10.0, fraction=f) for f in (0.01, 0.05, 0.1, 0.3)
    },
}
VARIED = {
    "both covariances": ("norm of both covariances", r"\|\Sigma_1\| = \|\Sigma_2\|"),
    "one covariance": ("norm of one covariance", r"\|\Sigma_2\|"),
    "one mean": ("one mean, over the vector of ones", "m_1"),
    "fraction, smallest": ("fraction, smallest covariance", r"\lambda_2"),
    "fraction, largest": ("fraction, largest covariance", r"\lambda_2"),
}
POINTS = {f"{c}: {v:g}": s for c, column in COLUMNS.items() for v, s in column.items()}


def column(ds: xr.Dataset, name: str) -> xr.Dataset:
    """One column of the table, along its own variable."""
    values = [v for v in COLUMNS[name] if f"{name}: {v:g}" in ds.point.values]
    at = ds.sel(point=[f"{name}: {v:g}" for v in values]).rename(point="value")
    at = at.assign_coords(value=values)
    at.value.attrs = dict(zip(("long_name", "symbol"), VARIED[name], strict=True))
    return at


def group_of(name: str) -> int:
    """The group whose parameter is varied: the second, but for the mean."""
    return 0 if name == "one mean" else 1


def closed(ds: xr.Dataset, name: str) -> xr.Dataset:
    """The closed forms along a column, for the teacher of each seed."""
    at = column(ds, name)
    rows: dict[str, list[list[float]]] = {
        k: [] for k in ("complexity", "rate", "error", "risk", "group_risk")
    }
    for value in at.value.values:
        groups = theory.groups_of(Config(**COLUMNS[name][float(value)]))
        found = [
            theory.closed_forms(groups, theory.teacher_of(w, groups), name == "one mean")
            for w in at.weights.sel(value=value).transpose("seed", "input", "neuron").values
        ]
        for key, row in rows.items():
            if key == "group_risk":
                row.append([float(f.group_risks[group_of(name)]) for f in found])
            else:
                row.append([getattr(f, key) for f in found])
    return xr.Dataset(
        {k: (("value", "seed"), np.array(v)) for k, v in rows.items()},
        {"value": at.value, "seed": at.seed},
    )


def exact(ds: xr.Dataset, name: str) -> xr.Dataset:
    """The same quantities from the local theory. There is no complexity."""
    at = column(ds, name)
    return xr.Dataset(
        {
            "rate": at.rate,
            "error": at.error,
            "risk": at.excess,
            "group_risk": at.group_excess.isel(group=group_of(name)),
        }
    )


def exponent(y: xr.DataArray, low: float, high: float) -> Estimate:
    """The exponent in the column's variable, of the geometric mean over seeds."""
    logs = log(y.sel(value=slice(low, high)))
    logs = logs.assign_coords(value=log(logs.value))
    return stats.linear_law(logs, "value").slope


def growth(y: xr.DataArray, low: float, high: float) -> Estimate:
    """The factor (its geometric mean over seeds) between two values of the column's variable."""
    change = log(y.sel(value=high, drop=True)) - log(y.sel(value=low, drop=True))
    return Estimate(*(float(np.exp(e)) for e in stats.mean(change)))


def peak(y: xr.DataArray) -> Estimate:
    """How far the ends of a column lie below its best point: the larger of the two factors."""
    logs = log(y)
    best = logs.isel(value=int(np.argmax(logs.mean("seed").values)), drop=True)
    ends = [stats.mean(logs.isel(value=i, drop=True) - best) for i in (0, -1)]
    worst = stats.worst(ends, "high")
    return Estimate(*(float(np.exp(e)) for e in worst))


def all_rise(forms: xr.Dataset) -> Estimate:
    """The smallest step, over all quantities, of the logarithm in the direction of worse."""
    worse = {k: (1 / forms[k] if k == "rate" else forms[k]) for k in forms}
    return stats.worst(
        [stats.monotone(log(y), "value", "increasing") for y in worse.values()], "low"
    )


WORDS = {
    "complexity": r"$\mathcal{B}$, sample complexity",
    "rate": "$1/(1-v)$, convergence time",
    "error": "parameter error",
    "risk": "average risk",
    "group_risk": "risk of the varied group",
}


def draw(title: str, quantities: Any):
    """All columns; each quantity (the larger the worse) over its best value in the column."""

    def figure(ds: xr.Dataset):
        fig, axes = plot.figure(2, 3, title=title)
        for ax, name in zip(axes, COLUMNS, strict=False):
            found = quantities(ds, name)
            log_axis = "" if "mean" in name or "fraction" in name else "x"
            for key in found:
                worse = (-1 if key == "rate" else 1) * np.log10(found[key])
                worse = worse - worse.mean("seed").min("value")
                worse.attrs = {"long_name": "over the best, powers of ten"}
                plot.curve(ax, worse, "value", label=WORDS[str(key)], log=log_axis)
            ax.set_xlabel(f"{VARIED[name][0]}, ${VARIED[name][1]}$")
        shared = axes[5]  # one legend for all panels, in the place of the sixth
        shared.legend(*axes[0].get_legend_handles_labels(), loc="center", frameon=False)
        shared.axis("off")
        for ax in axes[:5]:
            ax.legend([], []).set_visible(False)
        return fig

    return figure


# ------------------------------------------------------------------------------- claims

Reading = Callable[[xr.Dataset, str], xr.Dataset]


def order(name: str, quantity: str, letter: str, window: tuple[float, float], power: float | int,
          note: str = "") -> Claim:  # fmt: skip
    """An exponent of a closed form in both covariances: within 0.2 of what the table prints."""
    return Claim(
        name,
        f"{letter} has the power {power:g} of the norm of the covariances ({window[0]:g} to "
        f"{window[1]:g})",
        measure=lambda ds: exponent(closed(ds, "both covariances")[quantity], *window),
        within=(power - 0.2, power + 0.2),
        source="Table 4.1",
        expected="fails" if note else "holds",
        note=note,
    )


def trend(
    name: str,
    says: str,
    reading: Reading,
    at: tuple[str, str, float, float],
    way: Literal["rises", "falls"],
    source: str,
    note: str = "",
    by: float = 1.0,
    scale: Scale | None = None,
) -> Claim:
    """A factor between two values of a column is above 1 (or another bound), or below it."""
    col, quantity, low, high = at
    return Claim(
        name,
        f"{says} (ratio of {high:g} to {low:g})",
        measure=lambda ds: growth(reading(ds, col)[quantity], low, high),
        within=(by, inf) if way == "rises" else (0, by),
        source=source,
        expected="fails" if note else "holds",
        note=note,
        scale=scale,
    )


GRID = Trainings(
    simulator="local",
    grid={"point": cases(POINTS)},
    seeds=100,
    quick={"test_samples": 4000, "seeds": 12},
)
SMALL, LARGE = (1e-4, 1e-2), (1e2, 1e4)
PRINTED = "The table's order takes rho to be constant; (C.6) gives sigma^-3. "
FALLS = "s_l^2 rho_l still grows with s_l here, so the wider group is the better one. "
LEAST, MOST = "fraction, smallest", "fraction, largest"
IV, V = "Corollary 4.4.1(iv)", "Corollary 4.4.1(v)"

TAB4_1 = Experiment(
    "tab4_1",
    says="The closed forms of Theorem 2 along the columns of Table 4.1.",
    trainings=GRID,
    claims=(
        order("complexity_small", "complexity", "B", SMALL, -3.0),
        order(
            "rate_small", "rate", "q", SMALL, 3,
            note="Power 2: rho is sigma^4, and M_2 shrinks with the covariances. For one "
            "covariance it is K/2, through tau^K.",
        ),
        order("complexity_large", "complexity", "B", LARGE, 3, note=PRINTED + "Power 4."),
        order("rate_large", "rate", "q", LARGE, -1, note=PRINTED + "Power -3/2."),
        order("error_large", "error", "E_w", LARGE, 0.5, note=PRINTED + "Power 1."),
        order("risk_large", "risk", "E", LARGE, 1, note=PRINTED + "Power 3/2."),
        Claim(
            "medium_rate",
            "q is largest at a medium covariance (the higher end over the best)",
            measure=lambda ds: peak(closed(ds, "both covariances")["rate"]),
            within=(0, 1),
            source="(P3)",
        ),
        Claim(
            "medium_complexity",
            "B is smallest at a medium covariance (inverse; the higher end over the best)",
            measure=lambda ds: peak(1 / closed(ds, "both covariances")["complexity"]),
            within=(0, 1),
            source="(P3)",
        ),
        Claim(
            "worse_with_mean",
            "B, 1/q, E_w, E and E_l all rise with one mean (smallest step of the logarithms)",
            measure=lambda ds: all_rise(closed(ds, "one mean")),
            within=(0, inf),
            source="Corollary 4.4.1(iii)",
        ),
        trend("smallest_complexity", "B falls with the fraction of the narrowest group", closed,
              (LEAST, "complexity", 0.01, 0.5), "falls", IV, FALLS),
        trend("smallest_error", "E_w falls with the fraction of the narrowest group", closed,
              (LEAST, "error", 0.01, 0.5), "falls", IV, FALLS),
        trend("smallest_risk", "E falls with the fraction of the narrowest group", closed,
              (LEAST, "risk", 0.01, 0.5), "falls", IV, scale="paper"),
        trend("largest_complexity", "B rises with the fraction of the widest group", closed,
              (MOST, "complexity", 0.01, 0.3), "rises", V, FALLS),
        trend("largest_error", "E_w rises with the fraction of the widest group", closed,
              (MOST, "error", 0.01, 0.3), "rises", V, FALLS),
        trend("largest_group_risk", "E_l rises with the fraction of the widest group", closed,
              (MOST, "group_risk", 0.01, 0.3), "rises", V, FALLS),
    ),
    figure=draw("Closed forms of Theorem 2", closed),
)  # fmt: skip

MLE = "It is dK/2n for every mixture."
EASIER = "What is seen more, or is saturated, is predicted better: tr(F_l F^-1) falls."
COR4_4_1 = Experiment(
    "cor4_4_1",
    says="What Corollary 4.4.1 is about, from exact local theory, along the same columns.",
    trainings=GRID,
    claims=(
        Claim(
            "medium_covariance",
            "the rate is highest at a medium covariance (the higher end over the best)",
            measure=lambda ds: peak(exact(ds, "both covariances")["rate"]),
            within=(0, 1),
            source="Corollary 4.4.1(i) and (ii)",
        ),
        trend("error_small", "the error rises as both covariances shrink", exact,
              ("both covariances", "error", 1.0, 1e-2), "rises", "Corollary 4.4.1(i)"),
        trend("error_large_both", "the error rises as both covariances grow", exact,
              ("both covariances", "error", 10.0, 1e4), "rises", "Corollary 4.4.1(ii)"),
        trend("error_large_one", "the error rises as one covariance grows", exact,
              ("one covariance", "error", 1.0, 100.0), "rises", "Corollary 4.4.1(ii)",
              "A wide group tells the directions of the weights well: the error falls."),
        trend("rate_mean", "the rate falls as one mean grows", exact,
              ("one mean", "rate", 0.0, 3.0), "falls", "Corollary 4.4.1(iii)"),
        trend("error_mean", "the error rises as one mean grows", exact,
              ("one mean", "error", 0.0, 3.0), "rises", "Corollary 4.4.1(iii)"),
        trend("risk_mean", "the average risk rises by 1% or more as one mean grows", exact,
              ("one mean", "risk", 0.0, 3.0), "rises", "Corollary 4.4.1(iii)", MLE, 1.01),
        trend("group_risk_mean", "the risk of the group rises as its mean grows", exact,
              ("one mean", "group_risk", 0.0, 3.0), "rises", "Corollary 4.4.1(iii)", EASIER),
        trend("rate_smallest", "the rate rises with the fraction of the narrowest group", exact,
              (LEAST, "rate", 0.01, 0.5), "rises", IV),
        trend("group_risk_smallest", "its risk falls by 10% or more with its fraction", exact,
              (LEAST, "group_risk", 0.01, 0.5), "falls", IV, "It stays.", 0.9),
        trend("rate_largest", "the rate falls with the fraction of the widest group", exact,
              (MOST, "rate", 0.01, 0.3), "falls", V),
        trend("error_largest", "the error rises with the fraction of the widest group", exact,
              (MOST, "error", 0.01, 0.3), "rises", V,
              "A wide group tells the directions of the weights well: the error falls."),
        trend("group_risk_largest", "the risk of the widest group rises with its fraction", exact,
              (MOST, "group_risk", 0.01, 0.3), "rises", V, EASIER),
    ),
    figure=draw("Exact local theory", exact),
)  # fmt: skip
