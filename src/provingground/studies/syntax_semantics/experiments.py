"""One Experiment per theorem, control or figure: the grid, what it should show, its drawing."""

from math import inf, sqrt

import numpy as np

from provingground import stats
from provingground.study import Claim, Experiment, axis, cases

from . import measures, theory
from .measures import ending, median, on

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
    grid={"schedule": SCHEDULES},
    seeds=256,
    quick={"seeds": 96},
    claims=(
        Claim(
            "thm1_a2",
            "stage 1 learns nothing of the hard part: its median loss is about log 2",
            measure=on("annealed", lambda ds: median(ending(ds.loss_hard, 1))),
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
        ),
        Claim(
            "thm3",
            "stage 2 learns one side of the hard part: the median loss is about 3/4 log 2",
            measure=on("annealed", lambda ds: median(ending(ds.loss_hard, 2))),
            within=(0.51, 0.56),
            source="Theorem 3, corrected",
        ),
        Claim(
            "thm3_share",
            "it does so in most seeds (loss below 0.56)",
            measure=on("annealed", lambda ds: measures.learned(ds, 2)),
            within=(0.8, 1),
            source="Theorem 3, corrected",
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
            measure=on("annealed", lambda ds: median(ending(ds.w_change, 2))),
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
    grid={
        "z_norm": 12.0,
        "k2": 4.0,
        "model": cases({"full": {"simulator": "full"}, "reduced": {"simulator": "reduced"}}),
    },
    seeds=32,
    quick={"seeds": 6},
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
            "stage 2 learns one side of the hard part",
            measure=lambda ds: stats.mean(ending(ds.loss_hard.sel(model="full"), 2)),
            within=(0.51, 0.56),
            source="Theorem 3, corrected",
        ),
        Claim(
            "reduction_hard",
            "five numbers give the final loss of the hard part (difference of the means)",
            measure=lambda ds: stats.paired_difference(
                ending(ds.loss_hard.sel(model="full", drop=True), 2),
                ending(ds.loss_hard.sel(model="reduced", drop=True), 2),
            ),
            within=(-0.01, 0.01),
            source="exact reduction",
        ),
        Claim(
            "reduction_easy",
            "and the loss of the easy part after stage 1",
            measure=lambda ds: stats.paired_difference(
                ending(ds.loss_easy.sel(model="full", drop=True), 1),
                ending(ds.loss_easy.sel(model="reduced", drop=True), 1),
            ),
            within=(-0.1, 0.1),
            source="reduction that leaves out noise across the target",
        ),
    ),
    figure=measures.draw_models,
)

ABL_TEMP = Experiment(
    "abl_temp",
    says="Stage 2 with a large or small step at a high or low temperature of its noise.",
    grid={
        "lr2": [0.1, 0.005],
        "temperature": axis([0.05, 1.0], "T_2/T_1", "temperature of stage 2 over stage 1"),
    },
    derive=measures.at_temperature,
    seeds=256,
    quick={"seeds": 96},
    claims=(
        *(
            Claim(
                f"{size}_step_{word}",
                f"a {size} step at a {word} temperature {'learns' if lr2 < 0.1 else 'misses'} "
                "the hard part (share of seeds that learn it)",
                measure=lambda ds, lr2=lr2, t=t: stats.share(
                    measures.settled(ds).sel(lr2=lr2, temperature=t)
                ),
                within=(0.6, 1) if lr2 < 0.1 else (0, 0.1),
                source="exact result: the gate",
            )
            for size, lr2 in (("large", 0.1), ("small", 0.005))
            for word, t in (("low", 0.05), ("high", 1.0))
        ),
        Claim(
            "noise_hides",
            "what hides the hard part is the noise of large steps: less of it lets them learn",
            measure=lambda ds: stats.share(measures.settled(ds).sel(lr2=0.1, temperature=0.05)),
            within=(0.5, 1),
            source="proof of Theorem 2",
            expected="fails",
            note="The step itself throws V out of the active region; noise only opens the door.",
        ),
    ),
    figure=measures.draw_temperature,
)

ETA_C = Experiment(
    "eta_c",
    says="The largest step size that learns the hard part, at a fixed temperature, against u.",
    grid={
        "z_norm": [6.0, 9.0, 12.0, 16.0],
        "lr2": list(np.geomspace(0.006, 0.8, 12)),
        "temperature": axis([0.05], "T_2/T_1", "temperature of stage 2 over stage 1"),
    },
    derive=measures.at_temperature,
    seeds=64,
    quick={"lr2": list(np.geomspace(0.006, 0.8, 8)), "seeds": 24},
    claims=(
        Claim(
            "eta_c",
            "the critical step size falls with u with an exponent of about -4",
            measure=lambda ds: measures.gate(ds.isel(temperature=0)).law.slope,
            within=(-4.4, -3.2),
            source="exact result: the gate",
        ),
        Claim(
            "eta_c_low",
            "at every u the critical step size is at least half of 500 u^-4",
            measure=lambda ds: stats.worst(measures.gate_constants(ds.isel(temperature=0)), "low"),
            within=(250, inf),
            source="theory.critical_lr",
        ),
        Claim(
            "eta_c_high",
            "and at most twice that",
            measure=lambda ds: stats.worst(measures.gate_constants(ds.isel(temperature=0)), "high"),
            within=(-inf, 1000),
            source="theory.critical_lr",
        ),
    ),
    figure=lambda ds: measures.draw_gate(ds.isel(temperature=0)),
)

SCAN_UR = Experiment(
    "scan_ur",
    says="The hard part's centre against its offset: a gate at large u, both sides at small u.",
    grid={"z_norm": [3.0, 4.0, 6.0, 9.0, 12.0, 16.0]},
    seeds=256,
    quick={"seeds": 48},
    claims=(
        Claim(
            "scan_ur",
            "the share of seeds that miss the hard part in stage 1 grows with u (rank correlation)",
            measure=lambda ds: stats.rank_correlation(
                (ending(ds.loss_hard, 1) > measures.MISSED).astype(float), "z_norm"
            ),
            within=(0.8, 1),
            source="exact result: the gate",
        ),
        Claim(
            "no_gate",
            "at u = r the large step learns the hard part too: no separate stages",
            measure=lambda ds: measures.missed(ds.sel(z_norm=3.0), 1),
            within=(0, 0.2),
            source="exact result: the gate",
        ),
        Claim(
            "two_sides",
            "at u = r both sides are learned (median loss at the end)",
            measure=lambda ds: median(ending(ds.loss_hard.sel(z_norm=3.0), 2)),
            within=(theory.FLOOR, 0.42),
            source="exact result: minimum at given norm",
        ),
        Claim(
            "one_side",
            "from u = 9 on only one side is learned: largest median loss at the end",
            measure=lambda ds: stats.worst(
                [median(ending(ds.loss_hard.sel(z_norm=u), 2)) for u in (9.0, 12.0, 16.0)]
            ),
            within=(0.51, 0.56),
            source="exact result: minimum at given norm",
        ),
    ),
    figure=measures.draw_scan,
)

PRESETS = Experiment(
    "presets",
    says="Other settings: the paper's t1, a weaker gate, and one in which both sides are near.",
    grid={
        "preset": cases(
            {
                "gate_t1": {"k1": 1.0},
                "mild": {"z_norm": 8.0, "zeta_norm": 2.0, "lr2": 0.003, "k2": 10.0},
                "two_sided": {
                    "z_norm": 3.5, "zeta_norm": 2.5, "weight_decay": 0.03, "init_std": 1.4,
                    "lr1": 0.4, "lr2": 0.008, "k2": 3.0,
                },
            }
        )
    },
    seeds=256,
    quick={"seeds": 32},
    claims=(
        Claim(
            "presets_easy",
            "stage 1 learns the easy part in every setting",
            measure=lambda ds: stats.worst(
                measures.in_each(ds, lambda ds: stats.mean(ending(ds.loss_easy, 1)))
            ),
            within=(-inf, 0.25),
            source="Theorem 2",
        ),
        Claim(
            "presets_hard",
            "stage 2 lowers the loss of the hard part in every setting",
            measure=lambda ds: stats.worst(measures.in_each(ds, measures.hard_fall), "low"),
            within=(0.02, inf),
            source="Theorem 3",
        ),
        Claim(
            "paper_t1",
            "with the paper's t1 the stages are the same: the hard part is missed until t1",
            measure=lambda ds: measures.missed(ds.sel(preset="gate_t1"), 1),
            within=(0.85, 1),
            source="Theorem 1",
        ),
    ),
    figure=measures.draw_presets,
)  # fmt: skip

OUTPUT_BIAS = Experiment(
    "output_bias",
    says="A trained output bias: the repair that lets the loss of the hard part fall further.",
    grid={"z_norm": [3.0, 16.0], "output_bias": [0.0, 1.0]},
    seeds=256,
    quick={"seeds": 48},
    claims=(
        Claim(
            "bias_gate",
            "with a bias the median loss falls below 3/4 log 2 at u = 16",
            measure=lambda ds: median(ending(ds.loss_hard.sel(z_norm=16.0, output_bias=1), 2)),
            within=(0.46, 0.51),
            source="found here",
        ),
        Claim(
            "bias_floor",
            "and at u = 3, where both sides are learned, nearly all seeds end below the floor",
            measure=lambda ds: stats.share(
                ending(ds.loss_hard.sel(z_norm=3.0, output_bias=1), 2) < theory.FLOOR
            ),
            within=(0.8, 1),
            source="found here",
        ),
        Claim(
            "bias_none",
            "which without a bias is impossible",
            measure=lambda ds: measures.least_hard_loss(ds.sel(output_bias=0)),
            within=(theory.FLOOR - 1e-6, inf),
            source="exact result",
        ),
    ),
    figure=measures.draw_bias,
)

COR1_ORDER = Experiment(
    "cor1_order",
    says="The traces of both signals at the ends of the stages.",
    grid={"schedule": cases({"annealed": {}})},
    seeds=256,
    quick={"seeds": 96},
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
    simulator="kq",
    grid=measures.KQ,
    seeds=32,
    quick={"seeds": 6},
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

FIG3 = Experiment(
    "fig3",
    says="The data in the plane: the easy part is linearly separable, the hard part is not.",
    simulator="picture",
    grid={"dim": 2, "samples": 4, "tokens": 129, "margin": 0.3, "z_norm": 2.0, "zeta_norm": 1.0},
    seeds=32,
    quick={"seeds": 8},
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
    simulator="gradient",
    grid={"margin": [0.25, 0.6, 1.2]},
    seeds=32,
    quick={"seeds": 8},
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

EXPERIMENTS = (
    THM3, THM2, ABL_TEMP, ETA_C, SCAN_UR, PRESETS, OUTPUT_BIAS, COR1_ORDER, COR1_BOUND, LITERAL,
    FIG3, PROP2,
)  # fmt: skip
