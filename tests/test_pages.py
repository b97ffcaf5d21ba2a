"""The route table of the atlas: what stands at every path, from stored results alone."""

import csv
import dataclasses
import io
import json
import re
from itertools import pairwise

import numpy as np
import pytest

import provingground as pg
from provingground import registry
from provingground.atlas import papers, payload, tables
from provingground.atlas.pages import Atlas
from provingground.atlas.strips import margin_place, strip
from provingground.errors import InputError
from shown import EVIL, HIT, Parts, broken_links, grid_of, hostile, made_up
from tiny import tiny


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The atlas of the toy study, a little of which was run."""
    from provingground.store import Store

    store = Store(tmp_path_factory.mktemp("toy") / "store")
    pg.run("toy/risk", store=store, progress=False)
    return Atlas(store, studies=["toy"])


@pytest.fixture(scope="module")
def pages(toy):
    toy.warm()
    return {path: toy.page(path).body for path in toy.paths()}


def text(body):
    return body.decode()


def read(body):
    """What a script hands to its call."""
    told = text(body)
    return json.loads(told[told.index("(") + 1 : told.rindex(")")].replace("1e999", "1e308"))


# ----------------------------------------------------------------------------- the site


def test_no_link_of_the_site_is_broken(pages):
    assert broken_links(pages) == []


def test_links_are_seen_to_be_broken(pages):
    """The negative control of the test above."""
    less = {path: body for path, body in pages.items() if path != "toy/risk/cells/0.js"}
    assert broken_links(less) == []  # read by a script
    less.pop("claims.html")
    assert ("index.html", "claims.html") in broken_links(less)


def test_every_kind_of_page_is_there(pages):
    assert {"index.html", "claims.html", "findings.html", "toy/index.html", "toy/coverage.html",
            "toy/risk/index.html", "toy/risk/cell.html", "toy/risk/data.js", "toy/risk/theory.js",
            "toy/risk/cells/0.js", "toy/risk/data.csv", "toy/risk/data.nc", "toy/risk/figure.svg",
            "toy/risk/figure.png", "static/atlas.css", "static/core.js"} <= set(pages)  # fmt: skip


def test_pages_need_nothing_from_elsewhere_and_have_no_inline_script_or_style(pages):
    for path, body in pages.items():
        if not path.endswith(".html"):
            continue
        parts = Parts(text(body))
        assert not [r for r in parts.resources if re.match(r"(?!data:,)[a-z]+:|//", r)], path
        assert "style" not in parts.tags, path
        assert not [a for a in parts.attributes if a[1] == "style" or a[1].startswith("on")], path
        assert not re.search(r"<script(?! src=)", text(body)), path
        assert len(parts.ids) == len(set(parts.ids)), path


def test_headings_descend_one_by_one_and_tables_have_headers(pages):
    for path, body in pages.items():
        if path.endswith(".html"):
            levels = [int(tag[1]) for tag in Parts(text(body)).tags if re.fullmatch("h[1-6]", tag)]
            assert levels[0] == 1, path
            assert levels.count(1) == 1, path
            assert all(b - a <= 1 for a, b in pairwise(levels)), path


@pytest.mark.parametrize("path", [
    "", "..", "../index.html", "toy", "toy/", "toy/risk", "toy/nothing/index.html", "index.html/",
    "toy/risk/cells/999999.js", "toy/risk/cells/-1.js", "toy/risk/cells/00.js",
    "toy/risk/cells/0x.js", "toy/risk/cells/٣.js", "toy/risk/cells/0", "static/../server.py",
    "static/live.js", "static/pages.py", "toy/risk/../risk/index.html", "toy/risk/data.csv\0",
    "//etc/passwd", "toy/risk/cells/99999999999999999999.js",
])  # fmt: skip
def test_what_is_no_path_is_a_key_error(toy, path):
    with pytest.raises(KeyError):
        toy.page(path)


def test_live_pages_offer_to_train_and_others_do_not(toy, pages):
    live = Atlas(toy.shelf.store, studies=["toy"], live=True)
    page = text(live.page("toy/risk/index.html").body)
    assert 'name="atlas-live"' in page
    assert "static/live.js" in page
    assert "static/live.js" in list(live.paths())
    assert not any("live.js" in text(body) or "atlas-live" in text(body)
                   for path, body in pages.items() if path.endswith(".html"))  # fmt: skip


def test_a_live_page_does_not_wait_for_the_figure(toy):
    live = Atlas(toy.shelf.store, studies=["toy"], live=True)
    live.page("toy/risk/index.html")
    assert "figure" not in live.shelf.entry("toy", "risk").__dict__
    assert live.page("toy/risk/figure.png").body.startswith(b"\x89PNG")
    assert live.page("toy/risk/figure.svg").body.startswith(b"<?xml")


# -------------------------------------------------------------------------- what they say


def test_the_front_says_what_became_of_the_facts(toy, pages):
    assert "Least squares by gradient descent" in text(pages["index.html"])
    assert "2 hold" in text(pages["index.html"])


def test_the_study_page_has_theory_conditions_and_the_paper(pages):
    page = text(pages["toy/index.html"])
    assert "<math" in page
    assert "excess_risk" in page
    assert 'class="margin met"' in page


def test_an_experiment_has_its_claims_and_the_three_lines(pages):
    page = text(pages["toy/risk/index.html"])
    assert 'id="claim-risk_law"' in page
    lines = re.search(r'<code id="code">(.*?)</code>', page, re.S)
    assert lines is not None
    assert lines[1].replace("&#34;", '"').splitlines() == [
        "import provingground as pg",
        'ds = pg.run("toy/risk")',
        'pg.figure(ds).savefig("risk.png")',
    ]


def test_rivals_stand_beside_the_measured_interval(pages):
    found = {strip["claim"]: strip for strip in read(pages["toy/risk/rivals.js"])}
    marks = found["risk_law"]["marks"]
    assert [m["label"] for m in marks][:2] == ["measured", "on its own curve"]
    assert len(marks) > 2
    assert marks[1]["decision"] == "holds"
    assert all(m["decision"] != "holds" for m in marks[2:])


def test_what_is_not_stored_is_said_with_the_command_that_makes_it(store):
    atlas = Atlas(store, studies=["toy"])
    page = text(atlas.page("toy/risk/index.html").body)
    assert "Nothing of this is stored" in page
    assert "proving run toy/risk" in page
    assert "toy/risk/data.js" not in list(atlas.paths())
    with pytest.raises(KeyError):
        atlas.page("toy/risk/data.js")
    paper = Atlas(store, scale="paper", studies=["toy"])
    assert "proving run toy/risk --scale paper" in text(paper.page("toy/risk/index.html").body)


def test_what_is_stored_in_part_is_shown_in_part(store):
    pg.run("toy/risk", store=store, progress=False, seeds=3)
    atlas = Atlas(store, studies=["toy"])
    page = text(atlas.page("toy/risk/index.html").body)
    assert "cells are not stored" in page
    found = read(atlas.page("toy/risk/data.js").body)
    (values,) = (v["values"] for v in found["variables"] if v["name"] == "test_loss")
    assert None in values
    assert any(v is not None for v in values)


def test_a_page_is_read_again_when_something_was_stored(store):
    atlas = Atlas(store, studies=["toy"])
    before = atlas.stamp("toy/risk/index.html"), atlas.page("toy/risk/index.html")
    pg.run("toy/risk", store=store, progress=False)
    atlas.forget("toy", "risk")
    assert atlas.stamp("toy/risk/index.html") != before[0]
    assert atlas.page("toy/risk/index.html") != before[1]


def test_the_front_says_not_yet_only_of_what_may_be_read(store):
    """Of what is not stored it says that."""
    atlas = Atlas(store, studies=["toy"])
    assert "not read yet" in text(atlas.page("index.html").body)
    atlas.warm()
    assert "none stored" in text(atlas.page("index.html").body)


def test_front_pages_read_what_was_judged_and_say_what_was_not(toy):
    fresh = Atlas(toy.shelf.store, studies=["toy"])
    before = fresh.stamp("claims.html")
    assert 'id="unread"' in text(fresh.page("claims.html").body)
    fresh.warm()
    assert 'id="unread"' not in text(fresh.page("claims.html").body)
    assert fresh.stamp("claims.html") != before


# ------------------------------------------------------------------------------- numbers


def test_values_are_those_of_the_dataset(toy, pages):
    ds = toy.shelf.entry("toy", "risk").ds
    found = read(pages["toy/risk/data.js"])
    (risk,) = (v for v in found["variables"] if v["name"] == "test_loss")
    assert risk["dims"] == list(ds.test_loss.dims)
    np.testing.assert_allclose(risk["values"], ds.test_loss.values.ravel(), rtol=1e-4)
    assert [d["name"] for d in found["axes"]] == ["samples", "noise"]
    assert found["seeds"] == ds.sizes["seed"]
    (lr,) = (p for p in found["parameters"] if p["name"] == "lr")
    assert lr["type"] == "float"
    assert not lr["shape"]


def test_cells_are_those_of_the_dataset(toy):
    ds = toy.shelf.entry("toy", "risk").ds
    at = {"samples": 2, "noise": 1, "seed": 3}
    outer = [ds.sizes[d] for d in at]
    number = int(np.ravel_multi_index(tuple(at.values()), outer))
    chunk = number // payload.chunk_size(ds)
    found = read(toy.page(f"toy/risk/cells/{chunk}.js").body)
    (loss,) = (p for p in found["probes"] if p["name"] == "train_loss")
    here = loss["values"][number - found["first"]]
    whole = ds.train_loss.isel(at).values
    np.testing.assert_allclose(here, whole[payload.places(whole.size, payload.LONG)], rtol=1e-4)


def test_a_map_of_two_thousand_cells_stays_below_a_megabyte(store):
    atlas = made_up([grid_of(50, 40, seeds=20)], store)
    entry = atlas.shelf.entry("tiny", "first")
    assert entry.ds is not None
    assert entry.ds.sizes["rate"] * entry.ds.sizes["count"] == 2000
    body = atlas.page("tiny/first/data.js").body
    assert len(body) < 1e6
    (last,) = (v for v in read(body)["variables"] if v["name"] == "last")
    assert {"low", "high"} <= set(last) or "seed" in last["dims"]
    page = sum(len(atlas.page(f"tiny/first/{n}").body) for n in ("index.html", "data.js"))
    static = [p for p in atlas.paths() if p.startswith("static/")]
    assert page + sum(len(atlas.page(p).body) for p in static) < 1e6


def test_long_dims_keep_their_ends():
    for length in (1, 2, 23, 24, 25, 500, 100_000):
        kept = payload.places(length, 24)
        assert kept[0] == 0
        assert kept[-1] == length - 1
        assert len(kept) <= min(length, 26)


def test_numbers_that_json_does_not_have():
    assert payload.numbers([np.nan, np.inf, -np.inf, 0.5]) == "[null,1e999,-1e999,0.5]"
    assert payload.numbers([True, False]) == "[1,0]"
    assert payload.numbers([123456.7, 1e-7, 1e20]) == "[1.2346e5,1e-7,1e20]"


def test_a_row_of_the_csv_is_a_cell(toy, pages):
    ds = toy.shelf.entry("toy", "risk").ds
    rows = list(csv.DictReader(io.StringIO(text(pages["toy/risk/data.csv"]))))
    assert len(rows) == ds.attrs["cells"]
    one = rows[17]
    at = {d: float(one[d]) for d in ("samples", "noise", "seed")}
    assert float(one["test_loss"]) == pytest.approx(ds.test_loss.sel(at).item())


def test_texts_are_no_formulas_in_a_spreadsheet():
    assert tables._safe("=1+1") == "'=1+1"
    assert tables._safe(-1.5) == -1.5


def test_the_netcdf_file_is_the_dataset(toy, pages, tmp_path):
    import xarray as xr

    (tmp_path / "data.nc").write_bytes(pages["toy/risk/data.nc"])
    with xr.open_dataset(tmp_path / "data.nc") as found:
        xr.testing.assert_equal(found.load(), toy.shelf.entry("toy", "risk").ds)


# ----------------------------------------------------------------------- hostile studies


def harmless(pages):
    """That no page has markup, or a script more than JSON, of what `EVIL` says."""
    assert broken_links(pages) == []
    for path, body in pages.items():
        if path.startswith("static/") or path.endswith((".nc", ".png")):
            continue
        assert HIT not in text(body) or path.endswith(".csv"), path
        if path.endswith(".html"):
            parts = Parts(text(body))
            assert not [a for a in parts.attributes if a[1].startswith("on")], path
            assert [s for s in parts.resources if s == "x"] == [], path
        if path.endswith(".js"):
            assert text(body).isascii(), path
            assert not set("<>&") & set(text(body)), path


def test_hostile_texts_stay_texts(store):
    atlas = made_up([hostile()], store)
    atlas.warm()
    pages = {path: atlas.page(path).body for path in atlas.paths()}
    harmless(pages)
    assert "{{7*7}}" in Parts(text(pages["tiny/first/index.html"])).text
    found = read(pages["tiny/first/data.js"])
    assert found["axes"][0]["labels"] == ["__proto__", EVIL, "constructor"]


def test_hostile_attributes_of_a_dataset_stay_texts(store):
    """A store may come from anybody, and says of itself what it likes."""
    atlas = made_up([tiny()], store)
    entry = atlas.shelf.entry("tiny", "first")
    assert entry.ds is not None
    for about in (entry.ds, *entry.ds.variables.values()):
        about.attrs |= {"long_name": EVIL, "symbol": EVIL, "units": EVIL}
    machine = json.dumps({"device": EVIL, EVIL: EVIL})
    entry.ds.attrs |= {"device": EVIL, "provenance": machine, EVIL[:20]: EVIL, "commit": EVIL}
    pages = {path: atlas.page(path).body for path in atlas.paths() if not path.endswith(".nc")}
    harmless(pages | {"tiny/first/data.nc": b""})
    assert "onerror" in Parts(text(pages["tiny/first/index.html"])).text


def test_hostile_records_stay_texts(store, tmp_path):
    record = {
        "study": "tiny", "experiment": "first", "claim": "one", "source": EVIL, "says": EVIL,
        "value": 1.0, "low": 0.5, "high": 1.5, "within": [2.0, 3.0], "verdict": "fails",
        "expected": "fails", "cells": 1, "diverged": 0, "kind": "printed", "at": EVIL,
        "decided_at": EVIL, "because": [EVIL, "one"], "theory": None, "agrees": None,
        "conditions": {"satisfied": 1, "of": 1, "worst": 1.0, "vacuous": [EVIL]},
    }  # fmt: skip
    other = record | {"claim": EVIL, "at": "", "kind": EVIL, "experiment": EVIL}
    told = {"scale": "paper", "verdicts": [record, record | {"at": ""}, other]}
    (tmp_path / "tiny.json").write_text(json.dumps(told))
    for n, wrong in enumerate(({"study": []}, record | {"verdict": EVIL}, record | {"within": 1})):
        (tmp_path / f"{n}.json").write_text(json.dumps(told | {"verdicts": [record, wrong]}))
    atlas = made_up([tiny()], store)
    atlas.records = papers.records(tmp_path)
    assert len(atlas.records["tiny"]) == 3
    atlas.warm()
    pages = {path: atlas.page(path).body for path in atlas.paths()}
    harmless(pages)
    shown = ("index.html", "claims.html", "findings.html", "tiny/index.html")
    assert any("onerror" in Parts(text(pages[path])).text for path in shown)


def test_a_study_without_a_folder_has_pages(store):
    atlas = made_up([tiny()], store)
    assert "There is no such list yet" in text(atlas.page("tiny/coverage.html").body)
    assert "Theory as code" in text(atlas.page("tiny/index.html").body)


def test_a_study_whose_theory_breaks_has_pages(store):
    def broken(cfg):
        raise TypeError("no theory of ours")

    study = dataclasses.replace(tiny(), theory=broken)
    page = text(Atlas(store, studies=[study]).page("tiny/index.html").body)
    assert "The theory cannot be computed at the default settings" in page
    assert "Theory as code" in page


def test_a_store_that_is_none_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(InputError):
        Atlas(tmp_path, studies=["toy"]).page("toy/risk/index.html")


# ------------------------------------------------------------------------------- strips


def test_a_strip_keeps_order_and_stays_on_it(toy):
    entry = toy.shelf.entry("toy", "risk")
    claim = entry.experiment.claims[0]
    drawn = strip(claim, entry.verdicts[0], entry.ds)
    assert drawn is not None
    for mark in drawn.marks:
        assert 0 <= mark.low <= mark.value <= mark.high <= 100
    assert drawn.lower < (drawn.theory or 0) < drawn.upper


def test_rivals_stop_when_the_time_is_over(toy):
    entry = toy.shelf.entry("toy", "risk")
    drawn = strip(entry.experiment.claims[0], entry.verdicts[0], entry.ds, until=0.0)
    assert drawn is not None
    assert [mark.label for mark in drawn.marks] == ["measured"]


@pytest.mark.parametrize(("margin", "place"), [
    (1, 50), (10, 58.3), (0.1, 41.7), (0, 0), (1e9, 100), (float("inf"), 100), (float("nan"), 50),
])  # fmt: skip
def test_bars_of_conditions(margin, place):
    assert margin_place(margin) == place


def test_all_studies_are_in_the_atlas_by_default(store):
    assert set(Atlas(store).shelf.studies) == set(registry.studies())
