"""Section 7.1: the gradient of attention in many dimensions, and Cases 1 and 2.

Letters in shapes: L tokens, d dimension.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import config, par, probe
from provingground.keys import normal, stream


@config
class Local:
    """Random tokens, weights and incoming gradients."""

    tokens: int = par(8, "L", "tokens", low=2)
    dim: int = par(4, "d", "token dimension", low=1)
    draws: int = par(200, "n", "random draws", low=1)
    lr: float = par(1e-3, r"\eta", "step size", low=0)


class LocalProbes(eqx.Module):
    agreement: Float[Array, ""] = probe("share of rows that move as Cases 1, 2 say")
    centred: Float[Array, ""] = probe("the same by the centred criterion")
    formula_error: Float[Array, ""] = probe("largest relative error of the gradient's formula")


def scores(w: Float[Array, "d d"], x: Float[Array, "L d"]) -> Float[Array, "L L"]:
    return jax.nn.softmax(x @ w @ x.T, axis=-1)


def gradient(
    w: Float[Array, "d d"],
    w_v: Float[Array, "d d"],
    x: Float[Array, "L d"],
    g: Float[Array, "L d"],
) -> Float[Array, "d d"]:
    r"""$X^\top(S \odot (G W_V^\top X^\top - ((\mathrm{Attn} \odot G)1)1^\top))X$."""
    s = scores(w, x)
    attn = s @ x @ w_v
    return x.T @ (s * (g @ w_v.T @ x.T - jnp.sum(attn * g, axis=1, keepdims=True))) @ x


def simulate_local(cfg: Local, key: Key[Array, ""]) -> LocalProbes:
    r"""One small step on $W$; does $S_{ii}$ rise where $\langle G_i, W_V^\top X_i\rangle < 0$?"""
    length, d = cfg.tokens, cfg.dim
    z = normal(stream(key, "data"), (cfg.draws, 2 * length + 2 * d, d))

    def one(z: Float[Array, "rows d"]) -> tuple[Array, Array, Array]:
        x, g, w, w_v = jnp.split(z, (length, 2 * length, 2 * length + d))
        w, w_v = w / d, w_v / d**0.5
        formula = gradient(w, w_v, x, g)
        auto = jax.grad(lambda w: jnp.sum(g * (scores(w, x) @ x @ w_v)))(w)
        after = scores(w - cfg.lr * formula, x)
        rises = jnp.diag(after - scores(w, x)) > 0
        attn = scores(w, x) @ x @ w_v
        plain = jnp.sum(g * (x @ w_v), axis=1) < 0
        centred = jnp.sum(g * (x @ w_v - attn), axis=1) < 0
        error = jnp.abs(formula - auto).max() / jnp.abs(auto).max()
        return jnp.mean(rises == plain, dtype=float), jnp.mean(rises == centred, dtype=float), error

    plain, centred, error = jax.vmap(one)(z)
    return LocalProbes(plain.mean(), centred.mean(), error.max())
