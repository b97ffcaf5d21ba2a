"""Lemmas F.3.5 to F.3.7: how scores and attention move in the two stages."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, below, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment

from .. import theory
from .shared import MATCHED, NEITHER, PACE, SAME_PATTERN, SAME_STEP, in_time
from .thm3 import of_training


def stage_one_end(ds: xr.Dataset, eps: float) -> float:
    given = of_training(ds)
    return float(theory.stage_one_time(given["lr"], given["alpha"], given["n_steps"], eps))


def growth(ds: xr.Dataset, kind: str, unit: xr.DataArray, first: int, last: int) -> xr.DataArray:
    """By how much a score grows between two recorded steps, over the sum of `unit` between them
    (trapezoids in log t)."""
    part = ds.isel(step=slice(first, last + 1))
    t = part.step.values.astype(float)
    y = unit.isel(step=slice(first, last + 1)).transpose(..., "step").values * t
    total = np.trapezoid(y, np.log(t), axis=-1)
    score = ds.score.sel(type=kind)
    gained = score.isel(step=last) - score.isel(step=first)
    return gained / xr.DataArray(total, dims="seed", coords={"seed": ds.seed})


def place(ds: xr.Dataset, step: float) -> int:
    """The recorded step at or after some step."""
    return int(min(np.searchsorted(ds.step.values, step), ds.sizes["step"] - 1))


# ------------------------------------------------------------------------------ Lemma F.3.5


@claim("Lemma F.3.5, (F.7)", above(1), bound="paper")
def f_7(ds: xr.Dataset) -> Everywhere:
    """in stage one (up to T_1 for epsilon = 0.1) a matched score grows at least as (F.7) says, in
    both halves (ratio)"""
    given = of_training(ds)
    p = ds.mass.sel(type=MATCHED)
    least = given["lr"] * theory.stage_one_growth(
        p, given["alpha"], given["n_steps"], given["n_patterns"]
    )
    end = max(place(ds, stage_one_end(ds, 0.1)), 4)
    parts = [(1, end // 2), (end // 2, end)]
    found = [growth(ds, MATCHED, least, *ends) for ends in parts]
    stage = xr.DataArray(["first half", "second half"], dims="stage", name="stage")
    return everywhere(stats.mean, xr.concat(found, stage.assign_coords(stage=stage)))


def f_7_ratio(ds: xr.Dataset) -> Everywhere:
    found = f_7.measure(ds)
    assert isinstance(found, Everywhere)
    return found


# ------------------------------------------------------------------------------ Lemma F.3.6


def other_steps(ds: xr.Dataset) -> xr.DataArray:
    """Attention on columns of other steps."""
    found = ds.mass.sel(type=[SAME_PATTERN, NEITHER]).sum("type")
    return found.assign_attrs(long_name="attention on other steps")


def predicted(ds: xr.Dataset) -> np.ndarray:
    given = of_training(ds)
    k = given.pop("n_steps")
    return theory.two_stages(**given, k=k, steps=int(ds.step[-1]))


def others_as(values: Callable[[xr.Dataset, np.ndarray], Any]) -> Altered:
    """The Dataset whose attention on other steps is a function of time."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        now = other_steps(ds)
        wanted = xr.DataArray(values(ds, ds.step.values.astype(float)), dims="step")
        factor = wanted / now.mean("seed").drop_vars("step")
        away = ds.type.isin([SAME_PATTERN, NEITHER])
        return ds.assign(mass=xr.where(away, ds.mass * factor, ds.mass).transpose(*ds.mass.dims))

    return altered


def law_of_others(ds: xr.Dataset, t: np.ndarray) -> np.ndarray:
    return predicted(ds)[t.astype(int)][:, 2:].sum(axis=1)


def exponential(ds: xr.Dataset, t: np.ndarray) -> np.ndarray:
    given = of_training(ds)
    rate = given["lr"] * given["alpha"] ** 2 / given["n_steps"] ** 3
    return np.maximum((given["n_steps"] - 1) / given["n_steps"] * np.exp(-rate * t), 1e-6)


@claim(
    "theory.two_stages",
    equals(1, within=0.25),
    kind="own",
    law=others_as(law_of_others),
    rivals={"exponential, as (F.11)": others_as(exponential)},
)
def other_steps_law(ds: xr.Dataset) -> Everywhere:
    """late in training other steps have the attention that the recursion of both stages says
    (ratio)"""
    part = ds.sel(step=slice(int(0.5 * int(ds.step[-1])), None))
    law = xr.DataArray(law_of_others(part, part.step.values), dims="step")
    return everywhere(stats.mean, other_steps(part) / law.assign_coords(step=part.step))


@claim(
    "derived from theory.two_stages: t^(-1/2)/log t",
    above(-0.9),
    kind="own",
    law=others_as(law_of_others),
    rivals={
        "1/t": others_as(lambda ds, t: 1 / (1 + t)),
        "exponential, as (F.11)": others_as(exponential),
    },
)
def other_steps_slow(ds: xr.Dataset) -> Estimate:
    """over the last tenfold of time the attention on other steps falls more slowly than t^-0.9
    (exponent)"""
    part = ds.sel(step=slice(int(0.1 * int(ds.step[-1])), None))
    return stats.power_law(other_steps(part), "step").slope


@claim(
    "Lemma F.3.6, (F.11) and (F.12), constant 1",
    below(1),
    bound="paper",
    expected="fails",
    because=(other_steps_law, other_steps_slow),
    rivals={"1/t": others_as(lambda ds, t: 1 / (1 + t))},
)
def f_12(ds: xr.Dataset) -> Everywhere:
    """after T_1 training steps other steps have at most epsilon of the attention, for epsilon =
    0.05 and 0.001 (attention over epsilon)"""
    levels = xr.DataArray([0.05, 0.001], dims="eps_level", name="eps_level")
    now = other_steps(ds)
    found = [
        now.isel(step=place(ds, stage_one_end(ds, float(eps)))).drop_vars("step") / float(eps)
        for eps in levels
    ]
    return everywhere(stats.mean, xr.concat(found, levels.assign_coords(eps_level=levels)))


# ------------------------------------------------------------------------------ Lemma F.3.7


def late_growth(ds: xr.Dataset, kind: str) -> xr.DataArray:
    r"""The growth of a score in units of $\eta p(1-p)^2/M$, from half of the training on."""
    p = ds.mass.sel(type=MATCHED)
    unit = ds.lr * p * (1 - p) ** 2 / ds.n_patterns
    last = ds.sizes["step"] - 1
    return growth(ds, kind, unit, place(ds, 0.3 * int(ds.step[-1])), last)


def late_mass(ds: xr.Dataset) -> list[xr.DataArray]:
    """Attention by type, in the mean over the same time."""
    part = ds.mass.isel(step=slice(place(ds, 0.3 * int(ds.step[-1])), None)).mean("step")
    return [part.sel(type=kind) for kind in (MATCHED, SAME_STEP, SAME_PATTERN, NEITHER)]


def law_of_growth(ds: xr.Dataset) -> xr.DataArray:
    given = of_training(ds)
    kappa = theory.collisions(given["alpha"], given["examples"], given["n_patterns"])
    return theory.score_growth(late_mass(ds), kappa, given["n_steps"], given["n_patterns"])[0]


def twice(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose matched scores grow as (F.13) asks for."""
    factor = 2.0 / late_growth(ds, MATCHED).mean()
    wider = xr.where(ds.type == MATCHED, ds.score * factor, ds.score)
    return ds.assign(score=wider.transpose(*ds.score.dims))


@claim("theory.score_growth", equals(1, within=0.1), kind="own", rivals={"(F.13) as it is": twice})
def matched_growth(ds: xr.Dataset) -> Estimate:
    """late in training a matched score grows by (1+kappa) times what own input and own step add, in
    units of eta p(1-p)^2/M (ratio)"""
    return stats.mean(late_growth(ds, MATCHED) / law_of_growth(ds))


@claim(
    "Lemma F.3.7, (F.13)",
    above(2),
    bound="paper",
    expected="fails",
    because=(matched_growth,),
    law=twice,
)
def f_13(ds: xr.Dataset) -> Estimate:
    """late in training a matched score grows by at least 2 eta p(1-p)^2/M (in these units)"""
    return stats.mean(late_growth(ds, MATCHED))


@claim("Lemma F.3.7, (F.15)", below(0.5), bound="paper", rivals={"matched": lambda ds: ds.assign(
    score=xr.where(ds.type == SAME_STEP, ds.score.sel(type=MATCHED, drop=True), ds.score)
    .transpose(*ds.score.dims))})  # fmt: skip
def f_15(ds: xr.Dataset) -> Estimate:
    """there a score of the same step with another pattern changes by at most a half of that unit"""
    return stats.mean(abs(late_growth(ds, SAME_STEP)))


@claim(
    "Lemma F.3.5, (F.7)",
    above(1),
    bound="paper",
    expected="fails",
    because=(matched_growth,),
)
def f_7_two_steps(ds: xr.Dataset) -> Everywhere:
    """(F.7) for K = 2 and alpha = 0.2, where it asks for over 2p(1-p)^2/M as (F.13) does (ratio)"""
    return f_7_ratio(ds)


def draw_scores(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Scores along training", width=4.2)
    for kind in ds.type.values:
        plot.curve(ax, in_time(ds.score.sel(type=kind)), "step", label=str(kind), log="x")
    return fig


def draw_others(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Attention on other steps", width=4.2)
    y = in_time(other_steps(ds))
    plot.curve(ax, y, "step", log="xy", label="measured")
    steps = np.arange(1, int(ds.step[-1]) + 1)
    x = float(ds.lr) * steps
    plot.theory_curve(ax, x, predicted(ds)[1:, 2:].sum(axis=1), "both stages")
    given = of_training(ds)
    eps = given["n_steps"] * np.exp(-x * given["alpha"] ** 2 / given["n_steps"] ** 3)
    inside = (eps < 1) & (eps > 1e-4)
    plot.theory_curve(ax, x[inside], eps[inside], r"$\epsilon$ of (F.11)")
    return fig


def draw_growth(ds: xr.Dataset):
    """The growth of two scores, between every fourth recorded step, in the lemma's unit."""
    fig, (ax,) = plot.figure(title=r"Growth of scores over $\eta p(1-p)^2/M$", width=4.2)
    p = ds.mass.sel(type=MATCHED)
    unit = ds.lr * p * (1 - p) ** 2 / ds.n_patterns
    ends = [(i, i + 4) for i in range(place(ds, 20.0), ds.sizes["step"] - 4, 4)]
    steps = ds.step.values.astype(float)
    time = np.array([np.sqrt(steps[i] * steps[j]) for i, j in ends]) * float(ds.lr)
    for kind in (MATCHED, SAME_STEP):
        y = xr.concat([growth(ds, kind, unit, *pair).drop_vars("type") for pair in ends], "time")
        y = y.assign_coords(time=time).assign_attrs(long_name="growth")
        y.time.attrs = {"long_name": "training time", "symbol": r"\eta t"}
        plot.curve(ax, y, "time", label=kind, log="x")
    given = of_training(ds)
    kappa = theory.collisions(given["alpha"], given["examples"], given["n_patterns"])
    at = (time / float(ds.lr)).astype(int)
    law = theory.score_growth(predicted(ds)[at].T, kappa, given["n_steps"], given["n_patterns"])
    for values in law:
        plot.theory_curve(ax, time, values, "both stages")
    plot.theory_curve(ax, time, np.full(len(time), 2.0), "(F.13): at least")
    plot.theory_curve(ax, time, np.full(len(time), 0.5), "(F.15): at most")
    return fig


EXPERIMENTS = (
    Experiment(
        "lemmaf_3_5",
        says="The growth of scores in stage one.",
        trainings=PACE,
        claims=(f_7,),
        figure=draw_scores,
    ),
    Experiment(
        "lemmaf_3_5_two_steps",
        says="The growth of scores for two reasoning steps and few matching examples.",
        trainings=replace(
            PACE, grid={**PACE.grid, "n_steps": 2, "alpha": 0.2}, domain={}, where=None
        ),
        claims=(f_7_two_steps,),
        figure=draw_scores,
    ),
    Experiment(
        "lemmaf_3_6",
        says="The attention on columns of other steps along training.",
        trainings=PACE,
        claims=(other_steps_law, other_steps_slow, f_12),
        figure=draw_others,
    ),
    Experiment(
        "lemmaf_3_7",
        says="The growth of scores in stage two.",
        trainings=PACE,
        claims=(matched_growth, f_13, f_15),
        figure=draw_growth,
    ),
)
