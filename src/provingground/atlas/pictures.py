"""Figures of studies as pictures for pages."""

import io
import re

from matplotlib.figure import Figure
from PIL import Image


def few_colours(png: bytes) -> bytes:
    """An image in 256 colours, which look the same in a third of the bytes."""
    image, small = Image.open(io.BytesIO(png)).convert("RGB"), io.BytesIO()
    image.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(small, "PNG")
    return small.getvalue()


def panels(fig: Figure) -> str:
    """What is drawn: the labels of axes and colour bars, panel by panel, and of legends."""
    found, marks = [], []
    for ax in (ax for ax in fig.axes if ax.get_visible()):
        x, y, *colours = (
            re.sub(r",\s\$[^$]*\$$", "", " ".join(text.split()))  # the words without the letter
            for text in (ax.get_xlabel(), ax.get_ylabel(), *(b.get_ylabel() for b in ax.child_axes))
        )
        if any(colours):
            found.append(f"{' and '.join(filter(None, colours))} as colour over {x} and {y}")
        elif x and y:
            found.append(f"{y} against {x}")
        if legend := ax.get_legend():
            marks += [" ".join(text.get_text().split()) for text in legend.get_texts()]
    legend = f". Legend: {'; '.join(dict.fromkeys(marks))}" * bool(marks)
    return "; ".join(dict.fromkeys(found)) + legend
