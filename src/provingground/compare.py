"""What changed between two results: two Datasets, or two records of verdicts (see `diff`)."""

import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from provingground.errors import InputError, shortened

if TYPE_CHECKING:
    import xarray as xr

ROUNDING = 1e-6  # numbers that differ by less of themselves are taken to be the same
STATEMENT = ("says", "source", "within", "expected")
INDENT, DEEP = " " * 4, " " * 9
EVERYTHING = ("verdict", *STATEMENT, "value", "low", "high", "cells", "diverged")


class Difference(NamedTuple):
    """What is to be said of two results; and whether a verdict changed, or a claim is missing."""

    lines: list[str]
    changed: bool


def difference(a: Path, b: Path, every: bool = False) -> Difference:
    """What changed from one result to another.

    Results are Datasets (.nc), or records of verdicts (.json) and folders of them. Of records,
    `every` lists all that differs.
    """
    if (kinds := {_kind(a), _kind(b)}) == {"record"}:
        first, second = _record(a), _record(b)
        changes = compared(first.claims, second.claims)
        lines = [*_told(first, second, changes), *(_listed(first, second) if every else ())]
        return Difference(lines, bool(changes.verdicts or changes.missing))
    if kinds != {"Dataset"}:
        raise InputError(
            f"diff compares two .nc files, or two .json files or folders of them, "
            f"not {a.name} and {b.name}"
        )
    first, second = _dataset(a), _dataset(b)
    try:
        return _datasets_compared(first, second)
    except (ValueError, TypeError, KeyError) as error:  # such as labels that occur twice
        raise InputError(f"{a} and {b} cannot be compared: {error}") from None


def _kind(path: Path) -> str:
    try:
        if path.is_dir():
            return "record"
        there = path.is_file()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if not there:
        raise InputError(f"no such file: {path}")
    return {".nc": "Dataset", ".json": "record"}.get(path.suffix, "")


# ------------------------------------------------------------------------------- records


class Entry(NamedTuple):
    """What a record says of a claim: verdict, numbers (None: not finite), and everything."""

    verdict: str
    value: float | None
    low: float | None
    high: float | None
    all: Mapping[str, Any]

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends; one that is not finite is no end."""
        low = -math.inf if self.low is None else self.low
        return low, math.inf if self.high is None else self.high

    def __str__(self) -> str:
        value, low, high = map(_number, self[1:4])
        return f"{value} [{low}, {high}]"


class Record(NamedTuple):
    """The claims of a record, or of all records in a folder, by study/experiment/claim."""

    scale: str
    claims: dict[str, Entry]


def _record(path: Path) -> Record:
    try:
        paths = sorted(path.glob("*.json")) if path.is_dir() else [path]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if not paths:
        raise InputError(f"there are no records (*.json) in {path}")
    claims: dict[str, Entry] = {}
    where: dict[str, Path] = {}
    scales = set()
    for file in paths:
        scale, entries = _read(file)
        scales.add(scale)
        for name, entry in entries:
            if name in claims:
                places = " and ".join(dict.fromkeys((str(where[name]), str(file))))
                raise InputError(f"{name} is there twice, in {places}: which one is meant?")
            claims[name], where[name] = entry, file
    return Record(", ".join(sorted(scales)), claims)


def _read(path: Path) -> tuple[str, list[tuple[str, Entry]]]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        entries = [_entry(v) for v in record["verdicts"]]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise InputError(f"{path} is not a record of verdicts") from None
    return str(record.get("scale", "?")), entries


def _entry(v: Mapping[str, Any]) -> tuple[str, Entry]:
    if v["verdict"] not in ("holds", "fails", "unknown", "unmeasured"):
        raise ValueError
    value, low, high = (_finite(v[key]) for key in ("value", "low", "high"))
    bounds = [_finite(end) for end in v["within"]]
    if len(bounds) != 2 or (low is not None and high is not None and low > high):
        raise ValueError
    name = "/".join((v["study"], v["experiment"], v["claim"]))
    return name, Entry(
        v["verdict"],
        value,
        low,
        high,
        {**v, "value": value, "low": low, "high": high, "within": bounds},
    )


def _finite(number: Any) -> float | None:
    """A number of a record; None stands for what is not finite, however that is written."""
    if not isinstance(number, (int, float, type(None))):
        raise TypeError
    return None if number is None or not math.isfinite(number) else float(number)


class Changes(NamedTuple):
    """Names of claims, each in the first list where it belongs."""

    verdicts: list[str]
    missing: list[str]  # from the second
    new: list[str]  # in the second
    statements: list[str]
    moved: list[str]
    same: list[str]


def compared(a: Mapping[str, Entry], b: Mapping[str, Entry]) -> Changes:
    """The claims of two records by what happened to them.

    A claim whose statement changed is not listed again where its number moved: it may be another
    number.
    """
    found = Changes([], [], [], [], [], [])
    for name in {**a, **b}:
        if name not in b:
            found.missing.append(name)
        elif name not in a:
            found.new.append(name)
        elif a[name].verdict != b[name].verdict:
            found.verdicts.append(name)
        elif any(a[name].all.get(key) != b[name].all.get(key) for key in STATEMENT):
            found.statements.append(name)
        else:
            (found.moved if move(a[name], b[name]) == math.inf else found.same).append(name)
    return found


def move(a: Entry, b: Entry) -> float:
    """By how many widths of the wider 95% interval a number moved; infinite if beyond them.

    Beyond means that the intervals do not meet (and it is not rounding), or that a number or an
    end of its interval is finite in one and not in the other.
    """
    if [x is None for x in a[1:4]] != [x is None for x in b[1:4]]:
        return math.inf
    if a.value is not None and _close(a.value, b.value):
        return 0.0
    (a_low, a_high), (b_low, b_high) = a.interval, b.interval
    if a_high < b_low or b_high < a_low:
        return math.inf
    width = max(a_high - a_low, b_high - b_low)
    if a.value is None or b.value is None or width == math.inf:
        return 0.0
    return abs(a.value - b.value) / width if width > 0 else math.inf


def _close(x: float | None, y: float | None) -> bool:
    """Whether two numbers differ by rounding at most."""
    return x == y if x is None or y is None else math.isclose(x, y, rel_tol=ROUNDING)


def _told(first: Record, second: Record, found: Changes) -> Iterator[str]:
    """What matters most comes first; what changed as it may is only counted."""
    a, b = first.claims, second.claims
    if first.scale != second.scale:
        yield f"the first is of scale {first.scale}, the second of scale {second.scale}"
    if found.verdicts:
        yield f"verdicts that changed: {len(found.verdicts)}"
        for name in found.verdicts:
            yield f"  {name}"
            yield f"{INDENT}was  {a[name].verdict:8} {a[name]}"
            yield f"{INDENT}is   {b[name].verdict:8} {b[name]}"
            yield from _statement(a[name].all, b[name].all)
    for what, names, all_names in (
        ("missing: claims only in the first", found.missing, a),
        ("new: claims only in the second", found.new, b),
    ):
        if names:
            yield f"{what}: {len(names)}"
            yield from (f"  {line}" for line in _together(names, all_names))
    if found.statements:
        yield f"statements, bounds or expectations that changed: {len(found.statements)}"
        for name in found.statements:
            yield f"  {name}"
            yield from _statement(a[name].all, b[name].all)
            if move(a[name], b[name]):
                yield f"{INDENT}was  {a[name]}"
                yield f"{INDENT}is   {b[name]}"
    if found.moved:
        yield f"numbers that moved beyond their intervals: {len(found.moved)}"
        for name in found.moved:
            yield f"  {name} ({a[name].verdict})"
            yield f"{INDENT}was  {a[name]}"
            yield f"{INDENT}is   {b[name]}"
    yield from textwrap.wrap(_rest(a, b, found.same), 80)


def _statement(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    for key in STATEMENT:
        if (old := a.get(key)) != (new := b.get(key)):
            for which, thing in (("was", old), ("is ", new)):
                shown = f"{which}  {key}: {_words(key, thing)}"
                yield from textwrap.wrap(shown, 80, initial_indent=INDENT, subsequent_indent=DEEP)


def _rest(a: Mapping[str, Entry], b: Mapping[str, Entry], same: list[str]) -> str:
    if not same:
        return "" if a or b else "no claims"
    told = f"{_claims(len(same))}: same verdict, "
    farthest = max(same, key=lambda name: move(a[name], b[name]))
    numbers = [pair for name in same for pair in zip(a[name][1:4], b[name][1:4], strict=True)]
    if all(old == new for old, new in numbers):
        told += "same numbers"
    elif all(_close(old, new) for old, new in numbers):
        told += "same numbers but for rounding"
    else:
        told += "numbers within their intervals"
        if size := move(a[farthest], b[farthest]):
            told += f"; largest move {size:.2g} of an interval at {farthest}"
    if count := sum(a[name].value is None for name in same):
        told += f"; {count} without a finite value in either"
    if count := sum(a[n].all.get("cells") != b[n].all.get("cells") for n in same):
        told += f"; {count} from another number of cells"
    return told


def _together(names: Iterable[str], all_names: Iterable[str]) -> Iterator[str]:
    """Names of claims; one line for a study or experiment of which all are named."""
    names = set(names)
    places = {n: ("/".join(n.split("/")[:1]), "/".join(n.split("/")[:2])) for n in all_names}
    whole = Counter(place for n in places for place in places[n])
    named = Counter(place for n in names for place in places[n])
    lines = {}
    for n in (n for n in places if n in names):
        place = next((p for p in places[n] if named[p] == whole[p]), None)
        lines[n if place is None else f"{place}: all {_claims(whole[place])}"] = None
    yield from lines


def _listed(first: Record, second: Record) -> Iterator[str]:
    """Every entry that differs, as it stands in the records."""
    a, b = first.claims, second.claims
    lines = [
        f"  {name}: {key} {shortened(old)} -> {shortened(new)}"
        for name in a
        if name in b
        for key in EVERYTHING
        if (old := a[name].all.get(key)) != (new := b[name].all.get(key))
    ]
    if lines:
        yield f"all that differs in claims of both: {len(lines)}"
    yield from lines


def _words(key: str, thing: Any) -> str:
    """An entry of a statement; bounds as they are told elsewhere."""
    if key == "within":
        low, high = thing
        return bound(-math.inf if low is None else low, math.inf if high is None else high)
    return str(thing)


def bound(low: float, high: float, theory: float | None = None) -> str:
    """The bounds of a claim, in words, and the value that the theory gives.

    >>> bound(0.5, float("inf")), bound(1, 2), bound(1, 2, 1.5)
    ('> 0.5', '1 to 2', '1 to 2 (theory 1.5)')
    """
    if theory is not None:
        return f"{bound(low, high)} (theory {theory:g})"
    if high == math.inf:
        return f"> {low:g}"
    if low == -math.inf:
        return f"< {high:g}"
    return f"{low:g} to {high:g}"


def _number(number: float | None) -> str:
    return "not finite" if number is None else f"{number:.4g}"


def _claims(count: int) -> str:
    return "1 claim" if count == 1 else f"{count} claims"


# ------------------------------------------------------------------------------ Datasets


def _dataset(path: Path) -> "xr.Dataset":
    import xarray as xr

    try:
        with xr.open_dataset(path, engine="scipy") as ds:
            return ds.load()
    except Exception as error:  # whatever a foreign file makes the reader do
        raise InputError(f"{path} is not a netCDF-3 file: {error}") from None


def _datasets_compared(a: "xr.Dataset", b: "xr.Dataset") -> Difference:
    import xarray as xr

    lines = [
        f"{key}: {a.attrs.get(key)} -> {b.attrs.get(key)}"
        for key in sorted({*a.attrs, *b.attrs} - {"seconds"})
        if a.attrs.get(key) != b.attrs.get(key)
    ]
    common = []  # entries of each probe that both have
    for name in sorted({*map(str, a.variables), *map(str, b.variables)}):
        if name not in a.variables or name not in b.variables:
            lines.append(f"{name}: only in the {'first' if name in a.variables else 'second'}")
        elif a[name].dtype.kind in "SUO":
            if not a[name].equals(b[name]):
                lines.append(f"{name}: labels differ")
        else:
            x, y = a[name].astype(float), b[name].astype(float)
            bare = {
                d: slice(0, min(x.sizes[d], y.sizes.get(d, 0))) for d in x.dims if d not in x.coords
            }
            x, y = xr.align(x.isel(bare), y.isel(bare, missing_dims="ignore"), join="inner")
            if x.shape != a[name].shape or y.shape != b[name].shape:
                lines.append(f"{name}: compared on the {x.size} common entries")
            common += [x.size] if name in a.data_vars else []
            gap = abs(x - y)
            if x.size and not x.equals(y):
                lines.append(f"{name}: differs by at most {float(gap.max()):.3g}, "
                             f"on average {float(gap.mean()):.3g}")  # fmt: skip
    if common and not any(common):
        return Difference([*lines, "no cell in common: nothing was compared"], True)
    return Difference(lines or ["no difference"], False)
