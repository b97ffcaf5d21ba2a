"""Whole graphs classified by the mean output of their nodes (appendix B.5.4)."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim
from provingground.stats import Everywhere, everywhere, last
from provingground.study import Experiment, Trainings

from .shared import untrained


@claim("appendix B.5.4", below(0.01), rivals={"not trained": untrained("test_error")})
def graphs_learned(ds: xr.Dataset) -> Everywhere:
    """from 32 labelled graphs on the test error is zero (below 0.01)"""
    return everywhere(stats.mean, last(ds.test_error).sel(samples=slice(32, None)))


@claim(
    "Lemma 3.4.7, for whole graphs",
    above(0),
    rivals={"the other sign": lambda ds: ds.assign(dist_bias=-ds.dist_bias)},
)
def graphs_find_core(ds: xr.Dataset) -> Everywhere:
    """the bias of ring 1, where the vote is, becomes larger than that of ring 2 (gap)"""
    b = last(ds.dist_bias)
    return everywhere(stats.mean, b.sel(ring=1, drop=True) - b.sel(ring=2, drop=True))


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Classifying whole graphs", width=4.6)
    plot.curve(ax, ds.test_loss, "step", hue="samples")
    return fig


EXPERIMENTS = (
    Experiment(
        "graph_level",
        says="Whole graphs classified by the mean output of their nodes.",
        trainings=Trainings(
            grid={
                "lr": 0.5,
                "record": 41,
                "nodes": 60,
                "degree": 8,
                "confusion_ratio": 0.1,
                "steps": 400,
                "test_graphs": 100,
                "samples": [8, 32, 128],
            },
            seeds=20,
            simulator="graphs",
            quick={"record": 21, "width": 100, "test_graphs": 40, "samples": [8, 32], "seeds": 3},
        ),
        claims=(graphs_learned, graphs_find_core),
        figure=draw,
    ),
)
