"""The paper's parameters and what one training reports: all that a simulator needs to declare.

A `Config` is a class of `par` declarations, `Probes` a module whose fields are `probe`s.
"""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from provingground.errors import InputError, shortened

LARGEST_WHOLE = 2**31 - 1  # what whole numbers of a program can hold
NUMPY = (np.generic, np.ndarray)
T = TypeVar("T")


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


def probe(says: str, symbol: str = "", *, labels: tuple[str, ...] = ()) -> Any:
    """Describes a field of a Probes module; the words become the Dataset's `long_name`.

    A probe that numbers its own dim may have `labels`: the Dataset has them instead of the numbers.
    """
    return eqx.field(metadata=dict(says=says, symbol=symbol, labels=labels))
