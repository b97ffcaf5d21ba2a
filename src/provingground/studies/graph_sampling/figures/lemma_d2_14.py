"""Lemma D.2.14: training with samples against training with the effective matrix itself."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, Claim, above, below, between, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment, Trainings, axis, cases

from .. import theory
from .shared import (
    MATCHED_GRAPHS,
    NMSE,
    QUICK,
    alike,
    at_fraction,
    at_settings,
    bare,
    end,
    named,
    ratios,
    unlearned,
)

SAMPLING = {
    "asymmetric": {},
    "symmetric": dict(symmetric=True),
    "by layer": dict(independent=True),
}
TWO = {
    "like groups": dict(
        degree_1=9, degree_2=8, group_share=0.07, p1=0.96, p2=0.45, p1_hat=0.96, p2_hat=0.45,
        kept_1=0.76, kept_2=0.91,
    ),
    "hubs and leaves": dict(
        degree_1=19, degree_2=1, group_share=0.06, p1=0.88, p2=0.89, p1_hat=0.88, p2_hat=0.89,
        kept_1=0.92, kept_2=0.77,
    ),
}  # fmt: skip
TRAINED_WITH = cases({"samples": {}, "A*": {"whole": True}})


def gap(ds: xr.Dataset) -> xr.DataArray:
    """What samples add to the error, in units of the labels' variance."""
    y = bare(end(ds.test_error))
    if "matrix" in y.dims:
        return y.sel(matrix="samples", drop=True) - y.sel(matrix="A*", drop=True)
    inside = y.fraction[y.fraction < 1]
    return y.sel(fraction=inside) - y.sel(fraction=1.0, drop=True)


def inside(ds: xr.Dataset) -> xr.Dataset:
    """The settings of the gaps."""
    at = ds
    if "matrix" in at.dims:
        return at.sel(matrix="samples", drop=True)
    return at.sel(fraction=at.fraction[at.fraction < 1])


def noise(ds: xr.Dataset) -> xr.DataArray:
    return at_settings(theory.sampling_noise, inside(ds))


def poly(ds: xr.Dataset) -> xr.DataArray:
    return at_settings(theory.reached_poly, inside(ds))


def noisy(s: Mapping[str, Any]) -> bool:
    """Noise over signal between 0.1 and 0.6: less is hidden by what training leaves, more leaves
    nothing to learn."""
    share = s["group_share"]
    groups = (s["degree_1"], s["degree_2"]), (share, 1 - share)
    found = theory.sampling_noise(*groups, (s["p1_hat"], s["p2_hat"]), (s["kept_1"], s["kept_2"]))
    return bool(0.1 <= found <= 0.6)


def gap_is(law: Callable[[xr.Dataset], xr.DataArray]) -> Altered:
    """The Dataset in which samples add a law of the settings to the error, with the same noise."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        y = ds.test_error
        wanted = (law(ds) + 0 * gap(ds).mean("seed")) * gap(ds) / gap(ds).mean("seed")
        made = y.copy(deep=True)
        if "matrix" in ds.dims:
            base = bare(y).sel(matrix="A*", drop=True)
            place = {"matrix": "samples"}
        else:
            base = bare(y).sel(fraction=1.0, drop=True)
            place = {"fraction": wanted.fraction.values}
        new = base + wanted
        target = made.loc[place]
        made.loc[place] = new.transpose(*target.dims).values
        return ds.assign(test_error=made)

    return altered


@claim(
    "found here",
    equals(1, times=2),
    kind="own",
    law=gap_is(noise),
    rivals={
        "that of three layers": gap_is(lambda ds: 3 * noise(ds)),
        "a third of it": gap_is(lambda ds: noise(ds) / 3),
    },
)
def gap_law(ds: xr.Dataset) -> Everywhere:
    """samples add to the error over variance about what they add to the aggregated features: their
    noise over signal (ratio)"""
    return everywhere(stats.mean, gap(ds) / noise(ds))


@claim(
    "found here",
    equals(1, within=0.3),
    kind="own",
    law=gap_is(noise),
    rivals={
        "the root": gap_is(lambda ds: noise(ds) ** 0.5),
        "the square": gap_is(lambda ds: noise(ds) ** 2),
        "one constant": gap_is(lambda ds: 0.25 + 0 * noise(ds)),
    },
)
def gap_power(ds: xr.Dataset) -> Everywhere:
    """it grows in proportion to that noise, (1 - f) / f (exponent, from 0.5 to 0.9 of the nodes)"""
    y = gap(ds)
    odds = theory.aggregation_noise(y.fraction.values)
    y = y.assign_coords(fraction=odds).rename(fraction="noise_over_signal")
    return everywhere(
        lambda y: stats.power_law(y, "noise_over_signal").slope, y, keep="noise_over_signal"
    )


@claim(
    "Lemma D.2.14, (D.111)",
    below(2),
    kind="own",
    rivals={"three times poly": gap_is(lambda ds: 3 * poly(ds))},
)
def additive(ds: xr.Dataset) -> Everywhere:
    """what (D.111) says of the training objective L' and up to a hidden constant, said of the test
    error: training with samples ends within 2 poly(ε) of training with A*, with the poly(ε) that
    (5.10) allows and c_1 = 1 (difference of errors over variance, over poly(ε))"""
    return everywhere(stats.mean, gap(ds) / poly(ds))


@claim(
    "Lemma D.2.14, (D.111)",
    above(3),
    kind="own",
    law=gap_is(noise),
    rivals={"a multiple of poly of (5.10)": gap_is(lambda ds: 0.7 * poly(ds))},
)
def poly_apart(ds: xr.Dataset) -> Estimate:
    """what samples add is no multiple of poly(ε): over it the first setting has three times what
    the second has, and more"""
    y = gap(ds) / poly(ds)
    return stats.paired_ratio(y.isel(setting=0, drop=True), y.isel(setting=1, drop=True))


@claim("Lemma D.2.14, (D.111)", above(2), kind="own", rivals={"all alike": alike("fraction")})
def not_a_ratio(ds: xr.Dataset) -> Everywhere:
    """as a ratio the two are far apart: with 0.9 of the nodes the error is over twice that
    with A*"""
    y = end(ds.test_error)
    return ratios(y.sel(fraction=0.9, drop=True), y.sel(fraction=1.0, drop=True))


def alike_claim(name: str, kind: str, source: str, words: str, scale: Any) -> Claim:
    rivals = {"nothing learned": unlearned(sampling=kind)}

    @claim(source, between(0.5, 2), kind="own", name=name, says=words, scale=scale, rivals=rivals)
    def measure(ds: xr.Dataset) -> Everywhere:
        y = end(ds.test_error)
        return ratios(y.sel(sampling=kind, drop=True), y.sel(sampling="asymmetric", drop=True))

    return measure


symmetric_alike = alike_claim(
    "symmetric_alike",
    "symmetric",
    "section D.1.1",
    "with 0.9 of the nodes symmetric samples end within a factor of two of asymmetric ones",
    None,
)
by_layer_alike = alike_claim(
    "by_layer_alike",
    "by layer",
    "footnote 23",
    "so do samples of each layer of its own",
    "paper",
)


@claim("Theorem 5.3.1", below(0.03), kind="own", scale="paper")
def all_small(ds: xr.Dataset) -> Everywhere:
    """with all nodes, labels in the class and matched scales the error over variance is below
    0.03"""
    return everywhere(stats.mean, end(ds.test_error).sel(fraction=1.0, drop=True))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="How many nodes are sampled (Lemma D.2.14)")
    y = named(end(ds.test_error), "graph", "graph")
    plot.curve(left, y, "fraction", hue="graph")
    left.set_ylabel(NMSE)
    left.set_ylim(0, None)
    added = gap(ds)
    added.attrs = {"long_name": "error that samples add"}
    plot.curve(right, named(added, "graph", "graph"), "fraction", hue="graph", line=False)
    f = np.linspace(float(ds.fraction.min()), 1, 100)
    plot.theory_curve(right, f, theory.aggregation_noise(f), "noise over signal, $(1-f)/f$")
    right.set_ylim(0, None)
    return fig


def draw_two(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="What samples add, and what was expected", width=4.6)
    y = named(gap(ds), "setting", "degrees and scales")
    y.attrs = {"long_name": "error that samples add"}
    plot.curve(ax, y, "setting", line=False, label="measured")
    x = list(range(ds.sizes["setting"]))
    plot.theory_curve(ax, x, noise(ds).values, "noise over signal")
    plot.theory_curve(ax, x, poly(ds).values, r"(5.10): $\mathrm{poly}(\epsilon)$")
    ax.set_ylim(0, None)
    return fig


def draw_kinds(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Kinds of samples, 0.9 of the nodes", width=4.6)
    y = named(named(end(ds.test_error), "sampling", "kind of samples"), "graph", "graph")
    plot.curve(ax, y, "sampling", hue="graph", line=False)
    ax.set_ylabel(NMSE)
    ax.set_ylim(0, None)
    return fig


def draw_base(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="The error that samples add", width=4.2)
    plot.curve(ax, end(ds.test_error), "matrix", line=False)
    ax.set_ylabel(NMSE)
    ax.set_ylim(0, None)
    return fig


EXPERIMENTS = (
    Experiment(
        "lemma_d2_14",
        says="Test error over the sampled fraction of nodes, labels of the class, matched scales.",
        trainings=Trainings(
            grid={
                "graph": cases(MATCHED_GRAPHS),
                "fraction": axis(
                    [0.5, 0.7, 0.9, 1.0],
                    "S_l/N_l",
                    "sampled fraction of nodes",
                    sets=at_fraction,
                ),
            },
            seeds=8,
            quick={
                **QUICK,
                "seeds": 8,
            },
        ),
        claims=(gap_law, gap_power, additive, not_a_ratio, all_small),
        figure=draw,
    ),
    Experiment(
        "lemma_d2_14_kinds",
        says="Asymmetric samples, symmetric ones, and a sample for each layer.",
        trainings=Trainings(
            grid={
                "graph": cases(MATCHED_GRAPHS),
                "kept_1": 0.9,
                "kept_2": 0.9,
                "sampling": cases(SAMPLING),
            },
            seeds=8,
            quick={
                **QUICK,
                "sampling": cases({k: SAMPLING[k] for k in ("asymmetric", "symmetric")}),
                "seeds": 8,
            },
        ),
        claims=(symmetric_alike, by_layer_alike),
        figure=draw_kinds,
    ),
    Experiment(
        "lemma_d2_14_two",
        says="What samples add at two settings at which poly(ε) of (5.10) and the noise disagree.",
        trainings=Trainings(
            grid={"setting": cases(TWO), "matrix": TRAINED_WITH},
            seeds=8,
            quick={**QUICK, "seeds": 8},
        ),
        claims=(gap_law, poly_apart),
        figure=draw_two,
    ),
    Experiment(
        "lemma_d2_14_base",
        says="The same at one setting with unequal fractions, from which others are drawn.",
        trainings=Trainings(
            grid={
                "matrix": TRAINED_WITH,
                "p1": 0.7,
                "p2": 0.3,
                "kept_1": 0.95,
                "kept_2": 0.8,
                "p1_hat": axis(0.7, sets=lambda s: {"p1": s["p1_hat"]}),
                "p2_hat": axis(0.3, sets=lambda s: {"p2": s["p2_hat"]}),
            },
            seeds=8,
            quick={**QUICK, "seeds": 5},
            domain={
                "degree_1": (3, 30),
                "degree_2": (1, 10),
                "group_share": (0.05, 0.5),
                "p1_hat": (0.2, 1.0),
                "p2_hat": (0.2, 1.0),
                "kept_1": (0.5, 0.97),
                "kept_2": (0.5, 0.97),
            },
            where=noisy,
        ),
        claims=(gap_law, additive),
        figure=draw_base,
    ),
)
