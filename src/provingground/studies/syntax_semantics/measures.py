"""What is measured on the Datasets of the experiments, and how they are drawn."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.stats import Estimate

from . import theory
from .model import Config

PLAIN = Config()
OWN = "Own bound, confirmed on seeds that had no part in setting it."
PILOT = "Own bound, set on three trainings of other seeds."

RECORDS = 10  # a stage ends with the mean over its last records: a snapshot may be a burst of noise
LEARNED, MISSED = 0.56, 0.65  # hard losses: below, one of z + ζ, z - ζ is learned; above, none


def ending(y: xr.DataArray, stage: Literal[1, 2]) -> xr.DataArray:
    """The mean over the last records of a stage."""
    end = (y.sizes["stage"] + 1) // 2 if stage == 1 else y.sizes["stage"]
    return y.isel(stage=slice(end - RECORDS, end)).mean("stage")


def median_difference(a: xr.DataArray, b: xr.DataArray) -> Estimate:
    """Between medians of different trainings; both ends of both intervals, so over 95%."""
    x, y = stats.median(a), stats.median(b)
    return Estimate(x.value - y.value, x.low - y.high, x.high - y.low)


def exactly(value: Any) -> Estimate:
    """An extreme of all trainings: it has no interval."""
    return Estimate(*[float(value)] * 3)


def on(
    schedule: str, measure: Callable[[xr.Dataset], Estimate]
) -> Callable[[xr.Dataset], Estimate]:
    """A measure of one schedule."""
    return lambda ds: measure(ds.sel(schedule=schedule, drop=True))


def missed(ds: xr.Dataset, stage: Literal[1, 2]) -> Estimate:
    """The share of seeds that have learned nothing of the hard part."""
    return stats.share(ending(ds.loss_hard, stage) > MISSED)


def learned(ds: xr.Dataset, stage: Literal[1, 2]) -> Estimate:
    """The share of seeds that have learned at least one side of the hard part."""
    return stats.share(ending(ds.loss_hard, stage) < LEARNED)


def least_hard_loss(ds: xr.Dataset) -> Estimate:
    return exactly(ds.loss_hard.min())


def easy_change(ds: xr.Dataset) -> Estimate:
    return stats.mean(abs(ending(ds.loss_easy, 2) - ending(ds.loss_easy, 1)))


def over_fixed_point(ds: xr.Dataset) -> Estimate:
    """Norm of the easy signal at the end of stage 1, over that of the fixed point."""
    return stats.mean(ending(ds.w_norm, 1) / theory.easy_fixed_point(PLAIN))


def over_theorem2(ds: xr.Dataset) -> Estimate:
    r"""The same over $d\log(1/\epsilon_{W,1})$ with $\epsilon_{W,1} = 1/d$."""
    return stats.mean(ending(ds.w_norm, 1) / theory.theorem2_norm(PLAIN.dim, 1 / PLAIN.dim))


def over_burst(ds: xr.Dataset) -> Estimate:
    """Norm of the hard signal at the end of stage 1, over one step in the active region."""
    one = theory.burst(PLAIN.lr1, PLAIN.z_norm, PLAIN.zeta_norm)
    return stats.mean(ending(ds.v_norm, 1) / one)


def losses(ax: Any, ds: xr.Dataset, lines: bool = True) -> None:
    plot.curve(ax, ds.loss_easy, "stage", label="easy part, $K^1$")
    plot.curve(ax, ds.loss_hard, "stage", label="hard part, $K^2$")
    if lines:
        levels(ax)
    ax.set_ylabel("loss")


def levels(ax: Any, *, floor: bool = True) -> None:
    plot.theory_curve(ax, [0, 2], [theory.ONE_SIDED] * 2, r"one side: $\frac{3}{4}\log 2$")
    if floor:
        plot.theory_curve(ax, [0, 2], [theory.FLOOR] * 2, r"floor: $\frac{1}{2}\log 2$")


def draw_stages(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Easy first, hard after annealing")
    losses(left, ds.sel(schedule="annealed"))
    plot.curve(right, ds.loss_hard, "stage", hue="schedule")
    levels(right)
    return fig


# ------------------------------------------------------------------------------- controls


def at_temperature(settings: dict[str, Any]) -> dict[str, float]:
    r"""The noise of stage 2 that gives its temperature $T_2 = \eta_2\tau_\xi^2/2$."""
    lr1, lr2 = settings.get("lr1", PLAIN.lr1), settings.get("lr2", PLAIN.lr2)
    return {"noise2": float(np.sqrt(settings["temperature"] * lr1 / lr2))}


def learners(ds: xr.Dataset) -> xr.DataArray:
    """Which seeds learn the hard part in stage 2."""
    done = (ending(ds.loss_hard, 2) < LEARNED).astype(float)
    return done.assign_attrs(long_name="share of seeds that learn the hard part", symbol="")


def draw_temperature(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="It is the step, not the temperature", width=4.2)
    plot.curve(ax, learners(ds), "temperature", hue="lr2", log="x", line=False)
    ax.set_ylim(-0.05, 1.05)
    return fig


def gate(ds: xr.Dataset) -> stats.Boundary:
    """The step size at which half of the seeds learn the hard part, for each u."""
    return stats.phase_boundary(learners(ds), "lr2", "z_norm", 0.5, method="logistic")


def gate_constants(ds: xr.Dataset) -> list[Estimate]:
    r"""$\eta_cu^4$ of every u."""
    points = gate(ds).points
    columns = (points[k] * points.z_norm**4 for k in ("value", "low", "high"))
    return [Estimate(*map(float, e)) for e in zip(*(c.values for c in columns), strict=True)]


def draw_gate(ds: xr.Dataset):
    found = gate(ds)
    fig, (left, right) = plot.figure(
        1, 2, title="The step size that shuts out the hard part", seeds=ds.sizes["seed"]
    )
    plot.curve(left, learners(ds), "lr2", hue="z_norm", log="x")
    plot.law(right, found.points, "z_norm", fit=found.law, label="measured")
    plot.theory_curve(right, ds.z_norm, theory.critical_lr, "$500\\,u^{-4}$")
    right.set_ylabel(r"critical step size, $\eta_c$")
    return fig


def draw_scan(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="What the ratio of centre and offset decides")
    gated = (ending(ds.loss_hard, 1) > MISSED).astype(float)
    gated.attrs = {"long_name": "share of seeds that miss the hard part in stage 1"}
    plot.curve(left, gated, "z_norm", label="measured", line=False)
    edge = float((500 / PLAIN.lr1) ** 0.25)
    plot.theory_curve(left, [edge] * 2, [0, 1], r"$\eta_1 = 500\,u^{-4}$")
    left.set_ylim(-0.05, 1.05)
    for stage in (1, 2):
        y = ending(ds.loss_hard, stage)
        plot.curve(right, y, "z_norm", label=f"end of stage {stage}", line=False)
    ends = [float(ds.z_norm.min()), float(ds.z_norm.max())]
    plot.theory_curve(right, ends, [theory.ONE_SIDED] * 2, r"one side: $\frac{3}{4}\log 2$")
    plot.theory_curve(right, ends, [theory.FLOOR] * 2, r"floor: $\frac{1}{2}\log 2$")
    right.set_ylabel("loss of the hard part, $K^2$")
    return fig


# ------------------------------------------------------------------------- other settings


def in_each(ds: xr.Dataset, measure: Callable[[xr.Dataset], Estimate]) -> list[Estimate]:
    return [measure(ds.sel(preset=p, drop=True)) for p in ds.preset.values]


def hard_fall(ds: xr.Dataset) -> Estimate:
    return stats.paired_difference(ending(ds.loss_hard, 1), ending(ds.loss_hard, 2))


def draw_presets(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="The hard part in other settings", width=5.0)
    plot.curve(ax, ds.loss_hard, "stage", hue="preset")
    levels(ax)
    return fig


def draw_models(ds: xr.Dataset):
    fig, axes = plot.figure(1, 3, title="All weights, and the population in five numbers")
    for ax, name in zip(axes, ("loss_easy", "loss_hard", "w_norm"), strict=True):
        plot.curve(ax, ds[name], "stage", hue="model")
    return fig


def draw_literal(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="The paper's orders, taken literally")
    losses(left, ds, lines=False)
    plot.theory_curve(left, [0, 2], [theory.LOG2] * 2, r"nothing learned: $\log 2$")
    plot.curve(right, ds.w_norm, "stage", label=r"$\|\bar W\|_F$")
    plot.curve(right, ds.v_norm, "stage", label=r"$\|\bar V\|_F$")
    right.set_ylabel("norm of the signal")
    return fig


def draw_bias(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="An output bias lifts the floor")
    for ax, u in zip(axes, ds.z_norm.values, strict=True):
        plot.curve(ax, ds.loss_hard.sel(z_norm=u, output_bias=0), "stage", label="no bias")
        plot.curve(ax, ds.loss_hard.sel(z_norm=u, output_bias=1), "stage", label="trained bias")
        levels(ax)
        ax.set_title(f"$u = {u:g}$", loc="left")
    return fig


def draw_imbalance(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="More positives than negatives in a context")
    second = ds.sel(stage=slice(1, 2))  # in stage 1 single bursts are ten times as high
    plot.curve(left, second.loss_hard, "stage", hue="positives")
    plot.theory_curve(left, [1, 2], [theory.ONE_SIDED] * 2, r"one side: $\frac{3}{4}\log 2$")
    plot.curve(right, learners(ds), "positives", line=False)
    right.set_xlabel("positives in a context")
    right.set_ylim(-0.05, 1.05)
    return fig


def draw_variants(ds: xr.Dataset):
    fig, axes = plot.figure(1, 3, title="Without the mask, and with softmax")
    for ax, name in zip(axes, ("loss_easy", "loss_hard", "train_loss"), strict=True):
        plot.curve(ax, ds[name], "stage", hue="variant")
    plot.theory_curve(axes[1], [0, 2], [theory.SOFTMAX_FLOOR] * 2, "floor of softmax")
    return fig


# ---------------------------------------------------------------------------- Corollary 1


def growth_over_bound(ds: xr.Dataset) -> Estimate:
    """Growth of the logarithm of Tr W, over that of Corollary 1's equation."""
    first, last = ds.isel(stage=0), ds.isel(stage=-1)
    grown = np.log(last.w_trace / first.w_trace)
    return stats.mean(grown / np.log(last.w_bound / first.w_bound))


def decay_rate(ds: xr.Dataset) -> Estimate:
    r"""Decay of $\log\mathrm{Tr}\,V$ per unit of $\eta\lambda t$, where $V$ has no gradient."""
    fallen = np.log(ds.v_trace.isel(stage=0) / ds.v_trace.isel(stage=-1))
    return stats.mean(fallen / sum(KQ[k] for k in ("k1", "k2")))


KQ: dict[str, Any] = dict(
    z_norm=4.0, zeta_norm=2.0, weight_decay=0.01, init_std=0.025, lr1=0.02, lr2=0.01, k1=0.6, k2=0.3
)


def draw_bound(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Traces without noise, and Corollary 1")
    for ax, block in zip(axes, "wv", strict=True):
        plot.curve(ax, ds[f"{block}_trace"], "stage", label="measured", log="y")
        at = ds[f"{block}_bound"].mean("seed")
        short = at.where(at < 1e6, drop=True)
        plot.theory_curve(ax, short.stage, short.values, "Corollary 1")
        ax.set_ylabel(plot.label(ds[f"{block}_trace"]))
    return fig


def draw_traces(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Traces of the signals", width=4.2)
    plot.curve(ax, ds.w_trace, "stage", label=r"$\mathrm{Tr}\,\bar W$")
    plot.curve(ax, ds.v_trace, "stage", label=r"$\mathrm{Tr}\,\bar V$")
    ax.set_ylabel("trace")
    return fig


# ------------------------------------------------------------------------------- the data


def draw_picture(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="The data in the plane", seeds=ds.sizes["seed"])
    for ax, part, mark in zip(
        axes, ("easy", "hard"), (r"\mathcal{P}", r"\mathcal{Q}"), strict=True
    ):
        one = ds.isel(seed=0)
        for k, (sign, name) in enumerate(((1, "$y = 1$"), (-1, "$y = -1$"))):
            x = one[f"x_{part}"].values[one.label.values == sign]
            look: dict[str, Any] = dict(
                color=plot.PALETTE[k], marker=plot.MARKERS[k], linestyle="none", markersize=4
            )
            ax.plot(x[:, 0], x[:, 1], label=name, gid="series", **look)
        accuracy = stats.mean(ds[f"linear_{part}"]).value
        ax.set_title(f"${mark}$: a line gets {accuracy:.0%}", loc="left")
        ax.set(xlabel="first coordinate", ylabel="second coordinate")
        ax.margins(0.15)
        ax.set_aspect("equal", adjustable="datalim")
    return fig


def draw_gradient(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Proposition 2 against automatic differentiation", width=4.2)
    for name, words in (
        ("printed_random", "as printed, random $W$"),
        ("printed_aligned", "as printed, aligned $W$"),
        ("signed_random", "with its signs, random $W$"),
    ):
        plot.curve(ax, ds[name], "margin", label=words, line=False)
    ax.set_ylabel("relative error")
    return fig
