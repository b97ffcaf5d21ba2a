"""(7.11): noise of test examples up to a norm of sqrt(2)/2."""

from dataclasses import replace

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings

from .shared import TRAINED, at


@claim("Theorem 4 under (7.11)", below(0.01))
def noise_is_harmless(ds: xr.Dataset) -> Everywhere:
    """64 examples are enough in the default setting for any noise of (7.11) (error)"""
    return everywhere(stats.mean, ds.cot_error.sel(setting="default", l_test=64))


@claim("(7.11)", equals(0, within=0.05), kind="own")
def noise_changes_little(ds: xr.Dataset) -> Everywhere:
    """noise changes the CoT error by less than 0.05, in the mean over lengths from 4 on"""
    error = ds.cot_error.sel(setting="default", l_test=slice(4, None)).mean("l_test")
    return everywhere(stats.mean, error - error.sel(noise=0.0, drop=True))


@claim(
    "(7.11), near its largest noise",
    above(0.02),
    kind="own",
    rivals={"the vote": lambda ds: ds.assign(cot_error=ds.vote_cot)},
)
def large_noise_costs(ds: xr.Dataset) -> Estimate:
    """with noise of 0.7 the network errs more often than the vote at tau = 0.1, from 8 examples on
    (difference)"""
    part = at(ds, "tau 0.1").sel(l_test=slice(8, None))
    return stats.mean(part.cot_error - part.vote_cot)


def draw_large(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Noise of 0.7: network and vote", width=4.2)
    part = at(ds, "tau 0.1")
    plot.curve(ax, part.cot_error, "l_test", label="network", log="x")
    plot.curve(ax, part.vote_cot, "l_test", label="vote", log="x")
    return fig


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="CoT error by noise", width=4.2)
    plot.curve(ax, ds.cot_error.sel(setting="default"), "l_test", hue="noise", log="x")
    return fig


EXPERIMENTS = (
    Experiment(
        "noise",
        says="CoT error for noise of test examples up to the largest of (7.11).",
        trainings=Trainings(
            grid={
                "suite": "default",
                "noise": [0.0, 0.2, 0.5, float(np.sqrt(0.5))],
                "test_samples": 400,
            },
            seeds=16,
            paper_only=True,
        ),
        claims=(noise_is_harmless, noise_changes_little),
        figure=draw,
    ),
    Experiment(
        "noise_large",
        says="The network against the vote with noise of 0.7, on the settings of the figures.",
        trainings=replace(
            TRAINED,
            grid={**TRAINED.grid, "noise": 0.7},
            quick={**TRAINED.quick, "seeds": 4},
            domain={},
            where=None,
        ),
        claims=(large_noise_costs,),
        figure=draw_large,
    ),
)
