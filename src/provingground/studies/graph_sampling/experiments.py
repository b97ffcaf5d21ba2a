"""One Experiment per figure: the grid, what it should show, and how it is drawn."""

from math import inf
from typing import Any

from provingground import stats
from provingground.study import Claim, Experiment, axis, cases

from . import drawing, measures

QUICK: dict[str, Any] = dict(nodes=500, samples=350, width=32, lr=0.015, steps=200)

OWN = "found here"

MATCH = Experiment(
    "ctrl_match",
    says="Test error where training scales the groups as the labels do, and where it does not.",
    grid={
        "graph": cases(measures.GRAPHS),
        "scales": cases(measures.TRAINED),
        "dataset": cases(measures.DATASETS),
    },
    seeds=8,
    quick={**QUICK, "seeds": 5},
    claims=(
        Claim(
            "matched_small",
            "with matched scales the error is below 0.15 (the largest of six)",
            measure=lambda ds: stats.worst(measures.matched(ds)),
            within=(-inf, 0.15),
            source="Theorem 5.3.1",
            scale="paper",
        ),
        Claim(
            "matched_best",
            "on every dataset and graph any other scales have a larger error (smallest ratio)",
            measure=lambda ds: stats.worst(measures.gain(ds), "low"),
            within=(1, inf),
            source="Theorem 5.3.1, Figures 5.3(a) and 5.4(a)",
        ),
        Claim(
            "far_ratio",
            "scales (0.5, 0.5) for (0.9, 0.1), or the reverse, have over 3 times the matched error",
            measure=measures.far_gain,
            within=(3, inf),
            source="Figures 5.3(a) and 5.4(a)",
        ),
        Claim(
            "far_large",
            "with scales (0.5, 0.5) for (0.9, 0.1), or the reverse, the error is over 0.5",
            measure=lambda ds: stats.worst(measures.mismatched(ds, measures.FAR), "low"),
            within=(0.5, inf),
            source="Figures 5.3(a) and 5.4(a)",
            scale="paper",
        ),
        Claim(
            "mismatched_large",
            "with any mismatched scales the error is over 0.5 (the smallest)",
            measure=lambda ds: stats.worst(measures.mismatched(ds), "low"),
            within=(0.5, inf),
            source="first measurements, of far scales alone",
            expected="fails",
            note="Neighbouring scales, such as (0.7, 0.3) for (0.5, 0.5), cost only twice the "
            "matched error.",
        ),
    ),
    figure=drawing.draw_match,
)


def graph_claims(over: str, words: str, tag: str, source: str) -> tuple[Claim, ...]:
    """More labels (or neurons) help, and the graph with the largest row sum is the hardest."""
    made = []
    for target, name in (("(5.20)", "figure"), ("concept class", "concept")):
        made += [
            Claim(
                f"{tag}_help_{name}",
                f"{words} lower the error on every graph ({target}; smallest ratio)",
                measure=measures.first_over_last(over, target),
                within=(1, inf),
                source=source,
            ),
            Claim(
                f"{tag}_hubs_{name}",
                f"the graph with the largest row sum has the largest error ({target}; ratio)",
                measure=measures.over_even("(100, 2)", over, target),
                within=(1, inf),
                source=source,
                scale=None if target == "concept class" else "paper",
            ),
            Claim(
                f"{tag}_middle_{name}",
                f"a row sum of 0.78 has a larger error than one of 0.54 ({target}; ratio)",
                measure=measures.over_even("(20, 2)", over, target),
                within=(1, inf),
                source=source,
                scale="paper",
            ),
        ]
    return tuple(made)


FIG5_1 = Experiment(
    "fig5_1",
    says="Test error over the number of labels, for three graphs of different largest row sum.",
    grid={
        "target": cases(measures.TARGETS),
        "degrees": cases(measures.DEGREES),
        "samples": [50, 100, 200, 400, 800, 1500],
        "p1": 0.7,
        "p2": 0.3,
        "p1_hat": 0.7,
        "p2_hat": 0.3,
        "width": 500,
    },
    seeds=8,
    quick={**QUICK, "samples": [25, 75, 400], "seeds": 4},
    claims=graph_claims("samples", "more labels", "labels", "Figure 5.1, (5.18)"),
    figure=drawing.draw_graphs("samples", "Labels needed and the effective matrix"),
)

FIG5_2 = Experiment(
    "fig5_2",
    says="Test error over the number of neurons, for the same graphs.",
    grid={
        "target": cases(measures.TARGETS),
        "degrees": cases(measures.DEGREES),
        "width": [4, 16, 64, 500],
        "p1": 0.7,
        "p2": 0.3,
        "p1_hat": 0.7,
        "p2_hat": 0.3,
        "samples": 1500,
    },
    seeds=8,
    quick={**QUICK, "width": [4, 12, 32], "samples": 400, "seeds": 4},
    claims=graph_claims("width", "more neurons", "neurons", "Figure 5.2, (5.17)"),
    figure=drawing.draw_graphs("width", "Neurons needed and the effective matrix"),
)

DATASETS = cases(measures.DATASETS)
SCALES = cases(measures.TRAINED)

FIG5_3A = Experiment(
    "fig5_3a",
    says="Three datasets on the unbalanced graph, by scales in training.",
    grid={
        **measures.UNBALANCED,
        "target": cases(measures.TARGETS),
        "scales": SCALES,
        "dataset": DATASETS,
    },
    seeds=8,
    quick={**QUICK, "seeds": 4},
    claims=(
        Claim(
            "dataset_1_best",
            "trained with (0.9, 0.1), the error is smallest on dataset 1 (smallest ratio)",
            measure=measures.others_over("dataset 1", target="(5.20)", scales="(0.9, 0.1)"),
            within=(1, inf),
            source="Figure 5.3(a)",
        ),
        Claim(
            "dataset_1_lowest_mse",
            "the same before the error is divided by the variance of the labels",
            measure=measures.others_over(
                "dataset 1", "test_loss", target="(5.20)", scales="(0.9, 0.1)"
            ),
            within=(1, inf),
            source="Figure 5.3(a)",
        ),
        Claim(
            "matched_far",
            "matched scales beat far ones on datasets 1 and 3 (smallest ratio)",
            measure=lambda ds: measures.far_gain(ds.sel(target="(5.20)")),
            within=(1, inf),
            source="Figure 5.3(a), the dataset held fixed",
        ),
        Claim(
            "matched_dataset_2",
            "matched scales beat all others on dataset 2 (smallest ratio)",
            measure=lambda ds: stats.worst(
                measures.gain(ds, ["dataset 2"], target="(5.20)"), "low"
            ),
            within=(1, inf),
            source="Figure 5.3(a), the dataset held fixed",
            scale="paper",
            expected="fails",
            note="(5.20) aggregates once and the network three times, so labels of (5.20) are not "
            "in the class of A*; a larger p_2 makes up for that.",
        ),
    ),
    figure=drawing.draw_scales("Unbalanced graph, group-wise sampling", "(0.9, 0.1)"),
)

FIG5_4A = Experiment(
    "fig5_4a",
    says="The same on the balanced graph.",
    grid={
        **measures.BALANCED,
        "target": cases(measures.TARGETS),
        "scales": SCALES,
        "dataset": DATASETS,
    },
    seeds=8,
    quick={**QUICK, "seeds": 5},
    claims=(
        Claim(
            "dataset_3_best_printed",
            "with all other settings as in Figure 5.3 the error is smallest on dataset 3",
            measure=measures.others_over("dataset 3", target="(5.20)", scales="(0.9, 0.1)"),
            within=(1, inf),
            source="Figure 5.4(a)",
            expected="fails",
            note="Those settings include p* = (0.9, 0.1), with which dataset 1 is best. The "
            "conclusion can only be meant for p* = (0.5, 0.5).",
        ),
        Claim(
            "dataset_1_not_best",
            "with p* = (0.5, 0.5) the error on dataset 1 is larger than on dataset 3",
            measure=measures.two_over(
                "dataset 1", "dataset 3", target="(5.20)", scales="(0.5, 0.5)"
            ),
            within=(1, inf),
            source="Figure 5.4(a)",
        ),
        Claim(
            "class_dataset_3_small",
            "targets of the concept class: the error on dataset 3 is below 0.2",
            measure=lambda ds: stats.mean(
                measures.error(ds, dataset="dataset 3", target="concept class", scales="(0.5, 0.5)")
            ),
            within=(-inf, 0.2),
            source="Theorem 5.3.1",
        ),
        Claim(
            "class_dataset_3_best",
            "targets of the concept class: it is at least three times below that on dataset 1",
            measure=measures.two_over(
                "dataset 1", "dataset 3", target="concept class", scales="(0.5, 0.5)"
            ),
            within=(3, inf),
            source="Figure 5.4(a), Theorem 5.3.1",
        ),
    ),
    figure=drawing.draw_scales("Balanced graph, group-wise sampling", "(0.5, 0.5)"),
)

FAST: dict[str, Any] = dict(sampler="fastgcn", independent=True, dataset=DATASETS)
FAST_LABELS = {
    "(5.20), t = 0.9 N": dict(concept=False, drawn=1800),
    "class, t = 0.9 N": dict(concept=True, drawn=1800),
    "class, t = 10 N": dict(concept=True, drawn=20000),
}
FAST_QUICK: dict[str, Any] = {
    **QUICK,
    "setting": cases(
        {
            "(5.20), t = 0.9 N": dict(concept=False, drawn=450),
            "class, t = 10 N": dict(concept=True, drawn=5000),
        }
    ),
    "seeds": 4,
}
FAVOURS_HUBS = Claim(
    "favours_high_degree",
    "FastGCN draws a node of high degree more often than one of low degree (ratio)",
    measure=lambda ds: stats.mean(ds.importance_ratio),
    within=(1, inf),
    source="section 5.3.2, first takeaway of (5.10)",
    expected="fails",
    note="With A = D^(-1/2) (A + I) D^(-1/2) columns of low degree have the larger norm.",
)

FIG5_3B = Experiment(
    "fig5_3b",
    says="The three datasets on the unbalanced graph, sampled by FastGCN.",
    grid={**measures.UNBALANCED, **FAST, "setting": cases(FAST_LABELS)},
    seeds=8,
    quick=FAST_QUICK,
    claims=(
        Claim(
            "fast_1_lowest_mse",
            "the test MSE is lowest on dataset 1 (t = 10 N, concept class; smallest ratio)",
            measure=measures.others_over("dataset 1", "test_loss", setting="class, t = 10 N"),
            within=(1, inf),
            source="Figure 5.3(b)",
        ),
        Claim(
            "fast_1_best",
            "the error over the labels' variance is smallest on dataset 1 too (the same)",
            measure=measures.others_over("dataset 1", setting="class, t = 10 N"),
            within=(1, inf),
            source="Figure 5.3(b): FastGCN damps dominating groups",
            expected="fails",
            note="FastGCN is unbiased: its effective matrix is A, whatever the graph. Dataset 1 "
            "has the smallest labels, and so the smallest MSE.",
        ),
        Claim(
            "fast_3_best",
            "the error over the labels' variance is smallest on dataset 3, of scales like A",
            measure=measures.others_over("dataset 3", setting="class, t = 10 N"),
            within=(1, inf),
            source="E P = I",
        ),
        Claim(
            "fast_figure_learns",
            "on labels of (5.20) with t = 0.9 N the error is below 0.9 on some dataset",
            measure=lambda ds: stats.worst(
                [
                    stats.mean(measures.error(ds, dataset=d, setting="(5.20), t = 0.9 N"))
                    for d in ds.dataset.values
                ],
                "low",
            ),
            within=(-inf, 0.9),
            source="Figure 5.3(b)",
            scale="paper",
            expected="fails",
            note="With 0.9 N draws the noise of aggregation is as large as the signal, and the "
            "labels are outside the class.",
        ),
        FAVOURS_HUBS,
    ),
    figure=drawing.draw_fast("Unbalanced graph, FastGCN"),
)

FIG5_4B = Experiment(
    "fig5_4b",
    says="The three datasets on the balanced graph, sampled by FastGCN.",
    grid={**measures.BALANCED, **FAST, "setting": cases(FAST_LABELS)},
    seeds=8,
    quick=FAST_QUICK,
    claims=(
        Claim(
            "fast_balanced_lowest_mse",
            "the test MSE is lowest on dataset 3 (t = 10 N, concept class; smallest ratio)",
            measure=measures.others_over("dataset 3", "test_loss", setting="class, t = 10 N"),
            within=(1, inf),
            source="Figure 5.4(b)",
            scale="paper",
        ),
        Claim(
            "fast_balanced_best",
            "so is the error over the labels' variance",
            measure=measures.others_over("dataset 3", setting="class, t = 10 N"),
            within=(1, inf),
            source="Figure 5.4(b)",
        ),
        FAVOURS_HUBS,
    ),
    figure=drawing.draw_fast("Balanced graph, FastGCN"),
)

SAMPLING = {
    "asymmetric": {},
    "symmetric": dict(symmetric=True),
    "by layer": dict(independent=True),
}
MATCHED_GRAPHS = {
    "unbalanced": {**measures.UNBALANCED, **dict(p1=0.9, p2=0.1, p1_hat=0.9, p2_hat=0.1)},
    "balanced": {**measures.BALANCED, **dict(p1=0.5, p2=0.5, p1_hat=0.5, p2_hat=0.5)},
}

CTRL_SAMPLING = Experiment(
    "ctrl_sampling",
    says="Test error and errors of aggregation over the sampled fraction of nodes.",
    grid={
        "graph": cases(MATCHED_GRAPHS),
        "sampling": cases(SAMPLING),
        "fraction": axis([0.3, 0.5, 0.7, 0.9, 1.0], "S_l/N_l", "sampled fraction of nodes"),
    },
    derive=measures.at_fraction,
    seeds=8,
    quick={
        **QUICK,
        "sampling": cases({k: SAMPLING[k] for k in ("asymmetric", "symmetric")}),
        "seeds": 4,
    },
    claims=(
        Claim(
            "falls_with_fraction",
            "the error falls with the sampled fraction (smallest step)",
            measure=measures.falls_with_fraction,
            within=(0, inf),
            source="(5.10), Lemma D.2.14",
        ),
        Claim(
            "half_large",
            "with half of the nodes the error is over 0.4",
            measure=measures.fraction_error(0.5, "low"),
            within=(0.4, inf),
            source=OWN,
        ),
        Claim(
            "most_small",
            "with 0.9 of the nodes it is below 0.12",
            measure=measures.fraction_error(0.9, "high"),
            within=(-inf, 0.12),
            source=OWN,
            scale="paper",
        ),
        Claim(
            "all_small",
            "with all nodes it is below 0.03",
            measure=measures.fraction_error(1.0, "high"),
            within=(-inf, 0.03),
            source=OWN,
            scale="paper",
        ),
        Claim(
            "sampling_is_free",
            "training with 0.9 of the nodes ends within 20% of training with A*",
            measure=measures.sampled_over_effective(0.9),
            within=(-inf, 1.2),
            source="Lemma D.2.14, section 5.3.1",
            expected="fails",
            note="The noise of aggregation is (1-f)/f of the signal at any degree: 11% at 0.9.",
        ),
        Claim(
            "noise_law",
            "the relative noise of aggregated features is (1-f)/f (largest deviation)",
            measure=measures.noise_law,
            within=(-inf, 0.25),
            source="theory.aggregation_noise",
        ),
        Claim(
            "row_error_law",
            "the mean error of a row is 2 sum_l (1-f_l) p_l A_nl (largest deviation)",
            measure=measures.row_error_law,
            within=(-inf, 0.1),
            source="theory.row_error",
        ),
        Claim(
            "mean_row",
            "the mean error of a row is at most the poly(ε) of (5.10) (ratio)",
            measure=measures.over_poly("row_error"),
            within=(-inf, 1),
            source="Lemma D.1.2, for the mean row",
        ),
        Claim(
            "largest_row",
            "the largest error of a row is at most the poly(ε) of (5.10) (ratio)",
            measure=measures.over_poly("row_error_max"),
            within=(-inf, 1),
            source="Lemma D.1.2",
            expected="fails",
            note="The proof takes the mean over a node's neighbours for each row; a node with one "
            "neighbour has none to average over.",
        ),
        Claim(
            "symmetric_alike",
            "symmetric sampling is as good as asymmetric sampling (ratio of errors)",
            measure=measures.symmetric_over_plain,
            within=(0.5, 2),
            source="section D.1.1",
        ),
        Claim(
            "by_layer_alike",
            "so is a sample for each layer",
            measure=measures.layers_over_plain,
            within=(0.5, 2),
            source="footnote 23",
            scale="paper",
        ),
    ),
    figure=drawing.draw_fractions,
)

PRINTED = dict(optimiser="sgd", batch=5, lr=1e-3)
FORMS = {
    "printed SGD": {**PRINTED, "steps": 6000},
    "SGD, 30 times the step": {**PRINTED, "lr": 0.03, "steps": 6000},
    "Adam, batch 5": dict(batch=5, lr=1e-3, steps=6000),
    "Adam, all labels": {},
}

OPTIMISER = Experiment(
    "optimiser",
    says="The printed training against Adam, on labels of (5.20).",
    grid={"concept": False, "samples": 1500, "form": cases(FORMS)},
    seeds=4,
    quick={
        **QUICK,
        "form": cases({"printed SGD": {**PRINTED, "steps": 1200}}),
        "seeds": 4,
    },
    claims=(
        Claim(
            "printed_learns",
            "the printed step size and number of steps bring the error below 0.9",
            measure=lambda ds: measures.form(ds, "printed SGD"),
            within=(-inf, 0.9),
            source="section 5.4",
            expected="fails",
            note="SGD with step 0.001 and 4|Ω| steps has hardly moved; Adam is used instead.",
        ),
        Claim(
            "adam_learns",
            "Adam with all labels in every step does",
            measure=lambda ds: measures.form(ds, "Adam, all labels"),
            within=(-inf, 0.9),
            source=OWN,
            scale="paper",
        ),
        Claim(
            "adam_batch_learns",
            "Adam with batches of 5 does",
            measure=lambda ds: measures.form(ds, "Adam, batch 5"),
            within=(-inf, 0.9),
            source=OWN,
            scale="paper",
        ),
    ),
    figure=drawing.draw_optimisers,
)

BARE: dict[str, Any] = dict(smoothing=0.0, signs=False, decay=0.0, lam_w=0.0, lam_v=0.0)
PARTS = {
    "plain": BARE,
    "smoothing": {**BARE, "smoothing": 1.0},
    "signs": {**BARE, "signs": True},
    "whole": {},
}

ALGORITHM_2 = Experiment(
    "algorithm2",
    says="Algorithm 2 and its parts: smoothing, random signs, weight decay and regularisers.",
    grid={
        "form": cases(
            {**PARTS, "whole, noisy SGD": dict(optimiser="sgd", lr=0.3, noise=1e-3, steps=3000)}
        ),
        "width": [32, 256],
    },
    simulator="algorithm2",
    seeds=8,
    quick={**QUICK, "width": [32], "form": cases(PARTS), "seeds": 4},
    claims=(
        Claim(
            "whole_learns",
            "whole Algorithm 2 brings the error below 0.5",
            measure=lambda ds: measures.form(ds, "whole", width=int(ds.width[-1])),
            within=(-inf, 0.5),
            source="Theorem 5.3.1",
        ),
        Claim(
            "smoothing_harmless",
            "smoothing alone changes the error by less than 30%",
            measure=lambda ds: measures.form_over("smoothing", "plain", width=int(ds.width[-1]))(
                ds
            ),
            within=(0.7, 1.3),
            source="section 5.3.3",
        ),
        Claim(
            "signs_slow",
            "random signs raise the error",
            measure=lambda ds: measures.form_over("signs", "plain", width=int(ds.width[0]))(ds),
            within=(1, inf),
            source=OWN,
        ),
        Claim(
            "gap_shrinks",
            "the price of whole Algorithm 2 falls with the width (ratio of ratios)",
            measure=measures.gap_shrinks,
            within=(1, inf),
            source=OWN,
            scale="paper",
        ),
        Claim(
            "noisy_sgd_learns",
            "whole Algorithm 2 with noisy SGD, as written, brings the error below 0.5",
            measure=lambda ds: measures.form(ds, "whole, noisy SGD", width=int(ds.width[-1])),
            within=(-inf, 0.5),
            source="Theorem 5.3.1",
            scale="paper",
        ),
    ),
    figure=drawing.draw_algorithm,
)

EXPERIMENTS = (
    MATCH,
    FIG5_1,
    FIG5_2,
    FIG5_3A,
    FIG5_3B,
    FIG5_4A,
    FIG5_4B,
    CTRL_SAMPLING,
    OPTIMISER,
    ALGORITHM_2,
)
