"""Figure 3: the data in the plane."""

from typing import Any

import xarray as xr

from provingground import plot
from provingground.claims import above, below, claim
from provingground.stats import Estimate, mean
from provingground.study import Experiment, Trainings

from .shared import level


@claim("Figure 3", above(0.999), rivals={"mixed": level("linear_easy", lambda ds: 0.75)})
def easy_separable(ds: xr.Dataset) -> Estimate:
    """a line separates the easy part (share that it gets right)"""
    return mean(ds.linear_easy)


@claim("Figure 3", below(0.77), rivals={"separable": level("linear_hard", lambda ds: 1.0)})
def hard_not_separable(ds: xr.Dataset) -> Estimate:
    """no line gets more than three quarters of the hard part"""
    return mean(ds.linear_hard)


def draw(ds: xr.Dataset):
    fig, axes = plot.figure(1, 2, title="The data in the plane", seeds=ds.sizes["seed"])
    for ax, part, mark in zip(
        axes, ("easy", "hard"), (r"\mathcal{P}", r"\mathcal{Q}"), strict=True
    ):
        one = ds.isel(seed=0)
        for k, (sign, name) in enumerate(((1, "$y = 1$"), (-1, "$y = -1$"))):
            x = one[f"x_{part}"].values[one.label.values == sign]
            look: dict[str, Any] = dict(
                color=plot.PALETTE[k], marker=plot.MARKERS[k], linestyle="none", markersize=4
            )
            ax.plot(x[:, 0], x[:, 1], label=name, gid="series", **look)
        accuracy = mean(ds[f"linear_{part}"]).value
        ax.set_title(f"${mark}$: a line gets {accuracy:.0%}", loc="left")
        ax.set(xlabel="first coordinate", ylabel="second coordinate")
        ax.margins(0.15)
        ax.set_aspect("equal", adjustable="datalim")
    return fig


EXPERIMENTS = (
    Experiment(
        "fig3",
        says="The data in the plane: the easy part is linearly separable, the hard part is not.",
        trainings=Trainings(
            simulator="picture",
            grid={
                "dim": 2,
                "samples": 4,
                "tokens": 129,
                "margin": 0.3,
                "z_norm": 2.0,
                "zeta_norm": 1.0,
            },
            seeds=32,
            quick={"seeds": 8},
        ),
        claims=(easy_separable, hard_not_separable),
        figure=draw,
    ),
)
