"""Conditions, theorems and what follows from them, as functions of plain numbers.

Constants hidden in the paper's $O$ and $\\Omega$ are 1 unless given. Definitions on transition
matrices are in `transitions.py`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from provingground.study import Condition, Prediction

from . import deep, plurality
from .data import Config

# ------------------------------------------------------------------- Theorems 3, 4 and 5


def examples_needed(alpha_test: Any, tau: Any, rho: Any, n_patterns: Any, c: float = 1.0) -> Any:
    r"""(7.20), and (7.22) with $\tau_o, \rho_o$: $c\,(\alpha'\tau\rho)^{-2} \log M$."""
    with np.errstate(divide="ignore"):
        return c * np.divide(np.log(n_patterns), np.square(alpha_test * tau * rho))


def stage_one_time(lr: Any, alpha: Any, k: Any, eps: Any) -> Any:
    r"""(F.11): $T_1 = \eta^{-1}\alpha^{-2}K^3\log(K/\epsilon)$, until other steps have at most
    $\epsilon$ of the attention."""
    return k**3 * np.log(k / eps) / (alpha**2 * lr)


def training_stages(cfg: Config, eps: float) -> tuple[float, float, float]:
    r"""$T_1$ (F.11): other steps vanish; $T_2 = \eta^{-1}KM\alpha^{-1}$ (F.23): matched columns
    win; $T_3 = \eta^{-1}KM\epsilon^{-1}$ (F.31): the loss falls to $\epsilon$.
    """
    k, m = cfg.n_steps, cfg.n_patterns
    alpha, lr = cfg.alpha or math.nan, cfg.lr or math.nan
    found = (stage_one_time(lr, alpha, k, eps), k * m / alpha / lr, k * m / eps / lr)
    return tuple(math.inf if math.isnan(t) else float(t) for t in found)  # pyright: ignore


def loss_after(t: Any, lr: Any, alpha: Any, k: Any, n_patterns: Any) -> Any:
    r"""The $\epsilon$ for which t is the time of (7.15), constants 1; infinite before $T_2$.

    By bisection in $\log\epsilon$: the time falls with $\epsilon$.
    """
    t = np.asarray(t, float)
    low, high = np.full(t.shape, -40.0), np.full(t.shape, math.log(float(k)))
    for _ in range(100):
        middle = (low + high) / 2
        eps = np.exp(middle)
        late = stage_one_time(lr, alpha, k, eps) + k * n_patterns * (1 / alpha + 1 / eps) / lr > t
        low, high = np.where(late, middle, low), np.where(late, high, middle)
    return np.where(high >= math.log(float(k)) - 1e-9, np.inf, np.exp(high))


# ------------------------------------------------------------------------------ the vote


def vote_spread(reach: Any, right: Any, wrong: Any) -> Any:
    r"""$V$ such that the lead of the right output over a wrong one is $\sqrt{l/V}$ standard
    deviations after l examples.

    An example gets to the query's step with probability `reach`, and votes there for the right
    output or for that wrong one: the lead gains $r(a-b)$ in the mean, with variance
    $r(a+b) - r^2(a-b)^2$.
    """
    return (right + wrong) / (reach * np.square(right - wrong)) - 1


def examples_for_pair(level: float, alpha_test: Any, tau: Any, rho: Any) -> Any:
    r"""Ours: $l^* = z^2\big(\frac{2-\rho}{\alpha'\tau\rho^2} - 1\big)$, $\Phi(-z)$ = level: errors
    in step 1, and one wrong output that is more probable than all others."""
    return ndtri(level) ** 2 * vote_spread(alpha_test, tau, (1 - rho) * tau)


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


def _mean_over_normal(f: Callable[[float], Any]) -> Any:
    """The mean of a smooth function of a standard normal number."""
    weights = WEIGHTS / WEIGHTS.sum()
    return sum(w * f(x) for x, w in zip(NODES, weights, strict=True))


def step_error(examples: Any, reach: Any, right: Any, wrong: Any, rest: Any, others: Any) -> Any:
    r"""Ours: how often a step's vote is lost, if one wrong output has `wrong` and some others have
    `rest` each.

    Leads are normal and share the votes of the right output: given these, wrong outputs are
    independent, so that $1 - E_x\prod_j\Phi\big(\sqrt{l/V_j}\sqrt{(a+b_j)/b_j} +
    \sqrt{a/b_j}\,x\big)$; a single one is beaten with $\Phi(\sqrt{l/V})$.
    """

    def beaten(x: float, b: Any) -> Any:
        b = np.maximum(b, 1e-9)
        z = np.sqrt(examples / np.maximum(vote_spread(reach, right, b), 1e-9))
        return ndtr(z * np.sqrt((right + b) / b) + np.sqrt(right / b) * x)

    return 1 - _mean_over_normal(lambda x: beaten(x, wrong) * beaten(x, rest) ** others)


def vote_error(
    examples: Any, alpha_test: Any, correct: Sequence[Any], rho: Any, n_patterns_test: Any
) -> Any:
    r"""Ours: the CoT error of the vote, for examples whose step k is correct with $p_k$.

    One wrong output has $(1-\rho)p_k$, the other $M'-2$ share the rest (`suites.spread`). A step
    after a wrong one is wrong. Examples that have left the query's chain get back onto it with
    probability $(1-p_k)/(M'-1)$.
    """
    reach, right_so_far, found = alpha_test, 1.0, []
    for p in correct:
        wrong = np.minimum((1 - rho) * p, 1 - p)
        rest = np.maximum(1 - p - wrong, 0) / (n_patterns_test - 2)
        lost = step_error(examples, reach, p, wrong, rest, n_patterns_test - 2)
        right_so_far = right_so_far * (1 - lost * np.less(p, 1))
        found.append(1 - right_so_far)
        reach = reach * p + (1 - reach) * (1 - p) / (n_patterns_test - 1)
    return sum(found) / len(found)


def correct_steps(design: str, tau: Any, k: int) -> list[Any]:
    r"""$p_1, ..., p_K$ of the designs "even" and "step 1" (see `suites.py`)."""
    return [tau ** (1 / k)] * k if design == "even" else [tau] + [1.0] * (k - 1)


def examples_for(
    level: float,
    alpha_test: Any,
    tau: Any,
    rho: Any,
    n_patterns_test: Any,
    design: str = "step 1",
    k: int = 3,
) -> Any:
    """Ours: the examples at which `vote_error` falls to a level, by bisection."""
    given = np.broadcast_arrays(*map(np.float64, (alpha_test, tau, rho, n_patterns_test)))
    alpha, tau, rho, m = given
    low, high = np.zeros(alpha.shape), np.full(alpha.shape, 30.0)
    for _ in range(80):
        middle = (low + high) / 2
        many = vote_error(np.exp(middle), alpha, correct_steps(design, tau, k), rho, m) > level
        low, high = np.where(many, middle, low), np.where(many, high, middle)
    return np.exp(high)


def mixture_error(alpha_test: Any, n_patterns_test: Any, examples: Any) -> Any:
    r"""Ours: how often step 1 errs on the uniform mixture, examples without mistakes.

    All columns of the step have equal attention, so outputs of other inputs vote too, each with
    probability $(1-\alpha')/(M'-1)$. Their leads are equally distributed and correlated by a half,
    so that $1 - E_x\Phi(x + \sqrt2z)^{M'-1}$ with a standard normal x: $1 - 1/M'$ at
    $\alpha' = 1/M'$, whatever l is.
    """
    other = (1 - alpha_test) / (n_patterns_test - 1)
    mean = alpha_test - other
    z = np.sqrt(examples) * mean / np.sqrt(np.maximum(alpha_test + other - mean**2, 1e-12))
    return 1 - _mean_over_normal(lambda x: ndtr(x + math.sqrt(2) * z) ** (n_patterns_test - 1))


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


def collisions(alpha: Any, examples: Any, n_patterns: Any) -> Any:
    r"""$\kappa$: the chance that two draws from the $l(1-\alpha)$ unmatched columns of a step have
    the same output."""
    others = examples - np.ceil(alpha * examples - 1e-9)
    return 1 / others + (1 - 1 / others) / (n_patterns - 1)


def stage_two_rate(lr: Any, n_patterns: Any, kappa: Any = 0.0) -> Any:
    r"""Ours: the gap grows by $\frac{\eta}{M-1}(1+\kappa)p(1-p)^2$, whatever K is.

    A prompt's gradient moves its query's own input by $(1+\kappa)p(1-p)^2$, all others by as much
    together the other way. One prompt in M has that query, and steps share W's input block, so
    that no $1/K$ appears.
    """
    return lr * (1 + kappa) / (n_patterns - 1)


def loss_of_share(p: Any, kappa: Any) -> Any:
    r"""$\frac12(1-p)^2(1+\kappa)$: what is not on the label is on unmatched columns, evenly."""
    return np.square(1 - np.asarray(p, float)) * (1 + kappa) / 2


def two_stages(
    alpha: float, lr: float, k: int, n_patterns: int, examples: int, steps: int
) -> np.ndarray:
    r"""Ours: both stages at once; attention by type of column, (steps + 1, 4).

    By symmetry W is a gap u between the query's own input and others, and a gap v between its own
    step and others. With the masses p (matched), b (same step, other pattern), s (other step, same
    pattern), n (neither): $\dot u = \frac{\eta(1+\kappa)}{M-1}p(1-p)(1-p-s)$ and
    $\dot v = \frac{\eta(1+\kappa)}{K-1}p(1-p)(s+n)$. An unmatched example has the query's
    pattern in another step with probability $1/(M-1)$.
    """
    growth = lr * (1 + float(collisions(alpha, examples, n_patterns)))
    alpha = math.ceil(alpha * examples - 1e-9) / examples
    chance = (1 - alpha) / (n_patterns - 1)
    start = np.array([alpha, 1 - alpha, (k - 1) * chance, (k - 1) * (1 - chance)])
    u, v, found = 0.0, 0.0, np.empty((steps + 1, 4))
    for t in range(steps + 1):
        mass = start * np.exp([u + v, v, u, 0.0])
        found[t] = mass / mass.sum()
        p, _, s, n = found[t]
        u += growth / (n_patterns - 1) * p * (1 - p) * (1 - p - s)
        v += growth / (k - 1) * p * (1 - p) * (s + n)
    return found


def score_growth(mass: Any, kappa: Any, k: Any, n_patterns: Any) -> tuple[Any, Any]:
    r"""Ours: the growth of a matched score, and of one of the same step with another pattern, in
    units of $\eta p(1-p)^2/M$; `mass` has the attention by type of column."""
    p, _, s, n = mass
    own_input, own_step = (1 - p - s) / (1 - p), n_patterns / k * (s + n) / (1 - p)
    return (1 + kappa) * (own_input + own_step), (1 + kappa) * (
        own_step - own_input / (n_patterns - 1)
    )


def stage_one_growth(p: Any, alpha: Any, k: Any, n_patterns: Any) -> Any:
    r"""(F.7): the least growth of a matched score per step, over $\eta$, in stage one."""
    a = alpha**2 / k**2
    small = (4 * p * (1 + a) - a * (1 + 2 * (k - 1) / k)) / (k * n_patterns)
    return (1 - p) ** 2 * (small + alpha**2 / k**3)


def stage_two_growth(p: Any, n_patterns: Any) -> tuple[Any, Any]:
    r"""Over $\eta$: the least growth of a matched score (F.13), and the most of one of the same
    step with another pattern (F.15)."""
    unit = p * (1 - p) ** 2 / n_patterns
    return 2 * unit, unit / 2


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


def room(cfg: Config | deep.Config) -> tuple[Condition, ...]:
    """What data and tests ask for: that patterns and encodings fit, and small noise."""
    taken = cfg.n_patterns + cfg.n_steps
    return (
        Condition("room", taken, "<=", cfg.dim, "M + K ≤ d"),
        Condition("test patterns", cfg.n_patterns_test, "<=", cfg.n_patterns, "M' ≤ M"),
        Condition("noise", cfg.noise, "<=", math.sqrt(0.5), "‖δ‖ ≤ √2/2, (7.11)"),
    )


def conditions(cfg: Config, eps: float) -> tuple[Condition, ...]:
    """Theorem 3, (i) to (iii); and section 7.2.3 on the length of test prompts."""
    m, alpha = cfg.n_patterns, cfg.alpha
    least = 1 / alpha if alpha else math.inf
    batch = max(eps**-2, m) * math.log(m)
    return (
        Condition("(7.14) examples", cfg.examples, ">=", least, "l ≥ 1/α"),
        Condition("(7.15) steps", cfg.steps, ">=", sum(training_stages(cfg, eps)), "T ≥ T₁+T₂+T₃"),
        Condition("(iii) batch", cfg.batch, ">=", batch, "B ≥ max(ε⁻², M) log M"),
        Condition("(iii) step size", cfg.lr, "<=", 1.0, "η < 1"),
        Condition("matching", alpha, "<=", 0.9, "α ≤ 1 - c, with c = 0.1"),
        Condition(
            "test length", cfg.examples_test, "<=", cfg.examples, "l_ts ≤ l_tr, section 7.2.3"
        ),
    )


SAYS = {
    "examples_needed": "examples of (7.20), constant 1 (trainings: α' = 0.8, τ = 0.5, ρ = 0.8)",
    "stage_one": "T₁ of (F.11): until other steps have no attention",
    "stage_two": "T₂ of (F.23): until matched columns win",
    "stage_three": "T₃ of (F.31): until the loss is ε (0.01 where none is set)",
    "gap_rate": "η(1+κ)/(M-1): growth of the gap per step over p(1-p)² (ours)",
    "examples_for": "examples for an error of 0.05 by the vote, errors in step 1 (ours)",
}


def of_vote(cfg: plurality.Config) -> Prediction:
    """Definitions of section 7.3.2, and Theorem 4."""
    given = cfg.alpha_test, cfg.tau, cfg.rho
    most = 1 / (2 - cfg.rho)
    feasible = (
        Condition("feasible", cfg.tau, "<=", most, "τ ≤ 1/(2-ρ): else the primacy is larger"),
    )
    safe = all(x > 0 for x in given) and cfg.n_patterns_test > 2 and cfg.tau <= most
    values = {
        "examples_needed": float(examples_needed(*given, 20)) if safe else math.inf,
        "examples_for": float(examples_for(0.05, *given, cfg.n_patterns_test))
        if safe
        else math.inf,
    }
    return Prediction(feasible, values, SAYS)


def theory(cfg: Config | deep.Config | plurality.Config) -> Prediction:
    """What Theorem 3 says about a training, and Theorem 4 about the default test."""
    if isinstance(cfg, plurality.Config):
        return of_vote(cfg)
    needed = {"examples_needed": float(examples_needed(0.8, 0.5, 0.8, cfg.n_patterns))}
    if isinstance(cfg, deep.Config):  # the theorems are about one layer
        return Prediction(room(cfg), needed, SAYS)
    eps = cfg.eps or 0.01
    names = ("stage_one", "stage_two", "stage_three")
    stages = dict(zip(names, training_stages(cfg, eps), strict=True))
    unmatched = cfg.examples - math.ceil(cfg.alpha * cfg.examples - 1e-9)
    kappa = float(collisions(cfg.alpha, cfg.examples, cfg.n_patterns)) if unmatched else 0.0
    rate = {"gap_rate": float(stage_two_rate(cfg.lr, cfg.n_patterns, kappa))}
    # A bound above the loss of uniform attention (about a half) says nothing.
    vacuous = ("stage_three",) if eps >= 0.5 else ()
    found = needed | stages | rate
    return Prediction((*conditions(cfg, eps), *room(cfg)), found, SAYS, vacuous=vacuous)
