"""Figure B.5, Tables B.5, B.6 and B.8: how the rings of published graphs vote.

Of PubMed few nodes have features here, so all of its nodes vote.
"""

from collections.abc import Mapping

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, equals, exchange, shuffle
from provingground.stats import Estimate, Everywhere, everywhere, mean, monotone, paired_difference
from provingground.study import Experiment, Trainings, cases

WON = {"Cora": 0.9568, "PubMed": 0.9550, "Actor": 0.8631}  # Table B.5
# Table B.6: nodes, edges, classes, features
STATISTICS = {"PubMed": (19717, 44324, 3, 500), "Actor": (7600, 26659, 5, 932)}
# Table B.8: mean number of nodes in a class, 10 sqrt(N), largest gap to that mean
SIZES = {"Cora": (386.86, 520.38, 431.14), "Actor": (1520.0, 871.78, 667.0)}

TRAININGS = Trainings(
    grid={
        "of": cases({name: {"graph": name.lower()} for name in WON}),
        "vote": cases({"of the ring": {}, "with its own": {"own_vote": 1.0}}),
        "share": 1.0,
    },
    simulator="votes",
    data="votes",
    seeds=3,
    quick={"share": 0.5, "seeds": 4},
)


def rings_of(ds: xr.Dataset, of: str | list[str]) -> xr.Dataset:
    """The graphs, with votes of the ring alone."""
    return ds.sel(of=of, vote="of the ring", drop=not isinstance(of, list))


def lead(ds: xr.Dataset, of: str | list[str]) -> Everywhere:
    """The margin of ring 1 over that of each other ring."""
    margin = rings_of(ds, of).margin
    others = margin.sel(ring=slice(2, None))
    return everywhere(paired_difference, margin.sel(ring=1, drop=True), others)


def told(ds: xr.Dataset, numbers: Mapping[str, float | int]) -> xr.DataArray:
    """Numbers of a table, by graph."""
    return xr.DataArray(list(numbers.values()), {"of": list(numbers)}, "of")


def differs(
    ds: xr.Dataset, table: Mapping[str, tuple[float | int, ...]], names: tuple[str, ...]
) -> Everywhere:
    """The sum of the relative differences from a row of a table, by graph."""
    found = rings_of(ds, list(table))
    off = (
        abs(found[name] / told(ds, {of: row[k] for of, row in table.items()}) - 1)
        for k, name in enumerate(names)
    )
    return everywhere(mean, sum(off, xr.DataArray(0.0)))


OTHER_ORDER = {"rings out of order": shuffle("ring")}


@claim("Figure B.5", above(0), rivals=OTHER_ORDER)
def core_of_cora(ds: xr.Dataset) -> Everywhere:
    """the core distance of Cora is 1: discriminative nodes of ring 1 have the largest normalised
    margin (its lead over each other ring)"""
    return lead(ds, "Cora")


@claim("Figure B.5, with all nodes as voters", above(0), kind="own", rivals=OTHER_ORDER)
def core_of_pubmed(ds: xr.Dataset) -> Everywhere:
    """the core distance of PubMed is 1, if all nodes vote (lead of ring 1 over each other ring)"""
    return lead(ds, "PubMed")


@claim(
    "Figure B.5",
    equals(0, within=0.03),
    rivals={"Cora": exchange("of", ("Cora", "Actor"))},
)
def actor_is_flat(ds: xr.Dataset) -> Everywhere:
    """on Actor the normalised margin differs little between rings (ring 1 less each other)"""
    return lead(ds, "Actor")


@claim(
    "Figure B.5",
    above(0),
    expected="fails",
    because=(actor_is_flat,),
    rivals=OTHER_ORDER,
)
def core_of_actor(ds: xr.Dataset) -> Everywhere:
    """on Actor ring 1 has the largest normalised margin (its lead over each other ring)"""
    return lead(ds, "Actor")


@claim("found here", above(0), kind="own", rivals=OTHER_ORDER)
def falls_up_to_7(ds: xr.Dataset) -> Everywhere:
    """on Cora, and on PubMed where all nodes vote, the normalised margin falls from ring to ring up
    to 7 (smallest step)"""
    margin = rings_of(ds, ["Cora", "PubMed"]).margin.sel(ring=slice(None, 7))
    return everywhere(lambda y: monotone(y, "ring"), margin, keep="ring")


@claim(
    "Figure B.5",
    above(0),
    expected="fails",
    because=(falls_up_to_7,),
    rivals=OTHER_ORDER,
)
def falls_to_the_end(ds: xr.Dataset) -> Estimate:
    """on Cora the normalised margin falls from ring to ring up to 12 (smallest step)"""
    return monotone(rings_of(ds, "Cora").margin, "ring")


@claim(
    "Figure B.5, with all nodes as voters",
    above(0),
    kind="own",
    expected="fails",
    because=(falls_up_to_7,),
    rivals=OTHER_ORDER,
)
def falls_to_the_end_of_pubmed(ds: xr.Dataset) -> Estimate:
    """on PubMed, if all nodes vote, the normalised margin falls from ring to ring up to 12
    (smallest step)"""
    return monotone(rings_of(ds, "PubMed").margin, "ring")


@claim(
    "found here",
    equals(0, within=0.05),
    kind="own",
    rivals={"the ring alone": exchange("vote", ("of the ring", "with its own"))},
)
def own_vote_gives_table_b5(ds: xr.Dataset) -> Everywhere:
    """where a node votes for itself too, ring 1 votes for the label of as many nodes as Table B.5
    has; on PubMed all nodes vote (share less the printed)"""
    won = ds.won.sel(vote="with its own", ring=1, drop=True)
    return everywhere(mean, won - told(ds, WON))


@claim(
    "Table B.5",
    equals(0, within=0.04),
    expected="fails",
    because=(own_vote_gives_table_b5,),
    rivals={"a tenth less": lambda ds: ds.assign(won=0.9 * ds.won)},
)
def won_as_printed(ds: xr.Dataset) -> Everywhere:
    """on Cora and Actor ring 1 votes for the label of as many nodes as printed (share less the
    printed)"""
    won = rings_of(ds, ["Cora", "Actor"]).won.sel(ring=1, drop=True)
    return everywhere(mean, won - told(ds, {n: WON[n] for n in ("Cora", "Actor")}))


@claim("found here", below(0.5), kind="own", rivals={"Cora": exchange("of", ("Cora", "Actor"))})
def actor_loses_its_vote(ds: xr.Dataset) -> Estimate:
    """ring 1 of Actor votes for the label of fewer than half of the nodes"""
    return mean(rings_of(ds, "Actor").won.sel(ring=1, drop=True))


@claim(
    "Table B.6",
    equals(0, within=1e-3),
    rivals={"other graphs": exchange("of", ("PubMed", "Actor"))},
)
def statistics_as_printed(ds: xr.Dataset) -> Everywhere:
    """nodes, edges without loops, classes and features of PubMed and Actor are the printed ones
    (sum of the relative differences)"""
    return differs(ds, STATISTICS, ("nodes", "edges", "classes", "features"))


# ---------------------------------------------------------------------------------- Table B.8


def balance(ds: xr.Dataset) -> xr.Dataset:
    """The columns of Table B.8."""
    mean_class, root = ds.nodes / ds.classes, 10 * ds.nodes**0.5
    return ds.assign(mean_class=mean_class, root=root)


@claim(
    "Table B.8", equals(0, within=1e-3), rivals={"other graphs": exchange("of", ("Cora", "Actor"))}
)
def class_sizes_as_printed(ds: xr.Dataset) -> Everywhere:
    """nodes in the mean class of Cora and Actor, 10 sqrt(N), and the largest gap between a class
    and the mean class are the printed ones (sum of the relative differences)"""
    return differs(balance(ds), SIZES, ("mean_class", "root", "class_gap"))


def over_root(ds: xr.Dataset, of: list[str]) -> Everywhere:
    """The largest gap over 10 sqrt(N)."""
    found = balance(rings_of(ds, of))
    return everywhere(mean, found.class_gap / found.root)


@claim(
    "Table B.8",
    below(1),
    bound="paper",
    rivals={"PubMed": exchange("of", ("Cora", "PubMed"))},
)
def classes_are_balanced(ds: xr.Dataset) -> Everywhere:
    """the largest gap between a class of Cora or Actor and the mean class is smaller than
    10 sqrt(N) (ratio)"""
    return over_root(ds, list(SIZES))


@claim(
    "Table B.8, on PubMed",
    above(1),
    kind="own",
    bound="paper",
    rivals={"Cora": exchange("of", ("Cora", "PubMed"))},
)
def pubmed_is_not_balanced(ds: xr.Dataset) -> Everywhere:
    """the largest gap between a class of PubMed, which the table leaves out, and the mean class is
    larger than 10 sqrt(N) (ratio)"""
    return over_root(ds, ["PubMed"])


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="How the rings of published graphs vote")
    alone = ds.sel(vote="of the ring", drop=True)
    plot.curve(left, alone.margin, "ring", hue="of")
    left.set_ylabel(r"normalised margin $\bar\Delta(z)$ (PubMed: all nodes vote)")
    for vote in ds.vote.values:
        plot.curve(right, ds.won.sel(vote=vote, ring=1), "of", label=f"vote {vote}", line=False)
    for k, name in enumerate(WON):
        plot.theory_curve(right, [k - 0.3, k + 0.3], [WON[name]] * 2, "Table B.5")
    right.set_ylabel("nodes whose ring 1 votes for their label")
    right.set_xlabel("graph (PubMed: all nodes vote)")
    right.set_ylim(0, 1.05)
    return fig


EXPERIMENTS = (
    Experiment(
        "figb5",
        says="Which distance votes for the labels of published graphs; of PubMed all nodes vote.",
        trainings=TRAININGS,
        claims=(
            core_of_cora,
            core_of_pubmed,
            actor_is_flat,
            core_of_actor,
            falls_up_to_7,
            falls_to_the_end,
            falls_to_the_end_of_pubmed,
            own_vote_gives_table_b5,
            won_as_printed,
            actor_loses_its_vote,
            statistics_as_printed,
            class_sizes_as_printed,
            classes_are_balanced,
            pubmed_is_not_balanced,
        ),
        figure=draw,
    ),
)
