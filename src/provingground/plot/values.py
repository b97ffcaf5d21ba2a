"""What is drawn, as numbers: means with their intervals, estimates, borders of cells."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from provingground.errors import InputError

Estimates = Sequence[tuple[float, float, float]]  # value, low, high
Data = xr.DataArray | xr.Dataset | Estimates  # a Dataset holds value, low and high
Where = str | xr.DataArray  # the name of an axis; for a list of estimates, their coordinate
Theory = Mapping[str, Callable[[np.ndarray], Any] | tuple[Any, Any]]  # y of x, or points (x, y)


def edges(centres: Any, log: bool = False) -> np.ndarray:
    """The borders of cells around `centres`: midpoints, geometric ones on a log axis."""
    c = np.log(centres) if log else np.asarray(centres, float)
    step = np.diff(c) / 2 if c.size > 1 else np.array([0.5])
    e = np.concatenate([[c[0] - step[0]], c[:-1] + step[: c.size - 1], [c[-1] + step[-1]]])
    return np.exp(e) if log else e


def summary(y: xr.DataArray) -> xr.Dataset:
    """Over seeds: `mean`, the 95% interval `low` to `high`, and whether any seed `diverged`.

    Student's t, or Wilson's interval where every value is 0 or 1. NaN seeds are left out.
    """
    y = y.astype(float) if "seed" in y.dims else y.astype(float).expand_dims("seed")
    ok = abs(y) < np.inf
    count = ok.sum("seed")
    n, several = count.where(count > 0), count.where(count > 1)
    mean = y.where(ok, 0.0).sum("seed") / n
    if y.sizes["seed"] > 1 and bool((~ok | (y == 0) | (y == 1)).all()):
        z2 = 1.959964**2
        middle = (mean + z2 / (2 * n)) / (1 + z2 / n)
        half = (z2 * (mean * (1 - mean) / n + z2 / (4 * n**2))) ** 0.5 / (1 + z2 / n)
    else:
        error = (((y - mean) ** 2).where(ok, 0.0).sum("seed") / (several - 1) / several) ** 0.5
        middle, half = mean, xr.apply_ufunc(stdtrit, several - 1, 0.975) * error
    columns = dict(mean=mean, low=middle - half, high=middle + half, diverged=~ok.all("seed"))
    return xr.Dataset(columns)


def as_points(y: Data, x: Where) -> xr.Dataset:
    """Estimates as a Dataset of value, low and high."""
    if isinstance(y, xr.Dataset):
        return y
    if isinstance(x, str) or isinstance(y, xr.DataArray):
        raise InputError("a list of estimates needs the coordinate of their places, not its name")
    names, columns = ("value", "low", "high"), np.array(y, float).reshape(-1, 3).T
    values = {n: (x.dims, v) for n, v in zip(names, columns, strict=True)}
    return xr.Dataset(values, {x.dims[0]: x.variable})


def refined(
    centres: np.ndarray,
    ends: np.ndarray,
    rows: np.ndarray,
    *,
    spaced: bool,
    log: bool,
    count: int = 240,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a map interpolated between their centres: the borders of thin rows between two
    `ends`, and their values.

    The borders are `spaced` evenly in the logarithm on a log axis. Interpolation is linear in the
    place or, whatever the axis, in its logarithm (`log`), as it is in `stats.threshold`.
    """
    low, high = map(float, ends)
    borders = (np.geomspace if spaced else np.linspace)(low, high, count + 1)
    a, b = borders[:-1], borders[1:]
    middle = np.clip((a * b) ** 0.5 if spaced else (a + b) / 2, centres[0], centres[-1])
    at, u = (np.log(v) if log else v for v in (middle, centres))
    values = np.stack([np.interp(at, u, column) for column in np.asarray(rows).T], axis=1)
    return borders, values
