"""From an experiment to cells: what is to be computed.

A cell is (simulator, precision, Config, seed, data); see `identity` for what makes two the same.
"""

import itertools
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from provingground.errors import InputError, unknown
from provingground.identity import sha
from provingground.study import Cases, Experiment, Extra, Par, Scale, Study, pars, sizes, traced

ASK_ABOVE, REFUSE_ABOVE = 10**6, 10**8
RESERVED = ("simulator", "precision")


class Program(NamedTuple):
    """What cells must have in common to share one compiled program."""

    simulator: str
    precision: str
    data: str
    shape: tuple[tuple[str, Any], ...]
    sizes: tuple[tuple[str, int], ...]

    def digest(self) -> str:
        return sha(list(self))


class Point(NamedTuple):
    """One point of the grid: a cell but for its seed."""

    program: Program
    config: Any


class Group(NamedTuple):
    """Points that share a program: their numbers in the grid, and their traced values."""

    program: Program
    config: Any  # of the first point; it has the structure of all
    points: NDArray[np.int32]
    values: NDArray[np.float64]  # (points, traced parameters)

    def configs(self, rows: Any) -> Any:
        """The Configs of some points as one Config of arrays."""
        leaves, structure = jax.tree.flatten(self.config)
        kinds = (
            type(v)
            if isinstance(v, bool)
            else np.int32
            if isinstance(v, int)
            else self.program.precision
            for v in leaves
        )
        columns = self.values[rows].T
        return structure.unflatten([c.astype(k) for c, k in zip(columns, kinds, strict=True)])


class Axis(NamedTuple):
    """One dimension of the resulting Dataset. `settings` are those of each of its points."""

    name: str
    labels: Sequence[Any]
    settings: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Sweep:
    """All the cells of one experiment, as a product of axes and seeds."""

    study: Study
    experiment: Experiment
    scale: Scale
    axes: tuple[Axis, ...]
    fixed: Mapping[str, Any]
    seeds: tuple[int, ...]
    table: Mapping[str, Par]  # every parameter and extra axis that may be set

    @property
    def cells(self) -> int:
        return math.prod(self.shape) * len(self.seeds)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(a.labels) for a in self.axes)

    def points(self) -> Iterator[Point]:
        """The points in grid order. Neighbours along the last axis stay together."""
        return map(self._point, itertools.product(*map(range, self.shape)))

    def groups(self) -> list["Group"]:
        """The points by program, as arrays: a Config lives no longer than it takes to read it."""
        found: dict[Program, tuple[Any, array[int], array[float]]] = {}
        for number, (program, config) in enumerate(self.points()):
            if program not in found:
                found[program] = config, array("i"), array("d")
            _, numbers, values = found[program]
            numbers.append(number)
            values.extend(getattr(config, name) for name in traced(config))
        return [
            Group(program, config, np.array(numbers), np.array(values).reshape(len(numbers), -1))
            for program, (config, numbers, values) in found.items()
        ]

    def _point(self, index: tuple[int, ...]) -> Point:
        settings: dict[str, Any] = dict(self.fixed)
        for axis, i in zip(self.axes, index, strict=True):
            settings |= axis.settings[i]
        if self.experiment.derive is not None:
            settings |= self.experiment.derive(settings)
        name, simulator = self.study.simulator(
            settings.pop("simulator", "") or self.experiment.simulator
        )
        precision = settings.pop("precision", simulator.precision)
        table = pars(simulator.config)
        cfg = simulator.config(**{k: v for k, v in settings.items() if k in table})
        shape = tuple((n, getattr(cfg, n)) for n, p in table.items() if not p.traced)
        return Point(Program(name, precision, self.experiment.data, shape, sizes(cfg)), cfg)


# ------------------------------------------------------------------------------ planning


def plan(
    study: Study,
    experiment: Experiment,
    scale: Scale = "quick",
    overrides: Mapping[str, Any] | None = None,
    seeds: int | Sequence[int] | None = None,
    *,
    yes: bool = False,
) -> Sweep:
    """The cells of an experiment at a scale, with some settings replaced or axes added.

    Everything is checked here, before any work: names, ranges, types and the number of cells.
    """
    if scale == "quick" and experiment.paper_only:
        raise InputError(f"{study.name}/{experiment.name} exists at scale 'paper' only")
    settings = experiment.settings(scale)
    table = _all_pars(study, experiment, settings)
    for name, given in settings.items():
        if isinstance(given, Extra):
            table[name] = Par(name, float, None, given.symbol, given.says)
            settings[name] = given.values
    for name, given in (overrides or {}).items():
        if name not in table and name not in settings:
            raise unknown("parameter", name, table)
        given = given.tolist() if isinstance(given, np.ndarray) else given
        if isinstance(settings.get(name), Cases):
            given = _some_cases(name, settings[name], given)
        elif _is_list(settings.get(name)) and not _is_list(given):
            given = [given]  # an axis stays an axis, so that claims and figures find it
        elif name in settings and settings[name] == given:
            continue
        for axis in (a for a in settings.values() if isinstance(a, Cases)):
            if any(name in chosen for chosen in axis.settings.values()):
                raise InputError(f"{name} is set by the cases of this experiment; choose a case")
        settings[name] = given

    for name, given in settings.items():
        named = (
            [n for s in given.settings.values() for n in s] if isinstance(given, Cases) else [name]
        )
        for n in named:
            if n not in table and n not in RESERVED:
                raise unknown("parameter", n, table)
    count = experiment.seeds_at(scale) if seeds is None else seeds
    lengths = [
        len(s.settings if isinstance(s, Cases) else s) for s in map(_sized, settings.values())
    ]
    total = math.prod(lengths) * (len(count) if isinstance(count, Sequence) else int(count))
    _check_total(total, yes)

    axes, fixed = [], {}
    for name, given in settings.items():
        if isinstance(given, Cases):
            axes.append(Axis(name, list(given.settings), list(given.settings.values())))
        elif _is_list(given):
            axes.append(_numeric_axis(table[name], given))
        else:
            fixed[name] = table[name].check(given)
    chosen = tuple(count) if isinstance(count, Sequence) else tuple(range(int(count)))
    if not chosen:
        raise InputError(f"seeds = {count} is not allowed: at least one seed is needed")
    whole = all(isinstance(s, int) and 0 <= s < 2**31 for s in chosen)
    if len(set(chosen)) < len(chosen) or not whole:
        raise InputError(f"seeds = {count} is not allowed: different whole numbers from 0 to 2^31")
    sweep = Sweep(study, experiment, scale, tuple(axes), fixed, chosen, table)
    sweep._point((0,) * len(axes))
    return sweep


def _all_pars(study: Study, experiment: Experiment, settings: Mapping[str, Any]) -> dict[str, Par]:
    """The parameters of every simulator that the experiment uses."""
    names = {experiment.simulator}
    for axis in settings.values():
        if isinstance(axis, Cases):
            names |= {s.get("simulator", experiment.simulator) for s in axis.settings.values()}
    table: dict[str, Par] = {}
    for name in sorted(names):
        table |= pars(study.simulator(name)[1].config)
    return table


def _is_list(given: Any) -> bool:
    return isinstance(given, (list, tuple, range)) or (
        isinstance(given, np.ndarray) and given.ndim > 0
    )


def _sized(given: Any) -> Any:
    return given if isinstance(given, Cases) or _is_list(given) else [given]


def _some_cases(name: str, axis: Cases, given: Any) -> Cases:
    wanted = [given] if isinstance(given, str) else list(given)
    for label in wanted:
        if label not in axis.settings:
            raise unknown(f"case of {name}", str(label), axis.settings)
    return Cases({label: axis.settings[label] for label in wanted})


def _numeric_axis(p: Par, given: Any) -> Axis:
    values = [p.check(v.item() if isinstance(v, np.generic) else v) for v in given]
    if not values:
        raise InputError(f"{p.name} has an empty list of values; it takes {p.allowed}")
    if len(set(values)) < len(values):
        raise InputError(f"{p.name} lists a value twice: {values}")
    return Axis(p.name, values, [{p.name: v} for v in values])


def _check_total(total: int, yes: bool) -> None:
    if total > REFUSE_ABOVE:
        raise InputError(f"{total:.3g} cells are more than the {REFUSE_ABOVE:.0e} allowed")
    if total > ASK_ABOVE and not yes:
        raise InputError(f"{total:.3g} cells: say yes (--yes, or yes=True) to run that many")


def parse_values(p: Par, text: str, yes: bool = False) -> Any:
    """Reads `v`, `v1,v2,...`, `lo:hi:n` (even spacing) or `lo:hi:nlog` (even in the logarithm)."""
    if ":" not in text:
        values = [_parse_one(p, t) for t in text.split(",") if t.strip()]
        if not values:
            raise InputError(f"{p.name} has an empty list of values; it takes {p.allowed}")
        return values if "," in text else values[0]
    try:
        low, high, count = text.split(":")
        log = count.endswith("log")
        n = int(count.removesuffix("log"))
        ends = float(low), float(high)
    except ValueError:
        raise InputError(
            f"{p.name}={text} is not understood: write v, v1,v2,..., lo:hi:n or lo:hi:nlog"
        ) from None
    _check_total(n, yes)
    for end in ends:
        p.check(end if p.type is float or not math.isfinite(end) else round(end))
    if n < 1 or (log and min(ends) <= 0):
        raise InputError(f"{p.name}={text} needs n >= 1, and positive ends for log spacing")
    spaced = np.geomspace(*ends, n) if log else np.linspace(*ends, n)
    return list(dict.fromkeys(round(v) if p.type is int else float(v) for v in spaced))


def _parse_one(p: Par, text: str) -> Any:
    text = text.strip()
    if p.type is bool:
        truth = {"true": True, "false": False, "1": True, "0": False}
        return p.check(truth.get(text.lower(), text))
    return p.check(text)
