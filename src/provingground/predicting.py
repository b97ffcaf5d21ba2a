"""What a study's theory says at all settings of a Dataset, or of a sweep."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from provingground.config import pars
from provingground.study import Prediction, Study
from provingground.verdict import Met

MOST = 2048  # settings at which the conditions of an experiment are judged


def at_settings(owner: Study, ds: xr.Dataset, most: int | None = None) -> xr.Dataset:
    """The theory at every setting of a Dataset: its predictions by name, how many conditions are
    `satisfied`, and the `margin` of each `condition`.

    Settings are read from the coordinates, and each is computed once. With `most`, settings that
    are spread evenly over all of them stand for the rest, which is NaN.
    """
    name = str(ds.attrs.get("simulator", "")).partition(", ")[0]
    config = owner.simulator(name)[1].config
    names = [name for name in pars(config) if name in ds.coords]
    dims = [str(d) for d in ds.dims if any(d in ds[name].dims for name in names)]
    shape = [ds.sizes[d] for d in dims]
    columns = [ds[name].broadcast_like(ds[dims].coords.to_dataset()) for name in names]
    flat = [np.asarray(c.transpose(*dims).to_numpy()).ravel().tolist() for c in columns]
    told = list(zip(*flat, strict=True)) if flat else [()]
    every = max(1, -(-len(told) // most)) if most else 1
    known: dict[tuple[Any, ...], Prediction | None] = {}
    for values in told[::every]:
        if values not in known:
            known[values] = _predicted(owner, config, dict(zip(names, values, strict=True)))
    found = [known.get(values) for values in told]
    first = next((p for p in found if p is not None), Prediction((), {}))
    conditions = [c.name for c in first.conditions]

    def table(read: Any) -> tuple[list[str], np.ndarray]:
        return dims, np.array([math.nan if p is None else read(p) for p in found]).reshape(shape)

    variables: dict[str, Any] = {
        name: table(lambda p, name=name: p.values.get(name, math.nan)) for name in first.values
    }
    variables["satisfied"] = table(lambda p: sum(c.satisfied for c in p.conditions))
    margins = [[math.nan] * len(conditions) if p is None else _margins(p) for p in found]
    sized = np.array(margins, float).reshape(*shape, len(conditions))
    variables["margin"] = ([*dims, "condition"], sized)
    vacuous = sorted({name for p in found if p is not None for name in p.vacuous})
    made = xr.Dataset(variables, {"condition": conditions}, {"vacuous": ", ".join(vacuous)})
    made = made.assign_coords({n: c for n, c in ds.coords.items() if set(c.dims) <= set(dims)})
    for name, words in first.says.items():
        if name in made:
            made[name].attrs = {"long_name": words}
    return made


def _margins(p: Prediction) -> list[float]:
    return [c.margin for c in p.conditions]


def _predicted(owner: Study, config: Any, settings: Mapping[str, Any]) -> Prediction | None:
    """The theory at one setting; None where it cannot be computed."""
    table = pars(config)
    given = {}
    for name, value in settings.items():
        if value == value and value != "":  # parameters that this simulator does not have
            given[name] = table[name].type(value)
    try:
        return owner.theory(config(**given))
    except (ArithmeticError, ValueError):
        return None


def met(owner: Study, ds: xr.Dataset) -> Met | None:
    """How the conditions of the theorem stand over the settings of a Dataset."""
    found = at_settings(owner, ds, MOST)
    if not found.sizes["condition"] or not bool(found.satisfied.notnull().any()):
        return None
    vacuous = tuple(filter(None, found.attrs["vacuous"].split(", ")))
    worst = float(found.margin.min())
    return Met(int(found.satisfied.min()), found.sizes["condition"], worst, vacuous)
