"""What becomes of a claim: an estimate against its bounds."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import xarray as xr
from scipy.special import stdtrit

from provingground import reprs
from provingground.claims import Claim
from provingground.errors import told
from provingground.reprs import shown
from provingground.stats import UNDECIDED, Estimate, Everywhere

ROUNDING = 1e-4  # of the theory's value: digits that no table shows
Decision = Literal["holds", "fails", "unknown", "unmeasured"]


class Met(NamedTuple):
    """How a theorem's conditions stand at the settings of an experiment.

    `satisfied` counts those that hold, at the setting where the fewest do, out of `of`; `worst` is
    the smallest margin (below 1: violated by that factor). `vacuous` names the predictions whose
    right-hand side says nothing at some setting.
    """

    satisfied: int
    of: int
    worst: float
    vacuous: tuple[str, ...] = ()

    def __str__(self) -> str:
        return at_all([self])


def at_all(several: Iterable[Met | None]) -> str:
    """How conditions stand at the settings of several verdicts: a range where they differ.

    >>> at_all([Met(2, 2, 1.3), Met(1, 2, 0.58)])
    '1 to 2 of 2 conditions, worst margin 0.58'
    """
    known = [met for met in several if met is not None]
    if not known:
        return ""
    least, most = min(met.satisfied for met in known), max(met.satisfied for met in known)
    words = f"{least} to {most}" if least < most else f"{least}"
    words += f" of {known[0].of} conditions"
    if least < known[0].of:
        words += f", worst margin {min(met.worst for met in known):.2g}"
    vacuous = dict.fromkeys(name for met in known for name in met.vacuous)
    return words + f"; vacuous: {', '.join(vacuous)}" * bool(vacuous)


@shown(reprs.verdict, line=reprs.verdict_line)
@dataclass(frozen=True)
class Verdict:
    """What became of a claim, ready for a table, a report or a JSON record.

    `agrees` says whether the interval holds the theory's own value (of several settings, all of
    their joint intervals); None if there is none. `at` is where it was asked, if the user added an
    axis; `decided_at` the one of several settings that decides it. `declared` says whether the
    settings are those of the experiment.
    """

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
    theory: float | None = None
    agrees: bool | None = None
    kind: str = "printed"
    bound: str = "ours"
    because: tuple[str, ...] = ()
    at: str = ""
    decided_at: str = ""
    declared: bool = True
    conditions: Met | None = None

    @property
    def details(self) -> str:
        """What is worth a word beside the statement and its note."""
        parts = []
        if self.decided_at:
            parts.append(f"Decided at {self.decided_at}")
        parts += filter(None, [self._theory_apart()])
        if self.because:
            parts.append(f"Explained by {', '.join(self.because)}")
        return ". ".join(parts)

    def _theory_apart(self) -> str:
        """What is to be said of the theory's own value, which of several settings is looked for in
        their joint intervals, while the one that is shown may be that of one setting alone."""
        if self.verdict != "holds" or self.theory is None or self.agrees is None:
            return ""
        shown = _holds_theory(self.estimate, self.theory)
        if self.agrees:
            jointly = (
                f"The joint intervals of all settings hold the theory's own value, {self.theory:g}"
            )
            return "" if shown else jointly
        where = "The joint interval of another setting" if shown else "The interval"
        return f"{where} excludes the theory's own value, {self.theory:g}"

    @property
    def surprise(self) -> bool:
        """A decided verdict that differs from what was expected."""
        return self.verdict in ("holds", "fails") and self.verdict != self.expected

    @property
    def trouble(self) -> bool:
        """Whether a check must not pass: a surprise, a headline claim left undecided, or one that
        cannot be measured at the settings that were declared for it."""
        undecided = self.headline and self.verdict in ("unknown", "unmeasured")
        return self.surprise or undecided or (self.verdict == "unmeasured" and self.declared)

    @property
    def seeds_needed(self) -> int | None:
        """About how many seeds would decide the claim; None if no number would."""
        return seeds_needed(self.estimate, self.within, self.seeds)


class Skipped(NamedTuple):
    """An experiment that was not judged, since the data set that it needs is not here."""

    study: str
    experiment: str
    data: str
    why: str
    command: str  # what gets it, if anything does
    headline: bool

    @property
    def at(self) -> str:
        return f"{self.study}/{self.experiment}"


@shown(reprs.verdicts)
class Verdicts(list[Verdict]):
    """Verdicts, which show themselves as a table; and the experiments that were `skipped`."""

    def __init__(self, verdicts: Iterable[Verdict] = (), skipped: Iterable[Skipped] = ()) -> None:
        super().__init__(verdicts)
        self.skipped = tuple(skipped)


def decide(found: Estimate | Everywhere, within: tuple[float, float]) -> Decision:
    """Compares an interval, or those of several settings, with the bounds of a claim."""
    if isinstance(found, Everywhere):
        if all(decide(one, within) == "holds" for one in found.each):
            return "holds" if found.each else "unmeasured"
        failed = any(decide(one, within) == "fails" for one in found.joint)
        return "fails" if failed else "unknown"
    low, high = within
    if not (math.isfinite(found.low) or math.isfinite(found.high)):
        return "unknown"
    if low <= found.low and found.high <= high:
        return "holds"
    if found.high < low or found.low > high:
        return "fails"
    return "unknown"


def deciding(found: Everywhere, within: tuple[float, float]) -> tuple[str, Estimate]:
    """The setting that decides about all, and its estimate: the one farthest out, or nearest to
    the bounds; one without an interval where all others hold, or if there is no other."""

    def room(one: Estimate) -> float:
        inside = min(one.value - within[0], within[1] - one.value)
        spread = max(one.high - one.low, 1e-12 * abs(one.value), 1e-300)
        return inside / spread if math.isfinite(inside) and math.isfinite(spread) else math.inf

    decision = decide(found, within)
    table = found.joint if decision == "fails" else found.each
    number = min(range(len(table)), key=lambda n: room(table[n]))
    if decision == "unknown" and decide(table[number], within) == "holds":
        number = next(n for n, one in enumerate(table) if decide(one, within) != "holds")
    elif room(table[number]) == math.inf:  # bounds that nothing reaches, or no interval anywhere
        number = next((n for n, one in enumerate(table) if math.isnan(one.low)), number)
    return found.settings[number], table[number]


def agreeing(found: Estimate | Everywhere, theory: float | None) -> bool | None:
    """Whether the theory's own value lies in the interval, up to rounding; of several settings in
    all of their joint intervals. None if either is not known."""
    several = found.joint if isinstance(found, Everywhere) else (found,)
    if theory is None or not all(math.isfinite(one.low + one.high) for one in several):
        return None
    return all(_holds_theory(one, theory) for one in several)


def _holds_theory(found: Estimate, theory: float) -> bool:
    """Whether the theory's own value lies in an interval, up to rounding."""
    slack = max(ROUNDING * abs(theory), 1e-9)
    return found.low - slack <= theory <= found.high + slack


def judge(
    claim: Claim,
    ds: xr.Dataset,
    headline: bool = False,
    at: str = "",
    conditions: Met | None = None,
) -> Verdict:
    """The verdict on a claim. Missing or diverged cells leave it unknown, and say so."""
    cells, diverged, missing = (int(ds.attrs[k]) for k in ("cells", "diverged", "missing"))
    estimate, note, decided_at = UNDECIDED, claim.note, ""
    decision: Decision = "unknown"
    agrees = None
    if missing:
        note = f"{missing} of {cells} cells are missing. {note}"
    else:
        try:
            found = claim.measure(ds)
            decision, agrees = decide(found, claim.within), agreeing(found, claim.theory)
            estimate = found if isinstance(found, Estimate) else UNDECIDED
            if isinstance(found, Everywhere) and found.each:
                decided_at, estimate = deciding(found, claim.within)
        except Exception as error:  # a typo, or an axis that was left out
            decision = "unmeasured"
            note = f"could not be measured: {told(error)}. {note}"
        if diverged and decision != "unmeasured":
            decision, note = "unknown", f"{diverged} of {cells} cells diverged. {note}"
    return Verdict(
        study=ds.attrs["study"],
        experiment=ds.attrs["experiment"],
        claim=claim.name,
        source=claim.source,
        says=claim.says,
        estimate=estimate,
        within=claim.within,
        verdict=decision,
        expected=claim.expected,
        headline=headline,
        cells=cells,
        diverged=diverged,
        seeds=int(ds.sizes["seed"]),
        note=note.strip(),
        theory=claim.theory,
        agrees=agrees,
        kind=claim.kind,
        bound=claim.bound,
        because=tuple(c.name for c in claim.because),
        at=at,
        decided_at=decided_at,
        declared=not ds.attrs.get("changed"),
        conditions=conditions,
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
