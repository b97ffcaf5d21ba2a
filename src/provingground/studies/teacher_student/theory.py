r"""Conditions, theorems and lemmas as functions of plain numbers, in float64.

Arguments: `d` tokens $D$, `k` entries $K$ of a group, `lr` $\eta$, `t` steps $T$, `energy`
$\mathcal V = \sum_m\|v_m\|^2$, `kappa` the slope below zero, `p` the score on the support. Where
the paper prints $\sum_m\|v_m\|$ the dynamics have $\mathcal V$; hidden constants are set to 1.
"""

import math
from typing import Any

import numpy as np

from provingground.maths.gaussian import f1, f2, f3, f4, f5
from provingground.study import Condition, Prediction

from .model import Config


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
    two constants (1/20 and 20 as far as the print can be read). It tends to
    $1/(D\sqrt{2c_\sigma})$."""
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
    r"""$\epsilon = 1 - Kp \to (D-K)\sqrt{K/(2c_\sigma\eta\mathcal VT)}$ (derived; the paper's
    Theorem 3.1(1) has one $D$ more)."""
    return (d - k) * np.sqrt(_over(k, 2 * curvature(kappa) * lr * energy * t))


def score_distance(leak: Any, d: Any, k: Any) -> Any:
    r"""Theorem 3.1(1): $\|S - S^*\|_F = \epsilon D/\sqrt{K(D-K)}$, at any time."""
    return leak * d / np.sqrt(k * (d - k))


def excess_law(d: Any, k: Any, lr: Any, t: Any) -> Any:
    r"""Theorem 3.1(3), made sharp: $L - L_{\rm opt} \to KD(D-K)/(4\eta T)$.

    The same for every activation and every $V^*$: with $W_V \approx (1+\epsilon)V^*$ the excess is
    $\frac12D\mathcal Vc_\sigma\epsilon^2/(D-K)$, and `leak_law` does the rest.
    """
    return _over(k * d * (d - k), 4 * lr * t)


def printed_excess(d: Any, k: Any, lr: Any, t: Any) -> Any:
    r"""Theorem 3.1(3) as printed, up to constants: $KD^4/(\eta T)$."""
    return _over(k * d**4, lr * t)


def escape_time(d: Any, k: Any, lr: Any, energy: Any) -> Any:
    r"""$T^* = \Theta(D^2K/(\eta\mathcal V))$, when $Kp$ passes 1/2 (printed with $\sum\|v\|$)."""
    return _over(d**2 * k, lr * energy)


def largest_step(d: Any, k: Any, kappa: Any) -> Any:
    r"""The value matrix is stable while $\eta DF_1 < 2$: at the end $\eta < 2K/(Dc_\sigma)$."""
    return 2 * k / (d * curvature(kappa))


def sgd_floor(
    leak: Any, d: Any, k: Any, lr: Any, kappa: Any, weights: Any, noise: Any, batch: Any
) -> Any:
    r"""What label noise adds to the excess: $Md\,H\eta\sigma_\xi^2/(2N(2-\eta H))$, $H = DF_1$.

    Each of the `weights` $= Md$ entries of $W_V$ is a random walk in a parabola of curvature $H$.
    """
    h = d * f1((1 - leak) ** 2 / k + leak**2 / (d - k), kappa)
    return weights * h * lr * noise**2 / (2 * batch * (2 - lr * h))


# --------------------------------------------------------------------------- Theorem 3.2


def ood_time(d: Any, k: Any, lr: Any, energy: Any, moment: Any, eps: Any) -> Any:
    r"""Theorem 3.2: $T_\varepsilon = O(KD^6\mathcal V\xi^2/(\eta\varepsilon^2))$, so that the
    excess on other data is $O(1/\sqrt T)$. Attained by worst-case labels alone: with independent
    noise it is $O(1/T)$ like the excess loss itself."""
    return _over(k * d**6 * energy * moment**2, lr * eps**2)


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
    "t_star": "T* = D²K/(η energy), about when K p passes 1/2",
    "leak": "1 - K p after T steps: (D-K) √(K/(2c η energy T))",
    "excess_loss": "excess loss after T steps: K D (D-K)/(4ηT), Theorem 3.1(3) made sharp",
    "printed_excess_loss": "the same as printed, K D⁴/(ηT), up to constants",
    "sgd_floor": "excess loss that label noise keeps up in SGD",
    "largest_step": "the largest stable step size, 2K/(D c)",
}


def theory(cfg: Config) -> Prediction:
    """What is known about one setting, with the expected energy of the teacher."""
    d, k, lr, kappa, t = cfg.tokens, cfg.group, cfg.lr, cfg.kappa, cfg.steps
    entries = min(cfg.dim, cfg.outputs) if cfg.teacher == "sts" else cfg.dim * cfg.outputs
    energy = entries * cfg.scale**2
    weights = cfg.dim * cfg.outputs
    return Prediction(
        conditions(cfg),
        {
            "energy": energy,
            "t_star": escape_time(d, k, lr, energy),
            "leak": leak_law(d, k, lr, energy, t, kappa),
            "excess_loss": excess_law(d, k, lr, t),
            "printed_excess_loss": printed_excess(d, k, lr, t),
            "sgd_floor": sgd_floor(0.0, d, k, lr, kappa, weights, cfg.noise, cfg.batch),
            "largest_step": largest_step(d, k, kappa),
        },
        SAYS,
    )
