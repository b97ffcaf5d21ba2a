"""A Dataset as CSV: a row per cell, for programs that do not read netCDF."""

import csv as files
import io
import json

import numpy as np
import xarray as xr

WIDE = 40  # entries of a probe that get columns of their own


def csv(ds: xr.Dataset) -> str:
    """Axes, seed, what else varies, and every probe. Of a long probe (a curve of many steps) the
    last value stands there; the netCDF file has all of it."""
    grid = [axis for axis in json.loads(ds.attrs["grid"]) if axis in ds.dims]
    outer = [*grid, "seed"]
    shape = [ds.sizes[d] for d in outer]
    columns: dict[str, np.ndarray] = {}
    for name in outer:
        values = xr.DataArray(ds[name].values, dims=name)
        columns[name] = _spread(values, outer, ds)
    for name, values in ds.coords.items():
        if name not in outer and values.dims and set(values.dims) <= set(outer):
            columns[str(name)] = _spread(values, outer, ds)
    for name, values in ds.data_vars.items():
        inner = [str(d) for d in values.dims if d not in outer]
        size = int(np.prod([ds.sizes[d] for d in inner], dtype=int))
        if size > WIDE:
            for d in inner:
                values = values.isel({d: -1})
            columns[f"{name} (last)"] = _spread(values, outer, ds)
            continue
        for place in np.ndindex(*(ds.sizes[d] for d in inner)):
            told = [f"{d}={ds[d].values[n]}" for d, n in zip(inner, place, strict=True)]
            at = values.isel(dict(zip(inner, place, strict=True)))
            columns[f"{name}[{', '.join(told)}]" if told else str(name)] = _spread(at, outer, ds)
    assert all(len(v) == int(np.prod(shape)) for v in columns.values())
    text = io.StringIO()
    table = files.writer(text, lineterminator="\n")
    table.writerow(map(_safe, columns))
    table.writerows(zip(*([_safe(x) for x in v.tolist()] for v in columns.values()), strict=True))
    return text.getvalue()


def _spread(values: xr.DataArray, outer: list[str], ds: xr.Dataset) -> np.ndarray:
    """Values along some of the axes as a column over all cells."""
    whole = values.drop_vars(list(values.coords))
    whole = whole.expand_dims({d: ds.sizes[d] for d in outer if d not in values.dims})
    return whole.transpose(*outer).values.ravel()


def _safe(x: object) -> object:
    """Texts that a spreadsheet would run as a formula are told as texts."""
    return f"'{x}" if isinstance(x, str) and x[:1] in ("=", "+", "-", "@", "\t", "\r") else x
