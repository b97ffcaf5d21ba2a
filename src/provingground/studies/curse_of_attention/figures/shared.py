"""What several rooms share: modes, settings, and how things are read off a Dataset."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from provingground.claims import Altered
from provingground.stats import Estimate, mean
from provingground.study import Trainings, cases

from .. import theory
from ..data import MIX, UNIFORM, UNIT

MODES: dict[str, dict[str, Any]] = {"mix": {"mode": MIX}, "unit": {"mode": UNIT}}
ALL_MODES = MODES | {"unit_uniform": {"mode": UNIFORM}}
FEATURES = cases(MODES)
WEAK = r"unit, $\gamma = 0.2$"
GAMMAS = {"mix": MODES["mix"]} | {
    rf"unit, $\gamma = {g}$": {"mode": UNIT, "gamma": g} for g in (0.2, 0.5, 0.7, 0.9)
}
QUICK_GAMMAS = {k: v for k, v in GAMMAS.items() if v.get("gamma") != 0.7}

STANDARD: dict[str, Any] = dict(steps=3000, record=32, test_samples=2000)
QUICK: dict[str, Any] = dict(steps=300, record=16, test_samples=1000)

# One training for each similarity of the last and the next feature.
TRAINED = Trainings(
    grid={**STANDARD, "noise": 0.1, "features": cases(GAMMAS)},
    seeds=16,
    quick={**QUICK, "features": cases(QUICK_GAMMAS), "seeds": 8},
)

LATE = 60  # steps at which widths are compared
WIDTHS = Trainings(
    grid={**STANDARD, "samples": [6, 64], "width": [64, 256, 1024, 4096], "noise": 0.1},
    seeds=16,
    quick={
        "steps": LATE,
        "record": 6,
        "test_samples": 50,
        "width": [64, 256, 1024],
        "seeds": 24,
    },
    # Many samples at the largest width would take long.
    domain={"tokens": [4, 8, 16], "noise": (0.03, 0.3), "lr": (0.1, 1.0), "init_scale": (0.3, 3.0)},
)


# ------------------------------------------------------------------------- read off a Dataset


def at_step(y: xr.DataArray, step: int) -> xr.DataArray:
    """The recorded step nearest to one."""
    return y.isel(step=int(np.argmin(abs(y.step.values - step))), drop=True)


def told(ds: xr.Dataset, what: Callable[..., Any], *names: str, **rest: Any) -> xr.DataArray:
    """A function of the theory at every setting of a Dataset."""

    def one(*values: Any) -> float:
        return float(what(*(np.asarray(v).item() for v in values), **rest))

    return xr.apply_ufunc(one, *(ds[name] for name in names), vectorize=True)


def core(ds: xr.Dataset) -> xr.DataArray:
    return told(ds, lambda *at: theory.core_norm_sum(*at)[0], "mode", "tokens", "gamma")


def norm(ds: xr.Dataset) -> xr.DataArray:
    return told(ds, lambda *at: theory.core_norm_sum(*at)[1], "mode", "tokens", "gamma")


def total(ds: xr.Dataset) -> xr.DataArray:
    return told(ds, lambda *at: theory.core_norm_sum(*at)[2], "mode", "tokens", "gamma")


def log(y: xr.DataArray) -> xr.DataArray:
    return xr.apply_ufunc(np.log, y)


def geometric(y: xr.DataArray) -> Estimate:
    """The geometric mean: for what is skewed."""
    return mean(log(y)).map(np.exp)


def both(y: xr.DataArray, z: xr.DataArray) -> xr.DataArray:
    """Risks in and out of distribution, one beside the other."""
    return xr.concat([y, z], xr.DataArray(["in", "out"], dims="domain", name="domain"))


# ------------------------------------------------------------------------------ what would be


def replaced(probe: str, by: Callable[[xr.Dataset], xr.DataArray]) -> Altered:
    """The Dataset with other numbers for a probe."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        made = (by(ds) + 0 * ds[probe]).transpose(*ds[probe].dims)
        return ds.assign({probe: made})

    return altered
