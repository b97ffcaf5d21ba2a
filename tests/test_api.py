import dataclasses
import functools
import importlib
import sys
import types
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from jaxtyping import Array, Float, Int
from matplotlib.figure import Figure

import provingground as pg
from provingground import api, identity, planning, plot
from provingground.config import probe
from provingground.errors import InputError, RunError
from provingground.store import Store
from provingground.studies.benign_overfitting import STUDY as BENIGN
from provingground.studies.toy import STUDY as TOY
from provingground.study import Simulator
from provingground.train import iterate
from tiny import Config, tiny, with_trainings

SMALL: dict[str, Any] = dict(samples=[70, 80], steps=40, seeds=4)
TINY: dict[str, Any] = dict(
    dim=16, tokens=4, key_width=8, value_width=8, test_samples=10, steps=60, record=4, samples=[4],
    snr=[20.0], numerics=["float64"], eps=0.1,
)  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A small run of the toy study and the store it is in."""
    store = Store(tmp_path_factory.mktemp("results"))
    return pg.run("toy/risk", store=store, **SMALL), store


def with_simulate(how):
    """The toy study with another training."""
    simulator = dataclasses.replace(TOY.simulators["descent"], simulate=how)
    return dataclasses.replace(TOY, simulators={"descent": simulator})


def test_names_of_the_package_are_loaded_on_first_use():
    assert pg.run is api.run
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        pg.rum  # pyright: ignore # noqa: B018


# --------------------------------------------------------------------------- run and load


def test_run_gives_the_dataset_and_load_gives_it_again(results):
    ds, store = results
    assert dict(ds.sizes) == {"samples": 2, "noise": 3, "seed": 4, "step": 12}
    assert pg.load("toy/risk", store=str(store.path), **SMALL).identical(ds)
    assert pg.load(TOY, "risk", store=store.path, **SMALL).identical(ds)


def test_load_traces_nothing(results, monkeypatch):
    own, store = with_simulate(half), results[1]
    ds = pg.run(own, "risk", store=store, **SMALL)
    monkeypatch.setattr(identity, "lowered_text", None)
    monkeypatch.setattr(jax, "jit", None)
    assert pg.load(own, "risk", store=Store(store.path), **SMALL).identical(ds)


def test_load_of_what_was_never_run_says_what_to_do(store):
    with pytest.raises(RunError, match="`proving run toy/risk`"):
        pg.load(with_simulate(half), "risk", store=store)


def test_load_says_what_is_missing(results, capsys):
    other: dict[str, Any] = SMALL | {"samples": [75]}
    with pytest.raises(RunError, match="of toy/risk are missing; `proving run toy/risk`"):
        pg.load("toy/risk", store=results[1].path, **other)
    assert capsys.readouterr().err == ""
    more: dict[str, Any] = {"samples": [*SMALL["samples"], 75]}
    ds = pg.load("toy/risk", **SMALL | more, store=results[1].path)
    assert ds.attrs["missing"] > 0
    assert "cells of toy/risk are missing; `proving run toy/risk`" in capsys.readouterr().err


def test_the_store_is_that_of_the_environment(results, monkeypatch):
    monkeypatch.setenv("PROVING_STORE", str(results[1].path))
    assert pg.load("toy/risk", **SMALL).identical(results[0])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("toys/risk",), {}, "unknown study 'toys'"),
        (("toy/risc",), {}, "did you mean 'risk'"),
        (("benign_overfitting",), {}, "say which experiment of benign_overfitting: one of fig1b"),
        ((BENIGN,), {}, "say which experiment of benign_overfitting: one of fig1b"),
        (("benign_overfitting/",), {}, "say which experiment of benign_overfitting: one of fig1b"),
        (("toy/risk", "risk"), {}, "two experiments are named, toy/risk and 'risk'"),
        ((3,), {}, "target = 3 is not allowed: 'study/experiment', or a Study"),
        ((TOY, "risc"), {}, "did you mean 'risk'"),
        (("toy/risk",), {"scale": "papper"}, "did you mean 'paper'"),
        (("toy/risk",), {"lanes": 0}, "lanes = 0 is not allowed"),
        (("toy/risk",), {"sample": 3}, "did you mean 'samples'"),
        (("toy/risk",), {"seeds": 10**9}, "more than the"),
        (("toy/risk",), {"samples": 30.5}, "whole numbers from 1"),
        (("toy/risk",), {"noise": None}, "numbers from 0"),
    ],
)
def test_nonsense_is_refused_before_any_work(store, arguments, options, message):
    with pytest.raises(InputError, match=message):
        pg.run(*arguments, store=store, **options)
    assert not store.path.exists()


def test_more_than_a_million_cells_can_be_asked_for():
    with pytest.raises(InputError, match="yes=True"):
        planning.job(TOY, "risk", seeds=10**6)
    assert planning.job(TOY, "risk", seeds=10**6, yes=True).sweep.cells == 15 * 10**6


# -------------------------------------------------------------------------------- check


def test_check_judges_every_claim(results):
    verdicts = pg.check("toy/risk", store=results[1], **SMALL)
    assert [v.claim for v in verdicts] == ["risk_law", "noise_exponent"]
    assert all(v.headline and v.cells == 24 and v.seeds == 4 for v in verdicts)
    assert verdicts[1].verdict == "holds"
    assert [v.estimate for v in pg.check("toy", store=results[1], **SMALL)] == [
        v.estimate for v in verdicts
    ]


def test_a_broken_law_is_a_surprise(results):
    (law, _) = pg.check(TOY, store=results[1], **SMALL, lr=1e-3)
    assert (law.verdict, law.surprise, law.trouble) == ("fails", True, True)


def test_a_diverged_headline_is_undecided_and_said_so(results):
    verdicts = pg.check(TOY, store=results[1], **SMALL, lr=1e3)
    assert all(v.verdict == "unknown" and v.trouble for v in verdicts)
    assert all("24 of 24 cells diverged" in v.note for v in verdicts)


def test_targets_are_studies_or_experiments():
    def names(*targets, **options):
        return [f"{s.name}/{e.name}" for s, e in planning.chosen(targets, **options)]

    assert names("toy", "benign_overfitting/fig1a") == ["toy/risk", "benign_overfitting/fig1a"]
    assert names(BENIGN, headline=True) == ["benign_overfitting/fig1b"]
    assert len(names(BENIGN)) == len(BENIGN.experiments)
    assert names()[: len(BENIGN.experiments)] == names(BENIGN)


# ------------------------------------------------------------------------------- figures


def test_a_figure_is_drawn_from_what_is_stored(results):
    fig = pg.figure("toy/risk", store=results[1], **SMALL)
    assert isinstance(fig, Figure)
    assert plot.check_layout(fig) == []


# -------------------------------------------------------------------------------- replay


def test_a_replay_has_the_cell_its_whole_trajectory_and_its_weights(results):
    ds, _ = results
    again = pg.replay(ds, samples=80, noise=1.0, seed=2)
    cell = ds.sel(samples=80, noise=1.0, seed=2)
    np.testing.assert_allclose(again.probes.test_loss, cell.test_loss, rtol=1e-4)
    assert list(again.trajectory) == ["train_loss"]  # it alone has the values of the lone probe
    loss = again.trajectory.train_loss
    np.testing.assert_array_equal(again.trajectory.step, np.arange(41))
    np.testing.assert_allclose(loss.sel(step=cell.step), cell.train_loss, rtol=1e-4)
    assert again.weights.shape == (10,)
    for name in ("train_loss", "test_loss", "step"):
        assert again.probes[name].attrs == ds[name].attrs
    assert loss.attrs == ds.train_loss.attrs == {"long_name": "training loss", "symbol": "L"}
    assert again.trajectory.step.attrs == ds.step.attrs


class Doubled(eqx.Module):
    """The loss twice over, by two names."""

    first: Float[Array, "step"]
    second: Float[Array, "step"]


def doubled(cfg, key):
    found = TOY.simulators["descent"].simulate(cfg, key)
    return Doubled(found.train_loss, found.train_loss)


def scaled(cfg, key):
    found = TOY.simulators["descent"].simulate(cfg, key)
    return dataclasses.replace(found, train_loss=2.0 * found.train_loss)


def test_a_lone_probe_keeps_its_name_where_it_could_be_several_or_none(store):
    two = Simulator(TOY.simulators["descent"].config, doubled, Doubled)
    for own in (dataclasses.replace(TOY, simulators={"descent": two}), with_simulate(scaled)):
        ds = pg.run(own, "risk", store=store, **SMALL)
        again = pg.replay(ds, study=own, samples=80, noise=1.0, seed=2)
        assert list(again.trajectory) == ["probe"]
        assert again.trajectory.probe.attrs == {}


def test_a_training_without_a_probe_has_no_trajectory(store):
    def blind(cfg, key):
        found = TOY.simulators["descent"].simulate(cfg, key)
        last = iterate(lambda w, t: w / 2, jnp.ones(3), steps=4).last
        return dataclasses.replace(found, test_loss=found.test_loss + last.sum())

    own = with_simulate(blind)
    ds = pg.run(own, "risk", store=store, **SMALL)
    again = pg.replay(ds, study=own, samples=80, noise=1.0, seed=2)
    assert list(again.trajectory) == []
    assert again.weights.shape == (3,)


def test_a_replay_ends_where_the_training_stopped(store):
    ds = pg.run("benign_overfitting/numerics", store=store, seeds=[3], **TINY)
    again = pg.replay(ds, seed=3, numerics="float64")
    cell = ds.sel(seed=3).squeeze()
    assert 1 < int(cell.stopped_at) < 60
    assert again.trajectory.sizes["step"] == int(cell.stopped_at) + 1
    for name in ("train_loss", "attention_signal", "value_noise"):
        end = again.trajectory[name].isel(step=-1)
        np.testing.assert_allclose(end, cell[name].isel(step=-1), rtol=1e-9)
    assert (again.trajectory.train_loss[:-1] > 0.1).all()
    for name in ("train_loss", "value_noise", "step"):
        assert again.trajectory[name].attrs == ds[name].attrs
    assert again.weights.coefficients.query.shape == (14, 8)
    assert again.probes.test_loss.dtype == np.float64
    np.testing.assert_allclose(again.probes.test_loss, cell.test_loss, rtol=1e-9)
    with pytest.raises(InputError, match="did you mean 'half step'"):
        pg.replay(ds, numerics="halfstep")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (dict(samples=80), "say which noise: one of 0.5, 1.0, 2.0"),
        (dict(samples=80, nois=1.0), "did you mean 'noise'"),
        (dict(samples=60, noise=1.0), "samples = 60 is not on the axis"),
        (dict(samples=80, noise=1.0, seed=99), "seed = 99 is not in the Dataset; it has 0, 1"),
    ],
)
def test_a_replay_needs_one_cell_of_the_dataset(results, cell, message):
    with pytest.raises(InputError, match=message):
        pg.replay(results[0], **cell)


def test_a_replay_is_of_a_dataset(results):
    with pytest.raises(InputError, match="'toy/risk' is not a Dataset"):
        pg.replay("toy/risk", samples=80)  # pyright: ignore[reportArgumentType]
    last = results[0].isel(seed=[-1])
    again = pg.replay(last, samples=80, noise=1.0)
    expected = last.test_loss.sel(samples=80, noise=1.0).item()
    assert float(again.probes.test_loss) == pytest.approx(expected, rel=1e-5)


# -------------------------------------------------------------------- studies of one's own


def half(cfg, key):
    found = TOY.simulators["descent"].simulate(cfg, key)
    return dataclasses.replace(found, test_loss=0.5 * found.test_loss)


def twice(cfg, key):
    found = TOY.simulators["descent"].simulate(cfg, key)
    return dataclasses.replace(found, test_loss=2.0 * found.test_loss)


def test_a_study_with_another_training_runs_beside_the_original(results):
    ds, store = results
    own = pg.run(with_simulate(half), "risk", store=store, **SMALL)
    xr.testing.assert_allclose(own.test_loss, 0.5 * ds.test_loss)
    assert pg.load(TOY, "risk", store=store, **SMALL).identical(ds)
    assert own.attrs["fingerprint"] != ds.attrs["fingerprint"]


def test_two_trainings_of_one_file_do_not_clash(results):
    ds, store = results
    for how, factor in ((half, 0.5), (twice, 2.0)):
        own = pg.run(with_simulate(how), "risk", store=store, **SMALL)
        xr.testing.assert_allclose(own.test_loss, factor * ds.test_loss)


def test_trainings_that_differ_in_what_they_close_over_do_not_clash(results):
    ds, store = results

    def scaled(factor):
        def how(cfg, key):
            found = TOY.simulators["descent"].simulate(cfg, key)
            return dataclasses.replace(found, test_loss=factor * found.test_loss)

        return how

    for factor in (3.0, 4.0):
        own = pg.run(with_simulate(scaled(factor)), "risk", store=store, **SMALL)
        xr.testing.assert_allclose(own.test_loss, factor * ds.test_loss)


TYPED = """
import dataclasses
from provingground.studies.toy.model import simulate

def how(cfg, key):
    found = simulate(cfg, key)
    return dataclasses.replace(found, test_loss={factor} * found.test_loss)
"""


def test_a_training_that_is_typed_in_again_is_another_one(results, monkeypatch):
    ds, store = results
    notebook: Any = types.ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", notebook)
    for factor in (5.0, 6.0):
        exec(TYPED.format(factor=factor), vars(notebook))
        own = pg.run(with_simulate(notebook.how), "risk", store=store, **SMALL)
        xr.testing.assert_allclose(own.test_loss, factor * ds.test_loss)


def test_a_training_that_is_edited_and_reloaded_is_another_one(results, tmp_path, monkeypatch):
    ds, store = results
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for factor in (7.0, 8.0):
        (tmp_path / "edited.py").write_text(TYPED.format(factor=factor))
        importlib.invalidate_caches()
        edited = importlib.reload(importlib.import_module("edited"))
        own = pg.run(with_simulate(edited.how), "risk", store=Store(store.path), **SMALL)
        xr.testing.assert_allclose(own.test_loss, factor * ds.test_loss)
    monkeypatch.delitem(sys.modules, "edited")


@pytest.mark.parametrize("wrap", [functools.partial, jax.jit])
def test_any_callable_is_a_training(results, wrap):
    ds, store = results
    for how, factor in ((half, 0.5), (twice, 2.0)):
        own = pg.run(with_simulate(wrap(how)), "risk", store=store, **SMALL)
        xr.testing.assert_allclose(own.test_loss, factor * ds.test_loss)


def test_a_replay_of_another_training_needs_that_training(results):
    own = pg.run(with_simulate(half), "risk", store=results[1], **SMALL)
    cell: dict[str, Any] = dict(samples=80, noise=1.0, seed=2)
    with pytest.raises(InputError, match="say study="):
        pg.replay(own, **cell)
    again = pg.replay(own, study=with_simulate(half), **cell)
    np.testing.assert_allclose(again.probes.test_loss, own.test_loss.sel(**cell), rtol=1e-4)


def test_own_data_are_part_of_the_identity(store):
    def with_data(cfg, key, data):
        found = TOY.simulators["descent"].simulate(cfg, key)
        return dataclasses.replace(found, test_loss=found.test_loss + jnp.sum(data["x"]))

    experiment = with_trainings(TOY.experiments[0], data="mine")
    study = dataclasses.replace(with_simulate(with_data), experiments=(experiment,))
    found = []
    for shift in (0.0, 5.0):
        data = {"x": np.full(2, shift, np.float32)}
        own = dataclasses.replace(study, data={"mine": lambda data=data: data})
        found.append(pg.run(own, "risk", store=store, **SMALL))
    np.testing.assert_allclose(found[1].test_loss, found[0].test_loss + 10, rtol=1e-5)


class Sided(eqx.Module):
    side: Int[Array, "side"] = probe("which side", labels=("left", "right"))
    seen: Float[Array, "side"] = probe("what is seen there")


def test_dims_have_their_words_also_where_not_all_is_stored(store):
    def simulate(cfg, key):
        return Sided(jnp.arange(2), jnp.array([cfg.rate, 2 * cfg.rate]))

    simulators = {n: Simulator(Config, simulate, Sided) for n in ("one", "two")}
    owner = dataclasses.replace(tiny(), simulators=simulators)
    whole = api.run(owner, "first", store=store, progress=False)
    assert whole.side.values.tolist() == ["left", "right"]
    ds = api.load(owner, "first", store=store, seeds=5)
    assert ds.attrs["missing"] > 0
    assert ds.side.values.tolist() == ["left", "right"]
    assert float(ds.seen.sel(side="right", rate=0.2, count=3, seed=0)) == pytest.approx(0.4)
