"""Verdicts on a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from provingground.reprs import bounds, decision, named
from provingground.terminal import any_letter, show_table

if TYPE_CHECKING:
    from provingground.verdict import Verdict

MARKS = {"holds": "✓ ", "fails": "✗ ", "unknown": "? ", "unmeasured": "! "}


def show_verdicts(verdicts: "Sequence[Verdict]") -> None:
    """Verdicts as a table, by experiment."""
    rows: list[tuple[str, ...]] = []
    group = ""
    for v in verdicts:
        if group != (group := f"{v.study}/{v.experiment}"):
            rows.append((f"{group}:" + (f" {v.conditions}" if v.conditions else ""),))
        rows.append(
            (
                f"  {named(v)}",
                any_letter(MARKS[v.verdict]) + decision(v),
                str(v.estimate),
                bounds(v),
                ". ".join(part.rstrip(". ") for part in (v.says, v.note, v.details) if part),
            )
        )
    show_table("  claim", "verdict", "measured", "bound", "says", rows=rows)
