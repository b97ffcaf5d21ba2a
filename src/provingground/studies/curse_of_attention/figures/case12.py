"""Section 7.1: does local attention move as Cases 1 and 2 say?"""

import xarray as xr

from provingground import plot
from provingground.claims import above, between, claim, curve
from provingground.stats import Estimate, Everywhere, everywhere, mean, paired_difference
from provingground.study import Experiment, Trainings, cases

from .shared import replaced

SHAPES = {
    f"({length}, {d})": {"tokens": length, "dim": d}
    for length, d in ((8, 4), (16, 8), (32, 16), (8, 32), (64, 8), (8, 256))
}
QUICK_SHAPES = ("(16, 8)", "(8, 256)")


@claim(
    "found here",
    between(0.55, 0.85),
    kind="own",
    rivals={"chance": curve("agreement", lambda ds: 0.5 + 0 * ds.tokens)},
)
def tendency(ds: xr.Dataset) -> Everywhere:
    """Cases 1 and 2 are a tendency: right in 0.55 to 0.85 of the rows"""
    return everywhere(mean, ds.agreement)


@claim(
    "found here",
    above(0.9),
    kind="own",
    rivals={"all rows": replaced("alone", lambda ds: ds.centred)},
)
def alone_right(ds: xr.Dataset) -> Everywhere:
    """with all of softmax's derivative, a gradient in one row alone and tokens that are nearly
    orthogonal (d over 20 L), the criterion is right in over 0.9"""
    wide = [
        s
        for s in ds["shape"].values
        if float(ds.dim.sel(shape=s)) > 20 * float(ds.tokens.sel(shape=s))
    ]
    return everywhere(mean, ds.alone.sel(shape=wide))


@claim("found here", above(0), kind="own")
def centred_better(ds: xr.Dataset) -> Estimate:
    """with all rows the term that they leave out still gains (difference of the shares)"""
    return paired_difference(ds.centred, ds.agreement)


@claim(
    "section 7.1, Cases 1 and 2",
    above(0.95),
    expected="fails",
    because=(tendency, alone_right),
)
def rule(ds: xr.Dataset) -> Everywhere:
    """Cases 1 and 2 decide the direction of local attention (share of rows)"""
    return everywhere(mean, ds.agreement)


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Local attention after one step")
    plot.curve(ax, ds.agreement, "shape", label="Cases 1 and 2", line=False)
    plot.curve(ax, ds.centred, "shape", label="centred criterion", line=False)
    plot.curve(ax, ds.alone, "shape", label="whole derivative, one row alone", line=False)
    plot.theory_curve(ax, [0, ds.sizes["shape"] - 1], [0.5, 0.5], "chance")
    ax.set_ylabel("share of rows as predicted")
    ax.set_xlabel("tokens and dimension $(L, d)$")
    ax.set_ylim(0.4, 1.05)
    return fig


EXPERIMENTS = (
    Experiment(
        "case12",
        says="Section 7: whether local attention moves as Cases 1, 2 say.",
        trainings=Trainings(
            grid={"shape": cases(SHAPES)},
            simulator="local",
            seeds=8,
            quick={"shape": cases({k: SHAPES[k] for k in QUICK_SHAPES}), "seeds": 4},
        ),
        claims=(rule, tendency, alone_right, centred_better),
        figure=draw,
    ),
)
