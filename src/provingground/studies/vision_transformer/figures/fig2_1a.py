"""Figure 2.1(a): the samples that a ViT needs, by the fraction of label-relevant tokens."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, claim, equals, shuffle
from provingground.stats import Estimate, Everywhere
from provingground.study import Experiment, Trainings, axis

from .gap import over_ratio
from .shared import (
    NEEDED,
    SMALL,
    exponents,
    log,
    needed,
    needs,
    relative_gap,
    rest_is_confusion,
    success,
)


@claim("Figure 2.1(a)", above(0.9), rivals={"samples shuffled": shuffle("samples")})
def success_in_samples(ds: xr.Dataset) -> Estimate:
    """the success rate rises with the number of samples (rank correlation)"""
    return stats.rank_correlation(success(ds).mean("frac_relevant"), "samples")


@claim("Figure 2.1(a)", above(0.9), rivals={"fractions shuffled": shuffle("frac_relevant")})
def success_in_relevant(ds: xr.Dataset) -> Estimate:
    """the success rate rises with the fraction of relevant tokens (rank correlation)"""
    return stats.rank_correlation(success(ds).mean("samples"), "frac_relevant")


@claim(
    "found here",
    equals(-2, within=0.75),
    kind="own",
    law=needs(lambda ds: relative_gap(ds) ** -2),
    rivals={
        "alpha^-2": needs(lambda ds: ds.frac_relevant**-2),
        "alpha^-4": needs(lambda ds: ds.frac_relevant**-4),
        "1 / gap": needs(lambda ds: 1 / relative_gap(ds)),
    },
)
def gap_exponent(ds: xr.Dataset) -> Everywhere:
    """with step size 2 the samples needed grow with the gap of the vote with exponent -2 (here its
    absolute and its relative size are proportional)"""
    return exponents(ds, relative_gap(ds), "frac_relevant")


# --------------------------------------------------------------------------------- drawing


def through_points(y: xr.DataArray, law: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A law through the middle of the samples needed, as a function of the fraction."""
    mean = log(y).mean("seed")
    shift = float((mean - np.log(law(y.frac_relevant))).mean())
    return lambda x: np.exp(shift) * law(x)


def draw(ds: xr.Dataset):
    """The map of success rates, and the samples needed against the relative gap."""
    fig, (left, right) = plot.figure(1, 2, title="Samples that a ViT needs, $\\eta = 2$")
    found = needed(ds)
    plot.heatmap(
        left,
        success(ds),
        "frac_relevant",
        "samples",
        log="y",
        limits=(0, 1),
        theory={
            r"paper: $N \propto \alpha_*^{-2}$": through_points(found, lambda a: a**-2.0),
            "(relative gap)$^{-2}$": through_points(found, lambda a: (4 * a - 1) ** -2.0),
        },
    )
    rho = relative_gap(ds)
    over_ratio(right, found, rho, "frac_relevant", "measured")
    middle = float((log(found) + 2 * log(rho)).mean())
    fine = np.geomspace(float(rho.min()), float(rho.max()), 50)
    plot.theory_curve(right, fine, np.exp(middle) / fine**2, "(relative gap)$^{-2}$")
    right.set_ylabel(NEEDED)
    return fig


EXPERIMENTS = (
    Experiment(
        "fig2_1a",
        says="Success rate over samples and fraction of relevant tokens; half the tokens "
        "irrelevant.",
        trainings=Trainings(
            grid={
                "frac_relevant": axis(
                    [0.5, 0.45, 0.4, 0.37, 0.35, 0.33, 0.32, 0.31], sets=rest_is_confusion
                ),
                "samples": [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192],
            },
            seeds=20,
            quick={
                **SMALL,
                "frac_relevant": [0.45, 0.4, 0.36, 0.33],
                "samples": [2, 4, 8, 12, 20, 32, 64, 128],
                "seeds": 20,
            },
        ),
        claims=(success_in_samples, success_in_relevant, gap_exponent),
        figure=draw,
    ),
)
