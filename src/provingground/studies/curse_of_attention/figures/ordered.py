"""How long pairs of neurons stay in order, the premise of the sign theorem."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import Altered, claim, equals
from provingground.stats import Everywhere, everywhere
from provingground.study import Experiment, Trainings

from .. import theory
from .lemma_i3 import signal
from .shared import UNIT, geometric, log, replaced


def lost(steps: xr.DataArray) -> xr.DataArray:
    """The step at which a tenth of the pairs is first out of order; the last one if never."""
    return (steps + 1).astype(float)


def law_of(ds: xr.Dataset) -> xr.DataArray:
    return theory.ordered_steps(signal(ds), ds.lr)


def lasting(law: Callable[[xr.Dataset], xr.DataArray]) -> Altered:
    """The Dataset whose pairs are out of order, in the geometric mean, when a law says."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        found = lost(ds.ordered_steps)
        made = law(ds) * found / np.exp(log(found).mean("seed")) - 1
        return ds.assign(ordered_steps=made.transpose(*ds.ordered_steps.dims))

    return altered


def with_power(power: float) -> Altered:
    """Times that grow with another power of the signal, equal at rho = 5."""
    return lasting(lambda ds: theory.ordered_steps(5.0, ds.lr) * (signal(ds) / 5) ** power)


@claim(
    "found here",
    equals(1, within=0.2),
    kind="own",
    law=replaced("ordered_steps", lambda ds: ds.lazy_steps),
    rivals={"twice as long": replaced("ordered_steps", lambda ds: 2 * ds.lazy_steps)},
)
def ordered_as_frozen(ds: xr.Dataset) -> Everywhere:
    """pairs stay in order as long as the frozen kernel says, seed by seed (ratio of the steps at
    which a tenth is out of order)"""
    return everywhere(geometric, lost(ds.ordered_steps) / lost(ds.lazy_steps))


@claim(
    "found here",
    equals(1, times=2),
    kind="own",
    law=lasting(law_of),
    rivals={"rho^(1/3)": with_power(1 / 3), "rho^(7/3)": with_power(7 / 3)},
)
def ordered_law(ds: xr.Dataset) -> Everywhere:
    """a tenth of the pairs is out of order after C rho^(4/3)/(eta lambda_max) steps, rho = c_d
    sqrt(n)/tau (ratio, geometric means)"""
    return everywhere(geometric, lost(ds.ordered_steps) / law_of(ds))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(
        1, 2, title="How long pairs stay in order", seeds=ds.sizes["seed"]
    )
    found = lost(ds.ordered_steps)
    ratio = found / lost(ds.lazy_steps)
    for g in ds.gamma.values:
        here, name = ds.sel(gamma=g), rf"$\gamma = {g:g}$"
        for ax, y in ((left, found), (right, ratio)):
            means = [geometric(y.sel(gamma=g, samples=n)) for n in ds.samples.values]
            plot.curve(ax, means, ds.samples, label=name, log="xy" if ax is left else "x")
        plot.theory_curve(left, here.samples, law_of(here).values, r"$C\rho^{4/3}$")
    left.set_ylabel("steps until a tenth is out of order")
    right.set_ylabel("the same over the frozen kernel's")
    right.set_ylim(0, 2)
    return fig


SMALL: dict[str, Any] = dict(record=4, test_samples=50, noise=0.1, mode=UNIT)

EXPERIMENTS = (
    Experiment(
        "ordered",
        says="Steps until a tenth of the pairs of neurons is out of order.",
        trainings=Trainings(
            grid={
                **SMALL,
                "steps": 4000,
                "gamma": [0.5, 0.7, 0.9],
                "samples": [32, 64, 128, 256],
            },
            seeds=64,
            quick={"steps": 500, "gamma": [0.5, 0.9], "samples": [32, 64], "seeds": 64},
            domain={
                "tokens": [4, 8, 16],
                "noise": (0.03, 0.3),
                "lr": (0.1, 1.0),
                "width": (64, 640),
            },
        ),
        claims=(ordered_as_frozen, ordered_law),
        figure=draw,
    ),
)
