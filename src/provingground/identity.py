"""What makes two cells the same: the program that runs, its settings, its seed and its data.

A program's *fingerprint* is the hash of the unbatched `simulate` as the compiler sees it. Lowering
takes up to a second, so a fingerprint is kept in the store under a hash of the code that can be
reached from `simulate` in this process (see `reachable`). Where code alone does not tell what
would run, nothing is kept and every run lowers again.
"""

import hashlib
import json
import re
import sys
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from provingground import reachable
from provingground.config import traced
from provingground.errors import InputError, RunError
from provingground.keys import seed_key
from provingground.lanes import LaneMode, lanes_run
from provingground.machine import equations, largest_array, must_fit
from provingground.reachable import Unknowable
from provingground.study import Study

if TYPE_CHECKING:
    from provingground.grid import Group, Point, Program
    from provingground.store import Store

FINGERPRINT = re.compile(r"[0-9a-f]{40}")
# What can be set in jax that changes what is traced.
FLAGS = (
    "jax_threefry_partitionable",
    "jax_default_prng_impl",
    "jax_random_seed_offset",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_softmax_custom_jvp",
    "jax_disable_jit",
)
# jax keeps what it traced, also of functions inside (the body of a scan, an inner jit), by function
# and context. With the code that runs in the context, nothing traced of other code is taken for it.
_RUNS = jax.make_user_context()
_LOWERED: dict[str, str] = {}  # what was lowered in this process, by what runs


class Identity(NamedTuple):
    """What is known of the program of some cells."""

    fingerprint: str  # under which its cells are kept
    lowered: str  # the hash of the program; differs from the fingerprint where that was adopted
    runs: str  # what all caches of traced and compiled programs are keyed by
    known: bool  # whether the code alone determines the program


def identify(
    study: Study,
    points: "Iterable[Point]",
    data: Any,
    data_digest: str,
    store: "Store",
    trace: bool = True,
    experiment: str = "",
) -> "dict[Program, Identity]":
    """The identities of the programs of some points of an experiment, as they would run now.

    Without `trace` kept ones will do, or none: figures and reports do not trace where the code is
    known.
    """
    code: dict[str, str] = {}
    found = {}
    for point in points:
        program = point.program
        if program.simulator not in code:
            code[program.simulator] = code_of(study, program.simulator, data)
        runs = _named(study, program, data_digest, code[program.simulator])
        lowered = _kept(store, "fingerprints", runs) if runs else None
        if lowered is None and (lowered := _LOWERED.get(runs)) is not None:
            store.set_note("fingerprints", runs, lowered)
        if lowered is None:
            if runs and not trace:
                name = f"{study.name}/{experiment}"
                raise RunError(
                    f"no results of this version of {name} are stored for these settings; `proving "
                    f"run {name}` (or `pg.run`) with the same options first"
                )
            try:
                lowered, read = _hashed(study, point, data)
            except (InputError, RunError):
                raise
            except Exception:  # it will fail again when it is compiled, and be reported then
                lowered, read = f"cannot be traced {uuid.uuid4()}", True
            runs = "" if read else runs
            if runs:
                _LOWERED[runs] = lowered
                store.set_note("fingerprints", runs, lowered)
        adopted = _kept(store, "adopted", _adopted_name(study, program, lowered))
        found[program] = Identity(
            adopted or lowered, lowered, runs or f"lowered {lowered}", known=bool(runs)
        )
    return found


def adopt(study: Study, program: "Program", new: Identity, old: str, store: "Store") -> None:
    """Lets a program take over the cells of another one, which gave the same numbers."""
    store.set_note("adopted", _adopted_name(study, program, new.lowered), old, sync=True)


def _kept(store: "Store", kind: str, name: str) -> str | None:
    """A fingerprint that the store holds, if it is one."""
    known = store.note(kind, name)
    return known if known and FINGERPRINT.fullmatch(known) else None


def _adopted_name(study: Study, program: "Program", lowered: str) -> str:
    return sha([study.name, program.digest(), lowered])[:40]


def sha(thing: Any) -> str:
    """Hash of something that JSON can say."""
    return hashlib.sha256(json.dumps(thing, sort_keys=True, default=str).encode()).hexdigest()


# ------------------------------------------------------------------------- the code that runs


def what_runs(study: Study, program: "Program", data: Any, data_digest: str) -> str:
    """A name for what a program is made of: code, shapes, data, versions and settings of jax.

    Empty where the code alone does not tell.
    """
    return _named(study, program, data_digest, code_of(study, program.simulator, data))


def code_of(study: Study, simulator: str, data: Any) -> str:
    """The hash of the code of a simulator; empty where it does not tell what would run."""
    known = study.simulators[simulator]
    try:
        return reachable.digest(known.simulate, known.config, known.probes, *_kinds(data))
    except Unknowable:
        return ""


def _named(study: Study, program: "Program", data_digest: str, code: str) -> str:
    flags = [str(jax.config.values.get(name)) for name in FLAGS]
    versions = [jax.__version__, np.__version__, reachable.PYTHON]
    what = [study.name, program.digest(), data_digest, code, versions, flags]
    if changes := study.simulators[program.simulator].changes:
        what.append(changes)
    return sha(what)[:40] if code else ""


def _kinds(data: Any) -> list[type]:
    """The classes that a pytree of data is made of, whose methods a simulation may call."""
    found: dict[type, None] = {}
    queue = [data]
    while queue:
        node = queue.pop()
        inner = jax.tree_util.default_registry.flatten_one_level(node)
        if inner is not None:
            found[type(node)] = None
            queue += list(inner[0])
    return list(found)


def must_be_unchanged(
    study: Study, point: "Point", data: Any, data_digest: str, known: Identity
) -> None:
    """Refuses a program that is not the one that was identified, now that it is compiled."""
    if known.known:
        if what_runs(study, point.program, data, data_digest) != known.runs:
            raise RunError(
                f"the code of {study.name} was changed while it ran; what it computed since is not "
                "stored. Run again."
            )
    elif program_hash(study, point, data) != known.lowered:
        raise RunError(
            f"the simulator '{point.program.simulator}' of {study.name} is another one each time "
            "it is traced: it reads a file, the clock, the environment or random numbers that "
            "change. Its results cannot be kept; give it such things as parameters or data."
        )


@contextmanager
def running(runs: str, precision: str, mode: LaneMode = "wide") -> Iterator[None]:
    """The context in which a program is traced, compiled and called.

    `runs` says which code it is made of; empty where that is not known, and then nothing that was
    traced before is used.
    """
    with (
        precision_of(precision),
        jax.default_matmul_precision("highest"),
        lanes_run(mode),
        _RUNS(f"{runs or uuid.uuid4()} {mode}"),
    ):
        yield


def precision_of(precision: str):
    """The context in which programs of a precision are traced and run."""
    return jax.enable_x64(precision == "float64")


def typed(tree: Any, precision: str) -> Any:
    """Python numbers of a Config as arrays: floats in the precision, whole numbers as int32."""

    def cast(x: Any) -> Any:
        if isinstance(x, bool) or not isinstance(x, (int, float)):
            return x
        return np.asarray(x, np.int32 if isinstance(x, int) else precision)

    return jax.tree.map(cast, tree)


# ------------------------------------------------------------------------------ the program


def program_hash(study: Study, point: "Point", data: Any) -> str:
    """Hash of the program as the compiler sees it; of its code where nothing is compiled."""
    return _hashed(study, point, data)[0]


def _hashed(study: Study, point: "Point", data: Any) -> tuple[str, bool]:
    """The hash of a program, and whether something was read while it was traced."""
    simulator, read = study.simulators[point.program.simulator], False
    if simulator.host:
        try:
            text = "host " + reachable.digest(simulator.simulate, simulator.config)
        except Unknowable as why:
            raise InputError(
                f"the simulator '{point.program.simulator}' of {study.name} runs on the host, "
                f"where its code is its identity, and its code does not tell what it does: {why}. "
                "Give it such things as parameters or data."
            ) from None
    else:
        text, read = lowered_text(study, point.program, point.config, data)
    text += simulator.changes  # so that no cell of the study as it is stands for one changed
    return hashlib.sha256(text.encode()).hexdigest()[:40], read


def lowered_text(study: Study, program: "Program", config: Any, data: Any) -> tuple[str, bool]:
    """The unbatched training as the compiler sees it, lowered for the CPU, module name dropped;
    and whether it read a file while it was traced.

    Equal between processes; lane width, device and module name are not in it. Traced anew, in the
    context of compilation.
    """
    # Products are in full precision in all programs when they run, so their text need not say it.
    args = _arguments(study, program, config, data)  # which compiles, and so reads files
    with running("", program.precision), jax.default_matmul_precision("default"):
        with _reading() as read:
            traced = _traced(study, program, args)
        must_fit(traced.jaxpr, f"{study.name} with {dict(program.shape) | dict(program.sizes)}")
        text = traced.lower(lowering_platforms=("cpu",)).as_text().partition("\n")[2]
    if "callback" in text:
        text += " ".join(_of_callbacks(study, traced.jaxpr))
    return text, bool(read)


def bytes_at_once(study: Study, program: "Program", config: Any, data: Any) -> int:
    """The size of the largest array that a training makes: what a lane needs is a few times it."""
    args = _arguments(study, program, config, data)
    with running("", program.precision):
        return largest_array(_traced(study, program, args).jaxpr)[0]


def returned(study: Study, simulate: Any, program: "Program", config: Any, data: Any) -> Any:
    """The shapes and types of what a training returns."""
    args = _arguments(study, program, config, data)
    with running("", program.precision):
        return jax.eval_shape(lambda *a: simulate(*a), *args)


def _arguments(study: Study, program: "Program", config: Any, data: Any) -> tuple[Any, ...]:
    args = (config, seed_key(study.name, 0), *(() if data is None else (data,)))
    with precision_of(program.precision):
        return typed(args, program.precision)


def _traced(study: Study, program: "Program", args: tuple[Any, ...]) -> Any:
    """The unbatched training, traced anew."""
    simulate = study.simulators[program.simulator].simulate
    return jax.jit(lambda *a: simulate(*a)).trace(*args)


def _of_callbacks(study: Study, jaxpr: Any) -> Iterator[str]:
    """The code of functions that a program calls back into Python, which is not in its text.

    They are taken to be pure, as jax asks of them.
    """
    for equation in equations(jaxpr):
        if equation.primitive.name in ("pure_callback", "io_callback"):
            try:
                yield reachable.digest(equation.params["callback"], pure=False)
            except Unknowable as why:
                raise InputError(
                    f"a function that {study.name} calls back from a program has no identity: {why}"
                ) from None


# ------------------------------------------------------------ what is read while it is traced

_HEARS = threading.local()
_READS = ("open", "socket.connect", "subprocess.Popen", "sqlite3.connect")
_hooked = threading.Lock()


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if event in _READS and (heard := getattr(_HEARS, "events", None)) is not None:
        heard.append((event, args[0]))


def _of_python(file: Any) -> bool:
    """Whether a file belongs to Python, to a package or to jax: reading it is no input."""
    if not isinstance(file, (str, bytes, Path)):
        return True  # a file that is open already
    path = Path(file.decode(errors="replace") if isinstance(file, bytes) else file)
    if {"site-packages", "dist-packages", "__pycache__"} & set(path.parts):
        return True
    of_jax = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    folders = [sys.base_prefix, *([of_jax] if of_jax else [])]
    return path.suffix in (".py", ".so") or any(map(path.is_relative_to, folders))


@contextmanager
def _reading() -> Iterator[list[Any]]:
    """What this thread reads inside of the block, packages apart; filled when the block ends."""
    if _hooked.acquire(blocking=False):  # once for all; a hook stays
        sys.addaudithook(_hear)
    files: list[Any] = []
    _HEARS.events = []
    try:
        yield files
    finally:
        heard, _HEARS.events = _HEARS.events, None
        files += [what for event, what in heard if event != "open" or not _of_python(what)]


# --------------------------------------------------------------------------------- the cells


def cell_ids(
    study: Study, group: "Group", fingerprint: str, data_digest: str, seeds: Sequence[int]
) -> NDArray[np.bytes_]:
    """The identities of the cells of a group, as (points, seeds)."""
    program = group.program
    names = traced(group.config)
    shared = [study.name, *program[:2], program.shape, names, fingerprint, data_digest]
    start = hashlib.sha256(sha(shared).encode())
    numbers = [seed.to_bytes(8, "little") for seed in seeds]
    found = np.empty((len(group.points), len(seeds)), "S32")
    for i, values in enumerate((group.values + 0.0).astype("<f8")):  # no negative zero
        point = start.copy()
        point.update(values.tobytes())
        for j, number in enumerate(numbers):
            cell = point.copy()
            cell.update(number)
            found[i, j] = cell.hexdigest()[:32]
    return found


def digest_of_data(data: Any) -> str:
    """Hash of a pytree of arrays."""
    if data is None:
        return ""
    leaves, tree = jax.tree.flatten(data)
    text = hashlib.sha256(str(tree).encode())
    for leaf in map(np.asarray, leaves):
        text.update(f"{leaf.dtype}{leaf.shape}".encode())
        text.update(np.ascontiguousarray(leaf).tobytes())
    return text.hexdigest()
