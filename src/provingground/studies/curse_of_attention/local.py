"""Section 7.1: the gradient of attention in many dimensions, and Cases 1 and 2.

Letters in shapes: L tokens, d dimension.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from provingground.config import config, par, probe
from provingground.keys import normal, stream


@config
class Config:
    """Random tokens, weights and incoming gradients."""

    tokens: int = par(8, "L", "tokens", low=2)
    dim: int = par(4, "d", "token dimension", low=1)
    draws: int = par(200, "n", "random draws", low=1)
    lr: float = par(1e-6, r"\eta", "step size", low=0)


class Probes(eqx.Module):
    agreement: Float[Array, ""] = probe("share of rows that move as Cases 1, 2 say")
    centred: Float[Array, ""] = probe("the same by the centred criterion")
    alone: Float[Array, ""] = probe(
        "the same by the whole derivative, if one row alone has a gradient"
    )


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


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""One small step on $W$; does $S_{ii}$ rise where $\langle G_i, W_V^\top X_i\rangle < 0$?"""
    length, d = cfg.tokens, cfg.dim
    z = normal(stream(key, "data"), (cfg.draws, 2 * length + 2 * d, d))

    def one(z: Float[Array, "rows d"]) -> tuple[Array, Array, Array]:
        x, g, w, w_v = jnp.split(z, (length, 2 * length, 2 * length + d))
        w, w_v = w / d, w_v / d**0.5
        before = scores(w, x)

        def rises(g: Float[Array, "L d"]) -> Bool[Array, "L"]:
            after = scores(w - cfg.lr * gradient(w, w_v, x, g), x)
            return jnp.diag(after - before) > 0

        plain = jnp.sum(g * (x @ w_v), axis=1) < 0
        centred = jnp.sum(g * (x @ w_v - before @ x @ w_v), axis=1) < 0
        # Of orthogonal tokens logits of row i move by -S (z - <S, z>), z_j = <G_i, W_V^T X_j>.
        z = g @ (x @ w_v).T
        move = before * (z - jnp.sum(before * z, axis=1, keepdims=True))
        whole = jnp.diag(move) - jnp.sum(before * move, axis=1) < 0
        single = rises(g.at[1:].set(0.0))[0] == whole[0]
        moved = rises(g)
        return (
            jnp.mean(moved == plain, dtype=float),
            jnp.mean(moved == centred, dtype=float),
            single.astype(float),
        )

    plain, centred, alone = jax.vmap(one)(z)
    return Probes(plain.mean(), centred.mean(), alone.mean())
