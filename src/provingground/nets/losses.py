"""Losses of a margin, and means over what is there."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def hinge(label: Float[Array, "*n"], f: Float[Array, "*n"]) -> Float[Array, "*n"]:
    r"""$\max(1 - yf, 0)$ for a label $y = \pm1$."""
    return jax.nn.relu(1 - label * f)


def logistic(label: Float[Array, "*n"], f: Float[Array, "*n"]) -> Float[Array, "*n"]:
    r"""$\log(1 + e^{-yf})$ for a label $y = \pm1$."""
    return jax.nn.softplus(-label * f)


def mean_over(exists: Bool[Array, "n"], values: Float[Array, "n"]) -> Float[Array, ""]:
    """The mean of those that exist; 0 where none does."""
    count = jnp.maximum(jnp.sum(exists), 1).astype(values.dtype)
    return jnp.sum(jnp.where(exists, values, 0.0)) / count
