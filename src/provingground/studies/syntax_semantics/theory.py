"""Theorems, their corrections and conditions as functions of plain numbers, in float64.

Hidden constants of the paper's $O, \\Theta, \\lesssim$ are set to 1.
"""

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from provingground.study import Condition, Prediction

from .model import Config, noise_std, stage_steps
from .reduced import margins

LOG2 = math.log(2)
FLOOR = LOG2 / 2  # of the hard loss, for every V: positives are never right with a margin
ONE_SIDED = 3 * LOG2 / 4  # of the hard loss, if one of z + ζ, z - ζ is learned
SOFTMAX_FLOOR = LOG2 / 2 + math.log1p(math.exp(-1)) / 2  # with softmax, where g > -1 too


def _log(x: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(x)


def _over(a: Any, b: Any) -> Any:
    """a / b, and infinity where b is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(b) == 0, np.inf, np.divide(a, np.where(b == 0, 1, b)))[()]


# ------------------------------------------------------- the hard part, exactly (found here)


def scores(v_red: Any, z_norm: Any, zeta_norm: Any) -> tuple[Any, Any]:
    r"""$p(s) = u^2a + ursb$ and $q(s) = urc + r^2se$ for queries $s = 0, 1, -1$.

    Token $s_i$ has the score $p + s_iq$; $V = \binom{a\ b}{c\ e}$ in the basis $z/u, \zeta/r$.
    """
    (a, b), (c, e), s = *np.asarray(v_red), np.array([0.0, 1.0, -1.0])
    u, r = z_norm, zeta_norm
    return u * u * a + u * r * s * b, u * r * c + r * r * s * e


def hard_output(v_red: Any, z_norm: Any, zeta_norm: Any, tokens: Any, positive: Any = 0.5) -> Any:
    r"""g of a balanced context with a share $\pi$ of positives; never positive if $\pi\le\frac12$.

    $g(s) = \frac{L-1}L[(2\pi-1)\max(0, p) - \frac{1-\pi}2\max(0, |q| - |p|)]$.
    """
    p, q = scores(v_red, z_norm, zeta_norm)
    beyond = np.maximum(0, abs(q) - abs(p))
    both = (2 * positive - 1) * np.maximum(0, p) - (1 - positive) / 2 * beyond
    return (tokens - 1) / tokens * both


def softmax_output(v_red: Any, z_norm: Any, zeta_norm: Any) -> Any:
    r"""$g(s) = -\tanh^2(q/2)$ with softmax attention: never positive, p gone (no dead zone)."""
    return -(np.tanh(scores(v_red, z_norm, zeta_norm)[1] / 2) ** 2)


def hard_floor(positive: float = 0.5) -> float:
    r"""The least $K^2$ of any V: with more positives than negatives in a context, zero."""
    return FLOOR if positive <= 0.5 else 0.0


def hard_loss(g: Any) -> Any:
    r"""$K^2$ from $g$ of $z$, $z+\zeta$, $z-\zeta$; at least $\frac12\log2$ since $g \le 0$."""
    return np.logaddexp(0, -g[0]) / 2 + np.logaddexp(0, g[1]) / 4 + np.logaddexp(0, g[2]) / 4


def in_dead_zone(v_red: Any, z_norm: Any, zeta_norm: Any) -> bool:
    r"""Whether $|q| < |p|$ for every query: then $g$ and the gradient of $V$ are zero."""
    p, q = scores(v_red, z_norm, zeta_norm)
    return bool((abs(q) < abs(p)).all())


def dead_zone_probability(z_norm: Any, zeta_norm: Any) -> Any:
    r"""Lower bound for a Gaussian $V$: each query fails with $\frac2\pi\arctan\frac ru$."""
    return np.maximum(0.0, 1 - 6 / math.pi * np.arctan2(zeta_norm, z_norm))


def one_sided_gain(z_norm: Any, zeta_norm: Any) -> Any:
    r"""$|q|$ at $p = 0$ and unit norm of $V$: learning one of $z\pm\zeta$ over learning both.

    One side: $(a, b, c, e) \propto (1, \mp u/r, \pm u/r, 0)$, $|q| = u^2/\sqrt{1+2u^2/r^2}$. Both:
    $V \propto \zeta\zeta^\top$, $|q| = r^2$. Well above 1, regularised training learns one side.
    """
    x = _over(z_norm, zeta_norm) ** 2
    return x / np.sqrt(1 + 2 * x) if np.isfinite(x).all() else np.inf


def gate_kick(lr: Any, z_norm: Any, zeta_norm: Any, slope: float = 0.5) -> Any:
    r"""How far one step moves $p$ in the active region, $\eta\sigma u^2(u^2+r^2)/32$.

    Where this exceeds the width $|q|$ of the region, the step throws $V$ out of it.
    """
    return lr * slope * z_norm**2 * (z_norm**2 + zeta_norm**2) / 32


def burst(lr: Any, z_norm: Any, zeta_norm: Any) -> Any:
    r"""Norm of one step of V that one side makes in the active region, $\eta(u^2+r^2)/64$.

    The gradient is $\frac14\sigma\cdot\frac12\cdot\frac14$ (share of the queries, slope $\sigma =
    \frac12$, half of f, g's factor) times two vectors of norm $\sqrt{u^2+r^2}$.
    """
    return lr * (z_norm**2 + zeta_norm**2) / 64


def critical_lr(z_norm: Any, constant: float = 500.0) -> Any:
    r"""The step size above which the hard part is not learned: about $500u^{-4}$ (fitted)."""
    return _over(constant, np.asarray(z_norm, float) ** 4)


# ------------------------------------------------------------------ the easy part


def easy_fixed_point(cfg: Config) -> float:
    r"""$c$ of $W = c\,w^\star w^{\star\top}$ at rest: $\lambda c = -\partial_c\hat L$ at $g = 0$.

    $y_Lh = c\,a\,m_L$ with $a = \frac{L-1}LE[m]$ times the share of the query's label in a
    context, so $-\partial_c\hat L = \frac12E[a\,m_L\sigma(-y_Lh/2)]$, about
    $\frac14\gamma^2E\sigma$.
    """
    m = np.asarray(margins(cfg), float)
    shares = np.array([cfg.positive, 1 - cfg.positive])
    per_c = (cfg.tokens - 1) / cfg.tokens * m.mean() * np.outer(shares, m)

    def pull(c: float) -> float:
        return float((per_c / 2 * expit(-per_c * c / 2)).mean()) - cfg.weight_decay * c

    top = 1 + float(per_c.mean()) / cfg.weight_decay
    return float(brentq(pull, 0.0, top)) if pull(0.0) > 0 else 0.0  # pyright: ignore


def easy_norm_bound(cfg: Config) -> float:
    r"""Proposition 4: $\|\bar W\|_F \le K/\lambda$ with $K = \frac12\max\|x_1\|^2$.

    The longest easy token is taken at $\gamma_0 + 1$ along and 1 across $w^\star$.
    """
    return 0.5 * ((cfg.margin + 1) ** 2 + 1) / cfg.weight_decay


# ---------------------------------------------------------------- eqs. (10), (16), (17)


def eps_noise(init_std: Any, size: Any, dim: Any, tokens: Any) -> Any:
    r"""Eqs. (16), (17): $\tau_0\,\mathrm{size}^2\sqrt{d\log d/L}$, the output of the noise.

    `size` is $u+\gamma_0$ for $\epsilon_{W,1}$ and $u+r$ for $\epsilon_{V,1}$.
    """
    return init_std * size**2 * np.sqrt(dim * np.log(dim) / tokens)


def eps_flips(lipschitz: Any, weight_decay: Any, init_std: Any, tokens: Any) -> Any:
    r"""Eq. (10): $\epsilon_W = K^{4/3}\lambda^{-4/3}\tau_0^{-4/3}L^{2/3}$ activations flip."""
    return _over(lipschitz, weight_decay * init_std) ** (4 / 3) * tokens ** (2 / 3)


# ---------------------------------------------------------------- Theorems 1 to 4


def theorem1_floor(dim: Any, samples: Any) -> Any:
    r"""(a.2): $K^2_{t_1} \gtrsim \log2 - 1/\sqrt{\log d} - \sqrt{\log d/N}$."""
    return LOG2 - 1 / np.sqrt(np.log(dim)) - np.sqrt(np.log(dim) / samples)


def theorem2_norm(dim: Any, eps_w1: Any) -> Any:
    r"""(b.1): $\|\bar W_{t_1}\|_F = \Theta(d\log(1/\epsilon_{W,1}))$."""
    return -dim * _log(eps_w1)


def theorem2_loss(dim: Any, tokens: Any, eps_w1: Any, flips: Any) -> Any:
    r"""(b.2): $K^1 \lesssim \epsilon_{W,1} + \sqrt{d\log d}\,\epsilon_W/L + 1/\sqrt{\log d}$."""
    return eps_w1 + np.sqrt(dim * np.log(dim)) / tokens * flips + 1 / np.sqrt(np.log(dim))


def theorem3_loss(dim: Any, eps_v1: Any) -> Any:
    r"""(c.2): $K^2 \lesssim \epsilon_{V,1} + (\log d)^{-1/4} + (\log d)^{-1/2}$."""
    return eps_v1 + np.log(dim) ** -0.25 + np.log(dim) ** -0.5


def theorem4_change(dim: Any, eps_v1: Any) -> Any:
    r"""(d.1), (d.2): $\epsilon_{V,1}^2/(\log^2(1/\epsilon_{V,1})\sqrt{\log d})$."""
    return _over(eps_v1**2, _log(eps_v1) ** 2 * np.sqrt(np.log(dim)))


def paper_lr2(cfg: Config, eps_v1: Any) -> Any:
    r"""$\eta_2 = \eta_1\lambda^2\epsilon_{V,1}^2r$."""
    return cfg.lr1 * cfg.weight_decay**2 * eps_v1**2 * cfg.zeta_norm


# ------------------------------------------------------------------ the noise part


def noise_after(std: Any, noise: Any, lr: Any, weight_decay: Any, steps: Any) -> Any:
    r"""S.d. of the noise part $\tilde U$ after some steps of eq. (4).

    It relaxes to $\eta\tau_\xi/\sqrt{1-(1-\eta\lambda)^2}$, about $\tau_0\sqrt{\eta_2/\eta_1}$ in
    stage 2. `noise` is $\tau_\xi$.
    """
    kept = (1 - lr * weight_decay) ** 2
    rest = _over(lr**2 * noise**2, 1 - kept)
    return np.sqrt(kept**steps * std**2 + (1 - kept**steps) * rest)


# --------------------------------------------------------------------- Corollary 1


def trace_factor(lr: Any, weight_decay: Any, k: Any, tokens: Any, p: Any = 0.5) -> Any:
    r"""$1 - \eta\lambda + 2pk\eta/L$: a bound on the growth of a trace in one step.

    $k = \max\|x\|^2\,\hat E[|l'|\,\#\{i: x_i^\top x_L \ge 0\}]$. The paper prints an equation.
    """
    return 1 - lr * weight_decay + 2 * p * k * lr / tokens


# ---------------------------------------------------------------- all of it for one setting


def conditions(cfg: Config) -> tuple[Condition, ...]:
    """Assumption 1 and the schedule as printed; then what the gate needs (found here)."""
    root = math.sqrt(math.log(cfg.dim))
    eps_w1 = eps_noise(cfg.init_std, cfg.z_norm + cfg.margin, cfg.dim, cfg.tokens)
    eps_v1 = eps_noise(cfg.init_std, cfg.z_norm + cfg.zeta_norm, cfg.dim, cfg.tokens)
    gate = float(critical_lr(cfg.z_norm))
    return (
        Condition("init", cfg.init_std, "<=", 1 / root, "τ₀ ≤ 1/√log d (Assumption 1)"),
        Condition("weight decay", 1 / cfg.weight_decay, "<=", root, "1/λ ≤ √log d (Assumption 1)"),
        Condition("prompt length", cfg.tokens, ">=", cfg.dim, "L = Poly(d) (Assumption 1)"),
        Condition("margin", cfg.margin, "=", cfg.dim**-0.5, "γ₀ = 1/√d (section 3.1)"),
        Condition("hard offset", cfg.zeta_norm, "<=", cfg.z_norm / 4, "r ≪ u (section 3.1)"),
        Condition("noise output", float(eps_v1), "<=", 1.0, "ε_V,1 = 1/Poly(d) (eq. 17)"),
        Condition("stage 1", cfg.k1, "=", 1.0, "t₁ = 1/(η₁λ)"),
        Condition(
            "annealed step", cfg.lr2, "<=", float(paper_lr2(cfg, eps_v1)), "η₂ = η₁λ²ε²_V,1 r"
        ),
        Condition(
            "Theorem 2 in Prop. 4",
            max(0.0, float(theorem2_norm(cfg.dim, max(eps_w1, 1e-300)))), "<=",
            easy_norm_bound(cfg), "d log(1/ε_W,1) ≤ K/λ, or (b.1) contradicts Proposition 4",
        ),
        Condition("gate shut", cfg.lr1, ">=", gate, "η₁ ≥ η_c: stage 1 misses the hard part"),
        Condition("gate open", cfg.lr2, "<=", gate, "η₂ ≤ η_c: stage 2 learns it"),
    )  # fmt: skip


SAYS = {
    "steps1": "steps of stage 1",
    "steps2": "steps of stage 2",
    "hard_floor": "the least hard loss of any V",
    "hard_one_sided": "the hard loss if one of z + ζ, z - ζ is learned",
    "dead_zone_probability": "lower bound for a Gaussian V to start where its gradient is zero",
    "one_sided_gain": "|q| of learning one side over that of learning both; above 1 one is learned",
    "critical_lr": "step size above which the hard part is not learned (fitted)",
    "burst": "norm of a step of V that one side makes in the active region",
    "gate_kick": "how far one step moves p in the active region",
    "easy_fixed_point": "c of W = c w* w*ᵀ at rest",
    "easy_norm_bound": "K/λ, the bound of Proposition 4 on the norm of W",
    "noise_end": "s.d. of the noise part after both stages",
    "eps_w1": "ε_W,1 of (16), the output of the noise",
    "eps_v1": "ε_V,1 of (17), the output of the noise",
    "eps_w": "ε_W of (10), activations that flip",
    "theorem1_floor": "(a.2): lower bound of the hard loss after stage 1, constants 1",
    "theorem2_norm": "(b.1): d log(1/ε_W,1), the norm of W after stage 1, constant 1",
    "theorem2_loss": "(b.2): upper bound of the easy loss, constants 1",
    "theorem3_loss": "(c.2): upper bound of the hard loss, constants 1",
    "theorem4_change": "(d.1), (d.2): the change in stage 2, constant 1",
}


def theory(cfg: Config) -> Prediction:
    """What the paper, and the exact results found here, say about one setting."""
    d, tau = cfg.dim, cfg.init_std
    lipschitz = easy_norm_bound(cfg) * cfg.weight_decay
    eps_w1 = eps_noise(tau, cfg.z_norm + cfg.margin, d, cfg.tokens)
    eps_v1 = eps_noise(tau, cfg.z_norm + cfg.zeta_norm, d, cfg.tokens)
    flips = eps_flips(lipschitz, cfg.weight_decay, tau, cfg.tokens)
    steps1, steps2 = stage_steps(cfg)
    xi = float(noise_std(cfg))
    after1 = noise_after(tau, cfg.noise * xi, cfg.lr1, cfg.weight_decay, steps1)
    values = {
        "steps1": steps1,
        "steps2": steps2,
        "hard_floor": hard_floor(cfg.positive),
        "hard_one_sided": ONE_SIDED,
        "dead_zone_probability": dead_zone_probability(cfg.z_norm, cfg.zeta_norm),
        "one_sided_gain": one_sided_gain(cfg.z_norm, cfg.zeta_norm),
        "critical_lr": critical_lr(cfg.z_norm),
        "burst": burst(cfg.lr1, cfg.z_norm, cfg.zeta_norm),
        "gate_kick": gate_kick(cfg.lr1, cfg.z_norm, cfg.zeta_norm),
        "easy_fixed_point": easy_fixed_point(cfg),
        "easy_norm_bound": easy_norm_bound(cfg),
        "noise_end": noise_after(after1, cfg.noise2 * xi, cfg.lr2, cfg.weight_decay, steps2),
        "eps_w1": eps_w1,
        "eps_v1": eps_v1,
        "eps_w": flips,
        "theorem1_floor": theorem1_floor(d, cfg.samples),
        "theorem2_norm": theorem2_norm(d, eps_w1),
        "theorem2_loss": theorem2_loss(d, cfg.tokens, eps_w1, flips),
        "theorem3_loss": theorem3_loss(d, eps_v1),
        "theorem4_change": theorem4_change(d, eps_v1),
    }
    return Prediction(conditions(cfg), {name: float(v) for name, v in values.items()}, SAYS)
