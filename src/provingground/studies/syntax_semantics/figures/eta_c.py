"""The critical step size: above it the hard part is not learned. A law in all its parameters."""

from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, above, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere, threshold
from provingground.study import Experiment, Trainings, Values, axis, cases

from .. import exact
from ..exact import LOG2
from .rest import below_the_gate
from .shared import COOL, ending, over_settings, rest, rest_at

VARIATIONS = {
    "u = 6": {"z_norm": 6.0},
    "u = 12": {},
    "u = 12, r = 1.5": {"zeta_norm": 1.5},
    "u = 12, r = 5": {"zeta_norm": 5.0},
    "u = 16": {"z_norm": 16.0},
    r"$\lambda = .02$": {"weight_decay": 0.02},
    r"$\lambda = .2$, r = 4": {"weight_decay": 0.2, "zeta_norm": 4.0},
    r"$\tau_0 = .35$": {"init_std": 0.35},
    r"$\tau_0 = 1$": {"init_std": 1.0},
    r"$\gamma_0 = .7$": {"margin": 0.7},
    r"$\gamma_0 = 1.7$": {"margin": 1.7},
    "u = 30, r = 8": {"z_norm": 30.0, "zeta_norm": 8.0, "init_std": 0.25},
}
QUICK = ("u = 6", "u = 12", "u = 12, r = 1.5", "u = 12, r = 5", r"$\lambda = .02$",
         r"$\tau_0 = 1$", r"$\gamma_0 = .7$")  # fmt: skip


def ratios(values: Any) -> Values:
    return axis(list(values), r"\eta_2/\eta_c", "step over the critical one", sets=below_the_gate)


def noise(ds: xr.Dataset) -> xr.DataArray:
    """The s.d. of the noise part of V in stage 2."""
    return ds.init_std * COOL**0.5


def learners(ds: xr.Dataset) -> xr.DataArray:
    """Which seeds learn more than half of what one side at rest gives."""
    at_rest = rest(ds.isel(ratio=0)).loss_hard
    done = (ending(ds.loss_hard, 2) < (LOG2 + at_rest) / 2).astype(float)
    return done.assign_attrs(long_name="share of seeds that learn the hard part", symbol="")


def critical(rates: xr.DataArray) -> Estimate:
    return threshold(rates, "ratio", 0.5, method="logistic")


def as_if(law: Any) -> Altered:
    """The Dataset in which half of the seeds learn at `law(ds)`, as sharply as was seen."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        at = rest(ds.isel(ratio=0))
        ours = exact.critical_lr(noise(ds), at.hard, ds.z_norm, ds.zeta_norm, at.slope)
        edge = law(ds, at) / ours
        within = np.log(ds.ratio / edge)
        spread = xr.DataArray(np.linspace(-0.35, 0.35, ds.sizes["seed"]), dims="seed")
        learned = xr.where(within < spread, at.loss_hard, LOG2)
        made = learned.assign_coords(seed=ds.seed).broadcast_like(ds.loss_hard)
        return ds.assign(loss_hard=made.transpose(*ds.loss_hard.dims))

    return altered


def parts(ds: xr.Dataset, at: Any) -> tuple[Any, Any]:
    keep = exact.keeping_lr(at.hard, ds.z_norm, ds.zeta_norm, at.slope)
    return keep, exact.finding_lr(noise(ds), ds.z_norm, ds.zeta_norm, at.slope)


def joined(ds: xr.Dataset, at: Any) -> Any:
    return exact.critical_lr(noise(ds), at.hard, ds.z_norm, ds.zeta_norm, at.slope)


@claim(
    "derived here",
    equals(1, times=2),
    kind="own",
    law=as_if(joined),
    rivals={
        "a tenth of it": as_if(lambda ds, at: joined(ds, at) / 10),
        "ten times it": as_if(lambda ds, at: 10 * joined(ds, at)),
    },
)
def eta_c_law(ds: xr.Dataset) -> Everywhere:
    """half of the seeds learn the hard part at the derived critical step, in which nothing is
    fitted (ratio)"""
    return everywhere(critical, learners(ds), keep="ratio")


@claim(
    "derived here",
    equals(1, times=2),
    kind="own",
    law=as_if(joined),
    rivals={
        "500 u^-4": as_if(lambda ds, at: 500 * ds.z_norm**-4.0),
        "keeping alone": as_if(lambda ds, at: parts(ds, at)[0]),
        "finding alone": as_if(lambda ds, at: parts(ds, at)[1]),
        "r alone": as_if(lambda ds, at: 0.026 * (ds.zeta_norm / 3) ** 2),
    },
)
def eta_c_settings(ds: xr.Dataset) -> Everywhere:
    """so it is at settings that differ in u, r, the weight decay, the noise and the margin"""
    return everywhere(critical, learners(ds), keep="ratio")


def in_units(ds: xr.Dataset, unit: Any) -> list[Estimate]:
    """The critical step of every setting, over some unit."""
    at = rest(ds.isel(ratio=0))
    scale = (joined(ds, at) / unit).broadcast_like(ds.variation)
    rates = learners(ds)
    return [critical(rates.sel(variation=v)) / float(1 / scale.sel(variation=v))
            for v in ds.variation.values]  # fmt: skip


@claim("found here", above(4), kind="own", rivals={
    "500 u^-4": as_if(lambda ds, at: 500 * ds.z_norm**-4.0)})  # fmt: skip
def u4_moves(ds: xr.Dataset) -> Estimate:
    """a law in u alone does not hold: the critical step times u^4 moves by a factor over 4 among
    the settings"""
    found = in_units(ds, ds.z_norm**-4.0)
    top, bottom = stats.worst(found, "high"), stats.worst(found, "low")
    return Estimate(top.value / bottom.value, top.low / bottom.high, top.high / bottom.low)


def gated(settings: Any) -> bool:
    """One side can be learned, found and kept; steps are at most 150 000 at a third of the gate."""
    at, tau = rest_at(settings), settings["init_std"] * COOL**0.5
    gate = exact.critical_lr(tau, at.hard, settings["z_norm"], settings["zeta_norm"], at.slope)
    return bool(
        2 <= settings["z_norm"] / settings["zeta_norm"] <= 10
        and at.loss_hard < 0.57
        and 0.1 <= tau / at.hard <= 0.45  # colder, it may be found at larger steps
        and settings["k2"] / (gate / 3 * settings["weight_decay"]) <= 1.5e5
        and 4 * gate * settings["weight_decay"] < 0.5
    )


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(
        1, 2, title="The step size that shuts out the hard part", seeds=ds.sizes["seed"]
    )
    rates = learners(ds)
    each = [critical(rates.sel(variation=v)) for v in ds.variation.values]
    over_settings(left, each, ds.variation, "critical step over the derived one", 1.0)
    left.tick_params(axis="x", rotation=60)
    left.set_ylim(0, 2.5)
    predicted = joined(ds, rest(ds.isel(ratio=0))).broadcast_like(ds.variation).values
    order, found = np.argsort(predicted), in_units(ds, 1.0)
    names = {"long_name": "derived critical step", "symbol": r"\eta_c"}
    x = xr.DataArray(predicted[order], dims="law", name="law", attrs=names)
    plot.curve(right, [found[i] for i in order], x, label="measured", line=False, log="xy")
    ends = [float(x.min()), float(x.max())]
    plot.theory_curve(right, ends, ends, "derived")
    right.set_ylabel("measured critical step")
    return fig


def draw_base(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Who learns, against the critical step", width=4.2)
    plot.curve(ax, learners(ds), "ratio", log="x")
    plot.theory_curve(ax, [1.0, 1.0], [0, 1], "derived")
    return fig


STEPS = list(np.geomspace(0.3, 3.6, 7))
EXPERIMENTS = (
    Experiment(
        "eta_c",
        says="The largest step that learns the hard part, at settings that differ in everything.",
        trainings=Trainings(
            grid={"z_norm": 12.0, "variation": cases(VARIATIONS), "ratio": ratios(STEPS)},
            seeds=128,
            quick={"variation": cases({k: VARIATIONS[k] for k in QUICK}), "seeds": 16},
        ),
        claims=(eta_c_settings, u4_moves),
        figure=draw,
    ),
    Experiment(
        "eta_c_base",
        says="The same at one setting, from which the others of its domain are drawn.",
        trainings=Trainings(
            grid={"z_norm": 12.0, "ratio": ratios(STEPS)},
            seeds=128,
            quick={"seeds": 12},
            # The margin acts through the slope, which spans a factor of five; k2 is in units of
            # the time in which weights are forgotten. Both have no room for a factor of ten.
            domain={
                "z_norm": (4, 40),
                "zeta_norm": (1, 10),
                "weight_decay": (0.01, 0.3),
                "init_std": (0.2, 3),
                "margin": (0.6, 1.8),
                "k2": (4, 12),
            },
            where=gated,
        ),
        claims=(eta_c_law,),
        figure=draw_base,
    ),
)
