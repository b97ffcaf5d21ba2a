r"""Conditions, theorems and lemmas as functions of plain numbers, in float64.

Arguments: `d` tokens $D$, `k` entries $K$ of a group, `lr` $\eta$, `t` steps $T$, `energy`
$\mathcal V = \sum_m\|v_m\|^2$, `kappa` the slope below zero, `p` the score on the support. Where
the paper prints $\sum_m\|v_m\|$ the dynamics have $\mathcal V$; hidden constants are set to 1. What
noise adds to SGD is in `noise.py`.
"""

import math
from typing import Any

import numpy as np

from provingground.maths.gaussian import f1, f2, f3, f4, f5
from provingground.study import Condition, Prediction

from . import convolution, noise
from .data import Config


def _over(a: Any, b: Any) -> Any:
    """a / b, and infinity where b is zero."""
    with np.errstate(divide="ignore"):
        return np.divide(a, b)


# ------------------------------------------------------- the recursion as the paper has it


def terms(p: Any, d: Any, k: Any, kappa: Any) -> dict[str, Any]:
    r"""$F_1$ to $F_5$ of Lemma C.2 at a score $p$ on the support, $q$ off it."""
    leak = 1 - k * p
    q, off = leak / (d - k), leak**2 / (d - k)
    return dict(
        f1=f1(k * p**2 + off, kappa),
        f21=f2(p**2, (k - 1) * p**2 + off, kappa),
        f22=f2(q**2, k * p**2 + (d - k - 1) * q**2, kappa),
        f3=f3(k * p**2, off, kappa),
        f4=f4(p**2, (k - 1) * p**2, off, kappa),
        f5=f5(k * p**2, q**2, (d - k - 1) * q**2, kappa),
    )


def score(c2: Any, c3: Any, d: Any, k: Any) -> Any:
    r"""$p = 1/(K + (D-K)e^{-(C_2+C_3)/\sqrt D})$."""
    return 1 / (k + (d - k) * np.exp(-(c2 + c3) / np.sqrt(d)))


def recursion(
    c1: Any, c2: Any, c3: Any, d: Any, k: Any, energy: Any, lr: Any, kappa: Any
) -> tuple[Any, Any, Any]:
    r"""Lemma C.2: one step of $(C_1, C_2, C_3)$. The model runs the same in two numbers.

    The sign in front of $pF_1$ is minus (the text shows a plus): descent says so.
    """
    p = score(c2, c3, d, k)
    e, q = terms(p, d, k, kappa), (1 - k * p) / (d - k)
    rate = lr * c1 * energy / np.sqrt(d)
    return (
        c1 + lr * d * (e["f3"] / (k * p) - c1 * e["f1"]),
        c2 + rate * ((e["f4"] / p - e["f3"]) / k - c1 * (e["f21"] - p * e["f1"])),
        c3 + rate * ((q * e["f3"] - e["f5"]) / (k * p) - c1 * (q * e["f1"] - e["f22"])),
    )


# --------------------------------------------------------------------- lemmas on the way


def attainable_value(p: Any, d: Any, k: Any, kappa: Any) -> Any:
    r"""$C_1^* = F_3/(KpF_1)$, the best value at a given attention (Lemma C.2)."""
    e = terms(p, d, k, kappa)
    return e["f3"] / (k * p * e["f1"])


def ratio_band(p: Any, d: Any, k: Any, kappa: Any) -> tuple[Any, Any, Any]:
    r"""Lemma C.3: $Kp \le F_3/F_1 \le \sqrt{DK}\,p$, as (low, value, high)."""
    e = terms(p, d, k, kappa)
    return k * p, e["f3"] / e["f1"], np.sqrt(d * k) * p


def value_band(p: Any, d: Any, k: Any, kappa: Any) -> tuple[Any, Any]:
    r"""Lemmas C.5 and C.15: $C_1/C_1^*$ lies in
    $[0.95,\ 1 + \frac{4A}{5(A+B)}\frac{\epsilon}{Kp(Dp-1)}]$, from $t_1$ on.

    $A + B = F_3$ with $B = \frac{(1-\kappa)^2}{2\pi}\sqrt{K/(D-K)}\,p\,\epsilon$.
    """
    leak = 1 - k * p
    b = (1 - kappa) ** 2 / (2 * np.pi) * np.sqrt(k / (d - k)) * p * leak
    a = terms(p, d, k, kappa)["f3"] - b
    return 0.95, 1 + 0.8 * a / (a + b) * _over(leak, k * p * (d * p - 1))


def early_score(d: Any) -> Any:
    r"""Lemma C.13: $p \le (1 + D^{-1/4})/D$ until $t_1 = \Theta(1/\eta)$, when
    $C_1 \ge 0.95\,C_1^*$."""
    return (1 + d**-0.25) / d


def late_leak_ratio(leak: Any, d: Any, k: Any, energy: Any, lr: Any, t: Any) -> Any:
    r"""Lemma C.18: $(\frac1K - p)\sqrt{\eta K\mathcal V(T-T^*)}/(D(D-K))$, said to lie between
    two constants, $1/(2e)$ and 20 (C.34). It tends to $1/(D\sqrt{2c_\sigma})$."""
    return leak / k * np.sqrt(lr * k * energy * t) / (d * (d - k))


def hitting_time_bounds(
    x0: float, v: float, lr: float, low: float, high: float, power: float, zeta: float = 0.1
) -> tuple[float, float]:
    r"""Lemma E.10: when $\eta c_1x^q \le x_{t+1} - x_t \le \eta c_2x^q$ first reaches $v$.

    The telescoping sums of its proof, over the steps $x_0(1+\zeta)^g$ towards $v$.
    """
    stages = math.ceil(math.log(v / x0) / math.log1p(zeta))
    unit = x0 ** (1 - power) / lr
    least = sum(
        zeta * unit / (high * (1 + zeta) ** (g * (power - 1) + 1)) - (1 + zeta) ** -power
        for g in range(1, stages)
    )
    most = sum(
        zeta * unit / (low * (1 + zeta) ** ((g - 1) * (power - 1)))
        + (1 + zeta) ** power * high / low
        for g in range(1, stages + 1)
    )
    return max(least, 0.0), most


def logarithmic_growth(x0: Any, c1: Any, c2: Any, t: Any) -> tuple[Any, Any]:
    r"""Lemma E.11: bounds on $x_{t+1} = x_t + c_1e^{-c_2x_t}$,
    $\frac1{c_2}\log(c_1c_2t + e^{c_2x_0}) \le x_t \le c_1e^{-c_2x_0} + $ the same."""
    low = np.log(c1 * c2 * np.asarray(t, float) + np.exp(c2 * x0)) / c2
    return low, low + c1 * np.exp(-c2 * x0)


# --------------------------------------------------------------------------- Theorem 3.1


def curvature(kappa: Any) -> Any:
    r"""$c_\sigma = E[\sigma'^2] = (1+\kappa^2)/2$."""
    return (1 + kappa**2) / 2


def leak_law(d: Any, k: Any, lr: Any, energy: Any, t: Any, kappa: Any) -> Any:
    r"""$\epsilon = 1 - Kp \to (D-K)\sqrt{K/(2c_\sigma\eta\mathcal VT)}$, and $C_1 - 1 \to
    \epsilon$, which is Theorem 3.1(2) without one of its two powers of $D$."""
    return (d - k) * leak_rate(k, lr, energy, t, kappa)


def score_distance(leak: Any, d: Any, k: Any) -> Any:
    r"""Theorem 3.1(1): $\|S - S^*\|_F = \epsilon D/\sqrt{K(D-K)}$, at any time."""
    return leak * d / np.sqrt(k * (d - k))


def excess_law(d: Any, k: Any, lr: Any, t: Any) -> Any:
    r"""Theorem 3.1(3), made sharp: $L - L_{\rm opt} \to KD(D-K)/(4\eta T)$.

    The same for every activation and every $V^*$: with $W_V \approx (1+\epsilon)V^*$ the excess is
    $\frac12D\mathcal Vc_\sigma\epsilon^2/(D-K)$, and `leak_law` does the rest.
    """
    return _over(k * d * (d - k), 4 * lr * t)


def printed_scores(d: Any, lr: Any, energy: Any, t: Any) -> Any:
    r"""Theorem 3.1(1) as printed, up to constants: $D^{5/2}/\sqrt{\eta\mathcal VT}$."""
    return d**2.5 * np.sqrt(_over(1.0, lr * energy * t))


def printed_values(d: Any, k: Any, lr: Any, energy: Any, t: Any) -> Any:
    r"""Theorem 3.1(2) as printed, up to constants: $D^2\sqrt{K/(\eta\mathcal VT)}$."""
    return d**2 * np.sqrt(_over(k, lr * energy * t))


def printed_excess(d: Any, k: Any, lr: Any, t: Any) -> Any:
    r"""Theorem 3.1(3) as printed, up to constants: $KD^4/(\eta T)$."""
    return _over(k * d**4, lr * t)


def first_loss(d: Any, k: Any, energy: Any, kappa: Any) -> Any:
    r"""The excess loss of weights that are zero: $\frac12D\mathcal Vc_\sigma/K$."""
    return d * energy * curvature(kappa) / (2 * k)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)


def _escape_constant(ratio: float, kappa: float) -> float:
    if ratio <= 2:
        return 0.0  # uniform attention has half of its weight on the support
    low, high = -math.log(ratio), math.log(0.5)
    u = np.exp((high - low) / 2 * (_NODES + 1) + low)
    off = (1 - u) ** 2 / (ratio - 1)
    value = f3(u**2, off, kappa) / (u * f1(u**2 + off, kappa))
    # F4 with K p = u: it depends on a and a + b alone, which are p^2 and K p^2
    drive = u * f4(1.0, u**2 - 1.0, off, kappa) - value * f1(u**2, kappa)
    return float(_WEIGHTS @ (1 / ((1 - u) * value * drive)) * (high - low) / 2 * (ratio - 1)) / (
        ratio**2
    )


def escape_constant(ratio: Any, kappa: Any) -> Any:
    r"""$g(r) = \frac{r-1}{r^2}\int_{1/r}^{1/2}\frac{du}{u(1-u)\,C\,\phi}$, $r = D/K$, $u = Kp$.

    $T^*\eta\mathcal V/(D^2K) = g(D/K)$ where $C_1$ has time to follow: with $C_1 = C_1^*(u)$ all
    of Lemma C.2 is a function of $u$ and $r$, $K^2$ times its bracket is $\phi = uh_4 -
    Cc_\sigma u^2$ with $F_4 = p^2h_4$, and $c = \sqrt D\log\frac{u(r-1)}{1-u}$. It has a flat
    maximum (ReLU: 2.82 at 9) and tends to $1/(1+\kappa^2)$ for $\kappa < 1$, to 1 for $\kappa = 1$.
    """
    return np.vectorize(_escape_constant, otypes=[float])(1.0 * ratio, 1.0 * kappa)


def escape_time(d: Any, k: Any, lr: Any, energy: Any, kappa: Any) -> Any:
    r"""$T^* = g(D/K)\,D^2K/(\eta\mathcal V)$, when $Kp$ passes 1/2."""
    return escape_constant(d / k, kappa) * printed_escape_time(d, k, lr, energy)


def printed_escape_time(d: Any, k: Any, lr: Any, energy: Any) -> Any:
    r"""Theorem 3.1, Lemma C.17: $\Theta(D^2K/(\eta\mathcal V))$ (printed with $\sum\|v\|$)."""
    return _over(d**2 * k, lr * energy)


def largest_step(d: Any, k: Any, kappa: Any) -> Any:
    r"""The value matrix is stable while $\eta DF_1 < 2$: at the end $\eta < 2K/(Dc_\sigma)$."""
    return 2 * k / (d * curvature(kappa))


# ---------------------------------------------------------- groups of unequal sizes (ours)


def mixed_excess(d: Any, k: Any, other: Any, part: Any, lr: Any, t: Any) -> Any:
    r"""$L - L_{\rm opt} \to \frac1{4\eta T}\sum_iK_i(D-K_i)$, whatever the sizes $K_i$.

    Late, with $C_1 = 1 + \gamma$, the excess is the quadratic form
    $\frac12\mathcal Vc_\sigma\sum_i[(\gamma-\epsilon_i)^2/K_i + \epsilon_i^2/(D-K_i)]$, and
    descent on the logits is $\frac d{dt}\log\epsilon_i = -\frac\eta{K_i(D-K_i)}\epsilon_i
    \partial_{\epsilon_i}L$. All $\epsilon_i$ fall as $t^{-1/2}$, so
    $\epsilon_i\partial_{\epsilon_i}L = K_i(D-K_i)/(2\eta t)$, and by Euler's theorem these sum to
    $2L$.
    """
    each = (1 - part) * k * (d - k) + part * other * (d - other)
    return _over(d * each, 4 * lr * t)


def _mixed_leak(d: float, k: float, other: float, part: float) -> tuple[float, float]:
    size, weight = np.array([k, other], float), np.array([1 - part, part])
    slope, square = (d - size) / d, (size * (d - size)) ** 2 / d

    def leaks(gamma: float) -> np.ndarray:
        return (slope * gamma + np.sqrt((slope * gamma) ** 2 + 4 * square)) / 2

    low, high = 0.0, d**2
    for _ in range(200):
        gamma = (low + high) / 2
        pull = float(np.sum(weight * (gamma - leaks(gamma)) / size))
        low, high = (low, gamma) if pull > 0 else (gamma, high)
    found = leaks((low + high) / 2)
    return float(found[0]), float(found[1])


def mixed_leaks(
    d: Any, k: Any, other: Any, part: Any, lr: Any, energy: Any, t: Any, kappa: Any
) -> tuple[Any, Any]:
    r"""The leaks of both sizes: $\epsilon_i^2 - \frac{D-K_i}D\gamma\epsilon_i =
    \frac{K_i^2(D-K_i)^2}{2Dc_\sigma\eta\mathcal Vt}$ with $\sum_i(\gamma-\epsilon_i)/K_i = 0$.

    Columns that leak more than $\gamma$ are pulled down, others up: they leak more alike than
    their own `leak_law` would have it.
    """
    unit = np.sqrt(_over(1.0, 2 * curvature(kappa) * lr * energy * t))
    both = np.vectorize(_mixed_leak, otypes=[float, float])(1.0 * d, 1.0 * k, 1.0 * other, part)
    return both[0] * unit, both[1] * unit


# --------------------------------------------------------------------------- Theorem 3.2


def ood_time(d: Any, k: Any, lr: Any, energy: Any, moment: Any, eps: Any) -> Any:
    r"""Theorem 3.2: $T_\varepsilon = O(KD^6\mathcal V\xi^2/(\eta\varepsilon^2))$, so that the
    excess on other data is $O(1/\sqrt T)$. Attained by worst-case labels alone: with independent
    noise it is $O(1/T)$ like the excess loss itself."""
    return _over(k * d**6 * energy * moment**2, lr * eps**2)


def leak_rate(k: Any, lr: Any, energy: Any, t: Any, kappa: Any) -> Any:
    r"""$\epsilon/(D-K) \to \sqrt{K/(2c_\sigma\eta\mathcal VT)}$, what each other token gets."""
    return np.sqrt(_over(k, 2 * curvature(kappa) * lr * energy * t))


def average_law(k: Any, lr: Any, energy: Any, t: Any, kappa: Any, spread: Any) -> Any:
    r"""The excess on other data, averaged over independent noise, with its constant:
    $\frac K{4c_\sigma\eta\mathcal VT}\sum_{m,i}E[\sigma'(Q)^2R^2]$.

    Late, $C_1p = 1/K$ up to $\epsilon^2$, so $f^* - \mathrm{TF} = -\frac\epsilon{D-K}\sigma'(Q)R$;
    `spread` is the sum over rows and columns.
    """
    return leak_rate(k, lr, energy, t, kappa) ** 2 / 2 * spread


def worst_law(k: Any, lr: Any, energy: Any, t: Any, kappa: Any, push: Any, spread: Any) -> Any:
    r"""The excess with the worst labels of Appendix D, with its constant:
    $\sqrt{K/(2c_\sigma\eta\mathcal VT)}\,\sum_{m,i}E[\sigma'(Q)\,|R|\,1_A]$, plus `average_law`,
    which is smaller by $1/\sqrt T$."""
    first = leak_rate(k, lr, energy, t, kappa) * push
    return first + average_law(k, lr, energy, t, kappa, spread)


# ---------------------------------------------------------------------------- conditions


def conditions(cfg: Config) -> tuple[Condition, ...]:
    """Theorem 3.1 with constants 1 and poly(M, K) read as MK, and what stability really needs."""
    d, k, m = cfg.tokens, cfg.group, cfg.outputs
    return (
        Condition("tokens", d, ">=", m * k, "D ≥ poly(M, K)"),
        Condition("step size", cfg.lr, "<=", d**-2.5 / m, "η ≤ M⁻¹ D^-5/2"),
        Condition("sparse", k, "<=", d - 1, "K < D"),
        Condition(
            "stability", cfg.lr, "<=", largest_step(d, k, cfg.kappa), "η D F₁ < 2 at the end"
        ),
    )


SAYS = {
    "energy": "expected energy of the teacher, the sum of the squares of V*",
    "t_star": "T* = g(D/K) D²K/(η energy), when K p passes 1/2",
    "leak": "1 - K p after T steps: (D-K) √(K/(2c η energy T))",
    "excess_loss": "excess loss after T steps: K D (D-K)/(4ηT), Theorem 3.1(3) made sharp",
    "printed_excess_loss": "the same as printed, K D⁴/(ηT), up to constants",
    "sgd_floor": "excess loss that noise keeps up in SGD, at the end of training",
    "largest_step": "the largest stable step size, 2K/(D c)",
    "first_weight": "K/D, the weight of a key in its own group before training, over the teacher's",
}


def expected_energy(cfg: Any) -> float:
    """What the squares of V* sum up to on average."""
    entries = min(cfg.dim, cfg.outputs) if cfg.teacher == "sts" else cfg.dim * cfg.outputs
    return entries * cfg.scale**2


def of_images(cfg: convolution.Config) -> Prediction:
    """Figures 4 and 5: patches of images are neither independent nor Gaussian, so no theorem speaks
    of them."""
    k, d = cfg.pool**2, (cfg.pool * cfg.across) ** 2
    return Prediction(
        (
            Condition("tokens", d, ">=", cfg.kernels * k, "D ≥ poly(M, K)"),
            Condition("inputs", 0, ">=", 1, "the tokens are independent Gaussians: 1, else 0"),
        ),
        {"first_weight": k / d},
        SAYS,
    )


def theory(cfg: Config | convolution.Config) -> Prediction:
    """What is known about one setting, with the expected energy of the teacher. The printed bound
    says nothing where it exceeds the loss of weights that are zero."""
    if isinstance(cfg, convolution.Config):
        return of_images(cfg)
    d, k, lr, kappa, t = cfg.tokens, cfg.group, cfg.lr, cfg.kappa, cfg.steps
    energy = expected_energy(cfg)
    leak = min(1 - k / d, float(leak_law(d, k, lr, energy, t, kappa)))
    floor = noise.sgd_floor(
        cfg.teacher, d, k, lr, kappa, cfg.dim, cfg.outputs, energy, cfg.noise, cfg.batch,
        leak, 1 + leak,
    ).total  # fmt: skip
    printed = float(printed_excess(d, k, lr, t))
    return Prediction(
        conditions(cfg),
        {
            "energy": energy,
            "t_star": float(escape_time(d, k, lr, energy, kappa)),
            "leak": float(leak_law(d, k, lr, energy, t, kappa)),
            "excess_loss": float(excess_law(d, k, lr, t)),
            "printed_excess_loss": printed,
            "sgd_floor": float(floor),
            "largest_step": largest_step(d, k, kappa),
        },
        SAYS,
        vacuous=("printed_excess_loss",) if printed > first_loss(d, k, energy, kappa) else (),
    )
