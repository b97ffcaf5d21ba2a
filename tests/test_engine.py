import dataclasses
import json
import os
import re
import subprocess
import sys
import tracemalloc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from jaxtyping import Array, Float, Int

from provingground import (
    __version__,
    api,
    dispatch,
    engine,
    identity,
    planning,
    programs,
    results,
    widths,
)
from provingground.config import probe
from provingground.engine import Job
from provingground.keys import normal
from provingground.machine import Machine, commit, cores, processor
from provingground.store import Store
from provingground.studies.toy import STUDY as TOY
from provingground.study import Experiment, Simulator, Trainings, cases
from provingground.words import cost
from tiny import GRID, Config, apart_from_attrs, count_computed, run, tiny, trained


@pytest.fixture
def computed(monkeypatch):
    """How many cells each computed block had."""
    return count_computed(monkeypatch)


# ------------------------------------------------------------------------- the Dataset


def test_a_run_is_a_labelled_dataset(store):
    ds = run(tiny(), store, seeds=[4, 7])
    assert dict(ds.sizes) == {"rate": 3, "count": 2, "seed": 2, "step": 3}
    assert ds.curve.dims == ("rate", "count", "seed", "step")
    assert ds["last"].dims == ds.diverged.dims == ("rate", "count", "seed")
    assert ds.rate.values.tolist() == [0.1, 0.2, 0.3]
    assert ds["count"].values.tolist() == [3, 5]
    assert ds.seed.values.tolist() == [4, 7]
    assert ds.step.values.tolist() == [0, 1, 4]
    assert "step" in ds.coords
    assert ds.curve.dtype == np.float32
    assert ds.rate.attrs == {"long_name": "rate", "symbol": r"\eta"}
    assert ds.curve.attrs == {"long_name": "a curve", "symbol": "c"}
    assert np.isfinite(ds["last"]).all()


class Sided(eqx.Module):
    end: Float[Array, "side"] = probe("the end")
    side: Int[Array, "side"] = probe("which end", labels=("low", "high"))


def test_a_dim_that_a_probe_numbers_may_have_names(store):
    def ends(cfg, key):
        return Sided(cfg.rate * jnp.array([1.0, 2.0]), jnp.arange(2, dtype=jnp.int32))

    study = tiny(grid={"rate": [0.1, 0.2, 0.3]})
    named = Simulator(Config, ends, Sided)
    ds = run(dataclasses.replace(study, simulators={"one": named}), store)
    assert ds.side.values.tolist() == ["low", "high"]
    np.testing.assert_allclose(ds.end.sel(side="high", seed=0), [0.2, 0.4, 0.6], rtol=1e-6)
    assert ds.side.attrs["long_name"] == "which end"


def test_a_dataset_says_where_it_comes_from(store):
    ds = run(tiny(grid={**GRID, "width": 4}), store)
    known = {
        "study": "tiny",
        "experiment": "first",
        "scale": "quick",
        "simulator": "one",
        "precision": "float32",
        "cells": 18,
        "missing": 0,
        "diverged": 0,
        "version": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "backend": "cpu",
    }
    assert {k: ds.attrs[k] for k in known} == known
    assert json.loads(ds.attrs["settings"]) == {"width": 4}
    assert json.loads(ds.attrs["grid"]) == GRID
    assert ds.attrs["seconds"] > 0
    assert ds.attrs["device"]
    assert ds.attrs["commit"] == commit() or ds.attrs["commit"] == f"release {__version__}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d(, \d{4}-\d\d-\d\d)?", ds.attrs["date"])
    assert len(ds.attrs["fingerprint"]) >= 40
    assert {int(n) for n in ds.attrs["lanes"].split(", ")} <= set(range(1, 33))


def test_missing_cells_are_nan_and_counted(store):
    study = tiny()
    whole = run(study, store, rate=[0.1, 0.3])
    ds = api.load(study, "first", store=store, rate=[0.1, 0.2, 0.3])
    assert ds.attrs["missing"] == 6
    assert np.isnan(ds["last"].sel(rate=0.2)).all()
    assert not ds.diverged.any()
    xr.testing.assert_equal(ds["last"].sel(rate=[0.1, 0.3]), whole["last"])
    assert api.verdicts(study, study.experiments[0], ds)[0].verdict == "unknown"


# ------------------------------------------------------------------ only what is missing


def test_a_second_run_computes_nothing_and_gives_the_same(store, computed):
    study = tiny()
    first = run(study, store)
    assert sum(computed) == 18
    computed.clear()
    assert run(study, Store(store.path)).identical(first)
    assert computed == []


@pytest.mark.parametrize(
    "more",
    [
        dict(rate=[0.1, 0.2, 0.3, 0.4]),
        dict(count=[3, 4, 5]),
        dict(seeds=5),
        dict(lanes=2),
    ],
)
def test_extending_a_sweep_computes_only_what_is_new(store, computed, more):
    study = tiny()
    first = run(study, store)
    computed.clear()
    ds = run(study, store, **more)
    assert sum(computed) == ds.attrs["cells"] - 18
    again = ds.sel(rate=first.rate, count=first["count"], seed=first.seed)
    xr.testing.assert_identical(apart_from_attrs(again), apart_from_attrs(first))


def test_experiments_share_their_cells(store, computed):
    second = Experiment(
        "second",
        "s",
        Trainings({"count": [5], "rate": 0.2, "width": [2]}, 2),
        (),
        print,
    )
    study = tiny(second)
    first = run(study, store)
    computed.clear()
    ds = run(study, store, "second")
    assert computed == []
    np.testing.assert_array_equal(
        ds["last"].squeeze(), first["last"].sel(rate=0.2, count=5, seed=[0, 1])
    )


def test_other_programs_and_other_data_share_nothing(store, computed):
    def with_data(scale):
        return tiny(data={"scale": lambda: np.float32(scale)})

    experiment = Experiment(
        "first",
        "s",
        Trainings(GRID, 3, data="scale"),
        (),
        print,
    )
    found = []
    for scale in (1.0, 2.0):
        study = with_data(scale)
        found.append(run(dataclasses.replace(study, experiments=(experiment,)), store))
    assert sum(computed) == 36
    np.testing.assert_allclose(found[1]["last"], 4 * found[0]["last"], rtol=1e-5)


# ------------------------------------------------------------------------------- lanes


def test_any_number_of_lanes_gives_the_same(tmp_path):
    study = tiny(grid={"rate": list(np.linspace(0, 1, 5)), "count": [2, 3]})
    found = [
        run(study, Store(tmp_path / str(lanes)), lanes=lanes, seeds=3) for lanes in (1, 3, 8, 100)
    ]
    lanes = [max(int(n) for n in ds.attrs["lanes"].split(", ")) for ds in found]
    assert lanes == [1, 3, 5, 30]
    for ds in found[1:]:
        xr.testing.assert_allclose(apart_from_attrs(ds), apart_from_attrs(found[0]), rtol=1e-5)


def test_tuning_measures_the_width_and_remembers_it(store, monkeypatch):
    study = tiny(grid={"rate": list(np.linspace(0, 1, 30)), "count": [3]})
    job = planning.job(study, "first", store=store)
    job.forecast(measure=True)
    monkeypatch.setattr(widths, "TUNE_WORTH", 0)
    ds = api.finish(job, progress=False)
    (group,) = job.groups
    assert widths.chosen_lanes(job, group.program) in (8, 32, 128)
    other = run(study, Store(store.path / "other"), lanes=1, rate=ds.rate.values.tolist())
    xr.testing.assert_allclose(apart_from_attrs(ds), apart_from_attrs(other), rtol=1e-5)


# --------------------------------------------------------------------- what can go wrong


def test_diverged_cells_are_results(store, computed):
    study = tiny()
    ds = run(study, store, rate=[0.1, 1e3])
    assert ds.attrs["diverged"] == 6
    assert ds.diverged.sel(rate=1e3).all()
    assert not ds.diverged.sel(rate=0.1).any()
    computed.clear()
    assert run(study, store, rate=[0.1, 1e3]).attrs["diverged"] == 6
    assert computed == []
    (verdict,) = api.verdicts(study, study.experiments[0], ds)
    assert verdict.verdict == "unknown"
    assert "6 of 12 cells diverged" in verdict.note


# ------------------------------------------------------------------ forecast, precision


def test_a_forecast_counts_cells_programs_and_time(store):
    study = tiny(grid={"rate": [0.1, 0.2], "width": [2, 3]})
    job = planning.job(study, "first", store=store)
    unknown = job.forecast()
    assert unknown[:4] == (12, 0, 2, None)
    assert unknown.lanes == 2
    assert (job.forecast(measure=True).seconds or 0) > 0
    assert (planning.job(study, "first", store=store).forecast().seconds or 0) > 0  # kept
    api.finish(job, progress=False)
    assert planning.job(study, "first", store=store).forecast()[:4] == (12, 12, 0, 0.0)


def test_a_forecast_traces_and_compiles_nothing(store, monkeypatch):
    study, worked = tiny(grid={"rate": [0.1, 0.2], "width": [2, 3]}), []

    def watched(of):
        return lambda *args: worked.append(of.__name__) or of(*args)

    for owner, name in (
        (identity, "_hashed"),
        (programs.Programs, "_lower"),
        (programs.Programs, "_compile"),
    ):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    monkeypatch.setattr(programs, "_COMPILED", {})
    monkeypatch.setattr(identity, "_LOWERED", {})

    def forecast(measure=False):
        return planning.job(study, "first", store=Store(store.path)).forecast(measure)

    found = forecast()
    assert (found.cells, found.stored, found.programs, found.untimed) == (12, 0, 2, 2)
    assert found.seconds is None
    assert worked == []
    assert not store.path.exists()
    run(study, store, width=[2])
    worked.clear()
    monkeypatch.setattr(identity, "_LOWERED", {})
    found = forecast()
    assert (found.left, found.untimed) == (12, 1)  # one program is not known to be stored or not
    assert worked == []
    found = forecast(measure=True)
    assert (found.left, found.programs, found.untimed) == (6, 1, 0)
    assert sorted(worked) == ["_compile", "_hashed", "_lower"]
    worked.clear()
    assert forecast() == found
    assert worked == []


def test_compiling_is_timed_too_and_forecasts_add_up(store, monkeypatch):
    monkeypatch.setattr(programs, "_COMPILED", {})
    study = tiny(grid={"rate": [0.1], "width": [2, 3]})
    run(study, store, width=[2])
    known, unknown = (
        planning.job(study, "first", store=store, seeds=9, settings={"width": [width]}).forecast()
        for width in (2, 3)
    )
    assert known.seconds is not None
    assert 0.01 < known.compiling < 60
    assert (unknown.seconds, unknown.compiling, unknown.untimed) == (None, 0.0, 1)
    both = engine.together([known, unknown])
    assert (both.cells, both.stored, both.left, both.programs) == (18, 3, 15, 2)
    assert (both.seconds, both.compiling, both.untimed) == (known.seconds, known.compiling, 1)
    assert engine.together([unknown]).seconds is None
    assert engine.together([])[:4] == (0, 0, 0, None)


def test_a_forecast_says_what_only_tracing_would_tell(store):
    def forecast(samples):
        settings = {"samples": [samples], "noise": [1.0], "steps": 20}
        return planning.job(TOY, "risk", store=store, seeds=2, settings=settings)

    new = forecast(30).forecast()
    assert (new.stored, new.unseen) == (0, 0)
    api.finish(forecast(30), progress=False)
    known, other = forecast(30).forecast(), forecast(200).forecast()  # a program of its own
    assert (known.stored, known.unseen) == (2, 0)
    assert (other.stored, other.unseen) == (0, 2)
    told = "4 cells, 2 stored, and maybe some of 2 others; at most 2 cells to run with"
    assert cost(engine.together([known, other])).startswith(told)


def test_a_run_keeps_its_timings_for_the_next_forecast(store):
    study = tiny()
    run(study, store, lanes=1)
    more = planning.job(study, "first", store=store, settings={"rate": [0.1, 0.7]})
    forecast = more.forecast()
    assert (forecast.stored, forecast.cells) == (6, 12)
    assert (forecast.seconds or 0) > 0


def test_cells_in_double_precision(store):
    numerics = cases(
        {"single": {}, "double": {"precision": "float64"}, "two": {"simulator": "two"}}
    )
    ds = run(tiny(grid={"numerics": numerics, **GRID}), store)
    assert ds["last"].dtype == np.float64
    assert ds.attrs["precision"] == "float32, float64"
    assert ds.attrs["simulator"] == "one, two"
    single, double, two = (ds["last"].sel(numerics=n).values for n in numerics.settings)
    np.testing.assert_array_equal(double, two)
    np.testing.assert_allclose(single, double, rtol=1e-5)
    assert (single != double).any()
    assert not jax.config.jax_enable_x64  # pyright: ignore


# ------------------------------------------------------------------------ blocks, chunks


def test_blocks_are_the_sweep_cut_by_program_points_and_seeds(store):
    job = planning.job(tiny(), "first", store=store, lanes=4, settings={"width": [2, 3]}, seeds=5)
    places = [(b.group, r, s) for b in job.blocks for r in b.rows for s in b.seeds]
    assert len(places) == len(set(places)) == job.sweep.cells == 60
    assert sum(map(len, map(job.cells, job.blocks))) == len(set(job.ids.ravel())) == 60
    assert {b.wide * b.deep for b in job.blocks} <= set(range(1, 5))
    first = [b.group for b in job.blocks[: len(job.groups)]]
    assert sorted(first) == list(range(len(job.groups)))  # all programs are compiled at once


def test_only_some_points_can_be_wanted(store, computed):
    study = tiny()
    planned = planning.job(study, "first", store=store)
    only = np.array([True, False, False, True, False, False])
    ds = api.finish(Job(planned.sweep, store, only=only), progress=False)
    assert sum(computed) == 6
    assert (ds.attrs["cells"], ds.attrs["missing"], ds.attrs["skipped"]) == (18, 0, 12)
    there = ds["last"].notnull().all("seed").values.ravel()
    np.testing.assert_array_equal(there, only)


def test_settings_that_meet_in_one_cell_are_run_once_and_shown_in_both(store, computed):
    """Two cases with the same parameters: one file with a cell twice would be none of ours."""
    twice = cases({"small": dict(rate=0.1), "again": dict(rate=0.1), "large": dict(rate=0.2)})
    study = tiny(
        Experiment(
            "twice",
            "s",
            Trainings({"kind": twice, "count": [3, 4]}, 3),
            (),
            print,
        )
    )
    planned = planning.job(study, "twice", store=store)
    assert planned.forecast().cells == 2 * 2 * 3
    ds = run(study, store, "twice")
    assert sum(computed) == 2 * 2 * 3
    assert ds.attrs["missing"] == 0
    np.testing.assert_array_equal(ds["last"].sel(kind="small"), ds["last"].sel(kind="again"))
    assert (ds["last"].sel(kind="small") != ds["last"].sel(kind="large")).any()
    assert planning.job(study, "twice", store=store).forecast().left == 0


def test_planning_costs_little_memory_per_cell(store):
    settings = {"samples": [40], "noise": [n / 1000 for n in range(10_000)]}

    def planned():
        return planning.job(TOY, "risk", store=store, seeds=10, settings=settings)

    _ = Job(planning.job(TOY, "risk", store=store, settings={"samples": [40]}).sweep, store).ids
    job = planned()
    tracemalloc.start()
    try:
        assert len(job.groups) == 1
        assert job.ids.shape == (10_000, 10)
        assert sum(b.cells for b in job.missing()) == 100_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 150 * 100_000


def test_a_chunk_s_record_costs_little_and_has_what_is_needed_to_repeat_it(store, monkeypatch):
    monkeypatch.setattr(engine, "PARTS", 1)
    job = planning.job(tiny(), "first", store=store, settings={"count": [5]})
    (block,) = job.blocks
    cells = np.array([f"{n:032x}" for n in range(18)], "S32")
    content, size, seconds, *_ = job.chunk([block, block], cells)
    assert size == len(content)
    chunk = store.read("tiny", store.put_packed("tiny", content).name)
    assert chunk is not None
    numbers = sum(array.nbytes for array in chunk.probes.values())
    assert size < numbers + 32 * 18 + 4 * 18 + 2500
    assert chunk.cells.tolist() == cells.tolist()
    point = next(job.sweep.points())
    assert chunk.about["program"] == json.loads(json.dumps(point.program._asdict()))
    assert chunk.about["fingerprint"] == job.identities[point.program].fingerprint
    assert (chunk.about["lanes"], chunk.about["devices"]) == ("9", "1")
    assert chunk.about["layout"] == f"{block.wide} x {block.deep}"
    assert 0 < seconds == pytest.approx(chunk.about["seconds"], abs=1e-6)
    rates = chunk.probes["config_rate"].reshape(2, 3, 3)
    seeds = chunk.probes["config_seed"].reshape(2, 3, 3)
    np.testing.assert_array_equal(rates, np.broadcast_to([0.1, 0.2, 0.3], (2, 3, 3)))
    np.testing.assert_array_equal(seeds, np.broadcast_to([[0], [1], [2]], (2, 3, 3)))


# --------------------------------------------------------------------------------- notes


@pytest.mark.parametrize(
    "text",
    ["", "x", "-5", "0", "[]", "[1]", "[1, 2]", "[1, 2, 3, 4]", "null", '["a", "b", "c"]',
     "[NaN, 0, 0]", "[-1, 0, 0]", "[1e400, 0, 0]", "[0.1, -1, 0]", "[0.1, Infinity, 0]",
     "[0.1, 0, -1]", "[0.1, 0, NaN]", "[" * 9999, "9" * 9999],
)  # fmt: skip
def test_notes_that_make_no_sense_are_none(store, text):
    job = planning.job(tiny(), "first", store=store)
    program = job.groups[0].program
    for kind in ("timings", "lanes"):
        store.set_note(kind, job.on_device(program), text)
    assert job.timing(program) is None
    assert widths.chosen_lanes(job, program) == widths.LANES["serial"]
    assert job.forecast().seconds is None


# ------------------------------------------------------------------------------- devices

ON_FOUR = """
import sys
from provingground import api
for name, noise, seeds in (("points", [0.1 * n for n in range(1, 7)], 3), ("seeds", [0.5, 1.0], 5)):
    settings = dict(samples=[30], noise=noise, steps=40, seeds=seeds)
    ds = api.run("toy/risk", store=sys.argv[1] + "/store", progress=False, **settings)
    ds.to_netcdf(f"{sys.argv[1]}/{name}.nc", engine="scipy")
"""


@pytest.mark.slow
def test_several_devices_give_what_one_gives(tmp_path):
    command = [sys.executable, "-c", ON_FOUR, str(tmp_path)]
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run(command, env=os.environ | flags, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert jax.local_device_count() == 1
    for name in ("points", "seeds"):
        there = xr.load_dataset(tmp_path / f"{name}.nc", engine="scipy")
        assert there.attrs["devices"] == "4"
        assert there.attrs["missing"] == 0
        settings = {"noise": there.noise.values.tolist(), "samples": [30], "steps": 40}
        here = api.run(TOY, "risk", store=tmp_path / "here", seeds=there.sizes["seed"], **settings)
        assert here.attrs["devices"] == "1"
        for variable in ("train_loss", "test_loss"):
            xr.testing.assert_allclose(
                there[variable].drop_attrs(), here[variable].drop_attrs(), rtol=1e-6, atol=1e-6
            )


# ------------------------------------------------------------------------ beside a GPU


def gpu(memory):
    return Machine("gpu", "made up", devices=1, workers=2, memory=memory)


def wide_lanes(store, memory, cells=20_000, how=trained):
    rates = [float(v) for v in np.linspace(0.1, 0.2, cells // 10)]
    settings = {"rate": rates, "count": [5]}
    job = planning.job(tiny(how=how), "first", seeds=10, store=store, settings=settings)
    job.machine = gpu(memory)
    return widths.chosen_lanes(job, job.groups[0].program), {b.cells for b in job.blocks}


def test_a_simulator_for_the_processor_runs_there_beside_a_gpu(store):
    plain = tiny(how=trained)
    name, how = plain.simulator()
    here = dataclasses.replace(plain, simulators={name: dataclasses.replace(how, cpu=True)})
    jobs = [planning.job(s, "first", seeds=3, store=store) for s in (plain, here)]
    for job in jobs:
        job.machine = gpu(2**36)
    (there, own) = (job.machine_of(job.groups[0].program) for job in jobs)
    assert (there.backend, there.mode, jobs[0].workers) == ("gpu", "wide", 2)
    assert (own, own.mode, jobs[1].workers) == (processor(), "serial", cores())
    dispatch.run(jobs[1])
    ds = results.dataset(jobs[1])
    assert (ds.attrs["backend"], ds.attrs["device"]) == ("cpu", own.device)
    assert int(ds.attrs["missing"]) == 0


def test_large_sweeps_of_small_trainings_are_wide(store):
    assert wide_lanes(store, memory=2**36)[0] == widths.WIDEST
    lanes, cells = wide_lanes(store, memory=2**36, cells=1000)
    assert lanes == widths.LANES["wide"]
    assert cells == {1000}


def test_lanes_with_large_arrays_are_fewer(store):
    def large(cfg, key):
        return trained(cfg, key, scale=normal(key, (2**20,)).mean())  # pyright: ignore

    assert wide_lanes(store, memory=2**38, how=large)[0] == 4096  # 4 MiB each, of 16 GiB
    assert wide_lanes(store, memory=2**36, how=large)[0] == widths.LANES["wide"]
