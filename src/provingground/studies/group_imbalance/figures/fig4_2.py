"""Figure 4.2: success of descent from many starts, over dimension and number of samples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, claim, equals, shuffle
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings, axis, cases

SIZES = [500, 1000, 2000, 4000, 8000, 16_000]
MAP: dict[str, Any] = dict(simulator="map", seeds=20)
SMALL: dict[str, Any] = dict(samples=[1000, 4000], starts=2, steps=1000, seeds=10)
# A step of 100 is not among them: at small d it ends in a cycle of two points, which their test
# takes for success.
PROTOCOLS: dict[str, dict[str, Any]] = {
    "paper": {},
    "authors": {"each_coordinate": 1, "relative": 0.1, "spread": 1e-4},
}


def laid_out(settings: dict[str, Any]) -> dict[str, str]:
    """The paper's twenty starts are for a GPU, which gets one program for the whole map."""
    return {"simulator": "large_map" if settings["starts"] > 10 else "map"}


def of_paper(ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(protocol="paper", drop=True)


def white(success: xr.DataArray) -> xr.DataArray:
    """The share of a column of the map (over n) that succeeds: the higher, the fewer samples."""
    return success.mean("samples")


def exponent(success: xr.DataArray) -> Estimate:
    """The power of d in the n at which half succeed, if that n lies on the axis for every d."""
    found = stats.phase_boundary(success, "samples", "dim", 0.5)
    return stats.UNDECIDED if found.left_out else found.law.slope


def harder(success: xr.DataArray, along: str, easy: Any, hard: Any) -> Estimate:
    """How much less of the column succeeds at `hard` than at `easy` (a mean over several)."""
    share = white(success)
    base = share.sel({along: easy})
    base = base.mean(along) if along in base.dims else base
    at = share.sel({along: hard}, drop=True)
    return stats.paired_difference(base.drop_vars(along, errors="ignore"), at)


def draw_map(title: str, along: str, log: str = "y") -> Callable[[xr.Dataset], Any]:
    """A map for each protocol; curves where there are few columns."""

    def draw(ds: xr.Dataset):
        names = list(ds.protocol.values)
        fig, axes = plot.figure(1, len(names), title=title)
        for ax, name in zip(axes, names, strict=True):
            success = ds.success.sel(protocol=name)
            ax.set_title(WORDS[name])
            if ds.sizes[along] < 4:
                plot.curve(ax, success, "samples", hue=along, log="x")
                continue
            plot.heatmap(ax, success, along, "samples", log=log, limits=(0, 1))
            places = (
                stats.threshold(success.sel({along: v}, drop=True), "samples", 0.5).value
                for v in ds[along].values
            )
            points = zip(ds[along].values, places, strict=True)
            found = np.array([p for p in points if np.isfinite(p[1])], float).reshape(-1, 2)
            if len(found) > 1:
                plot.theory_curve(ax, found[:, 0], found[:, 1], "half succeed")
        return fig

    return draw


WORDS = {
    "paper": "as in the paper",
    "authors": "as in the authors' code",
    "coordinates": "a group per coordinate",
}


@claim("(4.7), Figure 4.2", above(0), bound="paper", rivals={"another order": shuffle("dim")})
def more_with_dimension(ds: xr.Dataset) -> Estimate:
    """the higher the dimension, the less of the map succeeds (share at d = 3 less that at 16)"""
    return harder(of_paper(ds).success, "dim", 3, 16)


@claim("(4.7), Figure 4.2", equals(1, within=0.4), scale="paper")
def almost_linear(ds: xr.Dataset) -> Estimate:
    """n at which half succeed grows almost linearly with d (exponent)"""
    return exponent(of_paper(ds).success)


@claim("the authors' code", equals(1, within=0.4), kind="own", scale="paper")
def almost_linear_authors(ds: xr.Dataset) -> Estimate:
    """so it does with the authors' data and starts, where the spread alone decides (exponent)"""
    return exponent(ds.printed_success.sel(protocol="authors", drop=True))


EXPERIMENTS = (
    Experiment(
        "fig4_2",
        says="Success of descent from many starts, over dimension and number of samples.",
        trainings=Trainings(
            grid={
                "starts": axis(20, sets=laid_out),
                "protocol": cases(PROTOCOLS),
                "dim": [3, 5, 8, 12, 16, 20],
                "samples": [250, *SIZES],
                "mean_2": 0.0,
            },
            **MAP,
            quick={**SMALL, "protocol": cases({"paper": {}}), "dim": [3, 16]},
        ),
        claims=(more_with_dimension, almost_linear, almost_linear_authors),
        figure=draw_map("Success over dimension and samples", "dim"),
    ),
)
