"""The vocabulary of a study.

A study is a pure function and some declarations: the paper's parameters and what one training
reports (`config`), the `Simulator`s, what is run (`Trainings`) and what is shown of it
(`Experiment`, with its claims). Everything else (command line, axis labels, tables, range checks,
programs, files, verdicts) is derived from these.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any, Literal, NamedTuple

import xarray as xr

from provingground import reprs
from provingground.claims import SCALES, Claim, Scale
from provingground.errors import InputError, unknown
from provingground.reprs import shown

__all__ = [
    "SCALES",
    "Cases",
    "Condition",
    "Conditions",
    "Experiment",
    "Points",
    "Prediction",
    "Refine",
    "Scale",
    "Simulator",
    "Study",
    "Trainings",
    "Values",
    "axis",
    "cases",
    "points",
    "simulator",
]

# --------------------------------------------------------------------------- theory


@shown(reprs.condition, line=reprs.condition_line)
class Condition(NamedTuple):
    """One inequality of a theorem, with both sides as numbers."""

    name: str
    left: float
    relation: Literal["<=", ">=", "="]
    right: float
    says: str = ""

    @property
    def margin(self) -> float:
        """How many times over the condition is met (below 1: violated by that factor)."""
        if self.relation == "=":
            return min(self.left, self.right) / (max(self.left, self.right) or 1)
        small, large = (self.left, self.right) if self.relation == "<=" else (self.right, self.left)
        return math.inf if small <= 0 else large / small

    @property
    def satisfied(self) -> bool:
        if self.relation == "=":
            return math.isclose(self.left, self.right, rel_tol=1e-6)
        return self.left <= self.right if self.relation == "<=" else self.left >= self.right


@shown(reprs.prediction)
class Prediction(NamedTuple):
    """What a theory says about one Config: conditions, and predictions by name with their words.

    `vacuous` names those that say nothing here, such as a bound on a rate that exceeds 1.
    """

    conditions: tuple[Condition, ...]
    values: Mapping[str, float]
    says: Mapping[str, str] = MappingProxyType({})
    vacuous: tuple[str, ...] = ()


@shown(reprs.conditions)
class Conditions(list[Condition]):
    """Conditions, which show themselves as a table."""


# --------------------------------------------------------------------------- experiments


class Cases(NamedTuple):
    """A labelled axis: each label stands for some settings."""

    settings: Mapping[str, Mapping[str, Any]]


def cases(settings: Mapping[str, Mapping[str, Any]]) -> Cases:
    """An axis of a grid whose points are labelled settings, such as variants of a network.

    Beside parameters a setting may name the `simulator` and its `precision`.
    """
    return Cases(dict(settings))


class Points(NamedTuple):
    """An axis of settings without labels: a design."""

    settings: tuple[Mapping[str, Any], ...]


def points(settings: Sequence[Mapping[str, Any]]) -> Points:
    """An axis of a grid whose points are settings of several parameters at once: a design.

    The Dataset numbers them along it, and has every parameter along it too.
    """
    return Points(tuple(dict(each) for each in settings))


class Values(NamedTuple):
    """Values of a parameter, or of another variable, that set further parameters."""

    values: Any
    symbol: str = ""
    says: str = ""
    sets: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None


def axis(
    values: Any,
    symbol: str = "",
    says: str = "",
    *,
    sets: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
) -> Values:
    """Values of an axis (or one value), with the settings that follow from them.

    `sets` maps the settings of a point to those that it derives; they cannot be set otherwise. An
    axis that is no parameter has a `symbol` and says what it is; for instance a ratio that fixes
    one parameter given the others. At the quick scale a list of values keeps the rest.
    """
    return Values(values, symbol, says, sets)


@dataclass(frozen=True)
class Simulator:
    """One way to get the probes: a whole training as a pure function of (cfg, key, data).

    With `host` it is not traced: NumPy or scikit-learn code, called with plain numbers, a cell at
    a time. Its code is its identity, so it reads no files, clock or environment. With `cpu` it runs
    on the processor where there is a GPU too: a recursion of a few numbers, for so many steps that
    starting a kernel for each would take longer.

    Keyword-only arguments of `simulate` with a function as default are *parts* that a run may
    replace. `changes` names those that were, and the probes that were added (see `extend`).
    """

    config: type
    simulate: Callable[..., Any]
    probes: type
    precision: Literal["float32", "float64"] = "float32"
    says: str = ""
    host: bool = False
    cpu: bool = False
    changes: str = ""


def simulator(
    module: ModuleType,
    *,
    precision: Literal["float32", "float64"] = "float32",
    says: str = "",
    host: bool = False,
    cpu: bool = False,
) -> Simulator:
    """The simulator of a module: its `Config`, `Probes` and `simulate`."""
    return Simulator(module.Config, module.simulate, module.Probes, precision, says, host, cpu)


class Refine(NamedTuple):
    """Runs only what is needed to see where the seed-mean of a probe crosses a level along an
    axis (see `refine`); the other cells of the grid stay NaN and are counted as skipped."""

    axis: str
    probe: str
    level: float


@dataclass(frozen=True, eq=False)
class Trainings:
    """What is run: a grid of settings times seeds. Several experiments may share it.

    `grid` maps parameters to one value (fixed), several (an axis), an `axis` that sets others,
    `cases` or `points`. It is the `paper` scale; `quick` overrides it (and `seeds`) for the default
    scale. With `refine` a boundary is traced by bisection along one axis instead of filling the
    grid.

    `domain` holds the ranges in which the laws read off these trainings are meant to hold: a pair
    (low, high) or a list of choices for each parameter, and maybe `where`, a function of the
    settings that says whether they belong to it.
    """

    grid: Mapping[str, Any]
    seeds: int
    quick: Mapping[str, Any] = field(default_factory=dict)
    simulator: str = ""
    data: str = ""
    refine: Refine | None = None
    paper_only: bool = False
    domain: Mapping[str, Any] = field(default_factory=dict)
    where: Callable[[Mapping[str, Any]], bool] | None = None

    def settings(self, scale: Scale) -> dict[str, Any]:
        """The grid at a scale, without `seeds`."""
        settings = dict(self.grid)
        for name, given in self.quick.items() if scale == "quick" else ():
            whole = settings.get(name)
            if isinstance(whole, Values) and not isinstance(given, Values):
                given = whole._replace(values=given)
            settings[name] = given
        settings.pop("seeds", None)
        return settings

    def seeds_at(self, scale: Scale) -> int:
        return int(self.quick.get("seeds", self.seeds)) if scale == "quick" else self.seeds


@shown(reprs.experiment)
@dataclass(frozen=True)
class Experiment:
    """One figure or table: what is shown of some trainings, the claims about it, and how it is
    drawn."""

    name: str
    says: str
    trainings: Trainings
    claims: tuple[Claim, ...]
    figure: Callable[[xr.Dataset], Any]

    def claims_at(self, scale: Scale) -> tuple[Claim, ...]:
        return tuple(c for c in self.claims if c.scale in (None, scale))


@shown(reprs.study)
@dataclass(frozen=True)
class Study:
    """A paper made runnable. The first experiment is the headline.

    `statement` says what the paper states, in one to three sentences of plain words and $LaTeX$.
    `bibtex` holds the paper's entry; without it the `cite` is a note.
    """

    name: str
    title: str
    cite: str
    simulators: Mapping[str, Simulator]
    theory: Callable[[Any], Prediction]
    experiments: tuple[Experiment, ...]
    data: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    statement: str = ""
    bibtex: str = ""

    def __post_init__(self) -> None:
        for kind, names in {
            "study": [self.name],
            "simulator": list(self.simulators),
            "experiment": [e.name for e in self.experiments],
            "claim": [c.name for e in self.experiments for c in e.claims],
        }.items():
            for name in names:
                if not re.fullmatch(r"[a-z0-9_]+", name):
                    raise InputError(f"{kind} name '{name}' must match [a-z0-9_]+")

    def experiment(self, name: str) -> Experiment:
        for e in self.experiments:
            if e.name == name:
                return e
        raise unknown("experiment", name, [e.name for e in self.experiments])

    def simulator(self, name: str = "") -> tuple[str, Simulator]:
        """A simulator by name; the first one by default."""
        name = name or next(iter(self.simulators))
        if name not in self.simulators:
            raise unknown("simulator", name, self.simulators)
        return name, self.simulators[name]
