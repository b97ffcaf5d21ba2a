"""Algorithm 2 as written: increments, weight decay, smoothing, random signs and regularisers."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from provingground.config import mask, size
from provingground.keys import normal, stream
from provingground.train import by_lane

from . import samplers
from .graph import column_norms2
from .model import (
    Config,
    Probes,
    Weights,
    batch_weights,
    drawn_graph,
    effective,
    errors,
    graph_probes,
    initial_weights,
    network,
    neuron_draws,
    random_bits,
    random_task,
    report,
    sample_of,
    squared_error,
    trained,
    training_groups,
)

__all__ = ["Config", "Probes", "simulate"]


class Perturbation(eqx.Module):
    r"""$W^\rho$, $V^\rho$, the diagonal of $\Sigma$, and the noise of the gradient."""

    w_rho: Float[Array, "d m"]
    v_rho: Float[Array, "m m"]
    sigma: Float[Array, "m"]
    w_noise: Float[Array, "d m"]
    v_noise: Float[Array, "m m"]


def perturb(cfg: Config, key: Key[Array, ""], d: int) -> Perturbation:
    r"""Table 5.1: $\sigma_w = m_1^{-0.99}$, $\sigma_v = m_2^{-0.51}$, times `smoothing`."""
    m, exists = size(cfg, "width"), mask(cfg, "width").astype(float)
    z = normal(key, (m * (m + d + 1), 2)).T
    rho, noise = (neuron_draws(part, m, d + 1) for part in z)
    both = exists[:, None] * exists[None, :]
    count = jnp.asarray(cfg.width).astype(float)
    sigma_w, sigma_v = cfg.smoothing * count**-0.99, cfg.smoothing * count**-0.51
    return Perturbation(
        w_rho=sigma_w * (rho[0][:, 1:] * exists[:, None]).T,
        v_rho=sigma_v * rho[1] * both,
        sigma=jnp.where(jnp.asarray(cfg.signs) & (rho[0][:, 0] < 0), -1.0, 1.0),
        w_noise=cfg.noise * (noise[0][:, 1:] * exists[:, None]).T,
        v_noise=cfg.noise * noise[1] * both,
    )


def decay(cfg: Config, s: Int[Array, ""]) -> Float[Array, ""]:
    r"""$\lambda_t = (1-\eta)^t$ with $t = \lfloor s / T_w \rfloor$ at inner step s."""
    t = s.astype(int) // jnp.asarray(cfg.inner).astype(int)
    return (1 - jnp.asarray(cfg.decay)) ** t.astype(float)


def perturbed(start: Weights, w: Weights, p: Perturbation, lam: Float[Array, ""]) -> Weights:
    r"""$\sqrt{\lambda_t}(W^{(0)} + W^\rho + W\Sigma)$, $\sqrt{\lambda_t}(V^{(0)}+V^\rho+\Sigma V)$,
    with the increments $W$ and $V$, which start at zero."""
    root = jnp.sqrt(lam)
    return Weights(
        root * (start.w + p.w_rho + w.w * p.sigma[None, :]),
        root * (start.v + p.v_rho + p.sigma[:, None] * w.v),
    )


def regulariser(w: Weights, lam: Float[Array, ""], lam_w: Any, lam_v: Any) -> Float[Array, ""]:
    r"""$\lambda_w\|\sqrt{\lambda_t}W\|_{2,4}^4 + \lambda_v\|\sqrt{\lambda_t}V\|_F^2$; (5.1) has
    the norm: the columns' lengths in $\ell_4$."""
    columns = jnp.sum(w.w**2, axis=0)
    return lam_w * lam**2 * jnp.sum(columns**2) + lam_v * lam * jnp.sum(w.v**2)


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """Algorithm 2 on a random graph. There is no dropout: the signs take its place."""
    return by_lane(lambda cfg: train(cfg, key), cfg)


def train(cfg: Config, key: Key[Array, ""]) -> Probes:
    """One run of Algorithm 2."""
    task = random_task(cfg, key, drawn_graph(cfg, key))
    a, groups = task.graph.a, training_groups(cfg, task.graph.group)
    q, best = samplers.importance(column_norms2(a)), effective(cfg, groups)
    d = task.x.shape[1]
    start, fixed = initial_weights(cfg, key, d, task.y.shape[1])
    y, draws = task.y / task.unit, stream(key, "batch")

    def objective(w: Weights, s: Int[Array, ""]) -> Float[Array, ""]:
        """(5.11). Noisy SGD: the Gaussian noise of the gradient is a linear term."""
        keys = jax.random.split(jax.random.fold_in(draws, s))
        bits = random_bits(keys[0], 4, len(q))
        sampled = sample_of(cfg, keys[0], bits[:3], groups, q)
        weight = batch_weights(cfg, bits[3], task) * sampled.kept.astype(float)
        p, lam = perturb(cfg, keys[1], d), decay(cfg, s)
        f = network(perturbed(start, w, p, lam), fixed, a, task.x, sampled)
        noise = jnp.sum(p.w_noise * w.w) + jnp.sum(p.v_noise * w.v)
        return squared_error(f, y, weight) + regulariser(w, lam, cfg.lam_w, cfg.lam_v) + noise

    trace = trained(cfg, objective, jax.tree.map(jnp.zeros_like, start), lambda w: w)

    # The output is random too: smoothing and signs are drawn once more.
    keys = jax.random.split(stream(key, "output"), cfg.outputs_drawn)

    def output(which: Key[Array, ""], w: Weights, s: Int[Array, ""]) -> Float[Array, "N K"]:
        lam = decay(cfg, jnp.maximum(s - 1, 0))
        return network(perturbed(start, w, perturb(cfg, which, d), lam), fixed, a, task.x, best)

    one = jax.vmap(lambda w, s: errors(output(keys[0], w, s), task))(trace.probes, trace.step)
    several = jax.vmap(lambda k: output(k, trace.last, trace.step[-1]))(keys)
    averaged = errors(jnp.mean(several, axis=0), task)["test_error"]
    return report(one, trace.step, task, graph_probes(cfg, key, task, groups, q), averaged)
