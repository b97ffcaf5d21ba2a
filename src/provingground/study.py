"""The vocabulary of a study.

A study is a pure function and some declarations: the paper's parameters (`config`, `par`),
one training (`Simulator`), the figures (`Experiment`) and what they should show (`Claim`).
Everything else (command line, axis labels, tables, range checks, programs, files, verdicts)
is derived from these.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, dataclass_transform, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool
from scipy.special import stdtrit

from provingground import reprs
from provingground.errors import InputError, RunError, place_of, shortened, unknown
from provingground.reprs import shown

LARGEST_WHOLE = 2**31 - 1  # what whole numbers of a program can hold
NUMPY = (np.generic, np.ndarray)
Scale = Literal["quick", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
T = TypeVar("T")

# --------------------------------------------------------------------------- parameters


@dataclass(frozen=True)
class Par:
    """One parameter of a paper, declared once: option, help, axis label, table row, range."""

    name: str
    type: type
    default: Any
    symbol: str
    says: str
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] | None = None
    value: bool = False
    pad: int | None = None

    @property
    def traced(self) -> bool:
        """Whether values share a compiled program (a value) or compile anew (a shape)."""
        return self.value or self.type is float

    @property
    def label(self) -> str:
        """The axis label: the words and the paper's letter."""
        return f"{self.says}, ${self.symbol}$"

    @property
    def allowed(self) -> str:
        """The range in words."""
        if self.choices:
            return "one of " + ", ".join(map(str, self.choices))
        kind = {int: "whole numbers", float: "numbers", bool: "true or false"}.get(
            self.type, "text"
        )
        low = "" if self.low is None else f" from {self.low:g}"
        high = "" if self.high is None else f" to {self.high:g}"
        return kind + low + high

    def check(self, given: Any) -> Any:
        """`given` as this parameter's type, or an `InputError` that says what is allowed."""
        known = given.item() if isinstance(given, NUMPY) and given.size == 1 else given
        if self.type is float and isinstance(known, int) and not isinstance(known, bool):
            known = float(known) if abs(known) < 2**1000 else math.inf
        elif self.type is int and isinstance(known, float) and known.is_integer():
            known = int(known)
        if not isinstance(known, self.type) or (self.type is not bool and isinstance(known, bool)):
            raise self.wrong(given)
        if self.type is int and abs(known) > LARGEST_WHOLE:
            raise self.wrong(given, f"whole numbers of at most {LARGEST_WHOLE}")
        if (
            (self.type is float and not math.isfinite(known))
            or (self.low is not None and known < self.low)
            or (self.high is not None and known > self.high)
            or (self.choices is not None and known not in self.choices)
        ):
            raise self.wrong(given)
        return known

    def wrong(self, given: Any, allowed: str = "") -> InputError:
        """The error that says that a value is not allowed, and what is."""
        return InputError(
            f"{self.name} = {shortened(given)} is not allowed: {self.name} ({self.says}) takes "
            f"{allowed or self.allowed}."
        )


def par(
    default: Any,
    symbol: str,
    says: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] | None = None,
    value: bool = False,
    pad: int | None = None,
) -> Any:
    """Declares a parameter: its default, the paper's letter (LaTeX), what it is, its range.

    A `float` is a *value*: traced, so that any number of values share one compiled program.
    Every other type is a *shape*: each value compiles anew, unless it is an `int` declared
    `value=True` with a `pad`: then arrays are laid out for `size(cfg, name)` items and
    `mask(cfg, name)` says which of them exist.
    """
    return field(
        default=default,
        metadata=dict(
            symbol=symbol, says=says, low=low, high=high, choices=choices, value=value, pad=pad
        ),
    )


@dataclass_transform(kw_only_default=True, frozen_default=True)
def config(cls: type[T]) -> type[T]:
    """Makes a class of `par` declarations a frozen, range-checked record and a jax pytree.

    Values are the pytree's leaves; shapes (and the padded sizes of counts) its structure.
    """

    def __post_init__(self):
        for name, p in table.items():
            object.__setattr__(self, name, p.check(getattr(self, name)))
        object.__setattr__(self, "_sizes", ())

    cls.__post_init__ = __post_init__  # pyright: ignore
    made = dataclass(frozen=True, kw_only=True)(cls)
    table = {
        f.name: Par(name=f.name, type=f.type, default=f.default, **f.metadata)  # pyright: ignore
        for f in dataclasses.fields(made)  # pyright: ignore
    }
    leaves = tuple(n for n, p in table.items() if p.traced)
    fixed = tuple(n for n in table if n not in leaves)

    def flatten(cfg):
        shapes = tuple(getattr(cfg, n) for n in fixed)
        return [getattr(cfg, n) for n in leaves], (shapes, sizes(cfg))

    def unflatten(aux, children):
        cfg = object.__new__(made)
        for name, v in (*zip(leaves, children, strict=True), *zip(fixed, aux[0], strict=True)):
            object.__setattr__(cfg, name, v)
        object.__setattr__(cfg, "_sizes", aux[1])
        return cfg

    made.pars, made._traced = table, leaves  # pyright: ignore
    made._counts = tuple((n, p.pad) for n, p in table.items() if p.pad)  # pyright: ignore
    jax.tree_util.register_pytree_node(made, flatten, unflatten)
    return made


def pars(cfg: Any) -> dict[str, Par]:
    """The parameters of a Config (class or record), by name, in the order of declaration."""
    return cfg.pars


def traced(cfg: Any) -> tuple[str, ...]:
    """The names of the parameters of a Config whose values share a compiled program."""
    return cfg._traced


def padded(count: int, pad: int) -> int:
    """The size laid out for `count` items: a multiple of `pad`, coarser for large counts.

    >>> [padded(n, 4) for n in (1, 4, 5, 20, 33, 1000)]
    [4, 4, 8, 20, 40, 1024]
    """
    step = max(pad, 1 << max(int(count).bit_length() - 3, 0))
    return -(-int(count) // step) * step


def sizes(cfg: Any) -> tuple[tuple[str, int], ...]:
    """The padded size of every count: given once a Config is traced, else from its values."""
    return cfg._sizes or tuple((n, padded(getattr(cfg, n), pad)) for n, pad in cfg._counts)


def size(cfg: Any, name: str) -> int:
    """How many items are laid out for the count `name`: static, at least the count itself."""
    return dict(cfg._sizes).get(name) or int(getattr(cfg, name))


def mask(cfg: Any, name: str) -> Bool[Array, "size"]:
    """Which of the `size(cfg, name)` items of the count `name` exist."""
    return jnp.arange(size(cfg, name), dtype=jnp.int32) < getattr(cfg, name)


def probe(says: str, symbol: str = "") -> Any:
    """Describes a field of a Probes module; the words become the Dataset's `long_name`."""
    return eqx.field(metadata=dict(says=says, symbol=symbol))


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
    """What a theory says about one Config: conditions, and predictions by name with their words."""

    conditions: tuple[Condition, ...]
    values: Mapping[str, float]
    says: Mapping[str, str] = MappingProxyType({})


@shown(reprs.conditions)
class Conditions(list[Condition]):
    """Conditions, which show themselves as a table."""


# --------------------------------------------------------------------------- estimates


@shown(reprs.estimate, line=str)
class Estimate(NamedTuple):
    """The one uncertain number: a value and its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


Decision = Literal["holds", "fails", "unknown"]


@dataclass(frozen=True)
class Claim:
    """A statement of a paper (or of ours) about one Dataset, with the bound that decides it.

    `measure` maps the experiment's Dataset to an `Estimate`. The claim holds when the whole
    interval lies `within` the bounds, fails when all of it lies outside, else it is unknown.
    """

    name: str
    says: str
    measure: Callable[[xr.Dataset], Estimate] = field(repr=False)
    within: tuple[float, float]
    source: str
    expected: Literal["holds", "fails"] = "holds"
    note: str = ""
    scale: Scale | None = None

    def __post_init__(self) -> None:
        if self.expected == "fails" and not self.note:
            raise InputError(f"claim '{self.name}' is expected to fail and needs a note why")


@shown(reprs.verdict, line=reprs.verdict_line)
@dataclass(frozen=True)
class Verdict:
    """What became of a claim, ready for a table, a report or a JSON record."""

    study: str
    experiment: str
    claim: str
    source: str
    says: str
    estimate: Estimate
    within: tuple[float, float]
    verdict: Decision
    expected: str
    headline: bool
    cells: int
    diverged: int
    seeds: int
    note: str = ""

    @property
    def surprise(self) -> bool:
        """A decided verdict that differs from what was expected."""
        return self.verdict != "unknown" and self.verdict != self.expected

    @property
    def trouble(self) -> bool:
        """Whether a check must not pass: a surprise, or a headline claim left undecided."""
        return self.surprise or (self.headline and self.verdict == "unknown")

    @property
    def seeds_needed(self) -> int | None:
        """About how many seeds would decide the claim; None if no number would."""
        return seeds_needed(self.estimate, self.within, self.seeds)


@shown(reprs.verdicts)
class Verdicts(list[Verdict]):
    """Verdicts, which show themselves as a table."""


def decide(estimate: Estimate, within: tuple[float, float]) -> Decision:
    """Compares an interval with the bounds of a claim."""
    low, high = within
    if not (math.isfinite(estimate.low) or math.isfinite(estimate.high)):
        return "unknown"
    if low <= estimate.low and estimate.high <= high:
        return "holds"
    if estimate.high < low or estimate.low > high:
        return "fails"
    return "unknown"


def judge(claim: Claim, ds: xr.Dataset, headline: bool = False) -> Verdict:
    """The verdict on a claim. Missing or diverged cells leave it unknown, and say so."""
    cells, diverged, missing = (int(ds.attrs[k]) for k in ("cells", "diverged", "missing"))
    estimate, note = Estimate(math.nan, math.nan, math.nan), claim.note
    if missing:
        note = f"{missing} of {cells} cells are missing. {note}"
    else:
        try:
            estimate = claim.measure(ds)
        except (KeyError, ValueError, IndexError) as error:  # such as an axis that was left out
            note = f"could not be measured ({type(error).__name__}: {error}). {note}"
        except Exception as error:
            where = f"{ds.attrs['study']}/{ds.attrs['experiment']}"
            raise RunError(
                f"the claim {claim.name} of {where} cannot be measured: "
                f"{type(error).__name__}: {error}{place_of(error)}"
            ) from error
        if diverged:
            note = f"{diverged} of {cells} cells diverged. {note}"
    return Verdict(
        study=ds.attrs["study"],
        experiment=ds.attrs["experiment"],
        claim=claim.name,
        source=claim.source,
        says=claim.says,
        estimate=estimate,
        within=claim.within,
        verdict="unknown" if missing or diverged else decide(estimate, claim.within),
        expected=claim.expected,
        headline=headline,
        cells=cells,
        diverged=diverged,
        seeds=int(ds.sizes["seed"]),
        note=note.strip(),
    )


def seeds_needed(estimate: Estimate, within: tuple[float, float], seeds: int) -> int | None:
    """Seeds at which a jackknife-t interval around the same value would clear the bounds.

    The half-width shrinks like t(n-1) / sqrt(n); the value is taken to stay where it is.
    """
    value, low, high = estimate
    gap = min(abs(value - b) for b in within)
    half = (high - low) / 2
    if seeds < 2 or not (gap > 0 and math.isfinite(half)):
        return None

    def width(n: int) -> float:
        return float(stdtrit(n - 1, 0.975)) / math.sqrt(n)

    for n in range(3, 100_000) if half > 0 else ():
        if half * width(n) / width(seeds) < gap:
            return n
        if n > 1000 and half * 1.96 / math.sqrt(100_000) / width(seeds) > gap:
            return None
    return seeds


# --------------------------------------------------------------------------- experiments


class Cases(NamedTuple):
    """A labelled axis: each label stands for some settings."""

    settings: Mapping[str, Mapping[str, Any]]


def cases(settings: Mapping[str, Mapping[str, Any]]) -> Cases:
    """An axis of a grid whose points are labelled settings, such as variants of a network.

    Beside parameters a setting may name the `simulator` and its `precision`.
    """
    return Cases(dict(settings))


class Extra(NamedTuple):
    """An axis that is not itself a parameter."""

    values: list[float]
    symbol: str
    says: str


def axis(values: Any, symbol: str, says: str) -> Extra:
    """An axis of a grid in some other variable, which the experiment's `derive` turns into
    parameters; for instance a ratio that fixes one parameter given the others."""
    return Extra([float(v) for v in values], symbol, says)


@dataclass(frozen=True)
class Simulator:
    """One way to get the probes: a whole training as a pure function of (cfg, key, data).

    With `host` it is not traced: NumPy or scikit-learn code, called with plain numbers, a cell at
    a time. Its code is its identity, so it reads no files, clock or environment.

    Keyword-only arguments of `simulate` with a function as default are *parts* that a run may
    replace. `changes` names those that were, and the probes that were added (see `extend`).
    """

    config: type
    simulate: Callable[..., Any]
    probes: type
    precision: Literal["float32", "float64"] = "float32"
    says: str = ""
    host: bool = False
    changes: str = ""


class Refine(NamedTuple):
    """Runs only what is needed to see where the seed-mean of a probe crosses a level along an
    axis (see `refine`); the other cells of the grid stay NaN and are counted as skipped."""

    axis: str
    probe: str
    level: float


@shown(reprs.experiment)
@dataclass(frozen=True)
class Experiment:
    """One figure or table: a grid of trainings, the claims about it, and how it is drawn.

    `grid` maps parameters to one value (fixed), several (an axis) or `cases`. It is the
    `paper` scale; `quick` overrides it (and `seeds`) for the default scale. `derive` computes
    further settings of a point from those on the grid. With `refine` a boundary is traced by
    bisection along one axis instead of filling the grid.
    """

    name: str
    says: str
    grid: Mapping[str, Any]
    seeds: int
    claims: tuple[Claim, ...]
    figure: Callable[[xr.Dataset], Any]
    quick: Mapping[str, Any] = field(default_factory=dict)
    derive: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None
    simulator: str = ""
    data: str = ""
    refine: Refine | None = None
    paper_only: bool = False

    def settings(self, scale: Scale) -> dict[str, Any]:
        """The grid at a scale, without `seeds`."""
        settings = dict(self.grid) | (dict(self.quick) if scale == "quick" else {})
        settings.pop("seeds", None)
        return settings

    def seeds_at(self, scale: Scale) -> int:
        return int(self.quick.get("seeds", self.seeds)) if scale == "quick" else self.seeds

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
