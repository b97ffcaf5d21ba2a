"""Ticks: a few round numbers, also on logarithmic axes, and no crowd."""

import itertools
import math
from typing import Any

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.text import Text

from provingground.plot.words import latex_number


class LogTicks(ticker.Locator):
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
        fewer = np.array([])
        for heads in ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7), range(1, 10)):
            ticks = np.outer(10.0**powers, heads).ravel()
            ticks = ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
            if len(ticks) > self.most and len(fewer) == 2:  # two that are round, not every other
                ticks = fewer
            if len(ticks) >= 3 or ticks is fewer:
                ticks = ticks[:: math.ceil(len(ticks) / self.most)]
                return np.concatenate([[0.0], ticks]) if self.linear else ticks
            fewer = ticks
        return ticker.MaxNLocator(4).tick_values(low, high)


class LogLabels(ticker.Formatter):
    """Plain numbers where all of them are short, else powers of ten."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return self.format_ticks([x])[0]

    def format_ticks(self, values: Any) -> list[str]:
        power = any(v != 0 and not 1e-3 <= abs(v) < 1e4 for v in values)
        return [f"${latex_number(v, True)}$" if power else latex_number(v) for v in values]


def log_scale(ax: Axes, which: str, linear: float = 0.0) -> None:
    options = dict(value="symlog", linthresh=linear) if linear else dict(value="log")
    getattr(ax, f"set_{which}scale")(**options)
    log_ticks(getattr(ax, f"{which}axis"), linear)


def log_ticks(axis: Axis, linear: float = 0.0) -> None:
    axis.set_major_locator(LogTicks(linear))
    axis.set_major_formatter(LogLabels())
    axis.set_minor_formatter(ticker.NullFormatter())


def tick_labels(axis: Axis) -> list[Text]:
    low, high = sorted(axis.get_view_interval())
    ticks = [t for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
    return [n for t in ticks for n in (t.label1, t.label2) if n.get_visible() and n.get_text()]


def crowded(axis: Axis, gap: float) -> bool:
    """Whether labels of an x axis stand closer than some pixels."""
    boxes = [t.get_window_extent() for t in tick_labels(axis)]
    return any(a.x1 + gap > b.x0 > a.x0 for a, b in itertools.pairwise(boxes))
