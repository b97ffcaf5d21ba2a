"""Settings drawn from the domain of a law: designs, and places off the slice it was found on."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from provingground import grid
from provingground.config import Par
from provingground.errors import InputError, unknown
from provingground.study import Experiment, Points, Scale, Study, points

TRIES = 10_000  # for points that a domain's `where` allows


def design(
    study: Study, experiment: Experiment, scale: Scale, number: int, draw: int, *, whole: bool
) -> Points:
    """Settings drawn from the domain of an experiment's laws.

    Numbers are log-uniform in their range (uniform where it reaches to zero), choices are equally
    likely. A setting that is drawn twice counts once, so a domain of few choices gives fewer. With
    `whole` all parameters of the domain are drawn; else those that the experiment
    sweeps stay its axes, so that claims find what they are fitted to.
    """
    trainings, where = experiment.trainings, f"{study.name}/{experiment.name}"
    if not trainings.domain:
        raise InputError(f"{where} declares no domain: there is nothing to draw settings from")
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 1:
        raise InputError(f"{number} settings cannot be drawn: at least one")
    if not isinstance(draw, (int, np.integer)) or isinstance(draw, bool) or draw < 0:
        raise InputError(f"draw = {draw} is not allowed: a whole number from 0")
    settings, table = grid.declared(study, experiment, scale)
    for name in trainings.domain:
        if name not in table:
            raise unknown(f"parameter in the domain of {where}:", name, table)
    swept = set() if whole else {n for n, given in settings.items() if isinstance(given, list)}
    free = {n: r for n, r in trainings.domain.items() if n not in swept}
    if not free:
        raise InputError(f"every parameter in the domain of {where} is one of its axes")
    fixed = {n: p.default for n, p in table.items()} | settings
    rng = np.random.default_rng(int(draw))

    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for _ in range(TRIES + 100 * int(number)):
        drawn = {n: _drawn(table[n], wide, rng) for n, wide in free.items()}
        if trainings.where is None or trainings.where({**fixed, **drawn}):
            found.setdefault(tuple(drawn.values()), drawn)
        if len(found) == number:
            return points(list(found.values()))
    if not found:
        raise InputError(f"the domain of {where} seems to be empty: no setting of {TRIES} is in it")
    return points(list(found.values()))


def _drawn(p: Par, wide: Any, rng: np.random.Generator) -> Any:
    """A value from a range (low, high) or a list of choices."""
    if isinstance(wide, list):
        return wide[int(rng.integers(len(wide)))]
    low, high = map(float, wide)
    if low > 0:
        value = math.exp(rng.uniform(math.log(low), math.log(high)))
    else:
        value = float(rng.uniform(low, high))
    return round(value) if p.type is int else float(f"{value:.6g}")


def covers(domain: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """Which of the settings lie outside the domain."""
    outside = []
    for name, wide in domain.items():
        given = settings.get(name)
        for value in given if isinstance(given, (list, range)) else [given]:
            if isinstance(wide, list):
                inside = value in wide
            else:
                inside = value is None or wide[0] <= value <= wide[1]
            if not inside and name not in outside:
                outside.append(name)
    return outside
