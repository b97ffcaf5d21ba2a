"""The process that trains what a page asks for; it may be killed at any moment.

    python -m provingground.atlas.worker FOLDER

reads orders, a line of JSON each, and tells of its work in lines of JSON. It ends when nobody can
order any more. What is finished is in the store in FOLDER, like that of any other run.
"""

import json
import math
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from provingground.errors import InputError, RunError

KEPT_REPLAYS = 8  # compiled programs of replays
MOST_NUMBERS = 1024  # of a probe that is told while it trains
NUMBERS_OF_A_CELL = 16  # of a probe that is told of a finished cell
SECONDS_BETWEEN_FRAMES = 0.03
SECONDS_BETWEEN_CELLS = 0.4
NUMBERS_AT_A_TIME = 50_000  # of finished cells in one message

Send = Callable[..., None]


def main() -> None:
    """Works off orders until the pipe closes."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a study prints is not a message
    orders: list[dict[str, Any]] = []
    ready = threading.Condition()

    def listen(source: IO[str]) -> None:
        for line in source:
            with ready:
                orders.append(json.loads(line))
                ready.notify()
        os._exit(0)  # nobody is left to work for

    threading.Thread(target=listen, args=(sys.stdin,), daemon=True).start()
    worker = Worker(sys.argv[1])
    _say(out, {"event": "ready"})
    while True:
        with ready:
            while not orders:
                ready.wait()
            order = orders.pop(0)
        worker.work(order, lambda event, **told: _say(out, {"event": event, **told}))


def _say(out: IO[str], message: dict[str, Any]) -> None:
    try:
        out.write(json.dumps(message, allow_nan=False) + "\n")
        out.flush()
    except OSError:
        os._exit(0)


class Worker:
    """Trains what is ordered, and keeps the programs that it compiled."""

    def __init__(self, folder: str) -> None:
        from provingground import api  # what takes long is imported before the first order
        from provingground.store import Store

        self.finish = api.finish
        self.store = Store(Path(folder))
        self.replays: OrderedDict[str, Any] = OrderedDict()

    def work(self, order: dict[str, Any], send: Send) -> None:
        """Carries out an order; whatever goes wrong is told."""
        try:
            self._work(order, send)
        except (InputError, RunError) as error:
            send("failed", says=str(error))
        except MemoryError:
            send("failed", says="there is not enough memory for it")
        except Exception as error:  # a study may be anybody's
            send("failed", says=f"{type(error).__name__}: {error}"[:2000])

    def _work(self, order: dict[str, Any], send: Send) -> None:
        from provingground.atlas.asking import Asked, digest

        send("phase", what="tracing")
        planned = Asked(
            order["target"], order["scale"], tuple(order["settings"]), order["seeds"]
        ).planned(self.store)
        told = _Cells(planned, send)
        before = planned.stored()
        total = int(planned.distinct.sum()) * len(planned.sweep.seeds)
        send("begin", cells=planned.sweep.cells, stored=int(before.sum()))
        replayed = self._watch(planned, before, send) if order.get("watch", True) else None
        start = time.perf_counter()
        if not before.all():

            def tell(done: int, total: int, what: str) -> None:
                send("progress", done=done, total=total, what=what)
                told.tell()

            self.finish(planned, progress=tell)
        ds = told.tell(last=True)
        send("compiled", programs=sorted({digest(planned, g.program) for g in planned.groups}))
        if replayed is not None:
            from provingground.watching import deviation

            row, seed, probes = replayed
            kept = {n: v[row, seed] for n, v in told.values(ds).items() if n in probes}
            send("same", deviation=_finite(deviation({n: probes[n] for n in kept}, kept)))
        attrs = ds.attrs
        send(
            "done",
            cells=total,
            diverged=int(attrs["diverged"]),
            missing=int(attrs["missing"]),
            seconds=round(time.perf_counter() - start, 3),
        )

    def _watch(self, planned: Any, before: np.ndarray, send: Send) -> Any:
        """Trains the first cell that is missing while everybody watches; its place and probes."""
        from itertools import islice

        from provingground.atlas.asking import digest
        from provingground.watching import Watched

        rows = np.flatnonzero(~before.all(axis=1) & planned.wanted)
        row = int(rows[0]) if len(rows) else 0
        seeds = np.flatnonzero(~before[row])
        number = int(seeds[0]) if len(seeds) else 0
        point = next(islice(planned.sweep.points(), row, None))
        if planned.study.simulators[point.program.simulator].host:
            return None
        name = f"{digest(planned, point.program)} {planned.identities[point.program].runs}"
        start = time.perf_counter()
        if name not in self.replays:
            send("phase", what="compiling")
            made = Watched(planned.study, point, planned.data)
            made.compile()
            self.replays[name] = made
            while len(self.replays) > KEPT_REPLAYS:
                self.replays.popitem(last=False)
        self.replays.move_to_end(name)
        compiled = time.perf_counter()
        seed = planned.sweep.seeds[number]
        labels = [[a.name, _plain(a.labels[i])] for a, i in _place(planned.sweep, row)]
        send("phase", what="watching", seed=seed, labels=labels)
        probes = self.replays[name].run(point.config, seed, _Frames(send))
        send(
            "watched",
            program=digest(planned, point.program),
            compiling=round(compiled - start, 3),
            seconds=round(time.perf_counter() - compiled, 3),
        )
        return row, number, probes


def _place(sweep: Any, row: int) -> list[tuple[Any, int]]:
    """The axes of a sweep with the place of a point on them."""
    places = np.unravel_index(row, sweep.shape) if sweep.shape else ()
    return [(axis, int(i)) for axis, i in zip(sweep.axes, places, strict=True)]


def _declared(sweep: Any) -> np.ndarray:
    """Which points are those that the experiment declares at these labels: where a parameter that
    is no axis was set, a cell has a place on the grid and is not the cell that belongs there."""
    from provingground import grid

    whole = grid.plan(sweep.study, sweep.experiment, sweep.scale, yes=True)
    theirs = {axis.name: axis for axis in sweep.axes}
    found = np.zeros(math.prod(sweep.shape), bool)
    if any(axis.name not in theirs for axis in whole.axes):
        return found
    places = [{label: i for i, label in enumerate(axis.labels)} for axis in whole.axes]
    for row, point in enumerate(sweep.points()):
        labels = {axis.name: axis.labels[i] for axis, i in _place(sweep, row)}
        pairs = zip(whole.axes, places, strict=True)
        at = tuple(place.get(labels[axis.name], -1) for axis, place in pairs)
        found[row] = -1 not in at and whole.point(at) == point
    return found


class _Frames:
    """Tells of a training as often as somebody can look; the last step always."""

    def __init__(self, send: Send) -> None:
        self.send, self.last, self.at = send, 0.0, (-1, -1)

    def __call__(self, frame: Any) -> None:
        if (frame.training, frame.step) == self.at:
            return  # a step that stands twice
        self.at = frame.training, frame.step
        now = time.monotonic()
        quick = now - self.last < SECONDS_BETWEEN_FRAMES and frame.step < frame.steps
        probes = {
            name: _numbers(values)
            for name, values in frame.probes.items()
            if values.size <= (1 if quick else MOST_NUMBERS)
        }
        self.last = self.last if quick else now
        self.send(
            "frame", training=frame.training, step=frame.step, steps=frame.steps, probes=probes
        )


class _Cells:
    """Tells of settings all of whose cells are stored, each once."""

    def __init__(self, planned: Any, send: Send) -> None:
        self.planned, self.send, self.last = planned, send, 0.0
        self.told = np.zeros(len(planned.wanted), bool)
        self.declared = _declared(planned.sweep)

    def tell(self, last: bool = False) -> Any:
        """Tells of what is new, now and then; the last time of all, with their Dataset."""
        from provingground.results import dataset

        if not last and time.monotonic() - self.last < SECONDS_BETWEEN_CELLS:
            return None
        self.last = time.monotonic()
        there = self.planned.stored().all(axis=1)
        new = np.flatnonzero(there & ~self.told)
        if not last and not len(new):
            return None
        ds = dataset(self.planned)
        values = self.values(ds)
        few = _few(values)
        each = len(self.planned.sweep.seeds) + sum(v[0].size for v in few.values())
        many = max(1, NUMBERS_AT_A_TIME // each)
        for i in range(0, len(new), many):
            self.send("cells", cells=[self._cell(int(r), few) for r in new[i : i + many]])
        self.told |= there
        return ds

    def values(self, ds: Any) -> dict[str, np.ndarray]:
        """The probes of a Dataset as (points, seeds, ...)."""
        sweep = self.planned.sweep
        outer = (*(a.name for a in sweep.axes), "seed")
        found = {}
        for name, variable in ds.data_vars.items():
            if variable.dims[: len(outer)] == outer and name != "diverged":
                shape = variable.shape[len(outer) :]
                found[str(name)] = variable.values.reshape(-1, len(sweep.seeds), *shape)
        return found

    def _cell(self, row: int, values: dict[str, np.ndarray]) -> dict[str, Any]:
        sweep = self.planned.sweep
        return {
            "labels": {a.name: _plain(a.labels[i]) for a, i in _place(sweep, row)},
            "declared": bool(self.declared[row]),
            "seeds": [int(seed) for seed in sweep.seeds],
            "probes": {n: [_numbers(x) for x in v[row]] for n, v in values.items()},
        }


def _few(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The short probes of cells, those with fewest numbers first, as many as a message holds."""
    short = {n: v for n, v in values.items() if v[0, 0].size <= NUMBERS_OF_A_CELL}
    order = sorted(short, key=lambda name: short[name][0].size)
    sizes = np.cumsum([short[name][0].size for name in order])
    kept = {n for n, size in zip(order, sizes, strict=True) if size <= NUMBERS_AT_A_TIME}
    return {n: v for n, v in short.items() if n in kept}


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _numbers(values: Any) -> Any:
    """Numbers of five digits, in lists as they are nested; None where one is not finite."""
    values = np.asarray(values)
    if values.ndim:
        return [_numbers(x) for x in values]
    if values.dtype.kind in "bui":
        return int(values)
    return float(f"{float(values):.5g}") if np.isfinite(values) else None


if __name__ == "__main__":
    main()
