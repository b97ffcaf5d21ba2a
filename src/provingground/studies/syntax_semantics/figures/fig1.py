"""Figure 1 on CounterFact, with a small decoder from scratch: from wrong types to right answers."""

from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import above, claim, exchange
from provingground.stats import Everywhere, everywhere, paired_difference
from provingground.study import Experiment

from .fig5_counterfact import COUNTERFACT, OURS
from .fig6 import HALF
from .fig6_counterfact import large_keep_types


@claim(
    f"Figure 1, {OURS}",
    above(0),
    kind="own",
    rivals={"swapped": exchange("order", ("largest", "smallest"))},
)
def similar_before_right(ds: xr.Dataset) -> Everywhere:
    """with 0.6 to 0.9 of the singular values, the smallest, wrong answers of the right type
    outnumber right ones, late (difference)"""
    late = ds.sel(snapshot="late", order="smallest", drop=True).sel(rho=slice(0.55, 0.95))
    right = late.edited_exact.mean("rho")
    return everywhere(paired_difference, late.edited_type.mean("rho") - right, right)


@claim(f"Figure 1, {OURS}", above(0), kind="own", expected="fails", because=(large_keep_types,))
def small_keep_types_late(ds: xr.Dataset) -> Everywhere:
    """late, the smallest half of the singular values keeps more right types than the largest half
    (difference)"""
    half = ds.edited_type.sel(snapshot="late", drop=True).sel(rho=HALF, method="nearest", drop=True)
    small, large = (half.sel(order=order, drop=True) for order in ("smallest", "largest"))
    return everywhere(paired_difference, small, large)


def draw(ds: xr.Dataset):
    """The answers' three kinds, late, at the first schedule."""
    title = "CounterFact, a small decoder from scratch: answers after edits, late"
    fig, axes = plot.figure(1, 2, title=title)
    late: Any = ds.isel(schedule=0).sel(snapshot="late")
    for ax, order in zip(axes, ("smallest", "largest"), strict=True):
        one = late.sel(order=order)
        plot.curve(ax, 1 - one.edited_type, "rho", label="wrong type")
        plot.curve(ax, one.edited_type - one.edited_exact, "rho", label="right type, wrong answer")
        plot.curve(ax, one.edited_exact, "rho", label="right answer")
        ax.set(ylabel="share of what is asked", ylim=(-0.03, 1.05))
        ax.set_title(f"the {order} are kept", loc="left")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig1",
        says="Answers of a decoder of CounterFact: of a wrong type, of the right one, right.",
        trainings=COUNTERFACT,
        claims=(similar_before_right, small_keep_types_late),
        figure=draw,
    ),
)
