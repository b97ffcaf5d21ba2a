"""Sweeps over worker processes: the same numbers, and orders that are refused."""

import contextlib
import dataclasses
import gc
import json
import multiprocessing
import os
import socket
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import dask
import distributed
import numpy as np
import pytest

from provingground import api, cli, cluster, dispatch, planning, registry
from provingground.engine import Job
from provingground.errors import InputError, RunError
from provingground.locks import receipt
from provingground.store import Store
from tiny import tiny

TOY: dict[str, Any] = dict(samples=[20, 30], noise=[0.5, 1.0], dim=10, steps=50, seeds=3)
BENIGN: dict[str, Any] = dict(samples=[4], snr=[5.0, 20.0], test_samples=8, seeds=2)
SMALL = ["--set", "samples=20", "--set", "noise=1", "--set", "dim=10", "--set", "steps=50",
         "--seeds", "2"]  # fmt: skip


ANY_PORT = {"dashboard_address": "127.0.0.1:0"}  # for the pages that Dask's scheduler serves


@pytest.fixture(scope="module", autouse=True)
def any_port():
    """The tests do not depend on who else uses Dask on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        made = partial(distributed.LocalCluster, scheduler_kwargs=ANY_PORT)
        patch.setattr(distributed, "LocalCluster", made)
        yield


@pytest.fixture(scope="module")
def workers():
    with cluster.local(2) as executor:
        yield executor


def run(target, store, executor=None, **options):
    ds = api.run(target, store=store, executor=executor, progress=False, **options)
    del ds.attrs["seconds"]
    return ds


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The toy study in threads of this process, one cell at a time."""
    return run("toy/risk", tmp_path_factory.mktemp("alone"), lanes=1, **TOY)


@pytest.fixture
def watched(monkeypatch):
    """What the workers of a run send back."""
    found = []
    collect = dispatch._Work._collect

    def collected(self, future):
        found.append(future.result())
        collect(self, future)

    monkeypatch.setattr(dispatch._Work, "_collect", collected)
    return found


# --------------------------------------------------------------------------- the numbers


def test_other_work_of_this_process_does_not_go_to_the_workers(workers):
    assert dask.config.get("scheduler", None) is None  # pyright: ignore[reportPrivateImportUsage]


def test_workers_give_what_one_process_gives(workers, store, alone, watched):
    ds = run("toy/risk", store, workers, lanes=1, **TOY)
    assert ds.identical(alone)
    assert len(watched) > 1
    assert {finished.content for finished in watched} == {b""}  # they wrote it themselves
    assert sum(len(chunk.cells) for chunk in store.chunks("toy")) == 12
    assert list((store.path / "locks").iterdir()) == []


@pytest.mark.slow
def test_workers_give_what_one_process_gives_for_a_paper(workers, store, tmp_path):
    ds = run("benign_overfitting/fig1a", store, workers, **BENIGN)
    assert ds.identical(run("benign_overfitting/fig1a", tmp_path / "alone", **BENIGN))
    assert ds.attrs["missing"] == 0


def test_workers_that_do_not_see_the_store_send_their_results(
    workers, store, alone, watched, monkeypatch
):
    """Such as those of another machine: what the coordinator locked is not there."""
    order = cluster.order

    def elsewhere(*args):
        return json.dumps(json.loads(order(*args)) | {"store": "/nowhere/at/all"})

    monkeypatch.setattr(cluster, "order", elsewhere)
    assert run("toy/risk", store, workers, lanes=1, **TOY).identical(alone)
    assert all(finished.content for finished in watched)
    assert not Path("/nowhere").exists()


def test_a_second_run_over_workers_computes_nothing(workers, store, alone, watched):
    run("toy/risk", store, lanes=1, **TOY)
    watched.clear()
    assert run("toy/risk", store, workers, lanes=1, **TOY).identical(alone)
    assert watched == []


@pytest.mark.slow
def test_a_refined_sweep_over_workers_is_that_of_one_process(workers, store, tmp_path):
    settings: dict[str, Any] = dict(BENIGN, snr=[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    ds = run("benign_overfitting/boundary", store, workers, **settings)
    assert 0 < ds.attrs["skipped"] < ds.attrs["cells"]
    assert ds.identical(run("benign_overfitting/boundary", tmp_path / "alone", **settings))


def test_any_executor_of_processes_will_do(store, alone):
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        assert cluster.capacity(pool) == 1
        assert run("toy/risk", store, pool, lanes=1, **TOY).identical(alone)
    assert list((store.path / "locks").iterdir()) == []


def test_processes_that_are_gone_are_named_and_what_is_stored_stays(store):
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        pool.submit(os.getpid).result()
        done = []

        def kill(finished: int, total: int, what: str) -> None:
            if finished and not done:
                done.append(finished)
                for process in list(pool._processes.values()):
                    process.kill()

        with pytest.raises(RunError, match=r"the workers are gone.*Finished cells are stored"):
            api.run("toy/risk", store=store, executor=pool, progress=kill, lanes=1, **TOY)
    assert done
    assert sum(len(chunk.cells) for chunk in store.chunks("toy")) >= done[0]
    assert list((store.path / "locks").iterdir()) == []


def test_a_scheduler_that_runs_can_be_used(store, alone):
    options: dict[str, Any] = dict(host="127.0.0.1", dashboard_address=None, silence_logs=50)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as made:
        address = made.scheduler_address  # pyright: ignore[reportAttributeAccessIssue]
        with cluster.connected(address) as executor:
            assert cluster.capacity(executor) == 1
            assert run("toy/risk", store, executor, lanes=1, **TOY).identical(alone)


def test_the_dashboard_is_off_unless_asked_for(workers):
    assert workers._client.scheduler_info()["workers"]
    assert "bokeh" not in sys.modules


def test_a_port_that_is_taken_does_not_matter_without_a_dashboard(monkeypatch):
    """Such as that of another run on the same machine."""
    unpatched = distributed.LocalCluster.func  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setattr(distributed, "LocalCluster", unpatched)
    with socket.socket() as taken, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        with cluster.local(1):
            pass
        gc.collect()  # sockets with which Dask tried to listen there
    assert [str(w.message) for w in told if "Port" in str(w.message)] == []


# -------------------------------------------------------------------------------- orders


@pytest.fixture
def job(store) -> Job:
    settings = {n: v for n, v in TOY.items() if n != "seeds"}
    return planning.job("toy/risk", store=store, seeds=3, lanes=2, settings=settings)


def ordered(job: Job, count: int = 2, **changes: Any) -> str:
    """An order of some blocks, locked, and maybe changed on the way."""
    blocks = job.blocks[:count]
    cells = np.concatenate([job.cells(b) for b in blocks])
    lock = dispatch._name(job.cells(blocks[0]))
    assert job.store.lock(lock)
    text = cluster.order(job, blocks, cells, lock)
    return json.dumps(json.loads(text) | changes)


def test_who_sees_the_store_writes_to_it(job):
    finished = cluster.work(ordered(job))
    assert finished.content == b""
    assert finished.size > 0
    assert job.stored().sum() == 4


@pytest.mark.parametrize(
    "lock", [["block", ""], ["block", "{}"], ["", ""], ["another", "what a lock said"]]
)
def test_who_does_not_see_the_lock_sends_the_results(job, lock):
    """The store of another machine under the same name has not the lock of the coordinator."""
    finished = cluster.work(ordered(job, lock=lock))
    assert finished.content
    assert finished.size == len(finished.content)
    assert not job.stored().any()
    assert not list((job.store.path / "toy").glob("*"))
    job.store.put_packed("toy", finished.content)
    assert job.stored().sum() == 4


def test_who_sees_the_store_and_cannot_write_sends_the_results(job, monkeypatch):
    order = ordered(job)

    def refuse(*args):
        raise RunError("cannot write")

    monkeypatch.setattr(Store, "put_packed", refuse)
    finished = cluster.work(order)
    monkeypatch.undo()
    assert finished.content
    job.store.put_packed("toy", finished.content)
    assert job.stored().sum() == 4


def test_an_order_that_was_stored_is_not_computed_again(job, monkeypatch):
    """Its first worker died before anybody had fetched the result."""
    order = ordered(job)
    cluster.work(order)
    with monkeypatch.context() as patched:
        patched.setattr(Job, "chunk", None)
        assert cluster.work(order) == (b"", 0, 0.0, 0, 0.0)
    assert len(list((job.store.path / "toy").iterdir())) == 1
    lock, _ = json.loads(order)["lock"]
    for name in (lock, receipt(lock)):
        job.store.locks.release(name)
    assert not job.store.locks.is_signed(lock)
    job.store.locks.close()
    assert list((job.store.path / "locks").iterdir()) == []
    ordered(job)  # by another coordinator: an old receipt does not count
    assert not job.store.locks.is_signed(lock)


def test_an_order_of_another_version_is_refused(job):
    order = ordered(job, identity=["f" * 40, "f" * 40, "another", True])
    with pytest.raises(RunError, match="a worker has another version of toy"):
        cluster.work(order)
    assert not job.stored().any()


@pytest.mark.parametrize("known", [True, False])
def test_code_that_does_the_same_otherwise_will_do(job, known):
    """Something was written differently: the lowered program is what counts."""
    fingerprint, lowered, *_ = next(iter(job.identities.values()))
    cluster.work(ordered(job, identity=[fingerprint, lowered, "another", known]))
    assert job.stored().sum() == 4


def forged(job):
    """The right program under the name of another."""
    return ["f" * 40, *next(iter(job.identities.values()))[1:]]


@pytest.mark.parametrize(
    "changes",
    [
        {"identity": forged},
        {"seeds": [5, 6, 7]},
        {"cells": ["0" * 32] * 4},
        {"settings": {"samples": [20, 30], "noise": [0.6, 1.0], "dim": 10, "steps": 50}},
    ],
    ids=["fingerprint", "seeds", "cells", "settings"],
)
def test_an_order_that_is_read_differently_is_refused(job, changes):
    changes = dict[str, Any]((n, new(job) if callable(new) else new) for n, new in changes.items())
    with pytest.raises(RunError, match="reads the settings or the data of toy differently"):
        cluster.work(ordered(job, **changes))
    assert not job.stored().any()


def test_cells_of_later_blocks_that_do_not_fit_are_refused(job):
    order = json.loads(ordered(job))
    order["cells"][-1] = "0" * 32
    with pytest.raises(RunError, match="differently"):
        cluster.work(json.dumps(order))


def test_an_order_that_does_not_fit_ends_the_run(workers, store, monkeypatch):
    order = cluster.order

    def changed(job, *args):
        return json.dumps(json.loads(order(job, *args)) | {"identity": forged(job)})

    monkeypatch.setattr(cluster, "order", changed)
    with pytest.raises(RunError, match="differently"):
        run("toy/risk", store, workers, **TOY)
    assert list((store.path / "locks").iterdir()) == []


def test_a_study_that_workers_would_not_find_is_refused(workers, store):
    with pytest.raises(InputError, match=r"'tiny' is not this one.*entry point or --study-path"):
        run(tiny(), store, workers, experiment="first")


def test_a_study_that_goes_by_the_name_of_another_is_refused(workers, store):
    own = dataclasses.replace(registry.study("toy"), title="another")
    with pytest.raises(InputError, match="'toy' is not this one"):
        run(own, store, workers, experiment="risk")


# -------------------------------------------------------------------------- command line


@pytest.fixture
def proving(monkeypatch, capsys, store):
    """Exit code and stderr of a small run, in this process."""
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 0.5)
    monkeypatch.setattr("provingground.cli.base.signal.signal", lambda *args: None)

    def call(*args) -> tuple[int, str]:
        command = ["proving", "run", "toy/risk", *SMALL, "--store", str(store.path), *args]
        monkeypatch.setattr(sys, "argv", command)
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0), capsys.readouterr().err
        return 0, capsys.readouterr().err

    return call


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--workers", "0"], 2, "workers = 0 is not allowed: whole numbers from 1"),
        (["--workers", "-3"], 2, "workers = -3 is not allowed"),
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], 2, "give one of them"),
        (["--scheduler", "tcp://127.0.0.1:1"], 3, "no scheduler answers at tcp://127.0.0.1:1"),
        (["--scheduler", "nonsense://x"], 3, "no scheduler answers at nonsense://x"),
        (["--scheduler", ""], 3, "no scheduler answers at"),
    ],
)
def test_workers_that_cannot_be_had_are_told_at_once(proving, options, code, says):
    start = time.monotonic()
    found, told = proving(*options)
    assert found == code, told
    assert says in told
    assert "Traceback" not in told
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("options", [["--workers", "1"], ["--scheduler", "tcp://127.0.0.1:1"]])
def test_without_dask_it_says_what_to_install(proving, monkeypatch, options):
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, told = proving(*options)
    assert code == 2
    assert "pip install 'provingground[cluster]'" in told


@pytest.mark.slow
def test_the_command_line_starts_workers(proving, store):
    code, told = proving("--workers", "1")
    assert code == 0, told
    assert "2 cells, 0 stored; 2 cells to run" in told
    assert sum(len(chunk.cells) for chunk in store.chunks("toy")) == 2
