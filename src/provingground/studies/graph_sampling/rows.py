"""Sampled matrices without a training: errors of rows, noise of features, bias, and who depends on
whom.

Letters in shapes: N nodes, L groups, d features. Sampled matrices are held against the effective
one entry by entry, over lists of neighbours; expectations over the sampler are exact for the graph
that was drawn.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int, Key

from provingground.config import probe
from provingground.keys import normal, stream
from provingground.train import by_lane

from . import samplers
from .graph import Adjacency, Graph, Sparse, aggregate, column_norms2, row_sums
from .model import Config, drawn_graph, effective, mean_over, sample, training_groups
from .samplers import Groups, Sampled

__all__ = ["Config", "Probes", "simulate"]

DRAWS = 16  # samples of one graph
STARTS = 16  # nodes from which dependent labels are counted


class Probes(eqx.Module):
    """What many samples of one graph say. Rows are those of $A^s - A^*$, in l1 norm."""

    row_error: Float[Array, ""] = probe("mean error of a row")
    row_error_max: Float[Array, ""] = probe("largest error of a row", r"\|A^s-A^*\|_\infty")
    row_error_theory: Float[Array, ""] = probe("expected mean error of a row, in closed form")
    dropped_theory: Float[Array, ""] = probe(
        "expected largest dropped entry (symmetric: row sum), in closed form"
    )
    norm_inf: Float[Array, ""] = probe("largest row sum", r"\|A^*\|_\infty")
    bias: Float[Array, ""] = probe("mean off-diagonal entry of samples over that of A*")
    bias_theory: Float[Array, ""] = probe("the same in closed form")
    noise_ratio: Float[Array, ""] = probe(
        "noise of aggregated features over signal", r"\|(A^s-A^*)X\|^2/\|A^*X\|^2"
    )
    noise_theory: Float[Array, ""] = probe("the same in closed form")
    importance_ratio: Float[Array, ""] = probe("FastGCN's chance of group 1 over group 2")
    row_mass: Float[Array, "group column"] = probe("mean sum of a row over the columns of a group")
    labels_two: Float[Array, ""] = probe("most labels that share a feature, two aggregations")
    labels_three: Float[Array, ""] = probe("most labels that share a feature, three aggregations")
    max_degree: Int[Array, ""] = probe("largest degree", r"\delta")
    mean_degree: Float[Array, "group"] = probe("mean degree of a group", "d_l")
    group: Int[Array, "group"] = probe("degree group", "l")
    column: Int[Array, "column"] = probe("degree group of the column", "l")


# --------------------------------------------------------------------------- over all entries


def over_entries(
    a: Adjacency, f: Callable[[Array, Array, Array], Float[Array, "_ _"]]
) -> Float[Array, "N"]:
    r"""$\sum_j f(A_{nj}, n, j)$ over the entries of each row, for any f that is 0 at 0."""
    if not isinstance(a, Sparse):
        at = jnp.arange(len(a))
        return jnp.sum(f(a, at[:, None], at[None, :]), axis=1)
    order, first, sums = jnp.argsort(a.place), 0, []
    for ids, w in zip(a.ids, a.weights, strict=True):
        rows = order[first : first + len(ids)]
        sums.append(jnp.sum(f(w, rows[:, None], ids), axis=1))
        first += len(ids)
    return jnp.concatenate(sums)[a.place]


def row_errors(a: Adjacency, s: Sampled, best: Sampled) -> Float[Array, "N"]:
    r"""$\|a_n^s - a_n^*\|_1$ of each row, for rows that are scaled as well."""
    r, c, rr, cc = s.rows[0], s.cols[0], best.rows[0], best.cols[0]
    return over_entries(a, lambda w, n, j: w * jnp.abs(r[n] * c[j] - rr[n] * cc[j]))


class Moments(eqx.Module):
    """Of an entry of the sampled matrix over that of the effective one."""

    mean: Callable[[Array, Array], Array]
    deviation: Callable[[Array, Array], Array]  # mean absolute deviation from one
    square: Callable[[Array, Array], Array]  # mean squared deviation from one


def moments(cfg: Config, g: Groups) -> Moments:
    r"""Exact moments of entry (n, j). Asymmetric: $1/f_j$ with chance $f_j$, else 0. Symmetric:
    both nodes are needed, on the diagonal one; a group is drawn from without replacement."""
    size, drawn = g.size.astype(float), g.drawn.astype(float)
    f = (drawn / jnp.maximum(size, 1))[g.group]
    pair = (drawn * (drawn - 1) / jnp.maximum(size * (size - 1), 1))[g.group]

    def both(n: Array, j: Array) -> tuple[Array, Array]:
        """The chance that an entry is kept, and its weight then."""
        apart = jnp.where(g.group[n] == g.group[j], pair[n], f[n] * f[j])
        kept = jnp.where(jnp.asarray(cfg.symmetric) & (n != j), apart, f[j])
        weight = jnp.where(jnp.asarray(cfg.symmetric), jnp.sqrt(f[n] * f[j]), f[j])
        return kept, 1 / jnp.maximum(weight, 1e-30)

    def of(e: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
        def mean(n: Array, j: Array) -> Array:
            kept, weight = both(n, j)
            return kept * e(weight) + (1 - kept) * e(jnp.zeros_like(kept))

        return mean

    return Moments(of(lambda v: v), of(lambda v: jnp.abs(v - 1)), of(lambda v: (v - 1) ** 2))


def largest_dropped(columns: Float[Array, "N"], g: Groups) -> Float[Array, ""]:
    r"""$\mathbb{E}\max_{j\ \mathrm{dropped}} c_j$: of order statistics, since the dropped nodes
    of a group are drawn uniformly. A row errs by its entry in a dropped column at least; where
    rows are dropped too, such a row errs by its whole sum.
    """
    order = jnp.argsort(columns)
    kinds = g.group[order][None, :] == jnp.arange(len(g.size))[:, None]
    below = jnp.cumsum(kinds, axis=1).astype(float)  # of each group, up to the k-th smallest
    lost, size = (g.size - g.drawn).astype(float)[:, None], g.size.astype(float)[:, None]

    def ways(n: Array, k: Array) -> Array:
        return gammaln(n + 1) - gammaln(k + 1) - gammaln(jnp.maximum(n - k, 0) + 1)

    inside = jnp.where(below >= lost, jnp.exp(ways(below, lost) - ways(size, lost)), 0.0)
    chance = jnp.prod(jnp.where(lost > 0, inside, 1.0), axis=0)  # that the k-th is the largest
    found = jnp.sum(jnp.diff(chance, prepend=0.0) * columns[order])
    return jnp.where(jnp.any(lost > 0), found, 0.0)


# ------------------------------------------------------------------------------- dependence


def most_within(graph: Graph, hops: int) -> Float[Array, ""]:
    """The largest number of nodes within some hops, over nodes of group 1 that stand for it."""
    n = len(graph.group)
    reached = (jnp.arange(n)[:, None] == jnp.arange(min(STARTS, n))[None, :]).astype(float)
    for _ in range(hops):
        reached = (aggregate(graph.a, reached) > 0).astype(float)
    return jnp.max(jnp.sum(reached, axis=0))


# ------------------------------------------------------------------------------- simulation


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """Draws a graph, features and many samples."""
    return by_lane(lambda cfg: measured(cfg, key), cfg)


def measured(cfg: Config, key: Key[Array, ""]) -> Probes:
    """The probes of one graph."""
    graph = drawn_graph(cfg, key, sparse=True)
    a, g = graph.a, training_groups(cfg, graph.group)
    best, n = effective(cfg, g), len(graph.group)
    q, at = samplers.importance(column_norms2(a)), moments(cfg, g)
    r, c = best.rows[0], best.cols[0]
    x = normal(stream(key, "data"), (n, cfg.dim))
    kinds = g.group[None, :] == jnp.arange(len(g.size))[:, None]
    apart = jnp.sum(over_entries(a, lambda w, n, j: jnp.where(n == j, 0.0, w * r[n] * c[j])))

    def of_draw(key: Key[Array, ""]) -> tuple[Array, Array, Array, Array]:
        s = sample(cfg, key, g, q)
        wrong, (row, col) = row_errors(a, s, best), (s.rows[0], s.cols[0])
        noisy = row[:, None] * aggregate(a, col[:, None] * x) - clean
        off = over_entries(a, lambda w, n, j: jnp.where(n == j, 0.0, w * row[n] * col[j]))
        return jnp.mean(wrong), jnp.max(wrong), jnp.sum(noisy**2), jnp.sum(off)

    clean = r[:, None] * aggregate(a, c[:, None] * x)
    keys = jax.random.split(stream(key, "test/sample"), DRAWS)
    mean, largest, noise, off = jax.lax.map(of_draw, keys)

    def expected(power: int, e: Callable[[Array, Array], Array]) -> Float[Array, ""]:
        return jnp.sum(over_entries(a, lambda w, n, j: (w * r[n] * c[j]) ** power * e(n, j)))

    def one(n: Array, j: Array) -> Array:
        return jnp.ones(jnp.broadcast_shapes(n.shape, j.shape))

    def by_group(values: Float[Array, "N"]) -> Float[Array, "L"]:
        return jax.vmap(mean_over, in_axes=(0, None))(kinds, values)

    off_mean = over_entries(
        a, lambda w, n, j: jnp.where(n == j, 0.0, w * r[n] * c[j] * at.mean(n, j))
    )
    sums = r * row_sums(a, c)
    columns = jnp.where(jnp.asarray(cfg.symmetric), sums, c * largest_entry(a))
    chance = by_group(q)
    return Probes(
        row_error=jnp.mean(mean),
        row_error_max=jnp.mean(largest),
        row_error_theory=expected(1, at.deviation) / n,
        dropped_theory=largest_dropped(columns, g),
        norm_inf=jnp.max(sums),
        bias=jnp.mean(off) / apart,
        bias_theory=jnp.sum(off_mean) / apart,
        noise_ratio=jnp.mean(noise) / jnp.sum(clean**2),
        noise_theory=expected(2, at.square) / expected(2, one),
        importance_ratio=chance[0] / jnp.maximum(chance[1], 1e-30),
        row_mass=jnp.stack([by_group(row_sums(a, k.astype(float))) for k in kinds], axis=1)[:2, :2],
        labels_two=most_within(graph, 4),
        labels_three=most_within(graph, 6),
        max_degree=jnp.max(graph.degree),
        mean_degree=by_group(graph.degree.astype(float))[:2],
        group=jnp.arange(1, 3),
        column=jnp.arange(1, 3),
    )


def largest_entry(a: Adjacency) -> Float[Array, "N"]:
    r"""$\max_n A_{nj}$ of each column, which is a row too."""
    if not isinstance(a, Sparse):
        return jnp.max(a, axis=1)
    return jnp.concatenate([jnp.max(w, axis=1) for w in a.weights])[a.place]
