"""How the Datasets of the experiments are drawn."""

import numpy as np
import xarray as xr

from provingground import plot

from . import measures


def draw_success(ds: xr.Dataset):
    """The map of success rates, and the samples needed against the gap of the vote."""
    fig, (left, right) = plot.figure(1, 2, title="Samples that a ViT needs, half of tokens irrelevant")
    found = measures.boundary(ds)
    middle = float(np.exp(np.nanmean(np.log(found.points.value))))
    alpha = float(np.exp(np.log(ds.frac_relevant[np.isfinite(found.points.value)]).mean()))
    plot.heatmap(
        left,
        measures.success(ds),
        "frac_relevant",
        "samples",
        log="y",
        limits=(0, 1),
        theory={r"paper: $N \\propto \\alpha_*^{-2}$": lambda a: middle * (a / alpha) ** -2.0},
    )
    by_gap = measures.boundary_by_gap(ds)
    plot.law(right, by_gap.points, "gap", fit=by_gap.law, predicted=-2.0, label="half succeed")
    right.set_ylabel("samples needed, $N_{50}$")
    return fig
