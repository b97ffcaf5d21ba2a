"""Subroutine 1 alone: how far the tensor initialisation is from the teacher."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import config, par, probe
from provingground.train import by_lane

from . import data
from .data import Mixture, problem
from .network import Samples, distances
from .subroutine import tensor_start

__all__ = ["Config", "Probes", "simulate"]


@config
class Config(data.Config):
    """The setting in which it works: large orthogonal weights, few of them."""

    width: int = par(2, "K", "neurons", low=1)
    samples: int = par(20_000, "n", "training samples", low=2, value=True, pad=50_000)
    mean_2: float = par(0.0, "m_2", "mean of group 2, times the vector of ones")
    teacher: str = par(
        "orthogonal", "W^*", "teacher weights", choices=("gaussian", "uniform", "orthogonal")
    )
    strength: float = par(2.0, r"\|w\|", "s.d., half range or norm of the teacher's weights", low=0)
    joint: int = par(1, "J", "subspace from all moments (1) or as printed (0)", low=0, high=1,
                     value=True)  # fmt: skip
    split: int = par(0, r"\mathcal D_{1..3}", "a third of the samples for each moment (1)", low=0,
                     high=1, value=True)  # fmt: skip


class Probes(eqx.Module):
    relative_error: Float[Array, ""] = probe("relative error", r"\|W_0 - W^*P\|_F/\|W^*\|_F")
    literal_error: Float[Array, ""] = probe("relative error with the printed magnitudes")
    overlap: Float[Array, ""] = probe("smallest cosine of the subspace with the teacher's")
    baseline: Float[Array, ""] = probe("relative error of the mean of the teacher's columns")
    literal_magnitude: Float[Array, ""] = probe("the same with the printed magnitudes")
    magnitude: Float[Array, ""] = probe("mean norm of the initial weights over the teacher's")


def simulate(cfg: Config, key: Key[Array, ""], data: Mixture | None = None) -> Probes:
    """How far the tensor initialisation is from the teacher."""
    mixture, w_star, drawn = problem(cfg, key, data)
    on, norm = jnp.ones(cfg.width), jnp.linalg.norm(w_star)

    def measured(mixture: Mixture, w_star: Array, data: Samples) -> Probes:
        start = tensor_start(cfg, key, mixture, data)
        middle = jnp.broadcast_to(w_star.mean(axis=1, keepdims=True), w_star.shape)
        compared = jnp.stack([start.weights, start.literal, middle], axis=1)
        error, literal, baseline = distances(compared, w_star, on) / norm
        cosines = jnp.linalg.svd(start.basis.T @ jnp.linalg.qr(w_star)[0], compute_uv=False)
        return Probes(
            relative_error=error,
            literal_error=literal,
            overlap=cosines[-1],
            baseline=baseline,
            literal_magnitude=jnp.linalg.norm(start.literal) / norm,
            magnitude=jnp.linalg.norm(start.weights) / norm,
        )

    return by_lane(measured, mixture, w_star, drawn)
