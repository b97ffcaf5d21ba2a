"""Theorem 2: stage 1 learns the easy part, whose signal goes to its rest."""

from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import above, below, between, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere, mean, median, paired_difference
from provingground.study import Experiment, Trainings, cases

from .. import exact
from .shared import (
    BOTH,
    NOTHING,
    TWO_STAGES,
    d_log_d,
    easy_rest,
    ending,
    level,
    over_settings,
    rest_at,
    scaled,
)

VARIATIONS = {
    "as thm3": {},
    r"$\lambda = .01$": {"weight_decay": 0.01},
    r"$\lambda = .6$": {"weight_decay": 0.6},
    r"$\gamma_0 = .25$": {"margin": 0.25},
    r"$\gamma_0 = 2.5$": {"margin": 2.5},
    r"$\eta_1 = .3$": {"lr1": 0.3},
    r"$\tau_0 = 1$": {"init_std": 1.0},
    "d = 160": {"dim": 160},
}


def gate_shut(settings: Any) -> bool:
    """Stage 1 learns nothing of the hard part: its step is at least twice the critical one."""
    at, u, r = rest_at(settings), settings["z_norm"], settings["zeta_norm"]
    return bool(
        settings["lr1"] >= 2 * exact.critical_lr(settings["init_std"], at.hard, u, r, at.slope)
    )


@claim("Theorem 2 (b.2)", below(0.25), rivals={"log 2": level("loss_easy", lambda ds: 0.693)})
def easy_learned(ds: xr.Dataset) -> Everywhere:
    """stage 1 learns the easy part, with either length (loss below 0.25)"""
    return everywhere(mean, ending(ds.loss_easy.sel(schedule=BOTH), 1))


@claim(
    "derived from eq. (4)",
    equals(1, within=0.2),
    kind="corrected",
    law=level("w_norm", easy_rest),
    rivals={
        "d log d": level("w_norm", d_log_d),
        "a fixed slope": level("w_norm", lambda ds: ds.margin**2 / (8 * ds.weight_decay)),
    },
)
def easy_at_rest(ds: xr.Dataset) -> Everywhere:
    """the easy signal goes to the rest of its decay and its gradient (ratio)"""
    return everywhere(mean, ending(ds.w_norm, 1) / easy_rest(ds))


@claim("Theorem 2 (b.1)", between(0.5, 2), expected="fails", because=(easy_at_rest,))
def easy_norm(ds: xr.Dataset) -> Everywhere:
    """the easy signal grows to d log(1/eps), eps = 1/d, up to a factor 2 (ratio)"""
    return everywhere(mean, ending(ds.w_norm.sel(schedule=BOTH), 1) / d_log_d(ds))


# ----------------------------------------------------------------- the whole network


@claim("Theorem 2 (b.1)", above(0.95), rivals={"half": scaled("w_cosine", lambda ds: 0.5)})
def easy_direction(ds: xr.Dataset) -> Estimate:
    """the easy signal points along the target: cosine over 0.95 after stage 1"""
    return mean(ending(ds.w_cosine.sel(model="full"), 1))


@claim("Theorem 2 (b.2)", below(0.02))
def easy_error(ds: xr.Dataset) -> Estimate:
    """all weights classify the easy part nearly without error after stage 1"""
    return mean(ending(ds.error_easy.sel(model="full"), 1))


@claim(
    "Theorem 3 (c.2)",
    between(0.51, 0.56),
    kind="corrected",
    rivals=NOTHING,
)
def hard_full(ds: xr.Dataset) -> Estimate:
    """with all weights too stage 2 learns one side of the hard part (median loss)"""
    return median(ending(ds.loss_hard.sel(model="full"), 2))


def difference_of_medians(a: xr.DataArray, b: xr.DataArray) -> Estimate:
    """Between medians of different trainings; both ends of both intervals, so over 95%."""
    x, y = median(a), median(b)
    return Estimate(x.value - y.value, x.low - y.high, x.high - y.low)


@claim("found here", between(-0.01, 0.01), kind="own")
def reduction_hard(ds: xr.Dataset) -> Estimate:
    """five numbers give the final loss of the hard part (difference of medians)"""
    full, reduced = (ds.loss_hard.sel(model=m, drop=True) for m in ("full", "reduced"))
    return difference_of_medians(ending(full, 2), ending(reduced, 2))


@claim("found here", between(-0.06, 0.06), kind="own")
def reduction_easy(ds: xr.Dataset) -> Estimate:
    """and the loss of the easy part after stage 1, up to the noise across the target"""
    full, reduced = (ds.loss_easy.sel(model=m, drop=True) for m in ("full", "reduced"))
    return paired_difference(ending(full, 1), ending(reduced, 1))


# ------------------------------------------------------------------------------------ drawing


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Stage 1 and the easy part")
    one = ds.sel(schedule="annealed", stage=slice(0, 1))
    plot.curve(left, one.loss_easy, "stage")
    plot.curve(right, one.w_norm, "stage", label="measured")
    plot.theory_curve(right, [0, 1], [float(easy_rest(one))] * 2, "at rest")
    return fig


def draw_law(ds: xr.Dataset):
    fig, (ax,) = plot.figure(
        title="The easy signal at other settings", width=4.6, seeds=ds.sizes["seed"]
    )
    ratio = ending(ds.w_norm, 1) / easy_rest(ds)
    each = [mean(ratio.sel(variation=v)) for v in ds.variation.values]
    over_settings(ax, each, ds.variation, "norm over that at rest", 1.0)
    ax.tick_params(axis="x", rotation=60)
    ax.set_ylim(0, 1.5)
    return fig


def draw_base(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="The easy signal goes to its rest", width=4.2)
    first = ds.sel(stage=slice(0, 1))
    plot.curve(ax, first.w_norm, "stage", label="measured")
    plot.theory_curve(ax, [0, 1], [float(easy_rest(ds))] * 2, "at rest")
    return fig


def draw_models(ds: xr.Dataset):
    fig, axes = plot.figure(1, 3, title="All weights, and the population in five numbers")
    for ax, name in zip(axes, ("loss_easy", "loss_hard", "w_norm"), strict=True):
        plot.curve(ax, ds[name], "stage", hue="model")
    return fig


SHORT = {"lr2": 0.1, "k1": 4.0, "k2": 0.01}
EXPERIMENTS = (
    Experiment(
        "thm2",
        says="The loss and the signal of the easy part in stage 1.",
        trainings=TWO_STAGES,
        claims=(easy_learned, easy_norm),
        figure=draw,
    ),
    Experiment(
        "thm2_law",
        says="The easy signal after stage 1 at other settings, against its rest.",
        trainings=Trainings(
            grid={**SHORT, "variation": cases(VARIATIONS)}, seeds=256, quick={"seeds": 24}
        ),
        claims=(easy_at_rest,),
        figure=draw_law,
    ),
    Experiment(
        "thm2_base",
        says="The same at one setting, from which the others of its domain are drawn.",
        trainings=Trainings(
            grid=SHORT,
            seeds=256,
            quick={"seeds": 24},
            domain={
                "weight_decay": (0.01, 0.6),
                "margin": (0.25, 2.5),
                "lr1": (0.05, 0.5),
                "init_std": (0.1, 1),
                "z_norm": (8, 80),
            },
            where=gate_shut,
        ),
        claims=(easy_at_rest,),
        figure=draw_base,
    ),
    Experiment(
        "thm2_full",
        says="All weights on 96 prompts against the population in five numbers.",
        trainings=Trainings(
            grid={
                "z_norm": 12.0,
                "model": cases(
                    {"full": {"simulator": "full"}, "reduced": {"simulator": "reduced"}}
                ),
            },
            seeds=64,
            quick={"seeds": 9},
        ),
        claims=(easy_direction, easy_error, hard_full, reduction_hard, reduction_easy),
        figure=draw_models,
    ),
)
