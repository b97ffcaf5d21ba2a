"""One Experiment per figure: the grid, what it should show, and how it is drawn.

Those on success maps and starts are in `recovery`, those on Table 4.1 in `table`.
"""

from math import inf
from typing import Any

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, axis

from . import measures
from .measures import factor, geometric, group_2, rise, typical
from .recovery import FIG4_2, FIG4_3A, FIG4_3B, FIGC_1, FIGC_1_LITERAL, TENSOR
from .table import COR4_4_1, TAB4_1

# A well-specified maximum-likelihood fit: why the risks do what they do.
FLOOR = "The raw loss is the teacher's entropy; what training adds is under 1% of it. "

FRACTIONS: dict[str, Any] = dict(mean_1=0.0, mean_2=0.0)
QUICK: dict[str, Any] = dict(test_samples=5000, seeds=12)

FIG4_7B = Experiment(
    "fig4_7b",
    says="Test loss against the fraction of a minority with the larger covariance.",
    trainings=Trainings(
        grid={**FRACTIONS, "var_2": 10.0, "fraction": [0.001, 0.01, 0.05, 0.1, 0.2, 0.3]},
        seeds=64,
        quick={**QUICK, "fraction": [0.001, 0.05, 0.3], "seeds": 20},
    ),
    claims=(
        Claim(
            "average_loss_rises",
            "raising the fraction of the group with the larger covariance raises the average loss",
            measure=lambda ds: rise(ds.test_loss, "fraction"),
            within=(0, inf),
            source="Figure 4.7(b), Corollary 4.4.1(v)",
            expected="fails",
            note=FLOOR + "The larger group is the surer one, so the average falls.",
        ),
        Claim(
            "group_loss_rises",
            "it raises the loss of that group too",
            measure=lambda ds: rise(group_2(ds.group_loss), "fraction"),
            within=(0, inf),
            source="Figure 4.7(b), Corollary 4.4.1(v)",
            expected="fails",
            note="More samples of a group teach more about it: tr(F_2 F^-1) falls.",
        ),
        Claim(
            "group_excess_falls",
            "the excess risk of the group falls to less than half (fraction 0.001 to 0.3)",
            measure=lambda ds: factor(group_2(ds.group_excess), "fraction", 0.001, 0.3),
            within=(-inf, 0.5),
            source="found here",
        ),
        Claim(
            "average_law",
            "the average excess risk is dK/2n (ratio)",
            measure=measures.over_law,
            within=(0.75, 1.35),
            source="local theory",
        ),
        Claim(
            "group_law",
            "the excess risk of group 2 is tr(F_2 F^-1)/2n (ratio)",
            measure=measures.over_prediction,
            within=(0.75, 1.35),
            source="local theory",
        ),
        Claim(
            "slower",
            "it slows descent (ratio of the rates at fractions 0.3 and 0.001)",
            measure=lambda ds: geometric(ds.rate, "fraction", 0.001, 0.3),
            within=(0, 1),
            source="Corollary 4.4.1(v)",
        ),
    ),
    figure=measures.draw_risks("Minority with the larger covariance", "fraction"),
)

FIG4_7A = Experiment(
    "fig4_7a",
    says="Test loss against the fraction of a minority with the smaller covariance.",
    trainings=Trainings(
        grid={**FRACTIONS, "var_1": 10.0, "fraction": [0.01, 0.1, 0.2, 0.3, 0.4, 0.5]},
        seeds=64,
        quick={**QUICK, "fraction": [0.01, 0.2, 0.5]},
    ),
    claims=(
        Claim(
            "average_loss_falls",
            "raising the fraction of the group with the smaller covariance lowers the average loss",
            measure=lambda ds: rise(ds.test_loss, "fraction"),
            within=(-inf, 0),
            source="Figure 4.7(a), Corollary 4.4.1(iv)",
            expected="fails",
            note=FLOOR + "The smaller group is the less sure one, so the average rises.",
        ),
        Claim(
            "group_loss_falls",
            "it lowers the loss of that group by 1% or more (ratio of the ends)",
            measure=lambda ds: factor(group_2(ds.group_loss), "fraction", 0.01, 0.5),
            within=(-inf, 0.99),
            source="Figure 4.7(a), Corollary 4.4.1(iv)",
            expected="fails",
            note=FLOOR + "Even the excess risk of the group hardly moves.",
        ),
        Claim(
            "group_excess_flat",
            "the excess risk of that group stays within a factor 1.5",
            measure=lambda ds: factor(group_2(ds.group_excess), "fraction", 0.01, 0.5),
            within=(1 / 1.5, 1.5),
            source="found here",
        ),
        Claim(
            "average_law_a",
            "the average excess risk is dK/2n (ratio)",
            measure=measures.over_law,
            within=(0.75, 1.35),
            source="local theory",
        ),
        Claim(
            "faster",
            "it speeds descent (ratio of the rates at fractions 0.5 and 0.01)",
            measure=lambda ds: geometric(ds.rate, "fraction", 0.01, 0.5),
            within=(1, inf),
            source="Corollary 4.4.1(iv)",
        ),
    ),
    figure=measures.draw_risks("Minority with the smaller covariance", "fraction"),
)

FIG4_6A = Experiment(
    "fig4_6a",
    says="Test loss against the covariance of a minority.",
    trainings=Trainings(
        grid={
            "fraction": 0.2,
            "mean_1": 2.0,
            "mean_2": -2.0,
            "var_2": [0.05, 0.25, 1.0, 2.0, 4.0, 8.0],
        },
        seeds=64,
        quick={**QUICK, "var_2": [0.05, 1.0, 8.0], "seeds": 20},
    ),
    claims=(
        *(
            Claim(
                f"{name}_dips",
                f"the {name} loss first falls and then rises (both ends above the middle)",
                measure=lambda ds, of=of: measures.dip(of(ds), "var_2", 1.0),
                within=(0, inf),
                source="Figure 4.6(a), (P3)",
                expected="fails",
                note=FLOOR + "The teacher is surer on a wider group, so the loss falls throughout.",
            )
            for name, of in (
                ("average", lambda ds: ds.test_loss),
                ("group", lambda ds: group_2(ds.group_loss)),
            )
        ),
        Claim(
            "group_excess_rises",
            "the excess risk of group 2 rises with its covariance, over 5-fold from 0.05 to 8",
            measure=lambda ds: factor(group_2(ds.group_excess), "var_2", 0.05, 8.0),
            within=(5, inf),
            source="(P3), for large covariances",
        ),
        Claim(
            "loss_is_entropy",
            "what training adds to the average loss is under 1% of it",
            measure=lambda ds: stats.mean(ds.excess / ds.test_loss),
            within=(-inf, 0.01),
            source="found here",
        ),
    ),
    figure=measures.draw_risks("Covariance of the minority", "var_2", log="x"),
)

FIG4_6B = Experiment(
    "fig4_6b",
    says="Test loss against the mean of a minority; the paper's range is from -2 on.",
    trainings=Trainings(
        grid={
            "fraction": 0.2,
            "mean_1": 2.0,
            "mean_2": [-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 1.0, 2.0],
        },
        seeds=128,
        quick={**QUICK, "mean_2": [-4.0, -2.0, 0.0]},
    ),
    claims=(
        Claim(
            "group_loss_rises_as_printed",
            "the loss of group 2 rises from mean -2 to 0 (where the mean shrinks)",
            measure=lambda ds: rise(group_2(ds.group_loss), "mean_2", -2.0, 0.0),
            within=(0, inf),
            source="Figure 4.6(b)",
            scale="paper",
        ),
        Claim(
            "group_risk_rises_with_the_mean",
            "the excess risk of group 2 is higher at mean -4 than at 0 (ratio over 1)",
            measure=lambda ds: factor(group_2(ds.group_excess), "mean_2", 0.0, -4.0),
            within=(1, inf),
            source="(P5), Corollary 4.4.1(iii)",
            expected="fails",
            note="A saturated group is easy to predict; the weights are what gets worse.",
        ),
        Claim(
            "average_risk_rises_with_the_mean",
            "the average excess risk is higher at mean -4 than at 0 (ratio over 1)",
            measure=lambda ds: factor(ds.excess, "mean_2", 0.0, -4.0),
            within=(1, inf),
            source="(P5), Corollary 4.4.1(iii)",
            note="In the limit of large n both are dK/2n; the limit is far where groups saturate.",
            scale="paper",
        ),
        Claim(
            "error_rises_with_the_mean",
            "the distance to the teacher is larger at mean -4 than at 0 (median ratio over 1)",
            measure=lambda ds: typical(ds.error, "mean_2", 0.0, -4.0),
            within=(1, inf),
            source="(P5), Corollary 4.4.1(iii)",
        ),
        Claim(
            "rate_falls_with_the_mean",
            "descent is slower at mean -4 than at 0 (median ratio of the rates below 1)",
            measure=lambda ds: typical(ds.rate, "mean_2", 0.0, -4.0),
            within=(-inf, 1),
            source="(P5), Corollary 4.4.1(iii)",
        ),
    ),
    figure=measures.draw_risks("Mean of the minority", "mean_2"),
)

FIG4_5B = Experiment(
    "fig4_5b",
    says="Distance of the minimiser to the teacher against the number of samples.",
    trainings=Trainings(
        grid={"var_1": 9.0, "var_2": 9.0, "samples": [2000, 4000, 8000, 20_000, 40_000, 60_000]},
        seeds=400,
        quick={**QUICK, "samples": [4000, 8000, 20_000]},
    ),
    claims=(
        Claim(
            "error_exponent",
            "the error falls with n as sqrt(log n / n), from 4000 on (exponent)",
            measure=measures.error_exponent,
            within=(-0.65, -0.42),
            source="(4.10), Figure 4.5(b)",
            scale="paper",
        ),
        Claim(
            "error_law",
            "at the largest n its root mean square is (tr F^-1/n)^(1/2) (ratio)",
            measure=measures.over_expected,
            within=(0.8, 1.4),
            source="local theory",
        ),
    ),
    figure=measures.draw_error,
)

FIG4_5A = Experiment(
    "fig4_5a",
    says="Convergence rate against the number of neurons.",
    trainings=Trainings(
        simulator="wide",
        grid={"width": [1, 2, 3, 4, 5, 6]},
        seeds=40,
        quick={"width": [1, 2, 3, 4], "seeds": 8, "test_samples": 1000},
    ),
    claims=(
        Claim(
            "slower_with_neurons",
            "the rate falls with K, with a power below -1.5",
            measure=lambda ds: stats.power_law(ds.rate, "width").slope,
            within=(-inf, -1.5),
            source="(4.9), Figure 4.5(a)",
        ),
        Claim(
            "inverse_square",
            "1 - v is proportional to 1/K^2 (power from -2.3 to -1.7, two neurons on)",
            measure=lambda ds: measures.neuron_law(ds.rate).slope,
            within=(-2.3, -1.7),
            source="(4.9), Figure 4.5(a)",
            expected="fails",
            note="q of (4.9) depends on K too: with the step 25/M_2 the power is about -3.5.",
        ),
    ),
    figure=measures.draw_neurons,
)


# Two neurons are quicker, and have their minimiser near with fewer samples.
TWO: dict[str, Any] = dict(width=2, samples=4000)


def opposite(settings: dict[str, Any]) -> dict[str, float]:
    return {"mean_2": -settings["mean_1"]}


FIG4_4A = Experiment(
    "fig4_4a",
    says="Descent to the minimiser for several means.",
    trainings=Trainings(
        simulator="descent",
        grid={"mean_1": axis([0.05, 0.25, 0.5, 1.0, 1.5, 2.0], sets=opposite), "steps": 200_000},
        seeds=16,
        quick={**TWO, "mean_1": [0.05, 0.5, 1.0], "seeds": 6},
    ),
    claims=(
        Claim(
            "linear",
            "the log distance falls linearly (R^2 of the second half, worst mean)",
            measure=lambda ds: measures.straightness(measures.finished(ds, "mean_1")),
            within=(0.99, inf),
            source="(4.8), Figure 4.4(a)",
        ),
        Claim(
            "slower_with_mean",
            "descent is slower at the largest mean than at the smallest (ratio of the rates)",
            measure=lambda ds: geometric(
                ds.rate, "mean_1", float(ds.mean_1.min()), float(ds.mean_1.max())
            ),
            within=(0, 1),
            source="Corollary 4.4.1(iii), Figure 4.4(a)",
        ),
        Claim(
            "slower_with_every_mean",
            "the larger the mean the slower (log rate, smallest step)",
            measure=lambda ds: measures.slower(ds.rate, "mean_1"),
            within=(0, inf),
            source="Corollary 4.4.1(iii), Figure 4.4(a)",
            scale="paper",
        ),
        Claim(
            "rate_law",
            "the rate is eta_0 times the smallest eigenvalue (largest relative deviation)",
            measure=lambda ds: stats.agreement(
                measures.tail_rate(measures.finished(ds, "mean_1"))
                / measures.finished(ds, "mean_1").rate,
                1.0,
            ),
            within=(-inf, 0.05),
            source="local theory",
        ),
    ),
    figure=measures.draw_descents("Descent for several means", "mean_1"),
)


def norms(*values: float) -> Any:
    return axis(list(values), r"\|\Sigma\|", "norm of the covariances", sets=of_norm)


def of_norm(settings: dict[str, Any]) -> dict[str, float]:
    """The largest of the eigenvalues 1, 1.1, ... 1.4 is multiplied to the norm."""
    return {"var_1": settings["norm"] / 1.4, "var_2": settings["norm"] / 1.4}


FIG4_4B = Experiment(
    "fig4_4b",
    says="Descent to the minimiser for several covariances.",
    trainings=Trainings(
        simulator="descent",
        grid={"norm": norms(0.1, 0.3, 1.0, 3.0, 10.0, 30.0), "samples": 50_000, "steps": 40_000},
        seeds=32,
        quick={"norm": norms(0.1, 1.0, 30.0), **TWO, "steps": 1000, "seeds": 8},
    ),
    claims=(
        Claim(
            "fastest_in_the_middle",
            "descent is faster at norm 1 than at 0.1 and at 30 (the smaller ratio of the rates)",
            measure=lambda ds: measures.fastest(ds.rate.sel(norm=[0.1, 1.0, 30.0]), "norm", 1.0),
            within=(1, inf),
            source="Corollary 4.4.1(i) and (ii), Figure 4.4(b)",
        ),
        Claim(
            "linear_in_time",
            "the log distance falls linearly (R^2 of the second half, worst norm)",
            measure=lambda ds: measures.straightness(measures.finished(ds, "norm")),
            within=(0.99, inf),
            source="(4.8), Figure 4.4(b)",
            scale="paper",
        ),
    ),
    figure=measures.draw_descents("Descent for several covariances", "norm", log="x"),
)

FIG4_4B_TEACHERS = Experiment(
    "fig4_4b_teachers",
    says="The rates of Figure 4.4(b) without descents, for many teachers.",
    trainings=Trainings(
        grid={"norm": norms(0.3, 1.0, 2.0, 3.0, 5.0, 10.0), "stretch": 0.1, "samples": 50_000},
        seeds=512,
        paper_only=True,
    ),
    claims=(
        Claim(
            "fastest_at_one",
            "descent is fastest at norm 1 (its rate over the best of the others)",
            measure=lambda ds: measures.fastest(ds.rate, "norm", 1.0),
            within=(1, inf),
            source="Figure 4.4(b)",
            expected="fails",
            note="With Gaussian teachers the median rate is highest near norm 2, and 3 beats 1.",
        ),
    ),
    figure=measures.draw_rates("Rate and covariance", "norm"),
)

NOISE = Experiment(
    "noise",
    says="Descent with noise in the gradient: the distance that is kept.",
    trainings=Trainings(
        simulator="descent",
        grid={"mean_1": axis(0.05, sets=opposite), "noise": [0.01, 0.03, 0.1, 0.3], "times": 40.0},
        seeds=32,
        quick={**TWO, "noise": [0.01, 0.03, 0.1], "times": 20.0, "seeds": 6},
    ),
    claims=(
        Claim(
            "linear_in_noise",
            "the distance that is kept grows with xi (power)",
            measure=lambda ds: stats.power_law(measures.plateau(ds), "noise").slope,
            within=(0.9, 1.1),
            source="(4.8)",
        ),
        Claim(
            "noise_law",
            "it is that of an autoregression in each eigendirection (ratio)",
            measure=lambda ds: stats.mean(measures.plateau(ds) / ds.floor),
            within=(0.8, 1.25),
            source="local theory",
        ),
        Claim(
            "noise_bound",
            "it lies below the statistical error of (4.8) (largest ratio)",
            measure=measures.over_bound,
            within=(-inf, 1),
            source="(4.8)",
        ),
    ),
    figure=measures.draw_noise,
)

EXPERIMENTS = (
    FIG4_7B,
    FIG4_7A,
    FIG4_6A,
    FIG4_6B,
    FIG4_5B,
    FIG4_5A,
    FIG4_4A,
    FIG4_4B,
    FIG4_4B_TEACHERS,
    NOISE,
    FIG4_2,
    FIG4_3A,
    FIG4_3B,
    FIGC_1,
    FIGC_1_LITERAL,
    TENSOR,
    TAB4_1,
    COR4_4_1,
)
