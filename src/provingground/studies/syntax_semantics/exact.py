r"""The hard part exactly, and what follows: floors, rests, bursts, the gate (found here).

For balanced contexts. Plain numbers in, float64 out. Letters as in the paper: u, r the norms of
$z, \zeta$; $\lambda$ the weight decay; c of $W = c\,w^\star w^{\star\top}$; n the norm of V.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from .reduced import margins

LOG2 = math.log(2)
FLOOR = LOG2 / 2  # of the hard loss, for every V: positives are never right with a margin
ONE_SIDED = 3 * LOG2 / 4  # of the hard loss, if one of z + ζ, z - ζ is learned
SOFTMAX_FLOOR = LOG2 / 2 + math.log1p(math.exp(-1)) / 2  # with softmax, where g > -1 too


def over(a: Any, b: Any) -> Any:
    """a / b, and infinity where a plain b is zero; coordinates keep their dims."""
    if np.ndim(b) == 0 and float(b) == 0:
        return np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(a, b)


# --------------------------------------------------------------------------- outputs


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


# ---------------------------------------------------------------------------- at rest


def one_sided_score(z_norm: Any, zeta_norm: Any) -> Any:
    r"""$\rho$: $|q|$ of one side at $p = 0$ and unit norm of V, $u^2/\sqrt{1+2u^2/r^2}$.

    It is learned by $(a, b, c, e) \propto (1, \mp u/r, \pm u/r, 0)$.
    """
    return z_norm * z_norm * zeta_norm / np.sqrt(zeta_norm**2 + 2 * z_norm**2)


def one_sided_gain(z_norm: Any, zeta_norm: Any) -> Any:
    r"""$\rho/r^2$: learning one of $z\pm\zeta$ over learning both, $V \propto \zeta\zeta^\top$.

    Well above 1, regularised training learns one side.
    """
    x = over(z_norm, zeta_norm) ** 2
    return x / np.sqrt(1 + 2 * x) if bool(np.isfinite(x).all()) else np.inf


class Rest(NamedTuple):
    """Where decay and gradient of both parts balance, without noise."""

    easy: float  # c of W = c w* w*ᵀ
    hard: float  # n, the norm of V
    slope: float  # mean of σ(-y f) over queries that g does not reach
    loss_hard: float  # K²


def easy_rest(
    margin: float, dim: int | float, tokens: int | float, weight_decay: float, positive: float = 0.5
) -> float:
    r"""$c$ of $W = c\,w^\star w^{\star\top}$ at rest: $\lambda c = -\partial_c\hat L$ at $g = 0$.

    $y_Lh = c\,a\,m_L$ with $a = \frac{L-1}LE[m]$ times the share of the query's label in a
    context, so $-\partial_c\hat L = \frac12E[a\,m_L\sigma(-y_Lh/2)]$, about
    $\frac14\gamma^2E\sigma$.
    """
    m = np.asarray(margins(margin, dim), float)
    shares = np.array([positive, 1 - positive])
    per_c = (tokens - 1) / tokens * m.mean() * np.outer(shares, m)

    def pull(c: float) -> float:
        return float((per_c / 2 * expit(-per_c * c / 2)).mean()) - weight_decay * c

    return _root(pull, 1 + float(per_c.mean()) / weight_decay)


def one_side_rest(
    margin: float,
    dim: int | float,
    tokens: int | float,
    weight_decay: float,
    z_norm: float,
    zeta_norm: float,
) -> Rest:
    r"""Rest of both parts when one of $z\pm\zeta$ is learned, $g = -\frac{L-1}{4L}\rho n$ on it.

    $\lambda n = \frac{L-1}{32L}\rho\,E\sigma(-\frac12(y_Lh - g))$ for the quarter of the queries
    that $g$ reaches; $\lambda c$ as in `easy_rest`, where that quarter now pulls less.
    """
    m, whole = np.asarray(margins(margin, dim), float), (tokens - 1) / tokens
    per_c, rho = whole * m.mean() * m / 2, whole * float(one_sided_score(z_norm, zeta_norm))

    def reached(c: float, n: float) -> np.ndarray:
        return expit(-(per_c * c + rho * n / 4) / 2)

    def hard(c: float) -> float:
        return _root(
            lambda n: float(rho / 32 * reached(c, n).mean()) - weight_decay * n,
            1 + rho / (32 * weight_decay),
        )

    def pull(c: float) -> float:
        sigma = 0.75 * expit(-per_c * c / 2) + 0.25 * reached(c, hard(c))
        return float((per_c / 2 * sigma).mean()) - weight_decay * c

    c = _root(pull, 1 + float(per_c.mean()) / weight_decay)
    n = hard(c)
    return Rest(
        easy=c,
        hard=n,
        slope=float(expit(-per_c * c / 2).mean()),
        loss_hard=float(hard_loss(np.array([0.0, -rho * n / 4, 0.0]))),
    )


class TraceRest(NamedTuple):
    """Traces at rest of keys and queries that learn W and both sides of V."""

    easy: float
    hard: float


def trace_rest(
    margin: float, dim: int | float, tokens: int | float, weight_decay: float, zeta_norm: float
) -> TraceRest:
    r"""Traces of $W = W_K^\top W_Q$, $V = V_K^\top V_Q$ at rest, $V = e\,\zeta\zeta^\top/r^2$.

    A factor that is not zero rests where the gradient of its product is $\lambda$:
    $\frac12E[a\,m\,\sigma] = \lambda$ for W and $\frac{L-1}{16L}r^2E\sigma_- = \lambda$ for V, with
    $\sigma_-$ that of the negative queries, whose margin is $\frac12(y_Lh + \frac{L-1}{4L}r^2e)$.
    """
    m, whole = np.asarray(margins(margin, dim), float), (tokens - 1) / tokens
    per_c, per_e = whole * m.mean() * m / 2, whole * zeta_norm**2 / 4

    def negatives(c: float, e: float) -> np.ndarray:
        return expit(-(per_c * c + per_e * e) / 2)

    def hard(c: float) -> float:
        return _root(
            lambda e: float(per_e / 4 * negatives(c, e).mean()) - weight_decay,
            1 + 2 / per_e * max(0.0, math.log(per_e / (4 * weight_decay))),
        )

    def pull(c: float) -> float:
        sigma = (expit(-per_c * c / 2) + negatives(c, hard(c))) / 2
        return float((per_c / 2 * sigma).mean()) - weight_decay

    low = float(per_c.min())
    c = _root(pull, 1 + 2 / low * max(0.0, math.log(1 + float(per_c.mean()) / weight_decay)))
    return TraceRest(c, hard(c))


def _root(f: Any, top: float) -> float:
    """The root of a falling function between 0 and `top`; 0 if it starts below zero."""
    return float(brentq(f, 0.0, top)) if f(0.0) > 0 else 0.0  # pyright: ignore


# ---------------------------------------------------------------- bursts and the gate


def burst(lr: Any, z_norm: Any, zeta_norm: Any, slope: Any = 0.5) -> Any:
    r"""Norm of one step of V that one side makes in the active region, $\eta\sigma(u^2+r^2)/32$.

    The gradient is $\frac14\sigma\cdot\frac12\cdot\frac14$ (share of the queries, slope, half of
    f, g's factor) times two vectors of norm $\sqrt{u^2+r^2}$.
    """
    return lr * slope * (z_norm**2 + zeta_norm**2) / 32


def kick(lr: Any, z_norm: Any, zeta_norm: Any, slope: Any = 0.5) -> Any:
    r"""$\delta = \eta\sigma u^2(u^2+r^2)/32$: how far that step moves $p$.

    A step wider than the active region $|p| < |q|$ throws V out of it.
    """
    return burst(lr, z_norm, zeta_norm, slope) * z_norm**2


BURSTS = 1.55  # fitted: what the count of bursts below leaves out


def burst_signal(lr: Any, noise: Any, z_norm: Any, zeta_norm: Any, slope: Any) -> Any:
    r"""R.m.s. norm of $\bar V$ while every step throws it out: $\propto\sqrt{\eta\tau\sigma}$.

    Noise of s.d. $\tau$ in V brings p, of s.d. $s_p = \tau u\sqrt{u^2+r^2}$, back to zero
    $\lambda s_p\sqrt{2/\pi}/\delta$ times per unit of time. Queries $z\pm\zeta$ make bursts b;
    z, with twice the weight, half as many of 2b. They decay at rate $\lambda$, with random signs:
    $E\|\bar V\|^2 = 2\sqrt{2/\pi}\,s_pb^2/\delta = 2\sqrt{2/\pi}\,s_pb/u^2$ (times
    a fitted constant).
    """
    if np.ndim(z_norm) == 0 and float(z_norm) == 0:
        return np.inf
    spread = noise * z_norm * np.sqrt(z_norm**2 + zeta_norm**2)
    per_step = over(burst(lr, z_norm, zeta_norm, slope), z_norm**2)
    return BURSTS * np.sqrt(2 * math.sqrt(2 / math.pi) * spread * per_step)


def keeping_lr(hard: Any, z_norm: Any, zeta_norm: Any, slope: Any) -> Any:
    r"""The step at which what is learned is lost again: $16q^*/(\sigma u^4)$.

    At rest $|p| = |q|$ for the query z. When a step makes it active it moves p of all queries by
    $\eta\sigma u^4/16$; beyond the width $q^* = \rho n$ of the region the learned side is dead.
    """
    return over(16 * one_sided_score(z_norm, zeta_norm) * hard, slope * z_norm**4)


def finding_lr(noise: Any, z_norm: Any, zeta_norm: Any, slope: Any) -> Any:
    r"""The step at which q does not grow out of noise of s.d. $\tau$:
    $8\sqrt{2/\pi}\cdot32\tau r^2/(\sigma u^3\sqrt{u^2+r^2})$.

    Thrown out to $\delta - 2q$, p is back after $(\delta-2q)/(\lambda s_p)\sqrt{\pi/2}$, and each
    visit adds $\delta r^2/u^2$ to q, which decays at rate $\lambda$. That has no rest, so q
    grows, if $\delta < 8\sqrt{2/\pi}\,s_pr^2/u^2$ (names as in `burst_signal`).
    """
    top = 8 * math.sqrt(2 / math.pi) * 32 * noise * zeta_norm**2
    return over(top, slope * z_norm**3 * np.sqrt(z_norm**2 + zeta_norm**2))


def critical_lr(noise: Any, hard: Any, z_norm: Any, zeta_norm: Any, slope: Any) -> Any:
    r"""$\eta_c$: above it the hard part is not learned. Both must be met: find it, and keep it.

    $\eta_c^{-2} = \eta_{keep}^{-2} + \eta_{find}^{-2}$; `hard`, `slope` those of `one_side_rest`,
    `noise` the s.d. of the noise part of V. The way of joining the two is ours.
    """
    keep = keeping_lr(hard, z_norm, zeta_norm, slope)
    find = finding_lr(noise, z_norm, zeta_norm, slope)
    return over(1.0, np.sqrt(over(1.0, keep) ** 2 + over(1.0, find) ** 2))
