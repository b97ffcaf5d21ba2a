"""Data, network and training of the one-layer chain-of-thought transformer, in the paper's order.

Letters in shapes: M training patterns, K reasoning steps, l examples, C columns of a prompt,
d pattern dimension, D rows and Q columns of W, B prompts of a batch. Patterns, steps and positions
count from 0, so step k maps $y_k$ to $y_{k+1}$. What happens in tests is in `inference.py`.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par, probe
from provingground.errors import InputError
from provingground.keys import normal, stream, uniform
from provingground.train import Trace, descend, log_steps

ROUNDING = 1e-4  # alpha times l is a count; a float32 product may lie above it by this much


@config
class Config:
    """The paper's parameters; defaults are those of section 7.5."""

    alpha: float = par(0.4, r"\alpha", "training examples with the query's input", low=0, high=1)
    examples: int = par(20, r"l_{\mathrm{tr}}", "examples in a training prompt", low=1)
    n_patterns: int = par(20, "M", "training patterns", low=3)
    n_steps: int = par(3, "K", "reasoning steps", low=2)
    dim: int = par(30, r"d_{\mathcal{X}}", "pattern dimension", low=20)
    init_std: float = par(0.01, r"\xi", "s.d. of the initial weights", low=0)
    lr: float = par(10.0, r"\eta", "step size", low=0)
    batch: int = par(64, "B", "prompts per step", low=1)
    steps: int = par(1000, "T", "training steps at most", low=1)
    eps: float = par(0.0, r"\epsilon", "training loss to stop at", low=0)
    record: int = par(2, "n_t", "recorded steps", low=2)
    held_out: int = par(256, "n", "prompts that measure the loss", low=1)
    n_patterns_test: int = par(10, "M'", "test patterns", low=2)
    noise: float = par(0.2, r"\|\delta\|", "norm of the noise of test examples", low=0)
    suite: str = par(
        "figures", "f", "test settings", choices=("figures", "default", "laws", "example_1")
    )
    examples_test: int = par(64, r"l_{\mathrm{ts}}", "examples in a test prompt at most", low=2)
    test_samples: int = par(200, "n'", "test prompts for each setting", low=1)
    test_tasks: int = par(8, r"|\mathcal{T}'|", "test tasks for each setting", low=1)


class TrainingProbes(eqx.Module):
    """What a training by itself reports."""

    test_loss: Float[Array, "step"] = probe("loss on held-out prompts", r"\ell")
    stopped_at: Int[Array, ""] = probe("training steps until the loss is reached", "T")
    step: Int[Array, "step"] = probe("training step", "t")


# ------------------------------------------------------------------------------- tasks


def shifts(k: int) -> np.ndarray:
    """How far a chain has moved along the ring after each step: 0, 1, 1 + 2, 1 + 2 + 3, ..."""
    return np.cumsum(np.arange(k + 1))


def permutation(u: Float[Array, "M"]) -> Int[Array, "M"]:
    """The ranks of distinct numbers: a uniform permutation for uniform numbers, without sorting."""
    i = np.arange(len(u))
    below = (u[None, :] < u[:, None]) | ((u[None, :] == u[:, None]) & (i[None, :] < i[:, None]))
    return jnp.sum(below, axis=1, dtype=jnp.int32)


def inverse(permuted: Int[Array, "M"]) -> Int[Array, "M"]:
    """The inverse permutation, by comparing: scattering compiles slowly."""
    index = jnp.arange(len(permuted), dtype=jnp.int32)
    return jnp.argmax(permuted[None, :] == index[:, None], axis=1).astype(jnp.int32)


def step_maps(ring: Int[Array, "M"], k: int) -> Int[Array, "K M"]:
    r"""Section 7.5: $f_k(\mu_{p_i}) = \mu_{p_{(i+k) \bmod M}}$ for a permutation p, as K maps."""
    place = inverse(ring)[None, :] + jnp.arange(1, k + 1, dtype=jnp.int32)[:, None]
    return ring[place % len(ring)]


# -------------------------------------------------------------------- training prompts


class Prompt(NamedTuple):
    """A prompt by what its columns hold: patterns and steps, and the column that is asked for."""

    inputs: Int[Array, "C"]
    outputs: Int[Array, "C"]
    step: Int[Array, "C"]
    exists: Bool[Array, "C"]  # columns of the query from its own step on do not
    query: Int[Array, ""]
    query_step: Int[Array, ""]
    label: Int[Array, ""]


def matching(cfg: Any) -> Bool[Array, "l"]:
    r"""Which examples start at the query's pattern: exactly $\lceil\alpha l\rceil$ of them."""
    count = jnp.ceil(cfg.alpha * cfg.examples - ROUNDING)
    return jnp.arange(cfg.examples, dtype=jnp.int32) < count.astype(jnp.int32)


def prompt_from(cfg: Any, u: Float[Array, "draws"], k: Int[Array, ""]) -> Prompt:
    """(7.1): examples of a fresh task, and the query up to step k, from uniform numbers.

    `cfg` is any Config with the sizes of a training prompt, as of `deep.py`.
    """
    m = cfg.n_patterns
    ring = permutation(u[:m])
    start = jnp.floor(u[m] * m).astype(jnp.int32)
    other = start + 1 + jnp.floor(u[m + 1 :] * (m - 1)).astype(jnp.int32)
    first = jnp.append(jnp.where(matching(cfg), start, other), start)  # the query comes last
    shift = jnp.asarray(shifts(cfg.n_steps), jnp.int32)
    y = ring[(first[:, None] + shift[None, :]) % m]
    step = jnp.arange(cfg.n_steps, dtype=jnp.int32)
    return Prompt(
        inputs=y[:, :-1].reshape(-1),
        outputs=y[:, 1:].reshape(-1),
        step=jnp.tile(step, cfg.examples + 1),
        exists=jnp.concatenate([jnp.ones(cfg.examples * cfg.n_steps, bool), step < k]),
        query=y[-1, k],
        query_step=k,
        label=y[-1, k + 1],
    )


def draw_prompts(cfg: Any, key: Key[Array, ""], count: int) -> Prompt:
    """`count` prompts; every step is asked for equally often."""
    u = uniform(key, (count, cfg.n_patterns + 1 + cfg.examples))
    k = jnp.arange(count, dtype=jnp.int32) % cfg.n_steps
    return jax.vmap(lambda u, k: prompt_from(cfg, u, k))(u, k)


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


def train_alone(cfg: Config, key: Key[Array, ""], room: Room, part: Any) -> TrainingProbes:
    """Training in some coordinates, measured on held-out prompts."""
    held_out = draw_prompts(cfg, stream(key, "test/held_out"), cfg.held_out)
    trace = train(
        cfg,
        key,
        room,
        initial_weights(cfg, key)[part],
        probe=lambda w: {"test_loss": loss_of(cfg, room, w, held_out)},
    )
    return TrainingProbes(**trace.probes, stopped_at=trace.stopped_at, step=trace.step)


def simulate_training(cfg: Config, key: Key[Array, ""]) -> TrainingProbes:
    """Training in the coordinates that a gradient reaches: the same weights, for less work."""
    return train_alone(cfg, key, reduced(cfg), trained_part(cfg))


def simulate_full(cfg: Config, key: Key[Array, ""]) -> TrainingProbes:
    """Training of all $2d \\times 2d$ weights, as written."""
    return train_alone(cfg, key, full(cfg), (slice(None), slice(None)))
