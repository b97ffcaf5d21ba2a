"""Convolutional networks of one image: the thesis's ResNet-9, and two layers where time is short.

A convolution is one product with the nine shifted copies of its input, so that many trainings at
once are one batched product. There is no batch normalisation: an image is normalised by itself, so
that the network is a function of one image.

Letters in shapes: b batch, s side, c and o channels in and out, k = 9c.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.keys import normal


class Stage(NamedTuple):
    """A convolution, of so many times the width channels; then maybe a pool, then maybe a residual
    block of two more."""

    channels: int
    pool: bool = False
    residual: bool = False


class Plan(NamedTuple):
    """The stages, and whether what they leave is normalised and read by its largest entries."""

    stages: tuple[Stage, ...]
    deep: bool


PLANS = {
    "resnet9": Plan(
        (Stage(1), Stage(2, True, True), Stage(4, True), Stage(8, True, True)), deep=True
    ),
    "two_layers": Plan((Stage(1, True), Stage(2, True)), deep=False),
}


class Layer(eqx.Module):
    """A convolution of 3 x 3, the gain of its output and its bias."""

    kernel: Float[Array, "k o"]
    gain: Float[Array, "o"]
    bias: Float[Array, "o"]


class Weights(eqx.Module):
    """Convolutions in order, and the read-out."""

    layers: tuple[Layer, ...]
    read_out: Float[Array, "f"]
    offset: Float[Array, ""]


def initial(form: str, width: int, side: int, key: Key[Array, ""]) -> Weights:
    """He's start; the read-out starts small."""
    plan, channels, layers = PLANS[form], 3, []

    def layer(channels: int, out: int) -> Layer:
        z = normal(jax.random.fold_in(key, len(layers)), (9 * channels, out))
        return Layer((2 / (9 * channels)) ** 0.5 * z, jnp.ones(out), jnp.zeros(out))

    for stage in plan.stages:
        out = stage.channels * width
        layers.append(layer(channels, out))
        if stage.residual:
            layers.append(layer(out, out))
            layers.append(layer(out, out))
        side, channels = halved(side) if stage.pool else side, out
    features = channels if plan.deep else channels * side**2
    z = normal(jax.random.fold_in(key, len(layers)), (features,))
    return Weights(tuple(layers), z / (4 * features**0.5), jnp.zeros(()))


def halved(side: int) -> int:
    return max(side // 2, 1)


def convolve(kernel: Float[Array, "k o"], x: Float[Array, "b s s c"]) -> Float[Array, "b s s o"]:
    """A convolution of 3 x 3 with zeros around the image."""
    s = x.shape[1]
    wide = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifted = [wide[:, i : i + s, j : j + s] for i in range(3) for j in range(3)]
    return jnp.concatenate(shifted, axis=-1) @ kernel


def pool(x: Float[Array, "b s s c"]) -> Float[Array, "b h h c"]:
    """The largest of every 2 x 2; an image of one pixel stays."""
    b, s, _, c = x.shape
    if s == 1:
        return x
    h = s // 2
    return x[:, : 2 * h, : 2 * h].reshape(b, h, 2, h, 2, c).max((2, 4))


def normalised(x: Float[Array, "b s s c"]) -> Float[Array, "b s s c"]:
    """Every image with mean 0 and variance 1."""
    centred = x - x.mean((1, 2, 3), keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean((1, 2, 3), keepdims=True) + 1e-5)


def logits(form: str, w: Weights, x: Float[Array, "b s s c"]) -> Float[Array, "b"]:
    plan, layers = PLANS[form], iter(w.layers)

    def through(x: Any) -> Any:
        layer = next(layers)
        z = convolve(layer.kernel, x)
        z = normalised(z) if plan.deep else z
        gain, bias = (v[None, None, None] for v in (layer.gain, layer.bias))
        return jax.nn.relu(gain * z + bias)

    for stage in plan.stages:
        x = through(x)
        x = pool(x) if stage.pool else x
        x = x + through(through(x)) if stage.residual else x
    features = x.max((1, 2)) if plan.deep else x.reshape(len(x), -1)
    return features @ w.read_out + w.offset


def depth(form: str) -> int:
    """How many convolutions follow one another."""
    return sum(3 if stage.residual else 1 for stage in PLANS[form].stages)


def parameters(w: Weights) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(w))
