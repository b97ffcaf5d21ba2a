"""Corollary 1, the orders as printed, Figure 3 and Proposition 2."""

from math import inf, sqrt

import numpy as np

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, cases

from .. import measures, theory
from ..measures import ending

COR1_ORDER = Experiment(
    "cor1_order",
    says="The traces of both signals at the ends of the stages.",
    trainings=Trainings(
        grid={"schedule": cases({"annealed": {}})}, seeds=1024, quick={"seeds": 96}
    ),
    claims=(
        Claim(
            "cor1_order",
            "after stage 1 the easy signal has the larger trace (share of seeds)",
            measure=lambda ds: stats.ordering(
                ds.v_trace.isel(schedule=0).sel(stage=1), ds.w_trace.isel(schedule=0).sel(stage=1)
            ),
            within=(0.9, 1),
            source="Corollary 1 (a)",
        ),
        Claim(
            "cor1_reversal",
            "after stage 2 it is the hard signal (share of seeds)",
            measure=lambda ds: stats.ordering(
                ds.w_trace.isel(schedule=0, stage=-1), ds.v_trace.isel(schedule=0, stage=-1)
            ),
            within=(0.9, 1),
            source="Corollary 1 (b)",
            expected="fails",
            note="The sign of the learned V is arbitrary, and its norm stays below that of W.",
        ),
    ),
    figure=lambda ds: measures.draw_traces(ds.isel(schedule=0)),
)

COR1_BOUND = Experiment(
    "cor1_bound",
    says="Keys and queries without noise: the growth of the traces against Corollary 1.",
    trainings=Trainings(simulator="kq", grid=measures.KQ, seeds=32, quick={"seeds": 6}),
    claims=(
        Claim(
            "cor1_bound_w",
            "Tr W never grows faster than Corollary 1 says (least slack of the rate)",
            measure=lambda ds: stats.mean(ds.w_slack),
            within=(0, inf),
            source="Corollary 1, as a bound",
        ),
        Claim(
            "cor1_bound_v",
            "nor does Tr V",
            measure=lambda ds: stats.mean(ds.v_slack),
            within=(0, inf),
            source="Corollary 1, as a bound",
        ),
        Claim(
            "cor1_equation",
            "Tr W grows as Corollary 1's equation says (ratio of the logarithms)",
            measure=measures.growth_over_bound,
            within=(0.9, 1.1),
            source="Corollary 1",
            expected="fails",
            note="The equation bounds every token by the longest one and every activation by one.",
        ),
        Claim(
            "cor1_decay",
            "without gradient a trace decays by (1 - eta lambda)^2 a step: twice the printed rate",
            measure=measures.decay_rate,
            within=(1.98, 2.02),
            source="exact: a product of two factors",
        ),
    ),
    figure=measures.draw_bound,
)

ROOT = 1 / sqrt(np.log(16))

LITERAL = Experiment(
    "literal",
    says="The paper's orders taken literally at d = 16: nothing is learned.",
    trainings=Trainings(
        simulator="full",
        grid={
            "tokens": 257,
            "balanced": False,
            "margin": 0.25,
            "z_norm": 0.5,
            "zeta_norm": 0.1,
            "weight_decay": ROOT,
            "init_std": ROOT,
            "lr1": 0.05,
            "lr2": 0.0025,
            "k1": 1.0,
        },
        seeds=16,
        quick={"seeds": 4},
    ),
    claims=(
        Claim(
            "literal_learned",
            "stage 1 learns the easy part (loss below 0.25)",
            measure=lambda ds: stats.mean(ending(ds.loss_easy, 1)),
            within=(-inf, 0.25),
            source="Theorem 2 with Assumption 1",
            expected="fails",
            note="1/lambda of order sqrt(log d) and a margin of 1/sqrt(d) leave no room to grow.",
        ),
        Claim(
            "literal",
            "the easy signal stays small to the end",
            measure=lambda ds: stats.mean(ending(ds.w_norm, 2)),
            within=(-inf, 0.1),
            source="Proposition 4",
        ),
        Claim(
            "literal_loss",
            "and so does the loss of the easy part stay at log 2",
            measure=lambda ds: stats.mean(ending(ds.loss_easy, 2)),
            within=(0.6, 0.8),
            source="Proposition 4",
        ),
    ),
    figure=measures.draw_literal,
)

LITERAL_DECAY = Experiment(
    "literal_decay",
    says="The literal orders with a weight decay of 0.01: there is room, but too little.",
    trainings=Trainings(
        simulator="full",
        grid={**LITERAL.trainings.grid, "weight_decay": 0.01},
        seeds=8,
        paper_only=True,
    ),
    claims=(
        Claim(
            "literal_decay_learned",
            "stage 1 learns the easy part (loss below 0.25)",
            measure=lambda ds: stats.mean(ending(ds.loss_easy, 1)),
            within=(-inf, 0.25),
            source="Theorem 2 with a small weight decay",
            expected="fails",
            note="A margin of 1/sqrt(d) needs 1/lambda of 4 d^2, ten times as much.",
        ),
        Claim(
            "literal_decay_end",
            "or stage 2 does",
            measure=lambda ds: stats.mean(ending(ds.loss_easy, 2)),
            within=(-inf, 0.25),
            source="Theorem 2 with a small weight decay",
            expected="fails",
            note="Its fixed point is too near.",
        ),
        Claim(
            "literal_decay_hard",
            "and nothing of the hard part is learned",
            measure=lambda ds: stats.mean(ending(ds.loss_hard, 2)),
            within=(theory.LOG2 - 0.01, theory.LOG2 + 0.01),
            source="exact result",
        ),
    ),
    figure=measures.draw_literal,
)

FIG3 = Experiment(
    "fig3",
    says="The data in the plane: the easy part is linearly separable, the hard part is not.",
    trainings=Trainings(
        simulator="picture",
        grid={
            "dim": 2,
            "samples": 4,
            "tokens": 129,
            "margin": 0.3,
            "z_norm": 2.0,
            "zeta_norm": 1.0,
        },
        seeds=32,
        quick={"seeds": 8},
    ),
    claims=(
        Claim(
            "fig3_easy",
            "a line separates the easy part",
            measure=lambda ds: stats.mean(ds.linear_easy),
            within=(1 - 1e-6, 1 + 1e-6),
            source="Figure 3",
        ),
        Claim(
            "fig3_hard",
            "no line gets more than three quarters of the hard part",
            measure=lambda ds: stats.mean(ds.linear_hard),
            within=(0.5, 0.77),
            source="Figure 3",
        ),
    ),
    figure=measures.draw_picture,
)

PROP2 = Experiment(
    "prop2",
    says="Proposition 2's gradient of W, as printed and with the signs that its last line drops.",
    trainings=Trainings(
        simulator="gradient", grid={"margin": [0.25, 0.6, 1.2]}, seeds=32, quick={"seeds": 8}
    ),
    claims=(
        Claim(
            "prop2_printed",
            "the printed gradient is right at a random W (relative error below 5%)",
            measure=lambda ds: stats.mean(ds.printed_random),
            within=(-inf, 0.05),
            source="Proposition 2",
            expected="fails",
            note="Its last line drops the product of the token's and the query's label.",
        ),
        Claim(
            "prop2_aligned",
            "it is right at an aligned W, where all active tokens share the query's label",
            measure=lambda ds: stats.mean(ds.printed_aligned),
            within=(-inf, 1e-9),
            source="Proposition 2",
        ),
        Claim(
            "prop2_signed",
            "with the signs it is right everywhere",
            measure=lambda ds: stats.mean(ds.signed_random),
            within=(-inf, 1e-9),
            source="Proposition 2, corrected",
        ),
    ),
    figure=measures.draw_gradient,
)
