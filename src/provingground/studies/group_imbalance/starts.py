"""Descents from three kinds of start: tensor initialisation, near the teacher, and far from it."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, mask, par, probe
from provingground.keys import normal, stream
from provingground.train import by_lane

from . import tensor
from .algorithm import descend_from, local_starts
from .data import Mixture, problem
from .network import Samples, distances, extremes, hessian, minimiser, present
from .subroutine import tensor_start

__all__ = ["Config", "Probes", "simulate"]


@config
class Config(tensor.Config):
    """Descent from three kinds of start."""

    samples: int = par(20_000, "n", "training samples", low=2, value=True, pad=10_000)
    eps: float = par(0.1, r"\epsilon", "distance of the local start from the teacher", low=0)
    far: float = par(5.0, r"\sigma_0", "s.d. of the far start's weights", low=0)
    literal: int = par(0, "z", "magnitudes as in (C.5) (1) or solved for (0)", low=0, high=1,
                       value=True)  # fmt: skip
    steps: int = par(600, "T", "gradient descent steps", low=1)
    record: int = par(61, "n_t", "recorded steps", low=2)


class Probes(eqx.Module):
    """Descents from the tensor, the local and the far start, in this order."""

    distance: Float[Array, "step start"] = probe("distance to the minimiser", r"\|W_t-\hat W_n\|_F")
    relative_error: Float[Array, "start"] = probe("relative error of the start")
    rate: Float[Array, ""] = probe("predicted convergence rate", "1 - v")
    fit_error: Float[Array, ""] = probe("relative error of the minimiser")
    baseline: Float[Array, ""] = probe("relative error of the mean of the teacher's columns")
    step: Int[Array, "step"] = probe("gradient descent step", "t")


def simulate(cfg: Config, key: Key[Array, ""], data: Mixture | None = None) -> Probes:
    """Descents from the tensor start, a local and a far one, side by side (Figure C.1)."""
    mixture, w_star, drawn = problem(cfg, key, data)
    (d, k), on, exist = w_star.shape, mask(cfg, "width").astype(float), present(cfg)
    lots = normal(stream(key, "init"), (2, d, k))
    near = local_starts(w_star, lots[:1], cfg.eps, exist)
    far = cfg.far * lots[1][:, None]
    steps = jnp.round(jnp.linspace(0.0, 1.0, cfg.record) * cfg.steps).astype(jnp.int32)

    def run(mixture: Mixture, w_star: Array, data: Samples, near: Array, far: Array) -> Probes:
        made = tensor_start(cfg, key, mixture, data)
        first = jnp.where(jnp.asarray(cfg.literal) > 0, made.literal, made.weights)
        start = jnp.concatenate([first[:, None], near, far], axis=1)
        w_hat, _ = minimiser(cfg, w_star, data)
        lr, norm = cfg.lr / mixture.moment(2), jnp.linalg.norm(w_star)

        trace = descend_from(
            start,
            data,
            on,
            lr,
            steps=cfg.steps,
            at=steps,
            probe=lambda state: distances(state[0], w_hat, on),
        )
        middle = jnp.broadcast_to(w_star.mean(axis=1, keepdims=True), w_star.shape)
        compared = jnp.concatenate([start, w_hat[:, None], middle[:, None]], axis=1)
        errors = distances(compared, w_star, on) / norm
        return Probes(
            distance=trace.probes,
            relative_error=errors[:3],
            rate=lr * extremes(hessian(w_hat, data, on), exist)[0],
            fit_error=errors[3],
            baseline=errors[4],
            step=trace.step,
        )

    return by_lane(run, mixture, w_star, drawn, near, far)
