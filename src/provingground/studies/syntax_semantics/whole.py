"""The whole 2d x 2d matrix U: with or without its mask, and softmax in place of the ReLU."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from provingground.config import config, par

from . import model
from .model import (
    TINY,
    Probes,
    Prompts,
    State,
    Weights,
    logistic_loss,
    losses,
    norm,
    prompts,
    signal_probes,
    two_stages,
)


@config
class Config(model.Config):
    """The parameters of the other simulators, and which network it is."""

    masked: bool = par(True, "U", "blocks beside the diagonal of U held at zero")
    softmax: bool = par(False, r"\sigma", "softmax over the context instead of the ReLU")


def attend_part(
    scores: Float[Array, "N C"], labels: Float[Array, "N C"], softmax: bool
) -> Float[Array, "N"]:
    r"""One part's output: $\frac1L\sum_iy_i\,\mathrm{ReLU}$ of the scores, or their softmax.

    The softmax is over the context of each part, so that still $f = \frac12(h+g)$.
    """
    if softmax:
        return jnp.sum(labels * jax.nn.softmax(scores, axis=1), axis=1)
    return jnp.sum(labels * jax.nn.relu(scores), axis=1) / (scores.shape[1] + 1)


Parts = Callable[[Weights], tuple[Float[Array, "N"], Float[Array, "N"]]]


def parts(cfg: Config, data: Prompts) -> Parts:
    r"""h and g as functions of the rows of U: $(W, U_{12})$ and $(U_{21}, V)$."""
    labels, d = data.y[:, :-1], cfg.dim
    query = jnp.concatenate([data.x_easy[:, -1], data.x_hard[:, -1]], axis=1)
    mask = np.ones((2, d, 2 * d))
    if cfg.masked:
        mask[0, :, d:], mask[1, :, :d] = 0, 0

    def part(rows: Float[Array, "d e"], tokens: Float[Array, "N C d"]) -> Float[Array, "N"]:
        scores = jnp.einsum("nld,nd->nl", tokens, query @ rows.T)
        return attend_part(scores, labels, cfg.softmax)

    return lambda u: (
        part(u.w * mask[0], data.x_easy[:, :-1]),
        part(u.v * mask[1], data.x_hard[:, :-1]),
    )


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """Training of U on N prompts. Norms, traces and noise are those of the diagonal blocks."""
    data, d = prompts(cfg, key), cfg.dim
    y, out = data.y_query, parts(cfg, data)

    def loss(u: Weights, bias: Float[Array, ""]) -> Float[Array, ""]:
        h, g = out(u)
        return logistic_loss(y * (h + g + bias) / 2).mean()

    def measure(s: State) -> dict[str, Float[Array, ""]]:
        h, g = out(s.weights)
        blocks = State(
            signal=on_diagonal(s.signal),
            noise=on_diagonal(s.noise),
            bias=s.bias,
            annealed=on_diagonal(s.annealed),
        )
        w = blocks.signal.w
        cosine = data.w_star @ w @ data.w_star / jnp.maximum(norm(w), TINY)
        return dict(**losses(y, h, g + s.bias), **signal_probes(blocks), w_cosine=cosine)

    rows = jnp.zeros((d, 2 * d))
    return two_stages(cfg, key, Weights(rows, rows), loss, measure)


def on_diagonal(u: Weights) -> Weights:
    """The blocks W and V of the rows."""
    d = u.w.shape[0]
    return Weights(u.w[:, :d], u.v[:, d:])
