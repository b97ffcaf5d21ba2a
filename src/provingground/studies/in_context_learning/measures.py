"""What is measured on the Datasets of the experiments."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from provingground import stats
from provingground.config import pars
from provingground.stats import Estimate

from . import theory
from .baselines import LEARNERS
from .mechanism import IN, ORDERS, OUT
from .model import Config

PLAIN = Config()
LARGE = 1.0  # (6.14): neurons of at least this norm are in L
LEVEL = 0.02  # of the error, at which the context is long enough
COVERED = 0.05  # of the hinge loss, the same


def worst(values: Sequence[Estimate], toward: Any = "high") -> Estimate:
    return stats.worst(values, toward)


def negated(e: Estimate) -> Estimate:
    return Estimate(-e.value, -e.high, -e.low)


def last(y: xr.DataArray) -> xr.DataArray:
    return y.isel(step=-1, drop=True)


def first(y: xr.DataArray) -> xr.DataArray:
    return y.isel(step=0, drop=True)


# ------------------------------------------------------------------ tests in and out


def at(y: xr.DataArray, domain: int, alpha: float, length: int) -> xr.DataArray:
    """One probe at one kind of test prompts."""
    y = y.isel(domain=domain, drop=True)
    return y.sel(alpha_prime=alpha, method="nearest", drop=True).sel(length=length, drop=True)


def usual(name: str, domain: int) -> Callable[[xr.Dataset], Estimate]:
    """A probe at alpha' = 0.8 and 20 context examples."""
    return lambda ds: stats.mean(at(ds[name], domain, 0.8, 20))


def ordered_by_alpha(
    lengths: Sequence[int], domains: Sequence[int] = (IN, OUT)
) -> Callable[[xr.Dataset], Estimate]:
    """The smallest step by which the error falls from one alpha' to the next."""

    def measure(ds: xr.Dataset) -> Estimate:
        parts = (ds.test_error.isel(domain=d).sel(length=n) for d in domains for n in lengths)
        return worst([stats.monotone(y, "alpha_prime", "decreasing") for y in parts], "low")

    return measure


def needed_length(ds: xr.Dataset, domain: int) -> stats.Boundary:
    """The context length at which the error is down to 2%, for each alpha'."""
    y = ds.test_error.isel(domain=domain, drop=True)
    return stats.phase_boundary(y, "length", "alpha_prime", LEVEL)


def length_exponent(domain: int) -> Callable[[xr.Dataset], Estimate]:
    return lambda ds: needed_length(ds, domain).law.slope


def floor(ds: xr.Dataset) -> xr.DataArray:
    """The coverage floor at the fractions and lengths of the tests."""
    return theory.coverage_floor(ds.alpha_prime, ds.length)


def above_floor(ds: xr.Dataset) -> xr.DataArray:
    """Error on unseen tasks minus the coverage floor, for contexts of 10 examples and more."""
    y = ds.test_error.isel(domain=IN, drop=True) - floor(ds)
    return y.sel(length=slice(10, None))


def least_above_floor(ds: xr.Dataset) -> Estimate:
    y = above_floor(ds).stack(cell=("alpha_prime", "length"))
    return worst([stats.mean(y.isel(cell=k)) for k in range(y.sizes["cell"])], "low")


def most_above_floor(ds: xr.Dataset) -> Estimate:
    y = above_floor(ds).stack(cell=("alpha_prime", "length"))
    return worst([stats.mean(y.isel(cell=k)) for k in range(y.sizes["cell"])], "high")


# ------------------------------------------------------------------- coefficient sums


def by_sum(ds: xr.Dataset, name: str = "sum_error", length: int = 20) -> xr.DataArray:
    y = ds[name]
    return y.sel(length=length, drop=True) if "length" in y.dims else y


def largest_error(low: float, high: float) -> Callable[[xr.Dataset], Estimate]:
    """The largest error for coefficient sums in a range."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = by_sum(ds)
        inside = (y.coef_sum >= low - 1e-6) & (y.coef_sum <= high + 1e-6)
        y = y.isel(coef_sum=inside.values)
        return worst([stats.mean(y.isel(coef_sum=k)) for k in range(y.sizes["coef_sum"])])

    return measure


def error_below(high: float) -> Callable[[xr.Dataset], Estimate]:
    """The mean error for coefficient sums up to a value."""
    return lambda ds: stats.mean(by_sum(ds).sel(coef_sum=slice(None, high + 1e-6)))


def decoder_error(kappa: float, low: float, high: float) -> Callable[[xr.Dataset], Estimate]:
    """The largest error of the decoder for sums in a range, at one K'."""
    return lambda ds: largest_error(low, high)(
        ds.sel(kappa_prime=kappa, method="nearest", drop=True)
    )


def decoder_by_kappa(ds: xr.Dataset) -> Estimate:
    """The smallest step by which the decoder's error grows with K' from 1 on, for sums from 1."""
    y = ds.sum_error.sel(coef_sum=slice(1 - 1e-6, None), kappa_prime=slice(1 - 1e-6, None))
    sums = range(y.sizes["coef_sum"])
    return worst(
        [stats.monotone(y.isel(coef_sum=k), "kappa_prime", "increasing") for k in sums], "low"
    )


# ---------------------------------------------------------------------- other learners


def lead(ds: xr.Dataset, alpha: float) -> list[Estimate]:
    """Error of each fitted classifier minus that in context, from 20 examples on."""
    y = ds.test_error.sel(alpha_prime=alpha, method="nearest", drop=True)
    y = y.sel(length=slice(20, None)).mean("length")
    icl = y.isel(learner=0, drop=True)
    others = range(1, len(LEARNERS))
    return [stats.paired_difference(y.isel(learner=k, drop=True), icl) for k in others]


def least_lead(alpha: float) -> Callable[[xr.Dataset], Estimate]:
    """How far the best fitted classifier is behind."""
    return lambda ds: worst(lead(ds, alpha), "low")


# ------------------------------------------------------------------------- mechanism


def growth(name: str, domain: int = IN) -> Callable[[xr.Dataset], Estimate]:
    """A norm at the end of training over that at its start."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = ds[name].isel(domain=domain, drop=True)
        return stats.paired_ratio(last(y), first(y))

    return measure


def own_share(domain: int) -> Callable[[xr.Dataset], Estimate]:
    """Projection on the own pattern over the norm at the end, the smaller of query and keys."""

    def measure(ds: xr.Dataset) -> Estimate:
        end = ds.isel(domain=domain, step=-1, drop=True)
        pairs = ((end.query_own, end.query_norm), (end.key_own, end.key_norm))
        return worst([stats.paired_ratio(a, b) for a, b in pairs], "low")

    return measure


def over_own(name: str) -> Callable[[xr.Dataset], Estimate]:
    """A projection of the query on other patterns, over that on its own, at the end."""
    return lambda ds: stats.paired_ratio(
        last(ds[name]), last(ds.query_own.isel(domain=IN, drop=True))
    )


def final_attention(domain: int) -> Callable[[xr.Dataset], Estimate]:
    return lambda ds: stats.mean(last(ds.attention.isel(domain=domain, drop=True)))


def row_norm(ds: xr.Dataset) -> xr.DataArray:
    r"""$\|r_i\|$ at the end."""
    return (last(ds.neuron_norm) ** 2 + last(ds.label_norm) ** 2) ** 0.5


def exists(ds: xr.Dataset) -> xr.DataArray:
    return ds.neuron_sign != 0


def large(ds: xr.Dataset) -> xr.DataArray:
    r"""$\mathcal L$: neurons with $\|r_i\| \ge 1$ at the end."""
    return exists(ds) & (row_norm(ds) >= LARGE)


def large_share(ds: xr.Dataset) -> Estimate:
    return stats.mean(large(ds).sum("neuron") / exists(ds).sum("neuron"))


def on_large(values: Callable[[xr.Dataset], xr.DataArray]) -> Callable[[xr.Dataset], Estimate]:
    """The smallest value over the large neurons, a mean over seeds."""
    return lambda ds: stats.mean(values(ds).where(large(ds)).min("neuron"))


def signed_cos_q(ds: xr.Dataset) -> xr.DataArray:
    """Cosine of a neuron's label part with q, times the sign of its read-out."""
    return last(ds.cos_q) * ds.neuron_sign


def same_sign(ds: xr.Dataset) -> Estimate:
    """Share of large neurons whose label part has the sign of their read-out."""
    agree = (signed_cos_q(ds) > 0) & large(ds)
    return stats.mean(agree.sum("neuron") / large(ds).sum("neuron"))


def largest_small(ds: xr.Dataset) -> Estimate:
    r"""The largest $\|r_i\|$ outside $\mathcal L$."""
    return stats.mean(row_norm(ds).where(exists(ds) & ~large(ds)).max("neuron"))


# --------------------------------------------------------------------------- pruning

PRUNED_AT = 0.6  # alpha' of Figure 6.5(a)


def pruned(
    ds: xr.Dataset, order: str, name: str = "pruned_loss", alpha: float = PRUNED_AT
) -> xr.DataArray:
    y = ds[name].isel(order=ORDERS.index(order), drop=True)
    return y.sel(alpha_prime=alpha, method="nearest", drop=True)


def cost(order: str, rate: float, name: str = "pruned_loss") -> Callable[[xr.Dataset], Estimate]:
    """By how much pruning at a rate raises the loss (or error)."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = pruned(ds, order, name)
        there, none = (y.sel(pruned=r, method="nearest", drop=True) for r in (rate, 0.0))
        return stats.paired_difference(there, none)

    return measure


def straightness(order: str, low: float, high: float) -> Callable[[xr.Dataset], Estimate]:
    """Squared correlation of the seed-mean of the loss with the pruning rate, in a window."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = pruned(ds, order).sel(pruned=slice(low - 1e-6, high + 1e-6))
        return stats.jackknife(lambda y: xr.corr(y.mean("seed"), y.pruned) ** 2, y)

    return measure


def slope_over_share(ds: xr.Dataset) -> Estimate:
    r"""Slope of the loss under magnitude pruning, over $(1-\ell_0)m/|\mathcal L|$.

    Where all large neurons count alike, the loss rises from $\ell_0$ to 1 while they go.
    """
    share = large(ds).sum("neuron") / exists(ds).sum("neuron")
    start = pruned(ds, "magnitude").sel(pruned=0.0, drop=True)
    y = pruned(ds, "magnitude").sel(pruned=slice(0.4 - 1e-6, 0.9 + 1e-6))

    def ratio(y: xr.DataArray, share: xr.DataArray, start: xr.DataArray) -> float:
        mean = y.mean("seed")
        slope = np.polyfit(mean.pruned.values, mean.values, 1)[0]
        return float(slope * share.mean() / (1 - start.mean()))

    return stats.jackknife(ratio, y, share, start)


def above_bound(ds: xr.Dataset) -> Estimate:
    """The least gap between the loss with the largest neurons pruned and (E.109)."""
    y = pruned(ds, "largest first").sel(pruned=slice(0.1 - 1e-6, 0.6 + 1e-6))
    bound = theory.pruned_loss_bound(y.pruned, PRUNED_AT, 0.6, PLAIN.n_relevant)
    gap = y - bound
    return worst([stats.mean(gap.isel(pruned=k)) for k in range(gap.sizes["pruned"])], "low")


def ordered_orders(ds: xr.Dataset) -> Estimate:
    """Share of seeds in which magnitude, random and largest first come in this order, R = 0.3."""
    each = ("magnitude", "random", "largest first")
    return stats.ordering(
        *(pruned(ds, o).sel(pruned=0.3, method="nearest", drop=True) for o in each)
    )


def pruned_by_alpha(ds: xr.Dataset) -> Estimate:
    """The smallest step by which the loss falls with alpha', over rates up to 0.9."""
    y = ds.pruned_loss.isel(order=0).sel(pruned=slice(None, 0.9 + 1e-6))
    rates = range(y.sizes["pruned"])
    return worst([stats.monotone(y.isel(pruned=k), "alpha_prime") for k in rates], "low")


def small_cost(ds: xr.Dataset) -> Estimate:
    """By how much pruning 80% by magnitude raises the error with 30 neurons."""
    ds = ds.sel(width=30, drop=True) if "width" in ds.dims else ds
    return cost("magnitude", 0.8, "pruned_error")(ds)


# ------------------------------------------------------------- lengths and iterations


def covered_length(ds: xr.Dataset) -> stats.Boundary:
    """The length at which the hinge loss is down to 0.05, for each alpha."""
    return stats.phase_boundary(ds.same_loss, "tokens", "alpha", COVERED)


def over_power(y: xr.DataArray) -> xr.DataArray:
    r"""The same measurement over $\alpha^{-2/3}$."""
    y = y.astype(float).assign_attrs(y.attrs)
    y = y.assign_coords(power=("alpha", y.alpha.values ** (-2 / 3)))
    y = y.swap_dims(alpha="power").drop_vars("alpha")
    y.power.attrs = {"long_name": "fraction of decisive patterns", "symbol": r"\alpha^{-2/3}"}
    return y


def linear_in_power(ds: xr.Dataset) -> Estimate:
    r"""Squared correlation of the seed-mean of $T$ with $\alpha^{-2/3}$."""
    return stats.jackknife(
        lambda t: xr.corr(t.mean("seed"), t.power, dim="power") ** 2, over_power(ds.stopped_at)
    )


def steps_exponent(ds: xr.Dataset) -> Estimate:
    r"""The exponent of $T$ in $\alpha$."""
    return stats.power_law(ds.stopped_at.astype(float), "alpha").slope


def short_error(ds: xr.Dataset) -> Estimate:
    """Largest error on fixed test prompts after training with contexts of four examples."""
    y = ds.test_error.sel(tokens=4, drop=True)
    return worst([stats.mean(y.isel(alpha=k)) for k in range(y.sizes["alpha"])])


def scaled(ds: xr.Dataset, name: str) -> xr.DataArray:
    """The steps of the cases that name a parameter, such as "lr 1, width 100", over its value."""
    found = {}
    for case in ds.change.values:
        told = dict(part.split() for part in str(case).split(", "))
        if name in told:
            found[case] = float(told[name])
    y = ds.stopped_at.sel(change=list(found)).astype(float).assign_attrs(ds.stopped_at.attrs)
    y = y.assign_coords({name: ("change", list(found.values()))})
    y = y.swap_dims(change=name).drop_vars("change").sortby(name)
    p = pars(PLAIN)[name]
    y[name].attrs = {"long_name": p.says, "symbol": p.symbol}
    return y


def scaling_exponent(name: str) -> Callable[[xr.Dataset], Estimate]:
    return lambda ds: stats.power_law(scaled(ds, name), name).slope


# ------------------------------------------------------------------------------ tasks


def beyond(settings: dict[str, Any]) -> dict[str, Any]:
    """Training tasks from their number relative to M_1."""
    return {"n_tasks": max(1, round(settings["n_relevant"] + settings["extra"]))}


def with_extra(name: str, low: int, high: int, toward: Any) -> Callable[[xr.Dataset], Estimate]:
    """The extreme over M_1 of a probe, for numbers of tasks in a range relative to M_1."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = ds[name].sel(extra=slice(low, high)).stack(cell=("n_relevant", "extra"))
        return worst([stats.mean(y.isel(cell=k)) for k in range(y.sizes["cell"])], toward)

    return measure


# --------------------------------------------------------------------------- readings

TEXT, APPENDIX = "$1/m$", r"$1/\sqrt{m}$"  # the size of the read-out


def less_attention(ds: xr.Dataset, domain: int) -> Estimate:
    """By how much the final attention is lower with the appendix's read-out."""
    end = last(ds.attention.isel(domain=domain, drop=True))
    return stats.paired_difference(*(end.sel(reading=r, drop=True) for r in (TEXT, APPENDIX)))


def lazy_error(ds: xr.Dataset) -> Estimate:
    """By how much the error out of domain is higher with the appendix's read-out."""
    end = at(ds.test_error, OUT, 0.8, 20)
    return stats.paired_difference(*(end.sel(reading=r, drop=True) for r in (APPENDIX, TEXT)))
