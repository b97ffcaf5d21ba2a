"""One Experiment per figure: the grid, what it should show, and how it is drawn."""

from math import inf
from typing import Any

from provingground import stats
from provingground.claims import Claim
from provingground.study import Cases, Experiment, Trainings, cases

from . import measures
from .measures import each_task, final, late_slope


def forms(steps: int, **sgd: Any) -> Cases:
    """SGD and recursion on one axis of time. SGD ends early; the recursion costs nothing."""
    return cases(
        {
            "SGD": {"simulator": "sgd", "steps": steps, **sgd},
            "recursion": {"simulator": "recursion", "steps": max(steps, 1_000_000)},
        }
    )


FIGURE_2 = Trainings(
    grid={
        "task": cases(measures.TASKS),
        "form": forms(20_000),
        "horizon": 1_000_000,
        "test_samples": 3000,
    },
    seeds=4,
    # T* falls as 1/scale^2: a large V* shows in 800 steps what takes 3200 at scale 1.
    quick={"form": forms(800), "test_samples": 200, "scale": 2.0, "seeds": 4},
)


def both_sides(
    name: str, says: str, measure: Any, low: float, high: float, without: str = "", **more: Any
) -> tuple[Claim, Claim]:
    """Two claims: the smallest over the tasks is at least `low`, the largest at most `high`."""
    tasks = f"every task but {without}" if without else "every task"
    return (
        Claim(
            f"{name}_low",
            f"{says}: at least {low:g} for {tasks}",
            measure=each_task(measure, "low", without),
            within=(low, inf),
            **more,
        ),
        Claim(
            f"{name}_high",
            f"{says}: at most {high:g} for {tasks}",
            measure=each_task(measure, "high", without),
            within=(-inf, high),
            **more,
        ),
    )


FIG2A = Experiment(
    "fig2a",
    says="Excess loss in time: online SGD, the exact recursion, and the law it tends to.",
    trainings=FIGURE_2,
    claims=(
        *both_sides(
            "slope",
            "exponent of the population excess loss in t, last decade",
            late_slope("recursion", "test_loss"),
            -1.10,
            -0.95,
            source="Theorem 3.1(3), Figure 2(a)",
        ),
        *both_sides(
            "law",
            "4 eta T (L - L_opt) / (K D (D - K)) at the end",
            final("recursion", measures.over_excess_law),
            0.98,
            1.10,
            source="derived from Lemma C.2",
        ),
        *both_sides(
            "sgd",
            "excess loss of SGD over recursion plus floor, last quarter",
            measures.sgd_over_predicted,
            0.90,
            1.10,
            without="GSLP",
            source="derived from Lemma C.2",
        ),
        Claim(
            "sgd_gslp",
            "the same for GSLP",
            measure=lambda ds: measures.sgd_over_predicted(ds.sel(task="GSLP")),
            within=(0.90, 1.10),
            source="derived from Lemma C.2",
            note="At quick scale GSLP is in the midst of its transition, where noisy inputs, which "
            "the floor leaves out, make it late: 4 to 6% in the mean, 14% for one seed.",
            scale="paper",
        ),
        *both_sides(
            "sgd_slope",
            "exponent of SGD's excess loss in t, last decade",
            late_slope("SGD", "test_loss"),
            -1.35,
            -0.80,
            source="Theorem 3.1(3), Figure 2(a)",
            scale="paper",
        ),
        *both_sides(
            "score_slope",
            "exponent of the distance of the scores in t, last decade",
            late_slope("recursion", "score_error"),
            -0.55,
            -0.45,
            source="Theorem 3.1(1)",
        ),
        *both_sides(
            "value_slope",
            "exponent of the distance of the values in t, last decade",
            late_slope("recursion", "value_error"),
            -0.60,
            -0.45,
            source="Theorem 3.1(2)",
        ),
        *both_sides(
            "leak_law",
            "leak over (D - K) sqrt(K / (2 c eta V T)) at the end",
            final("recursion", measures.over_leak_law),
            0.90,
            1.05,
            source="derived from Lemma C.2",
        ),
        *both_sides(
            "value_leak",
            "(C_1 - 1) / leak at the end",
            final("recursion", lambda ds: (ds.value - 1) / ds.leak),
            0.95,
            1.10,
            source="derived from Lemma C.2",
        ),
    ),
    figure=measures.draw_excess,
)

FIG2B = Experiment(
    "fig2b",
    says="Excess loss on exponential inputs: independent label noise and worst-case labels.",
    trainings=FIGURE_2,
    claims=(
        *both_sides(
            "independent",
            "exponent of the OOD excess with independent noise, last decade",
            late_slope("recursion", "ood_loss"),
            -1.10,
            -0.90,
            source="found here (section 3, second moments alone)",
        ),
        Claim(
            "paper_slope",
            "the OOD excess with independent label noise falls as t^(-1/2)",
            measure=each_task(late_slope("recursion", "ood_loss"), "high"),
            within=(-0.6, -0.4),
            source="Figure 2(b)",
            expected="fails",
            note="Independent noise has no part in the excess: half the squared distance of the "
            "outputs, of order 1/T, is all of it.",
        ),
        *both_sides(
            "worst",
            "exponent of the OOD excess with worst-case labels, last decade",
            late_slope("recursion", "ood_worst"),
            -0.56,
            -0.44,
            source="Theorem 3.2, Appendix D",
        ),
        Claim(
            "ood_bound",
            "the worst-case excess never exceeds sqrt(K D^6 V xi^2 / (eta t))",
            measure=each_task(measures.over_ood_bound, "high"),
            within=(-inf, 1.0),
            source="Theorem 3.2",
        ),
        Claim(
            "plus_sign",
            "the worst-case labels with a plus sign, as printed, give a positive excess "
            "(over that with a minus sign)",
            measure=each_task(final("recursion", measures.ood_plus), "high"),
            within=(0.0, inf),
            source="Appendix D",
            expected="fails",
            note="The student overshoots by q R, so labels moved towards sign(R) help it; "
            "the minus sign makes them the worst.",
        ),
        Claim(
            "sgd_ood_slope",
            "exponent of SGD's OOD excess with independent noise, last decade: below -0.75",
            measure=each_task(late_slope("SGD", "ood_loss"), "high"),
            within=(-inf, -0.75),
            source="found here",
            scale="paper",
        ),
    ),
    figure=measures.draw_ood,
)

FIG2C = Experiment(
    "fig2c",
    says="Cosine of the value matrix with the teacher's, in time.",
    trainings=FIGURE_2,
    claims=(
        Claim(
            "aligned",
            "the cosine is over 0.97 from step 50 on, for every task but GSLP",
            measure=each_task(measures.least_cosine, "low", without="GSLP"),
            within=(0.97, inf),
            source="Figure 2(c)",
        ),
        Claim(
            "aligned_gslp",
            "the cosine is over 0.9 from step 50 on for GSLP",
            measure=lambda ds: measures.least_cosine(ds.sel(task="GSLP")),
            within=(0.9, inf),
            source="Figure 2(c)",
            note="All columns of GSLP have the same label, so its gradients are noisier. The "
            "bound was set on seeds 0 to 3 and confirmed on others.",
        ),
        Claim(
            "aligned_at_the_end",
            "the cosine is over 0.995 at the end, for every task",
            measure=each_task(final("SGD", lambda ds: ds.cosine), "low"),
            within=(0.995, inf),
            source="Figure 2(c)",
        ),
    ),
    figure=measures.draw_cosine,
)

FIG3 = Experiment(
    "fig3",
    says="Attention scores at the end of SGD, beside those of the recursion.",
    trainings=FIGURE_2,
    claims=(
        Claim(
            "scores_on_support",
            "every score on the support is that of the recursion (largest deviation)",
            measure=each_task(measures.support_deviation, "high"),
            within=(-inf, 0.01),
            source="Figure 3",
        ),
        Claim(
            "scores_off_support",
            "no score off the support is over 0.05",
            measure=each_task(measures.off_support, "high"),
            within=(-inf, 0.05),
            source="Figure 3",
        ),
        Claim(
            "argmax",
            "the largest score of every column lies inside the support",
            measure=each_task(measures.argmax_inside, "low"),
            within=(1.0, inf),
            source="Figure 3",
        ),
    ),
    figure=measures.draw_scores,
)

SMALL = {name: {**task, "tokens": 12} for name, task in measures.TASKS.items()}

REC_VS_SGD = Experiment(
    "rec_vs_sgd",
    says="Online SGD with large batches and without noise against the recursion.",
    trainings=Trainings(
        grid={
            "task": cases({n: SMALL[n] for n in ("CNN, ReLU", "GCN, leaky ReLU", "STS", "GSLP")}),
            "form": forms(600, batch=2000),
            "noise": 0.0,
            "horizon": 600,
            "record": 41,
        },
        seeds=8,
        quick={  # one teacher: two activations share a program
            "task": cases({n: SMALL[n] for n in ("GCN, ReLU", "GCN, leaky ReLU")}),
            "form": forms(300, batch=400),
            "dim": 5,
            "outputs": 5,
            "scale": 2.0,
            "horizon": 300,
            "seeds": 6,
        },
    ),
    claims=(
        Claim(
            "same_leak",
            "the leak is that of the recursion at every step (largest relative deviation)",
            measure=measures.deviation("leak"),
            within=(-inf, 0.01),
            source="Lemma C.2",
        ),
        Claim(
            "same_loss",
            "the excess loss is that of the recursion at every step (largest relative deviation)",
            measure=measures.deviation("test_loss"),
            within=(-inf, 0.03),
            source="Lemma C.2",
        ),
        Claim(
            "same_score_at_the_end",
            "p is that of the recursion at the end (largest relative deviation)",
            measure=measures.deviation_at_the_end(lambda ds: 1 - ds.leak),
            within=(-inf, 1e-3),
            source="Lemma C.2",
            scale="paper",
        ),
        Claim(
            "same_loss_at_the_end",
            "the excess loss is that of the recursion at the end (largest relative deviation)",
            measure=measures.deviation_at_the_end(lambda ds: ds.test_loss),
            within=(-inf, 1e-3),
            source="Lemma C.2",
            scale="paper",
        ),
    ),
    figure=measures.draw_agreement,
)

TSTAR = Experiment(
    "tstar",
    says="The step at which half of the attention is on the support, from the recursion.",
    trainings=Trainings(
        simulator="recursion",
        grid={
            "tokens": [20, 36, 64, 100],
            "group": [1, 4],
            "scale": [0.15, 0.3],
            "lr": [0.05, 0.1],
            "steps": 2_000_000,
            "horizon": 2_000_000,
            "record": 41,
            "eps": 0.5,
        },
        seeds=8,
        quick={"seeds": 3},
    ),
    claims=(
        Claim(
            "d_exponent",
            "T* grows as D^2 where K = 4",
            measure=lambda ds: stats.worst(measures.escape_exponents("tokens", group=4)(ds), "low"),
            within=(1.85, 2.25),
            source="Theorem 3.1, Lemma C.17",
        ),
        Claim(
            "d_exponent_k1",
            "T* grows a little slower than D^2 where K = 1: its constant falls with D/K",
            measure=lambda ds: stats.worst(measures.escape_exponents("tokens", group=1)(ds), "low"),
            within=(1.7, 1.9),
            source="found here",
            note="The exponent over D = 20 to 100 is below the 1.85 to 2.25 asked for where K = 4; "
            "the bound was set on seeds 0 to 2 and confirmed on others.",
        ),
        Claim(
            "constant_low",
            "T* eta V / (D^2 K) is at least 1 in every setting",
            measure=lambda ds: stats.worst(measures.escape_constants(ds), "low"),
            within=(1.0, inf),
            source="Theorem 3.1, Lemma C.17",
        ),
        Claim(
            "constant_high",
            "T* eta V / (D^2 K) is at most 3 in every setting",
            measure=lambda ds: stats.worst(measures.escape_constants(ds), "high"),
            within=(-inf, 3.0),
            source="Theorem 3.1, Lemma C.17",
        ),
        Claim(
            "energy_exponent",
            "T* falls as the inverse square of the scale of V*, as sum |v|^2 says",
            measure=measures.worst_of(measures.escape_exponents("scale"), "high"),
            within=(-2.15, -1.85),
            source="derived from Lemma C.2",
        ),
        Claim(
            "printed_norm",
            "T* falls as the inverse of the scale of V*, as sum |v| says",
            measure=measures.worst_of(measures.escape_exponents("scale"), "high"),
            within=(-1.15, -0.85),
            source="Theorem 3.1",
            expected="fails",
            note="The dynamics have sum |v_m|^2; the proof takes unit rows, where both are M.",
        ),
        Claim(
            "step_size",
            "eta T* does not depend on the step size",
            measure=measures.step_size_invariance,
            within=(-inf, 0.01),
            source="Theorem 3.1",
        ),
    ),
    figure=measures.draw_escape,
)

CONST = Experiment(
    "const",
    says="The constant of the excess loss, and the bands of the lemmas, from the recursion.",
    trainings=Trainings(
        simulator="recursion",
        grid={
            "tokens": [12, 20, 36, 64],
            "group": [1, 4],
            "kappa": [0.0, 0.1, 1.0],
            "scale": [1.0, 2.0, 4.0],
            "lr": 0.03,
            "steps": 1_000_000,
            "horizon": 1_000_000,
        },
        seeds=8,
        quick={"tokens": [12, 28, 64], "kappa": [0.0, 1.0], "scale": [1.0, 2.0], "seeds": 3},
    ),
    claims=(
        Claim(
            "constant",
            "eta T (L - L_opt) is K D (D - K) / 4 for all D, K, activations and V*",
            measure=measures.law_ratio,
            within=(-inf, 0.05),
            source="derived from Lemma C.2",
        ),
        Claim(
            "printed_power",
            "eta T (L - L_opt) grows as D^4",
            measure=measures.worst_of(measures.excess_exponents, "high"),
            within=(3.5, 4.5),
            source="Theorem 3.1(3)",
            expected="fails",
            note="Both printed bounds have D^4; the recursion of the paper gives D (D - K).",
        ),
        Claim(
            "band_c3",
            "K p <= F3 / F1 <= sqrt(D K) p at every step (smallest ratio)",
            measure=measures.band_c3,
            within=(1 - 1e-9, inf),
            source="Lemma C.3",
        ),
        Claim(
            "band_c5_low",
            "C_1 / C_1* stays over 0.95 once it got there",
            measure=measures.band_c5_low,
            within=(0.95, inf),
            source="Lemmas C.5 and C.15",
        ),
        Claim(
            "band_c5_high",
            "C_1 / C_1* is below its upper bound at every step (largest ratio)",
            measure=measures.band_c5_high,
            within=(-inf, 1.0),
            source="Lemma C.5",
        ),
        Claim(
            "monotone",
            "the score on the support never falls",
            measure=measures.monotone_scores,
            within=(0.0, inf),
            source="Lemma C.8",
        ),
        Claim(
            "first_phase_time",
            "C_1 reaches 0.95 C_1* within 10 / eta steps",
            measure=measures.early_time,
            within=(-inf, 10.0),
            source="Lemma C.13",
        ),
        Claim(
            "first_phase_score",
            "until then p is below (1 + D^(-1/4)) / D (ratio)",
            measure=measures.early_score,
            within=(-inf, 1.0),
            source="Lemma C.13",
        ),
        Claim(
            "band_c18_high",
            "the late leak is below 20 in the units of Lemma C.18",
            measure=measures.late_leak_at,
            within=(-inf, 20.0),
            source="Lemma C.18",
        ),
        Claim(
            "band_c18_low",
            "the late leak is over 1/20 in the units of Lemma C.18, at D = 64",
            measure=measures.late_leak_at,
            within=(0.05, inf),
            source="Lemma C.18",
            expected="fails",
            note="The ratio tends to 1 / (D sqrt(2 c)), which no constant bounds from below.",
        ),
        Claim(
            "c18_power",
            "the late leak in the units of Lemma C.18 falls as 1/D",
            measure=measures.worst_of(measures.late_leak_exponents, "high"),
            within=(-1.1, -0.9),
            source="derived from Lemma C.2",
        ),
    ),
    figure=measures.draw_constant,
)

FIG1 = Experiment(
    "fig1",
    says="The student with attention over [X; P]: which blocks of its matrices grow.",
    trainings=Trainings(
        simulator="full",
        grid={
            "teacher": "gcn",
            "tokens": 20,
            "group": 3,
            "lr": 0.02,
            "steps": 15_000,
            "horizon": 15_000,
            "record": 31,
        },
        seeds=3,
        quick={"tokens": 8, "dim": 5, "outputs": 5, "scale": 2.0, "steps": 2000, "horizon": 2000},
    ),
    claims=(
        Claim(
            "block_pp",
            "block PP of the key-query matrix is over 50 times each other block (RMS)",
            measure=measures.over_blocks,
            within=(50, inf),
            source="Figure 1",
            scale="paper",
        ),
        Claim(
            "block_left",
            "block X of the value matrix is over 10 times block P (RMS)",
            measure=measures.left_over_right,
            within=(10, inf),
            source="Figure 1",
        ),
        Claim(
            "left_aligned",
            "block X of the value matrix points to V* (cosine)",
            measure=lambda ds: stats.mean(ds.cosine.isel(step=-1)),
            within=(0.99, inf),
            source="Figure 1",
        ),
    ),
    figure=measures.draw_blocks,
)

EXPERIMENTS = (FIG2A, FIG2B, FIG2C, FIG3, REC_VS_SGD, TSTAR, CONST, FIG1)
