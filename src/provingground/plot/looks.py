"""The look of figures: colours, sizes, and the two styles."""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, ParamSpec, TypeVar

import matplotlib
from matplotlib.artist import Artist

from provingground.errors import unknown

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


class Look(NamedTuple):
    """A style: matplotlib's settings, and what they do not cover."""

    settings: dict[Any, Any]
    single: float  # inches: the width of a figure of one panel, or of panels in one column
    double: float  # and of one with panels side by side
    ticks: float  # points
    foot: float
    line: float  # the width of lines, as a multiple
    fixed: bool  # whether figures have these widths even if they ask for others, and no title


LOOKS = {
    "screen": Look(STYLE, 3.5, 7.0, 8, 6.5, 1.0, False),
    "paper": Look(
        STYLE
        | {
            "font.size": 7.5,
            "axes.titlesize": 7.5,
            "axes.labelsize": 7.5,
            "axes.linewidth": 0.5,
            "legend.fontsize": 7,
            "legend.columnspacing": 1.0,
            "legend.handlelength": 1.6,
            "lines.linewidth": 1.0,
            "lines.markersize": 3.2,
        },
        3.3,
        6.8,
        7,
        7,
        0.75,
        True,
    ),
}
P = ParamSpec("P")
R = TypeVar("R")
_lock = threading.RLock()
CURRENT = ContextVar("look", default=LOOKS["screen"])


@contextmanager
def style(name: str) -> Iterator[None]:
    """Figures that are made in this context have a style: "screen" (the default) or "paper".

    The style for papers has the width of a column, small type, thin lines and no title. A figure
    keeps the style that it was made in.
    """
    if name not in LOOKS:
        raise unknown("style", name, LOOKS)
    before = CURRENT.set(LOOKS[name])
    try:
        yield
    finally:
        CURRENT.reset(before)


def look_of(drawn: Any) -> Look:
    """The style of a figure, or of the one that a panel stands in."""
    fig = drawn.get_figure(root=True) if isinstance(drawn, Artist) else None
    return getattr(fig, "look", None) or CURRENT.get()


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Runs a function in the style of the figure that it draws into.

    Matplotlib's settings are shared by threads, hence a lock.
    """

    @functools.wraps(draw)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with _lock, matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(look_of(args[0] if args else None).settings)
            return draw(*args, **kwargs)

    return call
