"""Graphs of one's own: from an edge list or a sparse matrix to what the simulator takes.

```python
data = own.graph(edges, groups=2)                # groups by degree, the highest first
own.summary(data, p_star=(0.9, 0.1))             # degrees, sizes, psi, caps, largest row sum
probes = jax.jit(sparse.simulate)(Config(samples=200), seed_key("own", 0), data)
```
Nothing of N x N entries is built: products gather from lists of neighbours.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from provingground.data import graphs
from provingground.errors import InputError

from . import theory
from .graph import Graph, Sparse
from .samplers import GROUP_BITS


def lists(matrix: sp.csr_array) -> Sparse:
    """A symmetric matrix as lists of neighbours; rows of up to 1, 2, 4, ... entries together."""
    n, ends = graphs.node_count(matrix), matrix.indptr
    length = np.diff(ends)
    kind = np.ceil(np.log2(np.maximum(length, 1))).astype(int)
    ids, weights, order = [], [], []
    for k in np.unique(kind):
        rows = np.flatnonzero(kind == k)
        slot = np.arange(2**k)
        exists = slot < length[rows, None]
        at = np.where(exists, ends[rows, None] + slot, 0)
        ids.append(jnp.asarray(np.where(exists, matrix.indices[at], 0), int))
        weights.append(jnp.asarray(np.where(exists, matrix.data[at], 0.0), float))
        order.append(rows)
    place = np.empty(n, int)
    place[np.concatenate(order)] = np.arange(n)
    return Sparse(tuple(ids), tuple(weights), jnp.asarray(place, int))


def groups_by_degree(degree: NDArray[Any], groups: int) -> NDArray[np.int64]:
    """Groups of nodes, the highest degrees first: cuts are even in the logarithm of the degree."""
    logs = np.log(np.maximum(degree, 1))
    low, high = logs.min(), logs.max()
    span = (high - logs) / (high - low) if high > low else np.zeros(len(logs))
    return np.minimum((span * groups).astype(int), groups - 1)


def graph(edges: Any, groups: int = 2, group: Any = None) -> Graph:
    """The normalised adjacency matrix and the degree groups of any graph.

    `edges` is an edge list or a `scipy.sparse` matrix; `group` names the group of each node,
    else it follows from the degrees. Simulators take two groups; samplers up to 16.
    """
    if not 1 <= groups <= 2**GROUP_BITS:
        raise InputError(f"groups = {groups} is not allowed: 1 to {2**GROUP_BITS} of them.")
    given = None if group is None else np.asarray(group)
    nodes = None if given is None or hasattr(edges, "tocoo") else len(given)
    matrix = graphs.adjacency(edges, nodes)
    degree = np.asarray(matrix.sum(axis=1), int)
    if given is None:
        given = groups_by_degree(degree, groups)
    if given.shape != degree.shape or given.dtype.kind not in "iu" or given.min(initial=0) < 0:
        raise InputError(f"groups are whole numbers from 0 on for each of {len(degree)} nodes.")
    if given.max(initial=0) >= 2**GROUP_BITS:
        raise InputError(f"group {given.max()} is one too many: at most {2**GROUP_BITS} groups.")
    return Graph(
        lists(graphs.normalised(matrix)), jnp.asarray(given, int), jnp.asarray(degree, int)
    )


def summary(data: Graph, p_star: Any) -> dict[str, Any]:
    r"""What the conditions ask of a graph, with realised degrees: $N_l$, $d_l$, $\psi_l$, the
    largest scales of (5.8), $\|A^*\|_\infty$ and $\delta$."""
    group, degree = np.asarray(data.group), np.asarray(data.degree)
    p = np.asarray(p_star, float)
    if len(p) <= group.max(initial=0):
        raise InputError(f"{len(p)} scales for {group.max() + 1} groups.")
    sizes = np.bincount(group, minlength=len(p))
    degrees = np.bincount(group, degree, minlength=len(p)) / np.maximum(sizes, 1)
    a: Any = data.a
    lists = zip(a.ids, a.weights, strict=True)
    rows = [(np.asarray(w) * p[group][np.asarray(i)]).sum(axis=1) for i, w in lists]
    return {
        "sizes": sizes,
        "degrees": degrees,
        "psi": theory.psi(degrees, sizes),
        "largest_scale": theory.largest_scale(degrees, sizes),
        "norm_inf": max(float(r.max()) for r in rows),
        "max_degree": int(degree.max()),
    }
