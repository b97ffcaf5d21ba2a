"""What attention and the distance encoding are good for: five networks on one graph."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim, exchange
from provingground.stats import Estimate, Everywhere, everywhere, last
from provingground.study import Experiment, Trainings, cases

from .shared import NETWORKS, PAPER, QUICK, at_network, time_of

LAST = "GCN, all rings"


def error_of(ds: xr.Dataset, network: str) -> Everywhere:
    """Test error of a network at the end, at each number of labels."""
    return everywhere(stats.mean, last(at_network(network, ds).test_error))


@claim(
    "Theorem 3.4.4",
    below(0.01),
    rivals={"without encoding": exchange("network", ("GT", "GT, no encoding"))},
)
def gt_learns(ds: xr.Dataset) -> Everywhere:
    """the test error of the GT with encoding is zero (below 0.01)"""
    return error_of(ds, "GT")


@claim(
    "found here, a synthetic twin of Figure 3.9",
    above(0.2),
    kind="own",
    rivals={"with encoding": exchange("network", ("GT", "GT, no encoding"))},
)
def encoding_is_needed(ds: xr.Dataset) -> Everywhere:
    """without the encoding the test error of the GT stays above 0.2"""
    return error_of(ds, "GT, no encoding")


@claim(
    "Theorem 3.4.8; with B.5.3 for a GAT",
    below(0.01),
    rivals={"all rings": exchange("network", ("GT, core known", "GT, no encoding"))},
)
def core_known(ds: xr.Dataset) -> Everywhere:
    """on the core ring alone no encoding is needed: the test error is zero (below 0.01)"""
    return error_of(ds, "GT, core known")


@claim(
    "Theorem 3.4.6",
    below(0.01),
    rivals={"all rings": exchange("network", ("GCN, core known", LAST))},
)
def gcn_with_core(ds: xr.Dataset) -> Everywhere:
    """with the core ring given, the GCN learns too: the test error is zero (below 0.01)"""
    return error_of(ds, "GCN, core known")


@claim(
    "found here",
    above(0.4),
    kind="own",
    rivals={"core ring": exchange("network", ("GCN, core known", LAST))},
)
def gcn_without_core(ds: xr.Dataset) -> Everywhere:
    """over all rings the GCN does not learn: the test error stays above 0.4"""
    return error_of(ds, LAST)


@claim(
    "found here; Theorem 3.4.8 calls both equal up to constants",
    above(2),
    kind="own",
    rivals={"the other way": exchange("network", ("GT", "GT, core known"))},
)
def finding_takes_steps(ds: xr.Dataset) -> Estimate:
    """with the most labels finding the core costs over twice the steps of knowing it (ratio)"""
    time = time_of(ds).isel(samples=-1, drop=True)
    return stats.paired_ratio(*(time.sel(network=n, drop=True) for n in ("GT", "GT, core known")))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Attention, encoding and the core ring")
    few, many = int(ds.samples[0]), int(ds.samples[-1])
    plot.curve(left, ds.test_loss.sel(samples=many), "step", hue="network")
    left.set_ylabel(rf"test hinge loss, $|\mathcal{{L}}| = {many}$")
    for n in (few, many):
        y = last(ds.test_error).sel(samples=n).assign_attrs(ds.test_error.attrs)
        plot.curve(right, y, "network", label=rf"$|\mathcal{{L}}| = {n}$", line=False)
    right.set_ylabel("test error")
    right.set_xlabel("network")
    return fig


EXPERIMENTS = (
    Experiment(
        "pe_ablation",
        says="What attention and the distance encoding are good for: five networks on one graph.",
        trainings=Trainings(
            grid={
                **PAPER,
                "confusion_ratio": 0.1,
                "steps": 4000,
                "samples": [50, 200],
                "network": cases(NETWORKS),
            },
            seeds=20,
            quick={**QUICK, "steps": 400, "samples": [50, 120], "seeds": 4},
        ),
        claims=(
            gt_learns,
            encoding_is_needed,
            core_known,
            gcn_with_core,
            gcn_without_core,
            finding_takes_steps,
        ),
        figure=draw,
    ),
)
