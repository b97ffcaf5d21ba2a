"""Tokens made of orthogonal patterns: the patterns, their places in a sample, and their noise.

Samplers draw with the axis of samples first, so that a padded count of samples changes nothing.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from provingground.errors import InputError
from provingground.keys import normal, uniform


def orthonormal(key: Key[Array, ""], count: int, dim: int) -> Float[Array, "count dim"]:
    """`count` orthonormal vectors of length `dim`, uniform among all such (Haar measure)."""
    if count > dim:
        raise InputError(f"{count} orthogonal patterns do not fit into {dim} dimensions.")
    q, r = jnp.linalg.qr(normal(key, (dim, dim)))
    # A QR decomposition is unique, and q uniform, once the diagonal of r is positive.
    return (q * jnp.where(jnp.diagonal(r) < 0, -1.0, 1.0)[None, :]).T[:count]


def permutations(key: Key[Array, ""], samples: int, tokens: int) -> Int[Array, "N L"]:
    """A uniformly random order of the tokens of each sample: the rank of every position."""
    return jnp.argsort(uniform(key, (samples, tokens)), axis=-1).astype(jnp.int32)


def tally(pattern: Int[Array, "L"], patterns: int) -> Float[Array, "M"]:
    """How often each of `patterns` patterns occurs among the tokens of a sample."""
    return jax.nn.one_hot(pattern, patterns, dtype=float).sum(axis=0)


def noisy(
    key: Key[Array, ""],
    patterns: Float[Array, "M d"],
    pattern: Int[Array, "N L"],
    noise: Float[Array, "N L"],
) -> tuple[Float[Array, "N L d"], Float[Array, "N L"]]:
    r"""Tokens $x = \mu_j + c\,g$ with $g \sim N(0, I)$, and the norm of each one's noise.

    `pattern` is the index $j$ of every token, `noise` its standard deviation $c$.
    """
    g = noise[..., None] * normal(key, (*pattern.shape, patterns.shape[1]))
    return patterns[pattern] + g, jnp.linalg.norm(g, axis=-1)
