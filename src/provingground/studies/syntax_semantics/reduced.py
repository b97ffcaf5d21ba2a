"""The same training on the population, in five numbers. Letters: M values of the margin."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.special import ndtri

from provingground.errors import InputError

from .model import (
    SHARE,
    SUB_CLUSTERS,
    Y_OF,
    Config,
    Probes,
    State,
    Weights,
    logistic_loss,
    signal_probes,
    two_stages,
)


def margins(margin: Any, dim: Any, count: int = 8) -> Float[Array | np.ndarray, "M"]:
    r"""$m = y\langle w^\star, x_1\rangle = \gamma_0 + |N(0, 1/d)|$ at equally likely values."""
    return margin + ndtri(0.5 + (np.arange(count) + 0.5) / (2 * count)) / dim**0.5


def hard_population(
    v_red: Float[Array, "2 2"], z_norm: Any, zeta_norm: Any, tokens: int, positive: Any = 0.5
) -> Float[Array, "3"]:
    r"""g for queries $z$, $z+\zeta$, $z-\zeta$ and a balanced context.

    With $V = \binom{a\ b}{c\ e}$ in the basis $z/u, \zeta/r$ the score of token $s_i$ is
    $p + s_iq$, $p = u^2a + ursb$, $q = urc + r^2se$, and the context sums to
    $g = \frac{L-1}L[(2\pi-1)\max(0, p) - \frac{1-\pi}2\max(0, |q| - |p|)]$.
    """
    u, r, s = z_norm, zeta_norm, SUB_CLUSTERS
    p = u * u * v_red[0, 0] + u * r * s * v_red[0, 1]
    q = u * r * v_red[1, 0] + r * r * s * v_red[1, 1]
    beyond = jax.nn.relu(jnp.abs(q) - jnp.abs(p))
    both = (2 * positive - 1) * jax.nn.relu(p) - (1 - positive) / 2 * beyond
    return (tokens - 1) / tokens * both


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""The population in five numbers: $W = c\,w^\star w^{\star\top}$ and $V$ in its span.

    For $V$ this is exact, noise and all. For $W$ the noise across $w^\star$ is left out:
    $y_Lh = \frac{L-1}L\,\rho\,c\,E[m]\,m_L$ with $\rho$ the share of the tokens that are active,
    those of the query's label ($c > 0$) or the others ($c < 0$).
    """
    if not cfg.balanced:
        raise InputError("the reduced model is that of balanced contexts: take simulator 'full'")
    m, y, share = margins(cfg.margin, cfg.dim), jnp.asarray(Y_OF), jnp.asarray(SHARE)
    per_c = (cfg.tokens - 1) / cfg.tokens * m.mean() * m

    def outputs(u: Weights) -> tuple[Float[Array, "M 3"], Float[Array, "3"]]:
        """Label-signed h of every margin and sub-cluster, and g of every sub-cluster."""
        active = jnp.where(u.w * y > 0, cfg.positive, 1 - cfg.positive)
        g = hard_population(u.v, cfg.z_norm, cfg.zeta_norm, cfg.tokens, cfg.positive)
        return jnp.outer(u.w * per_c, active), g

    def loss(u: Weights, bias: Float[Array, ""]) -> Float[Array, ""]:
        h, g = outputs(u)
        return logistic_loss((h + (y * (g + bias))[None, :]) / 2).mean(axis=0) @ share

    def measure(s: State) -> dict[str, Float[Array, ""]]:
        h, g = outputs(s.weights)
        return dict(
            train_loss=loss(s.weights, s.bias),
            loss_easy=logistic_loss(h).mean(axis=0) @ share,
            loss_hard=share @ logistic_loss(y * (g + s.bias)),
            error_easy=jnp.mean(h <= 0, axis=0, dtype=h.dtype) @ share,
            hard_positive=g[0] + s.bias,
            w_cosine=jnp.sign(s.signal.w),
            **signal_probes(s),
        )

    like = Weights(jnp.array(0.0), jnp.zeros((2, 2)))
    return two_stages(cfg, key, like, loss, measure)
