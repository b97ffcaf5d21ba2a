"""Lemma I.3: do weights move towards their read-out, how far, and for how long?"""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, curve, equals
from provingground.stats import Everywhere, everywhere, last, mean
from provingground.study import Experiment, Trainings, cases

from .. import theory
from .shared import (
    GAMMAS,
    QUICK_GAMMAS,
    TRAINED,
    core,
    norm,
    replaced,
    total,
)

FIRST = dict(steps=4, record=4, test_samples=50)  # steps 0, 1, 2 and 4


def first(ds: xr.Dataset, init_scale: float = 0.1) -> xr.Dataset:
    """After one step, from weights near zero (0.1) or as the paper has them (1)."""
    return ds.sel(step=1, init_scale=init_scale)


def pull(ds: xr.Dataset) -> xr.DataArray:
    """E[y x_d v] at w = 0."""
    return theory.first_pull(core(ds), total(ds) - core(ds), ds.tokens, ds.noise)


def per_pull(ds: xr.Dataset) -> xr.DataArray:
    """The first move for a pull of one; the step size is that of each seed."""
    return theory.first_move(ds.lr / ds.kernel_max, ds.samples, 1.0, ds.width)


def first_move(ds: xr.Dataset) -> xr.DataArray:
    return pull(ds) * per_pull(ds)


def first_sign(ds: xr.Dataset) -> xr.DataArray:
    return theory.sign_share(first_move(ds), ds.init_scale)


def signal(ds: xr.Dataset) -> xr.DataArray:
    return theory.order_signal(core(ds), norm(ds), ds.tokens, ds.samples, ds.noise)


@claim(
    "Lemma I.3 with its constant, at F = 0",
    equals(0, within=0.15),
    kind="corrected",
    law=replaced("move", first_move),
    rivals={
        "gamma v_min": replaced("move", lambda ds: 0.3 * first_move(ds)),
        "not of gamma": replaced("move", lambda ds: 0.5 * per_pull(ds)),
    },
)
def first_move_law(ds: xr.Dataset) -> Everywhere:
    """weights near zero first move by eta n E[y x_d v]/sqrt(m) towards a_r, E[y x_d v] = (1 +
    sigma^2)(c_d (d+2)(d-1) - 2 sum_{k<d} c_k)/d^2 (difference of the pulls)"""
    at = first(ds)
    return everywhere(mean, at.move / per_pull(at) - pull(at))


@claim(
    "Theorem 5.2, corrected",
    equals(0, within=0.05),
    kind="corrected",
    law=replaced("sign", first_sign),
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
    """all weights move towards a_r in the first step where c_d sqrt(n)/tau is over 6"""
    at = first(ds, 1.0)
    strong = [f for f in at.features.values if float(signal(at).sel(features=f)) > 6]
    return everywhere(mean, at.direction.sel(features=strong))


@claim(
    "Lemma I.3, at F = 0 and n >= N/gamma",
    above(0.99),
    expected="fails",
    because=(first_step_strong, first_move_law),
)
def first_step(ds: xr.Dataset) -> Everywhere:
    """all weights move towards a_r in the first step (share of neurons)"""
    return everywhere(mean, first(ds, 1.0).direction)


@claim("found here", below(0.8), kind="own")
def pull_turns(ds: xr.Dataset) -> Everywhere:
    """at the end of training less than 0.8 of the weights are still pulled towards a_r"""
    return everywhere(mean, last(ds.pull))


@claim(
    "Lemma I.3, at all times",
    above(0.95),
    expected="fails",
    because=(pull_turns,),
)
def always(ds: xr.Dataset) -> Everywhere:
    """weights still lie on the side of a_r at the end of training (share of neurons)"""
    return everywhere(mean, last(ds.direction))


def draw_direction(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Do weights follow the sign of their read-out?")
    at = ds.isel(step=slice(1, None))
    for ax, y in zip(axes, (at.direction, at.pull), strict=True):
        plot.curve(ax, y, "step", hue="features", log="x")
        ax.set_ylim(0, 1.05)
    return fig


def draw_first(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="The first step", seeds=ds.sizes["seed"])
    at = first(ds).sel(width=256)
    places = range(at.sizes["features"])
    plot.curve(left, at.move, "features", label="measured", line=False)
    plot.curve(right, at.sign, "features", label="share of signs $a_r$", line=False)
    wide = first(ds, 1.0).sel(width=256)
    plot.curve(
        right, wide.direction, "features", label="moved towards $a_r$, $c_0 = 1$", line=False
    )
    plot.theory_curve(left, places, first_move(at).mean("seed").values, "Lemma I.3 with constant")
    plot.theory_curve(right, places, first_sign(at).mean("seed").values, r"$\Phi(\delta/c_0)$")
    left.set_xlabel("next feature")
    right.set_xlabel("next feature")
    right.set_ylabel("share of neurons")
    right.set_ylim(0.4, 1.05)
    return fig


EXPERIMENTS = (
    Experiment(
        "lemma_i3",
        says="Share of weights that have moved, and are pulled, towards their read-out.",
        trainings=TRAINED,
        claims=(always, pull_turns),
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
                "init_scale": [0.1, 1.0],
                "width": [64, 256, 1024],
            },
            seeds=64,
            quick={"features": cases(QUICK_GAMMAS), "width": [256], "seeds": 48},
            domain={
                "samples": (32, 320),
                "tokens": [4, 8, 16],
                "noise": (0.03, 0.3),
                "lr": (0.1, 1.0),
            },
        ),
        claims=(first_step, first_step_strong, first_move_law, sign_share_law),
        figure=draw_first,
    ),
)
