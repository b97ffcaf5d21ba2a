"""Workers (of Dask) that die, once or always at the same cell."""

import signal
import socket

import psutil
import pytest
from processes import CELLS, SWEEP, cells, locks, nothing_left, read

from provingground.locks import _started


def spawned(process: psutil.Process) -> bool:
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.Error:
        return False


@pytest.mark.slow
def test_a_killed_worker_costs_nothing_but_time(tmp_path, start, undisturbed):
    store, out = tmp_path / "store", tmp_path / "out.nc"
    process = start("run", *SWEEP, "--workers", 2, "--store", store, "--out", out, seconds=0.5)
    process.until(lambda: cells(store) and locks(store))
    workers = [p for p in process.children() if spawned(p)]
    assert len(workers) == 2
    assert locks(store)
    writer = f"{socket.gethostname()}.{workers[0].pid}.{_started(workers[0].pid)}"
    (store / "crashing" / f".{'0' * 32}.{writer}.tmp").write_bytes(b"half a file")
    workers[0].send_signal(signal.SIGKILL)
    assert cells(store).total() < CELLS - 4

    code, told, _ = process.end()
    assert code == 0, told
    assert read(out).identical(undisturbed[1])
    assert len(cells(store)) == CELLS
    assert nothing_left(store)
    assert process.left() == []


def test_of_a_cell_that_kills_its_workers_all_others_are_stored(tmp_path, start):
    store = tmp_path / "store"
    sweep = ["crashing/first", "--set", "rate=1:36:36", "--seeds", "1", "--lanes", "6"]
    process = start("run", *sweep, "--workers", 2, "--store", store, seconds=0.01)
    code, told, _ = process.end()
    assert code == 3, told
    assert "6 of 36 cells failed, all others are stored" in told
    assert "KilledWorker" in told
    assert len(cells(store)) == cells(store).total() == 30
    assert nothing_left(store)
    assert process.left() == []

    code, told, _ = start("run", *sweep, "--store", store, tame=True).end()
    assert "36 cells, 30 stored; 6 cells to run" in told
    assert code == 0
    assert len(cells(store)) == cells(store).total() == 36
