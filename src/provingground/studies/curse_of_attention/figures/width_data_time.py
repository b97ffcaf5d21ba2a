"""The remark to Proposition 6.3: more width, data or time."""

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import above, claim
from provingground.stats import Everywhere, everywhere, paired_ratio
from provingground.study import Experiment, Trainings, cases

from .shared import FEATURES, QUICK, STANDARD, replaced


@claim(
    "Proposition 6.3, remark",
    above(1),
    rivals={"half of zero's": replaced("ood_loss", lambda ds: ds.zero_ood / 2)},
)
def no_cure(ds: xr.Dataset) -> Everywhere:
    """the OOD risk stays above that of the zero predictor with more width and samples, at all
    recorded steps of the last nine tenths of the training"""
    late = ds.ood_loss.isel(step=np.flatnonzero(ds.step >= float(ds.step[-1]) / 10))
    return everywhere(paired_ratio, late, ds.zero_ood)


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="More width, samples or steps")
    at = ds.isel(step=slice(1, None))
    for ax, f in zip(axes, ds.features.values, strict=True):
        here = at.sel(features=f)
        plot.curve(ax, here.ood_loss, "step", hue="more", log="xy")
        zero = [float(here.zero_ood.mean())] * here.step.size
        plot.theory_curve(ax, here.step, zero, "zero predictor")
        ax.set_title(str(f))
    return fig


EXPERIMENTS = (
    Experiment(
        "width_data_time",
        says="More width, data or time.",
        trainings=Trainings(
            grid={
                **STANDARD,
                "noise": 0.1,
                "features": FEATURES,
                "more": cases(
                    {"standard": {}, "width": {"width": 2048}, "samples": {"samples": 256}}
                ),
            },
            seeds=8,
            quick={
                **QUICK,
                "more": cases({"less of both": {"samples": 16, "width": 64}, "standard": {}}),
            },
        ),
        claims=(no_cure,),
        figure=draw,
    ),
)
