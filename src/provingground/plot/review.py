"""What a reader would object to in a figure."""

import itertools
import re
from typing import Any

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from provingground.plot.sheet import finish, is_map, panels_of
from provingground.plot.ticks import tick_labels


def check_layout(fig: Figure) -> list[str]:
    """What a reader would object to: missing labels, legends or seeds, clipped or covered text."""
    finish(fig)
    found: list[str] = []
    drawn: list[Any] = [*fig.texts, *fig.legends]
    if not any(re.search(r"\d seed", t.get_text()) for t in fig.texts):
        found.append("the figure does not say its number of seeds")
    for k, ax in enumerate(panels_of(fig), 1):
        if not ax.has_data():
            found.append(f"panel {k} is empty")
        for axis in (ax.xaxis, ax.yaxis):
            names = tick_labels(axis) if axis.get_visible() else []
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
        if kinds > (0 if is_map(ax) else 1) and not told:
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
