"""Figure 3.7: steps that a GCN on the core ring needs, over the discriminative fraction."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, between, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment

from .shared import (
    EARLY,
    STEPS,
    at_network,
    falls_at,
    solved,
    success_at,
    time_exponent,
    time_of,
)

UP_TO, ABOVE = (0.0, 0.4), (0.4, 1.0)


def gcn(ds: xr.Dataset) -> xr.Dataset:
    return at_network("GCN, core known", ds)


def power(exponent: float, probe: str = "test_loss"):
    return falls_at(lambda ds: 30 * ds.frac_disc**exponent, probe)


@claim(
    "(3.12), Figure 3.7",
    equals(-2, within=0.5),
    law=power(-2.0),
    rivals={"-1": power(-1.0), "no change": power(0.0)},
)
def gcn_steps_law(ds: xr.Dataset) -> Estimate:
    """the steps fall as the discriminative fraction to the power -2"""
    return time_exponent(gcn(ds))


@claim("found here", above(1), kind="own", rivals={"exchanged": lambda ds: ds.assign(
    loss_disc=ds.loss_plain, loss_plain=ds.loss_disc)})  # fmt: skip
def disc_decide(ds: xr.Dataset) -> Everywhere:
    """up to gamma_d = 0.6 discriminative nodes are learned last: their steps over those of the
    others"""
    at = gcn(ds).sel(frac_disc=[g for g in ds.frac_disc.values if g <= 0.6])
    times = (time_of(at, probe, EARLY) for probe in ("loss_disc", "loss_plain"))
    return everywhere(stats.paired_ratio, *times)


@claim(
    "found here",
    between(-0.9, 0.3),
    kind="own",
    law=power(-0.3, "loss_plain"),
    rivals={"-1": power(-1.0, "loss_plain"), "-2": power(-2.0, "loss_plain")},
)
def plain_slower(ds: xr.Dataset) -> Estimate:
    """from gamma_d = 0.4 on the steps of nodes that are not discriminative fall slower than
    1 / gamma_d (exponent)"""
    return stats.power_law(time_of(gcn(ds), "loss_plain", EARLY), "frac_disc", ABOVE).slope


@claim(
    "found here",
    below(-1.5),
    kind="own",
    rivals={"-1": power(-1.0, "loss_disc"), "no change": power(0.0, "loss_disc")},
)
def disc_steep(ds: xr.Dataset) -> Estimate:
    """up to gamma_d = 0.4 the steps of discriminative nodes fall faster than its power -1.5
    (exponent)"""
    return stats.power_law(time_of(gcn(ds), "loss_disc", EARLY), "frac_disc", UP_TO).slope


@claim(
    "found here",
    equals(-1, within=0.5),
    kind="own",
    law=power(-1.0, "loss_disc"),
    rivals={"-2": power(-2.0, "loss_disc"), "no change": power(0.0, "loss_disc")},
)
def disc_slow(ds: xr.Dataset) -> Estimate:
    """from gamma_d = 0.4 on they fall as its power -1, not -2 (exponent)"""
    return stats.power_law(time_of(gcn(ds), "loss_disc", EARLY), "frac_disc", ABOVE).slope


@claim(
    "(3.12), Figure 3.7",
    equals(-2, within=0.5),
    expected="fails",
    because=(disc_slow, plain_slower),
    law=power(-2.0),
    rivals={"-1": power(-1.0)},
)
def gcn_steps_law_above(ds: xr.Dataset) -> Estimate:
    """from a discriminative fraction of 0.4 on, too, the steps fall as its power -2 (exponent)"""
    return time_exponent(gcn(ds), window=ABOVE)


@claim(
    "found here",
    above(0.5),
    kind="own",
    rivals={"gamma_d^-4": success_at(lambda ds: 3 * (ds.frac_disc / 0.6) ** -4)},
)
def gcn_lacks_no_labels(ds: xr.Dataset) -> Everywhere:
    """with the labels of this figure (128 at quick scale) and as many steps as it takes the GCN
    succeeds at every fraction (rate)"""
    return everywhere(stats.share, solved(gcn(ds)))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Steps of a GCN on the core ring")
    time = time_of(gcn(ds))
    fit = stats.power_law(time, "frac_disc")
    plot.law(left, time, "frac_disc", fit=fit, predicted=-2.0, label="GCN, core known")
    for probe, words in (("loss_disc", "discriminative nodes"), ("loss_plain", "other nodes")):
        y = time_of(gcn(ds), probe, EARLY)
        plot.curve(right, y, "frac_disc", label=words, log="xy", line=False)
    right.set_ylabel("steps until their loss is below 0.1, $T$")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig3_7",
        says="Steps that the GCN on the core ring needs, over the fraction; also Figure B.6(b).",
        trainings=STEPS,
        claims=(
            gcn_steps_law,
            gcn_steps_law_above,
            disc_decide,
            plain_slower,
            disc_steep,
            disc_slow,
            gcn_lacks_no_labels,
        ),
        figure=draw,
    ),
)
