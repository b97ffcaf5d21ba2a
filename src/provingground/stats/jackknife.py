"""Replicas of the jackknife: what an estimate is without each of its seeds, and its interval."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import stdtrit

from provingground.errors import InputError, unknown
from provingground.stats.estimate import Estimate

LEVEL = 0.95
Floats = NDArray[np.float64]
Window = tuple[float, float]
_level: ContextVar[float] = ContextVar("level", default=LEVEL)


def level() -> float:
    """The level of the intervals that are being computed."""
    return _level.get()


def joint(number: int) -> float:
    """The level at which each of some intervals holds if all of them do at the present one
    (Bonferroni)."""
    return 1 - (1 - level()) / number


@contextmanager
def jointly(number: int) -> Iterator[None]:
    """Inside it, each interval is one of some that hold all together."""
    token = _level.set(joint(number))
    try:
        yield
    finally:
        _level.reset(token)


def jackknife(
    statistic: Callable[..., Any], *arrays: xr.DataArray, at: float | None = None
) -> Estimate:
    r"""Any smooth function of measurements, with its delete-one jackknife-t interval.

    With $\hat\theta$ the statistic of all $n$ seeds and $\hat\theta_{-i}$ that without seed $i$,
    the pseudo-values $n\hat\theta - (n-1)\hat\theta_{-i}$ have a standard deviation $s$, and the
    interval is $\hat\theta \pm t_{n-1}\, s/\sqrt n$. `statistic` maps the arrays, each with the
    same subset of the seeds, to a number; where one of these is NaN, so are both bounds (but
    `DataArray.mean` leaves NaN out unless told `skipna=False`).

    >>> y = xr.DataArray([1.0, 2.0, 3.0], dims="seed")
    >>> print(jackknife(lambda y: y.mean() ** 2, y))
    4 [-5.962, 13.96]
    """
    arrays = aligned(*arrays, on=["seed"])
    everyone = np.arange(min(len(by_seed(a)) for a in arrays))
    kept = [everyone, *(np.delete(everyone, i) for i in everyone)]
    replicas = [float(statistic(*(a.isel(seed=keep) for a in arrays))) for keep in kept]
    return estimate_from(np.array(replicas), at)


def replicas_of(y: xr.DataArray, *dims: str) -> Floats:
    """The mean over seeds and other dims, for each cell of `dims`.

    Row 0 is the mean over all seeds, row i the mean without the i-th.
    """
    return means_without(by_seed(y, *dims))


def means_without(cells: Floats) -> Floats:
    """Means over a first axis of seeds: row 0 over all of them, row i without the i-th."""
    keep = np.ones((1, len(cells)))
    if len(cells) > 1:
        keep = np.vstack([keep, 1 - np.eye(len(cells))])
    return (np.tensordot(keep, cells, 1).T / keep.sum(axis=1)).T


def half_width(replicas: Floats, at: float | None = None) -> Floats:
    """Half the jackknife-t interval; row 0 of the replicas cancels in the pseudo-values."""
    seeds = len(replicas) - 1
    with np.errstate(invalid="ignore"):
        error = (seeds - 1) * replicas[1:].std(axis=0, ddof=1) / math.sqrt(seeds)
    return stdtrit(seeds - 1, (1 + (at or level())) / 2) * error


def interval(replicas: Floats, at: float | None = None, log: bool = False) -> Floats:
    """Value, low and high from the replicas, or from their logarithms."""
    value, half = replicas[0], half_width(replicas, at)
    ends = np.stack([value, value - half, value + half])
    with np.errstate(over="ignore"):
        return np.exp(ends) if log else ends


def estimate_from(replicas: Floats, at: float | None = None, log: bool = False) -> Estimate:
    return Estimate(*map(float, interval(replicas, at, log)))


def ranks_of(values: Floats) -> Floats:
    """Ranks along the last axis, ties sharing theirs."""
    from scipy.stats import rankdata  # takes half a second to import

    return rankdata(values, axis=-1)


def log_of(values: Floats) -> Floats:
    """The logarithm; NaN for what is not positive."""
    return np.log(np.where(values > 0, values, np.nan))


def inside_window(x: Floats, window: Window | None) -> tuple[NDArray[np.bool], Window]:
    """Which points lie in the window (ends included, up to rounding), and the window."""
    low, high = (float(x[0]), float(x[-1])) if window is None else window
    slack = 1e-9 * np.abs(x)
    return (low - slack <= x) & (x <= high + slack), (low, high)


def need(y: xr.DataArray, *dims: str) -> None:
    for dim in dims:
        if dim not in y.dims:
            raise unknown("dim", dim, map(str, y.dims))


def only(y: xr.DataArray, *dims: str) -> None:
    """Refuses dims beside `seed` and those named."""
    need(y, "seed", *dims)
    if other := [str(d) for d in y.dims if d not in ("seed", *dims)]:
        choice = ", ".join(f"{d}=..." for d in other)
        raise InputError(f"dims beside {', '.join(('seed', *dims))}: select with .sel({choice}).")


def by_seed(y: xr.DataArray, *dims: str) -> Floats:
    """The measurements as (seed, *dims), averaged over other dims; NaN for what is infinite."""
    need(y, "seed", *dims)
    if y.sizes["seed"] < 3:
        raise InputError(f"an interval needs at least 3 seeds, not {y.sizes['seed']}.")
    cells = y.transpose("seed", *dims, ...).to_numpy().astype(float)
    cells = np.where(np.isfinite(cells), cells, np.nan)
    return cells.mean(axis=tuple(range(1 + len(dims), cells.ndim)))


def sorted_along(y: xr.DataArray, dim: str, positive: bool = False) -> tuple[xr.DataArray, Floats]:
    """y in ascending order of a dim with a numeric coordinate, and that coordinate."""
    need(y, dim)
    if dim not in y.coords or y[dim].dtype.kind not in "iuf":
        raise InputError(f"dim '{dim}' needs a coordinate of numbers.")
    y = y if y.indexes[dim].is_monotonic_increasing else y.sortby(dim)
    x = y[dim].to_numpy().astype(float)
    if positive and x[0] <= 0:
        raise InputError(f"'{dim}' starts at {x[0]:g} and must be above 0 for its logarithm.")
    return y, x


def aligned(*arrays: xr.DataArray, on: Iterable[str] | None = None) -> tuple[xr.DataArray, ...]:
    """The arrays, if they agree in the coordinates of shared dims (or only of those in `on`)."""
    loose = set() if on is None else {d for a in arrays for d in a.dims} - set(on)
    try:
        return xr.align(*arrays, join="exact", copy=False, exclude=frozenset(loose))
    except ValueError:
        raise InputError("the arrays differ in their seeds or in other coordinates.") from None


def cell_replicas(y: xr.DataArray, x: xr.DataArray) -> tuple[Floats, Floats]:
    """Replicas of two arrays on the same cells, each as (1 + seeds, cells)."""
    pair = xr.broadcast(*aligned(y, x))
    cells = [str(d) for d in pair[0].dims if d != "seed"]
    a, b = (replicas_of(p, *cells) for p in pair)
    return a.reshape(len(a), -1), b.reshape(len(b), -1)
