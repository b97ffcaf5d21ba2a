"""Test patterns that lean towards the uniform mixture of all training patterns.

(7.19) asks test patterns to lie in the span of the training patterns. The trained W gives the
uniform mixture no score with itself, so that this is not enough (see `theory.input_score`).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from provingground.keys import normal

from .inference import attention, network_scores, query_scores, ring_chain
from .model import Config

MATCHED_EXAMPLES, OTHERS = 8, 2


def mixtures(n_patterns: int) -> np.ndarray:
    r"""Sums $S = \sum_i\lambda_i$ of coefficients, up to that of the uniform mixture."""
    return np.linspace(0, 1, 6) * n_patterns**0.5


def leaning_patterns(g: Float[Array, "m M"], total: Float[Array, ""]) -> Float[Array, "m M"]:
    """Orthonormal patterns from normal numbers; the coefficients of the first sum up to `total`."""
    e = jnp.full(g.shape[1], g.shape[1] ** -0.5)
    across = g[0] - (g[0] @ e) * e
    share = jnp.minimum(total / g.shape[1] ** 0.5, 1.0)
    first = share * e + jnp.sqrt(1 - share**2) * across / jnp.linalg.norm(across)
    q, r = jnp.linalg.qr(g.at[0].set(first).T)
    return (q * jnp.where(jnp.diagonal(r) < 0, -1.0, 1.0)[None, :]).T


def matched_by_mixture(
    cfg: Config, key: Key[Array, ""], w: Float[Array, "D D"], m: int
) -> Float[Array, "mixture"]:
    """Attention of the first step on matched columns; 8 of 10 examples are matched.

    The query has the leaning pattern, and so have the matched examples; there is no noise.
    """
    n, d, k = cfg.n_patterns, cfg.dim, cfg.n_steps
    g = normal(key, (m, n))
    first = np.append(np.zeros(MATCHED_EXAMPLES, int), 1 + np.arange(OTHERS) % (m - 1))
    y = jnp.asarray(ring_chain(first, k, m), jnp.int32)

    def one(total: Float[Array, ""]) -> Float[Array, ""]:
        mu = jnp.pad(leaning_patterns(g, total), ((0, 0), (0, d - n)))
        queries = query_scores(cfg, w, mu)
        scores = network_scores(queries, mu, y, jnp.zeros((*y.shape, d)))
        return attention(queries, scores, y, jnp.ones(len(y), bool), y[0])[1][0, 0]

    return jax.lax.map(one, jnp.asarray(mixtures(n), g.dtype))
