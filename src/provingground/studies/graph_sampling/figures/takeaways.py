"""The two takeaways of (5.10): which group should be sampled more, and what fewer samples do."""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, curve, equals, exchange
from provingground.stats import Estimate, Everywhere, everywhere, jackknife, mean
from provingground.study import Experiment, Trainings, cases

from .. import theory
from .shared import BALANCED, NMSE, QUICK, alike, at_settings, bare, end, named, ratios, together

MORE_HIGH, EVEN, MORE_LOW = "(0.95, 0.65)", "(0.8, 0.8)", "(0.65, 0.95)"
SPENT = {
    MORE_HIGH: dict(kept_1=0.95, kept_2=0.65),
    EVEN: dict(kept_1=0.8, kept_2=0.8),
    MORE_LOW: dict(kept_1=0.65, kept_2=0.95),
}
EQUAL = dict(p1=1.0, p2=1.0, p1_hat=1.0, p2_hat=1.0)  # the special case of the text
DEGREE_PAIRS = {
    "(10, 1)": dict(degree_1=10, degree_2=1),
    "(30, 3)": dict(degree_1=30, degree_2=3),
    "(100, 10)": dict(degree_1=100, degree_2=10),
}


def noise(ds: xr.Dataset) -> xr.DataArray:
    return at_settings(theory.sampling_noise, ds)


def unweighted(ds: xr.Dataset) -> xr.DataArray:
    def f(d, n, p, kept):
        return sum(k * (1 - f) / f for k, f in zip(n, kept, strict=True))

    return at_settings(f, ds)


@claim(
    "derived from section 5.3.2",
    equals(1, within=0.15),
    kind="own",
    law=curve("noise_ratio", noise),
    rivals={
        "groups weighted by their sizes": curve("noise_ratio", unweighted),
        "poly of (5.10)": curve("noise_ratio", lambda ds: at_settings(theory.reached_poly, ds)),
    },
)
def noise_law(ds: xr.Dataset) -> Everywhere:
    """the noise of sampled features over their signal is the mean of (1 - f_l) / f_l over groups,
    weighted by N_l p_l^2 and the squared columns of A (ratio)"""
    return everywhere(mean, ds.noise_ratio / noise(ds))


# ---------------------------------------------------------------------------- first takeaway

EITHER = {"the other way": exchange("kept", (MORE_HIGH, MORE_LOW))}
LEAVES = "(10, 1)"


def low_over_high(y: xr.DataArray) -> Everywhere:
    """Of equal numbers of samples, more in the group of low degree over more in that of high."""
    y = bare(y)
    return ratios(y.sel(kept=MORE_LOW, drop=True), y.sel(kept=MORE_HIGH, drop=True))


@claim(
    "found here",
    equals(1, within=0.1),
    kind="own",
    rivals={"other degrees": exchange("degrees", (LEAVES, "(30, 3)"))},
)
def leaves_lose_all(ds: xr.Dataset) -> Estimate:
    """two joined leaves that are both dropped err by their whole row, which is 1: with equal
    fractions, too, the largest error of a row is about that on the graph of degrees (10, 1)"""
    return mean(bare(ds.row_error_max).sel(degrees=LEAVES, kept=EVEN, drop=True))


@claim(
    "section 5.3.2, first takeaway of (5.10)",
    above(1),
    expected="fails",
    because=(leaves_lose_all,),
    rivals=EITHER,
)
def first_takeaway(ds: xr.Dataset) -> Everywhere:
    """the group of higher degree shall be sampled more: of equal numbers of samples, more in the
    other give a larger ‖A^s - A*‖∞, which (5.10) is to bound, on every pair of degrees (equal
    sizes, p* = 1; ratio)"""
    return low_over_high(ds.row_error_max)


@claim(
    "section 5.3.2, first takeaway of (5.10), for the mean row",
    above(1),
    kind="corrected",
    rivals=EITHER,
)
def first_takeaway_rows(ds: xr.Dataset) -> Everywhere:
    """they give a larger mean error of a row on every pair of degrees, and a larger ‖A^s - A*‖∞
    where the lower degree is 3 or more (ratio)"""
    largest = ds.row_error_max.sel(degrees=[d for d in DEGREE_PAIRS if d != LEAVES])
    return together(low_over_high(ds.row_error), low_over_high(largest))


@claim(
    "section 5.3.2, first takeaway",
    above(1),
    kind="own",
    rivals=EITHER,
)
def noise_takeaway(ds: xr.Dataset) -> Everywhere:
    """in the noise of aggregated features it is the other way round: of equal numbers of samples,
    more in the group of higher degree give more, on every pair of degrees (ratio)"""
    y = bare(ds.noise_ratio)
    return ratios(y.sel(kept=MORE_HIGH, drop=True), y.sel(kept=MORE_LOW, drop=True))


@claim("section 5.3.2, first takeaway", above(1), kind="own", rivals=EITHER)
def error_takeaway(ds: xr.Dataset) -> Everywhere:
    """and so it is in the test error: more samples in the group of degree 10 end with a larger one
    than more in that of degree 1 (ratio)"""
    y = end(ds.test_error)
    return ratios(y.sel(kept=MORE_HIGH, drop=True), y.sel(kept=MORE_LOW, drop=True))


# --------------------------------------------------------------------------- second takeaway

MANY, FEWER = "(0.9, 0.9)", "(0.9, 0.5)"
SCALED = {
    "(0.9, 0.1)": dict(p1=0.9, p2=0.1, p1_hat=0.9, p2_hat=0.1),
    "(0.5, 0.5)": dict(p1=0.5, p2=0.5, p1_hat=0.5, p2_hat=0.5),
    "(0.5, 0.5), labels (0.9, 0.1)": dict(p1=0.5, p2=0.5, p1_hat=0.9, p2_hat=0.1),
}
SMALL, LARGE, APART = SCALED


def cost(ds: xr.Dataset, scales: str) -> xr.DataArray:
    """What fewer samples of group 2 add to the error."""
    y = bare(end(ds.test_error)).sel(scales=scales, drop=True)
    return y.sel(kept=FEWER, drop=True) - y.sel(kept=MANY, drop=True)


@claim(
    "section 5.3.2, second takeaway of (5.10)",
    below(0.25),
    kind="own",
    rivals={"the other way": exchange("scales", (SMALL, LARGE))},
)
def second_takeaway(ds: xr.Dataset) -> Estimate:
    """a group of small scale may be sampled less, said of the test error: half of group 2 instead
    of 0.9 adds less than a quarter to it where p_2* = 0.1 of what it adds where p_2* = 0.5
    (share)"""

    def share(small: xr.DataArray, large: xr.DataArray) -> float:
        return float(small.mean() / large.mean())

    return jackknife(share, cost(ds, SMALL), cost(ds, LARGE))


@claim(
    "section 5.3.2",
    above(1),
    kind="own",
    rivals={"all scales alike": alike("scales")},
)
def impact_is_scale(ds: xr.Dataset) -> Everywhere:
    """with half of group 2, too, (0.5, 0.5) still learns labels of (0.5, 0.5) better than those of
    (0.9, 0.1): A* has kept its scales (ratio)"""
    y = end(ds.test_error).sel(kept=FEWER, drop=True)
    return ratios(y.sel(scales=APART, drop=True), y.sel(scales=LARGE, drop=True))


@claim(
    "section 5.3.2, second takeaway of (5.10)",
    below(1),
    kind="own",
    expected="fails",
    because=(impact_is_scale, noise_law),
)
def impact_falls(ds: xr.Dataset) -> Everywhere:
    """fewer samples of group 2 reduce its impact where p* is held: for labels of (0.9, 0.1), in
    which it has little, they lower the error of a training with (0.5, 0.5) (ratio)"""
    y = end(ds.test_error).sel(scales=APART, drop=True)
    return ratios(y.sel(kept=FEWER, drop=True), y.sel(kept=MANY, drop=True))


def draw_noise(ds: xr.Dataset):
    fig, axes = plot.figure(1, 3, title="Equal numbers of samples; colours: fractions of groups")
    for ax, probe in zip(axes, ("row_error", "row_error_max", "noise_ratio"), strict=True):
        y = named(bare(ds[probe]), "kept", "fractions")
        y = named(y, "degrees", "degrees of the groups")
        y.attrs = ds[probe].attrs
        plot.curve(ax, y, "degrees", hue="kept", line=False)
        ax.set_ylim(0, None)
    axes[-1].set_ylabel("noise over signal")
    return fig


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Which group to sample more (balanced graph)", width=4.6)
    y = named(end(ds.test_error), "kept", "sampled fractions of the groups of degree 10 and 1")
    plot.curve(ax, y, "kept", line=False)
    ax.set_ylabel(NMSE)
    ax.set_ylim(0, None)
    return fig


def draw_scales(ds: xr.Dataset):
    fig, (ax,) = plot.figure(
        title="Fewer samples of group 2; colours: scales in training", width=4.6
    )
    y = named(named(end(ds.test_error), "kept", "sampled fractions"), "scales", "scales")
    plot.curve(ax, y, "kept", hue="scales", line=False)
    ax.set_ylabel(NMSE)
    ax.set_ylim(0, None)
    return fig


def draw_base(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Noise of unequal fractions", width=4.2)
    plot.curve(ax, ds.noise_ratio, "kept_2", line=False, label="measured")
    plot.theory_curve(ax, ds.kept_2.values, noise(ds).values, "exact")
    return fig


EXPERIMENTS = (
    Experiment(
        "takeaways",
        says="Test error for equal numbers of samples, spent on one group or the other.",
        trainings=Trainings(
            grid={**BALANCED, **EQUAL, "kept": cases(SPENT)}, seeds=8, quick={**QUICK, "seeds": 6}
        ),
        claims=(error_takeaway,),
        figure=draw,
    ),
    Experiment(
        "takeaways_noise",
        says="Errors of rows and the noise of aggregated features for the same, on several graphs.",
        trainings=Trainings(
            grid={**BALANCED, **EQUAL, "degrees": cases(DEGREE_PAIRS), "kept": cases(SPENT)},
            simulator="rows",
            seeds=8,
            quick={"nodes": 1000, "seeds": 6},
        ),
        claims=(first_takeaway, first_takeaway_rows, leaves_lose_all, noise_law, noise_takeaway),
        figure=draw_noise,
    ),
    Experiment(
        "takeaways_scales",
        says="Test error with fewer samples of group 2, where its scale is small and where not.",
        trainings=Trainings(
            grid={
                **BALANCED,
                "scales": cases(SCALED),
                "kept": cases(
                    {MANY: dict(kept_1=0.9, kept_2=0.9), FEWER: dict(kept_1=0.9, kept_2=0.5)}
                ),
            },
            seeds=8,
            quick={**QUICK, "seeds": 6},
        ),
        claims=(second_takeaway, impact_is_scale, impact_falls),
        figure=draw_scales,
    ),
    Experiment(
        "takeaways_base",
        says="The noise at one setting with unequal fractions, from which others are drawn.",
        trainings=Trainings(
            grid={"kept_2": [0.6, 0.9], "kept_1": 0.8, "p1": 0.7, "p2": 0.3},
            simulator="rows",
            seeds=8,
            quick={"nodes": 1000, "seeds": 3},
            domain={
                "degree_1": (2, 100),
                "degree_2": (1, 20),
                "group_share": (0.05, 0.5),
                "p1": (0.1, 2.0),
                "p2": (0.1, 2.0),
                "kept_1": (0.3, 0.95),
            },
        ),
        claims=(noise_law,),
        figure=draw_base,
    ),
)
