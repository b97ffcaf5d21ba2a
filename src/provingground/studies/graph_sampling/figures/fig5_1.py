"""Figure 5.1: labels, and graphs of different largest row sum."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import stats
from provingground.claims import Claim, above, below, between, claim, exchange
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings, cases

from .shared import (
    DEGREES,
    FEW,
    FIGURE_SCALES,
    HUBS,
    QUICK,
    TARGETS,
    alike,
    bare,
    draw_graphs,
    error,
    logs,
    needed,
    ratios,
)

LEVEL = 0.18  # of the error, at which labels are counted


def more_labels(target: str, probe: str, name: str, kind: Any, words: str) -> Claim:
    @claim(
        "Figure 5.1, (5.18)",
        below(0),
        kind=kind,
        name=name,
        says=f"more labels lower the {words}, on every graph ({target}; exponent)",
        rivals={"labels make no difference": alike("samples")},
    )
    def measure(ds: xr.Dataset) -> Everywhere:
        y = error(ds, probe, target=target)
        return everywhere(lambda y: stats.power_law(y, "samples").slope, y, keep="samples")

    return measure


labels_help_figure = more_labels("(5.20)", "test_loss", "labels_help_figure", "printed", "test MSE")
labels_help_concept = more_labels(
    "concept class", "test_error", "labels_help_concept", "own", "error over variance"
)


def over_labels(a: xr.DataArray, b: xr.DataArray) -> Everywhere:
    """The ratio of two errors, its geometric mean over the numbers of labels."""
    gap = (logs(a) - logs(b)).mean("samples")
    return everywhere(lambda y: stats.mean(y).map(np.exp), gap)


def hubs_and_others(
    ds: xr.Dataset, target: str, probe: str = "test_error"
) -> tuple[xr.DataArray, xr.DataArray]:
    y = error(ds, probe, target=target)
    return y.sel(degrees=HUBS, drop=True), y.isel(degrees=slice(0, 2))


ALIKE = {"all graphs alike": alike("degrees")}


@claim(
    "found here",
    below(1),
    kind="own",
    rivals={"graphs exchanged": exchange("degrees", (FEW, HUBS))},
)
def hubs_labels_small(ds: xr.Dataset) -> Everywhere:
    """labels on the graph of the largest row sum have a smaller variance than on both others, and
    so a smaller MSE for the same share of it (concept class; ratio)"""
    y = bare(ds.label_variance.sel(target="concept class")).mean("samples")
    return ratios(y.sel(degrees=HUBS, drop=True), y.isel(degrees=slice(0, 2)))


@claim("Figure 5.1, (5.18)", above(1), expected="fails", because=(hubs_labels_small,))
def hubs_need_more(ds: xr.Dataset) -> Everywhere:
    """the graph of the largest row sum needs more labels for the same error than the two others:
    with the same labels its test MSE is larger ((5.20); ratio, over all numbers of labels)"""
    return over_labels(*hubs_and_others(ds, "(5.20)", "test_loss"))


@claim("Figure 5.1, (5.18)", above(1), kind="own", rivals=ALIKE)
def hubs_need_more_scaled(ds: xr.Dataset) -> Everywhere:
    """the same of the MSE over the variance of the labels ((5.20); ratio)"""
    return over_labels(*hubs_and_others(ds, "(5.20)"))


@claim("Figure 5.1, (5.18)", above(1), kind="own", scale="paper")
def hubs_need_more_concept(ds: xr.Dataset) -> Estimate:
    """the graph of the largest row sum needs more labels than that of the smallest for an error of
    0.18 (concept class; ratio)"""
    y = error(ds, target="concept class")
    return needed(y.sel(degrees=HUBS), y.sel(degrees=FEW), "samples", LEVEL)


def over_few(ds: xr.Dataset, **where: Any) -> tuple[xr.DataArray, xr.DataArray]:
    y = error(ds, target="concept class", **where)
    return y.sel(degrees=HUBS, drop=True), y.sel(degrees=FEW, drop=True)


@claim("Figure 5.1", above(1), kind="own", rivals=ALIKE)
def hubs_hardest_last(ds: xr.Dataset) -> Everywhere:
    """with the most labels the graph of the largest row sum has a larger error than both others
    (concept class; ratio)"""
    hubs, others = hubs_and_others(ds, "concept class")
    return ratios(hubs.isel(samples=-1, drop=True), others.isel(samples=-1, drop=True))


@claim(
    "Figure 5.1",
    above(1),
    kind="own",
    rivals=ALIKE | {"easier with few": exchange("degrees", (FEW, HUBS))},
    scale="quick",
)
def hubs_hardest_first(ds: xr.Dataset) -> Everywhere:
    """with few labels, 25 to 150, it has a larger error than that of the smallest, too: here the
    two do not cross (concept class; ratio, over these numbers of labels)"""
    return over_labels(*over_few(ds, samples=slice(25, 150)))


@claim("Figure 5.1", below(1), kind="own", scale="paper")
def hubs_easiest_first(ds: xr.Dataset) -> Estimate:
    """with 50 to 200 labels it has a smaller error than the graph of the smallest one (concept
    class; ratio)"""
    a, b = over_few(ds, samples=slice(50, 200))
    return stats.paired_ratio(a, b)


@claim("Figure 5.1", between(100, 800), kind="own", scale="paper")
def hubs_cross(ds: xr.Dataset) -> Estimate:
    """the errors of the two graphs cross between 100 and 800 labels (concept class)"""
    a, b = over_few(ds)
    return stats.threshold(logs(a) - logs(b), "samples", 0.0)


TRAININGS = Trainings(
    grid={
        "target": cases(TARGETS),
        "degrees": cases(DEGREES),
        "samples": [50, 100, 200, 400, 800, 1500],
        **FIGURE_SCALES,
        "width": 500,
    },
    seeds=16,
    quick={**QUICK, "samples": [25, 75, 150, 400], "seeds": 10},
)
EXPERIMENTS = (
    Experiment(
        "fig5_1",
        says="Test error over the number of labels, for three graphs of different largest row sum.",
        trainings=TRAININGS,
        claims=(
            labels_help_figure,
            labels_help_concept,
            hubs_need_more,
            hubs_need_more_scaled,
            hubs_labels_small,
            hubs_need_more_concept,
            hubs_hardest_last,
            hubs_hardest_first,
            hubs_easiest_first,
            hubs_cross,
        ),
        figure=draw_graphs("samples", "Labels needed and the effective matrix (Figure 5.1)"),
    ),
)
