"""Appendix A.6: four classes, pattern sets, two heads, a skip connection; and small batches."""

from typing import Any

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim
from provingground.stats import Everywhere, everywhere
from provingground.study import Experiment, Trainings, cases

from .fig2_4 import IN_TIME, still
from .lemma_a3_1 import READOUTS, everywhere_alike
from .shared import SAMPLES, SMALL, exp_mean, log_needed, needs, rise, success, with_most

FOUR: dict[str, Any] = {"classes": 4, "n_patterns": 7}


def against_own(ds: xr.Dataset, relation: str) -> xr.DataArray:
    """Growth along a feature over that along a neuron's own."""
    end = stats.last(ds.growth)
    return end.sel(relation=relation, drop=True) / end.sel(relation="own", drop=True)


def shrinks(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose neurons shrink where they grew, and grow where they shrank."""
    return ds.assign(growth=-ds.growth)


@claim("A.6.1 (A.218)", above(0), rivals={"all shrink": shrinks})
def own_grows(ds: xr.Dataset) -> Everywhere:
    """the four groups of neurons grow along the feature of their class"""
    return everywhere(stats.mean, stats.last(ds.growth).sel(relation="own", drop=True))


@claim("A.6.1 (A.222)", below(0), rivals={"all features alike": everywhere_alike})
def opposite_falls(ds: xr.Dataset) -> Everywhere:
    """along the feature of the opposite class they shrink (ratio to the growth along their own)"""
    return everywhere(stats.mean, against_own(ds, "opposite"))


@claim(
    "A.6.1 (A.220), (A.224), shared read-out", below(0.15), rivals={"all alike": everywhere_alike}
)
def beside_stays(ds: xr.Dataset) -> Everywhere:
    """along the features of the two other classes they hardly change (mean size, over that along
    their own), with a shared read-out as in the proof"""
    return everywhere(stats.mean, against_own(ds, "beside").sel(readout="shared", drop=True))


def beside_is_still(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset whose neurons grow along their own feature alone."""
    return ds.assign(growth=ds.growth.where(ds.relation == "own", 0.0))


@claim("found here; A.6.1 for read-outs as printed in (2.1)", above(0.15), kind="own",
       rivals={"along the own alone": beside_is_still})  # fmt: skip
def beside_grows(ds: xr.Dataset) -> Everywhere:
    """with a read-out per position they do change along these, by over 0.15 of their own"""
    return everywhere(stats.mean, against_own(ds, "beside").sel(readout="per position", drop=True))


def draw_neurons(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, width=8.2, title="Four groups of neurons, four classes")
    for ax, name in zip(axes, ds.readout.values, strict=True):
        one = with_most(ds).sel(readout=name)
        one = one.isel(step=(one.step <= int(one.stopped_at.max())).values)
        plot.curve(ax, one.growth, "step", hue="relation")
        ax.set_title(str(name))
    return fig


# ------------------------------------------------------------------------------- do they learn


@claim("Appendix A.6", below(32), rivals={"64 are needed": needs(lambda ds: 64.0, scaled=False)})
def extensions_succeed(ds: xr.Dataset) -> Everywhere:
    """every variation that is run generalises: half of the trials succeed with 32 samples or fewer
    (samples needed)"""
    return everywhere(exp_mean, log_needed(ds))


@claim("Appendix A.6", above(0.1), rivals={"attention stays": still})
def extensions_attend(ds: xr.Dataset) -> Everywhere:
    """in each of them attention moves to relevant tokens, by over 0.1"""
    return everywhere(stats.mean, with_most(rise(ds)))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Extensions of appendix A.6")
    plot.curve(left, success(ds), "samples", hue="variation", log="x")
    most = with_most(ds)
    for name, y in (
        ("at the start", stats.first(most.attention)),
        ("at the end", stats.last(most.attention)),
    ):
        plot.curve(right, y.assign_attrs(ds.attention.attrs), "variation", label=name, line=False)
    right.set_ylim(0, 1)
    return fig


VARIATIONS: dict[str, dict[str, Any]] = {
    "as printed": {},
    "skip": {"skip": 1.0},
    "four classes": FOUR,
    "two heads": {"heads": 2},
    "pattern sets": {"variants": 2, "dim": 16},
    "batches of 32": {"batch": 32, "steps": 2500},
}

EXPERIMENTS = (
    Experiment(
        "a6_1",
        says="Changes of the four groups of neurons along features, with four classes.",
        trainings=Trainings(
            grid={**IN_TIME, **FOUR, "readout": READOUTS, "lr": 0.3, "samples": 128},
            seeds=20,
            quick={**SMALL, "seeds": 5},
        ),
        claims=(own_grows, opposite_falls, beside_stays, beside_grows),
        figure=draw_neurons,
    ),
    Experiment(
        "a6_variations",
        says="Four classes, pattern sets, two heads, a skip connection, and small batches.",
        trainings=Trainings(
            grid={
                "samples": [2, 4, 8, 12, 16, 24, 32, 52, 80, 128],
                "variation": cases(VARIATIONS),
            },
            seeds=20,
            quick={
                **SMALL,
                "samples": SAMPLES,
                "variation": cases({k: VARIATIONS[k] for k in list(VARIATIONS)[:2]}),
                "seeds": 7,
            },
        ),
        claims=(extensions_succeed, extensions_attend),
        figure=draw,
    ),
)
