"""Experiments on how many labels are needed."""

from math import inf

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, axis, cases

from . import drawing, measures
from .measures import PAPER, QUICK

BOTH = cases({k: measures.NETWORKS[k] for k in ("GT", "GCN, core known")})

COVERING = [32, 48, 64, 96, 128]

LABELS = [8, 16, 32, 64, 128]

FIG3_3A = Experiment(
    "fig3_3a",
    says="Success rate of the GT over labelled nodes and the discriminative fraction.",
    trainings=Trainings(
        grid={
            **PAPER,
            "confusion_ratio": 0.05,
            "steps": 10000,
            "frac_disc": [0.8, 0.6, 0.5, 0.4, 0.33, 0.25, 0.2, 0.16],
            "samples": [*LABELS, 256],
        },
        seeds=20,
        quick={**QUICK, "steps": 600, "frac_disc": [0.7, 0.3], "samples": LABELS, "seeds": 6},
    ),
    claims=(
        Claim(
            "more_labels_help",
            "from 8 to 128 labelled nodes the success rate rises by over a half",
            measure=lambda ds: stats.paired_difference(
                *(measures.solved(ds).sel(samples=n) for n in (128, 8))
            ),
            within=(0.5, inf),
            source="Figure 3.3(a)",
        ),
        Claim(
            "labels_law",
            "the labelled nodes needed fall as the discriminative fraction to the power -2",
            measure=lambda ds: measures.labels_at(ds).law.slope,
            within=(-2.5, -1.5),
            source="Figure 3.3(a), Remark 1",
            expected="fails",
            note="The bound (3.9) does not depend on γ_d at ε_S = 0, and hardly at 0.05. What "
            "counts is that the labelled nodes cover the kinds of queries; see `coverage`.",
        ),
        Claim(
            "labels_rise",
            "a larger discriminative fraction asks for more labels, not fewer (exponent)",
            measure=lambda ds: measures.labels_at(ds).law.slope,
            within=(0, inf),
            source="found here",
        ),
    ),
    figure=drawing.draw_fractions("Labels that the GT needs", -2.0),
)


FIG3_3B = Experiment(
    "fig3_3b",
    says="Success rate of the GT over labelled nodes and the confusion ratio.",
    trainings=Trainings(
        grid={
            **PAPER,
            "frac_disc": 0.4,
            "steps": 10000,
            "confusion_ratio": [0.0, 0.1, 0.2, 0.3, 0.4],
            "samples": [*LABELS, 256, 512],
        },
        seeds=20,
        quick={**QUICK, "steps": 600, "confusion_ratio": [0.0, 0.2], "samples": LABELS, "seeds": 6},
    ),
    claims=(
        Claim(
            "confusion_hurts",
            "the success rate falls with the confusion ratio (smallest step down)",
            measure=lambda ds: stats.monotone(
                measures.solved(ds).mean("samples"), "confusion_ratio", "decreasing"
            ),
            within=(0, inf),
            source="Figure 3.3(b)",
        ),
        Claim(
            "no_success_at_04",
            "at a confusion ratio of 0.4 no training up to 128 labels succeeds",
            measure=lambda ds: stats.share(
                measures.solved(ds).sel(confusion_ratio=0.4, samples=slice(0, 128))
            ),
            within=(-inf, 0.5),
            source="Figure 3.3(b)",
            scale="paper",
        ),
        Claim(
            "confusion_law",
            "the labelled nodes needed grow as (1 - confusion ratio)^(-2)",
            measure=lambda ds: measures.labels_by_confusion(ds).law.slope,
            within=(-2.5, -1.5),
            source="Figure 3.3(b), Remark 1",
            expected="fails",
            note="Far steeper: from ε_S = 0 to 0.2 the labels grow tenfold, not by 1.6.",
        ),
        Claim(
            "confusion_is_steeper",
            "the exponent is below -4",
            measure=lambda ds: measures.labels_by_confusion(ds).law.slope,
            within=(-inf, -4),
            source="found here",
        ),
    ),
    figure=drawing.draw_confusion,
)


COVERAGE = Experiment(
    "coverage",
    says="Which trainings succeed: those whose labels cover every pattern with every vote.",
    trainings=Trainings(
        grid={
            **PAPER,
            "confusion_ratio": 0.2,
            "steps": 10000,
            "network": BOTH,
            "frac_disc": [0.2, 0.4, 0.6, 0.8],
            "samples": [*COVERING, 256, 512],
        },
        seeds=20,
        quick={**QUICK, "steps": 800, "frac_disc": 0.4, "samples": COVERING, "seeds": 6},
    ),
    claims=(
        Claim(
            "covered_succeeds",
            "a GT whose labels cover all kinds succeeds more often than others, by over a half",
            measure=lambda ds: measures.coverage_gap(measures.at_network("GT", ds)),
            within=(0.5, inf),
            source="derived here",
            scale="paper",
        ),
        Claim(
            "covering_is_enough",
            "a GT whose labels cover all kinds succeeds (rate)",
            measure=lambda ds: measures.covered_rate(measures.at_network("GT", ds)),
            within=(0.8, inf),
            source="derived here",
            scale="paper",
        ),
        Claim(
            "cover_is_needed",
            "the labels a GT needs are over half of those that cover all kinds half the time",
            measure=lambda ds: stats.worst(measures.coverage_ratio(ds), "low"),
            within=(0.5, inf),
            source="theory.labels_to_cover",
            scale="paper",
        ),
        Claim(
            "cover_suffices",
            "the labels a GT needs are at most 1.5 times those that cover all kinds half the time",
            measure=lambda ds: stats.worst(measures.coverage_ratio(ds), "high"),
            within=(-inf, 1.5),
            source="theory.labels_to_cover",
            scale="paper",
        ),
        Claim(
            "gcn_needs_more",
            "a GCN with the core given needs more labels than the GT (loss of success rate)",
            measure=lambda ds: measures.gcn_advantage(measures.at_fraction(ds)),
            within=(-inf, 0),
            source="Theorem 3.4.6",
            expected="fails",
            note="It has no queries, so no kind of node has to be covered.",
        ),
        Claim(
            "gcn_needs_fewer",
            "at 32 and 64 labels a GCN with the core given succeeds more often, by over 0.3",
            measure=lambda ds: measures.gcn_advantage(measures.at_fraction(ds)),
            within=(0.3, inf),
            source="found here",
        ),
    ),
    figure=drawing.draw_coverage,
)


FIG3_6 = Experiment(
    "fig3_6",
    says="Success rate of the GCN on the core ring over labelled nodes and γ_d.",
    trainings=Trainings(
        grid={
            **PAPER,
            **measures.GCN,
            "confusion_ratio": 0.2,
            "frac_disc": axis(
                [0.8, 0.6, 0.5, 0.4, 0.33, 0.25, 0.2, 0.16], sets=measures.enough_steps(2.5)
            ),
            "samples": [2, 4, *LABELS, 256],
        },
        seeds=20,
        quick={**QUICK, "frac_disc": [0.6, 0.3], "samples": [2, 4, 8, 16, 32], "seeds": 6},
    ),
    claims=(
        Claim(
            "gcn_labels_law",
            "the labels that the GCN needs fall as the discriminative fraction to the power -4",
            measure=lambda ds: measures.labels_at(ds).law.slope,
            within=(-5, -3),
            source="(3.13), Figure 3.6",
            expected="fails",
            note="The bound (3.13) is far from sharp: a few labels are enough.",
        ),
        Claim(
            "gcn_labels_fall",
            "the labels that the GCN needs do fall with the discriminative fraction (exponent)",
            measure=lambda ds: measures.labels_at(ds).law.slope,
            within=(-inf, 0),
            source="(3.13)",
        ),
    ),
    figure=drawing.draw_gcn_labels,
)
