import dataclasses
import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import xarray as xr

import provingground as pg
from provingground import api, planning
from provingground.config import config, par
from provingground.errors import InputError
from provingground.fork import scaffold
from provingground.store import Store
from provingground.studies.toy import STUDY as TOY
from provingground.upkeep import State, verify

SMALL: dict[str, Any] = dict(samples=[30], noise=[0.5, 1.0], steps=40)


def with_simulate(how, **changes):
    simulator = dataclasses.replace(TOY.simulators["descent"], simulate=how, **changes)
    return dataclasses.replace(TOY, simulators={"descent": simulator})


def same(cfg, key):
    found = TOY.simulators["descent"].simulate(cfg, key)
    return dataclasses.replace(found, test_loss=1.0 * found.test_loss)


def other(cfg, key):
    found = TOY.simulators["descent"].simulate(cfg, key)
    return dataclasses.replace(found, test_loss=1.01 * found.test_loss)


UPGRADED, BROKEN = with_simulate(same), with_simulate(other)


def run(study, store, seeds: int | list[int] = 4):
    return pg.run(study, "risk", store=store, seeds=seeds, lanes=4, **SMALL)


def missing(study, store, seeds: int | list[int] = 4):
    asked: Any = dict(store=Store(store.path), seeds=seeds, trace=False, settings=SMALL)
    return api.stored(planning.job(study, "risk", **asked)).attrs["missing"]


# ------------------------------------------------------------------------------- verify


def test_verify_counts_files_and_cells(store):
    run(TOY, store)
    assert verify(TOY, store) == State(chunks=2, cells=8, stale=0, adopted=0, refused=0)
    assert verify(TOY, Store(store.path / "empty")) == State(0, 0, 0, 0, 0)


def test_verify_sets_broken_files_aside(store):
    run(TOY, store)
    bad = sorted((store.path / "toy").glob("*.nc"))[0]
    content = bytearray(bad.read_bytes())
    content[-1] ^= 1
    bad.write_bytes(content)
    fresh = Store(store.path)
    assert verify(TOY, fresh) == State(1, 4, 0, 0, 0)
    assert f"quarantined toy/{bad.name}" in fresh.said[0]


@pytest.mark.parametrize("name", ["config_seed", "config_noise", "config_samples", "negative"])
def test_cells_that_are_not_those_of_their_settings_are_named(store, name):
    run(TOY, store)
    chunk = next(store.chunks("toy"))
    dims = {"train_loss": ("step",), "step": ("step",)}
    probes = {n: (dims.get(n, ()), a) for n, a in chunk.probes.items()}
    if name == "negative":
        probes["config_seed"] = (), -1 - chunk.probes["config_seed"]
    else:
        probes[name] = (), chunk.probes[name] + 1
    chunk.path.unlink()
    path = store.put("toy", chunk.cells, probes, chunk.about)
    state = verify(TOY, Store(store.path))
    assert state.problems == (f"{path}: its cells are not those of its settings",)


def test_results_of_another_program_are_stale(store):
    run(TOY, store)
    assert verify(UPGRADED, store) == State(2, 8, stale=8, adopted=0, refused=0)
    assert missing(UPGRADED, store) == 8


def test_results_that_still_agree_are_adopted(store):
    ds = run(TOY, store)
    assert verify(UPGRADED, store, adopt=True) == State(2, 8, stale=8, adopted=8, refused=0)
    adopted = pg.load(UPGRADED, "risk", store=Store(store.path), seeds=4, **SMALL)
    assert adopted.attrs["missing"] == 0
    xr.testing.assert_equal(adopted.test_loss, ds.test_loss)
    assert verify(UPGRADED, Store(store.path)) == State(2, 8, 0, 0, 0)


def test_results_that_differ_are_refused(store):
    run(TOY, store)
    assert verify(BROKEN, store, adopt=True) == State(2, 8, stale=8, adopted=0, refused=8)
    assert missing(BROKEN, store) == 8
    assert missing(TOY, store) == 0


def test_results_of_a_study_with_other_parameters_are_refused(store):
    @config
    class Config:
        dim: int = par(10, "d", "dimension", low=1)
        samples: int = par(40, "N", "training samples", low=1, value=True, pad=16)
        noise: float = par(1.0, r"\sigma", "label noise s.d.", low=0)
        lr: float = par(0.4, r"\eta", "step size", low=0)
        steps: int = par(300, "T", "gradient descent steps", low=1)
        momentum: float = par(0.0, r"\beta", "momentum", low=0)

    run(TOY, store)
    changed = with_simulate(TOY.simulators["descent"].simulate, config=Config)
    assert verify(changed, store, adopt=True) == State(2, 8, stale=8, adopted=0, refused=8)
    gone = dataclasses.replace(TOY, simulators={"other": TOY.simulators["descent"]})
    assert verify(gone, store, adopt=True) == State(2, 8, stale=8, adopted=0, refused=8)


@pytest.mark.parametrize("newest_first", [True, False])
def test_adopting_old_results_keeps_new_ones(store, monkeypatch, newest_first):
    old = run(TOY, store).attrs["fingerprint"]
    run(UPGRADED, store, seeds=[4, 5])
    chunks = Store.chunks

    def ordered(self, study):
        found = list(chunks(self, study))
        return iter(sorted(found, key=lambda c: (c.about["fingerprint"] == old) == newest_first))

    monkeypatch.setattr(Store, "chunks", ordered)
    verify(UPGRADED, Store(store.path), adopt=True)
    assert missing(UPGRADED, store, [4, 5]) == 0


def changed(store, change, rows=slice(None), **about):
    """Another file of the first file's cells, some of its probes changed."""
    chunk = next(store.chunks("toy"))
    dims = {"train_loss": ("step",), "step": ("step",)}
    probes = {n: (dims.get(n, ()), a[rows]) for n, a in chunk.probes.items()}
    change(probes)
    store.put("toy", chunk.cells[rows], probes, chunk.about | about)
    return chunk.path


def doubled(probes):
    dims, values = probes["test_loss"]
    probes["test_loss"] = dims, 2 * values


def test_verify_finds_two_values_for_one_cell(store):
    run(TOY, store)
    changed(store, doubled)
    state = verify(TOY, Store(store.path))
    (problem,) = state.problems
    assert problem.count(".nc") == 2
    assert "differ in 4 equal cells, made in the same way" in problem
    assert state.remarks == ()


def test_verify_tells_how_values_of_different_devices_differ(store):
    run(TOY, store)
    changed(store, doubled, device="another")
    state = verify(TOY, Store(store.path))
    (remark,) = state.remarks
    assert re.search(r"made on different devices.*the first counts; test_loss by at most", remark)
    assert "train_loss" not in remark
    assert state.problems == ()


def shorter(probes):
    for name in ("train_loss", "step"):
        dims, values = probes[name]
        probes[name] = dims, values[:, :5]


def test_verify_finds_probes_of_another_shape(store):
    run(TOY, store)
    first = changed(store, shorter)
    first.unlink()
    problems = verify(TOY, Store(store.path)).problems
    assert {word for p in problems for word in ("step", "train_loss") if f" {word} has" in p} == {
        "step",
        "train_loss",
    }
    assert all(p.count(".nc") == 2 for p in problems)


def test_verify_sets_files_aside_that_lack_a_probe_of_today_s_program(store):
    run(TOY, store)
    first = changed(store, lambda probes: probes.pop("test_loss"))
    first.unlink()
    fresh = Store(store.path)
    assert verify(TOY, fresh).chunks == 1
    assert "it lacks the probe test_loss" in fresh.said[0]


def test_verify_names_files_that_do_not_say_what_computed_them(store):
    run(TOY, store)
    chunk = next(store.chunks("toy"))
    chunk.path.unlink()
    path = store.put("toy", ["0" * 32], {"x": ((), np.zeros(1))}, {"fingerprint": "f"})
    (problem,) = verify(TOY, Store(store.path)).problems
    assert problem == f"{path}: it does not say what computed it"
    assert path.exists()


# ----------------------------------------------------------------------------------- new

COMMANDS = """
import sys
from provingground.cli import main
path = sys.argv[1]
for command in ("check my_study", "list", "report"):
    sys.argv = ["proving", "--study-path", path, *command.split()]
    try:
        main()
    except SystemExit as end:
        print(command, end.code)
"""


@pytest.mark.slow
def test_a_new_study_works_at_once(tmp_path):
    path = scaffold("my_study", tmp_path)
    command = [sys.executable, "-c", COMMANDS, str(path)]
    own = os.environ | {"PROVING_STORE": str(tmp_path / "store")}  # no other study's figures
    done = subprocess.run(
        command, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=300
    )
    for line in ("check my_study 0", "list 0", "report 0"):
        assert line in done.stdout.splitlines(), done.stderr
    assert "my_study/risk:" in done.stdout
    assert re.search(r"^my_study\s+Least squares", done.stdout, re.MULTILINE)
    assert "my_study" in (tmp_path / "report.html").read_text()


def test_a_new_study_is_a_package_with_an_entry_point(tmp_path):
    path = scaffold("my_study", tmp_path)
    assert path == tmp_path / "my_study" / "my_study"
    assert {p.name for p in path.iterdir()} >= {
        "README.md", "__init__.py", "figures", "model.py", "theory.py"
    }  # fmt: skip
    assert {p.name for p in (path / "figures").iterdir()} >= {"__init__.py", "risk.py"}
    assert 'my_study = "my_study:STUDY"' in (path.parent / "pyproject.toml").read_text()
    assert not [p for p in path.rglob("*.*") if "toy" in p.read_text()]
    about = (path.parent / "pyproject.toml").read_text()
    assert 'packages = ["my_study", "my_study.figures"]' in about


@pytest.mark.parametrize(
    "name", ["", "Upper", "9lives", "with-dash", "with space", "../up", "toy", "benign_overfitting"]
)
def test_bad_names_are_refused_and_nothing_is_written(tmp_path, name):
    with pytest.raises(InputError):
        scaffold(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_exists_is_left_alone(tmp_path):
    (tmp_path / "my_study").mkdir()
    with pytest.raises(InputError, match="exists already"):
        scaffold("my_study", tmp_path)
    assert list((tmp_path / "my_study").iterdir()) == []


@pytest.mark.parametrize("name", ["class", "json"])
def test_names_that_python_has_taken_are_refused(tmp_path, name):
    """`import class` is no sentence, and `import json` finds another module."""
    with pytest.raises(InputError):
        scaffold(name, tmp_path)
