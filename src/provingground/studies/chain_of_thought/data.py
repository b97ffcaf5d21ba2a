"""Parameters, tasks and training prompts of the one-layer chain-of-thought transformer.

Letters in shapes: M training patterns, K reasoning steps, l examples, C columns of a prompt.
Patterns, steps and positions count from 0, so step k maps $y_k$ to $y_{k+1}$. Test settings are in
`suites.py`, test prompts in `inference.py`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par
from provingground.keys import uniform

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
    suite: str = par("figures", "f", "test settings", choices=("figures", "default", "example 1"))
    examples_test: int = par(64, r"l_{\mathrm{ts}}", "examples in a test prompt at most", low=2)
    test_samples: int = par(200, "n'", "test prompts for each setting", low=1)
    test_tasks: int = par(8, r"|\mathcal{T}'|", "test tasks for each setting", low=1)


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
