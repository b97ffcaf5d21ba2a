"""Data, network and training of the scalar attention network, in the paper's order.

Letters in shapes: n samples, m neurons, d steps of the series. The features $P_1..P_d$ are
orthonormal, so in their basis $u_k = h_{1,k}$ and no state-space model has to be run
(`series.py` builds one and compares).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, mask, par, probe, size
from provingground.keys import normal, stream
from provingground.maths import kernels
from provingground.maths.sums import sums
from provingground.train import by_lane, iterate, log_steps

MIX, UNIT, UNIFORM = range(3)
LINEAR_POINTS = 10_000  # on which w* is tested: it is compared with a formula, so more than others


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
    sign: Float[Array, "step"] = probe("share of neurons with sign $a_r$")
    ordered: Float[Array, "step"] = probe("share of pairs with $w^+ \\geq w^-$")
    same_sign: Float[Array, "step"] = probe("share of test points with $f x_d \\geq 0$")
    ood_same_sign: Float[Array, "step"] = probe("share of OOD points with $f x_d \\geq 0$")
    radius: Float[Array, "step"] = probe("largest move of a weight", "R")
    drift: Float[Array, "step"] = probe("relative drift of the kernel")
    attention: Float[Array, "step"] = probe(
        "attention on the last step, $a_r=-1$, $w_r<0$", r"d\,E S_d"
    )
    zero_loss: Float[Array, ""] = probe("risk of the zero predictor")
    zero_ood: Float[Array, ""] = probe("OOD risk of the zero predictor")
    last_loss: Float[Array, ""] = probe("risk of the last value")
    last_ood: Float[Array, ""] = probe("OOD risk of the last value")
    linear_loss: Float[Array, ""] = probe("risk of the residual linear network, $w^*$")
    linear_ood: Float[Array, ""] = probe("OOD risk of the residual linear network, $w^*$")
    fitted_loss: Float[Array, ""] = probe("risk of the trained residual linear network")
    fitted_ood: Float[Array, ""] = probe("OOD risk of the trained residual linear network")
    kernel_max: Float[Array, ""] = probe("largest eigenvalue of H(0)", r"\lambda_{\max}")
    step: Int[Array, "step"] = probe("gradient descent step", "t")


# ------------------------------------------------------------------------------- data


def next_coefs(cfg: Config, key: Key[Array, ""]) -> Float[Array, "d"]:
    r"""$c$ in $P_{d+1} = \sum_k c_k P_k$. Properties 1 to 3 exclude each other, so there are modes.

    `mix`: $c_d = \frac{d-1}d$, $c_k = \frac1{d(d-1)}$ (Properties 2, 3). `unit`: $\|c\| = 1$,
    $c_d = \gamma$ and $\sum_k c_k = 1$ (Properties 1, 2), the rest at random. `unit_uniform`:
    $\|c\| = 1$, $c_d = \gamma$ and equal $c_k$; then $\sum_k c_k \neq 1$.
    """
    b, gamma = cfg.tokens - 1, jnp.asarray(cfg.gamma, float)
    q = normal(stream(key, "data/features"), (b,))
    q = q - q.mean()
    s, rest = jnp.sqrt((1 - gamma) / (1 + gamma)), jnp.sqrt(1 - gamma**2)
    tilted = s / b + jnp.sqrt(1 - s**2 / b) * q / jnp.linalg.norm(q)
    mix = jnp.append(jnp.full(b, 1 / (b * cfg.tokens)), b / cfg.tokens)
    unit = jnp.append(rest * tilted, gamma)
    uniform = jnp.append(jnp.full(b, rest / b**0.5), gamma)
    return jnp.stack([mix, unit, uniform])[cfg.mode]


def series(
    c: Float[Array, "d"], z: Float[Array, "n cols"], noise: Float[Array, ""] | float
) -> tuple[Float[Array, "n d"], Float[Array, "n"]]:
    r"""Definition 4.3: $x_k = u_k + \sigma\xi_k$ and $y = \langle c, u\rangle + \sigma\xi_{d+1}$.

    A row of `z` holds $h_1$ in the basis of the features (that is $u$), then $\xi$.
    """
    d = len(c)
    u, xi = z[:, :d], noise * z[:, d:]
    return u + xi[:, :d], u @ c + xi[:, d]


def sign_inconsistent(c: Float[Array, "d"], z: Float[Array, "n cols"]) -> Float[Array, "n cols"]:
    r"""Section 6.1 without rejection: rows of `z`, moved to where $u_d u_{d+1} < 0$.

    $u_{d+1} = c_d u_d + \|c_{<d}\| z_\perp$, so the condition is on the angle of the Gaussian pair
    $(u_d, z_\perp)$ alone: two wedges of size $\alpha = \arccos(c_d/\|c\|)$. The uniform angle is
    squeezed into them; radius and all other directions stay.
    """
    rest = jnp.linalg.norm(c[:-1])
    along = c[:-1] / rest
    u_d, perp = z[:, len(c) - 1], z[:, : len(c) - 1] @ along
    alpha = jnp.arctan2(rest, c[-1])
    turn = (jnp.arctan2(perp, u_d) / jnp.pi + 1.0) % 2.0  # uniform in [0, 2)
    angle = jnp.pi / 2 + alpha * (turn % 1.0) + jnp.pi * jnp.floor(turn)
    radius = jnp.hypot(u_d, perp)
    moved = (radius * jnp.sin(angle) - perp)[:, None] * along[None, :]
    z = z.at[:, : len(c) - 1].add(moved)
    return z.at[:, len(c) - 1].set(radius * jnp.cos(angle))


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


def residual_linear(v: Float[Array, "d"], x: Float[Array, "n d"]) -> Float[Array, "n"]:
    r"""Definition 6.2, $\langle w, x - x_d 1\rangle + x_d$, for weights $v_{<d}$."""
    return (x - x[:, -1:]) @ v + x[:, -1]


def fit_linear(
    x: Float[Array, "n d"], y: Float[Array, "n"], exists: Bool[Array, "n"]
) -> Float[Array, "d"]:
    """The residual linear network that descent from zero converges to: least squares."""
    rows = jnp.where(exists[:, None], x - x[:, -1:], 0.0)[:, :-1]
    target = jnp.where(exists, y - x[:, -1], 0.0)
    return jnp.append(jnp.linalg.lstsq(rows, target, rcond=1e-4)[0], 0.0)


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


def mean_square(values: Float[Array, "n"]) -> Float[Array, ""]:
    return jnp.mean(values**2)


def share(holds: Bool[Array, "n"], of: Bool[Array, "n"] | None = None) -> Float[Array, ""]:
    """The share of True, of those that exist."""
    return jnp.mean(holds, dtype=float, where=of)


class Data(eqx.Module):
    """Training samples, and test samples in and out of distribution."""

    c: Float[Array, "d"]
    x: Float[Array, "n d"]
    y: Float[Array, "n"]
    exists: Bool[Array, "n"]
    x_in: Float[Array, "test d"]
    y_in: Float[Array, "test"]
    x_out: Float[Array, "test d"]
    y_out: Float[Array, "test"]


Pair = tuple[Float[Array, "n d"], Float[Array, "n"]]


def test_pairs(cfg: Config, c: Float[Array, "d"], key: Key[Array, ""], n: int) -> tuple[Pair, Pair]:
    """Series in and out of distribution, with their targets."""
    z = normal(key, (n, 2 * cfg.tokens + 1))
    return series(c, z, cfg.noise), series(c, sign_inconsistent(c, z), cfg.noise)


def draw(cfg: Config, key: Key[Array, ""]) -> Data:
    c, cols = next_coefs(cfg, key), 2 * cfg.tokens + 1
    x, y = series(c, normal(stream(key, "data"), (size(cfg, "samples"), cols)), cfg.noise)
    inside, outside = test_pairs(cfg, c, stream(key, "test"), cfg.test_samples)
    return Data(c, x, y, mask(cfg, "samples"), *inside, *outside)


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    r"""Full-batch descent on $L = \frac12\sum_i (f(x_i) - y_i)^2$, gradient by Lemma E.5."""
    data = draw(cfg, key)
    w_0, a = initial(cfg, key)
    at, x, y, exists = log_steps(cfg.steps, cfg.record), data.x, data.y, data.exists
    neurons = a != 0
    h_0 = tangent(x, attend(w_0, x)[1], a, exists)
    # Lane by lane: batches of LAPACK calls share a pool of threads, and two calls block it.
    values, vectors = by_lane(jnp.linalg.eigh, h_0)
    fitted = by_lane(fit_linear, x, y, exists)
    lr = cfg.lr / values[-1]
    lazy = kernels.lazy_residual(values, vectors, jnp.where(exists, y, 0.0), lr, at)
    points, ends = jnp.concatenate([x, data.x_in, data.x_out]), (len(x), len(x) + len(data.x_in))

    def measure(w: Float[Array, "m"]) -> dict[str, Float[Array, ""]]:
        g, v, s_d = attend(w, points)
        # Pair by pair, so that the output at the start is zero without rounding.
        f = (g[:, : len(a) // 2] - g[:, len(a) // 2 :]) @ read_out(a)[: len(a) // 2]
        f, f_in, f_out = jnp.split(f, ends)
        pairs, silent = w.reshape(2, -1), ((a < 0) & (w < 0)).astype(w.dtype)
        attention = jnp.mean(s_d[ends[0] : ends[1]] @ silent) / jnp.maximum(silent.sum(), 1.0)
        return dict(
            train_loss=jnp.sum(jnp.where(exists, f - y, 0.0) ** 2) / 2,
            test_loss=mean_square(f_in - data.y_in),
            ood_loss=mean_square(f_out - data.y_out),
            direction=share(jnp.sign(w - w_0) == a, neurons),
            sign=share(jnp.sign(w) == a, neurons),
            ordered=share(pairs[0] >= pairs[1], neurons[: len(a) // 2]),
            same_sign=share(f_in * data.x_in[:, -1] >= 0),
            ood_same_sign=share(f_out * data.x_out[:, -1] >= 0),
            radius=jnp.abs(w - w_0).max(),
            drift=kernels.drift(tangent(x, v[: len(x)], a, exists), h_0),
            attention=cfg.tokens * attention,
        )

    trace = iterate(
        lambda w, t: w - lr * gradient(w, a, x, y, exists),
        w_0,
        steps=cfg.steps,
        at=at,
        probe=measure,
    )
    optimum = test_pairs(cfg, data.c, stream(key, "test/linear"), LINEAR_POINTS)
    linear_loss, linear_ood = (mean_square(residual_linear(data.c, x) - y) for x, y in optimum)
    return Probes(
        **trace.probes,
        **baselines(data, fitted),
        linear_loss=linear_loss,
        linear_ood=linear_ood,
        lazy_loss=jnp.sum(lazy**2, axis=1) / 2,
        kernel_max=values[-1],
        step=trace.step,
    )


def baselines(data: Data, fitted: Float[Array, "d"]) -> dict[str, Float[Array, ""]]:
    """Risks of the predictors to compare with, in and out of distribution."""
    predictors = {
        "zero": lambda x: jnp.zeros(len(x)),
        "last": lambda x: x[:, -1],
        "fitted": lambda x: residual_linear(fitted, x),
    }
    inside = {f"{n}_loss": mean_square(f(data.x_in) - data.y_in) for n, f in predictors.items()}
    outside = {f"{n}_ood": mean_square(f(data.x_out) - data.y_out) for n, f in predictors.items()}
    return inside | outside


# ------------------------------------------------------------------- kernel at the start


class KernelProbes(eqx.Module):
    kernel_min: Float[Array, ""] = probe("smallest eigenvalue of H(0)", r"\lambda_{\min}")
    kernel_max: Float[Array, ""] = probe("largest eigenvalue of H(0)", r"\lambda_{\max}")
    spread_min: Float[Array, ""] = probe("smallest variance within a series", r"v_{\min}")


def simulate_kernel(cfg: Config, key: Key[Array, ""]) -> KernelProbes:
    """The spectrum of $H(0)$, and $v_{\\min}$ of Theorem 5.2. No training."""
    c, cols = next_coefs(cfg, key), 2 * cfg.tokens + 1
    x, _ = series(c, normal(stream(key, "data"), (size(cfg, "samples"), cols)), cfg.noise)
    exists = mask(cfg, "samples")
    w, a = initial(cfg, key)
    spread = jnp.where(exists, x.var(axis=1), jnp.inf).min()
    h = tangent(x, attend(w, x)[1], a, exists)
    smallest, largest = by_lane(kernels.extremes, h, exists)
    return KernelProbes(smallest, largest, spread)


# ------------------------------------------------------------- what attention can express


@config
class Ridge(Config):
    """Data as above, and a grid of weights in place of a training."""

    points: int = par(51, "m", "weights on the grid", low=2)


class RidgeProbes(eqx.Module):
    test_loss: Float[Array, ""] = probe("risk", r"R_{\mathrm{ID}}")
    ood_loss: Float[Array, ""] = probe("OOD risk", r"R_{\mathrm{OOD}}")
    zero_loss: Float[Array, ""] = probe("risk of the zero predictor")
    zero_ood: Float[Array, ""] = probe("OOD risk of the zero predictor")


def simulate_ridge(cfg: Ridge, key: Key[Array, ""]) -> RidgeProbes:
    r"""The best $\int g(w; x)\,d\mu(w)$ over signed measures on `points` points $|w| \le 30$.

    Ridge regression in distribution: what is left is not a matter of training.
    """
    data = draw(cfg, key)
    w = jnp.sinh(jnp.linspace(-1.0, 1.0, cfg.points) * jnp.arcsinh(30.0))  # denser near zero
    g = jnp.where(data.exists[:, None], attend(w, data.x)[0], 0.0)
    n = jnp.sum(data.exists).astype(g.dtype)
    gram = g.T @ g / n + 1e-3 * jnp.eye(cfg.points)
    mu = by_lane(jnp.linalg.solve, gram, g.T @ jnp.where(data.exists, data.y, 0.0) / n)
    return RidgeProbes(
        mean_square(attend(w, data.x_in)[0] @ mu - data.y_in),
        mean_square(attend(w, data.x_out)[0] @ mu - data.y_out),
        mean_square(data.y_in),
        mean_square(data.y_out),
    )


# ---------------------------------------------------------------------- Theorem 5.3 alone


@config
class Gaussian:
    """A Gaussian series and one neuron."""

    tokens: int = par(8, "d", "length of the series", low=2, value=True, pad=16)
    samples: int = par(20_000, "n", "Gaussian series", low=1)


class GaussianProbes(eqx.Module):
    attention: Float[Array, "weight"] = probe("attention on the last step", r"d\,E S_d")
    weight: Float[Array, "weight"] = probe("weight", "w")


WEIGHTS = (-20.0, -10.0, -5.0, -3.0, -2.0, -1.0, -0.5, -0.2, -0.05,
           0.05, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0)  # fmt: skip


def simulate_gaussian(cfg: Gaussian, key: Key[Array, ""]) -> GaussianProbes:
    r"""$d\,E S_d$ for $x \sim N(0, I_d)$; the last step is the first of the drawn ones."""
    x = normal(stream(key, "data"), (size(cfg, "tokens"), cfg.samples))
    exists = mask(cfg, "tokens")[:, None]

    def last(w: Float[Array, ""]) -> Float[Array, ""]:
        s = jax.nn.softmax(jnp.where(exists, w * x[:1] * x, -jnp.inf), axis=0)
        return jnp.sum(exists).astype(s.dtype) * jnp.mean(s[0])

    weights = jnp.array(WEIGHTS)
    return GaussianProbes(jax.lax.map(last, weights), weights)
