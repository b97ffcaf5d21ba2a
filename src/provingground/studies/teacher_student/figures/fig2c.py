"""Figure 2(c): the values point to the teacher's."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, claim
from provingground.stats import Everywhere, everywhere
from provingground.study import Experiment

from .shared import FIGURE_2, at_end, of


@claim("Figure 2(c)", above(0.9))
def aligned(ds: xr.Dataset) -> Everywhere:
    """the value matrix is aligned from the very beginning: its cosine with the teacher's is over
    0.9 from step 50 on (smallest of each training)"""
    return everywhere(stats.mean, of(ds, "SGD").cosine.sel(step=slice(50, None)).min("step"))


def stays(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose values stop to turn after 20 steps."""
    early = ds.cosine.sel(step=20, method="nearest", drop=True)
    return ds.assign(cosine=(early + 0 * ds.cosine).transpose(*ds.cosine.dims))


@claim("Figure 2(c)", above(0.995), rivals={"as after 20 steps": stays})
def aligned_at_the_end(ds: xr.Dataset) -> Everywhere:
    """the cosine is over 0.995 at the end"""
    return everywhere(stats.mean, at_end(of(ds, "SGD")).cosine)


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="The values point to the teacher's", width=4.2)
    plot.curve(ax, of(ds, "SGD").cosine, "step", hue="task", log="x")
    ax.set_ylim(0.9, 1.005)
    return fig


EXPERIMENTS = (
    Experiment(
        "fig2c",
        says="Cosine of the value matrix with the teacher's, in time.",
        trainings=FIGURE_2,
        claims=(aligned, aligned_at_the_end),
        figure=draw,
    ),
)
