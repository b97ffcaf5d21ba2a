"""Figure 7.2: attention of each reasoning step on a prompt with right and wrong examples."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, claim
from provingground.stats import Everywhere, everywhere
from provingground.study import Experiment

from .shared import MATCHED, TRAINED


def uniform(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose attention is even over the columns of all steps."""
    return ds.assign(attention=ds.attention * 0 + 0.25)


@claim("Proposition 3, (7.23)", above(0.95), rivals={"uniform attention": uniform})
def concentration(ds: xr.Dataset) -> Everywhere:
    """every reasoning step puts over 0.95 on matched columns"""
    return everywhere(stats.mean, ds.attention.isel(step=-1).sel(type=MATCHED))


def draw(ds: xr.Dataset):
    k = ds.sizes["k"]
    fig, (ax,) = plot.figure(title="Attention of each reasoning step", width=7.0, height=1.9)
    p = ds.attention_map.assign_coords(column=np.arange(ds.sizes["column"]), k=np.arange(1, k + 1))
    p.column.attrs = {"long_name": "example.step of the column"}
    p.k.attrs = {"long_name": "step of the query", "symbol": "k"}
    names = [f"{i // k + 1}.{i % k + 1}" for i in range(ds.sizes["column"])]
    plot.attention_map(ax, p, rows=[str(i + 1) for i in range(k)], cols=names)
    return fig


EXPERIMENTS = (
    Experiment(
        "fig7_2",
        says="Attention of each reasoning step on a prompt with right and wrong examples.",
        trainings=TRAINED,
        claims=(concentration,),
        figure=draw,
    ),
)
