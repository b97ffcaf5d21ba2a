"""Table 4.1 and Corollary 4.4.1: what is varied, and the two readings of it.

Closed forms (Theorem 2, `theory.closed_forms`) and exact local theory (simulator `local`) are
compared along five columns: both covariances, one covariance, one mean, and the fraction of the
group with the smallest and with the largest covariance.
"""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.study import Estimate

from . import theory
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
    logs = np.log(y.sel(value=slice(low, high)))
    logs = logs.assign_coords(value=np.log(logs.value))
    return stats.linear_law(logs, "value").slope


def growth(y: xr.DataArray, low: float, high: float) -> Estimate:
    """The factor (its geometric mean over seeds) between two values of the column's variable."""
    change = np.log(y.sel(value=high, drop=True)) - np.log(y.sel(value=low, drop=True))
    return Estimate(*(float(np.exp(e)) for e in stats.mean(change)))


def peak(y: xr.DataArray) -> Estimate:
    """How far the ends of a column lie below its best point: the larger of the two factors."""
    logs = np.log(y)
    best = logs.isel(value=int(logs.mean("seed").argmax()), drop=True)
    ends = [stats.mean(logs.isel(value=i, drop=True) - best) for i in (0, -1)]
    worst = stats.worst(ends, "high")
    return Estimate(*(float(np.exp(e)) for e in worst))


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
            worse = {WORDS[str(k)]: (-1 if k == "rate" else 1) * np.log10(found[k]) for k in found}
            table = xr.concat(
                [w - w.mean("seed").min("value") for w in worse.values()], dim="quantity"
            ).assign_coords(quantity=list(worse))
            table.attrs = {"long_name": "over the column's best, powers of ten"}
            log = "" if "mean" in name or "fraction" in name else "x"
            plot.curve(ax, table, "value", hue="quantity", log=log)
            ax.set_xlabel(f"{VARIED[name][0]}, ${VARIED[name][1]}$")
        for ax in axes[1:5]:
            ax.set_ylabel("")
        return fig

    return figure
