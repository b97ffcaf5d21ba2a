"""What several rooms share: the trainings, settings by name, and the examples that are needed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from provingground import plot, stats
from provingground.claims import Altered, curve
from provingground.stats import Estimate, Everywhere, everywhere
from provingground.study import Trainings

from .. import theory

LEVEL = 0.05  # the error at which examples are enough
MATCHED, SAME_STEP, SAME_PATTERN, NEITHER = (
    "same step, same pattern",
    "same step, other",
    "other step, same pattern",
    "neither",
)

# One training serves Figures 7.2 to 7.6: each is tested on all settings and prompt lengths.
TRAINED = Trainings(
    grid={"lr": 1.0, "steps": 10_000, "record": 60, "examples_test": 512, "test_samples": 400},
    seeds=16,
    quick={
        "lr": 5.0, "steps": 1000, "record": 30, "examples_test": 128, "test_samples": 240,
        "seeds": 6,
    },
    # Patterns must fit into the dimension, a primacy of 0.8 exists from 10 test patterns on, and
    # attention must have concentrated by the end: no factor of 10 in these. For noise of
    # 0.7 see `large_noise_costs`.
    domain={
        "alpha": (0.08, 0.8),
        "noise": (0.0, 0.5),
        "n_patterns": (12, 27),
        "n_patterns_test": (10, 20),
        "lr": (1.0, 10.0),
        "examples": (20, 40),
    },
    where=lambda s: (
        s["n_patterns_test"] <= s["n_patterns"]
        and s["lr"] * s["steps"] >= 4000
        and s["alpha"] * s["examples"] >= 2
    ),
)  # fmt: skip


def trained_long(s: Mapping[str, Any]) -> bool:
    """Whether training gets into stage two and (7.15) speaks (of a loss of 0.5), chains do not meet
    a pattern twice, and all fits."""
    k, m, alpha = s["n_steps"], s["n_patterns"], s["alpha"]
    time = theory.stage_one_time(1.0, alpha, k, 0.5) + k * m * (1 / alpha + 2)
    return bool(
        m + k <= s["dim"]
        and m >= k * (k - 1)
        and alpha * s["examples"] >= 2
        and s["lr"] * s["steps"] >= max(100 * m, 1.2 * time)
    )


# Training without tests, for Theorem 3 and its lemmas.
PACE = Trainings(
    grid={"lr": 1.0, "steps": 10_000, "record": 60},
    seeds=16,
    quick={"lr": 5.0, "steps": 1000, "record": 40, "seeds": 6},
    simulator="training",
    domain={
        "alpha": (0.08, 0.8),
        "n_patterns": (5, 50),
        "n_steps": [2, 3, 4, 5],
        "examples": (20, 60),
        "lr": (1.0, 10.0),
        "batch": [64, 128],
        "dim": [30, 60],
    },
    where=trained_long,
)

# ---------------------------------------------------------------------- settings by their names


def at(ds: xr.Dataset, name: str) -> xr.Dataset:
    """The Dataset at one test setting."""
    return ds.sel(setting=name, drop=True)


def sweep(ds: xr.Dataset, names: Sequence[str], by: str) -> xr.Dataset:
    """The settings that vary one thing, along its realised value, not the one asked for."""
    part = ds.sel(setting=list(names))
    over = [d for d in part[by].dims if d != "setting"]
    values = part[by].mean(over).values.astype(float).round(4)
    attrs = ds[by].attrs
    part = part.drop_vars([by, "setting"]).rename(setting=by).assign_coords({by: values})
    part[by].attrs = attrs
    return part.sortby(by)


# ---------------------------------------------------------------------------- examples needed


def needed(
    ds: xr.Dataset, names: Sequence[str], probe: str, by: str, window: Any = None
) -> stats.Boundary:
    r"""$l^*$: the examples at which the error falls to `LEVEL`, over a realised quantity."""
    return stats.phase_boundary(sweep(ds, names, by)[probe], "l_test", by, LEVEL, window=window)


def smallest_steps(
    ds: xr.Dataset, names: Sequence[str], probe: str, by: str, lengths: Sequence[int]
) -> Everywhere:
    """The smallest step down of the error from one value to the next, at each of some lengths."""
    error = sweep(ds, names, by)[probe].sel(l_test=list(lengths))
    return everywhere(lambda y: stats.monotone(y, by), error, keep=by)


def falling(x: Any) -> Any:
    """An error that falls with x, and is `LEVEL` at x = 1."""
    return 0.8 / (1 + (0.8 / LEVEL - 1) * x**1.5)


def error_as(probe: str, x: Callable[[xr.Dataset], Any]) -> Altered:
    """The Dataset whose error is a function of x alone, with the noise of the measured one."""

    def law(ds: xr.Dataset) -> xr.DataArray:
        mean = ds.mean("seed")
        return falling(x(mean)).transpose(*mean[probe].dims)

    return curve(probe, law)


def draw_errors(
    names: Sequence[str], probe: str, by: str, title: str, window: Any = None
) -> Callable[[xr.Dataset], Any]:
    """Error against examples for each value of `by`; examples needed against `by`."""

    def draw(ds: xr.Dataset):
        fig, (left, right) = plot.figure(1, 2, title=title)
        plot.curve(left, sweep(ds, names, by)[probe], "l_test", hue=by, log="x")
        found = needed(ds, names, probe, by, window)
        there = np.isfinite(found.points.value)
        if there.any():
            points = found.points.isel({by: there.values})
            plot.law(right, points, by, fit=found.law, label="measured")
        right.set_ylabel(rf"examples for an error of {LEVEL}, $l^*$")
        return fig

    return draw


# ---------------------------------------------------------------------------------- training


def in_time(y: xr.DataArray) -> xr.DataArray:
    r"""The same measurement over $\eta t$, from the first step on."""
    lr = float(y.lr)
    y = y.isel(step=slice(1, None))
    y = y.assign_coords(step=y.step * lr)
    y.step.attrs = {"long_name": "training time", "symbol": r"\eta t"}
    return y


def error_mean(ds: xr.Dataset, probe: str, name: str, examples: int) -> Estimate:
    return stats.mean(at(ds, name)[probe].sel(l_test=examples))
