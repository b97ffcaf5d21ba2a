"""The experiments on sample complexity: Figures 2.1 and 2.3."""

from math import inf
from typing import Any

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, axis, cases

from . import figures, measures

NETWORKS = cases({"ViT": {"attention_rate": 1.0}, "CNN": {"attention_rate": 0.0}})

# Quick scale: a fifth of the neurons. Experiments on patterns share one program there, for which
# their grids have 20, 40 or 60 points.
SMALL: dict[str, Any] = {"width": 200}
SAMPLES = [2, 4, 8, 12, 16, 24, 32, 52, 80, 128]

FIG2_1A = Experiment(
    "fig2_1a",
    says="Success rate over samples and fraction of relevant tokens; half the tokens irrelevant.",
    trainings=Trainings(
        grid={
            "frac_relevant": axis(
                [0.5, 0.45, 0.4, 0.37, 0.35, 0.33, 0.32, 0.31], sets=measures.rest_is_confusion
            ),
            "samples": [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128],
        },
        seeds=20,
        quick={
            **SMALL,
            "frac_relevant": [0.5, 0.43, 0.38, 0.35, 0.33],
            "samples": [2, 4, 8, 12, 20, 32, 52, 80],
            "seeds": 24,
        },
    ),
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

FIG2_3 = Experiment(
    "fig2_3",
    says="The samples that a ViT needs against those of a CNN, whose attention stays as it was.",
    trainings=Trainings(
        grid={
            "network": NETWORKS,
            "frac_relevant": axis(
                [0.5, 0.45, 0.4, 0.37, 0.35, 0.33], sets=measures.rest_is_confusion
            ),
            "samples": [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384],
        },
        seeds=20,
        quick={
            **SMALL,
            "frac_relevant": [0.5, 0.43, 0.38],
            "samples": SAMPLES,
            "seeds": 20,
        },
    ),
    claims=(
        Claim(
            "cnn_needs_more",
            "at every fraction up to 0.4 the CNN needs at least 3 times the samples of the ViT",
            measure=lambda ds: stats.worst(measures.cost_of_freezing(ds, 0.4), "low"),
            within=(3, inf),
            source="Proposition 1, Figure 2.3",
        ),
        Claim(
            "cnn_exponent",
            "the samples that the CNN needs grow as alpha^(-4)",
            measure=measures.exponent("CNN"),
            within=(3.5, 4.5),
            source="Proposition 1 (2.13), Figure 2.3",
            expected="fails",
            note="As for the ViT the gap of the vote counts, and it closes faster than alpha.",
            scale="paper",
        ),
        Claim(
            "cnn_gap_exponent",
            "the samples that the CNN needs grow with the gap of the vote with exponent 2",
            measure=measures.gap_exponent("CNN"),
            within=(1.5, 2.5),
            source="found here",
            scale="paper",
        ),
        Claim(
            "extra_exponent",
            "freezing the attention adds 2 to the exponent in alpha",
            measure=measures.extra_exponent,
            within=(1.5, 2.5),
            source="Theorem 1 and Proposition 1",
            expected="fails",
            note="The ratio of the two is about the same at all fractions.",
            scale="paper",
        ),
    ),
    figure=figures.draw_networks,
)

FIG2_1A_FIXED = Experiment(
    "fig2_1a_fixed",
    says="The same with a fixed fraction of confusion tokens, so that only relevant ones change.",
    trainings=Trainings(
        grid={
            "network": NETWORKS,
            "frac_relevant": [0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.12],
            "frac_confusion": 0.05,
            "samples": [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128],
        },
        seeds=20,
        quick={
            **SMALL,
            "frac_relevant": [0.4, 0.2, 0.12],
            "samples": SAMPLES,
            "seeds": 10,
        },
    ),
    claims=(
        Claim(
            "fixed_exponent",
            "with fixed confusion the samples needed grow as alpha^(-2)",
            measure=measures.exponent(),
            within=(1.5, 2.5),
            source="Theorem 1 (2.11)",
            expected="fails",
            note="Nearly flat down to 0.2, then steeper as alpha comes near the confusion.",
            scale="paper",
        ),
        Claim(
            "fixed_slower",
            "with fixed confusion the samples needed do grow, but slower than alpha^(-2)",
            measure=measures.exponent(),
            within=(0.2, 2.0),
            source="found here; Theorem 1 is an upper bound",
            scale="paper",
        ),
        Claim(
            "fixed_cnn_needs_more",
            "at every fraction the CNN needs at least 2 times the samples of the ViT",
            measure=lambda ds: stats.worst(measures.cost_of_freezing(ds), "low"),
            within=(2, inf),
            source="Proposition 1",
        ),
    ),
    figure=figures.draw_networks,
)

FIG2_1B_GRID: dict[str, Any] = {
    "tokens": 50,
    "frac_relevant": 0.3,
    "frac_confusion": 0.2,
    "samples": [16, 32, 64, 128, 256],
}
FIG2_1B = Experiment(
    "fig2_1b",
    says="Success rate over samples and the initial error of the values, as a norm.",
    trainings=Trainings(
        grid={**FIG2_1B_GRID, "value_error": [0.0, 0.05, 0.1, 0.4, 0.5, 0.6]},
        seeds=40,
        paper_only=True,
    ),
    claims=(
        Claim(
            "sigma_costs",
            "initial value errors of 0.4 to 0.6 cost over 0.2 of the success rate",
            measure=lambda ds: measures.lost(ds, "value_error"),
            within=(0.2, inf),
            source="Theorem 1 (2.11), Figure 2.1(b)",
            expected="fails",
            note="Values are trained too, and quickly leave their initial error behind.",
        ),
        Claim(
            "sigma_is_free",
            "initial value errors of 0.4 to 0.6 change the success rate by less than 0.2",
            measure=lambda ds: measures.lost(ds, "value_error"),
            within=(-0.2, 0.2),
            source="found here",
        ),
    ),
    figure=figures.draw_start("value_error"),
)

FIG2_1B_SCALE = Experiment(
    "fig2_1b_scale",
    says="Success rate over samples and the scale of the initial values, the printed reading.",
    trainings=Trainings(
        grid={**FIG2_1B_GRID, "value_scale": [0.1, 0.3, 1.0, 2.0, 3.0]}, seeds=60, paper_only=True
    ),
    claims=(
        Claim(
            "scale_costs",
            "initial values of scale 2 or 3, not 0.1 to 1, lower the success rate (difference)",
            measure=lambda ds: measures.lost(ds, "value_scale"),
            within=(0, inf),
            source="Figure 2.1(b), with sigma as the scale that is printed",
        ),
    ),
    figure=figures.draw_start("value_scale"),
)

# Quick scale on tokens: one program for both experiments.
FEW_TOKENS: dict[str, Any] = {"width": 48, "samples": 48, "tokens": 30, "test_samples": 100}

FIG2_1B_NOISE = Experiment(
    "fig2_1b_noise",
    says="Success rate and test loss over samples and the noise of tokens.",
    trainings=Trainings(
        grid={
            **FIG2_1B_GRID,
            "samples": [16, 32, 64, 128],
            "noise": [0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3],
            "record": 4,
        },
        simulator="tokens",
        seeds=20,
        quick={
            **FEW_TOKENS,
            "noise": [0.0, 0.01, 0.02, 0.05, 0.12, 0.2, 0.3, 0.45],
            "frac_relevant": 0.4,
            "frac_confusion": 0.1,
            "seeds": 9,
        },
    ),
    claims=(
        Claim(
            "noise_costs",
            "the test loss rises with the noise of tokens, from 0.05 on (rank correlation)",
            measure=measures.noise_correlation,
            within=(0.9, inf),
            source="Theorem 1 (2.11), section 2.4",
        ),
        Claim(
            "noise_forbids",
            "with noise 0.3 next to no trial succeeds",
            measure=lambda ds: measures.success_at(ds, noise=0.3),
            within=(-inf, 0.4),
            source="found here",
        ),
        Claim(
            "noise_of_the_paper",
            "with the paper's noise 0.01 trials succeed or fail as without noise",
            measure=measures.same_outcome,
            within=(0.8, inf),
            source="found here; it lets the other figures run without noise",
            scale="paper",
        ),
    ),
    figure=figures.draw_noise,
)
