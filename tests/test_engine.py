import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from jaxtyping import Array, Float, Int

from provingground import __version__, api, engine, stats
from provingground.engine import Job
from provingground.errors import RunError
from provingground.keys import normal, seed_key, stream
from provingground.store import Store
from provingground.studies.toy import STUDY as TOY
from provingground.study import (
    Claim,
    Experiment,
    Prediction,
    Simulator,
    Study,
    cases,
    config,
    mask,
    par,
    probe,
    size,
)
from provingground.train import iterate


@config
class Config:
    count: int = par(5, "n", "things", low=1, value=True, pad=4)
    rate: float = par(0.5, r"\eta", "rate", low=0)
    width: int = par(2, "w", "width", low=1)


class Probes(eqx.Module):
    curve: Float[Array, "step"] = probe("a curve", "c")
    last: Float[Array, ""] = probe("its end")
    step: Int[Array, "step"] = probe("step", "t")


def trained(cfg, key, scale=1.0):
    """Shrinks some numbers for a while; they overflow from a rate of a hundred on."""
    x = normal(stream(key, "data"), (size(cfg, "count"), cfg.width)) * scale
    x = jnp.where(mask(cfg, "count")[:, None], x, 0.0)
    trace = iterate(lambda x, t: x * jnp.exp(cfg.rate) / 2, x, steps=4, at=[0, 1, 4], probe=jnp.sum)
    return Probes(trace.probes, jnp.sum(trace.last**2), trace.step)


GRID = {"rate": [0.1, 0.2, 0.3], "count": [3, 5]}
ONE = Claim("one", "the end is there", lambda ds: stats.mean(ds["last"]), (0, 1e9), "T")


def tiny(*more, how=trained, grid=GRID, data=None, **options):
    """A study with a program of its own, so that every test compiles by itself."""
    first = Experiment("first", "s", grid, 3, (ONE,), lambda ds: None, **options)
    simulators = {
        "one": Simulator(Config, lambda *args: how(*args), Probes),
        "two": Simulator(Config, lambda *args: how(*args), Probes, precision="float64"),
    }
    predicted = Prediction((), {})
    return Study("tiny", "t", "c", simulators, lambda cfg: predicted, (first, *more), data or {})


def run(study, store, experiment="first", **options):
    return api.run(study, experiment, store=store, progress=False, **options)


def apart_from_attrs(ds):
    return ds.drop_attrs()


@pytest.fixture
def computed(monkeypatch):
    """How many cells each computed block had."""
    found = []
    compute = Job.compute

    def counted(job, block):
        found.append(len(block.cells))
        return compute(job, block)

    monkeypatch.setattr(Job, "compute", counted)
    return found


@pytest.fixture
def compiled(monkeypatch):
    """Which programs were compiled, and for how many lanes."""
    found = []
    compile = Job._compile

    def counted(job, program, points, seeds):
        found.append((program, len(points), seeds))
        return compile(job, program, points, seeds)

    monkeypatch.setattr(Job, "_compile", counted)
    return found


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
    assert len(ds.attrs["fingerprint"]) >= 40
    assert {int(n) for n in ds.attrs["lanes"].split(", ")} <= set(range(1, 25))


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
    second = Experiment("second", "s", {"count": [5], "rate": 0.2, "width": [2]}, 2, (), print)
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

    experiment = Experiment("first", "s", GRID, 3, (), print, data="scale")
    found = []
    for scale in (1.0, 2.0):
        study = with_data(scale)
        found.append(run(dataclasses.replace(study, experiments=(experiment,)), store))
    assert sum(computed) == 36
    np.testing.assert_allclose(found[1]["last"], 4 * found[0]["last"], rtol=1e-5)


# ------------------------------------------------------------------------------- lanes


def test_a_cell_alone_is_the_cell_in_lanes(store):
    study = tiny()
    ds = run(study, store)
    planned = api.job(study, "first", store=store)
    for point in planned.points[::4]:
        alone = engine.single(study, point, seed=2)
        at = ds.sel(rate=point.config.rate, count=point.config.count, seed=2)
        for name in ("curve", "last", "step"):
            np.testing.assert_allclose(at[name], alone[name], rtol=1e-5, atol=1e-6)


def test_any_number_of_lanes_gives_the_same(tmp_path):
    study = tiny(grid={"rate": list(np.linspace(0, 1, 5)), "count": [2, 3]})
    found = [
        run(study, Store(tmp_path / str(lanes)), lanes=lanes, seeds=3) for lanes in (1, 3, 8, 100)
    ]
    assert [ds.attrs["lanes"] for ds in found[:2]] == ["1", "3"]
    for ds in found[1:]:
        xr.testing.assert_allclose(apart_from_attrs(ds), apart_from_attrs(found[0]), rtol=1e-5)


def test_padded_counts_are_unpadded_counts(store):
    ds = api.run(TOY, "risk", samples=[17], noise=[0.5], steps=40, seeds=2, store=store)
    simulator = TOY.simulators["descent"]
    cfg = simulator.config(samples=17, noise=0.5, steps=40)
    for seed in (0, 1):
        plain = jax.jit(lambda key: simulator.simulate(cfg, key))(seed_key("toy", seed))
        at = ds.isel(samples=0, noise=0).sel(seed=seed)
        np.testing.assert_allclose(at.train_loss, plain.train_loss, rtol=1e-5)
        np.testing.assert_allclose(at.test_loss, plain.test_loss, rtol=1e-5)


def test_values_share_a_compilation(store, compiled):
    rates = list(np.linspace(0, 1, 40))
    run(tiny(), store, rate=rates, count=[1, 2, 3, 4, 5, 8], width=[2, 3], seeds=2)
    programs = {program for program, _, _ in compiled}
    assert len(programs) == 4  # things laid out for 4 and for 8, two widths
    assert len(compiled) == len(set(compiled)) == 4


def test_a_program_is_compiled_once_per_process(store, tmp_path, compiled):
    study = tiny()
    run(study, store, lanes=3)
    first = len(compiled)
    run(study, Store(tmp_path / "other"), lanes=3)
    assert len(compiled) == first


def test_tuning_measures_the_width_and_remembers_it(store, monkeypatch):
    study = tiny(grid={"rate": list(np.linspace(0, 1, 30)), "count": [3]})
    job = api.job(study, "first", store=store)
    job.forecast(measure=True)
    monkeypatch.setattr(engine, "TUNE_WORTH", 0)
    ds = api.finish(job, progress=False)
    (program,) = {p.program for p in job.points}
    assert engine.chosen_lanes(job, program) in (6, 24, 96)
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


@pytest.mark.parametrize("error", [jax.errors.JaxRuntimeError, MemoryError])
def test_out_of_memory_halves_the_lanes(tmp_path, monkeypatch, error):
    study = tiny()
    plain = run(study, Store(tmp_path / "plain"))
    call, widths = Job._call, []

    def small(job, block):
        widths.append(len(block.cells))
        if len(block.cells) > 2:
            raise error("RESOURCE_EXHAUSTED: out of memory")
        return call(job, block)

    monkeypatch.setattr(Job, "_call", small)
    ds = run(study, Store(tmp_path / "small"))
    assert max(widths) > 2 >= min(widths)
    xr.testing.assert_allclose(apart_from_attrs(ds), apart_from_attrs(plain), rtol=1e-6)


def test_a_cell_that_does_not_fit_alone_fails(store, monkeypatch):
    def full(job, block):
        raise MemoryError("RESOURCE_EXHAUSTED: out of memory")

    monkeypatch.setattr(Job, "_call", full)
    with pytest.raises(RunError, match=r"18 of 18 cells failed.*RESOURCE_EXHAUSTED"):
        run(tiny(), store)


def test_a_failure_is_named_and_everything_else_is_stored(store, monkeypatch):
    call = Job._call

    def picky(job, block):
        if dict(block.program.shape)["width"] == 3:
            raise ValueError("three is too many")
        return call(job, block)

    monkeypatch.setattr(Job, "_call", picky)
    study = tiny()
    message = "18 of 36 cells failed.*one with.*'width': 3.*ValueError: three is too many"
    with pytest.raises(RunError, match=message):
        run(study, store, width=[2, 3])
    assert api.load(study, "first", store=store, width=[2]).attrs["missing"] == 0
    assert list((store.path / "claims").iterdir()) == []


def test_a_training_that_cannot_be_traced_is_named_and_everything_else_is_stored(store):
    def picky(cfg, key):
        if cfg.width == 3:
            raise ValueError("three is too many")
        return trained(cfg, key)

    study = dataclasses.replace(tiny(how=picky), name="picky")
    with pytest.raises(RunError, match=r"'width': 3.*three is too many"):
        run(study, store, width=[2, 3])
    assert api.load(study, "first", store=store, width=[2]).attrs["missing"] == 0


def test_a_failed_run_leaves_no_claims_to_its_executor(store, monkeypatch):
    """Claims of a living process are waited for: one that is left would block the next run."""

    def full(*args):
        raise RunError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "put", full)
        with ThreadPoolExecutor(1) as pool, pytest.raises(RunError, match="full"):
            run(tiny(), store, executor=pool, lanes=1)
    assert list((store.path / "claims").iterdir()) == []


def test_blocks_that_another_run_finishes_meanwhile_are_not_computed_again(
    store, computed, monkeypatch
):
    study, claim = tiny(), Store.claim

    def late(self, chunk):
        """Just before this run claims its first block, another one does all the work."""
        monkeypatch.setattr(Store, "claim", claim)
        run(study, Store(store.path))
        return claim(self, chunk)

    monkeypatch.setattr(Store, "claim", late)
    with ThreadPoolExecutor(1) as pool:
        ds = run(study, store, executor=pool)
    assert ds.attrs["missing"] == 0
    assert sum(computed) == 18


def test_any_executor_of_threads_will_do_and_progress_is_told(store):
    told = []
    with ThreadPoolExecutor(1) as pool:
        api.run(tiny(), "first", store=store, executor=pool, lanes=4,
                progress=lambda *args: told.append(args))  # fmt: skip
    done = [d for d, _, _ in told]
    assert done == sorted(done)
    assert told[0][:2] == (0, 18)
    assert told[-1][:2] == (18, 18)
    assert list((store.path / "claims").iterdir()) == []


# ------------------------------------------------------------------ forecast, precision


def test_a_forecast_counts_cells_programs_and_time(store):
    study = tiny(grid={"rate": [0.1, 0.2], "width": [2, 3]})
    job = api.job(study, "first", store=store)
    unknown = job.forecast()
    assert unknown[:4] == (12, 0, 2, None)
    assert unknown.lanes == 6
    assert (job.forecast(measure=True).seconds or 0) > 0
    assert (api.job(study, "first", store=store).forecast().seconds or 0) > 0  # kept
    api.finish(job, progress=False)
    assert api.job(study, "first", store=store).forecast()[:4] == (12, 12, 0, 0.0)


def test_a_run_keeps_its_timings_for_the_next_forecast(store):
    study = tiny()
    run(study, store, lanes=1)
    more = api.job(study, "first", store=store, settings={"rate": [0.1, 0.7]})
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
