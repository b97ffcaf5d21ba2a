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
    return order(uniform(key, (samples, tokens)))


def ranks(values: Float[Array, "N L"]) -> Int[Array, "N L"]:
    """How many values of its row come before each one; equal ones in their order.

    That is `argsort(argsort(values))`, by comparing all pairs: for the few tokens of a sample it is
    as fast as a sort, and compiles faster on a GPU.
    """
    one, other = values[:, :, None], values[:, None, :]
    earlier = jnp.tri(values.shape[1], k=-1, dtype=bool)[None]
    return jnp.sum((other < one) | ((other == one) & earlier), axis=2, dtype=jnp.int32)


def order(values: Float[Array, "N L"]) -> Int[Array, "N L"]:
    """`argsort(values)`, without a sort: the places of the values of rank 0, 1, ..."""
    each = jnp.arange(values.shape[1], dtype=jnp.int32)
    here = ranks(values)[:, None, :] == each[None, :, None]
    return jnp.sum(jnp.where(here, each[None, None, :], 0), axis=2, dtype=jnp.int32)


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
