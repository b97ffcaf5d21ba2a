"""Figure 7.1: Example 1, where CoT succeeds and ICL fails on one of two inputs."""

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import above, below, claim
from provingground.stats import Estimate
from provingground.study import Experiment, Trainings

from .. import suites, transitions

EXAMPLE = {"n_steps": 2, "n_patterns_test": 2, "examples_test": 1024, "test_samples": 200}


@claim("Example 1, Theorem 4", below(0.02))
def example_cot(ds: xr.Dataset) -> Estimate:
    """CoT succeeds on Example 1 with 1024 examples (error of the vote)"""
    return stats.mean(ds.cot_error.isel(l_test=-1))


@claim("Example 1, Theorem 5(a)", above(0.95))
def example_icl_first(ds: xr.Dataset) -> Estimate:
    """ICL fails on the first input (error of the vote)"""
    return stats.mean(ds.icl_from.isel(l_test=-1, start=0))


@claim("Example 1, Theorem 5(b)", below(0.02))
def example_icl_second(ds: xr.Dataset) -> Estimate:
    """ICL succeeds on the second input (error of the vote)"""
    return stats.mean(ds.icl_from.isel(l_test=-1, start=1))


@claim("Example 1, Theorem 4", below(0.15), scale="paper")
def network_cot(ds: xr.Dataset) -> Estimate:
    """CoT succeeds on Example 1, examples without noise (error of the network)"""
    return stats.mean(ds.cot_error.isel(l_test=-1))


@claim("Example 1, Theorem 5(a)", above(0.3), scale="paper")
def network_icl_first(ds: xr.Dataset) -> Estimate:
    """ICL fails on the first input (error of the network)"""
    return stats.mean(ds.icl_from.isel(l_test=-1, start=0))


@claim("Example 1, Theorem 5(b)", below(0.02), scale="paper")
def network_icl_second(ds: xr.Dataset) -> Estimate:
    """ICL succeeds on the second input (error of the network)"""
    return stats.mean(ds.icl_from.isel(l_test=-1, start=1))


def draw(ds: xr.Dataset):
    fig, (left, right) = plot.figure(1, 2, title="Example 1: two inputs, two steps")
    part = ds.isel(setting=0) if "setting" in ds.dims else ds
    plot.curve(left, part.cot_error, "l_test", label="CoT", log="x")
    for i in range(2):
        y = part.icl_from.isel(start=i)
        plot.curve(left, y, "l_test", label=f"ICL, input {i + 1}", log="x")
    left.set_ylabel("test error")
    b = transitions.k_step(suites.EXAMPLE_1)
    names = [r"$\mu'_1$", r"$\mu'_2$"]
    table = xr.DataArray(
        np.broadcast_to(b, (ds.sizes["seed"], 2, 2)),
        dims=("seed", "input", "output"),
        coords={"input": [1, 2], "output": [1, 2]},
        attrs={"long_name": "probability", "symbol": "B^f"},
    )
    table.input.attrs, table.output.attrs = {"long_name": "input"}, {"long_name": "output"}
    plot.attention_map(right, table, rows=names, cols=names)
    return fig


EXPERIMENTS = (
    Experiment(
        "fig7_1",
        says="Example 1: errors of the vote by input, with many examples.",
        trainings=Trainings(
            grid={**EXAMPLE, "design": "example 1"},
            seeds=16,
            quick={"seeds": 6, "test_samples": 100},
            simulator="plurality",
        ),
        claims=(example_cot, example_icl_first, example_icl_second),
        figure=draw,
    ),
    Experiment(
        "fig7_1_network",
        says="Example 1: errors of the trained network by input, examples without noise.",
        trainings=Trainings(
            grid={**EXAMPLE, "suite": "example 1", "lr": 10.0, "noise": 0.0},
            seeds=16,
            paper_only=True,
        ),
        claims=(network_cot, network_icl_first, network_icl_second),
        figure=draw,
    ),
)
