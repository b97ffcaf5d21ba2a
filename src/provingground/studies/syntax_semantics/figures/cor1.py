"""Corollary 1: the traces of W and V, as an equation, a bound, an order; and where they rest."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import above, between, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere, mean, ordering, share
from provingground.study import Experiment, Trainings, cases

from .. import exact
from .shared import BOTH, TWO_STAGES, level, of_settings, on

# V learns without noise where its offset is longer than its centre: then weights with
# W_K = W_Q start in the active region. In the first of the two rooms below it does not.
DEAD: dict[str, Any] = dict(
    z_norm=4.0, zeta_norm=2.0, weight_decay=0.01, init_std=0.025, lr1=0.02, lr2=0.01, k1=0.6, k2=0.3
)
LEARNING: dict[str, Any] = dict(
    dim=8,
    samples=32,
    tokens=25,
    margin=0.8,
    z_norm=0.5,
    init_std=0.1,
    lr1=0.2,
    lr2=0.2,
    k1=2.0,
    k2=8.0,
)
PLACES = {
    f"r = {r:g}, λ = {decay:g}": {"zeta_norm": r, "weight_decay": decay}
    for r, decay in ((2.0, 0.02), (2.0, 0.05), (4.0, 0.02), (4.0, 0.1), (6.0, 0.05), (6.0, 0.1))
}


def far_from_dying(settings: Any) -> bool:
    """Neither part is about to die: a fifth more or less decay leaves the same parts alive."""
    margin, dim, tokens = (float(settings[n]) for n in ("margin", "dim", "tokens"))
    decay, r = settings["weight_decay"], settings["zeta_norm"]
    found = (exact.trace_rest(margin, dim, tokens, decay * f, r) for f in (0.8, 1.0, 1.25))
    alive = {tuple(trace > 0.2 for trace in rest) for rest in found}
    return len(alive) == 1 and settings["z_norm"] < r / 3


def at_rest(ds: xr.Dataset) -> exact.TraceRest:
    names = ("margin", "dim", "tokens", "weight_decay", "zeta_norm")
    return exact.TraceRest(*of_settings(ds, exact.trace_rest, *names))  # pyright: ignore


def final(ds: xr.Dataset, block: str) -> xr.DataArray:
    return ds[f"{block}_trace"].isel(stage=-1)


def both(ds: xr.Dataset, w: Any, v: Any) -> xr.DataArray:
    return xr.concat([w, v], "block").assign_coords(block=["W", "V"])


@claim("Corollary 1 (a)", above(0.9))
def trace_order(ds: xr.Dataset) -> Everywhere:
    """after stage 1 the easy signal has the larger trace, with either length (share of seeds)"""
    two = ds.sel(schedule=BOTH, stage=1)
    return everywhere(ordering, two.v_trace, two.w_trace)


@claim(
    "found here",
    between(0.3, 0.7),
    kind="own",
    rivals={"positive": level("v_trace", lambda ds: 1.0)},
)
def trace_sign(ds: xr.Dataset) -> Everywhere:
    """the learned V has a trace of either sign: positive in about half of the seeds"""
    return everywhere(share, ds.v_trace.sel(schedule=BOTH).isel(stage=-1) > 0)


@claim(
    "derived here",
    equals(0, within=0.2),
    kind="corrected",
    rivals={
        "they change places": lambda ds: ds.assign(w_trace=ds.v_trace, v_trace=ds.w_trace),
        "V stays small": level("v_trace", lambda ds: 0.0),
    },
)
def trace_at_rest(ds: xr.Dataset) -> Everywhere:
    """traces come to rest where gradient and decay balance, instead of growing geometrically (gap
    of Tr W and Tr V to their rests, over the larger rest)"""
    rest = at_rest(ds)
    scale = np.maximum(rest.easy, rest.hard)
    gaps = both(ds, (final(ds, "w") - rest.easy) / scale, (final(ds, "v") - rest.hard) / scale)
    return everywhere(mean, gaps)


@claim("Corollary 1 (b)", above(0.9), expected="fails", because=(trace_sign, trace_at_rest))
def trace_reversal(ds: xr.Dataset) -> Everywhere:
    """after stage 2 it is the hard signal that has the larger trace (share of seeds)"""
    two = ds.sel(schedule=BOTH).isel(stage=-1)
    return everywhere(ordering, two.w_trace, two.v_trace)


@claim("Corollary 1 (b)", above(0.9), expected="fails", because=(trace_at_rest,))
def reversal_learning(ds: xr.Dataset) -> Everywhere:
    """where V learns beside W, it ends with the larger trace (share of seeds)"""
    return everywhere(ordering, final(ds, "w"), final(ds, "v"))


@claim("Corollary 1, as a bound", above(0), rivals={
    "faster": lambda ds: ds.assign(v_slack=-ds.v_slack)})  # fmt: skip
def trace_bound(ds: xr.Dataset) -> Everywhere:
    """while both learn, no step lets a trace grow faster than Corollary 1 says (least slack)"""
    return everywhere(mean, both(ds, ds.w_slack, ds.v_slack))


@claim("Corollary 1", between(0.9, 1.1), expected="fails", because=(trace_at_rest,))
def trace_equation(ds: xr.Dataset) -> Estimate:
    """Tr W grows as Corollary 1's equation says (ratio of the logarithms)"""
    first, last = ds.isel(stage=0), ds.isel(stage=-1)
    grown = np.log(last.w_trace / first.w_trace)
    return mean(grown / (last.w_log_bound - first.w_log_bound))


def draw_order(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Traces of the signals", width=4.2)
    one = on(ds, "annealed")
    plot.curve(ax, one.w_trace, "stage", label=r"$\mathrm{Tr}\,\bar W$")
    plot.curve(ax, one.v_trace, "stage", label=r"$\mathrm{Tr}\,\bar V$")
    ax.set_ylabel("trace")
    return fig


def draw_bound(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Traces without noise, and Corollary 1")
    for ax, block in zip(axes, "wv", strict=True):
        plot.curve(ax, ds[f"{block}_trace"], "stage", label="measured", log="y")
        at = ds[f"{block}_log_bound"].mean("seed")
        short = at.where(at < 14, drop=True)
        plot.theory_curve(ax, short.stage, np.exp(short.values), "Corollary 1")
        ax.set_ylabel(plot.label(ds[f"{block}_trace"]))
    return fig


def draw_learning(ds: xr.Dataset):
    fig, (ax,) = plot.figure(
        title="Where the traces of W and V come to rest", width=5.5, seeds=ds.sizes["seed"]
    )
    place = ds.place.drop_attrs()
    place.attrs["long_name"] = "setting"
    for block, name in (("w", "easy"), ("v", "hard")):
        words = rf"$\mathrm{{Tr}}\,{block.upper()}$"
        each = [mean(final(ds, block).sel(place=p)) for p in place.values]
        plot.curve(ax, each, place, label=words, line=False)
        at = getattr(at_rest(ds), name).broadcast_like(place)
        for k, y in enumerate(at.values):
            plot.theory_curve(ax, [k - 0.3, k + 0.3], [y, y], f"{words} at rest")
    ax.set_ylabel("trace at the end")
    ax.tick_params(axis="x", rotation=30)
    return fig


def draw_base(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Traces of keys and queries that learn", width=4.2)
    rest = at_rest(ds)
    for block, at in (("w", rest.easy), ("v", rest.hard)):
        words = rf"$\mathrm{{Tr}}\,{block.upper()}$"
        plot.curve(ax, ds[f"{block}_trace"], "stage", label=words)
        plot.theory_curve(ax, [1, 2], [float(at)] * 2, f"{words} at rest")
    ax.set_ylabel("trace")
    return fig


EXPERIMENTS = (
    Experiment(
        "cor1_order",
        says="The traces of both signals at the ends of the stages.",
        trainings=TWO_STAGES,
        claims=(trace_order, trace_sign, trace_reversal),
        figure=draw_order,
    ),
    Experiment(
        "cor1_bound",
        says="Keys and queries without noise: the growth of the trace of W against Corollary 1.",
        trainings=Trainings(simulator="kq", grid=DEAD, seeds=32, quick={"seeds": 4}),
        claims=(trace_equation,),
        figure=draw_bound,
    ),
    Experiment(
        "cor1_learning",
        says="Keys and queries with a V that learns: the traces come to rest, in either order.",
        trainings=Trainings(
            simulator="kq",
            grid={**LEARNING, "place": cases(PLACES)},
            seeds=16,
            quick={"seeds": 6},
        ),
        claims=(trace_at_rest, trace_bound, reversal_learning),
        figure=draw_learning,
    ),
    Experiment(
        "cor1_base",
        says="The same at one setting, from which the others of its domain are drawn.",
        trainings=Trainings(
            simulator="kq",
            grid={**LEARNING, "zeta_norm": 4.0, "weight_decay": 0.05},
            seeds=16,
            quick={"seeds": 6},
            # Where the margin is over 2, a step of 0.2 is too coarse.
            domain={
                "zeta_norm": (1, 10),
                "weight_decay": (0.01, 0.1),
                "margin": (0.2, 2),
                "init_std": (0.03, 0.3),
                "z_norm": (0.05, 0.5),
            },
            where=far_from_dying,
        ),
        claims=(trace_at_rest, trace_bound),
        figure=draw_base,
    ),
)
