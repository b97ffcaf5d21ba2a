"""What `plot` draws with; see there."""

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
from matplotlib.colors import BoundaryNorm, CenteredNorm, ListedColormap, LogNorm, Normalize
from matplotlib.container import BarContainer, Container, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox, offset_copy
from scipy.special import stdtrit

from provingground import files
from provingground.errors import InputError, unknown

SINGLE, DOUBLE = 3.5, 7.0  # one and two printed columns, inches
PIXELS = 125  # of an inch in a notebook
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe-Ito
MARKERS = "os^DvP"
DASHES = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 1.5, 1, 1.5)))
SEQUENTIAL, DIVERGING, BELOW, ABOVE, GREY = "viridis", "RdBu_r", "#CFE3F2", "#EBA55F", "0.35"
STYLE: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-3, 5),
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.borderpad": 0,
    "legend.borderaxespad": 0,
    "legend.columnspacing": 1.2,
    "legend.handletextpad": 0.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.2,
    "figure.titlesize": 9.5,
    "svg.hashsalt": "provingground",
    "pdf.fonttype": 42,
}
Estimates = Sequence[tuple[float, float, float]]  # value, low, high
Data = xr.DataArray | xr.Dataset | Estimates  # a Dataset holds value, low and high
Where = str | xr.DataArray  # the name of an axis; for a list of estimates, their coordinate
Theory = Mapping[str, Callable[[np.ndarray], Any] | tuple[Any, Any]]  # y of x, or points (x, y)
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
    """A figure that remembers its height without legends and what its footer says."""

    base: float | None = None
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

    def __repr__(self) -> str:
        title = f" '{self.get_suptitle()}'" if self.get_suptitle() else ""
        panels, (width, height) = len(_panels(self)), self.get_size_inches()
        count = f"{panels} panel{'s' * (panels != 1)}"
        return f"<figure{title}: {count}, {width:.3g} x {height:.3g} in>"

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture, for a notebook, and how large it is on the screen."""
        made = image(self, ".png")
        width, height = (int(PIXELS * side) for side in self.get_size_inches())
        return made, {"width": width, "height": height}


@_styled
def figure(
    rows: int = 1,
    cols: int = 1,
    *,
    width: float | None = None,
    height: float | None = None,
    title: str = "",
    seeds: int | None = None,
) -> tuple[Sheet, list[Axes]]:
    """A figure and its panels, row by row; one printed column wide, or two for several panels.

    Unless its height is given it grows with its legends. `seeds` is needed only where what is
    drawn has no dimension `seed` that would tell.
    """
    width = width or (SINGLE if cols == 1 else DOUBLE)
    base = rows * min(max(0.74 * width / cols, 2.0), 2.8) + 0.25 * bool(title)
    fig = Sheet(figsize=(width, height or base), dpi=150, layout="constrained")
    FigureCanvasAgg(fig)
    fig.base = None if height else base
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
    """Fits labels, ticks, legends and titles to each other. `save` calls it; twice does no harm.

    Legends stay out of the layout, which would shift the axes; the titles' pads make room.
    """
    panels, heights = _panels(fig), {}
    for ax in panels:
        _fold(ax.xaxis.label, ax.bbox.width)
        _fold(ax.yaxis.label, 0.85 * ax.bbox.height)
        if legend := ax.get_legend():
            legend.set_in_layout(False)
    fig.draw_without_rendering()
    rows = [spec.rowspan.start if (spec := ax.get_subplotspec()) else -1 for ax in panels]
    for ax, row in zip(panels, rows, strict=True):
        boxes = [t.get_window_extent() for t in _tick_labels(ax.xaxis)]
        if any(a.x1 + 2 > b.x0 > a.x0 for a, b in itertools.pairwise(boxes)):
            ax.tick_params(axis="x", rotation=90)
        if legend := _legend(ax):
            legend.set_in_layout(False)
            height = legend.get_window_extent().height / fig.dpi
            heights[row] = max(height + 0.06, heights.get(row, 0))
    for ax, row in zip(panels, rows, strict=True):
        words, pad = (ax.get_title("left") or ax.get_title()).strip(), 72 * heights.get(row, 0)
        if words or pad:
            ax.set_title("")
            ax.set_title(words or " ", loc="left", pad=pad + 4, fontsize=8.5 if words else 1)
    if isinstance(fig, Sheet) and fig.base:
        fig.set_figheight(fig.base + sum(heights.values()))
    fig.draw_without_rendering()
    return fig


def save(fig: Figure, path: str | Path) -> Path:
    """Writes a .png (below 300 kB), .svg or .pdf; equal figures give equal bytes."""
    path = Path(path)
    files.write(path.resolve(), image(fig, path.suffix))
    return path


@_styled
def image(fig: Figure, suffix: str) -> bytes:
    """The file that `save` writes, by its ending."""
    meta = {".png": ["Software"], ".svg": ["Date"], ".pdf": ["CreationDate", "Creator", "Producer"]}
    if suffix not in meta:
        raise unknown("image format", suffix, meta)
    finish(fig)
    kind: dict[str, Any] = dict(format=suffix[1:], metadata=dict.fromkeys(meta[suffix]))
    made = io.BytesIO()
    for dpi in (220, 160, 110, 75, 50):
        made = io.BytesIO()
        fig.savefig(made, dpi=dpi, **kind)
        if suffix != ".png" or made.tell() < 300_000:
            break
    return made.getvalue()


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


def _value(coord: xr.DataArray) -> str:
    """The legend's name for a value of a coordinate: "$N = 20$", "head 3"; a case names itself."""
    value, symbol = coord.item(), coord.attrs.get("symbol")
    name = str(coord.name).replace("_", " ")
    if isinstance(value, bool):
        return f"{name}: {'yes' if value else 'no'}"
    if not isinstance(value, int | float):
        return str(value)
    return f"${symbol} = {_number(value)}$" if symbol else f"{name} ${_number(value)}$"


def _fold(text: Text, room: float) -> None:
    """Breaks a label that is longer than its axis into lines; formulas stay whole."""
    pattern, whole = r"\$[^$]*\$", text.get_text()
    for lines in () if "\n" in whole else range(2, 6):
        box = text.get_window_extent()
        if (box.height if text.get_rotation() else box.width) <= room:
            break
        words, formulas = re.sub(pattern, "\ue000" * 4, whole), iter(re.findall(pattern, whole))
        options: dict[str, Any] = dict(break_long_words=False, break_on_hyphens=False)
        folded = textwrap.fill(words, int(1.1 * len(words) / lines) + 1, **options)
        text.set_text(re.sub("\ue000" * 4, lambda _, f=formulas: next(f), folded))


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
    """Round numbers on a log axis, about three to seven whether it spans half a decade or ten."""

    def __init__(self, linear: float = 0.0):
        self.linear, self.most = linear, 7  # a symmetric log axis is linear up to `linear`

    def __call__(self) -> Any:
        axis: Any = self.axis
        side = axis.axes.bbox.width if axis.axis_name == "x" else axis.axes.bbox.height
        self.most = min(max(int(side / axis.axes.figure.dpi * 2.5), 3), 7)
        return self.tick_values(*axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        low, high = max(min(vmin, vmax), self.linear, 1e-300), max(vmin, vmax, 1e-299)
        powers = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for heads in ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7), range(1, 10)):
            ticks = np.outer(10.0**powers, heads).ravel()
            ticks = ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
            if len(ticks) >= 3:
                ticks = ticks[:: math.ceil(len(ticks) / self.most)]
                return np.concatenate([[0.0], ticks]) if self.linear else ticks
        return ticker.MaxNLocator(4).tick_values(low, high)


class _LogLabels(ticker.Formatter):
    """Plain numbers where all of them are short, else powers of ten."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return self.format_ticks([x])[0]

    def format_ticks(self, values: Any) -> list[str]:
        power = any(v != 0 and not 1e-3 <= abs(v) < 1e4 for v in values)
        return [f"${_number(v, True)}$" if power else _number(v) for v in values]


# --------------------------------------------------------------------------- axes and legends


def _panels(fig: Figure) -> list[Axes]:
    """The axes that are shown, colour bars included."""
    both = [b for a in fig.axes for b in (a, *a.child_axes)]
    return [ax for ax in both if isinstance(ax, Axes) and ax.get_visible() and ax.axison]


def _tick_labels(axis: Axis) -> list[Text]:
    low, high = sorted(axis.get_view_interval())
    ticks = [t for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
    return [n for t in ticks for n in (t.label1, t.label2) if n.get_visible() and n.get_text()]


def _is_map(ax: Axes) -> bool:
    return any(isinstance(a, QuadMesh | AxesImage) for a in ax.get_children())


def _log_scale(ax: Axes, which: str, linear: float = 0.0) -> None:
    axis: Axis = getattr(ax, f"{which}axis")
    options = dict(value="symlog", linthresh=linear) if linear else dict(value="log")
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
        names = [str(v) for v in coord.values]
        if which == "x":  # about as many letters as have room
            letters = max(int(ax.bbox.width / 10 / coord.size), 8)
            names = [n if "$" in n else textwrap.fill(n, letters) for n in names]
        axis.set_ticks(range(coord.size), names)
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
        if da[name].ndim != 1:
            raise InputError(f"'{name}' has {da[name].ndim} dimensions and cannot be an axis")
    found = [da[name] for name in names]
    if rest := set(da.dims) - {"seed", *(d for c in found for d in c.dims)}:
        rest = ", ".join(sorted(map(str, rest)))
        raise InputError(f"'{da.name}' also varies along {rest}: select or average first")
    return found


def _close(ax: Axes, data: Any = None, *marks: str) -> None:
    """Tells the footer the seeds of `data`, and what marks mean; renews the legend."""
    fig = ax.get_figure(root=True)
    if isinstance(fig, Sheet):
        told = isinstance(data, xr.DataArray) and ("seed" in data.dims or "seed" in data.coords)
        count = int(data["seed"].size) if told else None
        fig.note(count, *(marks if count != 1 else ()))
    _legend(ax)


def _legend(ax: Axes) -> Legend | None:
    """Lists what is labelled above the panel, measurements first, in as many columns as fit."""
    fig, spec, old = ax.get_figure(root=True), ax.get_subplotspec(), ax.get_legend()
    named: dict[str, Any] = {}
    for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
        named.setdefault(name, handle)
    ours = {n for n, h in named.items() if isinstance(h, Container) or h.get_gid() == "series"}
    names = sorted(named, key=lambda n: (n not in ours, n == "diverged"))
    if fig is None or len(names) < 2 - _is_map(ax) or (old and old.get_gid() != "ours"):
        return None
    columns, of = (spec.colspan, spec.get_gridspec().ncols) if spec else (range(1), 1)
    share = fig.bbox.width / of
    anchor = offset_copy(ax.transAxes, fig, y=4, units="points")
    for cols in range(len(names), 0, -1):
        by_row = [n for c in range(cols) for n in names[c::cols]]
        legend = ax.legend([named[n] for n in by_row], by_row, ncols=cols, loc="lower left")
        width = legend.get_window_extent().width
        if width <= share * len(columns) - 16 or cols == 1:
            left = min(0.0, (share * columns.stop - 8 - width - ax.bbox.x0) / ax.bbox.width)
            legend.set_bbox_to_anchor((left, 1), transform=anchor)
            legend.set_gid("ours")
            return legend
    return None


# --------------------------------------------------------------------------- lines and points


def _points(y: Data, x: Where) -> xr.Dataset:
    """Estimates as a Dataset of value, low and high."""
    if isinstance(y, xr.Dataset):
        return y
    if isinstance(x, str) or isinstance(y, xr.DataArray):
        raise InputError("a list of estimates needs the coordinate of their places, not its name")
    names, columns = ("value", "low", "high"), np.array(y, float).reshape(-1, 3).T
    values = {n: (x.dims, v) for n, v in zip(names, columns, strict=True)}
    return xr.Dataset(values, {x.dims[0]: x.variable})


@_styled
def curve(
    ax: Axes, y: Data, x: Where, *, hue: str = "", label: str = "", log: str = "", line: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The mean over seeds as a line with its 95% band, or as markers with bars (`line=False`).

    One series for each value of `hue`. Instead of a measurement, `y` may be estimates: a Dataset
    of value, low and high, or a list with the coordinate `x`. Where seeds diverged, a cross
    stands at the top edge and the mean leaves them out. Gives the places and the means.
    """
    if isinstance(y, xr.DataArray) and isinstance(x, str):
        coord, *group = _coords(y, *filter(None, (x, hue)))
        table = summary(y)
        _name(ax, "y", y)
        label = label or y.attrs.get("long_name") or str(y.name)
    else:
        points, group, label = _points(y, x), [], label or "measured"
        coord = points[x if isinstance(x, str) else x.dims[0]]
        table = points.rename(value="mean").assign(diverged=points.value * 0 > 0)
    xs = _place(ax, "x", coord, log)
    if "y" in log:
        _log_scale(ax, "y")
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
        look |= dict(label=_value(group[0][k]) if group else label, gid="series")
        look |= dict(markeredgecolor="white", markeredgewidth=0.4)
        if line:
            ax.plot(at, mean, markevery=(k * every // size, every), **look)
            ax.fill_between(at, low, high, color=color, alpha=0.2, linewidth=0)
        else:
            bars = None if np.isnan(low).all() else np.maximum([mean - low, high - mean], 0)
            ax.errorbar(at, mean, yerr=bars, linestyle="none", elinewidth=1, zorder=3, **look)
        if bad.any():
            edge: dict[str, Any] = dict(transform=ax.get_xaxis_transform(), clip_on=False)
            ax.plot(at[bad], np.ones(bad.sum()), "x", color=color, zorder=5, **edge)
            ax.plot([], [], "x", color=GREY, label="diverged")
    _close(ax, y, f"{'band' if line else 'bars'}: 95% interval")
    return xs, table["mean"].values


@_styled
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
        ax.plot(span, fit(span), color=GREY, linewidth=0.9, zorder=1.9, label=text)
    if isinstance(predicted, int | float):
        ok = mean > 0
        scale = np.exp(np.mean(np.log(mean[ok]) - predicted * np.log(xs[ok])))
        text, power = f"theory {base}^{{{predicted:.3g}}}$", float(predicted)
        theory_curve(ax, np.geomspace(*ends, 200), lambda x: scale * x**power, text)
    elif predicted is not None:
        theory_curve(ax, np.geomspace(*ends, 200) if callable(predicted) else xs, predicted)
    _close(ax)


@_styled
def theory_curve(ax: Axes, x: Any, y: Any, label: str = "theory") -> None:
    """A prediction, black and dashed: numbers `y` at `x`, or a function of `x`."""
    x = np.asarray(x, float)
    with np.errstate(all="ignore"):
        y = np.broadcast_to(np.asarray(y(x) if callable(y) else y, float), x.shape)
    known = [a.get_label() for a in ax.lines if a.get_gid() == "theory"]
    dash = DASHES[[*dict.fromkeys((*known, label))].index(label) % len(DASHES)]
    look: dict[str, Any] = dict(color="black", linewidth=1.2, linestyle=dash, zorder=2.5)
    if _is_map(ax):
        look["path_effects"] = [patheffects.withStroke(linewidth=2.6, foreground="white")]
    ax.plot(x, y, label=label, gid="theory", **look)
    _close(ax)


# --------------------------------------------------------------------------- maps


def _map(
    ax: Axes, z: xr.DataArray, x: str, y: str, log: str, theory: Theory | None, **look: Any
) -> QuadMesh:
    """The mean over seeds as cells, hatched where a seed diverged, and the theory's curves."""
    table, borders = summary(z), []
    for which, coord in zip("xy", _coords(z, x, y), strict=True):
        at = _place(ax, which, coord, log)
        table = table.isel({coord.dims[0]: np.argsort(at)}).transpose(coord.dims[0], ...)
        borders.append(edges(np.sort(at), getattr(ax, f"get_{which}scale")() == "log"))
    a, b = borders
    mean = np.ma.masked_invalid(table["mean"].values)
    if isinstance(look["norm"], LogNorm):  # zeros get the lowest colour
        positive = mean[mean > 0].compressed()
        mean = np.ma.maximum(mean, positive.min(initial=1.0 if positive.size == 0 else np.inf))
        look["norm"] = look["norm"] if positive.size else Normalize()
    mesh = ax.pcolormesh(a, b, mean, edgecolors="face", linewidth=0.2, **look)
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
    _close(ax, z, "map: mean")
    return mesh


def _colour_bar(ax: Axes, what: Any, da: xr.DataArray) -> None:
    """A bar inside the panel's frame, so that legends beside it do not push it away."""
    fig = ax.get_figure(root=True)
    assert fig is not None
    bar = fig.colorbar(what, cax=ax.inset_axes((1.03, 0, 0.04, 1)), label=label(da))
    bar.ax.spines[:].set_visible(False)
    bar.ax.tick_params(which="both", labelsize=8, width=0.5, length=2)
    if isinstance(what.norm, LogNorm):
        bar.ax.yaxis.set(major_locator=_LogTicks(), major_formatter=_LogLabels())
        bar.ax.yaxis.set_minor_formatter(ticker.NullFormatter())


@_styled
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


@_styled
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
    """Where the mean over seeds lies below and above `cut`.

    `boundary` holds estimates of the place of the transition along y at values of x: a Dataset
    of value, low and high, or the coordinate and a list.
    """
    norm = BoundaryNorm([-np.inf, cut, np.inf], 2)
    name = f"${s}" if (s := z.attrs.get("symbol")) else f"{label(z)} $"
    for colour, sign in ((BELOW, "<"), (ABOVE, r"\geq")):
        ax.fill_between([], [], color=colour, label=f"{name} {sign} {_number(cut)}$")
    _map(ax, z, x, y, log, theory, norm=norm, cmap=ListedColormap([BELOW, ABOVE]))
    if boundary is not None:
        low, high = ax.get_ylim()
        at = boundary if isinstance(boundary, xr.Dataset) else _points(boundary[1], boundary[0])
        at = at.assign(low=at.low.clip(min=low), high=at.high.clip(max=high))
        look: dict[str, Any] = dict(label="measured boundary", log=log.replace("y", ""))
        curve(ax, at, str(at.value.dims[0]), line=False, **look)


@_styled
def attention_map(
    ax: Axes, p: xr.DataArray, *, rows: Sequence[str] = (), cols: Sequence[str] = ()
) -> None:
    """Attention weights from 0 to 1, queries down and keys across; small maps show the numbers."""
    coords = _coords(p, *(str(d) for d in p.dims if d != "seed"))
    mean = summary(p)["mean"].values
    image = ax.imshow(mean, vmin=0, vmax=1, cmap=SEQUENTIAL, interpolation="nearest")
    for which, coord, names in zip("yx", coords, (rows, cols), strict=True):
        _place(ax, which, coord, "")
        if len(names):
            getattr(ax, f"set_{which}ticks")(range(coord.size), names)
    ax.spines[:].set_visible(False)
    for (i, j), v in np.ndenumerate(mean) if mean.size <= 64 else ():
        look: dict[str, Any] = dict(fontsize=6.5, color="white" if v < 0.6 else "black")
        ax.text(j, i, f"{v:.2f}", ha="center", va="center", **look)
    _colour_bar(ax, image, p)
    _close(ax, p, "map: mean")


# --------------------------------------------------------------------------- a critical look


def check_layout(fig: Figure) -> list[str]:
    """What a reader would object to: missing labels, legends or seeds, clipped or covered text."""
    finish(fig)
    found: list[str] = []
    drawn: list[Any] = [*fig.texts, *fig.legends]
    if not any(re.search(r"\d seed", t.get_text()) for t in fig.texts):
        found.append("the figure does not say its number of seeds")
    for k, ax in enumerate(_panels(fig), 1):
        if not ax.has_data():
            found.append(f"panel {k} is empty")
        for axis in (ax.xaxis, ax.yaxis):
            names = _tick_labels(axis) if axis.get_visible() else []
            if names and not axis.label.get_text():
                found.append(f"panel {k}: the {axis.axis_name} axis has no label")
            drawn += [*names, axis.label, axis.offsetText] if axis.get_visible() else []
        drawn += [t for t in ax.get_children() if isinstance(t, Text | Legend)]
        caps = [c for e in ax.containers if isinstance(e, ErrorbarContainer) for c in e.lines[1]]
        lines = [a for a in ax.lines if np.size(a.get_xdata()) and a not in caps]
        kinds = len({f"{a.get_color()} {a.get_linestyle()} {a.get_marker()}" for a in lines})
        kinds += sum(isinstance(c, BarContainer) for c in ax.containers)
        kinds += sum(isinstance(c, PathCollection) for c in ax.collections)
        told = ax.get_legend() or fig.legends or len(ax.texts) >= kinds
        if kinds > (0 if _is_map(ax) else 1) and not told:
            found.append(f"panel {k}: several things are drawn and no legend tells them apart")

    def name(t: Any) -> str:
        return "a legend" if isinstance(t, Legend) else f"'{t.get_text()}'"

    drawn = [t for t in drawn if t.get_visible() and name(t).strip("' ")]
    drawn = [t for t in drawn if not (t.get_clip_on() and t.get_clip_box())]  # cut by its axes
    boxes = [t.get_window_extent() for t in drawn]
    page = fig.bbox.padded(1)
    for t, box in zip(drawn, boxes, strict=True):
        if not (page.contains(*box.min) and page.contains(*box.max)):
            found.append(f"{name(t)} is cut off at the edge of the figure")
    for (t, a), (u, b) in itertools.combinations(zip(drawn, boxes, strict=True), 2):
        level = all(isinstance(v, Legend) or v.get_rotation() % 90 == 0 for v in (t, u))
        if level and Bbox.intersection(a.padded(-1.5), b.padded(-1.5)) is not None:
            found.append(f"{name(t)} overlaps {name(u)}")
    return found
