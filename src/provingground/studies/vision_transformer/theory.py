"""Conditions, theorems and lemmas as functions of plain numbers, in float64.

Hidden constants of the paper's $O, \\Omega, \\Theta$ are arguments, 1 by default. `theory(cfg)`
calls the functions with expected values; claims call them with realised ones.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc

from provingground.study import Condition, Prediction

from .model import Config
from .tokens import Tokens

CONSTANT = 8  # B and |S| are of order one, so at least this


def _over(a: Any, b: Any) -> Any:
    """a / b, and infinity where b is zero."""
    with np.errstate(divide="ignore"):
        return np.divide(a, b)


# ------------------------------------------------------------------- Theorem 1, Proposition 1


def vote_factor(value_error: Any, key_error: Any, token_noise: Any = 0.0) -> Any:
    r"""$e^{-(\delta+\tau)}(1-\sigma-\tau)$: the least ratio $\alpha_\#/\alpha_*$ to be borne."""
    return np.exp(-(key_error + token_noise)) * (1 - value_error - token_noise)


def least_relevant(frac_confusion: Any, factor: Any) -> Any:
    r"""(2.8): $\alpha_* \ge \alpha_\#/\big(e^{-(\delta+\tau)}(1-\sigma-\tau)\big)$."""
    return _over(frac_confusion, np.maximum(factor, 0.0))


def least_relevant_nondisc(frac_nondisc: Any, factor: Any) -> Any:
    r"""(2.8) as the proof uses it: $\alpha_* \ge (1-\alpha_{nd})/(1+f)$, $f$ the `vote_factor`."""
    return (1 - frac_nondisc) / (1 + factor)


def thm1_samples(
    frac_relevant: Any,
    initial_error: Any = 0.0,
    lr: Any = 0.0,
    *,
    constant: float = 1.0,
    c_1: float = 1.0,
    c_2: float = 0.0,
) -> Any:
    r"""(2.11): $N = C/(\alpha_* - c'(1-\zeta) - c''(\sigma+\tau))^2$ with $1-\zeta = \eta^{10}$.

    `initial_error` is $\sigma+\tau$. Infinite where the bracket is not positive.
    """
    gap = frac_relevant - c_1 * np.minimum(lr, 1.0) ** 10 - c_2 * initial_error
    return constant * _over(1, np.maximum(gap, 0.0)) ** 2


def prop1_samples(frac_relevant: Any, initial_error: Any = 0.0, *, constant: float = 1.0) -> Any:
    r"""(2.13), frozen attention: $N = C/(\alpha_*(\alpha_*-\sigma-\tau))^2$."""
    gap = np.maximum(frac_relevant - initial_error, 0.0)
    return constant * _over(1, frac_relevant * gap) ** 2


def thm1_iters(lr: Any, frac_relevant: Any, *, constant: float = 1.0) -> Any:
    r"""(2.10): $T = \Theta(\eta^{-3/5}\alpha_*^{-1})$."""
    return constant * _over(1, np.power(lr, 0.6) * frac_relevant)


# ----------------------------------------------------------------- Proposition 2, Claim 2


class Envelope(NamedTuple):
    """What the proof knows about attention: weight of a token, and mass on relevant ones."""

    phi: Any
    nu: Any
    p: Any


def attention_envelope(
    query_norm: Any, relevant: Any, tokens: Any, key_error: Any, token_noise: Any = 0.0
) -> Envelope:
    r"""$\phi$ and $\nu$: attention on an irrelevant token is between them; $p$: least mass.

    $\phi = 1/(|S_1|e^{\|q_1\|^2+(\delta+\tau)\|q_1\|}+|S|-|S_1|)$, $\nu$ with $-(\delta+\tau)$, and
    $p = |S_1|e^{\|q_1\|^2-(\delta+\tau)\|q_1\|}\nu$. `relevant` is $|S_1|$, `tokens` is $|S|$.
    """
    wide = (key_error + token_noise) * query_norm
    large, small = np.exp(query_norm**2 + wide), np.exp(query_norm**2 - wide)
    nu = 1 / (relevant * small + tokens - relevant)
    return Envelope(1 / (relevant * large + tokens - relevant), nu, relevant * small * nu)


def query_norm_recursion(
    lr: float, steps: int, start: float = 1.0, spread: float = 0.0, constant: float = 1.0
) -> np.ndarray:
    r"""$\|q_1(t+1)\|^2=(1+K(t))\|q_1(t)\|^2$, $K(t)=C\eta e^{-\|q_1\|^2+(\delta+\tau)\|q_1\|}$.

    Norms after 0, ..., `steps` steps; $\|q_1(T)\|^2=\Theta(\log T)$. `spread` is $\delta+\tau$.
    """
    norms = np.empty(steps + 1)
    norms[0] = start
    for t in range(steps):
        q = norms[t]
        norms[t + 1] = q * math.sqrt(1 + constant * lr * math.exp(-(q**2) + spread * q))
    return norms


# ------------------------------------------------------------------- Claim 1: lucky neurons


def neuron_growth(t: Any, lr: Any, frac_relevant: Any, mass: Any, hidden_init_std: Any) -> Any:
    r"""$W_{O,i}p_1 \gtrsim \xi\eta t^2\alpha_*\cdot\alpha_*p/4+\xi$, for small $\eta t^2$."""
    grown = lr * np.asarray(t, float) ** 2 * frac_relevant**2 * mass / 4
    return hidden_init_std * (grown + 1)


def neuron_ode(
    times: Any,
    lr: float,
    frac_relevant: float,
    mass: float,
    error: float,
    width: float,
    start: float,
) -> np.ndarray:
    r"""$\dot y=\frac{\eta}{\sqrt m}(\alpha_*p-\sigma-\tau+\frac12\eta t\alpha_*^2\sqrt m\,p\,y)$.

    Solved exactly: with $b=\eta^2\alpha_*^2p/2$ and $c=\frac{\eta}{\sqrt m}(\alpha_*p-\sigma-\tau)$
    it is $\dot y = c + b\,t\,y$, so $y = e^{bt^2/2}(y_0 + c\int_0^t e^{-bs^2/2}ds)$: exponential
    in $(\eta t)^2$, which the proof's expansion $1+x$ hides.
    """
    from scipy.special import erf

    t = np.asarray(times, float)
    b = lr**2 * frac_relevant**2 * mass / 2
    c = lr / math.sqrt(width) * (frac_relevant * mass - error)
    integral = np.sqrt(np.pi / (2 * b)) * erf(t * np.sqrt(b / 2)) if b > 0 else t
    return np.exp(b * t**2 / 2) * (start + c * integral)


def output_growth(lr: Any, steps: Any, frac_relevant: Any, mass: Any, error: Any = 0.0) -> Any:
    r"""$F \gtrsim a_1\eta T^2+a_0\eta^3T^5$; training ends when it passes 1.

    $a_1=\alpha_*^2(\alpha_*p/4-\sigma-\tau)p$ and $a_0=\alpha_*^6p^3/32$, for $\xi=1/\sqrt m$.
    """
    a_1 = frac_relevant**2 * (frac_relevant * mass / 4 - error) * mass
    a_0 = frac_relevant**6 * mass**3 / 32
    steps = np.asarray(steps, float)
    return a_1 * lr * steps**2 + a_0 * lr**3 * steps**5


def iters_from_polynomial(
    lr: float, frac_relevant: float, mass: float, error: float = 0.0
) -> float:
    r"""The $T$ at which `output_growth` is 1.

    Between $\eta^{-3/5}\alpha_*^{-6/5}$ and $\eta^{-1/2}\alpha_*^{-3/2}$, not the printed
    $\eta^{-3/5}\alpha_*^{-1}$. Infinite if the output never gets there.
    """
    low, high = 0.0, 1.0
    while output_growth(lr, high, frac_relevant, mass, error) < 1:
        low, high = high, 2 * high
        if high > 1e18:
            return math.inf
    for _ in range(200):
        middle = (low + high) / 2
        if output_growth(lr, middle, frac_relevant, mass, error) < 1:
            low = middle
        else:
            high = middle
    return high


def lucky_fraction(half_angle: Any, value_dim: Any) -> Any:
    r"""Chance that a neuron is active on a whole cone of half angle $\sigma+\tau$.

    $\frac12 I_{\cos^2(\sigma+\tau)}\big(\frac{m_a-1}{2},\frac12\big)$; one half for a single
    direction. (The print drops the factor one half.)
    """
    return betainc((value_dim - 1) / 2, 0.5, np.cos(half_angle) ** 2) / 2


# -------------------------------------------------------------------------- the vote gap


def vote_gap(frac_relevant: Any, frac_confusion: Any) -> Any:
    r"""$\alpha_*-\alpha_\#$: by how much the vote is won. Ours, see the study's page."""
    return frac_relevant - frac_confusion


# ------------------------------------------------------------------------ exact gradients


def gradients(
    w_q: Any, w_k: Any, w_v: Any, w_o: Any, a: Any, x: Any, y: Any
) -> tuple[Any, Any, Any, Any]:
    r"""Gradients of the mean hinge loss in closed form (one head, all tokens kept).

    With $P_{ls}$ the attention of query $l$, $V_l=\sum_sP_{ls}W_Vx_s$, $D_{li}=a_{(l)i}
    1[W_{O,i}V_l>0]$, $g_n=-y_n1[y_nF_n<1]/(NL)$ and $u_{ls}=D_l^\top W_OW_Vx_s$:
    $\partial W_O=\sum g_nD_lV_l^\top$, $\partial W_V=\sum g_nW_O^\top D_l\bar x_l^\top$,
    $\partial W_Q=\sum g_nP_{ls}u_{ls}W_K(x_s-\bar x_l)x_l^\top$ and
    $\partial W_K=\sum g_nP_{ls}u_{ls}W_Qx_l(x_s-\bar x_l)^\top$ with $\bar x_l=\sum_sP_{ls}x_s$.
    Shapes: `w_q, w_k, w_v` (d, d), `w_o` (m, d), `a` (L, m), `x` (N, L, d), `y` (N,). Returns the
    gradients of `w_q, w_k, w_v, w_o`.
    """
    scores = np.einsum("nld,kd,ke,nse->nls", x, w_q, w_k, x)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    mean = np.einsum("nls,nsd->nld", p, x)
    values = np.einsum("ad,nld->nla", w_v, mean)
    before = np.einsum("ma,nla->nlm", w_o, values)
    output = np.einsum("lm,nlm->n", a, np.maximum(before, 0)) / x.shape[1]
    g = -y * (y * output < 1) / (len(y) * x.shape[1])
    d = a[None] * (before > 0)
    of_mean = np.einsum("nlm,ma,ad->nld", d, w_o, w_v)  # D W_O W_V, so that u = of_mean . x
    u = np.einsum("nld,nsd->nls", of_mean, x)
    away = x[:, None] - mean[:, :, None]
    moved = np.einsum("n,nls,nls,nlsd->nld", g, p, u, away)
    return (
        np.einsum("kd,nld,nle->ke", w_k, moved, x),
        np.einsum("kd,nld,nle->ke", w_q, x, moved),
        np.einsum("n,nlm,ma,nld->ad", g, d, w_o, mean),
        np.einsum("n,nlm,nla->ma", g, d, values),
    )


# ----------------------------------------------------------------------- one setting


def token_noise(cfg: Config) -> float:
    r"""$\tau\approx c_0\sqrt d$; zero on patterns."""
    return cfg.noise * math.sqrt(cfg.dim) if isinstance(cfg, Tokens) else 0.0


def conditions(cfg: Config) -> tuple[Condition, ...]:
    """Assumption 2.3.1 and Theorem 1, both sides, with hidden constants 1 (B and |S|: 8)."""
    tau, sigma, delta = token_noise(cfg), cfg.value_error, cfg.key_error
    factor = float(vote_factor(sigma, delta, tau))
    kept = cfg.tokens - round(cfg.sparsity * cfg.tokens) if isinstance(cfg, Tokens) else cfg.tokens
    return (
        Condition("value error", sigma, "<=", 1 / cfg.n_patterns, "σ = O(1/M)"),
        Condition("key error", delta, "<=", 0.5, "δ < 1/2"),
        Condition("token noise, gap", tau, "<=", math.sqrt(2) / 4, "τ < κ/4"),
        Condition("token noise, error", tau, "<=", min(sigma, delta), "τ ≤ min(σ, δ)"),
        Condition(
            "(2.7) width", cfg.width, ">=", cfg.n_patterns**2 * math.log(cfg.samples),
            "m ≥ M² log N",
        ),
        Condition(
            "(2.8) relevant tokens", cfg.frac_relevant, ">=",
            float(least_relevant(cfg.frac_confusion, factor)) if cfg.frac_confusion else 0.0,
            "α_* ≥ α_# e^(δ+τ)/(1-σ-τ)",
        ),
        Condition("(2.9) batch", cfg.batch or cfg.samples, ">=", CONSTANT, "B ≥ Ω(1)"),
        Condition("(2.9) tokens", kept, ">=", CONSTANT, "|S| ≥ Ω(1)"),
    )  # fmt: skip


SAYS = {
    "samples_order": "samples of Theorem 1, α_*⁻² (2.11), constant 1 and small terms left out",
    "samples_order_cnn": "samples with frozen attention, Proposition 1 (2.13), constant 1",
    "iters_order": "iterations of Theorem 1, η^-3/5 α_*⁻¹ (2.10)",
    "iters_polynomial": "iterations after which the output growth of the proof passes 1",
    "vote_gap": "α_* - α_#: by how much the vote is won",
    "attention_start": "least mass of attention on relevant tokens at the start",
    "lucky_fraction": "chance that a neuron is active on the whole cone of a pattern",
}


def theory(cfg: Config) -> Prediction:
    """Everything the paper says about one setting, up to its constants."""
    tau, alpha = token_noise(cfg), cfg.frac_relevant
    error = cfg.value_error + tau
    relevant = alpha * cfg.tokens
    start = attention_envelope(1.0, relevant, cfg.tokens, cfg.key_error, tau)
    mass = float(start.p)
    polynomial = iters_from_polynomial(cfg.lr, alpha, mass) if cfg.lr * alpha > 0 else math.inf
    return Prediction(
        conditions(cfg),
        {
            "samples_order": float(thm1_samples(alpha)),
            "samples_order_cnn": float(prop1_samples(alpha, error)),
            "iters_order": float(thm1_iters(cfg.lr, alpha)),
            "iters_polynomial": polynomial,
            "vote_gap": float(vote_gap(alpha, cfg.frac_confusion)),
            "attention_start": mass,
            "lucky_fraction": float(lucky_fraction(min(error, math.pi / 2), cfg.dim)),
        },
        SAYS,
    )
