"""Fitted laws: powers and lines."""

from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from provingground import reprs
from provingground.errors import InputError
from provingground.reprs import shown
from provingground.stats.estimate import Estimate
from provingground.stats.jackknife import (
    Floats,
    Window,
    estimate_from,
    inside_window,
    log_of,
    only,
    replicas_of,
    sorted_along,
)

Kind = Literal["power", "linear"]


@shown(reprs.law)
class Law(NamedTuple):
    """A fitted curve: constant * x**slope (kind "power") or constant + slope * x ("linear").

    `window` is the part of the axis it was fitted on, ends included. Call it for its values.
    """

    slope: Estimate
    constant: Estimate
    window: Window
    kind: Kind = "power"

    def __call__(self, x: Any) -> Any:
        slope, constant = self.slope.value, self.constant.value
        return constant * x**slope if self.kind == "power" else constant + slope * x


def power_law(y: xr.DataArray, over: str, window: Window | None = None) -> Law:
    r"""$\bar y = C x^s$: least squares of $\log \bar y$ on $\log x$, with $\bar y$ the seed-mean.

    The interval of $C$ is that of $\log C$. A mean that is not positive gives NaN.

    >>> y = xr.DataArray([[3.0, 12, 48]] * 3, [("seed", [0, 1, 2]), ("dim", [1, 2, 4])])
    >>> print(power_law(y, "dim").slope)
    2 [2, 2]
    """
    return _law(y, over, window, "power")


def linear_law(y: xr.DataArray, over: str, window: Window | None = None) -> Law:
    r"""$\bar y = C + s x$: least squares of the seed-mean $\bar y$ on $x$ inside the window."""
    return _law(y, over, window, "linear")


def _law(y: xr.DataArray, over: str, window: Window | None, kind: Kind) -> Law:
    only(y, over)
    y, x = sorted_along(y, over)
    inside, window = inside_window(x, window)
    if len(np.unique(x[inside])) < 2:
        raise InputError(f"a law needs two points of '{over}' in {window}; it has {x.tolist()}.")
    if kind == "power" and x[inside][0] <= 0:
        raise InputError(f"a power law needs '{over}' above 0: give a window that leaves 0 out.")
    return fit(x[inside], replicas_of(y, over)[:, inside], window, kind)


def fit(x: Floats, replicas: Floats, window: Window, kind: Kind, given: float | None = None) -> Law:
    """Least squares through every row of the replicas at once, maybe with a given slope."""
    power = kind == "power"
    u, v = (log_of(x), log_of(replicas)) if power else (x, replicas)
    centred = u - u.mean()
    slope = v @ centred / (centred @ centred) if given is None else np.full(len(v), given)
    constant = estimate_from(v.mean(axis=1) - slope * u.mean(), log=power)
    return Law(estimate_from(slope), constant, window, kind)
