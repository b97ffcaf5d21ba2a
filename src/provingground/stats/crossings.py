"""Where curves cross a level, and how that place moves."""

import math
from typing import Literal, NamedTuple

import numpy as np
import xarray as xr
from scipy.special import logit

from provingground import reprs
from provingground.errors import InputError, unknown
from provingground.reprs import shown
from provingground.stats.estimate import UNDECIDED, Estimate
from provingground.stats.jackknife import (
    Floats,
    Window,
    by_seed,
    estimate_from,
    inside_window,
    interval,
    only,
    ranks_of,
    replicas_of,
    sorted_along,
)
from provingground.stats.laws import Law, fit

Method = Literal["isotonic", "linear", "logistic"]


def threshold(
    y: xr.DataArray, along: str, level: float, method: Method = "isotonic", log: bool = True
) -> Estimate:
    """The coordinate at which the seed-mean of y crosses `level`; NaN if not inside the axis.

    "isotonic" makes the curve monotone (in the direction of its rank correlation) and
    interpolates; a flat stretch at the level gives its middle. "linear" takes the first crossing
    of the curve as it is, such as the time a loss first falls to a level. "logistic" fits rates
    by $1/(1+e^{-(a+bu)})$; take it where each cell is one success or failure, since such means
    move in jumps (measured: its intervals cover 95%, those of "isotonic" about 90%).

    With `log`, $u$ is the logarithm of the coordinate, for interpolation and interval alike.
    Interpolation is linear in y and stays between neighbours; a loss that spans decades is
    better given as its logarithm (`np.log(y)`, `np.log(level)`).

    >>> rate = xr.DataArray([[0.0, 0, 1, 1]] * 3, [("seed", [0, 1, 2]), ("n", [1, 2, 8, 16])])
    >>> print(threshold(rate, "n", 0.5))
    4 [4, 4]
    """
    only(y, along)
    return estimate_from(_crossings(y, along, level, method, log), log=log)


@shown(reprs.boundary)
class Boundary(NamedTuple):
    """Thresholds along one axis as a power law of another.

    `points` holds value, low and high of each threshold, and as attributes what they were found
    `along`, and whether by "log" or "linear" `interpolation`; `left_out` counts those (inside the
    law's window) without an interval: with all seeds, or without one of them, their curve does
    not cross the level inside the axis. The law is fitted to the others.
    """

    points: xr.Dataset
    law: Law
    left_out: int


def phase_boundary(
    y: xr.DataArray,
    along: str,
    of: str,
    level: float,
    method: Method = "isotonic",
    window: Window | None = None,
    log: bool = True,
    slope: float | None = None,
) -> Boundary:
    r"""$x^*(z) = C z^s$: where y crosses `level` `along` x (see `threshold`), for z on axis `of`.

    Each replica of the jackknife finds all thresholds and fits the law through them (least
    squares of $\log x^*$ on $\log z$), so that slope and constant carry the correlation of
    thresholds that share their seeds. `window` is the range of z that is fitted; with
    a `slope` only the constant is.

    >>> n, snr = xr.DataArray([1.0, 10, 100], dims="n"), xr.DataArray([1.0, 2, 4], dims="snr")
    >>> error = (1 - 0.1 * snr * np.log10(n)).expand_dims(seed=3).assign_coords(n=n, snr=snr)
    >>> boundary = phase_boundary(error, along="n", of="snr", level=0.8)
    >>> boundary.points.value.to_numpy().round(3), boundary.left_out
    (array([100.   ,  10.   ,   3.162]), 0)
    """
    only(y, along, of)
    y, z = sorted_along(y, of, positive=True)
    crossings = _crossings(y, along, level, method, log, of)
    ends = zip(("value", "low", "high"), interval(crossings, log=log), strict=True)
    about = {"along": along, "interpolation": "log" if log else "linear"}
    points = xr.Dataset({name: (of, end) for name, end in ends}, {of: y[of]}, about)
    inside, window = inside_window(z, window)
    fitted = inside & np.isfinite(crossings).all(axis=0)
    law = Law(UNDECIDED, UNDECIDED, window)
    if fitted.sum() > 1:
        thresholds = crossings[:, fitted]
        law = fit(z[fitted], np.exp(thresholds) if log else thresholds, window, "power", slope)
    return Boundary(points, law, int((inside & ~fitted).sum()))


def _crossings(
    y: xr.DataArray, along: str, level: float, method: Method, log: bool, *of: str
) -> Floats:
    """Where each curve of the replicas crosses the level, in the (log) coordinate."""
    finders = {"isotonic": _isotonic, "linear": _first, "logistic": _logistic}
    if method not in finders:
        raise unknown("method", method, finders)
    y, x = sorted_along(y, along, positive=log)
    u, curves = np.log(x) if log else x, replicas_of(y, *of, along)
    if method == "logistic" and (not 0 < level < 1 or ((curves < 0) | (curves > 1)).any()):
        raise InputError("method 'logistic' takes rates from 0 to 1 and a level between them.")

    # Places that no seed has a number for were not run (see `Refine`); NaN elsewhere is a failure.
    curves = np.where(np.isnan(by_seed(y, *of, along)).all(axis=0), np.inf, curves)

    def crossing(curve: Floats) -> float:
        at, curve = u[curve != np.inf], _snap(curve[curve != np.inf], level)
        if curve.size and np.ptp(curve) > 0 and curve.min() <= level <= curve.max():
            return finders[method](at, curve, level)
        return math.nan  # also where there is a NaN

    return np.apply_along_axis(crossing, -1, curves)


def _snap(curve: Floats, level: float) -> Floats:
    """The curve, with what differs from the level by rounding alone put on it."""
    return np.where(np.abs(curve - level) <= 1e-9 * abs(level), level, curve)


def _isotonic(u: Floats, curve: Floats, level: float) -> float:
    from scipy.optimize import isotonic_regression  # slow to import, and seldom needed

    rising = bool((np.arange(len(u)) - (len(u) - 1) / 2) @ ranks_of(curve) >= 0)
    fit = _snap(isotonic_regression(curve, increasing=rising).x, level)
    fit, u = (fit, u) if rising else (fit[::-1], u[::-1])
    if not fit[0] <= level <= fit[-1]:
        return math.nan
    last, first = np.interp(level, fit, u), np.interp(-level, -fit[::-1], u[::-1])
    return float(first + last) / 2


def _first(u: Floats, curve: Floats, level: float) -> float:
    above = curve - level
    k = int(np.argmax(above[:-1] * above[1:] <= 0))
    return u[k] + (u[k + 1] - u[k]) * above[k] / ((above[k] - above[k + 1]) or 1.0)


def _logistic(u: Floats, curve: Floats, level: float) -> float:
    """The crossing of a logistic fit; a faint ridge keeps the slope of a clean step finite."""
    from sklearn.linear_model import LogisticRegression  # a second to import

    scaled = (u - u.mean()) / u.std()
    inputs, labels = np.tile(scaled, 2)[:, None], np.repeat([1, 0], len(u))
    model = LogisticRegression(C=1e3, solver="newton-cholesky", tol=1e-8)
    model.fit(inputs, labels, sample_weight=np.concatenate([curve, 1 - curve]))
    intercept, slope = np.append(model.intercept_, model.coef_)
    crossing = u.mean() + u.std() * (logit(level) - intercept) / slope
    return float(crossing) if u[0] <= crossing <= u[-1] else math.nan
