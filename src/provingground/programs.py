"""Programs: one `simulate` for many lanes, compiled once per width, and called.

Points of one seed share whatever depends on the seed alone (the batch axis of the key stays
away), so weights and data are drawn once for all lanes.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from numpy.typing import NDArray

from provingground import identity
from provingground.data import real
from provingground.errors import DataMissing, InputError
from provingground.grid import Point, Program
from provingground.identity import Identity, typed
from provingground.keys import seed_key
from provingground.lanes import LaneMode, lane_exists, when
from provingground.machine import (
    Machine,
    cores,
    free_memory,
    keep_compiled_programs,
    out_of_memory,
)
from provingground.study import Study

# Measured. On CPUs level 1 compiles a quarter faster than the default and runs as fast. On an
# H200 leaving out autotuning compiles four times faster (6 s for 26 s) and runs 10% slower. Where
# a softmax was fused by Triton, the compiler looks for the best tiles of everything around it: that
# took most of the time of vision_transformer's tokens (48 s for 9 s of CPU time without it).
COMPILER: dict[LaneMode, dict[str, Any]] = {
    "serial": {"xla_backend_optimization_level": 1},
    "wide": {
        "xla_gpu_autotune_level": 0,
        "xla_gpu_enable_triton_gemm": False,
        "xla_disable_hlo_passes": "triton-softmax-rewriter",
    },
}
MEMORY_SHARE = 0.5  # of what is free, for one call

# On a processor XLA runs a batch of LAPACK's routines on a thread of its pool, which then waits for
# tasks of the same pool. As many such programs at once as the pool has threads wait for ever: two
# on two cores. So threads are always left that do the tasks.
TURNS = threading.BoundedSemaphore(max(1, (cores() - 1) // 2))

# Compiled programs of this process, so that a notebook that runs a sweep again compiles nothing. On
# a processor each holds 500 to 1000 maps of memory, and Linux gives a process some 65,000: at half
# of these the oldest programs are let go.
KEPT_PROGRAMS = 256
MAPS, MOST_MAPS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
_COMPILED: "dict[Any, Kept]" = {}
_GUARD = threading.Lock()


@dataclass
class Kept:
    """A program of one width on its way: traced, compiled, and seen to fit into memory."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    lowered: Any = None  # until it is compiled
    compiled: Any = None
    memory: int = 0
    seconds: float = 0.0  # that it took to trace and to compile it
    fits: bool = False
    lapack: bool = False  # whether it calls LAPACK, see `TURNS`


def forget_compiled() -> None:
    """Frees the compiled programs of this process; they are compiled, or read, again if needed."""
    with _GUARD:
        _COMPILED.clear()


def is_compiled(name: Any) -> bool:
    """Whether the program of a name (see `Programs.name`) can be called at once."""
    return (kept := _COMPILED.get(name)) is not None and kept.compiled is not None


class Lanes(NamedTuple):
    """The arguments of one call: points times seeds, and the widths they are laid out for."""

    configs: Any  # a Config of arrays (points,)
    seeds: NDArray[np.int32]
    wide: int  # of the program, which a last, short call need not fill
    deep: int

    @property
    def points(self) -> int:
        return len(jax.tree.leaves(self.configs)[0])

    def halves(self) -> "tuple[int, Lanes, Lanes]":
        """Cut along the axis (0 seeds, 1 points) that is returned with them."""
        axis = 0 if len(self.seeds) > 1 else 1
        count = len(self.seeds) if axis == 0 else self.points
        parts = []
        for part in (slice(0, count // 2), slice(count // 2, count)):
            n = len(range(count)[part])
            parts.append(
                self._replace(seeds=self.seeds[part], deep=n)
                if axis == 0
                else self._replace(configs=_rows(self.configs, part), wide=n)
            )
        return axis, *parts


def _laid_out(wide: int, deep: int, devices: int) -> tuple[int, int]:
    """Points and seeds that are laid out: a multiple of the devices that share them."""
    if wide >= devices:
        return -(-wide // devices) * devices, deep
    return wide, -(-deep // devices) * devices


def _placed(machine: Machine) -> AbstractContextManager[Any]:
    """The context in which programs are lowered for a machine: the processor beside a GPU."""
    if machine.backend != "cpu" or jax.default_backend() == "cpu":
        return nullcontext()
    return jax.default_device(jax.local_devices(backend="cpu")[0])


def _rows(tree: Any, rows: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[rows], tree)


def _plain(configs: Any, row: int) -> Any:
    """One of several Configs, with Python's numbers."""
    return jax.tree.map(lambda leaf: leaf[row].item(), configs)


@dataclass
class Programs:
    """The programs of a study on this machine, with the data they take."""

    study: Study
    data: Any
    data_digest: str
    identities: Mapping[Program, Identity]  # of those that are called
    machine_of: Callable[[Program], Machine]
    costs: dict[Program, tuple[int, float]] = field(default_factory=dict)  # see `cost`

    def call(self, program: Program, lanes: Lanes) -> tuple[dict[str, np.ndarray], int]:
        """Probes as (seeds, points, ...), and how many lanes there were in a call.

        Lanes that do not fit into memory together are run in halves.
        """
        try:
            return self._call(program, lanes), len(lanes.seeds) * lanes.points
        except (MemoryError, jax.errors.JaxRuntimeError) as error:
            if len(lanes.seeds) * lanes.points == 1 or not out_of_memory(error):
                raise
        axis, *halves = lanes.halves()
        (first, most), (second, other) = (self.call(program, half) for half in halves)
        return {n: np.concatenate([first[n], second[n]], axis) for n in first}, max(most, other)

    def _call(self, program: Program, lanes: Lanes) -> dict[str, np.ndarray]:
        points, seeds = lanes.points, len(lanes.seeds)
        if self.study.simulators[program.simulator].host:
            configs = [_plain(lanes.configs, i) for i in range(points)]
            known = self.identities[program]
            found = [
                run(self.study, program, config, int(seed), self.data, known.runs)
                for seed in lanes.seeds
                for config in configs
            ]
            point = Point(program, configs[0])
            identity.must_be_unchanged(self.study, point, self.data, self.data_digest, known)
            return {
                n: np.stack([cell[n] for cell in found]).reshape(seeds, points, *first.shape)
                for n, first in found[0].items()
            }
        wide, deep = self._widths(program, lanes.wide, lanes.deep)
        configs = _rows(lanes.configs, np.minimum(np.arange(wide), points - 1))
        filled = lanes.seeds[np.minimum(np.arange(deep), seeds - 1)]
        exists = np.outer(np.arange(deep) < seeds, np.arange(wide) < points)
        compiled = self.compiled(program, lanes)
        turn = TURNS if self._kept(program, lanes).lapack else nullcontext()
        with identity.precision_of(program.precision), turn:
            found = jax.block_until_ready(compiled(configs, filled, exists, self.data))
        names = probe_dims(self.study.simulators[program.simulator].probes)
        return {n: np.asarray(getattr(found, n))[:seeds, :points] for n in names}

    def name(self, program: Program, wide: int, deep: int) -> Any:
        """What a program of a width is kept under; None for a simulator of the host."""
        if self.study.simulators[program.simulator].host:
            return None
        runs = self.identities[program].runs
        mode, widths = self.machine_of(program).mode, self._widths(program, wide, deep)
        return runs, self.study.name, program, self.data_digest, mode, widths

    def _widths(self, program: Program, wide: int, deep: int) -> tuple[int, int]:
        return _laid_out(wide, deep, self.machine_of(program).devices)

    def _kept(self, program: Program, lanes: Lanes) -> Kept:
        name = self.name(program, lanes.wide, lanes.deep)
        with _GUARD:
            kept = _COMPILED.setdefault(name, Kept())
            while len(_COMPILED) > KEPT_PROGRAMS:
                del _COMPILED[next(iter(_COMPILED))]
            if kept.compiled is None and crowded():
                compiled = [n for n, other in _COMPILED.items() if other.compiled is not None]
                for old in compiled[: (len(compiled) + 1) // 2]:
                    del _COMPILED[old]
        return kept

    def lower(self, program: Program, lanes: Lanes) -> None:
        """Traces the program of a width, unless that was done."""
        kept = self._kept(program, lanes)
        with kept.lock:
            if kept.lowered is None and kept.compiled is None:
                start = time.perf_counter()
                widths = self._widths(program, lanes.wide, lanes.deep)
                kept.lowered = self._lower(program, lanes.configs, *widths)
                kept.seconds += time.perf_counter() - start

    def compiled(self, program: Program, lanes: Lanes) -> Any:
        """The compiled program of a width; compiled once, whichever thread asks first.

        There is none for a simulator of the host.
        """
        if self.study.simulators[program.simulator].host:
            return None
        kept = self._kept(program, lanes)
        with kept.lock:
            if kept.compiled is None:
                start = time.perf_counter()
                widths = self._widths(program, lanes.wide, lanes.deep)
                lowered = kept.lowered or self._lower(program, lanes.configs, *widths)
                kept.compiled = self._compile(program, lowered, *widths)
                kept.lapack = "@lapack_" in lowered.as_text()
                kept.lowered = None
                kept.seconds += time.perf_counter() - start
                needed = kept.compiled.memory_analysis()  # takes 10 ms on a GPU
                kept.memory = 0 if needed is None else needed.temp_size_in_bytes
            if not kept.fits:
                if kept.memory > MEMORY_SHARE * free_memory():
                    raise MemoryError(
                        f"RESOURCE_EXHAUSTED: {lanes.points * len(lanes.seeds)} trainings at once "
                        f"need {kept.memory / 2**30:.3g} GiB, of {free_memory() / 2**30:.3g} GiB "
                        "that are free for a call"
                    )
                kept.fits = True
            self.costs[program] = kept.memory, kept.seconds
            return kept.compiled

    def cost(self, program: Program) -> tuple[int, float]:
        """The bytes that a call of a compiled program takes, and the seconds it took to compile."""
        return self.costs.get(program, (0, 0.0))

    def _lower(self, program: Program, configs: Any, wide: int, deep: int) -> Any:
        known = self.identities[program]
        machine = self.machine_of(program)
        runs = known.runs if known.known else ""
        with identity.running(runs, program.precision, machine.mode), _placed(machine):
            some = _rows(configs, np.zeros(wide, int))
            arguments = some, np.zeros(deep, np.int32), np.zeros((deep, wide), bool), self.data
            lowered = jax.jit(self._batch(program, wide)).lower(*arguments)
        point = Point(program, _plain(configs, 0))
        identity.must_be_unchanged(self.study, point, self.data, self.data_digest, known)
        return lowered

    def _compile(self, program: Program, lowered: Any, wide: int, deep: int) -> Any:
        keep_compiled_programs()
        with identity.precision_of(program.precision):
            mode = self.machine_of(program).mode
            return lowered.compile(compiler_options=COMPILER[mode])

    def _batch(self, program: Program, wide: int) -> Any:
        """`simulate` for many lanes. Several devices share them, each with loops of its own."""
        simulate = self.study.simulators[program.simulator].simulate
        machine = self.machine_of(program)

        def batch(configs: Any, seeds: Any, exists: Any, data: Any) -> Any:
            rest = () if data is None else (data,)

            def of_seed(seed: Any, exists: Any) -> Any:
                key = seed_key(self.study.name, seed)

                def of_point(cfg: Any, exists: Any) -> Any:
                    with lane_exists(exists):
                        return _probes(self.study, program, simulate(cfg, key, *rest))

                return jax.vmap(of_point)(configs, exists)

            if machine.mode == "wide":
                return jax.vmap(of_seed)(seeds, exists)
            return jax.lax.map(lambda lanes: when(lanes[1].any(), of_seed, *lanes), (seeds, exists))

        if machine.devices == 1:
            return batch
        devices = jax.local_devices()
        points, seeds = ("lanes", None) if wide >= len(devices) else (None, "lanes")
        return jax.shard_map(
            batch,
            mesh=Mesh(np.array(devices), ("lanes",)),
            in_specs=(
                PartitionSpec(points),
                PartitionSpec(seeds),
                PartitionSpec(seeds, points),
                PartitionSpec(),
            ),
            out_specs=PartitionSpec(seeds, points),
            check_vma=False,
        )


def crowded() -> bool:
    """Whether half of the maps of memory are taken that Linux gives a process."""
    try:
        with MAPS.open("rb") as maps:
            return 2 * sum(1 for _ in maps) > int(MOST_MAPS.read_text())
    except (OSError, ValueError):  # not on Linux
        return False


def probe_dims(probes: type) -> dict[str, tuple[str, ...]]:
    """The names of the dims of each probe, from its jaxtyping annotation."""
    return {
        name: tuple(kind.dim_str.split())
        for name, kind in probes.__annotations__.items()
        if hasattr(kind, "dim_str")
    }


def data_of(study: Study, name: str) -> Any:
    """The data set that a program takes, or None. All that is missing for it is named."""
    if not name:
        return None
    try:
        return study.data[name]()
    except DataMissing as first:
        raise real.all_missing(real.read_by(name, study.data[name])) or first from None


def single(study: Study, point: Point, seed: int) -> dict[str, np.ndarray]:
    """The probes of one cell, run by itself."""
    data = data_of(study, point.program.data)
    runs = identity.what_runs(study, point.program, data, "")
    return run(study, point.program, point.config, seed, data, runs)


def run(
    study: Study, program: Program, config: Any, seed: int, data: Any, runs: str
) -> dict[str, np.ndarray]:
    """The probes of one cell, without lanes; `runs` says which code it is made of."""
    simulator = study.simulators[program.simulator]
    rest = () if data is None else (data,)
    key = seed_key(study.name, seed)
    with identity.running(runs, program.precision):
        if simulator.host:
            found = simulator.simulate(config, key, *rest)
        else:
            found = jax.jit(simulator.simulate)(typed(config, program.precision), key, *rest)
    found = _probes(study, program, found)
    return {n: np.asarray(getattr(found, n)) for n in probe_dims(simulator.probes)}


def _probes(study: Study, program: Program, found: Any) -> Any:
    """What a training returned, if it is what the simulator declares."""
    simulator = study.simulators[program.simulator]
    who = f"the simulator '{program.simulator}' of {study.name}"
    sizes: dict[str, tuple[int, str]] = {}
    for name, dims in probe_dims(simulator.probes).items():
        if not hasattr(found, name):
            raise InputError(
                f"{who} returns {type(found).__name__}, not its {simulator.probes.__name__}: "
                f"there is no probe '{name}'"
            )
        value = getattr(found, name)
        kind = simulator.probes.__annotations__[name]
        declared = f"it is declared {kind.__name__.partition('[')[0]} of dims ({', '.join(dims)})"
        probe = f"{who} returns the probe '{name}'"
        if not isinstance(value, (jax.Array, np.ndarray, np.generic, bool, int, float)):
            raise InputError(f"{probe} as a {type(value).__name__}, not an array; {declared}")
        shape = np.shape(value)
        if len(shape) != len(dims):
            raise InputError(f"{probe} with the shape {shape}; {declared}")
        for dim, size in zip(dims, shape, strict=True):
            fixed = (int(dim), "its declaration") if dim.isdecimal() else (size, f"'{name}'")
            known, other = sizes.setdefault(dim, fixed)
            if known != size:
                raise InputError(
                    f"{probe} with the shape {shape}; {declared}, and {dim} is {size} there and "
                    f"{known} in {other}"
                )
        dtype = np.dtype(getattr(value, "dtype", type(value))).name
        if isinstance(kind.dtypes, tuple) and dtype not in kind.dtypes:
            raise InputError(f"{probe} as an array of {dtype}; {declared}")
    return found
