"""The graph as the text has it, beside the one with edges inside every pattern."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, between, claim, exchange
from provingground.stats import Estimate, Everywhere, everywhere, last
from provingground.study import Experiment, Trainings, cases

from .shared import NETWORKS, PAPER, QUICK

other_wiring = exchange("disc_edges", ("always", "literal"))


def literal(ds: xr.Dataset, network: str) -> xr.DataArray:
    """Test error at the end on the literal graph."""
    return last(ds.test_error).sel(disc_edges="literal", network=network, drop=True)


@claim(
    "Theorem 3.4.4, the graph of section 3.5.1",
    below(0.01),
    rivals={"without encoding": exchange("network", ("GT", "GCN, core known"))},
)
def literal_gt_learns(ds: xr.Dataset) -> Everywhere:
    """on the literal graph too the test error of the GT is zero (below 0.01)"""
    return everywhere(stats.mean, literal(ds, "GT"))


@claim("the graph of section 3.5.1", between(-5, 5), kind="own",
       rivals={"edges always": other_wiring})  # fmt: skip
def literal_ring_2_is_silent(ds: xr.Dataset) -> Estimate:
    """on the literal graph at gamma_d = 0.4 ring 2 votes for neither class (mean winning margin)"""
    at = ds.margin.sel(disc_edges="literal", frac_disc=0.4, network="GT", ring=2, drop=True)
    return stats.mean(at)


@claim("found here", below(0.1), kind="own", rivals={"edges always": other_wiring})
def literal_needs_no_encoding(ds: xr.Dataset) -> Estimate:
    """there the GT without encoding learns too (test error below 0.1)"""
    return stats.mean(literal(ds, "GT, no encoding").sel(frac_disc=0.4))


def literal_gcn(y: xr.DataArray) -> xr.DataArray:
    """Of the GCN on the core ring of the literal graph, at the end and at gamma_d = 0.4."""
    return last(y.sel(disc_edges="literal", network="GCN, core known", frac_disc=0.4, drop=True))


@claim(
    "found here",
    above(0.1),
    kind="own",
    rivals={
        "edges always": other_wiring,
        "others as badly": lambda ds: ds.assign(loss_plain=ds.loss_disc),
    },
)
def literal_gcn_fails(ds: xr.Dataset) -> Estimate:
    """there the GCN on the core ring does not learn discriminative nodes, which have no neighbour
    of their own kind: their loss is over that of the others by over 0.1"""
    return stats.paired_difference(literal_gcn(ds.loss_disc), literal_gcn(ds.loss_plain))


@claim(
    "Theorem 3.4.6, the graph of section 3.5.1",
    below(0.01),
    expected="fails",
    because=(literal_gcn_fails,),
)
def literal_gcn_learns(ds: xr.Dataset) -> Estimate:
    """on the literal graph at gamma_d = 0.4 the test loss of the GCN on the core ring comes to zero
    (below 0.01)"""
    return stats.mean(literal_gcn(ds.test_loss))


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, ds.sizes["frac_disc"], title="Two ways to wire the graph")
    for ax, gamma in zip(axes, ds.frac_disc.values, strict=True):
        for wiring in ds.disc_edges.values:
            y = last(ds.test_error).sel(frac_disc=gamma, disc_edges=wiring, drop=True)
            plot.curve(ax, y, "network", label=f"edges: {wiring}", line=False)
        ax.set_ylabel("test error")
        ax.set_title(rf"$\gamma_d = {gamma:g}$")
    return fig


EXPERIMENTS = (
    Experiment(
        "wiring",
        says="Five networks on the literal graph and on that with edges inside every pattern.",
        trainings=Trainings(
            grid={
                **PAPER,
                "confusion_ratio": 0.1,
                "samples": 400,
                "steps": 4000,
                "frac_disc": [0.4, 0.7],
                "disc_edges": ["always", "literal"],
                "network": cases(NETWORKS),
            },
            seeds=20,
            quick={**QUICK, "steps": 400, "samples": 128, "seeds": 3},
        ),
        claims=(
            literal_gt_learns,
            literal_ring_2_is_silent,
            literal_needs_no_encoding,
            literal_gcn_fails,
            literal_gcn_learns,
        ),
        figure=draw,
    ),
)
