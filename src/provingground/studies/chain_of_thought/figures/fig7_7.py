"""Figure 7.7: three layers and two heads, K = 2; and parts that its network leaves out."""

from collections.abc import Callable
from typing import Any

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, claim
from provingground.stats import Everywhere, everywhere
from provingground.study import Experiment, Trainings, cases

from .shared import MATCHED


def best_head(ds: xr.Dataset) -> xr.DataArray:
    """Attention on matched columns of the head that has most of it, by layer."""
    found = ds.attention.sel(type=MATCHED).max("head")
    return found.assign_attrs(ds.attention.attrs)


def leads(ds: xr.Dataset) -> Everywhere:
    """By how much matched columns lead over any other type, in the head that has most of them."""
    end = ds.attention.isel(step=-1, drop=True)
    head = end.sel(type=MATCHED, drop=True).mean("seed").argmax("head")
    end = end.isel(head=head)
    others = end.sel(type=[t for t in ds.type.values if t != MATCHED])
    return everywhere(stats.mean, end.sel(type=MATCHED, drop=True) - others)


def even(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose attention is even over the types."""
    return ds.assign(attention=ds.attention * 0 + 1 / ds.sizes["type"])


@claim("Figure 7.7", above(0), bound="paper", rivals={"even": even})
def largest(ds: xr.Dataset) -> Everywhere:
    """in every layer a head attends more to matched columns than to any other type (lead)"""
    return leads(ds)


@claim("Figure 7.7", above(0.5))
def layers_match(ds: xr.Dataset) -> Everywhere:
    """in every layer a head puts over a half on matched columns"""
    return everywhere(stats.mean, best_head(ds).isel(step=-1))


@claim("Figure 7.7", above(0.75))
def later_layers(ds: xr.Dataset) -> Everywhere:
    """in layers 2 and 3 a head puts over 0.75 on them"""
    return everywhere(stats.mean, best_head(ds).isel(step=-1).sel(layer=[2, 3]))


def draw_layers(title: str, case: dict[str, str] | None = None) -> Callable[[xr.Dataset], Any]:
    """Attention of the best head of every layer on each type of columns."""

    def draw(ds: xr.Dataset):
        at = ds.sel(case) if case else ds
        fig, axes = plot.figure(1, ds.sizes["layer"], title=title)
        head = at.attention.isel(step=-1).sel(type=MATCHED).mean("seed").argmax("head")
        for i, ax in enumerate(axes):
            y = at.attention.isel(layer=i, head=int(head[i]), step=slice(1, None))
            for kind in ds.type.values:
                if float(y.sel(type=kind).max()) > 0:
                    plot.curve(ax, y.sel(type=kind), "step", label=str(kind), log="x")
            ax.set_title(f"layer {i + 1}, head {int(head[i]) + 1}")
            ax.set(ylabel="attention", ylim=(-0.02, 1))
        return fig

    return draw


# ------------------------------------------------------------- what the figure's network leaves out

PARTS = {
    "attention only": {},
    "MLPs": {"hidden": 120},
    "layer norm": {"norm": True},
    "both": {"hidden": 120, "norm": True},
    "learned positions": {"positions": "learned"},
}


@claim("found here", above(0.5), kind="own", rivals={"even": even})
def parts_match(ds: xr.Dataset) -> Everywhere:
    """with MLPs, layer norm or both, too, some layer has a head with over a half on matched
    columns"""
    some = ds.sel(part=["attention only", "MLPs", "layer norm", "both"])
    return everywhere(stats.mean, best_head(some).isel(step=-1).max("layer"))


def as_attention_only(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset in which all parts err as attention alone does."""
    alone = ds.test_error.sel(part="attention only", drop=True)
    return ds.assign(test_error=(ds.test_error * 0 + alone).transpose(*ds.test_error.dims))


@claim("found here", above(0.05), kind="own", rivals={"no cost": as_attention_only})
def parts_cost(ds: xr.Dataset) -> Everywhere:
    """with MLPs, layer norm or both a step of tests on new patterns is answered less well than by
    attention alone (error, difference)"""
    error = ds.test_error.isel(step=-1, drop=True)
    parts = error.sel(part=["MLPs", "layer norm", "both"])
    return everywhere(stats.mean, parts - error.sel(part="attention only", drop=True))


def draw_parts(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="MLPs, layer norm and learned positions")
    for name in ds.part.values:
        at = ds.sel(part=name).isel(step=slice(1, None))
        y = best_head(at).max("layer").assign_attrs(ds.attention.attrs)
        plot.curve(left, y, "step", label=str(name), log="x")
        plot.curve(right, at.test_error, "step", label=str(name), log="x")
    left.set(ylabel="attention on matched columns, best head", ylim=(-0.02, 1))
    return fig


EXPERIMENTS = (
    Experiment(
        "fig7_7",
        says="Attention of every layer and head of a three-layer transformer, K = 2.",
        trainings=Trainings(
            grid={"steps": 2000, "record": 25}, seeds=8, paper_only=True, simulator="deep"
        ),
        claims=(largest, layers_match, later_layers),
        figure=draw_layers("Three layers, two heads: the best head of each layer"),
    ),
    Experiment(
        "fig7_7_parts",
        says="The same with MLPs, layer norm, or learned positions.",
        trainings=Trainings(
            grid={"steps": 2000, "record": 25, "part": cases(PARTS)},
            seeds=8,
            paper_only=True,
            simulator="deep",
        ),
        claims=(parts_match, parts_cost),
        figure=draw_parts,
    ),
)
