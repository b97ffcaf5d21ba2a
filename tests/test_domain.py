"""Laws off the slice they were found on: designs, added axes, and what a Dataset says was set."""

import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import provingground as pg
from provingground import cli, domain, planning
from provingground.errors import InputError
from provingground.replaying import replay
from provingground.studies.toy import STUDY as TOY
from provingground.study import Experiment, Trainings, axis, cases, points
from tiny import run, tiny, with_trainings

FAST: dict[str, Any] = dict(steps=20, samples=[30, 60], noise=[1.0], seeds=3)
TWO_NOISES: dict[str, Any] = {**FAST, "noise": [0.5, 1.0]}
FEW: dict[str, Any] = {**FAST, "samples": [11, 60]}


# ------------------------------------------------------------------- settings as coordinates


def test_every_parameter_is_a_coordinate_along_what_it_depends_on(store):
    load = axis([1.0, 3.0], "L", "load", sets=lambda s: {"rate": s["load"] / s["count"]})
    grid = {"count": [2, 4], "load": load, "kind": cases({"a": {"width": 2}, "b": {"width": 3}})}
    ds = run(tiny(Experiment("more", "s", Trainings(grid, 3), (), print)), store, "more")
    assert ds.rate.dims == ("count", "load")
    np.testing.assert_allclose(ds.rate, [[0.5, 1.5], [0.25, 0.75]])
    assert ds.width.dims == ("kind",)
    assert ds.width.values.tolist() == [2, 3]
    assert ds["count"].dtype.kind == "i"
    fixed = run(tiny(), store, count=5)
    assert fixed.width.ndim == 0
    assert (int(fixed.width), fixed.width.attrs["symbol"]) == (2, "w")
    again = xr.open_dataset(fixed.to_netcdf(engine="scipy"), engine="scipy")
    assert int(again.width) == 2


def test_the_law_is_asked_at_other_settings(store):
    """With the dimension of the Dataset, not that of the default."""
    found = pg.check(TOY, store=store, progress=False, dim=20, steps=3000)
    assert [v.verdict for v in found] == ["holds", "holds"]
    assert not any(v.declared for v in found)


def test_an_added_axis_gives_a_verdict_for_each_value(store):
    found = pg.check(TOY, store=store, progress=False, lr=[0.3, 0.4], **FAST)
    assert [v.at for v in found] == ["lr = 0.3"] * 2 + ["lr = 0.4"] * 2
    assert {v.cells for v in found} == {6}


def test_a_setting_that_is_derived_is_refused_with_a_word_why(store):
    load = axis([1.0, 3.0], "L", "load", sets=lambda s: {"rate": s["load"] / s["count"]})
    study = tiny(Experiment("more", "s", Trainings({"load": load}, 3), (), print))
    with pytest.raises(InputError, match=r"rate cannot be set.*derives it from count and load"):
        run(study, store, "more", rate=0.3)


# ------------------------------------------------------------------------------- designs


def test_a_design_has_every_parameter_along_its_points(store):
    two = points([{"rate": 0.1, "count": 3}, {"rate": 0.4, "count": 5}])
    ds = run(tiny(), store, settings={"point": two}, width=[2, 3])
    assert dict(ds.sizes) | {"step": 3} == {"point": 2, "width": 2, "seed": 3, "step": 3}
    assert ds.rate.dims == ds["count"].dims == ("point",)
    grid = run(tiny(), store, rate=[0.1, 0.4], count=[3, 5], width=[2, 3])
    for i, (rate, count) in enumerate([(0.1, 3), (0.4, 5)]):
        np.testing.assert_array_equal(
            ds["last"].isel(point=i), grid["last"].sel(rate=rate, count=count)
        )


def test_a_design_is_stored_resumed_and_extended(store):
    owner = tiny(domain={"rate": (0.1, 1.0), "count": (2, 20)})
    first = run(owner, store, design=8, draw=1)
    more = planning.job(owner, "first", store=store, design=12, draw=1)
    assert more.forecast().left == 4 * 3
    second = run(owner, store, design=12, draw=1)
    np.testing.assert_array_equal(second["last"].isel(point=slice(8)), first["last"])
    other = run(owner, store, design=8, draw=2)
    assert (other.rate != first.rate).all()


def test_a_cell_of_a_design_can_be_replayed(store):
    owner = tiny(domain={"rate": (0.1, 1.0), "count": (2, 20)})
    ds = run(owner, store, design=4)
    again = replay(ds, seed=1, point=2, study=owner)
    np.testing.assert_allclose(again.probes["last"], ds["last"].sel(point=2, seed=1), rtol=1e-6)


def test_draws_are_log_uniform_whole_where_they_must_be_and_inside():
    trainings = dict(domain={"rate": (0.01, 10.0), "count": (2, 40), "width": [2, 3]})
    owner = tiny(**trainings)
    drawn = domain.design(owner, owner.experiments[0], "quick", 400, 0, whole=True).settings
    logs = np.log10([p["rate"] for p in drawn])
    assert abs(logs.mean() + 0.5) < 0.15  # the middle of -2 and 1
    assert all(isinstance(p["count"], int) and 2 <= p["count"] <= 40 for p in drawn)
    assert {p["width"] for p in drawn} == {2, 3}
    again = domain.design(owner, owner.experiments[0], "quick", 400, 0, whole=True).settings
    assert again == drawn
    off = domain.design(owner, owner.experiments[0], "quick", 3, 0, whole=False).settings
    assert set(off[0]) == {"width"}  # rate and count are axes
    assert len(off) == 2  # of two choices, none twice


def test_no_setting_is_drawn_twice():
    owner = tiny(domain={"count": (2, 9)})
    drawn = domain.design(owner, owner.experiments[0], "quick", 8, 0, whole=True).settings
    assert sorted(p["count"] for p in drawn) == list(range(2, 10))
    some = domain.design(owner, owner.experiments[0], "quick", 5, 0, whole=True).settings
    assert some == drawn[:5]


def test_a_domain_may_exclude_settings():
    owner = tiny(domain={"rate": (0.1, 10.0)}, where=lambda s: s["rate"] * s["count"] < 5, grid={})
    drawn = domain.design(owner, owner.experiments[0], "quick", 50, 0, whole=True).settings
    assert all(p["rate"] < 1 for p in drawn)
    empty = tiny(domain={"rate": (0.1, 10.0)}, where=lambda s: False)
    with pytest.raises(InputError, match="seems to be empty"):
        domain.design(empty, empty.experiments[0], "quick", 1, 0, whole=True)


@pytest.mark.parametrize(
    ("domain_", "number", "draw", "says"),
    [
        ({}, 3, 0, "declares no domain"),
        ({"rate": (0.1, 1)}, 0, 0, "at least one"),
        ({"rate": (0.1, 1)}, 3, -1, "draw = -1"),
        ({"rates": (0.1, 1)}, 3, 0, "did you mean 'rate'"),
    ],
)
def test_what_cannot_be_drawn_is_said(domain_, number, draw, says):
    owner = tiny(domain=domain_)
    with pytest.raises(InputError, match=says):
        domain.design(owner, owner.experiments[0], "quick", number, draw, whole=True)


# ------------------------------------------------------------------------- off the slice


def test_claims_are_judged_off_their_slice_on_fresh_seeds(store):
    owner = tiny()
    wide = {"dim": (2, 200), "lr": (0.01, 0.1), "noise": (0.3, 3)}  # noise is an axis
    study = replace(TOY, experiments=(with_trainings(TOY.experiments[0], domain=wide, where=None),))
    found = pg.check(study, store=store, progress=False, off_slice=3, draw=5, **FAST)
    assert len({v.at for v in found}) == 3
    assert all(v.at.startswith("dim = ") for v in found)
    planned = planning.job(study, "risk", store=store, off_slice=3, draw=5)
    assert planned.sweep.seeds[0] == 6 * planning.OFF_SLICE
    with pytest.raises(InputError, match="no domain is declared by tiny/first"):
        pg.check(owner, store=store, off_slice=3, progress=False)


def test_off_slice_from_the_command_line(tmp_path, capsys, monkeypatch):
    wanted = "check toy/risk --off-slice 2 --draw 3 --json --set steps=60 --set samples=60"
    arguments = [*wanted.split(), "--seeds", "40:80", "--store", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["proving", *arguments])
    with pytest.raises(SystemExit):
        cli.main()
    record = json.loads(capsys.readouterr().out)
    assert len({v["at"] for v in record["verdicts"]}) == 2
    assert {v["seeds"] for v in record["verdicts"]} == {40}


# ------------------------------------------------------------------------------ the theory


def test_the_theory_over_all_settings(store):
    ds = pg.run(TOY, "risk", store=store, progress=False, **TWO_NOISES)
    found = pg.predict(ds)
    assert found.excess_risk.dims == ("samples", "noise")
    np.testing.assert_allclose(found.excess_risk.sel(samples=30, noise=0.5), 0.25 * 10 / 19)
    assert found.condition.values.tolist() == ["samples", "step size"]
    np.testing.assert_allclose(found.margin.sel(samples=60, condition="samples"), 5.0)
    assert (found.satisfied == 2).all()


def test_verdicts_say_how_many_conditions_are_met(store):
    few = pg.check(TOY, store=store, progress=False, **FEW)
    met = few[0].conditions
    assert met is not None
    assert (met.satisfied, met.of) == (1, 2)
    assert met.worst == pytest.approx(11 / 12)
    assert "1 of 2 conditions, worst margin 0.92" in str(met)
