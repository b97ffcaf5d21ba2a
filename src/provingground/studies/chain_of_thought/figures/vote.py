"""The trained network against a vote of the matched columns, on the same prompts."""

import xarray as xr

from provingground import plot, stats
from provingground.claims import above, claim, equals
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Experiment

from .shared import TRAINED, at


def differences(ds: xr.Dataset, probe: str, vote: str) -> Everywhere:
    """Network less vote at every setting, over prompts of 8 examples and more."""
    part = ds.sel(l_test=slice(8, None))
    return everywhere(stats.mean, (part[probe] - part[vote]).mean("l_test"))


def blunt(ds: xr.Dataset) -> xr.Dataset:
    """The Dataset of a network that errs in one more of ten cases."""
    more = {n: ds[n] + 0.1 * (1 - ds[n]) for n in ("cot_error", "icl_blind")}
    return ds.assign(more)


@claim(
    "perfect attention, Proposition 3",
    equals(0, within=0.05),
    kind="own",
    rivals={"errs more": blunt},
)
def cot_is_a_vote(ds: xr.Dataset) -> Everywhere:
    """CoT errs as often as the vote at every setting, from 8 examples on (difference)"""
    return differences(ds, "cot_error", "vote_cot")


@claim(
    "perfect attention, Proposition 3",
    equals(0, within=0.05),
    kind="own",
    rivals={"errs more": blunt},
)
def icl_is_a_vote(ds: xr.Dataset) -> Everywhere:
    """without the output rows of W, so does ICL (difference)"""
    return differences(ds, "icl_blind", "vote_icl")


@claim("negative diagonal of W's output rows", above(0), kind="own", scale="paper")
def output_rows(ds: xr.Dataset) -> Estimate:
    """where Condition 7.3.2 fails ICL errs less often than the vote at 256 examples"""
    part = at(ds, "condition fails").sel(l_test=256)
    return stats.paired_difference(part.vote_icl, part.icl_error)


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="The trained network and a vote", seeds=ds.sizes["seed"])
    pairs = (("cot_error", "vote_cot", "CoT error"), ("icl_error", "vote_icl", "ICL error"))
    kinds = {
        "$\\alpha'$ varied": "alpha",
        "$\\tau^f$ varied": "tau",
        "$\\rho^f$ varied": "rho",
        "Figure 7.5": "condition",
    }
    for ax, (probe, vote, words) in zip(axes, pairs, strict=True):
        mean = ds[[probe, vote]].mean("seed")
        for i, (label, start) in enumerate(kinds.items()):
            rows = [n for n in ds.setting.values if str(n).startswith(start)]
            x, y = (mean[v].sel(setting=rows).values.ravel() for v in (vote, probe))
            ax.plot(x, y, plot.MARKERS[i], color=plot.PALETTE[i], markersize=4, label=label)
        plot.theory_curve(ax, [0, 0.8], [0, 0.8], "equal")
        ax.set(xlabel=f"{words} of the vote", ylabel=f"{words} of the network")
    return fig


EXPERIMENTS = (
    Experiment(
        "vote",
        says="The trained network against a vote of the matched columns, on the same prompts.",
        trainings=TRAINED,
        claims=(cot_is_a_vote, icl_is_a_vote, output_rows),
        figure=draw,
    ),
)
