"""The experiments on inference, one per figure, and the list of all."""

from dataclasses import replace
from math import inf
from typing import Any

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, cases

from . import figures, measures
from .training import FIG7_7, FIGF_1, SPAN, THM3_ALPHA, THM3_EPS, THM3_K, THM3_M, TRAINED

FEW = (2, 4, 8, 16)  # prompt lengths at which every setting still makes mistakes


def ordered(probe: str, by: str, words: str, source: str, lengths: tuple[int, ...] = FEW) -> Claim:
    return Claim(
        "ordered",
        f"the error falls as {words} grows, at {lengths[0]} to {lengths[-1]} examples "
        "(smallest step)",
        measure=measures.ordered(probe, by, lengths),
        within=(0, inf),
        source=source,
    )


FIG7_3A = Experiment(
    "fig7_3a",
    says="CoT error against the number of examples, for several fractions of matching examples.",
    claims=(
        ordered("cot_error", "alpha_test", "α'", "Figure 7.3(a), Theorem 4"),
        Claim(
            "exponent",
            "the examples needed grow as 1/α' (exponent of α')",
            measure=measures.exponent("cot_error", "alpha_test"),
            within=(-1.2, -0.8),
            source="counting matched examples; (7.20) allows -2",
        ),
        Claim(
            "enough",
            "64 examples are enough in the default setting (error)",
            measure=measures.error_at("cot_error", "default", 64),
            within=(-inf, 0.01),
            source="Theorem 4",
        ),
    ),
    figure=figures.draw_errors("cot_error", "alpha_test", "CoT error by matching fraction"),
    trainings=TRAINED,
)

FIG7_3B = Experiment(
    "fig7_3b",
    says="CoT error against the number of examples, for several trajectory probabilities.",
    claims=(ordered("cot_error", "tau", "τ", "Figure 7.3(b), Theorem 4", (2, 4, 8)),),
    figure=figures.draw_errors(
        "cot_error", "tau", "CoT error by trajectory probability (primacy grows, too)"
    ),
    trainings=TRAINED,
)

FIG7_3C = Experiment(
    "fig7_3c",
    says="CoT error against the number of examples, for several primacies, errors in step 1.",
    claims=(
        ordered("cot_error", "rho", "ρ", "Figure 7.3(c), Theorem 4", (8, 16, 32)),
        Claim(
            "exponent",
            "the examples needed grow as 1/ρ^2 (exponent of ρ, from 0.3 on)",
            measure=measures.exponent("cot_error", "rho", (0.3, 1.0)),
            within=(-2.5, -1.8),
            source="(7.20)",
            scale="paper",
        ),
    ),
    figure=figures.draw_errors("cot_error", "rho", "CoT error by primacy", (0.3, 1.0)),
    trainings=TRAINED,
)

FIG7_4A = Experiment(
    "fig7_4a",
    says="ICL error against the number of examples, for several fractions of matching examples.",
    claims=(
        ordered("icl_error", "alpha_test", "α'", "Figure 7.4(a), Theorem 5"),
        Claim(
            "exponent",
            "the examples needed grow as 1/α' (exponent of α')",
            measure=measures.exponent("icl_error", "alpha_test"),
            within=(-1.2, -0.8),
            source="counting matched examples; (7.22) allows -2",
            scale="paper",
        ),
        Claim(
            "cot_is_better",
            "at equal examples ICL makes more mistakes than CoT (smallest difference)",
            measure=measures.dearer("alpha_test", (2, 4, 8, 16)),
            within=(0, inf),
            source="Remark 5",
        ),
    ),
    figure=figures.draw_errors("icl_error", "alpha_test", "ICL error by matching fraction"),
    trainings=TRAINED,
)

FIG7_4B = Experiment(
    "fig7_4b",
    says="ICL error against the number of examples, for several input-output probabilities.",
    claims=(
        ordered("icl_error", "tau_io", "τ_o", "Figure 7.4(b), Theorem 5", (2, 4, 8)),
        Claim(
            "cot_is_better",
            "at equal examples ICL makes more mistakes than CoT (smallest difference)",
            measure=measures.dearer("tau_io", (2,)),
            within=(0, inf),
            source="Remark 5",
        ),
    ),
    figure=figures.draw_errors(
        "icl_error", "tau_io", "ICL error by input-output probability (primacy grows, too)"
    ),
    trainings=TRAINED,
)

FIG7_4C = Experiment(
    "fig7_4c",
    says="ICL error against the number of examples, for several primacies end to end.",
    claims=(
        ordered("icl_error", "rho_io", "ρ_o", "Figure 7.4(c), Theorem 5", (8, 16, 32)),
        Claim(
            "exponent",
            "the examples needed grow as 1/ρ_o^2 (exponent of ρ_o, from 0.3 on)",
            measure=measures.exponent("icl_error", "rho_io", (0.3, 1.0)),
            within=(-2.5, -1.8),
            source="(7.22)",
            scale="paper",
        ),
    ),
    figure=figures.draw_errors("icl_error", "rho_io", "ICL error by primacy", (0.3, 1.0)),
    trainings=TRAINED,
)

FIG7_5 = Experiment(
    "fig7_5",
    says="CoT and ICL on examples that satisfy Condition 7.3.2, and on others that do not.",
    claims=(
        Claim(
            "cot_succeeds",
            "without the condition CoT succeeds with 128 examples (error)",
            measure=measures.error_at("cot_error", "condition fails", 128),
            within=(-inf, 0.02),
            source="Figure 7.5, Theorem 4",
        ),
        Claim(
            "icl_fails",
            "without the condition the ICL error is of order one with 128 examples",
            measure=measures.error_at("icl_error", "condition fails", 128),
            within=(0.15, inf),
            source="Figure 7.5, Theorem 5(a)",
        ),
        Claim(
            "icl_stays",
            "without the condition ICL gains nothing from 32 to 128 examples (gain)",
            measure=measures.gain("icl_error", "condition fails", 32, 128),
            within=(-inf, 0.05),
            source="Figure 7.5",
        ),
        Claim(
            "icl_learns",
            "with the condition the ICL error falls from 4 to 128 examples (gain)",
            measure=measures.gain("icl_error", "condition holds", 4, 128),
            within=(0.15, inf),
            source="Figure 7.5, Theorem 5(b)",
        ),
        Claim(
            "icl_stays_long",
            "without the condition ICL gains nothing from 64 to 512 examples (gain)",
            measure=measures.gain("icl_error", "condition fails", 64, 512),
            within=(-inf, 0.02),
            source="Figure 7.5, Theorem 5(a)",
            scale="paper",
        ),
    ),
    figure=figures.draw_condition,
    trainings=TRAINED,
)

FIG7_2 = Experiment(
    "fig7_2",
    says="Attention of each reasoning step on a prompt with right and wrong examples.",
    claims=(
        Claim(
            "concentration",
            "every reasoning step puts over 0.95 on matched columns (worst step)",
            measure=measures.matched_by_step,
            within=(0.95, inf),
            source="Proposition 3, (7.23)",
        ),
    ),
    figure=figures.draw_map,
    trainings=TRAINED,
)

FIG7_6 = Experiment(
    "fig7_6",
    says="Attention on four types of columns along training: two stages.",
    claims=(
        Claim(
            "stages",
            "other steps fall below 0.05 before matched columns pass 0.9 (ratio of times)",
            measure=measures.stage_order,
            within=(1, inf),
            source="Figure 7.6, Lemmas F.3.6 and F.3.7",
        ),
        Claim(
            "rise",
            "attention on other patterns of the same step rises first (peak over start)",
            measure=measures.hump(0),
            within=(1.2, inf),
            source="Figure 7.6",
        ),
        Claim(
            "fall",
            "and falls then (peak over end)",
            measure=measures.hump(-1),
            within=(3, inf),
            source="Figure 7.6",
        ),
        Claim(
            "winner",
            "at the end over 0.95 of the attention are on matched columns",
            measure=lambda ds: stats.mean(
                measures.by_type(ds).isel(step=-1, type=measures.MATCHED)
            ),
            within=(0.95, inf),
            source="Figure 7.6, Proposition 3",
        ),
    ),
    figure=figures.draw_dynamics,
    trainings=TRAINED,
)

VOTE = Experiment(
    "vote",
    says="The trained network against a vote of the matched columns, on the same prompts.",
    claims=(
        Claim(
            "cot_is_a_vote",
            "CoT errs as often as the vote, from 4 examples on (largest difference)",
            measure=measures.disagreement("cot_error"),
            within=(-inf, 0.03),
            source="perfect attention, Proposition 3",
        ),
        Claim(
            "icl_is_a_vote",
            "without the output rows of W, ICL errs as often as the vote (largest difference)",
            measure=measures.disagreement("icl_error", "icl_blind"),
            within=(-inf, 0.03),
            source="perfect attention, Proposition 3",
        ),
        Claim(
            "output_rows",
            "where Condition 7.3.2 fails ICL errs less often than the vote at 256 examples",
            measure=measures.missed("icl_error", 256),
            within=(0, inf),
            source="negative diagonal of W's output rows",
            scale="paper",
        ),
    ),
    figure=figures.draw_vote,
    trainings=replace(
        TRAINED,
        grid={**TRAINED.grid, "by": cases({"network": {}, "vote": {"simulator": "plurality"}})},
    ),
)


def law(name: str, by: str, words: str, within: tuple[float, float], **more: Any) -> Claim:
    return Claim(
        name,
        f"the examples needed by CoT depend on {words} with this exponent",
        measure=measures.exponent("cot_error", by),
        within=within,
        **more,
    )


NOT_TIGHT = "(7.20) is an upper bound; what counts is the number of matched examples."

LAWS = Experiment(
    "laws",
    says="Examples needed for an error of 0.05, one factor at a time, by the vote.",
    trainings=Trainings(
        grid={"suite": "laws", "examples_test": 1024, "test_samples": 400},
        seeds=16,
        quick={"examples_test": 256, "test_samples": 160, "seeds": 6},
        simulator="plurality",
    ),
    claims=(
        law("alpha", "alpha_test", "α'", (-1.2, -0.8), source="counting matched examples"),
        law(
            "tau",
            "tau",
            "τ, at equal ρ,",
            (-1.5, -0.6),
            source="counting matched examples",
            scale="paper",
        ),
        law("rho", "rho", "ρ, errors in step 1,", (-2.5, -1.8), source="(7.20)"),
        Claim(
            "alpha_bound",
            "the examples needed grow as 1/α'^2 (exponent)",
            measure=measures.exponent("cot_error", "alpha_test"),
            within=(-2.2, -1.8),
            source="(7.20) read as an equality",
            expected="fails",
            note=NOT_TIGHT,
        ),
        Claim(
            "tau_bound",
            "the examples needed grow as 1/τ^2 (exponent)",
            measure=measures.exponent("cot_error", "tau"),
            within=(-2.2, -1.8),
            source="(7.20) read as an equality",
            expected="fails",
            note=NOT_TIGHT,
        ),
        Claim(
            "bound",
            "(7.20) with its constant set to 1 is enough everywhere (largest ratio)",
            measure=measures.bound_factor,
            within=(-inf, 1),
            source="Theorem 4",
        ),
        Claim(
            "icl_stays",
            "without Condition 7.3.2 the ICL error grows from 64 to 512 examples (gain)",
            measure=measures.gain("icl_error", "condition fails", 64, 512),
            within=(-inf, 0),
            source="Figure 7.5, Theorem 5(a)",
            scale="paper",
        ),
        Claim(
            "icl_learns",
            "with Condition 7.3.2 the ICL error is small with 512 examples",
            measure=measures.error_at("icl_error", "condition holds", 512),
            within=(-inf, 0.1),
            source="Figure 7.5, Theorem 5(b)",
            scale="paper",
        ),
    ),
    figure=figures.draw_laws,
)


def example_claims(
    by: str, scale: Any, within: tuple[tuple[float, float], ...]
) -> tuple[Claim, ...]:
    def at(ds: Any) -> Any:
        return ds.sel(by=by).isel(setting=0, l_test=-1, drop=True)

    return (
        Claim(
            f"cot_{by}",
            f"CoT succeeds on Example 1 (error of the {by})",
            measure=lambda ds: stats.mean(at(ds).cot_error),
            within=within[0],
            source="Example 1, Theorem 4",
            scale=scale,
        ),
        Claim(
            f"icl_first_{by}",
            f"ICL fails on the first input (error of the {by})",
            measure=lambda ds: stats.mean(at(ds).icl_from.isel(start=0)),
            within=within[1],
            source="Example 1, Theorem 5(a)",
            scale=scale,
        ),
        Claim(
            f"icl_second_{by}",
            f"ICL succeeds on the second input (error of the {by})",
            measure=lambda ds: stats.mean(at(ds).icl_from.isel(start=1)),
            within=within[2],
            source="Example 1, Theorem 5(b)",
            scale=scale,
        ),
    )


FIG7_1 = Experiment(
    "fig7_1",
    says="Example 1: errors by input with many examples.",
    trainings=Trainings(
        grid={
            "suite": "example_1",
            "n_steps": 2,
            "n_patterns_test": 2,
            "examples_test": 1024,
            "test_samples": 200,
            "lr": 10.0,
            "by": cases({"vote": {"simulator": "plurality"}, "network": {}}),
        },
        seeds=16,
        quick={"by": cases({"vote": {"simulator": "plurality"}}), "seeds": 6, "test_samples": 100},
    ),
    claims=(
        *example_claims("vote", None, ((-inf, 0.02), (0.95, inf), (-inf, 0.02))),
        *example_claims("network", "paper", ((-inf, 0.15), (0.3, inf), (-inf, 0.02))),
    ),
    figure=figures.draw_example,
)

EXPERIMENTS = (
    FIG7_3A,
    FIG7_3B,
    FIG7_3C,
    FIG7_4A,
    FIG7_4B,
    FIG7_4C,
    FIG7_5,
    FIG7_2,
    FIG7_6,
    SPAN,
    THM3_EPS,
    VOTE,
    LAWS,
    FIG7_1,
    THM3_M,
    THM3_ALPHA,
    THM3_K,
    FIG7_7,
    FIGF_1,
)
