"""Lemmas C.5, C.8, C.13 and C.15: the first phase, and how the values follow attention."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim, shuffle
from provingground.stats import Everywhere, everywhere
from provingground.study import Experiment, Trainings

from .. import theory
from .tstar import slacks

CLOSE = 5.0  # D^2 K / V where the two phases are not apart


def apart(ds: xr.Dataset) -> xr.Dataset:
    r"""Where $T^*$ is long after $t_1$, which is what $D \ge \mathrm{poly}(M, K)$ is for."""
    return ds.sel(slack=slice(100, None))


def score(ds: xr.Dataset) -> xr.DataArray:
    return (1 - ds.leak) / ds.group


def over_attainable(ds: xr.Dataset) -> xr.DataArray:
    return ds.value / theory.attainable_value(score(ds), ds.tokens, ds.group, ds.kappa)


def once_there(ratio: xr.DataArray) -> xr.DataArray:
    """The smallest C_1 / C_1* after it first reached 0.95 (zero where it never did)."""
    there = (ratio >= 0.95).cumsum("step") > 0
    return ratio.where(there).min("step").fillna(0.0)


@claim("Lemma C.15", above(0.95), bound="paper", rivals={"other steps": shuffle("step")})
def value_follows(ds: xr.Dataset) -> Everywhere:
    """C_1 / C_1* stays over 0.95 once it got there (smallest value)"""
    return everywhere(stats.mean, once_there(over_attainable(apart(ds))))


def doubled(ds: xr.Dataset) -> xr.Dataset:
    return ds.assign(value=1.1 * ds.value)


@claim("Lemma C.5", below(1), bound="paper", rivals={"a tenth more": doubled})
def value_bounded(ds: xr.Dataset) -> Everywhere:
    """C_1 / C_1* is below its upper bound at every step (largest ratio)"""
    at = ds.isel(step=slice(1, None))
    _, high = theory.value_band(score(at), at.tokens, at.group, at.kappa)
    return everywhere(stats.mean, (over_attainable(at) / high).max("step"))


@claim("Lemma C.8", above(0), bound="paper", rivals={"other steps": shuffle("step")})
def score_grows(ds: xr.Dataset) -> Everywhere:
    """the score on the support never falls (smallest growth between recorded steps)"""
    return everywhere(stats.mean, score(ds).diff("step").min("step"))


def first_phase(ds: xr.Dataset) -> xr.Dataset:
    r"""At $t_1$, the first recorded step with $C_1 \ge 0.95\,C_1^*$."""
    return ds.isel(step=(over_attainable(ds) >= 0.95).argmax("step"))


@claim("Lemma C.13", below(10), rivals={"half as large": lambda ds: ds.assign(step=3 * ds.step)})
def first_phase_time(ds: xr.Dataset) -> Everywhere:
    """t_1 = Theta(1/eta): C_1 reaches 0.95 C_1* within 10 / eta steps (eta t_1)"""
    at = apart(ds)
    return everywhere(stats.mean, at.lr * first_phase(at).step.astype(float))


@claim(
    "Lemma C.13",
    below(1),
    bound="paper",
    rivals={"no first phase": lambda ds: ds.assign(leak=0.8 * ds.leak)},
)
def first_phase_score(ds: xr.Dataset) -> Everywhere:
    """until then p is below (1 + D^(-1/4)) / D (ratio)"""
    at = apart(ds)
    return everywhere(stats.mean, score(first_phase(at)) / theory.early_score(at.tokens))


@claim(
    "found here",
    above(1),
    kind="own",
    rivals={"never trained": lambda ds: ds.assign(leak=1 - ds.group / ds.tokens + 0 * ds.leak)},
)
def phases_merge(ds: xr.Dataset) -> Everywhere:
    """with D^2 K / V = 5 and D = 96 that fails: Lemma C.13 needs T* long after t_1 (ratio)"""
    at = ds.sel(slack=CLOSE, tokens=96)
    return everywhere(stats.mean, score(first_phase(at)) / theory.early_score(at.tokens))


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="The values follow attention (recursion)")
    at = ds.isel(step=slice(1, None), kappa=0, group=-1, tokens=-1)
    for ax, y, words in (
        (axes[0], over_attainable(at), r"$C_1/C_1^*$"),
        (axes[1], at.group * score(at), "$Kp$"),
    ):
        plot.curve(ax, y.transpose("slack", "seed", "step"), "step", hue="slack", log="x")
        ax.set_ylabel(words)
    t: Any = at.step.values
    plot.theory_curve(axes[0], t, np.full(t.size, 0.95), "0.95, Lemma C.15")
    return fig


EXPERIMENTS = (
    Experiment(
        "lemmas",
        says="The lemmas on the way, where the two phases are apart and where they are not.",
        trainings=Trainings(
            simulator="recursion",
            grid={
                "tokens": [12, 20, 48, 96],
                "group": [1, 2, 4],
                "kappa": [0.0, 0.1, 1.0],
                "slack": slacks([CLOSE, 150.0, 600.0]),
                "lr": 0.01,  # stable up to D/K = 96
                "steps": 100_000,
                "horizon": 100_000,
                "dim": 30,  # many entries: energies of the seeds differ little
                "outputs": 30,
                "test_samples": 1,
                "frame": 5,
            },
            seeds=4,
            quick={
                "tokens": [12, 96],
                "group": [1, 4],
                "kappa": [0.0, 1.0],
                "slack": [CLOSE, 200.0],
                "seeds": 3,
            },
        ),
        claims=(
            value_follows,
            value_bounded,
            score_grows,
            first_phase_time,
            first_phase_score,
            phases_merge,
        ),
        figure=draw,
    ),
)
