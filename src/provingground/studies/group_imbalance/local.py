"""Limits of large n, from the Fisher informations of the groups: no training."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import config, mask, par, probe
from provingground.train import by_lane

from . import data
from .data import Mixture, mixture_of, teacher_of, test_features, world
from .network import ACTIVATIONS, extremes, fisher, present

__all__ = ["Config", "Probes", "simulate"]


@config
class Config(data.Config):
    """As `data.Config`; the activation is free, since no descent is run."""

    activation: str = par("sigmoid", r"\phi", "activation, from 0 to 1", choices=ACTIVATIONS)


class Probes(eqx.Module):
    """What the local theory says about descent and minimiser, for one teacher."""

    rate: Float[Array, ""] = probe("convergence rate, step $c/M_2$", "1 - v")
    rate_stable: Float[Array, ""] = probe(
        r"convergence rate, step $1/\lambda_{\max}$", r"\lambda_{\min}/\lambda_{\max}"
    )
    rate_printed: Float[Array, ""] = probe(r"convergence rate, step of Algorithm 1", "1 - v")
    largest_step: Float[Array, ""] = probe(
        "step of Algorithm 1 over the largest stable one", r"\eta_0\lambda_{\max}/2"
    )
    flattest: Float[Array, ""] = probe("smallest eigenvalue of the Hessian", r"\lambda_{\min}")
    sharpest: Float[Array, ""] = probe("largest eigenvalue of the Hessian", r"\lambda_{\max}")
    error: Float[Array, ""] = probe("distance to the teacher", r"\sqrt{n}\,\|\hat W_n - W^*\|_F")
    excess: Float[Array, ""] = probe("average excess risk", r"n(\bar f - \bar f(W^*))")
    group_excess: Float[Array, "group"] = probe("group excess risk", r"n(\bar f_l-\bar f_l(W^*))")


def limits(
    cfg: Config, mixture: Mixture, w_star: Float[Array, "d K"], x: Float[Array, "L n d"]
) -> Probes:
    """The probes of one teacher, on given test features."""
    on, exist = mask(cfg, "width").astype(float), present(cfg)
    of_group = jax.lax.map(lambda x: fisher(w_star, x, on, cfg.activation), x)
    total = jnp.einsum("l,lab->ab", mixture.fractions, of_group)
    flat, sharp = extremes(total, exist)
    inverse = jnp.linalg.inv(total + jnp.diag(1 - exist))
    printed = cfg.lr / mixture.printed_moment()
    excess = jnp.einsum("lab,ba->l", of_group, inverse) / 2
    return Probes(
        rate=cfg.lr / mixture.moment(2) * flat,
        rate_stable=flat / sharp,
        rate_printed=printed * flat,
        largest_step=printed * sharp / 2,
        flattest=flat,
        sharpest=sharp,
        error=jnp.sqrt(jnp.diag(inverse) @ exist),
        excess=mixture.fractions @ excess,
        group_excess=excess,
    )


def simulate(cfg: Config, key: Key[Array, ""], data: Mixture | None = None) -> Probes:
    r"""Limits of large $n$, from the Fisher informations $F_l$, $F = \sum\lambda_lF_l$ at $W^*$:
    $1 - v = \eta_0\lambda_{\min}(F)$, $nE\|\hat W_n - W^*\|^2 \to \mathrm{tr}\,F^{-1}$, and $n$
    times the excess risk of group $l$ $\to \frac12\mathrm{tr}(F_lF^{-1})$, on average $dK/2$."""
    of_teacher, of_groups = world(cfg, key)
    mixture, w_star = mixture_of(cfg, of_groups, data), teacher_of(cfg, of_teacher)
    x = test_features(cfg, key, mixture)
    return by_lane(lambda *given: limits(cfg, *given), mixture, w_star, x)
