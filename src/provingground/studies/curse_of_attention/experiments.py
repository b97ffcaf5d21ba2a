"""One Experiment per figure: the grid, what it should show, and how it is drawn."""

from math import inf
from typing import Any

from provingground import stats
from provingground.study import Claim, Experiment, cases

from . import measures, remedies

FEATURES = cases(measures.MODES)
STANDARD: dict[str, Any] = dict(steps=3000, record=32, test_samples=2000)
QUICK: dict[str, Any] = dict(steps=300, record=16, test_samples=1000)

OOD_RISK = Experiment(
    "ood_risk",
    says="Risk on sign-inconsistent series: attention, residual linear network, zero.",
    grid={**STANDARD, "features": FEATURES, "noise": [0.0, 0.01, 0.03, 0.1]},
    seeds=16,
    quick={**QUICK, "seeds": 8},
    claims=(
        Claim(
            "worse_than_zero",
            "the OOD risk of attention is above that of the zero predictor (smallest ratio)",
            measure=measures.over_zero,
            within=(1, inf),
            source="Proposition 6.3(1), by the sign theorem",
        ),
        Claim(
            "linear_risk",
            "the residual linear network with w* has OOD risk sigma^2 (1 + |c|^2) (deviation)",
            measure=lambda ds: stats.agreement(
                measures.without_noise(ds).linear_ood,
                measures.predicted(measures.without_noise(ds), "linear_loss"),
            ),
            within=(-inf, 0.06),
            source="Proposition 6.3(2), corrected",
        ),
        Claim(
            "zero_risk",
            "the zero predictor has the OOD risk of the wedges (deviation)",
            measure=lambda ds: stats.agreement(ds.zero_ood, measures.predicted(ds, "zero_ood")),
            within=(-inf, 0.1),
            source="theory.zero_ood_risk",
        ),
        Claim(
            "gap",
            "at sigma = 0.01 attention has over 10 times the OOD risk of the trained linear one",
            measure=lambda ds: measures.gap(ds.sel(noise=[0.01])),
            within=(10, inf),
            source="Proposition 6.3",
        ),
        Claim(
            "attention_exponent",
            "the OOD risk of attention does not fall with sigma^2: exponent below 1",
            measure=lambda ds: stats.worst(
                measures.exponent(measures.end(measures.without_noise(ds).ood_loss)), "high"
            ),
            within=(-inf, 1),
            source="Proposition 6.3(1)",
        ),
        Claim(
            "linear_exponent",
            "the OOD risk of the trained linear network falls with sigma^2: exponent 2",
            measure=lambda ds: stats.worst(
                measures.exponent(measures.without_noise(ds).fitted_ood), "low"
            ),
            within=(1.95, 2.05),
            source="Proposition 6.3(2)",
        ),
        Claim(
            "loses_in_distribution",
            "attention loses in distribution too: over twice the risk of the linear network",
            measure=lambda ds: measures.everywhere(
                stats.paired_ratio,
                "low",
                measures.end(measures.without_noise(ds).test_loss),
                measures.without_noise(ds).fitted_loss,
            ),
            within=(2, inf),
            source="found here",
        ),
    ),
    figure=measures.draw_risks,
)

SSM_BUILD = Experiment(
    "ssm_build",
    says="A state-space model with the wanted features, and which Properties can hold.",
    grid={"features": cases(measures.ALL_MODES), "tokens": [4, 8, 16]},
    simulator="series",
    seeds=8,
    quick={"tokens": [4, 8], "seeds": 4},
    claims=(
        Claim(
            "recursion",
            "the recursion of Claim 4.2 gives the wanted features (largest error)",
            measure=lambda ds: measures.everywhere(stats.mean, "high", ds.recursion_error),
            within=(-inf, 1e-10),
            source="Claim 4.2",
        ),
        Claim(
            "simulated",
            "the simulated series are products of features and initial state (largest error)",
            measure=lambda ds: measures.everywhere(stats.mean, "high", ds.series_error),
            within=(-inf, 1e-10),
            source="Claim 4.2",
        ),
        Claim(
            "properties_together",
            "Properties 1 to 3 hold together: with 2 and 3 the next feature has norm 1",
            measure=lambda ds: stats.mean(ds.next_norm.sel(features="mix")),
            within=(0.999, 1.001),
            source="Claim 4.2, Properties 1 to 3",
            expected="fails",
            note="2 and 3 give the norm sqrt((d-1)^2 + s^2)/d with s at most 1: below 1.",
        ),
        Claim(
            "mix_bound",
            "Properties 2 and 3 bound the norm of the next feature (largest ratio to the bound)",
            measure=lambda ds: measures.everywhere(
                stats.mean,
                "high",
                ds.next_norm.sel(features="mix") / measures.theory.longest_next(ds.tokens),
            ),
            within=(-inf, 1),
            source="derived from Properties 2 and 3",
        ),
        Claim(
            "unit_norm",
            "Properties 1 and 2 can hold together (deviation of the norm from 1)",
            measure=lambda ds: measures.everywhere(
                stats.mean, "high", abs(ds.next_norm.sel(features=["unit", "unit_uniform"]) - 1)
            ),
            within=(-inf, 1e-6),
            source="Properties 1 and 2",
        ),
        Claim(
            "printed_weights",
            "sum_k w_k P_k = P_{d+1} - P_d over k < d has a solution (least residual)",
            measure=lambda ds: measures.everywhere(stats.mean, "low", ds.printed_residual),
            within=(-inf, 1e-6),
            source="Proposition 6.3(2) as printed",
            expected="fails",
            note="The left side is orthogonal to P_d and the right side is not.",
        ),
        Claim(
            "corrected_weights",
            "sum_k w_k (P_k - P_d) = P_{d+1} - P_d has the solution w = c (residual)",
            measure=lambda ds: measures.everywhere(
                stats.mean, "high", ds.corrected_residual.sel(features=["mix", "unit"])
            ),
            within=(-inf, 1e-6),
            source="Proposition 6.3(2), corrected",
        ),
    ),
    figure=measures.draw_series,
)

NTK_LMIN = Experiment(
    "ntk_lmin",
    says="The smallest eigenvalue of the tangent kernel against the number of samples.",
    grid={"samples": [2, 4, 6, 8, 10, 12, 14, 16], "width": 4096},
    simulator="kernel",
    seeds=16,
    quick={"samples": [2, 4, 6, 8, 12, 16], "seeds": 8},
    claims=(
        Claim(
            "collapse",
            "the smallest eigenvalue falls by over 6 decades from n = 2 to n = 12",
            measure=measures.decades,
            within=(6, inf),
            source="assumption on the kernel, section 5.1",
        ),
        Claim(
            "definite",
            "the kernel is positive definite at n = 8 (smallest eigenvalue)",
            measure=lambda ds: stats.share(ds.kernel_min.sel(samples=8) > 0),
            within=(0.5, 1),
            source="assumption on the kernel, section 5.1",
        ),
    ),
    figure=measures.draw_spectrum,
)

NTK_DRIFT = Experiment(
    "ntk_drift",
    says="How far weights and kernel move, against the width.",
    grid={**STANDARD, "width": [64, 256, 1024, 4096], "noise": 0.1},
    seeds=8,
    quick={**QUICK, "width": [64, 256, 1024], "seeds": 4},
    claims=(
        Claim(
            "radius_exponent",
            "the largest move of a weight falls as m^(-1/2) or faster (exponent)",
            measure=lambda ds: stats.power_law(measures.near(ds.radius), "width").slope,
            within=(-inf, -0.4),
            source="Lemma H.4",
        ),
        Claim(
            "drift_small",
            "at m = 1024 the kernel drifts by less than 3%",
            measure=lambda ds: stats.mean(measures.near(ds.drift).sel(width=1024)),
            within=(-inf, 0.03),
            source="Lemma 5.1",
        ),
        Claim(
            "lazy",
            "the training loss is that of the frozen kernel at the largest width (ratio)",
            measure=measures.lazy_ratio,
            within=(0.98, 1.02),
            source="Lemma 5.1",
        ),
        Claim(
            "loss_vanishes",
            "the training loss falls to 1% of its start",
            measure=lambda ds: stats.paired_ratio(
                measures.end(ds.train_loss), ds.train_loss.isel(step=0, drop=True)
            ),
            within=(-inf, 0.01),
            source="Theorem 5.2, L(T) <= eps",
            expected="fails",
            note="It needs 1/(eta lambda) steps, and lambda is below 1e-15 from n = 16 on.",
        ),
    ),
    figure=measures.draw_drift,
)

ASYM_DIRECTION = Experiment(
    "asym_direction",
    says="Share of weights that have moved in the direction of their read-out.",
    grid={**STANDARD, "noise": 0.1, "features": cases(measures.GAMMAS)},
    seeds=16,
    quick={**QUICK, "features": cases(measures.QUICK_GAMMAS), "seeds": 8},
    claims=(
        Claim(
            "early_unit",
            "all weights move towards a_r in the first 5 steps if gamma >= 0.5",
            measure=lambda ds: stats.mean(
                measures.early(ds.direction.drop_sel(features=measures.WEAK), 1, 5)
            ),
            within=(0.99, 1.01),
            source="Theorem 5.2, Lemma I.3",
        ),
        Claim(
            "early_mix",
            "all weights move towards a_r in the first 30 steps (mix)",
            measure=lambda ds: stats.mean(measures.early(ds.direction.sel(features="mix"), 1, 30)),
            within=(0.99, 1.01),
            source="Theorem 5.2, Lemma I.3",
        ),
        Claim(
            "always",
            "weights still lie on the side of a_r at the end of training",
            measure=lambda ds: stats.mean(measures.end(ds.direction)),
            within=(0.95, 1.01),
            source="Theorem 5.2, Lemma I.3 at all times",
            expected="fails",
            note="The drift is that of the first residuals; it turns once they are fitted.",
        ),
    ),
    figure=measures.draw_direction,
)

ASYM_SIGN = Experiment(
    "asym_sign",
    says="Share of weights with the sign of their read-out.",
    grid={
        **STANDARD,
        "noise": 0.1,
        "features": FEATURES,
        "width": [64, 256, 2048],
        "init_scale": [0.1, 1.0],
    },
    seeds=8,
    quick={**QUICK, "width": [64, 256], "seeds": 8},
    claims=(
        Claim(
            "signs_follow",
            "the share of signs equal to a_r reaches 90% (its peak over training, w(0) as stated)",
            measure=lambda ds: measures.everywhere(
                stats.mean, "high", measures.peak(measures.all_times(ds, 1.0))
            ),
            within=(0.9, 1),
            source="Theorem 5.2, with probability 1 - delta",
            expected="fails",
            note="Lazy training forbids it: weights move much less than their initial size.",
        ),
        Claim(
            "signs_stay_low",
            "with w(0) as stated and m >= 256 the share stays above 0.4",
            measure=lambda ds: measures.everywhere(
                stats.mean, "low", measures.wide(measures.all_times(ds, 1.0))
            ),
            within=(0.4, inf),
            source="lazy training",
        ),
        Claim(
            "signs_stay_high",
            "with w(0) as stated and m >= 256 the share stays below 0.6",
            measure=lambda ds: measures.everywhere(
                stats.mean, "high", measures.wide(measures.all_times(ds, 1.0))
            ),
            within=(-inf, 0.6),
            source="lazy training",
        ),
        Claim(
            "small_init_follows",
            "even initial weights ten times smaller reach no share of 90% (m >= 256)",
            measure=lambda ds: measures.everywhere(
                stats.mean, "high", measures.wide(measures.peak(measures.all_times(ds, 0.1)))
            ),
            within=(-inf, 0.9),
            source="found here",
        ),
    ),
    figure=measures.draw_sign,
)

SIGN_THEOREM = Experiment(
    "sign_theorem",
    says="Whether the output keeps the sign of the last value, and what that costs.",
    grid={**STANDARD, "noise": 0.1, "features": cases(measures.GAMMAS)},
    seeds=16,
    quick={**QUICK, "features": cases(measures.QUICK_GAMMAS), "seeds": 8},
    claims=(
        Claim(
            "same_sign_mix",
            "f x_d >= 0 on sign-inconsistent series at the end of training (mix)",
            measure=lambda ds: stats.mean(measures.end(ds.ood_same_sign.sel(features="mix"))),
            within=(0.99, 1.01),
            source="sign theorem",
        ),
        Claim(
            "same_sign_unit",
            "f x_d >= 0 on sign-inconsistent series at the end of training (gamma >= 0.5)",
            measure=lambda ds: measures.everywhere(
                stats.mean,
                "low",
                measures.end(ds.ood_same_sign.drop_sel(features=["mix", measures.WEAK])),
            ),
            within=(0.85, 1.01),
            source="sign theorem",
        ),
        Claim(
            "exact_early",
            "where w+ >= w- in every pair, f x_d >= 0 on all test points",
            measure=lambda ds: stats.mean(
                measures.early(ds.ood_same_sign, 1, inf).where(
                    measures.early(ds.ordered, 1, inf) == 1, 1.0
                )
            ),
            within=(1 - 1e-9, 1 + 1e-9),
            source="sign theorem",
        ),
        Claim(
            "gap_at_weak_gamma",
            "at gamma = 0.2, where outputs need not keep the sign, it is above zero's OOD risk too",
            measure=lambda ds: measures.over_zero(ds.sel(features=[measures.WEAK])),
            within=(1, inf),
            source="found here",
        ),
        Claim(
            "silent_neurons",
            "trained neurons with a_r = -1, w_r < 0 attend to the last step less than to others",
            measure=lambda ds: measures.everywhere(stats.mean, "high", measures.end(ds.attention)),
            within=(-inf, 1.01),
            source="Theorem 5.3",
        ),
    ),
    figure=measures.draw_same_sign,
)

ATTN_RESIDUAL = Experiment(
    "attn_residual",
    says="Mean attention on the last step of a Gaussian series against the weight.",
    grid={"tokens": [2, 4, 8, 16]},
    simulator="gaussian",
    seeds=16,
    quick={"samples": 10_000, "seeds": 4},
    claims=(
        Claim(
            "negative_weights",
            "for w < 0 the last step gets at most its share 1/d (largest d E S_d)",
            measure=lambda ds: measures.everywhere(
                stats.mean, "high", ds.attention.sel(weight=ds.weight < 0)
            ),
            within=(-inf, 1.01),
            source="Theorem 5.3",
        ),
        Claim(
            "positive_weights",
            "even for w > 0 it gets less than 3/d (largest d E S_d)",
            measure=lambda ds: measures.everywhere(
                stats.mean, "high", ds.attention.sel(weight=ds.weight > 0)
            ),
            within=(-inf, 3),
            source="found here",
        ),
        Claim(
            "limit",
            "d E S_d tends to 2 - 2^(1-d) as w grows (deviation at w = 20, d = 2 and 4)",
            measure=lambda ds: stats.agreement(
                ds.attention.sel(tokens=[2, 4]).isel(weight=-1, drop=True),
                2 - 2.0 ** (1 - ds.tokens.sel(tokens=[2, 4])),
            ),
            within=(-inf, 0.1),
            source="theory.attention_limits",
        ),
    ),
    figure=measures.draw_attention,
)

WIDTH_DATA_TIME = Experiment(
    "width_data_time",
    says="More width, data or time.",
    grid={
        **STANDARD,
        "steps": 300,
        "noise": 0.1,
        "features": FEATURES,
        "more": cases(
            {
                "standard": {},
                "width": {"width": 2048},
                "samples": {"samples": 256},
                "steps": {"steps": 3000},
            }
        ),
    },
    seeds=8,
    quick={
        **QUICK,
        "width": 64,
        "more": cases(
            {
                "standard": {},
                "width": {"width": 256},
                "samples": {"samples": 128},
                "steps": {"steps": 1500},
            }
        ),
        "seeds": 3,
    },
    claims=(
        Claim(
            "no_cure",
            "the OOD risk stays above that of the zero predictor (smallest ratio)",
            measure=measures.over_zero,
            within=(1, inf),
            source="Proposition 6.3, remark",
        ),
    ),
    figure=measures.draw_more,
)

EXPRESSIVITY = Experiment(
    "expressivity",
    says="The best signed measure over neurons, fitted in distribution by ridge regression.",
    grid={
        "features": FEATURES,
        "samples": 6000,
        "width": 51,
        "noise": 0.0,
        "test_samples": 4000,
    },
    simulator="ridge",
    seeds=8,
    quick={"seeds": 4},
    claims=(
        Claim(
            "measure_worse_than_zero",
            "its OOD risk is above that of the zero predictor in both modes (smallest ratio)",
            measure=measures.over_zero,
            within=(1, inf),
            source="found here",
        ),
        Claim(
            "measure_misses",
            "it misses the noiseless target in distribution (smallest share of the zero risk)",
            measure=lambda ds: measures.everywhere(
                stats.paired_ratio, "low", ds.test_loss, ds.zero_loss
            ),
            within=(0.05, inf),
            source="found here",
        ),
    ),
    figure=measures.draw_expressivity,
)

SHAPES = {
    f"({length}, {d})": {"tokens": length, "dim": d}
    for length, d in ((8, 4), (16, 8), (32, 16), (8, 32), (64, 8))
}

CASE12 = Experiment(
    "case12",
    says="Section 7: the gradient's formula, and whether local attention moves as Cases 1, 2 say.",
    grid={"shape": cases(SHAPES)},
    simulator="local",
    seeds=8,
    quick={"shape": cases({k: SHAPES[k] for k in ("(8, 4)", "(16, 8)")}), "seeds": 4},
    claims=(
        Claim(
            "formula",
            "the gradient's formula is exact (largest relative error)",
            measure=lambda ds: measures.everywhere(stats.mean, "high", ds.formula_error),
            within=(-inf, 1e-10),
            source="section 7.1",
        ),
        Claim(
            "rule",
            "Cases 1 and 2 decide the direction of local attention in 95% of rows",
            measure=lambda ds: measures.everywhere(stats.mean, "high", ds.agreement),
            within=(0.95, 1),
            source="section 7.1, Cases 1 and 2",
            expected="fails",
            note="The term that is dropped is as large as the one that is kept.",
        ),
        Claim(
            "tendency_low",
            "Cases 1 and 2 are a tendency: right in over 55% of rows",
            measure=lambda ds: measures.everywhere(stats.mean, "low", ds.agreement),
            within=(0.55, inf),
            source="found here",
        ),
        Claim(
            "tendency_high",
            "and in less than 75%",
            measure=lambda ds: measures.everywhere(stats.mean, "high", ds.agreement),
            within=(-inf, 0.75),
            source="found here",
        ),
        Claim(
            "centred_better",
            "the criterion with the dropped term is right more often (difference)",
            measure=lambda ds: stats.paired_difference(ds.centred, ds.agreement),
            within=(0, inf),
            source="found here",
        ),
    ),
    figure=measures.draw_local,
)

NO_HELP = ("gradient descent", "Adam", "Adam, weight decay", "trained $a$", "minus second")

REMEDIES = Experiment(
    "remedies",
    says="Every remedy of section 7.2 side by side.",
    grid={
        "features": FEATURES,
        "samples": 128,
        "width": 64,
        "noise": 0.1,
        "steps": 2000,
        "record": 4,
        "test_samples": 2000,
        "variant": cases(remedies.VARIANTS),
    },
    simulator="scalar",
    seeds=8,
    quick={"width": 16, "steps": 200, "test_samples": 1000, "seeds": 4},
    claims=(
        Claim(
            "no_help",
            "Adam, weight decay, a trained read-out and differential attention stay above zero's "
            "OOD risk (unit, smallest ratio)",
            measure=lambda ds: measures.over_zero(measures.remedy(ds, *NO_HELP)),
            within=(1, inf),
            source="section 7.2",
        ),
        Claim(
            "no_help_mix",
            "the same in mix",
            measure=lambda ds: measures.over_zero(measures.remedy(ds, *NO_HELP, features="mix")),
            within=(1, inf),
            source="section 7.2",
        ),
        Claim(
            "positions_help",
            "learned positions bring the OOD risk of one head below that of zero (unit)",
            measure=lambda ds: measures.over_zero(measures.remedy(ds, "head, learned")),
            within=(-inf, 1),
            source="section 7.2",
        ),
        Claim(
            "bias_helps",
            "a trained bias of the logits by position brings it below half of that (unit)",
            measure=lambda ds: measures.over_zero(measures.remedy(ds, "position bias")),
            within=(-inf, 0.5),
            source="found here",
        ),
        Claim(
            "patch_helps",
            "a patch as long as the series brings the OOD risk below 0.1 (unit)",
            measure=lambda ds: stats.mean(measures.remedy(ds, "head, patch 8").ood_loss),
            within=(-inf, 0.1),
            source="section 7.2",
        ),
        Claim(
            "skip_helps_mix",
            "in mix adding the last value comes near the linear network: risk below twice its",
            measure=lambda ds: stats.paired_ratio(
                measures.remedy(ds, "$+x_d$", features="mix").test_loss,
                measures.remedy(ds, "$+x_d$", features="mix").fitted_loss,
            ),
            within=(-inf, 2),
            source="found here",
        ),
        Claim(
            "rotary_helps",
            "rotary positions bring the OOD risk below that of the zero predictor (unit)",
            measure=lambda ds: measures.over_zero(measures.remedy(ds, "head, rotary")),
            within=(-inf, 1),
            source="section 7.2",
            expected="fails",
            note="Only differences of positions enter, and values do not: signs cannot be learned.",
        ),
    ),
    figure=measures.draw_remedies,
)

# At the quick scale later ones find cells of earlier ones in the store.
EXPERIMENTS = (
    OOD_RISK,
    ASYM_DIRECTION,
    ASYM_SIGN,
    SIGN_THEOREM,
    NTK_DRIFT,
    NTK_LMIN,
    WIDTH_DATA_TIME,
    ATTN_RESIDUAL,
    EXPRESSIVITY,
    SSM_BUILD,
    CASE12,
    REMEDIES,
)
