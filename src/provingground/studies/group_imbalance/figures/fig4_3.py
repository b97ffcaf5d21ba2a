"""Figure 4.3: success of descent from many starts, over one mean or covariance and the samples."""

from typing import Any

import xarray as xr

from provingground import stats
from provingground.claims import above, below, claim, shuffle
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings, axis, cases

from .fig4_2 import MAP, PROTOCOLS, SIZES, SMALL, draw_map, harder, laid_out, of_paper, white

# ------------------------------------------------------------------------------------ (a): a mean


@claim("Corollary 4.4.1(iii), Figure 4.3(a)", above(0), bound="paper",
       rivals={"another order": shuffle("norm")})  # fmt: skip
def harder_with_mean(ds: xr.Dataset) -> Estimate:
    """less of the map succeeds at norm 5 than at norm 1 (difference of the shares)"""
    return harder(of_paper(ds).success, "norm", 1.0, 5.0)


@claim("Corollary 4.4.1(iii), Figure 4.3(a)", below(0), bound="paper", scale="paper",
       rivals={"another order": shuffle("norm")})  # fmt: skip
def falls_with_mean(ds: xr.Dataset) -> Estimate:
    """success falls with the norm of the mean (rank correlation)"""
    return stats.rank_correlation(white(of_paper(ds).success), "norm")


# ------------------------------------------------------------------------------ (b): a covariance


@claim("Corollary 4.4.1(i), Figure 4.3(b)", above(0), bound="paper",
       rivals={"another order": shuffle("sigma")})  # fmt: skip
def harder_when_small(ds: xr.Dataset) -> Estimate:
    """less of the map succeeds at sigma 0.1 than between 0.5 and 3 (difference of the shares)"""
    return harder(of_paper(ds).success, "sigma", slice(0.5, 3.0), 0.1)


@claim("Corollary 4.4.1(ii), Figure 4.3(b)", above(0), bound="paper", scale="paper")
def harder_when_large(ds: xr.Dataset) -> Estimate:
    """less of the map succeeds at sigma 10 than between 0.5 and 3 (difference of the shares)"""
    return harder(of_paper(ds).success, "sigma", slice(0.5, 3.0), 10.0)


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """Each protocol with the success of the other."""
    return ds.assign(success=ds.success.copy(data=ds.success.isel(protocol=[1, 0]).values))


@claim("the authors' code", above(0), kind="own",
       rivals={"the other way": exchanged})  # fmt: skip
def easier_when_mixed(ds: xr.Dataset) -> Estimate:
    """at sigma 0.1 more of the map succeeds if each coordinate draws its own group, as in the
    authors' code, than on the paper's mixture (difference of the shares)"""
    at = white(ds.success.sel(sigma=0.1, drop=True))
    return stats.paired_difference(
        at.sel(protocol="coordinates", drop=True), at.sel(protocol="paper", drop=True)
    )


def norm(settings: dict[str, Any]) -> dict[str, float]:
    return {"mean_1": settings["norm"] / settings["dim"] ** 0.5}


def sigma(settings: dict[str, Any]) -> dict[str, float]:
    return {"var_1": settings["sigma"] ** 2}


MIXED = {"paper": {}, "coordinates": {"each_coordinate": 1}}
SIGMAS = [0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 10.0]
NORMS = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]

EXPERIMENTS = (
    Experiment(
        "fig4_3a",
        says="Success of descent from many starts, over one mean and the number of samples.",
        trainings=Trainings(
            grid={
                "starts": axis(20, sets=laid_out),
                "protocol": cases(PROTOCOLS),
                "samples": SIZES,
                "norm": axis(NORMS, r"\|\mu_1\|", "norm of the mean of group 1", sets=norm),
            },
            **MAP,
            quick={**SMALL, "protocol": cases({"paper": {}}), "norm": [1.0, 5.0], "seeds": 20},
        ),
        claims=(harder_with_mean, falls_with_mean),
        figure=draw_map("Success over one mean and samples", "norm"),
    ),
    Experiment(
        "fig4_3b",
        says="Success of descent from many starts, over one covariance and the number of samples.",
        trainings=Trainings(
            grid={
                "starts": axis(20, sets=laid_out),
                "protocol": cases({**PROTOCOLS, "coordinates": MIXED["coordinates"]}),
                "samples": SIZES,
                "sigma": axis(SIGMAS, r"\sigma", "s.d. of group 1", sets=sigma),
            },
            **MAP,
            quick={**SMALL, "protocol": cases(MIXED), "sigma": [0.1, 2.0]},
        ),
        claims=(harder_when_small, harder_when_large, easier_when_mixed),
        figure=draw_map("Success over one covariance and samples", "sigma", log="xy"),
    ),
)
