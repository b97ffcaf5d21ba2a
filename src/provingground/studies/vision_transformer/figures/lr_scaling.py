"""Steps against the step size, and what attention has become when training ends."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, claim, curve, equals
from provingground.stats import Everywhere, everywhere
from provingground.study import Experiment, Trainings

from .shared import NETWORKS, SMALL, log, of_network, slope


def takes(power: float) -> Altered:
    return curve("stopped_at", lambda ds: ds.lr**power, scaled=True)


@claim(
    "gradient flow",
    equals(-1, within=0.1),
    kind="corrected",
    law=takes(-1.0),
    rivals={"-3/5": takes(-0.6), "-1/2": takes(-0.5)},
)
def lr_exponent_flow(ds: xr.Dataset) -> Everywhere:
    """the steps needed fall with the step size as 1 / eta, as for gradient flow"""
    times = ds.stopped_at.astype(float)
    return everywhere(lambda y: stats.power_law(y, "lr").slope, times, keep="lr")


@claim(
    "Theorem 1 (2.10)",
    equals(-3 / 5, within=0.1),
    expected="fails",
    because=(lr_exponent_flow,),
    rivals={"-1": takes(-1.0)},
)
def lr_exponent_printed(ds: xr.Dataset) -> Everywhere:
    """the steps needed fall with the step size as eta^(-3/5)"""
    return lr_exponent_flow.measure(ds)  # pyright: ignore[reportReturnType]


def against_time(y: xr.DataArray, ds: xr.Dataset) -> Everywhere:
    """The slope of y in the logarithm of the steps that training took."""
    times = np.log(of_network(ds, "ViT").stopped_at.astype(float))
    return everywhere(stats.mean, slope(y, times, "lr"))


def rests(power: float) -> Altered:
    """The Dataset whose attention on other tokens falls with the length of the training."""

    def law(ds: xr.Dataset) -> Any:
        times = ds.stopped_at.mean("seed")
        return 1 - 0.2 * (times / times.min("lr")) ** power

    return curve("attention", law)


@claim(
    "found here",
    equals(0, within=0.1),
    kind="corrected",
    law=rests(0.0),
    rivals={"1 / t": rests(-1.0), "t^-1/2": rests(-0.5), "t^-1/4": rests(-0.25)},
)
def rest_at_stop(ds: xr.Dataset) -> Everywhere:
    """the attention on other tokens at the end does not depend on the number of steps: eight times
    as many with an eighth of the step size leave the same (exponent in T)"""
    rest = 1 - stats.last(of_network(ds, "ViT").attention)
    return against_time(log(rest), ds)


def grows(power: float) -> Altered:
    """The Dataset whose squared query norm grows with the logarithm of the training's length."""

    def law(ds: xr.Dataset) -> Any:
        times = ds.stopped_at.mean("seed")
        return np.sqrt(1 + power * np.log(times / times.min("lr")))

    return curve("query_norm", law)


@claim("found here", equals(0, within=0.15), kind="corrected", law=grows(0.0),
       rivals={"log T": grows(1.0), "log T / 2": grows(0.5)})  # fmt: skip
def query_at_stop(ds: xr.Dataset) -> Everywhere:
    """nor does the squared query norm (slope in log T)"""
    return against_time(stats.last(of_network(ds, "ViT").query_norm) ** 2, ds)


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="By the step size")
    one = ds.isel(frac_relevant=0)
    for name in ("ViT", "CNN"):
        plot.curve(left, of_network(one, name).stopped_at, "lr", label=name, log="xy", line=False)
    times = of_network(one, "ViT").stopped_at
    middle = float(np.log(times).mean())
    log_lr = float(np.log(one.lr).mean())
    lr = np.geomspace(float(one.lr.min()), float(one.lr.max()), 50)
    for power, words in ((-0.6, r"(2.10): $\eta^{-3/5}$"), (-1.0, r"$\eta^{-1}$")):
        plot.theory_curve(left, lr, np.exp(middle + power * (np.log(lr) - log_lr)), words)
    rest = (1 - stats.last(of_network(ds, "ViT").attention)).assign_attrs(
        long_name="attention on other tokens at the end"
    )
    plot.curve(right, rest, "lr", hue="frac_relevant", log="x", line=False)
    right.set_ylim(0, 1)
    return fig


EXPERIMENTS = (
    Experiment(
        "lr_scaling",
        says="Steps until the training loss is zero, and attention then, against the step size.",
        trainings=Trainings(
            grid={
                "network": NETWORKS,
                "frac_relevant": [0.4, 0.3],
                "frac_confusion": 0.05,
                "lr": [0.1, 0.2, 0.4, 0.8],
                "samples": 128,
            },
            seeds=20,
            quick={**SMALL, "frac_relevant": [0.4, 0.25], "lr": [0.1, 0.3, 0.8], "seeds": 4},
            domain={
                "frac_confusion": (0.01, 0.1),
                "frac_relevant": (0.2, 0.6),
                "lr": (0.1, 0.8),
                "key_error": (0.0, 0.49),
                "value_error": (0.0, 1.0),
                "hidden_init_std": (0.001, 0.03),
            },
        ),
        claims=(
            lr_exponent_printed,
            lr_exponent_flow,
            rest_at_stop,
            query_at_stop,
        ),
        figure=draw,
    ),
)
