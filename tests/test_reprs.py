"""What things show of themselves: as text, and in a notebook."""

import dataclasses
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import provingground as pg
from provingground import planning, plot, registry, reprs, stats
from provingground.claims import Claim
from provingground.stats import Estimate
from provingground.studies import SKELETON, STUDIES
from provingground.study import Condition, Conditions, Prediction, axis, cases
from provingground.verdict import Met, Verdict, Verdicts
from provingground.words import count
from tiny import tiny, with_trainings

EVIL = '<script>alert("x")</script>&\x1b[31m'
SAFE = "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;\\x1b[31m"
TAGS = {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "span", "details", "summary"}
named = pytest.mark.parametrize("name", [*STUDIES, SKELETON])


class Outline(HTMLParser):
    """The tags of a page, which must be closed in order, and its words."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def page(thing) -> Outline:
    """The page of a thing, which takes nothing from elsewhere and sets no colour of text."""
    html = thing._repr_html_()
    found = Outline(html)
    assert found.attributes <= {"style", "colspan"}
    assert set(found.tags) <= TAGS
    assert not re.search(r"background(-color)?\s*:", html)
    return found


def verdict(name="falls", decided="holds", **more) -> Verdict:
    known = dict(
        study="own", experiment="first", claim=name, source="T", says="it falls",
        estimate=Estimate(1.04, 0.9419, 1.137), within=(0.75, 1.25), verdict=decided,
        expected="holds", headline=True, cells=6, diverged=0, seeds=3,
    )  # fmt: skip
    return Verdict(**(known | more))  # pyright: ignore


# --------------------------------------------------------------------------- verdicts


def test_verdicts_are_a_list_and_a_table():
    found = Verdicts([verdict(), verdict("rises", "fails"), verdict("end", experiment="second")])
    assert isinstance(found, list)
    assert found[1].claim == "rises"
    assert repr(found) == (
        "3 claims: 2 hold, 1 surprise\n"
        "  claim  measured              bound         verdict\n"
        "own/first:\n"
        "  falls  1.04 [0.9419, 1.137]  0.75 to 1.25  holds\n"
        "  rises  1.04 [0.9419, 1.137]  0.75 to 1.25  fails, SURPRISE\n"
        "own/second:\n"
        "  end    1.04 [0.9419, 1.137]  0.75 to 1.25  holds"
    )
    words = page(found).words
    for word in ("falls", "1.04 [0.9419, 1.137]", "0.75 to 1.25", "it falls", "own/second", "✗"):
        assert word in words
    assert " fails, SURPRISE" in words
    assert repr(Verdicts()) == "no claims"
    foreseen = verdict(decided="fails", expected="fails")
    assert repr(Verdicts([verdict()])).startswith("1 claim: 1 holds\n")
    assert repr(Verdicts([verdict()] * 6)).startswith("6 claims: 6 hold\n")
    assert page(Verdicts([foreseen] * 2)).words[0] == "2 claims: 2 fail as expected"
    assert "table" not in page(Verdicts()).tags


def test_a_verdict_says_what_was_expected_and_what_would_decide_it():
    failed = verdict(decided="fails", expected="fails", note="It is too short.")
    assert repr(failed) == (
        "own/first falls: 1.04 [0.9419, 1.137], 0.75 to 1.25: fails, as expected"
    )
    assert "it falls. It is too short" in page(failed).words
    wide = verdict(decided="unknown", estimate=Estimate(1.0, 0.7, 1.3))
    assert f"it falls. About {wide.seeds_needed} seeds would decide it" in page(wide).words
    lost = verdict(decided="unknown", estimate=Estimate(math.nan, math.nan, math.nan))
    assert "it falls" in page(lost).words


def test_what_was_not_measured_says_why():
    why = "could not be measured: no such axis"
    lost = verdict("rises", "unmeasured", note=why)
    assert repr(lost).endswith(f": unmeasured. {why}")
    told = repr(Verdicts([verdict(), lost]))
    assert told.endswith(f"  0.75 to 1.25  unmeasured\n      {why}")
    assert f"it falls. {why}" in page(Verdicts([lost])).words


def test_conditions_of_an_experiment_are_those_of_all_its_verdicts():
    one, other = Met(2, 2, 1.25), Met(1, 2, 0.58, ("bound",))
    found = Verdicts([verdict(conditions=one), verdict(conditions=other), verdict()])
    told = "own/first (1 to 2 of 2 conditions, worst margin 0.58; vacuous: bound)"
    assert f"\n{told}:\n" in repr(found)
    assert told in page(found).words
    assert str(one) == "2 of 2 conditions"


def test_the_theory_s_value_may_lie_in_the_joint_intervals_alone():
    alone = Estimate(0.9, 0.82, 0.97)
    fine = verdict(estimate=alone, theory=1.0, agrees=True, decided_at="n = 30")
    assert fine.details == (
        "Decided at n = 30. The joint intervals of all settings hold the theory's own value, 1"
    )
    assert verdict(theory=1.0, agrees=True).details == ""
    assert verdict(estimate=alone, theory=1.0, agrees=False).details == (
        "The interval excludes the theory's own value, 1"
    )
    assert verdict(theory=1.0, agrees=False, decided_at="n = 30").details.endswith(
        "The joint interval of another setting excludes the theory's own value, 1"
    )


def test_text_is_as_wide_as_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    for thing in (pg.studies(), registry.study("toy"), pg.show("benign_overfitting/fig1b")):
        lines = repr(thing).splitlines()
        assert max(map(len, lines)) <= 60
        assert len(lines) > 5


def test_an_estimate_is_short():
    estimate = Estimate(1.04321, 0.94191, 1.13722)
    assert repr(estimate) == str(estimate) == "1.043 [0.9419, 1.137]"
    assert "1.043 [0.9419, 1.137]" in page(estimate).words
    assert estimate == (1.04321, 0.94191, 1.13722)


def test_a_law_is_its_formula_and_its_constants():
    y = xr.DataArray([[3.0, 12, 48]] * 3, [("seed", [0, 1, 2]), ("dim", [1, 2, 4])])
    assert repr(stats.power_law(y, "dim")) == (
        "power law y = C x^s, fitted for x from 1 to 4\n  s  2 [2, 2]\n  C  3 [3, 3]"
    )
    linear = stats.linear_law(y, "dim", window=(1, 2))
    assert repr(linear).startswith(
        "linear law y = C + s x, fitted for x from 1 to 2\n  s  9 [9, 9]"
    )
    assert "-6 [-6, -6]" in page(linear).words
    assert linear.slope.value == linear[0].value == pytest.approx(9)


def test_a_boundary_is_a_law_and_its_thresholds():
    n, snr = xr.DataArray([1.0, 10, 100], dims="n"), xr.DataArray([0.5, 1, 2, 4], dims="snr")
    error = (1 - 0.1 * snr * np.log10(n)).expand_dims(seed=3).assign_coords(n=n, snr=snr)
    found = stats.phase_boundary(error, along="n", of="snr", level=0.8, window=(0.5, math.inf))
    text, words = repr(found), page(found).words
    assert text.startswith("boundary n = C snr^s, fitted for snr from 0.5 to inf\n  s  -")
    assert "\n4 thresholds, 1 left out of the fit\n  snr  n\n  0.5  nan [nan, nan]\n" in text
    assert text.endswith("  2    10 [10, 10]\n  4    3.162 [3.162, 3.162]")
    assert {"snr", "n", "10 [10, 10]"} <= set(words)
    many = found._replace(points=found.points.isel(snr=[2] * 40))
    assert len(repr(many).splitlines()) == 10


def test_a_replay_is_a_list_of_what_it_holds(shared_store):
    ds = pg.run("toy/risk", seeds=3, samples=[20], noise=[1.0], steps=40, store=shared_store)
    again = pg.replay(ds, seed=1)
    assert repr(again) == (
        "one cell again\n"
        "              size      is\n"
        "probes:\n"
        "  train_loss  step 41   training loss\n"
        "  test_loss   a number  excess risk\n"
        "trajectory:\n"
        "  train_loss  step 41   training loss\n"
        "weights:\n"
        "  array       10"
    )
    assert {"probes", "trajectory", "weights", "step 41", "excess risk"} <= set(page(again).words)
    bare = again._replace(trajectory=xr.Dataset(), weights={"w": again.weights, "b": 1.0})
    assert repr(bare).endswith(
        "trajectory:\n  (none)\nweights:\n  b           a number\n  w           10"
    )


def test_a_check_gives_verdicts(shared_store):
    found = pg.check("toy", seeds=3, store=shared_store)
    assert isinstance(found, Verdicts)
    assert "noise_exponent" in page(found).words


# --------------------------------------------------------------------------- theory


def test_conditions_are_a_table_of_both_sides():
    found = pg.conditions("toy", samples=11)
    assert isinstance(found, list)
    assert [c.satisfied for c in found] == [False, True]
    assert repr(found) == (
        "2 conditions, 1 satisfied\n"
        "  condition  left      right  margin  satisfied\n"
        "  samples    11    >=  12     0.917   no\n"
        "  step size  0.4   <=  0.5    1.25    yes"
    )
    assert repr(found[0]) == "samples: 11 >= 12 violated, margin 0.917"
    assert "the mean excess risk is finite" in page(found).words
    assert {"✗", " no", "✓", " yes"} <= set(page(found).words)
    assert "the mean excess risk is finite" in page(found[0]).words


def test_a_prediction_has_conditions_and_values():
    found = pg.theory("toy", settings={"dim": 3}, noise=2)
    toy = registry.study("toy")
    assert found == toy.theory(toy.simulator()[1].config(dim=3, noise=2.0))
    assert repr(found).endswith("prediction   value\n  excess_risk  0.333333")
    assert {"excess_risk", "0.333333", "step size"} <= set(page(found).words)
    assert repr(Prediction((), {})) == "0 conditions, 0 satisfied"


# --------------------------------------------------------------------------- studies


@named
def test_every_study_shows_itself(name):
    study = registry.study(name)
    text, found = repr(study), page(study)
    assert text.startswith(f"{name}: {study.title}\n{study.cite}\n")
    for e in study.experiments:
        rows = [line.split() for line in text.splitlines() if line.split()[0] == e.name]
        assert rows[0][-1] == str(len(e.claims))
        assert e.says in found.words
        assert repr(e).startswith(f"{e.name}: {e.says}")
        shown = page(e)
        for claim in e.claims:
            assert claim.name in repr(e)
            assert claim.says in shown.words
        assert set(e.trainings.settings("paper")) <= set(shown.words)
    for p in (p for s in study.simulators.values() for p in s.config.pars.values()):  # pyright: ignore
        assert {p.name, p.allowed, p.says} <= set(found.words)
    prediction = pg.theory(name)
    assert repr(prediction).splitlines()[1:]
    assert {c.name for c in prediction.conditions} <= set(page(prediction).words)
    assert page(pg.conditions(name)).words == page(Conditions(prediction.conditions)).words
    for condition in prediction.conditions:
        assert repr(condition).startswith(condition.name)


@named
def test_every_experiment_is_shown_without_being_run(name, store):
    study = registry.study(name)
    for e in study.experiments[:3]:
        found: Any = pg.show(
            f"{name}/{e.name}", scale="paper" if e.trainings.paper_only else "quick", store=store
        )
        words = page(found).words
        assert f"{count(found.cost.cells, 'cell')}, 0 stored; " in repr(found)
        assert "not timed on this machine yet" in repr(found)
        assert {c.name for c in e.claims_at(found.sweep.scale)} <= set(words)
        assert {a.name for a in found.sweep.axes} <= set(words)
    assert not list(store.path.glob(f"{name}/*"))


def test_studies_are_listed_with_their_claims():
    found = pg.studies()
    assert isinstance(found, dict)
    assert [line.split()[0] for line in repr(found).splitlines()[2:]] == list(STUDIES)
    assert repr(found).startswith("10 studies\n")
    claims = {s.name: str(sum(len(e.claims) for e in s.experiments)) for s in found.values()}
    assert {*found, *claims.values()} <= set(page(found).words)


def test_grids_of_all_kinds_are_told():
    grid = {
        "rate": [0.1 * n for n in range(30)],
        "count": 5,
        "ratio": axis([1, 2], "r", "ratio"),
        "kind": cases({"narrow": {"width": 1}, "wide": {"width": 8}}),
        "width": range(1, 3),
    }
    e = with_trainings(tiny().experiments[0], grid=grid)
    text = repr(e)
    for told in ("0, 0.1, 0.2, ..., 2.9 (30 values)", "narrow, wide", "1, 2", "fixed  5"):
        assert told in text
    assert "quick" not in text  # both scales are the same
    assert "paper" in repr(with_trainings(e, quick={"count": 2}))
    assert "rate (30), ratio (2), kind (2), width (2)" in repr(
        dataclasses.replace(tiny(), experiments=(e,))
    )


def test_what_is_stored_is_shown_with_its_verdicts(store):
    study = tiny()
    before: Any = pg.show(study, "first", store=store)
    pg.run(study, "first", seeds=2, store=store, progress=False)
    between: Any = pg.show(study, "first", store=store)
    pg.run(study, "first", store=store, progress=False)
    after: Any = pg.show(study, "first", store=store)
    costs = [o.cost for o in (before, between, after)]
    assert [(c.cells, c.stored) for c in costs] == [(18, 0), (18, 12), (18, 18)]
    assert (before.verdicts, between.verdicts) == (None, None)
    assert [v.claim for v in after.verdicts] == ["one"]
    assert between.cost.seconds > 0
    assert "18 cells, 12 stored; 6 cells to run with 2 programs, about" in repr(between)
    assert "18 cells, 18 stored; nothing to run\n" in repr(after)
    assert " holds" in page(after).words
    assert pg.show(study) is study


# ------------------------------------------------------------------------- what names hold


def test_names_are_escaped():
    claim = Claim("one", EVIL, lambda ds: Estimate(0, 0, 0), (0, 1), EVIL)
    first = dataclasses.replace(tiny().experiments[0], says=EVIL, claims=(claim,))
    study = dataclasses.replace(tiny(), title=EVIL, cite=EVIL, experiments=(first,))
    things: list[Any] = [
        study,
        first,
        pg.show(study, "first"),
        registry.Studies({"tiny": study}),
        Condition(EVIL, 1.0, "<=", 2.0, EVIL),
        Prediction((), {EVIL: 1.0}),
        Verdicts([verdict(EVIL, says=EVIL, note=EVIL, study=EVIL)]),
    ]
    for thing in things:
        html = thing._repr_html_()
        assert SAFE in html
        assert "<script" not in html
        assert "\x1b" not in html + repr(thing)
        page(thing)


def test_text_is_listed_in_columns():
    table = reprs.Table(("a", "b", "c"), [("x", "yy", "hidden"), "head", ("xxx", "", "")], short=2)
    assert reprs.as_text(["title", table]) == "title\n  a    b\n  x    yy\nhead:\n  xxx"
    assert "hidden" in reprs.as_html(["title", table])


# --------------------------------------------------------------------------- figures


def test_a_figure_is_a_picture_and_a_line(shared_store):
    ds = pg.run("toy/risk", seeds=3, store=shared_store)
    fig = pg.figure(ds)
    assert repr(fig).startswith("<figure 'Excess risk of least squares': 1 panel, 3.5 x ")
    picture, size = fig._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert size["width"] == 437
    assert size["height"] == int(125 * fig.get_size_inches()[1])


def test_no_window_is_opened():
    code = (
        "import sys, provingground as pg\n"
        "fig, (ax,) = pg.plot.figure()\n"
        "fig._repr_png_(); repr(fig)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert issubclass(plot.Sheet, Figure)


# --------------------------------------------------------------------------- the interface


def test_the_package_offers_its_interface_and_nothing_else():
    code = (
        "import sys, provingground as pg\n"
        "assert dir(pg) == sorted(pg.__all__)\n"
        "slow = {'numpy', 'jax', 'xarray', 'matplotlib'} & set(sys.modules)\n"
        "assert not slow, slow\n"
        "for name in pg.__all__: assert getattr(pg, name) is not None\n"
        "assert dir(pg) == sorted(pg.__all__)\n"
        "assert callable(pg.figure) and callable(pg.new_study)\n"
        "from provingground import *\n"
        "run, plot.curve, stats.mean\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    public = {name for name in vars(pg) if not name.startswith("_")}
    modules = {n.split(".")[1] for n in sys.modules if n.startswith("provingground.")}
    assert public <= set(pg.__all__) | modules


def test_the_dims_of_probes_are_told_with_the_probes_that_have_them():
    sweep = planning.job("in_context_learning", "fig6_3a").sweep
    told = dict(reprs.probe_dims(sweep))
    assert told["coef_sum (measured)"] == "dim of sum_loss, sum_error"
    assert told["step (measured)"].startswith("dim of attention, attn_leak, ")
    assert re.search(r" and \d+ more$", told["step (measured)"])
