"""Verdicts on a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from provingground.reprs import bounds, decision, grouped, named
from provingground.terminal import any_letter, say, show_table
from provingground.words import count

if TYPE_CHECKING:
    from provingground.verdict import Skipped, Verdict

MARKS = {"holds": "✓ ", "fails": "✗ ", "unknown": "? ", "unmeasured": "! "}


def trouble(verdicts: "Sequence[Verdict]") -> str:
    """Why a check does not pass, in one line."""
    why = {"surprising": 0, "unmeasured": 0, "of a headline, and undecided": 0}
    for v in verdicts:
        surprise, unmeasured, undecided = why
        kind = surprise if v.surprise else unmeasured
        why[undecided if v.verdict == "unknown" else kind] += 1
    told = ", ".join(f"{n} {words}" for words, n in why.items() if n)
    return f"not passed: {count(len(verdicts), 'claim')} ({told})"


def show_skipped(skipped: "Sequence[Skipped]") -> None:
    """The experiments that were not judged, and what to do: on stderr, which JSON leaves alone."""
    say(f"not judged, since their data are not here: {count(len(skipped), 'experiment')}")
    commands: dict[str, list[str]] = {}
    for each in skipped:
        commands.setdefault(each.why, []).append(each.at)
    for why, names in commands.items():
        say(f"  {', '.join(names)}: {why}")


def show_verdicts(verdicts: "Sequence[Verdict]") -> None:
    """Verdicts as a table, by experiment."""
    rows: list[tuple[str, ...]] = []
    for name, conditions, some in grouped(verdicts):
        rows.append((f"{name}: {conditions}".rstrip(),))
        for v in some:
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
