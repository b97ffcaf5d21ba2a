"""Trainings and helpers that several rooms share."""

from collections.abc import Callable, Mapping
from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, curve
from provingground.stats import Estimate, first, last, mean, paired_ratio
from provingground.study import Trainings

from ..theory import crowding, steps_to_fit

NAMES = {"in": "in domain", "out": "out of domain"}


def trained_long(settings: Mapping[str, Any]) -> bool:
    """Whether the training lasts 1.4 times as long as it takes to fit, where that is known."""
    names, patterns = ("lr", "alpha", "beta", "delta", "width"), settings["n_relevant"]
    needed = steps_to_fit(**{n: settings[n] for n in names}, patterns=patterns)
    return bool(1.4 * needed <= settings["steps"] and crowding(settings["alpha"], patterns) <= 2)


# All figures of one trained model share its trainings. Not free: M_1, since patterns out of domain
# combine six, and m, since probes of neurons have its size. The paper has beta of at least 1, and
# from about 4.7 on trainings with a step size of 1 may not fit. Where delta is large or alpha below
# 0.3, irrelevant parts of K' = 5 count out of domain.
TRAINED = Trainings(
    grid={"test_samples": 4000},
    seeds=8,
    quick={"steps": 800, "test_samples": 1000, "seeds": 5},
    simulator="mechanism",
    domain={"alpha": (0.3, 1), "beta": (1, 4.5), "delta": (0.02, 0.12)},
    where=trained_long,
)


def from_here(ax: Any, x: float, words: str) -> None:
    """A vertical line at x, up to the top of the panel."""
    top = ax.get_ylim()[1]
    plot.theory_curve(ax, [x, x], [0, top], words)
    ax.set_ylim(0, top)


# ------------------------------------------------ what is asked at alpha = 0.8 and at 0.6


def time_to_fit(ds: xr.Dataset) -> xr.DataArray:
    s = {n: ds[n].astype(float) for n in ("lr", "alpha", "beta", "delta", "width")}
    return steps_to_fit(**s, patterns=ds.n_relevant.astype(float))


@claim(
    "found here",
    below(0.02),
    kind="own",
    rivals={
        "in proportion": curve(
            "margin", lambda ds: last(ds.margin).mean("seed") * ds.step / ds.step.max() + 1e-9
        )
    },
)
def margin_late(ds: xr.Dataset) -> Estimate:
    """the margin comes all at once: at half the time to fit it is below 2% of what it will be"""
    y = ds.margin.sel(domain="in", drop=True)
    half = y.interp(step=float(time_to_fit(ds)) / 2).drop_vars("step")
    return mean(half / last(y).mean("seed"))


def row_norm(ds: xr.Dataset, at: Callable[[xr.DataArray], xr.DataArray] = last) -> xr.DataArray:
    r"""$\|r_i\|$, at the end unless told."""
    return (at(ds.neuron_norm) ** 2 + at(ds.label_norm) ** 2) ** 0.5


def exists(ds: xr.Dataset) -> xr.DataArray:
    return ds.neuron_sign != 0


def large(ds: xr.Dataset) -> xr.DataArray:
    r"""$\mathcal L$: neurons with $\|r_i\| \ge 1$ at the end."""
    return exists(ds) & (row_norm(ds) >= 1)


def large_share_of(ds: xr.Dataset) -> xr.DataArray:
    return large(ds).sum("neuron") / exists(ds).sum("neuron")


@claim("found here", below(0.1), kind="own")
def two_groups(ds: xr.Dataset) -> Estimate:
    """few neurons have a norm between 0.6 and 1.2 (share)"""
    norm = row_norm(ds)
    between = exists(ds) & (norm > 0.6) & (norm < 1.2)
    return mean(between.sum("neuron") / exists(ds).sum("neuron"))


def small_stay(ds: xr.Dataset) -> xr.Dataset:
    """As it would be if neurons that are not large kept the norm they start with."""
    norms = (ds[n] for n in ("neuron_norm", "label_norm"))
    return ds.assign({str(y.name): y.where(large(ds), first(y)) for y in norms})


@claim("found here", above(4), kind="own", rivals={"they stay": small_stay})
def small_grow(ds: xr.Dataset) -> Estimate:
    """neurons that are not large grow too, over fourfold (mean norm, end over start)"""
    ends = (row_norm(ds, at).where(exists(ds) & ~large(ds)).mean("neuron") for at in (last, first))
    return paired_ratio(*ends)


@claim("found here", above(0.97), kind="own")
def opposite_are_small(ds: xr.Dataset) -> Estimate:
    """neurons are large if and only if their feature part ends along the mean pattern (share)"""
    agree = (last(ds.cos_mu_bar) > 0) == large(ds)
    return mean((agree & exists(ds)).sum("neuron") / exists(ds).sum("neuron"))
