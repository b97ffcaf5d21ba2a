"""What is measured on the Datasets of the experiments."""

import json
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np
import xarray as xr

from provingground import stats
from provingground.stats import Estimate

from . import suites, theory
from .inference import TYPES
from .model import Config
from .span import MATCHED_SHARE

LEVEL = 0.05  # the error at which examples are enough
MATCHED, SAME_STEP, SAME_PATTERN, NEITHER = range(4)
PLAIN = Config()

# ---------------------------------------------------------------- settings by their names


def table(ds: xr.Dataset) -> dict[str, suites.Setting]:
    """The settings of a Dataset's suite, in the order of its dim."""
    return suites.laws(3) if ds.attrs["experiment"] == "laws" else suites.figures(3)


def at(ds: xr.Dataset, name: str) -> xr.Dataset:
    """The Dataset at one setting."""
    return ds.isel(setting=list(table(ds)).index(name), drop=True)


AXES = {
    "alpha_test": "alpha_test",
    "tau": "tau",
    "rho": "rho",
    "tau_io": "tau",
    "rho_io": "rho",
}


def sweep(ds: xr.Dataset, by: str) -> xr.Dataset:
    """The settings that vary one thing, along its realised value, not the one asked for."""
    names = [n for n in table(ds) if n.startswith(AXES[by] + "=")]
    if ds.attrs["experiment"] != "laws" and AXES[by] in ("alpha_test", "tau"):
        names.append("default")
    part = ds.isel(setting=[list(table(ds)).index(n) for n in names])
    over = [d for d in part[by].dims if d != "setting"]
    values = part[by].mean(over).values.round(4)
    part = part.drop_vars(by).rename(setting=by).assign_coords({by: values})
    part[by].attrs = ds[by].attrs
    return part.sortby(by)


# --------------------------------------------------------------------- examples needed


def needed(ds: xr.Dataset, probe: str, by: str, window: Any = None) -> stats.Boundary:
    r"""$l^*$: the examples at which the error falls to `LEVEL`, over a realised quantity."""
    return stats.phase_boundary(sweep(ds, by)[probe], "l_test", by, LEVEL, window=window)


def exponent(probe: str, by: str, window: Any = None) -> Callable[[xr.Dataset], Estimate]:
    return lambda ds: needed(ds, probe, by, window).law.slope


def ordered(probe: str, by: str, lengths: Sequence[int]) -> Callable[[xr.Dataset], Estimate]:
    """The smallest step down of the error, from one value to the next, at any of the lengths."""

    def measure(ds: xr.Dataset) -> Estimate:
        error = sweep(ds, by)[probe]
        steps = (stats.monotone(error.sel(l_test=n, drop=True), by) for n in lengths)
        return stats.worst(steps, "low")

    return measure


def dearer(by: str, lengths: Sequence[int]) -> Callable[[xr.Dataset], Estimate]:
    """The smallest excess of the ICL error over the CoT error."""

    def measure(ds: xr.Dataset) -> Estimate:
        part = sweep(ds, by).sel(l_test=list(lengths))
        return stats.worst(
            (
                stats.paired_difference(cell.icl_error, cell.cot_error)
                for _, row in part.groupby(by)
                for _, cell in row.groupby("l_test")
            ),
            "low",
        )

    return measure


def error_at(probe: str, name: str, examples: int) -> Callable[[xr.Dataset], Estimate]:
    return lambda ds: stats.mean(at(ds, name)[probe].sel(l_test=examples, drop=True))


def gain(probe: str, name: str, few: int, many: int) -> Callable[[xr.Dataset], Estimate]:
    """How much the error falls from few examples to many."""

    def measure(ds: xr.Dataset) -> Estimate:
        error = at(ds, name)[probe]
        return stats.paired_difference(
            error.sel(l_test=few, drop=True), error.sel(l_test=many, drop=True)
        )

    return measure


def bound_factor(ds: xr.Dataset) -> Estimate:
    """The largest ratio of the examples needed to (7.20) with its constant set to 1."""
    found = []
    for name in (n for n in table(ds) if "=" in n):
        one = at(ds, name)
        real = {n: float(one[n].mean()) for n in ("alpha_test", "tau", "rho")}
        bound = float(theory.examples_needed(**real, n_patterns=PLAIN.n_patterns))
        found.append(
            Estimate(*(x / bound for x in stats.threshold(one.cot_error, "l_test", LEVEL)))
        )
    return stats.worst(found, "high")


# ----------------------------------------------------------------------------- the vote


def disagreement(probe: str, other: str = "", least: int = 4) -> Callable[[xr.Dataset], Estimate]:
    """The largest difference between network and vote over lengths, in the mean over settings."""

    def measure(ds: xr.Dataset) -> Estimate:
        part = ds.sel(l_test=slice(least, None)).mean("setting")
        vote = part[probe].sel(by="vote", drop=True)
        ours = part[other or probe].sel(by="network", drop=True)
        return stats.agreement(ours, vote, relative=False)

    return measure


def missed(probe: str, examples: int) -> Callable[[xr.Dataset], Estimate]:
    """By how much the vote's ICL error is above the network's where Condition 7.3.2 fails."""

    def measure(ds: xr.Dataset) -> Estimate:
        part = at(ds, "condition fails")[probe].sel(l_test=examples, drop=True)
        return stats.paired_difference(part.sel(by="vote"), part.sel(by="network"))

    return measure


# ------------------------------------------------------------------------------ training


def in_time(y: xr.DataArray, lr: float) -> xr.DataArray:
    r"""The same measurement over $\eta t$, from the first step on."""
    y = y.isel(step=slice(1, None))
    y = y.assign_coords(step=y.step * lr)
    y.step.attrs = {"long_name": "training time", "symbol": r"(\eta t)"}
    return y


def lr_of(ds: xr.Dataset) -> float:
    return float(json.loads(ds.attrs["settings"]).get("lr", PLAIN.lr))


def by_type(ds: xr.Dataset) -> xr.DataArray:
    """Attention on the four types of columns, averaged over the reasoning steps."""
    found = ds.attention.mean("k").assign_coords(type=list(TYPES))
    found.attrs = ds.attention.attrs
    return found


def other_steps(ds: xr.Dataset) -> xr.DataArray:
    return by_type(ds).isel(type=[SAME_PATTERN, NEITHER]).sum("type")


def crossing(curve: xr.DataArray, level: float) -> float:
    """The step at which the seed-mean crosses a level, between steps on a log axis."""
    y, t = curve.mean("seed").values[1:], np.log(curve.step.values[1:].astype(float))
    passed = np.flatnonzero((y[1:] - level) * (y[:-1] - level) <= 0)
    if not len(passed):
        return np.nan
    i = passed[0]
    return float(np.exp(t[i] + (t[i + 1] - t[i]) * (level - y[i]) / (y[i + 1] - y[i])))


def stage_order(ds: xr.Dataset) -> Estimate:
    """The step at which matched columns have 0.9, over that at which other steps have 0.05."""
    return stats.jackknife(
        lambda matched, others: crossing(matched, 0.9) / crossing(others, 0.05),
        by_type(ds).isel(type=MATCHED, drop=True),
        other_steps(ds),
    )


def hump(end: int) -> Callable[[xr.Dataset], Estimate]:
    """The peak of the attention on other patterns of the same step, over its first or last."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = by_type(ds).isel(type=SAME_STEP, drop=True)
        return stats.jackknife(
            lambda y: float(y.mean("seed").max()) / float(y.mean("seed").isel(step=end)), y
        )

    return measure


def matched_by_step(ds: xr.Dataset) -> Estimate:
    """The attention on matched columns at the end of training, in the worst reasoning step."""
    end = ds.attention.isel(step=-1, type=MATCHED, drop=True)
    return stats.worst((stats.mean(end.isel(k=k)) for k in range(end.sizes["k"])), "low")


LATE = (1000.0, inf)  # of the training time: nine tenths of the attention are matched


def loss_exponent(ds: xr.Dataset) -> Estimate:
    return stats.power_law(in_time(ds.test_loss, lr_of(ds)), "step", window=LATE).slope


def recursion(lr: float, steps: int, share: int | float = 1) -> np.ndarray:
    """The loss that the recursion of stage two predicts for every step of the default training.

    The rate of the gap is divided by `share`.
    """
    rate = theory.stage_two_rate(lr, PLAIN.n_patterns) / share
    gap = theory.stage_two(PLAIN.alpha, rate, steps)
    p = theory.matched_share(gap, PLAIN.alpha)
    return theory.loss_of_share(p, PLAIN.alpha, PLAIN.examples, PLAIN.n_patterns)


def recursion_ratio(ds: xr.Dataset) -> Estimate:
    """The loss at the end of training over that of the recursion."""
    steps = int(ds.step[-1])
    return stats.mean(ds.test_loss.isel(step=-1) / recursion(lr_of(ds), steps)[-1])


def times(ds: xr.Dataset) -> xr.DataArray:
    return ds.stopped_at.astype(float).assign_attrs(ds.stopped_at.attrs)


def time_exponent(by: str, window: Any = None) -> Callable[[xr.Dataset], Estimate]:
    return lambda ds: stats.power_law(times(ds), by, window).slope


def straightness(by: str) -> Callable[[xr.Dataset], Estimate]:
    """Squared correlation of the seed-mean of T with a parameter."""

    def measure(ds: xr.Dataset) -> Estimate:
        return stats.jackknife(lambda t: xr.corr(t.mean("seed"), t[by], dim=by) ** 2, times(ds))

    return measure


# ------------------------------------------------------------------------ leaning patterns


def predicted_attention(ds: xr.Dataset) -> xr.DataArray:
    r"""Attention on the matched columns from $w_1$ alone, by `theory.input_score`.

    The sum of the other pattern's coefficients averages out: it is orthogonal to the query's.
    """
    m, total = PLAIN.n_patterns, ds.mixture.values
    gap = ds.own_input * xr.DataArray((m - total**2) / (m - 1), dims="mixture")
    odds = MATCHED_SHARE / (1 - MATCHED_SHARE) * np.exp(gap)
    return (odds / (1 + odds)).assign_coords(mixture=total)


def attention_of(which: int) -> Callable[[xr.Dataset], Estimate]:
    return lambda ds: stats.mean(ds.span_attention.isel(mixture=which))


# -------------------------------------------------------------------------- deeper networks


def best_head(ds: xr.Dataset) -> xr.DataArray:
    """Attention on matched columns of the head that has most of it, by layer."""
    found = ds.attention.isel(type=MATCHED, drop=True).max("head")
    return found.assign_coords(layer=1 + np.arange(ds.sizes["layer"])).assign_attrs(
        ds.attention.attrs
    )


def least_matched(layers: Sequence[int]) -> Callable[[xr.Dataset], Estimate]:
    """Attention on matched columns at the end, in the worst of some layers (from 1)."""

    def measure(ds: xr.Dataset) -> Estimate:
        end = best_head(ds).isel(step=-1, drop=True)
        return stats.worst((stats.mean(end.sel(layer=i)) for i in layers), "low")

    return measure


def mean_matched(layers: Sequence[int]) -> Callable[[xr.Dataset], Estimate]:
    """Attention on matched columns at the end, in the mean of some layers."""
    return lambda ds: stats.mean(best_head(ds).isel(step=-1).sel(layer=list(layers)))


def lead(ds: xr.Dataset) -> Estimate:
    """By how much matched columns lead over any other type, in the worst layer."""
    end = ds.attention.isel(step=-1, drop=True)
    head = end.isel(type=MATCHED).mean("seed").argmax("head")
    end = end.isel(head=head)
    return stats.worst(
        (
            stats.paired_difference(end.isel(layer=i, type=MATCHED), end.isel(layer=i, type=other))
            for i in range(end.sizes["layer"])
            for other in range(end.sizes["type"])
            if other != MATCHED
        ),
        "low",
    )


def rise(ds: xr.Dataset) -> Estimate:
    """By how much attention on matched columns rises, in the worst layer."""
    found = best_head(ds)
    return stats.worst(
        (
            stats.paired_difference(
                found.isel(layer=i, step=-1, drop=True), found.isel(layer=i, step=0, drop=True)
            )
            for i in range(found.sizes["layer"])
        ),
        "low",
    )


def cost_of_positions(ds: xr.Dataset) -> Estimate:
    """How much more attention matched columns have with encodings by step, over all layers."""
    end = best_head(ds).isel(step=-1, drop=True).mean("layer")
    return stats.paired_difference(
        end.sel(encoding="by step", drop=True), end.sel(encoding="sinusoidal", drop=True)
    )
