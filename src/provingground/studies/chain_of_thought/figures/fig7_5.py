"""Figure 7.5: CoT and ICL with and without Condition 7.3.2."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings

from .shared import TRAINED, at, error_mean


def gain(ds: xr.Dataset, probe: str, few: int, many: int) -> Estimate:
    """How much the error falls from few examples to many."""
    error = ds[probe]
    return stats.paired_difference(error.sel(l_test=few), error.sel(l_test=many))


@claim("Figure 7.5, Theorem 4", below(0.02))
def cot_succeeds(ds: xr.Dataset) -> Estimate:
    """without the condition CoT succeeds with 128 examples (error)"""
    return error_mean(ds, "cot_error", "condition fails", 128)


@claim("Figure 7.5, Theorem 5(a)", above(0.15))
def icl_fails(ds: xr.Dataset) -> Estimate:
    """without the condition the ICL error is of order one with 128 examples"""
    return error_mean(ds, "icl_error", "condition fails", 128)


@claim("Figure 7.5: remains large, irrespective of the number of contexts", below(0.05))
def icl_stays(ds: xr.Dataset) -> Estimate:
    """without the condition ICL gains nothing from 32 to 128 examples (gain)"""
    return gain(at(ds, "condition fails"), "icl_error", 32, 128)


@claim("Figure 7.5, Theorem 5(b)", above(0.15))
def icl_learns(ds: xr.Dataset) -> Estimate:
    """with the condition the ICL error falls from 4 to 128 examples (gain)"""
    return gain(at(ds, "condition holds"), "icl_error", 4, 128)


@claim(
    "Figure 7.5: remains large, irrespective of the number of contexts", below(0.02), scale="paper"
)
def icl_stays_long(ds: xr.Dataset) -> Estimate:
    """without the condition ICL gains nothing from 64 to 512 examples (gain)"""
    return gain(at(ds, "condition fails"), "icl_error", 64, 512)


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="With and without Condition 7.3.2")
    for ax, name in zip(axes, ("condition holds", "condition fails"), strict=True):
        part = at(ds, name)
        plot.curve(ax, part.cot_error, "l_test", label="CoT", log="x")
        plot.curve(ax, part.icl_error, "l_test", label="ICL", log="x")
        plot.curve(ax, part.icl_blind, "l_test", label="ICL without output rows", log="x")
        limit = float(part.infeasible.mean())
        plot.theory_curve(ax, part.l_test, np.full(part.sizes["l_test"], limit), "inputs that fail")
        ax.set_ylabel("test error")
        ax.set_title(f"{name}: $\\rho_o^f = {float(part.rho_io.mean()):.2f}$")
        ax.set_ylim(-0.02, 0.6)
    return fig


# --------------------------------------------------------------- by the vote, for many examples


@claim("Theorem 5(a), many examples", below(0))
def vote_worsens(ds: xr.Dataset) -> Estimate:
    """without the condition the ICL error of the vote grows from 64 to 512 examples (gain)"""
    return gain(ds.sel(design="condition fails"), "icl_error", 64, 512)


@claim("Theorem 5(b), many examples", below(0.12))
def vote_learns(ds: xr.Dataset) -> Estimate:
    """with it the ICL error of the vote is small with 512 examples"""
    return stats.mean(ds.icl_error.sel(design="condition holds", l_test=512))


def draw_vote(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Condition 7.3.2 with many examples, by the vote", width=4.2)
    for name in ds.design.values:
        part = ds.sel(design=name)
        plot.curve(ax, part.icl_error, "l_test", label=f"ICL, {name}", log="x")
        plot.curve(ax, part.cot_error, "l_test", label=f"CoT, {name}", log="x")
    ax.set_ylabel("test error")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig7_5",
        says="CoT and ICL on examples that satisfy Condition 7.3.2, and on others that do not.",
        trainings=TRAINED,
        claims=(cot_succeeds, icl_fails, icl_stays, icl_learns, icl_stays_long),
        figure=draw,
    ),
    Experiment(
        "fig7_5_vote",
        says="The same by the vote, with more examples.",
        trainings=Trainings(
            grid={
                "design": ["condition fails", "condition holds"],
                "examples_test": 2048,
                "test_samples": 400,
            },
            seeds=16,
            paper_only=True,
            simulator="plurality",
        ),
        claims=(vote_worsens, vote_learns),
        figure=draw_vote,
    ),
)
