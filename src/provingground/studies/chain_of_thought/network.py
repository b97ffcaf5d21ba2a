"""The network and its training, in the paper's order.

Letters in shapes: C columns of a prompt, D rows and Q columns of W, o coordinates of an output.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.errors import InputError
from provingground.keys import normal, stream
from provingground.train import Trace, descend, log_steps

from .data import Config, Prompt, draw_prompts

# ---------------------------------------------------------------------------- network


class Room(NamedTuple):
    """How long tokens are: coordinates of inputs and encodings, and of outputs.

    With $\\mu_i = e_i$ and $c_k = (e_{M+k}; 0)$ a token has ones at its input, at M + its step, and
    at its output. `full` has them all, `reduced` those that are ever one, which is the same.
    """

    inputs: int
    outputs: int
    query: int


def full(cfg: Config) -> Room:
    if cfg.n_patterns + cfg.n_steps > cfg.dim:
        raise InputError(
            f"{cfg.n_patterns} patterns and {cfg.n_steps} positional encodings are orthogonal: "
            f"they do not fit into dim = {cfg.dim}."
        )
    return Room(cfg.dim, cfg.dim, 2 * cfg.dim)


def reduced(cfg: Config) -> Room:
    m, k = cfg.n_patterns, cfg.n_steps
    return Room(m + k, m, m + k)


def one_hot(index: Int[Array, "*n"], size: int) -> Float[Array, "*n size"]:
    return jax.nn.one_hot(index, size, dtype=float)


def tokens(cfg: Config, room: Room, p: Prompt) -> tuple[Float[Array, "C D"], Float[Array, "Q"]]:
    r"""The columns $\tilde p_i = p_i + c_k$ of a prompt, and $\tilde p_{query}$."""
    m = cfg.n_patterns
    upper = one_hot(p.inputs, room.inputs) + one_hot(m + p.step, room.inputs)
    query = one_hot(p.query, room.query) + one_hot(m + p.query_step, room.query)
    return jnp.concatenate([upper, one_hot(p.outputs, room.outputs)], axis=1), query


def network(
    w: Float[Array, "D Q"],
    columns: Float[Array, "C D"],
    query: Float[Array, "Q"],
    exists: Bool[Array, "C"],
    outputs: int,
) -> tuple[Float[Array, "o"], Float[Array, "C"]]:
    r"""(7.2): $F = \sum_i W_V\tilde p_i\,\mathrm{softmax}_i(\tilde p_i^\top W\tilde p_{query})$.

    $W_V = (0\ I)$ reads the last coordinates. Also returns the attention.
    """
    scores = columns @ (w @ query)
    s = jax.nn.softmax(jnp.where(exists, scores, -jnp.inf))
    return s @ columns[:, -outputs:], s


def loss_of(cfg: Config, room: Room, w: Float[Array, "D Q"], prompts: Prompt) -> Float[Array, ""]:
    r"""(7.3): the mean of $\frac12\|z - F\|^2$ over prompts."""

    def one(p: Prompt) -> Float[Array, ""]:
        f, _ = network(w, *tokens(cfg, room, p), p.exists, room.outputs)
        return jnp.sum((one_hot(p.label, room.outputs) - f) ** 2) / 2

    return jnp.mean(jax.vmap(one)(prompts))


# --------------------------------------------------------------------------- training


def initial_weights(cfg: Config, key: Key[Array, ""]) -> Float[Array, "D D"]:
    r"""$W^{(0)}_{ij} \sim N(0, \xi^2)$ in all $2d \times 2d$ coordinates."""
    return cfg.init_std * normal(stream(key, "init"), (2 * cfg.dim, 2 * cfg.dim))


def trained_part(cfg: Config) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of W that a gradient ever reaches, in the order of `reduced`."""
    m, k = cfg.n_patterns, cfg.n_steps
    rows = np.concatenate([np.arange(m + k), cfg.dim + np.arange(m)])
    return rows[:, None], np.arange(m + k)[None, :]


def train(
    cfg: Config, key: Key[Array, ""], room: Room, start: Float[Array, "D Q"], **probing: Any
) -> Trace[Float[Array, "D Q"]]:
    """Algorithm 3: SGD on W with fresh prompts at every step."""
    fresh = stream(key, "batch")
    return descend(
        lambda w, prompts: loss_of(cfg, room, w, prompts),
        start,
        optax.sgd(cfg.lr),
        steps=cfg.steps,
        at=log_steps(cfg.steps, cfg.record),
        until=lambda loss, _: loss <= cfg.eps,
        batch=lambda t: draw_prompts(cfg, jax.random.fold_in(fresh, t), cfg.batch),
        **probing,
    )
