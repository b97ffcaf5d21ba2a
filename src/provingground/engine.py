"""Missing cells -> lanes -> any Executor -> store.

Cells of equal shape share one program. A *block* is what one call of it computes: some points of
the grid times some seeds. Points of one seed share whatever depends on the seed alone (the batch
axis of the key stays away), so weights and data are drawn once for all lanes.
"""

import contextlib
import hashlib
import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from provingground import grid
from provingground.errors import InputError, RunError
from provingground.grid import Point, Program, Sweep
from provingground.keys import seed_key
from provingground.machine import (
    device_name,
    free_memory,
    keep_compiled_programs,
    out_of_memory,
    provenance,
    workers,
)
from provingground.store import Store
from provingground.study import Study, pars
from provingground.train import LaneMode, lanes_run

# Lanes per call by rule. On a CPU a lane is a training of its own (see `train.lanes_run`), and
# more lanes only share more of the drawing; on a GPU they fill the device.
LANES: dict[LaneMode, int] = {"serial": 24, "wide": 1024}
# Measured. On CPUs level 1 compiles a quarter faster than the default and runs as fast. On an
# H200 leaving out autotuning compiles four times faster (6 s for 26 s) and runs 10% slower.
COMPILER: dict[LaneMode, dict[str, Any]] = {
    "serial": {"xla_backend_optimization_level": 1},
    "wide": {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False},
}
TUNE_WORTH = 30  # tune the width where the forecast is this many times the cost of tuning
TUNE_SECONDS = 10.0
MEMORY_SHARE = 0.5  # of what is free, for one call

Progress = Callable[[int, int, str], None]

# Compiled programs of this process, so that a notebook that runs a sweep again compiles nothing.
KEPT_PROGRAMS = 256
_COMPILED: dict[Any, tuple[threading.Lock, list[Any]]] = {}
_GUARD = threading.Lock()
_FINGERPRINTS: dict[str | None, str] = {}


class Block(NamedTuple):
    """What one call computes: points times seeds, seeds first."""

    program: Program
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    cells: tuple[str, ...]
    wide: int  # the widths of the program, which a last, short block need not fill
    deep: int

    @property
    def lanes(self) -> int:
        return self.wide * self.deep

    @property
    def name(self) -> str:
        return hashlib.sha256("".join(self.cells).encode()).hexdigest()[:32]


class Forecast(NamedTuple):
    """What a sweep will cost. `seconds` is None until its programs have been timed once.

    `memory` counts the bytes of temporary arrays of all workers, as far as it is known.
    """

    cells: int
    stored: int
    programs: int
    seconds: float | None
    memory: int
    lanes: int


class Timing(NamedTuple):
    """What a cell of a program costs on this device."""

    seconds: float
    memory: int


@dataclass
class Job:
    """One sweep on one store: what is wanted, what is there, and the programs to fill the gap."""

    sweep: Sweep
    store: Store
    lanes: int | None = None
    trace: bool = True
    _spent: dict[Program, list[tuple[float, int]]] = field(default_factory=dict, repr=False)
    _memory: dict[Program, int] = field(default_factory=dict, repr=False)

    @property
    def study(self) -> Study:
        return self.sweep.study

    @cached_property
    def mode(self) -> LaneMode:
        return "serial" if jax.default_backend() == "cpu" else "wide"

    @cached_property
    def data(self) -> Any:
        return data_of(self.study, self.points[0].program)

    @cached_property
    def data_digest(self) -> str:
        return grid.digest_of_data(self.data)

    @cached_property
    def points(self) -> list[Point]:
        return self.sweep.points()

    @cached_property
    def ids(self) -> list[list[str]]:
        """The identity of every cell: for each point, its seeds."""
        prints: dict[Program, str] = {}
        for p in self.points:
            if p.program not in prints:
                prints[p.program] = self._fingerprint(p)
        return [
            grid.cell_ids(
                grid.point_digest(self.study, p, prints[p.program], self.data_digest),
                self.sweep.seeds,
            )
            for p in self.points
        ]

    def _fingerprint(self, point: Point) -> str:
        try:
            return fingerprint(self.study, point, self.store, self.trace)
        except (InputError, RunError):
            raise
        except Exception:  # it will fail again when it is compiled, and be reported then
            return f"cannot be traced {uuid.uuid4()}"

    @cached_property
    def blocks(self) -> list[Block]:
        """The whole sweep cut into blocks, whatever is stored."""
        groups: dict[Program, list[int]] = {}
        for i, p in enumerate(self.points):
            groups.setdefault(p.program, []).append(i)
        seeds = range(len(self.sweep.seeds))
        return _ordered([self._cut(program, members, seeds) for program, members in groups.items()])

    def _cut(self, program: Program, members: Sequence[int], seeds: Sequence[int]) -> list[Block]:
        """Some points times some seeds (by their numbers) as blocks of the chosen width."""
        lanes = self.lanes or chosen_lanes(self, program)
        wide = _even(len(members), lanes)
        deep = _even(len(seeds), max(1, lanes // wide))
        return [
            Block(
                program,
                tuple(self.points[i] for i in some),
                tuple(self.sweep.seeds[j] for j in their),
                tuple(self.ids[i][j] for j in their for i in some),
                wide,
                deep,
            )
            for some in _batches(members, wide)
            for their in _batches(seeds, deep)
        ]

    def missing(self) -> list[Block]:
        """The blocks to compute.

        A sweep that was broken off goes on with the blocks it had, and so gives the very same
        numbers. Where a sweep was extended, a block may hold stored cells: such a program is cut
        anew, so that nothing is computed twice.
        """
        stored = self.store.find(self.study.name)
        mixed = {
            b.program for b in self.blocks if 0 < sum(c in stored for c in b.cells) < len(b.cells)
        }
        cut = [[b for b in self.blocks if b.program not in mixed and b.cells[0] not in stored]]
        for program in mixed:
            lacking: dict[tuple[int, ...], list[int]] = {}
            for i, p in enumerate(self.points):
                if p.program == program:
                    seeds = tuple(j for j, c in enumerate(self.ids[i]) if c not in stored)
                    lacking.setdefault(seeds, []).append(i)
            lacking.pop((), None)
            cut += [self._cut(program, points, seeds) for seeds, points in lacking.items()]
        return _ordered([blocks for blocks in cut if blocks]) if mixed else cut[0]

    # ------------------------------------------------------------------- one block

    def compute(self, block: Block) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """The probes of a block. A lane that runs out of memory with others is run with fewer."""
        try:
            return self._call(block)
        except (MemoryError, jax.errors.JaxRuntimeError) as error:
            if len(block.cells) == 1 or not out_of_memory(error):
                raise
            halves = [self.compute(b) for b in _halves(block)]
            return {
                n: (dims, np.concatenate([h[n][1] for h in halves]))
                for n, (dims, _) in halves[0].items()
            }

    def _call(self, block: Block) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        points, seeds = _filled(block)
        program = self.program(block.program, points, len(seeds))
        with grid.precision_of(block.program.precision):
            found = program(stacked(points), np.array(seeds, np.int32), self.data)
        simulator = self.study.simulators[block.program.simulator]
        kept = np.ix_(range(len(block.seeds)), range(len(block.points)))
        return {
            name: (dims, np.asarray(getattr(found, name))[kept].reshape(-1, *shape))
            for name, dims in probe_dims(simulator.probes).items()
            for shape in [np.shape(getattr(found, name))[2:]]
        }

    def program(self, program: Program, points: Sequence[Point], seeds: int) -> Any:
        """The compiled program of a width; compiled once, whichever thread asks first."""
        simulate = self.study.simulators[program.simulator].simulate
        name = (simulate, self.study.name, program, self.data_digest, len(points), seeds)
        with _GUARD:
            lock, known = _COMPILED.setdefault(name, (threading.Lock(), []))
            while len(_COMPILED) > KEPT_PROGRAMS:
                del _COMPILED[next(iter(_COMPILED))]
        with lock:
            if not known:
                known.append(self._compile(program, points, seeds))
            if needed := known[0].memory_analysis():
                self._memory[program] = needed.temp_size_in_bytes
            return known[0]

    def _compile(self, program: Program, points: Sequence[Point], seeds: int) -> Any:
        simulate = self.study.simulators[program.simulator].simulate

        def batch(configs: Any, seeds: Any, data: Any) -> Any:
            rest = () if data is None else (data,)

            def of_seed(seed: Any) -> Any:
                key = seed_key(self.study.name, seed)
                return jax.vmap(lambda cfg: simulate(cfg, key, *rest))(configs)

            return jax.vmap(of_seed)(seeds) if self.mode == "wide" else jax.lax.map(of_seed, seeds)

        keep_compiled_programs(self.store.path / "compiled")
        with (
            grid.precision_of(program.precision),
            jax.default_matmul_precision("highest"),
            lanes_run(self.mode),
        ):
            arguments = stacked(points), np.zeros(seeds, np.int32), self.data
            lowered = jax.jit(batch).lower(*arguments)
            compiled = lowered.compile(compiler_options=COMPILER[self.mode])
        needed = compiled.memory_analysis()
        if needed is not None and needed.temp_size_in_bytes > MEMORY_SHARE * free_memory():
            raise MemoryError("RESOURCE_EXHAUSTED: the lanes do not fit into memory")
        return compiled

    # ------------------------------------------------------------------ the whole sweep

    def forecast(self, measure: bool = False) -> Forecast:
        """Cells, compilations and time, from earlier timings or (if asked) one timed call."""
        stored = self.store.find(self.study.name)
        left: dict[Program, int] = {}
        for point, ids in zip(self.points, self.ids, strict=True):
            left[point.program] = left.get(point.program, 0) + sum(c not in stored for c in ids)
        todo = {program: n for program, n in left.items() if n}
        seconds: float | None = 0.0
        memory = 0
        for program, n in todo.items():
            each = self.timing(program)
            if each is None and measure:
                self._time(next(b for b in self.blocks if b.program == program))
                each = self.timing(program)
            if each is None or seconds is None:
                seconds = None
                continue
            seconds += n * each.seconds
            memory = max(memory, each.memory * workers())
        return Forecast(
            cells=self.sweep.cells,
            stored=self.sweep.cells - sum(left.values()),
            programs=len(todo),
            seconds=seconds,
            memory=memory,
            lanes=max((b.lanes for b in self.blocks), default=1),
        )

    def timing(self, program: Program) -> Timing | None:
        """What a cell costs on this device, as measured by an earlier run."""
        text = self.store.note("timings", self._on_device(program))
        try:
            return None if text is None else Timing(*json.loads(text))
        except (TypeError, ValueError):  # of an earlier version
            return None

    def _on_device(self, program: Program) -> str:
        name = f"{self.study.name} {program.digest()} {device_name()}"
        return hashlib.sha256(name.encode()).hexdigest()[:32]

    def _time(self, block: Block) -> None:
        """Times one call, for forecasts."""
        self._spent[block.program] = [(self._timed(block)[1], len(block.cells))]
        self._remember_timings()

    def run(self, executor: Executor | None = None, progress: Progress | None = None) -> None:
        """Computes and stores what is missing. Finished blocks are never computed again."""
        if self.lanes is None:
            tune(self)
        todo = self.missing()
        total = sum(len(b.cells) for b in todo)
        tell = progress or (lambda done, total, what: None)
        pool = executor or ThreadPoolExecutor(workers())
        done, claimed, failed = 0, set(), []
        stopped = threading.Event()
        waiting: dict[Future, Block] = {}
        try:
            while todo:
                tell(done, total, "waiting for another process" if waiting else "compiling")
                elsewhere = []
                beat = time.monotonic()
                waiting = {pool.submit(self._work, b, claimed, stopped): b for b in todo}
                for future in as_completed(waiting):
                    block = waiting[future]
                    try:
                        finished = future.result()
                    except Exception as error:
                        failed.append((block, error))
                        continue
                    if finished is None:
                        elsewhere.append(block)
                        continue
                    self._put(block, *finished)
                    claimed.discard(block.name)
                    self.store.release(block.name)
                    done += len(block.cells)
                    tell(done, total, "training")
                    if time.monotonic() - beat > 60:
                        beat = time.monotonic()
                        for name in list(claimed):
                            self.store.renew(name)
                # Blocks of other processes: wait for them, or take over what they gave up.
                todo = [b for b in elsewhere if not self._stored(b)]
                done += sum(len(b.cells) for b in elsewhere if b not in todo)
                time.sleep(0.3 if todo else 0)
        finally:
            stopped.set()
            for future in waiting:
                future.cancel()
            for name in list(claimed):
                self.store.release(name)
            if executor is None:
                pool.shutdown(wait=False)
        self._remember_timings()
        if failed:
            block, error = failed[0]
            raise RunError(
                f"{sum(len(b.cells) for b, _ in failed)} of {total} cells failed, all others are "
                f"stored. The first: {block.program.simulator} with {dict(block.program.shape)}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _work(self, block: Block, claimed: set[str], stopped: threading.Event) -> Any:
        """Probes and seconds of a block; None if another process has it, or has done it."""
        if stopped.is_set() or not self.store.claim(block.name):
            return None
        claimed.add(block.name)
        try:
            if self._stored(block):
                self.store.release(block.name)
                claimed.discard(block.name)
                return None
            probes, seconds = self._timed(block)
            self._spent.setdefault(block.program, []).append((seconds, len(block.cells)))
            return probes, seconds
        finally:
            if stopped.is_set():
                self.store.release(block.name)

    def _stored(self, block: Block) -> bool:
        stored = self.store.find(self.study.name)
        return all(c in stored for c in block.cells)

    def _timed(self, block: Block) -> tuple[Any, float]:
        """The probes of a block and the seconds it took, compilation apart."""
        points, seeds = _filled(block)
        with contextlib.suppress(MemoryError):  # `compute` will take fewer lanes
            self.program(block.program, points, len(seeds))
        start = time.perf_counter()
        return self.compute(block), time.perf_counter() - start

    def _remember_timings(self) -> None:
        for program, runs in self._spent.items():
            seconds, cells = map(sum, zip(*runs, strict=True))
            each = Timing(seconds / cells / workers(), self._memory.get(program, 0))
            self.store.set_note("timings", self._on_device(program), json.dumps(each))
        self._spent.clear()

    def _put(self, block: Block, probes: Any, seconds: float) -> None:
        """Stores a block with all that is needed to read, check or repeat it later."""
        table = pars(self.study.simulators[block.program.simulator].config)
        lanes = [p for _ in block.seeds for p in block.points]
        probes = dict(probes)
        for name in (n for n, p in table.items() if p.traced):
            values = np.array([getattr(p.config, name) for p in lanes], np.float64)
            probes[f"config_{name}"] = ((), values)
        probes["config_seed"] = (
            (),
            np.repeat(np.array(block.seeds, np.int32), len(block.points)),
        )
        about = {
            "program": block.program._asdict(),
            "fingerprint": self._fingerprint(block.points[0]),
            "data": self.data_digest,
            "lanes": block.lanes,
            "seconds": round(seconds, 6),
            **provenance(),
        }
        self.store.put(self.study.name, block.cells, probes, about)


# ------------------------------------------------------------------------- fingerprints


def fingerprint_name(study: Study, program: Program) -> str | None:
    """Under which name the store keeps the fingerprint of a program of today's sources.

    None for a `simulate` that is not a function at the top of its module, such as a closure: its
    source does not determine it.
    """
    simulate = study.simulators[program.simulator].simulate
    home, name = getattr(simulate, "__module__", ""), getattr(simulate, "__name__", "")
    if getattr(sys.modules.get(home), name, None) is not simulate:
        return None
    source = grid.source_digest(home)
    if source is None:
        return None
    what = [study.name, home, name, program.digest()]
    return hashlib.sha256(" ".join([*what, source]).encode()).hexdigest()[:40]


def fingerprint(study: Study, point: Point, store: Store, trace: bool = True) -> str:
    """Hash of the lowered program of a point, kept by the hash of the sources.

    Without `trace` only a kept one will do: figures and reports do not trace.
    """
    name = fingerprint_name(study, point.program)
    known = store.note("fingerprints", name) if name else None
    if known is None:
        if not trace and name:
            raise RunError(
                f"no results of this version of {study.name} are stored for these settings; "
                "`proving run` or `proving check` them first"
            )
        known = _FINGERPRINTS.get(name) or lowered_hash(study, point)
        if name:
            _FINGERPRINTS[name] = known
            store.set_note("fingerprints", name, known)
    return known


def lowered_hash(study: Study, point: Point) -> str:
    data = data_of(study, point.program)
    text = grid.lowered_text(study, point.program, point.config, data)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def data_of(study: Study, program: Program) -> Any:
    """The data set that a program takes, or None."""
    return study.data[program.data]() if program.data else None


def single(study: Study, point: Point, seed: int) -> dict[str, np.ndarray]:
    """The probes of one cell, run by itself."""
    simulator = study.simulators[point.program.simulator]
    data = data_of(study, point.program)
    with grid.precision_of(point.program.precision), jax.default_matmul_precision("highest"):
        config = grid.typed(point.config, point.program.precision)
        rest = () if data is None else (data,)
        found = jax.jit(simulator.simulate)(config, seed_key(study.name, seed), *rest)
    return {n: np.asarray(getattr(found, n)) for n in probe_dims(simulator.probes)}


# ------------------------------------------------------------------------------- lanes


def stacked(points: Sequence[Point]) -> Any:
    """The Configs of several points as one Config of arrays."""
    precision = points[0].program.precision
    configs = [grid.typed(p.config, precision) for p in points]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *configs)


def probe_dims(probes: type) -> dict[str, tuple[str, ...]]:
    """The names of the dims of each probe, from its jaxtyping annotation."""
    return {
        name: tuple(kind.dim_str.split())
        for name, kind in probes.__annotations__.items()
        if hasattr(kind, "dim_str")
    }


def chosen_lanes(job: Job, program: Program) -> int:
    """The width measured for this program and device, else the backend's rule."""
    measured = job.store.note("lanes", job._on_device(program))
    return LANES[job.mode] if measured is None else int(measured)


def tune(job: Job) -> None:
    """Measures the best width of programs whose forecast work is many times the cost of that."""
    todo, worth = job.missing(), TUNE_WORTH * TUNE_SECONDS
    for program in {b.program for b in todo}:
        each = job.timing(program)
        cells = sum(len(b.cells) for b in todo if b.program == program)
        name = job._on_device(program)
        if job.store.note("lanes", name) or not each or each.seconds * cells < worth:
            continue
        rule = LANES[job.mode]
        cost = {}
        for lanes in (rule // 4, rule, rule * 4):
            points = [i for i, p in enumerate(job.points) if p.program == program]
            seeds = range(len(job.sweep.seeds))
            block = Job(job.sweep, job.store, lanes)._cut(program, points, seeds)[0]
            cost[lanes] = job._timed(block)[1] / len(block.cells)
        best = min(cost, key=lambda lanes: cost[lanes])
        job.store.set_note("lanes", name, str(best))
        job.__dict__.pop("blocks", None)


def _ordered(cut: list[list[Block]]) -> list[Block]:
    """Big programs first, and the first block of each before the rest: they compile at once."""
    cut.sort(key=lambda blocks: [s for _, s in blocks[0].program.sizes], reverse=True)
    return [blocks[0] for blocks in cut] + [b for blocks in cut for b in blocks[1:]]


def _even(count: int, most: int) -> int:
    """The batch size that cuts `count` items into as few, and as equal, batches as possible."""
    return -(-count // -(-count // max(1, most)))


def _batches(items: Iterable[int], size: int) -> list[list[int]]:
    items = list(items)
    return [items[i : i + size] for i in range(0, len(items), size)]


def _filled(block: Block) -> tuple[tuple[Point, ...], tuple[int, ...]]:
    """The lanes of a block; a short one repeats its last lane, so that one width serves all."""
    points = block.points + block.points[-1:] * (block.wide - len(block.points))
    return points, block.seeds + block.seeds[-1:] * (block.deep - len(block.seeds))


def _halves(block: Block) -> list[Block]:
    """A block as two, cut along the seeds if there are several, else along the points."""
    if len(block.seeds) > 1:
        cut = len(block.seeds) // 2
        at = cut * len(block.points)
        parts = [(block.points, block.seeds[:cut]), (block.points, block.seeds[cut:])]
    else:
        cut = at = len(block.points) // 2
        parts = [(block.points[:cut], block.seeds), (block.points[cut:], block.seeds)]
    cells = (block.cells[:at], block.cells[at:])
    return [
        Block(block.program, points, seeds, c, len(points), len(seeds))
        for (points, seeds), c in zip(parts, cells, strict=True)
    ]
