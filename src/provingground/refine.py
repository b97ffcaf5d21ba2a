"""Adaptive boundaries: only the trainings around the crossing of a level, found by bisection.

Along the refined axis a *row* is one curve. Every fourth row is bisected from its ends; the rows
between start from where their neighbours crossed. A row is done when the seed-mean, and the mean
without any one seed (on which intervals rest), cross between neighbours of the grid. For monotone
curves the threshold is then that of the full grid, from a fraction of its cells.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from provingground.engine import Job
from provingground.errors import unknown
from provingground.programs import probe_dims
from provingground.results import dataset
from provingground.stats import means_without

STRIDE = 4  # one row in so many is bisected from its ends


def stages(job: Job) -> Iterator[None]:
    """Sets `job.only` to the points of one stage after another. Run (or load) them in between.

    An experiment that is not refined has one stage, with all points.
    """
    refine = job.sweep.trainings.refine
    if refine is None:
        yield
        return
    axes, probes = [a.name for a in job.sweep.axes], _single_numbers(job)
    if refine.axis not in axes:
        raise unknown("axis to refine", refine.axis, axes)
    if refine.probe not in probes:
        raise unknown("probe (a single number) to refine by", refine.probe, probes)
    axis = axes.index(refine.axis)
    rest, places = np.delete(job.sweep.shape, axis), job.sweep.shape[axis]
    known = np.zeros((int(np.prod(rest)), places), bool)
    coarse = np.arange(len(known)) % STRIDE == 0
    known[np.ix_(coarse, [0, places - 1])] = True
    more = known
    while more.any():
        job.only = np.moveaxis(known.reshape(*rest, places), -1, axis).ravel()
        yield
        values = dataset(job)[refine.probe].transpose(..., refine.axis, "seed").values
        sides = _sides(values.reshape(len(known), places, -1), refine.level)
        more = _more(sides, known)
        if not more.any():  # once the coarse rows are done; after that there are no others
            more = _near(sides, known)
        known |= more


def _single_numbers(job: Job) -> list[str]:
    simulator = job.study.simulators[job.groups[0].program.simulator]
    return [name for name, dims in probe_dims(simulator.probes).items() if not dims]


def _sides(values: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
    """Whether each replica (the seed-mean, then without each seed) is above, as (row, place, r)."""
    return np.moveaxis(means_without(np.moveaxis(values, -1, 0)), 0, -1) > level


def _crossings(sides: NDArray[np.bool_], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which replicas cross between neighbours among the known places of a row."""
    return np.diff(sides[known], axis=0)


def _pairs(sides: NDArray[np.bool_], known: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Neighbours among the known places of a row between which a replica crosses."""
    at = np.flatnonzero(known)
    crossed = _crossings(sides, known).any(axis=-1)
    return [(int(i), int(j)) for i, j in zip(at[:-1][crossed], at[1:][crossed], strict=True)]


def _more(sides: NDArray[np.bool_], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The places to try next: the middle of each crossing, and the ends for want of one."""
    more = np.zeros_like(known)
    for row in np.flatnonzero(known.any(axis=1)):
        more[row, [(i + j) // 2 for i, j in _pairs(sides[row], known[row])]] = True
        if not _crossings(sides[row], known[row]).any(axis=0).all():  # of every replica
            more[row, [0, -1]] = True
    return more & ~known


def _near(sides: NDArray[np.bool_], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where rows without known places begin: around the crossings of the rows beside them."""
    near = np.zeros_like(known)
    done = np.flatnonzero(known.any(axis=1))
    for row in np.flatnonzero(~known.any(axis=1)):
        beside = {done[done < row][-1], *done[done > row][:1]}
        found = [p for other in beside for pair in _pairs(sides[other], known[other]) for p in pair]
        ends = (min(found) - 1, max(found) + 1) if found else (0, known.shape[1] - 1)
        near[row, np.clip(ends, 0, known.shape[1] - 1)] = True
    return near
