"""The teacher of Figures 4 and 5: the first layer of a small network that reads digits.

An image falls into $D$ patches of $d$ pixels, row by row, and these into $J$ square groups of $K$.
Kernels, an average over each group, the activation, and a linear map to the ten digits: no biases,
as in Example 2.1.

Letters in shapes: n images of s x s pixels, d pixels of a patch, D patches, J groups, M kernels.
"""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key, UInt8

from provingground.config import config, par
from provingground.data import real
from provingground.keys import stream, uniform
from provingground.train import descend

from .data import Number, activation

DIGITS = 10


@config
class Config:
    """The settings of Section 4.2; what it leaves open is in the study's README."""

    kernels: int = par(16, "M", "convolution kernels", low=1)
    kernel: int = par(3, r"\sqrt d", "pixels on a side of a patch", low=1, high=9)
    pool: int = par(3, r"\sqrt K", "patches on a side of a group", low=1, high=9)
    across: int = par(3, r"\sqrt J", "groups on a side of an image", low=1, high=9)
    kappa: float = par(0.0, r"\kappa", "slope of the activation below zero", low=0, high=1)
    images: int = par(48_000, "n", "training images of a seed", low=1, high=60_000)
    test_images: int = par(10_000, r"n_{\mathrm{test}}", "test images", low=1, high=10_000)
    lessons: int = par(15_000, "T_0", "steps of the teacher's own training", low=1)
    lesson_size: int = par(64, "N_0", "images in each of them", low=1)
    lesson_rate: float = par(0.001, r"\eta_0", "step size of the teacher (Adam)", low=0)
    batch: int = par(50, "N", "images per step", low=1)
    rate: float = par(0.001, r"\eta", "step size of the student", low=0)
    rule: str = par("adam", "r", "rule of the student's descent", choices=("adam", "sgd"))
    rolled: float = par(
        0.0, r"\rho", "images are rolled around by up to so much of a side", low=0, high=1
    )
    steps: int = par(40_000, "T", "steps of the student", low=1)
    record: int = par(41, "n_t", "recorded steps, even in the logarithm", low=2)


class Digits(eqx.Module):
    """Images of 28 x 28 pixels, 0 to 255, and what they show."""

    images: UInt8[Array | np.ndarray, "n s s"]
    labels: Int[Array | np.ndarray, "n"]


class Mnist(eqx.Module):
    train: Digits
    test: Digits


@cache
def mnist() -> Mnist:
    """All of MNIST, as published."""
    of = real.load("mnist")

    def digits(part: str) -> Digits:
        return Digits(of[f"x_{part}"], of[f"y_{part}"].astype(np.int32))

    return Mnist(digits("train"), digits("test"))


# -------------------------------------------------------------------- images and patches


def side(cfg: Config) -> int:
    return cfg.kernel * cfg.pool * cfg.across


def drawn(
    digits: Digits, count: int, key: Key[Array, ""]
) -> tuple[UInt8[Array, "n s s"], Int[Array, "n"]]:
    """So many of the digits, in the order of a seed: images and labels."""
    chosen = jax.random.permutation(key, len(digits.labels))[:count]
    return jnp.asarray(digits.images)[chosen], jnp.asarray(digits.labels)[chosen]


def resized(images: UInt8[Array, "n a a"], side: int) -> Float[Array, "n s s"]:
    """From 0 to 1 and of another size; empty paper stays exactly 0."""
    return jax.image.resize(images.astype(float) / 255, (len(images), side, side), "linear")


def rolled(
    images: Float[Array, "n s s"], share: Number, key: Key[Array, ""]
) -> Float[Array, "n s s"]:
    """Each image rolled around, down and to the right, by up to a share of its side: with 1 no
    patch is background in all of them."""
    by = jnp.floor(share * images.shape[1] * uniform(key, (len(images), 2))).astype(jnp.int32)
    return jax.vmap(lambda image, by: jnp.roll(image, by, (0, 1)))(images, by)


def patches(images: Float[Array, "n s s"], kernel: int) -> Float[Array, "n d D"]:
    """X: column $i$ is the $i$-th patch, row by row."""
    n, s, _ = images.shape
    cut = images.reshape(n, s // kernel, kernel, s // kernel, kernel)
    return cut.transpose(0, 2, 4, 1, 3).reshape(n, kernel**2, -1)


def groups(cfg: Config) -> np.ndarray:
    """The group of each patch."""
    row, column = np.indices((cfg.pool * cfg.across,) * 2) // cfg.pool
    return (row * cfg.across + column).ravel()


def pooling(cfg: Config) -> Float[Array, "D J"]:
    """One column of $S^*$ for each group, 1/K on its patches: the patches of a group are queries
    with the same column."""
    on = groups(cfg)[:, None] == np.arange(cfg.across**2)
    return jnp.asarray(on / cfg.pool**2, float)


# ------------------------------------------------------------------- the teacher's training


class Reader(eqx.Module):
    """The kernels $V^*$, and the linear map that reads their pooled answers."""

    v_star: Float[Array, "M d"]
    read: Float[Array, "digits M J"]


def convolved(
    v: Float[Array, "M d"], pooled: Float[Array, "n d J"], kappa: Number
) -> Float[Array, "n M J"]:
    r"""$\sigma(V\,\cdot)$ of patches that are averaged already: $VXS = V(XS)$."""
    return activation(jnp.einsum("md,ndj->nmj", v, pooled), kappa)


def told(
    read: Float[Array, "digits M J"], hidden: Float[Array, "n M J"]
) -> Float[Array, "n digits"]:
    return jnp.einsum("cmj,nmj->nc", read, hidden)


def accuracy(
    read: Float[Array, "digits M J"], hidden: Float[Array, "n M J"], labels: Int[Array, "n"]
) -> Float[Array, ""]:
    return jnp.mean((jnp.argmax(told(read, hidden), axis=1) == labels).astype(float))


def reader(
    cfg: Config, pooled: Float[Array, "n d J"], labels: Int[Array, "n"], key: Key[Array, ""]
) -> Reader:
    """The network that reads the digits, trained by Adam on the cross-entropy. It sees averages of
    patches alone, so they are made once."""

    def start(name: str, shape: tuple[int, ...], fan: int) -> Float[Array, "..."]:
        return uniform(stream(key, name), shape, -1.0, 1.0) / fan**0.5

    d, groups = pooled.shape[1:]
    first = Reader(
        start("teacher/values", (cfg.kernels, d), d),
        start("teacher/read", (DIGITS, cfg.kernels, groups), cfg.kernels * groups),
    )
    draws = stream(key, "teacher/batches")

    def batch(t: Int[Array, ""]) -> Any:
        at = some(draws, t, cfg.lesson_size, len(labels))
        return pooled[at], labels[at]

    def loss(w: Reader, batch: Any) -> Float[Array, ""]:
        x, y = batch
        logits = told(w.read, convolved(w.v_star, x, cfg.kappa))
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, y))

    return descend(loss, first, optax.adam(cfg.lesson_rate), steps=cfg.lessons, batch=batch).last


def some(key: Key[Array, ""], t: Int[Array, ""], count: int, of: int) -> Int[Array, "count"]:
    """The images of the batch of a step."""
    return jax.random.randint(jax.random.fold_in(key, t), (count,), 0, of, dtype=jnp.int32)
