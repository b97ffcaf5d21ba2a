"""Probes and parts from outside: right numbers, cells of their own, and errors that say why."""

import functools
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray as xr
from jaxtyping import Array, Float

import provingground as pg
from provingground import api, extend, lanes, planning
from provingground.config import mask, size
from provingground.errors import InputError, RunError
from provingground.keys import normal, stream
from provingground.lanes import lanes_run
from provingground.machine import Machine
from provingground.programs import Programs
from provingground.registry import study
from provingground.store import Store
from provingground.studies.toy import STUDY as TOY
from provingground.study import Prediction, Simulator, Study
from provingground.train import by_lane, descend, iterate, overheard
from provingground.upkeep import verify
from tiny import Config, Probes, tiny

SMALL: dict[str, Any] = dict(samples=[30, 50], noise=[0.5, 1.0], steps=40, seeds=3)
ALL = 12


def norm(weights):
    """norm of the weights"""
    return jnp.linalg.norm(weights)


def scaled(weights, cfg):
    return weights * cfg.noise


def run(store, experiment="toy/risk", **options):
    return pg.run(experiment, store=store, **SMALL | options)


def missing(store, **options):
    """How many cells a fresh look at the store does not find."""
    try:
        return pg.load("toy/risk", store=Store(store.path), **SMALL | options).attrs["missing"]
    except RunError:  # of a program that this store has never seen
        return ALL


# ------------------------------------------------------------------------------ probes


def test_a_probe_is_a_variable_of_the_dataset(store):
    ds = run(store, probes=[norm, scaled])
    assert ds["norm"].dims == ("samples", "noise", "seed")
    assert ds["norm"].attrs["long_name"] == "norm of the weights"
    assert ds.scaled.dims == ("samples", "noise", "seed", "scaled_1")
    assert json.loads(ds.attrs["probes"]) == ["norm", "scaled"]
    expected = (ds["norm"] * ds.noise).transpose("samples", "noise", "seed")
    np.testing.assert_allclose(np.linalg.norm(ds.scaled, axis=-1), expected, rtol=1e-5)


@pytest.mark.parametrize("width", [1, 4, 32])
def test_probes_are_those_of_the_weights_of_replay(store, width):
    ds = run(store, probes=[norm, scaled], lanes=width)
    for samples, noise, seed in [(30, 0.5, 0), (50, 1.0, 2)]:
        one = pg.replay(ds, seed, samples=samples, noise=noise, probes=[norm, scaled])
        at = ds.sel(samples=samples, noise=noise, seed=seed)
        np.testing.assert_allclose(at.scaled, noise * one.weights, rtol=2e-5)
        np.testing.assert_allclose(at["norm"], np.linalg.norm(one.weights), rtol=2e-5)
        np.testing.assert_allclose(one.probes["norm"], at["norm"], rtol=2e-5)


def total(weights):
    leaves = [x for x in jax.tree.leaves(weights) if jnp.issubdtype(x.dtype, jnp.floating)]
    return sum(jnp.sum(jnp.abs(x)) for x in leaves)


OTHERS = {  # early stopping; a training inside `by_lane`; two trainings, 64 bits; batches
    "benign_overfitting/fig1b": dict(samples=[4, 7], snr=[2.0, 8.0], steps=60, dim=30),
    "graph_sampling/ctrl_match": dict(nodes=40, steps=20, width=8),
    "in_context_learning/fige_1a": dict(steps=12, batch=4, test_samples=16),
}


@pytest.mark.slow
@pytest.mark.parametrize("target", OTHERS)
def test_probes_of_studies_are_those_of_replay(store, target):
    ds = pg.run(target, probes=total, store=store, seeds=2, lanes=4, **OTHERS[target])
    axes = json.loads(ds.attrs["grid"])
    for place in (0, -1):
        where = {name: labels[place] for name, labels in axes.items()}
        one = pg.replay(ds, seed=1, probes=total, settings=where)
        found = ds.total.sel(where | {"seed": 1})
        np.testing.assert_allclose(found, total(one.weights), rtol=2e-3)


def stopping(cfg, key):
    """Shrinks until it is small: lanes stop at different times."""
    x = normal(stream(key, "data"), (size(cfg, "count"), cfg.width))
    x = jnp.where(mask(cfg, "count")[:, None], x, 0.0)
    trace = iterate(
        lambda x, t: x * (1 - cfg.rate),
        x,
        steps=200,
        at=[0, 1, 200],
        probe=jnp.sum,
        until=lambda x: jnp.max(jnp.abs(x)) < 1e-2,
    )
    return Probes(trace.probes, jnp.sum(trace.last**2), trace.step)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("narrowest", [2, 128])
def test_lanes_that_stop_early_keep_their_weights(store, monkeypatch, backend, narrowest):
    monkeypatch.setattr(lanes, "NARROWEST", narrowest)
    grid = {"rate": [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95], "count": [3, 4]}
    job = planning.job(
        tiny(how=stopping, grid=grid), "first", store=store, seeds=2, probes={"end": lambda w: w}
    )
    programs = Programs(
        job.study, None, "", job.identities, lambda _: Machine(backend, "any", 1, 1)
    )
    (block,) = api.Job(job.sweep, job.store, lanes=64).blocks
    found, _ = programs.call(job.program(block), job.lanes_of(block))
    np.testing.assert_allclose(np.sum(found["end"] ** 2, axis=(2, 3)), found["last"], rtol=1e-6)
    assert np.abs(found["end"]).max() < 1e-2


def test_a_training_inside_of_by_lane_is_overheard():
    def whole(start):
        return descend(lambda w: jnp.sum(w**2), start, optax.sgd(0.25), steps=2).stopped_at

    for mode in ("serial", "wide"):
        with lanes_run(mode), overheard() as tape:
            by_lane(whole, jnp.ones(3))
        (trace,) = tape
        assert trace is not None
        np.testing.assert_allclose(trace.last, [0.25] * 3)


@pytest.mark.parametrize("how", [jax.vmap, jax.jit, lambda f: lambda x: jax.lax.map(f, x)])
def test_a_training_inside_of_a_map_has_no_weights_to_hand_out(how):
    def one(x):
        return iterate(lambda x, t: x / 2, x, steps=2).last

    with overheard() as tape:
        how(one)(jnp.ones(3))
    assert set(tape) == {None}


def test_the_return_type_names_dims(store):
    def profile(weights) -> Float[Array, "rank"]:
        return jnp.sort(weights)

    ds = run(store, probes=profile)
    assert ds.profile.dims[-1] == "rank"
    assert missing(store, probes=profile) == 0


def test_a_probe_may_ask_for_the_data_of_the_training(store):
    def residual(weights, cfg, key):
        n = size(cfg, "samples")
        x = normal(stream(key, "data/x"), (n, cfg.dim))
        w_star = normal(stream(key, "data/w"), (cfg.dim,)) / cfg.dim**0.5
        y = x @ w_star + cfg.noise * normal(stream(key, "data/noise"), (n,))
        loss = jnp.where(mask(cfg, "samples"), x @ weights - y, 0.0) ** 2
        return jnp.sum(loss) / (2 * jnp.asarray(cfg.samples, loss.dtype))

    ds = run(store, probes=residual)
    np.testing.assert_allclose(ds.residual, ds.train_loss.isel(step=-1), rtol=1e-5)


# ---------------------------------------------------------------------------- identity


def test_cells_of_the_study_as_it_is_are_another_s(store):
    plain = run(store)
    assert missing(store, probes=norm) == ALL
    more = run(store, probes=norm)
    parted = run(store, parts={"optimiser": optax.adam})
    prints = [set(ds.attrs["fingerprint"].split(", ")) for ds in (plain, more, parted)]
    assert len(set.union(*prints)) == sum(map(len, prints))
    files = sorted((store.path / "toy").glob("*.nc"))
    xr.testing.assert_identical(plain.drop_attrs(), run(store).drop_attrs())
    assert "norm" not in run(store)
    assert sorted((store.path / "toy").glob("*.nc")) == files
    np.testing.assert_allclose(more.test_loss, plain.test_loss, rtol=1e-5)
    assert np.abs(parted.test_loss - plain.test_loss).max() > 1e-3


def test_the_other_way_round_too(store):
    run(store, probes=norm)
    run(store, parts={"optimiser": optax.adam})
    assert missing(store) == ALL


def test_other_code_under_one_name_is_another_cell(store):
    run(store, probes={"size": lambda w: jnp.sum(w**2)})
    assert missing(store, probes={"size": lambda w: jnp.sum(w**2)}) == 0
    assert missing(store, probes={"size": lambda w: jnp.sum(w**4)}) == ALL
    assert missing(store, probes={"other": lambda w: jnp.sum(w**2)}) == ALL
    power = 2
    assert missing(store, probes={"size": lambda w: jnp.sum(w**power)}) == ALL


def test_one_program_under_two_names_is_two_cells(store):
    """Though the compiler may see no difference, no file has to serve both."""
    first = run(store, probes={"a": norm})
    second = run(store, probes={"b": norm})
    assert "a" in first
    assert "b" in second
    assert missing(store, probes={"a": norm}) == 0
    assert not list(store.path.glob("**/quarantine/*"))


def test_a_part_that_is_the_default_changes_nothing(store):
    plain = run(store)
    same = run(store, parts={"optimiser": optax.sgd})
    assert same.attrs["fingerprint"] == plain.attrs["fingerprint"]
    assert "parts" not in same.attrs


@pytest.mark.slow
def test_probes_that_read_files_are_computed_each_time(store, tmp_path):
    file = tmp_path / "number"

    def read(weights):
        return jnp.sum(weights) * 0 + float(file.read_text())

    for number in (1.0, 2.0):
        file.write_text(str(number))
        assert (run(store, probes=read).read == number).all()


SCRIPT = """
import jax.numpy as jnp
import provingground as pg

def norm(weights):
    return jnp.linalg.norm(weights)

SMALL = dict(samples=[30], noise=[0.5], steps=40, seeds=2)
ds = pg.{what}("toy/risk", probes=norm, **SMALL)
print(ds.attrs["missing"], ds.attrs["fingerprint"], ds["norm"].values.tolist())
"""


@pytest.mark.slow
def test_another_process_finds_them(tmp_path):
    env = os.environ | {"PROVING_STORE": str(tmp_path / "store")}

    def answer(what, text=SCRIPT):
        command = [sys.executable, "-c", text.format(what=what)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        return done.stdout or done.stderr

    first = answer("run")
    assert first.startswith("0 ")
    assert answer("load") == first
    changed = SCRIPT.replace("norm(weights)\n\n", "norm(weights) + 1\n\n")
    assert changed != SCRIPT
    assert "no results of this version" in answer("load", changed)


def test_verify_neither_counts_nor_adopts_them(store):
    run(store, probes=norm)
    run(store, parts={"optimiser": lambda lr: optax.sgd(lr)})
    state = verify(TOY, Store(store.path), adopt=True)
    assert (state.cells, state.stale, state.adopted, state.refused) == (24, 0, 0, 0)
    assert state.problems == ()
    assert "24 cells" in state.remarks[0]
    assert missing(store) == ALL


def test_workers_are_sent_no_functions(store):
    with (
        ProcessPoolExecutor(1) as workers,
        pytest.raises(InputError, match=r"sent no functions.*proving fork toy"),
    ):
        run(store, probes=norm, executor=workers)


@pytest.mark.slow
def test_replay_wants_the_same_probes_and_parts(store):
    ds = run(store, parts={"optimiser": optax.adam}, probes=norm)
    where: dict[str, Any] = dict(seed=1, samples=30, noise=0.5)
    with pytest.raises(InputError, match="run with probes or parts"):
        pg.replay(ds, **where)
    one = pg.replay(ds, parts={"optimiser": optax.adam}, probes=norm, **where)
    np.testing.assert_allclose(
        one.probes.test_loss, ds.test_loss.sel(samples=30, noise=0.5, seed=1), rtol=1e-4
    )


# ------------------------------------------------------------------------------- parts


def test_a_part_is_what_a_study_with_it_would_compute(store):
    momentum = functools.partial(optax.sgd, momentum=0.5)
    ds = run(store, parts={"optimiser": momentum})
    assert json.loads(ds.attrs["parts"]) == {"optimiser": "sgd(momentum=0.5)"}
    cfg = TOY.simulators["descent"].config(samples=30, noise=0.5, steps=40)
    from provingground.keys import seed_key

    by_hand = jax.jit(lambda key: TOY.simulators["descent"].simulate(cfg, key, optimiser=momentum))
    found = by_hand(seed_key("toy", 2))
    np.testing.assert_allclose(
        ds.test_loss.sel(samples=30, noise=0.5, seed=2), found.test_loss, rtol=1e-4
    )


@pytest.mark.slow
def test_claims_are_judged_with_other_parts(store):
    verdicts = pg.check(
        TOY, store=store, parts={"optimiser": lambda lr: optax.sgd(0 * lr)}, seeds=3
    )
    assert any(v.surprise for v in verdicts)


PARTS = {
    "benign_overfitting": {"span": {"attention"}, "full": {"attention", "optimiser"}},
    "vision_transformer": {"patterns": {"activation", "optimiser"}, "tokens": {"optimiser"}},
    "graph_transformer": {
        "counts": {"activation", "optimiser"},
        "nodes": {"activation", "optimiser"},
        "graphs": {"activation", "optimiser"},
        "four": {"activation", "optimiser"},
        "gat": {"activation", "optimiser"},
    },
    "in_context_learning": {
        "reduced": {"activation", "optimiser"},
        "mechanism": {"activation", "optimiser"},
        "graphs": {"activation", "optimiser"},
        "full": {"activation", "optimiser"},
        "decoder": {"optimiser"},
        "learners": set(),
    },
    "toy": {"descent": {"optimiser"}},
    "group_imbalance": {"fit": set(), "descent": set()},
}


@pytest.mark.parametrize("name", PARTS)
def test_the_parts_of_studies_are_those_of_the_documentation(name):
    simulators = study(name).simulators
    page = (Path(__file__).parents[1] / "docs" / "extend.md").read_text()
    for simulator, known in PARTS[name].items():
        assert set(extend.parts(simulators[simulator])) == known
        if known:
            (row,) = [
                line.rpartition("|")[0].rpartition("|")[2]
                for line in page.partition(f"| `{name}`")[2].splitlines()[:4]
                if line.count("|") >= 3 and f"`{simulator}`" in line
            ][:1]
            assert all(f"`{part}`" in row for part in known)


@pytest.mark.slow
def test_in_another_form_another_attention_is_the_same(double):
    """Training in the span of the tokens is that of all weights, whatever attention is."""
    from provingground.identity import typed
    from provingground.keys import seed_key
    from provingground.studies.benign_overfitting import full as all_weights
    from provingground.studies.benign_overfitting import model

    cfg = typed(model.Config(samples=6, dim=40, steps=30, lr=0.3, test_samples=20), "float64")
    key = seed_key("benign_overfitting", 0)
    full, span, softmax = (
        jax.jit(how)(cfg, key)
        for how in (
            functools.partial(all_weights.simulate, attention=jax.nn.sigmoid),
            functools.partial(model.simulate, attention=jax.nn.sigmoid),
            model.simulate,
        )
    )
    np.testing.assert_allclose(full.train_loss, span.train_loss, rtol=1e-6)
    np.testing.assert_allclose(full.test_loss, span.test_loss, rtol=1e-6)
    assert np.abs(span.train_loss - softmax.train_loss).max() > 1e-3


# ------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (dict(parts={"optimizer": optax.adam}), "unknown part 'optimizer'; did you mean 'optimi"),
        (dict(parts={"activation": jnp.tanh}), "unknown part 'activation'.*Known: optimiser"),
        (dict(parts={"optimiser": 3}), "optimiser = 3 is no function"),
        (dict(parts=jnp.tanh), "a dict of names and functions"),
        (dict(probes=3), "3 is no function"),
        (dict(probes=lambda w: w), "cannot be called '<lambda>'"),
        (dict(probes=[norm, norm]), "two probes called 'norm'"),
        (dict(probes={"test_loss": norm}), "'test_loss': the Dataset has that already"),
        (dict(probes={"step": norm}), "'step': the Dataset has that already"),
        (dict(probes={"samples": norm}), "'samples': the Dataset has that already"),
        (dict(probes={"lr": norm}), "'lr': the Dataset has that already"),
        (dict(probes={"config_lr": norm}), "cannot be called 'config_lr'"),
        (dict(probes={"x y": norm}), "cannot be called 'x y'"),
        (dict(probes={"x": lambda w, other: w}), r"takes \(w, other\); .*weights, cfg, key, data"),
        (dict(probes={"x": lambda: 1}), r"takes \(\)"),
        (dict(probes={"x": lambda w: w.query}), r"AttributeError.*the weights are f32\[10\]"),
        (dict(probes={"x": lambda w: {"a": w}}), "fails with"),
        (dict(probes={"x": lambda w: w[:0]}), r"shape \(0,\)"),
        (dict(probes={"x": lambda w: w + 1j}), "complex"),
        (dict(probes={"x": lambda w: w}, dim=[5, 10]), "has the shape .*one Dataset cannot hold"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(store, options, says):
    with pytest.raises(InputError, match=says):
        run(store, **options)
    assert not store.path.exists()


def test_a_training_that_fails_says_where(store):
    with pytest.raises(RunError) as failed:
        run(store, parts={"optimiser": lambda lr: None})
    assert re.search(
        r" \(.*\.py, line \d+\); with optimiser = <lambda> \(.*test_extend.py, line "
        r"\d+\) in place of its own. PROVING_TRACEBACK=1 shows all$",
        str(failed.value),
    )
    with pytest.raises(RunError, match=r"NameError: .*'opt' is not .* \(.*test_extend.py, line "):
        run(store, parts={"optimiser": lambda lr: opt.sgd(lr)})  # pyright: ignore


def test_dims_that_the_dataset_has_otherwise_are_refused(store):
    def bad(weights) -> Float[Array, "samples"]:
        return weights

    def rank(weights) -> Float[Array, "rank"]:
        return jnp.sum(weights)

    for probe, says in [(bad, "cannot have the dims"), (rank, r"returns the shape \(\)")]:
        with pytest.raises(InputError, match=says):
            run(store, probes=probe)


@pytest.mark.parametrize(
    ("target", "simulator"),
    [("chain_of_thought/laws_rho", "plurality"), ("group_imbalance/cor4_4_1", "local")],
)
def test_a_simulator_without_weights_says_so(store, target, simulator):
    with pytest.raises(InputError, match=f"'{simulator}' of .*trains no weights"):
        pg.run(target, probes=total, store=store)


def test_a_simulator_of_the_host_has_no_weights(store):
    host = Simulator(Config, lambda cfg, key: None, Probes, host=True)
    made = Study(
        "hosted", "t", "c", {"one": host}, lambda c: Prediction((), {}), tiny().experiments
    )
    with pytest.raises(InputError, match="trains no weights"):
        pg.run(made, "first", probes=total, store=store)


def test_weights_of_many_trainings_are_those_of_none(store):
    def many(cfg, key):
        x = normal(stream(key, "data"), (5, 2))
        ends = jax.vmap(lambda x: iterate(lambda x, t: x / 2, x, steps=2).last)(x)
        return Probes(jnp.zeros(3), jnp.sum(ends) * cfg.rate, jnp.arange(3, dtype=jnp.int32))

    with pytest.raises(InputError, match="inside of a map or loop"):
        pg.run(tiny(how=many), "first", probes=total, store=store)


def test_weights_may_be_a_module(store):
    class Net(eqx.Module):
        a: Array
        b: Array

    def how(cfg, key):
        start = Net(jnp.ones(2), jnp.ones(3))
        trace = iterate(lambda n, t: jax.tree.map(lambda x: x * cfg.rate, n), start, steps=2)
        return Probes(jnp.zeros(3), jnp.sum(trace.last.a), jnp.arange(3, dtype=jnp.int32))

    ds = pg.run(tiny(how=how), "first", probes={"b": lambda n: n.b}, store=store, seeds=2)
    expected = np.broadcast_to((ds.rate**2).values[:, None, None, None], ds.b.shape)
    np.testing.assert_allclose(ds.b, expected, rtol=1e-5)
