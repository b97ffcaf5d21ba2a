"""The settings that experiments share, and what is measured on their Datasets."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from provingground import stats
from provingground.stats import Estimate

from . import theory
from .model import Config

PLAIN = Config()

# Scales (p_1, p_2) of the two groups: of the labels in the datasets, of training in the networks.
SCALES = {"1": (0.9, 0.1), "2": (0.7, 0.3), "3": (0.5, 0.5)}
WORDS = {k: f"({p1:g}, {p2:g})" for k, (p1, p2) in SCALES.items()}
DATASETS = {f"dataset {k}": dict(p1_hat=a, p2_hat=b) for k, (a, b) in SCALES.items()}
TRAINED = {WORDS[k]: dict(p1=a, p2=b) for k, (a, b) in SCALES.items()}
MATCHED = dict(zip(DATASETS, TRAINED, strict=True))
FAR = (("dataset 1", "(0.5, 0.5)"), ("dataset 3", "(0.9, 0.1)"))  # the most different scales

UNBALANCED, BALANCED = dict(group_share=0.05), dict(group_share=0.5)
GRAPHS = {"unbalanced": UNBALANCED, "balanced": BALANCED}

# The three graphs of Figures 5.1 and 5.2, by their degrees, in the order of the largest row sum.
DEGREES = {
    "(4, 4)": dict(degree_1=4, degree_2=4),
    "(20, 2)": dict(degree_1=20, degree_2=2),
    "(100, 2)": dict(degree_1=100, degree_2=2),
}
TARGETS = {"(5.20)": dict(concept=False), "concept class": dict(concept=True)}


def at_fraction(settings: dict[str, Any]) -> dict[str, float]:
    """The same sampled fraction in both groups."""
    return {"kept_1": settings["fraction"], "kept_2": settings["fraction"]}


def end(y: xr.DataArray) -> xr.DataArray:
    return y.isel(step=-1, drop=True)


def error(ds: xr.Dataset, **where: Any) -> xr.DataArray:
    """The test error at the end of training, at one place of the grid."""
    return end(ds.test_error).sel(where, drop=True)


# ------------------------------------------------------------------------- matched scales


def matched(ds: xr.Dataset, **where: Any) -> list[Estimate]:
    """The error of each dataset where training has the scales of its labels."""
    at = ds.sel(where)
    return [
        stats.mean(error(at, dataset=d, scales=s, **place))
        for place in _graphs(at)
        for d, s in MATCHED.items()
    ]


def mismatched(ds: xr.Dataset, pairs: Sequence[tuple[str, str]] = ()) -> list[Estimate]:
    """The error of pairs of a dataset and scales; by default of all that do not match."""
    pairs = pairs or [(d, s) for d in DATASETS for s in TRAINED if MATCHED[d] != s]
    return [
        stats.mean(error(ds, dataset=d, scales=s, **place))
        for place in _graphs(ds)
        for d, s in pairs
    ]


def _graphs(ds: xr.Dataset) -> list[dict[str, Any]]:
    return [{"graph": g} for g in ds.graph.values] if "graph" in ds.dims else [{}]


def gain(ds: xr.Dataset, datasets: Sequence[str] = tuple(DATASETS), **where: Any) -> list[Estimate]:
    """The error of other scales over that of the matched ones, for each dataset."""
    return [
        stats.paired_ratio(
            error(ds, dataset=d, scales=other, **place, **where),
            error(ds, dataset=d, scales=MATCHED[d], **place, **where),
        )
        for place in _graphs(ds)
        for d in datasets
        for other in TRAINED
        if other != MATCHED[d]
    ]


def far_gain(ds: xr.Dataset) -> Estimate:
    """The error of the most different scales over that of the matched ones (the smallest)."""
    found = [
        stats.paired_ratio(
            error(ds, dataset=d, scales=s, **place),
            error(ds, dataset=d, scales=MATCHED[d], **place),
        )
        for place in _graphs(ds)
        for d, s in FAR
    ]
    return stats.worst(found, "low")


def far_ratio(ds: xr.Dataset) -> Estimate:
    """The same, of the means over both graphs and datasets 1 and 3."""
    y = end(ds.test_error).mean("graph")

    def total(pairs: Sequence[tuple[str, str]]) -> xr.DataArray:
        first, second = (y.sel(dataset=d, scales=s, drop=True) for d, s in pairs)
        return first + second

    return stats.paired_ratio(total(FAR), total([(d, MATCHED[d]) for d, _ in FAR]))


def others_over(
    best: str, probe: str = "test_error", **where: Any
) -> Callable[[xr.Dataset], Estimate]:
    """How many times larger a probe is on every other dataset than on one (the smallest)."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = end(ds[probe]).sel(where, drop=True)
        others = [d for d in DATASETS if d != best]
        at_best = y.sel(dataset=best, drop=True)
        return stats.worst(
            [stats.paired_ratio(y.sel(dataset=d, drop=True), at_best) for d in others], "low"
        )

    return measure


def two_over(
    a: str, b: str, probe: str = "test_error", **where: Any
) -> Callable[[xr.Dataset], Estimate]:
    """A probe on dataset a over that on dataset b."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = end(ds[probe]).sel(where, drop=True)
        return stats.paired_ratio(y.sel(dataset=a, drop=True), y.sel(dataset=b, drop=True))

    return measure


# ------------------------------------------------------------------------ labels and width


def first_over_last(over: str, target: str) -> Callable[[xr.Dataset], Estimate]:
    """How many times larger the error is at the start of an axis than at its end: the smallest
    ratio among the graphs."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = error(ds, target=target)
        return stats.worst(
            [
                stats.paired_ratio(
                    y.sel(degrees=g).isel({over: 0}, drop=True),
                    y.sel(degrees=g).isel({over: -1}, drop=True),
                )
                for g in ds.degrees.values
            ],
            "low",
        )

    return measure


def over_even(graph: str, over: str, target: str) -> Callable[[xr.Dataset], Estimate]:
    """The error of a graph over that of the graph with the smallest row sum, at equal labels (or
    neurons); the mean over an axis but for its first point, where nothing is learned yet."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = error(ds, target=target).isel({over: slice(1, None)}).mean(over)
        return stats.paired_ratio(y.sel(degrees=graph), y.sel(degrees="(4, 4)"))

    return measure


def norms(ds: xr.Dataset) -> xr.DataArray:
    """The realised largest row sum of each graph."""
    y = ds.norm_inf
    return y.mean([d for d in y.dims if d not in ("seed", "degrees")])


# ------------------------------------------------------------------------ sampled fraction


def one_sample(ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(sampling="asymmetric", drop=True)


def fraction_error(fraction: float, toward: str) -> Callable[[xr.Dataset], Estimate]:
    """The error at a sampled fraction, the worst of both graphs."""

    def measure(ds: xr.Dataset) -> Estimate:
        at = one_sample(ds)
        found = [stats.mean(error(at, graph=g, fraction=fraction)) for g in ds.graph.values]
        return stats.worst(found, toward)  # pyright: ignore[reportArgumentType]

    return measure


def falls_with_fraction(ds: xr.Dataset) -> Estimate:
    y = end(one_sample(ds).test_error)
    return stats.worst([stats.monotone(y.sel(graph=g), "fraction") for g in ds.graph.values], "low")


def sampled_over_effective(fraction: float) -> Callable[[xr.Dataset], Estimate]:
    r"""Lemma D.2.14: the error after training with $A^s$ over that with $A^*$ (fraction 1)."""

    def measure(ds: xr.Dataset) -> Estimate:
        y = end(one_sample(ds).test_error)
        return stats.worst(
            [
                stats.paired_ratio(
                    y.sel(graph=g, fraction=fraction, drop=True),
                    y.sel(graph=g, fraction=1.0, drop=True),
                )
                for g in ds.graph.values
            ]
        )

    return measure


def inside(ds: xr.Dataset) -> xr.Dataset:
    """Without the fraction 1, where nothing is sampled."""
    return one_sample(ds).sel(fraction=ds.fraction[ds.fraction < 1])


def noise_law(ds: xr.Dataset) -> Estimate:
    at = inside(ds)
    return stats.agreement(at.noise_ratio, at.noise_theory)


def row_error_law(ds: xr.Dataset) -> Estimate:
    at = inside(ds)
    return stats.agreement(at.row_error, at.row_error_theory)


def over_poly(probe: str) -> Callable[[xr.Dataset], Estimate]:
    r"""An error of rows at fraction 0.9 over the $\mathrm{poly}(\epsilon)$ that (5.10) allows
    there (the largest of both graphs)."""

    def measure(ds: xr.Dataset) -> Estimate:
        found = []
        for g in ds.graph.values:
            share = GRAPHS[str(g)]["group_share"]
            degrees, sizes = (PLAIN.degree_1, PLAIN.degree_2), (share, 1 - share)
            p = TRAINED[trained_on(str(g))]
            poly = theory.reached_poly(degrees, sizes, (p["p1"], p["p2"]), (0.9, 0.9))
            y = one_sample(ds)[probe].sel(graph=g, fraction=0.9, drop=True)
            found.append(stats.mean(y / poly))
        return stats.worst(found)

    return measure


def trained_on(graph: str) -> str:
    """The scales with which the sampled fraction is varied on a graph."""
    return WORDS["1"] if graph == "unbalanced" else WORDS["3"]


def symmetric_over_plain(ds: xr.Dataset) -> Estimate:
    """The error of symmetric over asymmetric sampling at fraction 0.9, both graphs together."""
    y = end(ds.test_error).sel(fraction=0.9, drop=True).mean("graph")
    return stats.paired_ratio(
        y.sel(sampling="symmetric", drop=True), y.sel(sampling="asymmetric", drop=True)
    )


def layers_over_plain(ds: xr.Dataset) -> Estimate:
    """The error of a sample for each layer over one sample, at fraction 0.9."""
    y = end(ds.test_error).sel(fraction=0.9, drop=True).mean("graph")
    return stats.paired_ratio(
        y.sel(sampling="by layer", drop=True), y.sel(sampling="asymmetric", drop=True)
    )


# ------------------------------------------------------------------------------ training


def form(ds: xr.Dataset, name: str, **where: Any) -> Estimate:
    return stats.mean(error(ds, form=name, **where))


def form_over(a: str, b: str, **where: Any) -> Callable[[xr.Dataset], Estimate]:
    return lambda ds: stats.paired_ratio(error(ds, form=a, **where), error(ds, form=b, **where))


def gap_shrinks(ds: xr.Dataset) -> Estimate:
    """Whole Algorithm 2 over its plain form: that ratio at the smallest width over the largest."""
    y = end(ds.test_error)
    ends = [y.isel(width=i, drop=True) for i in (0, -1)]

    def ratio(a: xr.DataArray, b: xr.DataArray) -> float:
        small, large = (
            float(x.sel(form="whole").mean() / x.sel(form="plain").mean()) for x in (a, b)
        )
        return float(np.log(small / large))

    found = stats.jackknife(ratio, *ends)
    return Estimate(*(float(np.exp(v)) for v in found))
