"""Maps: heat maps, phase diagrams, attention."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection, QuadMesh
from matplotlib.colors import BoundaryNorm, CenteredNorm, ListedColormap, LogNorm, Normalize
from matplotlib.patches import Rectangle

from provingground.plot.axes import averaged, coords_of, locate, tidy
from provingground.plot.lines import curve, theory_curve
from provingground.plot.looks import ABOVE, BELOW, DIVERGING, SEQUENTIAL, look_of, styled
from provingground.plot.ticks import LogLabels, LogTicks
from provingground.plot.values import Estimates, Theory, as_points, edges, refined, summary
from provingground.plot.words import label, latex_number

MEAN = "map: mean"  # in the footer


def _map(
    ax: Axes,
    z: xr.DataArray,
    x: str,
    y: str,
    log: str,
    theory: Theory | None,
    fine: Literal["", "linear", "log"] = "",
    **look: Any,
) -> QuadMesh:
    """The mean over seeds as cells, hatched where a seed diverged, and the theory's curves.

    With `fine`, columns are interpolated along y, or along its logarithm.
    """
    table, places, borders = summary(z), [], []
    for which, coord in zip("xy", coords_of(z, x, y), strict=True):
        at = locate(ax, which, coord, log)
        table = table.isel({coord.dims[0]: np.argsort(at)}).transpose(coord.dims[0], ...)
        places.append(np.sort(at))
        borders.append(edges(places[-1], getattr(ax, f"get_{which}scale")() == "log"))
    a, b = borders
    mean = np.ma.masked_invalid(table["mean"].values)
    if isinstance(look["norm"], LogNorm):  # zeros get the lowest colour
        positive = mean[mean > 0].compressed()
        mean = np.ma.maximum(mean, positive.min(initial=1.0 if positive.size == 0 else np.inf))
        look["norm"] = look["norm"] if positive.size else Normalize()
    rows, shown, marks = b, mean, [MEAN] * averaged(ax, z)
    if fine and not mean.mask.any():
        scales: dict[str, bool] = dict(spaced=ax.get_yscale() == "log", log=fine == "log")
        rows, shown = refined(places[1], b[[0, -1]], mean, **scales)
        marks.append("columns interpolated along y")
    mesh = ax.pcolormesh(a, rows, shown, edgecolors="face", linewidth=0.2, **look)
    ax.set(xlim=a[[0, -1]], ylim=b[[0, -1]])
    spots = [
        Rectangle((float(a[i]), float(b[j])), float(a[i + 1] - a[i]), float(b[j + 1] - b[j]))
        for j, i in np.argwhere(table["diverged"].values)
    ]
    for color, width in (("white", 1.6), ("black", 0.6)) if spots else ():
        hatch = PatchCollection(spots, facecolor="none", edgecolor=color, linewidth=0, hatch="////")
        hatch.set_hatch_linewidth(width)
        ax.add_collection(hatch)
    if spots:
        ax.fill_between([], [], facecolor="white", hatch="////", linewidth=0, label="diverged")
    space = np.geomspace if ax.get_xscale() == "log" else np.linspace
    for name, line in (theory or {}).items():
        u, v = line if isinstance(line, tuple) else (space(a[0], a[-1], 500), line)
        theory_curve(ax, u, v, name)
    tidy(ax, z, *marks)
    return mesh


def _colour_bar(ax: Axes, what: Any, da: xr.DataArray) -> None:
    """A bar inside the panel's frame, so that legends beside it do not push it away."""
    fig = ax.get_figure(root=True)
    assert fig is not None
    bar = fig.colorbar(what, cax=ax.inset_axes((1.03, 0, 0.04, 1)), label=label(da))
    bar.ax.spines[:].set_visible(False)
    bar.ax.tick_params(which="both", labelsize=look_of(ax).ticks, width=0.5, length=2)
    if isinstance(what.norm, LogNorm):
        bar.ax.yaxis.set(major_locator=LogTicks(), major_formatter=LogLabels())
        bar.ax.yaxis.set_minor_formatter(ticker.NullFormatter())


@styled
def heatmap(
    ax: Axes,
    z: xr.DataArray,
    x: str,
    y: str,
    *,
    log: str = "",
    theory: Theory | None = None,
    centre: float | None = None,
    limits: tuple[float | None, float | None] = (None, None),
) -> None:
    """The mean over seeds as a map with a colour bar, and the theory's curves by name.

    A quantity with a sign gets a `centre`, and colours that diverge from it.
    """
    norm = LogNorm(*limits) if "z" in log else Normalize(*limits)
    if centre is not None and limits == (None, None):
        norm = CenteredNorm(centre)
    cmap = SEQUENTIAL if centre is None else DIVERGING
    _colour_bar(ax, _map(ax, z, x, y, log, theory, norm=norm, cmap=cmap), z)


@styled
def phase_diagram(
    ax: Axes,
    z: xr.DataArray,
    x: str,
    y: str,
    *,
    cut: float,
    log: str = "",
    theory: Theory | None = None,
    boundary: xr.Dataset | tuple[xr.DataArray, Estimates] | None = None,
) -> None:
    """Where the mean over seeds lies below and above `cut`, interpolated along y.

    `boundary` holds estimates of the place of the transition along y at values of x: a Dataset
    of value, low and high, or the coordinate and a list. Colours are interpolated as the points of
    `stats.phase_boundary` were. Other points do not say how: then along the logarithm of y, the
    default there, if y is above 0.
    """
    norm = BoundaryNorm([-np.inf, cut, np.inf], 2)
    name = f"${s}" if (s := z.attrs.get("symbol")) else f"{label(z)} $"
    for colour, sign in ((BELOW, "<"), (ABOVE, r"\geq")):
        ax.fill_between([], [], color=colour, label=f"{name} {sign} {latex_number(cut)}$")
    above_zero = z[y].dtype.kind in "iuf" and bool((z[y] > 0).all())
    how = boundary.attrs.get("interpolation") if isinstance(boundary, xr.Dataset) else None
    fine = "log" if above_zero and how != "linear" else "linear"
    _map(ax, z, x, y, log, theory, fine=fine, norm=norm, cmap=ListedColormap([BELOW, ABOVE]))
    if boundary is not None:
        low, high = ax.get_ylim()
        at = boundary if isinstance(boundary, xr.Dataset) else as_points(boundary[1], boundary[0])
        at = at.assign(low=at.low.clip(min=low), high=at.high.clip(max=high))
        look: dict[str, Any] = dict(label="measured boundary", log=log.replace("y", ""))
        curve(ax, at, str(at.value.dims[0]), line=False, **look)


@styled
def attention_map(
    ax: Axes, p: xr.DataArray, *, rows: Sequence[str] = (), cols: Sequence[str] = ()
) -> None:
    """Attention weights from 0 to 1, queries down and keys across; small maps show the numbers."""
    coords = coords_of(p, *(str(d) for d in p.dims if d != "seed"))
    mean = summary(p)["mean"].values
    image = ax.imshow(mean, vmin=0, vmax=1, cmap=SEQUENTIAL, interpolation="nearest")
    for which, coord, names in zip("yx", coords, (rows, cols), strict=True):
        locate(ax, which, coord, "")
        if len(names):
            getattr(ax, f"set_{which}ticks")(range(coord.size), names)
    ax.spines[:].set_visible(False)
    for (i, j), v in np.ndenumerate(mean) if mean.size <= 64 else ():
        look: dict[str, Any] = dict(fontsize=6.5, color="white" if v < 0.6 else "black")
        ax.text(j, i, f"{v:.2f}", ha="center", va="center", **look)
    _colour_bar(ax, image, p)
    tidy(ax, p, *[MEAN] * averaged(ax, p))
