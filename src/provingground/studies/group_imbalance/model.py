"""The minimiser of the empirical risk, its risks in every group, and how fast descent finds it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import mask, probe
from provingground.train import by_lane

from .data import Config, Mixture, problem, test_features
from .network import (
    Samples,
    aligned_distance,
    extremes,
    group_risks,
    hessian,
    minimiser,
    present,
)

__all__ = ["Config", "Probes", "simulate"]

AVERAGED = 1000  # steps of the average contraction


class Probes(eqx.Module):
    """What is found at the minimiser, and what the local theory says about it."""

    error: Float[Array, ""] = probe("distance to the teacher", r"\|\hat W_n - W^*P\|_F")
    relative_error: Float[Array, ""] = probe("relative distance to the teacher")
    test_loss: Float[Array, ""] = probe("average risk", r"\bar f")
    excess: Float[Array, ""] = probe("average excess risk", r"\bar f - \bar f(W^*)")
    group_loss: Float[Array, "group"] = probe("group risk", r"\bar f_l")
    group_excess: Float[Array, "group"] = probe("group excess risk", r"\bar f_l - \bar f_l(W^*)")
    rate: Float[Array, ""] = probe("convergence rate, step $c/M_2$", "1 - v")
    rate_stable: Float[Array, ""] = probe(
        r"convergence rate, step $1/\lambda_{\max}$", r"\lambda_{\min}/\lambda_{\max}"
    )
    rate_printed: Float[Array, ""] = probe(r"convergence rate, step of Algorithm 1", "1 - v")
    largest_step: Float[Array, ""] = probe(
        "step of Algorithm 1 over the largest stable one", r"\eta_0\lambda_{\max}/2"
    )
    contraction: Float[Array, ""] = probe(
        "average contraction over 1000 steps $c/M_2$", r"1 - (V_T/V_0)^{1/T}"
    )
    flattest: Float[Array, ""] = probe("smallest eigenvalue of the Hessian", r"\lambda_{\min}")
    moment: Float[Array, ""] = probe("moment bound", "M_2")
    expected_error: Float[Array, ""] = probe("predicted distance to the teacher")
    expected_excess: Float[Array, "group"] = probe("predicted group excess risk")
    slope: Float[Array, ""] = probe("norm of the gradient at the end", r"\|\nabla f_n\|")


def contraction(
    h: Float[Array, "D D"], exist: Float[Array, "D"], lr: Float[Array, ""]
) -> Float[Array, ""]:
    r"""$1 - (V_T/V_0)^{1/T}$ with $V_T^2 = \frac1{dK}\sum_i(1-\eta_0\lambda_i)^{2T}$: the spread
    that descents from all around the minimiser have after $T$ steps, see `spread_after`."""
    shrink = jnp.abs(1 - lr * jnp.linalg.eigvalsh(h + jnp.diag((1 - exist) / lr)))
    log_left = jax.nn.logsumexp(2 * AVERAGED * jnp.log(jnp.maximum(shrink, 1e-30)))
    return -jnp.expm1((log_left - jnp.log(exist.sum())) / (2 * AVERAGED))


def simulate(cfg: Config, key: Key[Array, ""], data: Mixture | None = None) -> Probes:
    r"""$\hat W_n$ (to which Algorithm 1 converges from nearby), its risks, and its convergence rate
    $1 - v = \eta_0\lambda_{\min}(\nabla^2f_n(\hat W_n))$ with $\eta_0 = c/M_2$."""
    mixture, w_star, drawn = problem(cfg, key, data)
    x_test = test_features(cfg, key, mixture)
    on, exist = mask(cfg, "width").astype(float), present(cfg)

    def measured(mixture: Mixture, w_star: Array, data: Samples, x_test: Array) -> Probes:
        w, slope = minimiser(cfg, w_star, data)
        h = hessian(w, data, on)
        flat, sharp = extremes(h, exist)
        risks, m2 = group_risks(w, w_star, x_test, on), mixture.moment(2)
        total = jnp.einsum("l,lab->ab", mixture.fractions, risks.fisher) + jnp.diag(1 - exist)
        inverse = jnp.linalg.inv(total)
        n = jnp.asarray(cfg.samples, float)
        error = aligned_distance(w, w_star, on)
        printed = cfg.lr / mixture.printed_moment()
        return Probes(
            error=error,
            relative_error=error / jnp.linalg.norm(w_star),
            test_loss=mixture.fractions @ risks.loss,
            excess=mixture.fractions @ risks.excess,
            group_loss=risks.loss,
            group_excess=risks.excess,
            rate=cfg.lr / m2 * flat,
            rate_stable=flat / sharp,
            rate_printed=printed * flat,
            contraction=contraction(h, exist, cfg.lr / m2),
            largest_step=printed * sharp / 2,
            flattest=flat,
            moment=m2,
            expected_error=jnp.sqrt(jnp.diag(inverse) @ exist / n),
            expected_excess=jnp.einsum("lab,ba->l", risks.fisher, inverse) / (2 * n),
            slope=slope,
        )

    return by_lane(measured, mixture, w_star, drawn, x_test)
