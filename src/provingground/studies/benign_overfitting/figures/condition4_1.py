"""The boundary in N SNR^2 where Condition 4.1 (10) holds: the big noise is 5 sqrt(M) times the
small one."""

from math import sqrt
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import claim, curve, equals
from provingground.stats import Everywhere, everywhere, threshold
from provingground.study import Experiment, Trainings, axis

from .. import theory
from .fig1 import falling
from .shared import CUT


def at_product(settings: dict[str, Any]) -> dict[str, float]:
    """SNR from N SNR^2, and the big noise from the small one."""
    return {
        "snr": sqrt(settings["n_snr2"] / settings["samples"]),
        "noise_big": theory.C_P * sqrt(settings["tokens"]) * settings["noise"],
    }


@claim(
    "Theorems 4.1 and 4.2 under Condition 4.1 (10)",
    equals(1, times=sqrt(2)),
    law=curve("test_loss", lambda ds: falling(ds.n_snr2 / 900 + 0 * ds.noise)),
    rivals={
        "SNR over the noise": curve(
            "test_loss", lambda ds: falling(ds.n_snr2 / 900 * (ds.noise / 0.15) ** 0.5)
        ),
    },
)
def n_snr2_universal(ds: xr.Dataset) -> Everywhere:
    """the critical N SNR^2 is one constant for noises in the ratio of the condition: within a
    factor 2 of each other (each over their geometric mean)"""
    each = (ds.test_loss.sel(noise=noise) for noise in ds.noise.values)
    found = [np.log(threshold(y, "n_snr2", CUT).value) for y in each]
    middle = float(np.exp(np.mean(found)))
    return everywhere(lambda y: threshold(y, "n_snr2", CUT) / middle, ds.test_loss, keep="n_snr2")


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title=r"The boundary with $\tilde\sigma_p = 5\sqrt{M}\,\sigma_p$")
    plot.curve(ax, ds.test_loss, "n_snr2", hue="noise", log="x")
    plot.theory_curve(ax, [1000.0] * 2, ax.get_ylim(), r"paper: $N\,\mathrm{SNR}^2 = 1000$")
    ax.axhline(CUT, color=plot.GREY, linewidth=0.8)
    return fig


EXPERIMENTS = (
    Experiment(
        "condition4_1",
        says="The boundary where the big noise is 5 sqrt(M) times the small one, as the theorems "
        "ask: N SNR^2 is the control variable.",
        trainings=Trainings(
            grid={
                "samples": 8,
                "key_width": 256,
                "lr": 0.03,  # Condition 4.1 (6): the steps are to be small where the noise is large
                "noise": [0.05, 0.1, 0.2, 0.4],
                "n_snr2": axis(
                    np.geomspace(300, 2400, 10),
                    r"N\,\mathrm{SNR}^2",
                    "samples times squared SNR",
                    sets=at_product,
                ),
            },
            seeds=8,
            quick={"noise": [0.1, 0.2, 0.4], "n_snr2": np.geomspace(400, 2000, 6), "seeds": 10},
            # M is that of Figure 1: the constant of the theorems may depend on it (M = O(1)).
            domain={
                "samples": (4, 40),
                "noise": (0.05, 0.5),
                "lr": (0.003, 0.03),
                "init_scale": (1 / 64, 1 / 6.4),
                "dim": [256, 512, 1024, 2048],
            },
        ),
        claims=(n_snr2_universal,),
        figure=draw,
    ),
)
