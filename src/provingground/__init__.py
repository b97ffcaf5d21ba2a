"""Proving Ground: the learning theory of transformers, runnable.

    import provingground as pg
    ds = pg.run("benign_overfitting/fig1a", snr=[2, 5, 10], samples=[4, 8, 16], seeds=4)

Names are loaded on first use, so that importing the package costs nothing.
"""

import importlib as _importlib
import typing as _typing

__version__ = "0.1.0"
__all__ = [
    "check",
    "conditions",
    "figure",
    "load",
    "new_study",
    "plot",
    "predict",
    "replay",
    "run",
    "show",
    "stats",
    "studies",
    "theory",
]

if _typing.TYPE_CHECKING:
    from provingground import plot, stats
    from provingground.api import (
        check,
        conditions,
        figure,
        load,
        predict,
        run,
        show,
        theory,
    )
    from provingground.notebook import new_study
    from provingground.registry import studies
    from provingground.replaying import replay

_HOME = {"studies": "registry", "new_study": "notebook", "replay": "replaying"}


def __getattr__(name: str) -> _typing.Any:
    if name not in __all__:
        raise AttributeError(f"module 'provingground' has no attribute '{name}'")
    if name in ("plot", "stats"):
        return _importlib.import_module(f"provingground.{name}")
    return getattr(_importlib.import_module(f"provingground.{_HOME.get(name, 'api')}"), name)


def __dir__() -> list[str]:
    return __all__
