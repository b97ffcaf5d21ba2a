"""Conditions and theorems as functions of plain numbers, in float64.

Hidden constants of the paper's $O, \\Omega$ are set to 1, and $\\mathrm{poly}(e^{B^2}, e^D)$ to
$e^{B^2} e^D$. `theory(cfg)` calls the functions with expected values.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from provingground.study import Condition, Prediction

from .model import MIX, UNIFORM

DELTA = 0.01  # the paper's failure probability
EPS = 0.01  # the training loss of Theorem 5.2
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


# --------------------------------------------------------------------- attention, section 5


def attention_limits(tokens: Any) -> tuple[Any, Any]:
    r"""$d\,E S_d \to 2^{1-d}$ as $w \to -\infty$ and $2 - 2^{1-d}$ as $w \to \infty$.

    For large $|w|$ all attention is on the largest $|x_k|$ on one side of zero: for $w<0$ it is on
    $x_d$ only if all others have its sign.
    """
    floor = 2.0 ** (1 - tokens)
    return floor, 2 - floor


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


def first_move(lr: Any, samples: Any, core: Any, spread: Any, width: Any) -> Any:
    r"""Lemma I.3: at $F = 0$ a weight moves by about $\eta n\gamma v/\sqrt m$, towards $a_r$."""
    return lr * samples * core * spread / math.sqrt(width)


def convergence_time(lr: Any, kernel_min: Any, samples: Any, b2: Any, eps: Any) -> Any:
    r"""Theorem 5.2: $L(T) \le \epsilon$ for $T \ge \log(nB^2/\epsilon)/(\eta\lambda)$."""
    return math.log(samples * b2 / eps) / (lr * kernel_min) if lr else math.inf


def sign_time(lr: Any, kernel_min: Any, width: Any, spread: Any) -> Any:
    r"""Theorem 5.2: signs as $a_r$ for $t \ge m/(\eta\lambda v_{\min})$."""
    return width / (lr * kernel_min * spread) if lr else math.inf


# --------------------------------------------------------------------------------- together


def conditions(cfg: Any) -> tuple[Condition, ...]:
    """Both sides of the paper's conditions; the vacuous ones too, margins tell."""
    n, d, m = cfg.samples, cfg.tokens, cfg.width
    core, norm, total = core_norm_sum(cfg.mode, d, cfg.gamma)
    smallest, largest, spread = typical_kernel(min(n, 64), d, cfg.noise)
    lr = cfg.lr / largest * min(n, 64) / n
    b2 = max((1 + cfg.noise**2) * math.log(n * d / DELTA), 1.0)
    poly = math.exp(b2 + max(math.sqrt(math.log(m / DELTA)), 1.0))
    radius = smallest / (n * poly)
    flips = 1.96 * cfg.init_scale
    return (
        Condition("Property 1", norm, "=", 1.0, "‖P_{d+1}‖ = 1"),
        Condition("Property 3", core, "=", 1 - 1 / d, "⟨P_d, P_{d+1}⟩ = (d-1)/d"),
        Condition("Proposition 6.3(2)", total, "=", 1.0, "corrected: Σ_k c_k = 1"),
        Condition("Lemma I.3, samples", n, ">=", d / core if core else math.inf, "n ≥ N/γ"),
        Condition(
            "Lemma 5.1, radius", first_move(lr, n, core, spread, m), "<=", radius,
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
    "linear_loss": "risk of the residual linear model at w* = c, σ²(1 + ‖c‖²)",
    "attention_floor": "d E S_d as w → -∞, 2^(1-d)",
    "attention_ceiling": "d E S_d as w → ∞, 2 - 2^(1-d)",
    "kernel_min": "least eigenvalue of H(0) at infinite width, one draw",
    "kernel_max": "largest eigenvalue of H(0) at infinite width, one draw",
    "spread_min": "v_min of the same draw",
}


def theory(cfg: Any) -> Prediction:
    """Everything the paper, corrected where it must be, says about one setting."""
    if not hasattr(cfg, "mode"):  # attention alone: Theorem 5.3 or Section 7.1
        floor, ceiling = attention_limits(cfg.tokens)
        always = Condition("tokens", cfg.tokens, ">=", 2, "there is another step to attend to")
        return Prediction((always,), {"attention_floor": floor, "attention_ceiling": ceiling}, SAYS)
    core, norm, _ = core_norm_sum(cfg.mode, cfg.tokens, cfg.gamma)
    floor, ceiling = attention_limits(cfg.tokens)
    smallest, largest, spread = typical_kernel(min(cfg.samples, 64), cfg.tokens, cfg.noise)
    return Prediction(
        conditions(cfg),
        {
            "next_norm": norm,
            "ood_share": float(wedge(core, norm)) / math.pi,
            "zero_loss": zero_risk(norm, cfg.noise),
            "zero_ood": float(zero_ood_risk(core, norm, cfg.noise)),
            "last_ood": float(last_ood_risk(core, norm, cfg.noise)),
            "linear_loss": linear_risk_at_c(norm, cfg.noise),
            "attention_floor": floor,
            "attention_ceiling": ceiling,
            "kernel_min": smallest,
            "kernel_max": largest,
            "spread_min": spread,
        },
        SAYS,
    )
