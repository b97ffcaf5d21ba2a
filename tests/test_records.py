"""Files of a store that are what they should be, but for what their numbers and records say."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import provingground as pg
from provingground import api, netcdf, planning
from provingground.atlas.render import Entry, report
from provingground.errors import RunError
from provingground.store import Store
from provingground.studies.toy import STUDY as TOY
from provingground.upkeep import State, verify

SMALL: dict[str, Any] = dict(samples=[30], noise=[0.5, 1.0], steps=40, seeds=4)


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """The folder of a store with one file of the toy study, never changed."""
    store = Store(tmp_path_factory.mktemp("sound") / "store")
    pg.run(TOY, "risk", store=store, lanes=8, **SMALL)
    return store.path


def spoiled(folder: Path, sound: Path, change: Callable[[Any, Any], Any]) -> Store:
    """A store with that file, its probes and its record changed under a fitting name."""
    shutil.copytree(sound, folder)
    (path,) = (folder / "toy").glob("*.nc")
    chunk = Store(folder).read("toy", path.name)
    assert chunk is not None
    path.unlink()
    dims = {"train_loss": ("step",), "step": ("step",)}
    probes = {n: (dims.get(n, ()), a) for n, a in chunk.probes.items()}
    change(probes, chunk.about)
    variables = {n: (("cell", *dims), array) for n, (dims, array) in probes.items()}
    variables["cell_id"] = ("cell", "letter"), chunk.cells.view("S1").reshape(len(chunk.cells), -1)
    record = json.dumps(chunk.about).encode()  # which may be no JSON, but Python's
    Store(folder).put_packed("toy", netcdf.write(variables, "about", record))
    return Store(folder)


def lacks(*names: str) -> Callable[[Any, Any], Any]:
    return lambda probes, about: [about.pop(name) for name in names]


def says(**entries: Any) -> Callable[[Any, Any], Any]:
    return lambda probes, about: about.update(entries)


def program(**entries: Any) -> Callable[[Any, Any], Any]:
    return lambda probes, about: about["program"].update(entries)


RECORDS = {
    "nothing": lambda probes, about: about.clear(),
    "before time": says(seconds=-1.0),
    "no number": says(seconds=float("nan")),
    "very long": says(seconds=10**400),
    "no program": lacks("program"),
    "no fingerprint": lacks("fingerprint"),
    "no seconds": lacks("seconds"),
    "no lanes": lacks("lanes", "device", "devices", "jax"),
    "seconds in words": says(seconds="long"),
    "seconds of a list": says(seconds=[1.0]),
    "seconds of none": says(seconds=None),
    "endless": says(seconds=float("inf")),
    "fingerprint of a list": says(fingerprint=["f"]),
    "fingerprint of none": says(fingerprint=None),
    "lanes of a number": says(lanes=3),
    "device of a dict": says(device={"a": [1]}),
    "program in words": says(program="descent"),
    "program of none": says(program=None),
    "program of a list": says(program=[]),
    "program of nothing": says(program={}),
    "simulator of a list": program(simulator=["descent"]),
    "unknown simulator": program(simulator="ascent"),
    "shape of a number": program(shape=3),
    "shape of numbers": program(shape=[1, 2]),
    "shape of lists": program(shape=[["dim", [10]]]),
    "shape of wrong values": program(shape=[["dim", "ten"], ["steps", -1]]),
    "shape of too many": program(shape=[["dim", 10, 3]]),
    "sizes of none": program(sizes=None),
    "unknown precision": program(precision="float16"),
    "unknown data": program(data="nowhere"),
}


def stored(store, settings):
    """What a store has of the toy study, be it nothing."""
    seeds = settings.get("seeds")
    settings = {name: value for name, value in settings.items() if name != "seeds"}
    job = planning.job(TOY, "risk", store=store, trace=False, seeds=seeds, settings=settings)
    return api.stored(job)


@pytest.mark.parametrize("change", RECORDS.values(), ids=RECORDS)
def test_a_strange_record_never_stops_load_or_verify(tmp_path, sound, change):
    for adopt in (False, True):
        store = spoiled(tmp_path / str(adopt), sound, change)
        ds = stored(store, SMALL)
        assert ds.attrs["missing"] in (0, 8)
        assert isinstance(ds.attrs["seconds"], float)
        state = verify(TOY, Store(store.path), adopt)
        assert isinstance(state, State)
        assert state.cells in (0, 8)


def no_loss(probes: Any, about: Any) -> None:
    del probes["test_loss"]


def other_steps(probes: Any, about: Any) -> None:
    for name in ("train_loss", "step"):
        probes[name] = ("step",), probes[name][1][:, :5]


def flat(probes: Any, about: Any) -> None:
    probes["train_loss"] = (), probes["train_loss"][1][:, 0]


def letters(probes: Any, about: Any) -> None:
    probes["test_loss"] = (), np.full(8, b"x", "S1")


def no_config(probes: Any, about: Any) -> None:
    del probes["config_noise"], probes["config_seed"]


def strange_config(probes: Any, about: Any) -> None:
    probes["config_noise"] = (), np.full(8, np.nan)
    probes["config_samples"] = (), np.full(8, np.inf)


def strange_seeds(probes: Any, about: Any) -> None:
    probes["config_seed"] = (), np.full(8, -5, np.int32)


@pytest.mark.parametrize(
    "change",
    [letters, no_config, strange_seeds, strange_config, no_loss, flat],
)
@pytest.mark.parametrize("alone", [True, False])
def test_strange_probes_never_stop_load_or_verify(tmp_path, sound, change, alone):
    for adopt in (False, True):
        store = spoiled(tmp_path / str(adopt), sound, change)
        more: dict[str, Any] = SMALL if alone else SMALL | {"noise": [0.5, 1.0, 2.0]}
        if not alone:
            pg.run(TOY, "risk", store=Store(store.path), **more)
        ds = stored(store, more)
        assert ds.attrs["missing"] in (0, 8, 12)
        assert isinstance(verify(TOY, Store(store.path), adopt), State)


def test_files_that_disagree_about_a_shape_are_named(tmp_path, sound):
    store = spoiled(tmp_path / "store", sound, other_steps)
    assert pg.load(TOY, "risk", store=store, **SMALL).attrs["missing"] == 0
    more: dict[str, Any] = SMALL | {"noise": [0.5, 1.0, 2.0]}
    with pytest.raises(RunError, match=r"another shape in .*\.nc than in .*\.nc; move"):
        pg.run(TOY, "risk", store=Store(store.path), **more)


MARKUP = "<script>alert('x')</script><img src=x onerror=y> & \x00\x07\x1b[31m\u202e\u2028"


def test_markup_and_control_characters_are_text(tmp_path, sound):
    entries = dict.fromkeys(("device", "version", "jax", "backend", "lanes"), MARKUP)
    store = spoiled(tmp_path / "store", sound, says(**entries))
    ds = pg.load(TOY, "risk", store=store, **SMALL)
    assert ds.attrs["missing"] == 0
    assert [ds.attrs[name] for name in entries] == [MARKUP] * 5
    experiment = TOY.experiment("risk")
    page = report([Entry(TOY, experiment, ds, [])], scale="quick", seconds=1)
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&lt;img src=x onerror=y&gt;" in page
