"""Theorems, lemmas and closed-form gradients as functions of plain numbers, in float64.

Hidden constants of the paper's $O, \\Omega, \\Theta$ are set to 1, so bounds are good for how they
depend on their arguments, not for their size.
"""

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from provingground.study import Condition, Prediction

from .data import Config


def _inverse(x: Any) -> Any:
    """1/x, and infinity where a bound has no finite value."""
    with np.errstate(divide="ignore"):
        return np.where(np.asarray(x) > 0, 1 / np.maximum(x, 1e-300), np.inf)


# --------------------------------------------------------------- what the random graph has


def degrees(nodes: int, frac_disc: Any, confusion_ratio: Any, degree: int) -> tuple[Any, Any, Any]:
    """Edges of a plain node to the pattern of its vote and to the other, and of a discriminative
    node to its own kind; a pattern has no more than $n_d$ nodes to offer."""
    n_d = np.round(np.asarray(frac_disc) * nodes / 2)
    confused = np.round(degree * np.asarray(confusion_ratio))
    own = np.minimum(2 * ((degree + 1) // 2), np.maximum(n_d - 1, 0))
    return np.minimum(degree - confused, n_d), np.minimum(confused, n_d), own


def expected_margin(nodes: int, frac_disc: Any, confusion_ratio: Any, degree: int) -> Any:
    r"""$\bar\Delta(1)$ of the random graph: exact, it depends on no random number."""
    same, other, own = degrees(nodes, frac_disc, confusion_ratio, degree)
    disc = 2 * np.round(np.asarray(frac_disc) * nodes / 2) / nodes
    return disc * own + (1 - disc) * (same - other)


def uniform_gaps(nodes: int, frac_disc: Any, confusion_ratio: Any, degree: int) -> tuple[Any, Any]:
    r"""What uniform attention over ring 1 and the node sees: the share of class-relevant nodes
    minus that of confusion nodes, for discriminative and for other queries.

    A discriminative node has about $D(1-\gamma_d)/\gamma_d$ neighbours that say nothing, so its
    gap is about $\gamma_d$. This is the gap a GCN lives on.
    """
    same, other, own = degrees(nodes, frac_disc, confusion_ratio, degree)
    n_d = np.round(np.asarray(frac_disc) * nodes / 2)
    plain = nodes - 2 * n_d
    silent = plain * (same + other) / np.maximum(2 * n_d, 1)  # edges of plain nodes, shared out
    return (own + 1) / (own + 1 + silent), (same - other) / (same + other + 1)


def largest_core_ring(nodes: int, frac_disc: Any, confusion_ratio: Any, degree: int) -> Any:
    r"""$\delta_{z_m}$ of the random graph with $z_m = 1$: the most neighbours that a node has.

    They are a discriminative node's: its own kind, and those of the $(1-\gamma_d)N$ others that
    chose it, about $D(1-\gamma_d)/\gamma_d$ and normal. So $\delta_{z_m}$ is about $D/\gamma_d$,
    and more: the largest of $2n_d$ such counts.
    """
    same, other, own = degrees(nodes, frac_disc, confusion_ratio, degree)
    n_d = np.maximum(np.round(np.asarray(frac_disc) * nodes / 2), 1)
    voters = np.maximum(nodes - 2 * n_d, 0) / 2  # of either vote
    chances = same / n_d, other / n_d
    mean = sum(voters * p for p in chances)
    spread = np.sqrt(sum(voters * p * (1 - p) for p in chances))
    most = ndtri((2 * n_d - 0.375) / (2 * n_d + 0.25))  # Blom's place of the largest
    return np.maximum(own + mean + spread * most, same + other)


# ------------------------------------------------------------------------------- theorems


def labels_needed(
    confusion_ratio: Any, frac_disc: Any, value_error: Any, max_ring: Any, nodes: Any
) -> Any:
    r"""(3.9), first term: $(1+\delta_{z_m}^2)\log N / (1 - 2\epsilon_S(1-\gamma_d) - \sigma)^2$."""
    gap = 1 - 2 * confusion_ratio * (1 - frac_disc) - value_error
    return (1 + max_ring**2) * np.log(nodes) * _inverse(np.maximum(gap, 0)) ** 2


def labels_needed_gcn(frac_disc: Any, value_error: Any, max_ring: Any, nodes: Any) -> Any:
    r"""(3.13), first term: $(1+\delta_{z_m}^2)\log N / (\gamma_d^2 - \sigma)^2$."""
    gap = frac_disc**2 - value_error
    return (1 + max_ring**2) * np.log(nodes) * _inverse(np.maximum(gap, 0)) ** 2


def iterations(lr: Any, frac_inconsistent: Any, key_error: Any) -> Any:
    r"""(3.8): $T = \eta^{-1/2} (1-2\epsilon_0)^{-1/2} (1-\delta)^{-1/2}$."""
    return np.sqrt(_inverse(lr) * _inverse(1 - 2 * frac_inconsistent) * _inverse(1 - key_error))


def iterations_gcn(lr: Any, frac_inconsistent: Any, key_error: Any, frac_disc: Any) -> Any:
    r"""(3.12): $\gamma_d^{-2}$ times more than (3.8)."""
    return iterations(lr, frac_inconsistent, key_error) * _inverse(frac_disc) ** 2


def final_loss(frac_inconsistent: Any, eps: Any = 0.0) -> Any:
    r"""(3.10): $f \leq 2\epsilon_0 + \epsilon$. A flipped label at output $\pm1$ costs 2."""
    return 2 * frac_inconsistent + eps


def attention_limits(confusion_ratio: Any) -> tuple[float, Any]:
    """(3.11): mass on class-relevant nodes, of discriminative and of other queries."""
    return 1.0, 1 - confusion_ratio


def mean_attention(confusion_ratio: Any, frac_disc: Any) -> Any:
    r"""The mean of (3.11) over queries: $1 - \epsilon_S(1-\gamma_d)$."""
    return 1 - confusion_ratio * (1 - frac_disc)


# ------------------------------------------------------------------------- covering all kinds


def chance_to_cover(labels: Any, frac_disc: Any, patterns: int) -> Any:
    r"""The chance that every non-discriminative pattern has a labelled node of each vote.

    There are $K = 2(M-2)$ kinds, each a fraction $(1-\gamma_d)/K$ of the nodes, so about
    $(1 - e^{-|\mathcal{L}|(1-\gamma_d)/K})^K$. Derived here; the paper has no such condition.
    """
    kinds = 2 * (patterns - 2)
    return (1 - np.exp(-labels * (1 - frac_disc) / kinds)) ** kinds


def labels_to_cover(frac_disc: Any, patterns: int, chance: float = 0.5) -> Any:
    r"""The number of labels at which that chance is reached; grows as $1/(1-\gamma_d)$."""
    kinds = 2 * (patterns - 2)
    return -math.log(1 - chance ** (1 / kinds)) * kinds * _inverse(1 - frac_disc)


# ---------------------------------------------------------------------- attention and bias


def attention_envelope(
    counts: Any, bias: Any, growth: Any, relevant: int, confusion: int, query_disc: bool
) -> float:
    r"""(B.50), (B.51): mass on class-relevant nodes if $\|q_1\|^2 = g$ multiplies what the query
    prefers: its own pattern, if it is discriminative; relevant and confusion nodes alike, if not.

    The printed numerator of (B.51) has the confusion count; it must be the relevant one.
    """
    weight = np.asarray(counts, float) * np.exp(np.asarray(bias, float))[None, :]
    share = weight.sum(axis=1)
    favoured = [relevant] if query_disc else [relevant, confusion]
    share[favoured] *= math.exp(growth)
    return float(share[relevant] / share.sum())


def bias_gradient(weights: Any, values: Any, y: float, f: float) -> np.ndarray:
    r"""$\partial\ell/\partial b_z$ of one node, exactly. `weights[k, z]` is the attention
    $P_{kz}$ and `values[k]` what a unit of attention on pattern k adds to the output,
    $c_k = \sum_i a_i 1[W_{O,i} V_n > 0]\, W_{O,i} W_V \mu_k$:

    $-y\, 1[yF<1] \big(\sum_k P_{kz} c_k - P_z \sum_{kz'} P_{kz'} c_k\big)$, which sums to zero
    over z, so $\sum_z b_z$ stays zero.
    """
    p, c = np.asarray(weights, float), np.asarray(values, float)
    of_ring = np.einsum("kz,k->z", p, c)
    return -y * (y * f < 1) * (of_ring - p.sum(axis=0) * of_ring.sum())


# -------------------------------------------------------------------------- one setting


def core_ring(cfg: Config) -> float:
    r"""$\delta_{z_m}$ at a setting; hubs have all others for neighbours."""
    found = float(largest_core_ring(cfg.nodes, cfg.frac_disc, cfg.confusion_ratio, cfg.degree))
    everyone = cfg.degree + (1 - cfg.frac_disc) * cfg.nodes
    return max(found, everyone) if cfg.hubs else found


def conditions(cfg: Config) -> tuple[Condition, ...]:
    """What Theorem 3.4.4 and Assumption B.2.1 ask for, with constants set to 1."""
    log_n = math.log(cfg.nodes)
    ring = core_ring(cfg)
    needed = float(
        labels_needed(cfg.confusion_ratio, cfg.frac_disc, cfg.value_error, ring, cfg.nodes)
    )
    one_pass = cfg.samples * float(iterations(cfg.lr, cfg.frac_inconsistent, cfg.key_error))
    return (
        Condition("width", cfg.width, ">=", cfg.patterns**2 * log_n, "m ≥ M² log N"),
        Condition("confusion", cfg.confusion_ratio, "<=", 0.5, "ε_S < 1/2"),
        Condition("flips", cfg.frac_inconsistent, "<=", 0.5, "ε_0 < 1/2"),
        Condition("value error", cfg.value_error, "<=", 1 / cfg.patterns, "σ < 1/M"),
        Condition("key error", cfg.key_error, "<=", 0.5, "δ < 1/2"),
        Condition("labels", cfg.samples, ">=", needed, "(3.9), first term"),
        Condition("one pass", cfg.samples, ">=", one_pass, "(3.9), second term, B = |L|"),
    )


SAYS = {
    "core_distance": "the core distance of a published graph, by Figure B.5",
    "core_ring": "the largest core ring, δ_{z_m}, of the random graph with z_m = 1",
    "margin": "Δ̄(1): the mean winning margin of ring 1 in the random graph, exact",
    "gap_disc": "share of class-relevant minus confusion nodes that uniform attention sees, "
    "discriminative queries",
    "gap_plain": "the same, other queries",
    "labels": "labels of (3.9), first term",
    "labels_gcn": "labels of a GCN, (3.13), first term",
    "labels_to_cover": "labels that reach every pattern with each vote (derived here)",
    "iterations": "iterations of (3.8)",
    "iterations_gcn": "iterations of a GCN, (3.12)",
    "test_loss": "2ε₀, the limit of the loss in (3.10)",
    "attention": "mean attention on class-relevant nodes, 1 - ε_S(1-γ_d), from (3.11)",
}


CLASSES = {"cora": 7, "pubmed": 3, "actor": 5}


def theory(cfg: Any) -> Prediction:
    """Everything the paper says about one setting."""
    if hasattr(cfg, "graph"):  # a published graph, of which the appendix has more classes than two
        two = Condition("classes", CLASSES[cfg.graph], "<=", 2, "two classes, labels +1 and -1")
        return Prediction((two,), {"core_distance": 1.0}, SAYS)
    if hasattr(cfg, "per_class"):  # networks on a published graph: Cora or Actor
        two = Condition("classes", CLASSES["actor"], "<=", 2, "two classes; Actor 5, Cora 7")
        return Prediction((two,), {"core_distance": 1.0}, SAYS)
    graph = cfg.nodes, cfg.frac_disc, cfg.confusion_ratio, cfg.degree
    ring = core_ring(cfg)
    disc, plain = uniform_gaps(*graph)
    values = {
        "core_ring": ring,
        "margin": expected_margin(*graph),
        "gap_disc": disc,
        "gap_plain": plain,
        "labels": labels_needed(
            cfg.confusion_ratio, cfg.frac_disc, cfg.value_error, ring, cfg.nodes
        ),
        "labels_gcn": labels_needed_gcn(cfg.frac_disc, cfg.value_error, ring, cfg.nodes),
        "labels_to_cover": labels_to_cover(cfg.frac_disc, cfg.patterns),
        "iterations": iterations(cfg.lr, cfg.frac_inconsistent, cfg.key_error),
        "iterations_gcn": iterations_gcn(
            cfg.lr, cfg.frac_inconsistent, cfg.key_error, cfg.frac_disc
        ),
        "test_loss": final_loss(cfg.frac_inconsistent),
        "attention": mean_attention(cfg.confusion_ratio, cfg.frac_disc),
    }
    found = {k: float(v) for k, v in values.items()}
    vacuous = tuple(n for n in ("labels", "labels_gcn") if found[n] > cfg.nodes)
    return Prediction(conditions(cfg), found, SAYS, vacuous)  # more labels than there are nodes
