"""Processes that are killed, that meet on one store, that find broken files or a wrong clock."""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from jaxtyping import Array, Float
from processes import CELLS, SWEEP, cells, files, locks, nothing_left, temporary

from provingground import api, programs
from provingground.config import config, par, probe
from provingground.keys import normal, stream
from provingground.study import Experiment, Prediction, Simulator, Study, Trainings

# ---------------------------------------------------------------------------- the killed


def test_a_killed_sweep_goes_on_where_it_was(tmp_path, start, finished, undisturbed):
    store = tmp_path / "store"
    process = start("run", *SWEEP, "--store", store, seconds=0.4)
    process.until(lambda: len(files(store)) >= 4)
    process.send(signal.SIGKILL)
    assert process.end().code == -signal.SIGKILL
    before, stored = files(store), len(cells(store))
    assert 4 <= stored < CELLS
    assert locks(store)

    ds, told = finished(store)
    assert f"{CELLS} cells, {stored} stored; {CELLS - stored} cells to run" in told
    assert ds.identical(undisturbed[1])
    assert before.items() <= files(store).items()
    assert len(cells(store)) == cells(store).total() == CELLS
    assert nothing_left(store)


def test_a_sweep_killed_between_writing_and_renaming_goes_on(
    tmp_path, start, finished, undisturbed
):
    store = tmp_path / "store"
    sabotage = "killed_before_renaming:3"
    process = start("run", *SWEEP, "--store", store, sabotage=sabotage, seconds=0.05)
    assert process.end().code == -signal.SIGKILL
    stored = cells(store).total()
    assert 0 < stored < CELLS
    assert len(files(store)) == 2
    assert temporary(store)
    assert locks(store)

    ds, told = finished(store)
    assert f"{stored} stored" in told
    assert ds.identical(undisturbed[1])
    assert cells(store).total() == CELLS
    assert nothing_left(store)


# ----------------------------------------------------------------------------- the others


@pytest.mark.slow
def test_two_processes_at_once_share_the_work(tmp_path, start, finished, undisturbed):
    store, meeting = tmp_path / "store", tmp_path / "meeting"
    meeting.mkdir()
    both = [
        start("run", *SWEEP, "--store", store, sabotage=f"counting:{meeting}", seconds=0.2)
        for _ in range(2)
    ]
    computed = []
    for code, told, _ in [process.end() for process in both]:
        assert code == 0, told
        computed.append(sum(map(int, re.findall(r"computed (\d+) cells", told))))
    assert min(computed) > 0
    assert sum(computed) == CELLS
    assert len(cells(store)) == cells(store).total() == CELLS
    assert nothing_left(store)
    ds, told = finished(store)
    assert f"{CELLS} stored; nothing to run" in told
    assert ds.identical(undisturbed[1])


def test_a_broken_file_is_named_set_aside_and_computed_again(tmp_path, finished, undisturbed):
    store = shutil.copytree(undisturbed[0], tmp_path / "store")
    kept = files(store)
    bad = store / "crashing" / sorted(kept)[1]
    del kept[bad.name]
    content = bytearray(bad.read_bytes())
    content[len(content) // 2] ^= 4
    bad.write_bytes(content)

    ds, told = finished(store)
    assert f"quarantined crashing/{bad.name}" in told
    assert 0 < int(re.findall(r"(\d+) cells? to run", told)[0]) < CELLS
    (aside,) = (store / "quarantine").iterdir()
    assert aside.read_bytes() == content
    assert ds.identical(undisturbed[1])
    assert kept.items() <= files(store).items()
    assert cells(store).total() == CELLS


@pytest.mark.slow
@pytest.mark.parametrize("how", ["clock_set_back:3", "locks_from_the_future"])
def test_clocks_do_not_matter(tmp_path, finished, undisturbed, how):
    store = tmp_path / "store"
    how = how if ":" in how else f"{how}:{store}"
    ds, _ = finished(store, sabotage=how, seconds=0.05)
    assert ds.identical(undisturbed[1])
    assert len(cells(store)) == cells(store).total() == CELLS
    assert nothing_left(store)


# ----------------------------------------------------------------------- cells that raise


def test_of_cells_that_raise_all_others_are_stored(tmp_path, start):
    store = tmp_path / "store"
    sweep = ["crashing/first", "--set", "rate=14:49:36", "--seeds", "1", "--lanes", "6"]
    code, told, _ = start("run", *sweep, "--store", store).end()
    assert code == 3
    assert "6 of 36 cells failed, all others are stored" in told
    assert "fourteen is too many" in told
    assert cells(store).total() == 30
    assert nothing_left(store)

    code, told, _ = start("run", *sweep, "--store", store, tame=True).end()
    assert "36 cells, 30 stored; 6 cells to run" in told
    assert code == 0
    assert len(cells(store)) == cells(store).total() == 36


# --------------------------------------------------------------------------------- memory


@config
class Config:
    rate: float = par(1.0, "r", "rate", low=0)


class Probes(eqx.Module):
    middle: Float[Array, ""] = probe("the one in the middle")


def sort_many(cfg, key):
    """Needs memory for each lane."""
    x = normal(stream(key, "data"), ())
    waves = jnp.sin(cfg.rate * (x + jnp.arange(20_001, dtype=jnp.float32)))
    return Probes(jnp.sort(waves)[5_000] + cfg.rate)


def test_lanes_that_do_not_fit_into_memory_are_halved(tmp_path, monkeypatch):
    first = Experiment(
        "first",
        "s",
        Trainings({"rate": np.linspace(1, 2, 8)}, 3),
        (),
        lambda ds: None,
    )
    simulators = {"one": Simulator(Config, sort_many, Probes)}
    study = Study("many", "t", "c", simulators, lambda cfg: Prediction((), {}), (first,))
    compile_, needed = programs.Programs._compile, {}

    def measured(self, program, lowered, wide, deep):
        compiled = compile_(self, program, lowered, wide, deep)
        needed[wide, deep] = compiled.memory_analysis().temp_size_in_bytes
        return compiled

    monkeypatch.setattr(programs.Programs, "_compile", measured)
    whole = api.run(study, "first", store=tmp_path / "whole", lanes=8)
    assert list(needed) == [(8, 1)]
    assert whole.attrs["lanes"] == "8"

    monkeypatch.setattr(programs, "_COMPILED", {})
    most = needed[8, 1] * 0.4  # what two lanes need, and not four
    monkeypatch.setattr(programs, "free_memory", lambda: most / programs.MEMORY_SHARE)
    ds = api.run(study, "first", store=tmp_path / "halved", lanes=8)
    assert needed[2, 1] < most
    assert ds.attrs["lanes"] == "2"
    assert ds.attrs["missing"] == 0
    xr.testing.assert_allclose(ds, whole, rtol=1e-6)


def test_trainings_that_call_lapack_do_not_wait_for_each_other(tmp_path):
    """Each alone fills a thread of XLA's pool while it waits for another: two waited for ever."""
    program = [sys.executable, str(Path(__file__).with_name("lapack.py")), str(tmp_path / "store")]
    assert subprocess.check_output(program, text=True, timeout=120).split() == ["32"]
