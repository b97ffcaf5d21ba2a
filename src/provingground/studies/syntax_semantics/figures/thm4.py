"""Theorem 4: what stage 2 does to the easy part."""

from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import below, claim
from provingground.stats import Estimate, Everywhere, everywhere, mean, median
from provingground.study import Experiment

from .. import theory
from .rest import easy_moves
from .shared import BOTH, TWO_STAGES, easy_rest, ending, level, on, rest


def allowed(ds: xr.Dataset) -> Any:
    r"""The right-hand side of (d.1) and (d.2) with $\epsilon_{V,1} = 1/d$ and constant 1."""
    return theory.theorem4_change(ds.dim, 1 / ds.dim)


@claim("Theorem 4 (d.1)", below(1), bound="paper", expected="fails", because=(easy_moves,))
def easy_signal_kept(ds: xr.Dataset) -> Everywhere:
    """stage 2 changes the easy signal by no more than the theorem allows with eps = 1/d (median
    change over the right-hand side)"""
    two = ds.sel(schedule=BOTH)
    change = ending(two.w_change, 2) * two.w_norm.sel(stage=1)
    return everywhere(median, change / allowed(ds))


@claim("Theorem 4 (d.2)", below(1), bound="paper", expected="fails", because=(easy_moves,))
def easy_loss_kept(ds: xr.Dataset) -> Everywhere:
    """stage 2 changes the loss of the easy part by no more than the theorem allows with eps = 1/d
    (mean absolute change over the right-hand side)"""
    loss = ds.loss_easy.sel(schedule=BOTH)
    return everywhere(mean, abs(ending(loss, 2) - ending(loss, 1)) / allowed(ds))


@claim(
    "Theorem 4, its message",
    below(0.25),
    rivals={"forgotten": level("w_change", lambda ds: 0.9)},
)
def easy_signal_near(ds: xr.Dataset) -> Estimate:
    """where the easy part was at rest, stage 2 changes its signal by under a quarter (median)"""
    return median(ending(on(ds, "annealed").w_change, 2))


@claim(
    "Theorem 4, its message",
    below(0.25),
    rivals={"forgotten": level("loss_easy", lambda ds: 0.693)},
)
def easy_still_learned(ds: xr.Dataset) -> Everywhere:
    """the easy part is still learned after stage 2, with either length of stage 1 (loss)"""
    return everywhere(mean, ending(ds.loss_easy.sel(schedule=BOTH), 2))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="The easy part in both stages")
    two = ds.sel(schedule=BOTH)
    plot.curve(left, two.loss_easy, "stage", hue="schedule")
    plot.curve(right, two.w_norm, "stage", hue="schedule")
    one = on(ds, "annealed")
    plot.theory_curve(right, [0, 1], [float(easy_rest(one))] * 2, "rest alone")
    plot.theory_curve(right, [1, 2], [float(rest(one).easy)] * 2, "rest beside one side")
    return fig


EXPERIMENTS = (
    Experiment(
        "thm4",
        says="The easy part in stage 2: it moves to another rest, and stays learned.",
        trainings=TWO_STAGES,
        claims=(easy_signal_kept, easy_loss_kept, easy_signal_near, easy_still_learned),
        figure=draw,
    ),
)
