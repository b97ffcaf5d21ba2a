"""Verdicts on a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from provingground.compare import bound
from provingground.reprs import decision
from provingground.terminal import any_letter, show_table

if TYPE_CHECKING:
    from provingground.study import Verdict

MARKS = {"holds": "✓ ", "fails": "✗ ", "unknown": "? "}


def show_verdicts(verdicts: "Sequence[Verdict]") -> None:
    """Verdicts as a table, by experiment."""
    rows: list[tuple[str, ...]] = []
    group = ""
    for v in verdicts:
        if group != (group := f"{v.study}/{v.experiment}"):
            rows.append((f"{group}:",))
        rows.append(
            (
                f"  {v.claim}",
                any_letter(MARKS[v.verdict]) + decision(v),
                str(v.estimate),
                bound(*v.within),
                f"{v.says}. {v.note}" if v.note else v.says,
            )
        )
    show_table("  claim", "verdict", "measured", "bound", "says", rows=rows)
