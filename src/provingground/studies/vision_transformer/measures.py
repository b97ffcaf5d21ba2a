"""What is measured on the Datasets of the experiments."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import stats
from provingground.stats import Estimate

from . import theory

SUCCESS = 1e-3  # section 2.4: a trial with a smaller test loss is a success
EARLY = 2  # the number of the recorded step at which `fig2_5` looks the first time


def at_end(y: xr.DataArray) -> xr.DataArray:
    return y.isel(step=-1, drop=True)


def success(ds: xr.Dataset) -> xr.DataArray:
    """Whether a trial succeeds, as 0 or 1."""
    found = (at_end(ds.test_loss) < SUCCESS).astype(float)
    found.attrs = {"long_name": "success rate"}
    return found


def negated(e: Estimate) -> Estimate:
    return Estimate(-e.value, -e.high, -e.low)


def quotient(a: Estimate, b: Estimate) -> Estimate:
    """a / b of two positive estimates, with an interval that errs on the wide side."""
    return Estimate(a.value / b.value, a.low / b.high, a.high / b.low)


# ------------------------------------------------------------------- sample complexity


def rest_is_confusion(settings: dict[str, Any]) -> dict[str, float]:
    r"""Figures 2.1(a) and 2.3: half of the tokens are irrelevant, so $\alpha_\#=1/2-\alpha_*$."""
    return {"frac_confusion": 0.5 - settings["frac_relevant"]}


def by_gap(y: xr.DataArray) -> xr.DataArray:
    r"""The same measurement over the vote gap $\alpha_*-\alpha_\#$, where half is irrelevant."""
    alpha = y.frac_relevant.values
    y = y.assign_coords(gap=("frac_relevant", theory.vote_gap(alpha, 0.5 - alpha)))
    y = y.swap_dims(frac_relevant="gap").drop_vars("frac_relevant")
    y.gap.attrs = {"long_name": "vote gap", "symbol": r"(\alpha_*-\alpha_\#)"}
    return y


def of_network(ds: xr.Dataset, network: str) -> xr.Dataset:
    return ds.sel(network=network, drop=True) if "network" in ds.dims else ds


def boundary(ds: xr.Dataset, network: str = "ViT") -> stats.Boundary:
    r"""$N_{50}$: the samples at which half of the trials succeed, for each $\alpha_*$."""
    rate = success(of_network(ds, network))
    return stats.phase_boundary(rate, "samples", "frac_relevant", 0.5, method="logistic")


def boundary_by_gap(ds: xr.Dataset, network: str = "ViT") -> stats.Boundary:
    rate = by_gap(success(of_network(ds, network)))
    return stats.phase_boundary(rate, "samples", "gap", 0.5, method="logistic")


def exponent(network: str = "ViT") -> Callable[[xr.Dataset], Estimate]:
    r"""The exponent of $N_{50}$ in $1/\alpha_*$."""
    return lambda ds: negated(boundary(ds, network).law.slope)


def gap_exponent(network: str = "ViT") -> Callable[[xr.Dataset], Estimate]:
    r"""The exponent of $N_{50}$ in $1/(\alpha_*-\alpha_\#)$."""
    return lambda ds: negated(boundary_by_gap(ds, network).law.slope)


def log_needed(rate: xr.DataArray) -> xr.DataArray:
    r"""$\log N_{50}$ of each seed by the area under its success curve (Spearman and Kärber).

    Where a curve does not get to 0 and 1 inside the grid, this stays inside it too.
    """
    log_n = np.log(rate.samples)
    return float(log_n[-1]) - rate.assign_coords(samples=log_n).integrate("samples")


def cost_of_freezing(ds: xr.Dataset, largest: float = 1.0) -> list[Estimate]:
    r"""$N_{50}$ of the CNN over that of the ViT, for each $\alpha_*$ up to `largest`."""
    found = []
    for alpha in ds.frac_relevant.values[ds.frac_relevant.values <= largest + 1e-9]:
        needed = log_needed(success(ds).sel(frac_relevant=alpha, drop=True))
        cnn, vit = (needed.sel(network=n, drop=True) for n in ("CNN", "ViT"))
        found.append(Estimate(*np.exp(stats.paired_difference(cnn, vit)).tolist()))
    return found


def extra_exponent(ds: xr.Dataset) -> Estimate:
    r"""By how much the exponent of $N_{50}$ in $1/\alpha_*$ is larger for the CNN, seed by seed."""
    log_inverse = -np.log(ds.frac_relevant)
    log_inverse = log_inverse - log_inverse.mean()
    slope = (log_needed(success(ds)) * log_inverse).sum("frac_relevant") / (log_inverse**2).sum()
    return stats.paired_difference(*(slope.sel(network=n, drop=True) for n in ("CNN", "ViT")))


def success_at(ds: xr.Dataset, **where: Any) -> Estimate:
    """The success rate of some cells, with its Wilson interval."""
    return stats.share(success(ds).sel(where, drop=True))


# ---------------------------------------------------------------------------- iterations


def over_inverse(y: xr.DataArray) -> xr.DataArray:
    r"""The same measurement over $1/\alpha_*$."""
    y = y.assign_coords(inverse=("frac_relevant", 1 / y.frac_relevant.values))
    y = y.swap_dims(frac_relevant="inverse").drop_vars("frac_relevant")
    y.inverse.attrs = {"long_name": "inverse fraction of relevant tokens", "symbol": r"1/\alpha_*"}
    return y


def iterations(ds: xr.Dataset, network: str) -> xr.DataArray:
    return over_inverse(of_network(ds, network).stopped_at.astype(float).assign_attrs(
        ds.stopped_at.attrs))  # fmt: skip


def straightness(network: str) -> Callable[[xr.Dataset], Estimate]:
    r"""Squared correlation of the seed-mean of $T$ with $1/\alpha_*$."""

    def measure(ds: xr.Dataset) -> Estimate:
        times = iterations(ds, network)
        return stats.jackknife(
            lambda t: xr.corr(t.mean("seed"), t.inverse, dim="inverse") ** 2, times
        )

    return measure


def slope_ratio(ds: xr.Dataset) -> Estimate:
    r"""The CNN's slope of $T$ in $1/\alpha_*$ over the ViT's."""
    cnn, vit = (stats.linear_law(iterations(ds, n), "inverse").slope for n in ("CNN", "ViT"))
    return quotient(cnn, vit)


def lr_exponent(ds: xr.Dataset) -> Estimate:
    r"""The exponent of the ViT's $T$ in $\eta$, for step sizes up to 1, at the first fraction."""
    return stats.power_law(times_by_lr(ds), "lr", window=(0.0, 1.0)).slope


def times_by_lr(ds: xr.Dataset) -> xr.DataArray:
    times = of_network(ds, "ViT").stopped_at.sel(frac_relevant=0.4, drop=True)
    return times.astype(float).assign_attrs(ds.stopped_at.attrs)


# ----------------------------------------------------------------- initial error and noise


def lost(ds: xr.Dataset, along: str) -> Estimate:
    """Success rate in the lower half of an axis minus that in the upper half."""
    rate, values = success(ds), ds[along].values
    upper = values > (values.min() + values.max()) / 2
    return stats.paired_difference(rate.isel({along: ~upper}), rate.isel({along: upper}))


def noise_correlation(ds: xr.Dataset) -> Estimate:
    """Rank correlation of the test loss with the noise, from 0.05 on, at the most samples."""
    loss = with_most(at_end(ds.test_loss))
    return stats.rank_correlation(loss.sel(noise=slice(0.05, None)), "noise")


def same_outcome(ds: xr.Dataset) -> Estimate:
    """Share of trials with noise 0.01 that succeed or fail as they do without noise."""
    rate = success(ds)
    same = rate.sel(noise=0.01, drop=True) == rate.sel(noise=0.0, drop=True)
    return stats.share(same.astype(float))


# ----------------------------------------------------------------------------- attention


def final_attention(ds: xr.Dataset, role: int | None = None, **where: Any) -> Estimate:
    """Attention on label-relevant tokens at the end, of all queries or of those of a role."""
    y = ds.attention if role is None else ds.attention_from.isel(query=role, drop=True)
    return stats.mean(at_end(with_most(y)).sel(where, drop=True))


def rise(ds: xr.Dataset, **where: Any) -> xr.DataArray:
    """By how much training raises the attention on label-relevant tokens."""
    return (at_end(ds.attention) - ds.attention.isel(step=0, drop=True)).sel(where, drop=True)


def with_most(ds: Any) -> Any:
    """The part of a Dataset or measurement with the most samples."""
    return ds.sel(samples=ds.samples.max(), drop=True) if "samples" in ds.dims else ds


def attention_rise(reading: str) -> Callable[[xr.Dataset], Estimate]:
    return lambda ds: stats.mean(rise(with_most(ds), reading=reading))


def shared_rise(ds: xr.Dataset) -> Estimate:
    """The rise of attention with a shared read-out, over that with one per position."""
    ds = with_most(ds)
    return stats.paired_ratio(rise(ds, reading="shared read-out"), rise(ds, reading="per position"))


def smallest_rise(ds: xr.Dataset) -> Estimate:
    ds = with_most(ds)
    return stats.worst([stats.mean(rise(ds, variation=v)) for v in ds.variation.values], "low")


def lowest_success(ds: xr.Dataset) -> Estimate:
    ds = with_most(ds)
    return stats.worst([success_at(ds, variation=v) for v in ds.variation.values], "low")


def rest_of_attention(ds: xr.Dataset) -> xr.DataArray:
    rest = 1 - ds.attention
    rest.attrs = {"long_name": "attention on other tokens"}
    return rest


def rest_exponent(ds: xr.Dataset) -> Estimate:
    r"""The exponent of $1-$ attention in $t$, over the last decade of steps."""
    last = float(ds.step[-1])
    return stats.power_law(rest_of_attention(ds), "step", window=(last / 10, last)).slope


def log_growth(ds: xr.Dataset) -> Estimate:
    r"""Correlation of $\|q_1\|^2$ with $\log t$, over the last decade of steps."""
    late = ds.step >= ds.step[-1] / 10
    norm2, log_t = ds.query_norm.isel(step=late) ** 2, np.log(ds.step.isel(step=late))
    return stats.mean(xr.corr(norm2, log_t, dim="step"))


# ------------------------------------------------------------------------- sparsification


def sparse_loss(ds: xr.Dataset, rule: str, sparsity: float, when: int) -> xr.DataArray:
    return ds.test_loss.sel(rule=rule, sparsity=sparsity, drop=True).isel(step=when, drop=True)


def gain(rule: str, when: int, sparsity: float = 0.2) -> Callable[[xr.Dataset], Estimate]:
    """Test loss after sparsification over that without."""
    return lambda ds: stats.paired_ratio(
        sparse_loss(ds, rule, sparsity, when), sparse_loss(ds, rule, 0.0, when)
    )


def against_random(rule: str, when: int, sparsity: float = 0.2) -> Callable[[xr.Dataset], Estimate]:
    """Test loss after sparsification by a rule over that at random."""
    return lambda ds: stats.paired_ratio(
        sparse_loss(ds, rule, sparsity, when), sparse_loss(ds, "random", sparsity, when)
    )
