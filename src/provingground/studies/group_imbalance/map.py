"""Success maps: many descents on one data set, which succeed if all end at one point (Figure 4.2).

Letters in shapes: d feature dimension, K neurons, M starts.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, mask, par, probe
from provingground.keys import normal, stream
from provingground.train import by_lane

from . import data
from .algorithm import descend_from, local_starts, spread_of
from .data import Mixture, problem
from .network import Samples, aligned_distance, extremes, hessian, present

__all__ = ["Config", "Probes", "simulate"]

SLOPE, GROWTH = 1e-5, 3.0  # what counts as success beside the spread: see `Probes`


@config
class Config(data.Config):
    """Many descents from around the teacher: sizes are numbers, so that one program serves all."""

    dim: int = par(5, "d", "feature dimension", low=1, value=True, pad=16)
    samples: int = par(4000, "n", "training samples", low=2, value=True, pad=4000)
    lr: float = par(1.0, "c", r"step size times $\lambda_{\max}$", low=0)
    eps: float = par(0.1, r"\epsilon", "distance of the starts from the teacher", low=0)
    relative: float = par(0.0, r"\epsilon/\|W^*\|", "the same over the teacher's norm, if not 0")
    spread: float = par(1e-3, "V", "largest spread of a success", low=0)
    each_coordinate: int = par(
        0, "g_i", "a group for each sample (0) or for each of its coordinates (1)", low=0, high=1,
        value=True,
    )  # fmt: skip
    starts: int = par(20, "M", "starts", low=2)
    steps: int = par(2000, "T", "gradient descent steps at most", low=1)


class Probes(eqx.Module):
    r"""Whether descents from $M$ starts end at one point: $V_W \le 10^{-3}$ (Figure 4.2).

    At small $n$ the minimiser lies at infinity, all descents follow one slow path there, and $V_W$
    is small too; so the gradient must be below $10^{-5}$ and no weights three times the teacher's.
    """

    success: Float[Array, ""] = probe("success rate")
    printed_success: Float[Array, ""] = probe("success rate by the spread alone")
    ends: Float[Array, ""] = probe("spread of the ends", "V_W")
    slope: Float[Array, ""] = probe("largest norm of a gradient", r"\|\nabla f_n\|")
    error: Float[Array, ""] = probe("distance of the mean end to the teacher")
    stopped_at: Int[Array, ""] = probe("steps until success", "T")


def simulate(cfg: Config, key: Key[Array, ""], data: Mixture | None = None) -> Probes:
    r"""Descents from $M$ starts on one data set, as one matrix product a step, until they agree.

    The step size is $1/\lambda_{\max}(\nabla^2f_n(W^*))$ times `lr`.
    """
    split = jnp.asarray(cfg.each_coordinate) > 0
    _, w_star, drawn = problem(cfg, key, data, split)
    (d, k), on, exist = w_star.shape, mask(cfg, "width").astype(float), present(cfg)
    lots = normal(stream(key, "init"), (d, cfg.starts, k))  # the padded axis comes first
    part = jnp.asarray(cfg.relative, float) * jnp.linalg.norm(w_star)
    eps = jnp.where(part > 0, part, cfg.eps)
    starts = local_starts(w_star, jnp.moveaxis(lots, 0, 1), eps, exist)

    def run(w_star: Array, data: Samples, starts: Array) -> Probes:
        lr = cfg.lr / extremes(hessian(w_star, data, on), exist)[1]
        limit = GROWTH * jnp.linalg.norm(w_star)

        def sizes(state: Any) -> tuple[Array, Array, Array]:
            w, g = state
            largest = [jnp.sqrt(jnp.max(jnp.sum(a**2, axis=(0, 2)))) for a in (w, g)]
            return spread_of(w), largest[1], largest[0]

        def agree(state: Any) -> Bool[Array, ""]:
            spread, slope, norm = sizes(state)
            return (spread <= cfg.spread) & (slope <= SLOPE) & (norm <= limit)

        trace = descend_from(starts, data, on, lr, steps=cfg.steps, until=agree)
        spread, slope, _ = sizes(trace.last)
        return Probes(
            success=agree(trace.last).astype(float),
            printed_success=(spread <= cfg.spread).astype(float),
            ends=spread,
            slope=slope,
            error=aligned_distance(trace.last[0].mean(axis=1), w_star, on),
            stopped_at=trace.stopped_at,
        )

    return by_lane(run, w_star, drawn, starts)
