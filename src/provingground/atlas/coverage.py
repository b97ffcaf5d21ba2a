"""What of each paper is here, as one page: the studies' own pages `coverage.md`, with the outcome
of each item in the records of verdicts.

    python -m provingground.atlas.coverage docs/coverage.md
"""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from provingground.atlas.records import outcomes, tracked

STUDIES = Path(__file__).parents[1] / "studies"
NOT_BUILT = "not built"
HEAD = """# What of the papers is here

Every theorem, lemma, figure and table of the papers, and the claims and tests in which it is
judged, or why it is not built. *Outcome* counts the verdicts on the claims of a row, in the record
of the study. Made from the pages `coverage.md` of the studies by `make docs`.
"""


class Item(NamedTuple):
    """A row of a study's page: an item of the paper, and where it is judged."""

    name: str
    where: str

    @property
    def names(self) -> list[str]:
        """What is named there: claims, tests, functions, without the module they stand in."""
        return [n.rpartition(".")[2] for n in re.findall(r"`([a-z0-9_.]+)`", self.where)]

    @property
    def built(self) -> bool:
        return bool(self.names) or not self.where.startswith(NOT_BUILT)


def items(study: str) -> list[Item]:
    """The rows of a study's page."""
    text = (STUDIES / study / "coverage.md").read_text(encoding="utf-8")
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line[:1] == "|"]
    return [Item(*(cell.strip() for cell in row[:2])) for row in rows[2:]]


def page(records: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> str:
    """The whole page."""
    verdicts = {r["verdicts"][0]["study"]: r for r in records if r["verdicts"]}
    rows, parts = [], []
    for study, title in titles.items():
        found = items(study)
        built = sum(item.built for item in found)
        scale = verdicts[study]["scale"] if study in verdicts else "no record"
        told = f"{len(found)} | {built} | {len(found) - built}"
        rows.append(f"| [`{study}`](#{study}) | {told} | {scale} |")
        parts.append("\n".join(_part(study, title, found, verdicts.get(study))))
    table = ["| study | items | judged or tested | not built | record |"]
    table += ["| --- | --: | --: | --: | --- |", *rows]
    return "\n".join([HEAD, *table, "", *parts])


def _part(
    study: str, title: str, found: Sequence[Item], record: Mapping[str, Any] | None
) -> Iterator[str]:
    known: dict[str, list[Mapping[str, Any]]] = {}
    for v in record["verdicts"] if record else ():
        known.setdefault(v["claim"], []).append(v)
    yield f"## {study}\n\n{title}.\n"
    yield "| item of the paper | where | outcome |"
    yield "| --- | --- | --- |"
    for item in found:
        of_it = [v for name in dict.fromkeys(item.names) for v in known.get(name, ())]
        yield f"| {item.name} | {item.where} | {outcomes(of_it)} |"
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the page of what is covered.")
    parser.add_argument("page", type=Path, help="a Markdown file")
    parser.parse_args().page.write_text(page(*tracked()), encoding="utf-8")


if __name__ == "__main__":
    main()
