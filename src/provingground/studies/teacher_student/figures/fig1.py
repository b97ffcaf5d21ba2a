"""Figure 1: the student with attention over [X; P], and which blocks of its matrices grow."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, claim
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings

from .shared import at_end


@claim("Figure 1", above(50), scale="paper")
def block_pp(ds: xr.Dataset) -> Estimate:
    """block PP of the key-query matrix is over 50 times each other block (RMS)"""
    end = at_end(ds)
    return stats.paired_ratio(end.pp, np.maximum(np.maximum(end.xx, end.xp), end.px))


def swapped(ds: xr.Dataset) -> xr.Dataset:
    return ds.assign(left=ds.right, right=ds.left)


@claim("Figure 1", above(10), rivals={"P for X": swapped})
def block_left(ds: xr.Dataset) -> Estimate:
    """block X of the value matrix is over 10 times block P (RMS)"""
    end = at_end(ds)
    return stats.paired_ratio(end.left, end.right)


@claim("Figure 1", above(0.99))
def left_aligned(ds: xr.Dataset) -> Estimate:
    """block X of the value matrix points to V* (cosine)"""
    return stats.mean(at_end(ds).cosine)


def draw(ds: xr.Dataset):
    fig, (left, middle, right) = plot.figure(1, 3, title="The full student: which blocks grow")
    one = ds.isel(seed=[0])
    n, m = ds.sizes["row"], ds.sizes["output"]
    one = one.assign_coords(row=np.arange(n), column=np.arange(n), output=np.arange(m))
    for name, words in (("row", "row: $X$, then $P$"), ("column", "column: $X$, then $P$")):
        one[name].attrs = {"long_name": words}
    one.output.attrs = {"long_name": "output"}
    plot.heatmap(left, one.w_kq.rename(column="across"), "across", "row", centre=0.0)
    plot.heatmap(middle, one.w_v, "row", "output", centre=0.0)
    for ax in (left, middle):
        ax.invert_yaxis()
    at = ds.isel(step=slice(1, None))
    for probe in ("pp", "left", "right", "xx", "xp", "px"):
        words = {"left": "values, $X$", "right": "values, $P$"}.get(probe, probe.upper())
        plot.curve(right, at[probe], "step", label=words, log="xy")
    right.set_ylabel("RMS of a block")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig1",
        says="The student with attention over [X; P]: which blocks of its matrices grow.",
        trainings=Trainings(
            simulator="full",
            grid={
                "teacher": "gcn",
                "tokens": 20,
                "group": 3,
                "lr": 0.02,
                "steps": 15_000,
                "horizon": 15_000,
                "record": 31,
            },
            seeds=4,
            quick={
                "tokens": 8,
                "dim": 5,
                "outputs": 5,
                "scale": 2.0,
                "steps": 2000,
                "horizon": 2000,
                "seeds": 3,
            },
        ),
        claims=(block_pp, block_left, left_aligned),
        figure=draw,
    ),
)
