"""What several rooms share: the two stages and their controls, how a stage ends, the rests."""

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any, Literal

import numpy as np
import xarray as xr

from provingground import plot
from provingground.claims import Altered
from provingground.study import Trainings, cases

from .. import exact, theory
from ..exact import FLOOR, LOG2, ONE_SIDED

RECORDS = 10  # a stage ends with the mean over its last records: a snapshot may be a burst of noise
LEARNED, MISSED = 0.56, 0.65  # hard losses: below, one of z + ζ, z - ζ is learned; above, none
KEPT = sqrt(0.05)  # gradient noise as strong as at step size 0.1, in terms of that of 0.005
COOL = 0.05  # temperature of stage 2 over that of stage 1, where it is held

# "printed t1" has the paper's length of stage 1, 1/(lr1 weight_decay); the others three times that,
# so that the easy part is at rest when stage 2 begins.
TWO_STAGES = Trainings(
    grid={
        "schedule": cases(
            {
                "annealed": {},
                "printed t1": {"k1": 1.0},
                "large step": {"lr2": 0.1, "k2": 20.0},
                "small step": {"lr1": 0.005, "k2": 1.0, "noise": KEPT, "noise2": KEPT},
                "no noise": {"noise": 0.0, "noise2": 0.0, "k2": 1.0},
            }
        )
    },
    seeds=1024,
    quick={"seeds": 96},
)
BOTH = ["annealed", "printed t1"]

# ------------------------------------------------------------------------- read off a Dataset


def ending(y: xr.DataArray, stage: Literal[1, 2]) -> xr.DataArray:
    """The mean over the last records of a stage."""
    end = (y.sizes["stage"] + 1) // 2 if stage == 1 else y.sizes["stage"]
    return y.isel(stage=slice(end - RECORDS, end)).mean("stage")


def on(ds: xr.Dataset, schedule: str) -> xr.Dataset:
    return ds.sel(schedule=schedule, drop=True)


def of_settings(ds: xr.Dataset, f: Callable[..., Any], *names: str) -> tuple[xr.DataArray, ...]:
    """What a function of plain numbers says at every setting, field by field."""
    first = f(*(float(ds[n].to_numpy().flat[0]) for n in names))
    fields = len(first) if isinstance(first, tuple) else 1
    given = [xr.DataArray(ds[n].variable) for n in names]
    found = xr.apply_ufunc(
        lambda *a: f(*map(float, a)),
        *given,
        vectorize=True,
        output_core_dims=[[]] * fields,
        output_dtypes=[float] * fields,
    )
    found = found if isinstance(found, tuple) else (found,)
    at = {n: ds[n] for n in ds.dims if n in ds.coords}
    return tuple(a.assign_coords({n: at[n] for n in a.dims if n in at}) for a in found)


def rest(ds: xr.Dataset) -> Any:
    """Both parts at rest with one side learned: an `exact.Rest` of arrays, at every setting."""
    names = ("margin", "dim", "tokens", "weight_decay", "z_norm", "zeta_norm")
    return exact.Rest(*of_settings(ds, exact.one_side_rest, *names))  # pyright: ignore


def easy_rest(ds: xr.Dataset) -> xr.DataArray:
    names = ("margin", "dim", "tokens", "weight_decay", "positive")
    return of_settings(ds, exact.easy_rest, *names)[0]


def rest_at(settings: Mapping[str, Any]) -> exact.Rest:
    """The same of one setting."""
    names = ("margin", "dim", "tokens", "weight_decay", "z_norm", "zeta_norm")
    return exact.one_side_rest(*(float(settings[n]) for n in names))


def at_temperature(settings: dict[str, Any]) -> dict[str, float]:
    r"""The noise of stage 2 that gives its temperature $T_2 = \eta_2\tau_\xi^2/2$."""
    return {"noise2": float(np.sqrt(settings["temperature"] * settings["lr1"] / settings["lr2"]))}


def d_log_d(ds: xr.Dataset) -> Any:
    r"""(b.1) and (c.1) with $\epsilon = 1/d$."""
    return theory.theorem2_norm(ds.dim, 1 / ds.dim)


# ------------------------------------------------------------------------------ what would be


def level(probe: str, value: Callable[[xr.Dataset], Any]) -> Altered:
    """The Dataset in which a probe has one value in all seeds."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        made = xr.zeros_like(ds[probe]) + value(ds)
        return ds.assign({probe: made.transpose(*ds[probe].dims)})

    return altered


def scaled(probe: str, factor: Callable[[xr.Dataset], Any]) -> Altered:
    """The Dataset with a probe times what `factor(ds)` says."""

    def altered(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign({probe: (ds[probe] * factor(ds)).transpose(*ds[probe].dims)})

    return altered


NOTHING = {"nothing is learned": level("loss_hard", lambda ds: LOG2)}
ONE_SIDE = {"one side is learned": level("loss_hard", lambda ds: ONE_SIDED)}

# ------------------------------------------------------------------------------------ drawing


def levels(ax: Any, ends: tuple[float, float] = (0, 2)) -> None:
    plot.theory_curve(ax, ends, [ONE_SIDED] * 2, r"one side: $\frac{3}{4}\log 2$")
    plot.theory_curve(ax, ends, [FLOOR] * 2, r"floor: $\frac{1}{2}\log 2$")


def over_settings(ax: Any, found: list[Any], place: xr.DataArray, says: str, theory: float) -> None:
    """One estimate for each of some settings, and the theory's value."""
    place = place.drop_attrs()
    place.attrs["long_name"] = "setting"
    plot.curve(ax, found, place, label="measured", line=False)
    plot.theory_curve(ax, [0, len(place) - 1], [theory] * 2, "theory")
    ax.set_ylabel(says)
