"""Figure F.1: a three-layer transformer with one head and sinusoidal positions."""

import xarray as xr

from provingground import stats
from provingground.claims import above, claim
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings, cases

from .fig7_7 import best_head, draw_layers, even, leads


def usual(ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(position="sinusoidal", drop=True)


@claim("Figure F.1", above(0), bound="paper", rivals={"even": even})
def matched_rises(ds: xr.Dataset) -> Everywhere:
    """attention on matched columns rises in every layer"""
    found = best_head(usual(ds))
    return everywhere(stats.mean, found.isel(step=-1, drop=True) - found.isel(step=0, drop=True))


@claim("Figure F.1", above(0), bound="paper", rivals={"even": even})
def matched_largest(ds: xr.Dataset) -> Everywhere:
    """and becomes the largest type in every layer (lead)"""
    return leads(usual(ds))


@claim("Figure F.1", above(0.7))
def matched_later(ds: xr.Dataset) -> Estimate:
    """layers 2 and 3 together put over 0.7 on matched columns (mean of both)"""
    return stats.mean(best_head(usual(ds)).isel(step=-1).sel(layer=[2, 3]))


@claim("Appendix F.1.3", above(0), bound="paper")
def steps_are_clearer(ds: xr.Dataset) -> Estimate:
    """encodings by step give more attention to matched columns (difference, all layers)"""
    end = best_head(ds).isel(step=-1).mean("layer")
    return stats.paired_difference(end.sel(position="by step"), end.sel(position="sinusoidal"))


EXPERIMENTS = (
    Experiment(
        "figf_1",
        says="Attention of a three-layer transformer with sinusoidal positions.",
        trainings=Trainings(
            grid={
                "heads": 1,
                "sees_itself": False,
                "steps": 5000,
                "record": 25,
                "position": cases({"sinusoidal": {"positions": "sinusoidal"}, "by step": {}}),
            },
            seeds=8,
            paper_only=True,
            simulator="deep",
        ),
        claims=(matched_rises, matched_largest, matched_later, steps_are_clearer),
        figure=draw_layers(
            "Three layers, one head, sinusoidal positions", {"position": "sinusoidal"}
        ),
    ),
)
