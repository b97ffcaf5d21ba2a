"""The page of what fails as printed: complete, in words, and up to date."""

from pathlib import Path

from provingground.atlas import findings
from provingground.atlas.records import by_scale, tracked

PAGE = Path(__file__).parents[1] / "docs" / "findings.md"
BACK = ("the same ", "nor ", "it ", "and ", "so ", "there ")  # words that point to another claim


def verdict(claim, **more):
    return {
        "study": "one", "experiment": "fig1", "claim": claim, "source": "Theorem 1",
        "says": f"what {claim} says", "verdict": "holds", "expected": "holds", "kind": "own",
        "because": [], "value": 1.0, "low": 0.5, "high": 1.5, "within": [None, 0.2],
    } | more  # fmt: skip


def test_the_page_is_up_to_date():
    """If this fails: `make docs`."""
    assert PAGE.read_text(encoding="utf-8") == findings.page(*tracked(), findings.words_of_today())


def test_every_printed_statement_that_fails_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    for record in tracked()[0]:
        for v in findings.failing(record["verdicts"]):
            assert f"| `{v['experiment']}/{v['claim']}` |" in text


def test_statements_that_fail_can_be_read_by_themselves():
    from provingground.registry import study
    from provingground.studies import STUDIES

    claims = [c for name in STUDIES for e in study(name).experiments for c in e.claims]
    failing = [c for c in claims if c.expected == "fails" and c.kind == "printed"]
    assert len(failing) > 50
    assert [c.name for c in failing if c.says.startswith(BACK)] == []


def test_explanations_stand_once_and_scales_apart():
    wrong = dict(verdict="fails", expected="fails", kind="printed", because=["c", "gone"])
    told = [
        verdict("a", **wrong),
        verdict("b", **wrong),
        verdict("c"),
        verdict("d", kind="printed"),
    ]
    told.append(verdict("e", **wrong, experiment="real"))
    record = {
        "scale": "paper and quick", "verdicts": told,
        "provenance": {"one/fig1": {"scale": "paper"}, "one/real": {"scale": "quick"}},
    }  # fmt: skip
    assert list(by_scale(record)) == ["paper", "quick"]
    page = findings.page([record], {"one": "First"}, {("one", "fig1", "b"): "better words"})
    assert "3 statements." in page
    paper, _, quick = page.partition("## one, quick scale")
    row = "| `fig1/a` | what a says (Theorem 1) | 1 [0.5, 1.5] | below 0.2 | `c`, `gone` |"
    assert row in paper
    assert "| better words (Theorem 1) |" in paper
    assert paper.count("- `c`: what c says. 1 [0.5, 1.5], holds.") == 1
    assert "`fig1/d`" not in page
    assert "`real/e`" in quick


def test_bounds_are_told_as_the_claim_has_them():
    assert findings.bound({"within": [0.5, None]}) == "above 0.5"
    assert findings.bound({"within": [None, 2.0]}) == "below 2"
    assert findings.bound({"within": [0.5, 2.0]}) == "0.5 to 2"
