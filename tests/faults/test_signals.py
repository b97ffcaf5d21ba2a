"""Runs that are asked to end."""

import time
from signal import SIGINT, SIGTERM

import pytest
from processes import CELLS, SWEEP, cells, nothing_left

GO_ON = "interrupted; finished cells are stored, run again to go on"
threads = pytest.param((), id="threads")
workers = pytest.param(("--workers", 2), id="workers", marks=pytest.mark.slow)
SHORT = 0.6  # seconds: more than half a second, so that every file has one cell


@pytest.fixture
def in_work(tmp_path, start):
    """A run that has stored some short cells, and works on cells that take long."""

    def begin(store, *args, long: float):
        mark = tmp_path / "mark"
        process = start("run", *SWEEP, "--store", store, *args, seconds=SHORT, long=long, mark=mark)
        process.until(mark.exists)
        process.until(lambda: cells(store))
        return process

    return begin


@pytest.fixture
def resumes(finished, undisturbed):
    """Whether a run goes on with what is stored, to the very same Dataset."""

    def check(store) -> None:
        stored = cells(store).total()
        ds, told = finished(store)
        assert f"{CELLS} cells, {stored} stored; {CELLS - stored} cells to run" in told
        assert ds.identical(undisturbed[1])
        assert cells(store).total() == CELLS
        assert nothing_left(store)

    return check


# of a cluster the whole group is told, as a batch system would; a lone process is the rest
@pytest.mark.parametrize("how", [threads, workers])
def test_a_termination_takes_seconds(tmp_path, in_work, resumes, how):
    store, everyone = tmp_path / "store", bool(how)
    process = in_work(store, *how, long=20)
    process.send(SIGTERM, everyone)
    code, told, seconds = process.end()
    assert (code, GO_ON in told) == (143, True), told
    assert seconds < (8 if how else 5)  # a cluster takes a second to close, of a free machine
    assert nothing_left(store)
    assert process.left() == []
    resumes(store)


@pytest.mark.parametrize("how", [threads, workers])
def test_an_interrupt_stores_what_is_in_work(tmp_path, in_work, resumes, how):
    store = tmp_path / "store"
    process = in_work(store, *how, long=4)
    process.send(SIGINT, everyone=True)
    before = cells(store).total()
    code, told, seconds = process.end()
    assert (code, GO_ON in told) == (130, True), told
    assert before < cells(store).total() < CELLS
    assert seconds < 20
    assert nothing_left(store)
    assert process.left() == []
    resumes(store)


@pytest.mark.parametrize("how", [threads, workers])
def test_a_second_interrupt_ends_it_at_once(tmp_path, in_work, how):
    store = tmp_path / "store"
    process = in_work(store, *how, long=20)
    process.send(SIGINT, everyone=True)
    time.sleep(0.7)  # it waits for what is in work, and shows no other sign of it
    process.send(SIGINT, everyone=True)
    code, told, seconds = process.end()
    assert (code, GO_ON in told) == (130, True), told
    assert seconds < (4 if how else 2)
    assert 0 < cells(store).total() < CELLS
    assert nothing_left(store)
    assert process.left() == []
