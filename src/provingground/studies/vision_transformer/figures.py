"""How the Datasets of the experiments are drawn."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats

from . import measures

NEEDED = "samples needed, $N_{50}$"


def through_points(found: stats.Boundary, power: float) -> Callable[[Any], Any]:
    """A power law through the middle of the measured boundary, for comparison."""
    points = found.points.dropna("frac_relevant")
    log_n, log_x = (np.log(points[k]).mean().item() for k in ("value", "frac_relevant"))
    return lambda x: np.exp(log_n + power * (np.log(x) - log_x))


def draw_success(ds: xr.Dataset):
    """The map of success rates, and the samples needed against the gap of the vote."""
    fig, (left, right) = plot.figure(1, 2, title="Samples that a ViT needs")
    found = measures.boundary(ds)
    plot.heatmap(
        left,
        measures.success(ds),
        "frac_relevant",
        "samples",
        log="y",
        limits=(0, 1),
        theory={r"paper: $N \propto \alpha_*^{-2}$": through_points(found, -2.0)},
    )
    by_gap = measures.boundary_by_gap(ds)
    plot.law(right, by_gap.points, "gap", fit=by_gap.law, predicted=-2.0, label="measured")
    right.set_ylabel(NEEDED)
    return fig


def draw_networks(ds: xr.Dataset):
    """Success rates of both networks, the samples that they need, and the ratio of these."""
    fig, axes = plot.figure(2, 2, title="Trained (ViT) against frozen attention (CNN)")
    needed, ratio = axes[2:]
    for ax, name, power in zip(axes[:2], ("ViT", "CNN"), (-2.0, -4.0), strict=True):
        found = measures.boundary(ds, name)
        rate = measures.success(measures.of_network(ds, name))
        words = rf"paper: $N \propto \alpha_*^{{{power:g}}}$"
        curves = {words: through_points(found, power)}
        plot.heatmap(ax, rate, "frac_relevant", "samples", log="y", limits=(0, 1), theory=curves)
        ax.set_title(name)
        plot.curve(needed, found.points, "frac_relevant", label=name, line=False, log="xy")
    needed.set_ylabel(NEEDED)
    costs = measures.cost_of_freezing(ds)
    plot.curve(ratio, costs, ds.frac_relevant, label="measured", line=False, log="x")
    ratio.set_ylim(bottom=0)
    ratio.set_ylabel("CNN over ViT, samples needed")
    return fig


def draw_start(axis: str):
    def draw(ds: xr.Dataset):
        fig, (ax,) = plot.figure(title="Success by the initial values", width=4.2)
        plot.curve(ax, measures.success(ds), "samples", hue=axis, log="x")
        return fig

    return draw


def draw_noise(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Noise of tokens")
    hue = "samples" if "samples" in ds.dims else ""
    plot.curve(left, measures.success(ds), "noise", hue=hue)
    loss = measures.at_end(ds.test_loss).assign_attrs(ds.test_loss.attrs)
    plot.curve(right, loss, "noise", hue=hue)
    plot.theory_curve(right, [0, float(ds.noise.max())], [measures.SUCCESS] * 2, "success below")
    return fig


def draw_steps(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Steps to a training loss of 0.001", width=4.2)
    for name in ("ViT", "CNN"):
        times = measures.iterations(ds, name)
        plot.curve(ax, times, "inverse", label=name, line=False)
        law = stats.linear_law(times, "inverse")
        words = rf"{name}: {law.constant.value:.0f} + {law.slope.value:.0f} $/\alpha_*$"
        plot.theory_curve(ax, times.inverse, law(times.inverse), words)
    ax.set_ylim(bottom=0)
    return fig


def draw_lr(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Steps to a training loss of zero", width=4.2)
    times = measures.times_by_lr(ds)
    law = stats.power_law(times, "lr", window=(0.0, 1.0))
    plot.law(ax, times, "lr", fit=law, predicted=-0.6, label="measured")
    return fig


def draw_attention(ds: xr.Dataset):
    fig, (left, middle, right) = plot.figure(
        1, 3, title="Attention during training, and success by samples"
    )
    rate, ds = measures.success(ds), measures.with_most(ds)
    most = int(ds.stopped_at.sel(reading="per position").max())
    shown = ds.isel(step=(ds.step <= most).values)
    plot.curve(left, shown.attention, "step", hue="reading")
    plain = shown.sel(reading="per position")
    for role, name in enumerate(("relevant", "confusion", "irrelevant")):
        at = plain.attention_from.isel(query=role, drop=True)
        plot.curve(middle, at, "step", label=f"{name} queries")
    for ax in (left, middle):
        ax.set_ylim(0, 1)
    plot.curve(right, rate.sel(reading=["per position", "shared read-out"]), "samples",
               hue="reading", log="x")  # fmt: skip
    return fig


def draw_rate(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Attention in the long run, logistic loss")
    late = ds.isel(step=slice(1, None))
    rest = measures.rest_of_attention(late)
    last = float(ds.step[-1])
    law = stats.power_law(rest, "step", window=(last / 10, last))
    plot.law(left, rest, "step", fit=law, label="measured")
    end = float(rest.isel(step=-1).mean())
    t = np.geomspace(last / 10, last, 50)
    plot.theory_curve(left, t, end * last / t, "Proposition 2: $1/t$")
    norm2 = (late.query_norm**2).assign_attrs(long_name="squared query norm", symbol=r"\|q_1\|^2")
    plot.curve(right, norm2, "step", label="relevant patterns", log="x")
    other2 = (late.other_norm**2).assign_attrs(norm2.attrs)
    plot.curve(right, other2, "step", label="irrelevant patterns", log="x")
    return fig


def draw_sparsity(ds: xr.Dataset):
    early = int(ds.step[measures.EARLY])
    fig, (left, right) = plot.figure(1, 2, title="Test loss after removing tokens")
    for ax, when, words in (
        (left, measures.EARLY, f"after {early} steps"),
        (right, -1, "at the end"),
    ):
        loss = ds.test_loss.isel(step=when, drop=True)
        plot.curve(ax, loss, "sparsity", hue="rule")
        ax.set_title(words)
    return fig


def draw_extensions(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Extensions of appendix A.6")
    plot.curve(left, measures.success(ds), "samples", hue="variation", log="x")
    ds = measures.with_most(ds)
    for name, y in (
        ("at the start", ds.attention.isel(step=0, drop=True)),
        ("at the end", measures.at_end(ds.attention)),
    ):
        plot.curve(right, y.assign_attrs(ds.attention.attrs), "variation", label=name, line=False)
    right.set_ylim(0, 1)
    return fig
