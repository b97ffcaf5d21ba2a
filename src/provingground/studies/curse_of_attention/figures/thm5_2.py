"""Theorem 5.2: the loss vanishes, and the weights take the signs of their read-outs."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim, curve, equals
from provingground.stats import Estimate, Everywhere, everywhere, last, mean, paired_ratio, share
from provingground.study import Experiment, Trainings

from .. import theory
from .ntk import collapse, lazy
from .shared import LATE, TRAINED, UNIT, WIDTHS, at_step, geometric, replaced

# ------------------------------------------------------------- two samples, down to epsilon


def promised(ds: xr.Dataset) -> xr.DataArray:
    """The time of the theorem for the epsilon that was reached, with the seed's own kernel."""
    b2 = theory.bound_b2(ds.samples, ds.tokens, ds.noise)
    eps = ds.eps * ds.train_loss.isel(step=0)
    return theory.convergence_time(ds.lr / ds.kernel_max, ds.kernel_min, ds.samples, b2, eps)


@claim("Theorem 5.2, L(T) <= epsilon", above(0.75))
def loss_in_time(ds: xr.Dataset) -> Everywhere:
    """the loss has fallen to epsilon by T = log(n B^2/epsilon)/(eta lambda) (share of seeds; those
    that were not there when the steps ran out count as not)"""
    done = last(ds.train_loss) <= ds.eps * ds.train_loss.isel(step=0) * (1 + 1e-9)
    return everywhere(share, done & (ds.stopped_at <= promised(ds)))


@claim(
    "Lemma H.1",
    above(1),
    rivals={"half of it": replaced("slowest", lambda ds: 0.5 + 0 * ds.slowest)},
)
def rate(ds: xr.Dataset) -> Everywhere:
    """in every step 1 - L(t+1)/L(t) is at least eta lambda/2 (smallest ratio of a training)"""
    return everywhere(geometric, ds.slowest.clip(min=1e-6))


@claim("Lemma 5.1", above(0.5))
def kernel_stays(ds: xr.Dataset) -> Everywhere:
    """the smallest eigenvalue of the kernel stays above half of its start (the least ratio)"""
    return everywhere(geometric, ds.kernel_ratio.min("step").clip(min=1e-6))


@claim(
    "found here",
    equals(0, within=0.1),
    kind="own",
    law=replaced("sign", lambda ds: ds.lazy_sign),
    rivals={"Theorem 5.2": replaced("sign", lambda ds: 0 * ds.lazy_sign + 1.0)},
)
def signs_as_frozen(ds: xr.Dataset) -> Everywhere:
    """when the loss is gone the share of signs equal to a_r is that of the frozen kernel
    (difference)"""
    return everywhere(mean, last(ds.sign) - ds.lazy_sign)


@claim("Theorem 5.2, L(T) <= epsilon", below(0.01), expected="fails", because=(collapse, lazy))
def loss_vanishes(ds: xr.Dataset) -> Everywhere:
    """the training loss falls to 1% of its start (64 samples)"""
    return everywhere(paired_ratio, last(ds.train_loss), ds.train_loss.isel(step=0, drop=True))


# ------------------------------------------------------------------- against the width


def excess(ds: xr.Dataset) -> xr.DataArray:
    """The share of signs equal to a_r above chance."""
    return at_step(ds.sign, LATE).sel(samples=64) - 0.5


@claim(
    "Theorem 5.2, corrected",
    equals(-1 / 2, within=0.2),
    kind="corrected",
    law=curve("sign", lambda ds: 0.5 + 0.8 * ds.width**-0.5),
    rivals={
        "as Theorem 5.2": curve("sign", lambda ds: 0.9 + 0 * ds.width),
        "1/m": curve("sign", lambda ds: 0.5 + 8 / ds.width),
    },
)
def excess_exponent(ds: xr.Dataset) -> Estimate:
    """the share of signs equal to a_r falls to one half as m^(-1/2): the wider, the less it holds
    (exponent of the excess, 60 steps)"""
    return stats.power_law(excess(ds), "width").slope


@claim(
    "Theorem 5.2, with probability 1 - delta",
    above(0.9),
    expected="fails",
    because=(signs_as_frozen, excess_exponent),
)
def signs_follow(ds: xr.Dataset) -> Everywhere:
    """when the loss is gone the weights have the signs of a_r (share of neurons)"""
    return everywhere(mean, last(ds.sign))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Two samples, until the loss is gone")
    ratio = (ds.stopped_at / promised(ds)).rename("ratio")
    seeds = np.arange(ds.sizes["seed"]) / ds.sizes["seed"]
    for w in ds.width.values:
        left.plot(np.sort(ratio.sel(width=w).values), seeds, label=f"$m = {int(w)}$", gid="series")
    left.set_xlabel("steps taken over $T$ of Theorem 5.2")
    left.set_ylabel("share of seeds below")
    left.set_xscale("log")
    plot.theory_curve(left, [1.0, 1.0], [0, 1], "Theorem 5.2")
    plot.curve(
        right, last(ds.sign).assign_attrs(ds.sign.attrs), "width", log="x", label="at the end"
    )
    plot.curve(right, ds.lazy_sign, "width", log="x", label="frozen kernel")
    span = [float(ds.width[0]) / 2, float(ds.width[-1]) * 2]
    plot.theory_curve(right, span, [1.0, 1.0], "Theorem 5.2")
    right.set_ylim(0.4, 1.05)
    return fig


def draw_width(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Signs of the weights and of their read-outs", width=4.2)
    y = excess(ds).assign_attrs(long_name="share of signs equal to $a_r$, less 1/2")
    plot.law(ax, y, "width", fit=stats.power_law(y, "width"), predicted=-0.5)
    return fig


def draw_many(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Training loss with 64 samples", width=4.2)
    at = ds.isel(step=slice(1, None))
    left = (at.train_loss / ds.train_loss.isel(step=0)).assign_attrs(
        long_name="loss over its start"
    )
    plot.curve(ax, left, "step", hue="features", log="xy")
    plot.theory_curve(ax, at.step, np.full(at.step.size, 0.01), "1%")
    return fig


EXPERIMENTS = (
    Experiment(
        "thm5_2",
        says="Two samples, trained until the loss is gone: what Theorem 5.2 says of that time.",
        trainings=Trainings(
            grid={
                "mode": UNIT,
                "noise": 0.1,
                "lr": 1.0,
                "width": [64, 256, 1024],
                "steps": 100_000,
                "record": 24,
            },
            simulator="few",
            seeds=64,
            quick={"width": [256], "steps": 30_000, "record": 16, "seeds": 48},
            domain={
                "gamma": (0.1, 0.95),
                "noise": (0.03, 0.3),
                "tokens": [4, 8, 16],
                "lr": (0.1, 1.0),
                "eps": (0.003, 0.03),
            },
        ),
        claims=(loss_in_time, rate, kernel_stays, signs_follow, signs_as_frozen),
        figure=draw,
    ),
    Experiment(
        "thm5_2_width",
        says="The share of weights with the sign of their read-out against the width.",
        trainings=WIDTHS,
        claims=(excess_exponent,),
        figure=draw_width,
    ),
    Experiment(
        "thm5_2_many",
        says="The training loss where there are more samples than the kernel can tell apart.",
        trainings=TRAINED,
        claims=(loss_vanishes,),
        figure=draw_many,
    ),
)
