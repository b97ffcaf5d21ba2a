"""Sparse graphs: adjacency, truncated shortest-path distances, normalised adjacency.

Graphs are symmetric `scipy.sparse` matrices. Distances are found for a block of nodes at a time
by breadth-first search on the sparse graph, so that no array of N x N entries is ever needed.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from provingground.errors import InputError

BLOCK = 256  # nodes that are searched from together


def adjacency(graph: Any, nodes: int | None = None) -> sp.csr_array:
    """The undirected graph of an edge list (pairs of node numbers) or of a sparse matrix.

    Directions and weights are dropped, and so are loops. `nodes` is the number of nodes where
    the largest number in the edge list does not tell.

    >>> adjacency([(0, 1), (2, 1)]).toarray().astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """
    if sp.issparse(graph):
        matrix: Any = sp.coo_array(graph)
        (row, col), (n, width) = matrix.coords, matrix.shape
        if n != width or nodes not in (None, n):
            raise InputError(
                f"an adjacency matrix is square, with a row for each node; this is {n} x {width}."
            )
        kept = matrix.data != 0
        row, col = row[kept], col[kept]
    else:
        pairs = np.asarray(graph)
        if pairs.size == 0:
            pairs = np.zeros((0, 2), int)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise InputError("an edge list has two whole numbers in each row.")
        row, col = pairs.T
        n = int(pairs.max(initial=-1)) + 1 if nodes is None else nodes
        if pairs.min(initial=0) < 0 or pairs.max(initial=-1) >= n:
            raise InputError(f"the edge list names nodes outside 0 to {n - 1}.")
    apart = row != col
    row, col = row[apart], col[apart]
    ones = np.ones(2 * len(row), bool)
    where = np.concatenate([row, col]), np.concatenate([col, row])
    return sp.csr_array(sp.coo_array((ones, where), shape=(n, n)))  # doubles are summed: still True


def node_count(graph: sp.csr_array) -> int:
    """The number of nodes."""
    shape: Any = graph.shape
    return int(shape[0])


def _search(
    graph: sp.csr_array, sources: NDArray[np.intp], limit: int
) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
    """Breadth-first: for z = 0, ..., limit - 1 the pairs (row of a source, node) at distance z."""
    if not 0 < limit < 127:
        raise InputError(f"limit = {limit} is not allowed: distances are cut at 1 to 126.")
    seen = np.zeros((len(sources), node_count(graph)), bool)
    steps: Any = graph.astype(np.int32)
    rows, cols = np.arange(len(sources)), sources
    for z in range(limit):
        seen[rows, cols] = True
        yield z, rows, cols
        if z == limit - 1:
            return  # what is farther is not asked for
        ones = np.ones(len(rows), np.int32)
        rows, cols = (sp.csr_array((ones, (rows, cols)), shape=seen.shape) @ steps).nonzero()
        new = ~seen[rows, cols]
        rows, cols = rows[new], cols[new]


def distances(graph: sp.csr_array, sources: ArrayLike, limit: int) -> NDArray[np.int8]:
    """Shortest-path distances from each source to all nodes; `limit` also stands for all beyond.

    >>> path = adjacency([(0, 1), (1, 2), (2, 3), (3, 4)])
    >>> distances(path, [0], limit=3)
    array([[0, 1, 2, 3, 3]], dtype=int8)
    """
    at = np.asarray(sources, int)
    dist = np.full((len(at), node_count(graph)), limit, np.int8)
    for z, rows, cols in _search(graph, at, limit):
        dist[rows, cols] = z
    return dist


def distance_blocks(
    graph: sp.csr_array, limit: int, block: int = BLOCK
) -> Iterator[tuple[slice, NDArray[np.int8]]]:
    """All distances, for one block of sources after another."""
    n = node_count(graph)
    for start in range(0, n, block):
        stop = min(start + block, n)
        yield slice(start, stop), distances(graph, np.arange(start, stop), limit)


def ring_counts(
    graph: sp.csr_array, group: ArrayLike, groups: int, limit: int
) -> NDArray[np.float32]:
    """How many nodes of each group lie at each distance 0, ..., `limit` (and beyond) of each node.

    >>> path = adjacency([(0, 1), (1, 2)])
    >>> ring_counts(path, [0, 1, 1], groups=2, limit=2)[0].astype(int).tolist()
    [[1, 0, 0], [0, 1, 1]]
    """
    kind, n = np.asarray(group), node_count(graph)
    found = np.zeros((n, groups, limit + 1), np.float32)
    for start in range(0, n, BLOCK):
        sources = np.arange(start, min(start + BLOCK, n))
        for z, rows, cols in _search(graph, sources, limit):
            counts = np.bincount(rows * groups + kind[cols], minlength=len(sources) * groups)
            found[sources, :, z] = counts.reshape(-1, groups)
    found[:, :, limit] = np.bincount(kind, minlength=groups) - found.sum(axis=2)
    return found


def normalised(graph: sp.csr_array, loops: bool = True) -> sp.csr_array:
    r"""$D^{-1/2} \tilde A D^{-1/2}$ with $\tilde A = A + I$ (or $A$ without `loops`).

    >>> normalised(adjacency([(0, 1)])).toarray().round(3).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    matrix = graph.astype(float)
    if loops:
        matrix = matrix + sp.eye_array(node_count(graph))
    degree = np.asarray(matrix.sum(axis=1), float)
    scale = sp.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1.0)))  # a lone node stays 0
    return sp.csr_array(scale @ matrix @ scale)
