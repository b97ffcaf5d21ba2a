"""Linear predictors of the next value: no training, least squares. Proposition 6.3(2)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from provingground.config import config, par, probe
from provingground.keys import stream
from provingground.train import by_lane

from .data import MIX, Data, draw, test_pairs

EXACT_POINTS = 10_000  # on which w* is tested: it is compared with a formula, so more than others


@config
class Config:
    """The data alone."""

    tokens: int = par(8, "d", "length of the series", low=3)
    samples: int = par(64, "n", "training samples", low=2, value=True, pad=64)
    noise: float = par(0.1, r"\sigma", "noise s.d.", low=0)
    mode: int = par(
        MIX, "c", "next feature: 0 mix, 1 unit, 2 unit_uniform", low=0, high=2, value=True
    )
    gamma: float = par(0.5, r"\gamma", "similarity of last and next feature (unit)", low=0, high=1)
    test_samples: int = par(4000, r"n_{\mathrm{test}}", "test samples", low=1)


class Probes(eqx.Module):
    """Risks in distribution (`_loss`) and where last and next value differ in sign (`_ood`)."""

    zero_loss: Float[Array, ""] = probe("risk of the zero predictor")
    zero_ood: Float[Array, ""] = probe("OOD risk of the zero predictor")
    last_loss: Float[Array, ""] = probe("risk of the last value")
    last_ood: Float[Array, ""] = probe("OOD risk of the last value")
    linear_loss: Float[Array, ""] = probe("risk of the residual linear network, $w^*$")
    linear_ood: Float[Array, ""] = probe("OOD risk of the residual linear network, $w^*$")
    fitted_loss: Float[Array, ""] = probe("risk of the trained residual linear network")
    fitted_ood: Float[Array, ""] = probe("OOD risk of the trained residual linear network")
    plain_loss: Float[Array, ""] = probe("risk of the unrestricted linear network")
    plain_ood: Float[Array, ""] = probe("OOD risk of the unrestricted linear network")
    blind_loss: Float[Array, ""] = probe("risk of the best order-blind predictor")
    blind_ood: Float[Array, ""] = probe("OOD risk of the best order-blind predictor")


def residual_linear(v: Float[Array, "d"], x: Float[Array, "n d"]) -> Float[Array, "n"]:
    r"""Definition 6.2, $\langle w, x - x_d 1\rangle + x_d$, for weights $v_{<d}$."""
    return (x - x[:, -1:]) @ v + x[:, -1]


def fit_residual(
    x: Float[Array, "n d"], y: Float[Array, "n"], exists: Bool[Array, "n"]
) -> Float[Array, "d"]:
    """The residual linear network that descent from zero converges to: least squares."""
    rows = jnp.where(exists[:, None], x - x[:, -1:], 0.0)[:, :-1]
    target = jnp.where(exists, y - x[:, -1], 0.0)
    return jnp.append(jnp.linalg.lstsq(rows, target, rcond=1e-4)[0], 0.0)


def fit_plain(
    x: Float[Array, "n d"], y: Float[Array, "n"], exists: Bool[Array, "n"]
) -> Float[Array, "d"]:
    r"""$\langle v, x\rangle$ with nothing subtracted or added: least squares."""
    rows, target = jnp.where(exists[:, None], x, 0.0), jnp.where(exists, y, 0.0)
    return jnp.linalg.lstsq(rows, target, rcond=1e-4)[0]


def order_blind(c: Float[Array, "d"], noise: Float[Array, ""] | float) -> Float[Array, "d"]:
    r"""The best predictor that is told the last value, and the others without their order.

    $E[y \mid x_d, \{x_k\}_{k<d}]$ is linear: all other steps get the mean of their weights.
    """
    rest = jnp.full(len(c) - 1, c[:-1].mean())
    return jnp.append(rest, c[-1]) / (1 + jnp.asarray(noise) ** 2)


def mean_square(values: Float[Array, "n"]) -> Float[Array, ""]:
    return jnp.mean(values**2)


def risks(data: Data) -> dict[str, Float[Array, ""]]:
    """Risks of the predictors to compare with, in and out of distribution."""
    residual = by_lane(fit_residual, data.x, data.y, data.exists)
    plain = by_lane(fit_plain, data.x, data.y, data.exists)
    predictors = {
        "zero": lambda x: jnp.zeros(len(x)),
        "last": lambda x: x[:, -1],
        "fitted": lambda x: residual_linear(residual, x),
        "plain": lambda x: x @ plain,
    }
    inside = {f"{n}_loss": mean_square(f(data.x_in) - data.y_in) for n, f in predictors.items()}
    outside = {f"{n}_ood": mean_square(f(data.x_out) - data.y_out) for n, f in predictors.items()}
    return inside | outside


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    data = draw(cfg, key)
    blind = order_blind(data.c, cfg.noise)
    exact = test_pairs(cfg, data.c, stream(key, "test/linear"), EXACT_POINTS)
    linear_loss, linear_ood = (mean_square(residual_linear(data.c, x) - y) for x, y in exact)
    blind_loss, blind_ood = (mean_square(x @ blind - y) for x, y in exact)
    return Probes(
        **risks(data),
        linear_loss=linear_loss,
        linear_ood=linear_ood,
        blind_loss=blind_loss,
        blind_ood=blind_ood,
    )
