"""Network and training of the scalar attention network, in the paper's order.

Letters in shapes: n samples, m neurons, d steps of the series. The data are those of `data.py`.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par, probe, size
from provingground.keys import normal, stream
from provingground.maths import kernels
from provingground.maths.sums import sums
from provingground.train import by_lane, iterate, log_steps

from .data import MIX, draw
from .linear import mean_square, risks

MOST = 0.9  # of the pairs: how long at least so many are in order is counted


@config
class Config:
    """The paper prints no numbers; these are ours."""

    tokens: int = par(8, "d", "length of the series", low=3)
    samples: int = par(64, "n", "training samples", low=2, value=True, pad=64)
    width: int = par(256, "m", "neurons (in pairs)", low=2, value=True, pad=256)
    noise: float = par(0.1, r"\sigma", "noise s.d.", low=0)
    mode: int = par(
        MIX, "c", "next feature: 0 mix, 1 unit, 2 unit_uniform", low=0, high=2, value=True
    )
    gamma: float = par(0.5, r"\gamma", "similarity of last and next feature (unit)", low=0, high=1)
    lr: float = par(0.5, r"\eta\lambda_{\max}", "step size times top eigenvalue of H(0)", low=0)
    init_scale: float = par(1.0, "c_0", "s.d. of the initial weights", low=0)
    steps: int = par(300, "T", "gradient descent steps", low=1)
    record: int = par(24, "n_t", "recorded steps", low=2)
    test_samples: int = par(1000, r"n_{\mathrm{test}}", "test samples", low=1)


class Probes(eqx.Module):
    """What one training reports. OOD: last and next value differ in sign."""

    train_loss: Float[Array, "step"] = probe("training loss", "L")
    lazy_loss: Float[Array, "step"] = probe("training loss if the kernel stayed", "L")
    test_loss: Float[Array, "step"] = probe("risk", r"R_{\mathrm{ID}}")
    ood_loss: Float[Array, "step"] = probe("OOD risk", r"R_{\mathrm{OOD}}")
    direction: Float[Array, "step"] = probe("share of neurons that moved towards $a_r$")
    pull: Float[Array, "step"] = probe("share of neurons that are pulled towards $a_r$")
    move: Float[Array, "step"] = probe("mean move towards $a_r$", r"E\,a_r(w_r(t)-w_r(0))")
    sign: Float[Array, "step"] = probe("share of neurons with sign $a_r$")
    ordered: Float[Array, "step"] = probe("share of pairs with $w^+ \\geq w^-$")
    same_sign: Float[Array, "step"] = probe("share of test points with $f x_d \\geq 0$")
    ood_same_sign: Float[Array, "step"] = probe("share of OOD points with $f x_d \\geq 0$")
    radius: Float[Array, "step"] = probe("largest move of a weight", "R")
    drift: Float[Array, "step"] = probe("relative drift of the kernel")
    silent: Float[Array, "step"] = probe("share of the neurons $a_r=-1$ with $d\\,E S_d \\leq 1$")
    attention: Float[Array, "step"] = probe(
        "attention on the last step, $a_r=-1$, $w_r<0$", r"d\,E S_d"
    )
    ordered_steps: Int[Array, ""] = probe("steps with 90% of the pairs in order", "t_o")
    lazy_steps: Int[Array, ""] = probe("the same if the kernel stayed", "t_o")
    zero_loss: Float[Array, ""] = probe("risk of the zero predictor")
    zero_ood: Float[Array, ""] = probe("OOD risk of the zero predictor")
    last_loss: Float[Array, ""] = probe("risk of the last value")
    last_ood: Float[Array, ""] = probe("OOD risk of the last value")
    fitted_loss: Float[Array, ""] = probe("risk of the trained residual linear network")
    fitted_ood: Float[Array, ""] = probe("OOD risk of the trained residual linear network")
    plain_loss: Float[Array, ""] = probe("risk of the unrestricted linear network")
    plain_ood: Float[Array, ""] = probe("OOD risk of the unrestricted linear network")
    kernel_max: Float[Array, ""] = probe("largest eigenvalue of H(0)", r"\lambda_{\max}")
    step: Int[Array, "step"] = probe("gradient descent step", "t")


# ---------------------------------------------------------------------------- network


def attend(
    w: Float[Array, "m"], x: Float[Array, "n d"]
) -> tuple[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]]:
    r"""$g = \langle S, x\rangle$, $v = \langle S, x^{\circ2}\rangle - g^2$ and $S_d$.

    With $S = \mathrm{softmax}(x_d w_r x)$ these are $\phi'$ and $\phi''$ of
    $\phi(\beta) = \log\sum_k e^{\beta x_k}$ at $\beta = x_d w_r$.
    """
    beta = x[:, -1:] * w[None, :]
    top = jnp.maximum(beta * x.max(axis=1, keepdims=True), beta * x.min(axis=1, keepdims=True))
    x_k = x.T[:, :, None]
    e = jnp.exp(beta[None] * x_k - top[None])
    z, first, second = sums(e, e * x_k, e * x_k**2)
    g = first / z
    return g, second / z - g**2, e[-1] / z


def network(
    w: Float[Array, "m"], a: Float[Array, "m"], x: Float[Array, "n d"]
) -> Float[Array, "n"]:
    r"""$f(x) = m^{-1/2} \sum_r a_r \langle\mathrm{softmax}(x_d w_r x), x\rangle$."""
    return attend(w, x)[0] @ read_out(a)


def read_out(a: Float[Array, "m"]) -> Float[Array, "m"]:
    r"""$a_r/\sqrt m$. Neurons that do not exist have $a_r = 0$, the others $a_r = \pm1$."""
    return a / jnp.linalg.norm(a)


def initial(cfg: Config, key: Key[Array, ""]) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
    r"""$w_r(0)$ normal, in pairs with $a = \pm1$: the output starts at zero, as assumed."""
    pairs = size(cfg, "width") // 2
    w = cfg.init_scale * normal(stream(key, "init"), (pairs,))
    plus = jnp.where(jnp.arange(pairs, dtype=jnp.int32) < cfg.width // 2, 1.0, 0.0)
    return jnp.tile(w, 2), jnp.concatenate([plus, -plus])


# --------------------------------------------------------------------------- training


def gradient(
    w: Float[Array, "m"],
    a: Float[Array, "m"],
    x: Float[Array, "n d"],
    y: Float[Array, "n"],
    exists: Bool[Array, "n"],
) -> Float[Array, "m"]:
    r"""Lemma E.5: $\partial_{w_r} L = \frac{a_r}{\sqrt m}\sum_i (F_i - y_i) x_{i,d} v_{i,r}$."""
    g, v, _ = attend(w, x)
    residual = jnp.where(exists, g @ read_out(a) - y, 0.0)
    return read_out(a) * ((residual * x[:, -1]) @ v)


def tangent(
    x: Float[Array, "n d"], v: Float[Array, "n m"], a: Float[Array, "m"], exists: Bool[Array, "n"]
) -> Float[Array, "n n"]:
    r"""$H_{ij} = \frac1m x_{i,d} x_{j,d} \sum_r v_{i,r} v_{j,r}$, zero for what does not exist."""
    return kernels.tangent_kernel(
        jnp.where(exists[:, None], x[:, -1:] * v, 0.0) * read_out(a)[None, :]
    )


def share(holds: Bool[Array, "n"], of: Bool[Array, "n"] | None = None) -> Float[Array, ""]:
    """The share of True, of those that exist."""
    return jnp.mean(holds, dtype=float, where=of)


class State(eqx.Module):
    """The weights; beside them the residuals if the kernel stayed, their sum over the steps, and
    for how many steps most pairs were in order (with these weights, and with those of the frozen
    kernel)."""

    w: Float[Array, "m"]
    lazy: Float[Array, "n"]
    summed: Float[Array, "n"]
    ordered_steps: Int[Array, ""]
    lazy_steps: Int[Array, ""]


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""Full-batch descent on $L = \frac12\sum_i (f(x_i) - y_i)^2$, gradient by Lemma E.5."""
    data = draw(cfg, key)
    w_0, a = initial(cfg, key)
    at, x, y, exists = log_steps(cfg.steps, cfg.record), data.x, data.y, data.exists
    neurons, half = a != 0, len(a) // 2
    v_0 = attend(w_0, x)[1]
    h_0 = tangent(x, v_0, a, exists)
    # Lane by lane: batches of LAPACK calls share a pool of threads, and two calls block it.
    values, vectors = by_lane(jnp.linalg.eigh, h_0)
    baselines = risks(data)
    lr = cfg.lr / values[-1]
    known = jnp.where(exists, y, 0.0)
    lazy = kernels.lazy_residual(values, vectors, known, lr, at)
    points, ends = jnp.concatenate([x, data.x_in, data.x_out]), (len(x), len(x) + len(data.x_in))

    def in_order(ahead: Float[Array, "pairs"]) -> Float[Array, ""]:
        return share(ahead >= 0, neurons[:half])

    def counted(steps: Array, t: Array, ahead: Float[Array, "pairs"]) -> Int[Array, ""]:
        return jnp.where((steps == t) & (in_order(ahead) >= MOST), t + 1, steps)

    def step(s: State, t: Int[Array, ""]) -> State:
        w = s.w - lr * gradient(s.w, a, x, y, exists)
        summed = s.summed + s.lazy
        # By how much w+ would be ahead of w- with a frozen kernel, up to a positive factor.
        ahead = (summed * x[:, -1]) @ v_0[:, :half]
        return State(
            w,
            s.lazy - lr * (h_0 @ s.lazy),
            summed,
            counted(s.ordered_steps, t, w[:half] - w[half:]),
            counted(s.lazy_steps, t, ahead),
        )

    def measure(s: State) -> dict[str, Float[Array, ""]]:
        w = s.w
        g, v, s_d = attend(w, points)
        # Pair by pair, so that the output at the start is zero without rounding.
        f = (g[:, :half] - g[:, half:]) @ read_out(a)[:half]
        f, f_in, f_out = jnp.split(f, ends)
        attention = cfg.tokens * jnp.mean(s_d[ends[0] : ends[1]], axis=0)
        negative = ((a < 0) & (w < 0)).astype(w.dtype)
        return dict(
            train_loss=jnp.sum(jnp.where(exists, f - y, 0.0) ** 2) / 2,
            test_loss=mean_square(f_in - data.y_in),
            ood_loss=mean_square(f_out - data.y_out),
            direction=share(jnp.sign(w - w_0) == a, neurons),
            pull=share(jnp.where(exists, (y - f) * x[:, -1], 0.0) @ v[: len(x)] > 0, neurons),
            move=jnp.mean(a * (w - w_0), where=neurons),
            sign=share(jnp.sign(w) == a, neurons),
            ordered=in_order(w[:half] - w[half:]),
            same_sign=share(f_in * data.x_in[:, -1] >= 0),
            ood_same_sign=share(f_out * data.x_out[:, -1] >= 0),
            radius=jnp.abs(w - w_0).max(),
            drift=kernels.drift(tangent(x, v[: len(x)], a, exists), h_0),
            silent=share(attention <= 1, a < 0),
            attention=attention @ negative / jnp.maximum(negative.sum(), 1.0),
        )

    none = jnp.array(0, jnp.int32)
    start = State(w_0, known, jnp.zeros_like(known), none, none)
    trace = iterate(step, start, steps=cfg.steps, at=at, probe=measure)
    return Probes(
        **trace.probes,
        **baselines,
        ordered_steps=trace.last.ordered_steps,
        lazy_steps=trace.last.lazy_steps,
        lazy_loss=jnp.sum(lazy**2, axis=1) / 2,
        kernel_max=values[-1],
        step=trace.step,
    )
