"""Figure 3.3: labels that the GT needs, over two properties of the graph."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim, equals
from provingground.stats import Estimate, Everywhere
from provingground.study import Experiment, Trainings

from .coverage import cover, coverage_ratio, missed_kind_crossover
from .ring import degree_helps, ring_is_no_cause
from .shared import (
    PAPER,
    QUICK,
    against,
    draw_needed,
    draw_success,
    labels_at,
    labels_exponent,
    solved,
    success_at,
)


def power(of: str, exponent: float):
    """Success as if the labels needed were a power of an axis, 20 in its middle."""
    return success_at(lambda ds: 20 * (ds[of] / float(np.exp(np.log(ds[of]).mean()))) ** exponent)


# --------------------------------------------------------------------------------- Figure 3.3(a)


@claim("Figure 3.3(a)", above(0.3), rivals={"labels do nothing": success_at(lambda ds: 1000)})
def more_labels_help(ds: xr.Dataset) -> Estimate:
    """from the fewest labelled nodes to the most the success rate rises by over 0.3"""
    return stats.paired_difference(*(solved(ds).isel(samples=k) for k in (-1, 0)))


@claim(
    "Figure 3.3(a)",
    equals(-2, within=0.5),
    expected="fails",
    because=(ring_is_no_cause, degree_helps),
    law=power("frac_disc", -2.0),
    rivals={"gamma_d^-1": power("frac_disc", -1.0)},
)
def labels_law(ds: xr.Dataset) -> Estimate:
    """the labelled nodes needed fall as the discriminative fraction to the power -2"""
    return labels_exponent(ds)


@claim(
    "found here",
    equals(0, within=1),
    kind="own",
    law=power("frac_disc", 0.0),
    rivals={"gamma_d^-2": power("frac_disc", -2.0), "gamma_d^-1": power("frac_disc", -1.0)},
)
def labels_flat_below_half(ds: xr.Dataset) -> Estimate:
    """up to a discriminative fraction of 0.5 the labels needed depend little on it (exponent)"""
    return labels_exponent(ds, window=(0.0, 0.5))


@claim(
    "found here",
    above(0.05),
    kind="own",
    rivals={"no change": power("frac_disc", 0.0), "gamma_d^-2": power("frac_disc", -2.0)},
)
def labels_rise_above_half(ds: xr.Dataset) -> Estimate:
    """from there to the largest fraction they rise: over all numbers of labels the success rate
    falls by over 0.05"""
    rate = solved(ds).mean("samples")
    ends = (0.5, float(ds.frac_disc.max()))
    return stats.paired_difference(*(rate.sel(frac_disc=g, drop=True) for g in ends))


@claim("found here", below(0.6), kind="own", rivals={"all kinds covered": success_at(cover)})
def cover_not_reached(ds: xr.Dataset) -> Everywhere:
    """at the confusion ratio of this figure, 0.05, and a fraction of up to 0.5, fewer labels are
    needed than cover all kinds of nodes half the time (ratio)"""
    return coverage_ratio(ds.sel(frac_disc=[g for g in ds.frac_disc.values if g <= 0.5]))


# --------------------------------------------------------------------------------- Figure 3.3(b)


AGREEMENT = (0.69, 1.0)  # beyond a confusion ratio of 0.3 hardly a training succeeds


def by_agreement(ds: xr.Dataset) -> xr.Dataset:
    r"""With $1 - \epsilon_S$ in place of $\epsilon_S$."""
    return against(ds, "confusion_ratio", 1 - ds.confusion_ratio, "agreement", r"(1-\epsilon_S)")


def agreement_power(exponent: float):
    return success_at(
        lambda ds: 15 * ((1 - ds.confusion_ratio) / (1 - ds.confusion_ratio.min())) ** exponent
    )


@claim("Figure 3.3(b)", above(0.05), rivals={"no change": agreement_power(0.0)})
def confusion_hurts(ds: xr.Dataset) -> Estimate:
    """the success rate falls with the confusion ratio (smallest step down over 0.05)"""
    return stats.monotone(solved(ds).mean("samples"), "confusion_ratio", "decreasing")


@claim("Figure 3.3(b)", below(0.2), scale="paper")
def no_success_at_04(ds: xr.Dataset) -> Estimate:
    """at a confusion ratio of 0.4 and up to 128 labels less than a fifth of trainings succeed"""
    return stats.share(solved(ds).sel(confusion_ratio=0.4, samples=slice(0, 128)))


@claim(
    "Figure 3.3(b)",
    equals(-2, within=0.5),
    expected="fails",
    because=(missed_kind_crossover,),
    law=agreement_power(-2.0),
    rivals={"-4": agreement_power(-4.0)},
)
def confusion_law(ds: xr.Dataset) -> Estimate:
    """up to a confusion ratio of 0.3 the labelled nodes needed grow as (1 - confusion ratio)^(-2)
    (exponent)"""
    return labels_exponent(by_agreement(ds), "agreement", AGREEMENT)


# ------------------------------------------------------------------------------------ drawing


def draw_fractions(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Labels that the GT needs")
    draw_success(left, ds, "frac_disc")
    draw_needed(right, ds, labels_at(ds), -2.0, "frac_disc", cover=True)
    return fig


def draw_confusion(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Labels needed and the confusion ratio")
    draw_success(left, ds, "confusion_ratio")
    found = labels_at(by_agreement(ds), "agreement", AGREEMENT)
    plot.law(right, found.points, "agreement", fit=found.law, predicted=-2.0, label="measured")
    right.set_ylabel("labelled nodes for half of the trainings, $N_{50}$")
    return fig


LABELS = [8, 16, 32, 64, 128]

EXPERIMENTS = (
    Experiment(
        "fig3_3a",
        says="Success rate of the GT over labelled nodes and the discriminative fraction.",
        trainings=Trainings(
            grid={
                **PAPER,
                "confusion_ratio": 0.05,
                "steps": 10000,
                "frac_disc": [0.8, 0.6, 0.5, 0.4, 0.33, 0.25, 0.2, 0.16],
                "samples": [*LABELS, 256, 512],
            },
            seeds=20,
            quick={
                **QUICK,
                "steps": 600,
                "frac_disc": [0.7, 0.5, 0.35, 0.2],
                "samples": LABELS,
                "seeds": 6,
            },
        ),
        claims=(
            more_labels_help,
            labels_law,
            labels_flat_below_half,
            labels_rise_above_half,
            cover_not_reached,
        ),
        figure=draw_fractions,
    ),
    Experiment(
        "fig3_3b",
        says="Success rate of the GT over labelled nodes and the confusion ratio.",
        trainings=Trainings(
            grid={
                **PAPER,
                "frac_disc": 0.4,
                "steps": 10000,
                "confusion_ratio": [0.0, 0.1, 0.2, 0.3, 0.4],
                "samples": [2, 4, *LABELS, 256, 512],
            },
            seeds=20,
            quick={
                **QUICK,
                "steps": 600,
                "confusion_ratio": [0.05, 0.2],
                "samples": LABELS,
                "seeds": 8,
            },
        ),
        claims=(
            confusion_hurts,
            no_success_at_04,
            confusion_law,
        ),
        figure=draw_confusion,
    ),
)
