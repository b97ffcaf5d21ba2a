r"""Four classes $y \in \{\pm1\}^2$ by two copies of the network (appendix B.5.5).

Each class has a discriminative pattern of its own, the first four, with $\gamma_d N/4$ nodes each.
A node's class is the one most of its neighbours are of. Letters in shapes as in `data`; C copies.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, mask, par, probe, size
from provingground.keys import stream, uniform
from provingground.nets.losses import mean_over
from provingground.train import Activation, Optimiser, by_lane, descend

from . import data
from .data import distances, first_of, in_pool, ring_counts, sample, smallest, whole
from .model import Weights, initial_weights, outputs, probe_steps

__all__ = ["Config", "Probes", "simulate"]

CLASSES = 4


@config
class Config(data.Config):
    """Those of two classes. Not used are the settings of edges, flips, kinds and vote."""

    patterns: int = par(10, "M", "patterns", low=5)
    nodes: int = par(1000, "N", "nodes", low=12)


class Probes(eqx.Module):
    """What one training reports."""

    train_loss: Float[Array, "step"] = probe("training hinge loss", r"\hat f")
    test_loss: Float[Array, "step"] = probe("test hinge loss", "f")
    test_error: Float[Array, "step"] = probe("test error: one of the two signs is wrong")
    dist_bias: Float[Array, "step copy ring"] = probe("distance bias", "b_z")
    margin: Float[Array, "ring"] = probe("mean winning margin", r"\bar\Delta(z)")
    ring: Int[Array, "ring"] = probe("distance", "z")
    step: Int[Array, "step"] = probe("step", "t")


class Graph(eqx.Module):
    """Patterns, classes, and how many nodes of each pattern lie at each distance."""

    pattern: Int[Array, "N"]
    kind: Int[Array, "N"]
    rings: Float[Array, "N M Z"]


def labels(kind: Int[Array, "N"]) -> Float[Array, "N C"]:
    """The two signs of a class: (1, 1), (1, -1), (-1, 1), (-1, -1)."""
    return 1.0 - 2.0 * jnp.stack([kind // 2, kind % 2], axis=1).astype(float)


def random_graph(cfg: Config, key: Key[Array, ""]) -> Graph:
    r"""Section 3.5.1 for four classes: a node that is not discriminative has $D(1-\epsilon_S)$
    edges to the pattern of its class and $D\epsilon_S/3$ to each other; a discriminative node has D
    to its own kind."""
    n, i = cfg.nodes, jnp.arange(cfg.nodes)
    n_d = whole(cfg.frac_disc * n / CLASSES)
    disc = i < CLASSES * n_d
    place = i // jnp.maximum(n_d, 1)
    pattern = jnp.where(disc, place, CLASSES + i % (cfg.patterns - CLASSES))
    drawn = jnp.floor(CLASSES * uniform(stream(key, "data/label"), (n,))).astype(int)
    kind = jnp.where(disc, pattern, jnp.clip(drawn, 0, CLASSES - 1))
    degree = whole(cfg.degree)
    other = whole(degree.astype(float) * cfg.confusion_ratio / (CLASSES - 1))
    own = degree - (CLASSES - 1) * other
    bits = jax.random.bits(stream(key, "data/edges"), (n, n), jnp.uint32)
    edges = jnp.zeros((n, n), bool)
    for each in range(CLASSES):
        k = jnp.where(disc, 0, jnp.minimum(jnp.where(kind == each, own, other), n_d))
        edges = edges | smallest(bits, pattern == each, k)
    edges = edges | edges.T
    gap = jnp.abs(i[:, None] - i[None, :])
    near = jnp.minimum(gap, n_d - gap) <= (degree + 1) // 2
    kin = disc[:, None] & disc[None, :] & (pattern[:, None] == pattern[None, :])
    edges = edges | (kin & near & (gap > 0))
    dist = distances(edges, cfg.reach)
    return Graph(pattern, kind, ring_counts(dist, pattern, cfg.patterns, cfg.reach))


def winning_margins(graph: Graph) -> Float[Array, "N Z"]:
    """Nodes of a node's own class less the mean number of those of each other class."""
    of_class = graph.rings[:, :CLASSES]
    own = jnp.take_along_axis(of_class, graph.kind[:, None, None], axis=1)[:, 0]
    return own - (of_class.sum(axis=1) - own) / (CLASSES - 1)


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    r"""Gradient descent on $\max(1 - y^\top F, 0)$, F the outputs of two copies of the network."""
    graph = by_lane(lambda cfg: random_graph(cfg, key), cfg)
    margin = winning_margins(graph).mean(axis=0)
    pool = in_pool(cfg, 1 + jnp.argmax(margin[1:]).astype(int))
    order = jnp.argsort(uniform(stream(key, "data/labelled"), (cfg.nodes,)))
    exists, known = mask(cfg, "samples"), first_of(order, cfg.samples)
    chosen = order[jnp.arange(size(cfg, "samples")) % cfg.nodes]
    seen = by_lane(lambda rings, pool: sample(cfg, key, rings, pool), graph.rings[chosen], pool)
    full, y = graph.rings * pool.astype(float)[None, None, :], labels(graph.kind)

    def both(w: Weights, pattern: Int[Array, "n"], counts: Float[Array, "n M Z"]) -> Any:
        each = jax.vmap(lambda w: outputs(cfg, w, pattern, counts, activation)[0])
        return each(w).T

    def hinge(y: Float[Array, "n C"], f: Float[Array, "n C"]) -> Float[Array, "n"]:
        return jax.nn.relu(cfg.hinge_margin - jnp.sum(y * f, axis=1))

    def loss(w: Weights, counts: Int[Array, "L M Z"]) -> Float[Array, ""]:
        f = both(w, graph.pattern[chosen], counts.astype(float))
        return mean_over(exists, hinge(y[chosen], f))

    def look(w: Weights) -> dict[str, Float[Array, "..."]]:
        f = both(w, graph.pattern, full)
        wrong = jnp.any(y * f <= 0, axis=1)
        return dict(
            train_loss=mean_over(known, hinge(y, f)),
            test_loss=mean_over(~known, hinge(y, f)),
            test_error=mean_over(~known, wrong.astype(f.dtype)),
            dist_bias=w.b,
        )

    keys = jax.random.split(stream(key, "copies"), 2)
    trace = descend(
        loss,
        jax.vmap(lambda key: initial_weights(cfg, key, cfg.patterns))(keys),
        optimiser(cfg.lr),
        steps=cfg.steps,
        at=probe_steps(cfg),
        batch=lambda t: jax.lax.dynamic_index_in_dim(seen, t % cfg.bank, axis=1, keepdims=False),
        frozen=lambda w: w.a,
        probe=look,
    )
    return Probes(**trace.probes, margin=margin, ring=jnp.arange(cfg.reach + 2), step=trace.step)
