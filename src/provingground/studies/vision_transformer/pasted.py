"""Figure 2.6's images: an object of CIFAR-10 pasted at a random place of a textured background.

The paper takes backgrounds from ImageNet's plants; public-domain textures stand in for them here.
Training and test never share an image: objects are those of CIFAR-10's own split, and textures are
split by their sources.

Letters in shapes: C classes, n images, m textures, T tokens (patches of the canvas, row by row),
i numbers of a patch, p pixels of the side of an object after resizing.
"""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par
from provingground.data import real
from provingground.errors import InputError

AIRPLANE, BIRD, CLASSES = 0, 2, 10
OTHERS = [c for c in range(CLASSES) if c not in (AIRPLANE, BIRD)]
MOST_OF_PAIR, MOST_OF_OTHERS = 3000, 500  # training images of a class
PIXELS = 32  # of a side, of photographs and of textures
MEAN, DEVIATION = 0.47, 0.25  # of CIFAR-10's pixels, all colours alike


@config
class Config:
    """What is pasted where, and what is told apart."""

    samples: int = par(1000, "N", "training samples", low=2, value=True)
    frac_relevant: float = par(
        0.66, r"\alpha_*", "fraction of relevant tokens, after removal", low=0.05, high=1
    )
    pair: float = par(0.0, "c", "bird against airplane (1), or all ten classes (0)", low=0)
    textured_airplanes: float = par(
        1.0, "p_0", "share of airplanes on a texture, in training", low=0, high=1
    )
    textured: float = par(1.0, "p_1", "share of all others on a texture", low=0, high=1)
    canvas: int = par(16, "k", "patches of a side of the canvas", low=2)
    side: int = par(13, "s", "patches of a side of an object", low=1)
    patch: int = par(2, "q", "pixels of a side of a patch", low=1)
    test_samples: int = par(1000, r"N_{\rm te}", "test images, in hundreds", low=100)


class Half(NamedTuple):
    """Training or test part: objects in the order of their classes, and backgrounds."""

    objects: Any  # n 32 32 3
    first: Any  # C: where a class begins
    number: Any  # C: how many images it has
    textures: Any  # m 32 32 3


class Sample(NamedTuple):
    """A pasted image as tokens, and the truth about it."""

    tokens: Float[Array, "T i"]
    label: Int[Array, ""]
    relevant: Bool[Array, "T"]  # patches of the object
    kept: Bool[Array, "T"]  # patches that are left after removal
    textured: Bool[Array, ""]  # else the background is zero


def half(images: np.ndarray, labels: np.ndarray, textures: np.ndarray) -> Half:
    """Objects sorted by class, no more of each than are used; textures at half their size."""
    most = [MOST_OF_PAIR if c in (AIRPLANE, BIRD) else MOST_OF_OTHERS for c in range(CLASSES)]
    of = [np.flatnonzero(labels == c)[: most[c]] for c in range(CLASSES)]
    count = np.array([len(rows) for rows in of], np.int32)
    small = textures.reshape(-1, PIXELS, 2, PIXELS, 2, 3).mean((2, 4))
    first = (np.cumsum(count) - count).astype(np.int32)
    return Half(images[np.concatenate(of)], first, count, small.round().astype(np.uint8))


@real.reads("cifar10", "textures")
@cache
def halves() -> dict[str, Half]:
    """CIFAR-10 and textures, by halves: every third source of textures is kept for testing."""
    objects, textures = real.load("cifar10"), real.load("textures")
    tested = textures["source"] % 3 == 1
    return {
        name: half(objects[f"x_{name}"], objects[f"y_{name}"], textures["images"][chosen])
        for name, chosen in (("train", ~tested), ("test", tested))
    }


def overlaps(pixels: int) -> Float[np.ndarray, "p 32"]:
    """The share of each old pixel's length in each new one: resizing by areas."""
    edge = np.arange(pixels + 1)[:, None] * PIXELS / pixels
    before = np.clip(edge - np.arange(PIXELS), 0, 1)
    return (np.diff(before, axis=0) * pixels / PIXELS).astype(np.float32)


def resized(cfg: Config, part: Half) -> Half:
    """Objects at the size at which they are pasted, and all pixels centred and scaled."""
    if cfg.side > cfg.canvas or cfg.canvas * cfg.patch > PIXELS:
        raise InputError(f"an object has at most {cfg.canvas} patches, a canvas {PIXELS} pixels.")
    r = jnp.asarray(overlaps(cfg.side * cfg.patch))
    objects = jnp.einsum("ap,bq,npqc->nabc", r, r, part.objects.astype(jnp.float32))
    return Half(scaled(objects), part.first, part.number, scaled(part.textures))


def scaled(pixels: Any) -> Float[Array, "..."]:
    return (pixels.astype(jnp.float32) / 255 - MEAN) / DEVIATION


# ------------------------------------------------------------------------------- which object


class Task(NamedTuple):
    """Classes that are told apart: the first of a list."""

    classes: Int[Array, "C"]
    number: Int[Array, ""]

    @property
    def among(self) -> Bool[Array, "C"]:
        """Whether each class is one of them."""
        listed = jnp.arange(CLASSES, dtype=jnp.int32) < self.number
        return jnp.zeros(CLASSES, bool).at[self.classes].set(listed)


def task(pair: Float[Array, ""] | float) -> Task:
    """Bird against airplane, or all ten classes."""
    count = jnp.where(jnp.asarray(pair) > 0, 2, CLASSES).astype(jnp.int32)
    return Task(jnp.array([AIRPLANE, BIRD, *OTHERS], jnp.int32), count)


def eight_others() -> Task:
    """What the initial model is trained on."""
    order = jnp.array([*OTHERS, AIRPLANE, BIRD], jnp.int32)
    return Task(order, jnp.array(len(OTHERS), jnp.int32))


def orders(part: Half, key: Key[Array, ""]) -> Int[Array, "C n"]:
    """The images of each class in the order of a seed; the first of them are its subset."""
    u = jax.random.uniform(key, (CLASSES, MOST_OF_PAIR), jnp.float32)
    inside = jnp.arange(MOST_OF_PAIR, dtype=jnp.int32)[None, :] < part.number[:, None]
    return part.first[:, None] + jnp.argsort(jnp.where(inside, u, 2.0), axis=1).astype(jnp.int32)


def as_they_come(part: Half) -> Int[Array, "C n"]:
    """The images of each class in their own order: every seed is tested on the same ones."""
    return part.first[:, None] + jnp.arange(MOST_OF_PAIR, dtype=jnp.int32)[None, :]


# ------------------------------------------------------------------------------- one image


class Scene(NamedTuple):
    """Which images are taken, and how they are pasted."""

    task: Task
    order: Int[Array, "C n"]  # the images of each class, in the order in which they are taken
    textured: Float[Array, "C"]  # the share of a class that is on a texture
    removed: Int[Array, ""]  # background patches that go


def textured(cfg: Config) -> Float[Array, "C"]:
    """How much of a class is on a texture, in training."""
    airplane = jnp.arange(CLASSES) == AIRPLANE
    return jnp.where(airplane, cfg.textured_airplanes, cfg.textured)


def removed(cfg: Config, frac_relevant: Float[Array, ""] | float) -> Int[Array, ""]:
    r"""How many background patches go, so that the object has a share $\alpha_*$ of the rest."""
    background = cfg.canvas**2 - cfg.side**2
    left = jnp.round(cfg.side**2 * (1 / jnp.asarray(frac_relevant) - 1)).astype(jnp.int32)
    return jnp.maximum(background - left, 0)


def below(count: int, u: Float[Array, "*n"]) -> Int[Array, "*n"]:
    """A whole number from 0 to count - 1, of a uniform one."""
    return jnp.minimum(jnp.floor(u * count).astype(jnp.int32), count - 1)


def patches(cfg: Config, image: Float[Array, "side side 3"]) -> Float[Array, "T i"]:
    k, q = cfg.canvas, cfg.patch
    return image.reshape(k, q, k, q, 3).swapaxes(1, 2).reshape(k * k, q * q * 3)


def sample(cfg: Config, part: Half, scene: Scene, key: Key[Array, ""], i: Int[Array, ""]) -> Sample:
    """The i-th image of a scene, out of a half that is `resized`.

    Classes take turns; all else depends on i and the key alone.
    """
    of = scene.task
    label = of.classes[i % of.number]
    photograph = part.objects[scene.order[label, (i // of.number) % part.number[label]]]
    u = jax.random.uniform(jax.random.fold_in(key, i), (6 + cfg.canvas**2,), jnp.float32)

    whole = cfg.canvas * cfg.patch
    texture = part.textures[below(len(part.textures), u[0])]
    cut, at = below(PIXELS - whole + 1, u[1:3]), below(cfg.canvas - cfg.side + 1, u[3:5])
    on_texture = u[5] < scene.textured[label]
    behind = jax.lax.dynamic_slice(texture, (cut[0], cut[1], 0), (whole, whole, 3))
    behind = jnp.where(on_texture, behind, scaled(jnp.zeros_like(behind)))
    corner = (cfg.patch * at[0], cfg.patch * at[1], 0)
    image = jax.lax.dynamic_update_slice(behind, photograph, corner)

    inside = jnp.arange(cfg.canvas, dtype=jnp.int32)[None, :] - at[:, None]
    row, column = (inside >= 0) & (inside < cfg.side)
    relevant = (row[:, None] & column[None, :]).ravel()
    order = jnp.where(relevant, 2.0, u[6:])  # in which the background goes
    kept = jnp.sum(order[None, :] < order[:, None], axis=1) >= scene.removed
    return Sample(patches(cfg, image), label, relevant, kept, on_texture)


def samples(
    cfg: Config, part: Half, scene: Scene, key: Key[Array, ""], i: Int[Array, "n"]
) -> Sample:
    """Several of them, stacked."""
    return jax.vmap(lambda i: sample(cfg, part, scene, key, i))(i)
