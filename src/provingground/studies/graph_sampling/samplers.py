"""Sampling of the graph: which nodes take part in a step, and with which weight.

Letters in shapes: N nodes, L groups, i the three layers. A sampled matrix $A^s$ is
$\\mathrm{diag}(r)A\\mathrm{diag}(c)$, so a sampler gives two vectors and never a matrix.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt

GROUP_BITS = 4  # so at most 16 groups


class Sampled(eqx.Module):
    """The scales of rows and columns in each layer, and which nodes may be in the batch."""

    rows: Float[Array, "3 N"]
    cols: Float[Array, "3 N"]
    kept: Bool[Array, "N"]


class Groups(eqx.Module):
    r"""What group-wise sampling knows: groups, sizes $N_l$, samples $S_l$, scales $p_l^*$."""

    group: Int[Array, "N"]
    size: Int[Array, "L"]
    drawn: Int[Array, "L"]
    p_star: Float[Array, "L"]


def groups(group: Int[Array, "N"], kept: Float[Array, "L"], p_star: Float[Array, "L"]) -> Groups:
    r"""Sizes from the groups; $S_l$ is the given fraction of $N_l$, to the nearest node."""
    size = jnp.sum(group[None, :] == jnp.arange(len(kept))[:, None], axis=1, dtype=int)
    return Groups(group, size, jnp.round(kept * size.astype(float)).astype(int), p_star)


def sampled_nodes(bits: UInt[Array, "N"], g: Groups) -> Bool[Array, "N"]:
    r"""Exactly $S_l$ of the $N_l$ nodes of each group, uniformly, without replacement.

    One sort of (group, random bits) puts the groups behind each other, each in random order; a
    node is kept if it is not behind the last one that its group keeps.
    """
    rank = (bits >> GROUP_BITS) | (g.group.astype(jnp.uint32) << (32 - GROUP_BITS))
    last = jnp.cumsum(g.size) - g.size + g.drawn - 1
    bound = jnp.sort(rank)[jnp.maximum(last, 0)]
    return (rank <= bound[g.group]) & (g.drawn[g.group] > 0)


def weights(g: Groups) -> Float[Array, "N"]:
    r"""$p_l^* N_l / S_l$ of the group of each node (zero where nothing is drawn)."""
    return (g.p_star * g.size.astype(float) / jnp.maximum(g.drawn, 1).astype(float))[g.group]


def scaled(p: Float[Array, "*i N"], symmetric: Bool[Array, ""] | bool) -> Sampled:
    r"""$A\,\mathrm{diag}(p)$, or $\mathrm{diag}(\sqrt p)\,A\,\mathrm{diag}(\sqrt p)$.

    With $p_l^*$ of the nodes' groups that is $A^*$ of (5.6), or of (D.14).
    """
    symmetric, whole = jnp.asarray(symmetric), (3, p.shape[-1])
    root = jnp.sqrt(p)
    rows, cols = jnp.where(symmetric, root, jnp.ones_like(p)), jnp.where(symmetric, root, p)
    kept = jnp.broadcast_to(p, whole)[-1] > 0
    return Sampled(jnp.broadcast_to(rows, whole), jnp.broadcast_to(cols, whole), kept | ~symmetric)


def group_sample(
    bits: UInt[Array, "i N"], g: Groups, symmetric: Bool[Array, ""] | bool = False
) -> Sampled:
    r"""Sections 5.3.2 and D.1.1: $A^s = AP^s$ with $P^s_{ii} = p_l^*N_l/S_l$ or 0; symmetric:
    $P^sAP^s$ with its square roots. There the row of a dropped node is zero, so such nodes leave
    the batch. One row of random bits serves all layers, three serve one each."""
    kept = jax.vmap(sampled_nodes, in_axes=(0, None))(bits, g)
    return scaled(jnp.where(kept, weights(g)[None, :], 0.0), symmetric)


def importance(norms2: Float[Array, "N"]) -> Float[Array, "N"]:
    r"""FastGCN: $q_u = \|A_{:,u}\|^2 / \sum_v \|A_{:,v}\|^2$."""
    return norms2 / jnp.sum(norms2)


def draw_counts(
    spacing: Float[Array, "slots"], q: Float[Array, "N"], count: Int[Array, ""]
) -> Float[Array, "N"]:
    r"""How often each node is drawn in `count` draws with replacement and chances q.

    Uniform numbers in order are sums of exponentials, $u_{(i)} = E_1 + .. + E_i$ over the sum of
    `count` + 1 of them (the `spacing`); those below the ends of the nodes' intervals are counted.
    No sort, and nothing is added at repeated places.
    """
    sums = jnp.cumsum(spacing)
    u = jnp.where(jnp.arange(len(sums) - 1) < count, sums[:-1] / sums[count], 2.0)
    ends = jnp.searchsorted(u, jnp.cumsum(q / jnp.sum(q)))
    ends = ends.at[-1].set(count.astype(ends.dtype))  # rounding must not lose the last draws
    return jnp.diff(ends, prepend=0).astype(q.dtype)


def fast_sample(
    spacing: Float[Array, "i slots"], q: Float[Array, "N"], count: Int[Array, ""]
) -> Sampled:
    r"""FastGCN: $P_{uu} = \#u / (t q_u)$ with $\#u$ of t draws at u, so $\mathbb{E} P = I$."""
    counts = jax.vmap(draw_counts, in_axes=(0, None, None))(spacing, q, count)
    return scaled(counts / (count.astype(q.dtype) * q)[None, :], False)
