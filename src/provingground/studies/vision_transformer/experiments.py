"""One Experiment per figure: the grid, what it should show, and how it is drawn."""

from math import inf
from typing import Any

from provingground import stats
from provingground.study import Claim, Experiment, cases

from . import figures, measures

NETWORKS = cases({"ViT": {"attention_rate": 1.0}, "CNN": {"attention_rate": 0.0}})

SMALL: dict[str, Any] = {"width": 200}  # quick: a fifth of the neurons; all share one program

FIG2_1A = Experiment(
    "fig2_1a",
    says="Success rate over samples and fraction of relevant tokens; half the tokens irrelevant.",
    grid={
        "frac_relevant": [0.5, 0.45, 0.4, 0.37, 0.35, 0.33, 0.32, 0.31],
        "samples": [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128],
    },
    derive=measures.rest_is_confusion,
    seeds=20,
    quick={
        **SMALL,
        "frac_relevant": [0.45, 0.4, 0.37, 0.35, 0.33],
        "samples": [4, 8, 12, 16, 24, 32, 48, 64],
        "seeds": 16,
    },
    claims=(
        Claim(
            "success_in_samples",
            "the success rate rises with the number of samples (rank correlation)",
            measure=lambda ds: stats.rank_correlation(
                measures.success(ds).mean("frac_relevant"), "samples"
            ),
            within=(0.9, inf),
            source="Theorem 1, Figure 2.1(a)",
        ),
        Claim(
            "success_in_relevant",
            "the success rate rises with the fraction of relevant tokens (rank correlation)",
            measure=lambda ds: stats.rank_correlation(
                measures.success(ds).mean("samples"), "frac_relevant"
            ),
            within=(0.9, inf),
            source="Theorem 1, Figure 2.1(a)",
        ),
        Claim(
            "samples_exponent",
            "the samples needed grow with the fraction of relevant tokens as alpha^(-2)",
            measure=measures.exponent(),
            within=(1.5, 2.5),
            source="Theorem 1 (2.11), Figure 2.1(a)",
            expected="fails",
            note="With half of the tokens irrelevant, fewer relevant tokens are more confusion "
            "tokens; what the samples follow is the gap of the vote.",
        ),
        Claim(
            "gap_exponent",
            "the samples needed grow with the gap of the vote as (alpha_* - alpha_#)^(-2)",
            measure=measures.gap_exponent(),
            within=(1.5, 2.5),
            source="found here, the exponent of Theorem 1",
        ),
    ),
    figure=figures.draw_success,
)

EXPERIMENTS = (FIG2_1A,)
