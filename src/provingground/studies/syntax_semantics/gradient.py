"""Proposition 2's gradient of W, as printed, at weights from random to aligned. No training."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import config, par, probe
from provingground.keys import normal, stream

from . import model
from .model import Prompts, logistic_loss, norm, outputs, prompts


@config
class Config(model.Config):
    """The parameters of the other simulators, and where the gradient is taken."""

    aligned: float = par(0.0, "c", "part of W along the target, beside random entries", low=0)


class Probes(eqx.Module):
    """Proposition 2's gradient of W against automatic differentiation."""

    printed_error: Float[Array, ""] = probe("relative error of the printed gradient")
    wrong_share: Float[Array, ""] = probe("active tokens whose label is not the query's")


def easy_gradient(
    data: Prompts, w: Float[Array, "d d"], signed: bool = True
) -> Float[Array, "d d"]:
    r"""Prop. 2: $-\hat E[\sigma(-y_Lf)\frac1{2L}\sum_iy_iy_L1(x_i^\top Wx_L\ge0)x_ix_L^\top]$.

    At $V = 0$. The paper's last line leaves the signs $y_iy_L$ out (`signed=False`).
    """
    query, y = data.x_easy[:, -1], data.y_query
    slope = jax.nn.sigmoid(-y * outputs(data).easy(w) / 2)
    active = active_tokens(data, w)
    sign = data.y[:, :-1] * y[:, None] if signed else jnp.ones_like(active)
    total = jnp.einsum("n,nl,nld,ne->de", slope, sign * active, data.x_easy[:, :-1], query)
    return -total / (2 * data.sub_cluster.size)


def active_tokens(data: Prompts, w: Float[Array, "d d"]) -> Float[Array, "N C"]:
    context, query = data.x_easy[:, :-1], data.x_easy[:, -1]
    return (jnp.einsum("nld,nd->nl", context, query @ w.T) >= 0).astype(float)


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""At $W = c\,w^\star w^{\star\top}$ plus random entries."""
    data = prompts(cfg, key)
    y, out = data.y_query, outputs(data)
    random = cfg.init_std * normal(stream(key, "init"), (cfg.dim, cfg.dim))
    w = random + cfg.aligned * jnp.outer(data.w_star, data.w_star)
    exact = jax.grad(lambda w: logistic_loss(y * out.easy(w) / 2).mean())(w)
    active = active_tokens(data, w)
    other = jnp.where(data.y[:, :-1] != y[:, None], active, 0.0)
    return Probes(
        printed_error=norm(easy_gradient(data, w, signed=False) - exact) / norm(exact),
        wrong_share=other.sum() / jnp.maximum(active.sum(), 1),
    )
