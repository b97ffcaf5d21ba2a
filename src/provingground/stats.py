"""From measurements to estimates: every number that a claim judges is computed here.

A measurement is a `DataArray` with a dim `seed`, the sampling unit: a seed that is left out is
left out of all cells at once, so that cells which share random numbers are compared in pairs.
Smooth estimates carry a jackknife-t interval, rates a Wilson interval; at least three seeds.
What cannot be estimated (no crossing, a diverged cell, the logarithm of a loss that is not
positive) has NaN bounds, which leave a claim undecided. Wrong input is an `InputError`.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import bdtr, logit, ndtri, stdtrit

from provingground import reprs
from provingground.errors import InputError, unknown
from provingground.reprs import shown
from provingground.study import Estimate

LEVEL = 0.95
UNDECIDED = Estimate(math.nan, math.nan, math.nan)
Floats = NDArray[np.float64]
Window = tuple[float, float]
Kind = Literal["power", "linear"]
Method = Literal["isotonic", "linear", "logistic"]

# --------------------------------------------------------------------------- the jackknife


def jackknife(
    statistic: Callable[..., Any], *arrays: xr.DataArray, level: float = LEVEL
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
    arrays = _aligned(*arrays, on=["seed"])
    everyone = np.arange(min(len(_by_seed(a)) for a in arrays))
    kept = [everyone, *(np.delete(everyone, i) for i in everyone)]
    replicas = [float(statistic(*(a.isel(seed=keep) for a in arrays))) for keep in kept]
    return _estimate(np.array(replicas), level)


def _replicas(y: xr.DataArray, *dims: str) -> Floats:
    """The mean over seeds and other dims, for each cell of `dims`.

    Row 0 is the mean over all seeds, row i the mean without the i-th.
    """
    return means_without(_by_seed(y, *dims))


def means_without(cells: Floats) -> Floats:
    """Means over a first axis of seeds: row 0 over all of them, row i without the i-th."""
    keep = np.ones((1, len(cells)))
    if len(cells) > 1:
        keep = np.vstack([keep, 1 - np.eye(len(cells))])
    return (np.tensordot(keep, cells, 1).T / keep.sum(axis=1)).T


def _half_width(replicas: Floats, level: float = LEVEL) -> Floats:
    """Half the jackknife-t interval; row 0 of the replicas cancels in the pseudo-values."""
    seeds = len(replicas) - 1
    with np.errstate(invalid="ignore"):
        error = (seeds - 1) * replicas[1:].std(axis=0, ddof=1) / math.sqrt(seeds)
    return stdtrit(seeds - 1, (1 + level) / 2) * error


def _interval(replicas: Floats, level: float = LEVEL, log: bool = False) -> Floats:
    """Value, low and high from the replicas, or from their logarithms."""
    value, half = replicas[0], _half_width(replicas, level)
    ends = np.stack([value, value - half, value + half])
    with np.errstate(over="ignore"):
        return np.exp(ends) if log else ends


def _estimate(replicas: Floats, level: float = LEVEL, log: bool = False) -> Estimate:
    return Estimate(*map(float, _interval(replicas, level, log)))


# --------------------------------------------------------------------------- means and rates


def mean(y: xr.DataArray) -> Estimate:
    """The mean over all cells and seeds.

    >>> print(mean(xr.DataArray([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], dims=("seed", "step"))))
    3 [-0.7262, 6.726]
    """
    return _estimate(_replicas(y))


def plateau(y: xr.DataArray, over: str, last: float = 0.25) -> Estimate:
    """The mean over the end of an axis: the final fraction `last` of its points, at least one.

    >>> loss = xr.DataArray([[9.0, 3, 1, 2]] * 3, [("seed", [0, 1, 2]), ("step", [1, 2, 4, 8])])
    >>> print(plateau(loss, "step", last=0.5))
    1.5 [1.5, 1.5]
    """
    if not 0 < last <= 1:
        raise InputError(f"last = {last} is not allowed: it is a fraction above 0, up to 1.")
    y, x = _along(y, over)
    return mean(y.isel({over: slice(len(x) - math.ceil(last * len(x)), None)}))


def median(y: xr.DataArray) -> Estimate:
    """The median over seeds (one number each); its interval lies between two of the seeds' values.

    Of n seeds the number below the median is binomial, so no shape is assumed; a jackknife of a
    median would be wrong. Fewer than six seeds leave it undecided.

    >>> print(median(xr.DataArray([3.0, 1.0, 2.0, 5.0, 9.0, 4.0, 7.0], dims="seed")))
    4 [1, 9]
    """
    _only(y)
    values = np.sort(_by_seed(y))
    below = bdtr(np.arange(len(values)), len(values), 0.5)
    out = int(np.searchsorted(below, (1 - LEVEL) / 2)) - 1  # left out at each end
    if out < 0 or np.isnan(values).any():
        return UNDECIDED
    return Estimate(float(np.median(values)), float(values[out]), float(values[-1 - out]))


def paired_difference(a: xr.DataArray, b: xr.DataArray) -> Estimate:
    """The mean over seeds of a - b (other dims averaged first), with its paired t interval."""
    a, b = _aligned(a, b, on=["seed"])
    return _estimate(_replicas(a) - _replicas(b))


def paired_ratio(a: xr.DataArray, b: xr.DataArray) -> Estimate:
    """The mean of a over the mean of b; the interval is that of its logarithm.

    >>> a = xr.DataArray([2.0, 4.0, 6.0], dims="seed")
    >>> print(paired_ratio(a, a / 2))
    2 [2, 2]
    """
    a, b = _aligned(a, b, on=["seed"])
    return _estimate(_log(_replicas(a)) - _log(_replicas(b)), log=True)


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
    rates = _by_seed(success)
    p, seeds = float(rates.mean()), len(rates)
    if math.isnan(p):
        return UNDECIDED
    if ((rates < 0) | (rates > 1)).any():
        raise InputError("share takes True and False, or rates from 0 to 1.")
    trials, single = float(seeds), p * (1 - p)
    if single > 0:
        spread = ((seeds - 1) * rates.var(ddof=1) + 3 * single) / (seeds + 2)
        trials = float(np.clip(seeds * single / spread, seeds, success.size))
    z = float(ndtri((1 + LEVEL) / 2))
    centre = (p + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * math.sqrt(single / trials + (z / (2 * trials)) ** 2)
    return Estimate(p, max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half)))


# --------------------------------------------------------------------------- order


def ordering(*arrays: xr.DataArray) -> Estimate:
    """The share of seeds in which the arrays (one number per seed) strictly increase.

    >>> a = xr.DataArray([1.0, 2.0, 3.0, 4.0], dims="seed")
    >>> print(ordering(a, a + 1, 2 * a + 1))
    1 [0.5101, 1]
    """
    for a in arrays:
        _only(a)
    values = np.stack([_by_seed(a) for a in _aligned(*arrays, on=["seed"])])
    ordered = np.where(np.isnan(values).any(0), np.nan, (np.diff(values, axis=0) > 0).all(0))
    return share(xr.DataArray(ordered, dims="seed"))


def rank_correlation(y: xr.DataArray, x: xr.DataArray | str) -> Estimate:
    r"""Spearman's $\rho$, over all cells, of the seed-mean of y with x (or with a dim of y).

    Ranks jump, and a jackknife sees no jump that no single seed causes. So the half-width is at
    least $\sqrt{\sum w^2}$ over the pairs of cells whose difference in y is not decided (its own
    interval holds zero), where $w$ is what $\rho$ changes by if the pair changes its order.

    >>> y = xr.DataArray([[1.0, 3, 2]] * 3, [("seed", [0, 1, 2]), ("n", [1, 2, 3])])
    >>> print(rank_correlation(y, "n"))
    0.5 [0.5, 0.5]
    """
    if isinstance(x, str):
        y, _ = _along(y, x)
        x = y[x]
    means, others = _cell_replicas(y, x)
    a, b = (_ranks(rows) - (rows.shape[1] + 1) / 2 for rows in (means, others))
    norm = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    with np.errstate(invalid="ignore"):
        rho = (a * b).sum(axis=1) / norm
    i, j = np.triu_indices(means.shape[1], 1)
    gap = means[:, i] - means[:, j]
    open_pair = np.abs(gap[0]) < _half_width(gap)
    swaps = math.sqrt(((b[0, i] - b[0, j])[open_pair] ** 2).sum()) / (norm[0] or math.nan)
    half = float(np.maximum(_half_width(rho), swaps))
    return Estimate(float(rho[0]), *np.clip([rho[0] - half, rho[0] + half], -1, 1).tolist())


def monotone(
    y: xr.DataArray, along: str, direction: Literal["increasing", "decreasing"] = "decreasing"
) -> Estimate:
    r"""The smallest step of the seed-mean in the wanted direction: positive if all go that way.

    A minimum of noisy steps is biased and has a kink, so the bounds come from the steps' own
    intervals $[l_k, h_k]$: $\min_k l_k$ lies below the smallest true step if that one step's
    bound holds (level 95%), $\min_k h_k$ above it if all bounds do (95% jointly, Bonferroni).
    """
    signs = {"increasing": 1, "decreasing": -1}
    if direction not in signs:
        raise unknown("direction", direction, signs)
    y, x = _along(y, along)
    if len(x) < 2:
        raise InputError(f"dim '{along}' has one point and no step.")
    steps = signs[direction] * np.diff(_replicas(y, along), axis=1)
    joint = 1 - (1 - LEVEL) / steps.shape[1]
    ends = steps[0], steps[0] - _half_width(steps), steps[0] + _half_width(steps, joint)
    return Estimate(*(float(end.min()) for end in ends))


def agreement(y: xr.DataArray, predicted: xr.DataArray | float, relative: bool = True) -> Estimate:
    r"""The largest deviation, over all cells, of the seed-mean of y from what was predicted.

    A deviation is $d = (\bar y - f)/|f|$, or $\bar y - f$ if not `relative`; a prediction made
    for each seed is averaged like y. A maximum of noisy deviations is biased upwards, so the
    bounds come from the cells' own intervals: `high` is the largest $|d|$ in any of them (level
    95%: only the cell that truly deviates most must be covered), `low` the largest of their
    smallest $|d|$, zero for an interval around zero (95% jointly, Bonferroni).

    >>> y = xr.DataArray([[1.0, 2.1], [1.1, 2.1], [0.9, 2.1]], dims=("seed", "step"))
    >>> print(agreement(y, xr.DataArray([1.0, 2.0], dims="step")))
    0.05 [0.05, 0.2484]
    """
    measured, theory = _cell_replicas(y, xr.DataArray(predicted))
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = (measured - theory) / (np.abs(theory) if relative else 1.0)
        size, joint = np.abs(deviation[0]), 1 - (1 - LEVEL) / deviation.shape[1]
        low = np.maximum(size - _half_width(deviation, joint), 0)
        ends = size, low, size + _half_width(deviation)
    return Estimate(*(float(end.max()) for end in ends))


def worst(estimates: Iterable[Estimate], toward: Literal["high", "low"] = "high") -> Estimate:
    """One estimate for a claim about all of several: the extreme value, low and high.

    The bound on the side of `toward`, the one that says "everywhere", is as safe as a single
    estimate's. The other is joint: with many estimates near each other it errs more often.

    >>> print(worst([Estimate(1, 0, 2), Estimate(0.5, 0.4, 3)]))
    1 [0.4, 3]
    """
    extremes = {"high": np.max, "low": np.min}
    if toward not in extremes:
        raise unknown("direction", toward, extremes)
    table = list(estimates)
    if not table:
        raise InputError("worst needs at least one estimate.")
    return Estimate(*map(float, extremes[toward](np.array(table, dtype=float), axis=0)))


# --------------------------------------------------------------------------- laws


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
    _only(y, over)
    y, x = _along(y, over)
    inside, window = _inside(x, window)
    if len(np.unique(x[inside])) < 2:
        raise InputError(f"a law needs two points of '{over}' in {window}; it has {x.tolist()}.")
    if kind == "power" and x[inside][0] <= 0:
        raise InputError(f"a power law needs '{over}' above 0: give a window that leaves 0 out.")
    return _fit(x[inside], _replicas(y, over)[:, inside], window, kind)


def _fit(
    x: Floats, replicas: Floats, window: Window, kind: Kind, given: float | None = None
) -> Law:
    """Least squares through every row of the replicas at once, maybe with a given slope."""
    power = kind == "power"
    u, v = (_log(x), _log(replicas)) if power else (x, replicas)
    centred = u - u.mean()
    slope = v @ centred / (centred @ centred) if given is None else np.full(len(v), given)
    constant = _estimate(v.mean(axis=1) - slope * u.mean(), log=power)
    return Law(_estimate(slope), constant, window, kind)


# --------------------------------------------------------------------------- crossings


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
    _only(y, along)
    return _estimate(_crossings(y, along, level, method, log), log=log)


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
    _only(y, along, of)
    y, z = _along(y, of, positive=True)
    crossings = _crossings(y, along, level, method, log, of)
    ends = zip(("value", "low", "high"), _interval(crossings, log=log), strict=True)
    about = {"along": along, "interpolation": "log" if log else "linear"}
    points = xr.Dataset({name: (of, end) for name, end in ends}, {of: y[of]}, about)
    inside, window = _inside(z, window)
    fitted = inside & np.isfinite(crossings).all(axis=0)
    law = Law(UNDECIDED, UNDECIDED, window)
    if fitted.sum() > 1:
        thresholds = crossings[:, fitted]
        law = _fit(z[fitted], np.exp(thresholds) if log else thresholds, window, "power", slope)
    return Boundary(points, law, int((inside & ~fitted).sum()))


def _crossings(
    y: xr.DataArray, along: str, level: float, method: Method, log: bool, *of: str
) -> Floats:
    """Where each curve of the replicas crosses the level, in the (log) coordinate."""
    finders = {"isotonic": _isotonic, "linear": _first, "logistic": _logistic}
    if method not in finders:
        raise unknown("method", method, finders)
    y, x = _along(y, along, positive=log)
    u, curves = np.log(x) if log else x, _replicas(y, *of, along)
    if method == "logistic" and (not 0 < level < 1 or ((curves < 0) | (curves > 1)).any()):
        raise InputError("method 'logistic' takes rates from 0 to 1 and a level between them.")

    # Places that no seed has a number for were not run (see `Refine`); NaN elsewhere is a failure.
    curves = np.where(np.isnan(_by_seed(y, *of, along)).all(axis=0), np.inf, curves)

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

    rising = bool((np.arange(len(u)) - (len(u) - 1) / 2) @ _ranks(curve) >= 0)
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


# --------------------------------------------------------------------------- arrays in, arrays out


def _ranks(values: Floats) -> Floats:
    """Ranks along the last axis, ties sharing theirs."""
    from scipy.stats import rankdata  # takes half a second to import

    return rankdata(values, axis=-1)


def _log(values: Floats) -> Floats:
    """The logarithm; NaN for what is not positive."""
    return np.log(np.where(values > 0, values, np.nan))


def _inside(x: Floats, window: Window | None) -> tuple[NDArray[np.bool], Window]:
    """Which points lie in the window (ends included, up to rounding), and the window."""
    low, high = (float(x[0]), float(x[-1])) if window is None else window
    slack = 1e-9 * np.abs(x)
    return (low - slack <= x) & (x <= high + slack), (low, high)


def _need(y: xr.DataArray, *dims: str) -> None:
    for dim in dims:
        if dim not in y.dims:
            raise unknown("dim", dim, map(str, y.dims))


def _only(y: xr.DataArray, *dims: str) -> None:
    """Refuses dims beside `seed` and those named."""
    _need(y, "seed", *dims)
    if other := [str(d) for d in y.dims if d not in ("seed", *dims)]:
        choice = ", ".join(f"{d}=..." for d in other)
        raise InputError(f"dims beside {', '.join(('seed', *dims))}: select with .sel({choice}).")


def _by_seed(y: xr.DataArray, *dims: str) -> Floats:
    """The measurements as (seed, *dims), averaged over other dims; NaN for what is infinite."""
    _need(y, "seed", *dims)
    if y.sizes["seed"] < 3:
        raise InputError(f"an interval needs at least 3 seeds, not {y.sizes['seed']}.")
    cells = y.transpose("seed", *dims, ...).to_numpy().astype(float)
    cells = np.where(np.isfinite(cells), cells, np.nan)
    return cells.mean(axis=tuple(range(1 + len(dims), cells.ndim)))


def _along(y: xr.DataArray, dim: str, positive: bool = False) -> tuple[xr.DataArray, Floats]:
    """y in ascending order of a dim with a numeric coordinate, and that coordinate."""
    _need(y, dim)
    if dim not in y.coords or y[dim].dtype.kind not in "iuf":
        raise InputError(f"dim '{dim}' needs a coordinate of numbers.")
    y = y if y.indexes[dim].is_monotonic_increasing else y.sortby(dim)
    x = y[dim].to_numpy().astype(float)
    if positive and x[0] <= 0:
        raise InputError(f"'{dim}' starts at {x[0]:g} and must be above 0 for its logarithm.")
    return y, x


def _aligned(*arrays: xr.DataArray, on: Iterable[str] | None = None) -> tuple[xr.DataArray, ...]:
    """The arrays, if they agree in the coordinates of shared dims (or only of those in `on`)."""
    loose = set() if on is None else {d for a in arrays for d in a.dims} - set(on)
    try:
        return xr.align(*arrays, join="exact", copy=False, exclude=frozenset(loose))
    except ValueError:
        raise InputError("the arrays differ in their seeds or in other coordinates.") from None


def _cell_replicas(y: xr.DataArray, x: xr.DataArray) -> tuple[Floats, Floats]:
    """Replicas of two arrays on the same cells, each as (1 + seeds, cells)."""
    pair = xr.broadcast(*_aligned(y, x))
    cells = [str(d) for d in pair[0].dims if d != "seed"]
    a, b = (_replicas(p, *cells) for p in pair)
    return a.reshape(len(a), -1), b.reshape(len(b), -1)
