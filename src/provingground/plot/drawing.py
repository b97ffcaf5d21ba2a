"""The names that `plot` offers."""

from provingground.plot.lines import curve, law, theory_curve
from provingground.plot.looks import (
    ABOVE,
    BELOW,
    DASHES,
    DIVERGING,
    GREY,
    LOOKS,
    MARKERS,
    PALETTE,
    SEQUENTIAL,
    STYLE,
    Look,
    style,
)
from provingground.plot.maps import attention_map, heatmap, phase_diagram
from provingground.plot.review import check_layout
from provingground.plot.sheet import Sheet, figure, finish, image, save
from provingground.plot.values import edges, summary
from provingground.plot.words import label

__all__ = [
    "ABOVE",
    "BELOW",
    "DASHES",
    "DIVERGING",
    "GREY",
    "LOOKS",
    "MARKERS",
    "PALETTE",
    "SEQUENTIAL",
    "STYLE",
    "Look",
    "Sheet",
    "attention_map",
    "check_layout",
    "curve",
    "edges",
    "figure",
    "finish",
    "heatmap",
    "image",
    "label",
    "law",
    "phase_diagram",
    "save",
    "style",
    "summary",
    "theory_curve",
]
