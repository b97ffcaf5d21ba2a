"""Conditions and theorems as functions of plain numbers, in float64.

Hidden constants of the paper's $O, \\Omega$ are set to 1, and $\\mathrm{poly}(e^{B^2}, e^D)$ to
$e^{B^2} e^D$. `theory(cfg)` calls the functions with expected values.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import ndtr

from provingground.study import Condition, Prediction

from .data import MIX, UNIFORM

DELTA = 0.01  # the paper's failure probability
EPS = 0.01  # the training loss of Theorem 5.2
ORDER_CONSTANT, ORDER_POWER = 1.5, 4 / 3  # fitted to 36 settings, not those that judge it
ROUNDING = 1e-17  # eigenvalues below this are not told from zero in float64


# ------------------------------------------------------------- the next feature, section 4.1


def printed_coefs(tokens: int) -> np.ndarray:
    r"""Property 3: $P_{d+1} = \frac{d-1}d P_d + \frac1{d(d-1)}\sum_{k<d} P_k$."""
    return np.append(np.full(tokens - 1, 1 / (tokens * (tokens - 1))), 1 - 1 / tokens)


def longest_next(tokens: Any) -> Any:
    r"""$\|P_{d+1}\| \le \sqrt{(d-1)^2+1}/d < 1$ by Properties 2 and 3: Property 1 cannot hold."""
    return np.sqrt((tokens - 1) ** 2 + 1) / tokens


def core_norm_sum(mode: int, tokens: int, gamma: float) -> tuple[float, float, float]:
    r"""$c_d$, $\|c\|$ and $\sum_k c_k$ of the three modes; more of $c$ no risk depends on."""
    if mode == MIX:
        c = printed_coefs(tokens)
        return float(c[-1]), float(np.linalg.norm(c)), 1.0
    rest = math.sqrt((1 - gamma**2) * (tokens - 1)) if mode == UNIFORM else 1 - gamma
    return gamma, 1.0, gamma + rest


# ----------------------------------------------------------------------- risks, section 6


def wedge(core: Any, norm: Any) -> Any:
    r"""$\alpha = \arccos(c_d/\|c\|)$; a share $\alpha/\pi$ of the data is sign-inconsistent."""
    return np.arccos(np.clip(core / norm, -1, 1))


def zero_risk(norm: Any, noise: Any) -> Any:
    r"""$\|c\|^2 + \sigma^2$."""
    return norm**2 + noise**2


def zero_ood_risk(core: Any, norm: Any, noise: Any) -> Any:
    r"""$\|c\|^2 [1 - \sin 2\alpha/(2\alpha)] + \sigma^2$: an angle uniform in the two wedges."""
    return norm**2 * (1 - np.sinc(2 * wedge(core, norm) / np.pi)) + noise**2


def last_ood_risk(core: Any, norm: Any, noise: Any) -> Any:
    r"""$(1+\|c\|^2)[1 - \frac{\sin2\alpha}{2\alpha}]
    + 2\|c\|[\frac{\sin\alpha}\alpha - \cos\alpha] + 2\sigma^2$."""
    alpha = wedge(core, norm)
    square = (1 + norm**2) * (1 - np.sinc(2 * alpha / np.pi))
    return square + 2 * norm * (np.sinc(alpha / np.pi) - np.cos(alpha)) + 2 * noise**2


def linear_risk(c: Any, v: Any, noise: Any, ood: bool = False) -> float:
    r"""Risk of $\langle v, x\rangle$: $(c-v)^\top M (c-v) + \sigma^2(1 + \|v\|^2)$.

    $M$ is the second moment of $u$: the identity, and out of distribution
    $\begin{pmatrix} A & -B \\ -B & 2-A\end{pmatrix}$ in the plane of $u_d$ and $c_{<d}$, with
    $A = 1 - \frac{\sin2\alpha}{2\alpha}$ and $B = \frac{1-\cos2\alpha}{2\alpha}$.
    """
    c, v = np.asarray(c, float), np.asarray(v, float)
    m = np.eye(len(c))
    if ood:
        alpha, rest = wedge(c[-1], np.linalg.norm(c)), np.linalg.norm(c[:-1])
        plane = np.zeros((len(c), 2))
        plane[-1, 0], plane[:-1, 1] = 1, c[:-1] / rest
        a, b = 1 - np.sinc(2 * alpha / np.pi), (1 - np.cos(2 * alpha)) / (2 * alpha)
        m += plane @ (np.array([[a, -b], [-b, 2 - a]]) - np.eye(2)) @ plane.T
    return float((c - v) @ m @ (c - v) + noise**2 * (1 + v @ v))


def linear_risk_at_c(norm: Any, noise: Any) -> Any:
    r"""Proposition 6.3(2), corrected: $w^*_{<d} = c_{<d}$ has risk $\sigma^2(1+\|c\|^2)$, ID and
    OOD, if $\sum_k c_k = 1$."""
    return noise**2 * (1 + norm**2)


def linear_optimum(c: Any, noise: Any) -> np.ndarray:
    r"""The best residual linear network in distribution, as a map $\langle v, x\rangle$.

    Its weights sum to one, so $v = (c + \mu)/(1+\sigma^2)$ with
    $\mu = (1 + \sigma^2 - \sum_k c_k)/d$. It is $c$ itself where $\sigma = 0$ and $\sum_k c_k = 1$.
    """
    c = np.asarray(c, float)
    return (c + (1 + noise**2 - c.sum()) / len(c)) / (1 + noise**2)


def representative(core: float, norm: float, total: float, tokens: int) -> np.ndarray:
    r"""A $c$ with given $c_d$, $\|c\|$ and sum: risks of predictors that are blind to the order of
    the other steps depend on these alone."""
    b = tokens - 1
    mean = (total - core) / b
    left = max(norm**2 - core**2 - b * mean**2, 0.0)
    c = np.append(np.full(b, mean), core)
    c[:2] += np.array([1, -1]) * math.sqrt(left / 2)
    return c


def order_blind(c: Any, noise: Any) -> np.ndarray:
    r"""$E[y \mid x_d, \{x_k\}_{k<d}]$, the best predictor that is not told the order of the other
    steps: linear, and all of them get the mean of their weights, over $1+\sigma^2$."""
    c = np.asarray(c, float)
    return np.append(np.full(len(c) - 1, c[:-1].mean()), c[-1]) / (1 + noise**2)


def order_blind_risk(mode: int, tokens: int, gamma: float, noise: float, ood: bool) -> float:
    r"""Its risk. In distribution no order-blind predictor has less; where $\sigma = 0$ it is
    $\|c_{<d}\|^2 - (\sum_{k<d}c_k)^2/(d-1)$, and zero in `mix`, whose other weights are equal."""
    c = representative(*core_norm_sum(mode, tokens, gamma), tokens)
    return linear_risk(c, order_blind(c, noise), noise, ood)


def best_residual_risk(mode: int, tokens: int, gamma: float, noise: float, ood: bool) -> float:
    r"""Risk of the best residual linear network (in distribution). Where $\sum_kc_k \ne 1$ it does
    not vanish with the noise: $(1 - \sum_kc_k)^2/d$ at $\sigma = 0$, in distribution."""
    c = representative(*core_norm_sum(mode, tokens, gamma), tokens)
    return linear_risk(c, linear_optimum(c, noise), noise, ood)


def least_squares_factor(samples: Any, weights: Any) -> Any:
    r"""$1 + p/(n-p-1)$: mean risk of p weights fitted by least squares to n Gaussian samples, over
    that of the best ones."""
    return 1 + weights / (samples - weights - 1)


# --------------------------------------------------------------------- attention, section 5


def attention_limits(tokens: Any) -> tuple[Any, Any]:
    r"""$d\,E S_d \to 2^{1-d}$ as $w \to -\infty$ and $2 - 2^{1-d}$ as $w \to \infty$.

    For large $|w|$ all attention is on the largest $|x_k|$ on one side of zero: for $w<0$ it is on
    $x_d$ only if all others have its sign.
    """
    floor = 2.0 ** (1 - tokens)
    return floor, 2 - floor


def attention_slope(tokens: Any, scale: Any) -> Any:
    r"""$d\,E S_d = 1 + w\sigma'^2(1 - \frac1d) + O(w^2)$: which side of one it is on is the sign
    of $w$, so Theorem 5.3 asks for $w_r < 0$, not for $a_r = -1$."""
    return scale**2 * (1 - 1 / tokens)


def attend(w: Any, x: Any) -> tuple[np.ndarray, np.ndarray]:
    r"""$\phi'$ and $\phi''$ of $\phi(\beta) = \log\sum_k e^{\beta x_k}$ at $\beta = x_d w$."""
    w, x = np.atleast_1d(np.asarray(w, float)), np.atleast_2d(np.asarray(x, float))
    logits = x[:, -1, None, None] * w[None, :, None] * x[:, None, :]
    s = np.exp(logits - logits.max(axis=-1, keepdims=True))
    s /= s.sum(axis=-1, keepdims=True)
    g = np.einsum("nmd,nd->nm", s, x)
    return g, np.einsum("nmd,nd->nm", s, x**2) - g**2


def pairs_ordered(w_plus: Any, w_minus: Any) -> bool:
    r"""Premise of the sign theorem: $w^+ \ge w^-$ in every pair with $a = +1, -1$.

    Then $f(x)\,x_d \ge 0$ for every $x$, because $\phi'' > 0$ makes
    $x_d[\phi'(x_d w^+) - \phi'(x_d w^-)] \ge 0$. So where $x_d y < 0$ the error is at least $y^2$:
    no better than the zero predictor.
    """
    return bool(np.all(np.asarray(w_plus) >= np.asarray(w_minus)))


@cache
def typical_kernel(samples: int, tokens: int, noise: float) -> tuple[float, float, float]:
    r"""$\lambda_{\min}$, $\lambda_{\max}$ of $H(0)$ at infinite width, and $v_{\min}$: one draw.

    $E_w v_i v_j$ by Gauss-Hermite quadrature. $\lambda_{\min}$ can only fall with n (interlacing).
    """
    x = np.random.default_rng(0).normal(size=(samples, tokens)) * math.sqrt(1 + noise**2)
    nodes, weights = hermegauss(80)
    j = x[:, -1:] * attend(nodes, x)[1] * np.sqrt(weights / weights.sum())
    values = np.linalg.eigvalsh(j @ j.T)
    return max(float(values[0]), ROUNDING), float(values[-1]), float(x.var(axis=1).min())


def first_pull(core: Any, rest: Any, tokens: Any, noise: Any) -> Any:
    r"""$E[y\,x_d v]$ at $w = 0$: $\frac{1+\sigma^2}{d^2}[c_d(d+2)(d-1) - 2\sum_{k<d}c_k]$.

    There $v = \frac1d\sum_kx_k^2 - \bar x^2$, and $E[x_d^2v] = s^4(d+2)(d-1)/d^2$,
    $E[x_kx_dv] = -2s^4/d^2$ with $s^2 = 1+\sigma^2$. `rest` is $\sum_{k<d}c_k$.
    """
    return (1 + noise**2) * (core * (tokens + 2) * (tokens - 1) - 2 * rest) / tokens**2


def first_move(lr: Any, samples: Any, pull: Any, width: Any) -> Any:
    r"""Lemma I.3 with its constant: at $F = 0$ a weight near zero moves by
    $\eta n E[y\,x_dv]/\sqrt m$ towards $a_r$."""
    return lr * samples * pull / np.sqrt(width)


def sign_share(move: Any, init_scale: Any) -> Any:
    r"""$\Phi(\delta/c_0)$: the share of weights with the sign of $a_r$ when all have moved by
    $\delta$ towards it. Only those that started nearer to zero than $\delta$ have turned."""
    return ndtr(move / init_scale)


def misfit(tokens: Any) -> Any:
    r"""$\kappa = 0.2\,d^{-0.4}$: the share of $x_d$ that no measure over neurons fits. Fitted to
    $d = 4, 8, 16$: about a tenth."""
    return 0.2 * tokens**-0.4


def left_over(core: Any, norm: Any, tokens: Any, noise: Any) -> Any:
    r"""$\tau^2 = \|c_{<d}\|^2 + \kappa c_d^2 + \sigma^2$: what attention leaves of the target."""
    return norm**2 - core**2 + misfit(tokens) * core**2 + noise**2


def order_signal(core: Any, norm: Any, tokens: Any, samples: Any, noise: Any) -> Any:
    r"""$\rho = c_d\sqrt n/\tau$: the common pull on all pairs, $nc_d$, over what the samples add to
    each, $\sqrt n\tau$."""
    return core * np.sqrt(samples / left_over(core, norm, tokens, noise))


def ordered_steps(signal: Any, lr: Any) -> Any:
    r"""$t_o = C\rho^{4/3}/(\eta\lambda_{\max})$: steps for which nine tenths of the pairs stay in
    order. Found here, not derived: the slower modes of the kernel take over one by one."""
    return ORDER_CONSTANT * signal**ORDER_POWER / lr


def bound_b2(samples: Any, tokens: Any, noise: Any) -> Any:
    r"""$B^2 = \max\{(1+\sigma^2)\log(nN/\delta), 1\}$, with $N = d$."""
    return np.maximum((1 + noise**2) * np.log(samples * tokens / DELTA), 1.0)


def loss_bound(lr: Any, kernel_min: Any, steps: Any) -> Any:
    r"""Lemma H.1, Part 2: $L(t)/L(0) \le (1-\eta\lambda/2)^t$. Near one it says nothing."""
    return (1 - lr * kernel_min / 2) ** steps


def convergence_time(lr: Any, kernel_min: Any, samples: Any, b2: Any, eps: Any) -> Any:
    r"""Theorem 5.2: $L(T) \le \epsilon$ for $T \ge \log(nB^2/\epsilon)/(\eta\lambda)$."""
    with np.errstate(divide="ignore"):
        return np.log(samples * b2 / eps) / (lr * kernel_min)


def sign_time(lr: Any, kernel_min: Any, width: Any, spread: Any) -> Any:
    r"""Theorem 5.2: signs as $a_r$ for $t \ge m/(\eta\lambda v_{\min})$."""
    with np.errstate(divide="ignore"):
        return np.divide(width, lr * kernel_min * spread)


# --------------------------------------------------------------------------------- together


def data_conditions(cfg: Any) -> tuple[Condition, ...]:
    """What the paper asks of the features."""
    d = cfg.tokens
    core, norm, total = core_norm_sum(cfg.mode, d, cfg.gamma)
    return (
        Condition("Property 1", norm, "=", 1.0, "‖P_{d+1}‖ = 1"),
        Condition("Property 3", core, "=", 1 - 1 / d, "⟨P_d, P_{d+1}⟩ = (d-1)/d"),
        Condition("Proposition 6.3(2)", total, "=", 1.0, "corrected: Σ_k c_k = 1"),
        Condition(
            "Lemma I.3, samples", cfg.samples, ">=", d / core if core else math.inf, "n ≥ N/γ"
        ),
    )


def conditions(cfg: Any) -> tuple[Condition, ...]:
    """Both sides of the paper's conditions; the vacuous ones too, margins tell."""
    if not hasattr(cfg, "width"):
        return data_conditions(cfg)
    n, d, m = cfg.samples, cfg.tokens, cfg.width
    core = core_norm_sum(cfg.mode, d, cfg.gamma)[0]
    smallest, largest, spread = typical_kernel(min(n, 64), d, cfg.noise)
    lr = cfg.lr / largest * min(n, 64) / n
    b2 = bound_b2(n, d, cfg.noise)
    poly = math.exp(b2 + max(math.sqrt(math.log(m / DELTA)), 1.0))
    radius = smallest / (n * poly)
    flips = 1.96 * cfg.init_scale
    return (
        *data_conditions(cfg),
        Condition(
            "Lemma 5.1, radius", first_move(lr, n, core * spread, m), "<=", radius,
            "R ≤ λ/(n poly): the first step alone",
        ),
        Condition(
            "Lemma H.1, width", m, ">=", n**7 * d**2 * poly / smallest**3, "m ≥ λ⁻³n⁷d² poly"
        ),
        Condition("Lemma H.1, step", lr, "<=", smallest / (n**4 * d * poly), "η ≤ λn⁻⁴d⁻¹/poly"),
        Condition("Lemma H.4, width", m, ">=", n**7 * poly / smallest**2, "m ≥ λ⁻²n⁷ poly"),
        Condition(
            "Theorem 5.2, loss", cfg.steps, ">=", convergence_time(lr, smallest, n, b2, EPS),
            "T ≥ log(nB²/ε)/(ηλ)",
        ),
        Condition(
            "Theorem 5.2, signs", cfg.steps, ">=", sign_time(lr, smallest, m, spread),
            "t ≥ m/(ηλv_min)",
        ),
        Condition(
            "Theorem 5.2, both", radius, ">=", flips,
            "signs can turn inside the radius of Lemma 5.1 (1.96 s.d. of w(0))",
        ),
    )  # fmt: skip


SAYS = {
    "next_norm": "‖c‖ = ‖P_{d+1}‖, the length of the next feature",
    "ood_share": "share of the data that is sign-inconsistent, arccos(c_d/‖c‖)/π",
    "zero_loss": "risk of predicting zero, ‖c‖² + σ²",
    "zero_ood": "risk of predicting zero on sign-inconsistent data",
    "last_ood": "risk of predicting the last value on sign-inconsistent data",
    "blind_loss": "least risk of a predictor that is blind to the order of the other steps",
    "blind_ood": "OOD risk of that predictor",
    "linear_loss": "risk of the residual linear model at w* = c, σ²(1 + ‖c‖²)",
    "residual_loss": "risk of the best residual linear model",
    "attention_floor": "d E S_d as w → -∞, 2^(1-d)",
    "attention_ceiling": "d E S_d as w → ∞, 2 - 2^(1-d)",
    "attention_slope": "slope of d E S_d in w at w = 0",
    "kernel_min": "least eigenvalue of H(0) at infinite width, one draw",
    "kernel_max": "largest eigenvalue of H(0) at infinite width, one draw",
    "spread_min": "v_min of the same draw",
    "loss_bound": "L(T)/L(0) by Lemma H.1",
    "linear_weights": "weights of NLinear",
    "ordered_steps": "steps during which nine tenths of the pairs stay in order",
}


def theory(cfg: Any) -> Prediction:
    """Everything the paper, corrected where it must be, says about one setting."""
    if not hasattr(cfg, "tokens"):  # a real series, forecast for more than its next step
        one = Condition("next step", cfg.horizon, "<=", 1, "the theorems predict the next step")
        return Prediction((one,), {"linear_weights": (cfg.look_back + 1) * cfg.horizon}, SAYS)
    floor, ceiling = attention_limits(cfg.tokens)
    slope = attention_slope(cfg.tokens, getattr(cfg, "scale", 1.0))
    values = {
        "attention_floor": floor, "attention_ceiling": ceiling, "attention_slope": slope
    }  # fmt: skip
    if not hasattr(cfg, "mode"):  # attention alone: Theorem 5.3 or section 7.1
        always = Condition("tokens", cfg.tokens, ">=", 2, "there is another step to attend to")
        return Prediction((always,), values, SAYS)
    where = cfg.mode, cfg.tokens, cfg.gamma
    core, norm, _ = core_norm_sum(*where)
    values |= {
        "next_norm": norm,
        "ood_share": float(wedge(core, norm)) / math.pi,
        "zero_loss": zero_risk(norm, cfg.noise),
        "zero_ood": float(zero_ood_risk(core, norm, cfg.noise)),
        "last_ood": float(last_ood_risk(core, norm, cfg.noise)),
        "blind_loss": order_blind_risk(*where, cfg.noise, False),
        "blind_ood": order_blind_risk(*where, cfg.noise, True),
        "linear_loss": linear_risk_at_c(norm, cfg.noise),
        "residual_loss": best_residual_risk(*where, cfg.noise, False),
    }
    if not hasattr(cfg, "width"):
        return Prediction(conditions(cfg), values, SAYS)
    smallest, largest, spread = typical_kernel(min(cfg.samples, 64), cfg.tokens, cfg.noise)
    lr = cfg.lr / largest * min(cfg.samples, 64) / cfg.samples
    bound = float(loss_bound(lr, smallest, cfg.steps))
    signal = order_signal(core, norm, cfg.tokens, cfg.samples, cfg.noise)
    values |= {
        "kernel_min": smallest,
        "kernel_max": largest,
        "spread_min": spread,
        "loss_bound": bound,
        "ordered_steps": float(ordered_steps(signal, cfg.lr)) if cfg.lr else math.inf,
    }
    says_nothing = ("loss_bound",) if bound > 0.99 else ()
    return Prediction(conditions(cfg), values, SAYS, vacuous=says_nothing)
