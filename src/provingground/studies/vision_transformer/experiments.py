"""One Experiment per figure: the grid, what it should show, and how it is drawn.

Those on sample complexity are in `samples.py`.
"""

from math import inf
from typing import Any

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, cases

from . import figures, measures
from .samples import (
    FEW_TOKENS,
    FIG2_1A,
    FIG2_1A_FIXED,
    FIG2_1B,
    FIG2_1B_NOISE,
    FIG2_1B_SCALE,
    FIG2_3,
    NETWORKS,
    SAMPLES,
    SMALL,
)

FIG2_2 = Experiment(
    "fig2_2",
    says="Steps until the training loss is below 0.001 against the fraction of relevant tokens.",
    trainings=Trainings(
        grid={
            "network": NETWORKS,
            "frac_relevant": [0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15],
            "frac_confusion": 0.02,
            "key_error": 0.4,
            "samples": 200,
            "eps": 1e-3,
        },
        seeds=20,
        quick={
            **SMALL,
            "frac_relevant": [0.5, 0.45, 0.4, 0.35, 0.3, 0.27, 0.24, 0.21, 0.18, 0.15],
            "samples": 128,
            "seeds": 4,
        },
    ),
    claims=(
        Claim(
            "steps_grow",
            "the steps needed grow with 1 / alpha (slope of the linear fit)",
            measure=lambda ds: stats.linear_law(measures.iterations(ds, "ViT"), "inverse").slope,
            within=(0, inf),
            source="Theorem 1 (2.10), Figure 2.2",
        ),
        Claim(
            "steps_linear",
            "the steps needed are linear in 1 / alpha (squared correlation)",
            measure=measures.straightness("ViT"),
            within=(0.97, inf),
            source="Figure 2.2",
        ),
        Claim(
            "steps_proportional",
            "the steps needed are proportional to 1 / alpha (exponent)",
            measure=lambda ds: stats.power_law(measures.iterations(ds, "ViT"), "inverse").slope,
            within=(0.9, 1.1),
            source="Theorem 1 (2.10)",
            expected="fails",
            note="The line has an offset: growth from small hidden weights takes its time even "
            "where all tokens are relevant.",
        ),
        Claim(
            "cnn_slower",
            "the CNN's steps grow faster with 1 / alpha than the ViT's (ratio of slopes)",
            measure=measures.slope_ratio,
            within=(1.5, inf),
            source="found here; Proposition 1 says the same T",
        ),
    ),
    figure=figures.draw_steps,
)

LR_SCALING = Experiment(
    "lr_scaling",
    says="Steps until the training loss is zero against the step size.",
    trainings=Trainings(
        grid={
            "network": NETWORKS,
            "frac_relevant": [0.4, 0.3],
            "lr": [0.125, 0.25, 0.5, 1.0, 2.0, 4.0],
            "samples": 128,
        },
        seeds=20,
        quick={**SMALL, "lr": [0.25, 0.5, 1.0, 2.0, 4.0], "samples": 100, "seeds": 4},
    ),
    claims=(
        Claim(
            "lr_exponent_printed",
            "the steps needed fall with the step size as eta^(-3/5)",
            measure=measures.lr_exponent,
            within=(-0.7, -0.5),
            source="Theorem 1 (2.10)",
            expected="fails",
            note="Descent with small steps follows the gradient flow, in which eta T is constant.",
        ),
        Claim(
            "lr_exponent_flow",
            "up to step size 1 the steps needed fall as 1 / eta, as for gradient flow",
            measure=measures.lr_exponent,
            within=(-1.1, -0.9),
            source="gradient flow",
        ),
    ),
    figure=figures.draw_lr,
)

# The printed start: W_K = W_Q = (delta / c_0)^2 I and W_V = (sigma / c_0)^2 U.
PRINTED: dict[str, Any] = dict(key_scale=400.0, value_scale=100.0, key_error=0.0, value_error=0.0)

READINGS = cases(
    {
        "per position": {},
        "shared read-out": {"shared": 1.0, "lr": 0.1},
        "printed start": {**PRINTED, "lr": 0.001},
    }
)
FIG2_4 = Experiment(
    "fig2_4",
    says="Attention on label-relevant tokens during training, in three readings of the setting.",
    trainings=Trainings(
        grid={
            "tokens": 50,
            "samples": [2, 8, 32, 200],
            "frac_relevant": 0.5,
            "frac_confusion": 0.05,
            "lr": 1.0,
            "steps": 600,
            "record": 60,
            "reading": READINGS,
        },
        seeds=20,
        quick={**SMALL, "samples": [2, 128], "seeds": 8},
    ),
    claims=(
        Claim(
            "attention_rises",
            "the mean attention on relevant tokens rises during training",
            measure=measures.attention_rise("per position"),
            within=(0.1, inf),
            source="Proposition 2, Figure 2.4",
        ),
        Claim(
            "attention_near_one",
            "the mean attention on relevant tokens comes close to 1 (over 0.95)",
            measure=lambda ds: measures.final_attention(ds, reading="per position"),
            within=(0.95, inf),
            source="Proposition 2, Figure 2.4",
            expected="fails",
            note="The hinge loss is zero, and training over, before that; see prop2_rate.",
        ),
        Claim(
            "attention_of_relevant",
            "the attention of relevant queries on relevant tokens comes close to 1 (over 0.9)",
            measure=lambda ds: measures.final_attention(ds, 0, reading="per position"),
            within=(0.9, inf),
            source="found here; Proposition 2 says it of all queries",
        ),
        Claim(
            "attention_shared",
            "with a shared read-out attention moves less than half as far",
            measure=measures.shared_rise,
            within=(-inf, 0.5),
            source="found here",
        ),
        Claim(
            "printed_start_frozen",
            "from the printed start attention does not move",
            measure=measures.attention_rise("printed start"),
            within=(-0.01, 0.01),
            source="found here: its scores are of order 10^5, and the softmax is one-hot",
        ),
        Claim(
            "shared_needs_two",
            "with a shared read-out one sample of each class is enough",
            measure=lambda ds: measures.success_at(ds, reading="shared read-out", samples=2),
            within=(0.5, inf),
            source="found here: without noise all samples of a class are then alike",
        ),
        Claim(
            "per_position_needs_more",
            "with read-outs per position, as printed, it is not",
            measure=lambda ds: measures.success_at(ds, reading="per position", samples=2),
            within=(-inf, 0.5),
            source="found here",
        ),
    ),
    figure=figures.draw_attention,
)

PROP2_RATE = Experiment(
    "prop2_rate",
    says="What attention does when the loss never gets to zero: logistic loss, many steps.",
    trainings=Trainings(
        grid={
            "tokens": 50,
            "samples": 200,
            "frac_relevant": 0.5,
            "frac_confusion": 0.05,
            "loss": "logistic",
            "steps": 20_000,
            "record": 60,
            "lr": 1.0,
        },
        seeds=20,
        quick={**SMALL, "samples": 128, "steps": 4000, "seeds": 4},
    ),
    claims=(
        Claim(
            "attention_goes_on",
            "with the logistic loss the mean attention on relevant tokens passes 0.9",
            measure=measures.final_attention,
            within=(0.9, inf),
            source="Proposition 2",
        ),
        Claim(
            "attention_rate",
            "the rest of the attention falls as 1 / t (exponent, last decade)",
            measure=measures.rest_exponent,
            within=(-1.25, -0.75),
            source="Proposition 2",
            expected="fails",
            note="The gradient of the loss falls too, so that the rest falls slower.",
        ),
        Claim(
            "query_norm_log",
            "the squared query norm grows with the logarithm of time (correlation, last decade)",
            measure=measures.log_growth,
            within=(0.99, inf),
            source="Lemma A.3.1, Claim 2",
            scale="paper",
        ),
    ),
    figure=figures.draw_rate,
)

RULES = cases(
    {
        "random": {},
        "irrelevant": {"by_role": 1.0},
        "noisy": {"by_noise": 1e4},
        "least attention": {"by_attention": 1e4},
    }
)

FIG2_5 = Experiment(
    "fig2_5",
    says="Test loss after removing tokens by four rules, early and at the end of training.",
    trainings=Trainings(
        grid={
            "rule": RULES,
            "sparsity": [0.0, 0.1, 0.2, 0.3],
            "samples": 80,
            "tokens": 50,
            "frac_relevant": 0.6,
            "frac_confusion": 0.05,
            "key_error": 0.5,
            "noisy_share": 0.2,
            "noise_big": 0.6,
            "lr": 1.0,
            "record": 4,  # steps 0, 1, 50 and 2500
        },
        simulator="tokens",
        seeds=20,
        quick={**FEW_TOKENS, "sparsity": [0.0, 0.2], "seeds": 9},
    ),
    claims=(
        Claim(
            "irrelevant_gain_early",
            "after 50 steps removing irrelevant tokens lowers the test loss (ratio)",
            measure=measures.gain("irrelevant", measures.EARLY),
            within=(-inf, 0.95),
            source="Figure 2.5",
        ),
        Claim(
            "irrelevant_beats_random",
            "after 50 steps the test loss is lower than with tokens removed at random (ratio)",
            measure=measures.against_random("irrelevant", measures.EARLY),
            within=(-inf, 0.95),
            source="Figure 2.5",
        ),
        Claim(
            "noisy_gain_end",
            "at the end removing noisy tokens lowers the test loss (ratio)",
            measure=measures.gain("noisy", -1),
            within=(-inf, 0.8),
            source="Figure 2.5",
        ),
        Claim(
            "noisy_halves",
            "at the end removing noisy tokens halves the test loss (ratio)",
            measure=measures.gain("noisy", -1),
            within=(-inf, 0.5),
            source="found here",
            scale="paper",
        ),
        Claim(
            "random_no_gain",
            "after 50 steps removing tokens at random changes little (ratio)",
            measure=measures.gain("random", measures.EARLY),
            within=(0.8, 1.25),
            source="Figure 2.5",
            scale="paper",
        ),
        Claim(
            "irrelevant_gain_end",
            "at the end removing irrelevant tokens lowers the test loss (ratio)",
            measure=measures.gain("irrelevant", -1),
            within=(-inf, 0.8),
            source="Figure 2.5",
            expected="fails",
            note="The trained attention ignores irrelevant tokens already; training is faster "
            "without them, and the end no better.",
            scale="paper",
        ),
        Claim(
            "attention_gain_early",
            "after 50 steps removing the tokens that receive least attention lowers the test loss",
            measure=measures.gain("least attention", measures.EARLY),
            within=(-inf, 0.95),
            source="Proposition 2, on sparsification by magnitude",
        ),
    ),
    figure=figures.draw_sparsity,
)

VARIATIONS: dict[str, dict[str, Any]] = {
    "as printed": {},
    "skip": {"skip": 1.0},
    "four classes": {"classes": 4, "n_patterns": 7},
    "two heads": {"heads": 2},
    "pattern sets": {"variants": 2, "dim": 16},
    "batches of 32": {"batch": 32},
}

EXTENSIONS = Experiment(
    "extensions",
    says="Four classes, pattern sets, two heads, a skip connection, and small batches.",
    trainings=Trainings(
        grid={"samples": SAMPLES, "variation": cases(VARIATIONS)},
        seeds=20,
        quick={
            **SMALL,
            "variation": cases({k: VARIATIONS[k] for k in list(VARIATIONS)[:3]}),
            "seeds": 6,
        },
    ),
    claims=(
        Claim(
            "extensions_succeed",
            "all of them generalise: the lowest success rate",
            measure=measures.lowest_success,
            within=(0.5, inf),
            source="Appendix A.6",
        ),
        Claim(
            "extensions_attend",
            "in all of them attention moves to relevant tokens: the smallest rise",
            measure=measures.smallest_rise,
            within=(0.02, inf),
            source="Appendix A.6",
        ),
    ),
    figure=figures.draw_extensions,
)

EXPERIMENTS = (
    FIG2_1A,
    FIG2_1A_FIXED,
    FIG2_1B,
    FIG2_1B_SCALE,
    FIG2_1B_NOISE,
    FIG2_2,
    FIG2_3,
    FIG2_4,
    FIG2_5,
    PROP2_RATE,
    LR_SCALING,
    EXTENSIONS,
)
