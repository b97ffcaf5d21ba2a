"""Inference by chain of thought and in context: test prompts, and greedy decoding.

Letters in shapes: S settings, N test prompts, L examples, K steps (of a column), q steps (of the
query), m test patterns, d pattern dimension. A query column is one of K m, so the scores of a
context column with all of them are computed at once; chains of thought then look them up. Since
noise is orthogonal to the test patterns, the decoded output is the one with the most attention.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.data.patterns import orthonormal
from provingground.keys import normal, stream, uniform

from .data import Config, shifts
from .suites import Tests

TYPES = ("same step, same pattern", "same step, other", "other step, same pattern", "neither")
JITTER = 1e-3  # breaks ties of a vote


# ----------------------------------------------------------------------- test prompts


def lengths(longest: int) -> np.ndarray:
    """Prompt lengths: 2, 4, 8, ... up to the longest."""
    return (2 ** np.arange(1, int(np.log2(longest)) + 1)).astype(np.int32)


def span_patterns(key: Key[Array, ""], m: int, n_patterns: int, dim: int) -> Float[Array, "m d"]:
    r"""Orthonormal test patterns $\mu'_j$, uniform in the span of the training patterns (7.19)."""
    rows = orthonormal(stream(key, "test/patterns"), m, n_patterns)
    return jnp.pad(rows, ((0, 0), (0, dim - n_patterns)))


def noise_of(
    key: Key[Array, ""],
    shape: tuple[int, ...],
    mu: Float[Array, "m d"],
    size: Float[Array, ""] | float,
) -> Float[Array, "*shape d"]:
    r"""(7.11): noise of a given norm in a random direction orthogonal to the test patterns."""
    g = normal(key, (*shape, mu.shape[1]))
    g = g - (g @ mu.T) @ mu
    return size * g / jnp.linalg.norm(g, axis=-1, keepdims=True)


def draw_examples(
    u: Float[Array, "L two_plus_K"],
    start: Int[Array, ""],
    alpha: Float[Array, ""],
    a: Float[Array, "K m m"],
) -> Int[Array, "L y"]:
    r"""(7.12): patterns of examples; $y_0$ is the query's with probability $\alpha'$, else another.

    Settings that share `u` share what chance decides.
    """
    m = a.shape[-1]
    other = (start + 1 + jnp.floor(u[:, 1] * (m - 1)).astype(jnp.int32)) % m
    y = [jnp.where(u[:, 0] < alpha, start, other)]
    below = jnp.cumsum(a, axis=-1)[..., :-1]  # the last output takes what rounding leaves
    for k in range(len(a)):
        y.append(jnp.sum(u[:, 2 + k, None] >= below[k][y[-1]], axis=-1, dtype=jnp.int32))
    return jnp.stack(y, axis=1)


class Batch(NamedTuple):
    """Test prompts of a setting: examples, the query's true chain, and what breaks ties."""

    y: Int[Array, "*S N L y"]
    truth: Int[Array, "*S N y"]
    tie: Float[Array, "N L K"]  # the same for all settings, like the chances behind `y`


def ring_chain(first: np.ndarray, k: int, m: int) -> Int[np.ndarray, "L y"]:
    """Correct chains from some inputs, for the task that moves on by 1, 2, 3, ... of m patterns."""
    return (np.asarray(first)[:, None] + shifts(k)[None, :]) % m


def chain(task: Int[Array, "K m"], start: Int[Array, ""]) -> Int[Array, "y"]:
    """(7.10): the true steps $z_0, ..., z_K$ from an input."""
    z = [start]
    for f in task:
        z.append(f[z[-1]])
    return jnp.stack(z)


def draw_batch(key: Key[Array, ""], tests: Tests, n: int, examples: int) -> Batch:
    """n prompts for each setting; queries go through all inputs in turn, and through the tasks."""
    _, n_tasks, k, m = tests.task.shape
    u = uniform(stream(key, "test/examples"), (examples, n, 2 + 2 * k))
    turn = jnp.arange(n, dtype=jnp.int32)
    start, which = turn % m, (turn // m) % n_tasks

    def of_setting(
        alpha: Float[Array, ""], task: Int[Array, "T K m"], a: Float[Array, "T K m m"]
    ) -> tuple[Int[Array, "N L y"], Int[Array, "N y"]]:
        y = jax.vmap(draw_examples, in_axes=(1, 0, None, 0))(u, start, alpha, a[which])
        return y, jax.vmap(chain)(task[which], start)

    y, truth = jax.vmap(of_setting)(tests.alpha_test, tests.task, tests.transitions)
    return Batch(y, truth, JITTER * jnp.moveaxis(u[:, :, 2 + k :], 0, 1))


# ----------------------------------------------------------------------------- scores


class Queries(NamedTuple):
    """Scores with each query column (step q, input v) that do not depend on the examples."""

    of_input: Float[Array, "d q m"]  # W times the query, where it meets inputs
    of_output: Float[Array, "d q m"]  # and outputs
    step: Float[Array, "K q m"]  # an encoding alone, as in ICL's columns of zeros
    own: Float[Array, "K m m q m"]  # the query's earlier columns: step, input, output


class Scores(NamedTuple):
    """Scores of the examples of a prompt with each query column."""

    context: Float[Array, "L K q m"]  # (y_k; y_{k+1}) with the encoding of step k
    short: Float[Array, "L m"]  # ICL: (x; y_K) with the encoding of the first step
    blind: Float[Array, "L m"]  # the same without the output's share


def query_scores(cfg: Config, w: Float[Array, "D D"], mu: Float[Array, "m d"]) -> Queries:
    r"""$W\tilde q$ for all queries $\tilde q = (\mu'_v; 0) + c_q$, and its products."""
    k, d = cfg.n_steps, cfg.dim
    c = jnp.eye(d)[cfg.n_patterns : cfg.n_patterns + k]
    g = jnp.einsum("ab,qvb->aqv", w[:, :d], mu[None, :, :] + c[:, None, :])
    step = jnp.einsum("ka,aqv->kqv", c, g[:d])
    inputs, outputs = (jnp.einsum("ja,aqv->jqv", mu, h) for h in (g[:d], g[d:]))
    own = step[:, None, None] + inputs[None, :, None] + outputs[None, None, :]
    return Queries(g[:d], g[d:], step, own)


def network_scores(
    queries: Queries,
    mu: Float[Array, "m d"],
    y: Int[Array, "L y"],
    noise: Float[Array, "L y d"],
) -> Scores:
    r"""$\tilde p_i^\top W\tilde q$ for the examples of a prompt, noise included."""
    x = mu[y] + noise
    as_input = jnp.einsum("lka,aqv->lkqv", x[:, :-1], queries.of_input)
    as_output = jnp.einsum("lka,aqv->lkqv", x[:, 1:], queries.of_output)
    blind = as_input[:, 0, 0] + queries.step[None, 0, 0]
    return Scores(as_input + as_output + queries.step[None], blind + as_output[:, -1, 0], blind)


# -------------------------------------------------------------------------- inference


def most_attended(s: Float[Array, "c"], outputs: Int[Array, "c"], m: int) -> Int[Array, ""]:
    r"""(7.5): $\arg\min_u \|F - u\|^2$, which is the output pattern with the most attention."""
    return jnp.argmax(s @ jax.nn.one_hot(outputs, m, dtype=s.dtype)).astype(jnp.int32)


def softmax_of(
    queries: Queries,
    scores: Scores,
    exists: Bool[Array, "L"],
    v: Int[Array, "y"],
    q: Int[Array, ""],
) -> Float[Array, "columns"]:
    """Attention of step q on the examples' columns, then on the query's own ones before it."""
    steps = jnp.arange(len(v) - 1, dtype=jnp.int32)
    context = jnp.where(exists[:, None], scores.context[:, :, q, v[q]], -jnp.inf)
    own = jnp.where(steps < q, queries.own[steps, v[:-1], v[1:], q, v[q]], -jnp.inf)
    return jax.nn.softmax(jnp.concatenate([context.reshape(-1), own]))


def chain_of_thought(
    queries: Queries,
    scores: Scores,
    y: Int[Array, "L y"],
    exists: Bool[Array, "L"],
    start: Int[Array, ""],
) -> Int[Array, "y"]:
    """Algorithm 4: step after step, the decoded output $v_k$ becomes the next input."""
    k, m = y.shape[1] - 1, scores.short.shape[1]

    def step(v: Int[Array, "y"], q: Int[Array, ""]) -> tuple[Int[Array, "y"], None]:
        s = softmax_of(queries, scores, exists, v, q)
        decoded = most_attended(s, jnp.append(y[:, 1:], v[1:]), m)
        return v.at[q + 1].set(decoded), None

    first = jnp.zeros(k + 1, jnp.int32).at[0].set(start)
    return jax.lax.scan(step, first, jnp.arange(k, dtype=jnp.int32))[0]


def attention(
    queries: Queries,
    scores: Scores,
    y: Int[Array, "L y"],
    exists: Bool[Array, "L"],
    truth: Int[Array, "y"],
) -> tuple[Float[Array, "k columns"], Float[Array, "k type"]]:
    """Where each step of a correct chain looks: by column, and summed by type of column."""
    steps = jnp.arange(len(truth) - 1, dtype=jnp.int32)

    def of_step(q: Int[Array, ""]) -> tuple[Float[Array, "columns"], Float[Array, "type"]]:
        s = softmax_of(queries, scores, exists, truth, q)
        same = jnp.append(y[:, :-1], truth[:-1]) == truth[q]
        at = jnp.tile(steps, len(y) + 1) == q
        kinds = jnp.stack([at & same, at & ~same, ~at & same, ~at & ~same])
        return s, jnp.sum(jnp.where(kinds, s[None], 0.0), axis=1)

    return jax.vmap(of_step)(steps)


def in_context(
    queries: Queries,
    short: Float[Array, "L m"],
    y: Int[Array, "L y"],
    exists: Bool[Array, "L"],
    start: Int[Array, ""],
) -> Int[Array, ""]:
    """(7.8): one step from input to last output; columns of zeros take part, without output."""
    context = jnp.where(exists, short[:, start], -jnp.inf)
    zeros = queries.step[1:, 0, start] + jnp.log(jnp.sum(exists).astype(context.dtype))
    s = jax.nn.softmax(jnp.concatenate([context, zeros]))
    return most_attended(s[: len(context)], y[:, -1], short.shape[1])


def by_start(truth: Int[Array, "N y"], m: int) -> Float[Array, "N m"]:
    """Weights that average over the prompts with each first input."""
    start = jax.nn.one_hot(truth[:, 0], m, dtype=float)
    return start / jnp.maximum(start.sum(axis=0), 1)[None]


def measure(
    queries: Queries,
    scores_of: Callable[[Array, Array], Scores],
    batch: Batch,
    given: Float[Array, "N L ..."],
    l_test: Int[Array, "l_test"],
) -> dict[str, Array]:
    """Errors for all settings and prompt lengths, one after another.

    `scores_of` maps the examples of a prompt and what is `given` beside them to scores.
    """
    m = queries.own.shape[1]

    def of_setting(now: tuple[Int[Array, "N L y"], Int[Array, "N y"]]) -> dict[str, Array]:
        y, truth = now
        scores = jax.vmap(scores_of)(y, given)
        start = by_start(truth, m)

        def of_length(length: Int[Array, ""]) -> dict[str, Array]:
            exists = jnp.arange(y.shape[1], dtype=jnp.int32) < length
            think = jax.vmap(lambda s, y, z: chain_of_thought(queries, s, y, exists, z))
            guess = jax.vmap(lambda s, y, z: in_context(queries, s, y, exists, z))
            wrong = (think(scores, y, truth[:, 0]) != truth)[:, 1:].astype(start.dtype)
            short, blind = (
                (guess(s, y, truth[:, 0]) != truth[:, -1]).astype(start.dtype)
                for s in (scores.short, scores.blind)
            )
            return dict(
                cot_error=wrong.mean(),
                cot_final=wrong[:, -1].mean(),
                icl_error=short.mean(),
                icl_from=short @ start,
                icl_blind=blind.mean(),
            )

        return jax.lax.map(of_length, l_test)

    return jax.lax.map(of_setting, (batch.y, batch.truth))
