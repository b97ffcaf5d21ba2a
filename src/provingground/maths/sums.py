"""Several sums at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def sums(*terms: Float[Array, "k ..."]) -> tuple[Float[Array, "..."], ...]:
    """The sums of some arrays of one shape over their first axis, in one loop over it.

    Written as one reduction, the terms are computed where they are added, from what they share,
    and none of them is kept in memory; a sum each may compute them several times. Unrolled in
    Python, a compiler for GPUs may take minutes.
    """
    zeros = [jnp.zeros((), term.dtype) for term in terms]
    return jax.lax.reduce(terms, tuple(zeros), _added, (0,))


def _added(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))
