"""Excess risks for large n: tr(F_l F^-1)/2n in a group, dK/2n on average, for every mixture."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, below, claim, curve, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings

from .shared import ZERO, average_law, beside


def average_is(f: Any) -> Altered:
    return curve("excess", f)


@claim(
    "local theory",
    equals(1, times=1.5),
    kind="own",
    law=average_is(average_law),
    rivals={
        "d/2n": average_is(lambda ds: average_law(ds) / ds.width),
        "dK/n": average_is(lambda ds: 2 * average_law(ds)),
    },
)
def average_excess_law(ds: xr.Dataset) -> Estimate:
    """the average excess risk of the minimiser is dK/2n, whatever the mixture (ratio)"""
    return stats.mean(ds.excess / average_law(ds))


def group_is(f: Any) -> Altered:
    return curve("group_excess", f)


def share(ds: xr.Dataset) -> xr.DataArray:
    return beside([1 - ds.fraction, ds.fraction], "group", (0, 1))


@claim(
    "local theory",
    equals(1, times=1.5),
    kind="own",
    law=group_is(lambda ds: ds.expected_excess.mean("seed")),
    rivals={
        "the average's": group_is(average_law),
        "1/(4 lambda_l) of it": group_is(lambda ds: average_law(ds) / share(ds) / 4),
    },
)
def group_law(ds: xr.Dataset) -> Everywhere:
    """the excess risk of each group is tr(F_l F^-1)/2n (ratio of the means over teachers)"""
    return everywhere(stats.paired_ratio, ds.group_excess, ds.expected_excess)


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose groups have the losses of each other."""
    names = ("group_loss", "group_excess")
    return ds.assign({n: ds[n].copy(data=ds[n].isel(group=[1, 0]).values) for n in names})


@claim("found here", below(0), kind="own", rivals={"the other group": exchanged})
def wide_is_surer(ds: xr.Dataset) -> Estimate:
    """of two groups around 0 the teacher is surer on the wider one: its entropy is lower (entropy
    of the wider less that of the narrower)"""
    entropy = ds.group_loss - ds.group_excess
    return stats.mean(entropy.isel(group=1, drop=True) - entropy.isel(group=0, drop=True))


@claim("found here", below(0.01), kind="own")
def loss_is_entropy(ds: xr.Dataset) -> Everywhere:
    """what training adds to the average loss of a figure is under 1% of it at every setting: the
    rest is the teacher's entropy"""
    return everywhere(stats.mean, ds.excess / ds.test_loss)


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Excess risk and its law", width=4.2, seeds=ds.sizes["seed"])
    flat = [d for d in ds.group_excess.dims if d not in ("seed", "group")]
    for i, name in enumerate(("group 1", "group 2")):
        y, law = (
            v.isel(group=i).mean(["seed", *flat]) for v in (ds.group_excess, ds.expected_excess)
        )
        ax.plot([float(law)], [float(y)], plot.MARKERS[i], color=plot.PALETTE[i], label=name,
                gid="series")  # fmt: skip
    ax.plot([float(np.mean(average_law(ds)))], [float(ds.excess.mean())], plot.MARKERS[2],
            color=plot.PALETTE[2], label="average", gid="series")  # fmt: skip
    span = np.geomspace(0.5 * float(ds.expected_excess.mean(["seed"]).min()),
                        2 * float(ds.expected_excess.mean(["seed"]).max()), 20)  # fmt: skip
    plot.theory_curve(ax, span, span, "law")
    ax.set(xscale="log", yscale="log", xlabel=r"$\mathrm{tr}(F_lF^{-1})/2n$, average $dK/2n$",
           ylabel="excess risk (mean over seeds)")  # fmt: skip
    ax.legend()
    return fig


def wider(s: Mapping[str, Any]) -> bool:
    return s["var_2"] >= 2 * s["var_1"]


BASE = dict(dim=3, width=2, samples=20_000, fraction=0.3)
DOMAIN = {
    "samples": (10_000, 100_000),
    "fraction": (0.05, 0.9),
    "strength": (0.5, 5.0),
    "var_1": (0.3, 3.0),
}

EXPERIMENTS = (
    Experiment(
        "excess",
        says="Excess risks of the minimiser against their limits for large n, at one mixture.",
        trainings=Trainings(
            grid={**BASE, "var_2": 3.0},
            seeds=128,
            quick={"test_samples": 2000, "seeds": 48},
            domain={**DOMAIN, "var_2": (0.3, 3.0), "mean_1": (0.0, 1.0), "mean_2": (-1.0, 0.0)},
        ),
        claims=(average_excess_law, group_law),
        figure=draw,
    ),
    Experiment(
        "excess_zero",
        says="The same for two groups around 0, one wider than the other.",
        trainings=Trainings(
            grid={**BASE, **ZERO, "var_2": 10.0},
            seeds=64,
            quick={"test_samples": 2000, "seeds": 24},
            domain={**DOMAIN, "var_2": (1.0, 30.0)},
            where=wider,
        ),
        claims=(wide_is_surer,),
        figure=draw,
    ),
)
