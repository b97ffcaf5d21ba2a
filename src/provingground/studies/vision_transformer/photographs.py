"""Figure 2.6: a deep vision transformer on photographs that are pasted on backgrounds.

Tokens are the patches that are left; every one of them sees every other, and the mean over them is
read out, as in (2.1). The initial model is random, or was trained for a while on the eight classes
other than bird and airplane, without background.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par, probe
from provingground.keys import stream
from provingground.nets import transformer
from provingground.nets.transformer import Shape
from provingground.train import by_lane, descend

from . import pasted
from .pasted import BIRD, CLASSES, Half, Sample, Scene

AT_ONCE = 100  # images that are tested together
Weights = transformer.Weights


@config
class Config(pasted.Config):
    """A deep vision transformer and its training. The paper's has five blocks of four heads."""

    layers: int = par(5, "l", "blocks", low=1)
    heads: int = par(4, "h", "heads of attention in a block", low=1)
    width: int = par(64, "d", "width of the residual stream", low=1)
    batch: int = par(64, "B", "images per step", low=1)
    steps: int = par(2000, "T", "training steps", low=1)
    rate: float = par(0.001, r"\eta", "step size of Adam at the start", low=0)
    start_steps: int = par(0, "T_0", "steps of the initial model", low=0, value=True)
    start_samples: int = par(4000, "N_0", "images of the initial model", low=8, value=True)


class Probes(eqx.Module):
    """On test images, of the trained model."""

    accuracy: Float[Array, ""] = probe("test accuracy")
    against: Float[Array, ""] = probe("accuracy on plain birds and textured airplanes")
    along: Float[Array, ""] = probe("accuracy on textured birds and plain airplanes")
    attention: Float[Array, ""] = probe("attention on relevant tokens")


def initial(cfg: Config, key: Key[Array, ""]) -> Weights:
    shape = Shape(
        layers=cfg.layers,
        heads=cfg.heads,
        width=cfg.width,
        hidden=2 * cfg.width,
        inputs=3 * cfg.patch**2,
        outputs=CLASSES,
        positions=cfg.canvas**2,
    )
    return transformer.initial_weights(shape, key)


def network(
    w: Weights, tokens: Float[Array, "T i"], kept: Bool[Array, "T"]
) -> tuple[Float[Array, "C"], Float[Array, "L H T T"]]:
    """Outputs of an image, and the attention of every block and head (query, key)."""
    assert w.read_in is not None
    assert w.positions is not None
    assert w.read_out is not None
    z = tokens @ w.read_in.T + w.positions
    seen = jnp.broadcast_to(kept[None, :], (len(kept), len(kept)))
    z, p = jax.lax.scan(lambda z, b: transformer.block(b, z, seen), z, w.blocks)
    z = transformer.layer_norm(z, w.gain)
    count = jnp.sum(kept.astype(z.dtype))
    return w.read_out @ (kept.astype(z.dtype) @ z / count), p


def chosen(
    w: Weights, among: Bool[Array, "C"], s: Sample
) -> tuple[Float[Array, "C"], Float[Array, "L H T T"]]:
    """Outputs for the classes that are told apart (others never win), and the attention."""
    f, p = network(w, s.tokens, s.kept)
    return jnp.where(among, f, -1e9), p


def on_relevant(s: Sample, p: Float[Array, "L H T T"]) -> Float[Array, ""]:
    """The share of attention that relevant tokens get, over blocks, heads and kept queries."""
    relevant, kept = s.relevant.astype(p.dtype), s.kept.astype(p.dtype)
    return jnp.mean(p @ relevant @ kept) / jnp.sum(kept)


def scenes(cfg: Config, part: Half, key: Key[Array, ""]) -> Callable[[Int[Array, ""]], Scene]:
    """What is trained on at a step: first the initial model's images, then those of the figure."""
    order = pasted.orders(part, stream(key, "data/subset"))
    after = Scene(
        pasted.task(cfg.pair), order, pasted.textured(cfg), pasted.removed(cfg, cfg.frac_relevant)
    )
    before = Scene(pasted.eight_others(), order, jnp.zeros(CLASSES), pasted.removed(cfg, 1.0))

    def at(t: Int[Array, ""]) -> Scene:
        return jax.tree.map(lambda a, b: jnp.where(t < cfg.start_steps, a, b), before, after)

    return at


def trained(cfg: Config, part: Half, key: Key[Array, ""]) -> Weights:
    """Adam on the cross-entropy; within each of its two parts the step size falls to 0.

    The initial model never sees the output layer of bird and airplane, which is fresh afterwards.
    """
    at = scenes(cfg, part, key)
    images, draws = stream(key, "data/images"), stream(key, "batches")

    def batch(t: Int[Array, ""]) -> tuple[Sample, Bool[Array, "C"]]:
        count = jnp.where(t < cfg.start_steps, cfg.start_samples, cfg.samples)
        u = jax.random.uniform(jax.random.fold_in(draws, t), (cfg.batch,), jnp.float32)
        i = jnp.floor(u * count.astype(float)).astype(jnp.int32)
        return pasted.samples(cfg, part, at(t), images, i), at(t).task.among

    def loss(w: Weights, batch: tuple[Sample, Bool[Array, "C"]]) -> Float[Array, ""]:
        s, among = batch
        f = jax.vmap(lambda s: chosen(w, among, s)[0])(s)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(f, s.label))

    def rate(t: Any) -> Any:
        first, t = jnp.asarray(cfg.start_steps, float), jnp.asarray(t, float)
        gone = jnp.where(t < first, t / jnp.maximum(first, 1.0), (t - first) / cfg.steps)
        return cfg.rate * (1 - gone)

    w, steps = initial(cfg, stream(key, "init")), cfg.start_steps + cfg.steps
    return descend(loss, w, optax.adam(rate), steps=steps, batch=batch).last


def scored(cfg: Config, w: Weights, test: Scene, part: Half, key: Key[Array, ""]) -> Probes:
    """What the model makes of the first images of a scene."""

    def of_some(i: Int[Array, "n"]) -> Float[Array, "3 n"]:
        s = pasted.samples(cfg, part, test, key, i)
        f, p = jax.vmap(lambda s: chosen(w, test.task.among, s))(s)
        right = (jnp.argmax(f, axis=-1) == s.label).astype(float)
        agrees = (s.textured == (s.label == BIRD)).astype(float)
        return jnp.stack([right, agrees, jax.vmap(on_relevant)(s, p)])

    rows = cfg.test_samples // AT_ONCE
    i = jnp.arange(rows * AT_ONCE, dtype=jnp.int32).reshape(rows, AT_ONCE)
    right, agrees, attention = jnp.moveaxis(jax.lax.map(of_some, i), 1, 0)
    return Probes(
        accuracy=jnp.mean(right),
        against=jnp.sum(right * (1 - agrees)) / jnp.maximum(jnp.sum(1 - agrees), 1.0),
        along=jnp.sum(right * agrees) / jnp.maximum(jnp.sum(agrees), 1.0),
        attention=jnp.mean(attention),
    )


def simulate(cfg: Config, key: Key[Array, ""], data: dict[str, Half]) -> Probes:
    seen, unseen = (pasted.resized(cfg, data[name]) for name in ("train", "test"))
    w = trained(cfg, seen, key)
    test = Scene(
        pasted.task(cfg.pair),
        pasted.as_they_come(unseen),
        jnp.full(CLASSES, (cfg.textured + cfg.textured_airplanes) / 2),
        pasted.removed(cfg, cfg.frac_relevant),
    )
    return by_lane(
        lambda w, test, part, key: scored(cfg, w, test, part, key),
        w, test, unseen, stream(key, "test/images"),
    )  # fmt: skip
