"""Theorems 1 to 4, Corollary 1 and their conditions as functions of plain numbers, in float64.

Hidden constants of the paper's $O, \\Theta, \\lesssim$ are set to 1. What is exact is in `exact`.
"""

import math
from typing import Any

import numpy as np

from provingground.study import Condition, Prediction

from . import decoder, exact, facts, language
from .exact import LOG2, over
from .model import Config, noise_std, stage_steps


def _log(x: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(x)


# ---------------------------------------------------------------------- Proposition 4


def easy_norm_bound(margin: Any, weight_decay: Any) -> Any:
    r"""Proposition 4: $\|\bar W\|_F \le K/\lambda$ with $K = \frac12\max\|x_1\|^2$.

    The longest easy token is taken at $\gamma_0 + 1$ along and 1 across $w^\star$.
    """
    return 0.5 * ((margin + 1) ** 2 + 1) / weight_decay


# ---------------------------------------------------------------- eqs. (10), (16), (17)


def eps_noise(init_std: Any, size: Any, dim: Any, tokens: Any) -> Any:
    r"""Eqs. (16), (17): $\tau_0\,\mathrm{size}^2\sqrt{d\log d/L}$, the output of the noise.

    `size` is $u+\gamma_0$ for $\epsilon_{W,1}$ and $u+r$ for $\epsilon_{V,1}$.
    """
    return init_std * size**2 * np.sqrt(dim * np.log(dim) / tokens)


def eps_flips(lipschitz: Any, weight_decay: Any, init_std: Any, tokens: Any) -> Any:
    r"""Eq. (10): $\epsilon_W = K^{4/3}\lambda^{-4/3}\tau_0^{-4/3}L^{2/3}$ activations flip."""
    return over(lipschitz, weight_decay * init_std) ** (4 / 3) * tokens ** (2 / 3)


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


def theorem3_norm(eps_v1: Any) -> Any:
    r"""(c.1): $\|\bar V_{t_1+t_2}\|_F = \Theta(\log(1/\epsilon_{V,1})/\epsilon_{V,1})$."""
    return -_log(eps_v1) / eps_v1


def theorem4_change(dim: Any, eps_v1: Any) -> Any:
    r"""(d.1), (d.2): $\epsilon_{V,1}^2/(\log^2(1/\epsilon_{V,1})\sqrt{\log d})$."""
    return over(eps_v1**2, _log(eps_v1) ** 2 * np.sqrt(np.log(dim)))


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
    rest = over(lr**2 * noise**2, 1 - kept)
    return np.sqrt(kept**steps * std**2 + (1 - kept**steps) * rest)


# --------------------------------------------------------------------- Corollary 1


def trace_factor(lr: Any, weight_decay: Any, k: Any, tokens: Any, p: Any = 0.5) -> Any:
    r"""$1 - \eta\lambda + 2pk\eta/L$: a bound on the growth of a trace in one step.

    $k = \max\|x\|^2\,\hat E[|l'|\,\#\{i: x_i^\top x_L \ge 0\}]$. The paper prints an equation.
    """
    return 1 - lr * weight_decay + 2 * p * k * lr / tokens


# ---------------------------------------------------------------- all of it for one setting


def rest_of(cfg: Config) -> exact.Rest:
    return exact.one_side_rest(
        cfg.margin, cfg.dim, cfg.tokens, cfg.weight_decay, cfg.z_norm, cfg.zeta_norm
    )


def gate_of(cfg: Config, lr: float, noise: float) -> float:
    """The critical step at the noise that steps of size `lr` leave in V."""
    rest, kept = rest_of(cfg), (1 - lr * cfg.weight_decay) ** 2
    std = lr * noise * float(noise_std(cfg)) / math.sqrt(1 - kept) if kept < 1 else math.inf
    found = exact.critical_lr(std, rest.hard, cfg.z_norm, cfg.zeta_norm, rest.slope)
    return float(found)


def conditions(cfg: Config) -> tuple[Condition, ...]:
    """Assumption 1 and the schedule as printed; then what the gate needs (found here)."""
    root = math.sqrt(math.log(cfg.dim))
    eps_w1 = eps_noise(cfg.init_std, cfg.z_norm + cfg.margin, cfg.dim, cfg.tokens)
    eps_v1 = eps_noise(cfg.init_std, cfg.z_norm + cfg.zeta_norm, cfg.dim, cfg.tokens)
    shut, open_ = gate_of(cfg, cfg.lr1, cfg.noise), gate_of(cfg, cfg.lr2, cfg.noise2)
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
            easy_norm_bound(cfg.margin, cfg.weight_decay),
            "d log(1/ε_W,1) ≤ K/λ, or (b.1) contradicts Proposition 4",
        ),
        Condition("gate shut", cfg.lr1, ">=", shut, "η₁ ≥ η_c: stage 1 misses the hard part"),
        Condition("gate open", cfg.lr2, "<=", open_, "η₂ ≤ η_c: stage 2 learns it"),
    )  # fmt: skip


SAYS = {
    "steps1": "steps of stage 1",
    "steps2": "steps of stage 2",
    "hard_floor": "the least hard loss of any V",
    "hard_one_sided": "the hard loss if one of z + ζ, z - ζ is learned without a limit",
    "dead_zone_probability": "lower bound for a Gaussian V to start where its gradient is zero",
    "one_sided_gain": "|q| of learning one side over that of learning both; above 1 one is learned",
    "critical_lr1": "step size above which stage 1 does not learn the hard part",
    "critical_lr2": "step size above which stage 2 does not learn the hard part",
    "burst": "norm of a step of V that one side makes in the active region, stage 1",
    "burst_signal": "r.m.s. norm of the hard signal in stage 1 behind a shut gate",
    "easy_rest": "c of W = c w* w*ᵀ at rest, nothing learned of the hard part",
    "easy_rest2": "the same with one side of the hard part learned",
    "hard_rest": "norm of V at rest with one side learned",
    "hard_rest_loss": "hard loss at rest with one side learned",
    "easy_norm_bound": "K/λ, the bound of Proposition 4 on the norm of W",
    "noise_end": "s.d. of the noise part after both stages",
    "eps_w1": "ε_W,1 of (16), the output of the noise",
    "eps_v1": "ε_V,1 of (17), the output of the noise",
    "eps_w": "ε_W of (10), activations that flip",
    "theorem1_floor": "(a.2): lower bound of the hard loss after stage 1, constants 1",
    "theorem2_norm": "(b.1): d log(1/ε_W,1), the norm of W after stage 1, constant 1",
    "theorem2_norm_d": "(b.1) with ε_W,1 = 1/d",
    "theorem2_loss": "(b.2): upper bound of the easy loss, constants 1",
    "theorem3_norm": "(c.1): log(1/ε_V,1)/ε_V,1, the norm of V after stage 2, constant 1",
    "theorem3_norm_d": "(c.1) with ε_V,1 = 1/d",
    "theorem3_loss": "(c.2): upper bound of the hard loss, constants 1",
    "theorem3_loss_d": "(c.2) with ε_V,1 = 1/d",
    "theorem4_change": "(d.1), (d.2): the change in stage 2, constant 1",
    "theorem4_change_d": "(d.1), (d.2) with ε_V,1 = 1/d",
}


def theory_of_facts(cfg: decoder.Config) -> Prediction:
    """Of facts the theorems say nothing; what guessing gives is known on a made table, and of real
    facts how many answers there can be."""
    falls = Condition("annealing", cfg.anneal, "<=", 0.99, "the step size falls (section 4)")
    if isinstance(cfg, language.Config):
        says = {"loss_by_chance": "loss where all answers have equal scores, at most"}
        return Prediction((falls,), {"loss_by_chance": math.log(cfg.facts)}, says)
    assert isinstance(cfg, facts.Config)
    ends = (1 / cfg.relations, 1 / (cfg.relations * cfg.answers), 1 / cfg.answers)
    names = ("type_by_chance", "exact_by_chance", "exact_by_type")
    values = dict(zip(names, ends, strict=True)) | {"loss_by_type": math.log(cfg.answers)}
    says = {
        "type_by_chance": "answers of the right type by chance",
        "exact_by_chance": "right answers by chance",
        "exact_by_type": "right answers if the type alone is known",
        "loss_by_type": "loss if the type alone is known",
    }
    return Prediction((falls,), values, says)


def theory(cfg: Config | decoder.Config) -> Prediction:
    """What the paper, and the exact results found here, say about one setting."""
    if isinstance(cfg, decoder.Config):
        return theory_of_facts(cfg)
    d, tau, u, r = cfg.dim, cfg.init_std, cfg.z_norm, cfg.zeta_norm
    lipschitz = easy_norm_bound(cfg.margin, cfg.weight_decay) * cfg.weight_decay
    eps_w1 = eps_noise(tau, u + cfg.margin, d, cfg.tokens)
    eps_v1 = eps_noise(tau, u + r, d, cfg.tokens)
    flips = eps_flips(lipschitz, cfg.weight_decay, tau, cfg.tokens)
    steps1, steps2 = stage_steps(cfg)
    xi, rest = float(noise_std(cfg)), rest_of(cfg)
    after1 = noise_after(tau, cfg.noise * xi, cfg.lr1, cfg.weight_decay, steps1)
    values = {
        "steps1": steps1,
        "steps2": steps2,
        "hard_floor": exact.hard_floor(cfg.positive),
        "hard_one_sided": exact.ONE_SIDED,
        "dead_zone_probability": exact.dead_zone_probability(u, r),
        "one_sided_gain": exact.one_sided_gain(u, r),
        "critical_lr1": gate_of(cfg, cfg.lr1, cfg.noise),
        "critical_lr2": gate_of(cfg, cfg.lr2, cfg.noise2),
        "burst": exact.burst(cfg.lr1, u, r, rest.slope),
        "burst_signal": exact.burst_signal(cfg.lr1, tau * cfg.noise, u, r, rest.slope),
        "easy_rest": exact.easy_rest(cfg.margin, d, cfg.tokens, cfg.weight_decay, cfg.positive),
        "easy_rest2": rest.easy,
        "hard_rest": rest.hard,
        "hard_rest_loss": rest.loss_hard,
        "easy_norm_bound": easy_norm_bound(cfg.margin, cfg.weight_decay),
        "noise_end": noise_after(after1, cfg.noise2 * xi, cfg.lr2, cfg.weight_decay, steps2),
        "eps_w1": eps_w1,
        "eps_v1": eps_v1,
        "eps_w": flips,
        "theorem1_floor": theorem1_floor(d, cfg.samples),
        "theorem2_norm": theorem2_norm(d, eps_w1),
        "theorem2_norm_d": theorem2_norm(d, 1 / d),
        "theorem2_loss": theorem2_loss(d, cfg.tokens, eps_w1, flips),
        "theorem3_norm": theorem3_norm(eps_v1) if eps_v1 > 0 else math.inf,
        "theorem3_norm_d": theorem3_norm(1 / d),
        "theorem3_loss": theorem3_loss(d, eps_v1),
        "theorem3_loss_d": theorem3_loss(d, 1 / d),
        "theorem4_change": theorem4_change(d, eps_v1),
        "theorem4_change_d": theorem4_change(d, 1 / d),
    }
    values = {name: float(v) for name, v in values.items()}
    return Prediction(conditions(cfg), values, SAYS, vacuous(values))


def vacuous(values: dict[str, float]) -> tuple[str, ...]:
    r"""The right-hand sides that say nothing.

    (a.2) below the floor of every V; (b.2), (c.2) above $\log2$, the loss of weights zero; (b.1),
    (c.1) where $\epsilon \ge 1$; (d.1) where all of the easy signal may change.
    """
    found = {
        "theorem1_floor": values["theorem1_floor"] <= values["hard_floor"],
        "theorem2_norm": values["eps_w1"] >= 1,
        "theorem2_loss": values["theorem2_loss"] >= LOG2,
        "theorem3_norm": values["eps_v1"] >= 1,
        "theorem3_loss": values["theorem3_loss"] >= LOG2,
        "theorem3_loss_d": values["theorem3_loss_d"] >= LOG2,
        "theorem4_change": values["theorem4_change"] >= values["easy_rest"],
    }
    return tuple(name for name, empty in found.items() if empty)
