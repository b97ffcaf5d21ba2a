"""Figure 3: the attention scores at the end of training."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import below, claim
from provingground.stats import Everywhere, everywhere
from provingground.study import Experiment

from .shared import FIGURE_2, of


def sgd(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    at = ds.sel(form="SGD", drop=True)
    return at.scores, at.support > 0.5


def score_of_recursion(ds: xr.Dataset) -> xr.DataArray:
    """p of the recursion at the last recorded step that SGD reached."""
    last = of(ds, "SGD").step[-1]
    exact = of(ds, "recursion").sel(step=last)
    return (1 - exact.leak) / exact.group


def uniform(ds: xr.Dataset) -> xr.Dataset:
    """Attention that was never trained."""
    return ds.assign(scores=xr.zeros_like(ds.scores) + 1 / ds.tokens.max())


@claim("Figure 3", below(0.01), rivals={"uniform": uniform})
def scores_on_support(ds: xr.Dataset) -> Everywhere:
    """every score on the support is that of the recursion (largest deviation)"""
    scores, on = sgd(ds)
    off = abs(scores - score_of_recursion(ds)).where(on)
    return everywhere(stats.mean, off.max(("key", "query")))


def teacherless(ds: xr.Dataset) -> xr.Dataset:
    """All scores where the teacher has none."""
    return ds.assign(support=1 - ds.support)


@claim("Figure 3", below(0.05), rivals={"off for on": teacherless})
def scores_off_support(ds: xr.Dataset) -> Everywhere:
    """no score off the support is over 0.05, so the largest of every column lies inside"""
    scores, on = sgd(ds)
    return everywhere(stats.mean, scores.where(~on).max(("key", "query")))


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(2, 3, title="Attention scores at the end of training (SGD)")
    for ax, task in zip(axes, ds.task.values, strict=False):
        one = ds.sel(task=task, form="SGD").isel(seed=[0])  # seeds choose other tokens
        n = int(one.tokens)
        s = one.scores.isel(key=slice(n), query=slice(n))
        s = s.assign_coords(key=np.arange(n), query=np.arange(n))
        for name in ("key", "query"):
            s[name].attrs = {"long_name": name}
        plot.heatmap(ax, s, "query", "key", limits=(0, None))
        ax.invert_yaxis()
        ax.set_title(str(task))
    for ax in axes[ds.task.size :]:
        ax.remove()
    return fig


EXPERIMENTS = (
    Experiment(
        "fig3",
        says="Attention scores at the end of SGD, beside those of the recursion.",
        trainings=FIGURE_2,
        claims=(scores_on_support, scores_off_support),
        figure=draw,
    ),
)
