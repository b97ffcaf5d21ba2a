"""Means, medians and rates."""

import math

import numpy as np
import xarray as xr
from scipy.special import bdtr, ndtri

from provingground.errors import InputError
from provingground.stats.estimate import UNDECIDED, Estimate
from provingground.stats.jackknife import (
    aligned,
    by_seed,
    estimate_from,
    level,
    log_of,
    only,
    replicas_of,
    sorted_along,
)


def mean(y: xr.DataArray) -> Estimate:
    """The mean over all cells and seeds.

    >>> print(mean(xr.DataArray([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], dims=("seed", "step"))))
    3 [-0.7262, 6.726]
    """
    return estimate_from(replicas_of(y))


def plateau(y: xr.DataArray, over: str, last: float = 0.25) -> Estimate:
    """The mean over the end of an axis: the final fraction `last` of its points, at least one.

    >>> loss = xr.DataArray([[9.0, 3, 1, 2]] * 3, [("seed", [0, 1, 2]), ("step", [1, 2, 4, 8])])
    >>> print(plateau(loss, "step", last=0.5))
    1.5 [1.5, 1.5]
    """
    if not 0 < last <= 1:
        raise InputError(f"last = {last} is not allowed: it is a fraction above 0, up to 1.")
    y, x = sorted_along(y, over)
    return mean(y.isel({over: slice(len(x) - math.ceil(last * len(x)), None)}))


def median(y: xr.DataArray) -> Estimate:
    """The median over seeds (one number each); its interval lies between two of the seeds' values.

    Of n seeds the number below the median is binomial, so no shape is assumed; a jackknife of a
    median would be wrong. Fewer than six seeds leave it undecided.

    >>> print(median(xr.DataArray([3.0, 1.0, 2.0, 5.0, 9.0, 4.0, 7.0], dims="seed")))
    4 [1, 9]
    """
    only(y)
    values = np.sort(by_seed(y))
    below = bdtr(np.arange(len(values)), len(values), 0.5)
    out = int(np.searchsorted(below, (1 - level()) / 2)) - 1  # left out at each end
    if out < 0 or np.isnan(values).any():
        return UNDECIDED
    return Estimate(float(np.median(values)), float(values[out]), float(values[-1 - out]))


def paired_difference(a: xr.DataArray, b: xr.DataArray) -> Estimate:
    """The mean over seeds of a - b (other dims averaged first), with its paired t interval."""
    a, b = aligned(a, b, on=["seed"])
    return estimate_from(replicas_of(a) - replicas_of(b))


def paired_ratio(a: xr.DataArray, b: xr.DataArray) -> Estimate:
    """The mean of a over the mean of b; the interval is that of its logarithm.

    >>> a = xr.DataArray([2.0, 4.0, 6.0], dims="seed")
    >>> print(paired_ratio(a, a / 2))
    2 [2, 2]
    """
    a, b = aligned(a, b, on=["seed"])
    return estimate_from(log_of(replicas_of(a)) - log_of(replicas_of(b)), log=True)


def share(success: xr.DataArray) -> Estimate:
    r"""The rate of True, with a Wilson interval.

    One boolean per seed: the textbook interval for $n$ trials. Several cells of one seed are not
    independent; how many trials they are worth follows from the variance $s^2$ of the seeds' own
    rates (mean $p$). A few seeds know $s^2$ badly, and too small where failures are rare and
    come together, so three more seeds are imagined whose cells all agree, and
    $\tilde s^2 = ((n-1) s^2 + 3 p(1-p))/(n+2)$: the trials are $n\, p(1-p)/\tilde s^2$, at least
    $n$ and at most the number of cells. Where all cells agree, the trials are $n$.

    >>> print(share(xr.DataArray([True, True, True, False], dims="seed")))
    0.75 [0.3006, 0.9544]
    """
    rates = by_seed(success)
    p, seeds = float(rates.mean()), len(rates)
    if math.isnan(p):
        return UNDECIDED
    if ((rates < 0) | (rates > 1)).any():
        raise InputError("share takes True and False, or rates from 0 to 1.")
    trials, single = float(seeds), p * (1 - p)
    if single > 0:
        spread = ((seeds - 1) * rates.var(ddof=1) + 3 * single) / (seeds + 2)
        trials = float(np.clip(seeds * single / spread, seeds, success.size))
    z = float(ndtri((1 + level()) / 2))
    centre = (p + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * math.sqrt(single / trials + (z / (2 * trials)) ** 2)
    return Estimate(p, max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half)))
