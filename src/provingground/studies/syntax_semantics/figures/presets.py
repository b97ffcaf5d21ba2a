"""Other settings: a weaker gate, a mild one, and one in which both sides are near."""

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim
from provingground.stats import Everywhere, everywhere, mean, paired_difference
from provingground.study import Experiment, Trainings, cases

from .shared import NOTHING, ending, levels

PRESETS = {
    "gate12": {"z_norm": 12.0},
    "mild": {"z_norm": 8.0, "zeta_norm": 2.0, "lr2": 0.003, "k2": 10.0},
    "two_sided": {
        "z_norm": 3.5,
        "zeta_norm": 2.5,
        "weight_decay": 0.03,
        "init_std": 1.4,
        "lr1": 0.4,
        "lr2": 0.008,
        "k2": 3.0,
    },
}


@claim("Theorem 2 (b.2)", below(0.25))
def presets_easy(ds: xr.Dataset) -> Everywhere:
    """stage 1 learns the easy part in every setting (loss)"""
    return everywhere(mean, ending(ds.loss_easy, 1))


@claim("Theorem 3", above(0.02), rivals=NOTHING)
def presets_hard(ds: xr.Dataset) -> Everywhere:
    """stage 2 lowers the loss of the hard part in every setting"""
    return everywhere(paired_difference, ending(ds.loss_hard, 1), ending(ds.loss_hard, 2))


def draw(ds: xr.Dataset):
    fig, (ax,) = plot.figure(title="The hard part in other settings", width=5.0)
    plot.curve(ax, ds.loss_hard, "stage", hue="preset")
    levels(ax)
    return fig


EXPERIMENTS = (
    Experiment(
        "presets",
        says="Other settings: a weaker gate, a mild one, and one in which both sides are near.",
        trainings=Trainings(grid={"preset": cases(PRESETS)}, seeds=1024, quick={"seeds": 24}),
        claims=(presets_easy, presets_hard),
        figure=draw,
    ),
)
