"""Words and numbers on figures."""

import re
import textwrap
from typing import Any

import xarray as xr
from matplotlib.text import Text


def label(da: xr.DataArray) -> str:
    """The words and the paper's letter of a coordinate or variable: "training samples, $N$"."""
    words = da.attrs.get("long_name") or str(da.name or "").replace("_", " ")
    symbol = da.attrs.get("symbol")
    return ", ".join(filter(None, (words, f"${symbol}$" if symbol else "")))


def latex_number(value: float, power: bool = False) -> str:
    """A number in LaTeX; as a power of ten where it is very large or small, or if asked."""
    if value == 0 or (not power and 1e-3 <= abs(value) < 1e5):
        return f"{value:.6g}"
    head, tail = f"{value:.2e}".split("e")
    front = "" if float(head) == 1 else rf"{float(head):g}\times "
    return f"{front}10^{{{int(tail)}}}"


def legend_name(coord: xr.DataArray) -> str:
    """The legend's name for a value of a coordinate: "$N = 20$", "head 3"; a case names itself."""
    value, symbol = coord.item(), coord.attrs.get("symbol")
    name = str(coord.name).replace("_", " ")
    if isinstance(value, bool):
        return f"{name}: {'yes' if value else 'no'}"
    if not isinstance(value, int | float):
        return str(value)
    return f"${symbol} = {latex_number(value)}$" if symbol else f"{name} ${latex_number(value)}$"


def fold(text: Text, room: float) -> None:
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
