"""Tangent kernels: from a network or its Jacobian, their spectra, and descent in the lazy limit.

Letters in shapes: n samples, p weights.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike


def jacobian(f: Callable[[Any, Any], Float[Array, ""]], w: Any, x: Any) -> Float[Array, "n p"]:
    r"""$J_{i\cdot} = \partial f(w, x_i) / \partial w$, the weights as one vector."""
    grads = jax.vmap(jax.grad(f), in_axes=(None, 0))(w, x)
    return jnp.concatenate([g.reshape(len(g), -1) for g in jax.tree.leaves(grads)], axis=1)


def tangent_kernel(j: Float[Array, "n p"]) -> Float[Array, "n n"]:
    r"""$H = J J^\top$, the empirical tangent kernel."""
    return j @ j.T


def extremes(
    h: Float[Array, "n n"], exists: Bool[Array, "n"] | None = None
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The smallest and the largest eigenvalue, of the samples that exist."""
    if exists is not None:
        h = jnp.where(exists[:, None] & exists[None, :], h, 0.0)
        h = h + jnp.diag(jnp.where(exists, 0.0, jnp.trace(h)))  # above all, so never the smallest
    values = jnp.linalg.eigvalsh(h)
    if exists is None:
        return values[0], values[-1]
    return values[0], values[jnp.sum(exists) - 1]


def drift(h: Float[Array, "n n"], start: Float[Array, "n n"]) -> Float[Array, ""]:
    r"""$\|H - H_0\|_F / \|H_0\|_F$."""
    return jnp.linalg.norm(h - start) / jnp.linalg.norm(start)


def lazy_residual(
    values: Float[Array, "n"],
    vectors: Float[Array, "n n"],
    y: Float[Array, "n"],
    lr: Float[Array, ""],
    steps: ArrayLike,
) -> Float[Array, "step n"]:
    r"""$y - F(t) = (I - \eta H)^t\, y$: full-batch descent from $F(0) = 0$ if $H$ never moves.

    The loss is $\frac12\sum_i (F_i - y_i)^2$, $H$ comes as `eigh` gives it. A row for each $t$.
    """
    t = jnp.asarray(np.asarray(steps), values.dtype)
    decay = (1 - lr * values)[None, :] ** t[:, None]
    return (decay * (y @ vectors)[None, :]) @ vectors.T
