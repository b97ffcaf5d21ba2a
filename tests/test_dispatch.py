import contextlib
import dataclasses
import math
import signal
import sys
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from provingground import api, dispatch, planning, stopping
from provingground.engine import Job
from provingground.errors import RunError
from provingground.programs import Programs
from provingground.stopping import Terminated
from provingground.store import Store
from tiny import count_computed, run, tiny, trained


@pytest.fixture
def computed(monkeypatch):
    """How many cells each computed block had."""
    return count_computed(monkeypatch)


def locks(store: Store) -> list[str]:
    return [path.name for path in (store.path / "locks").iterdir()]


# ------------------------------------------------------------------------------ stopping


@pytest.mark.parametrize("how", [Terminated, KeyboardInterrupt])
def test_a_request_to_stop_that_python_drops_is_heeded(store, monkeypatch, how):
    dropped = []
    monkeypatch.setattr(stopping, "_asked", [])
    monkeypatch.setattr(sys, "unraisablehook", lambda what: dropped.append(what.exc_type))

    class Deleted:
        def __del__(self):  # where Python drops every exception
            stopping.stop(how)

    def tell(done, total, what):
        if what == "training" and not stopping._asked:
            Deleted()

    with pytest.raises(KeyboardInterrupt) as stop:
        api.run(tiny(), "first", store=store, lanes=1, progress=tell)
    assert dropped == [stop.type] == [how]
    assert locks(store) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an open file
@pytest.mark.parametrize("own", [True, False], ids=["threads", "executor"])
def test_an_interrupt_at_any_line_leaves_nothing_behind(tmp_path, monkeypatch, own):
    """It comes between any two lines of the main thread; a lock that is left, of a living process,
    would be waited for by the next run."""
    study, at_work = tiny(), ("dispatch.py", "locks.py", "store.py", "files.py")
    monkeypatch.setattr(dispatch, "CHUNK_SECONDS", 0)

    def lines(store: Store, last: float) -> int:
        """How many lines a run has, up to the last, at which it is interrupted."""
        count = 0

        def trace(frame: Any, event: str, arg: Any) -> Any:
            nonlocal count
            if event == "call" and not frame.f_code.co_filename.endswith(at_work):
                return None
            count += event == "line"
            if count == last:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
            return trace

        with ThreadPoolExecutor(1) as pool, contextlib.suppress(KeyboardInterrupt):
            sys.settrace(trace)
            try:
                run(study, store, lanes=6, executor=None if own else pool)
            finally:
                sys.settrace(None)
        return count

    whole = Store(tmp_path / "whole")
    count = lines(whole, math.inf)
    expected = run(study, whole, lanes=6).drop_attrs()
    handler = signal.getsignal(signal.SIGINT)
    for last in range(1, count, 23):
        store = Store(tmp_path / str(last))
        lines(store, last)
        assert signal.getsignal(signal.SIGINT) is handler
        assert not (store.path / "locks").exists() or locks(store) == [], last
        assert not list(store.path.rglob("*.tmp")), last
        assert run(study, store, lanes=6).drop_attrs().identical(expected)


# ------------------------------------------------------------------------------ failures


def test_a_cell_that_does_not_fit_alone_fails(store, monkeypatch):
    def full(self, program, lanes):
        raise MemoryError("RESOURCE_EXHAUSTED: out of memory")

    monkeypatch.setattr(Programs, "_call", full)
    with pytest.raises(RunError, match=r"18 of 18 cells failed.*RESOURCE_EXHAUSTED"):
        run(tiny(), store)


def test_a_failure_is_named_and_everything_else_is_stored(store, monkeypatch):
    call = Programs._call

    def picky(self, program, lanes):
        if dict(program.shape)["width"] == 3:
            raise ValueError("three is too many")
        return call(self, program, lanes)

    monkeypatch.setattr(Programs, "_call", picky)
    study = tiny()
    message = "18 of 36 cells failed.*one with.*'width': 3.*ValueError: three is too many"
    with pytest.raises(RunError, match=message):
        run(study, store, width=[2, 3])
    assert api.load(study, "first", store=store, width=[2]).attrs["missing"] == 0
    assert locks(store) == []


def test_a_training_that_cannot_be_traced_is_named_and_everything_else_is_stored(store):
    def picky(cfg, key):
        if cfg.width == 3:
            raise ValueError("three is too many")
        return trained(cfg, key)

    study = dataclasses.replace(tiny(how=picky), name="picky")
    with pytest.raises(RunError, match=r"'width': 3.*three is too many"):
        run(study, store, width=[2, 3])
    assert api.load(study, "first", store=store, width=[2]).attrs["missing"] == 0


def test_a_failed_run_leaves_no_locks_to_its_executor(store, monkeypatch):
    """Locks of a living process are waited for: one that is left would block the next run."""

    def full(*args):
        raise RunError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "put_packed", full)
        with ThreadPoolExecutor(1) as pool, pytest.raises(RunError, match="full"):
            run(tiny(), store, executor=pool, lanes=1)
    assert locks(store) == []


# ---------------------------------------------------------------- executors and processes


def test_blocks_that_another_run_finishes_meanwhile_are_not_computed_again(
    store, computed, monkeypatch
):
    study, take = tiny(), Store.lock

    def late(self, block):
        """Just before this run locks its first block, another one does all the work."""
        monkeypatch.setattr(Store, "lock", take)
        run(study, Store(store.path))
        return take(self, block)

    monkeypatch.setattr(Store, "lock", late)
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
    assert locks(store) == []


def test_blocks_whose_worker_died_after_it_had_stored_them_are_not_computed_again(
    store, computed, monkeypatch
):
    chunk, died = Job.chunk, []

    def dying(self, blocks, cells):
        finished = chunk(self, blocks, cells)
        if not died:
            died.append(1)
            store.put_packed("tiny", finished.content)
            raise BrokenExecutor("the worker died")
        return finished

    monkeypatch.setattr(Job, "chunk", dying)
    ds = run(tiny(), store, lanes=1)
    assert died
    assert ds.attrs["missing"] == 0
    assert sum(computed) == sum(chunk_sizes(store)) == 18


# -------------------------------------------------------------------------------- chunks


def chunk_sizes(store: Store) -> list[int]:
    return sorted(len(chunk.cells) for chunk in store.chunks("tiny"))


def test_a_file_holds_about_so_many_seconds_of_work(store, tmp_path, monkeypatch):
    study = tiny()
    settings: dict[str, Any] = dict(count=[5], rate=np.linspace(0, 1, 40), seeds=4, lanes=4)
    many = run(study, store, **settings)
    assert 1 < len(chunk_sizes(store)) < 40
    assert sum(chunk_sizes(store)) == 160
    monkeypatch.setattr(dispatch, "CHUNK_SECONDS", 0)
    alone = Store(tmp_path / "alone")
    ds = run(study, alone, **settings)
    assert chunk_sizes(alone) == [4] * 40
    assert ds.drop_attrs().identical(many.drop_attrs())


def test_of_a_file_s_blocks_only_those_that_fail_are_lost(store, monkeypatch):
    """A batch that failed is tried again block by block."""
    compute, batches = Job.compute, []
    chunk = Job.chunk

    def counted(job, blocks, cells):
        batches.append(len(blocks))
        return chunk(job, blocks, cells)

    def picky(job, block):
        if block.rows[0] == 77:
            raise ValueError("not this one")
        return compute(job, block)

    monkeypatch.setattr(Job, "chunk", counted)
    monkeypatch.setattr(Job, "compute", picky)
    study, rates = tiny(), list(np.linspace(0, 1, 100))
    with ThreadPoolExecutor(1) as pool, pytest.raises(RunError, match=r"1 of 100 cells.*not this"):
        run(study, store, count=[5], rate=rates, seeds=1, lanes=1, executor=pool)
    assert max(batches) > 1
    ds = api.load(study, "first", store=store, count=[5], rate=rates, seeds=1)
    assert ds.attrs["missing"] == 1
    assert np.isnan(ds["last"].values[77]).all()
    assert locks(store) == []


def test_the_numbers_do_not_depend_on_what_was_stored_before(store, tmp_path):
    """A sweep that was broken off goes on with the blocks it had."""
    study = tiny()
    settings: dict[str, Any] = dict(count=[5], rate=np.linspace(0, 1, 21), seeds=3, lanes=4)
    whole = run(study, store, **settings)
    job = planning.job(study, "first", store=tmp_path / "other", lanes=4, seeds=3,
                  settings={"count": [5], "rate": settings["rate"]})  # fmt: skip
    some = job.blocks[1::3]
    for block in some:
        content = job.chunk([block], job.cells(block)).content
        job.store.put_packed("tiny", content)
    assert sum(b.cells for b in job.missing()) == 63 - sum(b.cells for b in some)
    ds = run(study, job.store, **settings)
    assert ds.drop_attrs().identical(whole.drop_attrs())
