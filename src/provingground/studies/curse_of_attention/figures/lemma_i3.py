"""Lemma I.3: do weights move towards their read-out, how far, and for how long?"""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, curve, equals
from provingground.stats import Everywhere, everywhere, mean
from provingground.study import Experiment, Trainings, cases

from .. import theory
from .shared import (
    GAMMAS,
    QUICK_GAMMAS,
    TRAINED,
    WEAK,
    core,
    end,
    norm,
    total,
)

FIRST = dict(steps=4, record=4, test_samples=50)  # steps 0, 1, 2 and 4


def first(ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(step=1, drop=True)


def first_move(ds: xr.Dataset) -> xr.DataArray:
    """The first move with its constant; the step size is that of each seed."""
    pull = theory.first_pull(core(ds), total(ds) - core(ds), ds.tokens, ds.noise)
    return theory.first_move(ds.lr / ds.kernel_max, ds.samples, pull, ds.width)


def first_sign(ds: xr.Dataset) -> xr.DataArray:
    return theory.sign_share(first_move(ds), ds.init_scale)


def signal(ds: xr.Dataset) -> xr.DataArray:
    return theory.order_signal(core(ds), norm(ds), ds.samples, ds.noise)


@claim(
    "Lemma I.3 with its constant, at F = 0",
    equals(1, within=0.25),
    kind="corrected",
    law=curve("move", lambda ds: first_move(ds).mean("seed")),
    rivals={
        "n gamma v_min": curve("move", lambda ds: 0.3 * first_move(ds).mean("seed")),
        "not of gamma": curve("move", lambda ds: (first_move(ds) / core(ds)).mean("seed") * 0.6),
    },
)
def first_move_law(ds: xr.Dataset) -> Everywhere:
    """weights near zero first move by eta n E[y x_d v]/sqrt(m) towards a_r, E[y x_d v] = (1 +
    sigma^2)(c_d (d+2)(d-1) - 2 sum_{k<d} c_k)/d^2 (ratio)"""
    at = first(ds)
    return everywhere(mean, at.move / first_move(at))


@claim(
    "Theorem 5.2, corrected",
    equals(0, within=0.03),
    kind="corrected",
    law=curve("sign", lambda ds: first_sign(ds).mean("seed")),
    rivals={
        "chance": curve("sign", lambda ds: 0.5 + 0 * ds.width),
        "Theorem 5.2": curve("sign", lambda ds: 1.0 + 0 * ds.width),
    },
)
def sign_share_law(ds: xr.Dataset) -> Everywhere:
    """after the first step the share of weights with the sign of a_r is Phi(move/c_0): only those
    turn that started nearer to zero than they moved (difference)"""
    at = first(ds)
    return everywhere(mean, at.sign - first_sign(at))


@claim("Lemma I.3, where the common pull stands out", above(0.99), kind="corrected")
def first_step_strong(ds: xr.Dataset) -> Everywhere:
    """all weights move towards a_r in the first step where c_d sqrt(n)/tau is over 4"""
    at = first(ds)
    strong = [f for f in at.features.values if float(signal(at).sel(features=f)) > 4]
    return everywhere(mean, at.direction.sel(features=strong))


@claim(
    "Lemma I.3, at F = 0 and n >= N/gamma",
    above(0.99),
    expected="fails",
    because=(first_step_strong, first_move_law),
)
def first_step(ds: xr.Dataset) -> Everywhere:
    """all weights move towards a_r in the first step (share of neurons)"""
    return everywhere(mean, first(ds).direction)


@claim("found here", below(0.8), kind="own")
def pull_turns(ds: xr.Dataset) -> Everywhere:
    """at the end of training less than 0.8 of the weights are still pulled towards a_r"""
    return everywhere(mean, end(ds.pull))


@claim(
    "Lemma I.3, at all times",
    above(0.95),
    expected="fails",
    because=(pull_turns,),
)
def always(ds: xr.Dataset) -> Everywhere:
    """weights still lie on the side of a_r at the end of training (share of neurons)"""
    return everywhere(mean, end(ds.direction))


def draw_direction(ds: xr.Dataset):
    fig, axes = plot.figure(1, 3, title="Do weights follow the sign of their read-out?")
    at = ds.isel(step=slice(1, None))
    for ax, y in zip(axes, (at.direction, at.pull, at.ordered), strict=True):
        plot.curve(ax, y, "step", hue="features", log="x")
        ax.set_ylim(0, 1.05)
    return fig


def draw_first(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="The first step")
    at = first(ds)
    plot.curve(left, at.move, "width", hue="features", log="xy")
    plot.curve(right, at.sign, "width", hue="features", log="x")
    for f in at.features.values:
        here = at.sel(features=f)
        m = here.width.values.astype(float)
        plot.theory_curve(left, m, first_move(here).mean("seed").values, "law")
        plot.theory_curve(right, m, first_sign(here).mean("seed").values, r"$\Phi(\delta/c_0)$")
    right.set_ylim(0.4, 1)
    return fig


EXPERIMENTS = (
    Experiment(
        "lemma_i3",
        says="Share of weights that have moved, and are pulled, towards their read-out.",
        trainings=TRAINED,
        claims=(first_step, first_step_strong, always, pull_turns),
        figure=draw_direction,
    ),
    Experiment(
        "lemma_i3_first",
        says="How far weights move in the first step, and how many take the sign of a_r.",
        trainings=Trainings(
            grid={
                **FIRST,
                "features": cases(GAMMAS),
                "noise": 0.1,
                "init_scale": 0.1,
                "width": [64, 256, 1024],
            },
            seeds=64,
            quick={
                "features": cases({k: v for k, v in QUICK_GAMMAS.items() if k != WEAK}),
                "width": [64, 256],
                "seeds": 32,
            },
            # Weights near zero: the constant is that of w = 0.
            domain={
                "samples": (32, 320),
                "tokens": [4, 8, 16],
                "noise": (0.03, 0.3),
                "init_scale": (0.03, 0.3),
                "lr": (0.1, 1.0),
            },
        ),
        claims=(first_move_law, sign_share_law),
        figure=draw_first,
    ),
)
