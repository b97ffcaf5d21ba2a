"""Lemmas 5.2 and E.3: when the winner's value is 3M times the loser's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import Altered, above, claim, equals
from provingground.stats import Everywhere, everywhere, mean, threshold
from provingground.study import Experiment, Trainings, axis

from .. import theory
from .shared import at_ratio, lead, ratio

SIZES = dict(
    tokens=4,
    dim=2048,
    key_width=256,
    value_width=64,
    noise=0.05,
    noise_big=1.0,
    samples=16,
    test_samples=50,
)


def at_ratio_slowly(settings: dict[str, Any]) -> dict[str, float]:
    """The SNR that R stands for, and a step size that the faster of the two values bears."""
    snr = at_ratio(settings)["snr"]
    speed = max(
        (snr * settings["noise"]) ** 2, 2 * settings["noise_big"] ** 2 / settings["samples"]
    )
    return {"snr": snr, "lr": 12.5 / (speed * settings["dim"])}


def full_lead(ds: xr.Dataset) -> xr.DataArray:
    """The lead that a value of 3M times the other means."""
    return (3 * ds.tokens - 1) / (3 * ds.tokens + 1)


def in_proportion(r: Callable[[xr.Dataset], Any]) -> Altered:
    """The Dataset whose values are as `r(ds)` to one."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        one = xr.ones_like(ds.value_noise)
        return ds.assign(value_noise=one, value_signal=(one * r(ds)).transpose(*one.dims))

    return altered


@claim(
    "Lemmas 5.2 and E.3",
    above(1),
    bound="paper",
    rivals={
        "3 to 1": in_proportion(lambda ds: 3.0),
        "1 to 3": in_proportion(lambda ds: 1 / 3),
        "the other wins": in_proportion(lambda ds: 2 / ratio(ds)),
    },
)
def dominance(ds: xr.Dataset) -> Everywhere:
    """where the lemmas speak, the signal's value is over 3M times the noise's (N SNR^2 > 60 M^2
    C_p^2), or the noise's over 3M times the signal's (N SNR^2 < 1): the winner's lead over that of
    3M to 1"""
    c_p = ds.noise_big / ds.noise
    benign = theory.stage_one_ratio(ds.samples, ds.snr, ds.tokens, c_p) > 1
    harmful = ds.samples * ds.snr**2 < 1
    ahead = xr.where(benign, lead(ds), -lead(ds)) / full_lead(ds)
    return everywhere(mean, ahead.isel(ratio=np.flatnonzero(benign | harmful)))


@claim(
    "derived from Lemma 5.1",
    equals(1, times=4),
    kind="own",
    law=in_proportion(lambda ds: ratio(ds) / 2),
    rivals={"60 M^2": in_proportion(lambda ds: ratio(ds) / (20 * ds.tokens))},
)
def dominance_needs(ds: xr.Dataset) -> Everywhere:
    """that takes, within a factor 4, the R = 6M of the first speeds on the one side and 4/R = 6M on
    the other (ratio), not 60 M^2"""
    level, needed = float(full_lead(ds)), 6 * float(ds.tokens)
    ahead = lead(ds)
    sides = xr.concat(
        [ahead - level, -ahead - level],
        xr.DataArray(["signal", "noise"], dims="winner", name="winner"),
    )

    def critical(y: xr.DataArray) -> Any:
        at = threshold(y, "ratio", 0.0)
        return (at if str(y.winner.item()) == "signal" else at.map(lambda r: 4 / r)) / needed

    return everywhere(critical, sides, keep="ratio")


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Who wins, and by how much", width=4.2)
    plot.curve(ax, lead(ds).assign_attrs(long_name="lead of the signal's value"), "ratio", log="x")
    r = np.geomspace(float(ds.ratio.min()), float(ds.ratio.max()), 200)
    plot.theory_curve(ax, r, (r - 2) / (r + 2), "first speeds, Lemma 5.1")
    for sign in (-1, 1):
        level = sign * float(full_lead(ds))
        plot.theory_curve(ax, r[[0, -1]], [level] * 2, "$3M$ to 1, Lemmas 5.2 and E.3")
    return fig


EXPERIMENTS = (
    Experiment(
        "lemma5_2",
        says="The values at the end of training, from far below the boundary to far above it.",
        trainings=Trainings(
            grid={
                **SIZES,
                "ratio": axis(
                    [
                        0.002,
                        0.02,
                        0.05,
                        0.1,
                        0.2,
                        0.4,
                        1.0,
                        2.0,
                        5.0,
                        10.0,
                        20.0,
                        40.0,
                        100.0,
                        1e3,
                        5e3,
                    ],
                    "R",
                    "signal ratio",
                    sets=at_ratio_slowly,
                ),
            },
            seeds=8,
            quick={"ratio": [0.002, 0.05, 0.15, 0.4, 8.0, 16.0, 32.0, 5e3], "seeds": 6},
            domain={
                "samples": (4, 40),
                "noise": (0.02, 0.05),
                "noise_big": (1.0, 10.0),
                "tokens": [4, 8],
                "eps": (0.003, 0.03),
            },
        ),
        claims=(dominance, dominance_needs),
        figure=draw,
    ),
)
