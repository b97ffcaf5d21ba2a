"""Experiments on pruning, lengths of contexts, steps, and numbers of training tasks."""

from math import inf
from typing import Any

from provingground.claims import Claim
from provingground.study import Experiment, Trainings, axis, cases

from . import figures, measures

PRUNING = Trainings(
    grid={"alpha": 0.6, "test_samples": 4000},
    seeds=8,
    quick={"steps": 800, "test_samples": 1000, "seeds": 4},
    simulator="mechanism",
)
FIG6_5A = Experiment(
    "fig6_5a",
    says="Loss and error out of domain after pruning neurons, and the norms of neurons.",
    trainings=PRUNING,
    claims=(
        Claim(
            "small_are_free",
            "pruning a quarter of the neurons, the smallest, costs less than 0.01 of hinge loss",
            measure=measures.cost("magnitude", 0.25),
            within=(-inf, 0.01),
            source="Theorem 6.3.7 (6.15), Figure 6.5(a)",
        ),
        Claim(
            "large_cost",
            "from there on the loss is linear in the pruning rate (squared correlation)",
            measure=measures.straightness("magnitude", 0.4, 0.9),
            within=(0.99, inf),
            source="Theorem 6.3.7 (6.16)",
        ),
        Claim(
            "large_slope",
            "its slope is that of large neurons which count alike (ratio)",
            measure=measures.slope_over_share,
            within=(0.85, 1.15),
            source="found here",
        ),
        Claim(
            "random_cost",
            "pruning at random costs loss from the start, linearly (squared correlation)",
            measure=measures.straightness("random", 0.0, 0.95),
            within=(0.99, inf),
            source="Figure 6.5(a)",
        ),
        Claim(
            "orders",
            "at R = 0.3 magnitude is better than random, random than largest first (seeds)",
            measure=measures.ordered_orders,
            within=(0.5, inf),
            source="Theorem 6.3.7, Figure 6.5(a)",
        ),
        Claim(
            "worst_case",
            "pruning the largest costs at least what (E.109) says (least difference, R 0.1 to 0.6)",
            measure=measures.above_bound,
            within=(0, inf),
            source="(E.109), behind (6.16)",
        ),
        Claim(
            "error_rises",
            "the error rises as soon as large neurons are pruned (by over 0.01 at R = 0.4)",
            measure=measures.cost("magnitude", 0.4, "pruned_error"),
            within=(0.01, inf),
            source="Figure 6.5(a)",
            expected="fails",
            note="With 400 neurons pruning rescales F and keeps its sign until over half are "
            "gone; the theorem is about the hinge loss.",
        ),
        Claim(
            "error_flat",
            "the error rises by less than 0.01 when half of the neurons are pruned",
            measure=measures.cost("magnitude", 0.5, "pruned_error"),
            within=(-inf, 0.01),
            source="found here",
        ),
    ),
    figure=figures.draw_pruning,
)

FIG6_5B = Experiment(
    "fig6_5b",
    says="Loss and error of pruned models by the fraction of decisive patterns in the test.",
    trainings=PRUNING,
    claims=(
        Claim(
            "more_decisive_better",
            "at every pruning rate the loss falls with alpha' (least step)",
            measure=measures.pruned_by_alpha,
            within=(0, inf),
            source="Theorem 6.3.7 (6.16), Figure 6.5(b)",
        ),
    ),
    figure=figures.draw_pruning_by_alpha,
)

FIG6_5_SMALL = Experiment(
    "fig6_5_small",
    says="Pruning by magnitude where there are few neurons: the error rises too.",
    trainings=Trainings(
        grid={"alpha": 0.6, "width": [30, 60], "test_samples": 4000},
        seeds=16,
        simulator="mechanism",
        paper_only=True,
    ),
    claims=(
        Claim(
            "few_neurons_error",
            "with 30 neurons the error rises by over 0.02 when 80% are pruned",
            measure=measures.small_cost,
            within=(0.02, inf),
            source="Figure 6.5(a)",
        ),
    ),
    figure=figures.draw_small,
)

SMALL: dict[str, Any] = {"width": 100, "seeds": 3}

FIGE_1A = Experiment(
    "fige_1a",
    says="Length of training contexts against the fraction of decisive patterns, in two readings.",
    trainings=Trainings(
        grid={
            "alpha": [0.2, 0.4, 0.8],
            "tokens": [2, 3, 4, 6, 8, 12, 16, 24, 32],
            "test_samples": 4000,
            "width": 100,
            "steps": 1200,
        },
        seeds=6,
        quick={
            **SMALL,
            "alpha": [0.25, 0.8],
            "tokens": [4, 8, 16, 32],
            "steps": 700,
            "test_samples": 1000,
        },
    ),
    claims=(
        Claim(
            "length_linear",
            "with tests like the training, the length for a loss of 0.05 goes as 1 / alpha",
            measure=lambda ds: measures.covered_length(ds).law.slope,
            within=(-1.3, -0.8),
            source="(6.9), Figure E.1(a)",
        ),
        Claim(
            "short_suffices",
            "with fixed test prompts, training contexts of four examples do: error below 1%",
            measure=measures.short_error,
            within=(-inf, 0.01),
            source="found here",
        ),
        Claim(
            "short_fails",
            "with fixed test prompts, training contexts of four examples leave an error over 10%",
            measure=measures.short_error,
            within=(0.1, inf),
            source="Theorem 6.3.3 (iii), read literally",
            expected="fails",
            note="Four examples are enough to learn where to look, whatever alpha; what 1 / alpha "
            "examples are needed for is the test, where the query's pattern must occur.",
        ),
    ),
    figure=figures.draw_context,
)

FIGE_1B = Experiment(
    "fige_1b",
    says="Steps until the training loss is 0.1 against the fraction of decisive patterns.",
    trainings=Trainings(
        grid={
            "alpha": [0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0],
            "tokens": 40,
            "eps": 0.1,
            "steps": 6000,
            "test_samples": 4000,
        },
        seeds=8,
        quick={**SMALL, "test_samples": 1000},
    ),
    claims=(
        Claim(
            "steps_linear",
            "the steps are linear in alpha^(-2/3) (squared correlation)",
            measure=measures.linear_in_power,
            within=(0.97, inf),
            source="Figure E.1(b)",
        ),
        Claim(
            "steps_exponent",
            "the steps fall with alpha, with an exponent near -2/3",
            measure=measures.steps_exponent,
            within=(-0.95, -0.55),
            source="(6.10), Figure E.1(b)",
        ),
        Claim(
            "steps_exponent_printed",
            "the exponent is -2/3 (within 0.05)",
            measure=measures.steps_exponent,
            within=(-2 / 3 - 0.05, -2 / 3 + 0.05),
            source="(6.10)",
            expected="fails",
            note="It is nearer to -0.8. The steps do fit a line in alpha^(-2/3), with a negative "
            "offset: a good fit of a line is no evidence for an exponent.",
        ),
    ),
    figure=figures.draw_steps,
)

SCALING = Experiment(
    "scaling",
    says="Steps until the training loss is 0.1 by width, initial scale and step size.",
    trainings=Trainings(
        grid={
            "eps": 0.1,
            "steps": 6000,
            "test_samples": 4000,
            "change": cases(
                {
                    "width 400, delta 0.1, lr 1": {},
                    "width 100": {"width": 100},
                    "width 200": {"width": 200},
                    "delta 0.05": {"delta": 0.05},
                    "delta 0.2": {"delta": 0.2},
                    "lr 0.5": {"lr": 0.5},
                    "lr 0.25": {"lr": 0.25},
                }
            ),
        },
        seeds=8,
        quick={
            **SMALL,
            "test_samples": 1000,
            "seeds": 5,
            "change": cases(
                {
                    "delta 0.1, lr 1": {},
                    "delta 0.05": {"delta": 0.05},
                    "delta 0.2": {"delta": 0.2},
                    "lr 0.5": {"lr": 0.5},
                    "lr 0.25": {"lr": 0.25},
                }
            ),
        },
    ),
    claims=(
        Claim(
            "steps_by_lr",
            "the steps go as 1 / eta",
            measure=measures.scaling_exponent("lr"),
            within=(-1.1, -0.9),
            source="(6.10)",
        ),
        Claim(
            "steps_by_scale_printed",
            "the steps fall with the initial scale with an exponent of -2/3 (within 0.05)",
            measure=measures.scaling_exponent("delta"),
            within=(-2 / 3 - 0.05, -2 / 3 + 0.05),
            source="(E.62)",
            expected="fails",
            note="The exponent is about -1.",
        ),
        Claim(
            "steps_by_scale",
            "the steps fall about as the inverse of the initial scale (exponent)",
            measure=measures.scaling_exponent("delta"),
            within=(-1.2, -0.8),
            source="found here",
        ),
        Claim(
            "steps_by_width_printed",
            "the steps do not depend on the width (exponent)",
            measure=measures.scaling_exponent("width"),
            within=(-0.1, 0.1),
            source="(6.10), read literally",
            expected="fails",
            note="(6.10) is (E.61) with a width of the order of M_1^2 put in.",
            scale="paper",
        ),
        Claim(
            "steps_by_width",
            "the steps grow with the width (exponent; the cubic term of (E.61) has 2/3)",
            measure=measures.scaling_exponent("width"),
            within=(0.5, 1.0),
            source="theory.steps_to_margin",
            scale="paper",
        ),
    ),
    figure=figures.draw_scaling,
)

FIGE_2 = Experiment(
    "fige_2",
    says="Error on unseen tasks against the number of training tasks.",
    trainings=Trainings(
        grid={
            "n_relevant": [4, 6, 8, 10],
            "extra": axis(
                [-4, -3, -2, -1, 0, 1, 2, 4],
                r"|\mathcal{T}_{tr}| - M_1",
                "training tasks",
                sets=measures.beyond,
            ),
            "alpha": 0.6,
            "alpha_test": 0.6,
            "tokens_test": 40,
            "width": 100,
            "steps": 2000,
            "test_samples": 4000,
        },
        seeds=6,
        quick={
            **SMALL,
            "n_relevant": [4, 6],
            "extra": [-3, -1, 0, 2],
            "steps": 600,
            "test_samples": 1000,
            "seeds": 4,
        },
    ),
    claims=(
        Claim(
            "covered",
            "with M_1 tasks or more the error on unseen tasks is about zero (largest)",
            measure=measures.with_extra("test_error", 0, 99, "high"),
            within=(-inf, 0.01),
            source="Condition 6.3.2, Lemma E.4.11, Figure E.2",
        ),
        Claim(
            "one_missing_loss",
            "with one task less the hinge loss on unseen tasks is over 0.05 (smallest)",
            measure=measures.with_extra("test_loss", -1, -1, "low"),
            within=(0.05, inf),
            source="Figure E.2",
        ),
        Claim(
            "two_missing_error",
            "with two tasks less, or fewer, the error on unseen tasks is over 10% (smallest)",
            measure=measures.with_extra("test_error", -99, -2, "low"),
            within=(0.1, inf),
            source="Figure E.2",
            scale="quick",
        ),
        Claim(
            "two_missing_everywhere",
            "the same for all numbers of patterns up to 10",
            measure=measures.with_extra("test_error", -99, -2, "low"),
            within=(0.1, inf),
            source="Figure E.2",
            expected="fails",
            note="With 8 and 10 patterns two missing tasks leave most pairs covered.",
            scale="paper",
        ),
        Claim(
            "two_missing_some",
            "with two tasks less, or fewer, the error on unseen tasks is over 3% (smallest)",
            measure=measures.with_extra("test_error", -99, -2, "low"),
            within=(0.03, inf),
            source="found here",
            scale="paper",
        ),
    ),
    figure=figures.draw_tasks,
)
