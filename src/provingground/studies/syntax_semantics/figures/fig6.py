"""Figures 6 and 8 without language: what is left of types and answers when attention is edited."""

from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, exchange
from provingground.stats import Everywhere, everywhere, mean, monotone, paired_difference
from provingground.study import Experiment, Trainings, cases

from .fig5 import FACTS

HALF = 0.5


swapped = exchange("order", ("largest", "smallest"))


def turned_round(ds: xr.Dataset) -> xr.Dataset:
    """Right answers in the reverse order of rho."""
    y = ds.edited_exact
    return ds.assign(edited_exact=y.copy(data=y.isel(rho=slice(None, None, -1)).values))


def flat(ds: xr.Dataset) -> xr.Dataset:
    """As many right answers whatever is kept."""
    y = ds.edited_exact
    return ds.assign(edited_exact=(y.mean("rho") + 0 * y).transpose(*y.dims))


RISE = {"turned round": turned_round, "flat": flat}


@claim("Figure 6, left and middle", above(0.5), rivals=RISE)
def exact_rises(ds: xr.Dataset) -> Everywhere:
    """at the late epoch right answers rise with the part of the largest singular values that is
    kept: with all by over a half of what is asked above those with the smallest part
    (difference)"""
    late = ds.edited_exact.sel(snapshot="late", order="largest", drop=True).sortby("rho")
    return everywhere(paired_difference, late.isel(rho=-1, drop=True), late.isel(rho=0, drop=True))


@claim("found here", above(-0.05), kind="own", rivals={"turned round": turned_round})
def rank_never_costs(ds: xr.Dataset) -> Everywhere:
    """on the way none of the largest singular values costs right answers, late (least step from one
    part to the next, up to 0.05)"""
    late = ds.edited_exact.sel(snapshot="late", order="largest")
    return everywhere(lambda y: monotone(y, "rho", "increasing"), late, keep="rho")


@claim("found here", above(0.8), kind="own", rivals={"swapped": swapped})
def large_hold_types(ds: xr.Dataset) -> Everywhere:
    """the largest half of the singular values keeps the types, early and late (share)"""
    return everywhere(mean, ds.edited_type.sel(order="largest").sel(rho=HALF, method="nearest"))


@claim("found here", above(0.05), kind="own", rivals={
    "learned at once": lambda ds: ds.assign(edited_exact=ds.edited_type)})  # fmt: skip
def answers_need_more(ds: xr.Dataset) -> Everywhere:
    """right answers need more of the largest singular values than types do: from 0.3 to 0.5 of them
    the share of right types is ahead, compared with all of them (difference, late)"""
    late = ds.sel(snapshot="late", order="largest")
    typed = late.edited_type / late.edited_type.isel(rho=-1, drop=True)
    right = late.edited_exact / late.edited_exact.isel(rho=-1, drop=True)
    some = slice(0.25, 0.55)
    return everywhere(
        paired_difference, typed.sel(rho=some).mean("rho"), right.sel(rho=some).mean("rho")
    )


@claim("found here", below(0.25), kind="own", rivals={"swapped": swapped})
def small_hold_nothing(ds: xr.Dataset) -> Everywhere:
    """the smallest half alone gives few right answers, early and late (share)"""
    return everywhere(mean, ds.edited_exact.sel(order="smallest").sel(rho=HALF, method="nearest"))


@claim(
    "Corollary 1, Figure 6, right",
    above(0),
    expected="fails",
    because=(large_hold_types, small_hold_nothing, answers_need_more),
)
def small_hold_types(ds: xr.Dataset) -> Everywhere:
    """small singular values hold the types: at the early epoch the smallest half keeps more right
    types than the largest half (difference)"""
    half = ds.edited_type.sel(snapshot="early").sel(rho=HALF, method="nearest", drop=True)
    return everywhere(
        paired_difference,
        half.sel(order="smallest", drop=True),
        half.sel(order="largest", drop=True),
    )


def draw_over(ds: xr.Dataset, axis: str, title: str):
    fig, axes = plot.figure(1, 2, title=title)
    first: Any = ds.isel({axis: 0})
    for ax, when in zip(axes, ("early", "late"), strict=True):
        one = first.sel(snapshot=when)
        for order in ("largest", "smallest"):
            plot.curve(ax, one.edited_type.sel(order=order), "rho", label=f"type, {order}")
            plot.curve(ax, one.edited_exact.sel(order=order), "rho", label=f"answer, {order}")
        ax.set(ylabel="share of what is asked", ylim=(-0.03, 1.05))
        ax.set_title(f"{when} epoch", loc="left")
    return fig


CLAIMS = (
    exact_rises,
    rank_never_costs,
    large_hold_types,
    answers_need_more,
    small_hold_nothing,
    small_hold_types,
)
EXPERIMENTS = (
    Experiment(
        "fig6",
        says="Attention weights with part of their singular values, at an early and a late epoch.",
        trainings=FACTS,
        claims=CLAIMS,
        figure=lambda ds: draw_over(ds, "schedule", "What edited attention still knows"),
    ),
    Experiment(
        "fig6_fused",
        says="The same with queries, keys and values edited as one matrix, as the authors do.",
        trainings=Trainings(
            grid={"matrices": cases({"fused": {"edited": "fused"}}), "early": 2},
            seeds=8,
            simulator="facts",
            paper_only=True,
        ),
        claims=CLAIMS,
        figure=lambda ds: draw_over(ds, "matrices", "Queries, keys and values edited as one"),
    ),
)
