"""Conditions, theorems and definitions as functions of plain numbers.

Constants hidden in the paper's $O$ and $\\Omega$ are 1 unless given. Functions of transition
matrices take arrays of numpy or of jax: `a` is $A_k$ (K, m, m), `task` the maps $f_k$ (K, m).
"""

import math
from typing import Any

import numpy as np

from provingground.study import Condition, Prediction

from .deep import DeepConfig
from .model import Config

# -------------------------------------------------------- what the examples are (7.3.2)


def k_step(a: Any) -> Any:
    r"""$B^f = \prod_k A_k^f$."""
    b = a[0]
    for step in a[1:]:
        b = b @ step
    return b


def composed(task: Any) -> Any:
    r"""$f = f_K \circ \dots \circ f_1$ as a map."""
    f = task[0]
    for step in task[1:]:
        f = step[f]
    return f


def tau(a: Any, task: Any) -> Any:
    r"""(7.17): the smallest probability, over inputs, of the whole true chain."""
    at = np.arange(a.shape[-1], dtype=task.dtype)
    p = a[0][at, task[0]]
    z = task[0]
    for step, f in zip(a[1:], task[1:], strict=True):
        p = p * step[z, f[z]]
        z = f[z]
    return p.min()


def tau_io(a: Any) -> Any:
    r"""(7.18): $\tau_o^f = \min_i \max_j B_{ij}$."""
    return k_step(a).max(axis=-1).min()


def _primacy(a: Any, best: Any) -> Any:
    """The largest primacy of rows of a matrix, given the outputs that should lead.

    For outputs other than those only: (7.12) read for the best one itself would force zero.
    """
    at = np.arange(a.shape[-1], dtype=best.dtype)
    others = a * (best[:, None] != at[None, :]).astype(a.dtype)
    return 1 - (others.max(axis=-1) / a[at, best]).max()


def primacy(a: Any, task: Any) -> Any:
    r"""(7.12): the largest $\rho$ with $A_k(i, j^*) \ge A_k(i, j)/(1-\rho)$ for $j \ne j^*$."""
    found = _primacy(a[0], task[0])
    for step, f in zip(a[1:], task[1:], strict=True):
        of_step = _primacy(step, f)
        found = (found + of_step - abs(found - of_step)) / 2  # the smaller, in numpy and jax
    return found


def primacy_io(a: Any) -> Any:
    r"""(7.13): the primacy of $B^f$, whose best output is its own most probable one."""
    b = k_step(a)
    return _primacy(b, b.argmax(axis=-1))


def feasible_inputs(a: Any, task: Any) -> Any:
    """For which inputs the true output is the most probable one end to end."""
    return k_step(a).argmax(axis=-1).astype(task.dtype) == composed(task)


def icl_feasible(a: Any, task: Any) -> Any:
    """Condition 7.3.2 (7.21): that holds for all inputs."""
    return feasible_inputs(a, task).all()


# ------------------------------------------------------------------- Theorems 3, 4 and 5


def examples_needed(alpha_test: Any, tau: Any, rho: Any, n_patterns: Any, c: float = 1.0) -> Any:
    r"""(7.20), and (7.22) with $\tau_o, \rho_o$: $c\,(\alpha'\tau\rho)^{-2} \log M$."""
    with np.errstate(divide="ignore"):
        return c * np.divide(np.log(n_patterns), np.square(alpha_test * tau * rho))


def training_stages(cfg: Config, eps: float) -> tuple[float, float, float]:
    r"""$T_1 = \eta^{-1}\alpha^{-2}K^3\log(K/\epsilon)$ (F.11): other steps vanish;
    $T_2 = \eta^{-1}KM\alpha^{-1}$ (F.23): matched columns win;
    $T_3 = \eta^{-1}KM\epsilon^{-1}$ (F.31): the loss falls to $\epsilon$.
    """
    k, m = cfg.n_steps, cfg.n_patterns
    alpha, lr = cfg.alpha or math.nan, cfg.lr or math.nan
    found = (k**3 * math.log(k / eps) / alpha**2 / lr, k * m / alpha / lr, k * m / eps / lr)
    return tuple(math.inf if math.isnan(t) else t for t in found)  # pyright: ignore


# ------------------------------------------------------------------------ training, closer


def grad_w(w: Any, columns: Any, query: Any, label: Any, outputs: int) -> Any:
    r"""(F.66) for one prompt of numpy arrays, (C, D) columns and a (Q,) query:

    $\nabla_W\ell = \sum_i\big((F-z)^\top W_V\tilde p_i\big)s_i
    \big(\tilde p_i-\sum_rs_r\tilde p_r\big)\tilde p_{query}^\top$.
    """
    scores = columns @ w @ query
    s = np.exp(scores - scores.max())
    s = s / s.sum()
    values = columns[:, -outputs:]
    error = values @ (s @ values - label)
    return np.outer((s * error) @ (columns - s @ columns), query)


def matched_share(gap: Any, alpha: Any) -> Any:
    r"""(F.24): $p = e^u/(e^u + (1-\alpha)/\alpha)$, other steps left out."""
    return 1 / (1 + (1 - alpha) / alpha * np.exp(-np.asarray(gap, float)))


def stage_two(alpha: float, rate: float, steps: int, gap: float = 0.0) -> np.ndarray:
    r"""(F.20) to (F.31): $u_{t+1} = u_t + r(1-p_t)^2p_t$; the gaps $u_0, ..., u_T$.

    The paper's rate is of order $\eta/(KM)$. Ours, `stage_two_rate`, has no unknown constant.
    """
    found = [gap]
    for _ in range(steps):
        p = float(matched_share(found[-1], alpha))
        found.append(found[-1] + rate * (1 - p) ** 2 * p)
    return np.array(found)


def stage_two_rate(lr: Any, n_patterns: Any) -> Any:
    r"""Ours: the gap grows by $\frac{\eta}{M-1}p(1-p)^2$, whatever K is.

    A prompt's gradient moves its query's own input by $p(1-p)^2$, all others by as much together
    the other way. One prompt in M has that query, and steps share W's input block, so that no
    $1/K$ appears.
    """
    return lr / (n_patterns - 1)


def loss_of_share(p: Any, alpha: Any, examples: Any, n_patterns: Any) -> Any:
    r"""$\frac12(1-p)^2(1+\kappa)$: what is not on the label is on $l(1-\alpha)$ others, evenly.

    $\kappa$ is the chance that two of them have the same output.
    """
    others = examples - np.ceil(alpha * examples - 1e-9)
    same = 1 / others + (1 - 1 / others) / (n_patterns - 1)
    return np.square(1 - np.asarray(p, float)) * (1 + same) / 2


def logit_growth_bounds(
    lr: float, alpha: float, k: int, n_patterns: int, p: float
) -> dict[str, float]:
    """Lemmas F.3.5 to F.3.7: growth per step of scores.

    At least: of the same step over others in stage one, and of the matched columns in stage two.
    At most: of unmatched columns of the same step in stage two.
    """
    return {
        "stage_one_same_step": 2 * lr * alpha**2 / k**3 * (1 - p) ** 2,
        "stage_two_matched": 2 * lr / n_patterns * p * (1 - p) ** 2,
        "stage_two_unmatched": lr / (2 * n_patterns) * p * (1 - p) ** 2,
    }


def input_score(own: Any, n_patterns: int, first: Any, second: Any) -> Any:
    r"""Section F.4.2, made exact: the score between inputs $\sum\lambda_i\mu_i$ of a trained W.

    The input block is $w_1(I - \frac{1}{M-1}(11^\top - I))$ by symmetry, so that
    $w_1\big[\frac{M}{M-1}\lambda\cdot\lambda' - \frac{1}{M-1}\sum\lambda\sum\lambda'\big]$ remains.
    `own` is $w_1$; the uniform mixture of all patterns has no score with itself.
    """
    a, b = np.asarray(first, float), np.asarray(second, float)
    m = n_patterns
    return own * (m * (a @ b) - a.sum() * b.sum()) / (m - 1)


# ------------------------------------------------------------------------------ theory


def room(cfg: Config | DeepConfig) -> tuple[Condition, ...]:
    """What data and tests ask for: that patterns and encodings fit, and small noise."""
    taken = cfg.n_patterns + cfg.n_steps
    return (
        Condition("room", taken, "<=", cfg.dim, "M + K ≤ d"),
        Condition("test patterns", cfg.n_patterns_test, "<=", cfg.n_patterns, "M' ≤ M"),
        Condition("noise", cfg.noise, "<=", math.sqrt(0.5), "‖δ‖ ≤ √2/2, (7.11)"),
    )


def conditions(cfg: Config, eps: float) -> tuple[Condition, ...]:
    """Theorem 3, (i) to (iii)."""
    m, alpha = cfg.n_patterns, cfg.alpha
    least = 1 / alpha if alpha else math.inf
    batch = max(eps**-2, m) * math.log(m)
    return (
        Condition("(7.14) examples", cfg.examples, ">=", least, "l ≥ 1/α"),
        Condition("(7.15) steps", cfg.steps, ">=", sum(training_stages(cfg, eps)), "T ≥ T₁+T₂+T₃"),
        Condition("(iii) batch", cfg.batch, ">=", batch, "B ≥ max(ε⁻², M) log M"),
        Condition("(iii) step size", cfg.lr, "<=", 1.0, "η < 1"),
        Condition("matching", alpha, "<=", 0.9, "α ≤ 1 - c, with c = 0.1"),
    )


SAYS = {
    "examples_needed": "examples of (7.20) for α' = 0.8, τ = 0.5, ρ = 0.8, constant 1",
    "stage_one": "T₁ of (F.11): until other steps have no attention",
    "stage_two": "T₂ of (F.23): until matched columns win",
    "stage_three": "T₃ of (F.31): until the loss is ε (0.01 where none is set)",
    "gap_rate": "η/(M-1): growth of the gap per step over p(1-p)² (ours)",
}


def theory(cfg: Config | DeepConfig) -> Prediction:
    """What Theorem 3 says about a training, and Theorem 4 about the default test."""
    needed = {"examples_needed": float(examples_needed(0.8, 0.5, 0.8, cfg.n_patterns))}
    if isinstance(cfg, DeepConfig):  # the theorems are about one layer
        return Prediction(room(cfg), needed, SAYS)
    eps = cfg.eps or 0.01
    names = ("stage_one", "stage_two", "stage_three")
    stages = dict(zip(names, training_stages(cfg, eps), strict=True))
    rate = {"gap_rate": float(stage_two_rate(cfg.lr, cfg.n_patterns))}
    return Prediction((*conditions(cfg, eps), *room(cfg)), needed | stages | rate, SAYS)
