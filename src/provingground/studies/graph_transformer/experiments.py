"""One Experiment per figure: the grid, what it should show, and how it is drawn."""

from math import inf

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, axis, cases

from . import drawing, measures, theory
from .labels import COVERAGE, FIG3_3A, FIG3_3B, FIG3_6
from .measures import PAPER, QUICK
from .variants import ENCODINGS, GRAPH_LEVEL, REDUCTION

FRACTIONS = [0.6, 0.45, 0.33, 0.22, 0.15]

PE_ABLATION = Experiment(
    "pe_ablation",
    says="What attention and the distance encoding are good for: five networks on one graph.",
    trainings=Trainings(
        grid={
            **PAPER,
            "confusion_ratio": 0.1,
            "steps": 4000,
            "samples": [50, 200],
            "network": cases(measures.NETWORKS),
        },
        seeds=20,
        quick={**QUICK, "steps": 400, "samples": [50, 120], "seeds": 4},
    ),
    claims=(
        Claim(
            "gt_learns",
            "the test error of the GT with encoding is zero",
            measure=lambda ds: measures.error_of(ds, "GT"),
            within=(-inf, 0.01),
            source="Theorem 3.4.4",
        ),
        Claim(
            "encoding_is_needed",
            "without the encoding the test error of the GT stays above 0.2",
            measure=lambda ds: measures.error_of(ds, "GT, no encoding"),
            within=(0.2, inf),
            source="section 3.4.5, synthetic twin of Figure 3.9",
        ),
        Claim(
            "core_known",
            "with the core ring given, no encoding is needed: the test error is zero",
            measure=lambda ds: measures.error_of(ds, "GT, core known"),
            within=(-inf, 0.01),
            source="Theorem 3.4.8",
        ),
        Claim(
            "gcn_with_core",
            "with the core ring given, the GCN learns too",
            measure=lambda ds: measures.error_of(ds, "GCN, core known"),
            within=(-inf, 0.01),
            source="Theorem 3.4.6",
        ),
        Claim(
            "gcn_without_core",
            "over all rings the GCN does not learn: the test error stays above 0.4",
            measure=lambda ds: measures.error_of(ds, "GCN, all rings"),
            within=(0.4, inf),
            source="section 3.4.4",
        ),
        Claim(
            "encoding_finds_core",
            "the bias of the core ring becomes the largest of distances 1 to 3 (gap)",
            measure=lambda ds: stats.mean(measures.bias_gap(measures.at_network("GT", ds))),
            within=(0, inf),
            source="Lemma 3.4.7",
        ),
        Claim(
            "finding_takes_steps",
            "finding the core costs over twice the steps of knowing it",
            measure=lambda ds: stats.paired_ratio(
                *(
                    measures.hitting_time(measures.at_network(name, ds).isel(samples=-1))
                    for name in ("GT", "GT, core known")
                )
            ),
            within=(2, inf),
            source="found here; Theorem 3.4.8 calls both equivalent up to constants",
        ),
    ),
    figure=drawing.draw_ablation,
)


FIG3_4 = Experiment(
    "fig3_4",
    says="Test loss in time for labels of which a fraction contradicts the vote.",
    trainings=Trainings(
        grid={
            **PAPER,
            "confusion_ratio": 0.0,
            "steps": 6000,
            "samples": 400,
            "frac_inconsistent": [0.0, 0.05, 0.1, 0.15, 0.2],
        },
        seeds=20,
        quick={**QUICK, "steps": 300, "samples": 256, "seeds": 8},
    ),
    claims=(
        Claim(
            "plateau",
            "the test loss ends at twice the flipped fraction of the test set (deviation)",
            measure=lambda ds: stats.agreement(
                measures.end(ds.test_loss), theory.final_loss(ds.inconsistent), relative=False
            ),
            within=(-inf, 0.03),
            source="(3.10), Figure 3.4",
        ),
        Claim(
            "flips_slow_down",
            "more flips take more steps (smallest step up)",
            measure=lambda ds: stats.monotone(
                measures.settling_time(ds), "frac_inconsistent", "increasing"
            ),
            within=(0, inf),
            source="Figure 3.4",
        ),
        Claim(
            "flips_law",
            "the steps grow as (1 - 2 ε_0)^(-1/2)",
            measure=measures.flip_exponent,
            within=(-0.75, -0.25),
            source="(3.8)",
            expected="fails",
            note="Flips cancel that share of the gradient, so they slow the flow by 1 - 2 ε_0.",
        ),
        Claim(
            "flips_law_flow",
            "the steps grow as (1 - 2 ε_0)^(-1)",
            measure=measures.flip_exponent,
            within=(-1.3, -0.7),
            source="gradient flow",
        ),
    ),
    figure=drawing.draw_flips,
)


FIG3_5 = Experiment(
    "fig3_5",
    says="Attention on class-relevant nodes and on all others, in time.",
    trainings=Trainings(
        grid={
            **PAPER,
            "frac_disc": [0.2, 0.3, 0.4, 0.6, 0.8],
            "confusion_ratio": 0.0,
            "steps": 6000,
            "samples": 400,
        },
        seeds=20,
        quick={**QUICK, "steps": 400, "samples": 256, "seeds": 4},
    ),
    claims=(
        Claim(
            "attention_concentrates",
            "attention on class-relevant nodes at least doubles",
            measure=lambda ds: stats.paired_ratio(
                measures.end(ds.attention_relevant).sel(frac_disc=0.2),
                ds.attention_relevant.isel(step=0).sel(frac_disc=0.2),
            ),
            within=(2, inf),
            source="Lemma 3.4.5, Figure 3.5",
        ),
        Claim(
            "attention_majority",
            "attention on class-relevant nodes rises above 0.6",
            measure=lambda ds: stats.mean(measures.end(ds.attention_relevant).sel(frac_disc=0.2)),
            within=(0.6, inf),
            source="Lemma 3.4.5, Figure 3.5",
        ),
        Claim(
            "attention_to_one",
            "attention on class-relevant nodes comes close to 1 (over 0.95)",
            measure=lambda ds: stats.mean(measures.end(ds.attention_relevant).sel(frac_disc=0.2)),
            within=(0.95, inf),
            source="(3.11), Figure 3.5",
            expected="fails",
            note="The hinge loss is zero long before, and then nothing moves.",
        ),
    ),
    figure=drawing.draw_attention,
)


FIG3_7 = Experiment(
    "fig3_7",
    says="Steps that the GCN on the core ring needs, over γ_d; also Figure B.6(b).",
    trainings=Trainings(
        grid={
            **PAPER,
            **measures.GCN,
            "confusion_ratio": 0.2,
            "samples": 800,
            "frac_disc": axis(
                [0.8, 0.6, 0.5, 0.4, 0.33, 0.28, 0.25, 0.2, 0.16],
                sets=measures.enough_steps(2.0),
            ),
        },
        seeds=20,
        quick={**QUICK, "samples": 128, "frac_disc": FRACTIONS, "seeds": 5},
    ),
    claims=(
        Claim(
            "gcn_steps_law",
            "up to γ_d = 0.4 the steps fall as the discriminative fraction to the power -2",
            measure=lambda ds: measures.time_exponent(ds, (0.0, 0.4)),
            within=(-2.6, -1.7),
            source="(3.12), Figure 3.7",
        ),
        Claim(
            "gcn_steps_law_above",
            "the same from γ_d = 0.4 on",
            measure=lambda ds: measures.time_exponent(ds, (0.4, 1.0)),
            within=(-2.6, -1.7),
            source="(3.12), Figure 3.7",
            expected="fails",
            note="About -1: there the other nodes' votes, which do not know γ_d, take the time.",
        ),
    ),
    figure=drawing.draw_gcn_steps,
)


FIGB6 = Experiment(
    "figb6",
    says="Steps that the GT needs over γ_d, beside those of the GCN on the core ring.",
    trainings=Trainings(
        grid={
            **PAPER,
            "samples": 800,
            "network": cases(
                {
                    "GT": dict(confusion_ratio=0.05),
                    "GCN, core known": dict(confusion_ratio=0.2, **measures.GCN),
                }
            ),
            "frac_disc": axis(
                [0.8, 0.6, 0.5, 0.4, 0.33, 0.28, 0.25, 0.2, 0.16],
                sets=measures.enough_steps(2.0),
            ),
        },
        seeds=20,
        quick={**QUICK, "samples": 128, "frac_disc": FRACTIONS, "seeds": 5},
    ),
    claims=(
        Claim(
            "gt_steps_flat",
            "the steps that the GT needs do not depend on the discriminative fraction (exponent)",
            measure=lambda ds: measures.time_exponent(measures.at_network("GT", ds)),
            within=(-0.25, 0.25),
            source="(3.8), Figure B.6(a)",
            expected="fails",
            note="They grow as γ_d falls, though much less than the GCN's.",
        ),
        Claim(
            "gt_steps_spread",
            "the steps of the GT change by less than a factor of 3.5",
            measure=lambda ds: measures.spread(
                measures.hitting_time(measures.at_network("GT", ds)), "frac_disc"
            ),
            within=(-inf, 3.5),
            source="Figure B.6(a)",
        ),
        Claim(
            "gcn_steps_spread",
            "those of the GCN by over 8",
            measure=lambda ds: measures.spread(
                measures.hitting_time(measures.at_network("GCN, core known", ds)), "frac_disc"
            ),
            within=(8, inf),
            source="Figure B.6(b)",
        ),
    ),
    figure=drawing.draw_steps,
)


PE_ORDER = Experiment(
    "pe_order",
    says="The learned distance bias against the mean winning margins.",
    trainings=Trainings(
        grid={
            **PAPER,
            "steps": 4000,
            "samples": 400,
            "setting": cases(measures.SETTINGS),
        },
        seeds=20,
        quick={**QUICK, "steps": 300, "samples": 256, "seeds": 4},
    ),
    claims=(
        Claim(
            "core_bias_largest",
            "the bias of the core ring is the largest in every setting (smallest gap)",
            measure=lambda ds: stats.worst(
                [stats.mean(measures.bias_gap(ds).sel(setting=s)) for s in ds.setting.values],
                "low",
            ),
            within=(0, inf),
            source="Lemma 3.4.7",
        ),
        Claim(
            "bias_follows_margin",
            "of two sampled rings the one of larger mean margin has the larger bias (share)",
            measure=lambda ds: stats.mean(measures.ordered_as_margins(ds)),
            within=(0.9, inf),
            source="Lemma 3.4.7",
        ),
        Claim(
            "bias_sum",
            "the biases sum to zero throughout (largest deviation)",
            measure=measures.bias_sum,
            within=(-inf, 1e-4),
            source="theory.bias_gradient",
        ),
    ),
    figure=drawing.draw_bias,
)


STEP_SIZE = Experiment(
    "step_size",
    says="Steps until the test loss is small, over the step size.",
    trainings=Trainings(
        grid={
            "record": 61,
            "samples": 400,
            "lr": axis([0.01, 0.02, 0.05, 0.1, 0.2], sets=measures.flow_steps),
        },
        seeds=20,
        quick={"record": 21, "samples": 256, "lr": [0.1, 0.15, 0.2, 0.3, 0.4], "seeds": 4},
    ),
    claims=(
        Claim(
            "steps_law_paper",
            "the steps grow as the step size to the power -1/2",
            measure=lambda ds: stats.power_law(measures.hitting_time(ds), "lr").slope,
            within=(-0.6, -0.4),
            source="(3.8)",
            expected="fails",
            note="Small steps follow the gradient flow, whose time is η T.",
        ),
        Claim(
            "steps_law_flow",
            "the steps grow as the step size to the power -1",
            measure=lambda ds: stats.power_law(measures.hitting_time(ds), "lr").slope,
            within=(-1.1, -0.9),
            source="gradient flow",
        ),
    ),
    figure=drawing.draw_step_size,
)


EXPERIMENTS = (
    PE_ABLATION,
    FIG3_3A,
    FIG3_3B,
    COVERAGE,
    FIG3_4,
    FIG3_5,
    FIG3_6,
    FIGB6,
    FIG3_7,
    PE_ORDER,
    STEP_SIZE,
    REDUCTION,
    ENCODINGS,
    GRAPH_LEVEL,
)
