"""Theorems 1 to 4 with their controls, and the whole network against its reduction."""

from math import inf, sqrt

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, cases

from .. import measures, theory
from ..measures import OWN, ending, on

KEPT = sqrt(0.05)  # gradient noise as strong as at step size 0.1, in terms of that of 0.005

SCHEDULES = cases(
    {
        "annealed": {},
        "large step": {"lr2": 0.1, "k2": 20.0},
        "small step": {"lr1": 0.005, "k2": 1.0, "noise": KEPT, "noise2": KEPT},
        "no noise": {"noise": 0.0, "noise2": 0.0},
    }
)

THM3 = Experiment(
    "thm3",
    says="Two stages: the easy part at a large step, the hard part after annealing; and controls.",
    trainings=Trainings(grid={"schedule": SCHEDULES}, seeds=1024, quick={"seeds": 96}),
    claims=(
        Claim(
            "thm1_a2",
            "stage 1 learns nothing of the hard part: its median loss is about log 2",
            measure=on("annealed", lambda ds: stats.median(ending(ds.loss_hard, 1))),
            within=(0.67, 0.72),
            source="Theorem 1 (a.2)",
        ),
        Claim(
            "thm1_a2_share",
            "nor in single trainings: the loss is over 0.65 in at least 90% of the seeds",
            measure=on("annealed", lambda ds: measures.missed(ds, 1)),
            within=(0.9, 1),
            source="Theorem 1 (a.2)",
        ),
        Claim(
            "thm1_a1",
            "the hard signal stays of order 1/Poly(d) in stage 1 (1/d is taken)",
            measure=on("annealed", lambda ds: stats.mean(ending(ds.v_norm, 1))),
            within=(-inf, 1 / measures.PLAIN.dim),
            source="Theorem 1 (a.1)",
            expected="fails",
            note="Noise pushes V into the active region, large steps throw it out again: the "
            "signal moves in bursts without lowering the loss.",
        ),
        Claim(
            "thm1_a1_burst",
            "the hard signal is of the order of one step in the active region, within a factor 3",
            measure=on("annealed", measures.over_burst),
            within=(1 / 3, 3),
            source="Theorem 1 (a.1), corrected",
            note=OWN,
        ),
        Claim(
            "thm2",
            "stage 1 learns the easy part",
            measure=on("annealed", lambda ds: stats.mean(ending(ds.loss_easy, 1))),
            within=(-inf, 0.25),
            source="Theorem 2 (b.2)",
        ),
        Claim(
            "thm2_b1",
            "the easy signal grows to d log(1/eps), eps = 1/d, up to a factor 2 (ratio)",
            measure=on("annealed", measures.over_theorem2),
            within=(0.5, 2),
            source="Theorem 2 (b.1)",
            expected="fails",
            note="L2 regularisation holds W at the fixed point of its decay and its gradient.",
        ),
        Claim(
            "thm2_fixed_point",
            "the easy signal goes to its fixed point (ratio)",
            measure=on("annealed", measures.over_fixed_point),
            within=(0.9, 1.1),
            source="derived from eq. (4)",
            note=OWN,
        ),
        Claim(
            "thm3",
            "stage 2 learns one side of the hard part: the median loss is about 3/4 log 2",
            measure=on("annealed", lambda ds: stats.median(ending(ds.loss_hard, 2))),
            within=(0.51, 0.56),
            source="Theorem 3, corrected",
        ),
        Claim(
            "thm3_share",
            "it does so in most seeds (loss below 0.56)",
            measure=on("annealed", lambda ds: measures.learned(ds, 2)),
            within=(0.8, 1),
            source="Theorem 3, corrected",
            note=OWN,
        ),
        Claim(
            "thm3_vanishes",
            "the loss of the hard part vanishes in stage 2 (below 0.1)",
            measure=on("annealed", lambda ds: stats.mean(ending(ds.loss_hard, 2))),
            within=(-inf, 0.1),
            source="Theorem 3 (c.2)",
            expected="fails",
            note="With balanced contexts g is never positive, so half of the queries cost log 2.",
        ),
        Claim(
            "thm3_floor",
            "the loss of the hard part is never below 1/2 log 2, whatever the schedule",
            measure=measures.least_hard_loss,
            within=(theory.FLOOR - 1e-6, inf),
            source="exact result",
        ),
        Claim(
            "thm4_signal",
            "stage 2 keeps the easy signal: its median relative change is below a quarter",
            measure=on("annealed", lambda ds: stats.median(ending(ds.w_change, 2))),
            within=(-inf, 0.25),
            source="Theorem 4 (d.1)",
        ),
        Claim(
            "thm4",
            "stage 2 keeps the loss of the easy part (mean absolute change)",
            measure=on("annealed", measures.easy_change),
            within=(-inf, 0.08),
            source="Theorem 4 (d.2)",
        ),
        Claim(
            "abl_noanneal",
            "without annealing the hard part is missed four times as long (share of seeds)",
            measure=on("large step", lambda ds: measures.missed(ds, 2)),
            within=(0.9, 1),
            source="control of Theorems 1 and 3",
        ),
        Claim(
            "abl_smalllr",
            "with small steps from the start there is one stage: the hard part is there at k = 3",
            measure=on("small step", lambda ds: measures.learned(ds, 1)),
            within=(0.6, 1),
            source="control of Theorem 1",
        ),
        Claim(
            "abl_nonoise",
            "without gradient noise nothing of the hard part is learned: V stays in its dead zone",
            measure=on("no noise", lambda ds: stats.mean(ending(ds.loss_hard, 2))),
            within=(theory.LOG2 - 0.01, theory.LOG2 + 0.01),
            source="exact result",
        ),
    ),
    figure=measures.draw_stages,
)

THM2 = Experiment(
    "thm2",
    says="All weights on 96 prompts against the population in five numbers.",
    trainings=Trainings(
        grid={
            "z_norm": 12.0,
            "model": cases({"full": {"simulator": "full"}, "reduced": {"simulator": "reduced"}}),
        },
        seeds=64,
        quick={"seeds": 9},
    ),
    claims=(
        Claim(
            "thm2_direction",
            "the easy signal points along the target: cosine over 0.95 after stage 1",
            measure=lambda ds: stats.mean(ending(ds.w_cosine.sel(model="full"), 1)),
            within=(0.95, 1 + 1e-9),
            source="Theorem 2 (b.1)",
        ),
        Claim(
            "thm2_accuracy",
            "the easy part is classified without error after stage 1",
            measure=lambda ds: stats.mean(ending(ds.error_easy.sel(model="full"), 1)),
            within=(-inf, 0.01),
            source="Theorem 2 (b.2)",
        ),
        Claim(
            "thm2_full",
            "the loss of the easy part is small after stage 1",
            measure=lambda ds: stats.mean(ending(ds.loss_easy.sel(model="full"), 1)),
            within=(-inf, 0.25),
            source="Theorem 2 (b.2)",
        ),
        Claim(
            "thm3_full",
            "stage 2 learns one side of the hard part (median)",
            measure=lambda ds: stats.median(ending(ds.loss_hard.sel(model="full"), 2)),
            within=(0.51, 0.56),
            source="Theorem 3, corrected",
        ),
        Claim(
            "reduction_hard",
            "five numbers give the final loss of the hard part (difference of medians)",
            measure=lambda ds: measures.median_difference(
                ending(ds.loss_hard.sel(model="full", drop=True), 2),
                ending(ds.loss_hard.sel(model="reduced", drop=True), 2),
            ),
            within=(-0.01, 0.01),
            source="exact reduction",
            note=OWN,
        ),
        Claim(
            "reduction_easy",
            "and the loss of the easy part after stage 1",
            measure=lambda ds: stats.paired_difference(
                ending(ds.loss_easy.sel(model="full", drop=True), 1),
                ending(ds.loss_easy.sel(model="reduced", drop=True), 1),
            ),
            within=(-0.05, 0.05),
            source="reduction that leaves out noise across the target",
            note=OWN,
        ),
    ),
    figure=measures.draw_models,
)
