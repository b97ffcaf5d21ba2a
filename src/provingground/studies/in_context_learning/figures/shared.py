"""Trainings and helpers that several rooms share."""

from collections.abc import Mapping
from typing import Any

from provingground import plot
from provingground.study import Trainings

from ..theory import crowding, steps_to_fit

NAMES = {"in": "in domain", "out": "out of domain"}


def trained_long(settings: Mapping[str, Any]) -> bool:
    """Whether the training lasts 1.4 times as long as it takes to fit, where that is known."""
    names, patterns = ("lr", "alpha", "beta", "delta", "width"), settings["n_relevant"]
    needed = steps_to_fit(**{n: settings[n] for n in names}, patterns=patterns)
    return bool(1.4 * needed <= settings["steps"] and crowding(settings["alpha"], patterns) <= 2)


# All figures of one trained model share its trainings. Not free: M_1, since patterns out of domain
# combine six, and m, since probes of neurons have its size. The paper has beta of at least 1, and
# from about 4.7 on trainings with a step size of 1 may not fit. Where delta is large or alpha below
# 0.3, irrelevant parts of K' = 5 count out of domain.
TRAINED = Trainings(
    grid={"test_samples": 4000},
    seeds=8,
    quick={"steps": 800, "test_samples": 1000, "seeds": 5},
    simulator="mechanism",
    domain={"alpha": (0.3, 1), "beta": (1, 4.5), "delta": (0.02, 0.12)},
    where=trained_long,
)


def from_here(ax: Any, x: float, words: str) -> None:
    """A vertical line at x, up to the top of the panel."""
    top = ax.get_ylim()[1]
    plot.theory_curve(ax, [x, x], [0, top], words)
    ax.set_ylim(0, top)
