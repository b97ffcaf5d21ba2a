"""The report and the records: escaping, broken figures, every kind of verdict, digits."""

import dataclasses
import itertools
import json
import re
import sys
from html.parser import HTMLParser
from math import inf, nan
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import xarray as xr

from provingground import __version__, plot
from provingground.atlas import records as records_module
from provingground.atlas import render
from provingground.atlas.latex import plain
from provingground.atlas.records import (
    END,
    OUTCOMES,
    RESULTS,
    START,
    at_paper_scale,
    badge_table,
    by_scale,
    claims_of_today,
    outcome,
    renewed,
    tally,
    tracked,
    update_table,
    verdict_record,
)
from provingground.atlas.render import Entry, bound, gauge, measured, number, panels, report
from provingground.claims import Claim
from provingground.errors import InputError
from provingground.stats import Estimate
from provingground.study import Experiment, Prediction, Study, Trainings
from provingground.verdict import Decision, Verdict, judge

COMMIT = "0123456789abcdef" * 2 + "01234567"
MARKUP = "<script>alert('x')</script> & \"quoted\""


def results(**attrs: Any) -> xr.Dataset:
    """Five seeds of a falling loss, with the attributes that the engine writes."""
    loss = 1 / np.arange(2.0, 6.0) + 0.01 * np.arange(5.0)[:, None]
    ds = xr.Dataset({"test_loss": (("seed", "samples"), loss)})
    ds = ds.assign_coords(seed=range(5), samples=[4, 8, 16, 32])
    ds.samples.attrs = {"long_name": "training samples", "symbol": "N"}
    ds.attrs = {
        "study": "tiny",
        "experiment": "first",
        "scale": "quick",
        "grid": json.dumps({"samples": [4, 8, 16, 32]}),
        "settings": json.dumps({"noise": 0.1234567891, "label": MARKUP}),
        "cells": 20,
        "missing": 0,
        "diverged": 0,
        "device": "cpu",
        "commit": COMMIT,
        "fingerprint": "0123abcd",
        "seconds": 1.5,
    } | attrs
    return ds


def line(ds: xr.Dataset) -> Any:
    fig, axes = plot.figure(title="Loss")
    plot.curve(np.ravel(np.asarray(axes, dtype=object))[0], ds.test_loss, "samples")
    return fig


def broken(ds: xr.Dataset) -> Any:
    raise ValueError(f"no such axis {MARKUP}")


def claim(name: str, low: float, high: float, **options: Any) -> Claim:
    """A claim about the number one, known up to 0.1."""
    says = options.pop("says", rf"what {name} says, $\frac12\log N$ and N^(-1/2)")
    about = Estimate(1.0, 0.9, 1.1)
    return Claim(name, says, lambda ds: about, (low, high), "Theorem 1 & 2", **options)


CLAIMS = (
    claim("good", 0.5, inf),
    claim("wide", 0.95, 1.3, note="Too few seeds yet."),
    claim("wrong", 4, inf),
    claim("known", -inf, 0.5, expected="fails", note=MARKUP),
    claim("odd", 0.8, 1.2, expected="fails", note="the paper's constant", says=MARKUP),
)


def study(figure: Any = line, claims: tuple[Claim, ...] = CLAIMS, name: str = "tiny") -> Study:
    first = Experiment(
        "first",
        "How the loss falls.",
        Trainings({}, 5),
        claims,
        figure,
    )
    return Study(name, "A tiny study", f"A. Author {MARKUP}", {}, lambda cfg: Prediction((), {}),
                 (first, Experiment("second", "Once more.", Trainings({}, 5), (), figure,)),
                 statement=r"The loss falls as $N^{-1/2}$ & no faster.")  # fmt: skip


def entry(owner: Study, ds: xr.Dataset, which: int = 0) -> Entry:
    experiment = owner.experiments[which]
    return Entry(owner, experiment, ds, [judge(c, ds, which == 0) for c in experiment.claims])


@pytest.fixture(scope="module")
def page() -> str:
    owner, ds = study(), results(note=MARKUP)
    return report([entry(owner, ds), entry(owner, ds, 1)], scale="quick", seconds=75)


class Structure(HTMLParser):
    """Checks that tags nest; collects tags, anchors, links and resources."""

    def __init__(self, page: str):
        super().__init__()
        self.tags, self.ids, self.links, self.sources, self.open = [], [], [], [], []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        if tag in ("meta", "link", "img", "br"):
            self.sources += [v for k, v in attrs if k in ("src", "href")]
        else:
            self.open.append(tag)
            self.links += [found["href"]] if "href" in found else []

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data if self.open and self.open[-1] != "style" else ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def row(page: str, name: str) -> str:
    """The text of a claim's row in the table beside its figure."""
    cells = page.split(f'<tr id="tiny-first-{name}">')[1].split("</tr>")[0]
    return " ".join(re.sub(r"<[^>]*>", " ", cells).split())


# --------------------------------------------------------------------------- the page


def test_page_is_well_formed_and_needs_nothing_else(page: str) -> None:
    parts = Structure(page)
    assert parts.open == []
    assert all(s.startswith("data:") for s in parts.sources)
    assert {"script", "iframe", "object", "form"}.isdisjoint(parts.tags)
    assert "http://" not in page
    assert "https://" not in page
    assert "srcset" not in page
    assert "url(" not in page
    assert "@import" not in page


def test_figures_come_first_and_the_long_table_last(page: str) -> None:
    places = [page.index(part) for part in (
        '<p class="summary', '<h2 id="tiny"', '<p class="statement"', 'id="tiny-first"', "<img ",
        '<table class="claims"', "<summary>Provenance", 'id="tiny-second"', '<h2 id="verdicts"',
        '<table class="verdicts"')]  # fmt: skip
    assert places == sorted(places)
    assert page.count('<table class="claims"') == 1  # the second experiment has no claims
    assert page.rindex("<img ") < page.index('<table class="verdicts"')


def test_a_study_opens_with_its_statement(page: str) -> None:
    text = Structure(page).text
    assert "The loss falls as N−1/2 & no faster." in text
    silent = dataclasses.replace(study(), statement="")
    assert 'class="statement"' not in report([entry(silent, results())], scale="quick")


def test_mathematics_is_typeset(page: str) -> None:
    text = Structure(page).text
    assert not re.search(r"\$|\\[a-zA-Z]", text)
    assert "<mfrac><mn>1</mn><mn>2</mn></mfrac>" in page
    assert "N<sup>−1/2</sup>" in page


def test_formulas_in_captions_and_alt_texts_read_as_words() -> None:
    def drawn(ds: xr.Dataset) -> Any:
        fig, (ax,) = plot.figure()
        plot.curve(ax, ds.test_loss, "samples")
        plot.theory_curve(ax, [4, 32], [0.3, 0.3], r"floor: $\frac{1}{2}\log 2$")
        plot.theory_curve(ax, [4, 32], [0.2, 0.2], r"$\alpha_*-\alpha_\#$")
        return fig

    page = report([entry(study(drawn), results())], scale="quick")
    (alt,) = re.findall(r'<img [^>]*alt="([^"]*)"', page)
    assert "floor: 1/2 log 2; α_* - α_#" in alt
    caption = page.split("<figcaption>")[1].split("</figcaption>")[0]
    assert "<mfrac>" in caption
    assert not re.search(r"[$\\]", re.sub(r'alttext="[^"]*"', "", caption))


def test_headings_descend_one_by_one_and_tables_have_headers(page: str) -> None:
    levels = [int(tag[1]) for tag in Structure(page).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert page.count("<th ") == page.count('scope="')


def test_paper_gets_everything() -> None:
    """Printed, folded parts are open and neither figures nor rows are split."""
    css = (Path(render.__file__).parent / "templates" / "report.css").read_text()
    printed = css.split("@media print")[1]
    assert "details::details-content { display: block" in printed
    assert re.search(r"tr, figure[^{]*\{ break-inside: avoid", printed)
    assert "prefers-color-scheme: dark" in css


def blocks(css: str) -> dict[str, str]:
    """The rules of a style sheet, those outside of any @media first, by what they are for."""
    found = {"": re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", css)}
    for media, rules in re.findall(r"@media ([^{]*?) *\{((?:[^{}]*\{[^{}]*\})*)[^{}]*\}", css):
        found[media] = rules
    return found


def test_intervals_stay_on_one_line_on_a_screen(page: str) -> None:
    assert '<span class="number">1.00 [0.90, 1.10]</span>' in page
    assert '<td class="number" data-label="measured ">1.00 [0.90, 1.10]</td>' in page
    sheet = blocks((Path(render.__file__).parent / "templates" / "report.css").read_text())
    assert re.search(r"^\.number \{[^}]*white-space: nowrap", sheet[""], re.MULTILINE)
    on_screen = [rules for media, rules in sheet.items() if media != "print"]
    assert not any(re.search(r"number[^{]*\{[^}]*white-space: normal", r) for r in on_screen)


def test_figures_that_scroll_on_a_narrow_screen_say_so() -> None:
    sheet = blocks((Path(render.__file__).parent / "templates" / "report.css").read_text())
    (rules,) = [rules for rules in sheet.values() if ".picture { overflow-x: auto" in rules]
    assert re.search(r"\.picture::before \{[^}]*content: [^;]*scrolls sideways", rules)


def test_links_lead_to_anchors(page: str) -> None:
    parts = Structure(page)
    assert len(parts.ids) == len(set(parts.ids))
    assert {link.removeprefix("#") for link in parts.links} <= set(parts.ids)
    assert {"tiny", "tiny-first", "tiny-second", "tiny-first-wrong"} <= set(parts.ids)


def test_markup_in_attributes_claims_and_errors_is_escaped() -> None:
    page = report([entry(study(broken), results(device=MARKUP))], scale="quick")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "The figure could not be drawn" in page
    assert "ValueError: no such axis &lt;script&gt;" in page
    assert "<img" not in page


def test_summary_counts_every_outcome_once(page: str) -> None:
    assert "5 claims: 1 holds, 1 fails as expected, 1 unknown, 2 surprises" in page
    run = f"run time 75 s · version {__version__} · commit {COMMIT[:12]} · date 20"
    assert f"scale quick · device cpu · {run}" in page


def test_rows_read_without_colour(page: str) -> None:
    assert "✓ holds as expected" in row(page, "good")
    assert "✗ fails as expected" in row(page, "known")
    assert "✗ fails ! surprise: expected to hold" in row(page, "wrong")
    assert "✓ holds ! surprise: expected to fail" in row(page, "odd")
    assert "? unknown undecided; expected to hold" in row(page, "wide")
    assert "1.00 [0.90, 1.10] bound &gt; 0.5" in row(page, "good")
    assert "Theorem 1 &amp; 2" in row(page, "good")


def test_unknown_rows_say_what_would_decide_them(page: str) -> None:
    text = row(page, "wide")
    assert "A headline claim left undecided. Too few seeds yet. About " in text
    assert "seeds would decide it (now 5)." in text
    assert "To look into" in page


def test_missing_and_diverged_cells_ask_for_no_seeds() -> None:
    for what in ("missing", "diverged"):
        page = report([entry(study(), results(**{what: 3}))], scale="quick")
        text = row(page, "good")
        assert "? unknown" in text
        assert f"3 of 20 cells {'are ' * (what == 'missing')}{what}." in text
        assert "seeds would" not in text
        assert f"5 seeds each; 3 {what}" in page
    assert "not measured" in row(report([entry(study(), results(missing=1))], scale="quick"), "odd")


def test_figures_captions_and_provenance(page: str) -> None:
    assert page.count("data:image/png;base64,") == 2
    assert "20 trainings over training samples (4, 8, 16, 32), 5 seeds each" in page
    assert "<strong>Found</strong> for 5 claims" in page
    assert "<strong>Found</strong> for no claims" in page
    facts = page.split("<details>")[1].split("</details>")[0]
    for text in ("<b>noise</b>: 0.123457", "0123abcd", "seconds of computing", "5: 0, 1, 2, 3, 4"):
        assert text in facts
    assert all(f"<dt>{name}</dt>" in facts for name in results().attrs if name != "seconds")
    told = re.findall(r"<dt>(.*?)</dt>\s*<dd>\s*(.*?)\s*</dd>", facts)
    assert told[:2] == [("commit", COMMIT), ("version", "not recorded")]


def test_entries_are_grouped_by_study() -> None:
    one, two = study(broken), study(broken, name="other")
    ds = results()
    page = report([entry(one, ds), entry(two, ds), entry(one, ds, 1)], scale="quick")
    anchors = [i for i in Structure(page).ids if re.fullmatch("(tiny|other)(-first|-second)?", i)]
    assert anchors == ["tiny", "tiny-first", "tiny-second", "other", "other-first"]


def test_a_report_of_nothing_is_a_page() -> None:
    assert "no claims" in report([], scale="paper")


# --------------------------------------------------------------------------- words and numbers


@pytest.mark.parametrize(
    ("within", "text"),
    [((4, inf), "> 4"), ((-inf, 3), "< 3"), ((0.93, 1), "0.93 to 1"), ((0, 1e-7), "0 to 1e-7")],
)
def test_bounds(within: tuple[float, float], text: str) -> None:
    assert bound(within) == text


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        ((-0.48312, -0.5201, -0.4459), "-0.483 [-0.520, -0.446]"),
        ((974.2, 898.3, 1050.1), "974 [898, 1050]"),
        ((4.66e-8, 3.56e-8, 5.75e-8), "4.66e-8 [3.56e-8, 5.75e-8]"),
        ((2.0, 2.0, 2.0), "2 [2, 2]"),
        ((0.0, -1e-5, 0.02), "0.000 [0.000, 0.020]"),
        ((3.0, 1.0, inf), "3.0 [1.0, ∞]"),
        ((2.1, 1.8, 2.9996), "2.1000 [1.8000, 2.9996]"),  # not "3.0": the bound is 3
        ((nan, nan, nan), "not measured"),
    ],
)
def test_measured_numbers_have_sensible_digits(estimate: Any, text: str) -> None:
    assert measured(Estimate(*estimate), (3, inf)) == text


def test_numbers_as_text() -> None:
    assert [number(x) for x in (0, 15.625, 123456, 2.5e7, -inf, nan)] == [
        "0", "15.62", "123456", "2.5e7", "-∞", "n/a"]  # fmt: skip
    assert plain(r"$\tilde\sigma_p = 2$") == "σ̃_p = 2"


def test_gauge_keeps_order_and_stays_on_the_strip() -> None:
    lower, upper, low, high, value = gauge(Estimate(2, 1, inf), (1.5, inf)) or [nan] * 5
    assert 0 < low < lower < value < upper == high == 100
    assert gauge(Estimate(nan, nan, nan), (0, 1)) is None


def test_panels_are_told_in_words() -> None:
    assert panels(line(results())).startswith("test loss against training samples")


# --------------------------------------------------------------------------- records


def verdict(name: str = "tiny", **options: Any) -> Verdict:
    known: dict[str, Any] = dict(
        study=name, experiment="first", claim="c", source="s", says="w", verdict="holds",
        estimate=Estimate(np.float64(1.0), -inf, nan), within=(0.5, inf), expected="holds",
        headline=False, cells=np.int64(4), diverged=0, seeds=3,
    )  # fmt: skip
    return Verdict(**(known | options))


def test_record_is_json_safe() -> None:
    record = verdict_record([verdict()], scale="quick", seconds=2.5, device="cpu")
    again = json.loads(json.dumps(record, allow_nan=False))
    assert again == record
    assert list(record) == ["version", "scale", "device", "seconds", "skipped", "verdicts"]
    assert record["verdicts"] == [
        dict(study="tiny", experiment="first", claim="c", source="s", says="w", value=1.0, low=None,
             high=None, within=[0.5, None], verdict="holds", expected="holds", surprise=False,
             cells=4, diverged=0, kind="printed", bound="ours", theory=None, agrees=None,
             because=[], measured=True, seeds=3, at="", decided_at="", conditions=None)
    ]  # fmt: skip


def test_outcomes_partition_verdicts() -> None:
    pairs = [(v, e) for v in get_args(Decision) for e in ("holds", "fails")]
    counts = tally(outcome(*pair) for pair in pairs)
    expected = {"holds": 1, "fails as expected": 1, "unknown": 2, "surprise": 2, "unmeasured": 2}
    assert counts == expected
    assert tuple(counts) == OUTCOMES


def test_badge_table() -> None:
    verdicts = [verdict(), verdict(verdict="fails"), verdict(name="other", verdict="unknown")]
    records = [
        verdict_record(verdicts, scale="quick", seconds=1, device="cpu"),
        verdict_record(verdicts[:1], scale="paper", seconds=None, device="cpu"),
    ]
    assert badge_table(records).splitlines() == [
        "| study | facts | as printed | conditions met | scale |",
        "| --- | --: | --- | --- | --- |",
        "| `tiny` | 2 | 1 holds, 1 surprise |  | quick |",
        "| `other` | 1 | 1 unknown |  | quick |",
        "| `tiny` | 1 | 1 holds |  | paper |",
    ]
    titled = badge_table(records, titles={"tiny": "Loss | risk"})
    assert "| `tiny` | Loss \\| risk | 2 |" in titled
    assert "| `other` |  | 1 |" in titled


# --------------------------------------------------------------------------- the table of a page

ROOT = Path(__file__).parents[1]
PAGE = f"# Title\n{START}\nbefore\n{END}\nthe end\n"


def test_table_replaces_what_stands_between_the_markers() -> None:
    record = verdict_record([verdict()], scale="paper", seconds=1, device="cpu")
    page = update_table(PAGE, [record], {"tiny": "A tiny study", "other": "Another"}, {})
    assert page.startswith(f"# Title\n{START}\n\n| study | title |")
    assert "| `tiny` | A tiny study | 1 | 1 holds |  | paper |\n" in page
    assert page.endswith(f"No paper-scale record yet: `other` (Another).\n\n{END}\nthe end\n")
    assert "before" not in page
    assert update_table(page, [record], {"tiny": "A tiny study", "other": "Another"}, {}) == page


def test_table_names_claims_that_are_newer_than_the_record() -> None:
    record = verdict_record([verdict()], scale="paper", seconds=1, device="cpu")
    today = {"tiny": (("first", "c"), ("first", "d"), ("second", "c")), "other": (("a", "b"),)}
    page = update_table(PAGE, [record], {"tiny": "A tiny study"}, today)
    assert "not in it yet:\n\n- `tiny`: `first` (`d`), `second` (`c`)\n" in page
    assert "newer" not in update_table(PAGE, [record], {"tiny": "T"}, {"tiny": (("first", "c"),)})


def test_table_without_paper_scale_records_names_the_studies() -> None:
    quick = verdict_record([verdict()], scale="quick", seconds=1, device="cpu")
    for records in ([], [quick]):
        page = update_table(PAGE, records, {"tiny": "A tiny study"}, {})
        assert "No paper-scale record yet: `tiny` (A tiny study)." in page
        assert ("| quick |" in page) == bool(records)


@pytest.mark.parametrize("page", ["", START, END + START, PAGE + PAGE, PAGE + END])
def test_table_needs_both_markers_once(page: str) -> None:
    with pytest.raises(InputError, match="markers"):
        update_table(page, [], {}, {})


def test_command_rewrites_a_page_from_the_records_of_a_folder(tmp_path, monkeypatch) -> None:
    (tmp_path / RESULTS).mkdir(parents=True)
    for name in ("tiny", "benign_overfitting"):
        record = verdict_record([verdict(name)], scale="paper", seconds=1, device="cpu")
        (tmp_path / RESULTS / f"{name}.json").write_text(json.dumps(record))
    (tmp_path / "README.md").write_text(PAGE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["records", "README.md"])
    records_module.main()
    page = (tmp_path / "README.md").read_text()
    assert page.index("`benign_overfitting`") < page.index("`tiny`")
    assert page.endswith("the end\n")


def recorded(*verdicts: Verdict, device: str = "gpu", scale: str = "paper") -> dict[str, Any]:
    record = verdict_record(verdicts, scale=scale, seconds=1.5, device=device)
    about = {"scale": scale, "device": device}
    return record | {"provenance": {f"{v.study}/{v.experiment}": about for v in verdicts}}


def test_experiments_that_were_judged_anew_take_the_place_of_their_old_selves(
    tmp_path, monkeypatch
) -> None:
    old = recorded(verdict(claim="a"), verdict(claim="b"), verdict(experiment="last"))
    new = recorded(
        verdict(claim="c", verdict="fails"), verdict(experiment="extra"), device="gpu; cpu"
    )
    paths = tmp_path / "tiny.json", tmp_path / "new.json"
    for path, record in zip(paths, (old, new), strict=True):
        path.write_text(json.dumps(record))
    monkeypatch.setattr(sys, "argv", ["records", str(paths[0]), "--with", str(paths[1])])
    records_module.main()
    record = json.loads(paths[0].read_text())
    told = [(v["experiment"], v["claim"], v["verdict"]) for v in record["verdicts"]]
    assert told == [("first", "c", "fails"), ("last", "c", "holds"), ("extra", "c", "holds")]
    assert {at: about["device"] for at, about in record["provenance"].items()} == {
        "tiny/first": "gpu; cpu", "tiny/last": "gpu", "tiny/extra": "gpu; cpu",
    }  # fmt: skip
    assert (record["device"], record["seconds"], record["scale"]) == ("gpu; cpu", 3.0, "paper")


def test_what_was_run_at_the_quick_scale_alone_stands_beside_the_rest_and_is_told_apart() -> None:
    paper = recorded(verdict(), verdict(claim="d", verdict="fails", expected="fails"))
    quick = recorded(verdict(experiment="real", claim="e"), scale="quick")
    record = renewed(paper, quick)
    assert record["scale"] == "paper and quick"
    assert {scale: len(told) for scale, told in by_scale(record).items()} == {
        "paper": 2,
        "quick": 1,
    }
    assert [v["claim"] for v in at_paper_scale([record])] == ["c", "d"]
    assert [line for line in badge_table([record]).splitlines() if "tiny" in line] == [
        "| `tiny` | 2 | 1 holds, 1 fails |  | paper |",
        "| `tiny` | 1 | 1 holds |  | quick |",
    ]
    today = {"tiny": (("first", "c"), ("first", "d"), ("real", "e"))}
    page = update_table(PAGE, [record], {"tiny": "A tiny study"}, today)
    assert "not in it yet" not in page
    assert "No paper-scale record" not in page
    anew = renewed(renewed(quick, paper), recorded(verdict(experiment="real", claim="e")))
    assert (anew["scale"], len(anew["verdicts"])) == ("paper", 3)


@pytest.mark.parametrize(
    "newer", [recorded(verdict(), scale="quick"), recorded(verdict(name="other"))]
)
def test_a_quick_one_replaces_none_at_paper_scale_and_studies_are_not_mixed(
    newer: dict[str, Any],
) -> None:
    with pytest.raises(InputError):
        renewed(recorded(verdict()), newer)


def test_readme_s_table_is_what_the_records_give() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert update_table(page, *tracked(ROOT / RESULTS), claims_of_today()) == page, (
        "run `make docs`"
    )
