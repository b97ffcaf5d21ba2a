"""The worker's orders and answers, without a process of its own."""

import json
import math

import pytest
import xarray as xr

from provingground import grid, registry
from provingground.atlas import asking, worker
from provingground.atlas.asking import Asked, asked, estimate, strict
from provingground.atlas.payload import parameters
from provingground.atlas.shelf import Entry
from provingground.atlas.worker import Worker
from provingground.errors import InputError
from provingground.parsing import parse_settings
from provingground.store import Store
from provingground.study import cases


def worked(store, *settings, target="toy/risk", seeds="1", **more):
    """All that a worker says to an order."""
    told = []
    order = {"target": target, "scale": "quick", "settings": settings, "seeds": seeds, **more}
    Worker(str(store.path)).work(
        order, lambda event, **rest: told.append(json.loads(strictly({"event": event, **rest})))
    )
    return told


def strictly(message):
    return json.dumps(message, allow_nan=False)


def test_an_order_is_watched_stored_and_compared(store):
    told = worked(store, "samples=30", "noise=0.5", seeds="2")
    events = [each["event"] for each in told]
    assert events.index("frame") < events.index("progress") < events.index("cells")
    assert events[-1] == "done"
    (same,) = [each["deviation"] for each in told if each["event"] == "same"]
    assert same <= 1e-5
    again = worked(store, "samples=30", "noise=0.5", seeds="2", watch=False)
    assert [each["event"] for each in again] == ["phase", "begin", "cells", "compiled", "done"]


@pytest.mark.parametrize(("settings", "declared"), [
    (("samples=30", "noise=0.5"), [True]),
    (("samples=30", "noise=0.5,0.6"), [True, False]),
    (("samples=30", "noise=0.5", "dim=11"), [False]),  # has a place on the grid, and is another
    (("samples=30",), [True, True, True]),
])  # fmt: skip
def test_a_cell_says_whether_it_is_one_of_the_experiment(settings, declared, store):
    told = worked(store, *settings, watch=False)
    cells = [cell for each in told if each["event"] == "cells" for cell in each["cells"]]
    assert [cell["declared"] for cell in cells] == declared


def test_every_cell_of_every_experiment_is_one_of_it():
    for name in registry.names():
        owner = registry.study(name)
        for which in (e for e in owner.experiments if not e.trainings.paper_only):
            assert worker._declared(grid.plan(owner, which, "quick", seeds=1)).all(), which.name


def test_what_cannot_be_done_is_told(store):
    (*_, last) = worked(store, "samples=-1")
    assert last["event"] == "failed"
    assert "not allowed" in last["says"]
    assert worked(store, target="nothing/here")[-1]["event"] == "failed"


def test_numbers_are_those_that_json_knows():
    assert worker._numbers([[1.0, float("nan")], [float("inf"), 1 / 3]]) == [
        [1.0, None],
        [None, 0.33333],
    ]
    assert worker._numbers(True) == 1
    assert worker._finite(float("inf")) is None


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", "", b"\xff"])
def test_only_json_is_json(text):
    with pytest.raises(ValueError):  # noqa: PT011
        strict(text)


def test_a_request_is_read_strictly():
    assert asked({"experiment": "toy/risk", "seeds": 3}) == Asked("toy/risk", "quick", (), "3")
    with pytest.raises(InputError, match="nothing that a request has"):
        asked({"experiment": "toy/risk", "__proto__": {}})


def test_more_cells_than_a_page_may_ask_for_are_refused(store, monkeypatch):
    monkeypatch.setattr(asking, "MOST_CELLS", 10)
    with pytest.raises(InputError, match="a page may ask for"):
        Asked("toy/risk").planned(store)


def test_an_estimate_says_what_is_known(store):
    new = Asked("toy/risk", settings=("samples=30", "noise=0.5"), seeds="2")
    before = estimate(new.planned(store, trace=False), (), {})
    assert (before.left, before.new, before.seconds) == (2, 1, None)
    assert "a new shape" in before.says
    assert "not timed" in before.says
    worked(store, *new.settings, seeds="2", watch=False)
    kept = Store(store.path)
    done = estimate(new.planned(kept), (), {})
    assert done.left == 0
    assert "stored" in done.says
    more = new._replace(seeds="8").planned(kept)
    names = [asking.digest(more, group.program) for group in more.groups]
    warm = estimate(more, names, {names[0]: (3.0, 0.5)})
    assert (warm.left, warm.new, warm.compiling) == (6, 0, 0)
    assert warm.seconds is not None
    assert warm.seconds >= 0.5
    assert "compiling" not in warm.says
    cold = estimate(more, (), {names[0]: (3.0, 0.5)})
    assert cold.compiling is not None
    assert cold.compiling >= 3
    assert "compiling (a new shape, about" in cold.says


def test_a_label_may_have_a_comma():
    settings = {"place": cases({"r = 2, s": {}, "r = 4": {}, "5": {}})}
    assert parse_settings(["place=r = 2, s"], settings, {}) == {"place": ["r = 2, s"]}
    assert parse_settings(["place=r = 4,5"], settings, {}) == {"place": ["r = 4", "5"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_the_form_of_every_experiment_asks_for_one_cell(name, store):
    """What a page offers at first is what the command line takes, and each parameter by itself."""
    owner = registry.study(name)
    for which in (e for e in owner.experiments if not e.trainings.paper_only):
        ds = xr.Dataset(attrs={"scale": "quick"})
        found = [p for p in parameters(Entry(owner, which, ds, ())) if not p["derived"]]
        texts = [(p, f"{p['name']}={p['value']}") for p in found if p["value"] is not None]
        front = tuple(text for p, text in texts if p["axis"])
        axes = grid.plan(owner, which, "quick", yes=True).axes
        designed = math.prod(len(a.labels) for a in axes if isinstance(a.labels, range))
        for more in [(), *((text,) for p, text in texts if not p["axis"])]:
            target = f"{name}/{which.name}"
            asked = Asked(target, settings=(*front, *more), seeds="1")
            assert asked.planned(store, trace=False).sweep.cells == designed, (target, more)
