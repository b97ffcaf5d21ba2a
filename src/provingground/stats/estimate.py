"""The one uncertain number, and a table of them for a statement about several settings."""

import math
from collections.abc import Callable
from typing import NamedTuple

from provingground import reprs
from provingground.reprs import shown


@shown(reprs.estimate, line=str)
class Estimate(NamedTuple):
    """The one uncertain number: a value and its 95% interval.

    >>> print(-Estimate(2, 1, 4) / 2, Estimate(2, 1, 4).map(math.log2))
    -1 [-2, -0.5] 1 [0, 2]
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"

    def map(self, f: Callable[[float], float]) -> "Estimate":
        """A monotone function of it."""
        value, low, high = (float(f(end)) for end in self)
        return Estimate(value, min(low, high), max(low, high))

    def __neg__(self) -> "Estimate":
        return self.map(lambda end: -end)

    def __truediv__(self, number: float) -> "Estimate":
        """Divided by a number that is known; of two estimates take `paired_ratio`."""
        return self.map(lambda end: end / number)

    def __sub__(self, number: float) -> "Estimate":
        """Less a number that is known; of two estimates take `paired_difference`."""
        return self.map(lambda end: end - number)


UNDECIDED = Estimate(math.nan, math.nan, math.nan)


@shown(reprs.everywhere)
class Everywhere(NamedTuple):
    """Estimates of one quantity at several settings, for a statement about all of them.

    `each` has the interval of every one by itself, `joint` those that hold all together
    (Bonferroni). All of several settings lie inside a bound if each does: an intersection of tests
    needs no correction. That one of them lies outside needs the joint intervals: with 20 settings
    at the bound, one at a time would find a false one in two of five cases.
    """

    settings: tuple[str, ...]
    each: tuple[Estimate, ...]
    joint: tuple[Estimate, ...]
