"""The experiments on training: its law of time, leaning patterns, and deeper networks."""

from math import inf
from typing import Any

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, cases

from . import figures, measures

# One training serves Figures 7.2 to 7.6: each is tested on all settings and prompt lengths.
TRAINED = Trainings(
    grid={"lr": 1.0, "steps": 10_000, "record": 60, "examples_test": 512, "test_samples": 400},
    seeds=16,
    quick={
        "lr": 5.0, "steps": 1000, "record": 30, "examples_test": 128, "test_samples": 240,
        "seeds": 6,
    },
)  # fmt: skip

THM3_EPS = Experiment(
    "thm3_eps",
    says="The loss along training.",
    claims=(
        Claim(
            "inverse_time",
            "late in training the loss falls as 1/t (exponent)",
            measure=measures.loss_exponent,
            within=(-1.25, -0.85),
            source="Theorem 3, (7.15)",
        ),
        Claim(
            "recursion",
            "at the end it is that of stage two with rate η/(M-1) (ratio)",
            measure=measures.recursion_ratio,
            within=(0.7, 1.4),
            source="theory.stage_two, theory.stage_two_rate",
        ),
    ),
    figure=figures.draw_loss,
    trainings=TRAINED,
)

SMALL = (0.0, 0.4)  # fractions of matching examples at which training does not start near its end

SCALING = {"examples": 40, "steps": 600, "lr": 10.0}

THM3_M = Experiment(
    "thm3_m",
    says="Training steps to a loss of 0.01 against the number of patterns.",
    trainings=Trainings(
        grid={**SCALING, "eps": 0.01, "n_patterns": [10, 15, 20, 25]},
        seeds=16,
        quick={"n_patterns": [10, 20], "seeds": 6},
        simulator="training",
    ),
    claims=(
        Claim(
            "linear",
            "the steps grow as M (exponent)",
            measure=measures.time_exponent("n_patterns"),
            within=(0.8, 1.2),
            source="Theorem 3, (7.15)",
        ),
        Claim(
            "straight",
            "the steps are linear in M (squared correlation)",
            measure=measures.straightness("n_patterns"),
            within=(0.98, inf),
            source="Theorem 3, (7.15)",
            scale="paper",
        ),
    ),
    figure=figures.draw_times("n_patterns", "Steps to a loss of 0.01", 1.0),
)

THM3_ALPHA = Experiment(
    "thm3_alpha",
    says="Training steps to a loss of 0.1 against the fraction of matching examples.",
    trainings=Trainings(
        grid={**SCALING, "eps": 0.1, "alpha": [0.1, 0.2, 0.4, 0.8]},
        seeds=16,
        quick={"seeds": 6},
        simulator="training",
    ),
    claims=(
        Claim(
            "decreasing",
            "more matching examples save steps (smallest step)",
            measure=lambda ds: stats.monotone(measures.times(ds), "alpha"),
            within=(0, inf),
            source="Theorem 3, (7.15)",
        ),
        Claim(
            "exponent",
            "the steps grow as 1/α up to α = 0.4 (exponent)",
            measure=measures.time_exponent("alpha", SMALL),
            within=(-1.3, -0.7),
            source="found here",
            note="At α = 0.8 the loss starts near 0.1.",
        ),
        Claim(
            "bound",
            "the steps grow as 1/α^2 up to α = 0.4 (exponent)",
            measure=measures.time_exponent("alpha", SMALL),
            within=(-2.2, -1.8),
            source="(7.15) read as an equality",
            expected="fails",
            note="(7.15) is an upper bound.",
        ),
    ),
    figure=figures.draw_times("alpha", "Steps to a loss of 0.1", -2.0, SMALL),
)

SPAN = Experiment(
    "span",
    says="Attention on matched columns for test patterns that lean to the uniform mixture.",
    claims=(
        Claim(
            "any_pattern",
            "the uniform mixture of the training patterns is attended to like any pattern",
            measure=measures.attention_of(-1),
            within=(0.95, inf),
            source="Theorem 4, (7.19); Proposition 3",
            expected="fails",
            note="Columns of W's input block sum to zero, so that the mixture has no score with "
            "itself (theory.input_score): its columns get their share of the examples, 0.8.",
        ),
        Claim(
            "mixture",
            "the uniform mixture gets no more than its share of the examples, 0.8",
            measure=measures.attention_of(-1),
            within=(0.75, 0.85),
            source="theory.input_score",
        ),
        Claim(
            "prediction",
            "the attention is that of theory.input_score with the measured w_1 (difference)",
            measure=lambda ds: stats.agreement(
                ds.span_attention, measures.predicted_attention(ds), relative=False
            ),
            within=(-inf, 0.03),
            source="theory.input_score",
        ),
    ),
    figure=figures.draw_span,
    trainings=TRAINED,
)

THM3_K = Experiment(
    "thm3_k",
    says="Training steps to a loss of 0.01 against the number of reasoning steps.",
    trainings=Trainings(
        grid={**SCALING, "eps": 0.01, "n_steps": [2, 3, 5]},
        seeds=16,
        paper_only=True,
        simulator="training",
    ),
    claims=(
        Claim(
            "bound",
            "the steps grow as K (exponent)",
            measure=measures.time_exponent("n_steps"),
            within=(0.8, 1.2),
            source="last term of (7.15) read as an equality",
            expected="fails",
            note="All reasoning steps train the same input block of W.",
        ),
    ),
    figure=figures.draw_times("n_steps", "Steps to a loss of 0.01", 1.0),
)

FIG7_7 = Experiment(
    "fig7_7",
    says="Attention of every layer and head of a three-layer transformer, K = 2.",
    trainings=Trainings(
        grid={"steps": 2000, "record": 25}, seeds=8, paper_only=True, simulator="deep"
    ),
    claims=(
        Claim(
            "largest",
            "in every layer a head attends more to matched columns than to any other type (lead)",
            measure=measures.lead,
            within=(0, inf),
            source="Figure 7.7",
        ),
        Claim(
            "first_layer",
            "a head of layer 1 puts over 0.5 on matched columns",
            measure=measures.least_matched([1]),
            within=(0.5, inf),
            source="Figure 7.7",
        ),
        Claim(
            "later_layers",
            "heads of layers 2 and 3 put over 0.75 on matched columns (worst layer)",
            measure=measures.least_matched([2, 3]),
            within=(0.75, inf),
            source="Figure 7.7",
        ),
    ),
    figure=figures.draw_layers("Three layers, two heads: the best head of each layer"),
)


def sinusoidal(measure: Any) -> Any:
    return lambda ds: measure(ds.sel(encoding="sinusoidal", drop=True))


FIGF_1 = Experiment(
    "figf_1",
    says="Attention of a three-layer transformer with sinusoidal positions.",
    trainings=Trainings(
        grid={
            "heads": 1,
            "sees_itself": False,
            "steps": 5000,
            "record": 25,
            "encoding": cases({"sinusoidal": {"positions": "sinusoidal"}, "by step": {}}),
        },
        seeds=8,
        paper_only=True,
        simulator="deep",
    ),
    claims=(
        Claim(
            "rises",
            "attention on matched columns rises in every layer (smallest rise)",
            measure=sinusoidal(measures.rise),
            within=(0, inf),
            source="Figure F.1",
        ),
        Claim(
            "largest",
            "and becomes the largest type in every layer (lead)",
            measure=sinusoidal(measures.lead),
            within=(0, inf),
            source="Figure F.1",
        ),
        Claim(
            "later_layers",
            "layers 2 and 3 together put over 0.7 on matched columns (mean of both)",
            measure=sinusoidal(measures.mean_matched([2, 3])),
            within=(0.7, inf),
            source="Figure F.1",
        ),
        Claim(
            "lower",
            "encodings by step give more attention to matched columns (difference)",
            measure=measures.cost_of_positions,
            within=(0, inf),
            source="Appendix F.1.3",
        ),
    ),
    figure=figures.draw_layers("Three layers, one head, sinusoidal positions", "sinusoidal"),
)
