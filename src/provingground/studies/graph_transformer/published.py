"""The published graphs: features, labels, splits and shortest-path distances as plain arrays.

Letters in shapes: N nodes, f features, c classes, w words of a node (features it has), e edges,
Z + 1 distances 0, ..., Z. Of PubMed the graph and the labels are here, and the features of 1060
nodes only; so its votes are those of all nodes.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt
from numpy.typing import NDArray
from scipy.linalg import eigh

from provingground.data import graphs, real

RINGS = 12  # of Figure B.5
FARTHEST = 19  # distances of the encoding: Z = 20 of them, the last for all beyond
ANGLE = np.pi / 4  # from the mean of its class, within which a node is called discriminative
DIRECTIONS = 3  # eigenvectors of a class
AT_ONCE = 512  # nodes whose neighbours are looked up together
GRAPHS = ("cora", "pubmed", "actor")


def features(graph: Any) -> Float[np.ndarray, "N f"]:
    """The features of the nodes that have any, as they are published."""
    rows, columns = (int(n) for n in graph["x_shape"])
    x = np.zeros((rows, columns))
    node = np.repeat(np.arange(rows), np.diff(graph["x_indptr"]))
    x[node, graph["x_indices"]] = graph.get("x_data", 1.0)
    return x


def principal(x: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    r"""The `count` largest eigenvalues of $X^\top X$, falling, and their eigenvectors as columns.

    By the smaller of $X^\top X$ and $XX^\top$, which have the same eigenvalues but for zeros.
    """
    wide = len(x) < x.shape[1]
    gram = x @ x.T if wide else x.T @ x
    count = min(count, len(gram))
    values, vectors = eigh(gram, subset_by_index=[len(gram) - count, len(gram) - 1])
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    if wide:
        vectors = x.T @ vectors / np.sqrt(np.maximum(values, 1e-12))
    return values, vectors


def near_mean(r: Float[np.ndarray, "n k"], mean: Float[np.ndarray, "k"]) -> Bool[np.ndarray, "n"]:
    r"""Which representations lie less than $\pi/4$ from the mean of a class (appendix B.1.1)."""
    sizes = np.linalg.norm(r, axis=1) * np.linalg.norm(mean)
    return r @ mean > np.cos(ANGLE) * np.where(sizes > 0, sizes, np.inf)


def discriminative(x: Float[np.ndarray, "N f"], label: Int[np.ndarray, "N"]) -> NDArray[np.bool_]:
    """The discriminative nodes: near the mean of their own class in its three directions."""
    found = np.zeros(len(label), bool)
    for kind in range(label.max() + 1):
        own = x[label == kind]
        r = own @ principal(own, DIRECTIONS)[1]
        found[label == kind] = near_mean(r, r.mean(axis=0))
    return found


# --------------------------------------------------------------------------- rings, by bits


def bits(nodes: Bool[np.ndarray, "N"]) -> UInt[np.ndarray, "W"]:
    """A set of nodes as 64 bits a word."""
    padded = np.zeros(-(-len(nodes) // 64) * 64, bool)
    padded[: len(nodes)] = nodes
    return np.packbits(padded, bitorder="little").view(np.uint64)


def rings(edges: Int[np.ndarray, "2 e"], n: int, farthest: int) -> Iterator[NDArray[np.uint64]]:
    """For z = 1, ..., `farthest` the nodes at distance z of each node, as bits: breadth first,
    from all nodes at once."""
    matrix = graphs.adjacency(edges.T.astype(int), n)
    near, first = matrix.indices, matrix.indptr
    linked = np.flatnonzero(np.diff(first))
    node = np.arange(n)
    reached = np.zeros((n, -(-n // 64)), np.uint64)
    reached[node, node // 64] = np.uint64(1) << (node % 64).astype(np.uint64)
    for _ in range(farthest):
        after = reached.copy()
        for start in range(0, len(linked), AT_ONCE):
            some = linked[start : start + AT_ONCE]
            low, high = first[some[0]], first[some[-1] + 1]
            after[some] |= np.bitwise_or.reduceat(reached[near[low:high]], first[some] - low)
        yield after & ~reached
        reached = after


def ring_counts(
    edges: Int[np.ndarray, "2 e"], group: Int[np.ndarray, "N"], groups: int, farthest: int
) -> Float[np.ndarray, "N groups Z"]:
    """How many nodes of each group lie at each distance 0, ..., `farthest` of each node; a group
    of -1 is not counted."""
    named = np.stack([bits(group == g) for g in range(groups)])
    found = np.zeros((len(group), groups, farthest + 1), np.float32)
    found[:, :, 0] = group[:, None] == np.arange(groups)
    for z, new in enumerate(rings(edges, len(group), farthest), 1):
        for g in range(groups):
            found[:, g, z] = np.bitwise_count(new & named[g]).sum(axis=1)
    return found


def distances(
    edges: Int[np.ndarray, "2 e"], n: int, node: Int[np.ndarray, "Q"], farthest: int
) -> Int[np.ndarray, "Q N"]:
    """Shortest-path distances from some nodes to all; `farthest` also stands for all beyond."""
    found = np.full((len(node), n), farthest, np.int8)
    found[np.arange(len(node)), node] = 0
    for z, new in enumerate(rings(edges, n, farthest - 1), 1):
        rows = new[node].view(np.uint8)
        found[np.unpackbits(rows, axis=1, count=n, bitorder="little") > 0] = z
    return found


# ------------------------------------------------------------------------------- data of a study


class Votes(NamedTuple):
    """Of each node: its label, and how many voters of each class lie at each distance."""

    label: Int[np.ndarray, "N"]
    all: Float[np.ndarray, "N c Z"]
    discriminative: Float[np.ndarray, "N c Z"]
    edges: Int[np.ndarray, ""]
    features: Int[np.ndarray, ""]


@real.reads(*GRAPHS)
@cache
def votes() -> dict[str, Votes]:
    """What Figure B.5 and Tables B.5, B.6 and B.8 are made of."""

    def of(name: str) -> Votes:
        graph = real.load(name)
        label, classes = graph["labels"].astype(int), int(graph["labels"].max()) + 1
        counts = ring_counts(graph["edges"], label, classes, RINGS)
        voters = counts
        if "feat_nodes" not in graph:
            kind = np.where(discriminative(features(graph), label), label, -1)
            voters = ring_counts(graph["edges"], kind, classes, RINGS)
        links = graphs.adjacency(graph["edges"].T.astype(int), len(label)).nnz // 2
        size = np.array(graph["x_shape"][1], np.int32)
        return Votes(label, counts, voters, np.array(links, np.int32), size)

    return {name: of(name) for name in GRAPHS}


class Described(NamedTuple):
    """Nodes with features, and their labels."""

    x: Float[np.ndarray, "N f"]
    label: Int[np.ndarray, "N"]


@real.reads(*GRAPHS)
@cache
def described() -> dict[str, Described]:
    """What Figures B.1 to B.3 and Tables B.1 to B.3 are made of; of PubMed 1060 nodes."""

    def of(name: str) -> Described:
        graph = real.load(name)
        label = graph["labels"].astype(int)
        known = label[graph["feat_nodes"]] if "feat_nodes" in graph else label
        return Described(features(graph).astype(np.float32), known)

    return {name: of(name) for name in GRAPHS}


class Citations(NamedTuple):
    """A graph to train on. Distances are known from the l nodes that may be labelled and from those
    that test; they are the rows of `dist`, in this order, and `node` names them. Those of a smaller
    `turn` are labelled first. Nodes sorted by their distance from one of the first l: those at
    distance z stand from `first[z]` on, up to `first[z + 1]`. A node without a word has the word f
    instead."""

    words: Int[np.ndarray, "N w"]
    label: Int[np.ndarray, "N"]
    kinds: Int[np.ndarray, "c"]
    node: Int[np.ndarray, "Q"]
    turn: Int[np.ndarray, "l"]
    dist: Int[np.ndarray, "Q N"]
    order: Int[np.ndarray, "l N"]
    first: Int[np.ndarray, "l Z+1"]
    averaged: Float[np.ndarray, "N f"]
    source: Int[np.ndarray, "e"]
    target: Int[np.ndarray, "e"]
    weight: Float[np.ndarray, "e"]


def citations(
    x: Float[np.ndarray, "N f"],
    label: Int[np.ndarray, "N"],
    edges: Int[np.ndarray, "2 e"],
    train: tuple[Int[np.ndarray, "_"], ...],
    test: Int[np.ndarray, "t"],
) -> Citations:
    """A graph of nodes that have words, those that may be labelled, those of one set before those
    of the next, and those that test."""
    n, f = x.shape
    counts = x.sum(axis=1).astype(int)
    words = np.full((n, counts.max()), f, np.int32)
    words[np.arange(counts.max()) < counts[:, None]] = x.nonzero()[1]
    turn = np.repeat(np.arange(len(train), dtype=np.int32), [len(nodes) for nodes in train])
    node = np.concatenate([*train, test]).astype(np.int32)
    dist = distances(edges, n, node, FARTHEST)
    near = dist[: len(turn)]
    spread = graphs.normalised(graphs.adjacency(edges.T.astype(int), n)).tocoo()
    return Citations(
        words,
        label.astype(np.int32),
        np.bincount(label).astype(np.int32),
        node,
        turn,
        dist,
        np.argsort(near, axis=1, kind="stable").astype(np.int16),
        np.stack([(near < z).sum(axis=1) for z in range(FARTHEST + 2)], axis=1, dtype=np.int32),
        (spread @ (x / np.maximum(counts, 1)[:, None])).astype(np.float32),
        spread.coords[1].astype(np.int32),
        spread.coords[0].astype(np.int32),
        spread.data.astype(np.float32),
    )


@cache
def cora() -> Citations:
    """Cora: the 1000 test nodes of the public split test, all others may be labelled, beginning
    with the twenty of each class that this split has."""
    graph = real.load("cora")
    label, public, test = graph["labels"].astype(int), graph["idx_train"], graph["idx_test"]
    rest = np.setdiff1d(np.arange(len(label)), np.concatenate([public, test]))
    return citations(features(graph), label, graph["edges"], (public, rest), test)


@cache
def actor() -> Citations:
    """Actor with the first of its ten splits: 3648 nodes may be labelled, 1520 test."""
    graph = real.load("actor")
    label, part = graph["labels"].astype(int), graph["geom_splits"][0]
    train, test = (np.flatnonzero(part == which) for which in (0, 2))
    return citations(features(graph), label, graph["edges"], (train,), test)
