"""Random numbers: streams by name, and draws that padding and precision do not change.

A simulation gets one key, which depends on the study and the seed and on nothing else. It takes
its numbers from named streams (`data`, `init`, `batch`, `test`, ...), so that cells of one seed
share them where shapes allow (comparisons along an axis are paired), and numbers for training and
for testing can never coincide.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

_recorded: ContextVar[list[str] | None] = ContextVar("recorded", default=None)


def seed_key(study: str, seed: int | Int[Array, ""]) -> Key[Array, ""]:
    """The key of all cells of one study and seed."""
    return jax.random.fold_in(jax.random.key(zlib.crc32(study.encode()), impl="threefry2x32"), seed)


def _number(name: str) -> np.uint32:
    return np.uint32(zlib.crc32(name.encode()))


def stream(key: Key[Array, ""], name: str) -> Key[Array, ""]:
    """The key of the stream `name`. Ask once for each name: the same name gives equal numbers."""
    if (names := _recorded.get()) is not None:
        names.append(name)
    return jax.random.fold_in(key, _number(name))


def streams(key: Key[Array, ""], *names: str) -> Key[Array, "name"]:
    """The keys of several streams, for what is drawn in one go from each of them."""
    if (known := _recorded.get()) is not None:
        known.extend(names)
    return jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.array(list(map(_number, names))))


@contextmanager
def recorded_streams() -> Iterator[list[str]]:
    """Lists the streams that are asked for inside the block (the conformance suite looks)."""
    names: list[str] = []
    token = _recorded.set(names)
    try:
        yield names
    finally:
        _recorded.reset(token)


def normal(key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Standard normals. Row i is the same for any number of rows, and in any precision.

    Partitionable threefry computes each entry from its own counter, so a longer first axis only
    appends rows: a padded count changes nothing. Numbers are drawn in float32 and widened, so
    that a float64 run starts from the same weights and data as a float32 run.
    """
    return jax.random.normal(key, shape, jnp.float32).astype(float)


def uniform(
    key: Key[Array, ""], shape: tuple[int, ...], low: float = 0.0, high: float = 1.0
) -> Float[Array, "..."]:
    """Uniform numbers in [low, high), stable under padding and precision like `normal`."""
    return jax.random.uniform(key, shape, jnp.float32, low, high).astype(float)


def signs(key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Fair signs ±1, stable under padding and precision like `normal`."""
    return jnp.where(jax.random.bits(key, shape, jnp.uint32) >> 31 == 0, 1.0, -1.0).astype(float)
