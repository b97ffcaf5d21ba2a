"""Figure 2.3: the ViT against the same network with frozen attention, the "CNN"."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, below, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings, axis

from .gap import ratio_exponent, step_sets_exponent
from .shared import (
    NEEDED,
    NETWORKS,
    SAMPLES,
    SMALL,
    exp,
    exp_mean,
    log,
    log_needed,
    needed,
    needs,
    of_network,
    relative_gap,
    rest_is_confusion,
    slope,
    success,
    with_most,
)

FIXED = -1.2  # exponent of the samples in alpha, the share of confusion fixed, step size 2


def log_cost(ds: xr.Dataset) -> xr.DataArray:
    r"""$\log$ of the CNN's $N_{50}$ over the ViT's, seed by seed."""
    found = log_needed(ds)
    return found.sel(network="CNN", drop=True) - found.sel(network="ViT", drop=True)


def alike(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose CNN is a ViT."""
    made = xr.where(ds.network == "CNN", ds.test_loss.sel(network="ViT", drop=True), ds.test_loss)
    return ds.assign(test_loss=made.transpose(*ds.test_loss.dims))


@claim("Proposition 1, Figure 2.3", above(2), rivals={"the CNN is a ViT": alike})
def cnn_needs_more(ds: xr.Dataset) -> Everywhere:
    """at every fraction up to 0.4 the CNN needs at least 2 times the samples of the ViT"""
    return everywhere(exp_mean, log_cost(ds.isel(frac_relevant=(ds.frac_relevant <= 0.4).values)))


def cnn_exponent_in(ds: xr.Dataset, x: xr.DataArray) -> Estimate:
    return stats.mean(slope(log_needed(of_network(ds, "CNN")), log(x), "frac_relevant"))


@claim("found here", equals(-2, within=0.5), kind="corrected", scale="paper")
def cnn_gap_exponent(ds: xr.Dataset) -> Estimate:
    """the samples that the CNN needs, too, grow with the gap of the vote with exponent -2"""
    return cnn_exponent_in(ds, relative_gap(ds))


@claim(
    "Figure 2.3, with (2.13) taken as tight",
    equals(-4, within=0.5),
    expected="fails",
    because=(ratio_exponent, step_sets_exponent),
    scale="paper",
)
def cnn_exponent(ds: xr.Dataset) -> Estimate:
    """the samples that the CNN needs grow as alpha^(-4)"""
    return cnn_exponent_in(ds, ds.frac_relevant)


@claim(
    "Remark 1",
    equals(-2, within=0.5),
    expected="fails",
    because=(cnn_gap_exponent,),
    scale="paper",
)
def extra_exponent(ds: xr.Dataset) -> Estimate:
    """freezing the attention multiplies the samples by alpha^(-2)"""
    return stats.mean(slope(log_cost(ds), np.log(ds.frac_relevant), "frac_relevant"))


@claim(
    "Proposition 1",
    above(2),
    rivals={"the CNN is a ViT": alike},
)
def fixed_cnn_needs_more(ds: xr.Dataset) -> Everywhere:
    """with a fixed share of confusion the CNN needs at least 2 times the samples at every
    fraction"""
    return everywhere(exp_mean, log_cost(ds))


@claim(
    "found here",
    equals(FIXED, within=0.6),
    kind="own",
    law=needs(lambda ds: ds.frac_relevant**FIXED),
    rivals={
        "alpha^-2": needs(lambda ds: ds.frac_relevant**-2),
        "alpha^-1/2": needs(lambda ds: ds.frac_relevant**-0.5),
    },
)
def fixed_exponent(ds: xr.Dataset) -> Estimate:
    """with step size 2 and a fixed share of confusion the samples that the ViT needs grow as
    alpha^(-1.2)"""
    ds = of_network(ds, "ViT")
    return stats.mean(slope(log_needed(ds), np.log(ds.frac_relevant), "frac_relevant"))


# ------------------------------------------------------------------------------- the steps


def cost(ds: xr.Dataset) -> xr.DataArray:
    """The CNN's steps over the ViT's, seed by seed."""
    times = with_most(ds.stopped_at.astype(float))
    return times.sel(network="CNN", drop=True) / times.sel(network="ViT", drop=True)


def frozen_takes(law: Callable[[xr.Dataset], Any]) -> Altered:
    """The Dataset whose CNN takes so many times the ViT's steps, with the noise of its own."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        times = ds.stopped_at.astype(float)
        vit = times.sel(network="ViT", drop=True)
        noise = times.sel(network="CNN", drop=True) / vit
        noise = noise / noise.mean("seed")
        made = xr.where(ds.network == "CNN", vit * noise * law(ds), vit)
        return ds.assign(stopped_at=made.transpose(*ds.stopped_at.dims))

    return altered


@claim(
    "Proposition 1",
    below(-0.1),
    kind="corrected",
    rivals={
        "the same T": frozen_takes(lambda ds: 1.0),
        "twice at all fractions": frozen_takes(lambda ds: 2.0),
    },
)
def cnn_cost_grows(ds: xr.Dataset) -> Estimate:
    """the CNN's steps are another function of alpha than the ViT's: over these, they grow as alpha
    falls (exponent, step size 2, fixed share of confusion)"""
    return stats.power_law(cost(ds), "frac_relevant").slope


# --------------------------------------------------------------------------------- drawing


def draw(ds: xr.Dataset):
    """Success rates of both networks, the samples that they need, and the ratio of these."""
    fig, axes = plot.figure(2, 2, title="Trained (ViT) against frozen attention (CNN)")
    need, ratio = axes[2:]
    for ax, name, power in zip(axes[:2], ("ViT", "CNN"), (-2.0, -4.0), strict=True):
        one = of_network(ds, name)
        found = needed(one)
        middle = float(np.log(found).mean() - power * np.log(ds.frac_relevant).mean())
        words = rf"paper: $N \propto \alpha_*^{{{power:g}}}$"
        plot.heatmap(
            ax,
            success(one),
            "frac_relevant",
            "samples",
            log="y",
            limits=(0, 1),
            theory={words: lambda x, c=middle, p=power: np.exp(c) * x**p},
        )
        ax.set_title(name)
        plot.curve(need, found, "frac_relevant", label=name, line=False, log="xy")
    need.set_ylabel(NEEDED)
    cost = exp(log_cost(ds)).assign_attrs(long_name="CNN over ViT, samples needed")
    plot.curve(ratio, cost, "frac_relevant", label="measured", line=False, log="x")
    ratio.set_ylim(bottom=0)
    return fig


EXPERIMENTS = (
    Experiment(
        "fig2_3",
        says="The samples that a ViT needs against those of a CNN, whose attention stays as it "
        "was.",
        trainings=Trainings(
            grid={
                "network": NETWORKS,
                "frac_relevant": axis([0.5, 0.45, 0.4, 0.37, 0.35, 0.33], sets=rest_is_confusion),
                "samples": [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384],
            },
            seeds=20,
            quick={**SMALL, "frac_relevant": [0.5, 0.45, 0.4], "samples": SAMPLES, "seeds": 12},
        ),
        claims=(cnn_needs_more, cnn_gap_exponent, cnn_exponent, extra_exponent),
        figure=draw,
    ),
    Experiment(
        "fig2_3_fixed",
        says="The same with a fixed fraction of confusion tokens, so that only relevant ones "
        "change.",
        trainings=Trainings(
            grid={
                "network": NETWORKS,
                "frac_relevant": [0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.12],
                "frac_confusion": 0.05,
                "samples": [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192],
            },
            seeds=20,
            quick={**SMALL, "frac_relevant": [0.4, 0.25, 0.16], "samples": SAMPLES, "seeds": 14},
        ),
        claims=(fixed_exponent, fixed_cnn_needs_more, cnn_cost_grows),
        figure=draw,
    ),
)
