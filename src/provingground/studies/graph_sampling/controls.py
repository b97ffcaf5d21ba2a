"""Experiments beyond the figures: the sampled fraction, the optimiser, and Algorithm 2."""

from math import inf
from typing import Any

from provingground.claims import Claim
from provingground.study import Experiment, Trainings, axis, cases

from . import drawing, measures

QUICK: dict[str, Any] = dict(nodes=500, samples=350, width=32, lr=0.02, steps=160)

OWN = "found here"

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
    trainings=Trainings(
        grid={
            "graph": cases(MATCHED_GRAPHS),
            "sampling": cases(SAMPLING),
            "fraction": axis(
                [0.3, 0.5, 0.7, 0.9, 1.0],
                "S_l/N_l",
                "sampled fraction of nodes",
                sets=measures.at_fraction,
            ),
        },
        seeds=8,
        quick={
            **QUICK,
            "sampling": cases({k: SAMPLING[k] for k in ("asymmetric", "symmetric")}),
            "fraction": [0.5, 0.7, 0.9, 1.0],
            "seeds": 4,
        },
    ),
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
    trainings=Trainings(
        grid={"concept": False, "samples": 1500, "form": cases(FORMS)},
        seeds=16,
        quick={
            **QUICK,
            "form": cases({"printed SGD": {**PRINTED, "steps": 1200}}),
            "seeds": 4,
        },
    ),
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
    trainings=Trainings(
        grid={
            "form": cases(
                {**PARTS, "whole, noisy SGD": dict(optimiser="sgd", lr=0.3, noise=1e-3, steps=3000)}
            ),
            "width": [32, 256],
        },
        simulator="algorithm2",
        seeds=8,
        quick={**QUICK, "width": [32], "form": cases(PARTS), "seeds": 6},
    ),
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
            scale="paper",
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
