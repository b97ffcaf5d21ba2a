"""Cells of a store as one labelled Dataset."""

import json
from typing import Any

import numpy as np
import xarray as xr

from provingground.engine import Job, probe_dims


def dataset(job: Job) -> xr.Dataset:
    """The Dataset of a sweep, from what is stored. Missing cells are NaN, and counted.

    Dims are the sweep's axes, `seed`, and the dims of the probes. A 1-D probe named like its dim
    becomes the coordinate. `diverged` marks trainings with a probe that is not finite.
    """
    sweep = job.sweep
    found = job.store.find(sweep.study.name)
    outer = (*(len(a.labels) for a in sweep.axes), len(sweep.seeds))
    ids = [cell for point in job.ids for cell in point]
    rows: dict[Any, tuple[list[int], list[int]]] = {}
    chunks = {}
    for i, cell in enumerate(ids):
        if cell in found:
            chunk, row = found[cell]
            chunks[chunk.path] = chunk
            at, taken = rows.setdefault(chunk.path, ([], []))
            at.append(i)
            taken.append(row)

    names = {p.program.simulator for p in job.points}
    dims = probe_dims(sweep.study.simulators[next(iter(sorted(names)))].probes)
    missing = len(ids) - sum(len(at) for at, _ in rows.values())
    flat: dict[str, np.ndarray] = {}
    for path, (at, taken) in rows.items():
        for name in dims:
            values = chunks[path].probes[name][taken]
            if name not in flat:
                kind = np.result_type(values.dtype, np.float32) if missing else values.dtype
                blank = np.nan if missing else 0
                flat[name] = np.full((len(ids), *values.shape[1:]), blank, kind)
            flat[name] = flat[name].astype(np.result_type(flat[name], values), copy=False)
            flat[name][at] = values

    outer_dims = (*(a.name for a in sweep.axes), "seed")
    variables = {
        n: ((*outer_dims, *dims[n]), v.reshape(*outer, *v.shape[1:])) for n, v in flat.items()
    }
    finite = np.ones(len(ids), bool)
    for v in (v for v in flat.values() if v.dtype.kind == "f"):
        finite &= np.isfinite(v.reshape(len(ids), -1)).all(axis=1)
    stored = np.zeros(len(ids), bool)
    stored[[i for at, _ in rows.values() for i in at]] = True
    diverged = stored & ~finite
    variables["diverged"] = (outer_dims, diverged.reshape(outer))

    ds = xr.Dataset(variables, coords={a.name: list(a.labels) for a in sweep.axes})
    ds = ds.assign_coords(seed=np.array(sweep.seeds, np.int32))
    for name in (n for n, d in dims.items() if d == (n,) and n in ds):
        ds = _as_coordinate(ds, name)
    _describe(ds, job)
    ds.attrs = {
        "study": sweep.study.name,
        "experiment": sweep.experiment.name,
        "title": sweep.study.title,
        "says": sweep.experiment.says,
        "scale": sweep.scale,
        "simulator": ", ".join(sorted(names)),
        "precision": ", ".join(sorted({p.program.precision for p in job.points})),
        "settings": json.dumps(dict(sweep.fixed), default=str),
        "grid": json.dumps({a.name: list(a.labels) for a in sweep.axes}, default=str),
        "cells": len(ids),
        "missing": missing,
        "diverged": int(diverged.sum()),
        **_provenance(list(chunks.values())),
    }
    return ds


def _as_coordinate(ds: xr.Dataset, name: str) -> xr.Dataset:
    """A probe that labels its own dim: a coordinate if all cells agree, else `<name>_values`."""
    values = ds[name].values.reshape(-1, ds.sizes[name])
    known = values[np.isfinite(values).all(axis=1)]
    if len(known) and (known == known[0]).all():
        return ds.drop_vars(name).assign_coords({name: known[0]})
    values = ds[name].variable
    return ds.drop_vars(name).assign({f"{name}_values": values})


def _describe(ds: xr.Dataset, job: Job) -> None:
    """Labels: coordinates from parameters, variables from the descriptions of the probes."""
    for par in job.sweep.table.values():
        if par.name in ds.coords:
            ds[par.name].attrs = {"long_name": par.says, "symbol": par.symbol}
    for name in {p.program.simulator for p in job.points}:
        simulator = job.study.simulators[name]
        for field in simulator.probes.__dataclass_fields__.values():
            if field.name in ds.variables and "says" in field.metadata:
                about = field.metadata
                ds[field.name].attrs = {"long_name": about["says"], "symbol": about["symbol"]}
    ds["seed"].attrs = {"long_name": "seed", "symbol": ""}


def _provenance(chunks: list[Any]) -> dict[str, Any]:
    """Where the cells came from: joined, since they may come from several runs."""
    about = [c.about for c in chunks]
    joined = {
        key: ", ".join(sorted({str(a[key]) for a in about}))
        for key in ("version", "jax", "numpy", "device", "backend", "lanes", "fingerprint")
    }
    return {**joined, "seconds": float(sum(a["seconds"] for a in about))}
