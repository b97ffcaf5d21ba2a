"""Figure 3.6: labels that a GCN on the core ring needs, over the discriminative fraction."""

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import claim, equals
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings, axis

from .fig3_7 import gcn_lacks_no_labels
from .shared import (
    GCN,
    PAPER,
    QUICK,
    draw_needed,
    draw_success,
    enough_steps,
    labels_at,
    labels_exponent,
    success_at,
)


def power(exponent: float):
    """Success as if the labels needed were a power of the fraction, 6 in its middle."""
    return success_at(
        lambda ds: 6 * (ds.frac_disc / float(np.exp(np.log(ds.frac_disc).mean()))) ** exponent
    )


@claim(
    "Figure 3.6",
    equals(-4, within=1),
    expected="fails",
    because=(gcn_lacks_no_labels,),
    law=power(-4.0),
    rivals={"-2": power(-2.0)},
)
def gcn_labels_law(ds: xr.Dataset) -> Estimate:
    """the labels that the GCN needs fall as the discriminative fraction to the power -4"""
    return labels_exponent(ds)


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Labels that a GCN on the core ring needs")
    draw_success(left, ds, "frac_disc")
    draw_needed(right, ds, labels_at(ds), -4.0, "frac_disc")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig3_6",
        says="Success rate of the GCN on the core ring over labelled nodes and the fraction.",
        trainings=Trainings(
            grid={
                **PAPER,
                **GCN,
                "confusion_ratio": 0.2,
                "frac_disc": axis(
                    [0.8, 0.6, 0.5, 0.4, 0.33, 0.25, 0.2, 0.16], sets=enough_steps(2.5)
                ),
                "samples": [2, 4, 8, 16, 32, 64, 128, 256],
            },
            seeds=20,
            quick={**QUICK, "frac_disc": [0.6, 0.25], "samples": [2, 4, 8, 16, 32], "seeds": 6},
        ),
        claims=(gcn_labels_law,),
        figure=draw,
    ),
)
