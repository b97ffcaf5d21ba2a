"""What a study says of its paper: its page, its theorems as functions, its records."""

import inspect
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from markupsafe import Markup

import provingground
from provingground.atlas import markdown
from provingground.atlas.records import COLUMNS, at_paper_scale, outcomes
from provingground.stats import Estimate
from provingground.study import Study
from provingground.verdict import Decision, Met, Verdict

RECORDS = Path(provingground.__file__).parents[2] / "docs" / "results"  # of the sources
WORDS = get_args(Decision)
PICTURE = re.compile(r"(?:.*/)?([a-z0-9_]+)\.png")


class Function(NamedTuple):
    """A theorem as a function: what it says, and how it is written."""

    name: str
    signature: str
    words: Markup
    source: str


def folder(study: Study) -> Path | None:
    """Where the study stands, if it is a package in a folder."""
    module = inspect.getmodule(study.theory)
    package = sys.modules.get((module.__package__ if module else "") or "")
    file = getattr(package, "__file__", None) if package is not None else None
    if file is None or Path(file).name != "__init__.py" or not hasattr(package, "STUDY"):
        return None
    return Path(file).parent


def page(study: Study, name: str, figures: Sequence[str]) -> Markup | None:
    """A page of the study's folder, without its title; its pictures are those of its figures."""
    where = folder(study)
    if where is None or not (where / name).is_file():
        return None
    text = (where / name).read_text(encoding="utf-8")

    def picture(src: str, alt: str) -> Markup | None:
        found = PICTURE.fullmatch(src)
        experiment = found[1].removeprefix(f"{study.name}_") if found else ""
        if experiment not in figures:
            return Markup("")
        shown = '<a class="picture" href="{0}/index.html"><img src="{0}/figure.png" alt="{1}"></a>'
        return Markup(shown).format(experiment, alt)

    body = re.sub(r"\A\s*# [^\n]*\n", "", text)
    links = {"coverage.md": "coverage.html", "README.md": "index.html"}
    return markdown.html(body, level=2, links=links, picture=picture)


def functions(study: Study) -> list[Function]:
    """The public functions of the module of the study's theory, in the order they are written."""
    module = inspect.getmodule(study.theory)
    if module is None:
        return []
    found = []
    for name, thing in vars(module).items():
        own = inspect.isfunction(thing) and thing.__module__ == module.__name__
        if not own or name.startswith("_"):
            continue
        try:
            source, line = inspect.getsource(thing), inspect.getsourcelines(thing)[1]
        except (OSError, TypeError):
            continue
        words = markdown.html(inspect.getdoc(thing) or "", level=5)
        names = ", ".join(inspect.signature(thing).parameters)
        found.append((line, Function(name, f"{name}({names})", words, source)))
    return [function for _, function in sorted(found, key=lambda each: each[0])]


# ----------------------------------------------------------------------------- records


def records(where: Path | None = None) -> dict[str, list[Verdict]]:
    """The verdicts at paper scale that were recorded, by study; none without their folder."""
    found: dict[str, list[Verdict]] = {}
    for path in sorted((where or RECORDS).glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            for verdict in [_verdict(v) for v in at_paper_scale([record])]:
                found.setdefault(verdict.study, []).append(verdict)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # no record
    return found


def _verdict(v: Mapping[str, Any]) -> Verdict:
    """A verdict from its record."""

    def finite(x: float | None, otherwise: float) -> float:
        return otherwise if x is None else float(x)

    if v["verdict"] not in WORDS:
        raise ValueError(f"{v['verdict']} is no verdict")
    low, high = v["within"]
    met = v.get("conditions")
    conditions = met and Met(
        met["satisfied"], met["of"], finite(met["worst"], math.nan), tuple(met["vacuous"])
    )
    return Verdict(
        study=v["study"],
        experiment=v["experiment"],
        claim=v["claim"],
        source=v["source"],
        says=v["says"],
        estimate=Estimate(*(finite(v[k], math.nan) for k in ("value", "low", "high"))),
        within=(finite(low, -math.inf), finite(high, math.inf)),
        verdict=v["verdict"],
        expected=v["expected"],
        headline=False,
        cells=v["cells"],
        diverged=v["diverged"],
        seeds=v.get("seeds", 0),
        theory=v.get("theory"),
        agrees=v.get("agrees"),
        kind=v.get("kind", ""),
        because=tuple(v.get("because", ())),
        at=v.get("at", ""),
        decided_at=v.get("decided_at", ""),
        conditions=conditions or None,
    )


def columns(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """How many facts there are of each kind, and what became of them."""
    told = {}
    for kind in ("printed", "corrected", "own", ""):
        some = [{"verdict": v.verdict, "expected": v.expected} for v in verdicts if v.kind == kind]
        if some or kind:
            told[COLUMNS[kind]] = outcomes(some)
    return told


def met(verdicts: Sequence[Verdict]) -> str:
    """The fewest and the most conditions of the theorem that are met."""
    known = [v.conditions for v in verdicts if v.conditions]
    if not known:
        return ""
    least, most = min(m.satisfied for m in known), max(m.satisfied for m in known)
    return f"{least} to {most} of {known[0].of}" if least < most else f"{least} of {known[0].of}"
