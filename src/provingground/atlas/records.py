"""Verdicts as JSON-safe records, and the table that a README shows of them.

    python -m provingground.atlas.records README.md

rewrites that table, in a repository's root, from the records in docs/results.

    python -m provingground.atlas.records docs/results/STUDY.json --with NEWER.json

puts experiments that were judged anew in the place of those in a record.
"""

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from provingground import __version__
from provingground.errors import InputError
from provingground.words import count

if TYPE_CHECKING:
    from provingground.verdict import Met, Verdict

Outcome = Literal["holds", "fails as expected", "unknown", "surprise", "unmeasured"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
WORDS: dict[Outcome, tuple[str, str]] = {  # for one claim, for several
    "holds": ("holds", "hold"),
    "fails as expected": ("fails as expected", "fail as expected"),
    "unknown": ("unknown", "unknown"),
    "surprise": ("surprise", "surprises"),
    "unmeasured": ("unmeasured", "unmeasured"),
}
COLUMNS = {"printed": "as printed", "corrected": "corrected", "own": "own", "": "not said"}
Claims = tuple[tuple[str, str], ...]  # (experiment, claim)
RESULTS = Path("docs/results")  # the tracked records: what a study's claims came to at paper scale
START, END = "<!-- results -->", "<!-- /results -->"


def outcome(verdict: str, expected: str) -> Outcome:
    """The verdict in the light of what was expected. Every verdict has exactly one outcome."""
    if verdict == "unknown" or verdict == "unmeasured":
        return verdict
    if verdict != expected:
        return "surprise"
    return "holds" if verdict == "holds" else "fails as expected"


def tally(outcomes: Iterable[Outcome]) -> dict[Outcome, int]:
    """How often each outcome occurs, in the order of `OUTCOMES`, zeros included."""
    found = Counter(outcomes)
    return {each: found[each] for each in OUTCOMES}


def counts(verdicts: Sequence["Verdict"]) -> str:
    """The outcomes of some claims: "4 claims: 3 hold, 1 unknown"."""
    found = tally(outcome(v.verdict, v.expected) for v in verdicts)
    words = [f"{n} {WORDS[which][n > 1]}" for which, n in found.items() if n]
    return f"{count(len(verdicts), 'claim')}: {', '.join(words)}" if words else "no claims"


def verdict_record(
    verdicts: Sequence["Verdict"], *, scale: str, seconds: float | None, device: str
) -> dict[str, Any]:
    """All verdicts of a run as one JSON-safe record; what is not finite becomes None."""
    return {
        "version": __version__,
        "scale": scale,
        "device": device,
        "seconds": None if seconds is None else _finite(seconds),
        "skipped": [each._asdict() for each in getattr(verdicts, "skipped", ())],
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
                "kind": v.kind,
                "bound": v.bound,
                "theory": v.theory,
                "agrees": v.agrees,
                "because": list(v.because),
                "measured": v.verdict != "unmeasured",
                "seeds": int(v.seeds),
                "at": v.at,
                "decided_at": v.decided_at,
                "conditions": _met(v.conditions),
            }
            for v in verdicts
        ],
    }


def _met(found: "Met | None") -> dict[str, Any] | None:
    if found is None:
        return None
    return {**found._asdict(), "worst": _finite(found.worst), "vacuous": list(found.vacuous)}


def record_text(record: Mapping[str, Any]) -> bytes:
    """A record as its file holds it."""
    return (json.dumps(record, indent=1, default=str) + "\n").encode()


def renewed(record: Mapping[str, Any], newer: Mapping[str, Any]) -> dict[str, Any]:
    """A record in which the experiments of a newer one stand in the place of their old selves, and
    those that are new at the end. It names all devices and scales, and its seconds are the sum.
    A quick one does not take the place of one at the paper's scale.
    """
    better = {(v["study"], v["experiment"]) for v in at_paper_scale([record])}
    quick = by_scale(newer).get("quick", ())
    if worse := sorted({at[1] for v in quick if (at := (v["study"], v["experiment"])) in better}):
        raise InputError(f"at the paper's scale in the record, and quick anew: {', '.join(worse)}")
    anew: dict[tuple[str, str], list[Any]] = {}
    for v in newer["verdicts"]:
        anew.setdefault((v["study"], v["experiment"]), []).append(v)
    known = {v["study"] for v in record["verdicts"]}
    if others := sorted({study for study, _ in anew} - known):
        raise InputError(f"the record is of {', '.join(sorted(known))}, not of {', '.join(others)}")
    verdicts, judged = [], set(anew)
    for v in record["verdicts"]:
        at = v["study"], v["experiment"]
        verdicts += anew.pop(at, []) if at in judged else [v]
    verdicts += [v for each in anew.values() for v in each]
    devices = dict.fromkeys(d for r in (record, newer) for d in str(r["device"]).split("; "))
    seconds = [r["seconds"] for r in (record, newer)]
    made = {
        **record,
        "device": "; ".join(devices),
        "seconds": None if None in seconds else round(sum(seconds), 3),
        "verdicts": verdicts,
        "provenance": {
            at: {**about, "scale": about.get("scale", each["scale"])}
            for each in (record, newer)
            for at, about in each["provenance"].items()
        },
    }
    return made | {"scale": " and ".join(by_scale(made))}


def by_scale(record: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The verdicts of a record by the scale of their experiment. A record may hold both scales:
    that of the paper, and the quick one for what was not run at the paper's."""
    known = record.get("provenance", {})
    found: dict[str, list[Mapping[str, Any]]] = {}
    for v in record["verdicts"]:
        about = known.get(f"{v['study']}/{v['experiment']}", {})
        found.setdefault(about.get("scale", record["scale"]), []).append(v)
    return dict(sorted(found.items()))


def at_paper_scale(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The verdicts of some records that are at the paper's scale."""
    return [v for record in records for v in by_scale(record).get("paper", ())]


def badge_table(
    records: Iterable[Mapping[str, Any]], *, titles: Mapping[str, str] | None = None
) -> str:
    """A Markdown table of the outcomes in some records: one row per study and scale, with the
    facts as printed, corrected and our own, and how many conditions of the theorem are met.

    `titles` maps names of studies to titles and adds a column of them. Claims of records that do
    not say whose they are stand in a column of their own.
    """
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in records:
        for scale, verdicts in by_scale(record).items():
            for v in verdicts:
                found.setdefault((v["study"], scale), []).append(v)
    known = {kind for rows in found.values() for kind in map(_kind, rows)}
    kinds = [kind for kind in COLUMNS if kind in known]
    head = ["study", "title", "facts", *map(COLUMNS.__getitem__, kinds), "conditions met", "scale"]
    rows = [head, ["---", "---", "--:", *["---"] * (len(kinds) + 2)]]
    for (study, scale), verdicts in found.items():
        cells = [outcomes([v for v in verdicts if _kind(v) == kind]) for kind in kinds]
        about = [(titles or {}).get(study, ""), str(len(verdicts))]
        rows.append([f"`{study}`", *about, *cells, _conditions(verdicts), scale])
    if not titles:
        rows = [row[:1] + row[2:] for row in rows]
    return "".join(f"| {' | '.join(cell(text) for text in row)} |\n" for row in rows)


def _kind(v: Mapping[str, Any]) -> str:
    return v.get("kind", "")


def outcomes(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """How many hold, fail as expected, and so on; those that do not occur are not named."""
    found = tally(outcome(v["verdict"], v["expected"]) for v in verdicts)
    words = {"fails as expected": ("fails", "fail")}
    told = [f"{n} {words.get(which, WORDS[which])[n > 1]}" for which, n in found.items() if n]
    return ", ".join(told)


def _conditions(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """The fewest and the most conditions of the theorem that an experiment's settings meet."""
    known = [v["conditions"] for v in verdicts if v.get("conditions")]
    if not known:
        return ""
    counts = sorted(each["satisfied"] for each in known)
    several = f"{counts[0]} to {counts[-1]}" if counts[0] < counts[-1] else f"{counts[0]}"
    return f"{several} of {known[0]['of']}"


def unrecorded(records: Iterable[Mapping[str, Any]], today: Mapping[str, Claims]) -> str:
    """Claims of today that the record of their study does not have, by experiment."""
    told: dict[str, set[tuple[str, str]]] = {}
    for record in records:
        for v in record["verdicts"]:
            told.setdefault(v["study"], set()).add((v["experiment"], v["claim"]))
    lines = []
    for study, names in told.items():
        missing: dict[str, list[str]] = {}
        for experiment, claim in today.get(study, ()):
            if (experiment, claim) not in names:
                missing.setdefault(experiment, []).append(f"`{claim}`")
        parts = [f"`{experiment}` ({', '.join(each)})" for experiment, each in missing.items()]
        lines += [f"- `{study}`: {', '.join(parts)}"] if parts else []
    return "\n".join(lines)


def update_table(
    text: str,
    records: Iterable[Mapping[str, Any]],
    titles: Mapping[str, str],
    today: Mapping[str, Claims],
) -> str:
    """A page with what stands between its two markers replaced by the table of some records.

    `titles` maps names of studies to titles; those without a record at scale `paper` are named, and
    so is what of the claims of `today` is not in a record.
    """
    head, start, rest = text.partition(START)
    _, end, tail = rest.partition(END)
    if not (start and end) or START in rest or END in head + tail:
        raise InputError(f"the page needs the markers {START} and {END}, once each, in this order")
    known = list(records)
    paper = at_paper_scale(known)
    told = {v["study"] for v in paper}
    parts = [badge_table(known, titles=titles)] if known else []
    if untold := [f"`{study}` ({title})" for study, title in titles.items() if study not in told]:
        parts.append(f"No paper-scale record yet: {', '.join(untold)}.\n")
    if newer := unrecorded(known, {study: today[study] for study in today if study in told}):
        parts.append(f"Newer than their study's record, and not in it yet:\n\n{newer}\n")
    return "\n".join([f"{head}{START}\n", *parts, f"{END}{tail}"])


def tracked(folder: Path = RESULTS) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The records of a folder in the order of the studies, and the titles of all studies."""
    from provingground.studies import STUDIES

    order = [*STUDIES, *sorted(path.stem for path in folder.glob("*.json"))]
    paths = [folder / f"{name}.json" for name in dict.fromkeys(order)]
    records = [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
    titles = {n: import_module(f"provingground.studies.{n}").STUDY.title for n in STUDIES}
    return records, titles


def claims_of_today() -> dict[str, Claims]:
    """The claims of all studies at paper scale, as (experiment, claim)."""
    from provingground.studies import STUDIES

    found: dict[str, Claims] = {}
    for name in STUDIES:
        study = import_module(f"provingground.studies.{name}").STUDY
        at_paper = [(e.name, e.claims_at("paper")) for e in study.experiments]
        found[name] = tuple((e, c.name) for e, claims in at_paper for c in claims)
    return found


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def cell(text: str) -> str:
    """A text as it stands in a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    parser = argparse.ArgumentParser(description="Rewrites the table of results, or a record.")
    parser.add_argument("page", type=Path, help="a Markdown file with the markers, or a record")
    parser.add_argument("--with", dest="newer", type=Path, help="a newer record of some of it")
    asked = parser.parse_args()
    text = asked.page.read_text(encoding="utf-8")
    if asked.newer is None:
        asked.page.write_text(update_table(text, *tracked(), claims_of_today()), encoding="utf-8")
        return
    newer = json.loads(asked.newer.read_text(encoding="utf-8"))
    asked.page.write_bytes(record_text(renewed(json.loads(text), newer)))


if __name__ == "__main__":
    main()
