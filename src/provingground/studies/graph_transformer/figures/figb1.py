"""Figures B.1 to B.3, Tables B.1 to B.3: main directions of the features of a class.

PubMed stands here with the 1060 nodes whose features are at hand.
"""

from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import Altered, above, below, between, claim, equals
from provingground.stats import Everywhere, everywhere, mean, paired_difference, paired_ratio
from provingground.study import Experiment, Trainings, cases

# Tables B.1 to B.3: percent of each class.
PRINTED = {
    "Cora": (82.05, 88.02, 82.54, 78.12, 78.17, 83.56, 76.11),
    "PubMed": (82.18, 93.34, 80.48),
    "Actor": (42.09, 53.33, 57.85, 60.93, 64.79),
}
PART = {"PubMed": " (1060 nodes)"}
OF = {
    f"{name} {kind + 1}{PART.get(name, '')}": {"graph": name.lower(), "kind": kind}
    for name, shares in PRINTED.items()
    for kind in range(len(shares))
}
WHOLE = [of for of in OF if not of.startswith("PubMed")]
PARTLY = [of for of in OF if of.startswith("PubMed")]

FEW = ("Cora 1", "Cora 4", "PubMed 1 (1060 nodes)", "Actor 1", "Actor 5")

PUBLISHED: dict[str, Any] = dict(simulator="patterns", data="described")


def printed(ds: xr.Dataset, of: list[str]) -> xr.DataArray:
    """The shares of the tables."""
    shares = [PRINTED[o.split()[0]][int(o.split()[1]) - 1] / 100 for o in of]
    return xr.DataArray(shares, {"of": of}, "of")


def deviation(ds: xr.Dataset, of: list[str]) -> Everywhere:
    """Share of discriminative nodes less the one in the table, of each class."""
    return everywhere(mean, ds.near.sel(of=of) - printed(ds, of))


def raised(probe: str, by: float) -> Altered:
    """The Dataset with a probe so much larger."""
    return lambda ds: ds.assign({probe: ds[probe] + by})


def swapped(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset in which a class and the others have each other's shares, and differ by 0.2."""
    return ds.assign(near=ds.near_others + 0.2, near_others=ds.near)


@claim("Tables B.1, B.3", equals(0, within=0.05), rivals={"a tenth more": raised("near", 0.1)})
def shares_as_printed(ds: xr.Dataset) -> Everywhere:
    """in each class of Cora and Actor the share of discriminative nodes is the printed one (ours
    less the printed)"""
    return deviation(ds, WHOLE)


@claim(
    "Table B.2, by the features of 1060 nodes",
    equals(0, within=0.05),
    kind="own",
    rivals={"a tenth more": raised("near", 0.1)},
)
def shares_of_pubmed(ds: xr.Dataset) -> Everywhere:
    """in each class of PubMed the 1060 nodes with features have the printed share of
    discriminative nodes (ours less the printed)"""
    return deviation(ds, PARTLY)


@claim(
    "found here",
    above(-0.1),
    kind="own",
    rivals={"only the own class": swapped},
)
def others_are_near_too(ds: xr.Dataset) -> Everywhere:
    """what the tables call discriminative does not tell classes apart: nodes of the other classes
    lie near the mean of a class about as often as its own; of PubMed 1060 nodes (their share less
    its own)"""
    return everywhere(paired_difference, ds.near_others, ds.near)


# ------------------------------------------------------------------------------------ controls


@claim(
    "found here",
    below(0.05),
    kind="own",
    rivals={"a tenth more": lambda ds: ds.assign(near=ds.near + 0.2 * (ds.shuffled < 0.5))},
)
def shuffled_are_near_too(ds: xr.Dataset) -> Everywhere:
    """features that are shuffled within a class, each by itself, leave as many nodes near the
    mean; of PubMed 1060 nodes (share as published less the share shuffled)"""
    pair = (ds.near.sel(features=f, drop=True) for f in ("as published", "shuffled"))
    return everywhere(paired_difference, *pair)


@claim(
    "found here",
    between(0.9, 1.5),
    kind="own",
    rivals={"twice": lambda ds: ds.assign(top=ds.top * (1 + (ds.shuffled < 0.5)))},
)
def rank_is_that_of_shuffled(ds: xr.Dataset) -> Everywhere:
    """the three largest eigenvalues of a class hold hardly more than with features shuffled within
    it; of PubMed 1060 nodes (ratio)"""
    pair = (ds.top.sel(features=f, drop=True) for f in ("as published", "shuffled"))
    return everywhere(paired_ratio, *pair)


def top(ds: xr.Dataset, among: list[str], features: str) -> Everywhere:
    """Share of the three largest eigenvalues, of those classes that the Dataset has."""
    of = [of for of in ds.of.values if of in among]
    return everywhere(mean, ds.top.sel(of=of, features=features, drop=True))


LOW_RANK = {"of low rank": lambda ds: ds.assign(top=1 - 0.1 * ds.top)}


@claim(
    "Figures B.1, B.3",
    above(0.5),
    expected="fails",
    because=(rank_is_that_of_shuffled,),
    rivals={"a tenth of it": lambda ds: ds.assign(top=0.1 * ds.top)},
)
def nearly_low_rank(ds: xr.Dataset) -> Everywhere:
    """the features of a class of Cora or Actor are almost of low rank: three eigenvalues hold most
    of their sum"""
    return top(ds, WHOLE, "as published")


@claim("found here", below(0.5), kind="own", rivals=LOW_RANK)
def centred_are_not_low_rank(ds: xr.Dataset) -> Everywhere:
    """with the mean of the class taken off, as a covariance has it, three eigenvalues of a class of
    Cora or Actor hold less than half of their sum"""
    return top(ds, WHOLE, "centred")


@claim("Figure B.2, by the features of 1060 nodes", below(0.5), kind="own", rivals=LOW_RANK)
def pubmed_is_not_low_rank(ds: xr.Dataset) -> Everywhere:
    """of the 1060 nodes of PubMed with features, three eigenvalues of a class hold less than half
    of their sum"""
    return top(ds, PARTLY, "as published")


def draw_shares(ds: xr.Dataset):
    title = "Nodes near the mean of a class, in its three main directions"
    ds = ds.assign_coords(of=[str(of).split(" (")[0] for of in ds.of.values])
    fig, (ax,) = plot.figure(width=6.2, title=title)
    plot.curve(ax, ds.near, "of", label="of the class", line=False)
    plot.curve(ax, ds.near_others, "of", label="of other classes", line=False)
    for k, of in enumerate(ds.of.values):
        share = float(printed(ds, [str(of)])[0])
        plot.theory_curve(ax, [k - 0.3, k + 0.3], [share] * 2, "as printed (Tables B.1 to B.3)")
    ax.set_ylabel("share of nodes")
    ax.set_xlabel("class (PubMed: 1060 nodes)")
    ax.set_ylim(0, 1.05)
    return fig


def draw_spectra(ds: xr.Dataset):
    title = "Eigenvalues of the features of a class, as published, shuffled and centred"
    fig, axes = plot.figure(1, 3, width=7.4, title=title)
    for ax, name in zip(axes, PRINTED, strict=True):
        first = next(of for of in ds.of.values if str(of).startswith(name))
        plot.curve(ax, ds.spectrum.sel(of=first), "rank", hue="features", log="y")
        ax.set_title(f"{first}")
        ax.set_ylabel("eigenvalue over their sum")
    return fig


EXPERIMENTS = (
    Experiment(
        "figb1",
        says="Which nodes of a class lie near its mean: Tables B.1 to B.3, with all nodes of Cora "
        "and Actor, and 1060 of PubMed.",
        trainings=Trainings(grid={"of": cases(OF), "share": 1.0}, seeds=3, **PUBLISHED),
        claims=(shares_as_printed, shares_of_pubmed, others_are_near_too),
        figure=draw_shares,
    ),
    Experiment(
        "figb1_spectra",
        says="Eigenvalues of the features of a class, beside those of shuffled features; of PubMed "
        "1060 nodes.",
        trainings=Trainings(
            grid={
                "of": cases(OF),
                "features": cases(
                    {"as published": {}, "shuffled": {"shuffled": 1.0}, "centred": {"centred": 1.0}}
                ),
                "share": 0.9,
            },
            seeds=6,
            quick={"of": cases({of: OF[of] for of in FEW}), "share": 0.5, "seeds": 3},
            **PUBLISHED,
        ),
        claims=(
            rank_is_that_of_shuffled,
            nearly_low_rank,
            centred_are_not_low_rank,
            pubmed_is_not_low_rank,
            shuffled_are_near_too,
        ),
        figure=draw_spectra,
    ),
)
