"""What needs no training: Figure 3's picture of the data, and Proposition 2's gradient."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import probe
from provingground.keys import normal, stream

from .model import Config, Prompts, logistic_loss, norm, outputs, prompts


class PictureProbes(eqx.Module):
    """The tokens of one context in the plane, and how well a line tells their labels apart."""

    linear_easy: Float[Array, ""] = probe("best linear accuracy on the easy part")
    linear_hard: Float[Array, ""] = probe("best linear accuracy on the hard part")
    x_easy: Float[Array, "token axis"] = probe("easy part of a token", "x_1")
    x_hard: Float[Array, "token axis"] = probe("hard part of a token", "x_2")
    label: Float[Array, "token"] = probe("label", "y")


def linear_accuracy(
    x: Float[Array, "T 2"], y: Float[Array, "T"], angles: int = 180
) -> Float[Array, ""]:
    """The best share that a line gets right, over its angle and its place."""
    turn = jnp.linspace(0, jnp.pi, angles, endpoint=False)
    along = jnp.stack([jnp.cos(turn), jnp.sin(turn)], axis=1) @ x.T
    above = jnp.where(along[:, None, :] > along[:, :, None], 1.0, -1.0)  # every token as threshold
    right = (above @ y / len(y) + 1) / 2
    return jnp.max(jnp.maximum(right, 1 - right))


def simulate_picture(cfg: Config, key: Key[Array, ""]) -> PictureProbes:
    """Figure 3: the first context, in the first two coordinates."""
    data = prompts(cfg, key)
    y, easy, hard = data.y[0, :-1], data.x_easy[0, :-1, :2], data.x_hard[0, :-1, :2]
    return PictureProbes(linear_accuracy(easy, y), linear_accuracy(hard, y), easy, hard, y)


class GradientProbes(eqx.Module):
    """Relative errors of Proposition 2's gradient of W against automatic differentiation."""

    printed_random: Float[Array, ""] = probe("error of the printed gradient, random W")
    printed_aligned: Float[Array, ""] = probe("error of the printed gradient, aligned W")
    signed_random: Float[Array, ""] = probe("error of the gradient with signs, random W")


def easy_gradient(
    data: Prompts, w: Float[Array, "d d"], signed: bool = True
) -> Float[Array, "d d"]:
    r"""Prop. 2: $-\hat E[\sigma(-y_Lf)\frac1{2L}\sum_iy_iy_L1(x_i^\top Wx_L\ge0)x_ix_L^\top]$.

    At $V = 0$. The paper's last line leaves the signs $y_iy_L$ out (`signed=False`).
    """
    context, query, y = data.x_easy[:, :-1], data.x_easy[:, -1], data.y_query
    slope = jax.nn.sigmoid(-y * outputs(data).easy(w) / 2)
    active = (jnp.einsum("nld,nd->nl", context, query @ w.T) >= 0).astype(float)
    sign = data.y[:, :-1] * y[:, None] if signed else jnp.ones_like(active)
    total = jnp.einsum("n,nl,nld,ne->de", slope, sign * active, context, query)
    return -total / (2 * data.sub_cluster.size)


def simulate_gradient(cfg: Config, key: Key[Array, ""]) -> GradientProbes:
    """Gradients at a random W, and at one along the target."""
    data = prompts(cfg, key)
    y, out = data.y_query, outputs(data)
    random = cfg.init_std * normal(stream(key, "init"), (cfg.dim, cfg.dim))

    def error(w: Float[Array, "d d"], signed: bool) -> Float[Array, ""]:
        exact = jax.grad(lambda w: logistic_loss(y * out.easy(w) / 2).mean())(w)
        return norm(easy_gradient(data, w, signed) - exact) / norm(exact)

    return GradientProbes(
        printed_random=error(random, signed=False),
        printed_aligned=error(jnp.outer(data.w_star, data.w_star), signed=False),
        signed_random=error(random, signed=True),
    )
