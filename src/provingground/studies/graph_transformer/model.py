"""Data, network and training of the one-layer Graph Transformer, in the paper's order.

Letters in shapes: N nodes, L labelled nodes, M patterns, Z distances (0, 1, ..., R, and beyond),
R the farthest distance that is sampled, d features, a and b the widths of keys and values, m
neurons, B samples of the neighbourhood kept for each node.

Everything a query node sees of its neighbourhood is how many nodes of each pattern lie at each
distance, as long as features carry no noise. So the training below runs on these counts; `nodes`
has the same training on nodes, and tests show that both are equal.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Key, Num, UInt

from provingground.config import config, mask, par, probe, size
from provingground.keys import normal, signs, stream, uniform
from provingground.nets.losses import hinge, mean_over
from provingground.train import Activation, Optimiser, Trace, by_lane, descend


@config
class Config:
    """The paper's parameters; defaults are those of section 3.5.1, with a ten times larger step.

    Networks are settings: the GCN has `attention=0` (so `W_K = W_Q = 0`), `encoding=0` (so
    `b = 0`) and `core_only=1`; a GT without encoding has `encoding=0`.
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
        "always", "E", "edges inside a discriminative pattern", choices=("always", "topup")
    )
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
    encoding: float = par(1.0, r"\beta", "factor on the distance bias", low=0)
    core_only: float = par(
        0.0, r"\mathcal{T}", "1: the pool is the core ring, 0: all rings", low=0, high=1
    )
    width: int = par(400, "m", "neurons", low=1)
    key_width: int = par(20, "m_a", "query and key width", low=1)
    value_width: int = par(20, "m_b", "value width", low=1)
    key_error: float = par(0.2, r"\delta", "error of initial keys and queries", low=0)
    value_error: float = par(0.1, r"\sigma", "error of initial values", low=0)
    init_scale: float = par(0.01, r"\xi", "s.d. of the initial hidden weights", low=0)
    lr: float = par(0.1, r"\eta", "step size", low=0)
    steps: int = par(300, "T", "steps", low=1, value=True)
    record: int = par(31, "n_t", "recorded steps", low=2)


class Probes(eqx.Module):
    """What one training reports. Losses and attention are with the full pool, not a sample."""

    train_loss: Float[Array, "step"] = probe("training hinge loss", r"\hat f")
    test_loss: Float[Array, "step"] = probe("test hinge loss", "f")
    test_error: Float[Array, "step"] = probe("test error")
    attention_relevant: Float[Array, "step"] = probe("attention on class-relevant nodes")
    attention_disc: Float[Array, "step"] = probe("the same, discriminative queries")
    attention_plain: Float[Array, "step"] = probe("the same, other queries")
    attention_core: Float[Array, "step"] = probe("attention on the core ring")
    dist_bias: Float[Array, "step ring"] = probe("distance bias", "b_z")
    margin: Float[Array, "ring"] = probe("mean winning margin", r"\bar\Delta(z)")
    core_found: Int[Array, ""] = probe("core distance of the graph", "z_m")
    max_ring: Float[Array, ""] = probe("largest core ring", r"\delta_{z_m}")
    confusion: Float[Array, ""] = probe("realised confusion ratio", r"\hat\epsilon_S")
    inconsistent: Float[Array, ""] = probe("flipped fraction of the test set", r"\hat\epsilon_0")
    labelled_plain: Float[Array, ""] = probe("labelled nodes that are not discriminative")
    fewest: Float[Array, ""] = probe("fewest labelled nodes of a pattern and vote")
    ring: Int[Array, "ring"] = probe("distance", "z")
    step: Int[Array, "step"] = probe("step", "t")


# ------------------------------------------------------------------------------- data


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
    distance 2. A pattern is a circle in random order, and each node knows its nearest ones, so
    that all have equally many edges; with "topup" as many as bring the degree to D.
    """
    n, n_d = cfg.nodes, discriminative(cfg)
    disc, degree = nodes.pattern < 2, whole(cfg.degree)
    near_vote = whole(cfg.core) == 1
    wired = jnp.where(near_vote, nodes.vote, -nodes.vote)
    confused = whole(degree.astype(float) * cfg.confusion_ratio)
    bits = jax.random.bits(stream(key, "data/edges"), (n, n), jnp.uint32)

    chosen = jnp.zeros((n, n), bool)
    for pattern, sign in ((0, 1.0), (1, -1.0)):
        wanted = jnp.where(wired == sign, degree - confused, confused)
        k = jnp.where(disc, 0, jnp.minimum(wanted, n_d))
        chosen = chosen | smallest(bits, nodes.pattern == pattern, k)
    chosen = chosen | chosen.T

    found = jnp.sum(chosen, axis=1, dtype=int)
    missing = degree if cfg.disc_edges == "always" else jnp.maximum(degree - found, 0)
    half = jnp.broadcast_to((missing + 1) // 2, (n,))
    i = jnp.arange(n)
    place = jnp.where(nodes.pattern == 1, i - n_d, i)  # on the circle of the pattern
    gap = jnp.abs(place[:, None] - place[None, :])
    near = jnp.minimum(gap, n_d - gap) <= jnp.maximum(half[:, None], half[None, :])
    kin = (nodes.pattern[:, None] == nodes.pattern[None, :]) == near_vote
    inside = disc[:, None] & disc[None, :] & kin & near & (i[:, None] != i[None, :])
    return chosen | inside


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


def labelled(cfg: Config, key: Key[Array, ""], n: int) -> Int[Array, "N"]:
    """All nodes in random order; the first `samples` of them are labelled, the rest is the test."""
    return jnp.argsort(uniform(stream(key, "data/labelled"), (n,)))


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


# ---------------------------------------------------------------------------- network


class Weights(eqx.Module):
    r"""Weights as they act on patterns: $W_K\mu_k$, $W_Q\mu_k$ and $W_V\mu_k$ are columns."""

    w_k: Float[Array, "a M"]
    w_q: Float[Array, "a M"]
    w_v: Float[Array, "b M"]
    w_o: Float[Array, "m b"]
    b: Float[Array, "Z"]
    a: Float[Array, "m"]


def initial_weights(cfg: Config, key: Key[Array, ""], patterns: int) -> Weights:
    r"""Assumption B.2.1: keys, queries and values of patterns are orthonormal up to errors of
    length $\delta$, $\delta$ and $\sigma$; the hidden weights are normal, the read-out is
    $\pm1/\sqrt m$."""

    def errors(name: str, rows: int) -> Float[Array, "rows M"]:
        e = normal(stream(key, name), (patterns, rows)).T
        return e / jnp.linalg.norm(e, axis=0, keepdims=True)

    keys, values = jnp.eye(cfg.key_width, patterns), jnp.eye(cfg.value_width, patterns)
    return Weights(
        w_k=keys + cfg.key_error * errors("init/key", cfg.key_width),
        w_q=keys + cfg.key_error * errors("init/query", cfg.key_width),
        w_v=values + cfg.value_error * errors("init/value", cfg.value_width),
        w_o=cfg.init_scale * normal(stream(key, "init/hidden"), (cfg.width, cfg.value_width)),
        b=jnp.zeros(cfg.reach + 2),
        a=signs(stream(key, "init/readout"), (cfg.width,)) / cfg.width**0.5,
    )


def attend(
    scores: Float[Array, "M"], b: Float[Array, "Z"], counts: Float[Array, "M Z"]
) -> Float[Array, "M Z"]:
    r"""The softmax of (3.1), summed over nodes of equal pattern and distance:
    $p_{kz} \propto C_{kz}\, e^{(W_K\mu_k)^\top W_Q\mu_j + b_z}$."""
    logits = scores[:, None] + b[None, :]
    p = counts * jnp.exp(logits - jax.lax.stop_gradient(logits.max()))
    return p / p.sum()


def outputs(
    cfg: Config,
    w: Weights,
    pattern: Int[Array, "n"],
    counts: Float[Array, "n M Z"],
    activation: Activation = jax.nn.relu,
) -> tuple[Float[Array, "n"], Float[Array, "n M Z"]]:
    r"""(3.1): $F = a^\top \mathrm{ReLU}(W_O \sum_k W_V\mu_k\, p_k)$, and the attention $p$."""
    scores = cfg.attention * jnp.einsum("aj,ak->jk", w.w_q, w.w_k)
    p = jax.vmap(attend, in_axes=(0, None, 0))(scores[pattern], cfg.encoding * w.b, counts)
    hidden = jnp.einsum("mb,bk->mk", w.w_o, w.w_v)  # once for all nodes
    return jnp.einsum("m,nm->n", w.a, activation(p.sum(axis=-1) @ hidden.T)), p


# ------------------------------------------------------------------------------ probes


def measure(
    p: Float[Array, "N M Z"],
    f: Float[Array, "N"],
    nodes: Nodes,
    known: Bool[Array, "N"],
    core: Int[Array, ""],
    b: Float[Array, "Z"],
) -> dict[str, Float[Array, "..."]]:
    """The probes of one step, from outputs and attention of all nodes with their full pools."""
    loss = hinge(nodes.label, f)
    share = p.sum(axis=-1)
    relevant = jnp.where(nodes.label > 0, share[:, 0], share[:, 1])
    disc = nodes.pattern < 2
    return dict(
        train_loss=mean_over(known, loss),
        test_loss=mean_over(~known, loss),
        test_error=mean_over(~known, (nodes.label * f <= 0).astype(f.dtype)),
        attention_relevant=mean_over(known, relevant),
        attention_disc=mean_over(known & disc, relevant),
        attention_plain=mean_over(known & ~disc, relevant),
        attention_core=mean_over(known, jnp.take(p.sum(axis=1), core, axis=-1)),
        dist_bias=b,
    )


def report(
    cfg: Config,
    trace: Trace,
    graph: Graph,
    core: Int[Array, ""],
    known: Bool[Array, "N"],
    confusion: Float[Array, ""],
) -> Probes:
    """The probes of a whole training, from its trace and the graph."""
    nodes, m = graph.nodes, graph.rings.shape[1]
    sizes = jnp.take(graph.rings.sum(axis=1), core, axis=-1)
    plain = known & (nodes.pattern > 1)
    kind = 2 * nodes.pattern + (nodes.vote > 0).astype(int)
    kinds = jax.nn.one_hot(kind, 2 * m, dtype=float)[:, 4:]  # without the discriminative ones
    return Probes(
        **trace.probes,
        margin=winning_margins(graph.rings, nodes.label).mean(axis=0),
        core_found=core,
        max_ring=sizes.max(),
        confusion=confusion,
        inconsistent=mean_over(~known, (nodes.vote != nodes.label).astype(float)),
        labelled_plain=jnp.sum(plain).astype(float),
        fewest=jnp.min(jnp.sum(jnp.where(known[:, None], kinds, 0.0), axis=0)),
        ring=jnp.arange(cfg.reach + 2),
        step=trace.step,
    )


def probe_steps(cfg: Config) -> Int[Array, "step"]:
    """`record` steps, evenly spaced from 0 to `steps`."""
    part = jnp.arange(cfg.record).astype(float) / (cfg.record - 1)
    return jnp.round(part * jnp.asarray(cfg.steps).astype(float)).astype(jnp.int32)


# ---------------------------------------------------------------- training, on counts


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    data: Graph | None = None,
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """Algorithm 4 on counts: every step is on all labelled nodes, each with a sample of its pool.

    `data` is a graph of one's own (see `own.graph`); without it a random one is drawn.
    """
    graph = by_lane(lambda cfg: random_graph(cfg, key), cfg) if data is None else data
    nodes, n = graph.nodes, len(graph.nodes.pattern)
    core = core_distance(winning_margins(graph.rings, nodes.label).mean(axis=0))
    pool = in_pool(cfg, core)

    order, exists = labelled(cfg, key, n), mask(cfg, "samples")
    chosen = order[jnp.arange(size(cfg, "samples")) % n]  # the padding repeats nodes
    known = first_of(order, cfg.samples)
    at_chosen = jax.tree.map(lambda x: x[chosen], nodes)
    seen = by_lane(lambda rings, pool: sample(cfg, key, rings, pool), graph.rings[chosen], pool)
    full = graph.rings * pool.astype(float)[None, None, :]

    def loss(w: Weights, counts: Int[Array, "L M Z"]) -> Float[Array, ""]:
        f, _ = outputs(cfg, w, at_chosen.pattern, counts.astype(float), activation)
        return mean_over(exists, hinge(at_chosen.label, f))

    def look(w: Weights) -> dict[str, Float[Array, "..."]]:
        f, p = outputs(cfg, w, nodes.pattern, full, activation)
        return measure(p, f, nodes, known, core, w.b)

    trace = descend(
        loss,
        initial_weights(cfg, key, graph.rings.shape[1]),
        optimiser(cfg.lr),
        steps=cfg.steps,
        at=probe_steps(cfg),
        batch=lambda t: jax.lax.dynamic_index_in_dim(seen, t % cfg.bank, axis=1, keepdims=False),
        frozen=lambda w: w.a,
        probe=look,
    )
    return report(cfg, trace, graph, core, known, confusion_ratio(seen, at_chosen, core, exists))
