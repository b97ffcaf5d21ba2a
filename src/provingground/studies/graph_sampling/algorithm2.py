"""Algorithm 2 as written: increments, weight decay, smoothing, random signs and regularisers."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, Key

from provingground.keys import normal, signs, stream
from provingground.study import mask, size
from provingground.train import descend

from . import samplers
from .graph import column_norms2
from .model import (
    Config,
    Probes,
    Task,
    Weights,
    batch_weights,
    drawn_graph,
    effective,
    errors,
    graph_probes,
    initial_weights,
    network,
    random_task,
    recorded,
    report,
    rule,
    sample,
    squared_error,
    training_groups,
)
from .samplers import Sampled


class Increments(eqx.Module):
    r"""What is trained: $W$ and $V$, which start at zero beside $W^{(0)}$ and $V^{(0)}$."""

    w: Float[Array, "d m"]
    v: Float[Array, "m m"]


class Perturbation(eqx.Module):
    r"""$W^\rho$, $V^\rho$, the diagonal of $\Sigma$, and the noise of the gradient."""

    w_rho: Float[Array, "d m"]
    v_rho: Float[Array, "m m"]
    sigma: Float[Array, "m"]
    w_noise: Float[Array, "d m"]
    v_noise: Float[Array, "m m"]


class Step(eqx.Module):
    """What is drawn for one inner step, and its weight decay."""

    sampled: Sampled
    weight: Float[Array, "N"]
    perturbation: Perturbation
    lam: Float[Array, ""]


def perturb(cfg: Config, key: Key[Array, ""], d: int) -> Perturbation:
    r"""Table 5.1: $\sigma_w = m_1^{-0.99}$, $\sigma_v = m_2^{-0.51}$, times `smoothing`."""
    m, exists = size(cfg, "width"), mask(cfg, "width").astype(float)
    keys = jax.random.split(key)
    z = jax.vmap(lambda i: normal(jax.random.fold_in(keys[0], i), (d + m, 2)))(jnp.arange(m))
    w, v = z[:, :d] * exists[:, None, None], z[:, d:] * (exists[:, None] * exists)[..., None]
    count = jnp.asarray(cfg.width).astype(float)
    sigma_w, sigma_v = cfg.smoothing * count**-0.99, cfg.smoothing * count**-0.51
    flips = jnp.where(jnp.asarray(cfg.signs), signs(keys[1], (m,)), 1.0)
    return Perturbation(
        sigma_w * w[..., 0].T, sigma_v * v[..., 0], flips, cfg.noise * w[..., 1].T,
        cfg.noise * v[..., 1],
    )  # fmt: skip


def decay(cfg: Config, s: Int[Array, ""]) -> Float[Array, ""]:
    r"""$\lambda_t = (1-\eta)^t$ with $t = \lfloor s / T_w \rfloor$ at inner step s."""
    t = s.astype(int) // jnp.asarray(cfg.inner).astype(int)
    return (1 - jnp.asarray(cfg.decay)) ** t.astype(float)


def perturbed(
    start: Weights, w: Increments, p: Perturbation, lam: Float[Array, ""]
) -> Weights:
    r"""$\sqrt{\lambda_t}(W^{(0)} + W^\rho + W\Sigma)$, $\sqrt{\lambda_t}(V^{(0)}+V^\rho+\Sigma V)$."""
    root = jnp.sqrt(lam)
    return eqx.tree_at(
        lambda s: (s.w, s.v),
        start,
        (
            root * (start.w + p.w_rho + w.w * p.sigma[None, :]),
            root * (start.v + p.v_rho + p.sigma[:, None] * w.v),
        ),
    )


def regulariser(
    w: Increments, lam: Float[Array, ""], lam_w: ArrayLike, lam_v: ArrayLike
) -> Float[Array, ""]:
    r"""$\lambda_w\|\sqrt{\lambda_t}W\|_{2,4}^4 + \lambda_v\|\sqrt{\lambda_t}V\|_F^2$; (5.1) has
    the norm: the columns' lengths in $\ell_4$."""
    columns = jnp.sum(w.w**2, axis=0)
    return lam_w * lam**2 * jnp.sum(columns**2) + lam_v * lam * jnp.sum(w.v**2)


def simulate_algorithm(cfg: Config, key: Key[Array, ""]) -> Probes:
    """Algorithm 2 on a random graph. There is no dropout: the signs take its place."""
    task = random_task(cfg, key, drawn_graph(cfg, key, sparse=False))
    a, groups = task.graph.a, training_groups(cfg, task.graph.group)
    q, best = samplers.importance(column_norms2(a)), effective(cfg, groups)
    d = task.x.shape[1]
    start = initial_weights(cfg, key, d, task.y.shape[1])
    y, draws = task.y / task.unit, stream(key, "batch")

    def one_step(s: Int[Array, ""]) -> Step:
        keys = jax.random.split(jax.random.fold_in(draws, s), 3)
        sampled = sample(cfg, keys[0], groups, q)
        weight = batch_weights(cfg, keys[1], task) * sampled.kept.astype(float)
        return Step(sampled, weight, perturb(cfg, keys[2], d), decay(cfg, s))

    def objective(w: Increments, step: Step) -> Float[Array, ""]:
        """(5.11). Noisy SGD: the Gaussian noise of the gradient is a linear term."""
        p = step.perturbation
        f = network(perturbed(start, w, p, step.lam), a, task.x, step.sampled)
        noise = jnp.sum(p.w_noise * w.w) + jnp.sum(p.v_noise * w.v)
        penalty = regulariser(w, step.lam, cfg.lam_w, cfg.lam_v)
        return squared_error(f, y, step.weight) + penalty + noise

    trace = descend(
        objective,
        Increments(jnp.zeros_like(start.w), jnp.zeros_like(start.v)),
        rule(cfg),
        steps=cfg.steps,
        at=recorded(cfg),
        batch=one_step,
        probe=lambda w: dict(w=w.w, v=w.v),
    )

    # The output is random too: $W^\rho$, $V^\rho$ and $\Sigma$ are drawn once more.
    keys = jax.random.split(stream(key, "output"), cfg.outputs_drawn)

    def output(which: Key[Array, ""], w: Increments, s: Int[Array, ""]) -> Float[Array, "N K"]:
        lam = decay(cfg, jnp.maximum(s - 1, 0))
        return network(perturbed(start, w, perturb(cfg, which, d), lam), a, task.x, best)

    steps = Increments(trace.probes["w"], trace.probes["v"])
    one = jax.vmap(lambda w, s: errors(output(keys[0], w, s), task))(steps, trace.step)
    several = jax.vmap(lambda k: output(k, trace.last, trace.step[-1]))(keys)
    averaged = errors(jnp.mean(several, axis=0), task)["test_error"]
    return report(one, trace.step, task, graph_probes(cfg, key, task, groups, q), averaged)
