"""Figures 5 and 7 without language: answers have the right type before they are right."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim
from provingground.stats import Estimate, Everywhere, everywhere, mean, threshold
from provingground.study import Experiment, Trainings, cases

from .shared import level

SCHEDULES = cases({"constant": {}, "annealed": {"anneal": 0.95}})
SMALL: dict[str, Any] = dict(subjects=40, relations=6, answers=10, width=32, epochs=24, lr=3e-3)
FACTS = Trainings(
    grid={"schedule": SCHEDULES, "early": 2},
    seeds=8,
    quick={**SMALL, "early": 2, "seeds": 4},
    simulator="facts",
)


def long_enough(settings: Any) -> bool:
    """All steps together are as long as it takes to learn the table."""
    prompts = settings["subjects"] * settings["relations"] * 3
    return bool(settings["lr"] * settings["epochs"] * prompts / settings["batch"] >= 1.5)


def at_epoch(y: xr.DataArray, epoch: Any) -> xr.DataArray:
    return y.sel(epoch=int(np.ravel(epoch)[0]))


@claim("Figure 5, T = 5", above(0.9), rivals={
    "chance": level("type_accuracy", lambda ds: 1 / ds.relations)})  # fmt: skip
def type_early(ds: xr.Dataset) -> Everywhere:
    """at the early epoch nearly all answers are of the right type, with either schedule"""
    return everywhere(mean, at_epoch(ds.type_accuracy, ds.early))


@claim("Figure 5, T = 5", below(0.5), bound="paper", rivals={
    "learned at once": lambda ds: ds.assign(exact_accuracy=ds.type_accuracy)})  # fmt: skip
def exact_early(ds: xr.Dataset) -> Everywhere:
    """and most of them are still wrong"""
    return everywhere(mean, at_epoch(ds.exact_accuracy, ds.early))


@claim("Figure 5, T = 100", above(0.95))
def exact_late(ds: xr.Dataset) -> Everywhere:
    """at the last epoch nearly all are right"""
    return everywhere(mean, ds.exact_accuracy.isel(epoch=-1))


def epochs_to(y: xr.DataArray, level: float = 0.9) -> Estimate:
    later = y.assign_coords(epoch=y.epoch.astype(float) + 1)  # epoch 0 has no logarithm
    return threshold(later, "epoch", level, method="linear").map(lambda t: t - 1)


@claim(
    "found here",
    above(1.5),
    kind="own",
    rivals={"learned at once": lambda ds: ds.assign(exact_accuracy=ds.type_accuracy)},
)
def type_first(ds: xr.Dataset) -> Everywhere:
    """90% of the answers are right at least 1.5 times as many epochs later as 90% have the right
    type, at a constant step as well: these two stages need no annealing"""

    def ratio(typed: xr.DataArray, right: xr.DataArray) -> Estimate:
        a, b = epochs_to(typed), epochs_to(right)
        return Estimate(b.value / a.value, b.low / a.high, b.high / a.low)

    return everywhere(ratio, ds.type_accuracy, ds.exact_accuracy, keep="epoch")


def draw(ds: xr.Dataset):
    names = list(ds.schedule.values)
    fig, axes = plot.figure(1, len(names), title="Right types before right answers")
    for ax, name in zip(axes, names, strict=True):
        one = ds.sel(schedule=name)
        plot.curve(ax, one.type_accuracy, "epoch", label="right type")
        plot.curve(ax, one.exact_accuracy, "epoch", label="right answer")
        ax.set_title(f"{name} step size", loc="left")
        ax.set(ylabel="share of all facts", ylim=(-0.03, 1.05))
    return fig


def draw_padding(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Where prompts are padded")
    plot.curve(left, ds.type_accuracy, "epoch", hue="pads")
    plot.curve(right, ds.exact_accuracy, "epoch", hue="pads")
    return fig


@claim("found here", above(1.5), kind="own")
def type_first_padded(ds: xr.Dataset) -> Everywhere:
    """wherever prompts are padded, with or without a mask, types come first (ratio of epochs)"""
    return type_first(ds)  # pyright: ignore[reportReturnType]


EXPERIMENTS = (
    Experiment(
        "fig5",
        says="A small transformer learns a table of facts: types of answers, then the answers.",
        trainings=FACTS,
        claims=(type_early, exact_early, exact_late, type_first),
        figure=draw,
    ),
    Experiment(
        "fig5_base",
        says="The same at a constant step, from which other tables and networks are drawn.",
        trainings=Trainings(
            grid={"schedule": cases({"constant": {}}), "early": 2},
            seeds=8,
            quick={**SMALL, "seeds": 4},
            simulator="facts",
            # Not free: the width and the epochs, whose arrays are the Dataset's.
            domain={
                "subjects": (12, 120),
                "answers": (3, 30),
                "relations": (2, 20),
                "lr": (1e-3, 1e-2),
            },
            where=long_enough,
        ),
        claims=(type_first,),
        figure=draw,
    ),
    Experiment(
        "fig5_padding",
        says="The same with prompts padded left, right, and right without a mask.",
        trainings=Trainings(
            grid={
                "pads": cases(
                    {
                        "left": {},
                        "right": {"padding": "right"},
                        "right, no mask": {"padding": "right", "masked": False},
                    }
                )
            },
            seeds=8,
            simulator="facts",
            paper_only=True,
        ),
        claims=(type_first_padded,),
        figure=draw_padding,
    ),
)
