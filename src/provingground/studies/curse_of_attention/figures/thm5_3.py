"""Theorem 5.3: attention on the last step, of trained neurons and of one neuron alone."""

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, curve, equals
from provingground.stats import Everywhere, everywhere, last, mean
from provingground.study import Experiment, Trainings

from .. import theory
from .shared import TRAINED

# ------------------------------------------------------------------------- one neuron alone


def slope(ds: xr.Dataset) -> xr.DataArray:
    """(d E S_d - 1)/w at the smallest weights."""
    small = ds.attention.sel(weight=abs(ds.weight) < 0.1)
    return ((small - 1) / small.weight).mean("weight")


@claim(
    "Theorem 5.3, for w < 0",
    below(1),
    kind="corrected",
    rivals={"all alike": curve("attention", lambda ds: 1.0 + 0 * ds.weight)},
)
def negative_weights(ds: xr.Dataset) -> Everywhere:
    """for w < 0 the last step gets less than its share 1/d (d E S_d)"""
    return everywhere(mean, ds.attention.sel(weight=ds.weight < 0))


@claim(
    "derived: which neurons Theorem 5.3 speaks of",
    equals(1, within=0.15),
    kind="own",
    law=curve("attention", lambda ds: 1 + ds.weight * theory.attention_slope(ds.tokens, ds.scale)),
    rivals={
        "no slope": curve("attention", lambda ds: 1 + 0 * ds.weight),
        "sigma'": curve("attention", lambda ds: 1 + ds.weight * ds.scale * (1 - 1 / ds.tokens)),
    },
)
def slope_law(ds: xr.Dataset) -> Everywhere:
    """d E S_d = 1 + w sigma'^2 (1 - 1/d) near w = 0, so its side of one is the sign of w (ratio of
    the slopes)"""
    return everywhere(mean, slope(ds) / theory.attention_slope(ds.tokens, ds.scale))


@claim("found here", below(3), kind="own")
def positive_weights(ds: xr.Dataset) -> Everywhere:
    """even for w > 0 the last step gets less than 3/d (d E S_d)"""
    return everywhere(mean, ds.attention.sel(weight=ds.weight > 0))


@claim(
    "theory.attention_limits",
    equals(0, within=0.15),
    kind="own",
    rivals={"1": curve("attention", lambda ds: 1.0 + 0 * ds.weight)},
)
def limits(ds: xr.Dataset) -> Everywhere:
    """d E S_d tends to 2^(1-d) and 2 - 2^(1-d) as w goes to minus and plus infinity (difference at
    |w| = 20, d = 2 and 4)"""
    at = ds.sel(tokens=[2, 4], scale=ds.scale >= 1, weight=[-20.0, 20.0])
    low, high = theory.attention_limits(at.tokens)
    return everywhere(mean, at.attention - xr.where(at.weight > 0, high, low))


def draw_gaussian(ds: xr.Dataset):
    fig, axes = plot.figure(1, ds.sizes["scale"], title="Attention of one neuron on the last step")
    for ax, scale in zip(axes, ds.scale.values, strict=True):
        at = ds.sel(scale=scale)
        plot.curve(ax, at.attention, "weight", hue="tokens")
        ax.set_xscale("symlog", linthresh=1.0)
        w, d = np.linspace(-0.3, 0.3, 3), float(ds.tokens[-1])
        line = 1 + w * theory.attention_slope(d, float(scale))
        plot.theory_curve(ax, w, line, r"$1 + w\sigma'^2(1-1/d)$")
        ax.set_title(rf"$\sigma' = {scale:g}$")
        ax.set_ylim(0, 2.8)
    return fig


# -------------------------------------------------------------------------- trained neurons


@claim("Theorem 5.3, for a_r = -1 and w_r < 0", below(1), kind="corrected")
def silent_neurons(ds: xr.Dataset) -> Everywhere:
    """trained neurons with a_r = -1 and w_r < 0 attend to the last step less than to others (mean
    d E S_d)"""
    return everywhere(mean, last(ds.attention))


@claim(
    "Theorem 5.3, for all r with a_r = -1",
    above(0.9),
    expected="fails",
    because=(slope_law, negative_weights, silent_neurons),
)
def silent_printed(ds: xr.Dataset) -> Everywhere:
    """trained neurons with a_r = -1 attend to the last step no more than to others (share of them
    with d E S_d <= 1)"""
    return everywhere(mean, last(ds.silent))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Neurons with read-out $-1$")
    at = ds.isel(step=slice(1, None))
    plot.curve(left, at.silent, "step", hue="features", log="x")
    plot.theory_curve(left, at.step, np.ones(at.step.size), "Theorem 5.3")
    left.set_ylim(0, 1.05)
    plot.curve(right, at.attention, "step", hue="features", log="x")
    right.set_ylim(0, 1.05)
    return fig


EXPERIMENTS = (
    Experiment(
        "thm5_3",
        says="Attention of trained neurons on the last step, by the sign of their read-out.",
        trainings=TRAINED,
        claims=(silent_printed, silent_neurons),
        figure=draw,
    ),
    Experiment(
        "thm5_3_gaussian",
        says="Mean attention on the last step of a Gaussian series against the weight.",
        trainings=Trainings(
            grid={"tokens": [2, 4, 8, 16], "scale": [0.5, 1.0, 2.0]},
            simulator="gaussian",
            seeds=16,
            quick={"samples": 10_000, "scale": [0.5, 1.0], "seeds": 4},
        ),
        claims=(negative_weights, slope_law, positive_weights, limits),
        figure=draw_gaussian,
    ),
)
