"""The paper's parameters and its data: patterns, and roles of tokens.

Letters in shapes: N samples, C classes, L tokens, P patterns, d token dimension, H heads,
m neurons, o outputs.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par
from provingground.data.patterns import orthonormal
from provingground.errors import InputError
from provingground.keys import stream

RELEVANT, CONFUSION, IRRELEVANT = range(3)  # roles of tokens


@config
class Config:
    """The paper's parameters; defaults are those of Figure 2.1(a)."""

    samples: int = par(64, "N", "training samples", low=2, value=True, pad=128)
    frac_relevant: float = par(0.4, r"\alpha_*", "fraction of label-relevant tokens", low=0, high=1)
    frac_confusion: float = par(0.1, r"\alpha_\#", "fraction of confusion tokens", low=0, high=1)
    tokens: int = par(100, "L", "tokens per sample", low=4)
    n_patterns: int = par(5, "M", "patterns", low=3)
    dim: int = par(10, "d", "dimension of tokens, keys and values", low=4)
    width: int = par(1000, "m", "hidden neurons", low=1)
    value_error: float = par(0.1, r"\sigma", "initial error of the values", low=0)
    key_error: float = par(0.2, r"\delta", "initial error of keys and queries", low=0)
    value_scale: float = par(1.0, "s_V", "scale of the initial values", low=0)
    key_scale: float = par(1.0, "s_K", "scale of the initial keys and queries", low=0)
    hidden_init_std: float = par(0.01, r"\xi", "s.d. of the initial hidden weights", low=0)
    shared: float = par(
        0.0,
        r"a_{(l)} = a",
        "read-out of its own for each position (0) or shared (1)",
        low=0,
        high=1,
    )
    lr: float = par(2.0, r"\eta", "step size", low=0)
    attention_rate: float = par(
        1.0, r"\eta_K/\eta", "step size of W_K, W_Q over that of the others (0: CNN)", low=0
    )
    logistic: float = par(
        0.0, r"\lambda", "loss: hinge (0), logistic (1), or a mixture", low=0, high=1
    )
    batch: int = par(0, "B", "samples per step (0: all)", low=0)
    eps: float = par(0.0, r"\epsilon", "training loss to stop at", low=0)
    steps: int = par(20_000, r"T_{\max}", "steps at most", low=1)
    record: int = par(2, "n_t", "recorded steps", low=2)
    test_samples: int = par(200, r"N_{\mathrm{te}}", "test samples", low=2)
    classes: int = par(2, "C", "classes", low=2, choices=(2, 4))
    variants: int = par(1, "b", "patterns in a pattern set", low=1)
    spread: float = par(0.5, r"\sin\theta", "distance of a pattern from its set", low=0, high=1)
    heads: int = par(1, "H", "heads", low=1)
    skip: float = par(0.0, "s", "skip connection (0: none, 1: as printed)", low=0)


def frames(cfg: Config, key: Key[Array, ""]) -> Float[Array, "one_plus_H d d"]:
    """Orthonormal bases: that of the patterns, and one for the values of each head."""
    keys = jax.random.split(stream(key, "frames"), 1 + cfg.heads)
    return jax.vmap(lambda k: orthonormal(k, cfg.dim, cfg.dim))(keys)


def pattern_rows(
    cfg: Config, basis: Float[Array, "d d"]
) -> tuple[Float[Array, "M d"], Float[Array, "P d"]]:
    r"""Centres $\mu_j$, and the patterns: these, or sets around them (appendix A.6.2).

    $\mu_{j,b} = \cos\theta\,\mu_j + \sin\theta\,\nu_{j,b}$ with all vectors orthonormal.
    """
    m, b = cfg.n_patterns, cfg.variants
    needed = m if b == 1 else m * (1 + b)
    if cfg.classes >= m:
        raise InputError(f"{cfg.classes} classes need more than {m} patterns: one is irrelevant.")
    if needed > cfg.dim:
        raise InputError(f"{needed} orthogonal patterns do not fit into {cfg.dim} dimensions.")
    if b == 1:
        return basis[:m], basis[:m]
    cosine = jnp.sqrt(1 - jnp.square(cfg.spread))
    sets = cosine * jnp.repeat(basis[:m], b, axis=0) + cfg.spread * basis[m:needed]
    return basis[:m], sets


def kinds(
    cfg: Config, rank: Int[Array, "L"], label: Int[Array, ""]
) -> tuple[Int[Array, "L"], Int[Array, "L"]]:
    """Section 2.3: role and pattern of every token, given a random order of the positions.

    The first $\\alpha_* L$ have the pattern of the label, the next $\\alpha_\\# L$ those of other
    labels, the rest the irrelevant patterns, as evenly as possible.
    """
    n_1 = jnp.round(cfg.frac_relevant * cfg.tokens).astype(jnp.int32)
    n_2 = jnp.round(cfg.frac_confusion * cfg.tokens).astype(jnp.int32)
    c, others, rest = cfg.classes, cfg.classes - 1, cfg.n_patterns - cfg.classes
    role = (rank >= n_1).astype(jnp.int32) + (rank >= n_1 + n_2).astype(jnp.int32)
    at = rank - jnp.stack([jnp.zeros_like(n_1), n_1, n_1 + n_2])[role]  # number within the role
    kind = jnp.stack([jnp.full_like(rank, label), (label + 1 + at % others) % c, c + at % rest])
    turn = jnp.stack([at, at // others, at // rest]) % cfg.variants
    pick = role[None, :] == jnp.arange(3, dtype=jnp.int32)[:, None]
    return role, jnp.sum(jnp.where(pick, kind * cfg.variants + turn, 0), axis=0)


def targets(cfg: Config) -> Float[Array, "C o"]:
    r"""$y = \pm 1$, or the four corners of $\{\pm 1\}^2$ (A.207 to A.210)."""
    if cfg.classes == 2:
        return jnp.array([[1.0], [-1.0]])
    return jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])


def rows_of(cfg: Config, count: int) -> int:
    """Samples that are laid out for a count: whole rounds of the classes."""
    return -(-count // cfg.classes) * cfg.classes
