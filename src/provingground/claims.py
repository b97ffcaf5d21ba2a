"""Claims: what is measured, the bound that decides it, and what would refute it.

A claim is its measure, in the room of its figure:

    @claim("Theorem 4.1", equals(-1 / 2, within=0.1), rivals={"N SNR": control("loss", product)})
    def boundary_exponent(ds):
        \"""the critical SNR falls with the sample size as N^(-1/2)\"""
        return boundary(ds).law.slope

The theory's value and the tolerance are two numbers. A rival is the Dataset as it would be if
something else were true: a claim that holds on it as well says nothing.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import xarray as xr

from provingground.errors import InputError, unknown
from provingground.stats import Estimate, Everywhere

Scale = Literal["quick", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
Kind = Literal["printed", "corrected", "own"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Whose = Literal["paper", "ours"]
Measure = Callable[[xr.Dataset], Estimate | Everywhere]
Altered = Callable[[xr.Dataset], xr.Dataset]

# ------------------------------------------------------------------------------- bounds


class Bound(NamedTuple):
    """Where a number must lie, and the value that the theory gives it, if it gives one."""

    low: float
    high: float
    theory: float | None = None


def below(most: float) -> Bound:
    """At most that."""
    return Bound(-math.inf, float(most))


def above(least: float) -> Bound:
    """At least that."""
    return Bound(float(least), math.inf)


def between(low: float, high: float) -> Bound:
    """From one end to the other."""
    if not low < high:
        raise InputError(f"a bound from {low:g} to {high:g} is empty")
    return Bound(float(low), float(high))


def equals(theory: float, *, within: float = math.nan, times: float = math.nan) -> Bound:
    """The theory's value, up to a difference (`within`) or a factor (`times`) that we allow.

    >>> equals(2, within=0.5), equals(2, times=4)
    (Bound(low=1.5, high=2.5, theory=2.0), Bound(low=0.5, high=8.0, theory=2.0))
    """
    if within > 0:
        return Bound(theory - within, theory + within, float(theory))
    if times > 1:
        low, high = sorted((theory / times, float(theory * times)))
        return Bound(low, high, float(theory))
    raise InputError("equals needs a tolerance: within=... above 0, or times=... above 1")


# ------------------------------------------------------------------------------- claims


@dataclass(frozen=True)
class Claim:
    """A statement of a paper (or of ours) about one Dataset, with the bound that decides it.

    `measure` maps the Dataset to an `Estimate`, or to those of several settings (`Everywhere`).
    The claim holds when the whole interval lies `within` the bounds, fails when all of it lies
    outside, else it is unknown. `theory` is the value that the theory gives; `bound` says whose
    the bounds are.

    A `printed` claim is the paper's statement as it stands, a `corrected` one what it should say,
    all others are our `own`. One that is expected to fail names the claims that explain it
    (`because`). `law` maps the Dataset to what it would be if the claim were exactly true; `rivals`
    to what it would be if something else were.
    """

    name: str
    says: str
    measure: Measure = field(repr=False)
    within: tuple[float, float]
    source: str
    theory: float | None = None
    kind: Kind = "printed"
    bound: Whose = "ours"
    expected: Literal["holds", "fails"] = "holds"
    because: tuple["Claim", ...] = field(default=(), repr=False)
    law: Altered | None = field(default=None, repr=False)
    rivals: Mapping[str, Altered] = field(default_factory=dict, repr=False)
    note: str = ""
    scale: Scale | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of claim", self.kind, KINDS)
        if self.bound not in (whose := get_args(Whose)):
            raise unknown("owner of a bound", self.bound, whose)
        if self.expected == "fails" and not (self.because or self.note):
            raise InputError(
                f"claim '{self.name}' is expected to fail and needs the claims that explain it "
                "(because=...), or a note why"
            )

    def __call__(self, ds: xr.Dataset) -> Estimate | Everywhere:
        return self.measure(ds)


def claim(
    source: str,
    bounds: Bound,
    *,
    kind: Kind = "printed",
    bound: Whose = "ours",
    expected: Literal["holds", "fails"] = "holds",
    because: Sequence[Claim] = (),
    law: Altered | None = None,
    rivals: Mapping[str, Altered] | None = None,
    note: str = "",
    scale: Scale | None = None,
    name: str = "",
    says: str = "",
) -> Callable[[Measure], Claim]:
    """Makes a measure a claim: its name and docstring become those of the claim.

    The first argument is where the paper says it. For claims made in a family, or a second bound
    on a measure, give `name` and `says`.
    """

    def made(measure: Measure) -> Claim:
        words = says or " ".join((inspect.getdoc(measure) or "").split("\n\n")[0].split())
        called = name or getattr(measure, "__name__", "")
        if not words:
            raise InputError(f"claim '{called}' says nothing: give its function a docstring")
        return Claim(
            name=called,
            says=words,
            measure=measure.measure if isinstance(measure, Claim) else measure,
            within=bounds[:2],
            source=source,
            theory=bounds.theory,
            kind=kind,
            bound=bound,
            expected=expected,
            because=tuple(because),
            law=law,
            rivals=dict(rivals or {}),
            note=note,
            scale=scale,
        )

    return made


# ------------------------------------------------------------------------------- rivals


def curve(probe: str, law: Callable[[xr.Dataset], Any], *, scaled: bool = False) -> Altered:
    """The Dataset whose `probe` has the mean over seeds that `law(ds)` says, and the same noise.

    Noise is relative where all means are positive, else it is added. `scaled` gives the law the
    constant that fits best (in logarithms): for claims about an exponent.
    """

    def altered(ds: xr.Dataset) -> xr.Dataset:
        y = ds[probe]
        mean = y.mean("seed")
        predicted = xr.zeros_like(mean) + law(ds)
        positive = bool((mean > 0).all()) and bool((predicted > 0).all())
        if scaled:
            predicted = predicted * np.exp(np.log(mean / predicted).mean())
        made = predicted * (y / mean) if positive else predicted + (y - mean)
        return ds.assign({probe: made.transpose(*y.dims).astype(y.dtype)})

    return altered


def control(probe: str, by: Callable[[xr.Dataset], xr.DataArray]) -> Altered:
    """The Dataset with the same values of `probe`, put in the order of another variable.

    The values of a setting (all seeds, and dims that the variable does not have) stay together.
    The setting with the k-th smallest `by(ds)` gets the values with the k-th smallest mean, or the
    k-th largest if the two are opposed.
    """

    def altered(ds: xr.Dataset) -> xr.Dataset:
        y, key = ds[probe], xr.DataArray(by(ds))
        cells = y.transpose(*key.dims, ...)
        shape = cells.shape
        values = cells.to_numpy().reshape(key.size, *shape[key.ndim :])
        means = values.reshape(key.size, -1).mean(axis=1)
        keys = key.to_numpy().ravel()
        order, places = np.argsort(means, kind="stable"), np.argsort(keys, kind="stable")
        ranks = np.stack([np.argsort(np.argsort(v, kind="stable")) for v in (means, keys)])
        if float(np.sum(np.diff(ranks[0][np.argsort(ranks[1])]))) < 0:
            order = order[::-1]
        moved = np.empty_like(values)
        moved[places] = values[order]
        return ds.assign({probe: cells.copy(data=moved.reshape(shape)).transpose(*y.dims)})

    return altered


def shuffle(axis: str, draw: int = 0) -> Altered:
    """The Dataset with its results moved among the places of an axis, none where it was."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        n = ds.sizes[axis]
        if n < 2:
            raise InputError(f"'{axis}' has one place; there is nothing to shuffle")
        cycle = np.random.default_rng(draw).permutation(n)
        order = np.empty(n, int)
        order[cycle] = np.roll(cycle, 1)
        return _moved(ds, axis, order)

    return altered


def exchange(axis: str, *pairs: tuple[Any, Any]) -> Altered:
    """The Dataset with the results at the labels of each pair in each other's place."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        labels = ds[axis].values.tolist()
        order = np.arange(len(labels))
        for pair in pairs:
            places = [labels.index(label) for label in pair]
            order[places] = order[places[::-1]]
        return _moved(ds, axis, order)

    return altered


def _moved(ds: xr.Dataset, axis: str, order: np.ndarray) -> xr.Dataset:
    """The Dataset with other results at the labels of an axis: at each place those of `order`."""
    along = {n: v.variable for n, v in ds.data_vars.items() if axis in v.dims}
    return ds.assign({n: v.isel({axis: order}) for n, v in along.items()})
