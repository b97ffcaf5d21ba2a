"""Attention variants as functions of one query.

Letters in shapes: k keys, h width, c channels of a value. A logit of minus infinity masks a key.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def average(
    logits: Float[Array, "*batch k"], values: Float[Array, "*batch k"]
) -> Float[Array, "*batch"]:
    r"""$\langle \mathrm{softmax}(\ell), v\rangle$ over the last axis."""
    return jnp.sum(jax.nn.softmax(logits, axis=-1) * values, axis=-1)


def differential(
    logits: Float[Array, "*batch k"],
    others: Float[Array, "*batch k"],
    share: Float[Array, ""],
    values: Float[Array, "*batch k"],
) -> Float[Array, "*batch"]:
    r"""$\langle \mathrm{softmax}(\ell_1) - \lambda\,\mathrm{softmax}(\ell_2), v\rangle$."""
    return average(logits, values) - share * average(others, values)


def scores(q: Float[Array, "h"], keys: Float[Array, "k h"]) -> Float[Array, "k"]:
    r"""$\langle q, k_j\rangle / \sqrt h$."""
    return keys @ q / len(q) ** 0.5


def linear_decay(count: int, slope: Float[Array, ""] | float) -> Float[Array, "k"]:
    """A bias for logits that falls linearly with the distance to the last key."""
    return slope * jnp.arange(1.0 - count, 1.0)


def rotary(
    x: Float[Array, "k h"], position: Int[Array, "k"], scale: Float[Array, ""] | float = 1.0
) -> Float[Array, "k h"]:
    r"""Turns the pairs $(x_j, x_{j+h/2})$ of a vector at position t by $t\,10^{-8j/h}$.

    Products of turned vectors depend on the difference of their positions alone. `scale`
    multiplies all angles: at zero nothing turns.
    """
    half = x.shape[1] // 2
    speed = 10.0 ** (-4 * jnp.arange(half) / half)
    angle = scale * position.astype(x.dtype)[:, None] * speed[None, :]
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    a, b = x[:, :half], x[:, half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=1)


def patches(
    x: Float[Array, "d"], length: Int[Array, ""] | int
) -> tuple[Float[Array, "d d"], Float[Array, "d"]]:
    """Windows of `length` values that end at each step, newest first, and their logits' mask.

    Rows are laid out for the whole series, so that the length may be traced; windows that would
    start before the series are masked.
    """
    d = len(x)
    end, back = jnp.arange(d)[:, None], jnp.arange(d)[None, :]
    inside = (back < length) & (back <= end)
    rows = jnp.where(inside, x[jnp.maximum(end - back, 0)], 0.0)
    return rows, jnp.where(jnp.arange(d) >= length - 1, 0.0, -jnp.inf)
