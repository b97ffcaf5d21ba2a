"""Figure 5.2: neurons, on the same graphs; and labels needed by networks of different width."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Claim, above, below, claim
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings, cases

from .fig5_1 import hubs_labels_small
from .shared import (
    DEGREES,
    FEW,
    FIGURE_SCALES,
    HUBS,
    NMSE,
    QUICK,
    TARGETS,
    alike,
    draw_graphs,
    end,
    error,
    logs,
    needed,
    needs,
)


def more_neurons(target: str, probe: str, name: str, kind: Any, words: str) -> Claim:
    @claim(
        "Figure 5.2, (5.17)",
        below(0),
        kind=kind,
        name=name,
        says=f"more neurons lower the {words}, on every graph ({target}; exponent)",
        rivals={"neurons make no difference": alike("width")},
    )
    def measure(ds: xr.Dataset) -> Everywhere:
        y = error(ds, probe, target=target)
        return everywhere(lambda y: stats.power_law(y, "width").slope, y, keep="width")

    return measure


neurons_help_figure = more_neurons(
    "(5.20)", "test_loss", "neurons_help_figure", "printed", "test MSE"
)
neurons_help_concept = more_neurons(
    "concept class", "test_error", "neurons_help_concept", "own", "error over variance"
)


@claim("Figure 5.2, (5.17)", above(1), expected="fails", because=(hubs_labels_small,))
def neurons_hubs_figure(ds: xr.Dataset) -> Everywhere:
    """the graph of the largest row sum needs more neurons for the same error than the two others:
    with the same neurons its test MSE is larger ((5.20); ratio, over all widths)"""
    y = logs(error(ds, "test_loss", target="(5.20)")).mean("width")
    gap = y.sel(degrees=HUBS, drop=True) - y.isel(degrees=slice(0, 2))
    return everywhere(lambda y: stats.mean(y).map(np.exp), gap)


def hubs_by_neurons(target: str, name: str) -> Claim:
    @claim(
        "Figure 5.2, (5.17)",
        above(1),
        kind="own",
        name=name,
        says="with the same neurons the graph of the largest row sum has a larger error over "
        f"variance than that of the smallest ({target}; ratio, all widths but the first)",
        rivals={"all graphs alike": alike("degrees")},
    )
    def measure(ds: xr.Dataset) -> Estimate:
        y = logs(error(ds, target=target).isel(width=slice(1, None))).mean("width")
        gap = y.sel(degrees=HUBS, drop=True) - y.sel(degrees=FEW, drop=True)
        return stats.mean(gap).map(np.exp)

    return measure


neurons_hubs_scaled = hubs_by_neurons("(5.20)", "neurons_hubs_scaled")
neurons_hubs_concept = hubs_by_neurons("concept class", "neurons_hubs_concept")


@claim(
    "Section 5.3.1, (5.18)",
    below(1),
    kind="own",
    rivals={
        "twice those of the narrow": needs(2.0, "width"),
        "as the root of m": needs(3**0.5, "width"),
    },
)
def labels_by_width(ds: xr.Dataset) -> Estimate:
    """said of the labels that an error of 0.2 takes, at widths of which (5.17) says nothing: they
    grow no faster than log m (those of the wide network over those of the narrow one, over the
    ratio of log m)"""
    y, logm = end(ds.test_error), np.log(ds.width)
    ratio = needed(y.isel(width=-1), y.isel(width=0), "samples", 0.2)
    return ratio / float(logm[-1] / logm[0])


def draw_widths(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Labels needed by narrow and wide networks", width=4.6)
    for m in ds.width.values:
        at = end(ds.test_error).sel(width=m)
        plot.curve(ax, at, "samples", label=f"$m = {m}$", log="xy")
    ax.set_ylabel(NMSE)
    return fig


EXPERIMENTS = (
    Experiment(
        "fig5_2",
        says="Test error over the number of neurons, for the same graphs.",
        trainings=Trainings(
            grid={
                "target": cases(TARGETS),
                "degrees": cases(DEGREES),
                "width": [4, 12, 32, 500],
                **FIGURE_SCALES,
                "samples": 1500,
            },
            seeds=8,
            quick={**QUICK, "width": [4, 12, 32], "samples": 400, "seeds": 6},
        ),
        claims=(
            neurons_help_figure,
            neurons_help_concept,
            neurons_hubs_figure,
            neurons_hubs_scaled,
            neurons_hubs_concept,
        ),
        figure=draw_graphs("width", "Neurons needed and the effective matrix (Figure 5.2)"),
    ),
    Experiment(
        "fig5_2_labels",
        says="Test error over the number of labels, for two widths (regular graph).",
        trainings=Trainings(
            grid={
                **DEGREES[FEW],
                **FIGURE_SCALES,
                "width": [32, 512],
                "samples": [25, 50, 100, 200, 400],
            },
            seeds=8,
            quick={**QUICK, "width": [32, 96], "samples": [25, 75, 400], "seeds": 4},
        ),
        claims=(labels_by_width,),
        figure=draw_widths,
    ),
)
