"""Theorem 5.2 where it can be waited for: so few samples that the loss reaches epsilon."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe
from provingground.train import by_lane, iterate, log_steps

from . import model
from .data import next_coefs, train_pair
from .model import attend, gradient, initial, network, share, tangent


@config
class Config(model.Config):
    """As the standard training, down to a loss."""

    samples: int = par(2, "n", "training samples", low=2)
    width: int = par(256, "m", "neurons (in pairs)", low=2)
    eps: float = par(0.01, r"\epsilon", "loss at which to stop, over that at the start", low=0)


class Probes(eqx.Module):
    train_loss: Float[Array, "step"] = probe("training loss", "L")
    kernel_ratio: Float[Array, "step"] = probe(
        "smallest eigenvalue over its start", r"\lambda_{\min}(H(t))/\lambda"
    )
    sign: Float[Array, "step"] = probe("share of neurons with sign $a_r$")
    lazy_sign: Float[Array, ""] = probe("the same at the end, if the kernel stayed")
    slowest: Float[Array, ""] = probe("smallest $(1 - L(t+1)/L(t))/(\\eta\\lambda/2)$")
    stopped_at: Int[Array, ""] = probe("steps taken", "t")
    kernel_min: Float[Array, ""] = probe("smallest eigenvalue of H(0)", r"\lambda")
    kernel_max: Float[Array, ""] = probe("largest eigenvalue of H(0)", r"\lambda_{\max}")


class State(eqx.Module):
    w: Float[Array, "m"]
    loss: Float[Array, ""]
    slowest: Float[Array, ""]


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""The training of `model.py` until $L \le \epsilon L(0)$, with the rate of Lemma H.1."""
    x, y = train_pair(cfg, next_coefs(cfg, key), key)
    exists = jnp.ones(len(x), bool)
    w_0, a = initial(cfg, key)
    v_0 = attend(w_0, x)[1]
    values, vectors = by_lane(jnp.linalg.eigh, tangent(x, v_0, a, exists))
    lr = cfg.lr / values[-1]

    def loss(w: Float[Array, "m"]) -> Float[Array, ""]:
        return jnp.sum((network(w, a, x) - y) ** 2) / 2

    def step(s: State, t: Int[Array, ""]) -> State:
        w = s.w - lr * gradient(s.w, a, x, y, exists)
        after = loss(w)
        rate = (1 - after / s.loss) / (lr * values[0] / 2)
        return State(w, after, jnp.minimum(s.slowest, rate))

    def measure(s: State) -> dict[str, Array]:
        return dict(
            train_loss=s.loss,
            kernel=tangent(x, attend(s.w, x)[1], a, exists),
            sign=share(jnp.sign(s.w) == a),
        )

    start = State(w_0, loss(w_0), jnp.array(jnp.inf))
    at = log_steps(cfg.steps, cfg.record)
    trace = iterate(
        step,
        start,
        steps=cfg.steps,
        at=at,
        probe=measure,
        until=lambda s: s.loss <= cfg.eps * start.loss,
    )
    found = dict(trace.probes)
    spectra = by_lane(jnp.linalg.eigvalsh, found.pop("kernel"))
    # A frozen kernel has w_r(t) = w_r(0) + a_r/sqrt(m) sum_i p_i x_{i,d} v_{i,r} with
    # p = H^-1 (I - (I - eta H)^t) y.
    fitted = -jnp.expm1(trace.stopped_at.astype(values.dtype) * jnp.log1p(-lr * values)) / values
    pulls = (vectors @ (fitted * (y @ vectors))) * x[:, -1]
    end = w_0 + model.read_out(a) * (pulls @ v_0)
    return Probes(
        **found,
        kernel_ratio=spectra[:, 0] / values[0],
        lazy_sign=share(jnp.sign(end) == a),
        slowest=trace.last.slowest,
        stopped_at=trace.stopped_at,
        kernel_min=values[0],
        kernel_max=values[-1],
    )
