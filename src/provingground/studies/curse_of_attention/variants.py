"""What all variants of section 7.2 and the baselines share: descent on the squared error."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from provingground.config import probe
from provingground.train import by_lane, descend, log_steps

from .data import Data
from .linear import mean_square, risks


class Probes(eqx.Module):
    train_loss: Float[Array, "step"] = probe("training loss", "L")
    test_loss: Float[Array, ""] = probe("risk", r"R_{\mathrm{ID}}")
    ood_loss: Float[Array, ""] = probe("OOD risk", r"R_{\mathrm{OOD}}")
    zero_loss: Float[Array, ""] = probe("risk of the zero predictor")
    zero_ood: Float[Array, ""] = probe("OOD risk of the zero predictor")
    last_loss: Float[Array, ""] = probe("risk of the last value")
    last_ood: Float[Array, ""] = probe("OOD risk of the last value")
    fitted_loss: Float[Array, ""] = probe("risk of the trained residual linear network")
    fitted_ood: Float[Array, ""] = probe("OOD risk of the trained residual linear network")
    plain_loss: Float[Array, ""] = probe("risk of the unrestricted linear network")
    plain_ood: Float[Array, ""] = probe("OOD risk of the unrestricted linear network")


def train(cfg: Any, data: Data, network: Any, weights: Any, rule: Any) -> Probes:
    """Descends on the squared error by an optax rule, and measures."""

    def loss(w: Any) -> Float[Array, ""]:
        f = jax.vmap(network, in_axes=(None, 0))(w, data.x)
        return jnp.sum(jnp.where(data.exists, f - data.y, 0.0) ** 2) / 2

    at = log_steps(cfg.steps, cfg.record)
    trace = descend(loss, weights, rule, steps=cfg.steps, at=at, probe=loss)
    points = jnp.concatenate([data.x_in, data.x_out])
    f = by_lane(lambda w, x: jax.vmap(network, in_axes=(None, 0))(w, x), trace.last, points)
    f_in, f_out = jnp.split(f, 2)
    return Probes(
        train_loss=trace.probes,
        test_loss=mean_square(f_in - data.y_in),
        ood_loss=mean_square(f_out - data.y_out),
        **risks(data),
    )
