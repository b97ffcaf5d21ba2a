"""From measurements to estimates: every number that a claim judges is computed here.

A measurement is a `DataArray` with a dim `seed`, the sampling unit: a seed that is left out is
left out of all cells at once, so that cells which share random numbers are compared in pairs.
Smooth estimates carry a jackknife-t interval, rates a Wilson interval; at least three seeds.
What cannot be estimated (no crossing, a diverged cell, the logarithm of a loss that is not
positive) has NaN bounds, which leave a claim undecided. Wrong input is an `InputError`.
"""

from provingground.stats.crossings import Boundary, phase_boundary, threshold
from provingground.stats.estimate import UNDECIDED, Estimate, Everywhere
from provingground.stats.jackknife import LEVEL, jackknife, means_without
from provingground.stats.laws import Law, linear_law, power_law
from provingground.stats.means import mean, median, paired_difference, paired_ratio, plateau, share
from provingground.stats.order import (
    agreement,
    changes,
    everywhere,
    monotone,
    ordering,
    rank_correlation,
    worst,
)
from provingground.stats.times import first, hitting_time, last

__all__ = [
    "LEVEL",
    "UNDECIDED",
    "Boundary",
    "Estimate",
    "Everywhere",
    "Law",
    "agreement",
    "changes",
    "everywhere",
    "first",
    "hitting_time",
    "jackknife",
    "last",
    "linear_law",
    "mean",
    "means_without",
    "median",
    "monotone",
    "ordering",
    "paired_difference",
    "paired_ratio",
    "phase_boundary",
    "plateau",
    "power_law",
    "rank_correlation",
    "share",
    "threshold",
    "worst",
]
