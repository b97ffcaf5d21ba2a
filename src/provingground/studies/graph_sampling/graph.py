"""Graphs with degree groups, and products with their normalised adjacency matrix.

Letters in shapes: N nodes, k slots for neighbours, c channels. A graph is symmetric, and so is $A$;
it is held as a dense matrix or as lists of neighbours. Nothing here adds into an array at repeated
places, so results do not depend on the order of a device's threads.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt


class Sparse(eqx.Module):
    """A symmetric matrix as lists of neighbours and weights, rows of like length together."""

    ids: tuple[Int[Array, "_ _"], ...]
    weights: tuple[Float[Array, "_ _"], ...]
    place: Int[Array, "N"]  # of each row among those of all lists


Adjacency = Float[Array, "N N"] | Sparse


class Graph(eqx.Module):
    """The normalised adjacency matrix A and the degree group of each node."""

    a: Adjacency
    group: Int[Array, "N"]
    degree: Int[Array, "N"]  # without the loop


# ----------------------------------------------------------------------- random graphs


def matched_stubs(
    bits: UInt[Array, "slots N"], degree: Int[Array, "N"]
) -> tuple[Int[Array, "stubs"], Int[Array, "stubs"], Bool[Array, "stubs"]]:
    """The configuration model: `degree` stubs of each node, put in the order of random bits.

    Stubs 2i and 2i + 1 of that order are an edge. Gives the owner of each stub, its place among
    the (slots, N) stubs laid out, and whether it is matched (those of an odd number are not all).
    """
    slots, n = bits.shape
    exists = jnp.arange(slots)[:, None] < degree[None, :]
    rank = jnp.where(exists, bits >> 1, jnp.uint32(2**32 - 1)).ravel()  # the others come last
    stub = jnp.arange(rank.size)
    if rank.size % 2:
        rank, stub = jnp.append(rank, jnp.uint32(2**32 - 1)), jnp.append(stub, rank.size - 1)
    _, stub = jax.lax.sort((rank, stub), num_keys=1)
    pair = jnp.arange(stub.size) // 2
    return stub % n, stub, pair < jnp.sum(degree) // 2


def random_graph(
    bits: UInt[Array, "slots N"], group: Int[Array, "N"], degree: Int[Array, "N"]
) -> Graph:
    """Section 5.4: edges at random, given the degrees. Loops and doubles are dropped."""
    n = len(degree)
    owner, _, matched = matched_stubs(bits, degree)
    first, second = owner[0::2], owner[1::2]
    row = jnp.where(matched[0::2] & (first != second), first, n)  # outside: dropped
    edges = jnp.zeros((n, n), bool).at[row, second].set(True, mode="drop")
    edges = edges | edges.T
    found = jnp.sum(edges, axis=1, dtype=int)
    scale = 1 / jnp.sqrt(1.0 + found.astype(float))
    a = (edges.astype(float) + jnp.eye(n)) * scale[:, None] * scale[None, :]
    return Graph(a, group, found)


def random_sparse_graph(
    bits: UInt[Array, "slots N"], group: Int[Array, "N"], degree: Int[Array, "N"]
) -> Graph:
    """The same graph as `random_graph`, as one list of neighbours for each node."""
    slots, n = bits.shape
    owner, stub, matched = matched_stubs(bits, degree)
    partner = owner.reshape(-1, 2)[:, ::-1].ravel()
    unique = jnp.full(slots * n, n).at[stub].set(jnp.where(matched, partner, n), mode="drop")
    ids = jnp.sort(unique.reshape(slots, n), axis=0)  # doubles are neighbours now
    double = jnp.concatenate([jnp.zeros((1, n), bool), ids[1:] == ids[:-1]])
    edge = ~double & (ids < n) & (ids != jnp.arange(n)[None, :])
    found = jnp.sum(edge, axis=0, dtype=int)
    scale = 1 / jnp.sqrt(1.0 + found.astype(float))
    edge = jnp.concatenate([jnp.ones((1, n), bool), edge]).T  # the loop comes first
    ids = jnp.concatenate([jnp.arange(n)[None, :], jnp.minimum(ids, n - 1)]).T
    weights = jnp.where(edge, scale[:, None] * scale[ids], 0.0)
    return Graph(Sparse((ids,), (weights,), jnp.arange(n)), group, found)


# ---------------------------------------------------------------------------- products


@eqx.filter_custom_vjp
def _product(h: Float[Array, "N c"], a: Adjacency) -> Float[Array, "N c"]:
    if not isinstance(a, Sparse):
        return a @ h
    lists = zip(a.ids, a.weights, strict=True)
    return jnp.concatenate([jnp.einsum("nk,nkc->nc", w, h[i]) for i, w in lists])[a.place]


@_product.def_fwd
def _(perturbed, h, a):
    return _product(h, a), None


@_product.def_bwd
def _(residuals, grad, perturbed, h, a):
    return _product(grad, a)


def aggregate(a: Adjacency, h: Float[Array, "N c"]) -> Float[Array, "N c"]:
    """$A h$. The gradient is a product with $A$ again, since it is symmetric: no transposed copy
    of a dense matrix, and lists of neighbours are gathered from, never scattered to."""
    return _product(h, a)


def row_sums(a: Adjacency, scale: Float[Array, "N"]) -> Float[Array, "N"]:
    r"""$\sum_j A_{nj} s_j$; their maximum is $\|A\,\mathrm{diag}(s)\|_\infty$."""
    return aggregate(a, scale[:, None])[:, 0]


def column_norms2(a: Adjacency) -> Float[Array, "N"]:
    r"""$\|A_{:,u}\|^2$, of rows as well as of columns."""
    if isinstance(a, Sparse):
        return jnp.concatenate([jnp.sum(w**2, axis=1) for w in a.weights])[a.place]
    return jnp.sum(a**2, axis=0)
