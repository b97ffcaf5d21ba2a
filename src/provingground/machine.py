"""The machine: its cores, devices and memory, and what is worth recording of it."""

import math
import os
import platform
import re
import stat
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from provingground import __version__
from provingground.errors import InputError
from provingground.lanes import LaneMode
from provingground.terminal import say

LARGEST_ARRAY = 2**50  # bytes, of which no machine has so many


class Machine(NamedTuple):
    """Where trainings run."""

    backend: str
    device: str  # the accelerator's name, or the processor's with the number of its cores
    devices: int  # that share the lanes of a call
    workers: int  # calls at a time
    memory: int = 0  # bytes of each accelerator; 0 where trainings run on a CPU

    @property
    def mode(self) -> LaneMode:
        """How its lanes run."""
        return "serial" if self.backend == "cpu" else "wide"

    def __str__(self) -> str:
        many = f"{self.devices} x " if self.devices > 1 else ""
        calls = "call" if self.workers == 1 else "calls"
        return f"{many}{self.device}, {self.workers} {calls} at a time"


@cache
def here() -> Machine:
    """This machine, as this process may use it."""
    device = jax.local_devices()[0]
    name = _processor() if device.platform == "cpu" else device.device_kind
    memory = (device.memory_stats() or {}).get("bytes_limit", 0)
    return Machine(device.platform, name, jax.local_device_count(), workers(), memory)


@cache
def processor() -> Machine:
    """The processor of this machine, whatever else there is; for simulators with `cpu`."""
    if here().backend == "cpu":
        return here()
    return Machine("cpu", _processor(), 1, cores())


def _processor() -> str:
    model = _proc("cpuinfo", "model name") or platform.machine()
    return f"{model} ({cores()} cores)"


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def workers() -> int:
    """Threads that each pull blocks: one per core on a CPU, two on a GPU to keep it busy.

    A call that is shared by several devices of a CPU keeps as many cores busy.
    """
    if jax.default_backend() != "cpu":
        return 2
    return max(1, cores() // jax.local_device_count())


def free_memory() -> float:
    """Bytes that a call may count on, on each device."""
    if stats := jax.local_devices()[0].memory_stats():
        return stats["bytes_limit"] - stats["bytes_in_use"]
    available = _proc("meminfo", "MemAvailable")
    return float(available.split()[0]) * 1024 / cores() if available else float("inf")


def must_fit(jaxpr: Any, what: str) -> None:
    """Refuses a program with an array that no machine can hold: the compiler would abort."""
    size, shape = largest_array(jaxpr)
    if size > LARGEST_ARRAY:
        raise InputError(
            f"{what} needs an array of shape {shape}, which takes {size / 2**30:.2g} GiB"
        )


def largest_array(jaxpr: Any) -> tuple[int, tuple[int, ...]]:
    """Bytes and shape of the largest array that a program makes."""
    most: tuple[int, tuple[int, ...]] = 0, ()
    for equation in equations(jaxpr):
        for made in equation.outvars:
            shape = getattr(made.aval, "shape", ())
            size = math.prod(shape) * getattr(getattr(made.aval, "dtype", None), "itemsize", 4)
            most = max(most, (size, shape))
    return most


def equations(jaxpr: Any) -> Iterator[Any]:
    """All that a program computes, step by step, inside of its loops too."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        params = list(equation.params.values())
        for inner in jax.tree.leaves(params, is_leaf=lambda p: hasattr(p, "eqns")):
            if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                yield from equations(inner)


def _proc(file: str, name: str) -> str:
    """An entry of a file of Linux's /proc; empty where there is none."""
    path = Path("/proc") / file
    lines = path.read_text().splitlines() if path.exists() else []
    return next((x.partition(":")[2].strip() for x in lines if x.startswith(name)), "")


def out_of_memory(error: Exception) -> bool:
    return "RESOURCE_EXHAUSTED" in str(error) or "out of memory" in str(error).lower()


_CACHE = threading.Lock()
_cached_in: str | None = None  # empty: nowhere


def keep_compiled_programs() -> None:
    """Compiled programs persist in the user's cache, unless jax was told to keep them elsewhere.

    They are native code that jax executes: they are read from a folder to which nobody else has
    access, or not at all.
    """
    global _cached_in
    with _CACHE:
        if _cached_in is not None or getattr(jax.config, "jax_compilation_cache_dir", None):
            return
        import platformdirs

        folder = platformdirs.user_cache_path("provingground") / "compiled"
        if wrong := _shared(folder):
            _cached_in = ""
            say(f"proving: compiled programs are not kept: {wrong}")
            return
        from jax.experimental.compilation_cache import compilation_cache

        _cached_in = str(folder)
        compilation_cache.reset_cache()  # it may be open already, without a folder
        jax.config.update("jax_compilation_cache_dir", _cached_in)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def _shared(folder: Path) -> str:
    """Makes a folder of the user's own; why others may have access to it, if they may."""
    try:
        for path in (folder.parent, folder):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = os.lstat(path)
            if not stat.S_ISDIR(about.st_mode):
                return f"{path} is a link, or not a folder"
            if not hasattr(os, "getuid"):  # Windows: the profile is the user's own
                continue
            if about.st_uid != os.getuid():
                return f"{path} belongs to another user"
            if about.st_mode & (0o077 if path == folder else 0o022):
                return f"others have access to {path}; take it away (chmod 700)"
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return ""


@cache
def commit(root: Path = Path(__file__).parents[2]) -> str:
    """The commit that a checkout of the sources is at; empty where they are none.

    Read from git's files, without running git: what was edited since is not told here, but by the
    fingerprint of the programs.
    """
    try:
        folder = root / ".git"
        if folder.is_file():  # a worktree says where its folder is
            folder = root / folder.read_text().strip().removeprefix("gitdir: ")
        head = (folder / "HEAD").read_text().strip()
        if ref := head.partition("ref: ")[2]:
            shared = folder / "commondir"
            places = [folder, folder / shared.read_text().strip()] if shared.exists() else [folder]
            loose = [place / ref for place in places if (place / ref).is_file()]
            packed = [
                place / "packed-refs" for place in places if (place / "packed-refs").is_file()
            ]
            lines = [line for path in packed for line in path.read_text().splitlines()]
            known = [line.split()[0] for line in lines if line.endswith(f" {ref}")]
            head = loose[0].read_text().strip() if loose else known[0] if known else ""
        return head if re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", head) else ""
    except (OSError, UnicodeDecodeError):
        return ""


def provenance(machine: Machine) -> dict[str, str]:
    return {
        "version": __version__,
        "commit": commit() or f"release {__version__}",
        "date": datetime.now(UTC).date().isoformat(),
        "jax": jax.__version__,
        "numpy": np.__version__,
        "device": machine.device,
        "devices": str(machine.devices),
        "backend": machine.backend,
    }
