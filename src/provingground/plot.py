"""One look for every figure: labelled xarray data in, matplotlib out.

Our measurement is a solid colour (a line with its band over seeds, or markers with bars), the
theory's curve black and dashed, a fitted law a thin grey line. Labels come from the attributes
`long_name` and `symbol`; the footer says how many seeds were run.

    fig, (ax,) = plot.figure()
    plot.curve(ax, ds.test_loss, "samples", hue="snr")
    plot.save(fig, "fig1a.png")

Functions draw into an `Axes`; `log` names its logarithmic axes ("x", "y", "xy"). Legends stand
above their panel, where they cover no data. No pyplot, so figures may be drawn in threads.
"""

import functools
import io
import itertools
import math
import re
import textwrap
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib
import numpy as np
import xarray as xr
from matplotlib import patheffects, ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection, PathCollection, QuadMesh
from matplotlib.colors import CenteredNorm, ListedColormap, LogNorm, Normalize
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from scipy.special import stdtrit

from provingground.errors import InputError, unknown

SINGLE, DOUBLE = 3.5, 7.0  # one and two printed columns, inches
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe-Ito
MARKERS = "os^DvP"
DASHES = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 1.5, 1, 1.5)))
SEQUENTIAL, DIVERGING, BELOW, ABOVE, GREY = "viridis", "RdBu_r", "#CFE3F2", "#EBA55F", "0.35"
STYLE = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-3, 5),
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.columnspacing": 1.2,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.2,
    "figure.titlesize": 9.5,
    "svg.hashsalt": "provingground",
    "pdf.fonttype": 42,
}
Curve = Callable[[np.ndarray], Any] | tuple[Any, Any]  # y of x, or the points (x, y)
Estimates = Sequence[tuple[float, float, float]]  # value, low, high
P = ParamSpec("P")
R = TypeVar("R")
_lock = threading.RLock()


def _styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Runs a function under `STYLE`. Matplotlib's settings are shared by threads, hence a lock."""

    @functools.wraps(draw)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with _lock, matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(STYLE)
            return draw(*args, **kwargs)

    return call


# --------------------------------------------------------------------------- figures


class Sheet(Figure):
    """A figure that remembers what its footer says."""

    seeds: frozenset[int] = frozenset()
    marks: tuple[str, ...] = ()

    def note(self, seeds: int | None, *marks: str) -> None:
        """Adds a number of seeds and the meaning of marks to the footer."""
        self.seeds |= {seeds} if seeds else set()
        self.marks = tuple(dict.fromkeys((*self.marks, *marks)))
        few, many = min(self.seeds, default=0), max(self.seeds, default=0)
        count = f"{few} seed{'s' * (few > 1)}" if few == many else f"{few} to {many} seeds"
        text = "; ".join(([count] if many else []) + [*self.marks])
        self.supxlabel(text, x=0.99, ha="right", fontsize=6.5, color=GREY)


@_styled
def figure(
    rows: int = 1,
    cols: int = 1,
    *,
    width: float | None = None,
    height: float | None = None,
    title: str | None = None,
    seeds: int | None = None,
) -> tuple[Sheet, list[Axes]]:
    """A figure and its panels, row by row; one printed column wide, or two for several panels.

    `seeds` is needed only where what is drawn has no dimension `seed` that would tell.
    """
    width = width or (SINGLE if cols == 1 else DOUBLE)
    height = height or rows * min(max(0.76 * width / cols, 2.1), 2.9) + 0.25 * bool(title)
    fig = Sheet(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(fig)
    axes = [fig.add_subplot(rows, cols, k + 1) for k in range(rows * cols)]
    for ax in axes:  # ticks are made at drawing, when STYLE may not be in force
        ax.tick_params(which="major", labelsize=8, length=3, width=0.7)
        ax.tick_params(which="minor", length=1.8, width=0.5)
    if title:
        fig.suptitle(title, x=0.01, ha="left")
    fig.note(seeds)
    return fig, axes


@_styled
def finish(fig: Figure) -> Figure:
    """Fits long labels, legends and titles to the layout. `save` calls this; twice does no harm."""
    for ax in fig.axes:
        _fold(ax.xaxis.label, ax.bbox.width)
        _fold(ax.yaxis.label, ax.bbox.height)
    fig.draw_without_rendering()
    for ax in fig.axes:
        if legend := _legend(ax):
            for loc in ("left", "center", "right"):
                pad = legend.get_window_extent().height * 72 / fig.dpi + 5
                ax.set_title(ax.get_title(loc), loc=loc, pad=pad)
    fig.draw_without_rendering()
    return fig


@_styled
def save(fig: Figure, path: str | Path) -> Path:
    """Writes a .png (below 300 kB), .svg or .pdf; equal figures give equal bytes."""
    path, image = Path(path), io.BytesIO()
    meta = {".png": ["Software"], ".svg": ["Date"], ".pdf": ["CreationDate", "Creator", "Producer"]}
    if path.suffix not in meta:
        raise unknown("image format", path.suffix, meta)
    finish(fig)
    for dpi in (220, 160, 110, 75):
        image = io.BytesIO()
        kind = dict(format=path.suffix[1:], metadata=dict.fromkeys(meta[path.suffix]))
        fig.savefig(image, dpi=dpi, **kind)
        if path.suffix != ".png" or image.tell() < 300_000:
            break
    path.write_bytes(image.getvalue())
    return path


# --------------------------------------------------------------------------- words and numbers


def label(da: xr.DataArray) -> str:
    """The words and the paper's letter of a coordinate or variable: "training samples, $N$"."""
    words = da.attrs.get("long_name") or str(da.name or "").replace("_", " ")
    symbol = da.attrs.get("symbol")
    return ", ".join(filter(None, (words, f"${symbol}$" if symbol else "")))


def _number(value: float, power: bool = False) -> str:
    """A number in LaTeX; as a power of ten where it is very large or small, or if asked."""
    if value == 0 or (not power and 1e-3 <= abs(value) < 1e5):
        return f"{value:.6g}"
    head, tail = f"{value:.2e}".split("e")
    front = "" if float(head) == 1 else rf"{float(head):g}\times "
    return f"{front}10^{{{int(tail)}}}"


def _says(da: xr.DataArray, relation: str, value: Any) -> str:
    """A value in the legend: "$N = 20$", or with the words where there is no letter."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    symbol = da.attrs.get("symbol")
    if symbol:
        return f"${symbol} {relation} {_number(value)}$"
    words, sign = (str(da.name), "") if relation == "=" else (label(da), relation)
    return f"{words} ${sign} {_number(value)}$".replace("_", " ")


def _fold(text: Text, room: float) -> None:
    """Breaks a label that is longer than its axis into lines; formulas stay whole."""
    box = text.get_window_extent()
    lines = math.ceil(max(box.width, box.height) / room)
    if lines > 1 and "\n" not in text.get_text():
        words = re.sub(r"\$[^$]*\$", lambda m: m[0].replace(" ", "{}"), text.get_text())
        width = int(1.1 * len(words) / lines) + 1
        text.set_text(textwrap.fill(words, width, break_long_words=False, break_on_hyphens=False))


def edges(centres: Any, log: bool = False) -> np.ndarray:
    """The borders of cells around `centres`: midpoints, geometric ones on a log axis."""
    c = np.log(centres) if log else np.asarray(centres, float)
    step = np.diff(c) / 2 if c.size > 1 else np.array([0.5])
    e = np.concatenate([[c[0] - step[0]], c[:-1] + step[: c.size - 1], [c[-1] + step[-1]]])
    return np.exp(e) if log else e


def summary(y: xr.DataArray) -> xr.Dataset:
    """Over seeds: `mean`, the 95% interval `low` to `high`, and whether any seed `diverged`.

    Student's t, or Wilson's interval where every value is 0 or 1. NaN seeds are left out.
    """
    y = y.astype(float) if "seed" in y.dims else y.astype(float).expand_dims("seed")
    ok = abs(y) < np.inf
    count = ok.sum("seed")
    n, several = count.where(count > 0), count.where(count > 1)
    mean = y.where(ok, 0.0).sum("seed") / n
    if y.sizes["seed"] > 1 and bool((~ok | (y == 0) | (y == 1)).all()):
        z2 = 1.959964**2
        middle = (mean + z2 / (2 * n)) / (1 + z2 / n)
        half = (z2 * (mean * (1 - mean) / n + z2 / (4 * n**2))) ** 0.5 / (1 + z2 / n)
    else:
        error = (((y - mean) ** 2).where(ok, 0.0).sum("seed") / (several - 1) / several) ** 0.5
        middle, half = mean, xr.apply_ufunc(stdtrit, several - 1, 0.975) * error
    columns = dict(mean=mean, low=middle - half, high=middle + half, diverged=~ok.all("seed"))
    return xr.Dataset(columns)


class _LogTicks(ticker.Locator):
    """Round numbers on a log axis, three to seven whether it spans half a decade or ten."""

    def __init__(self, linear: float = 0.0):
        self.linear = linear  # a symmetric log axis is linear up to here

    def __call__(self) -> Any:
        return self.tick_values(*self.axis.get_view_interval())  # pyright: ignore

    def tick_values(self, vmin: float, vmax: float) -> Any:
        low, high = max(min(vmin, vmax), self.linear, 1e-300), max(vmin, vmax, 1e-299)
        powers = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        powers = powers[powers % math.ceil(len(powers) / 7) == 0]
        for heads in ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7), range(1, 10)):
            ticks = np.outer(10.0**powers, heads).ravel()
            ticks = ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
            if len(ticks) >= 3:
                return np.concatenate([[0.0], ticks]) if self.linear else ticks
        return ticker.MaxNLocator(4).tick_values(low, high)


class _LogLabels(ticker.Formatter):
    """Plain numbers where all of them are short, else powers of ten."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"${_number(x)}$"

    def format_ticks(self, values: Any) -> list[str]:
        power = any(v != 0 and not 1e-3 <= abs(v) < 1e4 for v in values)
        return [f"${_number(v, power)}$" for v in values]


# --------------------------------------------------------------------------- axes and legends


def _log_scale(ax: Axes, which: str, linear: float = 0.0) -> None:
    axis: Axis = getattr(ax, f"{which}axis")
    options = dict(value="symlog", linthresh=linear, linscale=0.5) if linear else dict(value="log")
    getattr(ax, f"set_{which}scale")(**options)
    axis.set_major_locator(_LogTicks(linear))
    axis.set_major_formatter(_LogLabels())
    axis.set_minor_formatter(ticker.NullFormatter())


def _name(ax: Axes, which: str, da: xr.DataArray) -> None:
    """Labels an axis, unless it has a label."""
    if not getattr(ax, f"get_{which}label")():
        getattr(ax, f"set_{which}label")(label(da))


def _place(ax: Axes, which: str, coord: xr.DataArray, log: str) -> np.ndarray:
    """Labels and scales an axis for a coordinate; gives the places of its values."""
    _name(ax, which, coord)
    axis: Axis = getattr(ax, f"{which}axis")
    if not np.issubdtype(coord.dtype, np.number):
        axis.set_ticks(range(coord.size), [str(v) for v in coord.values])
        return np.arange(coord.size, dtype=float)
    v = coord.values.astype(float)
    if which in log:
        _log_scale(ax, which, 0.0 if (v > 0).all() else float(v[v > 0].min()))
    elif np.issubdtype(coord.dtype, np.integer):
        axis.set_major_locator(ticker.MaxNLocator("auto", integer=True))
    return v


def _coords(da: xr.DataArray, *names: str) -> list[xr.DataArray]:
    """The named coordinates, one dimension each; nothing but seeds may be left over."""
    for name in names:
        if name not in da.coords and name not in da.dims:
            raise unknown("axis", name, map(str, {**da.sizes, **da.coords}))
    found = [da[name] for name in names]
    if rest := set(da.dims) - {"seed", *(c.dims[0] for c in found)}:
        rest = ", ".join(sorted(map(str, rest)))
        raise InputError(f"'{da.name}' also varies along {rest}: select or average first")
    return found


def _note(ax: Axes, data: Any, mark: str) -> None:
    """Tells the footer the seeds of `data`, and what a mark means where they are several."""
    fig = ax.get_figure(root=True)
    if isinstance(fig, Sheet):
        told = isinstance(data, xr.DataArray) and ("seed" in data.dims or "seed" in data.coords)
        count = int(data["seed"].size) if told else None
        fig.note(count, *([mark] if count != 1 else []))


def _is_map(ax: Axes) -> bool:
    return any(isinstance(a, QuadMesh | AxesImage) for a in ax.get_children())


def _legend(ax: Axes) -> Legend | None:
    """Lists labelled artists above the panel, each name once, in as many columns as fit."""
    pairs = [*zip(*ax.get_legend_handles_labels(), strict=True)]
    entries = {name: handle for handle, name in reversed(pairs)}
    names = [*dict.fromkeys(name for _, name in pairs)]
    if len(names) < (1 if _is_map(ax) else 2):
        return None
    spec, fig = ax.get_subplotspec(), ax.get_figure(root=True)
    assert fig is not None
    right = fig.bbox.width * (spec.colspan.stop / spec.get_gridspec().ncols if spec else 1)
    place: dict[str, Any] = dict(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.3)
    for columns in range(len(names), 0, -1):
        legend = ax.legend([entries[n] for n in names], names, ncols=columns, **place)
        if legend.get_window_extent().width <= right - ax.bbox.x0:
            break
    return ax.get_legend()


# --------------------------------------------------------------------------- lines and points


@_styled
def curve(
    ax: Axes,
    y: xr.DataArray | Estimates,
    x: str | xr.DataArray,
    *,
    hue: str | None = None,
    label: str | None = None,
    log: str = "",
    line: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """The mean over seeds as a line with its 95% band, or as markers with bars (`line=False`).

    One series for each value of `hue`. Instead of a measurement and the name of its axis, there
    may be estimates and the coordinate `x` of their places. Where seeds diverged, a cross stands
    at the top edge and the mean leaves them out. Gives the places and the means.
    """
    if isinstance(x, str):
        if not isinstance(y, xr.DataArray):
            raise InputError("estimates need the coordinate of their places, not its name")
        coord, *group = _coords(y, *filter(None, (x, hue)))
        table = summary(y)
        _name(ax, "y", y)
        label = label or y.attrs.get("long_name") or str(y.name)
    else:
        coord, group, rows = x, [], np.array(y, float).T
        table = xr.Dataset(
            {k: (x.dims, v) for k, v in zip(("mean", "low", "high"), rows, strict=True)}
        )
        table["diverged"] = xr.zeros_like(table["mean"], dtype=bool)
    xs = _place(ax, "x", coord, log)
    if "y" in log:
        _log_scale(ax, "y")
        floor = table["mean"].where(table["mean"] > 0).min() / 2
        table["low"] = table["low"].where(~(table["low"] < floor), 0.0)  # drawn to the edge
    order, size = np.argsort(xs, kind="stable"), group[0].size if group else 1
    start = sum(a.get_gid() == "series" for a in ax.lines)
    ramp = matplotlib.colormaps[SEQUENTIAL](np.linspace(0, 0.85, size))
    for k in range(size):
        part = table.isel({group[0].dims[0]: k}) if group else table
        mean, low, high, bad = (part[v].values[order] for v in ("mean", "low", "high", "diverged"))
        at = xs[order] + (0.12 * (k - (size - 1) / 2) if coord.dtype.kind not in "iuf" else 0)
        color = PALETTE[start + k] if start + size <= len(PALETTE) else ramp[k]
        look: dict[str, Any] = dict(color=color, marker=MARKERS[(start + k) % len(MARKERS)])
        look |= dict(markeredgecolor="white", markeredgewidth=0.4, gid="series")
        look["label"] = _says(group[0], "=", group[0][k].item()) if group else label
        if line:
            every = math.ceil(len(at) / 8)
            ax.plot(at, mean, markevery=(k * every // size, every), **look)
            ax.fill_between(at, low, high, color=color, alpha=0.2, linewidth=0)
        else:
            bars = None if np.isnan(low).all() else [mean - low, high - mean]
            ax.errorbar(at, mean, yerr=bars, linestyle="none", elinewidth=1, **look)
        if bad.any():
            edge: dict[str, Any] = dict(transform=ax.get_xaxis_transform(), clip_on=False)
            ax.plot(at[bad], np.ones(bad.sum()), "x", color=color, zorder=5, **edge)
            ax.plot([], [], "x", color=GREY, label="diverged")
    _note(ax, y, f"{'band' if line else 'bars'}: 95% interval")
    _legend(ax)
    return xs, table["mean"].values


@_styled
def law(
    ax: Axes,
    y: xr.DataArray | Estimates,
    x: str | xr.DataArray,
    *,
    fit: Any = None,
    predicted: float | Callable[[np.ndarray], Any] | None = None,
    label: str | None = None,
) -> None:
    """Points on log-log axes, the fitted law, and the predicted one.

    `fit` is a function of x with an estimate `slope`. A predicted number is an exponent: its
    line is drawn through the middle of the points.
    """
    xs, mean = curve(ax, y, x, label=label, log="xy", line=False)
    span = np.geomspace(xs.min(), xs.max(), 200)
    coord = y[x] if isinstance(y, xr.DataArray) else x
    letter = getattr(coord, "attrs", {}).get("symbol") or "x"
    if fit is not None:
        e = fit.slope
        text = rf"fit $\propto {{{letter}}}^{{{e.value:.2f}}}$ $[{e.low:.2f}, {e.high:.2f}]$"
        ax.plot(span, fit(span), color=GREY, linewidth=0.9, zorder=1.9, label=text)
    if isinstance(predicted, int | float):
        ok = mean > 0
        scale = np.exp(np.mean(np.log(mean[ok]) - predicted * np.log(xs[ok])))
        text = rf"theory $\propto {{{letter}}}^{{{predicted:.3g}}}$"
        theory_curve(ax, span, scale * span**predicted, text)
    elif predicted is not None:
        theory_curve(ax, span, predicted)
    _legend(ax)


@_styled
def theory_curve(ax: Axes, x: Any, y: Any, label: str = "theory") -> None:
    """A prediction, black and dashed: numbers `y` at `x`, or a function of `x`."""
    x = np.asarray(x, float)
    with np.errstate(all="ignore"):
        y = np.broadcast_to(np.asarray(y(x) if callable(y) else y, float), x.shape)
    known = [a.get_label() for a in ax.lines if a.get_gid() == "theory"]
    dash = DASHES[[*dict.fromkeys((*known, label))].index(label) % len(DASHES)]
    halo = [patheffects.withStroke(linewidth=2.6, foreground="white")]
    look: dict[str, Any] = dict(color="black", linewidth=1.2, linestyle=dash, path_effects=halo)
    ax.plot(x, y, label=label, gid="theory", zorder=2.5, **look)
    _legend(ax)


# --------------------------------------------------------------------------- maps


def _cells(
    ax: Axes, z: xr.DataArray, x: str, y: str, log: str, theory: Mapping[str, Curve] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prepares a map of means: cell borders, hatched where a seed diverged, and theory curves."""
    cx, cy = _coords(z, x, y)
    table = summary(z).transpose(cy.dims[0], cx.dims[0])
    borders: list[np.ndarray] = []
    for which, coord in (("x", cx), ("y", cy)):
        at = _place(ax, which, coord, log)
        table = table.isel({coord.dims[0]: np.argsort(at)})
        borders.append(edges(np.sort(at), getattr(ax, f"get_{which}scale")() == "log"))
    a, b = borders
    ax.set(xlim=a[[0, -1]], ylim=b[[0, -1]])
    spots = [
        Rectangle((a[i], b[j]), a[i + 1] - a[i], b[j + 1] - b[j])
        for j, i in zip(*np.nonzero(table["diverged"].values), strict=True)
    ]
    if spots:
        hatch: dict[str, Any] = dict(facecolor="none", linewidth=0, hatch="/////", zorder=1.5)
        for color, width in (("white", 2.2), ("black", 0.7)):
            patches = PatchCollection(spots, edgecolor=color, **hatch)
            patches.set_hatch_linewidth(width)
            ax.add_collection(patches)
        ax.add_patch(
            Rectangle((a[0], b[0]), 0, 0, hatch="/////", facecolor="white", label="diverged")
        )
    space = np.geomspace if ax.get_xscale() == "log" else np.linspace
    for name, line in (theory or {}).items():
        theory_curve(
            ax, *(line if isinstance(line, tuple) else (space(a[0], a[-1], 500), line)), name
        )
    _note(ax, z, "map: mean")
    return a, b, np.ma.masked_invalid(table["mean"].values)


@_styled
def heatmap(
    ax: Axes,
    z: xr.DataArray,
    x: str,
    y: str,
    *,
    log: str = "",
    theory: Mapping[str, Curve] | None = None,
    log_colour: bool = False,
    centre: float | None = None,
    limits: tuple[float | None, float | None] = (None, None),
) -> None:
    """The mean over seeds as a map with a colour bar, and the theory's curves by name.

    A quantity with a sign gets a `centre`, and colours that diverge from it.
    """
    a, b, mean = _cells(ax, z, x, y, log, theory)
    norm = Normalize(*limits) if centre is None else CenteredNorm(centre)
    if log_colour:
        norm, mean = LogNorm(*limits), np.ma.maximum(mean, mean[mean > 0].min())
    look: dict[str, Any] = dict(norm=norm, cmap=SEQUENTIAL if centre is None else DIVERGING)
    mesh = ax.pcolormesh(a, b, mean, edgecolors="face", linewidth=0.2, **look)
    _colour_bar(ax, mesh, z, log_colour)
    _legend(ax)


@_styled
def phase_diagram(
    ax: Axes,
    z: xr.DataArray,
    x: str,
    y: str,
    *,
    cut: float,
    log: str = "",
    theory: Mapping[str, Curve] | None = None,
    boundary: tuple[xr.DataArray, Estimates] | None = None,
) -> None:
    """Where the mean over seeds lies below and above `cut`.

    `boundary` holds the values of x and the measured places of the transition along y.
    """
    a, b, mean = _cells(ax, z, x, y, log, theory)
    colours = ListedColormap([BELOW, ABOVE])
    ax.pcolormesh(a, b, mean >= cut, cmap=colours, vmin=0, vmax=1, edgecolors="face", linewidth=0.2)
    for colour, relation in ((BELOW, "<"), (ABOVE, r"\geq")):
        ax.add_patch(Rectangle((a[0], b[0]), 0, 0, color=colour, label=_says(z, relation, cut)))
    if boundary is not None:
        limits = [(v, max(low, b[0]), min(high, b[-1])) for v, low, high in boundary[1]]
        curve(
            ax, limits, boundary[0], label="measured boundary", log=log.replace("y", ""), line=False
        )
    _legend(ax)


@_styled
def attention_map(
    ax: Axes,
    p: xr.DataArray,
    *,
    rows: Sequence[str] | None = None,
    cols: Sequence[str] | None = None,
) -> None:
    """Attention weights from 0 to 1, queries down and keys across; small maps show the numbers."""
    dims = [d for d in p.dims if d != "seed"]
    down, across = _coords(p, *map(str, dims))
    mean = summary(p)["mean"].values
    image = ax.imshow(mean, vmin=0, vmax=1, cmap=SEQUENTIAL, interpolation="nearest")
    for which, coord, names in (("y", down, rows), ("x", across, cols)):
        _place(ax, which, coord, "")
        if names is not None:
            getattr(ax, f"set_{which}ticks")(range(coord.size), names)
    ax.spines[:].set_visible(False)
    if mean.size <= 64:
        for (i, j), v in np.ndenumerate(mean):
            ink = "white" if v < 0.6 else "black"
            ax.text(j, i, f"{v:.2f}", ha="center", va="center", fontsize=6.5, color=ink)
    _colour_bar(ax, image, p)
    _note(ax, p, "map: mean")


def _colour_bar(ax: Axes, what: Any, da: xr.DataArray, log: bool = False) -> None:
    fig = ax.get_figure(root=True)
    assert fig is not None
    bar = fig.colorbar(what, ax=ax, aspect=25, pad=0.02, label=label(da))
    bar.ax.spines[:].set_visible(False)
    bar.ax.tick_params(which="both", labelsize=8, width=0.5, length=2)
    if log:
        bar.ax.yaxis.set(major_locator=_LogTicks(), major_formatter=_LogLabels())


# --------------------------------------------------------------------------- a second look


def check_layout(fig: Figure) -> list[str]:
    """What a reader would object to: missing labels, legends or seeds, clipped or covered text."""
    finish(fig)
    found: list[str] = []
    drawn: list[Any] = [*fig.texts, *fig.legends]
    if not any(re.search(r"\d seed", t.get_text()) for t in fig.texts):
        found.append("the figure does not say its number of seeds")
    for k, ax in enumerate(fig.axes, 1):
        if not (ax.get_visible() and ax.axison):
            continue
        if not ax.has_data():
            found.append(f"panel {k} is empty")
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [t for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
            names = [n for t in ticks for n in (t.label1, t.label2) if _is_shown(n)]
            if axis.get_visible() and names and not axis.label.get_text():
                found.append(f"panel {k}: the {axis.axis_name} axis has no label")
            drawn += [*names, axis.label, axis.offsetText] if axis.get_visible() else []
        drawn += [t for t in ax.get_children() if isinstance(t, Text | Legend)]
        caps = [c for e in ax.containers if isinstance(e, ErrorbarContainer) for c in e.lines[1]]
        lines = [a for a in ax.lines if a.get_visible() and a not in caps and len(a.get_xydata())]
        kinds = len({(str(a.get_color()), a.get_linestyle(), str(a.get_marker())) for a in lines})
        kinds += sum(isinstance(c, BarContainer) for c in ax.containers)
        kinds += sum(isinstance(c, PathCollection) for c in ax.collections)
        told = ax.get_legend() or fig.legends or len(ax.texts) >= kinds
        if kinds > (0 if _is_map(ax) else 1) and not told:
            found.append(f"panel {k}: several things are drawn and no legend tells them apart")
    boxes = [(t, t.get_window_extent()) for t in drawn if _is_shown(t)]
    for text, box in boxes:
        if box.x0 < -1 or box.y0 < -1 or box.x1 > fig.bbox.x1 + 1 or box.y1 > fig.bbox.y1 + 1:
            found.append(f"{_called(text)} is cut off at the edge of the figure")
    straight = [(t, b) for t, b in boxes if isinstance(t, Legend) or t.get_rotation() % 90 == 0]
    for (one, a), (two, b) in itertools.combinations(straight, 2):
        if Bbox.intersection(a.padded(-1.5), b.padded(-1.5)) is not None:
            found.append(f"{_called(one)} overlaps {_called(two)}")
    return found


def _is_shown(text: Text | Legend) -> bool:
    words = "legend" if isinstance(text, Legend) else text.get_text().strip()
    return bool(words) and text.get_visible() and not text.get_clip_on()


def _called(text: Text | Legend) -> str:
    return "a legend" if isinstance(text, Legend) else f"'{text.get_text()}'"
