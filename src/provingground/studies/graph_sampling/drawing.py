"""How the Datasets of the experiments are drawn."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot

from . import measures, theory

NMSE = "test MSE / variance of the labels"


SCALES = rf"datasets 1, 2, 3: $(\hat p_1, \hat p_2)$ = {', '.join(measures.WORDS.values())}"


def _named(y: xr.DataArray, dim: str, words: str) -> xr.DataArray:
    """With words for an axis of labels."""
    y[dim].attrs["long_name"] = words
    return y


def _numbered(y: xr.DataArray) -> xr.DataArray:
    """With datasets by number."""
    y = y.assign_coords(dataset=[str(d).removeprefix("dataset ") for d in y.dataset.values])
    return _named(y, "dataset", "dataset")


def draw_match(ds: xr.Dataset):
    graphs = list(ds.graph.values)
    fig, axes = plot.figure(1, len(graphs), title=f"Colours: scales in training; {SCALES}")
    y = measures.end(ds.test_error)
    for ax, g in zip(axes, graphs, strict=True):
        at = _numbered(_named(y.sel(graph=g), "scales", "scales in training"))
        plot.curve(ax, at, "dataset", hue="scales", line=False)
        ax.set_ylim(0, None)
        ax.set_ylabel(NMSE)
        ax.set_title(f"{g} graph")
        _bound(ax, 0.15, "0.15")
    return fig


def _bound(ax: Any, y: float, label: str) -> None:
    low, high = ax.get_xlim()
    plot.theory_curve(ax, [low, high], [y, y], label)
    ax.set_xlim(low, high)


def draw_graphs(over: str, title: str) -> Callable[[xr.Dataset], Any]:
    """The error over an axis for the three graphs, a panel for each target."""

    def draw(ds: xr.Dataset):
        targets = list(ds.target.values)
        fig, axes = plot.figure(1, len(targets), title=title)
        norm = measures.norms(ds).mean("seed")
        y = measures.end(ds.test_error)
        for ax, target in zip(axes, targets, strict=True):
            for g in ds.degrees.values:
                label = rf"$\|A^*\|_\infty = {float(norm.sel(degrees=g)):.2f}$, $d = {g}$"
                at = y.sel(target=target, degrees=g)
                plot.curve(ax, at, over, label=label, log="xy")
            ax.set_ylabel(NMSE)
            ax.set_title(_labels(target))
        return fig

    return draw


def draw_scales(title: str, chosen: str) -> Callable[[xr.Dataset], Any]:
    """The error on the three datasets by scales in training, a panel for each target, and the MSE
    as it is with the scales of the paper's figure."""

    def draw(ds: xr.Dataset):
        targets = list(ds.target.values)
        fig, axes = plot.figure(
            1, len(targets) + 1, title=f"{title} (colours: scales in training); {SCALES}"
        )
        y = measures.end(ds.test_error)
        for ax, target in zip(axes, targets, strict=False):
            at = _numbered(_named(y.sel(target=target), "scales", "scales in training"))
            plot.curve(ax, at, "dataset", hue="scales", line=False)
            ax.set_ylabel(NMSE)
            ax.set_title(_labels(target))
            ax.set_ylim(0, None)
        mse = measures.end(ds.test_loss).sel(scales=chosen, target=targets[0])
        plot.curve(axes[-1], _numbered(mse), "dataset", label=f"{chosen}", line=False)
        axes[-1].set_title(f"{targets[0]}, trained with {chosen}")
        axes[-1].set_ylabel("test MSE")
        axes[-1].set_ylim(0, None)
        return fig

    return draw


def _labels(target: str) -> str:
    return f"labels of {target}" if "(" in target else f"labels of the {target}"


def draw_fast(title: str) -> Callable[[xr.Dataset], Any]:
    """Both errors of FastGCN on the three datasets: over the labels' variance, and as they are."""

    def draw(ds: xr.Dataset):
        fig, axes = plot.figure(1, 2, title=f"{title}; {SCALES}")
        panels = ((axes[0], "test_error", NMSE, ""), (axes[1], "test_loss", "test MSE", "y"))
        for ax, probe, text, log in panels:
            at = _numbered(measures.end(ds[probe]))
            plot.curve(ax, _named(at, "setting", "labels, draws"), "dataset", hue="setting",
                       line=False, log=log)  # fmt: skip
            ax.set_ylabel(text)
        axes[0].set_ylim(0, None)
        return fig

    return draw


def draw_fractions(ds: xr.Dataset):
    fig, (left, middle, right) = plot.figure(1, 3, title="How many nodes are sampled")
    at = measures.one_sample(ds)
    y = _named(measures.end(at.test_error), "graph", "graph")
    plot.curve(left, y, "fraction", hue="graph")
    left.set_ylabel(NMSE)
    left.set_ylim(0, None)
    f = np.linspace(float(ds.fraction.min()), 1, 200)
    inside = measures.inside(ds)
    plot.curve(middle, inside.noise_ratio.mean("graph", keep_attrs=True), "fraction",
               label="measured", line=False)  # fmt: skip
    plot.theory_curve(middle, f, theory.aggregation_noise(f), "exact: $(1-f)/f$")
    middle.set_ylabel(r"$\|(A^s-A^*)X\|^2\,/\,\|A^*X\|^2$")
    rows = inside.sel(graph="unbalanced")
    plot.curve(right, rows.row_error, "fraction", label="mean row", line=False)
    plot.curve(right, rows.row_error_max, "fraction", label="largest row", line=False)
    plot.theory_curve(
        right, rows.fraction, rows.row_error_theory.mean("seed"), "exact mean of a row"
    )
    p = measures.TRAINED[measures.trained_on("unbalanced")]
    share = measures.UNBALANCED["group_share"]
    degrees = (measures.PLAIN.degree_1, measures.PLAIN.degree_2)
    poly = [theory.reached_poly(degrees, (share, 1 - share), (p["p1"], p["p2"]), (v, v)) for v in f]
    plot.theory_curve(right, f, poly, r"(5.10): $\mathrm{poly}(\epsilon)$")
    right.set_ylabel(r"error of a row, $\|a_n^s-a_n^*\|_1$")
    right.set_title("unbalanced graph")
    right.set_ylim(0, None)
    return fig


def draw_optimisers(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="The printed step size does not train", width=4.6)
    for step, words in ((0, "before training"), (-1, "after training")):
        y = _named(ds.test_error.isel(step=step, drop=True), "form", "training")
        plot.curve(ax, y, "form", label=words, line=False)
    ax.set_ylabel(NMSE)
    _bound(ax, 1.0, "the mean of the labels")
    ax.set_ylim(0, None)
    return fig


def draw_algorithm(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="The parts of Algorithm 2", width=4.6)
    y = measures.error(ds)
    for m in ds.width.values:
        at = _named(y.sel(width=m), "form", "training")
        plot.curve(ax, at, "form", label=f"$m = {m}$", line=False)
    ax.set_ylabel(NMSE)
    ax.set_ylim(0, None)
    return fig
