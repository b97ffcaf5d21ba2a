"""(7.19) asks test patterns to lie in the span of the training patterns: is that enough?"""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, below, claim, curve, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment

from .. import theory
from ..span import MATCHED_SHARE, mixtures
from .shared import TRAINED

MIXTURE, RANDOM = "uniform mixture", "random pattern"


def predicted_attention(ds: xr.Dataset) -> xr.DataArray:
    r"""Attention on the matched columns from $w_1$ alone, by `theory.input_score`.

    The sum of the other pattern's coefficients averages out: it is orthogonal to the query's.
    """
    m = int(ds.n_patterns)
    total = xr.DataArray(mixtures(m), dims="mixture")  # one label for each M: there may be several
    gap = ds.own_input * (m - total**2) / (m - 1)
    odds = MATCHED_SHARE / (1 - MATCHED_SHARE) * np.exp(gap)
    return odds / (1 + odds)


@claim("Theorem 4, (7.19); Proposition 3", below(0.01))
def random_succeeds(ds: xr.Dataset) -> Estimate:
    """of a random pattern in the span, 0.8/M' of the examples are enough, with 512 of them (error
    of step 1)"""
    return stats.mean(ds.span_error.sel(pattern=RANDOM, multiple=0.8, l_span=512))


def like_random(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset in which the mixture is attended to like a random pattern."""
    random = ds.span_error.sel(pattern=[RANDOM, RANDOM]).assign_coords(pattern=ds.pattern)
    return ds.assign(span_error=random)


def at_boundary(constant: float) -> Altered:
    """The Dataset in which the mixture's outputs are equally frequent at alpha' = constant/M'."""

    def error(ds: xr.Dataset) -> xr.DataArray:
        m = ds.n_patterns_test.astype(float)
        share = np.minimum(ds.multiple / constant / m, 1.0)
        found = theory.mixture_error(share, m, ds.l_span.astype(float))
        return found.expand_dims(pattern=ds.pattern)

    return curve("span_error", error)


@claim(
    "theory.mixture_error",
    equals(1, times=1.15),
    kind="corrected",
    law=at_boundary(1.0),
    rivals={
        "any pattern": like_random,
        "alpha' = 2/M'": at_boundary(2.0),
        "alpha' = 1/(2M')": at_boundary(0.5),
    },
)
def mixture_boundary(ds: xr.Dataset) -> Everywhere:
    """the uniform mixture is answered right more often than by guessing from alpha' = 1/M' on, for
    every number of examples (alpha' M' at which the error is 1 - 1/M')"""
    level = 1 - 1 / float(ds.n_patterns_test)

    def critical(error: xr.DataArray) -> Estimate:
        return stats.threshold(error, "multiple", level)

    return everywhere(critical, ds.span_error.sel(pattern=MIXTURE), keep="multiple")


@claim(
    "Theorem 4 for every pattern of (7.19)",
    below(0.01),
    expected="fails",
    because=(mixture_boundary,),
    rivals={"alpha' = 2/M'": at_boundary(2.0)},
)
def any_pattern(ds: xr.Dataset) -> Estimate:
    """of the uniform mixture, too, 0.8/M' of the examples are enough, with 512 of them, more than
    (7.20) (error of step 1)"""
    return stats.mean(ds.span_error.sel(pattern=MIXTURE, multiple=0.8, l_span=512))


@claim(
    "theory.mixture_error",
    equals(0, within=0.05),
    kind="own",
    law=at_boundary(1.0),
    rivals={"any pattern": like_random, "alpha' = 2/M'": at_boundary(2.0)},
)
def mixture_error(ds: xr.Dataset) -> Everywhere:
    """in the mean over alpha' from 1/(4M') to 4/M' the mixture's error is that of a vote of all
    columns of the step, for every number of examples (difference)"""
    part = ds.span_error.sel(pattern=MIXTURE)
    m = ds.n_patterns_test.astype(float)
    share = np.minimum(part.multiple / m, 1.0)
    law = theory.mixture_error(share, m, part.l_span.astype(float))
    return everywhere(stats.mean, (part - law).mean("multiple"))


@claim(
    "theory.input_score",
    equals(0, within=0.03),
    kind="own",
    rivals={"like any pattern": lambda ds: ds.assign(span_attention=ds.span_attention * 0 + 0.99)},
)
def leaning_attention(ds: xr.Dataset) -> Everywhere:
    """the attention on a pattern that leans to the mixture is that of theory.input_score with the
    measured w_1 (difference)"""
    return everywhere(stats.mean, ds.span_attention - predicted_attention(ds))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Test patterns near the uniform mixture")
    plot.curve(left, ds.span_attention, "mixture")
    predicted = predicted_attention(ds).mean("seed")
    plot.theory_curve(left, ds.mixture, predicted, "from $w_1$ alone")
    base = np.full(ds.sizes["mixture"], MATCHED_SHARE)
    plot.theory_curve(left, ds.mixture, base, "share of the columns")
    for name in ds.pattern.values:
        y = ds.span_error.sel(pattern=name, l_span=512)
        plot.curve(right, y, "multiple", label=f"{name}, $l = 512$", log="x")
    y = ds.span_error.sel(pattern=MIXTURE, l_span=32)
    plot.curve(right, y, "multiple", label=f"{MIXTURE}, $l = 32$", log="x")
    x = np.geomspace(float(ds.multiple.min()), float(ds.multiple.max()), 100)
    m = float(ds.n_patterns_test)
    for n in (512, 32):
        law = theory.mixture_error(np.minimum(x / m, 1), m, n)
        plot.theory_curve(right, x, law, f"vote of all, $l = {n}$")
    return fig


EXPERIMENTS = (
    Experiment(
        "span",
        says="Queries that lean to the uniform mixture of the training patterns, or are it.",
        trainings=TRAINED,
        claims=(
            random_succeeds,
            mixture_boundary,
            any_pattern,
            mixture_error,
            leaning_attention,
        ),
        figure=draw,
    ),
)
