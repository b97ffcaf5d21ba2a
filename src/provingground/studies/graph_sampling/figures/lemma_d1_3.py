"""Lemma D.1.3: symmetric sampling, which is biased, and drops rows as well."""

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import below, claim, curve, equals
from provingground.stats import Everywhere, everywhere, mean
from provingground.study import Experiment, Trainings, axis, cases

from .. import theory
from .shared import MATCHED_GRAPHS, at_fraction, at_settings, bare


def poly(ds: xr.Dataset) -> xr.DataArray:
    r"""$\mathrm{poly}(\epsilon)$ of (D.17), with $c_2 = 1$."""
    return at_settings(theory.reached_poly_symmetric, ds)


def larger_poly(ds: xr.Dataset) -> xr.DataArray:
    r"""The larger of that and the $\mathrm{poly}(\epsilon)$ of the condition in the lemma itself,
    $(1 + c_2\mathrm{poly}(\epsilon)/(Lp_l^*\psi_l))^{-1}$: the two differ."""
    own = at_settings(theory.reached_poly, ds)
    return own.where(own > poly(ds), poly(ds))


def six(ds: xr.Dataset) -> xr.DataArray:
    """What the proof of (D.18) gives for the mean row, with its constants."""
    return 6 * poly(ds) * bare(np.maximum(ds.p1, ds.p2).astype(float)) ** 0.5


@claim(
    "derived from section D.1.1",
    equals(1, within=0.1),
    kind="own",
    law=curve("row_error_max", lambda ds: bare(ds.dropped_theory.mean("seed"))),
    rivals={
        "poly of (D.17)": curve("row_error_max", poly),
        "the mean row": curve("row_error_max", lambda ds: bare(ds.row_error.mean("seed"))),
    },
)
def symmetric_largest_law(ds: xr.Dataset) -> Everywhere:
    """of a symmetric sample no row that is kept errs by more than the dropped ones, whose error is
    their row sum of A*: the largest error is the largest such sum (ratio to its expectation, from
    0.9 of the nodes on)"""
    at = ds.sel(fraction=slice(0.9, None)) if "fraction" in ds.dims else ds
    return everywhere(mean, at.row_error_max / at.dropped_theory)


@claim(
    "Lemma D.1.3, (D.17)",
    below(1),
    bound="paper",
    expected="fails",
    because=(symmetric_largest_law,),
)
def symmetric_largest_row(ds: xr.Dataset) -> Everywhere:
    """the largest error of a row is at most the poly(ε) that (D.17) allows, or that the lemma's own
    condition does, whichever is larger, with c_2 = 1 (ratio)"""
    return everywhere(mean, ds.row_error_max / larger_poly(ds))


@claim(
    "Lemma D.1.3, for the mean row",
    below(1),
    kind="corrected",
    rivals={"1.5 times that": curve("row_error", lambda ds: 1.5 * six(ds))},
)
def symmetric_mean_row(ds: xr.Dataset) -> Everywhere:
    """the mean error of a row is at most 6 c_2 poly(ε) times the root of the largest scale, with
    the poly(ε) that (D.17) allows (ratio)"""
    return everywhere(mean, ds.row_error / six(ds))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Symmetric sampling (Lemma D.1.3)")
    f = np.linspace(float(ds.fraction.min()), 1, 100)
    y = ds.bias.assign_attrs(long_name="mean off-diagonal entry over that of A*", symbol="")
    plot.curve(left, y, "fraction", hue="graph", line=False)
    plot.theory_curve(left, f, theory.symmetric_mean(f, f), r"$\sqrt{f_u f_k}$")
    left.set_ylim(0, 1.05)
    at = ds.isel(graph=0)
    plot.curve(right, at.row_error, "fraction", label="mean row", line=False)
    plot.curve(right, at.row_error_max, "fraction", label="largest row", line=False)
    plot.theory_curve(right, ds.fraction, at.row_error_theory.mean("seed"), "mean row, exactly")
    plot.theory_curve(right, ds.fraction, poly(at).values, r"(D.17): $\mathrm{poly}(\epsilon)$")
    plot.theory_curve(right, ds.fraction, at.dropped_theory.mean("seed"), "largest row sum dropped")
    right.set_ylabel(r"error of a row, $\|a_n^s-a_n^*\|_1$")
    right.set_title(f"{at.graph.item()} graph")
    right.set_ylim(0, None)
    return fig


def draw_late(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="The largest error of a row", width=4.2)
    plot.curve(ax, ds.row_error_max, "kept_2", line=False, label="measured")
    plot.theory_curve(ax, ds.kept_2.values, ds.dropped_theory.mean("seed").values, "expected")
    return fig


def draw_base(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="The mean error of a row", width=4.2)
    plot.curve(ax, ds.row_error, "kept_2", line=False, label="measured")
    plot.theory_curve(ax, ds.kept_2.values, six(ds).values, r"$6\sqrt{\max p^*}$ poly")
    return fig


EXPERIMENTS = (
    Experiment(
        "lemma_d1_3",
        says="Bias and errors of rows of symmetric samples over the sampled fraction of nodes.",
        trainings=Trainings(
            grid={
                "graph": cases(MATCHED_GRAPHS),
                "symmetric": True,
                "fraction": axis(
                    [0.5, 0.7, 0.9, 0.95, 0.99],
                    "S_l/N_l",
                    "sampled fraction of nodes",
                    sets=at_fraction,
                ),
            },
            simulator="rows",
            seeds=8,
            quick={"nodes": 1000, "fraction": [0.5, 0.9, 0.98], "seeds": 3},
        ),
        claims=(
            symmetric_largest_law,
            symmetric_largest_row,
            symmetric_mean_row,
        ),
        figure=draw,
    ),
    Experiment(
        "lemma_d1_3_base",
        says="The same at one setting, from which the others of its domain are drawn.",
        trainings=Trainings(
            grid={"symmetric": True, "kept_2": [0.5, 0.9], "kept_1": 0.9},
            simulator="rows",
            seeds=8,
            quick={"nodes": 1000, "seeds": 3},
            domain={
                "degree_1": (2, 100),
                "degree_2": (1, 20),
                "group_share": (0.05, 0.5),
                "p1": (0.1, 2.0),
                "p2": (0.1, 2.0),
                "kept_1": (0.3, 1.0),
            },
        ),
        claims=(symmetric_mean_row,),
        figure=draw_base,
    ),
    Experiment(
        "lemma_d1_3_late",
        says="The largest row of symmetric samples where most nodes are sampled.",
        trainings=Trainings(
            grid={"symmetric": True, "kept_2": [0.9, 0.98], "kept_1": 0.95},
            simulator="rows",
            seeds=8,
            quick={"nodes": 1000, "seeds": 3},
            domain={
                "degree_1": (2, 100),
                "degree_2": (1, 20),
                "group_share": (0.05, 0.5),
                "p1": (0.1, 2.0),
                "p2": (0.1, 2.0),
                "kept_1": (0.9, 0.99),
            },
        ),
        claims=(symmetric_largest_law,),
        figure=draw_late,
    ),
)
