"""The boundary of Figure 1(b), traced by bisection beyond the paper's sample sizes."""

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import claim, equals
from provingground.stats import Everywhere
from provingground.study import Experiment, Refine, Trainings

from .. import theory
from .fig1 import boundary_constant
from .shared import CUT, QUICK_SNR, SIGNAL_NORMS, loss_boundary, snr_of


@claim(
    "Figure 1(b), beyond its sample sizes",
    equals(1000, times=1.3),
    kind="own",
    law=boundary_constant.law,
    rivals=boundary_constant.rivals,
)
def traced_constant(ds: xr.Dataset) -> Everywhere:
    """on the boundary N SNR^2 is 1000 beyond the paper's sample sizes too (N from 21 to 40)"""
    found = boundary_constant.measure(ds.sel(samples=ds.samples > 20))
    assert isinstance(found, Everywhere)
    return found


def draw(ds: xr.Dataset):
    """The trainings that were run, by their side, and the boundary between them."""
    fig, (ax,) = plot.figure(title="The boundary by bisection", width=4.2, seeds=ds.sizes["seed"])
    loss = ds.test_loss.mean("seed", skipna=False).transpose("samples", "snr")
    for colour, name, side in (
        (plot.BELOW, f"run: $L < {CUT}$", loss < CUT),
        (plot.ABOVE, rf"run: $L \geq {CUT}$", loss >= CUT),
    ):
        i, j = np.nonzero(side.values)
        ax.plot(ds.samples[i], ds.snr[j], "s", color=colour, markersize=4, label=name)
    found = loss_boundary(ds)
    plot.law(ax, found.points, "samples", fit=found.law, label="measured boundary")
    n = ds.samples.values.astype(float)
    plot.theory_curve(ax, n, theory.printed_boundary_snr(n), r"paper: $N\,\mathrm{SNR}^2 = 1000$")
    derived = theory.boundary_snr(n, float(ds.noise), float(ds.noise_big))
    plot.theory_curve(ax, n, derived, "derived: $R = 2$")
    ax.set_ylabel(plot.label(ds.snr))
    return fig


EXPERIMENTS = (
    Experiment(
        "boundary",
        says="The boundary of Figure 1(b) on to twice the paper's samples, by bisection.",
        trainings=Trainings(
            grid={"samples": [12, 28, 40], "snr": list(snr_of(SIGNAL_NORMS))},
            seeds=8,
            quick={"samples": [12, 28], "snr": QUICK_SNR, "seeds": 5},
            refine=Refine("snr", "test_loss", CUT),
        ),
        claims=(traced_constant,),
        figure=draw,
    ),
)
