"""Real processes that are killed, that meet on one store, and that find broken files."""

import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import xarray as xr

from provingground.store import Store

CELLS, BLOCKS = 96, 24
SWEEP = ["--set", "samples=200", "--set", "noise=0.5:2:4", "--set", "dim=40",
         "--set", "steps=30000", "--seeds", "24", "--lanes", "4"]  # fmt: skip


def start(store: Path) -> subprocess.Popen:
    """A sweep of a few seconds that leaves its Dataset beside the store."""
    command = [sys.executable, "-m", "provingground.cli", "run", "toy/risk", *SWEEP]
    out = f"{store}-{time.monotonic_ns()}.nc"
    return subprocess.Popen(
        [*command, "--store", str(store), "--out", out],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> tuple[xr.Dataset, str]:
    """The Dataset of a process, and what it said."""
    _, told = process.communicate(timeout=200)
    assert process.returncode == 0, told
    with xr.open_dataset(process.args[-1], engine="scipy") as ds:  # pyright: ignore
        found = ds.load()
    found.attrs.pop("seconds")
    return found, told


def files(store: Path) -> dict[str, int]:
    """The files of the toy study and when they were written."""
    return {p.name: p.stat().st_mtime_ns for p in (store / "toy").glob("*.nc")}


def cells(store: Path) -> Counter[str]:
    """How often each cell is stored."""
    return Counter(cell for chunk in Store(store).chunks("toy") for cell in chunk.cells)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[Path, xr.Dataset]:
    store = tmp_path_factory.mktemp("undisturbed") / "store"
    return store, finish(start(store))[0]


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> tuple[Path, list[xr.Dataset]]:
    """What two processes leave that run at once on one store."""
    store = tmp_path_factory.mktemp("shared") / "store"
    return store, [ds for ds, _ in map(finish, [start(store), start(store)])]


def test_a_killed_sweep_goes_on_where_it_was(tmp_path, undisturbed):
    store = tmp_path / "store"
    process = start(store)
    while len(files(store)) < 4:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = files(store)
    assert 4 <= len(before) < BLOCKS

    ds, told = finish(start(store))
    assert f"{CELLS} cells, {CELLS // BLOCKS * len(before)} stored" in told
    assert ds.identical(undisturbed[1])
    assert before.items() <= files(store).items()
    assert len(cells(store)) == cells(store).total() == CELLS
    assert list((store / "claims").iterdir()) == []


def test_two_processes_at_once_get_the_same_results(shared, undisturbed):
    store, found = shared
    assert all(ds.identical(undisturbed[1]) for ds in found)
    assert len(cells(store)) == CELLS
    assert list((store / "claims").iterdir()) == []


def test_two_processes_at_once_compute_no_cell_twice(shared):
    assert cells(shared[0]).total() == CELLS


def test_a_broken_file_is_named_set_aside_and_computed_again(tmp_path, undisturbed):
    store = shutil.copytree(undisturbed[0], tmp_path / "store")
    bad = store / "toy" / sorted(files(store))[7]
    content = bytearray(bad.read_bytes())
    content[len(content) // 2] ^= 4
    bad.write_bytes(content)
    kept = files(store)
    del kept[bad.name]

    ds, told = finish(start(store))
    assert f"quarantined {bad.name}" in told
    assert f"{CELLS - CELLS // BLOCKS} stored" in told
    assert (store / "quarantine" / bad.name).read_bytes() == content
    assert ds.identical(undisturbed[1])
    assert kept.items() <= files(store).items()
    assert cells(store).total() == CELLS
