"""Conditions, theorems and exact expectations as functions of plain numbers, in float64.

Groups are given as arrays of degrees $d_l$ and sizes $N_l$, in any order. Constants that the
chapter hides ($c_1$, $c_2$, $C^*$, those of $O$ and $\\Theta$) are 1 unless they are arguments.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bernoulli, gammaln, logsumexp, xlogy
from scipy.stats import binom

from provingground.study import Condition, Prediction

from .model import Config

Floats = NDArray[np.float64]

EPS0 = 0.01  # the largest epsilon_0 of Theorem 5.3.1
TERMS = 2000  # of a power series


def _over(a: Any, b: Any) -> Any:
    """a / b, and infinity where b is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(b) == 0, np.inf, np.divide(a, b))


# --------------------------------------------------------- sampling: (5.8) to (5.10), appendix D.1


def psi(degrees: Any, sizes: Any) -> Floats:
    r"""(5.9): $\psi_l = \sqrt{d_Ld_l}N_l / \sum_i d_iN_i$, with $d_L$ the largest degree."""
    d, n = np.asarray(degrees, float), np.asarray(sizes, float)
    return np.sqrt(d.max() * d) * n / np.sum(d * n)


def largest_scale(degrees: Any, sizes: Any, c1: float = 1.0) -> Floats:
    r"""(5.8): $p_l^* \leq c_1 / (L\psi_l)$."""
    load = psi(degrees, sizes)
    return _over(c1, len(load) * load)


def least_fraction(degrees: Any, sizes: Any, p_star: Any, poly: float, c1: float = 1.0) -> Floats:
    r"""(5.10): $S_l/N_l \geq (1 + c_1\mathrm{poly}(\epsilon)/(Lp_l^*\psi_l))^{-1}$."""
    load = psi(degrees, sizes)
    return 1 / (1 + _over(c1 * poly, len(load) * np.asarray(p_star, float) * load))


def reached_poly(degrees: Any, sizes: Any, p_star: Any, kept: Any, c1: float = 1.0) -> float:
    r"""The smallest $\mathrm{poly}(\epsilon)$ for which fractions `kept` satisfy (5.10)."""
    load, f = psi(degrees, sizes), np.asarray(kept, float)
    return float(np.max((_over(1, f) - 1) * len(load) * np.asarray(p_star, float) * load / c1))


def largest_scale_symmetric(degrees: Any, sizes: Any, c2: float = 1.0) -> Floats:
    r"""(D.16): $p_l^* \leq c_2 / (L\psi_l)^2$."""
    load = psi(degrees, sizes)
    return _over(c2, (len(load) * load) ** 2)


def least_fraction_symmetric(
    degrees: Any, sizes: Any, p_star: Any, poly: float, c2: float = 1.0
) -> Floats:
    r"""(D.17): $S_l/N_l \geq (1 + c_2\mathrm{poly}(\epsilon)/(L\sqrt{p_l^*}\psi_l))^{-2}$."""
    load = psi(degrees, sizes)
    return (1 + _over(c2 * poly, len(load) * np.sqrt(np.asarray(p_star, float)) * load)) ** -2.0


def reached_poly_symmetric(
    degrees: Any, sizes: Any, p_star: Any, kept: Any, c2: float = 1.0
) -> float:
    r"""The smallest $\mathrm{poly}(\epsilon)$ for which fractions `kept` satisfy (D.17)."""
    load, f = psi(degrees, sizes), np.asarray(kept, float)
    root = np.sqrt(np.asarray(p_star, float))
    return float(np.max((_over(1, np.sqrt(f)) - 1) * len(load) * root * load / c2))


def row_mass(degrees: Any, sizes: Any) -> Floats:
    r"""(D.7): $\Psi(n, i) = \sqrt{d_n/d_i}\,d_iN_i/\sum_l d_lN_l$, about the sum of a row of group
    n over the columns of group i (loops ignored)."""
    d, n = np.asarray(degrees, float), np.asarray(sizes, float)
    return np.sqrt(d[:, None] / d) * d * n / np.sum(d * n)


def row_mass_with_loops(degrees: Any, sizes: Any) -> Floats:
    r"""The same with loops: $d_n\pi_i/\sqrt{(d_n+1)(d_i+1)} + 1[n=i]/(d_n+1)$, where
    $\pi_i = d_iN_i/\sum_l d_lN_l$ is the chance that an edge ends in group i."""
    d, n = np.asarray(degrees, float), np.asarray(sizes, float)
    ends = d * n / np.sum(d * n)
    return d[:, None] * ends / np.sqrt((d[:, None] + 1) * (d + 1)) + np.diag(1 / (d + 1))


def row_error(p_star: Any, kept: Any, mass: Any) -> Any:
    r"""$\mathbb{E}\|a_n^s - a_n^*\|_1 = 2\sum_l(1-f_l)p_l^*\sum_{j \in l}A_{nj}$, exactly; `mass`
    has the sums of a row over the groups along its last axis."""
    return 2 * np.asarray(mass, float) @ ((1 - np.asarray(kept, float)) * np.asarray(p_star, float))


def largest_row(degrees: Any, sizes: Any, p_star: Any, kept: Any, nodes: int | float) -> float:
    r"""$\mathbb{E}\max_n\|a_n^s - a_n^*\|_1$ of asymmetric sampling, about, for two groups.

    A row of group u has $d_u$ neighbours at ends of edges, each dropped with its chance; the
    numbers dropped are binomial, rows are taken as independent. Dropped entries count whole, the
    others $1/f - 1$ times. It does not vanish as $f \to 1$, while some node is dropped.
    """
    d, n, p, f = (np.asarray(v, float) for v in (degrees, sizes, p_star, kept))
    ends, values, masses = d * n / np.sum(d * n), [], []
    share = n / n.sum()
    for u in range(2):
        entry = p / np.sqrt((d[u] + 1) * (d + 1))
        count = np.arange(int(d[u]) + 1)
        chance = [binom.pmf(count, int(d[u]), ends[i] * (1 - f[i])) for i in range(2)]
        rest = np.sum(entry * (1 / f - 1) * d[u] * ends * f)
        loop = p[u] / (d[u] + 1)
        for own, weight in ((loop, 1 - f[u]), (loop * (1 / f[u] - 1), f[u])):
            found = entry[0] * count[:, None] + entry[1] * count[None, :] + own + rest
            values.append(found.ravel())
            masses.append(
                np.stack([(weight * np.outer(*chance)).ravel() * (i == u) for i in (0, 1)])
            )
    order = np.argsort(np.concatenate(values))
    below = np.minimum(np.cumsum(np.concatenate(masses, axis=1)[:, order], axis=1), 1)
    largest = np.prod(below ** (share * nodes)[:, None], axis=0)
    return float(np.sum(np.diff(largest, prepend=0) * np.concatenate(values)[order]))


def aggregation_noise(kept: Any) -> Any:
    r"""$\mathbb{E}\|(A^s-A^*)X\|^2 / \mathbb{E}\|A^*X\|^2 = (1-f)/f$ for i.i.d. features of mean
    zero and equal fractions f: it knows neither degrees nor scales.

    For other fractions it is $\sum_jw_j(1-f_j)/f_j/\sum_jw_j$, $w_j = (p_j^*)^2\|A_{:,j}\|^2$.
    """
    return _over(1 - np.asarray(kept, float), kept)


def column_norms2(degrees: Any, sizes: Any) -> Floats:
    r"""$\|A_{:,j}\|^2$ of a node of each group, about: $\frac{d_j}{d_j+1}\sum_i\frac{\pi_i}{d_i+1}
    + (d_j+1)^{-2}$. It falls with $d_j$ between two groups, whatever their sizes."""
    d, n = np.asarray(degrees, float), np.asarray(sizes, float)
    ends = d * n / np.sum(d * n)
    return d / (d + 1) * np.sum(ends / (d + 1)) + 1 / (d + 1) ** 2


def importance_ratio(degrees: Any, sizes: Any) -> float:
    """How often FastGCN draws a node of the first group for one of the second."""
    norms = column_norms2(degrees, sizes)
    return float(norms[0] / norms[1])


def sampling_noise(degrees: Any, sizes: Any, p_star: Any, kept: Any) -> float:
    r"""The noise of aggregated features over their signal for unequal fractions:
    $\sum_lw_l(1-f_l)/f_l/\sum_lw_l$, $w_l = N_lp_l^{*2}\|A_{:,l}\|^2$ by `column_norms2`."""
    p, n = np.asarray(p_star, float), np.asarray(sizes, float)
    weight = n * p**2 * column_norms2(degrees, sizes)
    return float(np.sum(weight * aggregation_noise(kept)) / np.sum(weight))


def sampling_noise_symmetric(degrees: Any, sizes: Any, p_star: Any, kept: Any) -> float:
    r"""The same for symmetric samples: $2 - 2\sqrt{f_uf_k}$ off the diagonal, where both nodes are
    needed, $(1-f)/f$ on it, weighted by the squares of the entries of $A^*$."""
    d, n, p, f = (np.asarray(v, float) for v in (degrees, sizes, p_star, kept))
    ends = d * n / np.sum(d * n)
    pairs = np.outer(n * p * d / (d + 1), p * ends / (d + 1))
    loops = n * (p / (d + 1)) ** 2
    apart = np.sum(pairs * (2 - 2 * symmetric_mean(f[:, None], f)))
    return float((apart + np.sum(loops * aggregation_noise(f))) / (np.sum(pairs) + np.sum(loops)))


def symmetric_mean(kept_row: Any, kept_column: Any) -> Any:
    r"""$\mathbb{E}A^s_{uk} / A^*_{uk} = \sqrt{f_uf_k}$ off the diagonal (and 1 on it): symmetric
    sampling is biased. Exact for different groups, else up to $O(1/N_l)$."""
    return np.sqrt(np.asarray(kept_row, float) * np.asarray(kept_column, float))


# ---------------------------------------------------------------- function complexity, (5.2), (5.3)


class Series(NamedTuple):
    """Logarithms of the absolute coefficients of a power series, and its radius of convergence."""

    log_coefficients: Floats
    radius: int | float


def _series() -> dict[str, Series]:
    i = np.arange(TERMS)
    entire, even = -gammaln(i + 1), i % 2 == 0
    # tanh has 2^2k (2^2k - 1) B_2k / (2k)! at z^(2k-1), soon 2 (2/pi)^2k
    tanh = np.where(even, -np.inf, math.log(2) + (i + 1) * math.log(2 / math.pi))
    k = np.arange(1, 30)
    known = 4.0**k * (4.0**k - 1) * np.abs(bernoulli(58)[2 * k])
    tanh[1:59:2] = np.log(known) - gammaln(2 * k + 1)
    return {
        "exp": Series(entire, math.inf),
        "sin": Series(np.where(even, -np.inf, entire), math.inf),
        "cos": Series(np.where(even, entire, -np.inf), math.inf),
        "tanh": Series(tanh, math.pi / 2),
    }


SERIES = _series()


def _summed(series: Series, log_terms: Floats) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(logsumexp(series.log_coefficients + log_terms)))


def _too_far(series: Series, radius: int | float) -> bool:
    return radius >= series.radius or radius > TERMS / 4  # where the terms kept do not suffice


def sample_norm(name: str, radius: int | float, c: float = 1.0) -> float:
    r"""(5.3): $\mathcal{C}_s(\phi, R) = C^*\sum_i(i+1)^{1.75}R^i|c_i|$."""
    series, i = SERIES[name], np.arange(TERMS)
    if _too_far(series, radius):
        return math.inf
    return c * _summed(series, 1.75 * np.log(i + 1) + xlogy(i, radius))


def model_norm(name: str, radius: int | float, eps: float, c: float = 1.0) -> float:
    r"""(5.2): $\mathcal{C}_\epsilon(\phi, R) = \sum_i((C^*R)^i +
    (\sqrt{\log(1/\epsilon)/i}\,C^*R)^i)|c_i|$, the second term 1 at i = 0."""
    series, i, reach = SERIES[name], np.arange(TERMS), c * radius
    if _too_far(series, reach):
        return math.inf
    spread = xlogy(i, math.log(1 / eps) / np.maximum(i, 1)) / 2
    return _summed(series, np.logaddexp(xlogy(i, reach), spread + xlogy(i, reach)))


# ----------------------------------------------------------------- Theorem 5.3.1 and its parameters


class Parameters(NamedTuple):
    """Tables 5.1 and D.2. `lambda_w` follows from `tau_w_prime` (see `table`)."""

    lambda_v: float
    lambda_w: float
    sigma_v: float
    sigma_w: float
    c: float
    c_prime: float
    c_second: float
    c_0: float
    tau_v_prime: float
    tau_w_prime: float
    tau_v: float
    tau_w: float


def table(
    m1: int | float,
    m2: int | float,
    norm_inf: int | float,
    eps0: float = EPS0,
    eps: float = EPS0,
    p1: int = 10,
    p2: int = 10,
    outputs: int = 2,
    inner: tuple[str, ...] = ("tanh", "sin"),
    outer: str = "cos",
) -> Parameters:
    r"""Tables 5.1 and D.2. $\lambda_w = 2/\tau_w'^4 = 2\epsilon_0m_1^{2.98}/C_0^4$, while Table 5.1
    prints the exponent 2.998."""
    root = math.sqrt(norm_inf**2 + 1)
    c = max(model_norm(f, norm_inf, eps) for f in inner) * root
    c_prime = 10 * c * math.sqrt(p2)
    c_second = model_norm(outer, c_prime, eps) * root
    c_0 = p1**2 * p2 * outputs**2 * c * c_second
    tau_v = m1**0.495 / (math.sqrt(eps0) * math.sqrt(m2))
    tau_w = c_0 / (eps0**0.25 * m1**0.745)
    return Parameters(
        2 / tau_v**2, 2 * (1 / tau_w) ** 4, m2**-0.51, m1**-0.99, c, c_prime, c_second, c_0,
        tau_v, tau_w, m1**0.499 / math.sqrt(m2), m1**-0.74,
    )  # fmt: skip


def labels_needed(
    norm_inf: int | float,
    max_degree: int | float,
    nodes: int | float,
    m: int | float,
    eps0: float = EPS0,
    eps: float = EPS0,
    p1: int = 10,
    p2: int = 10,
    outputs: int = 2,
    inner: tuple[str, ...] = ("tanh", "sin"),
    outer: str = "cos",
) -> float:
    r"""(5.18), with $O(1)$ as 1: $|\Omega| \geq \epsilon_0^{-2}\|A^*\|_\infty^8K^6(1 +
    p_1^4p_2^5\,\mathcal{C}_\epsilon(\Phi, \sqrt{p_2}\,\mathcal{C}_\epsilon(\phi, 1))\,
    \mathcal{C}_\epsilon(\phi, 1)(\|A^*\|_\infty+1)^4)(1+\delta)^4\log N\log m$."""
    phi = max(model_norm(f, 1.0, eps) for f in inner)
    whole = model_norm(outer, math.sqrt(p2) * phi, eps)
    bracket = 1 + p1**4 * p2**5 * whole * phi * (norm_inf + 1) ** 4
    graph = norm_inf**8 * (1 + max_degree) ** 4
    return eps0**-2 * graph * outputs**6 * bracket * math.log(nodes) * max(math.log(m), 0.0)


def largest_eps(
    norm_inf: int | float,
    eps0: float = EPS0,
    p1: int = 10,
    p2: int = 10,
    outputs: int = 2,
    inner: tuple[str, ...] = ("tanh", "sin"),
    outer: str = "cos",
) -> float:
    r"""Theorem 5.3.1: $\epsilon < \epsilon_0/(Kp_1p_2^2\,\mathcal{C}_s(\Phi,
    p_2\mathcal{C}_s(\phi, 1))\,\mathcal{C}_s(\phi, 1)\|A^*\|_\infty^2)$."""
    phi = max(sample_norm(f, 1.0) for f in inner)
    whole = sample_norm(outer, p2 * phi)
    return float(_over(eps0, outputs * p1 * p2**2 * whole * phi * norm_inf**2))


def dependent_labels(max_degree: int | float, aggregations: int = 2) -> float:
    r"""At most $(1+\delta)^{2h}$ labels share a feature, if a label sees h hops far: $(1+\delta)^4$
    with the two aggregations of (D.24); (5.12) has three."""
    return (1.0 + max_degree) ** (2 * aggregations)


# ------------------------------------------------------------------------------- one setting


def sampled(cfg: Config) -> tuple[float, float]:
    """The fractions that are sampled: all, where the training has A* itself."""
    return (1.0, 1.0) if cfg.whole else (cfg.kept_1, cfg.kept_2)


def conditions(cfg: Config, poly: float = 0.1) -> tuple[Condition, ...]:
    r"""(5.8), (5.10) and (5.18), both sides, with poly(ε) = 0.1; the symmetric forms where the
    sampling is symmetric. Group sizes and degrees are those asked for."""
    first = float(np.clip(round(cfg.group_share * cfg.nodes), 0, cfg.nodes))
    sizes, degrees = (first, cfg.nodes - first), (cfg.degree_1, cfg.degree_2)
    p, kept = (cfg.p1, cfg.p2), sampled(cfg)
    if cfg.symmetric:
        caps = largest_scale_symmetric(degrees, sizes)
        floors = least_fraction_symmetric(degrees, sizes, p, poly)
        names = "(D.16)", "(D.17)"
        says = "p* ≤ c₂/(Lψ)²", "S/N ≥ (1 + c₂ poly(ε)/(L √p* ψ))⁻², with poly(ε) = 0.1"
    else:
        caps, floors = largest_scale(degrees, sizes), least_fraction(degrees, sizes, p, poly)
        names = "(5.8)", "(5.10)"
        says = "p* ≤ c₁/(Lψ)", "S/N ≥ (1 + c₁ poly(ε)/(L p* ψ))⁻¹, with poly(ε) = 0.1"
    found = []
    for i in range(2):
        found += [
            Condition(f"{names[0]} scale, group {i + 1}", p[i], "<=", float(caps[i]), says[0]),
            Condition(
                f"{names[1]} samples, group {i + 1}", kept[i], ">=", float(floors[i]), says[1]
            ),
        ]
    norm, delta = float(row_sums(cfg).max()), max(degrees)
    needed = labels_needed(
        norm, delta, cfg.nodes, cfg.width, p1=cfg.teacher, p2=cfg.teacher, outputs=cfg.outputs
    )
    return (*found, Condition("(5.18) labels", cfg.samples, ">=", needed, "hidden constants 1"))


def row_sums(cfg: Config) -> Floats:
    r"""The expected sums of rows of $A^*$, by group; the largest row exceeds them."""
    first = float(np.clip(round(cfg.group_share * cfg.nodes), 0, cfg.nodes))
    mass = row_mass_with_loops((cfg.degree_1, cfg.degree_2), (first, cfg.nodes - first))
    if cfg.symmetric:
        root = np.sqrt([cfg.p1, cfg.p2])
        return root * (mass @ root)
    return mass @ np.array([cfg.p1, cfg.p2])


SAYS = {
    "psi_1": "ψ of group 1 (5.9)",
    "psi_2": "ψ of group 2 (5.9)",
    "row_sum_1": "expected sum of a row of A*, group 1",
    "row_sum_2": "expected sum of a row of A*, group 2",
    "sampling_noise": "noise of sampled features over signal ((1-f)/f for equal fractions f)",
    "poly": "poly(ε) that the sampled fractions allow by (5.10), c₁ = 1 ((D.17) if symmetric)",
    "dependent_labels": "(1+δ)⁴: labels that may share a feature, at most",
    "largest_eps": "ε of Theorem 5.3.1, at most",
    "lambda_v": "λ_v of Tables 5.1 and D.2",
    "lambda_w": "λ_w of Tables 5.1 and D.2",
    "sigma_w": "σ_w of Tables 5.1 and D.2",
    "sigma_v": "σ_v of Tables 5.1 and D.2",
}


def theory(cfg: Config) -> Prediction:
    """Everything the chapter (and the exact expectations) say about one setting."""
    first = float(np.clip(round(cfg.group_share * cfg.nodes), 0, cfg.nodes))
    sizes, degrees = (first, cfg.nodes - first), (cfg.degree_1, cfg.degree_2)
    load, sums = psi(degrees, sizes), row_sums(cfg)
    groups = degrees, sizes, (cfg.p1, cfg.p2), sampled(cfg)
    noise = sampling_noise_symmetric if cfg.symmetric else sampling_noise
    poly = reached_poly_symmetric if cfg.symmetric else reached_poly
    chosen = table(cfg.width, cfg.width, float(sums.max()), p1=cfg.teacher, p2=cfg.teacher,
                   outputs=cfg.outputs)  # fmt: skip
    return Prediction(
        conditions(cfg),
        {
            "psi_1": float(load[0]),
            "psi_2": float(load[1]),
            "row_sum_1": float(sums[0]),
            "row_sum_2": float(sums[1]),
            "sampling_noise": noise(*groups),
            "poly": poly(*groups),
            "dependent_labels": dependent_labels(max(degrees)),
            "largest_eps": largest_eps(float(sums.max()), p1=cfg.teacher, p2=cfg.teacher),
            "lambda_v": chosen.lambda_v,
            "lambda_w": chosen.lambda_w,
            "sigma_w": chosen.sigma_w,
            "sigma_v": chosen.sigma_v,
        },
        SAYS,
    )
