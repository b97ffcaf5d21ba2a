"""Verdicts as JSON-safe records, and the table that a README shows of them."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from provingground import __version__

if TYPE_CHECKING:
    from provingground.study import Verdict

Outcome = Literal["holds", "fails as expected", "unknown", "surprise"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def outcome(verdict: str, expected: str) -> Outcome:
    """The verdict in the light of what was expected. Every verdict has exactly one outcome."""
    if verdict == "unknown":
        return "unknown"
    if verdict != expected:
        return "surprise"
    return "holds" if verdict == "holds" else "fails as expected"


def tally(outcomes: Iterable[Outcome]) -> dict[Outcome, int]:
    """How often each outcome occurs, in the order of `OUTCOMES`, zeros included."""
    counts = Counter(outcomes)
    return {each: counts[each] for each in OUTCOMES}


def verdict_record(
    verdicts: Sequence["Verdict"], *, scale: str, seconds: float | None, device: str
) -> dict[str, Any]:
    """All verdicts of a run as one JSON-safe record; what is not finite becomes None."""
    return {
        "version": __version__,
        "scale": scale,
        "device": device,
        "seconds": None if seconds is None else _finite(seconds),
        "verdicts": [
            {
                "study": v.study,
                "experiment": v.experiment,
                "claim": v.claim,
                "source": v.source,
                "says": v.says,
                "value": _finite(v.estimate.value),
                "low": _finite(v.estimate.low),
                "high": _finite(v.estimate.high),
                "within": [_finite(bound) for bound in v.within],
                "verdict": v.verdict,
                "expected": v.expected,
                "surprise": v.surprise,
                "cells": int(v.cells),
                "diverged": int(v.diverged),
            }
            for v in verdicts
        ],
    }


def badge_table(
    records: Iterable[Mapping[str, Any]], *, titles: Mapping[str, str] | None = None
) -> str:
    """A Markdown table of the outcomes in some records: one row per study and scale.

    `titles` maps names of studies to titles and adds a column of them.
    """
    outcomes: dict[tuple[str, str], list[Outcome]] = {}
    for record in records:
        for v in record["verdicts"]:
            of_study = outcomes.setdefault((v["study"], record["scale"]), [])
            of_study.append(outcome(v["verdict"], v["expected"]))
    head = ["study", "title", "claims", "hold", "fail as expected", "unknown", "surprises", "scale"]
    rows = [head, ["---", "---", *["--:"] * 5, "---"]]
    for (study, scale), found in outcomes.items():
        counts = (len(found), *tally(found).values())
        rows.append([f"`{study}`", (titles or {}).get(study, ""), *map(str, counts), scale])
    if not titles:
        rows = [row[:1] + row[2:] for row in rows]
    return "".join(f"| {' | '.join(_cell(text) for text in row)} |\n" for row in rows)


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
