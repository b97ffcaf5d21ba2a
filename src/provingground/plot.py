"""One look for every figure: labelled xarray data in, matplotlib out.

Our measurement is a solid colour (a line with its band over seeds, or markers with bars), the
theory's curve black and dashed, a fitted law a thin grey line. Labels come from the attributes
`long_name` and `symbol`; the footer says how many seeds were run.

    fig, (ax,) = plot.figure()
    plot.curve(ax, ds.test_loss, "samples", hue="snr")
    plot.save(fig, "fig1a.png")

Functions draw into an `Axes`. `log` names the logarithmic axes ("", "x", "xy"); by default the
axes of coordinates are judged by their spacing. No pyplot and no global state: figures may be
drawn in threads.
"""

import functools
import io
import math
import re
import textwrap
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

import matplotlib
import numpy as np
import xarray as xr
from matplotlib import patheffects, ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PatchCollection, QuadMesh
from matplotlib.colors import BoundaryNorm, CenteredNorm, ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from scipy.special import stdtrit

from provingground.errors import InputError, unknown

SINGLE, DOUBLE = 3.5, 7.0  # widths of one and two printed columns, inches
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe-Ito
MARKERS = "os^DvP"
DASHES = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 1.5, 1, 1.5)))
SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"
BELOW, ABOVE = "#CFE3F2", "#EBA55F"
GREY = "0.35"
STYLE = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-3, 5),
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 1.9,
    "legend.columnspacing": 1.2,
    "legend.labelspacing": 0.35,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.2,
    "hatch.linewidth": 0.7,
    "figure.titlesize": 9.5,
    "figure.constrained_layout.h_pad": 0.05,
    "svg.hashsalt": "provingground",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}
Curve = Callable[[np.ndarray], Any] | tuple[Any, Any]  # y of x, or the points (x, y)
Interval = tuple[float, float, float]  # value, low, high: an Estimate
P, R = ParamSpec("P"), TypeVar("R")
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
    """Folds long labels and moves legends off the data: above a map, or lines without a gap.

    Panels with equal legends share one. `save` calls this; repeating it changes nothing.
    """
    fig.draw_without_rendering()
    for ax in fig.axes:
        box = ax.get_window_extent()
        _fold(ax.xaxis.label, box.width)
        _fold(ax.yaxis.label, box.height)
    keyed = [ax for ax in fig.axes if ax.get_legend() is not None]
    entries = [_entries(ax) for ax in keyed]
    if len(keyed) > 1 and len({tuple(e) for e in entries}) == 1:
        for ax in keyed:
            ax.get_legend().remove()
        spot = dict(loc="outside upper left")
        _widest(functools.partial(fig.legend, **spot), entries[0], fig.bbox.width)
        keyed = []
    for ax, entry in zip(keyed, entries, strict=False):
        legend = ax.get_legend()
        if legend.get_gid() == "above" or not (_is_map(ax) or _covers(legend, ax)):
            continue
        spec = ax.get_subplotspec()
        last = spec is None or spec.colspan.stop == spec.get_gridspec().ncols
        right = fig.bbox.width * (1 if last else spec.colspan.stop / spec.get_gridspec().ncols)
        spot = dict(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.3)
        legend = _widest(functools.partial(ax.legend, **spot), entry, right - ax.bbox.x0)
        legend.set_gid("above")
        for loc in ("left", "center", "right"):
            if words := ax.get_title(loc):
                height = legend.get_window_extent().height * 72 / fig.dpi
                ax.set_title(words, loc=loc, pad=height + 5)
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
        metadata = dict.fromkeys(meta[path.suffix])
        fig.savefig(image, format=path.suffix[1:], dpi=dpi, metadata=metadata)
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


def _short(da: xr.DataArray) -> str:
    symbol = da.attrs.get("symbol")
    return f"${symbol}$" if symbol else label(da)


def _number(value: float, power: bool = False) -> str:
    """A number in LaTeX; as a power of ten where it is very large or small, or if asked."""
    if value == 0 or (not power and 1e-3 <= abs(value) < 1e5):
        return f"{value:.6g}"
    head, tail = f"{value:.2e}".split("e")
    front = "" if float(head) == 1 else rf"{float(head):g}\times "
    return f"{front}10^{{{int(tail)}}}"


def _value(coord: xr.DataArray) -> str:
    """One value of a coordinate in words: "$N = 20$"; a case is its own name."""
    value = coord.item()
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    symbol = coord.attrs.get("symbol")
    return f"${symbol} = {_number(value)}$" if symbol else f"{label(coord)} ${_number(value)}$"


def _fold(text: Text, room: float) -> None:
    """Breaks a label that is longer than its axis into lines; formulas stay whole."""
    box = text.get_window_extent()
    lines = math.ceil(max(box.width, box.height) / room)
    if lines > 1 and "\n" not in text.get_text():
        words = re.sub(r"\$[^$]*\$", lambda m: m[0].replace(" ", "{}"), text.get_text())
        width = int(1.1 * len(words) / lines) + 1
        text.set_text(textwrap.fill(words, width, break_long_words=False, break_on_hyphens=False))


def edges(centres: np.ndarray, log: bool = False) -> np.ndarray:
    """The borders of cells around `centres`: midpoints, geometric ones on a log axis."""
    c = np.log(centres) if log else np.asarray(centres, float)
    if c.size == 1:
        c = c + np.array([-0.5, 0.5])
        return np.exp(c) if log else c
    inner = (c[1:] + c[:-1]) / 2
    e = np.concatenate([[2 * c[0] - inner[0]], inner, [2 * c[-1] - inner[-1]]])
    return np.exp(e) if log else e


def summary(y: xr.DataArray) -> xr.Dataset:
    """Over seeds: `mean`, the 95% interval `low` to `high`, and whether any seed `diverged`.

    Student's t, or Wilson's interval where every value is 0 or 1. NaN seeds are left out.
    """
    y = y.astype(float) if "seed" in y.dims else y.astype(float).expand_dims("seed")
    ok = y.notnull() & (abs(y) < np.inf)
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
    return xr.Dataset(
        dict(mean=mean, low=middle - half, high=middle + half, diverged=~ok.all("seed"))
    )


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


def _spaced_log(values: np.ndarray) -> bool:
    """Whether numbers are spaced more evenly by ratio than by difference."""
    v = np.unique(values[values > 0])
    if values.min() < 0 or len(v) < 3 or v[-1] < 4 * v[0]:
        return False
    ratio, step = np.diff(np.log(v)), np.diff(v)
    return float(ratio.std() / ratio.mean()) < float(step.std() / step.mean())


def _log_scale(ax: Axes, which: str, linear: float = 0.0) -> None:
    axis: Axis = getattr(ax, f"{which}axis")
    options = dict(value="symlog", linthresh=linear, linscale=0.5) if linear else dict(value="log")
    getattr(ax, f"set_{which}scale")(**options)
    axis.set_major_locator(_LogTicks(linear))
    axis.set_major_formatter(_LogLabels())
    axis.set_minor_formatter(ticker.NullFormatter())


def _name(ax: Axes, **names: str) -> None:
    """Labels axes, unless they have a label."""
    ax.set(**{f"{w}label": text for w, text in names.items() if not getattr(ax, f"get_{w}label")()})


def _place(ax: Axes, which: str, coord: xr.DataArray, log: str | None) -> np.ndarray:
    """Labels and scales an axis for a coordinate; gives the positions of its values."""
    _name(ax, **{which: label(coord)})
    axis: Axis = getattr(ax, f"{which}axis")
    if not np.issubdtype(coord.dtype, np.number):
        axis.set_ticks(range(coord.size), [_value(c) for c in coord])
        return np.arange(coord.size, dtype=float)
    v = coord.values.astype(float)
    if _spaced_log(v) if log is None else which in log:
        _log_scale(ax, which, 0.0 if (v > 0).all() else float(v[v > 0].min()))
    elif np.issubdtype(coord.dtype, np.integer):
        axis.set_major_locator(ticker.MaxNLocator("auto", integer=True))
    return v


def _axes_of(da: xr.DataArray, *names: str | None) -> list[xr.DataArray]:
    """The named coordinates, one dimension each; nothing but seeds may be left over."""
    for name in filter(None, names):
        if name not in da.coords and name not in da.dims:
            raise unknown("axis", name, map(str, {**dict.fromkeys(da.dims), **da.coords}))
    found = [da[name] for name in filter(None, names)]
    if rest := sorted({str(d) for d in da.dims} - {"seed", *(str(d) for c in found for d in c.dims)}):
        raise InputError(f"'{da.name}' also varies along {', '.join(rest)}: select or average first")
    return found


def _note(ax: Axes, data: Any, mark: str) -> None:
    """Tells the footer the number of seeds of `data`, and what a mark means if they are several."""
    fig = ax.get_figure(root=True)
    if isinstance(fig, Sheet):
        told = isinstance(data, xr.DataArray) and "seed" in data.coords | data.sizes
        count = int(data["seed"].size) if told else None
        fig.note(count, *([mark] if count != 1 else []))


def _is_map(ax: Axes) -> bool:
    return any(isinstance(a, QuadMesh | AxesImage) for a in ax.get_children())


def _entries(ax: Axes) -> dict[str, Any]:
    """What a legend would list, each name once."""
    entries: dict[str, Any] = {}
    for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
        entries.setdefault(name, handle)
    return entries


def _legend(ax: Axes) -> None:
    entries = _entries(ax)
    if len(entries) > 1 or (entries and _is_map(ax)):
        ax.legend([*entries.values()], [*entries], loc="best")


def _widest(make: Callable[..., Legend], entries: dict[str, Any], room: float) -> Legend:
    """The legend with the most columns that fits."""
    columns = len(entries)
    while True:
        legend = make([*entries.values()], [*entries], ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= room:
            return legend
        legend.remove()
        columns -= 1


def _covers(legend: Legend, ax: Axes) -> bool:
    """Whether a legend lies on a line, a marker, an error bar or a band."""
    box = legend.get_window_extent()
    for line in ax.lines:
        path = line.get_transform().transform_path(line.get_path())
        if line.get_linestyle() != "None" and path.intersects_bbox(box, filled=False):
            return True
        if line.get_marker() != "None" and box.count_contains(path.vertices):
            return True
    return any(
        c.get_transform().transform_path(p).intersects_bbox(box, filled=False)
        for c in ax.collections
        if not isinstance(c, QuadMesh | PatchCollection)
        for p in c.get_paths()
    )


# --------------------------------------------------------------------------- lines and points


def _measured(
    ax: Axes,
    y: xr.DataArray | Sequence[Interval],
    x: str | xr.DataArray,
    hue: str | None,
    name: str | None,
    log: str | None,
    line: bool,
) -> tuple[xr.DataArray, xr.Dataset]:
    """Draws a measurement over `x`, one series per value of `hue`."""
    if isinstance(y, xr.DataArray):
        coord = _axes_of(y, x if isinstance(x, str) else None, hue)[0] if isinstance(x, str) else x
        table, group = summary(y), None if hue is None else y[hue]
        _name(ax, y=label(y))
        name = name or y.attrs.get("long_name") or str(y.name)
    elif isinstance(x, xr.DataArray):
        coord, group = x, None
        columns = np.array(y, float).T
        table = xr.Dataset({k: (x.dims, v) for k, v in zip(("mean", "low", "high"), columns, strict=True)})
        table["diverged"] = xr.zeros_like(table["mean"], dtype=bool)
    else:
        raise InputError("estimates need their coordinate as `x`, not a name")
    xs = _place(ax, "x", coord, log)
    if log and "y" in log:
        _log_scale(ax, "y")
        floor = table["mean"].where(table["mean"] > 0).min() / 2
        table["low"] = table["low"].where(~(table["low"] < floor), 0.0)  # drawn to the edge
    order, size = np.argsort(xs, kind="stable"), 1 if group is None else group.size
    start = sum(a.get_gid() == "series" for a in ax.lines)
    ramp = matplotlib.colormaps[SEQUENTIAL](np.linspace(0, 0.85, size))
    for k in range(size):
        part = table if group is None else table.isel({group.dims[0]: k})
        text = name if group is None else _value(group[k])
        color = PALETTE[start + k] if start + size <= len(PALETTE) else ramp[k]
        look: dict[str, Any] = dict(color=color, marker=MARKERS[(start + k) % len(MARKERS)])
        look |= dict(label=text, gid="series", markeredgecolor="white", markeredgewidth=0.4)
        at = xs[order] + (0.12 * (k - (size - 1) / 2) if coord.dtype.kind in "UOb" else 0)
        mean, low, high = (part[v].values[order] for v in ("mean", "low", "high"))
        if line:
            every = math.ceil(len(at) / 8)
            ax.plot(at, mean, markevery=(k * every // size, every), **look)
            ax.fill_between(at, low, high, color=color, alpha=0.2, linewidth=0)
        else:
            bars = None if np.isnan(low).all() else [mean - low, high - mean]
            ax.errorbar(at, mean, yerr=bars, linestyle="none", elinewidth=1, **look)
        if (bad := part["diverged"].values[order]).any():
            edge = dict(transform=ax.get_xaxis_transform(), clip_on=False, zorder=5)
            ax.plot(at[bad], np.ones(bad.sum()), "x", color=color, **edge)
            ax.plot([], [], "x", color=GREY, label="diverged")
    _note(ax, y, f"{'band' if line else 'bars'}: 95% interval")
    _legend(ax)
    return coord, table


@_styled
def curve(
    ax: Axes,
    y: xr.DataArray,
    x: str,
    *,
    hue: str | None = None,
    label: str | None = None,
    log: str | None = None,
) -> None:
    """The mean over seeds as a line with its 95% band, one line per value of `hue`.

    Points where seeds diverged carry a cross at the top edge; the mean leaves these seeds out.
    """
    _measured(ax, y, x, hue, label, log, line=True)


@_styled
def points(
    ax: Axes,
    y: xr.DataArray | Sequence[Interval],
    x: str | xr.DataArray,
    *,
    hue: str | None = None,
    label: str | None = None,
    log: str | None = None,
) -> None:
    """Markers with 95% bars: of a measurement over its axis `x`, or of estimates at `x`."""
    _measured(ax, y, x, hue, label, log, line=False)


class Law(Protocol):
    """A fitted power law: its exponent as an estimate, and its values."""

    @property
    def slope(self) -> Any: ...
    def __call__(self, x: Any, /) -> Any: ...


@_styled
def law(
    ax: Axes,
    y: xr.DataArray | Sequence[Interval],
    x: str | xr.DataArray,
    *,
    fit: Law | None = None,
    predicted: float | Callable[[np.ndarray], Any] | None = None,
    label: str | None = None,
) -> None:
    """Points on log-log axes, the fitted law, and the predicted one.

    A predicted number is an exponent: its line is drawn through the middle of the points.
    """
    coord, table = _measured(ax, y, x, None, label, "xy", line=False)
    xs, mean = coord.values.astype(float), table["mean"].values
    span = np.geomspace(xs.min(), xs.max(), 200)
    letter = coord.attrs.get("symbol") or "x"
    if fit is not None:
        e = fit.slope
        text = rf"fit $\propto {{{letter}}}^{{{e.value:.2f}}}$ $[{e.low:.2f}, {e.high:.2f}]$"
        ax.plot(span, fit(span), color=GREY, linewidth=0.9, zorder=1.9, label=text)
    if isinstance(predicted, int | float):
        ok = mean > 0
        middle = np.exp(np.mean(np.log(mean[ok]) - predicted * np.log(xs[ok])))
        text = rf"theory $\propto {{{letter}}}^{{{predicted:.3g}}}$"
        theory_curve(ax, span, middle * span**predicted, text)
    elif predicted is not None:
        theory_curve(ax, span, predicted)
    _legend(ax)


@_styled
def theory_curve(ax: Axes, x: Any, y: Any, label: str = "theory") -> None:
    """A prediction, black and dashed: `y` at `x`, as numbers or as a function of `x`."""
    x = np.asarray(x, float)
    with np.errstate(all="ignore"):
        y = np.broadcast_to(np.asarray(y(x) if callable(y) else y, float), x.shape)
    known = dict.fromkeys(a.get_label() for a in ax.lines if a.get_gid() == "theory")
    dash = DASHES[[*dict.fromkeys((*known, label))].index(label) % len(DASHES)]
    halo = [patheffects.withStroke(linewidth=2.6, foreground="white")]
    look: dict[str, Any] = dict(color="black", linewidth=1.2, linestyle=dash, path_effects=halo)
    ax.plot(x, y, label=label, gid="theory", zorder=2.5, **look)
    _legend(ax)


@_styled
def level(ax: Axes, value: float, label: str, *, axis: str = "y") -> None:
    """A reference value as a thin dotted line across the panel: a cut-off, a floor."""
    draw = ax.axhline if axis == "y" else ax.axvline
    draw(value, color=GREY, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1.8, label=label)
    _legend(ax)


# --------------------------------------------------------------------------- maps


def _map(
    ax: Axes, z: xr.DataArray, x: str, y: str, log: str | None, **look: Any
) -> tuple[QuadMesh, np.ndarray, xr.DataArray]:
    """The mean over seeds as cells; cells in which a seed diverged are hatched."""
    cx, cy = _axes_of(z, x, y)
    table = summary(z).transpose(cy.dims[0], cx.dims[0])
    borders = []
    for which, coord in (("x", cx), ("y", cy)):
        at = _place(ax, which, coord, "" if log is None and (coord.values <= 0).any() else log) if coord.dtype.kind in "iuf" else _place(ax, which, coord, "")
        table = table.isel({coord.dims[0]: np.argsort(at, kind="stable")})
        borders.append(edges(np.sort(at), getattr(ax, f"get_{which}scale")() == "log"))
    mesh = ax.pcolormesh(*borders, np.ma.masked_invalid(table["mean"].values), linewidth=0.2, edgecolors="face", **look)
    return mesh, borders, table
