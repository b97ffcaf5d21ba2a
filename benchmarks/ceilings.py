"""What this machine can do at best, measured in this process: the ceilings over every workload."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
from benchmarks.ladder import TORCH
from jax import Array

from provingground.machine import workers


def rate(work: float, call: Callable[[], Any], threads: int = 1, calls: int = 5) -> float:
    """`work` per second: the best of some calls, each by all threads at once."""
    with ThreadPoolExecutor(threads) as pool:
        seconds = []
        for _ in range(calls + 1):
            start = time.perf_counter()
            for done in [pool.submit(call) for _ in range(threads)]:
                done.result()
            seconds.append(time.perf_counter() - start)
    return threads * work / min(seconds[1:])


def of_jax() -> dict[str, float]:
    """Products use all cores by themselves; the rest is asked from as many threads as ours has.

    Arrays stay where they are: fresh memory would be measured instead. Draws are as large as
    those of a training (on a CPU they fit into its cache).
    """
    gpu = jax.default_backend() != "cpu"
    n, size, draws, drawn = (8192, 1 << 28, 8, 1 << 26) if gpu else (2048, 1 << 24, 64, 1 << 16)
    threads, times = 1 if gpu else workers(), 8
    a, x, keys = jnp.ones((n, n)), jnp.ones(size), jax.random.split(jax.random.key(0), draws)
    with jax.default_matmul_precision("highest"):
        product = jax.jit(jnp.matmul).lower(a, a).compile()

    def copies(x: Array) -> Array:
        return jax.lax.fori_loop(0, times, lambda _, x: jax.lax.optimization_barrier(x + 1), x)

    def normals(keys: Array) -> Array:
        def last(key: Array) -> Array:  # the barrier keeps the others from being left out
            return jax.lax.optimization_barrier(jax.random.normal(key, (drawn,)))[-1]

        return jax.lax.map(last, keys)

    copy = jax.jit(copies).lower(x).compile()
    normal = jax.jit(normals).lower(keys).compile()
    return {
        "flops": rate(2.0 * n**3, lambda: jax.block_until_ready(product(a, a))),
        "bytes": rate(8.0 * size * times, lambda: jax.block_until_ready(copy(x)), threads),
        "normals": rate(draws * drawn, lambda: jax.block_until_ready(normal(keys)), threads),
    }


def of_torch() -> dict[str, float]:
    import torch
    from benchmarks.peers import WIDE, randn

    n, size = (8192, 1 << 26) if WIDE else (2048, 1 << 16)
    a, kept = randn(n, n), randn(size)

    def finished(call: Callable[[], Any]) -> None:
        call()
        if WIDE:
            torch.cuda.synchronize()

    return {
        "flops": rate(2.0 * n**3, lambda: finished(lambda: a @ a)),
        "normals": rate(size, lambda: finished(lambda: kept.normal_())),
    }


def ceilings() -> dict[str, dict[str, float]]:
    return {"jax": of_jax()} | ({"torch": of_torch()} if TORCH else {})
