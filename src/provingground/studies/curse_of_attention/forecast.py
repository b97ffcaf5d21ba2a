"""Figure 1(a), without attention: the last value, NLinear, DLinear, and least squares.

One map from the past to the future serves all channels. NLinear subtracts the last value and adds
it back; DLinear maps a moving average and the rest, each by a map of its own.
"""

import equinox as eqx
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from provingground.config import config, par
from provingground.keys import normal, stream
from provingground.train import by_lane, descend

from . import hourly
from .hourly import Probes, batches, schedule, scored, starts, windows

AVERAGED = 25  # hours of DLinear's moving average
RIDGE = 1e-3  # of least squares, relative to the mean square of an input

__all__ = ["Config", "Probes", "simulate"]


@config
class Config(hourly.Config):
    """A forecaster without attention."""

    form: str = par(
        "nlinear", "f", "forecaster", choices=("last", "nlinear", "dlinear", "least_squares")
    )
    look_back: int = par(336, "L", "hours looked back at", low=2, high=2000)


class Weights(eqx.Module):
    """NLinear has a map and a bias; DLinear two of each."""

    map: Float[Array, "parts L H"]
    bias: Float[Array, "parts H"]


def smooth(x: Float[Array, "L c"]) -> Float[Array, "L c"]:
    """The moving average over 25 hours; ends are repeated."""
    half = AVERAGED // 2
    ends = [jnp.repeat(x[:1], half, axis=0), x, jnp.repeat(x[-1:], half, axis=0)]
    total = jnp.cumsum(jnp.concatenate([jnp.zeros_like(x[:1]), *ends]), axis=0)
    return (total[AVERAGED:] - total[:-AVERAGED]) / AVERAGED


def parts(form: str, x: Float[Array, "L c"]) -> Float[Array, "parts L c"]:
    """What is mapped: the past less its last value, or trend and remainder."""
    if form == "dlinear":
        trend = smooth(x)
        return jnp.stack([trend, x - trend])
    return (x - x[-1:])[None]


def predict(form: str, w: Weights, x: Float[Array, "L c"]) -> Float[Array, "H c"]:
    mapped = jnp.einsum("plh,plc->hc", w.map, parts(form, x)) + w.bias.sum(0)[:, None]
    return mapped if form == "dlinear" else mapped + x[-1:]


def least_squares(cfg: Config, series: Float[Array, "T c"], key: Key[Array, ""]) -> Weights:
    """NLinear at the minimum of the squared error over the windows of a seed and all channels."""
    start = starts(cfg, key)
    x, y = windows(cfg, series, start)
    used = jnp.arange(float(len(start))) < cfg.share * len(start)
    x, y = (jnp.where(used[:, None, None], part, 0.0) for part in (x, y))
    last = x[:, -1:]
    rows = jnp.swapaxes(x - last, 1, 2).reshape(-1, cfg.look_back)
    target = jnp.swapaxes(y - last, 1, 2).reshape(-1, cfg.horizon)
    one = jnp.repeat(used, hourly.CHANNELS).astype(rows.dtype)
    rows = jnp.concatenate([rows, one[:, None]], axis=1)
    gram = rows.T @ rows
    gram = gram + RIDGE * len(rows) * jnp.eye(len(gram))
    both = jnp.linalg.solve(gram, rows.T @ target)
    return Weights(both[None, :-1], both[None, -1])


def simulate(cfg: Config, key: Key[Array, ""], data: Float[Array, "S T c"]) -> Probes:
    series = data[cfg.etth - 1]
    if cfg.form == "last":
        return scored(cfg, series, lambda x: jnp.repeat(x[-1:], cfg.horizon, axis=0), 0)
    if cfg.form == "least_squares":
        w = by_lane(lambda s, key: least_squares(cfg, s, key), series, key)
    else:
        count = len(parts(cfg.form, series[: cfg.look_back]))
        z = normal(stream(key, "init"), (count, cfg.look_back, cfg.horizon))
        start = Weights(z / (3 * cfg.look_back) ** 0.5, jnp.zeros((count, cfg.horizon)))

        def loss(w: Weights, pair: hourly.Pair) -> Float[Array, ""]:
            x, y = pair
            found = eqx.filter_vmap(lambda past: predict(cfg.form, w, past))(x)
            return jnp.mean((found - y) ** 2)

        rule = optax.adam(schedule(cfg))
        w = descend(loss, start, rule, steps=cfg.steps, batch=batches(cfg, series, key)).last
    return scored(cfg, series, lambda x: predict(cfg.form, w, x), w.map.size + w.bias.size)
