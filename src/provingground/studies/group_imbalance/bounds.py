"""The bounds of Lemma C.4.4 and Theorem 2 beside what they bound, for one teacher: no training."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import config, par, probe

from . import local, theory
from .data import mixture_of, teacher_of, test_features, world

__all__ = ["Config", "Probes", "simulate"]


@config
class Config(local.Config):
    """As `local.Config`."""

    test_samples: int = par(4000, r"n_{\mathrm{test}}", "test samples per group", low=2)


class Probes(eqx.Module):
    """Bounds with all their factors; hidden constants are 1, and epsilon_0 is 0."""

    flattest_bound: Float[Array, ""] = probe(r"bound on $\lambda_{\min}$ (C.128)")
    flattest: Float[Array, ""] = probe("smallest eigenvalue of the Hessian", r"\lambda_{\min}")
    sharpest: Float[Array, ""] = probe("largest eigenvalue of the Hessian", r"\lambda_{\max}")
    moment: Float[Array, ""] = probe("moment bound", "M_2")
    error_bound: Float[Array, ""] = probe("bound on the distance to the teacher (4.10)")
    error: Float[Array, ""] = probe("distance to the teacher", r"\|\hat W_n - W^*\|_F")
    risk_bound: Float[Array, "risk"] = probe("bounds on the risks (4.11), (4.12)")
    excess: Float[Array, "risk"] = probe("excess risk, average and of the groups")


@jax.jit
def exactly(cfg: Config, key: Key[Array, ""]) -> tuple[Float[Array, "d K"], local.Probes]:
    """The teacher, and local theory at it."""
    of_teacher, of_groups = world(cfg, key)
    mixture, w_star = mixture_of(cfg, of_groups), teacher_of(cfg, of_teacher)
    return w_star, local.limits(cfg, mixture, w_star, test_features(cfg, key, mixture))


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """The closed forms by NumPy, in double precision; local theory as in `local`."""
    with jax.enable_x64(True):
        given = jax.tree.map(jnp.asarray, cfg)
        w_star, exact = exactly(given, key)
        groups = theory.groups_of(cfg)
        teacher = theory.teacher_of(w_star, groups)
        forms, n = theory.closed_forms(groups, teacher), cfg.samples
        factor = theory.bound_factor(groups, teacher, cfg.dim, n)
        risks = jnp.concatenate([exact.excess[None], exact.group_excess]) / n
        bounds = [forms.risk, *forms.group_risks]
        return Probes(
            flattest_bound=jnp.asarray(theory.hessian_bound(groups, teacher)),
            flattest=exact.flattest,
            sharpest=exact.sharpest,
            moment=jnp.asarray(theory.moment_bound(groups, 2)),
            error_bound=jnp.asarray(forms.error * factor),
            error=exact.error / jnp.sqrt(float(n)),
            risk_bound=jnp.asarray(bounds) * factor,
            excess=risks,
        )
