"""Lemma A.3.1: lucky neurons against trainings."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, below, claim, equals
from provingground.stats import Everywhere, everywhere
from provingground.study import Experiment, Trainings, cases

from .. import theory
from .fig2_4 import IN_TIME
from .gap import aside_stays
from .shared import SMALL, aside

READOUTS = cases({"shared": {"shared": 1.0}, "per position": {"shared": 0.0}})
BEGINNING = 2.0  # of time, as step size times steps


def lucky(y: xr.DataArray) -> xr.DataArray:
    return y.sel(fate="lucky", drop=True)


# ------------------------------------------------------------------------------- who is active


def alike(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset in which neurons stay active, or fall silent, whatever their read-out."""
    return ds.assign(active=(ds.active.mean("fate") + 0 * ds.active).transpose(*ds.active.dims))


ALIKE = {"whatever the read-out": alike}


@claim("Lemma A.5.2 (A.193), made precise", above(0.9), kind="corrected", rivals=ALIKE)
def lucky_stay(ds: xr.Dataset) -> Everywhere:
    """neurons that are lucky and of the class of the sample stay active until the end (share)"""
    return everywhere(stats.mean, lucky(stats.last(ds.active)))


@claim("found here", below(0.3), kind="own", rivals=ALIKE)
def against_die(ds: xr.Dataset) -> Everywhere:
    """neurons that are active at the start but of the other class do not (share)"""
    return everywhere(stats.mean, stats.last(ds.active).sel(fate="against", drop=True))


@claim(
    "Lemma A.5.2 (A.193)",
    above(0.9),
    expected="fails",
    because=(lucky_stay, against_die),
)
def all_lucky_stay(ds: xr.Dataset) -> Everywhere:
    """lucky neurons as (A.8) defines them stay active, whether their read-out is that of the
    sample's class or of the other (share of either)"""
    return everywhere(stats.mean, stats.last(ds.active).sel(fate=["lucky", "against"]))


# ------------------------------------------------------------------------------ how they grow


def grown(ds: xr.Dataset) -> xr.DataArray:
    """The growth of lucky neurons along p_1 since the start."""
    return lucky(ds.neuron) - stats.first(lucky(ds.neuron))


def velocity(ds: xr.Dataset) -> xr.DataArray:
    def at(*settings: Any) -> Any:
        return theory.neuron_velocity(*settings)

    args = (ds[n] for n in ("frac_relevant", "frac_confusion", "n_patterns", "width", "tokens",
                            "shared", "key_scale"))  # fmt: skip
    return xr.apply_ufunc(at, *args, vectorize=True)


def early(ds: xr.Dataset) -> xr.Dataset:
    """The last recorded step of the beginning, which is one in `BEGINNING` over the step size."""
    far = float(BEGINNING / ds.lr.max())
    return ds.isel(step=int((ds.step <= far).sum()) - 1)


def neurons_are(law: Any) -> Altered:
    """The Dataset whose lucky neurons grow by a law of the step."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        start = ds.neuron.isel(step=0, drop=True)
        made = start + law(ds) + 0 * ds.neuron
        return ds.assign(neuron=made.transpose(*ds.neuron.dims))

    return altered


@claim(
    "found here",
    equals(1, within=0.2),
    kind="own",
    law=neurons_are(lambda ds: ds.lr * ds.step * velocity(ds)),
    rivals={
        "t^2 (A.19)": neurons_are(
            lambda ds: (
                theory.neuron_growth(
                    ds.step, ds.lr, ds.frac_relevant, ds.attention, ds.hidden_init_std
                )
                - ds.hidden_init_std
            )
        ),
        "all attention": neurons_are(
            lambda ds: ds.lr * ds.step * ds.frac_relevant / (2 * ds.width**0.5)
        ),
    },
)
def neuron_velocity(ds: xr.Dataset) -> Everywhere:
    """lucky neurons start to grow along p_1 linearly in time, with the velocity of the closed form
    of `theory.neuron_velocity` (ratio)"""
    now = early(ds)
    now = now.assign(grown=grown(ds).sel(step=now.step))
    return everywhere(stats.mean, now.grown / (ds.lr * now.step * velocity(ds)))


@claim(
    "found here",
    equals(1, within=0.15),
    kind="own",
    law=neurons_are(lambda ds: ds.lr * ds.step * 1e-2),
    rivals={"t^2": neurons_are(lambda ds: (ds.lr * ds.step) ** 2 * 1e-2)},
)
def neuron_time(ds: xr.Dataset) -> Everywhere:
    """their growth is linear in time at the beginning (exponent)"""
    far = float(BEGINNING / ds.lr.max())
    y = grown(ds).isel(step=((ds.step > 0) & (ds.step <= far)).values)
    return everywhere(lambda y: stats.power_law(y, "step").slope, y, keep="step")


def over_bound(ds: xr.Dataset) -> xr.DataArray:
    """Lucky neurons at the end over the right-hand side of (A.19)."""
    mass = stats.last(ds.attention)
    bound = theory.neuron_growth(
        ds.stopped_at.astype(float), ds.lr, ds.frac_relevant, mass, ds.hidden_init_std
    )
    return lucky(stats.last(ds.neuron)) / bound


@claim(
    "Lemma A.3.1, Claim 1 (A.19), hidden constant 1",
    above(1),
    expected="fails",
    because=(neuron_velocity, neuron_time),
    rivals={"as measured, a fifth": neurons_are(lambda ds: 0.05)},
)
def growth_bound(ds: xr.Dataset) -> Everywhere:
    """when training ends lucky neurons have grown to xi eta t^2 alpha^2 p / 4 + xi along p_1
    (ratio)"""
    return everywhere(stats.mean, over_bound(ds))


@claim(
    "found here",
    equals(1, within=0.2),
    kind="own",
    rivals={"no dependence": neurons_are(lambda ds: ds.stopped_at * ds.lr * ds.stopped_at * 1e-2)},
)
def bound_in_lr(ds: xr.Dataset) -> Everywhere:
    """the constant hidden in (A.19) would have to be proportional to the step size: what grows is a
    function of eta t, not of eta t^2 (exponent)"""
    return everywhere(lambda y: stats.power_law(y, "lr").slope, over_bound(ds), keep="lr")


# ---------------------------------------------------------------------------------- directions


def everywhere_alike(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose neurons grow along all features as along their own."""
    own = ds.growth.sel(relation="own", drop=True)
    return ds.assign(growth=(own + 0 * ds.growth).transpose(*ds.growth.dims))


@claim("found here", below(0.3), kind="own", rivals={"all features alike": everywhere_alike})
def growth_is_along_own(ds: xr.Dataset) -> Everywhere:
    """neurons grow along the feature of their class: along irrelevant ones less than a third as
    much"""
    return everywhere(stats.mean, aside(ds))


@claim("Lemma A.3.1, Claim 1 (A.20), hidden constant 1", below(1), expected="fails",
       because=(aside_stays,), rivals={"all features alike": everywhere_alike})  # fmt: skip
def directions(ds: xr.Dataset) -> Everywhere:
    """along irrelevant features they grow at most 1 / sqrt(B) as much (ratio times sqrt(B))"""
    return everywhere(stats.mean, aside(ds) * np.sqrt(ds.samples))


# --------------------------------------------------------------------------------- drawing


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Lucky neurons")
    left, right = axes
    one = ds.isel(lr=-1)
    most = int(one.stopped_at.max())
    one = one.isel(step=((one.step <= most) & (one.step > 0)).values)
    for name in one.readout.values:
        part = one.sel(readout=name)
        y = lucky(part.neuron) - stats.first(lucky(ds.neuron.isel(lr=-1).sel(readout=name)))
        y = y.assign_attrs(long_name="growth of lucky neurons", symbol="W_{O,i}p_1")
        plot.curve(left, y, "step", label=str(name), log="xy")
        speed = float(velocity(part)) * float(part.lr)
        plot.theory_curve(left, part.step, speed * part.step, "closed form, linear in t")
    t = one.step.values.astype(float)
    bound = theory.neuron_growth(t, float(one.lr), float(one.frac_relevant), 0.6,
                                 float(one.hidden_init_std))  # fmt: skip
    plot.theory_curve(left, t, bound - float(one.hidden_init_std), "(A.19)")
    plot.curve(right, one.active.sel(readout="shared"), "step", hue="fate", log="x")
    right.set_ylim(-0.02, 1.02)
    return fig


EXPERIMENTS = (
    Experiment(
        "lemma_a3_1",
        says="Lucky neurons in time, with a shared read-out as in the proof and with one per "
        "position.",
        trainings=Trainings(
            grid={
                **IN_TIME,
                "readout": READOUTS,
                "lr": [0.02, 0.05, 0.2],
                "samples": 128,
                "steps": 20_000,
            },
            seeds=20,
            quick={**SMALL, "lr": [0.05, 0.2], "steps": 4000, "seeds": 5},
            domain={
                "frac_relevant": (0.2, 0.8),
                "frac_confusion": (0.01, 0.15),
                "hidden_init_std": (0.003, 0.03),
                "key_error": (0.0, 0.3),
                "value_error": (0.0, 0.3),
                "lr": (0.02, 0.2),
            },
            where=lambda s: s["frac_relevant"] + s["frac_confusion"] < 1,
        ),
        claims=(
            lucky_stay,
            against_die,
            all_lucky_stay,
            neuron_velocity,
            neuron_time,
            growth_bound,
            bound_in_lr,
            growth_is_along_own,
            directions,
        ),
        figure=draw,
    ),
)
