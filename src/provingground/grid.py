"""From an experiment to cells: what is to be computed.

A cell is (simulator, precision, Config, seed, data); see `identity` for what makes two the same.
"""

import itertools
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from provingground.config import Par, pars, sizes, traced
from provingground.errors import InputError, shortened, unknown
from provingground.identity import sha
from provingground.study import SCALES, Cases, Experiment, Points, Scale, Study, Trainings, Values

ASK_ABOVE, REFUSE_ABOVE = 10**6, 10**8
RESERVED = ("simulator", "precision")
Sets = Callable[[dict[str, Any]], Mapping[str, Any]]


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
    sets: tuple[Sets, ...] = ()  # what derives further settings from those of a point
    given: frozenset[str] = frozenset()  # which the user set to something of their own

    @property
    def trainings(self) -> Trainings:
        return self.experiment.trainings

    @property
    def cells(self) -> int:
        return math.prod(self.shape) * len(self.seeds)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(a.labels) for a in self.axes)

    def points(self) -> Iterator[Point]:
        """The points in grid order. Neighbours along the last axis stay together."""
        return map(self.point, itertools.product(*map(range, self.shape)))

    def groups(self) -> list["Group"]:
        """The points by program, as arrays: a Config lives no longer than it takes to read it."""
        found: dict[Program, tuple[Any, array[int], array[float]]] = {}
        for number, (program, config) in enumerate(self.points()):
            if program not in found:
                found[program] = config, array("i"), array("d")
            _, numbers, values = found[program]
            numbers.append(number)
            values.extend(getattr(config, name) for name in traced(config))
        groups = [
            Group(program, config, np.array(numbers), np.array(values).reshape(len(numbers), -1))
            for program, (config, numbers, values) in found.items()
        ]
        for group in groups:
            _must_be_finite(group)
        return groups

    def point(self, index: tuple[int, ...]) -> Point:
        """The point at some places on the axes."""
        settings: dict[str, Any] = dict(self.fixed)
        for axis, i in zip(self.axes, index, strict=True):
            settings |= axis.settings[i]
        for sets in self.sets:
            settings |= self._derived(sets, settings)
        name, simulator = self.study.simulator(
            settings.pop("simulator", "") or self.trainings.simulator
        )
        precision = settings.pop("precision", simulator.precision)
        table = pars(simulator.config)
        cfg = simulator.config(**{k: v for k, v in settings.items() if k in table})
        shape = tuple((n, getattr(cfg, n)) for n, p in table.items() if not p.traced)
        return Point(Program(name, precision, self.trainings.data, shape, sizes(cfg)), cfg)

    def _derived(self, sets: Sets, settings: dict[str, Any]) -> Mapping[str, Any]:
        """The settings that follow from others, none of which the user may have set."""
        known = {name: p.default for name, p in self.table.items()} | settings
        derived = sets(known)
        for name in (n for n in derived if n in self.given):
            read = _Read(known)
            sets(read)
            others = [n for n in self.table if n in read.names and n not in derived]
            raise InputError(
                f"{name} cannot be set: {self.study.name}/{self.experiment.name} derives it from "
                f"{' and '.join(others) or 'the other settings'}; set "
                f"{'that' if len(others) == 1 else 'these'}"
            )
        return derived


class _Read(dict[str, Any]):
    """Settings that know which of them were looked at."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


def _must_be_finite(group: "Group") -> None:
    """Refuses values that the precision of a program cannot hold."""
    most = float(np.finfo(group.program.precision).max)
    where = np.argwhere(np.abs(group.values) > most)
    if len(where):
        row, column = where[0]
        p = pars(group.config)[traced(group.config)[column]]
        allowed = f"numbers from {-most if p.low is None else p.low:.4g} to {most:.4g}"
        precision = group.program.precision
        raise p.wrong(float(group.values[row, column]), f"{allowed} in {precision}")


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
    settings, table = declared(study, experiment, scale)
    whole = experiment.trainings.settings(scale).values()
    sets = tuple(v.sets for v in whole if isinstance(v, Values) and v.sets is not None)
    own: set[str] = set()
    for name, given in (overrides or {}).items():
        if isinstance(given, Points):
            settings = _along_points(name, given, settings, table)
            own |= {n for point in given.settings for n in point}
            continue
        if name not in table and name not in settings:
            raise unknown("parameter", name, (*table, *(n for n in settings if n not in table)))
        given = _listed(given)
        if isinstance(settings.get(name), Cases):
            settings[name] = _some_cases(name, settings[name], given)
            continue
        if isinstance(settings.get(name), Points):
            settings[name] = _some_points(settings[name], given)
            continue
        if name in settings and settings[name] == given:
            continue
        if name in settings and _is_list(settings[name]) and not _is_list(given):
            given = [given]  # an axis stays an axis, so that claims and figures find it
        for label, axis in settings.items():
            if any(name in chosen for chosen in _settings_on(axis)):
                raise InputError(
                    f"{name} is set by {label} in this experiment: choose from {label}"
                )
        settings[name] = given
        own.add(name)

    chosen = seeds_of(experiment.trainings.seeds_at(scale) if seeds is None else seeds)
    lengths = [
        len(s.settings if isinstance(s, (Cases, Points)) else s)
        for s in map(_sized, settings.values())
    ]
    check_total(math.prod(lengths) * len(chosen), yes)

    axes, fixed = [], {}
    for name, given in settings.items():
        if isinstance(given, Cases):
            axes.append(Axis(name, list(given.settings), list(given.settings.values())))
        elif isinstance(given, Points):
            checked = [{n: table[n].check(v) for n, v in each.items()} for each in given.settings]
            axes.append(Axis(name, range(len(checked)), checked))
        elif _is_list(given):
            axes.append(_numeric_axis(table[name], given))
        else:
            fixed[name] = table[name].check(given)
    if experiment.trainings.refine is not None:
        _must_be_in_order(axes, experiment.trainings.refine.axis)
    sweep = Sweep(
        study, experiment, scale, tuple(axes), fixed, tuple(chosen), table, sets, frozenset(own)
    )
    sweep.point((0,) * len(axes))
    return sweep


def declared(
    study: Study, experiment: Experiment, scale: Scale
) -> tuple[dict[str, Any], dict[str, Par]]:
    """What an experiment sets at a scale, and every parameter and axis that may be set."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if scale == "quick" and experiment.trainings.paper_only:
        raise InputError(
            f"{study.name}/{experiment.name} exists at scale 'paper' only; add --scale paper "
            "(in Python scale='paper')"
        )
    settings = experiment.trainings.settings(scale)
    table = _all_pars(study, experiment, settings)
    for name, given in settings.items():
        if isinstance(given, Values):
            if name not in table:
                table[name] = Par(name, float, None, given.symbol, given.says)
            given = given.values
        settings[name] = list(given) if isinstance(given, range) else _listed(given)
    for name, given in settings.items():
        several = isinstance(given, (Cases, Points))
        for n in [n for s in _settings_on(given) for n in s] if several else [name]:
            if n not in table and n not in RESERVED:
                raise unknown("parameter", n, table)
    return settings, table


def seeds_of(given: Any) -> Sequence[int]:
    """Seeds from their number or a list of them; long ranges are not listed."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if _is_whole(given):
        if given < 1:
            raise InputError(f"seeds = {given} is not allowed: at least one seed is needed")
        check_total(int(given), yes=True)
        return range(int(given))
    if not isinstance(given, (list, tuple, range)):
        raise wrong_seeds(given)
    if not given:
        raise InputError(f"seeds = {given} is not allowed: at least one seed is needed")
    ends = (given[0], given[-1]) if isinstance(given, range) else given
    if not all(_is_whole(s) and 0 <= s < 2**31 for s in ends):
        raise wrong_seeds(given)
    if not isinstance(given, range) and len(set(given)) < len(given):
        raise wrong_seeds(given)
    return given if isinstance(given, range) else [int(s) for s in given]


def wrong_seeds(given: Any) -> InputError:
    return InputError(
        f"seeds = {shortened(given)} is not allowed: their number, or a list of different whole "
        "numbers from 0 to 2^31"
    )


def _is_whole(given: Any) -> bool:
    return isinstance(given, (int, np.integer)) and not isinstance(given, bool)


def _must_be_in_order(axes: Sequence[Axis], name: str) -> None:
    """Refuses an axis along which no bisection can go."""
    for axis in (a for a in axes if a.name == name):
        labels = list(axis.labels)
        if labels not in (sorted(labels), sorted(labels, reverse=True)):
            raise InputError(
                f"{name} = {shortened(labels)} is not allowed: this experiment looks for a "
                "crossing along it, so its values have to be in order"
            )


def _all_pars(study: Study, experiment: Experiment, settings: Mapping[str, Any]) -> dict[str, Par]:
    """The parameters of every simulator that the experiment uses."""
    first = experiment.trainings.simulator
    names = {first}
    for axis in settings.values():
        names |= {s.get("simulator", first) for s in _settings_on(axis)}
    table: dict[str, Par] = {}
    for name in sorted(names):
        table |= pars(study.simulator(name)[1].config)
    return table


def _listed(given: Any) -> Any:
    """Arrays and tuples as lists, and everything else as it is; a range may be too long."""
    if hasattr(given, "__array__"):
        return np.asarray(given).tolist()
    plain = isinstance(given, tuple) and not isinstance(given, (Cases, Points))
    return list(given) if plain else given


def is_axis(given: Any) -> bool:
    """Whether a setting of `declared` is a dim of the Dataset."""
    return isinstance(given, (Cases, Points)) or _is_list(given)


def _is_list(given: Any) -> bool:
    return isinstance(given, (list, range))


def _sized(given: Any) -> Any:
    return given if is_axis(given) else [given]


def _some_cases(name: str, axis: Cases, given: Any) -> Cases:
    wanted = given if isinstance(given, list) else [given]
    for label in wanted:
        if not isinstance(label, str) or label not in axis.settings:
            raise unknown(f"case of {name}", label, axis.settings)
    if not wanted or len(set(wanted)) < len(wanted):
        raise InputError(f"{name} = {shortened(wanted)} is not allowed: different cases of it")
    return Cases({label: axis.settings[label] for label in wanted})


def _settings_on(given: Any) -> Iterable[Mapping[str, Any]]:
    """The settings of the points of an axis that names several parameters."""
    if isinstance(given, Cases):
        return given.settings.values()
    return given.settings if isinstance(given, Points) else ()


def _along_points(
    name: str, given: Points, settings: Mapping[str, Any], table: Mapping[str, Par]
) -> dict[str, Any]:
    """The settings with a design in place of all that it sets."""
    if name in table or name in settings:
        raise InputError(f"{name} is set here already: give the design another name")
    if not given.settings:
        raise InputError("a design needs at least one point")
    named = set(given.settings[0])
    for point in given.settings:
        for n in point:
            if n not in table:
                raise unknown("parameter", n, table)
        if set(point) != named:
            raise InputError("the points of a design set different parameters")
    for label, axis in settings.items():
        if taken := [n for chosen in _settings_on(axis) for n in chosen if n in named]:
            raise InputError(
                f"{taken[0]} is set by {label} in this experiment: choose from {label}"
            )
    return {name: given} | {n: v for n, v in settings.items() if n not in named}


def _some_points(axis: Points, given: Any) -> Points:
    wanted = given if isinstance(given, list) else [given]
    if not all(_is_whole(n) and 0 <= n < len(axis.settings) for n in wanted):
        raise InputError(f"points are numbered from 0 to {len(axis.settings) - 1}")
    return Points(tuple(axis.settings[n] for n in wanted))


def _numeric_axis(p: Par, given: Any) -> Axis:
    values = [p.check(v) for v in given]
    if not values:
        raise InputError(f"{p.name} has an empty list of values; it takes {p.allowed}")
    if len(set(values)) < len(values):
        raise InputError(f"{p.name} lists a value twice: {shortened(values)}")
    return Axis(p.name, values, [{p.name: v} for v in values])


def check_total(total: int, yes: bool) -> None:
    if total > REFUSE_ABOVE:
        many = f"{min(total, 10**100):.3g}"
        raise InputError(f"{many} cells are more than the {REFUSE_ABOVE:.0e} allowed")
    if total > ASK_ABOVE and not yes:
        raise InputError(f"{total:.3g} cells: say yes (--yes, or yes=True) to run that many")
