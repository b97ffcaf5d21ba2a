"""Processes that are ended with the test that started them, and what they should come to."""

import signal
from pathlib import Path

import pytest
import xarray as xr
from processes import SWEEP, Running, read


@pytest.fixture(scope="session", autouse=True)
def interrupts():
    """A process of a shell's background ignores interrupts, and so would its children."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def start():
    """Starts processes."""
    started: list[Running] = []

    def begin(*args, **options) -> Running:
        started.append(Running(*args, **options))
        return started[-1]

    yield begin
    for process in started:
        process.kill()


@pytest.fixture
def finished(start, tmp_path):
    """Runs the sweep on a store to its end, without trouble; the Dataset and what was told."""

    def run(store: Path, *args, **options) -> tuple[xr.Dataset, str]:
        out = tmp_path / "finished.nc"
        code, told, _ = start("run", *SWEEP, "--store", store, "--out", out, *args, **options).end()
        assert code == 0, told
        return read(out), told

    return run


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory) -> tuple[Path, xr.Dataset]:
    """The store and the Dataset of a sweep that nothing happens to, in threads."""
    folder = tmp_path_factory.mktemp("undisturbed")
    store, out = folder / "store", folder / "out.nc"
    process = Running("run", *SWEEP, "--store", store, "--out", out, seconds=0.01)
    code, told, _ = process.end()
    assert code == 0, told
    return store, read(out)
