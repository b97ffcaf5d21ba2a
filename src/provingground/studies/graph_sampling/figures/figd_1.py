"""Graphs: who depends on whom (Figure D.1), masses of rows (D.8), and FastGCN's chances."""

from collections.abc import Callable, Sequence
from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import Altered, above, below, claim, curve, equals
from provingground.stats import Everywhere, everywhere, mean
from provingground.study import Experiment, Trainings, cases

from .. import theory
from .shared import bare, named, together

GRAPHS = {
    "(10, 1), 5%": dict(degree_1=10, degree_2=1, group_share=0.05),
    "(10, 1), 50%": dict(degree_1=10, degree_2=1, group_share=0.5),
    "(20, 2), 5%": dict(degree_1=20, degree_2=2, group_share=0.05),
    "(50, 2), 5%": dict(degree_1=50, degree_2=2, group_share=0.05),
    "(20, 10), 50%": dict(degree_1=20, degree_2=10, group_share=0.5),
}
Masses = Callable[[Any, Any], Any]
REGULAR = {f"{d}": dict(degree_1=d, degree_2=d) for d in (3, 4, 5)}

# ------------------------------------------------------------------------------ Figure D.1


@claim(
    "Figure D.1, (5.12)",
    above(1.5),
    kind="own",
    rivals={"(5.12) has two": lambda ds: ds.assign(labels_three=ds.labels_two)},
)
def third_sees_more(ds: xr.Dataset) -> Everywhere:
    """with the three aggregations of (5.12) over 1.5 times as many labels share a feature as with
    the two of (D.24) (ratio)"""
    return everywhere(mean, ds.labels_three / ds.labels_two)


@claim(
    "Appendix D.2, Figure D.1",
    below(1),
    bound="paper",
    expected="fails",
    because=(third_sees_more,),
)
def dependent_labels(ds: xr.Dataset) -> Everywhere:
    """a label of the class (5.12) depends on at most (1 + δ)^4 others (ratio, regular graphs)"""
    return everywhere(mean, ds.labels_three / (1.0 + ds.max_degree) ** 4)


# -------------------------------------------------------------------------------- (D.7), (D.8)


def realised(f: Callable[..., float], ds: xr.Dataset) -> xr.DataArray:
    """A function of degrees and sizes at every setting, with the mean degrees that were drawn: some
    edges of hubs are double, and dropped."""
    d = bare(ds.mean_degree.mean("seed"))
    first, second, share = d.isel(group=0), d.isel(group=1), bare(ds.group_share.astype(float))

    def one(d1: float, d2: float, share: float) -> float:
        return f((d1, d2), (share, 1 - share))

    return xr.apply_ufunc(one, first, second, share, vectorize=True)


def masses(ds: xr.Dataset, f: Masses) -> xr.DataArray:
    """The sums of rows of both groups over the columns of both, by a function of theory."""

    def over(place: str, values: Sequence[xr.DataArray]) -> xr.DataArray:
        return xr.concat(values, xr.DataArray([1, 2], dims=place, name=place))

    def one(row: int, column: int) -> xr.DataArray:
        return realised(lambda d, n: float(f(d, n)[row][column]), ds)

    return over("group", [over("column", [one(r, c) for c in range(2)]) for r in range(2)])


def mass_is(f: Masses) -> Altered:
    """The Dataset whose rows have the masses of a function of theory."""

    def wanted(ds: xr.Dataset) -> xr.DataArray:
        return masses(ds, f) + 0 * bare(ds.row_mass).mean("seed")

    return curve("row_mass", wanted)


def columns_exchanged(ds: xr.Dataset) -> xr.Dataset:
    return ds.assign(row_mass=ds.row_mass.copy(data=ds.row_mass.values[..., ::-1]))


@claim(
    "(D.8), with loops",
    equals(1, within=0.2),
    kind="corrected",
    law=mass_is(theory.row_mass_with_loops),
    rivals={"without loops": mass_is(theory.row_mass), "columns exchanged": columns_exchanged},
)
def row_mass(ds: xr.Dataset) -> Everywhere:
    """a row of group n has the mass d_n pi_i / root((d_n + 1)(d_i + 1)) in the columns of group i,
    and 1 / (d_n + 1) more in its own (ratio)"""
    return everywhere(mean, bare(ds.row_mass) / masses(ds, theory.row_mass_with_loops))


@claim(
    "(D.8)",
    below(2),
    expected="fails",
    because=(row_mass,),
    law=mass_is(theory.row_mass),
    rivals={"with loops": mass_is(theory.row_mass_with_loops)},
)
def row_mass_printed(ds: xr.Dataset) -> Everywhere:
    """its mass is at most of the order of Psi (D.7): at most twice that, for rows of both groups
    and the columns of both (ratio)"""
    return everywhere(mean, bare(ds.row_mass) / masses(ds, theory.row_mass))


# ------------------------------------------------------------------------------ FastGCN's chances


def chances(ds: xr.Dataset) -> xr.DataArray:
    return realised(theory.importance_ratio, ds)


@claim(
    "derived from FastGCN's q",
    equals(1, within=0.2),
    kind="own",
    law=curve("importance_ratio", chances),
    rivals={
        "all nodes alike": curve("importance_ratio", lambda ds: 1 + 0 * chances(ds)),
        "by degree": curve("importance_ratio", lambda ds: bare(ds.degree_1 / ds.degree_2)),
        "its inverse": curve("importance_ratio", lambda ds: 1 / chances(ds)),
    },
)
def importance_law(ds: xr.Dataset) -> Everywhere:
    """FastGCN draws a node of group 1 for one of group 2 as often as their columns of A say:
    d h / (d + 1) + 1 / (d + 1)^2 each, with h the mean of 1 / (d + 1) over ends of edges (ratio)"""
    return everywhere(mean, bare(ds.importance_ratio) / chances(ds))


@claim(
    "section 5.3.2, first takeaway of (5.10)",
    above(1),
    expected="fails",
    because=(importance_law,),
)
def favours_high_degree(ds: xr.Dataset) -> Everywhere:
    """FastGCN draws nodes of high degree more often in many cases: in one of these graphs at least
    (the largest ratio)"""
    found = [
        everywhere(mean, ds.importance_ratio.isel(graph=[i])) for i in range(ds.sizes["graph"])
    ]
    best = max(found, key=lambda e: e.each[0].value)
    return together(best)


def draw_dependent(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Labels that share a feature (Figure D.1)", width=4.8)
    for probe, words in (("labels_two", "two aggregations"), ("labels_three", "three, (5.12)")):
        y = named(bare(ds[probe]), "graph", r"degree $\delta$")
        y.attrs = {"long_name": "labels that depend on one"}
        plot.curve(ax, y, "graph", label=words, line=False, log="y")
    x = list(range(ds.sizes["graph"]))
    delta = ds.max_degree.mean("seed").values
    plot.theory_curve(ax, x, (1 + delta) ** 4, r"$(1+\delta)^4$")
    return fig


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Rows of A and FastGCN's chances by graph")
    for i, words in ((1, "columns of group 1"), (2, "columns of group 2")):
        y = named(bare(ds.row_mass.sel(group=1, column=i)), "graph", "degrees, share of group 1")
        y.attrs = {"long_name": "mass of a row of group 1"}
        plot.curve(left, y, "graph", label=words, line=False)
        x = list(range(ds.sizes["graph"]))
        law = masses(ds, theory.row_mass_with_loops).sel(group=1, column=i).values
        plot.theory_curve(left, x, law, "with loops")
    y = named(bare(ds.importance_ratio), "graph", "degrees, share of group 1")
    y.attrs = ds.importance_ratio.attrs
    plot.curve(right, y, "graph", label="measured", line=False)
    plot.theory_curve(right, x, chances(ds).values, "columns of A")
    for ax in (left, right):
        ax.tick_params(axis="x", rotation=30)
        ax.set_ylim(0, None)
    return fig


def draw_base(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="FastGCN's chances", width=4.2)
    plot.curve(ax, ds.importance_ratio, "degree_2", line=False, label="measured")
    plot.theory_curve(ax, ds.degree_2.values, chances(ds).values, "columns of A")
    return fig


EXPERIMENTS = (
    Experiment(
        "figd_1",
        says="How many labels share a feature with one, on regular graphs.",
        trainings=Trainings(
            grid={"graph": cases(REGULAR)},
            simulator="rows",
            seeds=8,
            quick={"nodes": 1000, "seeds": 3},
        ),
        claims=(dependent_labels, third_sees_more),
        figure=draw_dependent,
    ),
    Experiment(
        "figd_1_rows",
        says="Masses of rows (D.8) and the chances of FastGCN, on several graphs.",
        trainings=Trainings(
            grid={"graph": cases(GRAPHS)},
            simulator="rows",
            seeds=8,
            quick={"nodes": 1000, "seeds": 6},
        ),
        claims=(row_mass_printed, row_mass, favours_high_degree, importance_law),
        figure=draw,
    ),
    Experiment(
        "figd_1_base",
        says="The same at one setting, from which the others of its domain are drawn.",
        trainings=Trainings(
            grid={"degree_2": [1, 3]},
            simulator="rows",
            seeds=8,
            quick={"nodes": 1000, "seeds": 6},
            domain={"degree_1": (4, 40), "group_share": (0.05, 0.5)},
        ),
        claims=(importance_law, row_mass),
        figure=draw_base,
    ),
)
