"""How the Datasets of the experiments are drawn."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats

from . import measures, theory


def _label_axis(ax: Any, ds: xr.Dataset) -> None:
    ax.set_ylabel("labelled nodes for half of the trainings, $N_{50}$")
    ax.set_xlabel(plot.label(ds.frac_disc))


def _rate_map(ax: Any, y: xr.DataArray, x: str) -> None:
    plot.heatmap(ax, y, x, "samples", log="y", limits=(0, 1))


def draw_ablation(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Attention, encoding and the core ring")
    few, many = int(ds.samples[0]), int(ds.samples[-1])
    plot.curve(left, ds.test_loss.sel(samples=many), "step", hue="network")
    left.set_ylabel(rf"test hinge loss, $|\mathcal{{L}}| = {many}$")
    for n in (few, many):
        y = measures.end(ds.test_error).sel(samples=n)
        plot.curve(right, y, "network", label=rf"$|\mathcal{{L}}| = {n}$", line=False)
    right.set_ylabel("test error")
    right.set_xlabel("network")
    return fig


def draw_fractions(title: str, exponent: float):
    """The map of Figure 3.3(a), and the labels needed beside two predictions."""

    def draw(ds: xr.Dataset):
        fig, (left, right) = plot.figure(1, 2, title=title)
        _rate_map(left, measures.solved(ds), "frac_disc")
        found = measures.labels_at(ds)
        _needed(right, ds, found, exponent)
        return fig

    return draw


def _needed(ax: Any, ds: xr.Dataset, found: stats.Boundary, exponent: float) -> None:
    plot.law(ax, found.points, "frac_disc", fit=found.law, predicted=exponent, label="measured")
    x = np.geomspace(float(ds.frac_disc.min()), float(ds.frac_disc.max()), 100)
    cover = theory.labels_to_cover(x, measures.PLAIN.patterns)
    plot.theory_curve(ax, x, cover, "labels that cover all kinds")
    _label_axis(ax, ds)


def draw_confusion(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Labels needed and the confusion ratio")
    _rate_map(left, measures.solved(ds), "confusion_ratio")
    found = measures.labels_by_confusion(ds)
    plot.law(right, found.points, "agreement", fit=found.law, predicted=-2.0, label="measured")
    right.set_ylabel("labelled nodes for half of the trainings, $N_{50}$")
    return fig


def draw_coverage(ds: xr.Dataset):
    swept = "frac_disc" in ds.dims
    title = "Labels must cover every pattern and vote"
    fig, axes = plot.figure(1, 1 + swept, title=title, width=None if swept else 4.6)
    left, at = axes[0], measures.at_fraction(ds)
    for name in ds.network.values:
        rate = measures.solved(measures.at_network(name, at))
        plot.curve(left, rate, "samples", label=str(name), log="x")
    gt = measures.at_network("GT", at)
    for label, where, mark in (
        ("GT, labels cover all kinds", measures.covered(gt), "^"),
        ("GT, labels miss a kind", ~measures.covered(gt), "v"),
    ):
        rate = measures.solved(gt).where(where).mean("seed")
        left.plot(ds.samples, rate, mark, color=plot.GREY, label=label)
    n = np.geomspace(float(ds.samples[0]), float(ds.samples[-1]), 100)
    chance = theory.chance_to_cover(n, 0.4, measures.PLAIN.patterns)
    plot.theory_curve(left, n, chance, "chance to cover all kinds")
    left.set_ylabel(r"success rate, $\gamma_d = 0.4$")
    if swept:
        points = measures.labels_at(measures.at_network("GT", ds)).points
        plot.curve(axes[1], points, "frac_disc", label="GT", line=False, log="y")
        x = np.linspace(float(ds.frac_disc.min()), float(ds.frac_disc.max()), 100)
        cover = theory.labels_to_cover(x, measures.PLAIN.patterns)
        plot.theory_curve(axes[1], x, cover, "labels that cover all kinds half the time")
        _label_axis(axes[1], ds)
    return fig


def draw_flips(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Labels that contradict the vote", width=4.2)
    plot.curve(ax, ds.test_loss, "step", hue="frac_inconsistent")
    ends = [int(ds.step[0]), int(ds.step[-1])]
    for eps in ds.frac_inconsistent.values:
        plot.theory_curve(ax, ends, [theory.final_loss(eps)] * 2, r"$2\epsilon_0$")
    return fig


def draw_attention(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Concentration of attention")
    at = ds.sel(frac_disc=0.2)
    plot.curve(left, at.attention_relevant, "step", label="class-relevant nodes")
    plot.curve(left, 1 - at.attention_relevant, "step", label="all other nodes")
    plot.curve(left, at.train_loss, "step", label="training loss")
    for limit in (0.0, 1.0):
        plot.theory_curve(left, [0, int(ds.step[-1])], [limit] * 2, "limits of Lemma 3.4.5")
    left.set_ylabel(r"attention; loss ($\gamma_d = 0.2$)")
    end = measures.end
    plot.curve(right, ds.attention_relevant.isel(step=0, drop=True), "frac_disc", label="start")
    plot.curve(right, end(ds.attention_relevant), "frac_disc", label="end")
    plot.theory_curve(right, ds.frac_disc, np.ones(len(ds.frac_disc)), "limit of Lemma 3.4.5")
    right.set_ylabel("attention on class-relevant nodes")
    return fig


def draw_gcn_labels(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Labels that a GCN on the core ring needs")
    _rate_map(left, measures.solved(ds), "frac_disc")
    found = measures.labels_at(ds)
    plot.law(right, found.points, "frac_disc", fit=found.law, predicted=-4.0, label="GCN")
    _label_axis(right, ds)
    return fig


def draw_gcn_steps(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Steps of a GCN on the core ring", width=4.2)
    time = measures.hitting_time(ds)
    fit = stats.power_law(time, "frac_disc", (0.0, 0.4))
    plot.law(ax, time, "frac_disc", fit=fit, predicted=-2.0, label="GCN, core known")
    return fig


def draw_steps(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Steps of the GT and of a GCN on the core ring", width=4.2)
    for name in ds.network.values:
        time = measures.hitting_time(measures.at_network(name, ds))
        fit = stats.power_law(time, "frac_disc")
        plot.law(ax, time, "frac_disc", fit=fit, label=str(name))
    return fig


def draw_bias(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="The learned encoding and the winning margins")
    rings = slice(1, 3)
    plot.curve(left, ds.margin.sel(ring=rings), "ring", hue="setting")
    plot.curve(right, measures.end(ds.dist_bias).sel(ring=rings), "ring", hue="setting")
    for ax in (left, right):
        ax.set_xticks([1, 2, 3], ["1", "2", r"$\geq 3$"])
    return fig


def draw_step_size(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Steps needed over the step size", width=4.2)
    time = measures.hitting_time(ds)
    plot.law(ax, time, "lr", fit=stats.power_law(time, "lr"), predicted=-0.5)
    return fig


def draw_reduction(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Counts, nodes, noise and fresh samples", width=4.2)
    plot.curve(ax, ds.test_loss, "step", hue="form")
    return fig


def draw_encodings(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Other encodings", width=4.2)
    plot.curve(ax, ds.test_error, "step", hue="encoded")
    return fig


def draw_graph_level(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Classifying whole graphs", width=4.2)
    plot.curve(ax, ds.test_loss, "step", hue="samples")
    return fig
