"""Proving Ground: the learning theory of transformers, runnable.

    import provingground as pg
    ds = pg.run("benign_overfitting/fig1a", snr=[2, 5, 10], samples=[4, 8, 16], seeds=4)

Names are loaded on first use, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from provingground.api import check as check
    from provingground.api import figure as figure
    from provingground.api import load as load
    from provingground.api import replay as replay
    from provingground.api import run as run
    from provingground.registry import studies as studies

_HOME = {name: "provingground.api" for name in ("run", "check", "replay", "load", "figure")} | {
    "studies": "provingground.registry"
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'provingground' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)
