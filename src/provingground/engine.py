"""Missing cells -> blocks of lanes -> chunks.

A *block* is what one call of a program computes: some points of the grid times some seeds. How a
sweep is cut into blocks depends on the sweep alone, so a resumed sweep gives the same numbers.
Blocks that one worker computes in about a second are stored together as a *chunk*.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from provingground.chunk import Ids, packed
from provingground.config import traced
from provingground.errors import DataMissing, RunError, StoreError
from provingground.grid import Group, Point, Program, Sweep
from provingground.identity import (
    Identity,
    bytes_at_once,
    cell_ids,
    digest_of_data,
    identify,
)
from provingground.machine import Machine, cores, here, processor, provenance
from provingground.programs import Lanes, Programs, data_of, probe_dims
from provingground.store import Store
from provingground.study import Study
from provingground.widths import chosen_lanes

PARTS = 8  # into which serial work is cut, if there are so many seeds, for several workers to share


class Block(NamedTuple):
    """What one call computes. All are numbers, so that a block can be sent anywhere."""

    group: int
    rows: NDArray[np.int32]  # points of the group
    seeds: NDArray[np.int32]  # numbers of seeds of the sweep
    wide: int  # the widths of the program, which a last, short block need not fill
    deep: int

    @property
    def cells(self) -> int:
        return len(self.rows) * len(self.seeds)


class Forecast(NamedTuple):
    """What is left of a sweep, and what it will cost, as far as that is known.

    `seconds` are those of training in the programs that were timed once, on this device; None where
    none was. `untimed` counts the others. `compiling` is what compiling took then; programs that
    are kept take less. `memory` counts the bytes of temporary arrays of all workers. `unseen` are
    cells that may be stored: their programs would have to be traced to tell.
    """

    cells: int
    stored: int
    programs: int
    seconds: float | None
    memory: int
    lanes: int
    untimed: int
    compiling: float
    unseen: int

    @property
    def left(self) -> int:
        """Cells to run."""
        return self.cells - self.stored


class Timing(NamedTuple):
    """What a cell of a program costs one worker on this device, and compiling the program."""

    seconds: float
    memory: int
    compiling: float


class Finished(NamedTuple):
    """A chunk, packed for the store (unless a worker stored it itself), and what it took."""

    content: bytes
    size: int  # 0 if it was stored before
    seconds: float  # compilation apart
    memory: int
    compiling: float


@dataclass
class Job:
    """One sweep on one store: what is wanted, what is there, and the programs to fill the gap.

    `only` restricts it to some points of the grid; `machine` is where it will run, if not here.
    """

    sweep: Sweep
    store: Store
    lanes: int | None = None
    trace: bool = True
    only: NDArray[np.bool_] | None = None
    machine: Machine | None = None
    sizes: dict[Program, int] = field(default_factory=dict, repr=False)  # see `array_bytes`

    @property
    def study(self) -> Study:
        return self.sweep.study

    @property
    def where(self) -> Machine:
        return self.machine or here()

    def machine_of(self, program: Program) -> Machine:
        """Where a program runs: the processor, for simulators that are to run there."""
        cpu = self.study.simulators[program.simulator].cpu
        return processor() if cpu and self.where.backend != "cpu" else self.where

    @cached_property
    def workers(self) -> int:
        """Calls at a time: as many as the machine takes that has most of the programs."""
        machines = [self.machine_of(group.program) for group in self.groups]
        return max(set(machines), key=machines.count).workers if machines else self.where.workers

    @cached_property
    def data(self) -> Any:
        return data_of(self.study, self.sweep.trainings.data)

    @cached_property
    def data_digest(self) -> str:
        return digest_of_data(self.data)

    @cached_property
    def programs(self) -> Programs:
        return Programs(self.study, self.data, self.data_digest, self.identities, self.machine_of)

    # ------------------------------------------------------------------- what is wanted

    @cached_property
    def groups(self) -> list[Group]:
        return self.sweep.groups()

    @cached_property
    def identities(self) -> dict[Program, Identity]:
        """Of all programs, as they were when this was first asked."""
        points = [Point(group.program, group.config) for group in self.groups]
        name = self.sweep.experiment.name
        return identify(
            self.study, points, self.data, self.data_digest, self.store, self.trace, name
        )

    @cached_property
    def ids(self) -> Ids:
        """The identity of every cell, as (points, seeds)."""
        sweep = self.sweep
        found = np.empty((sweep.cells // len(sweep.seeds), len(sweep.seeds)), "S32")
        for group in self.groups:
            known = self.identities[group.program].fingerprint
            found[group.points] = cell_ids(self.study, group, known, self.data_digest, sweep.seeds)
        return found

    @property
    def wanted(self) -> NDArray[np.bool_]:
        """Which points are to be run."""
        points = self.sweep.cells // len(self.sweep.seeds)
        return np.ones(points, bool) if self.only is None else self.only

    @cached_property
    def _firsts(self) -> NDArray[np.int32]:
        """For each point the first with the same cells: settings may meet in one training."""
        found = np.empty(len(self.wanted), np.int32)
        for group in self.groups:
            _, first, place = np.unique(
                group.values, axis=0, return_index=True, return_inverse=True
            )
            found[group.points] = group.points[first[place]]
        return found

    @property
    def distinct(self) -> NDArray[np.bool_]:
        """The points to be run, of equal ones the first."""
        found = np.zeros(len(self.wanted), bool)
        found[self._firsts[self.wanted]] = True
        return found

    def stored(self, cells: Ids | None = None) -> NDArray[np.bool_]:
        """Which cells (of all) are in the store."""
        if cells is None:
            self.store.look(self.study.name)
        return self.store.where(self.study.name, self.ids if cells is None else cells)[0] >= 0

    def cells(self, block: Block) -> Ids:
        """The identities of a block's cells, seeds first."""
        points = self.groups[block.group].points[block.rows]
        return self.ids[np.ix_(points, block.seeds)].T.ravel()

    @property
    def blocks(self) -> list[Block]:
        """The whole sweep cut into blocks, whatever is stored."""
        return _ordered(self.groups, [self.whole(g) for g in range(len(self.groups))])

    def whole(self, number: int) -> list[Block]:
        rows = np.flatnonzero(self.distinct[self.groups[number].points])
        return self._cut(number, rows, np.arange(len(self.sweep.seeds)))

    def _cut(self, number: int, rows: NDArray[Any], seeds: NDArray[Any]) -> list[Block]:
        """Some points times some seeds as blocks of the chosen width."""
        if not len(rows):
            return []
        whole = len(self.groups[number].points)
        if self.lanes:  # more than there are cells would only be laid out
            cells = _power_of_two(whole) * _power_of_two(len(self.sweep.seeds))
            lanes = min(self.lanes, cells)
        else:
            lanes = chosen_lanes(self, self.groups[number].program)
        if self.machine_of(self.groups[number].program).mode == "serial":
            # Lanes that only fill up are free, so a few widths serve all sweeps; by the size of the
            # whole, an extended sweep has that of the sweep before.
            points = _even(whole, lanes)
            wide = _power_of_two(points)
            deep = _power_of_two(lanes) // wide
            parts = 1 if self.lanes else -(-PARTS // -(-len(rows) // points))
            together = min(deep, -(-len(seeds) // parts))
        else:  # stages of a refined sweep have different sizes, and share one program
            wide = points = _even(len(rows) if self.only is None else whole, lanes)
            deep = together = _even(len(seeds), max(1, lanes // wide))
        return [
            Block(number, some, their, wide, deep)
            for some in _batches(rows.astype(np.int32), points)
            for their in _batches(seeds.astype(np.int32), together)
        ]

    def missing(self) -> list[Block]:
        """The blocks to compute.

        A sweep that was broken off goes on with the blocks it had, and so gives the very same
        numbers. Where a sweep was extended, a block may hold stored cells: such a group is cut
        anew, so that nothing is computed twice.
        """
        stored = self.stored()
        cut = []
        for number, group in enumerate(self.groups):
            there = stored[group.points]
            blocks = self.whole(number)
            shares = [there[np.ix_(b.rows, b.seeds)].mean() for b in blocks]
            if all(share in (0, 1) for share in shares):
                cut.append([b for b, share in zip(blocks, shares, strict=True) if not share])
                continue
            lacking: dict[bytes, list[int]] = {}
            for row in np.flatnonzero(self.distinct[group.points]):
                lacking.setdefault(np.packbits(~there[row]).tobytes(), []).append(int(row))
            for rows in lacking.values():
                seeds = np.flatnonzero(~there[rows[0]])
                cut.append(self._cut(number, np.array(rows), seeds) if len(seeds) else [])
        return _ordered(self.groups, cut)

    # ---------------------------------------------------------------------- the work

    def program(self, block: Block) -> Program:
        """The program that computes a block."""
        return self.groups[block.group].program

    def lanes_of(self, block: Block) -> Lanes:
        """The arguments of a block's call."""
        configs = self.groups[block.group].configs(block.rows)
        seeds = np.array(self.sweep.seeds, np.int32)[block.seeds]
        return Lanes(configs, seeds, block.wide, block.deep)

    def compute(self, block: Block) -> tuple[dict[str, np.ndarray], int]:
        """The probes of a block, a row per cell, and how many lanes a call had."""
        found, lanes = self.programs.call(self.program(block), self.lanes_of(block))
        return {n: a.reshape(-1, *a.shape[2:]) for n, a in found.items()}, lanes

    def timed(self, block: Block) -> tuple[dict[str, np.ndarray], int, float]:
        """Probes, lanes, and the seconds they took, compilation apart."""
        with contextlib.suppress(MemoryError):  # `compute` will take fewer lanes
            self.programs.compiled(self.program(block), self.lanes_of(block))
        start = time.perf_counter()
        probes, lanes = self.compute(block)
        return probes, lanes, time.perf_counter() - start

    def chunk(self, blocks: Sequence[Block], cells: Ids) -> Finished:
        """Some blocks of a program, with all that is needed to read, check or repeat them."""
        done = [self.timed(b) for b in blocks]
        group = self.groups[blocks[0].group]
        simulator = self.study.simulators[group.program.simulator]
        probes = {
            name: (dims, np.concatenate([found[name] for found, _, _ in done]))
            for name, dims in probe_dims(simulator.probes).items()
        }
        lanes = [np.tile(b.rows, len(b.seeds)) for b in blocks]
        values = group.values[np.concatenate(lanes)]
        names = traced(group.config)
        probes |= {f"config_{n}": ((), values[:, i]) for i, n in enumerate(names)}
        seeds = np.array(self.sweep.seeds, np.int32)
        repeated = [np.repeat(seeds[b.seeds], len(b.rows)) for b in blocks]
        probes["config_seed"] = ((), np.concatenate(repeated))
        seconds = sum(taken for _, _, taken in done)
        about = {
            "program": group.program._asdict(),
            **({"changes": simulator.changes} if simulator.changes else {}),
            "fingerprint": self.identities[group.program].fingerprint,
            "data": self.data_digest,
            "lanes": ", ".join(sorted({str(n) for _, n, _ in done})),
            "layout": ", ".join(sorted({f"{b.wide} x {b.deep}" for b in blocks})),
            "seconds": round(seconds, 6),
            **provenance(self.machine_of(group.program)),
        }
        memory, compiling = self.programs.cost(group.program)
        content = packed(cells, probes, about)
        return Finished(content, len(content), seconds, memory, compiling)

    # ---------------------------------------------------------------------- the cost

    def forecast(self, measure: bool = False) -> Forecast:
        """Cells, programs and time, from the timings of earlier runs. Nothing is traced or compiled
        on a CPU, unless with `measure`: then programs without a timing are called once."""
        seen = measure or self._is_seen()
        none = np.zeros((len(self.distinct), len(self.sweep.seeds)), bool)
        stored = self.stored() if seen else none
        lacking = ~stored & self.distinct[:, None]
        wanted = int(self.distinct.sum()) * len(self.sweep.seeds)
        left = {n: int(lacking[g.points].sum()) for n, g in enumerate(self.groups)}
        needed = {n: count for n, count in left.items() if count}
        timings = {n: self.timing(self.groups[n].program) for n in needed}
        for number in [n for n, timing in timings.items() if measure and timing is None]:
            timings[number] = self._measured(number)
        known = {n: timing for n, timing in timings.items() if timing is not None}
        compiling = [timing.compiling for timing in known.values()]
        return Forecast(
            cells=wanted,
            stored=wanted - sum(needed.values()),
            programs=len(needed),
            seconds=sum(needed[n] * t.seconds / self.workers for n, t in known.items())
            if known or not needed
            else None,
            memory=max((t.memory * self.workers for t in known.values()), default=0),
            lanes=max((b.cells for b in self.blocks), default=1),
            untimed=len(needed) - len(known),
            compiling=max(sum(compiling) / cores(), *compiling, 0.0),
            unseen=0 if seen or self._is_new() else wanted,
        )

    def _is_seen(self) -> bool:
        """Whether it is known which cells are stored, without tracing a program."""
        if "identities" not in vars(self):
            if self._is_new():
                return False
            untraced = replace(self, trace=False)
            untraced.groups = self.groups
            try:
                self.identities = untraced.identities
            except StoreError:
                raise
            except RunError:
                return False
        return True

    def _is_new(self) -> bool:
        """Whether nothing of the study is stored."""
        return not len(self.store.look(self.study.name))

    def _measured(self, number: int) -> Timing:
        """What a program of a group costs, by one call."""
        block, program = self.whole(number)[0], self.groups[number].program
        *_, seconds = self.timed(block)
        timing = Timing(seconds / block.cells, *self.programs.cost(program))
        self.remember(program, timing)
        return timing

    def timing(self, program: Program) -> Timing | None:
        """What a cell costs on this device, as measured by an earlier run."""
        text = self.store.note("timings", self.on_device(program))
        try:
            seconds, memory, compiling = json.loads(text or "")
            sensible = 0 <= seconds < 1e9 and 0 <= memory < 1e18 and 0 <= compiling < 1e9
            return Timing(float(seconds), int(memory), float(compiling)) if sensible else None
        except (TypeError, ValueError, RecursionError):  # none, or of another version
            return None

    def array_bytes(self, group: Group) -> int:
        """The size of the largest array of a training."""
        if (known := self.sizes.get(group.program)) is None:
            try:
                known = bytes_at_once(self.study, group.program, group.config, self.data)
            except DataMissing:  # it is only looked at: nothing can be run
                known = 0
            self.sizes[group.program] = known
        return known

    def remember(self, program: Program, timing: Timing) -> None:
        self.store.set_note("timings", self.on_device(program), json.dumps(timing))

    def on_device(self, program: Program) -> str:
        """The name under which a program's timing and width are kept."""
        changes = self.study.simulators[program.simulator].changes
        name = f"{self.study.name} {program.digest()} {self.machine_of(program).device}{changes}"
        return hashlib.sha256(name.encode()).hexdigest()[:32]


def together(forecasts: Sequence[Forecast]) -> Forecast:
    """What several sweeps cost, one after the other. What two of them share counts twice."""
    seconds = [f.seconds for f in forecasts if f.seconds is not None]
    return Forecast(
        cells=sum(f.cells for f in forecasts),
        stored=sum(f.stored for f in forecasts),
        programs=sum(f.programs for f in forecasts),
        seconds=sum(seconds) if seconds else None,
        memory=max((f.memory for f in forecasts), default=0),
        lanes=max((f.lanes for f in forecasts), default=1),
        untimed=sum(f.untimed for f in forecasts),
        compiling=sum(f.compiling for f in forecasts),
        unseen=sum(f.unseen for f in forecasts),
    )


def _ordered(groups: Sequence[Group], cut: list[list[Block]]) -> list[Block]:
    """Big programs first, and the first block of each before the rest: they compile at once."""
    cut = [blocks for blocks in cut if blocks]
    cut.sort(key=lambda blocks: [s for _, s in groups[blocks[0].group].program.sizes], reverse=True)
    return [blocks[0] for blocks in cut] + [b for blocks in cut for b in blocks[1:]]


def _even(count: int, most: int) -> int:
    """The batch size that cuts `count` items into as few, and as equal, batches as possible."""
    return -(-count // -(-count // max(1, most)))


def _power_of_two(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()


def _batches(items: NDArray[np.int32], size: int) -> list[NDArray[np.int32]]:
    return [items[i : i + size] for i in range(0, len(items), size)]
