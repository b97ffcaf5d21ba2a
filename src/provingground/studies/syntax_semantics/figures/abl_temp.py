"""Is it the step or the temperature of its noise that hides the hard part?"""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim
from provingground.stats import Estimate, Everywhere, everywhere, paired_difference, share
from provingground.study import Experiment, Trainings, axis

from .shared import COOL, LEARNED, NOTHING, ONE_SIDE, at_temperature, ending

LARGE, SMALL = 0.1, 0.005


def learners(ds: xr.Dataset) -> xr.DataArray:
    done = (ending(ds.loss_hard, 2) < LEARNED).astype(float)
    return done.assign_attrs(long_name="share of seeds that learn the hard part", symbol="")


@claim("derived here", below(0.1), kind="own", rivals=ONE_SIDE)
def step_hides(ds: xr.Dataset) -> Everywhere:
    """a large step misses the hard part at either temperature and either u (share that learns)"""
    return everywhere(share, learners(ds).sel(lr2=LARGE))


@claim("derived here", above(0.6), kind="own", rivals=NOTHING)
def small_step_learns(ds: xr.Dataset) -> Everywhere:
    """a small step at the low temperature learns it, at either u (share that learns)"""
    return everywhere(share, learners(ds).sel(lr2=SMALL, temperature=COOL))


@claim("derived here", above(0.3), kind="own", rivals=NOTHING)
def step_over_noise(ds: xr.Dataset) -> Everywhere:
    """a small step at the high temperature learns more often than a large one at the low (share
    minus share)"""
    hot = learners(ds).sel(lr2=SMALL, temperature=1.0, drop=True)
    cool = learners(ds).sel(lr2=LARGE, temperature=COOL, drop=True)
    return everywhere(paired_difference, hot, cool)


@claim("proof of Theorem 2", above(0.5), expected="fails", because=(step_hides,))
def noise_hides(ds: xr.Dataset) -> Everywhere:
    """large steps hide the hard part by their noise: with less of it they learn (share)"""
    return everywhere(share, learners(ds).sel(lr2=LARGE, temperature=COOL))


@claim("found here", below(0), kind="own")
def noise_costs(ds: xr.Dataset) -> Estimate:
    """noise costs small steps some of it: the share that learns falls with the temperature"""
    of = learners(ds).sel(lr2=SMALL)
    return paired_difference(
        of.sel(temperature=1.0, drop=True), of.sel(temperature=COOL, drop=True)
    )


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(
        1,
        ds.sizes["z_norm"],
        title="It is the step, not the temperature",
        seeds=ds.sizes["seed"],
    )
    done = learners(ds)
    four = [("small", SMALL, "low", COOL), ("small", SMALL, "high", 1.0),
            ("large", LARGE, "low", COOL), ("large", LARGE, "high", 1.0)]  # fmt: skip
    place = xr.DataArray(
        [f"{a} step,\n{b} temp." for a, _, b, _ in four],
        dims="case",
        name="case",
        attrs={"long_name": "stage 2"},
    )
    for ax, u in zip(axes, ds.z_norm.values, strict=True):
        each = [share(done.sel(z_norm=u, lr2=lr, temperature=t)) for _, lr, _, t in four]
        plot.curve(ax, each, place, line=False)
        ax.set(ylim=(-0.05, 1.05), ylabel="share of seeds that learn")
        ax.set_title(f"$u = {u:g}$", loc="left")
    return fig


EXPERIMENTS = (
    Experiment(
        "abl_temp",
        says="Stage 2 with a large or small step at a high or low temperature of its noise.",
        trainings=Trainings(
            grid={
                "z_norm": [12.0, 16.0],
                "lr2": [LARGE, SMALL],
                "temperature": axis(
                    [COOL, 1.0],
                    "T_2/T_1",
                    "temperature of stage 2 over stage 1",
                    sets=at_temperature,
                ),
            },
            seeds=1024,
            quick={"seeds": 48},
        ),
        claims=(step_hides, small_step_learns, step_over_noise, noise_hides, noise_costs),
        figure=draw,
    ),
)
