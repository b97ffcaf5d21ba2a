"""Figure 3: the data in the plane. Nothing is trained."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import probe

from .model import Config, prompts


class Probes(eqx.Module):
    """The tokens of one context in the plane, and how well a line tells their labels apart."""

    linear_easy: Float[Array, ""] = probe("best linear accuracy on the easy part")
    linear_hard: Float[Array, ""] = probe("best linear accuracy on the hard part")
    x_easy: Float[Array, "token axis"] = probe("easy part of a token", "x_1")
    x_hard: Float[Array, "token axis"] = probe("hard part of a token", "x_2")
    label: Float[Array, "token"] = probe("label", "y")


def linear_accuracy(
    x: Float[Array, "T 2"], y: Float[Array, "T"], angles: int = 180
) -> Float[Array, ""]:
    """The best share that a line gets right, over its angle and its place."""
    turn = jnp.linspace(0, jnp.pi, angles, endpoint=False)
    along = jnp.stack([jnp.cos(turn), jnp.sin(turn)], axis=1) @ x.T
    above = jnp.where(along[:, None, :] > along[:, :, None], 1.0, -1.0)  # every token as threshold
    right = (above @ y / len(y) + 1) / 2
    return jnp.max(jnp.maximum(right, 1 - right))


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """Figure 3: the first context, in the first two coordinates."""
    data = prompts(cfg, key)
    y, easy, hard = data.y[0, :-1], data.x_easy[0, :-1, :2], data.x_hard[0, :-1, :2]
    return Probes(linear_accuracy(easy, y), linear_accuracy(hard, y), easy, hard, y)
