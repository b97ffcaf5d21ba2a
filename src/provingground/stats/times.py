"""The beginning and the end of a training, and when it comes to a level, seed by seed."""

import numpy as np
import xarray as xr


def first(y: xr.DataArray, along: str = "step") -> xr.DataArray:
    """Where a training starts."""
    return y.isel({along: 0}, drop=True)


def last(y: xr.DataArray, along: str = "step") -> xr.DataArray:
    """Where a training ends."""
    return y.isel({along: -1}, drop=True)


def hitting_time(
    y: xr.DataArray, level: float, along: str = "step", t: xr.DataArray | None = None
) -> xr.DataArray:
    """When y first is at most `level`, in each cell; NaN if it never is.

    Linear between recorded steps. `t` holds the times of the steps where they differ from cell to
    cell; otherwise they are the coordinate.

    >>> loss = xr.DataArray([4.0, 2.0, 0.0, 3.0], {"step": [0, 10, 20, 30]}, "step")
    >>> float(hitting_time(loss, 1.0)), float(hitting_time(loss, -1.0))
    (15.0, nan)
    """
    t = y[along].astype(float) if t is None else t
    down = y <= level
    after = down.argmax(along)
    before = np.maximum(after - 1, 0)
    high, low = y.isel({along: before}), y.isel({along: after})
    late, early = t.isel({along: after}), t.isel({along: before})
    share = xr.where(after > 0, (high - level) / xr.where(high > low, high - low, 1.0), 1.0)
    found = (early + share * (late - early)).where(down.any(along))
    return found.drop_vars(along, errors="ignore")
