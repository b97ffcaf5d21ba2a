"""The page of what is covered: made from the studies' pages, and up to date."""

from pathlib import Path

import pytest

from provingground.atlas import coverage
from provingground.atlas.coverage import Item
from provingground.atlas.records import tracked

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"


def test_the_page_is_up_to_date():
    """If this fails: `make docs`."""
    assert PAGE.read_text(encoding="utf-8") == coverage.page(*tracked())


def test_every_row_of_a_study_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    for study in ("benign_overfitting", "in_context_learning"):
        found = coverage.items(study)
        assert len(found) > 25
        assert all(f"| {item.name} | {item.where} |" in text for item in found)


@pytest.mark.parametrize(
    ("where", "built", "names"),
    [
        ("`a_claim`, `theory.a_law`; `test_it`", True, ["a_claim", "a_law", "test_it"]),
        ("not built: why", False, []),
        ("not built: why; but `a_claim`", True, ["a_claim"]),
        ("README.md", True, []),
    ],
)
def test_what_a_row_says(where, built, names):
    item = Item("Theorem 1", where)
    assert item.built == built
    assert item.names == names


def test_outcomes_are_those_of_the_record(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "STUDIES", tmp_path)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "coverage.md").write_text(
        "# Page\n\n| item | where |\n|---|---|\n| Theorem 1 | `a`, `b`, `a` |\n"
        "| Lemma 2, $\\|x\\|$ | not built: why |\n"
    )
    verdict = {"study": "one", "expected": "holds"}
    record = {
        "scale": "paper",
        "verdicts": [
            {**verdict, "claim": "a", "verdict": "holds"},
            {**verdict, "claim": "b", "verdict": "unknown"},
            {**verdict, "claim": "c", "verdict": "holds"},
        ],
    }
    page = coverage.page([record], {"one": "First"})
    assert "| Theorem 1 | `a`, `b`, `a` | 1 holds, 1 unknown |" in page
    assert "| Lemma 2, $\\|x\\|$ | not built: why |  |" in page
    assert "| [`one`](#one) | 2 | 1 | 1 | paper |" in page
