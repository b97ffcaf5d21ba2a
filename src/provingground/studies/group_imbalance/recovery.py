"""Experiments on when and whence descent finds the minimiser: success maps and starts."""

from math import inf
from typing import Any

from provingground import stats
from provingground.claims import Claim
from provingground.study import Experiment, Trainings, axis, cases

from . import measures

SIZES = [500, 1000, 2000, 4000, 8000, 16_000]
MAP: dict[str, Any] = dict(simulator="map", seeds=20)
SMALL: dict[str, Any] = dict(samples=[1000, 4000], starts=2, steps=1000, seeds=10)


def laid_out(settings: dict[str, Any]) -> dict[str, str]:
    """The paper's twenty starts are for a GPU, which gets one program for the whole map."""
    return {"simulator": "large_map" if settings["starts"] > 10 else "map"}


FIG4_2 = Experiment(
    "fig4_2",
    says="Success of descent from many starts, over dimension and number of samples.",
    trainings=Trainings(
        grid={
            "starts": axis(20, sets=laid_out),
            "dim": [3, 5, 8, 12, 16, 20],
            "samples": [250, *SIZES],
            "mean_2": 0.0,
        },
        **MAP,
        quick={**SMALL, "dim": [3, 16]},
    ),
    claims=(
        Claim(
            "more_with_dimension",
            "the higher the dimension, the less of the map succeeds (difference, d = 3 and 16)",
            measure=lambda ds: measures.harder(ds, "dim", 3, 16),
            within=(0, inf),
            source="(4.7), Figure 4.2",
        ),
        Claim(
            "almost_linear",
            "n at which half succeed grows almost linearly with d (exponent)",
            measure=lambda ds: measures.boundary(ds, "dim").law.slope,
            within=(0.7, 1.6),
            source="(4.7), Figure 4.2",
            scale="paper",
        ),
    ),
    figure=measures.draw_map("Success over dimension and samples", "dim"),
)

NORMS = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]

FIG4_3A = Experiment(
    "fig4_3a",
    says="Success of descent from many starts, over one mean and the number of samples.",
    trainings=Trainings(
        grid={
            "starts": axis(20, sets=laid_out),
            "samples": SIZES,
            "norm": axis(
                NORMS,
                r"\|\mu_1\|",
                "norm of the mean of group 1",
                sets=lambda s: {"mean_1": s["norm"] / 5**0.5},
            ),
        },
        **MAP,
        quick={**SMALL, "norm": [1.0, 5.0]},
    ),
    claims=(
        Claim(
            "harder_with_mean",
            "less of the map succeeds at norm 5 than at norm 1 (difference)",
            measure=lambda ds: measures.harder(ds, "norm", 1.0, 5.0),
            within=(0, inf),
            source="Corollary 4.4.1(iii), Figure 4.3(a)",
        ),
        Claim(
            "falls_with_mean",
            "success falls with the norm of the mean (rank correlation)",
            measure=lambda ds: stats.rank_correlation(measures.white(ds), "norm"),
            within=(-inf, 0),
            source="Corollary 4.4.1(iii), Figure 4.3(a)",
            scale="paper",
        ),
    ),
    figure=measures.draw_map("Success over one mean and samples", "norm"),
)

SIGMAS = [0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 10.0]

FIG4_3B = Experiment(
    "fig4_3b",
    says="Success of descent from many starts, over one covariance and the number of samples.",
    trainings=Trainings(
        grid={
            "starts": axis(20, sets=laid_out),
            "samples": SIZES,
            "sigma": axis(
                SIGMAS, r"\sigma", "s.d. of group 1", sets=lambda s: {"var_1": s["sigma"] ** 2}
            ),
        },
        **MAP,
        quick={**SMALL, "sigma": [0.1, 2.0]},
    ),
    claims=(
        Claim(
            "harder_when_small",
            "less of the map succeeds at sigma 0.1 than between 0.5 and 3 (difference)",
            measure=lambda ds: measures.harder(ds, "sigma", slice(0.5, 3.0), 0.1),
            within=(0, inf),
            source="Corollary 4.4.1(i), Figure 4.3(b)",
        ),
        Claim(
            "harder_when_large",
            "less of the map succeeds at sigma 10 than between 0.5 and 3 (difference)",
            measure=lambda ds: measures.harder(ds, "sigma", slice(0.5, 3.0), 10.0),
            within=(0, inf),
            source="Corollary 4.4.1(ii), Figure 4.3(b)",
            scale="paper",
        ),
    ),
    figure=measures.draw_map("Success over one covariance and samples", "sigma", log="xy"),
)

FIGC_1 = Experiment(
    "figc_1",
    says="Descent from the tensor start, a local and a far one, where the tensor start works.",
    trainings=Trainings(
        simulator="starts",
        grid={"samples": 20_000, "steps": 600},
        seeds=40,
        quick={"samples": 10_000, "steps": 400, "seeds": 12},
    ),
    claims=(
        Claim(
            "tensor_arrives",
            "descent from the tensor start comes to the minimiser (share of seeds)",
            measure=lambda ds: stats.share(measures.reached(ds, "tensor")),
            within=(0.5, 1),
            source="Theorem 2, Figure C.1",
        ),
        Claim(
            "same_rate",
            "it converges as fast as from a local start (ratio of the rates)",
            measure=measures.same_rate,
            within=(0.9, 1.1),
            source="Figure C.1",
        ),
        Claim(
            "far_fails",
            "descent from normal weights of s.d. 5 does not arrive (share of seeds that do)",
            measure=lambda ds: stats.share(measures.reached(ds, "far")),
            within=(0, 0.5),
            source="Figure C.1",
        ),
    ),
    figure=measures.draw_starts,
)

FIGC_1_LITERAL = Experiment(
    "figc_1_literal",
    says="The same in the paper's setting, where the tensor start has no signal.",
    trainings=Trainings(
        simulator="starts",
        grid={
            "dim": 50,
            "samples": 200_000,
            "teacher": "uniform",
            "scale": 0.1,
            "mean_1": -0.3,
            "steps": 600,
        },
        seeds=6,
        paper_only=True,
    ),
    claims=(
        Claim(
            "tensor_error",
            "the relative error of the tensor start is 0.65",
            measure=lambda ds: stats.mean(ds.relative_error.isel(start=0)),
            within=(0.5, 0.8),
            source="Section C.1.1",
            expected="fails",
            note="Sampling noise of the moments is five times the signal; 0.7 is the error of "
            "putting the mean of the teacher's columns into both.",
        ),
    ),
    figure=measures.draw_starts,
)

TENSOR = Experiment(
    "tensor",
    says="Error of the tensor initialisation against the number of samples.",
    trainings=Trainings(
        simulator="tensor",
        grid={
            "samples": [20_000, 50_000, 100_000, 200_000, 400_000],
            "variant": cases(
                {
                    "all samples, joint subspace": {},
                    "as printed: three parts": {"joint": 0, "split": 1},
                    "symmetric mixture": {"mean_1": 0.5, "mean_2": -0.5},
                }
            ),
        },
        seeds=24,
        quick={"samples": [10_000, 50_000], "seeds": 12},
    ),
    claims=(
        Claim(
            "tensor_improves",
            "the error (geometric mean) falls with n (power; theory -1/2)",
            measure=lambda ds: measures.log_slope(ds.relative_error.isel(variant=0, drop=True)),
            within=(-0.8, -0.3),
            source="(C.87)",
        ),
        Claim(
            "printed_magnitudes",
            "with the magnitudes of (C.5) the relative error is below 0.5 at the largest n",
            measure=lambda ds: stats.mean(ds.literal_error.isel(variant=0, samples=-1)),
            within=(-inf, 0.5),
            source="(C.5)",
            expected="fails",
            note="(C.5) returns |w| E[phi']/K; the factor E[phi']/K, about 1/14, is missing.",
        ),
        Claim(
            "symmetric_works",
            "for a symmetric mixture the error (geometric mean) is below 0.6 at the largest n",
            measure=lambda ds: measures.geometric_mean(
                ds.relative_error.sel(variant="symmetric mixture").isel(samples=-1)
            ),
            within=(-inf, 0.6),
            source="Subroutine 1, lines 4 to 6",
        ),
    ),
    figure=measures.draw_tensor,
)
