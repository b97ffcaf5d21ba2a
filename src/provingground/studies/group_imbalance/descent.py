"""Algorithm 1: gradient descent with noise, from local, tensor or far starts.

Letters in shapes: d feature dimension, K neurons, n samples, M starts.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, mask, par, probe
from provingground.keys import normal, stream
from provingground.train import Trace, by_lane, iterate

from .model import (
    Config,
    Mixture,
    Samples,
    aligned_distance,
    distances,
    extremes,
    gradient,
    hessian,
    minimiser,
    present,
    problem,
)
from .tensor import TensorConfig, tensor_start

SPREAD, SLOPE, GROWTH = 1e-3, 1e-5, 3.0  # what counts as success: see `MapProbes`


@config
class DescentConfig(Config):
    """Descent to the minimiser. It lasts for some times of the predicted rate."""

    samples: int = par(10_000, "n", "training samples", low=2, value=True, pad=2000)
    stretch: float = par(0.1, "a", "covariances have the eigenvalues 1 + a i", low=0)
    eps: float = par(0.1, r"\epsilon", "distance of the start from the teacher", low=0)
    noise: float = par(0.0, r"\xi", "bound on the noise of a gradient's entries", low=0)
    times: float = par(12.0, r"T(1-v)", "steps in units of 1/(1-v)", low=0)
    steps: int = par(100_000, r"T_{\max}", "gradient descent steps at most", low=1, value=True)
    record: int = par(61, "n_t", "recorded steps", low=2)


@config
class StartsConfig(TensorConfig):
    """Descent from three kinds of start."""

    samples: int = par(20_000, "n", "training samples", low=2, value=True, pad=10_000)
    eps: float = par(0.1, r"\epsilon", "distance of the local start from the teacher", low=0)
    far: float = par(5.0, r"\sigma_0", "s.d. of the far start's weights", low=0)
    steps: int = par(600, "T", "gradient descent steps", low=1)
    record: int = par(61, "n_t", "recorded steps", low=2)


@config
class MapConfig(Config):
    """Many descents from around the teacher: sizes are numbers, so that one program serves all."""

    dim: int = par(5, "d", "feature dimension", low=1, value=True, pad=16)
    samples: int = par(4000, "n", "training samples", low=2, value=True, pad=4000)
    lr: float = par(1.0, "c", r"step size times $\lambda_{\max}$", low=0)
    eps: float = par(0.1, r"\epsilon", "distance of the starts from the teacher", low=0)
    starts: int = par(20, "M", "starts", low=2)
    steps: int = par(2000, "T", "gradient descent steps at most", low=1)


@config
class LargeMapConfig(MapConfig):
    """The same laid out for the largest sizes: one program for a whole map, which suits a GPU."""

    dim: int = par(5, "d", "feature dimension", low=1, value=True, pad=20)
    samples: int = par(4000, "n", "training samples", low=2, value=True, pad=16_000)


class DescentProbes(eqx.Module):
    """A descent in time; `time` is the step."""

    distance: Float[Array, "step"] = probe("distance to the minimiser", r"\|W_t - \hat W_n\|_F")
    time: Float[Array, "step"] = probe("gradient descent step", "t")
    rate: Float[Array, ""] = probe("predicted convergence rate", "1 - v")
    moment: Float[Array, ""] = probe("moment bound", "M_2")
    ratio: Float[Array, ""] = probe("condition of the Hessian", r"\lambda_{\min}/\lambda_{\max}")
    floor: Float[Array, ""] = probe("predicted distance that noise keeps")
    bound: Float[Array, ""] = probe("statistical error of (4.8)")
    slope: Float[Array, ""] = probe("norm of the gradient at the minimiser", r"\|\nabla f_n\|")


class StartsProbes(eqx.Module):
    """Descents from the tensor, the local and the far start, in this order."""

    distance: Float[Array, "step start"] = probe("distance to the minimiser", r"\|W_t-\hat W_n\|_F")
    relative_error: Float[Array, "start"] = probe("relative error of the start")
    rate: Float[Array, ""] = probe("predicted convergence rate", "1 - v")
    fit_error: Float[Array, ""] = probe("relative error of the minimiser")
    baseline: Float[Array, ""] = probe("relative error of the mean of the teacher's columns")
    step: Int[Array, "step"] = probe("gradient descent step", "t")


class MapProbes(eqx.Module):
    r"""Whether descents from $M$ starts end at one point: $V_W \le 10^{-3}$ (Figure 4.2).

    At small $n$ the minimiser lies at infinity, all descents follow one slow path there, and $V_W$
    is small too; so the gradient must be below $10^{-5}$ and no weights three times the teacher's.
    """

    success: Float[Array, ""] = probe("success rate")
    spread: Float[Array, ""] = probe("spread of the ends", "V_W")
    slope: Float[Array, ""] = probe("largest norm of a gradient", r"\|\nabla f_n\|")
    error: Float[Array, ""] = probe("distance of the mean end to the teacher")
    stopped_at: Int[Array, ""] = probe("steps until success", "T")


# ----------------------------------------------------------------------------- Algorithm 1


def descend_from(
    start: Float[Array, "d M K"],
    data: Samples,
    on: Float[Array, "K"],
    lr: Any,
    noise: Callable[[Int[Array, ""]], Float[Array, "d M K"]] | None = None,
    **how: Any,
) -> Trace:
    r"""(4.6): $W_{t+1} = W_t - \eta_0(\nabla f_n(W_t) + \frac1n\sum_i\nu_i)$ from $M$ starts at
    once; the state is $(W_t, \nabla f_n(W_t))$."""

    def at(w: Float[Array, "d M K"]) -> tuple[Array, Array]:
        return w, gradient(w, data, on)

    def step(state: Any, t: Int[Array, ""]) -> Any:
        w, g = state
        return at(w - lr * (g if noise is None else g + noise(t)))

    return iterate(step, at(start), **how)


def mean_noise(
    key: Key[Array, ""], shape: tuple[int, ...], xi: Any, n: Any
) -> Callable[[Int[Array, ""]], Array]:
    r"""$\frac1n\sum_i\nu_i$ for entries of $\nu_i$ uniform in $\pm\xi$: normal, of s.d.
    $\xi/\sqrt{3n}$ (the sum of $n$ of them is, up to $1/n$), and within $\pm\xi$."""
    spread = xi / jnp.sqrt(3 * jnp.asarray(n, float))

    def of_step(t: Int[Array, ""]) -> Array:
        return jnp.clip(spread * normal(jax.random.fold_in(key, t), shape), -xi, xi)

    return of_step


def local_starts(
    w_star: Float[Array, "d K"], directions: Float[Array, "M d K"], eps: Any, on: Float[Array, "D"]
) -> Float[Array, "d M K"]:
    r"""$W^* + \epsilon G/\|G\|_F$ with Gaussian $G$, for $M$ of them."""
    d, k = w_star.shape
    g = directions * on.reshape(k, d).T[None]
    g = g / jnp.sqrt(jnp.sum(g**2, axis=(1, 2), keepdims=True))
    return jnp.moveaxis(w_star[None] + eps * g, 0, 1)


def simulate_descent(
    cfg: DescentConfig, key: Key[Array, ""], data: Mixture | None = None
) -> DescentProbes:
    r"""One descent from near the teacher, with $\eta_0 = c/M_2$, against the minimiser."""
    mixture, w_star, drawn = problem(cfg, key, data)
    d, k, on, exist = *w_star.shape, mask(cfg, "width").astype(float), present(cfg)
    start = local_starts(w_star, normal(stream(key, "init"), (1, d, k)), cfg.eps, exist)
    noise_key = stream(key, "noise")

    def run(mixture: Mixture, w_star: Array, data: Samples, start: Array) -> DescentProbes:
        w_hat, slope = minimiser(cfg, w_star, data)
        h, m2 = hessian(w_hat, data, on), mixture.moment(2)
        lr, (flat, sharp) = cfg.lr / m2, extremes(h, exist)
        n, rate = jnp.asarray(cfg.samples, float), lr * flat
        most = jnp.asarray(cfg.steps, float)
        needed = jnp.ceil(cfg.times / jnp.maximum(rate, 1e-12))  # no minimiser: as long as allowed
        last = jnp.clip(needed, 1.0, most)
        time = jnp.round(jnp.linspace(0.0, 1.0, cfg.record) * last)
        trace = descend_from(
            start,
            data,
            on,
            lr,
            mean_noise(noise_key, (d, 1, k), cfg.noise, n),
            steps=last.astype(jnp.int32),
            at=time.astype(jnp.int32),
            probe=lambda state: jnp.linalg.norm(state[0][:, 0] - w_hat),
        )
        # Near the minimiser every eigendirection is an autoregression of its own.
        shrink = 1 - lr * jnp.linalg.eigvalsh(h)
        kept = jnp.sum(1 / (1 - shrink**2)) * lr**2 * cfg.noise**2 / (3 * n)
        return DescentProbes(
            distance=trace.probes,
            time=time,
            rate=rate,
            moment=m2,
            ratio=flat / sharp,
            floor=jnp.sqrt(kept),
            bound=lr * cfg.noise / rate * jnp.sqrt(d * k * jnp.log(n) / n),
            slope=slope,
        )

    return by_lane(run, mixture, w_star, drawn, start)


def simulate_starts(
    cfg: StartsConfig, key: Key[Array, ""], data: Mixture | None = None
) -> StartsProbes:
    """Descents from the tensor start, a local and a far one, side by side (Figure C.1)."""
    mixture, w_star, drawn = problem(cfg, key, data)
    (d, k), on, exist = w_star.shape, mask(cfg, "width").astype(float), present(cfg)
    lots = normal(stream(key, "init"), (2, d, k))
    near = local_starts(w_star, lots[:1], cfg.eps, exist)
    far = cfg.far * lots[1][:, None]
    steps = jnp.round(jnp.linspace(0.0, 1.0, cfg.record) * cfg.steps).astype(jnp.int32)

    def run(
        mixture: Mixture, w_star: Array, data: Samples, near: Array, far: Array
    ) -> StartsProbes:
        first = tensor_start(cfg, key, mixture, data).weights
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
        return StartsProbes(
            distance=trace.probes,
            relative_error=errors[:3],
            rate=lr * extremes(hessian(w_hat, data, on), exist)[0],
            fit_error=errors[3],
            baseline=errors[4],
            step=trace.step,
        )

    return by_lane(run, mixture, w_star, drawn, near, far)


# ---------------------------------------------------------------------------- success maps


def spread_of(w: Float[Array, "d M K"]) -> Float[Array, ""]:
    r"""$V_W = \big(\frac1M\sum_m\|W^{(m)} - \bar W\|^2\big)^{1/2}$."""
    return jnp.sqrt(jnp.sum((w - w.mean(axis=1, keepdims=True)) ** 2) / w.shape[1])


def simulate_map(cfg: MapConfig, key: Key[Array, ""], data: Mixture | None = None) -> MapProbes:
    r"""Descents from $M$ starts on one data set, as one matrix product a step, until they agree.

    The step size is $1/\lambda_{\max}(\nabla^2f_n(W^*))$ times `lr`.
    """
    _, w_star, drawn = problem(cfg, key, data)
    (d, k), on, exist = w_star.shape, mask(cfg, "width").astype(float), present(cfg)
    lots = normal(stream(key, "init"), (d, cfg.starts, k))  # the padded axis comes first
    starts = local_starts(w_star, jnp.moveaxis(lots, 0, 1), cfg.eps, exist)

    def run(w_star: Array, data: Samples, starts: Array) -> MapProbes:
        lr = cfg.lr / extremes(hessian(w_star, data, on), exist)[1]
        limit = GROWTH * jnp.linalg.norm(w_star)

        def sizes(state: Any) -> tuple[Array, Array, Array]:
            w, g = state
            largest = [jnp.sqrt(jnp.max(jnp.sum(a**2, axis=(0, 2)))) for a in (w, g)]
            return spread_of(w), largest[1], largest[0]

        def agree(state: Any) -> Bool[Array, ""]:
            spread, slope, norm = sizes(state)
            return (spread <= SPREAD) & (slope <= SLOPE) & (norm <= limit)

        trace = descend_from(starts, data, on, lr, steps=cfg.steps, until=agree)
        spread, slope, _ = sizes(trace.last)
        return MapProbes(
            success=agree(trace.last).astype(float),
            spread=spread,
            slope=slope,
            error=aligned_distance(trace.last[0].mean(axis=1), w_star, on),
            stopped_at=trace.stopped_at,
        )

    return by_lane(run, w_star, drawn, starts)
