"""Figures: made, fitted together, written to files."""

import io
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.transforms import offset_copy

from provingground import files
from provingground.errors import unknown
from provingground.plot.looks import CURRENT, GREY, LOOKS, Look, styled
from provingground.plot.ticks import crowded, log_ticks
from provingground.plot.words import fold

PIXELS = 125  # of an inch in a notebook


class Sheet(Figure):
    """A figure that remembers its height without legends and what its footer says."""

    look: Look = LOOKS["screen"]
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
        self.supxlabel(text, x=0.99, ha="right", fontsize=self.look.foot, color=GREY)

    def __repr__(self) -> str:
        title = f" '{self.get_suptitle()}'" if self.get_suptitle() else ""
        panels, (width, height) = len(panels_of(self)), self.get_size_inches()
        count = f"{panels} panel{'s' * (panels != 1)}"
        return f"<figure{title}: {count}, {width:.3g} x {height:.3g} in>"

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture, for a notebook, and how large it is on the screen."""
        made = image(self, ".png")
        width, height = (int(PIXELS * side) for side in self.get_size_inches())
        return made, {"width": width, "height": height}


def panels_of(fig: Figure) -> list[Axes]:
    """The axes that are shown, colour bars included."""
    both = [b for a in fig.axes for b in (a, *a.child_axes)]
    return [ax for ax in both if isinstance(ax, Axes) and ax.get_visible() and ax.axison]


def is_map(ax: Axes) -> bool:
    return any(isinstance(a, QuadMesh | AxesImage) for a in ax.get_children())


def add_legend(ax: Axes) -> Legend | None:
    """Lists what is labelled above the panel, measurements first, in as many columns as fit."""
    fig, spec, old = ax.get_figure(root=True), ax.get_subplotspec(), ax.get_legend()
    named: dict[str, Any] = {}
    for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
        named.setdefault(name, handle)
    ours = {n for n, h in named.items() if isinstance(h, Container) or h.get_gid() == "series"}
    names = sorted(named, key=lambda n: (n not in ours, n == "diverged"))
    if fig is None or len(names) < 2 - is_map(ax) or (old and old.get_gid() != "ours"):
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


@styled
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
    look = CURRENT.get()
    usual = look.single if cols == 1 else look.double
    if look.fixed:
        height, width, title = height and height * usual / (width or usual), usual, ""
    width = width or usual
    base = rows * min(max(0.74 * width / cols, 2.0), 2.8) + 0.25 * bool(title)
    fig = Sheet(figsize=(width, height or base), dpi=150, layout="constrained")
    fig.look = look
    FigureCanvasAgg(fig)
    fig.base = None if height else base
    axes = [fig.add_subplot(rows, cols, k + 1) for k in range(rows * cols)]
    for ax in axes:  # ticks are made at drawing, when STYLE may not be in force
        ax.tick_params(which="major", labelsize=look.ticks, length=3, width=0.7 * look.line)
        ax.tick_params(which="minor", length=1.8, width=0.5 * look.line)
    if title:
        fig.suptitle(title, x=0.01, ha="left")
    fig.note(seeds)
    return fig, axes


@styled
def finish(fig: Figure) -> Figure:
    """Fits labels, ticks, legends and titles to each other. `save` calls it; twice does no harm.

    Legends stay out of the layout, which would shift the axes; the titles' pads make room.
    """
    panels, heights = panels_of(fig), {}
    for ax in panels:
        for which in "xy":
            axis: Axis = getattr(ax, f"{which}axis")
            if axis.get_scale() == "log" and isinstance(
                axis.get_major_locator(), ticker.LogLocator
            ):
                log_ticks(axis)
        fold(ax.xaxis.label, ax.bbox.width)
        fold(ax.yaxis.label, 0.85 * ax.bbox.height)
        if legend := ax.get_legend():
            legend.set_in_layout(False)
    fig.draw_without_rendering()
    rows = [spec.rowspan.start if (spec := ax.get_subplotspec()) else -1 for ax in panels]
    for ax, row in zip(panels, rows, strict=True):
        locator: Any = ax.xaxis.get_major_locator()
        for bins in (5, 4, 3) if isinstance(locator, ticker.MaxNLocator) else ():
            if crowded(ax.xaxis, 6):
                locator.set_params(nbins=bins)
        if crowded(ax.xaxis, 2):
            ax.tick_params(axis="x", rotation=90)
        if legend := add_legend(ax):
            legend.set_in_layout(False)
            height = legend.get_window_extent().height / fig.dpi
            heights[row] = max(height + 0.06, heights.get(row, 0))
    for ax, row in zip(panels, rows, strict=True):
        words, pad = (ax.get_title("left") or ax.get_title()).strip(), 72 * heights.get(row, 0)
        if words or pad:
            ax.set_title("")
            size = matplotlib.rcParams["axes.titlesize"] if words else 1
            ax.set_title(words or " ", loc="left", pad=pad + 4, fontsize=size)
    if isinstance(fig, Sheet) and fig.base:
        fig.set_figheight(fig.base + sum(heights.values()))
    fig.draw_without_rendering()
    return fig


def save(fig: Figure, path: str | Path) -> Path:
    """Writes a .png (below 300 kB), .svg or .pdf; equal figures give equal bytes."""
    path = Path(path)
    files.write(path.resolve(), image(fig, path.suffix))
    return path


@styled
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
