r"""Figures 3.8 and 3.9 on a published graph: a Transformer block with a distance encoding.

A node queries nodes that are drawn afresh at every step, from the whole graph or from one of its
rings, and is added to what it sees; several heads, each with a bias for every distance (3.2). It
is tested on all nodes of the graph, or of the ring. One layer, as in the theory.

Letters in shapes: n queries, s nodes of a pool, w words, d width, H heads, h width of a head,
f features, c classes, Z distances, k = 2d.
"""

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import normal, stream, uniform
from provingground.train import by_lane, descend

from .published import FARTHEST, Citations

__all__ = ["Config", "Probes", "simulate"]

AT_ONCE = 40  # nodes that are tested together


@config
class Config:
    """Who is seen, the network, and how it is trained."""

    per_class: int = par(20, "l", "labelled nodes per class", low=1, high=430, value=True)
    ring: int = par(0, "z", "ring that is seen, 0: the whole graph", low=0, high=18, value=True)
    encoded: float = par(1.0, "p", "with the distance encoding: 0 or 1", low=0)
    even: float = par(0.0, "e", "1: a draw picks a distance first, then a node there", low=0)
    sampled: int = par(20, r"|\mathcal{S}^{n,t}|", "nodes drawn per query and step", low=1)
    heads: int = par(4, "H", "heads", low=1)
    width: int = par(32, "d", "width", low=4)
    batch: int = par(32, "B", "labelled nodes per step", low=1)
    steps: int = par(600, "T", "steps", low=1)
    rate: float = par(0.01, r"\eta", "step size of Adam", low=0)
    bias_rate: float = par(1.0, r"\kappa", "how many times faster the bias moves", low=0)
    decay: float = par(0.01, r"\lambda", "weight decay", low=0)
    dropout: float = par(0.5, "q", "share of the embedding that is dropped", low=0, high=0.9)


class Probes(eqx.Module):
    """At the end."""

    accuracy: Float[Array, ""] = probe("test accuracy")
    train_loss: Float[Array, ""] = probe("training loss, last step")
    bias: Float[Array, "distance"] = probe("mean bias over heads", "b_z")
    distance: Int[Array, "distance"] = probe("distance", "z")


class Weights(eqx.Module):
    embed: Float[Array, "f d"]
    w_q: Float[Array, "H h d"]
    w_k: Float[Array, "H h d"]
    w_v: Float[Array, "H h d"]
    w_o: Float[Array, "H d h"]
    b: Float[Array, "H Z"]
    w_in: Float[Array, "k d"]
    w_out: Float[Array, "d k"]
    read_out: Float[Array, "c d"]


def initial(cfg: Config, graph: Citations, key: Key[Array, ""]) -> Weights:
    """Normal, of variance 1 over the width of the input, by one draw; a bias of zero."""
    d, heads, f = cfg.width, cfg.heads, graph.averaged.shape[1]
    h = max(d // heads, 1)

    shapes = {
        "embed": (f, d),
        "w_q": (heads, h, d),
        "w_k": (heads, h, d),
        "w_v": (heads, h, d),
        "w_o": (heads, d, h),
        "w_in": (2 * d, d),
        "w_out": (d, 2 * d),
        "read_out": (len(graph.kinds), d),
    }
    sizes = [math.prod(shape) for shape in shapes.values()]
    drawn = jnp.split(normal(stream(key, "init"), (sum(sizes),)), np.cumsum(sizes)[:-1])
    pairs = zip(shapes.items(), drawn, strict=True)
    made = {name: x.reshape(shape) / shape[-1] ** 0.5 for (name, shape), x in pairs}
    return Weights(**made, b=jnp.zeros((heads, FARTHEST + 1)))


def embedded(w: Weights, words: Int[Array, "*n w"]) -> Float[Array, "*n d"]:
    """The sum of the vectors of a node's words, over the root of their number."""
    known = (words < len(w.embed))[..., None]
    total = jnp.where(known, w.embed[jnp.minimum(words, len(w.embed) - 1)], 0.0).sum(axis=-2)
    return total / jnp.sqrt(jnp.maximum(known.sum(axis=-2).astype(total.dtype), 1.0))


def norm(x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    x = x - x.mean(axis=-1, keepdims=True)
    return x / jnp.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)


def attend(scores: Float[Array, "H s"], seen: Bool[Array, "s"]) -> Float[Array, "H s"]:
    """Softmax over the nodes that are seen; all zero if there is none."""
    seen = jnp.broadcast_to(seen, scores.shape)
    top = jax.lax.stop_gradient(jnp.max(jnp.where(seen, scores, -1e9), axis=1, keepdims=True))
    p = jnp.where(seen, jnp.exp(jnp.minimum(scores - top, 0.0)), 0.0)
    return p / jnp.maximum(p.sum(axis=1, keepdims=True), 1e-20)


def keys_and_values(
    w: Weights, pool: Float[Array, "s d"]
) -> tuple[Float[Array, "s H h"], Float[Array, "s H h"]]:
    k, v = (jnp.einsum("ahd,sd->sah", m, norm(pool)) for m in (w.w_k, w.w_v))
    return k, v


def output(
    cfg: Config,
    w: Weights,
    own: Float[Array, "d"],
    k: Float[Array, "s H h"],
    v: Float[Array, "s H h"],
    dist: Int[Array, "s"],
    seen: Bool[Array, "s"],
) -> Float[Array, "c"]:
    r"""A block with scores $(W_Kx_s)^\top W_Qx_n/\sqrt h + b_{z(s,n)}$, and the read-out."""
    q = jnp.einsum("ahd,d->ah", w.w_q, norm(own))
    scores = jnp.einsum("ah,sah->as", q, k) / q.shape[1] ** 0.5 + cfg.encoded * w.b[:, dist]
    z = own + jnp.einsum("as,sah,adh->d", attend(scores, seen), v, w.w_o)
    z = z + w.w_out @ jax.nn.relu(w.w_in @ norm(z))
    return w.read_out @ norm(z)


def pools(
    cfg: Config, graph: Citations, row: Int[Array, "n"], u: Float[Array, "n s"]
) -> tuple[Int[Array, "n s+1"], Bool[Array, "n s+1"]]:
    """Of some nodes that may be labelled: each itself and nodes drawn from its ring, or from all;
    whether they are seen."""
    total = len(graph.label)
    place = u * FARTHEST  # of an even draw: its distance, and where in that ring
    even = (cfg.ring == 0) & (cfg.even > 0)
    ring = jnp.where(even, 1 + jnp.floor(place).astype(jnp.int32), cfg.ring)
    first = jnp.asarray(graph.first)[row[:, None], jnp.stack([ring, ring + 1])]
    low = jnp.where(ring > 0, first[0], 0)
    count = jnp.where(ring > 0, first[1] - low, total)
    at = jnp.where(even, place % 1, u) * count.astype(u.dtype)
    at = jnp.minimum(low + jnp.floor(at).astype(jnp.int32), total - 1)
    drawn = jnp.asarray(graph.order)[row[:, None], at].astype(jnp.int32)
    ids = jnp.concatenate([jnp.asarray(graph.node)[row][:, None], drawn], axis=1)
    itself = jnp.broadcast_to(jnp.asarray(cfg.ring == 0), row.shape)
    return ids, jnp.concatenate([itself[:, None], count > 0], axis=1)


def labelled(graph: Citations, key: Key[Array, ""]) -> Int[Array, "l"]:
    """The rows of the nodes that may be labelled, in the order of a seed: first one of each class,
    then a second, and so on. With `per_class` labels of every class the first of them are used."""
    luck = uniform(stream(key, "data/subset"), (len(graph.turn),))
    luck = luck + jnp.asarray(graph.turn).astype(luck.dtype)
    label = jnp.asarray(graph.label)[jnp.asarray(graph.node)[: len(luck)]]
    by_class = jnp.lexsort((luck, label))
    start = jnp.searchsorted(label[by_class], jnp.arange(len(graph.kinds), dtype=label.dtype))
    turn = jnp.arange(len(label)) - start[label[by_class]]
    return by_class[jnp.argsort(turn, stable=True)].astype(jnp.int32)


def accuracy(cfg: Config, graph: Citations, w: Weights) -> Float[Array, ""]:
    """On all test nodes, which see all nodes of the graph or of their ring."""
    everyone = embedded(w, jnp.asarray(graph.words))
    k, v = keys_and_values(w, everyone)

    def right(r: Int[Array, ""]) -> Float[Array, ""]:
        dist, n = jnp.asarray(graph.dist)[r].astype(jnp.int32), jnp.asarray(graph.node)[r]
        seen = (dist == cfg.ring) | (cfg.ring == 0)
        found = output(cfg, w, everyone[n], k, v, dist, seen)
        return (jnp.argmax(found) == jnp.asarray(graph.label)[n]).astype(float)

    rows = jnp.arange(len(graph.turn), len(graph.node), dtype=jnp.int32)
    return jax.lax.map(right, rows, batch_size=min(AT_ONCE, len(rows))).mean()


def simulate(cfg: Config, key: Key[Array, ""], data: Citations) -> Probes:
    """Cross entropy by AdamW; a pool is drawn for every labelled node of a batch."""
    classes = len(data.kinds)
    label, words = jnp.asarray(data.label), jnp.asarray(data.words)
    known = labelled(data, key)
    count = jnp.asarray(cfg.per_class * classes, float)
    batches, dropout = stream(key, "batches"), stream(key, "dropout")

    def batch(t: Int[Array, ""]):
        u = uniform(jax.random.fold_in(batches, t), (cfg.batch, cfg.sampled + 1))
        row = known[jnp.floor(u[:, 0] * count).astype(jnp.int32)]
        ids, seen = pools(cfg, data, row, u[:, 1:])
        kept = uniform(jax.random.fold_in(dropout, t), (*ids.shape, cfg.width)) >= cfg.dropout
        dist = jnp.asarray(data.dist)[row[:, None], ids].astype(jnp.int32)
        return words[ids], dist, seen, kept, label[ids[:, 0]]

    def loss(w: Weights, drawn) -> Float[Array, ""]:
        ids, dist, seen, kept, y = drawn
        x = jnp.where(kept, embedded(w, ids) / (1 - cfg.dropout), 0.0)
        k, v = jax.vmap(partial(keys_and_values, w))(x)
        found = jax.vmap(partial(output, cfg, w))(x[:, 0], k, v, dist, seen)
        return optax.softmax_cross_entropy_with_integer_labels(found, y).mean()

    start = initial(cfg, data, key)
    faster = eqx.tree_at(lambda w: w.b, jax.tree.map(lambda _: "all", start), "bias")
    rate = optax.linear_schedule(1.0, 0.0, cfg.steps)
    rule = optax.multi_transform(
        {
            "all": optax.adamw(lambda t: cfg.rate * rate(t), weight_decay=cfg.decay),
            "bias": optax.adam(lambda t: cfg.bias_rate * cfg.rate * rate(t)),
        },
        lambda _: faster,
    )
    w = descend(loss, start, rule, steps=cfg.steps, batch=batch).last
    return Probes(
        accuracy=by_lane(lambda w, cfg: accuracy(cfg, data, w), w, cfg),
        train_loss=loss(w, batch(jnp.asarray(cfg.steps, jnp.int32))),
        bias=w.b.mean(axis=0),
        distance=jnp.arange(FARTHEST + 1, dtype=jnp.int32),
    )
