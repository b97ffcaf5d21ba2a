"""Algorithm 1: gradient descent with noise from given starts.

Letters in shapes: d feature dimension, K neurons, n samples, M starts.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from provingground.keys import normal
from provingground.train import Trace, iterate

from .network import Samples, gradient


def descend_from(
    start: Float[Array, "d M K"],
    data: Samples,
    on: Float[Array, "K"],
    lr: Any,
    noise: Callable[[Int[Array, ""]], Float[Array, "d M K"]] | None = None,
    **how: Any,
) -> Trace:
    r"""(4.6): $W_{t+1} = W_t - \eta_0(\nabla f_n(W_t) + \frac1n\sum_i\nu_i)$ from $M$ starts at
    once; the state is $(W_t, \nabla f_n(W_t))$."""

    def at(w: Float[Array, "d M K"]) -> tuple[Array, Array]:
        return w, gradient(w, data, on)

    def step(state: Any, t: Int[Array, ""]) -> Any:
        w, g = state
        return at(w - lr * (g if noise is None else g + noise(t)))

    return iterate(step, at(start), **how)


def mean_noise(
    key: Key[Array, ""], shape: tuple[int, ...], xi: Any, n: Any
) -> Callable[[Int[Array, ""]], Array]:
    r"""$\frac1n\sum_i\nu_i$ for entries of $\nu_i$ uniform in $\pm\xi$: normal, of s.d.
    $\xi/\sqrt{3n}$ (the sum of $n$ of them is, up to $1/n$), and within $\pm\xi$."""
    spread = xi / jnp.sqrt(3 * jnp.asarray(n, float))

    def of_step(t: Int[Array, ""]) -> Array:
        return jnp.clip(spread * normal(jax.random.fold_in(key, t), shape), -xi, xi)

    return of_step


def local_starts(
    w_star: Float[Array, "d K"], directions: Float[Array, "M d K"], eps: Any, on: Float[Array, "D"]
) -> Float[Array, "d M K"]:
    r"""$W^* + \epsilon G/\|G\|_F$ with Gaussian $G$, for $M$ of them."""
    d, k = w_star.shape
    g = directions * on.reshape(k, d).T[None]
    g = g / jnp.sqrt(jnp.sum(g**2, axis=(1, 2), keepdims=True))
    return jnp.moveaxis(w_star[None] + eps * g, 0, 1)


def spread_of(w: Float[Array, "d M K"]) -> Float[Array, ""]:
    r"""$V_W = \big(\frac1M\sum_m\|W^{(m)} - \bar W\|^2\big)^{1/2}$."""
    return jnp.sqrt(jnp.sum((w - w.mean(axis=1, keepdims=True)) ** 2) / w.shape[1])
