"""Figure 1(a)'s series: ETTh1 and ETTh2, their windows, and how forecasts of them are scored.

Letters in shapes: S the two series, T hours, c channels (seven), L hours that are looked back at,
H hours of the forecast, b windows. The split is that of the field: twelve months of 30 days to
train on, four to validate, four to test, standardised by the first. The months in between are not
used: nothing is chosen by them.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe
from provingground.data import real
from provingground.keys import stream

TRAIN, TEST, END = (30 * 24 * months for months in (12, 16, 20))
CHANNELS = 7
AT_ONCE = 256  # windows that are tested together


@config
class Config:
    """Which series, how far back and ahead, and how a forecaster is trained."""

    etth: int = par(1, "s", "series: ETTh1 or ETTh2", low=1, high=2, value=True)
    look_back: int = par(96, "L", "hours looked back at", low=2, high=2000)
    horizon: int = par(96, "H", "hours of the forecast", low=1, high=2000)
    share: float = par(0.8, "q", "share of the training windows that are used", low=0.01, high=1)
    batch: int = par(32, "b", "windows per step", low=1)
    steps: int = par(2500, "T", "training steps", low=1)
    rate: float = par(0.005, r"\eta", "step size of Adam at the start", low=0)
    halvings: float = par(9.0, "k", "how often the step size is halved", low=0)


class Probes(eqx.Module):
    """On the test windows, all hours and channels alike."""

    mse: Float[Array, ""] = probe("test MSE")
    mae: Float[Array, ""] = probe("test MAE")
    weights: Int[Array, ""] = probe("trained weights")


@real.reads("etth1", "etth2")
@cache
def etth() -> Float[np.ndarray, "S T c"]:
    """Both series, standardised by their first twelve months."""

    def standardised(name: str) -> np.ndarray:
        values = real.load(name)["values"][:END]
        return (values - values[:TRAIN].mean(0)) / values[:TRAIN].std(0)

    return np.stack([standardised(name) for name in ("etth1", "etth2")]).astype(np.float32)


Pair = tuple[Float[Array, "b L c"], Float[Array, "b H c"]]


def windows(cfg: Config, series: Float[Array, "T c"], start: Int[Array, "b"]) -> Pair:
    """What is seen and what follows, for windows that start at some hours."""
    length = cfg.look_back + cfg.horizon
    cut = jax.vmap(lambda s: jax.lax.dynamic_slice_in_dim(series, s, length))(start)
    return cut[:, : cfg.look_back], cut[:, cfg.look_back :]


def starts(cfg: Config, key: Key[Array, ""]) -> Int[Array, "b"]:
    """All windows within the training months, in the order of a seed."""
    return jax.random.permutation(
        stream(key, "data/subset"), TRAIN - cfg.look_back - cfg.horizon + 1
    )


def batches(
    cfg: Config, series: Float[Array, "T c"], key: Key[Array, ""]
) -> Callable[[Int[Array, ""]], Pair]:
    """The batch of a step: windows drawn from those of a seed's share."""
    subset, draws = starts(cfg, key), stream(key, "batches")
    count = jnp.maximum(cfg.share * len(subset), 1.0)

    def batch(t: Int[Array, ""]) -> Pair:
        u = jax.random.uniform(jax.random.fold_in(draws, t), (cfg.batch,))
        return windows(cfg, series, subset[jnp.floor(u * count).astype(jnp.int32)])

    return batch


def schedule(cfg: Config) -> Callable[[Any], Any]:
    """The step size halves `halvings` times, as over the epochs of the published trainings."""

    def rate(t: Any) -> Any:
        passed = jnp.floor((cfg.halvings + 1) * jnp.asarray(t, float) / cfg.steps)
        return cfg.rate * 0.5**passed

    return rate


def scored(
    cfg: Config,
    series: Float[Array, "T c"],
    forecast: Callable[[Float[Array, "L c"]], Float[Array, "H c"]],
    weights: int,
) -> Probes:
    """Errors on every window whose forecast lies in the test months."""
    first = TEST - cfg.look_back
    count = END - TEST - cfg.horizon + 1
    rows = -(-count // AT_ONCE)
    start = jnp.arange(rows * AT_ONCE).reshape(rows, AT_ONCE)

    def errors(start: Int[Array, "b"]) -> Float[Array, "2"]:
        x, y = windows(cfg, series, first + jnp.minimum(start, count - 1))
        e = jnp.where((start < count)[:, None, None], jax.vmap(forecast)(x) - y, 0.0)
        return jnp.stack([jnp.sum(e**2), jnp.sum(jnp.abs(e))])

    total = jnp.sum(jax.lax.map(errors, start), axis=0) / (count * cfg.horizon * CHANNELS)
    return Probes(mse=total[0], mae=total[1], weights=jnp.array(weights, jnp.int32))
