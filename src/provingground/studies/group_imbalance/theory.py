"""The functions of the mixture that Theorem 2 is made of, in float64.

Hidden constants of the paper's $O, \\Omega, \\Theta$ are set to 1, so the values are good for
trends alone: $\\mathcal B$ is about $10^{16}$ where a few thousand samples are enough.
`theory(cfg)` takes a teacher with orthogonal columns, claims take the realised one.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from provingground.study import Condition, Prediction

from . import convnet, images
from .data import Config

Floats = NDArray[np.float64]
EPS_0 = 0.25  # the paper's epsilon_0, at its largest
STEEP = 100.0  # from where a sigmoid is taken for a narrow step

# ------------------------------------------------------------------------- Definition C.2.2


def spreads(u: ArrayLike, sigma: float) -> tuple[Floats, Floats]:
    r"""$\beta_0 - \alpha_0^2$ and $\beta_2 - \alpha_2^2/(u^2+1)$ for each $u$.

    $\alpha_q = E[\phi'(\sigma z)z^q]$, $\beta_q = E[\phi'(\sigma z)^2z^q]$, $z \sim N(u, 1)$. Both
    are variances (of $\phi'$, and of $\phi'$ under the density $\propto z^2$), and
    $\phi' = \frac14(1 - \tanh^2\frac{\sigma z}2)$, so nothing cancels. By the trapezoidal rule,
    which converges geometrically; Gauss-Hermite fails for $\sigma$ over 10.
    """
    u = np.atleast_1d(np.asarray(u, float))
    if sigma > STEEP:
        return _steep(u, sigma)
    t = np.linspace(-12, 12, 2 * math.ceil(12 / min(0.05, 0.3 / max(sigma, 1e-12))) + 1)
    weight = np.exp(-(t**2) / 2)
    weight /= weight.sum()
    z = u[:, None] + t
    bend = np.tanh(sigma * z / 2) ** 2 / 4
    plain = (bend - (bend @ weight)[:, None]) ** 2 @ weight
    square = z**2 @ weight
    level = (z**2 * bend) @ weight / square
    return plain, (z**2 * (bend - level[:, None]) ** 2) @ weight


def _steep(u: Floats, sigma: float) -> tuple[Floats, Floats]:
    r"""The same where $\phi'(\sigma z)$ is a narrow peak: nothing cancels there either."""
    s = np.linspace(-80, 80, 3201)
    z, slope = s / sigma, (1 - np.tanh(s / 2) ** 2) / 4
    density = np.exp(-((z - u[:, None]) ** 2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    a0, b0 = density @ slope, density @ slope**2
    a2, b2 = density @ (slope * z**2), density @ (slope**2 * z**2)
    return b0 - a0**2, b2 - a2**2 / (u**2 + 1)


def rho(u: ArrayLike, sigma: float) -> float:
    r"""(C.6): $\min_{i\neq j}\{(u_j^2+1)(\beta_0(u_i) - \alpha_0(u_i)^2),\ \beta_2(u_i) -
    \frac{\alpha_2(u_i)^2}{u_i^2+1}\}$. A single $u$ is its own partner."""
    u = np.atleast_1d(np.asarray(u, float))
    plain, squared = spreads(u, sigma)
    pairs = (u[None, :] ** 2 + 1) * plain[:, None]
    if len(u) > 1:
        pairs = pairs[~np.eye(len(u), dtype=bool)]
    return float(min(pairs.min(), squared.min()))


def rho_small(u: ArrayLike) -> float:
    r"""$\lim\rho(\mathbf u, \sigma)/\sigma^4$ as $\sigma \to 0$, with the moments $m_k = E[z^k]$:
    $\frac1{256}\min\{(u_j^2+1)(m_4 - m_2^2),\ m_6 - m_4^2/m_2\}$. (C.37) prints another order,
    $\sigma^2$, for the second."""
    u = np.atleast_1d(np.asarray(u, float))
    m2, m4 = 1 + u**2, u**4 + 6 * u**2 + 3
    m6 = u**6 + 15 * u**4 + 45 * u**2 + 15
    pairs = m2[None, :] * (m4 - m2**2)[:, None]
    if len(u) > 1:
        pairs = pairs[~np.eye(len(u), dtype=bool)]
    return float(min(pairs.min(), (m6 - m4**2 / m2).min())) / 256


def rho_shifted(u: ArrayLike) -> float:
    r"""$\lim\rho(\mathbf u/\sigma, \sigma)$ as $\sigma \to 0$:
    $\min_{i\neq j}\{u_j^2\phi''(u_i)^2, u_i^2\phi''(u_i)^2\}$. (C.18) and (C.21) print
    $\phi'(u_i)^2$ and $\infty$; what is needed of it, that it is positive, stays."""
    u = np.atleast_1d(np.asarray(u, float))
    bend = (np.tanh(u / 2) * (1 - np.tanh(u / 2) ** 2) / 4) ** 2
    pairs = u[None, :] ** 2 * bend[:, None]
    if len(u) > 1:
        pairs = pairs[~np.eye(len(u), dtype=bool)]
    return float(min(pairs.min(), (u**2 * bend).min()))


def mean_minorant(u: ArrayLike, sigma: float, points: int = 17) -> float:
    r"""$\mathcal L_m$ (C.24) along a ray: the least $\rho(s\mathbf u, \sigma)$ for $0 \le s \le 1$.

    It falls where the mean grows, which $\rho$ does not.
    """
    ray = np.linspace(0, 1, points)
    return min(rho(s * np.asarray(u, float), sigma) for s in ray)


def spread_minorant(m: ArrayLike, sigma: float, turn: float = 1.0, points: int = 17) -> float:
    r"""$\mathcal L_s$ (C.31) at fixed $m = \sigma\mathbf u$: $\frac\sigma\zeta\min\rho(m/s, s)$
    over $s$ from $\sigma$ to $\zeta$ below the turn $\zeta$, and the least $\rho$ from $\zeta$ to
    $\sigma$ above it."""
    s = np.geomspace(sigma, turn, points)
    least = min(rho(np.asarray(m, float) / v, v) for v in s)
    return least * min(sigma / turn, 1.0)


# ---------------------------------------------------------- mixtures and teachers as numbers


class Groups(NamedTuple):
    r"""What the closed forms need of $\Psi$: fractions, means, and the smallest and largest
    standard deviation of each group, $s_l = \|\Sigma_l^{-1}\|^{-1/2}$ and $\|\Sigma_l^{1/2}\|$."""

    fractions: Floats
    means: Floats
    least: Floats
    most: Floats

    @property
    def sizes(self) -> Floats:
        r"""$\|\mu_l\| + \|\Sigma_l^{1/2}\|$."""
        return np.linalg.norm(self.means, axis=1) + self.most

    @property
    def tau(self) -> float:
        r"""$\tau = \sigma_{\max}/\sigma_{\min}$."""
        return float(self.most.max() / self.least.min())


def groups_of(cfg: Config) -> Groups:
    sigma = np.sqrt([cfg.var_1, cfg.var_2])
    return Groups(
        np.array([1 - cfg.fraction, cfg.fraction]),
        np.outer([cfg.mean_1, cfg.mean_2], np.ones(cfg.dim)),
        sigma,
        sigma * math.sqrt(1 + cfg.stretch * (cfg.dim - 1)),
    )


def moment_bound(groups: Groups, k: int) -> float:
    r"""$M_k = \sum_l\lambda_l(\|\mu_l\| + \|\Sigma_l^{1/2}\|)^k$."""
    return float(groups.fractions @ groups.sizes**k)


def d_function(groups: Groups, m: int) -> float:
    r"""(C.8): $D_m = \sum_l\lambda_l(\|\mu_l\|/s_l + 1)^m$."""
    return float(groups.fractions @ (np.linalg.norm(groups.means, axis=1) / groups.least + 1) ** m)


class Teacher(NamedTuple):
    r"""What they need of $W^*$: its singular values, and $W^{*\top}\mu_l$ for each group."""

    values: Floats
    seen: Floats

    @property
    def kappa(self) -> float:
        r"""$\kappa = \delta_1/\delta_K$."""
        return float(self.values[0] / self.values[-1])

    @property
    def eta(self) -> float:
        r"""$\eta = \prod_i\delta_i/\delta_K$ (no step size)."""
        return float(np.prod(self.values / self.values[-1]))


def teacher_of(w: ArrayLike, groups: Groups) -> Teacher:
    w = np.asarray(w, float)
    return Teacher(np.linalg.svd(w, compute_uv=False), groups.means @ w)


def plain_teacher(cfg: Config, groups: Groups) -> Teacher:
    """Orthogonal columns along axes, as long as those of the Config are on average."""
    entry = {"gaussian": cfg.dim**0.5, "uniform": (cfg.dim / 3) ** 0.5, "orthogonal": 1.0}
    norm = cfg.strength * entry[cfg.teacher]
    seen = norm * np.outer(groups.means[:, 0], np.ones(cfg.width))
    return Teacher(np.full(cfg.width, norm), seen)


# ----------------------------------------------------- closed forms of Theorem 2, (C.93) to (C.99)


class ClosedForms(NamedTuple):
    """What Theorem 2 depends on; all hidden constants are 1."""

    curvature: float  # R, the sum of lambda_l s_l^2 rho_l
    gamma: float
    complexity: float  # B
    rate: float  # q
    error: float  # E_w
    risk: float  # E
    group_risks: Floats  # E_l
    needed: float  # B as in (C.100), without powers of tau, kappa, eta and K
    tau: float

    @property
    def table(self) -> tuple[Any, ...]:
        r"""What Table 4.1 is about: $\mathcal B$ of (C.100), $q$ without $\eta\tau^K\kappa^2$,
        $\mathcal E_w$, $\mathcal E$, $\mathcal E_l$; then $R$ and $\tau$."""
        rate = self.risk**-1
        return self.needed, rate, self.error, self.risk, self.group_risks, self.curvature, self.tau


def closed_forms(groups: Groups, teacher: Teacher, along_mean: bool = False) -> ClosedForms:
    r"""With $\rho_l = \rho(W^{*\top}\mu_l/(\delta_Ks_l), \delta_Ks_l)$ (or $\mathcal L_m$ there, if
    only means vary), $R = \sum_l\lambda_ls_l^2\rho_l$ and $c_W = \eta\tau^K\kappa^2$:

    $\Gamma = R/(c_W\sigma_{\max}^2)$,
    $\mathcal B = (\sigma_{\max}\delta_1)^2\tau^{12}(R/(\eta\sigma_{\max}^2))^{-2}D_{12}$,
    $q = R/(c_WM_2)$, $\mathcal E_w = \sqrt{M_2}/R$, $\mathcal E = M_2/R$,
    $\mathcal E_l = \sqrt{M_2}(\|\mu_l\| + \|\Sigma_l^{1/2}\|)/R$.
    """
    function = mean_minorant if along_mean else rho
    smallest, k = teacher.values[-1], len(teacher.values)
    of_group = [
        function(seen / (smallest * s), smallest * s)
        for seen, s in zip(teacher.seen, groups.least, strict=True)
    ]
    r = float(groups.fractions @ (groups.least**2 * np.array(of_group)))
    m2, top = moment_bound(groups, 2), float(groups.most.max())
    c_w = teacher.eta * groups.tau**k * teacher.kappa**2
    share = r / (teacher.eta * top**2)
    d6, d12 = d_function(groups, 6), d_function(groups, 12)
    tails = math.sqrt(moment_bound(groups, 4) * moment_bound(groups, 8))
    return ClosedForms(
        curvature=r,
        gamma=r / (c_w * top**2),
        complexity=(top * teacher.values[0]) ** 2 * groups.tau**12 * share**-2 * d12,
        rate=r / (c_w * m2),
        error=math.sqrt(m2) / r,
        risk=m2 / r,
        group_risks=math.sqrt(m2) * groups.sizes / r,
        needed=teacher.values[0] ** 2 * tails * d6 / r**2,
        tau=groups.tau,
    )


def hessian_bound(groups: Groups, teacher: Teacher) -> float:
    r"""Lemma C.4.4: $\lambda_{\min}(\nabla^2\bar f(W^*)) \ge \frac4{K^2}R/(\eta\tau^K\kappa^2)$."""
    forms, k = closed_forms(groups, teacher), len(teacher.values)
    return 4 / k**2 * forms.curvature / (teacher.eta * groups.tau**k * teacher.kappa**2)


def bound_factor(groups: Groups, teacher: Teacher, dim: int, samples: int) -> float:
    r"""What (4.10) to (4.12) multiply $\mathcal E_w, \mathcal E, \mathcal E_l$ by, noiseless:
    $\eta\tau^K\kappa^2K^{5/2}\sqrt{d\log n/n}$, the polynomial as in (C.84)."""
    k = len(teacher.values)
    c_w = teacher.eta * groups.tau**k * teacher.kappa**2
    return c_w * k**2.5 * math.sqrt(dim * math.log(samples) / samples)


def convex_radius(groups: Groups, teacher: Teacher) -> float:
    r"""(C.81): $r = \epsilon_0\frac R{c_W}K^{-7/2}(M_4M_8)^{-1/4}$."""
    forms, k = closed_forms(groups, teacher), len(teacher.values)
    c_w = teacher.eta * groups.tau**k * teacher.kappa**2
    tails = (moment_bound(groups, 4) * moment_bound(groups, 8)) ** 0.25
    return EPS_0 * forms.curvature / c_w * k**-3.5 / tails


# ------------------------------------------------------ local theory, exact (not in the paper)


def average_excess(dim: Any, width: Any, samples: Any) -> Any:
    r"""$\bar f(\hat W_n) - \bar f(W^*) \to dK/(2n)$, for every mixture: the model is well specified
    and $\hat W_n$ is its maximum-likelihood estimate."""
    return dim * width / (2 * samples)


def spread_after(values: ArrayLike, lr: float, steps: int, eps: float) -> float:
    r"""$V_W$ after $T$ steps from starts at distance $\epsilon$:
    $\epsilon\big(\frac1{dK}\sum_i(1-\eta_0\lambda_i)^{2T}\big)^{1/2}$."""
    shrink = (1 - lr * np.asarray(values, float)) ** (2 * steps)
    return float(eps * np.sqrt(shrink.mean()))


# ----------------------------------------------------------------------------- predictions


def conditions(cfg: Config, groups: Groups, teacher: Teacher) -> tuple[Condition, ...]:
    """What Theorem 2 and Lemma C.3.3 ask for, both sides."""
    forms, n, k = closed_forms(groups, teacher), cfg.samples, cfg.width
    weight = cfg.dim * math.log(cfg.dim) ** 2
    polynomial = EPS_0**-2 * teacher.kappa**12 * k**14
    tensor = teacher.kappa**8 * k**4 * groups.tau**12 * d_function(groups, 6)
    return (
        Condition("(4.7) samples", n, ">=", polynomial * forms.complexity * weight,
                  "n ≥ ε₀⁻² κ¹² K¹⁴ B d log² d"),
        Condition("(C.86) samples", n, ">=", tensor * weight, "n ≥ κ⁸ K⁴ τ¹² D₆ d log² d"),
        Condition("step size", cfg.lr, "<=", 1.0, "η₀ M₂ = O(1)"),
        Condition("neurons", k, "<=", cfg.dim, "K ≤ d, else δ_K = 0"),
        Condition("spread of the groups", groups.tau, "<=", 10.0, "τ = Θ(1)"),
    )  # fmt: skip


SAYS = {
    "m_2": "M₂ = Σ λ_l (‖μ_l‖ + ‖Σ_l^½‖)²",
    "d_12": "D₁₂ of (C.8): Σ λ_l (‖μ_l‖/s_l + 1)¹²",
    "curvature": "R = Σ λ_l s_l² ρ_l, from which the rest is made",
    "gamma": "Γ of Theorem 2, hidden constants 1",
    "complexity": "B of Theorem 2, the factor of its samples, hidden constants 1",
    "rate": "q of Theorem 2, in v = 1 - q/K²",
    "v": "convergence rate of Theorem 2",
    "error": "E_w of Theorem 2, distance to the teacher, hidden constants 1",
    "risk": "average risk of Theorem 2, hidden constants 1",
    "group_risk_1": "risk of group 1 in Theorem 2, hidden constants 1",
    "group_risk_2": "risk of group 2 in Theorem 2, hidden constants 1",
    "convex_radius": "r of (C.81), the radius around W* in which the loss is convex",
    "images_of_minority": "training images of the minority, without copies",
    "average_excess": "excess risk of the minimiser for large n, dK/(2n), exact",
}


def of_images(cfg: images.Config) -> Prediction:
    """The theorems speak of one hidden layer, and of no images."""
    layers = convnet.depth(cfg.form)
    one = Condition("hidden layers", layers, "<=", 1, "the theorems have one hidden layer")
    return Prediction((one,), {"images_of_minority": round(cfg.fraction * cfg.samples)}, SAYS)


def theory(cfg: Config | images.Config) -> Prediction:
    """What Theorem 2 (and the local theory) say about one setting."""
    if isinstance(cfg, images.Config):
        return of_images(cfg)
    groups = groups_of(cfg)
    teacher = plain_teacher(cfg, groups)
    forms = closed_forms(groups, teacher)
    return Prediction(
        conditions(cfg, groups, teacher),
        {
            "m_2": moment_bound(groups, 2),
            "d_12": d_function(groups, 12),
            "curvature": forms.curvature,
            "gamma": forms.gamma,
            "complexity": forms.complexity,
            "rate": forms.rate,
            "v": 1 - forms.rate / cfg.width**2,
            "error": forms.error,
            "risk": forms.risk,
            **{f"group_risk_{i + 1}": float(e) for i, e in enumerate(forms.group_risks)},
            "convex_radius": convex_radius(groups, teacher),
            "average_excess": average_excess(cfg.dim, cfg.width, cfg.samples),
        },
        SAYS,
    )
