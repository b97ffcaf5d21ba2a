"""One Experiment per figure: the grid, what it should show, and how it is drawn."""

from collections.abc import Callable
from math import inf

import numpy as np
import xarray as xr

from provingground import stats
from provingground.claims import Claim
from provingground.stats import Estimate
from provingground.study import Experiment, Refine, Trainings, axis, cases

from . import measures, theory

SIGNAL_NORMS = np.geomspace(1, 100, 24)

QUICK_SNR = list(measures.snr_of(np.geomspace(10, 100, 13)))

FIGURE_1 = Trainings(
    grid={"samples": list(range(2, 21)), "snr": list(measures.snr_of(SIGNAL_NORMS))},
    seeds=8,
    quick={
        "samples": [6, 8, 12, 20],
        "snr": QUICK_SNR,
        "seeds": 6,
    },
)


def boundary_law(
    exponent: str,
    constant: str,
    words: str = "",
    of: Callable[[xr.Dataset], xr.Dataset] = lambda ds: ds,
) -> tuple[Claim, Claim]:
    """The two claims on the boundary, by their names, of a part of a Dataset."""
    return (
        Claim(
            exponent,
            f"the critical SNR falls with the sample size as N^(-1/2){words}",
            measure=lambda ds: measures.boundary(of(ds)).law.slope,
            within=(-0.6, -0.4),
            source="Theorems 4.1 and 4.2, Figure 1(b)",
        ),
        Claim(
            constant,
            f"on the boundary N SNR^2 is about 1000{words}",
            measure=lambda ds: measures.boundary_constant(of(ds)),
            within=(700, 1300),
            source="Figure 1(b)",
        ),
    )


FIG1B = Experiment(
    "fig1b",
    says="The map of Figure 1(a) cut at test loss 0.2: a sharp transition along a curve.",
    trainings=FIGURE_1,
    claims=(
        *boundary_law("boundary_exponent", "boundary_constant"),
        Claim(
            "constant_low",
            "N SNR^2 on the boundary is at least 700 at every N from 4 on",
            measure=lambda ds: stats.worst(measures.boundary_constants(ds), "low"),
            within=(700, inf),
            source="Figure 1(b)",
        ),
        Claim(
            "constant_high",
            "N SNR^2 on the boundary is at most 1300 at every N from 4 on",
            measure=lambda ds: stats.worst(measures.boundary_constants(ds), "high"),
            within=(-inf, 1300),
            source="Figure 1(b)",
        ),
        Claim(
            "sides_paper",
            "cells lie on the predicted side of N SNR^2 = 1000",
            measure=measures.on_side(1000.0),
            within=(0.93, inf),
            source="Figure 1(b)",
        ),
        Claim(
            "sides_derived",
            "cells lie on the predicted side of R = 2, i.e. N SNR^2 = 800",
            measure=measures.on_side(800.0),
            within=(0.93, inf),
            source="boundary derived from Lemma 5.1",
        ),
    ),
    figure=measures.draw_phases,
)

BOUNDARY = Experiment(
    "boundary",
    says="The boundary of Figure 1(b), traced by bisection, and on to twice the paper's samples.",
    trainings=Trainings(
        grid={
            "samples": [4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 36, 40],
            "snr": list(measures.snr_of(SIGNAL_NORMS)),
        },
        seeds=8,
        quick={"samples": [6, 8, 12, 20], "snr": QUICK_SNR, "seeds": 6},
        refine=Refine("snr", "test_loss", measures.CUT),
    ),
    claims=boundary_law("traced_exponent", "traced_constant"),
    figure=measures.draw_boundary,
)

FIG1A = Experiment(
    "fig1a",
    says="Test loss (and error) at training loss 0.01 over sample size and signal-to-noise ratio.",
    trainings=FIGURE_1,
    claims=(
        Claim(
            "falls_with_ratio",
            "the test loss falls with R = N |mu|^2 / (big noise)^2 d (rank correlation)",
            measure=lambda ds: stats.rank_correlation(ds.test_loss, measures.ratio(ds)),
            within=(-inf, -0.9),
            source="Figure 1(a)",
        ),
        Claim(
            "harmful_loss",
            "below the boundary (R < 0.5) the test loss is of order one",
            measure=lambda ds: measures.mean_where(ds.test_loss, measures.ratio(ds) < 0.5),
            within=(0.2, inf),
            source="Theorem 4.2",
        ),
        Claim(
            "benign_loss",
            "far above the boundary (R > 6) the test loss is small",
            measure=lambda ds: measures.mean_where(ds.test_loss, measures.ratio(ds) > 6),
            within=(-inf, measures.CUT),
            source="Theorem 4.1",
        ),
        Claim(
            "harmful_is_margin",
            "harmful overfitting costs margin, not accuracy: the test error is about zero",
            measure=measures.harmful_error,
            within=(-inf, 0.05),
            source="found here",
        ),
    ),
    figure=measures.draw_maps,
)


def numerics_claims() -> tuple[Claim, ...]:
    return tuple(
        claim
        for label, name in (("half step", "half_step"), ("float64", "float64"))
        for claim in boundary_law(
            f"exponent_{name}",
            f"constant_{name}",
            f" ({label})",
            lambda ds, label=label: ds.sel(numerics=label),
        )
    )


NUMERICS = Experiment(
    "numerics",
    says="The boundary of Figure 1 with half the step size, and in double precision.",
    trainings=Trainings(
        grid={
            "numerics": cases(
                {
                    "as printed": {},
                    "half step": {"lr": 0.05},
                    "float64": {"precision": "float64"},
                }
            ),
            "samples": [4, 8, 12, 16, 20],
            "snr": list(measures.snr_of(np.geomspace(25, 100, 12))),
        },
        seeds=8,
        quick={"samples": [6, 20], "snr": QUICK_SNR[::2], "seeds": 5},
    ),
    claims=(
        *numerics_claims(),
        Claim(
            "rounding",
            "single and double precision give the same test loss",
            measure=measures.rounding,
            within=(-inf, 1e-3),
            source="numerics",
        ),
    ),
    figure=measures.draw_numerics,
)


ATTENTION = cases({"trained": {}, "frozen": {"attention_rate": 0.0}})


def dynamics_claims(winner: str, loser: str, source: str) -> tuple[Claim, ...]:
    """Who wins, the same for both regimes with the roles exchanged."""

    def ratio_of(probe: str) -> Callable[[xr.Dataset], Estimate]:
        return lambda ds: stats.paired_ratio(*measures.final(ds, winner, loser)[probe])

    return (
        Claim(
            f"attention_{winner}",
            f"attention on the {winner} is over 4 times that on the {loser}",
            measure=ratio_of("attention"),
            within=(4, inf),
            source=source,
        ),
        Claim(
            f"value_{winner}",
            f"the value of the {winner} is over 3 times that of the {loser}",
            measure=ratio_of("value"),
            within=(3, inf),
            source=source,
        ),
        Claim(
            f"score_{winner}",
            f"the query-key product with the {winner} is larger by over 3",
            measure=lambda ds: stats.paired_difference(*measures.final(ds, winner, loser)["score"]),
            within=(3, inf),
            source=source,
        ),
        *(
            Claim(
                f"early_{token}_{winner}_wins",
                f"the value of the {token} starts to grow as Lemma 5.1 says (ratio)",
                measure=measures.early_growth(f"value_{token}"),
                within=(0.95, 1.05),
                source="Lemma 5.1",
            )
            for token in ("signal", "noise")
        ),
    )


FIG3 = Experiment(
    "fig3",
    says="Benign regime: attention, query-key products and values of signal and noise in time.",
    trainings=Trainings(
        grid={
            **measures.DYNAMICS,
            **measures.BENIGN,
            "steps": 700,
            "record": 701,
            "attention": ATTENTION,
        },
        seeds=16,
    ),
    claims=(
        *dynamics_claims("signal", "noise", "Figure 3, Lemmas 5.2 and 5.3"),
        Claim(
            "benign_test_loss",
            "the test loss is small",
            measure=lambda ds: stats.mean(measures.test_loss(ds, "trained")),
            within=(-inf, 0.1),
            source="Theorem 4.1, Figure 3",
        ),
        Claim(
            "benign_test_loss_law",
            "the test loss is l(V (2M-1)/M^2), up to a relative deviation",
            measure=lambda ds: stats.mean(
                measures.test_loss(ds, "trained")
                / theory.benign_test_loss(ds.value_signal.isel(step=-1, attention=0, drop=True), 4)
            ),
            within=(0.9, 1.1),
            source="derived from Lemma 5.5",
        ),
        Claim(
            "attention_speeds_up",
            "training the attention saves most of the steps",
            measure=lambda ds: stats.paired_ratio(
                ds.stopped_at.sel(attention="frozen", drop=True),
                ds.stopped_at.sel(attention="trained", drop=True),
            ),
            within=(3, inf),
            source="frozen-attention baseline",
        ),
    ),
    figure=measures.draw_dynamics("Benign regime, $N = 16$, $\\|\\mu\\| = 25$"),
)

FIG4 = Experiment(
    "fig4",
    says="Harmful regime: attention, query-key products and values of signal and noise in time.",
    trainings=Trainings(
        grid={
            **measures.DYNAMICS,
            **measures.HARMFUL,
            "steps": 700,
            "record": 701,
            "attention": ATTENTION,
        },
        seeds=16,
    ),
    claims=(
        *dynamics_claims("noise", "signal", "Figure 4, Appendix E"),
        Claim(
            "harmful_test_loss",
            "the test loss stays of order one",
            measure=lambda ds: stats.mean(measures.test_loss(ds, "trained")),
            within=(0.4, inf),
            source="Theorem 4.2, Figure 4",
        ),
        Claim(
            "harmful_test_error",
            "yet the test error is zero",
            measure=lambda ds: stats.mean(ds.test_error.sel(attention="trained")),
            within=(-inf, 0.01),
            source="found here",
        ),
        Claim(
            "attention_does_harm",
            "training the attention raises the test loss over that of frozen attention",
            measure=lambda ds: stats.paired_ratio(
                measures.test_loss(ds, "trained"), measures.test_loss(ds, "frozen")
            ),
            within=(2, inf),
            source="frozen-attention baseline",
        ),
    ),
    figure=measures.draw_dynamics("Harmful regime, $N = 10$, $\\|\\mu\\| = 15$"),
)


QUICK_VARIATIONS = [*list(measures.VARIATIONS)[:7], "$M = 4$"]

COLLAPSE = Experiment(
    "collapse",
    says="The boundary for other noises, sizes and step sizes: R is the control variable.",
    trainings=Trainings(
        grid={
            "samples": 8,
            "key_width": 256,
            "variation": cases(measures.VARIATIONS),
            "ratio": axis(np.geomspace(0.7, 5, 16), "R", "signal ratio", sets=measures.at_ratio),
        },
        seeds=16,
        quick={
            "variation": cases({k: measures.VARIATIONS[k] for k in QUICK_VARIATIONS}),
            "ratio": np.geomspace(0.9, 4.2, 10),
            "seeds": 8,
        },
    ),
    claims=(
        Claim(
            "ratio_low",
            "the critical R is above 1.2 with balanced labels and small initial weights",
            measure=lambda ds: stats.worst(measures.critical_ratios(ds), "low"),
            within=(1.2, inf),
            source="boundary derived from Lemma 5.1",
        ),
        Claim(
            "ratio_high",
            "the critical R is below 3 with balanced labels and small initial weights",
            measure=lambda ds: stats.worst(measures.critical_ratios(ds), "high"),
            within=(-inf, 3),
            source="boundary derived from Lemma 5.1",
        ),
        Claim(
            "n_snr2_moves",
            "the critical N SNR^2 moves by a factor over 20, so it is not the control variable",
            measure=measures.n_snr2_spread,
            within=(20, inf),
            source="found here",
        ),
        Claim(
            "n_snr2_universal",
            "the critical N SNR^2 is the same constant whatever the noises (within a factor 2)",
            measure=measures.n_snr2_spread,
            within=(1, 2),
            source="Theorems 4.1 and 4.2, read literally",
            expected="fails",
            note="1000 is about 2.5 C_p^2 with the C_p = 20 of Figure 1; R is the invariant.",
        ),
    ),
    figure=measures.draw_collapse,
)


STAGES = Experiment(
    "stages",
    says="Rates: time to a training loss, early growth of the values, logarithmic late growth.",
    trainings=Trainings(
        grid={
            **measures.DYNAMICS,
            "steps": 1400,
            "record": 1401,
            "eps": 0.005,
            "lr": [0.02, 0.01, 0.005],
            "regime": cases({"benign": measures.BENIGN, "harmful": measures.HARMFUL}),
        },
        seeds=8,
        quick={"lr": [0.02, 0.01], "steps": 700, "record": 701},
    ),
    claims=(
        Claim(
            "step_invariance",
            "eta T depends on the step size by less than 2%",
            measure=measures.step_invariance,
            within=(-inf, 0.02),
            source="Theorems 4.1 and 4.2",
        ),
        Claim(
            "time_exponent_low",
            "T grows with 1/eps with an exponent of at least 0.9",
            measure=lambda ds: stats.worst(measures.local_exponent(ds), "low"),
            within=(0.9, inf),
            source="Theorems 4.1 and 4.2",
        ),
        Claim(
            "time_exponent_high",
            "T grows with 1/eps with an exponent of at most 1",
            measure=lambda ds: stats.worst(measures.local_exponent(ds), "high"),
            within=(-inf, 1.0),
            source="Theorems 4.1 and 4.2",
        ),
        Claim(
            "late_log",
            "late values grow with the logarithm of time (correlation)",
            measure=measures.log_growth,
            within=(0.999, inf),
            source="Lemma 5.4",
        ),
    ),
    figure=measures.draw_stages,
)

EXPERIMENTS = (FIG1B, FIG1A, BOUNDARY, FIG3, FIG4, COLLAPSE, STAGES, NUMERICS)
