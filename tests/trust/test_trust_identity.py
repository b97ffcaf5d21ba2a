"""A store never serves a number that the code at hand would not compute."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import provingground as pg
from provingground import cli

# A study of the user's own, with a helper in each of the places where code may hide from a name:
# `{helper}` is how the training comes to it. What the helper does is said by `mylib`.
STUDY = """
import functools
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from provingground.keys import normal, stream
from provingground.config import config, par, probe
from provingground.study import Experiment, Prediction, Simulator, Study, Trainings

import mylib
from mylib import scaled

FACTOR = np.ones(3, np.float32)
TABLE = {{"scaled": scaled}}
PARTIAL = functools.partial(mylib.powered, factor=2.0)


@config
class Config:
    rate: float = par(1.0, "r", "rate", low=0)


class Probes(eqx.Module):
    last: Float[Array, ""] = probe("its end")


def helper(x):
    return x * 2


def body(x, _):
    return helper(x) / 2 + 1, None


@jax.jit
def jitted(x):
    return helper(x)


def from_file(x):
    with open(mylib.PATH) as file:
        return x * float(file.read())


def simulate(cfg, key):
    x = cfg.rate * jnp.sum(normal(stream(key, "data"), (3,)) ** 2)
    return Probes({how})


STUDY = Study(
    name="own",
    title="t",
    cite="c",
    simulators={{"one": Simulator(Config, simulate, Probes{host})}},
    theory=lambda cfg: Prediction((), {{}}),
    experiments=(
        Experiment("first", "s", Trainings({{"rate": [1.0, 2.0]}}, 3), (), lambda ds: None),
    ),
)
"""
MYLIB = """
from pathlib import Path
from typing import Any
PATH = Path(__file__).with_name("rate.txt")
def scaled(x):
    return x * {factor}
def powered(x, factor):
    return x * factor * {factor}
"""
HOW = {
    "a plain global": "helper(x)",
    "a scan": "jax.lax.scan(body, x, None, length=3)[0]",
    "an inner jit": "jitted(x)",
    "a partial": "PARTIAL(x)",
    "a dict": 'TABLE["scaled"](x)',
    "a mutated global": "x * jnp.sum(jnp.asarray(FACTOR))",
    "another module": "scaled(x)",
    "an attribute of a module": "mylib.scaled(x)",
    "a file": "from_file(x)",
}
# What a notebook does to the study in memory.
PATCH = {
    "a plain global": "own.helper = lambda x: x * 5",
    "a scan": "own.helper = lambda x: x * 5",
    "an inner jit": "own.helper = lambda x: x * 5",
    "a partial": "own.PARTIAL = functools.partial(own.mylib.powered, factor=7.0)",
    "a dict": "own.TABLE['scaled'] = lambda x: x * 5",
    "a mutated global": "own.FACTOR[:] = 4",
    "another module": "own.scaled = lambda x: x * 5",
    "an attribute of a module": "own.mylib.scaled = lambda x: x * 5",
    "a file": "own.mylib.PATH.write_text('5')",
}
# Runs what the arguments say, one after another, in one process, and prints the numbers.
SESSION = """
import functools, json, sys
import provingground as pg
from provingground import cli
own = None
for step in json.loads(sys.argv[1]):
    if isinstance(step, list):
        store, seeds = step
        pg.studies()
        import own
        ds = pg.run("own/first", store=store, seeds=seeds)
        print(json.dumps(ds["last"].values.tolist()))
    else:
        exec(step)
"""


def make(folder: Path, how: str, factor: float = 2.0, host: bool = False) -> Path:
    study = folder / "own"
    study.mkdir(parents=True)
    text = STUDY.format(how=HOW[how], host=", host=True" if host else "")
    (study / "__init__.py").write_text(text)
    (folder / "mylib.py").write_text(MYLIB.format(factor=factor))
    (folder / "rate.txt").write_text(str(factor))
    return study


def session(folder: Path, *steps) -> list[np.ndarray]:
    """The numbers of each run of a process."""
    environment = os.environ | {
        "PROVING_STUDIES": str(folder / "own"),
        "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", SESSION, json.dumps(steps)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return [np.array(json.loads(line)) for line in done.stdout.splitlines()]


# `make test` tries two of them, `make check` the others.
QUICK = ("a scan", "another module")


@pytest.mark.parametrize(
    "how", [how if how in QUICK else pytest.param(how, marks=pytest.mark.slow) for how in HOW]
)
def test_a_patch_in_memory_is_never_taken_for_what_it_replaced(tmp_path, how):
    """In one process: run, patch, run more seeds, and the same into a fresh store."""
    folder = tmp_path / "code"
    make(folder, how)
    store, fresh = str(tmp_path / "store"), str(tmp_path / "fresh")
    before, patched, anew = session(folder, [store, 2], PATCH[how], [store, 4], [fresh, 4])
    assert before.shape == (2, 2)
    np.testing.assert_array_equal(patched, anew)  # whatever was stored before
    assert not np.isclose(patched[:, :2], before).any()  # the patch does something
    # and a later, clean process is served what the clean code computes
    if how == "a file":
        (folder / "rate.txt").write_text("2.0")
    clean, anew = session(folder, [store, 4], [str(tmp_path / "another"), 4])
    np.testing.assert_array_equal(clean, anew)
    np.testing.assert_array_equal(clean[:, :2], before)


@pytest.mark.parametrize(
    "host",
    [
        pytest.param(False, id="traced"),
        pytest.param(True, id="on the host", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "how", ["another module", pytest.param("an attribute of a module", marks=pytest.mark.slow)]
)
def test_an_edit_of_a_module_outside_of_the_study_is_noticed(tmp_path, how, host):
    folder = tmp_path / "code"
    make(folder, how, host=host)
    store = str(tmp_path / "store")
    (before,) = session(folder, [store, 2])
    (folder / "mylib.py").write_text(MYLIB.format(factor=6.0))
    (after,) = session(folder, [store, 2])
    np.testing.assert_allclose(after, 3 * before, rtol=1e-6)
    (folder / "mylib.py").write_text(MYLIB.format(factor=2.0) + "\n\n# a remark\n")
    (again,) = session(folder, [store, 2])
    np.testing.assert_array_equal(again, before)


def test_a_patched_function_of_the_project_does_not_poison_the_store(tmp_path, monkeypatch):
    """The recipe of a notebook: patch what draws the data, ask for more seeds, go back."""
    from provingground.studies.toy import model

    store, fresh = tmp_path / "store", tmp_path / "fresh"
    small: dict[str, Any] = dict(samples=[30], noise=[1.0], steps=20)
    clean = pg.run("toy/risk", store=store, seeds=2, **small)
    draw = model.normal
    monkeypatch.setattr(model, "normal", lambda key, shape: jnp.sign(draw(key, shape)))
    patched = pg.run("toy/risk", store=store, seeds=4, **small)
    anew = pg.run("toy/risk", store=fresh, seeds=4, **small)
    np.testing.assert_array_equal(patched.test_loss, anew.test_loss)
    assert not np.isclose(patched.test_loss.sel(seed=[0, 1]), clean.test_loss).any()
    monkeypatch.undo()
    again = pg.run("toy/risk", store=store, seeds=4, **small)
    np.testing.assert_array_equal(again.test_loss.sel(seed=[0, 1]), clean.test_loss)
    assert not np.isclose(
        again.test_loss.sel(seed=[2, 3]), patched.test_loss.sel(seed=[2, 3])
    ).any()
    told = CliRunner().invoke(cli.app, ["verify", "toy", "--store", str(store)])
    assert told.exit_code == 0, told.output
    assert "8 cells, 4 stale" in told.output  # those of the patch


def test_a_patched_function_of_an_installed_package_is_noticed(tmp_path, monkeypatch):
    small: dict[str, Any] = dict(samples=[30], noise=[1.0], steps=20, seeds=2)
    clean = pg.run("toy/risk", store=tmp_path, **small)
    draw = jax.random.normal
    monkeypatch.setattr(jax.random, "normal", lambda *args: 2 * draw(*args))
    patched = pg.run("toy/risk", store=tmp_path, **small)
    assert not np.isclose(patched.test_loss, clean.test_loss).any()
