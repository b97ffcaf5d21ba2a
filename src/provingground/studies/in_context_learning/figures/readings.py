"""The size of the read-out, which text and appendix give differently, and the initial scale."""

import xarray as xr

from provingground import plot
from provingground.claims import above, claim
from provingground.stats import Estimate, last, paired_difference
from provingground.study import Experiment, Trainings, cases

from .shared import NAMES

TEXT, APPENDIX = "$1/m$", r"$1/\sqrt{m}$"

TRAININGS = Trainings(
    grid={
        "test_samples": 4000,
        "reading": cases(
            {
                TEXT: {},
                APPENDIX: {"readout_power": 0.5, "lr": 0.2},
                r"$1/m$, $\delta = 0.2$": {"delta": 0.2},
            }
        ),
    },
    seeds=8,
    simulator="mechanism",
    paper_only=True,
)


@claim("found here", above(0.02), kind="own")
def lazy_attention(ds: xr.Dataset) -> Estimate:
    """with 1/sqrt(m) attention in domain ends lower (difference)"""
    end = last(ds.attention).sel(domain="in", drop=True)
    return paired_difference(*(end.sel(reading=r, drop=True) for r in (TEXT, APPENDIX)))


@claim("found here", above(0), kind="own")
def lazy_error(ds: xr.Dataset) -> Estimate:
    """and the error out of domain is higher (difference)"""
    end = ds.test_error.sel(domain="out", alpha_prime=0.8, length=20, drop=True)
    return paired_difference(*(end.sel(reading=r, drop=True) for r in (APPENDIX, TEXT)))


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="Scale of the read-out and of the initial weights")
    for ax, domain in zip(axes, NAMES, strict=True):
        y = ds.attention.sel(domain=domain, drop=True).assign_attrs(ds.attention.attrs)
        plot.curve(ax, y, "step", hue="reading")
        ax.set_ylim(0, 1)
        ax.set_title(NAMES[domain])
    return fig


EXPERIMENTS = (
    Experiment(
        "readings",
        says="Read-outs of size 1/m (main text) or 1/sqrt(m) (appendix), and the initial scale.",
        trainings=TRAININGS,
        claims=(lazy_attention, lazy_error),
        figure=draw,
    ),
)
