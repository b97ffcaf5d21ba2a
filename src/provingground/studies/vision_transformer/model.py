"""Training on patterns: that on tokens without noise, exactly, and very much smaller.

Letters in shapes: see `data.py`.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from provingground.config import size
from provingground.data.patterns import permutations, tally
from provingground.keys import streams
from provingground.train import Activation, Optimiser

from .data import (
    CONFUSION,
    IRRELEVANT,
    RELEVANT,
    Config,
    frames,
    kinds,
    pattern_rows,
    rows_of,
    targets,
)
from .network import hidden, initial_weights, output_weights, positions, value_features
from .training import Probes, Samples, report, share_of

__all__ = ["Config", "Probes", "simulate"]


def by_class(
    cfg: Config,
    key: Key[Array, ""],
    patterns: Float[Array, "P d"],
    a: Float[Array, "L m o"],
    activation: Activation = jax.nn.relu,
) -> tuple[Samples, Samples]:
    r"""The pattern reduction: without noise, samples of a class differ in their positions alone.

    With $z_{cj}$ the hidden layer at pattern $j$ in class $c$, $F = \frac1L\sum_l a_{(l)}^\top
    z_{c,j(l)}$: one product of $a$ with all $z$, then a sum over the places of every sample.
    Returns the training samples and those for the test.
    """
    y, label = targets(cfg), jnp.arange(cfg.classes, dtype=jnp.int32)
    sizes = rows_of(cfg, size(cfg, "samples")), rows_of(cfg, cfg.test_samples)
    draw = jax.vmap(lambda k: permutations(k, max(sizes), cfg.tokens))
    rank = draw(streams(key, "data/role", "test/role"))
    rank = rank.reshape(2, -1, cfg.classes, cfg.tokens)
    of_class = jax.vmap(lambda r, c: kinds(cfg, r, c)[1], in_axes=(0, None))
    pattern = jax.vmap(jax.vmap(of_class, in_axes=(1, 0)), in_axes=(0, None))(rank, label)
    places = jax.nn.one_hot(pattern, len(patterns), dtype=float) / cfg.tokens
    places = places.reshape(2, cfg.classes, -1, cfg.tokens * len(patterns))

    def margins(
        places: Float[Array, "C n LP"], w_o: Float[Array, "H d m"], v: Float[Array, "C P H d"]
    ) -> Float[Array, "N"]:
        at = jnp.einsum("lmo,cjm->cljo", a, hidden(w_o, v, activation))
        at = jax.vmap(lambda at: positions(cfg, at))(jnp.einsum("cljo,co->clj", at, y))
        return jnp.einsum("cnx,cx->nc", places, at.reshape(cfg.classes, -1)).reshape(-1)

    each = jnp.arange(cfg.tokens, dtype=jnp.int32)
    n = jax.vmap(lambda c: tally(kinds(cfg, each, c)[1], len(patterns)))(label)
    kind = (jnp.arange(len(patterns), dtype=jnp.int32) // cfg.variants)[None, :]
    role = jnp.where(kind >= cfg.classes, IRRELEVANT, CONFUSION)
    role = jnp.where(kind == label[:, None], RELEVANT, role)
    x = jnp.broadcast_to(patterns, (cfg.classes, *patterns.shape))

    def samples(places: Float[Array, "C n LP"], rows: int, count: Any) -> Samples:
        exists = jnp.arange(rows, dtype=jnp.int32) < count
        share = share_of(exists).reshape(-1, cfg.classes).sum(axis=0)
        some = places[:, : rows // cfg.classes]
        return Samples(x, n, role, label, share, exists, partial(margins, some))

    train, test = map(samples, places, sizes, (cfg.samples, sizes[1]))
    return train, test


def simulate(
    cfg: Config,
    key: Key[Array, ""],
    *,
    activation: Activation = jax.nn.relu,
    optimiser: Optimiser = optax.sgd,
) -> Probes:
    """Training on patterns: that on tokens without noise, exactly."""
    basis, *u = frames(cfg, key)
    centres, patterns = pattern_rows(cfg, basis)
    start, a = initial_weights(cfg, key, centres, jnp.stack(u)), output_weights(cfg, key)
    features = value_features(centres, jnp.stack(u))
    samples = by_class(cfg, key, patterns, a, activation)
    return report(cfg, key, start, a, patterns, features, *samples, activation, optimiser)
