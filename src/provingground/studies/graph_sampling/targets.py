"""Features and labels: the rule of the figures, and targets of the concept class.

Letters in shapes: N nodes, d features, p the width of the teacher, K outputs, c channels.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from provingground.keys import normal

from .graph import Adjacency, aggregate
from .samplers import Sampled


class Teacher(eqx.Module):
    """The weights of the two targets."""

    w: Float[Array, "3 d p"]  # W* of (5.20), then W_1*, W_2* of (5.12)
    v: Float[Array, "2 p p"]
    c: Float[Array, "2 p K"]


def features_and_teacher(
    key: Key[Array, ""], n: int, d: int, p: int, k: int
) -> tuple[Float[Array, "N"], Float[Array, "N d"], Teacher]:
    r"""Lots that order the nodes, Gaussian features, and both teachers, from one draw. Columns of
    (5.12) have unit norm, and its $C^*$ is uniform in [-1, 1] (of a Gaussian by its distribution
    function)."""
    parts = [n, n * d, 3 * d * p, 2 * p * p, 2 * p * k]
    z = normal(key, (sum(parts),))
    lots, x, w, v, c = jnp.split(z, np.cumsum(parts)[:-1])
    w, v, c = w.reshape(3, d, p), v.reshape(2, p, p), c.reshape(2, p, k)
    unit = jnp.concatenate([w[:1], w[1:] / jnp.linalg.norm(w[1:], axis=1, keepdims=True)])
    v = v / jnp.linalg.norm(v, axis=1, keepdims=True)
    c = jnp.stack([c[0], jax.lax.erf(c[1] / 2**0.5)])
    return lots, x.reshape(n, d), Teacher(unit, v, c)


def layer(a: Adjacency, s: Sampled, i: int, h: Float[Array, "N c"]) -> Float[Array, "N c"]:
    r"""$A^{s(i)}h$ with $A^{s(i)} = \mathrm{diag}(r_i)A\,\mathrm{diag}(c_i)$."""
    return s.rows[i][:, None] * aggregate(a, s.cols[i][:, None] * h)


def figure_target(
    t: Teacher, a: Adjacency, s: Sampled, x: Float[Array, "N d"]
) -> Float[Array, "N K"]:
    r"""(5.20): $(\sin(\hat AXW^*) \odot \tanh(\hat AXW^*))C^*$ with $\hat A = A\hat P$."""
    z = layer(a, s, 0, x) @ t.w[0]
    return (jnp.sin(z) * jnp.tanh(z)) @ t.c[0]


def concept_target(
    t: Teacher, a: Adjacency, s: Sampled, x: Float[Array, "N d"]
) -> Float[Array, "N K"]:
    r"""(5.12): $\hat A(\cos(r_1) \odot r_2)C^*$ with $r_a = \hat A\phi_a(\hat AXW_a^*)V_a^*$ and
    $\phi_1 = \tanh$, $\phi_2 = \sin$."""
    z = layer(a, s, 0, x)
    both = jnp.concatenate([jnp.tanh(z @ t.w[1]), jnp.sin(z @ t.w[2])], axis=1)
    r_1, r_2 = jnp.split(layer(a, s, 1, both), 2, axis=1)
    return layer(a, s, 2, (jnp.cos(r_1 @ t.v[0]) * (r_2 @ t.v[1])) @ t.c[1])
