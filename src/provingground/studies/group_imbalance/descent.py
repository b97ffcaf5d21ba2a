"""Algorithm 1 in time: descent from near the teacher to the minimiser, maybe with noise."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import config, mask, par, probe
from provingground.keys import normal, stream
from provingground.train import by_lane

from . import data
from .algorithm import descend_from, local_starts, mean_noise
from .data import Mixture, problem
from .network import Samples, extremes, hessian, minimiser, present

__all__ = ["Config", "Probes", "simulate"]


@config
class Config(data.Config):
    """Descent to the minimiser. It lasts for some times of the predicted rate."""

    samples: int = par(10_000, "n", "training samples", low=2, value=True, pad=2000)
    stretch: float = par(0.1, "a", "covariances have the eigenvalues 1 + a i", low=0)
    eps: float = par(0.1, r"\epsilon", "distance of the start from the teacher", low=0)
    noise: float = par(0.0, r"\xi", "bound on the noise of a gradient's entries", low=0)
    times: float = par(12.0, r"T(1-v)", "steps in units of 1/(1-v)", low=0)
    steps: int = par(100_000, r"T_{\max}", "gradient descent steps at most", low=1, value=True)
    record: int = par(61, "n_t", "recorded steps", low=2)


class Probes(eqx.Module):
    """A descent in time; `time` is the step."""

    distance: Float[Array, "step"] = probe("distance to the minimiser", r"\|W_t - \hat W_n\|_F")
    time: Float[Array, "step"] = probe("gradient descent step", "t")
    rate: Float[Array, ""] = probe("predicted convergence rate", "1 - v")
    moment: Float[Array, ""] = probe("moment bound", "M_2")
    ratio: Float[Array, ""] = probe("condition of the Hessian", r"\lambda_{\min}/\lambda_{\max}")
    floor: Float[Array, ""] = probe("predicted distance that noise keeps")
    bound: Float[Array, ""] = probe("statistical error of (4.8)")
    slope: Float[Array, ""] = probe("norm of the gradient at the minimiser", r"\|\nabla f_n\|")


def simulate(cfg: Config, key: Key[Array, ""], data: Mixture | None = None) -> Probes:
    r"""One descent from near the teacher, with $\eta_0 = c/M_2$, against the minimiser."""
    mixture, w_star, drawn = problem(cfg, key, data)
    d, k, on, exist = *w_star.shape, mask(cfg, "width").astype(float), present(cfg)
    start = local_starts(w_star, normal(stream(key, "init"), (1, d, k)), cfg.eps, exist)
    noise_key = stream(key, "noise")

    def run(mixture: Mixture, w_star: Array, data: Samples, start: Array) -> Probes:
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
        return Probes(
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
