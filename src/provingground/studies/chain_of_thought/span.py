"""Test patterns that lean towards the uniform mixture of all training patterns.

(7.19) asks test patterns to lie in the span of the training patterns. The trained W gives the
uniform mixture no score with itself, so that this is not enough (see `theory.input_score`).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .model import Config

MATCHED_SHARE = 0.8  # of the columns of the query's step


def mixtures(n_patterns: int) -> np.ndarray:
    r"""Sums $S = \sum_i\lambda_i$ of coefficients, up to that of the uniform mixture."""
    return np.linspace(0, 1, 6) * n_patterns**0.5


def leaning_pair(
    g: Float[Array, "two M"], total: Float[Array, "mixture"]
) -> tuple[Float[Array, "mixture M"], Float[Array, "mixture M"]]:
    """A unit vector whose entries sum up to `total`, and one orthogonal to it; from two normal."""
    n = g.shape[1]
    across = g[0] - g[0].mean()
    across = across / jnp.linalg.norm(across)
    share = jnp.minimum(total / n**0.5, 1.0)[:, None]
    lean = share * n**-0.5 + jnp.sqrt(1 - share**2) * across[None, :]
    other = g[1][None, :] - (lean @ g[1])[:, None] * lean
    return lean, other / jnp.linalg.norm(other, axis=1, keepdims=True)


def matched_by_mixture(
    cfg: Config, w: Float[Array, "D D"], g: Float[Array, "n two M"]
) -> Float[Array, "mixture"]:
    r"""Attention of step 1 on matched columns, 0.8 of all of its step, if the query leans.

    Matched columns have the query's input, the others an orthogonal one. Outputs are equal, and
    other steps are left out, so that scores differ by $(\mu - \mu')^\top W\tilde p_{query}$ alone.
    The mean over several pairs.
    """
    m = cfg.n_patterns
    total = jnp.asarray(mixtures(m), g.dtype)
    lean, other = jax.vmap(lambda g: leaning_pair(g, total))(g)
    score = jnp.einsum("ab,nsb->nsa", w[:m, :m], lean) + w[None, None, :m, m]
    gap = jnp.sum((lean - other) * score, axis=-1)
    odds = MATCHED_SHARE / (1 - MATCHED_SHARE) * jnp.exp(gap)
    return jnp.mean(odds / (1 + odds), axis=0)
