"""Conditions and theorems as functions of plain numbers, in float64.

Hidden constants and logarithms of the paper's $O, \\Omega, \\Theta$ are set to 1. `theory(cfg)`
calls the functions with expected values; claims call them with realised ones.
"""

import math
from typing import Any

import numpy as np

from provingground.study import Condition, Prediction

from .model import Config, signal_norm

FAIL_PROBABILITY = 0.01  # the paper's delta
C_P = 5.0  # Condition 4.1 (10): the big noise is C_P sqrt(M) times the small noise


def _over(a: Any, b: Any) -> Any:
    """a / b, and infinity where b is zero."""
    with np.errstate(divide="ignore"):
        return np.divide(a, b)


# ---------------------------------------------------------------- what controls the outcome


def read_out_norm2() -> float:
    r"""$E\|w_O\|^2$ for $w_O \sim U(\pm 1/\sqrt{d_v})$: one third, for every $d_v$."""
    return 1 / 3


def signal_ratio(samples: Any, snr: Any, noise: Any, noise_big: Any) -> Any:
    r"""$R = N\|\mu\|^2 / (\tilde\sigma_p^2 d) = N\,\mathrm{SNR}^2 (\sigma_p/\tilde\sigma_p)^2$.

    The signal's speed over that of the big noise, times two (see `value_speeds`).
    """
    return samples * snr**2 * _over(noise, noise_big) ** 2


def boundary_snr(samples: Any, noise: Any, noise_big: Any, ratio: float = 2.0) -> Any:
    r"""The SNR at which $R$ = `ratio`. Both speeds are equal at $R = 2$: the derived boundary."""
    return np.sqrt(ratio / samples) * _over(noise_big, noise)


def printed_boundary_snr(samples: Any) -> Any:
    r"""The curve $N\,\mathrm{SNR}^2 = 1000$ that the paper draws in Figure 1(b)."""
    return np.sqrt(1000 / samples)


# ------------------------------------------------------------------------------- Lemma 5.1


def value_speeds(
    lr: Any, signal_norm2: Any, noise_norm2: Any, samples: Any, tokens: Any, norm2: Any
) -> tuple[Any, Any]:
    r"""Lemma 5.1: growth per step of the label-signed values while attention is uniform.

    $\dot V_\pm = \eta\|w_O\|^2\|\mu\|^2/(4M)$ and, for token 2 of every sample,
    $\dot V_{n,2} = \eta\|w_O\|^2\tilde\sigma_p^2 d/(2NM)$, with balanced labels. `signal_norm2` is
    $\|\mu\|^2$, `noise_norm2` is $\tilde\sigma_p^2 d$, `norm2` is $\|w_O\|^2$.
    """
    return (
        lr * norm2 * signal_norm2 / (4 * tokens),
        lr * norm2 * noise_norm2 / (2 * samples * tokens),
    )


# -------------------------------------------------------------------- Theorems 4.1 and 4.2


def benign_time(lr: Any, eps: Any, signal_norm2: Any, norm2: Any) -> Any:
    r"""Theorem 4.1: $T = \Theta(\eta^{-1}\epsilon^{-1}\|\mu\|^{-2}\|w_O\|^{-2})$."""
    return _over(1, lr * eps * signal_norm2 * norm2)


def harmful_time(lr: Any, eps: Any, samples: Any, noise_norm2: Any, norm2: Any) -> Any:
    r"""Theorem 4.2: $T = \Theta(N\eta^{-1}\epsilon^{-1}\sigma_p^{-2}d^{-1}\|w_O\|^{-2})$.

    As printed `noise_norm2` is $\sigma_p^2d$; what is memorised is token 2, with
    $\tilde\sigma_p^2d$: the same up to the constant $C_p^2 = 25M$ of Condition 4.1 (10).
    """
    return _over(samples, lr * eps * noise_norm2 * norm2)


def late_time(
    lr: Any,
    eps: Any,
    signal_norm2: Any,
    noise_norm2: Any,
    samples: Any,
    norm2: Any,
    on_signal: Any,
    on_noise: Any,
) -> Any:
    r"""Theorems 4.1 and 4.2 with their constant: the steps to a training loss $\epsilon$.

    Once the mean attention on the signal is $a$ and that on token 2 is $b$, the margin $m$ of a
    sample grows by $\eta\|w_O\|^2 e^{-m}(a^2\|\mu\|^2/2 + b^2\tilde\sigma_p^2d/N)$ per step, so
    $\epsilon^{-1} = e^m = \eta\|w_O\|^2(a^2\|\mu\|^2/2 + b^2\tilde\sigma_p^2d/N)\,T$. The small
    noise is left out.
    """
    speed = on_signal**2 * signal_norm2 / 2 + on_noise**2 * noise_norm2 / samples
    return _over(1, lr * eps * norm2 * speed)


def sparse_attention(tokens: Any) -> tuple[Any, Any]:
    r"""Mean attention on the winner and on the loser (signal or token 2) after stage two.

    The queries of the signal and of token 2 see the winner alone; those of the small noise are too
    short to choose and see all tokens alike: $(3M-2)/M^2$ and $(M-2)/M^2$.
    """
    return (3 * tokens - 2) / tokens**2, (tokens - 2) / tokens**2


# ------------------------------------------------------------------------- Lemmas 5.2 to 5.5


def stage_one_ratio(samples: Any, snr: Any, tokens: Any, c_p: Any) -> Any:
    r"""Lemma 5.2: $|V_\pm| \ge 3M|V_{n,i}|$ after stage one needs $N\mathrm{SNR}^2 > 60M^2C_p^2$.

    Returns the left side over the right side; below 1 the lemma's time $T_1$ is negative.
    """
    return _over(samples * snr**2, 60 * tokens**2 * c_p**2)


def stage_two_score(t: Any, start: Any, curvature: Any) -> Any:
    r"""Lemma 5.3: $\langle q, k_\pm - k_{n,j}\rangle \ge \log(e^{\Delta_0}+ct^2)$."""
    return np.log(np.exp(start) + curvature * t**2)


def stage_three_value(t: Any, start: Any, rate: Any) -> Any:
    r"""Lemma 5.4: $V_+ \ge \log(e^{V_+(T_2)} + \eta C\|\mu\|^2\|w_O\|^2 (t - T_2))$."""
    return np.log(np.exp(start) + rate * t)


def benign_test_loss(value: Any, tokens: Any) -> Any:
    r"""Lemma 5.5, made sharp: $\ell\big(V_+(2M-1)/M^2\big)$ on test data.

    The signal's query attends to the signal alone, those of unseen noise uniformly, so
    $yf = \frac1M(V_+ + (M-1)V_+/M)$.
    """
    return np.log1p(np.exp(-value * (2 * tokens - 1) / tokens**2))


# ------------------------------------------------------------------ attention that is frozen


def signal_share(ratio: Any, tokens: Any, noise: Any, noise_big: Any) -> Any:
    r"""Frozen attention: the signal's part of a training sample's margin.

    Attention stays uniform, so all values keep the proportions of their speeds,
    $V_\pm : V_{n,2} : V_{n,i} = R/2 : 1 : (\sigma_p/\tilde\sigma_p)^2$; the margin is their mean
    over the $M$ tokens.
    """
    return ratio / (ratio + 2 + 2 * (tokens - 2) * _over(noise, noise_big) ** 2)


def frozen_test_loss(eps: Any, share: Any) -> Any:
    r"""Frozen attention: $\ell(sm)$ with $\ell(m) = \epsilon$, $s$ the `signal_share`.

    Unseen noise has no value on average, so a test sample keeps the signal's part of the margin.
    """
    return np.log1p(np.expm1(eps) ** share)


# --------------------------------------------------------------------- exact update rules


def token_gradients(y: Any, p: Any, v: Any, samples: int) -> tuple[Any, Any]:
    r"""Section 5 in closed form: $\partial L/\partial V_j$ and $\Lambda_n[l, j]$ of each sample.

    $c_n = -y_n / (NM(1 + e^{y_n f_n}))$, $\partial_{V_j}L = c_n\sum_l P_{lj}$ and
    $\Lambda_n[l,j] = c_n P_{lj}(V_j - o_l)$ with $o_l = \sum_j P_{lj}V_j$ (Lemmas B.2, B.3: queries
    and keys move by $-\eta G\Lambda k$ and $-\eta G\Lambda^\top q$).
    `y` is (N,), `p` (N, M, M), `v` (N, M).
    """
    tokens = p.shape[-1]
    o = np.einsum("nlj,nj->nl", p, v)
    c = -y / (samples * tokens * (1 + np.exp(y * o.mean(axis=1))))
    return c[:, None] * p.sum(axis=1), c[:, None, None] * p * (v[:, None, :] - o[:, :, None])


# --------------------------------------------------------------------------- Condition 4.1


def conditions(cfg: Config) -> tuple[Condition, ...]:
    r"""Condition 4.1, both sides. (3), (4), (5), (9) hide constants: 1, 100, [.1, 10] are used."""
    n, m, d, h = cfg.samples, cfg.tokens, cfg.dim, cfg.key_width
    mu2, noise2 = signal_norm(cfg) ** 2, cfg.noise**2 * d
    small = min(1 / mu2 if mu2 else math.inf, 1 / noise2 if noise2 else math.inf)
    w_o = math.sqrt(read_out_norm2())
    sigma = cfg.init_scale / math.sqrt(3 * d)  # s.d. of the entries of W_Q, W_K, W_V
    ell = math.log(6 * n**2 * m**2 / FAIL_PROBABILITY)
    snr4 = max(cfg.snr**4, cfg.snr**-4) if cfg.snr else math.inf
    polylog = math.log(d)
    eps2 = cfg.eps**-2 if cfg.eps else math.inf
    return (
        Condition("(1) query width", h, ">=", snr4 * n**2 * eps2, "d_h ≥ max(SNR⁴, SNR⁻⁴) N² ε⁻²"),
        Condition("(2) dimension", d, ">=", eps2 * n**2 * h, "d ≥ ε⁻² N² d_h"),
        Condition("(3) samples", n, ">=", polylog, "N ≥ polylog d"),
        Condition("(4) tokens", m, "<=", 100, "M = O(1)"),
        Condition("(5) read-out, low", w_o, ">=", 0.1, "‖w_O‖ = Θ(1)"),
        Condition("(5) read-out, high", w_o, "<=", 10, "‖w_O‖ = Θ(1)"),
        Condition(
            "(6) step size", cfg.lr, "<=", small * h**-0.5,
            "η ≤ min(‖μ‖⁻², σ_p⁻²d⁻¹) d_h^-½",
        ),
        Condition(
            "(7) value init", sigma, "<=", math.sqrt(small) * h**-0.25 / w_o,
            "σ_V ≤ ‖w_O‖⁻¹ min(‖μ‖⁻¹, σ_p⁻¹d^-½) d_h^-¼",
        ),
        Condition(
            "(8) query init, low", sigma**2, ">=", small * h**-0.5 * ell**-2,
            "σ_h² ≥ min(‖μ‖⁻², σ_p⁻²d⁻¹) d_h^-½ log⁻²(6N²M²/δ)",
        ),
        Condition(
            "(8) query init, high", sigma**2, "<=", small * h**-0.5 * ell**-1.5,
            "σ_h² ≤ min(‖μ‖⁻², σ_p⁻²d⁻¹) d_h^-½ log^-3/2(6N²M²/δ)",
        ),
        Condition("(9) training loss", cfg.eps, "<=", 1 / polylog, "ε ≤ 1/polylog d"),
        Condition(
            "(10) big noise", cfg.noise_big, "=", C_P * math.sqrt(m) * cfg.noise,
            "σ̃_p = 5√M σ_p",
        ),
    )  # fmt: skip


SAYS = {
    "n_snr2": "N SNR², which Theorems 4.1 and 4.2 compare with a constant",
    "signal_ratio": "R = N SNR² (σ_p/σ̃_p)²: twice the speed of signal over that of big noise",
    "benign": "1 if R > 2, where the signal is the faster one; else 0",
    "boundary_snr": "the SNR at which both speeds are equal, R = 2",
    "signal_speed": "growth of V_± per step while attention is uniform (Lemma 5.1)",
    "noise_speed": "growth of V_{n,2} per step while attention is uniform (Lemma 5.1)",
    "benign_time": "steps of Theorem 4.1, η⁻¹ε⁻¹‖μ‖⁻²‖w_O‖⁻², its constant taken as 1",
    "harmful_time": "steps of Theorem 4.2 as printed, N η⁻¹ε⁻¹σ_p⁻²d⁻¹‖w_O‖⁻², its constant 1",
    "harmful_time_big": "the same with the noise of token 2, which is the one that is memorised: "
    "N η⁻¹ε⁻¹σ̃_p⁻²d⁻¹‖w_O‖⁻²",
    "stage_one_ratio": "N SNR² over the 60 M² C_p² of Lemma 5.2; below 1 it promises less",
}


def of_digits(cfg: Any) -> Prediction:
    """Digits in a frame of noise: what of Condition 4.1 has a meaning there, and what the theorems
    take for granted."""
    tokens = (28 // cfg.coarse // cfg.patch) ** 2
    met = (
        Condition("(3) samples", cfg.samples, ">=", math.log(cfg.patch**2), "N ≥ polylog d"),
        Condition("(4) tokens", tokens, "<=", 100, "M = O(1)"),
        Condition("classes", 10, "<=", 2, "the labels are +1 and -1"),
        Condition("attention", cfg.layers, "<=", 1, "one layer of attention"),
    )
    return Prediction(met, {"n_snr2": cfg.samples * cfg.snr**2}, SAYS)


def theory(cfg: Any) -> Prediction:
    """Everything the paper (and the boundary derived here) says about one setting."""
    if not hasattr(cfg, "noise_big"):
        return of_digits(cfg)
    n, mu2, w2 = cfg.samples, signal_norm(cfg) ** 2, read_out_norm2()
    big2 = cfg.noise_big**2 * cfg.dim
    c_p = _over(cfg.noise_big, cfg.noise)
    ratio = signal_ratio(n, cfg.snr, cfg.noise, cfg.noise_big)
    one = stage_one_ratio(n, cfg.snr, cfg.tokens, c_p)
    signal_speed, noise_speed = value_speeds(cfg.lr, mu2, big2, n, cfg.tokens, w2)
    return Prediction(
        conditions(cfg),
        {
            "n_snr2": n * cfg.snr**2,
            "signal_ratio": ratio,
            "benign": float(ratio > 2),
            "boundary_snr": boundary_snr(n, cfg.noise, cfg.noise_big),
            "signal_speed": signal_speed,
            "noise_speed": noise_speed,
            "benign_time": benign_time(cfg.lr, cfg.eps, mu2, w2),
            "harmful_time": harmful_time(cfg.lr, cfg.eps, n, cfg.noise**2 * cfg.dim, w2),
            "harmful_time_big": harmful_time(cfg.lr, cfg.eps, n, big2, w2),
            "stage_one_ratio": one,
        },
        SAYS,
        vacuous=() if one > 1 else ("stage_one_ratio",),
    )
