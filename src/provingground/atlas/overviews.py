"""The pages about all papers: the front, the claims, what fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provingground.atlas import papers
from provingground.atlas.shelf import Shelf
from provingground.atlas.strips import farthest
from provingground.verdict import Verdict

SURPRISING = 8  # findings on the front page


@dataclass(frozen=True)
class Facts:
    """The verdicts that a store and the records at paper scale have."""

    shelf: Shelf
    records: Mapping[str, Sequence[Verdict]]

    def front(self) -> dict[str, Any]:
        rows = []
        judged = self.shelf.judged()
        for name, study in self.shelf.studies.items():
            known = [v for e, some in judged.items() if e.startswith(f"{name}/") for v in some]
            told, scale = (self.records[name], "paper") if name in self.records else (known, "")
            names = [e for e in self.shelf.names() if e.startswith(f"{name}/")]
            otherwise = "none stored" if all(e in judged for e in names) else "not read yet"
            of = papers.columns(told), papers.met(told)
            rows.append((study, told, otherwise, *of, scale or "here"))
        surprising = []
        for name in self.shelf.studies:
            surprising += farthest([v for v in self._verdicts(name) if _corrected(v)])[:1]
        some = farthest(surprising)[:SURPRISING]
        findings = [(v, self._reasons(v)) for v in some]
        unsorted = any("not sorted yet" in columns for _, _, _, columns, *_ in rows)
        return dict(rows=rows, findings=findings, unsorted=unsorted, place=self.place)

    def place(self, v: Verdict) -> str:
        """Where a claim stands; nowhere if its experiment is not of this scale."""
        if f"{v.study}/{v.experiment}" not in self.shelf.names():
            return ""
        which = self.shelf.studies[v.study].experiment(v.experiment)
        known = v.claim in {claim.name for claim in which.claims_at(self.shelf.scale)}
        return f"{v.study}/{v.experiment}/index.html" + f"#claim-{v.claim}" * known

    def _verdicts(self, study: str) -> list[Verdict]:
        """The recorded verdicts of a study, else those that were judged here."""
        if study in self.records:
            return list(self.records[study])
        judged = self.shelf.judged().items()
        return [v for name, some in judged if name.startswith(f"{study}/") for v in some]

    def _reasons(self, verdict: Verdict) -> list[Verdict]:
        """The verdicts on the claims that explain one."""
        known = {v.claim: v for v in self._verdicts(verdict.study)}
        return [known[name] for name in verdict.because if name in known]

    def _unread(self) -> int:
        return len(self.shelf.names()) - len(self.shelf.judged())

    def claims(self) -> dict[str, Any]:
        judged = self.shelf.judged()
        rows = []
        for name in self.shelf.names():
            owner, _, experiment = name.partition("/")
            here = {v.claim: v for v in judged.get(name, ())}
            recorded = {
                v.claim: v for v in self.records.get(owner, ()) if v.experiment == experiment
            }
            which = self.shelf.studies[owner].experiment(experiment)
            for claim in which.claims_at(self.shelf.scale):
                found = here.get(claim.name), recorded.get(claim.name)
                rows.append((owner, experiment, claim, *found))
        return dict(rows=rows, unread=self._unread())

    def findings(self) -> dict[str, Any]:
        chapters = []
        for name, study in self.shelf.studies.items():
            failing = [v for v in self._verdicts(name) if v.verdict == "fails"]
            found = [(v, self._reasons(v)) for v in farthest(failing)]
            scale = "paper" if name in self.records else self.shelf.scale
            if found:
                chapters.append((study, found, scale))
        return dict(chapters=chapters, unread=self._unread(), place=self.place)


def _corrected(v: Verdict) -> bool:
    """Whether the paper's own statement fails, and it is said what holds instead."""
    return v.verdict == "fails" and v.kind in ("printed", "") and bool(v.because)
