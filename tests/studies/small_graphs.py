"""Small graphs and settings on which `graph_sampling` is tested."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from provingground import identity
from provingground.keys import seed_key
from provingground.studies.graph_sampling import (
    algorithm2,
    model,
    samplers,
    sparse,
)
from provingground.studies.graph_sampling.graph import (
    Graph,
    aggregate,
    matched_stubs,
    random_graph,
    random_sparse_graph,
)
from provingground.studies.graph_sampling.model import (
    Config,
    Fixed,
    Weights,
    batch_weights,
    drawn_graph,
    initial_weights,
    sample,
)

TINY: dict[str, Any] = dict(
    nodes=40, group_share=0.25, degree_1=6, degree_2=2, dim=3, teacher=4, samples=25, width=6,
    steps=12, record=3, lr=0.02, drawn=60, outputs_drawn=2,
)  # fmt: skip


def jit(function):
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


DENSE, SPARSE, ALGORITHM = (jit(m.simulate) for m in (model, sparse, algorithm2))
DRAWN = jit(lambda cfg, key: drawn_graph(cfg, key))
START = jit(lambda cfg, key: initial_weights(cfg, key, 10, 2))
SAMPLE, BATCH = jit(sample), jit(batch_weights)


def setting(precision="float64", **changes):
    return identity.typed(Config(**(TINY | changes)), precision)


def key(seed=0):
    return seed_key("graph_sampling", seed)


def bits(seed, *shape):
    """Random words by numpy: a program for each shape would have to be compiled."""
    return jnp.asarray(np.random.default_rng(seed).integers(0, 2**32, shape, np.uint32))


FULL_GRAPH, SPARSE_GRAPH, STUBS = jit(random_graph), jit(random_sparse_graph), jit(matched_stubs)


@functools.cache
def graph_in(x64, seed, n, sparse, high, low) -> Graph:
    group = jnp.where(jnp.arange(n) < n // 4, 0, 1)
    degree = jnp.where(group == 0, high, low).astype(int)
    return (SPARSE_GRAPH if sparse else FULL_GRAPH)(bits(seed, high + 1, n), group, degree)


def small_graph(seed=0, n=40, sparse=False, high=6, low=2) -> Graph:
    return graph_in(jax.config.jax_enable_x64, seed, n, sparse, high, low)  # pyright: ignore


PRODUCT = jit(aggregate)


def dense(graph: Graph) -> np.ndarray:
    return np.asarray(PRODUCT(graph.a, jnp.eye(len(graph.group))), float)


def weights(seed, d, m, k) -> tuple[Weights, Fixed]:
    rng = np.random.default_rng(seed)
    w, v, b1, b2, c = (rng.normal(size=s) for s in ((d, m), (m, m), (m,), (m,), (m, k)))
    return Weights(jnp.array(w), jnp.array(v)), Fixed(*map(jnp.array, (b1, b2, c)))


def same(a, b, rtol=1e-9, atol=1e-12, but=()):
    for field in dataclasses.fields(a):
        if field.name not in but:
            left, right = getattr(a, field.name), getattr(b, field.name)
            np.testing.assert_allclose(left, right, rtol, atol, err_msg=field.name)


def groups_of(group, kept, p_star):
    return samplers.groups(jnp.asarray(group), jnp.asarray(kept), jnp.asarray(p_star))


DRAWS = 4000
SAMPLES = jit(jax.vmap(samplers.group_sample, in_axes=(0, None, None)))
