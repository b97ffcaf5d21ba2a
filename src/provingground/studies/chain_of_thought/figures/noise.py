"""(7.11): noise of test examples up to a norm of sqrt(2)/2."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import below, claim, equals
from provingground.stats import Everywhere, everywhere
from provingground.study import Experiment, Trainings


@claim("Theorem 4 under (7.11)", below(0.01))
def noise_is_harmless(ds: xr.Dataset) -> Everywhere:
    """64 examples are enough in the default setting for any noise of (7.11) (error)"""
    return everywhere(stats.mean, ds.cot_error.sel(setting="default", l_test=64))


@claim("(7.11)", equals(0, within=0.05), kind="own")
def noise_changes_little(ds: xr.Dataset) -> Everywhere:
    """noise changes the CoT error by less than 0.05, in the mean over lengths from 4 on"""
    error = ds.cot_error.sel(setting="default", l_test=slice(4, None)).mean("l_test")
    return everywhere(stats.mean, error - error.sel(noise=0.0, drop=True))


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
)
