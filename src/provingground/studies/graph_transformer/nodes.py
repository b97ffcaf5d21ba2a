"""The same training on nodes: features with noise, softmax over nodes, other encodings.

Letters in shapes as in `model`; S nodes of a pool. On a random graph without noise every probe is
that of `model.simulate`: the sampled nodes are chosen so that their counts are its counts.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import mask, size
from provingground.keys import normal, stream, uniform
from provingground.nets.losses import mean_over
from provingground.train import Activation, Optimiser, descend

from .data import (
    Config,
    Graph,
    Nodes,
    confusion_ratio,
    core_distance,
    distances,
    first_of,
    in_pool,
    labelled,
    random_edges,
    random_nodes,
    ring_counts,
    sample,
    winning_margins,
)
from .model import Probes, Weights, hinge, initial_weights, measure, probe_steps, report

__all__ = ["Config", "Probes", "simulate"]


class Pool(eqx.Module):
    """The nodes that a query attends to: their numbers, distances, and which of them exist."""

    ids: Int[Array, "*of S"]
    dist: Int[Array, "*of S"]
    exists: Bool[Array, "*of S"]


class Features(eqx.Module):
    """A graph with features: what a training on nodes needs. See `any_graph.features`."""

    graph: Graph
    x: Float[Array, "N d"]
    samples: Pool  # (N, B, S)
    test: Pool  # (N, S)


# ---------------------------------------------------------------------------- network


def attend(cfg: Config, w: Weights, at: Float[Array, "d"], x: Any, pool: Pool) -> Any:
    r"""The softmax of (3.1): $p_s \propto e^{(W_K x_s)^\top W_Q x_n + b_{z(s,n)}}$."""
    logits = cfg.attention * (x @ w.w_k.T) @ (w.w_q @ at) + cfg.bias_scale * w.b[pool.dist]
    return jax.nn.softmax(jnp.where(pool.exists, logits, -jnp.inf))


def output(
    cfg: Config,
    w: Weights,
    at: Float[Array, "d"],
    x: Float[Array, "N d"],
    pool: Pool,
    activation: Activation = jax.nn.relu,
) -> tuple[Float[Array, ""], Float[Array, "S"]]:
    r"""(3.1): $F(x_n) = a^\top \mathrm{ReLU}(W_O \sum_s W_V x_s p_s)$, and the attention $p$."""
    seen = x[pool.ids]
    p = attend(cfg, w, at, seen, pool)
    v = jnp.einsum("bd,sd,s->b", w.w_v, seen, p)
    return w.a @ activation(w.w_o @ v), p


# ------------------------------------------------------------------------ other encodings


def absolute_encoding(cfg: Config, edges: Bool[Array, "N N"]) -> Float[Array, "N k"]:
    """Appendix B.5.2: encodings of a node's place that are appended to its features.

    "laplacian": eigenvectors of the normalised Laplacian beyond the first; "walk": chances that
    random walks of 1, 2, ... steps return; "degree". Each column has mean square 1.
    """
    a, k = edges.astype(float), cfg.positions
    degree = jnp.maximum(a.sum(axis=1), 1.0)
    if cfg.absolute == "laplacian":
        scale = jnp.sqrt(degree)
        laplacian = jnp.eye(len(a)) - a / (scale[:, None] * scale[None, :])
        code = jnp.linalg.eigh(laplacian)[1][:, 1 : k + 1]
    elif cfg.absolute == "walk":
        walk, power, back = a / degree[:, None], jnp.eye(len(a)), []
        for _ in range(k):
            power = power @ walk
            back.append(jnp.diagonal(power))
        code = jnp.stack(back, axis=1)
    else:
        code = jnp.broadcast_to(degree[:, None], (len(a), k))
    return code / jnp.maximum(jnp.sqrt(jnp.mean(code**2, axis=0, keepdims=True)), 1e-12)


# ----------------------------------------------------------------- samples made of nodes


def realise(
    counts: Int[Array, "M Z"],
    u: Float[Array, "N"],
    pattern: Int[Array, "N"],
    dist: Int[Array, "N"],
    most: int,
) -> Pool:
    """Random nodes that have the given counts of pattern and distance."""
    z = counts.shape[1]
    cell = pattern * z + dist
    order = jnp.argsort(cell.astype(u.dtype) + u)  # by cell, inside a cell at random
    total = jnp.bincount(cell, length=counts.size)
    rank = jnp.arange(len(u)) - (jnp.cumsum(total) - total)[cell[order]].astype(int)
    taken = rank < counts.reshape(-1)[cell[order]].astype(rank.dtype)
    first = jnp.argsort(~taken, stable=True)[: most + 1]
    ids = order[first]
    return Pool(ids, dist[ids], taken[first])


def random_features(
    cfg: Config, key: Key[Array, ""], nodes: Nodes, chosen: Int[Array, "L"]
) -> tuple[Features, Int[Array, "L B M Z"]]:
    """A random graph with noisy features, and samples for the chosen nodes: nodes and counts."""
    edges = random_edges(cfg, key, nodes)
    dist = distances(edges, cfg.reach)
    graph = Graph(nodes, ring_counts(dist, nodes.pattern, cfg.patterns, cfg.reach))
    core = core_distance(winning_margins(graph.rings, nodes.label).mean(axis=0))
    pool = in_pool(cfg, core)

    x = jax.nn.one_hot(nodes.pattern, cfg.dim, dtype=float)
    x = x + cfg.noise * normal(stream(key, "data/noise"), x.shape)
    if cfg.absolute != "none":
        x = jnp.concatenate([x, absolute_encoding(cfg, edges)], axis=1)

    seen = sample(cfg, key, graph.rings[chosen], pool)
    u = uniform(stream(key, "batch/nodes"), (len(chosen), cfg.bank, cfg.nodes))
    real = jax.vmap(jax.vmap(realise, in_axes=(0, 0, None, None, None)), (0, 0, None, 0, None))
    train = real(seen, u, nodes.pattern, dist[chosen], min(cfg.sampled, cfg.nodes - 1))
    everyone = jnp.broadcast_to(jnp.arange(cfg.nodes), dist.shape)
    return Features(graph, x, train, Pool(everyone, dist, pool[dist])), seen


# ------------------------------------------------------------------- training, on nodes


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    data: Features | None = None,
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """Algorithm 4 as written: features, pools and softmax over nodes, by automatic derivatives.

    `data` is a graph of one's own with any features (see `any_graph.features`); without it a random
    graph is drawn.
    """
    made = random_nodes(cfg, key) if data is None else data.graph.nodes
    n = len(made.pattern)
    order, exists = labelled(cfg, key, made), mask(cfg, "samples")
    chosen = order[jnp.arange(size(cfg, "samples")) % n]
    known = first_of(order, cfg.samples)
    seen = None
    if data is None:
        data, seen = random_features(cfg, key, made, chosen)
        drawn = data.samples
    else:
        drawn = jax.tree.map(lambda v: v[chosen], data.samples)
    graph, x, nodes, test = data.graph, data.x, data.graph.nodes, data.test
    core = core_distance(winning_margins(graph.rings, nodes.label).mean(axis=0))
    if seen is None:  # of a given graph: whole rings stand for samples
        seen = graph.rings[chosen][:, None]
    at_chosen = jax.tree.map(lambda v: v[chosen], nodes)
    confusion = confusion_ratio(seen, at_chosen, core, exists)
    kept = drawn.ids.shape[1]
    kind = jax.nn.one_hot(nodes.pattern, graph.rings.shape[1], dtype=float)

    def f_of(w: Weights, at: Float[Array, "n d"], pool: Pool) -> Any:
        return jax.vmap(lambda at, pool: output(cfg, w, at, x, pool, activation))(at, pool)

    def loss(w: Weights, pool: Pool) -> Float[Array, ""]:
        return mean_over(exists, hinge(cfg, nodes.label[chosen], f_of(w, x[chosen], pool)[0]))

    def look(w: Weights) -> dict[str, Float[Array, "..."]]:
        f, p = f_of(w, x, test)
        rings = jax.nn.one_hot(test.dist, cfg.reach + 2, dtype=float)
        cells = jnp.einsum("ns,nsk,nsz->nkz", p, kind[test.ids], rings)
        return measure(cfg, cells, f, nodes, known, core, w.b)

    def batch(t: Int[Array, ""]) -> Pool:
        return jax.tree.map(
            lambda v: jax.lax.dynamic_index_in_dim(v, t % kept, axis=1, keepdims=False), drawn
        )

    trace = descend(
        loss,
        initial_weights(cfg, key, x.shape[1]),
        optimiser(cfg.lr),
        steps=cfg.steps,
        at=probe_steps(cfg),
        batch=batch,
        frozen=lambda w: w.a,
        probe=look,
    )
    return report(cfg, trace, graph, core, known, confusion)
