"""Scales beyond their cap (5.8), with labels held fixed: does only p_1 / p_2 matter?"""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim, shuffle
from provingground.stats import Everywhere
from provingground.study import Experiment, Trainings, cases

from .shared import NMSE, QUICK, alike, end, named, ratios

SCALES = {str(p): dict(p1=p, p2=p) for p in (0.24, 0.5, 1.0, 2.0)}
LABELS = {str(p): dict(p1_hat=p, p2_hat=p) for p in (0.24, 1.0)}
CAP, LARGEST = "0.24", "2.0"  # c_1 / (L psi_2) is 0.241 on the unbalanced graph, for c_1 = 1


def over_cap(ds: xr.Dataset, scales: list[str]) -> Everywhere:
    """The error with some scales over that with scales at the cap, for the same labels."""
    y = end(ds.test_error)
    return ratios(y.sel(scale=scales), y.sel(scale=CAP, drop=True))


@claim("(5.8)", below(2), kind="own", rivals={"scales at random": shuffle("scale")})
def beyond_cap(ds: xr.Dataset) -> Everywhere:
    """scales at two and four times their cap with c_1 = 1 end within a factor of two of scales at
    it (ratio)"""
    return over_cap(ds, ["0.5", "1.0"])


@claim(
    "section 5.3.2, special example",
    above(2),
    kind="own",
    rivals={"all scales alike": alike("scale")},
)
def far_beyond_cap(ds: xr.Dataset) -> Everywhere:
    """the networks of A* = c A and of A are equivalent, since W and V can be scaled by 1/c, but
    their trainings are not: equal scales at eight times the cap more than double the error, for
    the same labels (ratio)"""
    return over_cap(ds, [LARGEST])


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="Scales of training; colours: scales of labels", width=4.8)
    y = named(named(end(ds.test_error), "scale", "scale of training, $p_1^* = p_2^*$"), "labels",
              r"$\hat p_1 = \hat p_2$")  # fmt: skip
    plot.curve(ax, y, "scale", hue="labels", line=False)
    ax.set_ylabel(NMSE)
    ax.set_ylim(0, None)
    return fig


EXPERIMENTS = (
    Experiment(
        "cap",
        says="Test error with equal scales of both groups, from their cap (5.8) to eight times it.",
        trainings=Trainings(
            grid={"labels": cases(LABELS), "scale": cases(SCALES)},
            seeds=8,
            quick={**QUICK, "seeds": 5},
        ),
        claims=(beyond_cap, far_beyond_cap),
        figure=draw,
    ),
)
