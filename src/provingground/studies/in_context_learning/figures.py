"""How the Datasets of the experiments are drawn."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats

from . import measures, theory
from .baselines import LEARNERS
from .mechanism import IN, ORDERS, OUT

NAMES = ("in domain", "out of domain")
LENGTH = r"context length needed, $l^*$"


def from_here(ax: Any, x: float, words: str) -> None:
    """A vertical line at x, up to the top of the panel."""
    top = ax.get_ylim()[1]
    plot.theory_curve(ax, [x, x], [0, top], words)
    ax.set_ylim(0, top)


def draw_lengths(ds: xr.Dataset):
    """Error against the length of the context, the loss, and the length that is needed."""
    fig, axes = plot.figure(2, 2, title="Unseen tasks: contexts with few or many decisive patterns")
    for domain, ax in enumerate(axes[:2]):
        y = ds.test_error.isel(domain=domain, drop=True).assign_attrs(ds.test_error.attrs)
        plot.curve(ax, y, "length", hue="alpha_prime", log="x")
        for alpha in ds.alpha_prime.values:
            floor = theory.coverage_floor(alpha, ds.length.values)
            plot.theory_curve(ax, ds.length.values, floor, "coverage floor")
        ax.set_title(NAMES[domain])
    left, right = axes[2:]
    y = ds.test_loss.isel(domain=OUT, drop=True).assign_attrs(ds.test_loss.attrs)
    plot.curve(left, y, "length", hue="alpha_prime", log="x")
    left.set_ylim(bottom=0)
    left.set_title(NAMES[OUT])
    for domain, name in enumerate(NAMES):
        points = measures.needed_length(ds, domain).points
        plot.curve(right, points, "alpha_prime", label=name, line=False, log="xy")
    alpha = np.geomspace(0.2, 0.8, 50)
    plot.theory_curve(right, alpha, theory.floor_length(alpha, measures.LEVEL), "coverage floor")
    right.set_ylabel(f"{LENGTH} (2% error)")
    return fig


def draw_sums(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Out of domain, by the sum of coefficients")
    many = "kappa_prime" in ds.dims
    for ax, name in ((left, "sum_error"), (right, "sum_loss")):
        y = measures.by_sum(ds, name)
        plot.curve(ax, y, "coef_sum", hue="kappa_prime" if many else "", label="measured")
        from_here(ax, 1.0, "Theorem 6.3.4: from here on")
    return fig


def draw_decoder_lengths(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="The decoder: context length by fraction of decisive ones")
    for domain, ax in enumerate(axes):
        y = ds.test_error.isel(domain=domain, drop=True).assign_attrs(ds.test_error.attrs)
        plot.curve(ax, y, "length", hue="alpha_prime", log="x")
        ax.set_ylim(0, 0.5)
        ax.set_title(NAMES[domain])
    return fig


def draw_projections(ds: xr.Dataset):
    fig, axes = plot.figure(2, 2, title="Queries and keys during training")
    for domain, ax in enumerate(axes[:2]):
        part = ds.isel(domain=domain)
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


def draw_attention(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Attention on contexts with the query's pattern")
    for domain, name in enumerate(NAMES):
        plot.curve(left, ds.attention.isel(domain=domain), "step", label=name)
        plot.curve(right, ds.attn_leak.isel(domain=domain), "step", label=name)
    left.set_ylim(0, 1)
    right.set_ylim(0, 1)
    return fig


def some(ds: xr.Dataset, sign: int, count: int) -> Any:
    """The first neurons of the first seed whose read-out has this sign."""
    return np.flatnonzero(ds.neuron_sign.isel(seed=0).values == sign)[:count]


def draw_neurons(part: str):
    """Norm against cosine of some neurons on their way, and all neurons at the end."""
    norm, cos, ends = {
        "feature": ("neuron_norm", "cos_mu_bar", (-1.05, 1.05)),
        "label": ("label_norm", "cos_q", (-1.05, 1.05)),
    }[part]

    def draw(ds: xr.Dataset):
        fig, (left, right) = plot.figure(1, 2, title=f"Neurons: their {part} part", seeds=1)
        one = ds.isel(seed=0)
        for sign, colour in ((1, plot.PALETTE[0]), (-1, plot.PALETTE[1])):
            for k, i in enumerate(some(ds, sign, 5)):
                x, y = (one[name].isel(neuron=i).values for name in (cos, norm))
                words = f"$a_i {'>' if sign > 0 else '<'} 0$" if k == 0 else None
                left.plot(x, y, color=colour, linewidth=0.9, label=words)
                left.plot(x[-1], y[-1], "o", color=colour, markersize=3)
            at = one.neuron_sign.values == sign
            x, y = (one[name].isel(step=-1).values[at] for name in (cos, norm))
            words = f"$a_i {'>' if sign > 0 else '<'} 0$"
            right.plot(x, y, ".", color=colour, markersize=3, label=words)
        for ax, words in ((left, "five of each, on their way"), (right, "all, at the end")):
            ax.set(xlim=ends, xlabel=plot.label(ds[cos]), ylabel=plot.label(ds[norm]))
            ax.set_title(words)
        return fig

    return draw


def draw_pruning(ds: xr.Dataset):
    fig, axes = plot.figure(1, 3, title="Pruning neurons, out of domain")
    for ax, name in zip(axes, ("pruned_loss", "pruned_error"), strict=False):
        for order in ORDERS:
            y = measures.pruned(ds, order, name)
            plot.curve(ax, y.assign_attrs(ds[name].attrs), "pruned", label=order)
    rate = ds.pruned.values
    bound = theory.pruned_loss_bound(rate, measures.PRUNED_AT, 0.6, measures.PLAIN.n_relevant)
    plot.theory_curve(axes[0], rate, bound, "(E.109)")
    axes[1].set_ylim(-0.02, 1.02)
    norm = measures.row_norm(ds)
    axes[2].hist(
        norm.values[measures.exists(ds).values], 40, color=plot.PALETTE[5], label="neurons"
    )
    from_here(axes[2], measures.LARGE, r"$\mathcal{L}$: from here on")
    axes[2].set(xlabel=r"norm of $r_i$ at the end", ylabel="neurons (all seeds)")
    return fig


def draw_pruning_by_alpha(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Pruning by magnitude, out of domain")
    for ax, name in zip(axes, ("pruned_loss", "pruned_error"), strict=True):
        y = ds[name].isel(order=0, drop=True).assign_attrs(ds[name].attrs)
        plot.curve(ax, y, "pruned", hue="alpha_prime")
    axes[1].set_ylim(0, 0.55)
    return fig


def draw_small(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Pruning by magnitude, few neurons")
    for ax, name in zip(axes, ("pruned_loss", "pruned_error"), strict=True):
        y = measures.pruned(ds, "magnitude", name).assign_attrs(ds[name].attrs)
        plot.curve(ax, y, "pruned", hue="width")
    return fig


def draw_context(ds: xr.Dataset):
    fig, (left, middle, right) = plot.figure(1, 3, title="Length of the context in training")
    loss = ds.same_loss.assign_attrs(long_name="loss, tests as training")
    plot.curve(left, loss, "tokens", hue="alpha", log="x")
    error = ds.test_error.assign_attrs(long_name="error, fixed tests")
    plot.curve(middle, error, "tokens", hue="alpha", log="x")
    middle.set_ylim(-0.02, 0.5)
    found = measures.covered_length(ds)
    plot.law(right, found.points, "alpha", fit=found.law, predicted=-1.0, label="measured")
    right.set_ylabel(LENGTH)
    return fig


def draw_steps(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Steps to a training loss of 0.1")
    times = measures.over_power(ds.stopped_at)
    plot.curve(left, times, "power", label="measured", line=False)
    line = stats.linear_law(times, "power")
    plot.theory_curve(left, times.power, line(times.power), r"linear in $\alpha^{-2/3}$")
    left.set_ylim(bottom=0)
    y = ds.stopped_at.astype(float).assign_attrs(ds.stopped_at.attrs)
    law = stats.power_law(y, "alpha")
    plot.law(right, y, "alpha", fit=law, predicted=-2 / 3, label="measured")
    return fig


def draw_scaling(ds: xr.Dataset):
    swept = {n: y for n in SCALINGS if (y := measures.scaled(ds, n)).sizes[n] > 1}
    fig, axes = plot.figure(1, len(swept), title="Steps to a training loss of 0.1")
    for ax, (name, y) in zip(axes, swept.items(), strict=True):
        power = SCALINGS[name]
        plot.law(ax, y, name, fit=stats.power_law(y, name), predicted=power, label="measured")
    return fig


SCALINGS = {"delta": -2 / 3, "lr": -1.0, "width": 2 / 3}  # exponents by (E.61)


def draw_tasks(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Unseen tasks by the number of training tasks")
    for ax, name in zip(axes, ("test_error", "test_loss"), strict=True):
        plot.curve(ax, ds[name], "extra", hue="n_relevant")
        from_here(ax, 0.0, "Lemma E.4.11: from here on")
    return fig


def draw_learners(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="In context, and fitted on the context (out of domain)")
    for k, ax in enumerate(axes):
        part = ds.isel(alpha_prime=k)
        for number, name in enumerate(LEARNERS):
            y = part.test_error.isel(learner=number, drop=True)
            plot.curve(ax, y, "length", label=name, log="x")
        ax.set_ylim(-0.01, 0.5)
        ax.set_title(rf"$\alpha' = {float(part.alpha_prime):.1f}$")
    return fig


def draw_readings(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Scale of the read-out and of the initial weights")
    for ax, domain in zip(axes, (IN, OUT), strict=True):
        plot.curve(ax, ds.attention.isel(domain=domain, drop=True), "step", hue="reading")
        ax.set_ylim(0, 1)
        ax.set_title(NAMES[domain])
    return fig
