"""The machine: its cores, devices and memory, and what is worth recording of it."""

import os
import platform
from pathlib import Path

import jax
import numpy as np

from provingground import __version__


def workers() -> int:
    """Threads that each pull blocks: one per core on a CPU, two on a GPU to keep it busy."""
    if jax.default_backend() != "cpu":
        return 2
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def device_name() -> str:
    """The accelerator's name, or the processor's with the number of cores in use."""
    kind = jax.devices()[0].device_kind
    if kind != "cpu":
        return kind
    model = _proc("cpuinfo", "model name") or platform.machine()
    return f"{model} ({workers()} cores)"


def free_memory() -> float:
    """Bytes that a call may count on."""
    if stats := jax.devices()[0].memory_stats():
        return stats["bytes_limit"] - stats["bytes_in_use"]
    available = _proc("meminfo", "MemAvailable")
    return float(available.split()[0]) * 1024 / workers() if available else float("inf")


def _proc(file: str, name: str) -> str:
    """An entry of a file of Linux's /proc; empty where there is none."""
    path = Path("/proc") / file
    lines = path.read_text().splitlines() if path.exists() else []
    return next((x.partition(":")[2].strip() for x in lines if x.startswith(name)), "")


def out_of_memory(error: Exception) -> bool:
    return "RESOURCE_EXHAUSTED" in str(error) or "out of memory" in str(error).lower()


def keep_compiled_programs(folder: Path) -> None:
    """Compiled programs persist in a folder, unless jax was told to keep them elsewhere."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def provenance() -> dict[str, str]:
    return {
        "version": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "device": device_name(),
        "backend": jax.default_backend(),
    }
