"""How the Datasets of the experiments are drawn."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats

from . import measures, suites, theory
from .deep import TOKEN_TYPES
from .inference import TYPES
from .span import MATCHED_SHARE

Draw = Callable[[xr.Dataset], Any]


def draw_errors(probe: str, by: str, title: str, window: Any = None) -> Draw:
    """Error against examples for each value of `by`; examples needed against `by`."""

    def draw(ds: xr.Dataset):
        fig, (left, right) = plot.figure(1, 2, title=title)
        part = measures.sweep(ds, by)
        plot.curve(left, part[probe], "l_test", hue=by, log="x")
        found = measures.needed(ds, probe, by, window)
        if np.isfinite(found.points.value).any():
            at = np.isfinite(found.points.value)
            plot.law(right, found.points.isel({by: at}), by, fit=found.law, label="measured")
            at = part[by].values[at.values]
            middle = np.exp(np.log(found.points.value).mean().item())
            bound = middle * (at / np.exp(np.log(at).mean())) ** -2.0
            plot.theory_curve(right, at, bound, "bound: exponent $-2$")
        right.set_ylabel(rf"examples for an error of {measures.LEVEL}, $l^*$")
        return fig

    return draw


def draw_condition(ds: xr.Dataset):
    """Figure 7.5: CoT and ICL, with Condition 7.3.2 and without it."""
    fig, axes = plot.figure(1, 2, title="With and without Condition 7.3.2")
    for ax, name in zip(axes, ("condition holds", "condition fails"), strict=True):
        part = measures.at(ds, name)
        plot.curve(ax, part.cot_error, "l_test", label="CoT", log="x")
        plot.curve(ax, part.icl_error, "l_test", label="ICL", log="x")
        plot.curve(ax, part.icl_blind, "l_test", label="ICL without output rows", log="x")
        limit = float(part.infeasible.mean())
        plot.theory_curve(ax, part.l_test, np.full(part.sizes["l_test"], limit), "inputs that fail")
        ax.set_ylabel("test error")
        ax.set_title(f"{name}: $\\rho_o^f = {float(part.rho_io.mean()):.2f}$")
        ax.set_ylim(-0.02, 0.6)
    return fig


def draw_map(ds: xr.Dataset):
    """Figure 7.2: attention of a prompt with six examples."""
    k = ds.sizes["k"]
    fig, (ax,) = plot.figure(title="Attention of each reasoning step", width=7.0, height=1.9)
    p = ds.attention_map.assign_coords(column=np.arange(ds.sizes["column"]), k=np.arange(1, k + 1))
    p.column.attrs = {"long_name": "example.step of the column"}
    p.k.attrs = {"long_name": "step of the query", "symbol": "k"}
    names = [f"{i // k + 1}.{i % k + 1}" for i in range(ds.sizes["column"])]
    plot.attention_map(ax, p, rows=[str(i + 1) for i in range(k)], cols=names)
    return fig


def draw_dynamics(ds: xr.Dataset):
    """Figure 7.6: attention on four types of columns, and on matched ones by reasoning step."""
    fig, (left, right) = plot.figure(1, 2, title="Attention along training")
    lr = measures.lr_of(ds)
    y = measures.in_time(measures.by_type(ds), lr)
    for kind in TYPES:
        plot.curve(left, y.sel(type=kind), "step", label=kind, log="x")
    split = measures.crossing(measures.other_steps(ds), 0.05) * lr
    plot.theory_curve(left, [split, split], [0, 1], "other steps below 0.05")
    left.set_ylabel("attention")
    matched = ds.attention.isel(type=measures.MATCHED)
    for k in range(ds.sizes["k"]):
        plot.curve(
            right, measures.in_time(matched.isel(k=k), lr), "step", label=f"step {k + 1}", log="x"
        )
    right.set_ylabel("attention on matched columns")
    return fig


def draw_vote(ds: xr.Dataset):
    """Network against vote, all settings and lengths."""
    fig, axes = plot.figure(1, 2, title="The trained network and a vote", seeds=ds.sizes["seed"])
    for ax, probe, words in zip(
        axes, ("cot_error", "icl_error"), ("CoT error", "ICL error"), strict=True
    ):
        mean = ds[probe].mean("seed")
        kinds = {
            "$\\alpha'$ varied": "alpha_test=",
            "$\\tau^f$ varied": "tau=",
            "$\\rho^f$ varied": "rho=",
            "Figure 7.5": "condition",
        }
        names = list(measures.table(ds))
        for i, (label, start) in enumerate(kinds.items()):
            rows = [j for j, n in enumerate(names) if n.startswith(start)]
            x, y = (mean.sel(by=b).isel(setting=rows).values.ravel() for b in ("vote", "network"))
            ax.plot(x, y, plot.MARKERS[i], color=plot.PALETTE[i], markersize=4, label=label)
        plot.theory_curve(ax, [0, 0.8], [0, 0.8], "equal")
        ax.set(xlabel=f"{words} of the vote", ylabel=f"{words} of the network")
    return fig


def draw_laws(ds: xr.Dataset):
    """The examples needed, one factor at a time."""
    fig, axes = plot.figure(
        1, 3, title="Examples for an error of 0.05, by the vote", seeds=ds.sizes["seed"]
    )
    for ax, by in zip(axes, ("alpha_test", "tau", "rho"), strict=True):
        found = measures.needed(ds, "cot_error", by)
        plot.law(ax, found.points, by, fit=found.law, label="CoT")
        real = measures.sweep(ds, by)
        at = {n: real[n].mean("seed").values for n in ("alpha_test", "tau", "rho") if n != by}
        at |= {by: real[by].values}
        bound = theory.examples_needed(
            at["alpha_test"], at["tau"], at["rho"], measures.PLAIN.n_patterns
        )
        plot.theory_curve(ax, real[by], bound, "(7.20), constant 1")
        ax.set_ylabel("examples needed, $l^*$")
    return fig


def draw_loss(ds: xr.Dataset):
    """The loss against time, its law, and the recursion of stage two."""
    fig, (ax,) = plot.figure(title="Training loss", width=4.2)
    lr = measures.lr_of(ds)
    y = measures.in_time(ds.test_loss, lr)
    plot.law(ax, y, "step", fit=stats.power_law(y, "step", window=measures.LATE))
    steps = np.arange(1, int(ds.step[-1]) + 1)
    plot.theory_curve(ax, lr * steps, measures.recursion(lr, len(steps))[1:], "stage two, no $1/K$")
    slow = measures.recursion(lr, len(steps), share=measures.PLAIN.n_steps)
    plot.theory_curve(ax, lr * steps, slow[1:], "stage two with the paper's $1/K$")
    return fig


def draw_times(by: str, title: str, bound: float, window: Any = None) -> Draw:
    def draw(ds: xr.Dataset):
        fig, (ax,) = plot.figure(title=title)
        y = measures.times(ds)
        plot.law(ax, y, by, fit=stats.power_law(y, by, window), predicted=bound)
        return fig

    return draw


def draw_example(ds: xr.Dataset):
    """Figure 7.1: errors by input, and the end-to-end matrix that decides them."""
    fig, (left, right) = plot.figure(1, 2, title="Example 1: two inputs, two steps")
    case = str(ds.by[0].item())
    part = ds.sel(by=case).isel(setting=0)
    plot.curve(left, part.cot_error, "l_test", label="CoT", log="x")
    for i in range(2):
        y = part.icl_from.isel(start=i)
        plot.curve(left, y, "l_test", label=f"ICL, input {i + 1}", log="x")
    left.set_ylabel(f"test error ({case})")
    b = theory.k_step(suites.EXAMPLE_1)
    names = [r"$\mu'_1$", r"$\mu'_2$"]
    table = xr.DataArray(
        np.broadcast_to(b, (ds.sizes["seed"], 2, 2)),
        dims=("seed", "input", "output"),
        coords={"input": [1, 2], "output": [1, 2]},
        attrs={"long_name": "probability", "symbol": "B^f"},
    )
    table.input.attrs, table.output.attrs = {"long_name": "input"}, {"long_name": "output"}
    plot.attention_map(right, table, rows=names, cols=names)
    return fig


def draw_span(ds: xr.Dataset):
    """Attention against the sum of a test pattern's coefficients."""
    fig, (ax,) = plot.figure(title="Test patterns that lean to the uniform mixture", width=4.2)
    plot.curve(ax, ds.span_attention, "mixture")
    predicted = measures.predicted_attention(ds).mean("seed")
    plot.theory_curve(ax, ds.mixture, predicted, "from $w_1$ alone")
    base = np.full(ds.sizes["mixture"], MATCHED_SHARE)
    plot.theory_curve(ax, ds.mixture, base, "share of the columns")
    return fig


def draw_layers(title: str, case: str = "") -> Draw:
    """Attention of the best head of every layer on each type of columns."""

    def draw(ds: xr.Dataset):
        at = ds.sel(encoding=case) if case else ds
        fig, axes = plot.figure(1, ds.sizes["layer"], title=title)
        head = at.attention.isel(step=-1, type=measures.MATCHED).mean("seed").argmax("head")
        for i, ax in enumerate(axes):
            y = at.attention.isel(layer=i, head=int(head[i]), step=slice(1, None))
            for j, kind in enumerate(TOKEN_TYPES):
                if float(y.isel(type=j).max()) > 0:
                    plot.curve(ax, y.isel(type=j), "step", label=kind, log="x")
            ax.set_title(f"layer {i + 1}, head {int(head[i]) + 1}")
            ax.set(ylabel="attention", ylim=(-0.02, 1))
        return fig

    return draw
