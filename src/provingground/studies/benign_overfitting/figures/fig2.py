"""Figure 2: digits in a frame of noise, over sample size and SNR, and what norms make of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, below, claim, control, equals, exchange
from provingground.stats import Estimate, Everywhere, everywhere, jackknife, mean, paired_ratio
from provingground.study import Experiment, Trainings, cases

HALF = 0.5  # a test error between that of a guess, 0.9, and that of clean digits
PRINTED = (0.2, 2.0)  # the ends of the paper's range of SNR
EARLY = "with a small network, N from 500 to 2000, stopped early"

BOTH: dict[str, Any] = {"at_attention": 1.0, "at_pooling": 1.0}
NORMS: dict[str, dict[str, Any]] = {
    "none": {},
    "layer norm": BOTH,
    "centring": BOTH | {"scaling": 0.0},
    "RMS": BOTH | {"centring": 0.0},
    "RMS of all tokens": BOTH | {"centring": 0.0, "shared": 1.0},
    "at input": {"at_input": 1.0},
    "at attention": {"at_attention": 1.0},
    "at mean": {"at_pooling": 1.0},
    "at MLP": {"at_mlp": 1.0},
}
REMOVES = ["RMS", "at input", "at attention"]
KEEPS = ["centring", "RMS of all tokens", "at mean", "at MLP"]

DIGITS: dict[str, Any] = {"simulator": "digits", "data": "mnist"}
NETWORK: dict[str, Any] = {"steps": 6000, "batch": 128, "rate": 0.002}
SMALL: dict[str, Any] = {
    "pool": 2048,
    "width": 16,
    "hidden": 32,
    "batch": 32,
    "steps": 400,
    "rate": 0.006,
    "test_images": 500,
}
SNR = [0.1, 0.15, *np.geomspace(*PRINTED, 7).round(3).tolist(), 2.8, 4.0]

MAP = Trainings(
    grid=NETWORK | {"samples": [500, 1000, 2000, 3000, 4200, 6000, 8400, 16000], "snr": SNR},
    seeds=4,
    quick=SMALL | {"samples": [500, 1000, 2000], "snr": [0.2, 0.4, 0.7, 1.2, 2.0, 4.0], "seeds": 3},
    **DIGITS,
)
VARIANTS = Trainings(
    grid=NETWORK
    | {"norm": cases(NORMS), "samples": [1000, 3000, 8400], "snr": [0.2, 0.431, 0.928, 2.0]},
    seeds=4,
    quick=SMALL | {"samples": [1000], "snr": list(PRINTED), "seeds": 3},
    **DIGITS,
)
MIXED = Trainings(
    grid=NETWORK
    | {
        "patch": 14,
        "norm": cases({n: NORMS[n] for n in ("none", "layer norm")}),
        "samples": [1000, 3000, 8400],
        "snr": list(PRINTED),
    },
    seeds=4,
    quick=SMALL | {"samples": [1000], "seeds": 3},
    **DIGITS,
)


def n_snr(power: float) -> Callable[[xr.Dataset], xr.DataArray]:
    """N SNR to a power."""
    return lambda ds: ds.samples * ds.snr**power


def backwards(axis: str) -> Altered:
    """The Dataset with its results in the opposite order along an axis."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        along = {n: v.variable for n, v in ds.data_vars.items() if axis in v.dims}
        return ds.assign({n: v.isel({axis: slice(None, None, -1)}) for n, v in along.items()})

    return altered


def ends(y: xr.DataArray, axis: str, low: float, high: float) -> tuple[xr.DataArray, xr.DataArray]:
    """What is measured at two places of an axis."""
    return y.sel({axis: low}, drop=True), y.sel({axis: high}, drop=True)


def gained(ds: xr.Dataset) -> xr.DataArray:
    """By how much the test error falls over the paper's range of SNR."""
    low, high = ends(ds.test_error, "snr", *PRINTED)
    return low - high


def boundary(ds: xr.Dataset) -> stats.Boundary:
    """The SNR at which the test error is a half, for each N."""
    return stats.phase_boundary(ds.test_error, "snr", "samples", HALF)


# ---------------------------------------------------------------------------------- the map

OTHER_POWERS = {f"N SNR^{p:g}": control("test_error", n_snr(p)) for p in (1.0, 4.0)}


def as_in_paper(ds: xr.Dataset) -> xr.Dataset:
    """The paper's ranges of N and SNR."""
    return ds.sel(samples=slice(3000, 8400), snr=slice(*PRINTED))


@claim(
    f"section 6, Figure 2(c), {EARLY}",
    below(-0.8),
    kind="own",
    rivals={"turned": backwards("snr"), "middle exchanged": exchange("snr", (0.4, 1.2))},
    scale="quick",
)
def more_signal_early(ds: xr.Dataset) -> Everywhere:
    """in trainings that are stopped early the test loss falls as the SNR goes from 0.2 to 2, at
    every N (rank correlation)"""
    y = ds.test_loss.sel(snr=slice(*PRINTED))
    return everywhere(lambda y: stats.rank_correlation(y, "snr"), y, keep="snr")


@claim(
    f"section 6, Figure 2(c), {EARLY}",
    below(-0.8),
    kind="own",
    rivals={"turned": backwards("samples"), "large exchanged": exchange("samples", (1000, 2000))},
    scale="quick",
)
def more_samples_early(ds: xr.Dataset) -> Estimate:
    """in trainings that are stopped early the test loss falls with N, on average over SNR from 0.2
    to 2 (rank correlation with N of the mean logarithm)"""
    y = np.log(ds.test_loss.sel(snr=slice(*PRINTED)))
    return stats.rank_correlation(y.mean("snr"), "samples")


@claim(
    f"section 6, Figure 2(c), {EARLY}",
    above(0.3),
    kind="own",
    rivals={"turned": backwards("snr")},
    scale="quick",
)
def transition_early(ds: xr.Dataset) -> Everywhere:
    """in trainings that are stopped early the test error falls from SNR 0.2 to 2 by more than 0.3,
    at every N"""
    return everywhere(mean, gained(ds))


more_signal = claim(
    "section 6, Figure 2(c)",
    below(-0.8),
    scale="paper",
    name="more_signal",
    says="the test loss falls as the SNR goes from 0.2 to 2, at every N from 3000 to 8400 (rank "
    "correlation)",
)(lambda ds: more_signal_early(as_in_paper(ds)))

more_samples = claim(
    "section 6, Figure 2(c)",
    below(-0.8),
    scale="paper",
    name="more_samples",
    says="the test loss falls as N goes from 3000 to 8400, on average over SNR from 0.2 to 2 (rank "
    "correlation with N of the mean logarithm)",
)(lambda ds: more_samples_early(as_in_paper(ds)))

transition = claim(
    "section 6, Figure 2(c)",
    above(0.3),
    scale="paper",
    name="transition",
    says="the test error falls from SNR 0.2 to 2 by more than 0.3, at every N from 3000 to 8400",
)(lambda ds: transition_early(as_in_paper(ds)))


@claim(
    "Theorems 4.1 and 4.2, asked of Figure 2",
    equals(-1 / 2, within=0.15),
    kind="own",
    law=control("test_error", n_snr(2.0)),
    rivals=OTHER_POWERS,
    scale="paper",
)
def digits_exponent(ds: xr.Dataset) -> Estimate:
    """the SNR at which the test error is a half falls with the sample size as N^(-1/2)"""
    return boundary(ds).law.slope


def rank_agreement(error: xr.DataArray, by: xr.DataArray) -> float:
    """Spearman's correlation of the falling test error with N SNR to a power."""
    a, b = (v.transpose(*by.dims).values.ravel().argsort().argsort() for v in (error, by))
    return -float(np.corrcoef(a, b)[0, 1])


@claim(
    "Theorems 4.1 and 4.2, asked of Figure 2",
    above(0),
    kind="own",
    law=control("test_error", n_snr(2.0)),
    rivals=OTHER_POWERS,
    scale="paper",
)
def ratio_orders(ds: xr.Dataset) -> Estimate:
    """N SNR^2 orders the test errors better than N SNR and N SNR^4 do (rank correlation, less the
    larger of theirs)"""

    def ahead(error: xr.DataArray) -> float:
        found = [rank_agreement(error.mean("seed"), n_snr(p)(ds)) for p in (2.0, 1.0, 4.0)]
        return found[0] - max(found[1:])

    return jackknife(ahead, ds.test_error)


@claim("what overfitting means", below(0.1), kind="own", scale="paper")
def fitted(ds: xr.Dataset) -> Everywhere:
    """the training loss ends below 0.1, at every N and SNR"""
    return everywhere(mean, ds.train_loss)


# ------------------------------------------------------------------------------------- norms

EXCHANGED = {"as without": exchange("norm", ("none", "layer norm"))}
PLACES = {"exchanged": exchange("norm", *zip(REMOVES, KEEPS, strict=False))}


@claim("found here", below(0.1), kind="own", rivals=EXCHANGED)
def layer_norm_no_transition(ds: xr.Dataset) -> Everywhere:
    """with layer norm the test error falls by less than 0.1 over the paper's range of SNR"""
    return everywhere(mean, gained(ds).sel(norm="layer norm", drop=True))


@claim("found here", below(0.1), kind="own", rivals=PLACES)
def scaling_removes(ds: xr.Dataset) -> Everywhere:
    """scaling each token before the attention is enough: with RMS scaling alone, or layer norm at
    one place before the attention, the test error falls by less than 0.1 too"""
    return everywhere(mean, gained(ds).sel(norm=REMOVES))


@claim("found here", above(0.5), kind="own", rivals=PLACES)
def the_rest_keeps(ds: xr.Dataset) -> Everywhere:
    """centring alone, one scale for all tokens, and layer norm after the attention leave the
    transition (the fall of the test error, over that without norms)"""
    y = gained(ds)
    return everywhere(paired_ratio, y.sel(norm=KEEPS), y.sel(norm="none", drop=True))


@claim("found here", above(0.3), kind="own")
def mixed_tokens(ds: xr.Dataset) -> Everywhere:
    """where every token holds digit and noise (four tokens), layer norm does not remove the
    transition: the test error falls by more than 0.3"""
    return everywhere(mean, gained(ds).sel(norm="layer norm", drop=True))


# ----------------------------------------------------------------------------------- drawing


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="MNIST in a frame of noise, without norms")
    found = boundary(ds)
    n0, c = float(ds.samples.max()), found.points.value.sel(samples=ds.samples.max())
    law = {r"$\propto N^{-1/2}$": lambda n: float(c) * (n / n0) ** -0.5}
    plot.heatmap(left, ds.test_loss, "samples", "snr", log="xyz", theory=law)
    plot.phase_diagram(
        right,
        ds.test_error,
        "samples",
        "snr",
        cut=HALF,
        log="xy",
        theory=law,
        boundary=found.points,
    )
    return fig


def draw_norms(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="MNIST in a frame of noise: what norms do")
    y = ds.test_error.sel(samples=int(ds.samples.max()))
    for ax, at in zip(axes, PRINTED, strict=True):
        plot.curve(ax, y.sel(snr=at), "norm", line=False)
        ax.set_title(rf"$\mathrm{{SNR}} = {at:g}$")
        ax.tick_params(axis="x", rotation=60)
        ax.set_ylim(0, 1)
    return fig


EXPERIMENTS = (
    Experiment(
        "fig2",
        says="Test loss and error of digits in a frame of noise, over sample size and SNR.",
        trainings=MAP,
        claims=(
            more_signal_early,
            more_samples_early,
            transition_early,
            more_signal,
            more_samples,
            transition,
            digits_exponent,
            ratio_orders,
            fitted,
        ),
        figure=draw,
    ),
    Experiment(
        "fig2_norms",
        says="The same with layer norm, with parts of it, and at single places.",
        trainings=VARIANTS,
        claims=(layer_norm_no_transition, scaling_removes, the_rest_keeps),
        figure=draw_norms,
    ),
    Experiment(
        "fig2_mixed",
        says="The same with four tokens, each of which holds digit and noise.",
        trainings=MIXED,
        claims=(mixed_tokens,),
        figure=draw_norms,
    ),
)
