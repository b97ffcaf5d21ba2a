"""Graphs of one's own: from an edge list or a sparse matrix to what the simulators take.

```python
data = any_graph.graph(edges, pattern, label)          # patterns 0 and 1 discriminate
any_graph.summary(data)                                # margins, core distance, ...
probes = jax.jit(simulate)(Config(samples=200), seed_key("own", 0), data)
```
Nothing of N x N entries is built: distances are searched on the sparse graph in blocks.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from provingground.data import graphs
from provingground.errors import InputError

from .data import Graph, Nodes, core_distance, winning_margins
from .nodes import Features, Pool


def _labels(label: ArrayLike, n: int) -> NDArray[np.float64]:
    y = np.asarray(label, float)
    if y.shape != (n,) or not np.isin(y, (-1, 1)).all():
        raise InputError(f"labels are one of -1 and 1 for each of the {n} nodes.")
    return y


def graph(edges: Any, pattern: ArrayLike, label: ArrayLike, reach: int = 2) -> Graph:
    """The counts of patterns by distance of any graph: `data` of `model.simulate`.

    `edges` is an edge list or a `scipy.sparse` matrix. Patterns are whole numbers, 0 and 1 for
    the discriminative ones of labels +1 and -1. The label by vote is the sign of the winning
    margin at the core distance (where that is zero, the label itself).
    """
    kinds = np.asarray(pattern)
    if kinds.ndim != 1 or kinds.dtype.kind not in "iu" or kinds.min(initial=0) < 0:
        raise InputError("patterns are whole numbers from 0 on, one for each node.")
    y = _labels(label, len(kinds))
    matrix = graphs.adjacency(edges, None if hasattr(edges, "tocoo") else len(kinds))
    if (n := graphs.node_count(matrix)) != len(kinds):
        raise InputError(f"{len(kinds)} patterns for a graph of {n} nodes.")
    rings = graphs.ring_counts(matrix, kinds, max(3, int(kinds.max()) + 1), reach + 1)
    margins = y[:, None] * (rings[:, 0] - rings[:, 1])
    core = 1 + int(margins.mean(axis=0)[1:].argmax())
    vote = np.where(margins[:, core] == 0, y, y * np.sign(margins[:, core]))
    nodes = Nodes(jnp.asarray(kinds, int), jnp.asarray(vote, float), jnp.asarray(y, float))
    return Graph(nodes, jnp.asarray(rings, float))


def features(
    edges: Any,
    x: ArrayLike,
    label: ArrayLike,
    pattern: ArrayLike,
    reach: int = 2,
    sampled: int = 60,
    bank: int = 8,
    seed: int = 0,
) -> Features:
    """The same with features of any kind: `data` of `nodes.simulate`.

    Each node gets `bank` random samples of `sampled` nodes from its rings 1 to `reach`, and one
    more to be tested on. `pattern` says which nodes discriminate (0 and 1); it is used for
    margins and probes alone.
    """
    made = graph(edges, pattern, label, reach)
    given = np.asarray(x, float)
    n = len(made.nodes.pattern)
    if given.ndim != 2 or len(given) != n:
        raise InputError(f"features are a row for each of the {n} nodes.")
    matrix = graphs.adjacency(edges, None if hasattr(edges, "tocoo") else n)
    rng = np.random.default_rng(seed)
    ids = np.zeros((n, bank + 1, sampled + 1), np.int32)
    dist = np.zeros(ids.shape, np.int8)
    exists = np.zeros(ids.shape, bool)
    ids[:, :, 0], exists[:, :, 0] = np.arange(n)[:, None], True
    for rows, found in graphs.distance_blocks(matrix, reach + 1):
        for node, row in zip(range(n)[rows], found, strict=True):
            pool = np.flatnonzero((row > 0) & (row <= reach))
            count = min(sampled, len(pool))
            for k in range(bank + 1):
                drawn = rng.choice(pool, count, replace=False)
                ids[node, k, 1 : count + 1], dist[node, k, 1 : count + 1] = drawn, row[drawn]
                exists[node, k, 1 : count + 1] = True
    pools = Pool(jnp.asarray(ids), jnp.asarray(dist), jnp.asarray(exists))
    return Features(
        made,
        jnp.asarray(given, float),
        Pool(pools.ids[:, :-1], pools.dist[:, :-1], pools.exists[:, :-1]),
        Pool(pools.ids[:, -1], pools.dist[:, -1], pools.exists[:, -1]),
    )


def summary(data: Graph) -> dict[str, Any]:
    """What the theory asks of a graph: margins, core distance, confusion, inconsistent labels.

    `confusion_ratio` is (3.7) with whole rings in place of samples; `frac_inconsistent` the
    fraction of nodes whose margin at the core distance is not positive (Assumption 3.4.2).
    """
    margins = winning_margins(data.rings, data.nodes.label)
    mean = margins.mean(axis=0)
    core = int(core_distance(mean))
    ring, y = np.asarray(data.rings[:, :2, core]), np.asarray(data.nodes.label)
    both = ring.sum(axis=1)
    plain = (np.asarray(data.nodes.pattern) > 1) & (both > 0)
    confused = np.where(y > 0, ring[:, 1], ring[:, 0])
    return {
        "margin": np.asarray(mean),
        "core_distance": core,
        "confusion_ratio": float((confused[plain] / both[plain]).mean()) if plain.any() else 0.0,
        "frac_disc": float((np.asarray(data.nodes.pattern) < 2).mean()),
        "frac_inconsistent": float((np.asarray(margins[:, core]) <= 0).mean()),
        "max_ring": int(np.asarray(data.rings[:, :, core]).sum(axis=1).max()),
    }
