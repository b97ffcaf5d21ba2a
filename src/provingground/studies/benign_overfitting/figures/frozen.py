"""A control: the phase diagram with attention that is not trained, where the outcome is known."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, curve, equals
from provingground.stats import (
    Estimate,
    Everywhere,
    everywhere,
    jackknife,
    mean,
    paired_ratio,
    threshold,
)
from provingground.study import Experiment, Trainings, axis

from .. import theory
from .shared import ATTENTION, CUT, at_ratio, ratio, scaled, values_equal_at

TRAININGS = Trainings(
    grid={
        "key_width": 64,
        "attention": ATTENTION,
        "samples": [4, 6, 8, 12, 16, 20],
        "ratio": axis(np.geomspace(0.3, 8, 14), "R", "signal ratio", sets=at_ratio),
    },
    seeds=8,
    quick={"samples": [6, 9], "ratio": np.geomspace(0.3, 7, 7), "seeds": 8, "test_samples": 50},
    # Steps must be small, lr noise_big^2 dim at most twice that of Figure 1: `coarse_steps` says
    # what happens beyond. Much smaller ones are left out since frozen attention takes long.
    domain={
        "noise": (0.05, 0.5),
        "noise_big": (1.0, 10.0),
        "lr": (0.01, 0.1),
        "eps": (0.003, 0.03),
        "init_scale": (1 / 160, 1 / 16),  # Condition 4.1 (7): larger values at the start stay
        "dim": [512, 1024, 2048],
    },
    where=lambda s: 500 < s["lr"] * s["noise_big"] ** 2 * s["dim"] < 3000,
)


def frozen(ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(attention="frozen", drop=True)


def loss_law(ds: xr.Dataset) -> xr.DataArray:
    share = theory.signal_share(ratio(ds), ds.tokens, ds.noise, ds.noise_big)
    return theory.frozen_test_loss(ds.eps, share)


@claim(
    "derived from Lemma 5.1",
    equals(1, within=0.2),
    kind="own",
    law=values_equal_at(2.0),
    rivals={
        "R": values_equal_at(1.0),
        "sqrt(R/2)": scaled("value_signal", lambda ds: (ratio(ds) / 2) ** -0.5),
    },
)
def frozen_values(ds: xr.Dataset) -> Everywhere:
    """with frozen attention the values stay in the proportion of their speeds: V_signal/V_noise is
    R/2 to the end (ratio)"""
    end = frozen(ds).isel(step=-1)
    return everywhere(paired_ratio, end.value_signal, end.value_noise * (ratio(end) / 2))


@claim(
    "derived from Lemma 5.1",
    equals(1, within=0.2),
    kind="own",
    law=curve("test_loss", loss_law),
    rivals={
        "R for R/2": curve(
            "test_loss",
            lambda ds: theory.frozen_test_loss(
                ds.eps, theory.signal_share(2 * ratio(ds), ds.tokens, ds.noise, ds.noise_big)
            ),
        )
    },
)
def frozen_loss(ds: xr.Dataset) -> Everywhere:
    """with frozen attention the test loss is that of the signal's share of the margin (ratio)"""
    at = frozen(ds)
    return everywhere(mean, at.test_loss / loss_law(at))


@claim(
    "found here",
    below(0.7),
    kind="own",
    rivals={"the law": curve("test_loss", loss_law)},
)
def coarse_steps(ds: xr.Dataset) -> Estimate:
    """where a step moves the values 32 times as far as in Figure 1, the test loss above the
    boundary (R = 4 and 7, frozen attention) is below that law (ratio)"""
    return paired_ratio(ds.test_loss, loss_law(ds).expand_dims(seed=ds.seed))


def draw_coarse(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Frozen attention, coarse steps", width=4.2)
    plot.curve(ax, ds.test_loss, "ratio", log="x")
    plot.theory_curve(ax, ds.ratio.values.astype(float), loss_law(ds).values, "small steps")
    return fig


def untrained(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset in which training the attention changes no test loss."""
    same = frozen(ds).test_loss + 0 * ds.test_loss
    return ds.assign(test_loss=same.transpose(*ds.test_loss.dims))


def width(loss: xr.DataArray) -> float:
    """log R from a test loss of 0.4 down to one of 0.15."""
    high, low = (np.log(threshold(loss, "ratio", level).value) for level in (0.4, 0.15))
    return float(low - high)


def trained_less_frozen(of: Callable[[xr.DataArray], float], ds: xr.Dataset) -> Everywhere:
    """How much a number read off the curve of the loss changes when attention is trained."""

    def change(y: xr.DataArray) -> float:
        return of(y.sel(attention="trained")) - of(y.sel(attention="frozen"))

    return everywhere(
        lambda loss: jackknife(change, loss).map(np.exp), ds.test_loss, keep=("ratio", "attention")
    )


@claim("found here", above(1.2), kind="own", rivals={"no effect": untrained})
def attention_shifts(ds: xr.Dataset) -> Everywhere:
    """training the attention moves the boundary: it takes over 1.2 times the R (at loss 0.2)"""
    return trained_less_frozen(lambda y: np.log(threshold(y, "ratio", CUT).value), ds)


@claim("found here", below(0.75), kind="own", rivals={"no effect": untrained})
def attention_sharpens(ds: xr.Dataset) -> Everywhere:
    """training the attention makes the transition sharp: the loss falls from 0.4 to 0.15 over less
    than 0.75 times the range of log R"""

    def of(y: xr.DataArray) -> float:
        return float(np.log(width(y)))

    return trained_less_frozen(of, ds)


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="The phase diagram with and without trained attention")
    for ax, attention in zip(axes, ds.attention.values, strict=True):
        at = ds.sel(attention=attention)
        plot.phase_diagram(ax, at.test_loss, "samples", "ratio", cut=CUT, log="y")
        ax.set_title(f"attention {attention}")
    n = axes[0].get_xlim()
    plot.theory_curve(axes[0], n, [2.0, 2.0], "values equal, $R = 2$")
    r = np.geomspace(0.01, 10, 2000)
    share = theory.signal_share(r, float(ds.tokens), float(ds.noise), float(ds.noise_big))
    at_cut = float(np.interp(-CUT, -theory.frozen_test_loss(float(ds.eps), share), r))
    plot.theory_curve(axes[1], n, [at_cut] * 2, "frozen attention, $L = 0.2$")
    return fig


EXPERIMENTS = (
    Experiment(
        "frozen",
        says="The phase diagram in R with attention that is trained, and that stays as it began.",
        trainings=TRAININGS,
        claims=(frozen_values, frozen_loss, attention_shifts, attention_sharpens),
        figure=draw,
    ),
    Experiment(
        "frozen_coarse",
        says="Frozen attention where the law ends: noises four times those of Figure 1 at its step "
        "size.",
        trainings=Trainings(
            grid={
                "key_width": 64,
                "attention_rate": 0.0,
                "dim": 2048,
                "samples": 9,
                "noise": 0.8,
                "noise_big": 16.0,
                "ratio": axis([4.0, 7.0], "R", "signal ratio", sets=at_ratio),
            },
            seeds=8,
        ),
        claims=(coarse_steps,),
        figure=draw_coarse,
    ),
)
