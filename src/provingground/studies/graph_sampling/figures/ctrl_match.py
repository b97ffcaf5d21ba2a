"""Scales in training against scales of the labels, on targets of the concept class."""

import xarray as xr

from provingground import plot
from provingground.claims import above, claim, shuffle
from provingground.stats import Everywhere
from provingground.study import Experiment, Trainings, cases

from .shared import (
    DATASETS,
    FAR,
    GRAPHS,
    MATCHED,
    NMSE,
    QUICK,
    TRAINED,
    alike,
    by_scales,
    end,
    named,
    ratios,
    together,
)


def gains(ds: xr.Dataset, pairs: list[tuple[str, str]]) -> Everywhere:
    """The error with some scales over that with the matched ones, for pairs of dataset and
    scales, on every graph."""
    y = end(ds.test_error)
    return together(
        *(
            ratios(
                y.sel(dataset=d, scales=s).assign_coords(scales=s),
                y.sel(dataset=d, scales=MATCHED[d], drop=True),
            )
            for d, s in pairs
        )
    )


OTHER = [(d, s) for d in DATASETS for s in TRAINED if s != MATCHED[d]]
RIVALS = {
    "scales at random": shuffle("scales"),
    "labels at random": shuffle("dataset"),
    "all scales alike": alike("scales"),
}


@claim("Theorem 5.3.1, section 5.4.2", above(1), kind="own", rivals=RIVALS)
def matched_best(ds: xr.Dataset) -> Everywhere:
    """where the network can represent the labels, scales other than theirs have a larger error, on
    every dataset and graph (ratio)"""
    return gains(ds, OTHER)


@claim("Theorem 5.3.1, section 5.4.2", above(2), kind="own", rivals=RIVALS)
def far_ratio(ds: xr.Dataset) -> Everywhere:
    """scales (0.5, 0.5) for (0.9, 0.1), or the reverse, at least double the matched error"""
    return gains(ds, list(FAR))


def draw(ds: xr.Dataset):
    graphs = list(ds.graph.values)
    fig, axes = plot.figure(
        1, len(graphs), title="Scales of the labels; colours: scales in training"
    )
    y = end(ds.test_error)
    for ax, g in zip(axes, graphs, strict=True):
        at = by_scales(named(y.sel(graph=g), "scales", "scales in training"))
        plot.curve(ax, at, "dataset", hue="scales", line=False)
        ax.set_ylim(0, None)
        ax.set_ylabel(NMSE)
        ax.set_title(f"{g} graph")
    return fig


EXPERIMENTS = (
    Experiment(
        "ctrl_match",
        says="Test error where training scales the groups as the labels do, and where it does not.",
        trainings=Trainings(
            grid={"graph": cases(GRAPHS), "scales": cases(TRAINED), "dataset": cases(DATASETS)},
            seeds=8,
            quick={**QUICK, "seeds": 5},
        ),
        claims=(matched_best, far_ratio),
        figure=draw,
    ),
)
