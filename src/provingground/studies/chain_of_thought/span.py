"""Test patterns that lean towards the uniform mixture of all training patterns.

(7.19) asks test patterns to lie in the span of the training patterns. The trained W gives the
uniform mixture no score with itself, so that this is not enough (see `theory.input_score`).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from provingground.keys import normal, stream, uniform

from .data import Config

MATCHED_SHARE = 0.8  # of the columns of the query's step
QUERIES = ("uniform mixture", "random pattern")
MULTIPLES = (0.25, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0, 4.0)  # alpha' in units of 1/M'
LENGTHS = (32, 128, 512)
PROMPTS = 256


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


def query_and_others(g: Float[Array, "M m"], which: Int[Array, ""]) -> Float[Array, "m M"]:
    """Orthonormal test patterns, of which the first is the uniform mixture (0) or random (1)."""
    first = jnp.where(which == 0, jnp.ones(len(g)), g[:, 0])
    q, _ = jnp.linalg.qr(g.at[:, 0].set(first))
    return q.T


def errors_on_queries(
    cfg: Config, w: Float[Array, "D D"], key: Key[Array, ""]
) -> Float[Array, "pattern multiple l_span"]:
    r"""How often step 1 errs if the query is the uniform mixture, or a random pattern.

    Examples make no mistakes and have no noise, so that an output stands for its input, and a
    prompt is how often each input occurs: the query's with probability $\alpha'$, the others
    equally often. Columns of other steps are left out.
    """
    n, m = cfg.n_patterns, min(cfg.n_patterns_test, cfg.n_patterns)
    g = normal(stream(key, "test/queries"), (n, m))
    u = uniform(stream(key, "test/inputs"), (max(LENGTHS), PROMPTS, 2))
    other = 1 + jnp.floor(u[:, :, 1] * (m - 1)).astype(jnp.int32)

    def of(which: Int[Array, ""]) -> Float[Array, "multiple l_span"]:
        mu = query_and_others(g, which)
        query = w[:, :n] @ mu[0] + w[:, n]
        score = mu @ query[:n] + jnp.roll(mu, -1, axis=0) @ query[cfg.dim : cfg.dim + n]

        def at(multiple: Float[Array, ""]) -> Float[Array, "l_span"]:
            first = jnp.where(u[:, :, 0] < jnp.minimum(multiple / m, 1.0), 0, other)
            seen = jnp.cumsum(jax.nn.one_hot(first, m, dtype=w.dtype), axis=0)
            weight = seen[np.array(LENGTHS) - 1] * jnp.exp(score - score.max())[None, None]
            return jnp.mean(jnp.argmax(weight, axis=-1) != 0, axis=1, dtype=w.dtype)

        return jax.lax.map(at, jnp.asarray(MULTIPLES, w.dtype))

    return jax.lax.map(of, jnp.arange(len(QUERIES), dtype=jnp.int32))
