"""The largest core ring of (3.9), varied at a fixed share of discriminative nodes.

(3.9) says how many labels suffice; whether so many are needed is our question."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, below, claim
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings

from .shared import PAPER, QUICK, against, draw_needed, labels_at, solved, success_at


def by_ring(ds: xr.Dataset, axis: str) -> xr.Dataset:
    """With the realised size of the largest core ring on the axis that changes it."""
    size = ds.max_ring.mean([d for d in ds.max_ring.dims if d != axis])
    return against(ds, axis, size, "largest_core_ring", r"\delta_{z_m}")


def as_ring(axis: str, power: float) -> Altered:
    """Success as if the labels needed were a power of the ring, 35 in the middle."""

    def needed(ds: xr.Dataset) -> xr.DataArray:
        size = ds.max_ring.mean([d for d in ds.max_ring.dims if d != axis])
        return 35 * (size / np.exp(np.log(size).mean())) ** power

    return success_at(needed)


@claim(
    "whether (3.9) is tight",
    below(0.5),
    kind="own",
    law=as_ring("hubs", 0.0),
    rivals={"(3.9), delta^2": as_ring("hubs", 2.0), "delta": as_ring("hubs", 1.0)},
)
def ring_is_no_cause(ds: xr.Dataset) -> Estimate:
    """hubs that more than double the largest core ring, and leave all else, do not change with how
    many labels trainings succeed (share of the seeds in which they do, with any number)"""
    won = solved(ds)
    changed = abs(won - won.isel(hubs=0, drop=True)).max(["samples", "hubs"])
    return stats.share(changed)


@claim(
    "whether (3.9) is tight",
    above(0.1),
    kind="own",
    rivals={"(3.9), delta^2": as_ring("degree", 2.0), "no change": as_ring("degree", 0.0)},
)
def degree_helps(ds: xr.Dataset) -> Estimate:
    """more edges, which make all core rings larger, make trainings succeed with fewer labels: over
    all numbers of labels the success rate rises by over 0.1 from the least degree to the largest"""
    rate = solved(ds).sortby("degree").mean("samples")
    return stats.paired_difference(*(rate.isel(degree=k, drop=True) for k in (-1, 0)))


def draw(axis: str, title: str):
    def drawn(ds: xr.Dataset):
        fig, (ax,) = plot.figure(title=title, width=4.6, seeds=ds.sizes["seed"])
        made = by_ring(ds, axis)
        draw_needed(ax, made, labels_at(made, "largest_core_ring"), 2.0, "largest_core_ring")
        return fig

    return drawn


LABELS = [8, 16, 32, 64, 128]
DENSE = [16, 24, 32, 48, 64, 96, 128]  # so that a law as weak as a root would be seen

EXPERIMENTS = (
    Experiment(
        "ring_hubs",
        says="Labels that the GT needs with and without hubs, which are in all core rings.",
        trainings=Trainings(
            grid={
                **PAPER,
                "confusion_ratio": 0.2,
                "steps": 10000,
                "hubs": [0, 1, 3],
                "samples": [*LABELS, 48, 96],
            },
            seeds=20,
            quick={**QUICK, "steps": 600, "hubs": [0, 1], "samples": DENSE, "seeds": 12},
            domain={
                "frac_disc": (0.2, 0.7),
                "confusion_ratio": (0.1, 0.25),
                "degree": (80, 200),
            },
        ),
        claims=(ring_is_no_cause,),
        figure=draw("hubs", "Labels needed and the largest core ring: hubs"),
    ),
    Experiment(
        "ring_degree",
        says="Labels that the GT needs by the degree, which changes all core rings.",
        trainings=Trainings(
            grid={
                **PAPER,
                "confusion_ratio": 0.1,
                "steps": 10000,
                "degree": [40, 60, 80, 120, 180],
                "samples": [*LABELS, 256],
            },
            seeds=20,
            quick={**QUICK, "steps": 600, "degree": [60, 180], "samples": LABELS, "seeds": 6},
        ),
        claims=(degree_helps,),
        figure=draw("degree", "Labels needed and the largest core ring: degree"),
    ),
)
