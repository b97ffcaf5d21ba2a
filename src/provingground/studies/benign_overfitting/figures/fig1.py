"""Figure 1: the test loss over sample size and signal-to-noise ratio, and the map cut at 0.2."""

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import above, below, between, claim, control, curve, equals
from provingground.stats import Estimate, Everywhere, everywhere, mean, paired_ratio, threshold
from provingground.study import Experiment, Trainings

from .. import theory
from .shared import (
    CUT,
    QUICK_SNR,
    SIGNAL_NORMS,
    inside,
    lead,
    loss_as_the_law,
    loss_boundary,
    mean_where,
    ratio,
    reached,
    snr_of,
    test_loss_law,
    values_equal_at,
)

TRAININGS = Trainings(
    grid={"samples": list(range(2, 21)), "snr": list(snr_of(SIGNAL_NORMS))},
    seeds=8,
    quick={"samples": [8, 12, 20], "snr": QUICK_SNR, "seeds": 8},
    # Both noises stay those of the paper: their ratio moves the boundary out of the axis of SNR
    # (see `collapse`), and their scale is that of the step size. The axes span factors of 10.
    domain={
        "samples": (2, 40),
        "snr": (0.15, 16),
        "lr": (0.01, 0.1),
        "init_scale": (1 / 64, 1 / 6.4),
        "dim": [256, 512, 1024, 2048],
    },
)

# ---------------------------------------------------------------------------------- Figure 1(b)


def falling(x: xr.DataArray) -> xr.DataArray:
    """A loss that falls with x and crosses the cut at x = 1."""
    at_zero = np.log(2)
    return at_zero / (1 + (at_zero / CUT - 1) * x**1.5)


@claim(
    "Theorems 4.1 and 4.2, Figure 1(b)",
    equals(-1 / 2, within=0.1),
    law=curve("test_loss", lambda ds: falling(ds.samples * ds.snr**2 / 1000)),
    rivals={
        "N SNR": control("test_loss", lambda ds: ds.samples * ds.snr),
        "N SNR^4": control("test_loss", lambda ds: ds.samples * ds.snr**4),
        "SNR alone": control("test_loss", lambda ds: ds.snr + 0 * ds.samples),
    },
)
def boundary_exponent(ds: xr.Dataset) -> Estimate:
    """the critical SNR falls with the sample size as N^(-1/2)"""
    return loss_boundary(ds).law.slope


@claim(
    "Figure 1(b)",
    equals(1000, times=1.3),
    law=curve("test_loss", lambda ds: falling(ds.samples * ds.snr**2 / 1000)),
    rivals={
        "N SNR = 110": curve("test_loss", lambda ds: falling(ds.samples * ds.snr / 110)),
        "N SNR^2 = 600": curve("test_loss", lambda ds: falling(ds.samples * ds.snr**2 / 600)),
    },
)
def boundary_constant(ds: xr.Dataset) -> Everywhere:
    """on the boundary N SNR^2 is 1000, at every N from 4 on whose SNR is on the axis"""

    def n_snr2(loss: xr.DataArray) -> Estimate:
        return threshold(loss, "snr", CUT).map(lambda snr: float(loss.samples) * snr**2)

    return everywhere(n_snr2, ds.test_loss.sel(samples=reached(ds)), keep="snr")


@claim(
    "derived from Lemma 5.1",
    equals(2, times=1.5),
    kind="own",
    law=values_equal_at(2.0),
    rivals={"R = 1": values_equal_at(1.0), "R = 4": values_equal_at(4.0)},
)
def value_boundary_map(ds: xr.Dataset) -> Everywhere:
    """signal and noise end with equal values at R = 2 (no cut is needed), at every N as above"""
    per_snr2 = ratio(ds) / ds.snr**2

    def critical(ahead: xr.DataArray, per_snr2: xr.DataArray) -> Estimate:
        return threshold(ahead, "snr", 0.0).map(lambda snr: float(per_snr2) * snr**2)

    return everywhere(
        critical,
        lead(ds).sel(samples=reached(ds)),
        per_snr2.isel(snr=0, drop=True).sel(samples=reached(ds)),
        keep="snr",
    )


def draw_phases(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Benign and harmful overfitting", width=4.2)
    noises = float(ds.noise), float(ds.noise_big)
    plot.phase_diagram(
        ax,
        ds.test_loss,
        "samples",
        "snr",
        cut=CUT,
        theory={
            r"paper: $N\,\mathrm{SNR}^2 = 1000$": theory.printed_boundary_snr,
            "derived: $R = 2$": lambda n: theory.boundary_snr(n, *noises),
        },
        boundary=loss_boundary(ds).points,
    )
    return fig


# ---------------------------------------------------------------------------------- Figure 1(a)


def clarity(ds: xr.Dataset) -> xr.DataArray:
    r"""$\frac R2\sqrt{d/N}$: the signal's value over the spread of unseen noise's."""
    return ratio(ds) / 2 * np.sqrt(ds.dim / ds.samples)


def far_above(ds: xr.Dataset) -> xr.DataArray:
    return (ratio(ds) > 6) & (ds.samples >= 4)


@claim("Theorem 4.2; its proof (Lemma E.6) shows at least 0.1", above(0.1), bound="paper")
def harmful_loss(ds: xr.Dataset) -> Everywhere:
    """below the boundary (R < 0.5) the test loss is of order one, at every setting"""
    return everywhere(mean, inside(ratio(ds) < 0.5, ds.test_loss))


@claim(
    "Theorem 4.1",
    below(CUT),
    rivals={"shifted twice": curve("test_loss", lambda ds: falling(ratio(ds) / 10))},
)
def benign_loss(ds: xr.Dataset) -> Everywhere:
    """far above the boundary (R > 6) the test loss is small, at every setting with N from 4 on"""
    return everywhere(mean, inside(far_above(ds), ds.test_loss))


@claim(
    "derived from Lemma 5.5",
    between(0.4, 0.95),
    kind="own",
    rivals={"the law itself": loss_as_the_law},
)
def loss_below_law(ds: xr.Dataset) -> Estimate:
    """at the coarse steps of Figure 1 the test loss where R > 6 is lower than l(V (2M-1)/M^2), by
    up to a half (ratio)"""
    both = ds.test_loss, test_loss_law(ds)
    return paired_ratio(*(inside(far_above(ds), y) for y in both))


@claim("found here", below(0.05), kind="own")
def harmful_is_margin(ds: xr.Dataset) -> Estimate:
    """where the signal stands out of unseen noise ((R/2) sqrt(d/N) > 4), harmful overfitting
    (R < 1) costs margin, not accuracy (test error)"""
    return mean_where(ds.test_error, (ratio(ds) < 1) & (clarity(ds) > 4))


@claim("found here", above(0.3), kind="own")
def harmful_costs_accuracy(ds: xr.Dataset) -> Estimate:
    """where it does not ((R/2) sqrt(d/N) < 0.3), the test error is near a half"""
    return mean_where(ds.test_error, clarity(ds) < 0.3)


def draw_maps(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Test loss and test error at the end of training")
    curves = {r"$N\,\mathrm{SNR}^2 = 1000$": theory.printed_boundary_snr}
    plot.heatmap(left, ds.test_loss, "samples", "snr", theory=curves)
    plot.heatmap(right, ds.test_error, "samples", "snr", theory=curves)
    return fig


EXPERIMENTS = (
    Experiment(
        "fig1b",
        says="The map of Figure 1(a) cut at test loss 0.2: a sharp transition along a curve.",
        trainings=TRAININGS,
        claims=(boundary_exponent, boundary_constant, value_boundary_map),
        figure=draw_phases,
    ),
    Experiment(
        "fig1a",
        says="Test loss (and error) at training loss 0.01 over sample size and SNR.",
        trainings=TRAININGS,
        claims=(
            harmful_loss,
            benign_loss,
            loss_below_law,
            harmful_is_margin,
            harmful_costs_accuracy,
        ),
        figure=draw_maps,
    ),
)
