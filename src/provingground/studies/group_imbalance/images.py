"""Figures 4.1 and 4.8: a network for images of two groups, one of them the minority.

Of `samples` training images a share comes from the minority. Noisy copies of some of its images may
be added, and its images may be spread around their mean, those to test on as well. What is drawn
depends on the seed alone: a larger minority holds the smaller one.

Letters in shapes: g the two groups, N images drawn of each, C copies at most, Q images to test on,
s side, c colours, b batch.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import normal, stream
from provingground.nets.losses import logistic
from provingground.train import by_lane, descend

from . import convnet
from .convnet import Weights
from .pools import Pool

AT_ONCE = 250  # images that are tested together
GREY = 0.25  # a difference of pixels, in [0, 1], that is 1 to the network


@config
class Config:
    """What is drawn of two groups of images, how one of them is altered, and what learns."""

    samples: int = par(5000, "n", "training images, without copies", low=2)
    fraction: float = par(0.2, r"\lambda_2", "fraction of the minority", low=0, high=0.5)
    minority: int = par(1, "m", "which group is the minority", low=0, high=1, value=True)
    copies: float = par(0.0, "r", "noisy copies per image of the minority", low=0, high=1)
    noise: float = par(0.0, r"\delta^2", "variance of the noise of copies", low=0)
    spread: float = par(1.0, r"\sigma_2^2", "variance of the minority over its own", low=0)
    coarse: int = par(1, "h", "pixels of the data to one of the network, a side", low=1, high=8)
    form: str = par("resnet9", "f", "network", choices=tuple(convnet.PLANS))
    width: int = par(16, "w", "channels of the first layer", low=1)
    batch: int = par(64, "b", "images per step", low=1)
    steps: int = par(2000, "T", "training steps", low=1)
    rate: float = par(0.002, r"\eta", "step size of Adam at the start", low=0)


class Probes(eqx.Module):
    """On test images of either group in equal number, none of which is a noisy copy."""

    accuracy: Float[Array, ""] = probe("test accuracy, mean of both groups")
    accuracy_own: Float[Array, ""] = probe("test accuracy of the minority")
    accuracy_other: Float[Array, ""] = probe("test accuracy of the majority")
    loss: Float[Array, ""] = probe("test cross entropy, mean of both groups")
    loss_own: Float[Array, ""] = probe("test cross entropy of the minority")
    variance_own: Float[Array, ""] = probe("variance of a pixel in the minority")
    variance_other: Float[Array, ""] = probe("variance of a pixel in the majority")


class Drawn(NamedTuple):
    """What a seed draws of either group, whatever the fraction."""

    x: Float[Array, "g N s s c"]
    y: Float[Array, "g N"]
    mean: Float[Array, "g s s c"]
    noise: Float[Array, "C s s c"]
    test_x: Float[Array, "g Q s s c"]
    test_y: Float[Array, "g Q"]


def seen(images: Any, coarse: int) -> Float[Array, "*n h h c"]:
    """Images as the network sees them: means over squares, a pixel of 0 to 1 as -2 to 2."""
    *n, s, _, c = images.shape
    h = s // coarse
    cut = images[..., : h * coarse, : h * coarse, :].astype(float)
    squares = cut.reshape(*n, h, coarse, h, coarse, c)
    return (squares.mean((-4, -2)) / 255 - 0.5) / GREY


def drawn(cfg: Config, key: Key[Array, ""], pool: Pool) -> Drawn:
    """Images in the order of a seed; a group that has too few begins anew."""
    u = jax.random.uniform(stream(key, "data/subset"), pool.labels.shape)
    exists = jnp.arange(u.shape[1])[None] < pool.size[:, None]
    order = jnp.argsort(jnp.where(exists, u, 2.0), axis=1)
    rank = jnp.arange(cfg.samples)[None] % pool.size[:, None]
    at = jnp.take_along_axis(order, rank, axis=1)
    group = jnp.arange(2)[:, None]
    x = seen(pool.images[group, at], cfg.coarse)
    noise = normal(stream(key, "data/noise"), (max(cfg.samples // 2, 1), *x.shape[2:]))
    test_x = seen(pool.test_images, cfg.coarse)
    y, test_y = signs(pool.labels[group, at]), signs(pool.test_labels)
    return Drawn(x, y, x.mean(1), noise, test_x, test_y)


def signs(labels: Any) -> Float[Array, "*n"]:
    return 2 * labels.astype(float) - 1


Batch = tuple[Float[Array, "b s s c"], Float[Array, "b"]]


def spread(cfg: Config, d: Drawn, x: Float[Array, "b s s c"], group: Int[Array, "b"]) -> Any:
    """Images of the minority around its mean image, with `spread` times their covariance."""
    mean = d.mean[group]
    scale = jnp.where(group == cfg.minority, jnp.sqrt(cfg.spread), 1.0)
    return mean + scale[:, None, None, None] * (x - mean)


def counts(cfg: Config) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Images of the minority, and copies of them."""
    own = jnp.round(cfg.fraction * cfg.samples)
    return own, jnp.round(cfg.copies * own)


def pick(cfg: Config, d: Drawn, i: Int[Array, "b"]) -> Batch:
    """Training images by number: the minority's, the majority's, then copies of the former."""
    own = counts(cfg)[0].astype(jnp.int32)
    copy = i - cfg.samples
    group = jnp.where((i < own) | (copy >= 0), cfg.minority, 1 - cfg.minority)
    rank = jnp.where(copy >= 0, copy, jnp.where(i < own, i, i - own))
    noise = jnp.sqrt(cfg.noise) / GREY * d.noise[jnp.maximum(copy, 0)]
    x = spread(cfg, d, d.x[group, rank], group)
    return x + jnp.where((copy >= 0)[:, None, None, None], noise, 0.0), d.y[group, rank]


def tested(cfg: Config, w: Weights, d: Drawn) -> Probes:
    """Accuracy and cross entropy of either group. A logit of 0 is wrong."""
    x, y = d.test_x, d.test_y
    group = jnp.broadcast_to(jnp.arange(2)[:, None], y.shape).ravel()

    def logit(one: tuple[Float[Array, "s s c"], Int[Array, ""]]) -> Float[Array, ""]:
        shown = spread(cfg, d, one[0][None], one[1][None])
        return convnet.logits(cfg.form, w, shown)[0]

    f = jax.lax.map(logit, (x.reshape(-1, *x.shape[2:]), group), batch_size=AT_ONCE)
    f = f.reshape(y.shape)
    right, loss = jnp.mean(y * f > 0, axis=1), jnp.mean(logistic(y, f), axis=1)
    variance = d.x.var(1).mean((1, 2, 3)) * GREY**2
    m = cfg.minority
    return Probes(
        accuracy=right.mean(),
        accuracy_own=right[m],
        accuracy_other=right[1 - m],
        loss=loss.mean(),
        loss_own=loss[m],
        variance_own=variance[m] * cfg.spread,
        variance_other=variance[1 - m],
    )


def simulate(cfg: Config, key: Key[Array, ""], data: Pool) -> Probes:
    d, draws = drawn(cfg, key, data), stream(key, "batches")
    total = cfg.samples + counts(cfg)[1]

    def batch(t: Int[Array, ""]) -> Batch:
        u = jax.random.uniform(jax.random.fold_in(draws, t), (cfg.batch,))
        return pick(cfg, d, jnp.floor(u * total).astype(jnp.int32))

    def loss(w: Weights, pair: Batch) -> Float[Array, ""]:
        x, y = pair
        return jnp.mean(logistic(y, convnet.logits(cfg.form, w, x)))

    start = convnet.initial(cfg.form, cfg.width, d.x.shape[2], stream(key, "init"))
    rule = optax.adam(lambda t: cfg.rate * (1 - t / cfg.steps))
    w = descend(loss, start, rule, steps=cfg.steps, batch=batch).last
    return by_lane(lambda w, d: tested(cfg, w, d), w, d)
