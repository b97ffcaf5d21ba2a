"""Parameters, random graphs, labelled nodes and samples of their neighbourhoods.

Letters in shapes: N nodes, L labelled nodes, M patterns, Z distances (0, 1, ..., R, and beyond),
R the farthest distance that is sampled, B samples of the neighbourhood kept for each node.

Everything a query node sees of its neighbourhood is how many nodes of each pattern lie at each
distance, as long as features carry no noise.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Key, Num, UInt

from provingground.config import config, par
from provingground.keys import signs, stream, uniform


@config
class Config:
    """The paper's parameters; defaults are those of section 3.5.1, with a ten times larger step.

    Networks are settings: the GCN has `attention=0` (so `W_K = W_Q = 0`), `bias_scale=0` (so
    `b = 0`) and `core_only=1`; a GT without encoding has `bias_scale=0`.
    """

    samples: int = par(128, r"|\mathcal{L}|", "labelled nodes", low=2, value=True, pad=128)
    frac_disc: float = par(0.4, r"\gamma_d", "discriminative fraction", low=0, high=1)
    confusion_ratio: float = par(0.05, r"\epsilon_S", "confusion ratio", low=0, high=1)
    frac_inconsistent: float = par(0.0, r"\epsilon_0", "fraction of flipped labels", low=0, high=1)
    nodes: int = par(1000, "N", "nodes", low=6)
    patterns: int = par(10, "M", "patterns", low=3)
    dim: int = par(20, "d", "feature dimension", low=3)
    degree: int = par(120, "D", "edges of a node to the patterns", low=1, value=True)
    core: int = par(1, "z_m", "distance at which the vote sits", low=1, high=2, value=True)
    disc_edges: str = par(
        "always", "E", "edges inside a discriminative pattern",
        choices=("always", "topup", "literal"),
    )  # fmt: skip
    hubs: int = par(
        0, "h", "nodes of each discriminative pattern that all others choose", low=0, value=True
    )
    missed: int = par(0, "n_0", "kinds of nodes that are never labelled", low=0, value=True)
    noise: float = par(0.0, "c_0", "feature noise s.d. (node level only)", low=0)
    absolute: str = par(
        "none", "b'", "encoding appended to the features (node level only)",
        choices=("none", "laplacian", "walk", "degree"),
    )  # fmt: skip
    positions: int = par(4, "k", "numbers in such an encoding", low=1)
    reach: int = par(2, "R", "farthest distance sampled", low=1)
    sampled: int = par(60, r"|\mathcal{S}|", "nodes sampled at a step", low=1)
    bank: int = par(16, "B", "samples kept for each node and used in turn", low=1)
    readout: str = par(
        "mean", "K", "read-out over the nodes (graph level only)", choices=("mean", "sum")
    )
    test_graphs: int = par(64, "G", "test graphs (graph level only)", low=1)
    attention: float = par(1.0, r"\kappa", "factor on the query-key product", low=0)
    bias_scale: float = par(1.0, r"\beta", "factor on the distance bias", low=0)
    core_only: float = par(
        0.0, r"\mathcal{T}", "1: the pool is the core ring, 0: all rings", low=0, high=1
    )
    width: int = par(400, "m", "neurons", low=1)
    key_width: int = par(20, "m_a", "query and key width", low=1)
    value_width: int = par(20, "m_b", "value width", low=1)
    key_error: float = par(0.2, r"\delta", "error of initial keys and queries", low=0)
    value_error: float = par(0.1, r"\sigma", "error of initial values", low=0)
    key_scale: float = par(1.0, r"s_K", "length of initial keys and queries", low=0)
    value_scale: float = par(1.0, r"s_V", "length of initial values", low=0)
    init_scale: float = par(0.01, r"\xi", "s.d. of the initial hidden weights", low=0)
    hinge_margin: float = par(1.0, "c", "margin of the hinge loss", low=0)
    lr: float = par(0.1, r"\eta", "step size", low=0)
    steps: int = par(300, "T", "steps", low=1, value=True)
    record: int = par(31, "n_t", "recorded steps", low=2)


# ------------------------------------------------------------------------------ nodes


class Nodes(eqx.Module):
    """Patterns 0 and 1 are the paper's discriminative ones, of labels +1 and -1."""

    pattern: Int[Array, "N"]
    vote: Float[Array, "N"]  # the label by the patterns of the core neighbourhood
    label: Float[Array, "N"]  # the label that is seen: an epsilon_0 fraction is flipped


class Graph(eqx.Module):
    """A graph as each node sees it: how many nodes of each pattern lie at each distance."""

    nodes: Nodes
    rings: Float[Array, "N M Z"]


def whole(x: ArrayLike) -> Int[Array, "..."]:
    """The nearest whole number."""
    return jnp.round(jnp.asarray(x)).astype(int)


def discriminative(cfg: Config) -> Int[Array, ""]:
    r"""Nodes of each of the two patterns, $n_d = \gamma_d N / 2$."""
    return whole(cfg.frac_disc * cfg.nodes / 2)


def random_nodes(cfg: Config, key: Key[Array, ""], common: Float[Array, ""] | None = None) -> Nodes:
    """Section 3.5.1: patterns in order of index (edges are random, so any order would do).

    Nodes that are not discriminative get a vote by a fair coin, or a `common` one.
    """
    i, n_d = jnp.arange(cfg.nodes), discriminative(cfg)
    other = 2 + (i - 2 * n_d) % (cfg.patterns - 2)
    pattern = jnp.where(i < n_d, 0, jnp.where(i < 2 * n_d, 1, other))
    coin = signs(stream(key, "data/label"), (cfg.nodes,))
    fair = coin if common is None else jnp.full(cfg.nodes, common)
    vote = jnp.where(pattern == 0, 1.0, jnp.where(pattern == 1, -1.0, fair))
    order = jnp.argsort(jnp.argsort(uniform(stream(key, "data/flip"), (cfg.nodes,))))
    flipped = order < whole(cfg.frac_inconsistent * cfg.nodes)
    return Nodes(pattern, vote, jnp.where(flipped, -vote, vote))


def smallest(
    bits: UInt[Array, "n N"], among: Bool[Array, "N"], k: Int[Array, "n"]
) -> Bool[Array, "n N"]:
    """For each row the `k` columns of smallest bits `among` some: a random subset of size k.

    The k-th smallest is found bit by bit, which is several times faster than sorting.
    """
    ones = among[None, :]

    def refine(step: Int[Array, ""], t: UInt[Array, "n"]) -> UInt[Array, "n"]:
        higher = t | (jnp.uint32(1 << 31) >> step.astype(jnp.uint32))
        below = jnp.sum((bits < higher[:, None]) & ones, axis=1, dtype=int)
        return jnp.where(below <= k, higher, t)

    t = jax.lax.fori_loop(0, 32, refine, jnp.zeros(len(k), jnp.uint32))
    return (bits < t[:, None]) & ones


def random_edges(cfg: Config, key: Key[Array, ""], nodes: Nodes) -> Bool[Array, "N N"]:
    r"""Section 3.5.1: a non-discriminative node has $D(1-\epsilon_S)$ edges to the pattern of its
    vote and $D\epsilon_S$ to the other; a discriminative node has `degree` edges to its own kind.

    With `core=2` patterns are exchanged: neighbours are of the other class, the vote sits at
    distance 2. Of the edges inside a pattern, "always" and "topup" put it on a circle in random
    order, on which each node knows its nearest ones: D of them, or as many as bring the degree to
    D. "literal" gives one node after another random ones until its degree is D. The first `hubs`
    nodes of a pattern are among all that are chosen.
    """
    n, n_d = cfg.nodes, discriminative(cfg)
    i, disc, degree = jnp.arange(n), nodes.pattern < 2, whole(cfg.degree)
    place = jnp.where(nodes.pattern == 1, i - n_d, i)  # inside the pattern
    near_vote = whole(cfg.core) == 1
    wired = jnp.where(near_vote, nodes.vote, -nodes.vote)
    confused = whole(degree.astype(float) * cfg.confusion_ratio)
    bits = jax.random.bits(stream(key, "data/edges"), (n, n), jnp.uint32)
    first = disc & (place < whole(cfg.hubs))
    order = jnp.where(first[None, :], place.astype(jnp.uint32)[None, :], bits)

    chosen = jnp.zeros((n, n), bool)
    for pattern, sign in ((0, 1.0), (1, -1.0)):
        wanted = jnp.where(wired == sign, degree - confused, confused)
        k = jnp.where(disc, 0, jnp.minimum(wanted, n_d))
        chosen = chosen | smallest(order, nodes.pattern == pattern, k)
    chosen = chosen | chosen.T

    kin = (nodes.pattern[:, None] == nodes.pattern[None, :]) == near_vote
    kin = kin & disc[:, None] & disc[None, :] & (i[:, None] != i[None, :])
    if cfg.disc_edges == "literal":
        return one_after_another(chosen, kin, bits, degree)
    found = jnp.sum(chosen, axis=1, dtype=int)
    missing = degree if cfg.disc_edges == "always" else jnp.maximum(degree - found, 0)
    half = jnp.broadcast_to((missing + 1) // 2, (n,))
    gap = jnp.abs(place[:, None] - place[None, :])
    near = jnp.minimum(gap, n_d - gap) <= jnp.maximum(half[:, None], half[None, :])
    return chosen | (kin & near)


def one_after_another(
    edges: Bool[Array, "N N"],
    kin: Bool[Array, "N N"],
    bits: UInt[Array, "N N"],
    degree: Int[Array, ""],
) -> Bool[Array, "N N"]:
    """Each node in turn gets random edges to its kin until its degree is `degree`."""

    def add(edges: Bool[Array, "N N"], i: Int[Array, ""]) -> tuple[Bool[Array, "N N"], None]:
        free = kin[i] & ~edges[i]
        missing = jnp.maximum(degree - jnp.sum(edges[i], dtype=int), 0)
        k = jnp.minimum(missing, jnp.sum(free, dtype=int))
        row = edges[i] | smallest(bits[i][None], free, k[None])[0]
        return edges.at[i].set(row).at[:, i].set(row), None

    return jax.lax.scan(add, edges, jnp.arange(len(edges)))[0]


def distances(edges: Bool[Array, "N N"], reach: int) -> Int[Array, "N N"]:
    """Shortest-path distances up to `reach`; all that is farther is `reach + 1`."""
    n = len(edges)
    near = jnp.eye(n, dtype=bool)
    dist = jnp.where(near, 0, reach + 1).astype(int)
    step = edges.astype(float)
    for z in range(1, reach + 1):
        near = (edges if z == 1 else near.astype(float) @ step > 0) | near
        dist = jnp.where(near & (dist > z), z, dist)
    return dist


def ring_counts(
    dist: Int[Array, "N N"], pattern: Int[Array, "N"], patterns: int, reach: int
) -> Float[Array, "N M Z"]:
    """How many nodes of each pattern lie at each distance from each node."""
    kind = jax.nn.one_hot(pattern, patterns, dtype=float)
    rings = [(dist == z).astype(float) @ kind for z in range(reach + 2)]
    return jnp.stack(rings, axis=-1)


def random_graph(cfg: Config, key: Key[Array, ""]) -> Graph:
    """The random graph of section 3.5.1."""
    nodes = random_nodes(cfg, key)
    dist = distances(random_edges(cfg, key, nodes), cfg.reach)
    return Graph(nodes, ring_counts(dist, nodes.pattern, cfg.patterns, cfg.reach))


def winning_margins(rings: Float[Array, "N M Z"], label: Float[Array, "N"]) -> Float[Array, "N Z"]:
    r"""(3.5): $\Delta_n(z) = |\mathcal{D}_*^n \cap \mathcal{N}_z^n| -
    |\mathcal{D}_\#^n \cap \mathcal{N}_z^n|$."""
    return label[:, None] * (rings[:, 0, :] - rings[:, 1, :])


def core_distance(margin: Float[Array, "Z"]) -> Int[Array, ""]:
    r"""(3.6): $z_m = \arg\max_{z \geq 1} \bar\Delta(z)$; distance 0 is the node itself."""
    return 1 + jnp.argmax(margin[1:]).astype(int)


# ------------------------------------------------------------- the labelled nodes and their pools


def kinds(nodes: Nodes) -> Int[Array, "N"]:
    """A pattern and a vote make a kind; those of the discriminative patterns are 0 to 3."""
    return 2 * nodes.pattern + (nodes.vote > 0).astype(int)


def labelled(cfg: Config, key: Key[Array, ""], nodes: Nodes) -> Int[Array, "N"]:
    """All nodes in random order, the `missed` first kinds last of all; the first `samples` of them
    are labelled, the rest is the test."""
    kind = kinds(nodes)
    last = (kind > 3) & (kind < 4 + whole(cfg.missed))
    u = uniform(stream(key, "data/labelled"), nodes.pattern.shape)
    return jnp.argsort(u + last.astype(u.dtype))


def first_of(order: Int[Array, "N"], count: ArrayLike) -> Bool[Array, "N"]:
    """Which nodes come first in an order."""
    return jnp.zeros(len(order), bool).at[order].set(jnp.arange(len(order)) < whole(count))


def in_pool(cfg: Config, core: Int[Array, ""]) -> Bool[Array, "Z"]:
    r"""The distances of the pool $\mathcal{T}^n$: up to `reach`, or the core ring; and the node."""
    z = jnp.arange(cfg.reach + 2)
    ring = jnp.where(jnp.asarray(cfg.core_only) > 0.5, z == core, z <= cfg.reach)
    return (z == 0) | (ring & (z > 0))


def draw(u: Float[Array, "draws"], contents: Int[Array, "cells"]) -> Int[Array, "cells"]:
    """Balls of each colour among those drawn from an urn, without putting them back."""

    def one(left: Int[Array, "cells"], u: Float[Array, ""]) -> tuple[Int[Array, "cells"], None]:
        ends = jnp.cumsum(left)
        ball = jnp.floor(u * ends[-1].astype(float)).astype(left.dtype)
        drawn = (ends > ball) & (ends - left <= ball)
        return left - drawn.astype(left.dtype), None

    return contents - jax.lax.scan(one, contents, u)[0]


def sample(
    cfg: Config, key: Key[Array, ""], rings: Float[Array, "L M Z"], pool: Bool[Array, "Z"]
) -> Int[Array, "L B M Z"]:
    r"""Counts of the samples $\mathcal{S}^{n,t}$: the node, and `sampled` others of its pool.

    Uniform sampling without replacement makes the counts hypergeometric, so an urn gives them
    exactly. Each node keeps `bank` of them, used in turn.
    """
    count, m, z = rings.shape
    urn = (rings * pool.astype(float)[None, None, :])[..., 1:-1]
    u = uniform(stream(key, "batch"), (count, cfg.bank, cfg.sampled))
    contents = urn.reshape(count, -1).astype(jnp.int32)  # exact: they are whole numbers
    drawn = jax.vmap(jax.vmap(draw, in_axes=(0, None)))(u, contents)
    drawn = drawn.reshape(count, cfg.bank, m, z - 2)
    self_ = jnp.broadcast_to(rings[:, None, :, :1].astype(jnp.int32), (count, cfg.bank, m, 1))
    beyond = jnp.zeros_like(self_)
    return jnp.concatenate([self_, drawn, beyond], axis=-1).astype(jnp.int8)


def confusion_ratio(
    seen: Num[Array, "L B M Z"], nodes: Nodes, core: Int[Array, ""], exists: Bool[Array, "L"]
) -> Float[Array, ""]:
    """(3.7): confusion nodes among the discriminative ones of the sampled core ring, averaged
    over samples and labelled non-discriminative nodes."""
    ring = jnp.take(seen[:, :, :2], core, axis=-1).astype(float)
    confused = jnp.where(nodes.label[:, None] > 0, ring[..., 1], ring[..., 0])
    both = ring.sum(axis=-1)
    counts = (both > 0) & (exists & (nodes.pattern > 1))[:, None]
    ratio = jnp.where(counts, confused / jnp.maximum(both, 1.0), 0.0)
    return ratio.sum() / jnp.maximum(jnp.sum(counts), 1).astype(ratio.dtype)
