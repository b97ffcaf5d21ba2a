"""Figure E.2: how many training tasks are needed."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, curve, equals, shuffle
from provingground.stats import Everywhere, everywhere, mean
from provingground.study import Experiment, Trainings, axis

from .. import theory
from .shared import from_here, trained_long


def beyond(settings: dict[str, Any]) -> dict[str, Any]:
    """Training tasks from their number relative to M_1."""
    return {"n_tasks": round(settings["n_relevant"] + settings["extra"])}


# M_1 is at least 4, so that every training has a task.
TRAININGS = Trainings(
    grid={
        "n_relevant": [4, 6, 8, 10],
        "extra": axis(
            [-3, -2, -1, 0, 1, 2, 4],
            r"|\mathcal{T}_{tr}| - M_1",
            "training tasks",
            sets=beyond,
        ),
        "alpha": 0.6,
        "alpha_test": 0.6,
        "tokens_test": 40,
        "width": 100,
        "steps": 2000,
        "test_samples": 4000,
    },
    seeds=6,
    quick={
        "n_relevant": [4, 6],
        "extra": [-2, -1, 0, 2],
        "steps": 600,
        "test_samples": 1000,
        "seeds": 4,
    },
    domain={"alpha": (0.2, 1), "beta": (1, 4.5), "delta": (0.02, 0.2), "width": (40, 400)},
    where=lambda s: all(trained_long({**s, "n_relevant": n}) for n in (4, 6)),
)


def uncovered(ds: xr.Dataset) -> xr.DataArray:
    """Share of the prompts of unseen tasks whose query has a label it never had in training."""

    def share(patterns: Any, tasks: Any) -> float:
        m_1 = int(patterns)
        return theory.uncovered_share(theory.first_tasks(m_1, int(tasks)), m_1)

    return xr.apply_ufunc(np.vectorize(share, otypes=[float]), ds.n_relevant, ds.n_tasks)


def fewer(ds: xr.Dataset, name: str) -> xr.DataArray:
    """A probe where tasks are missing, over the share of uncovered prompts."""
    part = ds.sel(extra=slice(None, -1))
    return part[name] / uncovered(part)


LAW = curve("test_loss", lambda ds: uncovered(ds) + 1e-6)
OTHER = {"all or nothing": curve("test_loss", lambda ds: 0.9 * (ds.extra < 0) + 1e-6)}


@claim(
    "Condition 6.3.2, Lemma E.4.11, Figure E.2",
    below(0.002),
    rivals={"another number": shuffle("extra")},
)
def covered(ds: xr.Dataset) -> Everywhere:
    """with M_1 tasks or more the error on unseen tasks is about zero (below 0.002)"""
    return everywhere(mean, ds.test_error.sel(extra=slice(0, None)))


@claim("found here", equals(1, within=0.4), kind="corrected", law=LAW, rivals=OTHER)
def uncovered_loss(ds: xr.Dataset) -> Everywhere:
    """with fewer tasks the loss is about the share of prompts whose query has a label it never had
    in training (ratio)"""
    return everywhere(mean, fewer(ds, "test_loss"))


@claim(
    "found here",
    below(1.1),
    kind="corrected",
    rivals={"all or nothing": curve("test_error", lambda ds: 0.9 * (ds.extra < 0) + 1e-6)},
)
def uncovered_error(ds: xr.Dataset) -> Everywhere:
    """and the error is at most that share (ratio)"""
    return everywhere(mean, fewer(ds, "test_error"))


@claim("Figure E.2", above(0.1), expected="fails", because=(uncovered_loss, uncovered_error))
def missing_error(ds: xr.Dataset) -> Everywhere:
    """with fewer tasks the error on unseen tasks is large (over 10%)"""
    return everywhere(mean, ds.test_error.sel(extra=slice(None, -1)))


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Unseen tasks by the number of training tasks")
    for ax, name in zip(axes, ("test_error", "test_loss"), strict=True):
        plot.curve(ax, ds[name], "extra", hue="n_relevant")
        from_here(ax, 0.0, "Lemma E.4.11: from here on")
    for n in ds.n_relevant.values:
        part = uncovered(ds.sel(n_relevant=n))
        plot.theory_curve(axes[1], ds.extra.values, part.values, "share that is not covered")
    return fig


EXPERIMENTS = (
    Experiment(
        "fige_2",
        says="Error on unseen tasks against the number of training tasks.",
        trainings=TRAININGS,
        claims=(covered, uncovered_loss, uncovered_error, missing_error),
        figure=draw,
    ),
)
