"""Figure 1(a): linear forecasters against attention on ETTh1 and ETTh2."""

from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, equals, exchange
from provingground.stats import Everywhere, everywhere, mean, paired_ratio
from provingground.study import Experiment, Trainings, cases

from .shared import replaced

ENCODER: dict[str, Any] = {"simulator": "encoder"}
LINEAR = ("NLinear", "DLinear")
ATTENTION = {
    "encoder": {"learned": 0.0},
    "+ place": {},
    "+ last": {"learned": 0.0, "skip": 1.0},
    "+ both": {"skip": 1.0},
}
# Test MSE of NLinear in Zeng et al. (2022), from which the figure takes its values.
PUBLISHED = {
    ("ETTh1", 96): 0.374,
    ("ETTh1", 192): 0.408,
    ("ETTh1", 336): 0.429,
    ("ETTh1", 720): 0.440,
    ("ETTh2", 96): 0.277,
    ("ETTh2", 192): 0.344,
    ("ETTh2", 336): 0.357,
    ("ETTh2", 720): 0.394,
}


def predictors(linear: dict[str, Any], encoder: dict[str, Any]) -> Any:
    """Every forecaster, with what its training takes."""
    return cases(
        {
            "least squares": {"form": "least_squares"},
            "NLinear": linear,
            "DLinear": {"form": "dlinear"} | linear,
        }
        | {name: ENCODER | encoder | own for name, own in ATTENTION.items()}
    )


TRAININGS = Trainings(
    grid={
        "series": cases({"ETTh1": {"etth": 1}, "ETTh2": {"etth": 2}}),
        "horizon": [96, 192, 336, 720],
        "predictor": predictors(
            {"steps": 2500},
            {"width": 64, "layers": 2, "steps": 5000, "rate": 0.003, "halvings": 4.0},
        ),
    },
    simulator="forecast",
    data="etth",
    seeds=6,
    quick={
        "horizon": [96],
        "predictor": predictors(
            {"steps": 1000},
            {"width": 16, "heads": 2, "steps": 400, "rate": 0.01, "halvings": 3.0},
        ),
        "seeds": 3,
    },
)


ALONE, ADDED = ("encoder", "+ place"), ("+ last", "+ both")
REVERSE = {"the other way": exchange("predictor", *zip(ALONE, ADDED, strict=True))}
BETTER = {"attention's errors": exchange("predictor", ("NLinear", "+ both"), ("DLinear", "+ last"))}
DLINEAR = {"DLinear": exchange("predictor", ("least squares", "DLinear"))}
ENCODERS = {"an encoder": replaced("mse", lambda ds: ds.mse.sel(predictor="+ last"))}


@claim("Figure 1(a), for encoders of our own", above(1), kind="own", rivals=BETTER)
def linear_is_better(ds: xr.Dataset) -> Everywhere:
    """NLinear and DLinear have less test MSE than every encoder, with positions and without, with
    the last value added and without (the encoder's over theirs)"""
    linear = ds.mse.sel(predictor=list(LINEAR)).rename(predictor="linear")
    return everywhere(paired_ratio, ds.mse.sel(predictor=list(ATTENTION)), linear)


@claim(
    "Zeng et al. (2022), Table 2, from which Figure 1(a) is drawn",
    equals(1, within=0.05),
    kind="own",
    rivals=ENCODERS,
)
def published(ds: xr.Dataset) -> Everywhere:
    """NLinear has the published test MSE (ratio)"""
    y = ds.mse.sel(predictor="NLinear", drop=True)
    told = [[PUBLISHED[s, int(h)] for h in y.horizon.values] for s in y.series.values]
    return everywhere(mean, y / xr.DataArray(told, dims=("series", "horizon")))


@claim("found here", equals(1, within=0.05), kind="own", rivals=DLINEAR)
def as_least_squares(ds: xr.Dataset) -> Everywhere:
    """NLinear needs no descent: least squares has its test MSE (ratio)"""
    nlinear, exact = (ds.mse.sel(predictor=p, drop=True) for p in ("NLinear", "least squares"))
    return everywhere(paired_ratio, nlinear, exact)


@claim(
    "found here",
    below(0.9),
    kind="own",
    rivals=REVERSE,
)
def last_value_helps(ds: xr.Dataset) -> Everywhere:
    """subtracting the last value and adding it back, as NLinear does, takes over a tenth off the
    test MSE of attention, with positions and without (ratio)"""
    skip, plain = (ds.mse.sel(predictor=list(names)) for names in (ADDED, ALONE))
    return everywhere(paired_ratio, skip, plain.assign_coords(predictor=skip.predictor))


def draw(ds: xr.Dataset):
    known = list(ds.predictor.values).index("NLinear")
    title = "Forecasts of ETTh1 and ETTh2: linear maps against attention"
    fig, axes = plot.figure(ds.sizes["series"], 1, width=6.2, title=title)
    for ax, series in zip(axes, ds.series.values, strict=True):
        for h in ds.horizon.values:
            here = ds.mse.sel(series=series, horizon=h)
            plot.curve(ax, here, "predictor", label=f"$H = {h}$", line=False, log="y")
            told = [PUBLISHED[str(series), int(h)]] * 2
            plot.theory_curve(ax, [known - 0.3, known + 0.3], told, "NLinear as published")
        ax.set_ylabel(f"test MSE ({series})")
    for ax in axes[:-1]:
        ax.set_xlabel("")
        ax.tick_params(axis="x", labelbottom=False)
    return fig


EXPERIMENTS = (
    Experiment(
        "fig1a",
        says="Test errors of linear forecasters and of encoders on two real series.",
        trainings=TRAININGS,
        claims=(
            linear_is_better,
            published,
            as_least_squares,
            last_value_helps,
        ),
        figure=draw,
    ),
)
