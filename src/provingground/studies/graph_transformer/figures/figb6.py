"""Figure B.6: steps of the GT and of a GCN on the core ring, over the discriminative fraction."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim, equals
from provingground.stats import Estimate
from provingground.study import Experiment

from .shared import EARLY, STEPS, at_network, falls_at, time_exponent, time_of

LATE = "GCN, core known"


def power(exponent: float, probe: str = "test_loss"):
    """Both networks take steps that are a power of the fraction."""
    return falls_at(lambda ds: 60 * ds.frac_disc**exponent, probe)


def spread(ds: xr.Dataset, network: str) -> Estimate:
    """Steps at the smallest fraction over those at 0.6."""
    y = time_of(at_network(network, ds)).sortby("frac_disc").sel(frac_disc=slice(0, 0.6))
    return stats.paired_ratio(*(y.isel(frac_disc=k, drop=True) for k in (0, -1)))


@claim(
    "found here",
    equals(-1, within=0.5),
    kind="own",
    law=power(-1.0, "loss_disc"),
    rivals={"no change": power(0.0, "loss_disc"), "-2": power(-2.0, "loss_disc")},
)
def gt_disc_slow(ds: xr.Dataset) -> Estimate:
    """the GT too takes more steps for discriminative nodes the fewer they are, as 1 / gamma_d
    (exponent)"""
    times = time_of(at_network("GT", ds), "loss_disc", EARLY)
    return stats.power_law(times, "frac_disc").slope


@claim(
    "(3.8), Figure B.6(a)",
    equals(0, within=0.25),
    expected="fails",
    because=(gt_disc_slow,),
    law=power(0.0),
    rivals={"-1": power(-1.0)},
)
def gt_steps_flat(ds: xr.Dataset) -> Estimate:
    """the steps that the GT needs do not depend on the discriminative fraction (exponent)"""
    return time_exponent(at_network("GT", ds))


@claim("Figure B.6(a)", below(3.5), rivals={"-2": power(-2.0)})
def gt_steps_spread(ds: xr.Dataset) -> Estimate:
    """from a fraction of 0.6 to the smallest the steps of the GT grow by less than 3.5 times"""
    return spread(ds, "GT")


@claim("Figure B.6(b)", above(5), rivals={"-1": power(-1.0)})
def gcn_steps_spread(ds: xr.Dataset) -> Estimate:
    """those of the GCN by over 5 times"""
    return spread(ds, LATE)


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Steps of the GT and of a GCN on the core ring", width=4.6)
    for name in ds.network.values:
        time = time_of(at_network(str(name), ds))
        plot.law(ax, time, "frac_disc", fit=stats.power_law(time, "frac_disc"), label=str(name))
    return fig


EXPERIMENTS = (
    Experiment(
        "figb6",
        says="Steps that the GT needs over the fraction, beside those of the GCN.",
        trainings=STEPS,
        claims=(gt_steps_flat, gt_disc_slow, gt_steps_spread, gcn_steps_spread),
        figure=draw,
    ),
)
