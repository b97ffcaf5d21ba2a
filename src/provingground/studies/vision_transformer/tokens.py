"""Training on tokens, as the paper writes it: with noise, sparsification, and other fractions.

Letters in shapes are those of `data.py`; N samples of L tokens are the rows and groups of
`training.py`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par, size
from provingground.data.patterns import noisy, permutations, ranks, tally
from provingground.keys import stream, streams, uniform
from provingground.train import Optimiser

from . import data
from .data import CONFUSION, IRRELEVANT, RELEVANT, frames, kinds, pattern_rows, rows_of, targets
from .network import (
    Weights,
    attend,
    initial_weights,
    output_weights,
    positions,
    value_features,
)
from .training import Probes, Samples, report, share_of, train

__all__ = ["Config", "Probes", "simulate"]


@config
class Config(data.Config):
    """Parameters of training on tokens: noise, sparsification, and fractions that vary."""

    samples: int = par(64, "N", "training samples", low=2, value=True, pad=16)
    noise: float = par(0.01, "c_0", "noise s.d. of a token's coordinates", low=0)
    noisy_share: float = par(0.0, r"\rho", "fraction of tokens with large noise", low=0, high=1)
    noise_big: float = par(0.6, "c_1", "noise s.d. of noisy tokens", low=0)
    dist: str = par("fixed", "D", "fractions of roles in a sample", choices=("fixed", "iid"))
    sparsity: float = par(0.0, "r", "fraction of tokens removed", low=0, high=0.9)
    by_role: float = par(0.0, "w_R", "removal by role: weight of being irrelevant", low=0)
    by_noise: float = par(0.0, "w_N", "removal by noise: weight of its norm", low=0)
    by_attention: float = par(0.0, "w_A", "removal by lack of attention received: weight", low=0)
    at_test: float = par(
        0.0, "r_{te}", "removal from all samples (0), or from those for the test alone (1)",
        low=0, high=1,
    )  # fmt: skip
    scout: int = par(0, "T_s", "steps of the model whose attention removes tokens", low=0)


# ------------------------------------------------------------------------------- data


class Drawn(NamedTuple):
    """Tokens of samples with their ground truth."""

    x: Float[Array, "N L d"]
    label: Int[Array, "N"]
    role: Int[Array, "N L"]
    pattern: Int[Array, "N L"]
    noise_norm: Float[Array, "N L"]


class Streams(NamedTuple):
    """What samples are drawn from."""

    role: Key[Array, ""]
    noisy: Key[Array, ""]
    noise: Key[Array, ""]


def draw_tokens(cfg: Config, lots: Streams, rows: int, patterns: Float[Array, "P d"]) -> Drawn:
    """Samples with noise. With `dist="iid"` roles are independent and the label is their vote."""
    label = jnp.arange(rows, dtype=jnp.int32) % cfg.classes
    if cfg.dist == "iid":
        u = uniform(lots.role, (rows, cfg.tokens))
        rank = jnp.floor(u * cfg.tokens).astype(jnp.int32)
    else:
        rank = permutations(lots.role, rows, cfg.tokens)
    role, pattern = jax.vmap(lambda r, c: kinds(cfg, r, c))(rank, label)
    if cfg.dist == "iid":
        kind = pattern // cfg.variants
        votes = jax.vmap(lambda k: tally(k, cfg.classes))(kind)
        meant = jax.nn.one_hot(label, cfg.classes, dtype=float)
        label = jnp.argmax(votes + 0.5 * meant, axis=-1).astype(jnp.int32)  # ties stay as meant
        role = jnp.where(kind >= cfg.classes, IRRELEVANT, CONFUSION)
        role = jnp.where(kind == label[:, None], RELEVANT, role)
    place = permutations(lots.noisy, rows, cfg.tokens)
    large = place < jnp.round(cfg.noisy_share * cfg.tokens).astype(jnp.int32)
    noise = jnp.where(large, cfg.noise_big, cfg.noise)
    x, noise_norm = noisy(lots.noise, patterns, pattern, noise)
    return Drawn(x, label, role, pattern, noise_norm)


def received(w: Weights, x: Float[Array, "L d"]) -> Float[Array, "L"]:
    """Attention that each token receives, summed over queries, averaged over heads."""
    return attend(w, x, jnp.ones(len(x)))[0].sum(axis=1).mean(axis=0)


def kept(
    cfg: Config, key: Key[Array, ""], drawn: Drawn, attention: Float[Array, "N L"]
) -> Bool[Array, "N L"]:
    """Sparsification: the tokens that stay, of each sample; what ranks highest goes first.

    The rank is by chance, plus weights times being irrelevant, noise, and lack of attention.
    """
    removal = uniform(key, drawn.role.shape)
    removal += cfg.by_role * (drawn.role == IRRELEVANT).astype(float)
    removal += cfg.by_noise * drawn.noise_norm - cfg.by_attention * attention
    return ranks(removal) < cfg.tokens - jnp.round(cfg.sparsity * cfg.tokens).astype(jnp.int32)


def by_token(
    cfg: Config, drawn: Drawn, keep: Bool[Array, "N L"], count: Any, a: Float[Array, "L m o"]
) -> Samples:
    r"""Samples as they are: (2.1) with its mean and softmax over the tokens that are kept.

    With $D_{li}=y^\top a_{(l)i}1[W_{O,i}V_l>0]$ the margin is the mean of $D_l^\top W_OV_l$, and
    $D$ has no gradient: the product $D^\top W_O$ serves the margin and its gradient in $V$.
    """
    n = keep.astype(float)
    weight, y = n / n.sum(axis=-1, keepdims=True), targets(cfg)[drawn.label]

    def margins(w_o: Float[Array, "H d m"], v: Float[Array, "N L H d"]) -> Float[Array, "N"]:
        before = jnp.einsum("nlha,ham->nlm", *jax.lax.stop_gradient((v, w_o)))
        readout = jnp.einsum("lmo,no->nlm", positions(cfg, a), y)
        slope = jnp.einsum("nlm,ham->nlha", jnp.where(before > 0, readout, 0.0), w_o)
        return jnp.sum(weight * jnp.sum(slope * v, axis=(2, 3)), axis=1)

    exists = jnp.arange(len(n), dtype=jnp.int32) < count
    return Samples(drawn.x, n, drawn.role, drawn.label, share_of(exists), exists, margins)


# --------------------------------------------------------------------------- training


def simulate(cfg: Config, key: Key[Array, ""], *, optimiser: Optimiser = optax.sgd) -> Probes:
    """Training on tokens, as the paper writes it."""
    basis, *u = frames(cfg, key)
    centres, patterns = pattern_rows(cfg, basis)
    start, a = initial_weights(cfg, key, centres, jnp.stack(u)), output_weights(cfg, key)
    features = value_features(centres, jnp.stack(u))
    names = "data", "test"
    sizes = rows_of(cfg, size(cfg, "samples")), rows_of(cfg, cfg.test_samples)
    lots = Streams(*(streams(key, *(f"{n}/{of}" for n in names)) for of in Streams._fields))
    drawn = jax.vmap(lambda lots: draw_tokens(cfg, lots, max(sizes), patterns))(lots)

    def samples(which: int, keep: Bool[Array, "two N L"], count: Any) -> Samples:
        data, keep = jax.tree.map(lambda x: x[which, : sizes[which]], (drawn, keep))
        return by_token(cfg, data, keep, count, a)

    guide = start
    if cfg.scout:
        s = samples(0, jnp.ones(drawn.role.shape, bool), cfg.samples)
        guide = train(cfg, stream(key, "scout"), start, s, optimiser, steps=cfg.scout).last
    attention = jax.vmap(jax.vmap(lambda x: received(guide, x)))(drawn.x)
    lots = streams(key, "keep/data", "keep/test")
    keep = jax.vmap(lambda k, *of: kept(cfg, k, *of))(lots, drawn, attention)
    whole = jnp.array([cfg.at_test, 0.0]) > 0.5  # training samples keep all of their tokens
    keep = keep | whole[:, None, None]
    s, test = samples(0, keep, cfg.samples), samples(1, keep, sizes[1])
    return report(cfg, key, start, a, patterns, features, s, test, optimiser=optimiser)
