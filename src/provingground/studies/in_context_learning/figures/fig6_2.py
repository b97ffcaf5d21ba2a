"""Figure 6.2: queries, keys, attention and neurons of one trained model."""

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, curve, equals
from provingground.stats import Estimate, Everywhere, everywhere, first, last, mean, paired_ratio
from provingground.study import Experiment

from .. import theory
from .fig6_5 import error_flat, large_slope, smallest_cost_less
from .graphs import by_laplacian, irrelevant_free, irrelevant_untouched, loss_by_score
from .shared import (
    NAMES,
    TRAINED,
    exists,
    large,
    large_share_of,
    margin_late,
    opposite_are_small,
    row_norm,
    small_grow,
    time_to_fit,
    two_groups,
)

# ---------------------------------------------------------------- (a) queries and keys


def both(ds: xr.Dataset, what: str) -> xr.DataArray:
    """Queries and keys, side by side."""
    pair = [ds[f"query_{what}"], ds[f"key_{what}"]]
    return xr.concat(pair, "side", combine_attrs="drop").assign_coords(side=["query", "key"])


def root_log(ds: xr.Dataset) -> xr.DataArray:
    return np.log(ds.n_relevant.astype(float)) ** 0.5


def small_share(ds: xr.Dataset) -> xr.DataArray:
    return 1 / ds.n_relevant + 1 / (ds.dim - ds.n_relevant)


@claim("Proposition 6.4.1 (6.17), constant 1", above(1))
def own_projection(ds: xr.Dataset) -> Everywhere:
    """in domain queries and keys end over sqrt(log M_1) along their own pattern (ratio)"""
    return everywhere(mean, last(both(ds, "own")).sel(domain="in", drop=True) / root_log(ds))


@claim("Figure 6.2(a)", above(3))
def norms_grow(ds: xr.Dataset) -> Everywhere:
    """the norms of queries and keys grow more than threefold (in domain)"""
    y = both(ds, "norm").sel(domain="in", drop=True)
    return everywhere(paired_ratio, last(y), first(y))


@claim("Figure 6.2(a), in domain", above(0.8))
def own_in(ds: xr.Dataset) -> Everywhere:
    """in domain the projection on the own pattern is over 0.8 of the norm"""
    end = last(both(ds, "own")), last(both(ds, "norm"))
    return everywhere(paired_ratio, *(y.sel(domain="in", drop=True) for y in end))


@claim("Figure 6.2(a)", above(0.8), expected="fails", because=(irrelevant_untouched,))
def own_out(ds: xr.Dataset) -> Everywhere:
    """out of domain the projection on the own pattern is over 0.8 of the norm"""
    end = last(both(ds, "own")), last(both(ds, "norm"))
    return everywhere(paired_ratio, *(y.sel(domain="out", drop=True) for y in end))


@claim("Proposition 6.4.1 (6.19), constant 1", below(1))
def irrelevant_small(ds: xr.Dataset) -> Estimate:
    """along irrelevant patterns the query is below sqrt(log M_1) (1/M_1 + 1/M_2) (ratio)"""
    return mean(last(ds.query_irrelevant) / (root_log(ds) * small_share(ds)))


@claim("Proposition 6.4.1 (6.18), constant 1", below(1), expected="fails", because=(by_laplacian,))
def relevant_small(ds: xr.Dataset) -> Estimate:
    """along other relevant patterns the query is below sqrt(log M_1) (1/M_1 + 1/M_2) (ratio)"""
    return mean(last(ds.query_partner) / (root_log(ds) * small_share(ds)))


def draw_projections(ds: xr.Dataset):
    fig, axes = plot.figure(2, 2, title="Queries and keys during training")
    for domain, ax in zip(NAMES, axes[:2], strict=True):
        part = ds.sel(domain=domain)
        for name, words in (("query_norm", "query, norm"), ("query_own", "query, own pattern")):
            plot.curve(ax, part[name], "step", label=words)
        few = part.isel(step=slice(1, None, 4))  # keys do as queries do: points on the lines
        for name, words in (("key_norm", "keys, norm"), ("key_own", "keys, own pattern")):
            plot.curve(ax, few[name], "step", label=words, line=False)
        ax.set_ylabel("norm and projection")
        ax.set_ylim(bottom=0)
        ax.set_title(NAMES[domain])
    for name, words in (
        ("query_partner", "other relevant, largest"),
        ("query_others", "other relevant, mean"),
        ("query_irrelevant", "irrelevant, largest"),
    ):
        plot.curve(axes[2], ds[name], "step", label=words)
    axes[2].set_ylabel("projection of the query")
    coupling = ds.coupling.assign_coords(
        key_pattern=np.arange(1, 1 + ds.sizes["key_pattern"]),
        query_pattern=np.arange(1, 1 + ds.sizes["query_pattern"]),
    )
    plot.heatmap(axes[3], coupling, "query_pattern", "key_pattern", centre=0.0)
    return fig


# ----------------------------------------------------------------------- (b) attention


def uniform(ds: xr.Dataset, patterns: int) -> float:
    """Attention on the query's pattern of queries and keys that are still delta."""
    eye = np.eye(patterns)
    start = float(ds.delta) ** 2 * eye
    return float(theory.patterned_attention(start, eye, float(ds.beta), float(ds.alpha_test)))


@claim("Corollary 6.4.3, Figure 6.2(b)", above(0.95))
def attention_in(ds: xr.Dataset) -> Estimate:
    """in domain the attention on the query's pattern comes close to 1 (over 0.95)"""
    return mean(last(ds.attention).sel(domain="in"))


@claim(
    "Corollary 6.4.3, Figure 6.2(b)",
    above(0.95),
    expected="fails",
    because=(loss_by_score, irrelevant_free),
)
def attention_out(ds: xr.Dataset) -> Estimate:
    """out of domain, too, the attention on the query's pattern comes close to 1 (over 0.95)"""
    return mean(last(ds.attention).sel(domain="out"))


@claim(
    "(E.55), at the start",
    equals(1, within=0.05),
    rivals={"all of it": curve("attention", lambda ds: 0.5 + 0 * ds.step)},
)
def attention_start(ds: xr.Dataset) -> Everywhere:
    """it starts as a softmax with scores delta^2 beta^2 has it (ratio)"""
    expected = xr.DataArray([uniform(ds, int(ds.n_relevant)), uniform(ds, 3)], dims="domain")
    return everywhere(mean, first(ds.attention) / expected)


def margin_ratio(ds: xr.Dataset) -> xr.DataArray:
    """The margin in domain over (E.61), or over 1 where that is larger."""
    s = {n: float(ds[n]) for n in ("lr", "alpha", "beta", "delta", "width")}
    later = ds.isel(step=slice(1, None))
    bound = theory.margin_prediction(later.step, **s, patterns=float(ds.n_relevant))
    return later.margin.sel(domain="in", drop=True) / np.minimum(bound, 1)


@claim("(E.50), (E.61), constant 1", above(1), expected="fails", because=(margin_late,))
def margin_bound(ds: xr.Dataset) -> Everywhere:
    """the margin in domain is over that of (E.61), until it is 1 (ratio)"""
    return everywhere(mean, margin_ratio(ds))


def draw_attention(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Attention on contexts with the query's pattern")
    for domain, name in NAMES.items():
        plot.curve(left, ds.attention.sel(domain=domain), "step", label=name)
        plot.curve(right, ds.attn_leak.sel(domain=domain), "step", label=name)
    left.set_ylim(0, 1)
    right.set_ylim(0, 1)
    return fig


# ------------------------------------------------------------------- (c), (d) neurons


@claim("Theorem 6.3.7 (6.14)", above(0.5))
def large_share(ds: xr.Dataset) -> Estimate:
    """over half of the neurons are large (norm of r_i at least 1)"""
    return mean(large_share_of(ds))


@claim("Proposition 6.4.5 (6.21), Figure 6.2(c), constant 1", below(1))
def feature_aligned(ds: xr.Dataset) -> Estimate:
    """the cosine of every large neuron's feature part with the mean pattern is over 1 - 1/M_2"""
    least = last(ds.cos_mu_bar).where(large(ds)).min("neuron")
    return mean((1 - least) * (ds.dim - ds.n_relevant))


@claim(
    "Theorem 6.3.7 (6.14), constant 1",
    below(1),
    expected="fails",
    because=(small_grow, opposite_are_small),
)
def small_norm(ds: xr.Dataset) -> Estimate:
    """neurons that are not large have a norm below 1 / sqrt(M_2) (largest, ratio)"""
    rest = row_norm(ds).where(exists(ds) & ~large(ds)).max("neuron")
    return mean(rest / theory.small_norm_bound(ds.dim - ds.n_relevant))


@claim("Proposition 6.4.5 (6.22), Figure 6.2(d), constant 1", below(1))
def label_aligned(ds: xr.Dataset) -> Estimate:
    """the cosine of every large neuron's label part with sign(a_i) q is over 1 - 1/M_1"""
    least = (last(ds.cos_q) * ds.neuron_sign).where(large(ds)).min("neuron")
    return mean((1 - least) * ds.n_relevant)


@claim("(E.27), constant 1", above(1))
def lucky_norm(ds: xr.Dataset) -> Estimate:
    """lucky neurons end with the norm that (E.27) gives for the time to fit, or more (ratio)"""
    return mean(ds.lucky_size / fitted_norm(ds))


def started(ds: xr.Dataset) -> xr.DataArray:
    """The norm of a neuron's weights before training."""
    return ((ds.dim + ds.label_dim) / ds.width) ** 0.5


def fitted_norm(ds: xr.Dataset) -> xr.DataArray:
    return theory.lucky_norm(
        time_to_fit(ds), ds.lr, ds.alpha, ds.beta, ds.delta, ds.n_relevant, ds.width
    )


@claim(
    "(E.29)",
    equals(1, within=0.25),
    kind="corrected",
    law=curve("never_size", lambda ds: started(ds)),
    rivals={
        "as (E.29) has it": curve(
            "never_size",
            lambda ds: theory.unlucky_norm(time_to_fit(ds), ds.lr, ds.batch, ds.width),
        )
    },
)
def unlucky_stay(ds: xr.Dataset) -> Estimate:
    """neurons that are never lucky keep the norm they start with, sqrt((d_X + d_Y) / m) (ratio)"""
    return mean(ds.never_size / started(ds))


@claim("(E.29), constant 1", below(1), expected="fails", because=(unlucky_stay,))
def unlucky_norm(ds: xr.Dataset) -> Estimate:
    """neurons that are never lucky end below the norm that (E.29) gives for the time to fit"""
    return mean(ds.never_size / theory.unlucky_norm(time_to_fit(ds), ds.lr, ds.batch, ds.width))


@claim("Lemma E.4.10", above(0.99), expected="fails", because=(opposite_are_small,))
def lucky_stay(ds: xr.Dataset) -> Estimate:
    """lucky neurons stay active for their prompts (share)"""
    return mean(ds.lucky_active)


def draw_neurons(part: str):
    """Norm against cosine of some neurons on their way, and all neurons at the end."""
    norm, cos = {
        "feature": ("neuron_norm", "cos_mu_bar"),
        "label": ("label_norm", "cos_q"),
    }[part]

    def draw(ds: xr.Dataset):
        fig, (left, right) = plot.figure(1, 2, title=f"Neurons: their {part} part", seeds=1)
        one = ds.isel(seed=0)
        for sign, colour in ((1, plot.PALETTE[0]), (-1, plot.PALETTE[1])):
            words = f"$a_i {'>' if sign > 0 else '<'} 0$"
            at = np.flatnonzero(one.neuron_sign.values == sign)
            for k, i in enumerate(at[:5]):
                x, y = (one[name].isel(neuron=i).values for name in (cos, norm))
                left.plot(x, y, color=colour, linewidth=0.9, label=words if k == 0 else None)
                left.plot(x[-1], y[-1], "o", color=colour, markersize=3)
            x, y = (one[name].isel(step=-1).values[at] for name in (cos, norm))
            right.plot(x, y, ".", color=colour, markersize=3, label=words)
        for ax, words in ((left, "five of each, on their way"), (right, "all, at the end")):
            ax.set(xlim=(-1.05, 1.05), xlabel=plot.label(ds[cos]), ylabel=plot.label(ds[norm]))
            ax.set_title(words)
        return fig

    return draw


EXPERIMENTS = (
    Experiment(
        "fig6_2a",
        says="Norms of queries and keys during training, and their projections on patterns.",
        trainings=TRAINED,
        claims=(own_projection, norms_grow, own_in, own_out, irrelevant_small, relevant_small),
        figure=draw_projections,
    ),
    Experiment(
        "fig6_2b",
        says="Attention on context examples that share the query's relevant pattern.",
        trainings=TRAINED,
        claims=(attention_in, attention_out, attention_start, margin_late, margin_bound),
        figure=draw_attention,
    ),
    Experiment(
        "fig6_2c",
        says="The feature parts of neurons: their norm, and their angle to the mean pattern.",
        trainings=TRAINED,
        # The last three explain Figure 6.5, which is at alpha = 0.6.
        claims=(
            large_share,
            feature_aligned,
            two_groups,
            small_grow,
            small_norm,
            smallest_cost_less,
            large_slope,
            error_flat,
        ),
        figure=draw_neurons("feature"),
    ),
    Experiment(
        "fig6_2d",
        says="The label parts of neurons: their norm, and their angle to q.",
        trainings=TRAINED,
        claims=(
            label_aligned,
            lucky_norm,
            unlucky_stay,
            unlucky_norm,
            opposite_are_small,
            lucky_stay,
        ),
        figure=draw_neurons("label"),
    ),
)
