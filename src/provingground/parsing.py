"""What is written on the command line, as settings and seeds."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from provingground.config import Par
from provingground.errors import InputError, shortened, unknown
from provingground.grid import check_total, wrong_seeds
from provingground.study import Cases

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def parse_settings(
    texts: Sequence[str],
    settings: Mapping[str, Any],
    table: Mapping[str, Par],
    *,
    yes: bool = False,
) -> dict[str, Any]:
    """Reads `name=values`; see `parse_values`. Labels of cases are taken as they are."""
    found: dict[str, Any] = {}
    cases = [n for n, given in settings.items() if isinstance(given, Cases)]
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals:
            raise InputError(f"--set {shortened(text)} is not understood: write NAME=VALUES")
        if name not in table and name not in cases:
            raise unknown("parameter", name, (*table, *cases))
        if name in found:
            raise InputError(f"{name} is set twice; for several values write {name}=v1,v2,...")
        if name in cases:  # a label may have a comma
            found[name] = [values] if values in settings[name].settings else values.split(",")
        else:
            found[name] = parse_values(table[name], values, yes)
    return found


def parse_seeds(text: str | None, declared: int) -> int | range | None:
    """Reads a number of seeds, or which: `FIRST:END`, or `FIRST:` for as many as declared.

    >>> parse_seeds("8", 4), parse_seeds("100:108", 4), parse_seeds("100:", 4)
    (8, range(100, 108), range(100, 104))
    """
    if text is None:
        return None
    first, colon, end = (part.strip() for part in text.partition(":"))
    if not _WHOLE.fullmatch(first) or (end and not _WHOLE.fullmatch(end)):
        raise wrong_seeds(text)
    if not colon:
        return int(first)
    if end and int(end) <= int(first):
        raise InputError(
            f"seeds = {text} is not allowed: they go from the first up to the end, which is not "
            f"one of them, and {int(end)} is not above {int(first)}"
        )
    return range(int(first), int(end) if end else int(first) + declared)


def parse_values(p: Par, text: str, yes: bool = False) -> Any:
    """Reads `v`, `v1,v2,...`, `lo:hi:n` (even spacing) or `lo:hi:nlog` (even in the logarithm)."""
    if ":" not in text:
        parts = [part.strip() for part in text.split(",")]
        if not any(parts):
            raise InputError(f"{p.name} has an empty list of values; it takes {p.allowed}")
        check_total(len(parts), yes)
        values = [_parse_one(p, part) for part in (parts if parts[-1] else parts[:-1])]
        return values if len(parts) > 1 else values[0]
    try:
        low, high, count = (part.strip() for part in text.split(":"))
        log = count.endswith("log")
        n = _number(int, count.removesuffix("log"))
        ends = _number(float, low), _number(float, high)
        if not all(isinstance(x, (int, float)) for x in (n, *ends)):
            raise ValueError
    except ValueError:
        raise InputError(
            f"{p.name}={shortened(text)[1:-1]} is not understood: write v, v1,v2,..., lo:hi:n or "
            f"lo:hi:nlog, where {p.name} takes {p.allowed}"
        ) from None
    check_total(n, yes)
    for end in ends:
        p.check(end if p.type is float or not math.isfinite(end) else round(end))
    if n < 1 or (log and min(ends) <= 0):
        raise InputError(f"{p.name}={text} needs n >= 1, and positive ends for log spacing")
    with np.errstate(over="ignore", invalid="ignore"):
        spaced = np.geomspace(*ends, n) if log else np.linspace(*ends, n)
    return list(
        dict.fromkeys(p.check(round(v) if p.type is int else float(v)) for v in spaced.tolist())
    )


def _parse_one(p: Par, text: str) -> Any:
    if p.type is bool:
        truth = {"true": True, "false": False, "1": True, "0": False}
        return p.check(truth.get(text.lower(), text))
    return p.check(text if p.type is str else _number(p.type, text))


def _number(kind: type, text: str) -> Any:
    """A number as people write it; the text itself where it is none.

    Python would also read underscores, digits of any alphabet, and names.
    """
    if len(text) > 400 or not _NUMBER.fullmatch(text):
        return text
    if kind is int and not _WHOLE.fullmatch(text):  # 1e3 is whole
        return int(float(text)) if float(text).is_integer() else text
    return kind(text)
