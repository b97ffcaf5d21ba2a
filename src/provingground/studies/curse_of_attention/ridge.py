"""What attention can express: the best signed measure over neurons, in place of a training."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import config, par, probe
from provingground.train import by_lane

from . import linear
from .data import draw
from .linear import mean_square, order_blind
from .model import attend


@config
class Config(linear.Config):
    """Data as elsewhere, and a grid of weights."""

    points: int = par(51, "m", "weights on the grid", low=2)


class Probes(eqx.Module):
    test_loss: Float[Array, ""] = probe("risk", r"R_{\mathrm{ID}}")
    ood_loss: Float[Array, ""] = probe("OOD risk", r"R_{\mathrm{OOD}}")
    zero_loss: Float[Array, ""] = probe("risk of the zero predictor")
    zero_ood: Float[Array, ""] = probe("OOD risk of the zero predictor")
    blind_loss: Float[Array, ""] = probe("risk of the best order-blind predictor")
    blind_ood: Float[Array, ""] = probe("OOD risk of the best order-blind predictor")


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""The best $\int g(w; x)\,d\mu(w)$ over signed measures on `points` points $|w| \le 30$.

    Ridge regression in distribution: what is left is not a matter of training.
    """
    data = draw(cfg, key)
    w = jnp.sinh(jnp.linspace(-1.0, 1.0, cfg.points) * jnp.arcsinh(30.0))  # denser near zero
    g = jnp.where(data.exists[:, None], attend(w, data.x)[0], 0.0)
    n = jnp.sum(data.exists).astype(g.dtype)
    gram = g.T @ g / n + 1e-3 * jnp.eye(cfg.points)
    mu = by_lane(jnp.linalg.solve, gram, g.T @ jnp.where(data.exists, data.y, 0.0) / n)
    blind = order_blind(data.c, cfg.noise)
    return Probes(
        mean_square(attend(w, data.x_in)[0] @ mu - data.y_in),
        mean_square(attend(w, data.x_out)[0] @ mu - data.y_out),
        mean_square(data.y_in),
        mean_square(data.y_out),
        mean_square(data.x_in @ blind - data.y_in),
        mean_square(data.x_out @ blind - data.y_out),
    )
