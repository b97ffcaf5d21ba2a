import threading
import time

import pytest

import tiny as small
from provingground import ahead, api, planning, programs
from provingground.ahead import Ahead
from provingground.errors import RunError
from provingground.programs import Programs
from tiny import run, tiny


@pytest.fixture
def asked(monkeypatch):
    """Programs in the order in which they were traced, and compiled, with the thread's name."""
    found: dict[str, list[tuple[int, str]]] = {"_lower": [], "_compile": []}

    def watched(name, of):
        def asked(self, program, what, wide, deep):
            thread = threading.current_thread().name.rpartition("_")[0]
            found[name].append((dict(program.shape)["width"], thread))
            return of(self, program, what, wide, deep)

        return asked

    for name in found:
        monkeypatch.setattr(Programs, name, watched(name, getattr(Programs, name)))
    monkeypatch.setattr(programs, "_COMPILED", {})  # of other tests, of equal code
    return found


def jobs(store, *widths, study=None):
    owner = study or tiny()
    how = [dict(width=width, count=[5], rate=[0.5]) for width in widths]
    return [planning.job(owner, "first", store=store, seeds=2, settings=some) for some in how]


def test_programs_are_traced_by_one_thread_in_the_order_of_need(store, asked):
    found = list(api.finish_all(jobs(store, 4, 2, 7, 3), progress=False))
    assert [ds.attrs["missing"] for ds in found] == [0] * 4
    assert asked["_lower"] == [(width, "trace") for width in (4, 2, 7, 3)]
    assert sorted(asked["_compile"]) == [(width, "compile") for width in (2, 3, 4, 7)]


def test_sweeps_that_share_a_program_compile_it_once(store, asked):
    list(api.finish_all(jobs(store, 4, 2, 4, 2), progress=False))
    assert len(asked["_lower"]) == len(asked["_compile"]) == 2


def test_the_next_sweep_is_compiled_while_one_runs(store, asked, monkeypatch):
    """The first does not end before the second has been compiled."""
    chunk, late = small.Job.chunk, []

    def waiting(self, blocks, cells):
        end = time.monotonic() + 60
        while len(asked["_compile"]) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        late.append(time.monotonic() >= end)
        return chunk(self, blocks, cells)

    monkeypatch.setattr(small.Job, "chunk", waiting)
    list(api.finish_all(jobs(store, 4, 2), progress=False))
    assert not any(late)


def test_what_is_ready_runs_before_what_is_still_compiled(store, monkeypatch):
    """The larger program comes first, and waits here until the smaller one has run."""
    compile_, chunk, order = Programs._compile, small.Job.chunk, []
    done = threading.Event()

    def slow(self, program, lowered, wide, deep):
        if dict(program.shape)["width"] == 7:
            order.append(("waits", done.wait(60)))
        return compile_(self, program, lowered, wide, deep)

    def told(self, blocks, cells):
        finished = chunk(self, blocks, cells)
        order.append(("ran", dict(self.program(blocks[0]).shape)["width"]))
        done.set()
        return finished

    monkeypatch.setattr(programs, "_COMPILED", {})
    monkeypatch.setattr(ahead, "cores", lambda: 2)
    monkeypatch.setattr(Programs, "_compile", slow)
    monkeypatch.setattr(small.Job, "chunk", told)
    ds = run(tiny(), store, width=[7, 2], count=[5], rate=[0.5], seeds=1)
    assert ds.attrs["missing"] == 0
    assert order == [("ran", 2), ("waits", True), ("ran", 7)]


def test_nothing_is_traced_where_all_is_stored(store, asked):
    list(api.finish_all(jobs(store, 4, 2), progress=False))
    before = dict(asked)
    list(api.finish_all(jobs(store, 4, 2), progress=False))
    assert asked == before


def test_a_program_that_cannot_be_traced_fails_in_its_own_sweep(store, monkeypatch):
    lower = Programs._lower

    def picky(self, program, configs, wide, deep):
        if dict(program.shape)["width"] == 2:
            raise ValueError("no such program")
        return lower(self, program, configs, wide, deep)

    monkeypatch.setattr(programs, "_COMPILED", {})
    monkeypatch.setattr(Programs, "_lower", picky)
    found = api.finish_all(jobs(store, 4, 2), progress=False)
    assert next(found).attrs["missing"] == 0
    with pytest.raises(RunError, match="no such program"):
        next(found)


def test_it_ends_without_finishing_what_nobody_waits_for(store, asked):
    with Ahead(jobs(store, *range(2, 40))):
        pass
    assert len(asked["_lower"]) < 38


def test_a_plan_that_fails_is_told_by_the_run(store, monkeypatch):
    monkeypatch.setattr(small.Job, "missing", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(api.finish_all(jobs(store, 4), progress=False))
