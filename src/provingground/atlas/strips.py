"""A claim as a strip: its interval, the bound, the theory's value, its own law and its rivals."""

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import xarray as xr

from provingground.atlas.facts import bound, measured, number
from provingground.atlas.latex import plain
from provingground.claims import Claim
from provingground.stats import Estimate, Everywhere
from provingground.verdict import Verdict, decide, deciding

RANGE = 4.0  # how far rivals may stretch a strip; those beyond stand at its edge


class Mark(NamedTuple):
    """One interval of a strip, as places in percent; `text` says it in numbers."""

    label: str
    low: float
    high: float
    value: float
    estimate: Estimate
    decision: str
    beyond: bool = False

    def told(self, within: tuple[float, float]) -> dict[str, Any]:
        """The mark for a script, with its numbers in words."""
        words = f"{self.label}: {measured(self.estimate, within)}, bound {bound(within)}"
        return {
            "label": plain(self.label),
            "low": self.low,
            "high": self.high,
            "value": self.value,
            "says": plain(f"{words}, {self.decision}"),
            "number": number(self.estimate.value),
            "decision": self.decision,
            "beyond": self.beyond,
        }


class Strip(NamedTuple):
    """The intervals of a claim and of what else might be true, on one scale."""

    lower: float
    upper: float
    theory: float | None
    marks: tuple[Mark, ...]


def strip(
    claim: Claim, verdict: Verdict, ds: xr.Dataset | None = None, until: float = math.inf
) -> Strip | None:
    """The strip of a claim, and with a Dataset its rivals, as far as they are ready at a time
    (`until`, of the monotonic clock); None where there is nothing to draw."""
    rows = [("measured", verdict.estimate, verdict.verdict)]
    rows += [] if ds is None else _others(claim, ds, until)
    known = [row for row in rows if math.isfinite(row[1].value)]
    if not known or known[0][0] != "measured":
        return None
    told = [*verdict.within, *verdict.estimate]
    told += [] if verdict.theory is None else [verdict.theory]
    main = [float(x) for x in told if math.isfinite(x)]
    low, high = min(main), max(main)
    span = (high - low) or abs(high) or 1.0
    others = [float(x) for _, e, _ in known for x in e if math.isfinite(x)]
    left = max(min(others + main), low - RANGE * span) - 0.12 * span
    right = min(max(others + main), high + RANGE * span) + 0.12 * span

    def place(x: float) -> float:
        return round(100 * (min(max(x, left), right) - left) / (right - left), 1)

    marks = []
    for label, (value, lowest, highest), decision in known:
        start, end = (value if math.isnan(x) else x for x in (lowest, highest))
        beyond = not left <= value <= right
        estimate = Estimate(value, lowest, highest)
        marks.append(
            Mark(label, place(start), place(end), place(value), estimate, decision, beyond)
        )
    theory = None if verdict.theory is None else place(verdict.theory)
    lower, upper = map(place, verdict.within)
    return Strip(lower, upper, theory, tuple(marks))


def _others(claim: Claim, ds: xr.Dataset, until: float) -> Iterator[tuple[str, Estimate, str]]:
    """The claim on the Dataset as it would be if something else were true."""
    altered = {f"if {name} were true": change for name, change in claim.rivals.items()}
    if claim.law is not None:
        altered = {"on its own curve": claim.law, **altered}
    for label, change in altered.items():
        if time.monotonic() > until:
            return
        try:
            found = claim(change(ds))
            decision = decide(found, claim.within)
            if isinstance(found, Everywhere):
                if not found.each:
                    continue
                found = deciding(found, claim.within)[1]
            yield label, found, decision
        except Exception:  # a rival that cannot be made of these cells
            continue


def margin_place(margin: float, most: float = 6.0) -> float:
    """Where the bar of a condition ends, in percent: at 50 it is met exactly."""
    if math.isnan(margin):
        return 50.0
    logarithm = math.log10(margin) if margin > 0 else -math.inf
    return round(50 + 50 * min(max(logarithm, -most), most) / most, 1)


def farthest(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Verdicts, those first whose measured value is farthest beyond its bounds."""
    return sorted(verdicts, key=_beyond, reverse=True)


def _beyond(v: Verdict) -> float:
    """How far a value is beyond its bound: the larger over the smaller where both have one sign."""
    value = v.estimate.value
    if not math.isfinite(value):
        return 0.0
    ends = [b for b in v.within if math.isfinite(b)]
    nearest = min(ends, key=lambda b: abs(b - value), default=value)
    if nearest * value > 0:
        return min(abs(math.log(value / nearest)), 6.0)
    return min(abs(value - nearest) / (abs(nearest) or 1.0), 3.0)
