"""Beyond the paper's network: four classes (appendix B.5.5) and a GAT (B.5.3)."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, between, claim
from provingground.stats import Estimate, Everywhere, everywhere, last
from provingground.study import Experiment, Trainings, cases

from .shared import falls_at, time_of, untrained

# ------------------------------------------------------------------------------ four classes


@claim("appendix B.5.5", below(0.01), rivals={"not trained": untrained("test_error")})
def four_learned(ds: xr.Dataset) -> Estimate:
    """two copies of the network learn four classes: the test error, of either sign, is zero (below
    0.01)"""
    return stats.mean(last(ds.test_error))


@claim("appendix B.5.5, Lemma 3.4.7", above(0.3), rivals={"not trained": untrained("dist_bias")})
def four_find_core(ds: xr.Dataset) -> Everywhere:
    """in each copy the bias of ring 1, where the vote is, becomes larger than that of ring 2 (gap
    over 0.3)"""
    b = last(ds.dist_bias)
    return everywhere(stats.mean, b.sel(ring=1, drop=True) - b.sel(ring=2, drop=True))


def draw_four(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Four classes by two copies of the network")
    plot.curve(left, ds.test_error, "step", label="test error")
    plot.curve(left, ds.test_loss, "step", label="test loss")
    left.set_ylabel("test error; test hinge loss")
    for z in (1, 2):
        plot.curve(right, ds.dist_bias.mean("copy").sel(ring=z), "step", label=f"ring {z}")
    right.set_ylabel("distance bias, mean of both copies, $b_z$")
    return fig


# -------------------------------------------------------------------------------------- GAT


def slow(network: str, steps: float):
    """The Dataset in which one of the two takes so many steps."""
    return lambda ds: falls_at(lambda ds: xr.where(ds.network == network, steps, 40.0))(ds)


@claim("appendix B.5.3", below(0.01), rivals={"not trained": untrained("test_error")})
def gat_learns(ds: xr.Dataset) -> Everywhere:
    """a GAT, on ring 1, learns: the test error is zero (below 0.01)"""
    return everywhere(stats.mean, last(ds.test_error).sel(network="GAT", drop=True))


@claim("found here", between(0.5, 2), kind="own", rivals={"four times": slow("GAT", 160.0)})
def gat_as_fast(ds: xr.Dataset) -> Everywhere:
    """it takes the steps of the GT on ring 1, up to a factor 2 (ratio)"""
    time = time_of(ds)
    pair = (time.sel(network=n, drop=True) for n in ("GAT", "GT, core known"))
    return everywhere(stats.paired_ratio, *pair)


def draw_gat(ds: xr.Dataset):
    fig, axes = plot.figure(1, ds.sizes["frac_disc"], title="A GAT and the GT, both on ring 1")
    for ax, gamma in zip(axes, ds.frac_disc.values, strict=True):
        plot.curve(ax, ds.test_loss.sel(frac_disc=gamma, drop=True), "step", hue="network")
        ax.set_title(rf"$\gamma_d = {gamma:g}$")
    return fig


SMALL = dict(nodes=400, degree=48, confusion_ratio=0.1, samples=128)

EXPERIMENTS = (
    Experiment(
        "classes_four",
        says="Four classes by two copies of the network.",
        trainings=Trainings(
            simulator="four",
            grid={"lr": 0.01, "record": 61, "samples": 400, "confusion_ratio": 0.1, "steps": 8000},
            seeds=20,
            quick={**SMALL, "lr": 0.1, "record": 21, "steps": 600, "seeds": 3},
        ),
        claims=(four_learned, four_find_core),
        figure=draw_four,
    ),
    Experiment(
        "classes_gat",
        says="A GAT beside the GT, both on ring 1.",
        trainings=Trainings(
            grid={
                "lr": 0.01,
                "record": 61,
                "samples": 400,
                "confusion_ratio": 0.1,
                "steps": 4000,
                "frac_disc": [0.25, 0.4, 0.6],
                "network": cases(
                    {
                        "GT, core known": dict(bias_scale=0.0, core_only=1.0),
                        "GAT": dict(simulator="gat", bias_scale=0.0),
                    }
                ),
            },
            seeds=20,
            quick={"lr": 0.1, "record": 21, "samples": 128, "steps": 300, "seeds": 4},
        ),
        claims=(gat_learns, gat_as_fast),
        figure=draw_gat,
    ),
)
