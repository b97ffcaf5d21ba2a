import json
import math
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import provingground as pg
from provingground.atlas.records import verdict_record
from provingground.compare import Changes, Entry, compared, difference, move
from provingground.errors import InputError
from provingground.studies.toy import STUDY as TOY

# ------------------------------------------------------------------------------ Datasets


def dataset(shift=0.0, seeds=3, **attrs):
    ds = xr.Dataset(
        {"loss": (("seed", "step"), np.ones((seeds, 2)) + shift), "label": ("seed", ["a"] * seeds)},
        {"seed": np.arange(seeds, dtype=np.int32)},
    )
    return ds.assign_attrs({"scale": "quick", "seconds": shift} | attrs)


@pytest.fixture
def saved(tmp_path):
    def save(name, ds):
        ds.to_netcdf(tmp_path / name, engine="scipy")
        return tmp_path / name

    return save


def test_equal_datasets_do_not_differ(saved):
    same = ["no difference"], False
    assert difference(saved("a.nc", dataset()), saved("b.nc", dataset())) == same
    nan = dataset(np.nan)
    assert difference(saved("a.nc", nan), saved("b.nc", nan)) == same


def test_numbers_and_attributes_are_compared(saved):
    a, b = saved("a.nc", dataset()), saved("b.nc", dataset(0.25, scale="paper"))
    assert difference(a, b).lines == [
        "scale: quick -> paper",
        "loss: differs by at most 0.25, on average 0.25",
    ]


def test_different_grids_are_compared_where_they_overlap(saved):
    lines = difference(saved("a.nc", dataset()), saved("b.nc", dataset(0.5, seeds=5))).lines
    assert "loss: compared on the 6 common entries" in lines
    assert "loss: differs by at most 0.5, on average 0.5" in lines


def test_datasets_without_a_common_cell_are_not_called_equal(saved):
    ds = dataset()
    found = difference(saved("a.nc", ds), saved("b.nc", ds.assign_coords(seed=ds.seed + 10)))
    assert found.lines[-1] == "no cell in common: nothing was compared"
    assert found.changed


def test_variables_of_one_side_are_named(saved):
    a, b = saved("a.nc", dataset()), saved("b.nc", dataset().drop_vars("loss"))
    assert difference(a, b).lines == ["loss: only in the first"]
    assert difference(b, a).lines == ["loss: only in the second"]


def test_datasets_with_other_numbers_of_steps_can_be_compared(saved):
    longer = dataset().pad(step=(0, 1), constant_values=1.0).assign(label=dataset().label)
    lines = difference(saved("a.nc", dataset()), saved("b.nc", longer.drop_vars("label"))).lines
    assert "loss: compared on the 6 common entries" in lines


# ------------------------------------------------------------------------------- records


def verdict(
    claim="law",
    value: Any = 1.0,
    low: Any = 0.9,
    high: Any = 1.1,
    experiment="fig",
    study: Any = "s",
    **more: Any,
) -> dict[str, Any]:
    return {
        "study": study, "experiment": experiment, "claim": claim, "source": "Theorem 1",
        "says": "it is about one", "value": value, "low": low, "high": high,
        "within": [0.5, None], "verdict": "holds", "expected": "holds", "surprise": False,
        "cells": 8, "diverged": 0,
    } | more  # fmt: skip


@pytest.fixture
def written(tmp_path):
    def write(name, *verdicts, scale="paper"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"scale": scale, "verdicts": verdicts}))
        return path

    return write


def test_what_check_saves_can_be_compared(tmp_path):
    verdicts = pg.check(TOY, seeds=4, samples=[80], noise=[0.5, 1.0], steps=40)
    path = tmp_path / "a.json"
    record = verdict_record(verdicts, scale="quick", seconds=1.0, device="cpu")
    path.write_text(json.dumps(record))
    assert difference(path, path) == (["2 claims: same verdict, same numbers"], False)


def test_what_matters_comes_first_and_the_rest_is_counted(written):
    a = written(
        "a.json", *(verdict(c) for c in ("near", "far", "bound", "verdict", "gone", "same"))
    )
    b = written(
        "b.json",
        verdict("near", 1.08, 0.98, 1.18, cells=16),
        verdict("far", 1.5, 1.4, 1.6),
        verdict("bound", within=[0.75, 2], says="it is about two"),
        verdict("verdict", 0.3, 0.2, 0.4, verdict="fails"),
        verdict("same"),
        verdict("new"),
    )
    found = difference(a, b)
    assert found.lines == [
        "verdicts that changed: 1",
        "  s/fig/verdict",
        "    was  holds    1 [0.9, 1.1]",
        "    is   fails    0.3 [0.2, 0.4]",
        "missing: claims only in the first: 1",
        "  s/fig/gone",
        "new: claims only in the second: 1",
        "  s/fig/new",
        "statements, bounds or expectations that changed: 1",
        "  s/fig/bound",
        "    was  says: it is about one",
        "    is   says: it is about two",
        "    was  within: > 0.5",
        "    is   within: 0.75 to 2",
        "numbers that moved beyond their intervals: 1",
        "  s/fig/far (holds)",
        "    was  1 [0.9, 1.1]",
        "    is   1.5 [1.4, 1.6]",
        "2 claims: same verdict, numbers within their intervals; largest move 0.4 of an",
        "interval at s/fig/near; 1 from another number of cells",
    ]
    assert found.changed


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({"verdict": "fails"}, True),
        ({"verdict": "unknown"}, True),
        ({"value": 2.0, "low": 1.9, "high": 2.1}, False),
        ({"within": [0.8, 1.2]}, False),
        ({"expected": "fails"}, False),
        ({"value": None, "low": None, "high": None}, False),
    ],
)
def test_only_verdicts_and_missing_claims_change_the_exit_code(written, change, changed):
    a, b = written("a.json", verdict()), written("b.json", verdict(**change))
    assert difference(a, b).changed is changed
    assert len(difference(a, b).lines) > 1


def test_a_new_claim_is_told_and_a_missing_one_changes_the_exit_code(written):
    a, b = written("a.json", verdict()), written("b.json", verdict(), verdict("new"))
    assert not difference(a, b).changed
    assert "  s/fig/new" in difference(a, b).lines
    assert difference(b, a).changed


def test_all_lists_every_entry_that_differs(written):
    a, b = written("a.json", verdict()), written("b.json", verdict(value=1.05, low=None, cells=9))
    assert difference(a, b, every=True).lines[-4:] == [
        "all that differs in claims of both: 3",
        "  s/fig/law: value 1.0 -> 1.05",
        "  s/fig/law: low 0.9 -> None",
        "  s/fig/law: cells 8 -> 9",
    ]
    assert difference(a, a, every=True) == difference(a, a)


def test_records_of_different_scales_are_named_first(written):
    a, b = written("a.json", verdict()), written("b.json", verdict(), scale="quick")
    assert difference(a, b).lines == [
        "the first is of scale paper, the second of scale quick",
        "1 claim: same verdict, same numbers",
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, "same numbers"),
        ({"value": 1.0 + 1e-9, "low": 0.9 - 1e-9}, "same numbers but for rounding"),
        ({"low": 0.8}, "numbers within their intervals"),
        ({"low": 0.8, "value": 1.15}, "numbers within their intervals; largest move 0.5 of an"),
    ],
)
def test_the_rest_is_told_as_it_is(written, change, told):
    a, b = written("a.json", verdict()), written("b.json", verdict(**change))
    assert difference(a, b).lines[0] == f"1 claim: same verdict, {told}"


def test_folders_stand_for_all_their_records(written, tmp_path):
    for folder in ("old", "new"):
        written(f"{folder}/s.json", verdict())
        written(
            f"{folder}/t.json", verdict(study="t", verdict="holds" if folder == "old" else "fails")
        )
    (tmp_path / "old" / "README.md").write_text("not a record")
    found = difference(tmp_path / "old", tmp_path / "new")
    assert found.lines[:2] == ["verdicts that changed: 1", "  t/fig/law"]
    assert found.lines[-1] == "1 claim: same verdict, same numbers"
    alone = difference(tmp_path / "old", tmp_path / "new" / "s.json")
    assert alone.lines == [
        "missing: claims only in the first: 1",
        "  t: all 1 claim",
        "1 claim: same verdict, same numbers",
    ]


def test_whole_studies_and_experiments_that_are_missing_take_a_line(written):
    b = verdict("a")
    a = [
        b, verdict("b"), *(verdict(c, experiment="other") for c in "abc"),
        *(verdict(c, experiment=e, study="t") for e in ("x", "y") for c in "ab"),
    ]  # fmt: skip
    assert difference(written("a.json", *a), written("b.json", b)).lines[:-1] == [
        "missing: claims only in the first: 8",
        "  s/fig/b",
        "  s/other: all 3 claims",
        "  t: all 4 claims",
    ]


def test_a_claim_that_is_there_twice_is_refused(written, tmp_path):
    once = written("once.json", verdict())
    with pytest.raises(InputError, match=r"s/fig/law is there twice, in .*twice\.json: which"):
        difference(once, written("twice.json", verdict(), verdict()))
    written("folder/a.json", verdict())
    written("folder/b.json", verdict())
    with pytest.raises(InputError, match=r"a\.json and .*b\.json"):
        difference(once, tmp_path / "folder")


def test_lines_fit_into_eighty_columns(written):
    long = {"says": "a statement of many words " * 10, "source": "Theorem 1, " * 20}
    a = written("a.json", verdict(), verdict("b"), verdict("c" * 60))
    b = written(
        "b.json",
        verdict(**long),
        verdict("b", -1.2345678e-30, -1.2345678e-29, -1.2345678e-31, verdict="unknown"),
        verdict("c" * 60, 1.05),
    )
    lines = difference(a, b).lines
    assert max(map(len, lines)) <= 80
    assert sum("many words" in line for line in lines) > 2


# ------------------------------------------------------------- numbers and their intervals


def entry(value, low, high, verdict="holds"):
    return Entry(verdict, value, low, high, {})


@pytest.mark.parametrize(
    ("a", "b", "moved"),
    [
        ((1.0, 0.9, 1.1), (1.0, 0.9, 1.1), 0.0),
        ((1.0, 0.9, 1.1), (1.1, 0.9, 1.3), 0.25),  # of the wider one
        ((1.0, 0.5, 1.5), (2.0, 1.5, 2.5), 1.0),  # they touch
        ((1.0, 0.5, 1.5), (2.0, 1.6, 2.4), math.inf),
        ((2.0, 2.0, 2.0), (2.0000001, 2.0000001, 2.0000001), 0.0),  # rounding
        ((2.0, 2.0, 2.0), (2.00001, 2.00001, 2.00001), math.inf),
        ((0.0, 0.0, 0.0), (1e-20, 1e-20, 1e-20), math.inf),
        ((2.0, 2.0, 2.0), (2.1, 1.6, 2.6), 0.1),
        ((None, None, None), (None, None, None), 0.0),
        ((None, None, None), (1.0, 0.9, 1.1), math.inf),
        ((None, 0.9, 1.1), (None, 1.2, 1.3), math.inf),
        ((None, 0.9, 1.1), (None, 1.0, 1.3), 0.0),
        ((1.0, None, 1.1), (1.0, 0.9, 1.1), math.inf),
        ((1.0, None, 1.1), (0.5, None, 0.7), 0.0),  # without an end, no part of an interval
        ((1.0, 0.9, None), (0.5, 0.4, None), 0.0),
        ((1e308, -1e308, 1e308), (-1e308, -1e308, 1e308), 0.0),  # wider than numbers go
    ],
)
def test_moves_are_in_parts_of_an_interval(a, b, moved):
    assert move(entry(*a), entry(*b)) == pytest.approx(moved)
    assert move(entry(*b), entry(*a)) == pytest.approx(moved)


@pytest.mark.parametrize("written_as", ["null", "NaN", "Infinity", "-Infinity"])
def test_what_is_not_finite_is_not_finite_however_it_is_written(tmp_path, written_as):
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    a.write_text(json.dumps({"scale": "quick", "verdicts": [verdict(value=None, low=None)]}))
    b.write_text(a.read_text().replace("null", written_as))
    told = ["1 claim: same verdict, same numbers; 1 without a finite value in either"]
    assert difference(a, b, every=True) == (told, False)


numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
verdicts = st.sampled_from(["holds", "fails"])


def in_order(value, low, high, verdict):
    turned = low is not None and high is not None and low > high
    return entry(value, high, low, verdict) if turned else entry(value, low, high, verdict)


entries = st.dictionaries(
    st.sampled_from("abcdef"), st.builds(in_order, numbers, numbers, numbers, verdicts)
)


@given(entries, entries)
def test_every_claim_has_one_place_whichever_comes_first(a, b):
    found, back = compared(a, b), compared(b, a)
    assert sorted(name for names in found for name in names) == sorted({*a, *b})
    turned = back._replace(missing=back.new, new=back.missing)
    assert [set(names) for names in found] == [set(names) for names in turned]


@given(entries)
def test_a_record_is_the_same_as_itself(a):
    assert compared(a, a) == Changes([], [], [], [], [], list(a))


# ------------------------------------------------------------------------ what is no result


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.nc", b"not one", "not a netCDF-3 file"),
        ("b.nc", b"CDF\x01 but broken", "not a netCDF-3 file"),
        ("b.json", b"{}", r"two \.nc files, or two \.json"),
        ("b.txt", b"", r"two \.nc files, or two \.json"),
        ("c.nc", None, "no such file"),
        (".", None, r"two \.nc files, or two \.json"),
    ],
)
def test_what_is_no_result_is_refused(saved, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        difference(saved("a.nc", dataset()), tmp_path / name)


def wrong(**entries: Any) -> str:
    return json.dumps({"verdicts": [verdict(**entries)]})


@pytest.mark.parametrize(
    "content",
    ["", "{", "{}", "[]", "3", '{"verdicts": [1]}', '{"verdicts": 1}', '{"verdicts": [{}]}',
     "[" * 100_000, '{"verdicts": [{"study": "s"}]}', wrong(value="1.0"), wrong(value=[1.0]),
     wrong(verdict="maybe"), wrong(verdict=None), wrong(study=3), wrong(within=None),
     wrong(within=[1]), wrong(low=2.0), wrong(within=["a", "b"]), wrong(value=10**400)],
)  # fmt: skip
def test_what_is_no_record_is_refused(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    for path in (tmp_path / "a.json", tmp_path):
        with pytest.raises(InputError, match=r"a\.json is not a record of verdicts"):
            difference(path, path)


def test_what_is_no_text_is_refused(tmp_path):
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a record of verdicts"):
        difference(tmp_path / "a.json", tmp_path / "a.json")


def test_a_folder_without_records_is_refused(written, tmp_path):
    a = written("a.json", verdict())
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no records \(\*\.json\) in .*empty"):
        difference(a, tmp_path / "empty")
    with pytest.raises(InputError, match="no such file"):
        difference(a, tmp_path / "nowhere")
