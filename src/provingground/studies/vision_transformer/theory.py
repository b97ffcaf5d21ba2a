"""Conditions, theorems and lemmas as functions of plain numbers, in float64.

Hidden constants of the paper's $O, \\Omega, \\Theta$ are arguments, 1 by default. `theory(cfg)`
calls the functions with expected values; claims call them with realised ones.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc

from provingground.study import Condition, Prediction

from . import photographs, tokens
from .data import Config

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
    c_2: float = 1.0,
) -> Any:
    r"""(2.11): $N = C/(\alpha_* - c'(1-\zeta) - c''(\sigma+\tau))^2$ with $1-\zeta = \eta^{10}$.

    `initial_error` is $\sigma+\tau$. Infinite where the bracket is not positive: with $c'=1$ from
    `largest_lr` on, where the theorem says nothing.
    """
    gap = frac_relevant - c_1 * np.minimum(lr, 1.0) ** 10 - c_2 * initial_error
    return constant * _over(1, np.maximum(gap, 0.0)) ** 2


def largest_lr(frac_relevant: Any) -> Any:
    r"""Up to which step size (2.11) says something: $c'(1-\zeta)=\eta^{10}\le\alpha_*$ with $c'=1$.

    It is below 1; from there on the right-hand side is infinite, whatever the errors.
    """
    return np.power(frac_relevant, 1 / 10)


def attention_limit(lr: Any) -> Any:
    r"""(2.15): attention on relevant tokens tends to $1-\eta^C$ with a large $C$, here the 10 of
    $\zeta$ in (2.11). Zero where $\eta \ge 1$: there it says nothing."""
    return 1 - np.minimum(lr, 1.0) ** 10


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
    grown = lr * (1.0 * t) ** 2 * frac_relevant**2 * mass / 4
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


def neuron_velocity(
    frac_relevant: float,
    frac_confusion: float,
    patterns: Any,
    width: Any,
    tokens: Any,
    shared: float = 0.0,
    scale: float = 1.0,
) -> float:
    r"""How fast $W_{O,i}p_1$ of a lucky neuron starts to grow, per step and step size.

    From an exact start, with all samples inside the hinge and many of them. A query of pattern $q$
    sees $V_q=\sum_kP_{qk}p_k$ with $P_{qk}\propto f_ke^{1[q=k]}$. Of the neurons that are active
    at $V_1$ a share $1-\theta/\pi$ is at a $V_q$ that is an angle $\theta$ away. Samples of its
    class pull a neuron towards $p_1$, those of the other push it away:
    $\frac{E|\bar a|}2\big(\sum_qf_q(1-\theta_q/\pi)P_{q1}-\sum_qf'_q(1-\theta'_q/\pi)P'_{q1}
    \big)$, with $E|\bar a|=1/\sqrt m$ for a shared read-out, and $\sqrt{2/(\pi Lm)}$ where that of
    every position is drawn by itself.
    """
    rest = (1 - frac_relevant - frac_confusion) / (patterns - 2)
    own = np.array([frac_relevant, frac_confusion, *[rest] * (patterns - 2)])
    other = own[[1, 0, *range(2, patterns)]]
    boost = np.where(np.eye(patterns) > 0, math.exp(scale**2), 1.0)

    def seen(fractions: np.ndarray) -> np.ndarray:
        weight = fractions * boost
        return weight / weight.sum(axis=1, keepdims=True)

    def toward(fractions: np.ndarray, first: np.ndarray) -> float:
        p = seen(fractions)
        cosine = p @ first / np.linalg.norm(p, axis=1) / np.linalg.norm(first)
        active = 1 - np.arccos(np.clip(cosine, -1, 1)) / math.pi
        return float(np.sum(fractions * active * p[:, 0]))

    first = seen(own)[0]
    size = 1 / math.sqrt(width) if shared else math.sqrt(2 / (math.pi * tokens * width))
    return size / 2 * (toward(own, first) - toward(other, first))


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


# -------------------------------------------------------------------------- gaps of the vote


def vote_gap(frac_relevant: Any, frac_confusion: Any) -> Any:
    r"""$\alpha_*-\alpha_\#$: by how much the vote is won, of all tokens."""
    return frac_relevant - frac_confusion


def relative_gap(frac_relevant: Any, frac_confusion: Any) -> Any:
    r"""$(\alpha_*-\alpha_\#)/(\alpha_*+\alpha_\#)$: the same, of the tokens that vote."""
    return (frac_relevant - frac_confusion) / (frac_relevant + frac_confusion)


def needed(frac_relevant: Any, frac_confusion: Any, constant: float = 1.1) -> Any:
    r"""$N_{50} = 1.1\,\rho^{-5/2}(\alpha_*+\alpha_\#)^{-2/3}$ with $\rho$ the relative gap.

    A law found here, for step size 2; infinite where the vote is lost. The constant is that of 100
    tokens and 200 neurons.
    """
    rho = np.maximum(relative_gap(frac_relevant, frac_confusion), 0.0)
    share = frac_relevant + frac_confusion
    return constant * _over(1, rho**2.5) * _over(1, share ** (2 / 3))


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
    return cfg.noise * math.sqrt(cfg.dim) if isinstance(cfg, tokens.Config) else 0.0


def conditions(cfg: Config) -> tuple[Condition, ...]:
    """Assumption 2.3.1 and Theorem 1, both sides, with hidden constants 1 (B and |S|: 8)."""
    tau, sigma, delta = token_noise(cfg), cfg.value_error, cfg.key_error
    factor = float(vote_factor(sigma, delta, tau))
    removed = round(cfg.sparsity * cfg.tokens) if isinstance(cfg, tokens.Config) else 0
    kept = cfg.tokens - removed
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
        Condition(
            "(2.11) step size", cfg.lr, "<=", float(largest_lr(cfg.frac_relevant)),
            "η^10 ≤ α_*, so η < 1",
        ),
    )  # fmt: skip


SAYS = {
    "samples_order": "samples of Theorem 1, (α_* - η^10 - σ - τ)⁻² (2.11), constants 1",
    "samples_order_cnn": "samples with frozen attention, Proposition 1 (2.13), constant 1",
    "iters_order": "iterations of Theorem 1, η^-3/5 α_*⁻¹ (2.10)",
    "iters_polynomial": "iterations after which the output growth of the proof passes 1",
    "vote_gap": "α_* - α_#: by how much the vote is won",
    "relative_gap": "(α_* - α_#)/(α_* + α_#): the same, of the tokens that vote",
    "needed": "samples for half of the trials, by the law of the two gaps (found here)",
    "attention_limit": "attention on relevant tokens in the limit, 1 - η^10 (2.15)",
    "attention_start": "least mass of attention on relevant tokens at the start",
    "lucky_fraction": "chance that a neuron is active on the whole cone of a pattern",
}


def of_photographs(cfg: photographs.Config) -> Prediction:
    """What can be asked where nobody knows the patterns of the tokens."""
    kept = round(cfg.side**2 / cfg.frac_relevant)
    met = (
        Condition("one block", cfg.layers, "<=", 1, "the theorems' network has one layer"),
        Condition("(2.9) batch", cfg.batch, ">=", CONSTANT, "B ≥ Ω(1)"),
        Condition("(2.9) tokens", kept, ">=", CONSTANT, "|S| ≥ Ω(1)"),
    )
    says = {"samples_order": "samples of Theorem 1, α_*⁻² (2.11), constant 1, no other terms"}
    return Prediction(met, {"samples_order": float(thm1_samples(cfg.frac_relevant))}, says)


def theory(cfg: Config | photographs.Config) -> Prediction:
    """Everything the paper says about one setting, up to its constants."""
    if isinstance(cfg, photographs.Config):
        return of_photographs(cfg)
    tau, alpha = token_noise(cfg), cfg.frac_relevant
    error = cfg.value_error + tau
    relevant = alpha * cfg.tokens
    start = attention_envelope(1.0, relevant, cfg.tokens, cfg.key_error, tau)
    mass = float(start.p)
    polynomial = iters_from_polynomial(cfg.lr, alpha, mass) if cfg.lr * alpha > 0 else math.inf
    voting = alpha + cfg.frac_confusion > 0
    values = {
        "samples_order": float(thm1_samples(alpha, error, cfg.lr)),
        "samples_order_cnn": float(prop1_samples(alpha, error)),
        "iters_order": float(thm1_iters(cfg.lr, alpha)),
        "iters_polynomial": polynomial,
        "vote_gap": float(vote_gap(alpha, cfg.frac_confusion)),
        "relative_gap": float(relative_gap(alpha, cfg.frac_confusion)) if voting else 0.0,
        "needed": float(needed(alpha, cfg.frac_confusion)) if voting else math.inf,
        "attention_limit": float(attention_limit(cfg.lr)),
        "attention_start": mass,
        "lucky_fraction": float(lucky_fraction(min(error, math.pi / 2), cfg.dim)),
    }
    empty = [n for n, v in values.items() if n.startswith("samples") and math.isinf(v)]
    if values["attention_limit"] <= 0:
        empty.append("attention_limit")
    return Prediction(conditions(cfg), values, SAYS, tuple(empty))
