"""Network and training of the one-layer Graph Transformer on counts, in the paper's order.

Letters in shapes: as in `data`; d features, a and b the widths of keys and values, m neurons. The
training below sees counts of patterns by distance; `nodes` has the same training on nodes, and
tests show that both are equal.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import mask, probe, size
from provingground.keys import normal, signs, stream
from provingground.nets.losses import mean_over
from provingground.train import Activation, Optimiser, Trace, by_lane, descend

from .data import (
    Config,
    Graph,
    Nodes,
    confusion_ratio,
    core_distance,
    first_of,
    in_pool,
    kinds,
    labelled,
    random_graph,
    sample,
    winning_margins,
)

__all__ = ["Config", "Probes", "simulate"]


class Probes(eqx.Module):
    """What one training reports. Losses and attention are with the full pool, not a sample."""

    train_loss: Float[Array, "step"] = probe("training hinge loss", r"\hat f")
    test_loss: Float[Array, "step"] = probe("test hinge loss", "f")
    test_error: Float[Array, "step"] = probe("test error")
    attention_relevant: Float[Array, "step"] = probe("attention on class-relevant nodes")
    attention_disc: Float[Array, "step"] = probe("the same, discriminative queries")
    attention_plain: Float[Array, "step"] = probe("the same, other queries")
    attention_core: Float[Array, "step"] = probe("attention on the core ring")
    loss_disc: Float[Array, "step"] = probe("the loss of discriminative nodes")
    loss_plain: Float[Array, "step"] = probe("the loss of all other nodes")
    dist_bias: Float[Array, "step ring"] = probe("distance bias", "b_z")
    margin: Float[Array, "ring"] = probe("mean winning margin", r"\bar\Delta(z)")
    ring_size: Float[Array, "ring"] = probe("mean size of a ring", r"|\mathcal{N}_z|")
    core_found: Int[Array, ""] = probe("core distance of the graph", "z_m")
    max_ring: Float[Array, ""] = probe("largest core ring", r"\delta_{z_m}")
    confusion: Float[Array, ""] = probe("realised confusion ratio", r"\hat\epsilon_S")
    inconsistent: Float[Array, ""] = probe("flipped fraction of the test set", r"\hat\epsilon_0")
    labelled_plain: Float[Array, ""] = probe("labelled nodes that are not discriminative")
    fewest: Float[Array, ""] = probe("fewest labelled nodes of a pattern and vote")
    ring: Int[Array, "ring"] = probe("distance", "z")
    step: Int[Array, "step"] = probe("step", "t")


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
        w_k=cfg.key_scale * (keys + cfg.key_error * errors("init/key", cfg.key_width)),
        w_q=cfg.key_scale * (keys + cfg.key_error * errors("init/query", cfg.key_width)),
        w_v=cfg.value_scale * (values + cfg.value_error * errors("init/value", cfg.value_width)),
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
    p = jax.vmap(attend, in_axes=(0, None, 0))(scores[pattern], cfg.bias_scale * w.b, counts)
    hidden = jnp.einsum("mb,bk->mk", w.w_o, w.w_v)  # once for all nodes
    return jnp.einsum("m,nm->n", w.a, activation(p.sum(axis=-1) @ hidden.T)), p


# ------------------------------------------------------------------------------ probes


def hinge(cfg: Config, label: Float[Array, "*n"], f: Float[Array, "*n"]) -> Float[Array, "*n"]:
    r"""$\max(c - yf, 0)$; in the paper $c = 1$."""
    return jax.nn.relu(cfg.hinge_margin - label * f)


def measure(
    cfg: Config,
    p: Float[Array, "N M Z"],
    f: Float[Array, "N"],
    nodes: Nodes,
    known: Bool[Array, "N"],
    core: Int[Array, ""],
    b: Float[Array, "Z"],
) -> dict[str, Float[Array, "..."]]:
    """The probes of one step, from outputs and attention of all nodes with their full pools."""
    loss = hinge(cfg, nodes.label, f)
    share = p.sum(axis=-1)
    relevant = jnp.where(nodes.label > 0, share[:, 0], share[:, 1])
    disc = nodes.pattern < 2
    return dict(
        train_loss=mean_over(known, loss),
        test_loss=mean_over(~known, loss),
        loss_disc=mean_over(~known & disc, loss),
        loss_plain=mean_over(~known & ~disc, loss),
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
    each = jax.nn.one_hot(kinds(nodes), 2 * m, dtype=float)[:, 4:]  # without the discriminative
    return Probes(
        **trace.probes,
        margin=winning_margins(graph.rings, nodes.label).mean(axis=0),
        ring_size=graph.rings.sum(axis=1).mean(axis=0),
        core_found=core,
        max_ring=sizes.max(),
        confusion=confusion,
        inconsistent=mean_over(~known, (nodes.vote != nodes.label).astype(float)),
        labelled_plain=jnp.sum(plain).astype(float),
        fewest=jnp.min(jnp.sum(jnp.where(known[:, None], each, 0.0), axis=0)),
        ring=jnp.arange(cfg.reach + 2),
        step=trace.step,
    )


def probe_steps(cfg: Config) -> Int[Array, "step"]:
    """`record` steps, evenly spaced from 0 to `steps`."""
    part = jnp.arange(cfg.record).astype(float) / (cfg.record - 1)
    return jnp.round(part * jnp.asarray(cfg.steps).astype(float)).astype(jnp.int32)


# ---------------------------------------------------------------- training, on counts


Output = Callable[..., tuple[Float[Array, "n"], Float[Array, "n M Z"]]]


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    data: Graph | None = None,
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """Algorithm 4 on counts: every step is on all labelled nodes, each with a sample of its pool.

    `data` is a graph of one's own (see `any_graph.graph`); without it a random one is drawn.
    """
    graph = by_lane(lambda cfg: random_graph(cfg, key), cfg) if data is None else data
    w = initial_weights(cfg, key, graph.rings.shape[1])
    pool = in_pool(cfg, core_of(graph))
    return train(cfg, key, graph, pool, w, partial(outputs, activation=activation), optimiser)


def core_of(graph: Graph) -> Int[Array, ""]:
    """The core distance of a graph."""
    return core_distance(winning_margins(graph.rings, graph.nodes.label).mean(axis=0))


def train(
    cfg: Config,
    key: Key[Array, ""],
    graph: Graph,
    pool: Bool[Array, "Z"],
    start: Any,
    outputs: Output,
    optimiser: Optimiser,
) -> Probes:
    """The training of a network that maps (cfg, weights, patterns, counts) to its outputs and its
    attention; its weights have a bias `b` and a read-out `a` that is not trained."""
    nodes, n, core = graph.nodes, len(graph.nodes.pattern), core_of(graph)
    order, exists = labelled(cfg, key, nodes), mask(cfg, "samples")
    chosen = order[jnp.arange(size(cfg, "samples")) % n]  # the padding repeats nodes
    known = first_of(order, cfg.samples)
    at_chosen = jax.tree.map(lambda x: x[chosen], nodes)
    seen = by_lane(lambda rings, pool: sample(cfg, key, rings, pool), graph.rings[chosen], pool)
    full = graph.rings * pool.astype(float)[None, None, :]

    def loss(w: Any, counts: Int[Array, "L M Z"]) -> Float[Array, ""]:
        f, _ = outputs(cfg, w, at_chosen.pattern, counts.astype(float))
        return mean_over(exists, hinge(cfg, at_chosen.label, f))

    def look(w: Any) -> dict[str, Float[Array, "..."]]:
        f, p = outputs(cfg, w, nodes.pattern, full)
        return measure(cfg, p, f, nodes, known, core, w.b)

    trace = descend(
        loss,
        start,
        optimiser(cfg.lr),
        steps=cfg.steps,
        at=probe_steps(cfg),
        batch=lambda t: jax.lax.dynamic_index_in_dim(seen, t % cfg.bank, axis=1, keepdims=False),
        frozen=lambda w: w.a,
        probe=look,
    )
    return report(cfg, trace, graph, core, known, confusion_ratio(seen, at_chosen, core, exists))
