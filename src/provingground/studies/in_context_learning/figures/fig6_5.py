r"""Figure 6.5: pruning neurons.

A rate counts all $m$ neurons; $R$ of Theorem 6.3.7 is a share of the large ones, $\mathcal L$.
"""

from collections.abc import Callable

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, below, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere, mean, paired_difference
from provingground.study import Experiment, Trainings

from .. import theory
from .shared import (
    TRAINED,
    exists,
    from_here,
    large_share_of,
    margin_late,
    opposite_are_small,
    row_norm,
    small_grow,
    trained_long,
    two_groups,
)

PRUNING = Trainings(
    grid={"alpha": 0.6, "test_samples": 4000},
    seeds=8,
    quick={"steps": 800, "test_samples": 1000, "seeds": 6},
    simulator="mechanism",
    domain=TRAINED.domain,
    where=trained_long,
)
ORDERS = ("magnitude", "random", "largest first")
RATES = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])  # R, of the large neurons
FROM_NONE = np.array([0.0, 0.05, *RATES])
ALPHA = 0.6  # alpha' of Figure 6.5(a)


def pruned(ds: xr.Dataset, order: str, name: str = "pruned_loss") -> xr.DataArray:
    return ds[name].sel(order=order, alpha_prime=ALPHA, drop=True)


def of_large(ds: xr.Dataset, rates: np.ndarray = RATES) -> xr.DataArray:
    """The loss with a share R of the large neurons pruned, in three orders: the smallest of them
    first (and all small ones before), at random, and the largest first.

    The probe prunes at random among all m neurons: a share R of them has a share R of the large
    ones in expectation, and as much of the small ones, which are free (`small_are_free`)."""
    share = large_share_of(ds)
    found = []
    for order in ORDERS:
        start = 1 - share if order == "magnitude" else 0 * share
        width = share if order != "random" else 1 + 0 * share
        at = start + width * xr.DataArray(rates, dims="large_pruned")
        y = pruned(ds, order)
        found.append(
            xr.apply_ufunc(
                np.interp,
                at,
                y.pruned,
                y,
                input_core_dims=[["large_pruned"], ["pruned"], ["pruned"]],
                output_core_dims=[["large_pruned"]],
                vectorize=True,
            )
        )
    y = xr.concat(found, "order")
    return y.assign_coords(order=list(ORDERS), large_pruned=rates)


def unpruned(ds: xr.Dataset) -> xr.DataArray:
    return pruned(ds, "magnitude").isel(pruned=0, drop=True)


def printed_bound(ds: xr.Dataset, rate: xr.DataArray | float) -> xr.DataArray:
    return theory.pruned_loss_bound(rate, ALPHA, ds.alpha, ds.n_relevant)


@claim("Theorem 6.3.7 (6.15), Figure 6.5(a)", below(0.03))
def small_are_free(ds: xr.Dataset) -> Estimate:
    """pruning all neurons that are not large costs less than 0.03 of hinge loss"""
    y = of_large(ds, np.array([0.0])).sel(order="magnitude").isel(large_pruned=0, drop=True)
    return paired_difference(y, unpruned(ds))


def rising(f: Callable[[xr.DataArray], xr.DataArray]) -> Altered:
    """The Dataset whose loss rises from what it is without pruning to 1 as a function of R."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        start = ds.pruned_loss.isel(pruned=0, drop=True)
        return ds.assign(pruned_loss=start + (1 - start) * f(ds.pruned))

    return altered


def above_line(ds: xr.Dataset, order: str) -> xr.DataArray:
    """The loss with a share R of the large neurons pruned, less l + (1 - l) R."""
    start, y = unpruned(ds), of_large(ds).sel(order=order, drop=True)
    return y - start - (1 - start) * y.large_pruned


@claim(
    "(6.16)",
    equals(0, within=0.06),
    kind="corrected",
    law=rising(lambda r: r),
    rivals={"R^2": rising(lambda r: r**2), "half of it": rising(lambda r: r / 2)},
)
def random_cost(ds: xr.Dataset) -> Everywhere:
    """with a share R pruned at random the loss is l + (1 - l) R, l without pruning (difference)"""
    return everywhere(mean, above_line(ds, "random"))


@claim(
    "found here",
    below(0),
    kind="own",
    rivals={
        "all alike": lambda ds: ds.assign(
            pruned_loss=ds.pruned_loss.sel(order="largest first", drop=True) + 0 * ds.pruned_loss
        )
    },
)
def smallest_cost_less(ds: xr.Dataset) -> Everywhere:
    """large neurons are not alike: the smallest of them cost less than that (difference)"""
    return everywhere(mean, above_line(ds, "magnitude"))


@claim(
    "found here",
    equals(1, within=0.15),
    kind="own",
    rivals={
        "as at random": lambda ds: ds.assign(
            pruned_loss=ds.pruned_loss.sel(order="random", drop=True) + 0 * ds.pruned_loss
        )
    },
)
def large_slope(ds: xr.Dataset) -> Estimate:
    """by magnitude the loss rises from l to 1 while large neurons go (slope over (1-l) m/|L|)"""
    y = pruned(ds, "magnitude").sel(pruned=slice(0.4, 0.9))

    def ratio(y: xr.DataArray, share: xr.DataArray, start: xr.DataArray) -> float:
        at = y.mean("seed")
        slope = np.polyfit(at.pruned.values, at.values, 1)[0]
        return float(slope * share.mean() / (1 - start.mean()))

    return stats.jackknife(ratio, y, large_share_of(ds), unpruned(ds))


@claim(
    "(6.16)",
    above(0.3),
    kind="corrected",
    rivals={
        "free up to 0.2": lambda ds: ds.assign(
            pruned_loss=ds.pruned_loss.where(
                ds.pruned > 0.2 + 0.3 * (ds.order == "magnitude"), ds.pruned_loss.isel(pruned=0)
            )
        )
    },
)
def any_large_cost(ds: xr.Dataset) -> Everywhere:
    """pruning a share R of the large neurons, the smallest of them, any, or the largest, adds over
    0.3 R to the loss (ratio)"""
    gap = of_large(ds) - unpruned(ds)
    return everywhere(mean, gap / gap.large_pruned)


@claim("Theorem 6.3.7, Figure 6.5(a)", above(0))
def orders(ds: xr.Dataset) -> Everywhere:
    """at a rate of 0.3 magnitude is better than random, random than largest first (least step)"""
    y = ds.pruned_loss.sel(alpha_prime=ALPHA, pruned=0.3, drop=True)
    worse, better = y.sel(order=list(ORDERS[1:])), y.sel(order=list(ORDERS[:-1]))
    return everywhere(paired_difference, worse, better.assign_coords(order=worse.order))


@claim(
    "(E.109), behind (6.16)",
    above(0),
    bound="paper",
    expected="fails",
    because=(smallest_cost_less, any_large_cost),
)
def pruning_bound(ds: xr.Dataset) -> Everywhere:
    """whichever share R of the large neurons is pruned, the loss is over (E.109) (difference)"""
    y = of_large(ds, FROM_NONE)
    return everywhere(mean, y - printed_bound(ds, y.large_pruned))


@claim("found here", below(0.01), kind="own")
def error_flat(ds: xr.Dataset) -> Estimate:
    """the error rises by less than 0.01 when half of the neurons are pruned by magnitude"""
    y = pruned(ds, "magnitude", "pruned_error")
    return paired_difference(*(y.sel(pruned=r, drop=True) for r in (0.5, 0.0)))


@claim("Figure 6.5(a)", above(0.01), expected="fails", because=(large_slope, error_flat))
def error_rises(ds: xr.Dataset) -> Estimate:
    """the error rises as soon as large neurons are pruned (by over 0.01 at a rate of 0.4)"""
    y = pruned(ds, "magnitude", "pruned_error")
    return paired_difference(*(y.sel(pruned=r, drop=True) for r in (0.4, 0.0)))


def draw_pruning(ds: xr.Dataset):
    fig, axes = plot.figure(1, 3, title="Pruning neurons, out of domain")
    for ax, name in zip(axes, ("pruned_loss", "pruned_error"), strict=False):
        for order in ds.order.values:
            plot.curve(
                ax, pruned(ds, order, name).assign_attrs(ds[name].attrs), "pruned", label=order
            )
    rate = ds.pruned.values
    bound = theory.pruned_loss_bound(rate, ALPHA, float(ds.alpha), float(ds.n_relevant))
    plot.theory_curve(axes[0], rate, bound, "(E.109)")
    axes[1].set_ylim(-0.02, 1.02)
    norm = row_norm(ds)
    axes[2].hist(norm.values[exists(ds).values], 40, color=plot.PALETTE[5], label="neurons")
    from_here(axes[2], 1.0, r"$\mathcal{L}$: from here on")
    axes[2].set(xlabel=r"norm of $r_i$ at the end", ylabel="neurons (all seeds)")
    return fig


# -------------------------------------------------------------------------- (b), small


@claim("Theorem 6.3.7 (6.16), Figure 6.5(b)", above(0))
def more_decisive_better(ds: xr.Dataset) -> Everywhere:
    """at every pruning rate up to 0.9 the loss falls with alpha' (least step)"""
    y = ds.pruned_loss.sel(order="magnitude", pruned=slice(None, 0.9))
    return everywhere(lambda y: stats.monotone(y, "alpha_prime"), y, keep="alpha_prime")


def draw_pruning_by_alpha(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Pruning by magnitude, out of domain")
    for ax, name in zip(axes, ("pruned_loss", "pruned_error"), strict=True):
        y = ds[name].sel(order="magnitude", drop=True).assign_attrs(ds[name].attrs)
        plot.curve(ax, y, "pruned", hue="alpha_prime")
    axes[1].set_ylim(0, 0.55)
    return fig


@claim("Figure 6.5(a)", above(0.02))
def few_neurons_error(ds: xr.Dataset) -> Estimate:
    """with 30 neurons the error rises by over 0.02 when 80% are pruned"""
    y = pruned(ds, "magnitude", "pruned_error").sel(width=30, drop=True)
    return paired_difference(*(y.sel(pruned=r, drop=True) for r in (0.8, 0.0)))


def draw_small(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Pruning by magnitude, few neurons")
    for ax, name in zip(axes, ("pruned_loss", "pruned_error"), strict=True):
        y = pruned(ds, "magnitude", name).assign_attrs(ds[name].attrs)
        plot.curve(ax, y, "pruned", hue="width")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig6_5a",
        says="Loss and error out of domain after pruning neurons, and the norms of neurons.",
        trainings=PRUNING,
        claims=(
            small_are_free,
            random_cost,
            smallest_cost_less,
            large_slope,
            any_large_cost,
            orders,
            pruning_bound,
            error_flat,
            error_rises,
        ),
        figure=draw_pruning,
    ),
    Experiment(
        "fig6_5b",
        says="Loss and error of pruned models by the fraction of decisive patterns in the test.",
        trainings=PRUNING,
        # The others explain Figure 6.2, which is at alpha = 0.8.
        claims=(more_decisive_better, two_groups, small_grow, opposite_are_small, margin_late),
        figure=draw_pruning_by_alpha,
    ),
    Experiment(
        "fig6_5_small",
        says="Loss and error after pruning by magnitude where there are few neurons.",
        trainings=Trainings(
            grid={"alpha": 0.6, "width": [30, 60], "test_samples": 4000},
            seeds=16,
            simulator="mechanism",
            paper_only=True,
        ),
        claims=(few_neurons_error,),
        figure=draw_small,
    ),
)
