"""Order and agreement: what rises, what comes first, what is as predicted."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, product
from typing import Literal

import numpy as np
import xarray as xr

from provingground.errors import InputError, unknown
from provingground.stats.estimate import Estimate, Everywhere
from provingground.stats.jackknife import (
    aligned,
    by_seed,
    cell_replicas,
    half_width,
    joint,
    jointly,
    only,
    ranks_of,
    replicas_of,
    sorted_along,
)
from provingground.stats.means import mean, share


def ordering(*arrays: xr.DataArray) -> Estimate:
    """The share of seeds in which the arrays (one number per seed) strictly increase.

    >>> a = xr.DataArray([1.0, 2.0, 3.0, 4.0], dims="seed")
    >>> print(ordering(a, a + 1, 2 * a + 1))
    1 [0.5101, 1]
    """
    for a in arrays:
        only(a)
    values = np.stack([by_seed(a) for a in aligned(*arrays, on=["seed"])])
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
        y, _ = sorted_along(y, x)
        x = y[x]
    means, others = cell_replicas(y, x)
    a, b = (ranks_of(rows) - (rows.shape[1] + 1) / 2 for rows in (means, others))
    norm = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    with np.errstate(invalid="ignore"):
        rho = (a * b).sum(axis=1) / norm
    i, j = np.triu_indices(means.shape[1], 1)
    gap = means[:, i] - means[:, j]
    open_pair = np.abs(gap[0]) < half_width(gap)
    swaps = math.sqrt(((b[0, i] - b[0, j])[open_pair] ** 2).sum()) / (norm[0] or math.nan)
    half = float(np.maximum(half_width(rho), swaps))
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
    y, x = sorted_along(y, along)
    if len(x) < 2:
        raise InputError(f"dim '{along}' has one point and no step.")
    steps = signs[direction] * np.diff(replicas_of(y, along), axis=1)
    together = half_width(steps, joint(steps.shape[1]))
    ends = steps[0], steps[0] - half_width(steps), steps[0] + together
    return Estimate(*(float(end.min()) for end in ends))


def changes(y: xr.DataArray, along: str) -> Everywhere:
    """By how much y changes along a dim: from each place to the next, on average over the other
    dims, and from end to end at each place of these.

    That all are positive says more of a rise than ends do, and asks less than that every step is
    clear at every place.

    >>> y = xr.DataArray([[1.0, 3.0, 4.0]] * 3, [("seed", [0, 1, 2]), ("n", [1, 2, 4])])
    >>> found = changes(y.expand_dims(d=[8, 9]), "n")
    >>> found.settings
    ('n from 1 to 2', 'n from 2 to 4', 'end to end, d = 8', 'end to end, d = 9')
    >>> [one.value for one in found.each]
    [2.0, 1.0, 3.0, 3.0]
    """
    y, x = sorted_along(y, along)
    if len(x) < 2:
        raise InputError(f"dim '{along}' has one point and no step.")
    over = [str(d) for d in y.dims if d not in ("seed", along)]
    steps = y.mean(over, skipna=False).diff(along)
    whole = y.isel({along: -1}, drop=True) - y.isel({along: 0}, drop=True)
    ends = everywhere(mean, whole)
    pieces = [steps.isel({along: i}, drop=True) for i in range(len(x) - 1)]
    names = [f"{along} from {a:g} to {b:g}" for a, b in pairwise(x.tolist())]
    names += [", ".join(filter(None, ("end to end", setting))) for setting in ends.settings]
    with jointly(len(names)):
        together = (*map(mean, pieces), *everywhere(mean, whole).each)
    return Everywhere(tuple(names), (*map(mean, pieces), *ends.each), together)


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
    measured, theory = cell_replicas(y, xr.DataArray(predicted))
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = (measured - theory) / (np.abs(theory) if relative else 1.0)
        size, together = np.abs(deviation[0]), half_width(deviation, joint(deviation.shape[1]))
        low = np.maximum(size - together, 0)
        ends = size, low, size + half_width(deviation)
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


def everywhere(
    estimate: Callable[..., Estimate], *arrays: xr.DataArray, keep: str | Sequence[str] = ()
) -> Everywhere:
    """An estimate at each setting: `estimate` gets the arrays at one point of all dims but `seed`
    and those to `keep`.

    >>> from provingground.stats import mean
    >>> y = xr.DataArray([[1.0, 3.0], [1.2, 3.4], [0.8, 2.6]], [("seed", range(3)), ("n", [4, 8])])
    >>> found = everywhere(mean, y)
    >>> found.settings, str(found.each[1])
    (('n = 4', 'n = 8'), '3 [2.006, 3.994]')
    """
    kept = {"seed", keep} if isinstance(keep, str) else {"seed", *keep}
    pair = aligned(*arrays)
    over = [str(d) for d in dict.fromkeys(d for a in pair for d in a.dims) if d not in kept]
    sizes = {d: n for a in pair for d, n in a.sizes.items()}
    places = [dict(zip(over, at, strict=True)) for at in product(*(range(sizes[d]) for d in over))]

    def at(place: dict[str, int]) -> list[xr.DataArray]:
        return [a.isel({d: i for d, i in place.items() if d in a.dims}) for a in pair]

    each = tuple(estimate(*at(place)) for place in places)
    with jointly(len(places)):
        together = tuple(estimate(*at(place)) for place in places)
    index = {str(d): found for a in pair for d, found in a.indexes.items()}
    levels = [str(name) for d in over for name in (index[d].names if d in index else [d])]
    return Everywhere(tuple(_named(at(place), levels) for place in places), each, together)


def _named(arrays: Sequence[xr.DataArray], coords: Sequence[str]) -> str:
    """A setting in words."""
    found = {c: a[c].item() for a in arrays for c in coords if c in a.coords}
    return ", ".join(
        f"{d} = {v:g}" if isinstance(v, (int, float)) and not isinstance(v, bool) else f"{d} = {v}"
        for d, v in found.items()
    )
