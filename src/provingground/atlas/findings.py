"""What fails as printed, as one page: the statement, what was measured, and what holds instead.

python -m provingground.atlas.findings docs/findings.md
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from provingground.atlas.records import by_scale, cell, tracked
from provingground.words import count

Place = tuple[str, str, str]  # of a claim: study, experiment, name
HEAD = """# What fails as printed

Every statement of the papers that fails, as printed, in the [records](results/README.md): what was
measured, with its 95% interval, against which bound, and the claims that say what holds instead.
`proving show STUDY/EXPERIMENT` shows a claim with the others of its figure. Made by `make docs`.
"""


def failing(verdicts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The statements of a paper that fail as printed."""
    return [v for v in verdicts if v["verdict"] == "fails" and v.get("kind") == "printed"]


def words_of_today() -> dict[Place, str]:
    """What the claims of the studies say today: a record has the words of its day."""
    from provingground import registry
    from provingground.studies import STUDIES

    studies = [registry.study(name) for name in STUDIES]
    return {
        (s.name, e.name, c.name): c.says for s in studies for e in s.experiments for c in e.claims
    }


def page(
    records: Sequence[Mapping[str, Any]], titles: Mapping[str, str], words: Mapping[Place, str]
) -> str:
    """The whole page, by study and scale; the explanations stand once below their table."""
    parts, told = [], 0
    for record in records:
        now = {"verdicts": [_worded(v, words) for v in record["verdicts"]]}
        for scale, verdicts in by_scale({**record, **now}).items():
            if some := failing(verdicts):
                told += len(some)
                parts.append("\n".join(_part(some, now["verdicts"], scale, titles)))
    return "\n".join([f"{HEAD}\n{count(told, 'statement')}.\n", *parts])


def _worded(v: Mapping[str, Any], words: Mapping[Place, str]) -> dict[str, Any]:
    return {**v, "says": words.get((v["study"], v["experiment"], v["claim"]), v["says"])}


def _part(
    some: Sequence[Mapping[str, Any]],
    known: Sequence[Mapping[str, Any]],
    scale: str,
    titles: Mapping[str, str],
) -> Iterator[str]:
    study = some[0]["study"]
    yield f"## {study}, {scale} scale\n\n{titles.get(study, study)}.\n"
    yield "| claim | the paper's statement | measured | bound | instead |"
    yield "| --- | --- | --- | --- | --- |"
    for v in some:
        instead = ", ".join(f"`{name}`" for name in v["because"])
        name = f"`{v['experiment']}/{v['claim']}`"
        statement = f"{v['says']} ({v['source']})"
        yield f"| {name} | {cell(statement)} | {measured(v)} | {bound(v)} | {instead} |"
    names = dict.fromkeys(name for v in some for name in v["because"])
    reasons = {v["claim"]: v for v in known if v["claim"] in names}
    if reasons:
        yield "\nWhat holds instead:\n"
    for name in names:
        if name in reasons:
            v = reasons[name]
            yield f"- `{name}`: {cell(v['says'])}. {measured(v)}, {v['verdict']}."
    yield ""


def measured(v: Mapping[str, Any]) -> str:
    """A value with its interval."""
    value, low, high = ("?" if v[k] is None else f"{v[k]:.3g}" for k in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def bound(v: Mapping[str, Any]) -> str:
    """What the claim asks of its value."""
    low, high = v["within"]
    if low is None or high is None:
        return f"below {high:.3g}" if low is None else f"above {low:.3g}"
    return f"{low:.3g} to {high:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the page of what fails as printed.")
    parser.add_argument("page", type=Path)
    parser.parse_args().page.write_text(page(*tracked(), words_of_today()), encoding="utf-8")


if __name__ == "__main__":
    main()
