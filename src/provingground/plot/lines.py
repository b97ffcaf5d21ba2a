"""Curves, laws and the theory beside them."""

import math
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes

from provingground.plot.axes import coords_of, locate, name_axis, tidy
from provingground.plot.looks import DASHES, GREY, MARKERS, PALETTE, SEQUENTIAL, look_of, styled
from provingground.plot.sheet import is_map
from provingground.plot.ticks import log_scale
from provingground.plot.values import Data, Where, as_points, summary
from provingground.plot.words import legend_name


@styled
def curve(
    ax: Axes, y: Data, x: Where, *, hue: str = "", label: str = "", log: str = "", line: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The mean over seeds as a line with its 95% band, or as markers with bars (`line=False`).

    One series for each value of `hue`. Instead of a measurement, `y` may be estimates: a Dataset
    of value, low and high, or a list with the coordinate `x`. Where seeds diverged, a cross
    stands at the top edge and the mean leaves them out. Gives the places and the means.
    """
    if isinstance(y, xr.DataArray) and isinstance(x, str):
        coord, *group = coords_of(y, *filter(None, (x, hue)))
        table = summary(y)
        name_axis(ax, "y", y)
        label = label or y.attrs.get("long_name") or str(y.name)
    else:
        points, group, label = as_points(y, x), [], label or "measured"
        coord = points[x if isinstance(x, str) else x.dims[0]]
        table = points.rename(value="mean").assign(diverged=points.value * 0 > 0)
    xs = locate(ax, "x", coord, log)
    if "y" in log:
        log_scale(ax, "y")
        floor = table["mean"].where(table["mean"] > 0).min() / 2
        table["low"] = table["low"].where(~(table["low"] < floor), 0.0)  # drawn to the edge
    order, size = np.argsort(xs, kind="stable"), group[0].size if group else 1
    start = sum(a.get_gid() == "series" for a in ax.lines)
    ramp = matplotlib.colormaps[SEQUENTIAL](np.linspace(0, 0.85, size))
    every = 1 if xs.size <= 15 else math.ceil(xs.size / 8)
    for k in range(size):
        part = table.isel({group[0].dims[0]: k}) if group else table
        mean, low, high, bad = (part[v].values[order] for v in ("mean", "low", "high", "diverged"))
        at = xs[order] + (0.12 * (k - (size - 1) / 2) if coord.dtype.kind not in "iuf" else 0)
        color = PALETTE[start + k] if start + size <= len(PALETTE) else ramp[k]
        look: dict[str, Any] = dict(color=color, marker=MARKERS[(start + k) % len(MARKERS)])
        look |= dict(label=legend_name(group[0][k]) if group else label, gid="series")
        look |= dict(markeredgecolor="white", markeredgewidth=0.4)
        if line:
            ax.plot(at, mean, markevery=(k * every // size, every), **look)
            ax.fill_between(at, low, high, color=color, alpha=0.2, linewidth=0)
        else:
            bars = None if np.isnan(low).all() else np.maximum([mean - low, high - mean], 0)
            ax.errorbar(
                at,
                mean,
                yerr=bars,
                linestyle="none",
                elinewidth=look_of(ax).line,
                zorder=3,
                **look,
            )
        if bad.any():
            edge: dict[str, Any] = dict(transform=ax.get_xaxis_transform(), clip_on=False)
            ax.plot(at[bad], np.ones(bad.sum()), "x", color=color, zorder=5, **edge)
            ax.plot([], [], "x", color=GREY, label="diverged")
    low, high = np.isfinite(table["low"]), np.isfinite(table["high"])
    if line:
        marks = ["band: 95% interval"] if (low & high).any() else []
    else:
        marks = ["bars: 95% interval"] if (low | high).any() else []
    tidy(ax, y, *marks)
    return xs, table["mean"].values


@styled
def law(
    ax: Axes, y: Data, x: Where, *, fit: Any = None, predicted: Any = None, label: str = ""
) -> None:
    """Points on log-log axes, the fitted law, and the predicted one.

    `fit` is a function of x with an estimate `slope`, drawn over its `window`. `predicted` is a
    function of x, values at x, or an exponent, drawn through the middle of the points.
    """
    xs, mean = curve(ax, y, x, label=label, log="xy", line=False)
    ends = xs[xs > 0].min(), xs.max()
    coord: Any = y[x] if isinstance(y, xr.DataArray | xr.Dataset) else x
    base = rf"$\propto {{{coord.attrs.get('symbol') or 'x'}}}"
    if fit is not None and math.isfinite(fit.slope.value):
        e, window = fit.slope, getattr(fit, "window", ends)
        span = np.geomspace(max(ends[0], window[0]), min(ends[1], window[1]), 200)
        text = rf"fit {base}^{{{e.value:.2f}}}$ $[{{{e.low:.2f}}}, {{{e.high:.2f}}}]$"
        ax.plot(
            span, fit(span), color=GREY, linewidth=0.9 * look_of(ax).line, zorder=1.9, label=text
        )
    if isinstance(predicted, int | float):
        if not (ok := mean > 0).any():
            return tidy(ax)
        scale = np.exp(np.mean(np.log(mean[ok]) - predicted * np.log(xs[ok])))
        text, power = f"theory {base}^{{{predicted:.3g}}}$", float(predicted)
        theory_curve(ax, np.geomspace(*ends, 200), lambda x: scale * x**power, text)
    elif predicted is not None:
        theory_curve(ax, np.geomspace(*ends, 200) if callable(predicted) else xs, predicted)
    tidy(ax)


@styled
def theory_curve(ax: Axes, x: Any, y: Any, label: str = "theory") -> None:
    """A prediction, black and dashed: numbers `y` at `x`, or a function of `x`."""
    x = np.asarray(x, float)
    with np.errstate(all="ignore"):
        y = np.broadcast_to(np.asarray(y(x) if callable(y) else y, float), x.shape)
    known = [a.get_label() for a in ax.lines if a.get_gid() == "theory"]
    dash = DASHES[[*dict.fromkeys((*known, label))].index(label) % len(DASHES)]
    look: dict[str, Any] = dict(color="black", linewidth=1.2 * look_of(ax).line)
    look |= dict(linestyle=dash, zorder=2.5)
    if is_map(ax):
        look["path_effects"] = [patheffects.withStroke(linewidth=2.6, foreground="white")]
    ax.plot(x, y, label=label, gid="theory", **look)
    tidy(ax)
