"""Axes of a panel from coordinates."""

import textwrap
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis

from provingground.errors import InputError, unknown
from provingground.plot.sheet import Sheet, add_legend
from provingground.plot.ticks import log_scale
from provingground.plot.words import label


def name_axis(ax: Axes, which: str, da: xr.DataArray) -> None:
    """Labels an axis, unless it has a label."""
    if not getattr(ax, f"get_{which}label")():
        getattr(ax, f"set_{which}label")(label(da))


def locate(ax: Axes, which: str, coord: xr.DataArray, log: str) -> np.ndarray:
    """Labels and scales an axis for a coordinate; gives the places of its values."""
    name_axis(ax, which, coord)
    axis: Axis = getattr(ax, f"{which}axis")
    if not np.issubdtype(coord.dtype, np.number):
        names = [str(v) for v in coord.values]
        if which == "x":  # about as many letters as have room
            letters = max(int(ax.bbox.width / 10 / coord.size), 8)
            names = [n if "$" in n else textwrap.fill(n, letters) for n in names]
        axis.set_ticks(range(coord.size), names)
        return np.arange(coord.size, dtype=float)
    v = coord.values.astype(float)
    if which in log:
        log_scale(ax, which, 0.0 if (v > 0).all() else float(v[v > 0].min()))
    elif np.issubdtype(coord.dtype, np.integer):
        axis.set_major_locator(ticker.MaxNLocator("auto", integer=True))
    return v


def coords_of(da: xr.DataArray, *names: str) -> list[xr.DataArray]:
    """The named coordinates, one dimension each; nothing but seeds may be left over."""
    for name in names:
        if name not in da.coords and name not in da.dims:
            raise unknown("axis", name, map(str, {**da.sizes, **da.coords}))
        if da[name].ndim != 1:
            raise InputError(f"'{name}' has {da[name].ndim} dimensions and cannot be an axis")
    found = [da[name] for name in names]
    if rest := set(da.dims) - {"seed", *(d for c in found for d in c.dims)}:
        rest = ", ".join(sorted(map(str, rest)))
        raise InputError(f"'{da.name}' also varies along {rest}: select or average first")
    return found


def averaged(ax: Axes, da: xr.DataArray) -> bool:
    """Whether what is drawn is a mean over seeds: of its own, or of those the figure knows of."""
    fig = ax.get_figure(root=True)
    return "seed" in da.dims or (isinstance(fig, Sheet) and bool(fig.seeds))


def tidy(ax: Axes, data: Any = None, *marks: str) -> None:
    """Tells the footer the seeds of `data`, and what marks mean; renews the legend."""
    fig = ax.get_figure(root=True)
    if isinstance(fig, Sheet):
        told = isinstance(data, xr.DataArray) and ("seed" in data.dims or "seed" in data.coords)
        count = int(data["seed"].size) if told else None
        fig.note(count, *(marks if count != 1 else ()))
    add_legend(ax)
