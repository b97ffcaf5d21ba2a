"""Patterns, tasks and prompts (section 6.2 and Definition 6.3.1), with what is true of them.

Letters in shapes: d feature dimension, P patterns, l context examples. Patterns are orthogonal and
everything is invariant under rotations, so $\\mu_j = \\beta e_j$ for $j < M_1$ and
$\\nu_k = \\beta e_{M_1+k}$; of the label embedding only the coordinate along $q$ is kept, $\\pm 1$.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.keys import uniform

OOD_PATTERNS = 3  # M_1'
ALONG = 0.3  # how much of mu_1 - mu_2 is in the first out-of-domain pattern


# ------------------------------------------------------------------------------ tasks


def task(number: Any, patterns: Any) -> tuple[Any, Any]:
    r"""The task $(a, b)$, $+1$ on $\mu_a$ and $-1$ on $\mu_b$, by its number: ring after ring.

    Task $(k-1)M_1 + j$ is $(j,\, j+k \bmod M_1)$, so the first $UM_1$ are the paper's training
    tasks, and all $M_1(M_1-1)$ tasks have a number.
    """
    a = number % patterns
    return a, (a + number // patterns + 1) % patterns


def task_count(patterns: Any) -> Any:
    """$M_1(M_1-1)$: all ordered pairs of patterns."""
    return patterns * (patterns - 1)


# ---------------------------------------------------------------------------- domains


class Domain(NamedTuple):
    """Where prompts come from: patterns, tasks, and the range of irrelevant parts."""

    rows: Float[Array, "P d"]  # the relevant patterns; only the first `patterns` exist
    patterns: Int[Array, ""]
    first_task: Int[Array, ""]  # tasks are uniform among first_task, ..., last_task - 1
    last_task: Int[Array, ""]
    irrelevant: Float[Array, "P d"]  # the irrelevant patterns follow those of the training
    start: Int[Array, ""]
    kappa_max: Float[Array, ""]


def in_domain(
    dim: int, beta: Any, n_relevant: Any, first_task: Any, last_task: Any, kappa_max: Any
) -> Domain:
    r"""$\mathcal D$: patterns $\mu_j$ and $\nu_k$ of the training, and a range of tasks."""
    basis = beta * jnp.eye(dim)
    count = jnp.asarray(n_relevant, jnp.int32)
    first, last = (jnp.asarray(t, jnp.int32) for t in (first_task, last_task))
    return Domain(basis, count, first, last, basis, count, jnp.asarray(kappa_max, float))


def coefficients(coef_sum: Any) -> Float[Array, "3 6"]:
    r"""$k_{j,i}$ of the out-of-domain patterns $\mu'_j = \sum_i k_{j,i}\mu_i$ with given $S_1$.

    $\mu'_1 = 0.3(\mu_1-\mu_2) + a\mu_5 + b\mu_6$ with $a + b = S_1$ and $a^2+b^2 = 0.82$, so that
    its norm is $\beta$; $\mu'_2$ and $\mu'_3$ have $S = \sqrt2$. Needs $|S_1| \le 1.2806$.
    """
    norm2 = 1 - 2 * ALONG**2
    root = jnp.sqrt(jnp.maximum(2 * norm2 - coef_sum**2, 0.0))
    a, b = (coef_sum + root) / 2, (coef_sum - root) / 2
    half = 0.5**0.5
    rest = jnp.array([[half, half, 0, 0, 0, 0], [0, 0, half, half, 0, 0]], float)
    first = jnp.array([ALONG, -ALONG, 0, 0, 0, 0], float)
    return jnp.concatenate([first.at[4].set(a).at[5].set(b)[None, :], rest])


def out_of_domain(dim: int, beta: Any, n_relevant: Any, coef_sum: Any, kappa_max: Any) -> Domain:
    r"""$\mathcal D'$: three combinations of the first six $\mu_i$, all tasks, $\nu'_k = \nu_k$."""
    k = coefficients(coef_sum)
    rows = jnp.zeros((dim, dim)).at[:OOD_PATTERNS, : k.shape[1]].set(beta * k)
    count, start = (jnp.asarray(n, jnp.int32) for n in (OOD_PATTERNS, n_relevant))
    tasks = jnp.asarray(0, jnp.int32), jnp.asarray(task_count(OOD_PATTERNS), jnp.int32)
    kappa = jnp.asarray(kappa_max, float)
    return Domain(rows, count, *tasks, beta * jnp.eye(dim), start, kappa)


# ---------------------------------------------------------------------------- prompts


class Prompt(NamedTuple):
    """A prompt (6.1) and what is true of it. Context examples beyond `exists` are padding."""

    x: Float[Array, "l d"]
    y: Float[Array, "l"]  # coordinate along q
    x_query: Float[Array, "d"]
    label: Float[Array, ""]  # z, of the query
    exists: Bool[Array, "l"]
    positive: Int[Array, ""]  # the task: +1 on this pattern
    negative: Int[Array, ""]  # and -1 on this one
    pattern: Int[Array, "l"]  # j_i
    query_pattern: Int[Array, ""]
    irrelevant: Int[Array, "l"]  # k_i
    kappa: Float[Array, "l"]

    @property
    def same_pattern(self) -> Bool[Array, "l"]:
        r"""$\mathcal N_*$: the context examples that share the query's relevant pattern."""
        return (self.pattern == self.query_pattern) & self.exists

    @property
    def tokens(self) -> Float[Array, "l d_plus_1"]:
        """The columns $p_i = (x_i; y_i)$ of the context."""
        return jnp.concatenate([self.x, self.y[:, None]], axis=1)


def pick(u: Float[Array, "*n"], count: Any) -> Int[Array, "*n"]:
    """A whole number below `count` from a uniform number."""
    top = jnp.asarray(count, jnp.int32)
    return jnp.minimum(jnp.floor(u * top.astype(u.dtype)).astype(jnp.int32), top - 1)


def other(rank: Int[Array, "*n"], a: Any, b: Any) -> Int[Array, "*n"]:
    """The pattern of this rank among those that are neither a nor b."""
    low, high = jnp.minimum(a, b), jnp.maximum(a, b)
    after_low = rank + (rank >= low).astype(jnp.int32)
    return after_low + (after_low >= high).astype(jnp.int32)


def prompt(key: Key[Array, ""], size: int, length: Any, alpha: Any, of: Domain) -> Prompt:
    r"""One prompt with `length` context examples, laid out for `size`.

    Each context example has the pattern a or b with probability $\alpha/2$ each, every other one
    with $(1-\alpha)/(M_1-2)$; labels of a and b are those of the task, others are fair coins. The
    query has the pattern a or b with equal probability.
    """
    u = uniform(key, (1 + size, 4))  # a row for the query, then one for each context example
    query, context = u[0], u[1:]
    a, b = task(of.first_task + pick(query[0], of.last_task - of.first_task), of.patterns)
    label = jnp.where(query[1] < 0.5, 1.0, -1.0)
    query_pattern = jnp.where(query[1] < 0.5, a, b)

    where = context[:, 0]
    rest = (where - alpha) / jnp.maximum(1 - alpha, 1e-6)
    third = other(pick(jnp.maximum(rest, 0.0), of.patterns - 2), a, b)
    decisive = jnp.where(where < alpha / 2, a, b)
    pattern = jnp.where(where < alpha, decisive, third)
    coin = jnp.where(context[:, 3] < 0.5, 1.0, -1.0)
    y = jnp.where(where < alpha, jnp.where(where < alpha / 2, 1.0, -1.0), coin)

    irrelevant = pick(u[:, 2], len(of.irrelevant) - of.start)
    kappa = of.kappa_max * (2 * jnp.append(query[3], context[:, 1]) - 1)
    j = jnp.append(query_pattern, pattern)
    x = of.rows[j] + kappa[:, None] * of.irrelevant[of.start + irrelevant]
    return Prompt(
        x=x[1:],
        y=y,
        x_query=x[0],
        label=label,
        exists=jnp.arange(size, dtype=jnp.int32) < length,
        positive=a,
        negative=b,
        pattern=pattern,
        query_pattern=query_pattern,
        irrelevant=irrelevant[1:],
        kappa=kappa[1:],
    )
