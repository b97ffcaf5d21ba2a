"""One look for every figure: labelled xarray data in, matplotlib out.

Our measurement is a solid colour (a line with its band over seeds, or markers with bars), the
theory's curve black and dashed, a fitted law a thin grey line. Labels come from the attributes
`long_name` and `symbol`; the footer says how many seeds were run.

    fig, (ax,) = plot.figure()
    plot.curve(ax, ds.test_loss, "samples", hue="snr")
    plot.save(fig, "fig1a.png")

Functions draw into an `Axes`; `log` names the logarithmic axes ("x", "xy"; "z" is the colour).
Legends stand above their panel, where they cover no data. No pyplot: figures may be drawn in
threads.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from provingground.plot.drawing import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Matplotlib takes half a second to import: it is, when the first figure is drawn."""
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module("provingground.plot.drawing"), name)
