"""One Experiment per figure: the grid, what it should show, and how it is drawn."""

from math import inf
from typing import Any

from provingground.study import Claim, Experiment, cases

from . import measures
from .measures import each_task, final, late_slope

FIGURE_2: dict[str, Any] = dict(
    grid={
        "task": cases(measures.TASKS),
        "form": cases(
            {
                "SGD": {"simulator": "sgd", "steps": 20_000},
                "recursion": {"simulator": "recursion", "steps": 200_000},
            }
        ),
    },
    seeds=4,
    quick={
        "form": cases(
            {
                "SGD": {"simulator": "sgd", "steps": 2000},
                "recursion": {"simulator": "recursion", "steps": 200_000},
            }
        ),
        "seeds": 3,
    },
)


def both_sides(name: str, says: str, measure: Any, low: float, high: float, **more: Any):
    """Two claims: the smallest over the tasks is at least `low`, the largest at most `high`."""
    return (
        Claim(
            f"{name}_low",
            f"{says}: at least {low:g} for every task",
            measure=each_task(measure, "low"),
            within=(low, inf),
            **more,
        ),
        Claim(
            f"{name}_high",
            f"{says}: at most {high:g} for every task",
            measure=each_task(measure, "high"),
            within=(-inf, high),
            **more,
        ),
    )


FIG2A = Experiment(
    "fig2a",
    says="Excess loss in time: online SGD, the exact recursion, and the law it tends to.",
    **FIGURE_2,
    claims=(
        *both_sides(
            "slope",
            "exponent of the population excess loss in t, last decade",
            late_slope("recursion", "test_loss"),
            -1.10,
            -0.95,
            source="Theorem 3.1(3), Figure 2(a)",
        ),
        *both_sides(
            "law",
            "4 eta T (L - L_opt) / (K D (D - K)) at T = 200 000",
            final("recursion", measures.over_excess_law),
            0.98,
            1.10,
            source="derived from Lemma C.2",
        ),
        *both_sides(
            "sgd",
            "excess loss of SGD over recursion plus floor, last quarter",
            measures.sgd_over_predicted,
            0.90,
            1.10,
            source="derived from Lemma C.2",
        ),
        *both_sides(
            "sgd_slope",
            "exponent of SGD's excess loss in t, last decade",
            late_slope("SGD", "test_loss"),
            -1.35,
            -0.80,
            source="Theorem 3.1(3), Figure 2(a)",
            scale="paper",
        ),
        *both_sides(
            "score_slope",
            "exponent of the distance of the scores in t, last decade",
            late_slope("recursion", "score_error"),
            -0.55,
            -0.45,
            source="Theorem 3.1(1)",
        ),
        *both_sides(
            "value_slope",
            "exponent of the distance of the values in t, last decade",
            late_slope("recursion", "value_error"),
            -0.60,
            -0.45,
            source="Theorem 3.1(2)",
        ),
        *both_sides(
            "leak_law",
            "leak over (D - K) sqrt(K / (2 c eta V T)) at T = 200 000",
            final("recursion", measures.over_leak_law),
            0.90,
            1.05,
            source="derived from Lemma C.2",
        ),
        *both_sides(
            "value_leak",
            "(C_1 - 1) / leak at T = 200 000",
            final("recursion", lambda ds: (ds.value - 1) / ds.leak),
            0.95,
            1.10,
            source="derived from Lemma C.2",
        ),
    ),
    figure=measures.draw_excess,
)

EXPERIMENTS = (FIG2A,)
