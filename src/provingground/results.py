"""Cells of a store as one labelled Dataset."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from provingground import extend
from provingground.chunk import Sound
from provingground.config import pars, traced
from provingground.data import real
from provingground.engine import Job
from provingground.errors import StoreError
from provingground.grid import Group, Sweep
from provingground.netcdf import Variable
from provingground.programs import probe_dims


def dataset(job: Job) -> xr.Dataset:
    """The Dataset of a sweep, from what is stored. Missing cells are NaN, and counted.

    Dims are the sweep's axes, `seed`, and the dims of the probes. A 1-D probe named like its dim
    becomes the coordinate. `diverged` marks trainings with a probe that is not finite. Every
    parameter is a coordinate, along the axes that it depends on (see `settings_of`).
    """
    sweep = job.sweep
    ids = job.ids.ravel()
    index = job.store.look(sweep.study.name)
    wanted = np.repeat(job.wanted, len(sweep.seeds))
    file, row = job.store.where(sweep.study.name, ids)
    file[~wanted] = -1  # what another experiment left there does not count
    names = {g.program.simulator for g in job.groups}
    dims = probe_dims(sweep.study.simulators[next(iter(sorted(names)))].probes)
    study = sweep.study.name
    places: list[np.ndarray] = []
    parts: list[tuple[str, Sound]] = []
    by_file = np.argsort(file, kind="stable")[np.count_nonzero(file < 0) :]
    for at in np.split(by_file, np.flatnonzero(np.diff(file[by_file])) + 1) if len(by_file) else ():
        name = index.files[file[at[0]]]
        part = job.store.sound(study, name)
        if part is None:  # damaged or set aside since
            continue
        if wrong := misfit(part.file.variables, dims):
            job.store.forget(job.store.path / study / name, wrong)
            continue
        if parts and (probe := _other_shape(parts[0][1], part, dims)):
            folder = job.store.path / study
            raise StoreError(
                f"{probe} has another shape in {folder / name} than in {folder / parts[0][0]}; "
                "move the one that is wrong away"
            )
        places.append(at)
        parts.append((name, part))
    found = np.zeros(len(ids), bool)
    flat: dict[str, np.ndarray] = {}
    if parts:
        at = np.concatenate(places)
        found[at] = True
        for name in dims:
            some = [p.file.view(name)[row[r]] for (_, p), r in zip(parts, places, strict=True)]
            kind = np.result_type(*{values.dtype for values in some})
            flat[name] = np.zeros((len(ids), *some[0].shape[1:]), kind.newbyteorder("="))
            flat[name][at] = np.concatenate(some)
    if not found.all():
        for name, values in flat.items():
            flat[name] = values.astype(np.result_type(values.dtype, np.float32))
            flat[name][~found] = np.nan

    about = _provenance([part.about for _, part in parts])
    if name := sweep.trainings.data:
        about["data"] = f"{name} {job.data_digest[:16]}"
        if forms := real.forms_read(real.read_by(name, sweep.study.data[name])):
            about["data_forms"] = forms
    return labelled(sweep, job.groups, flat, found, wanted, about)


def labelled(
    sweep: Sweep,
    groups: Sequence[Group],
    flat: Mapping[str, np.ndarray],
    found: np.ndarray,
    wanted: np.ndarray,
    about: Mapping[str, Any],
) -> xr.Dataset:
    """Probes of all cells (a row each) as a Dataset; `found` and `wanted` say which are there."""
    names = sorted({g.program.simulator for g in groups})
    probes = sweep.study.simulators[names[0]].probes
    dims, words = probe_dims(probes), labels_of(probes)
    outer, outer_dims = (*sweep.shape, len(sweep.seeds)), (*(a.name for a in sweep.axes), "seed")
    finite = np.ones(len(found), bool)
    for v in (v for v in flat.values() if v.dtype.kind == "f"):
        finite &= np.isfinite(v.reshape(len(found), -1)).all(axis=1)
    diverged = found & ~finite
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {a.name: list(a.labels) for a in sweep.axes}
    coords["seed"] = np.array(sweep.seeds, np.int32)
    for name, values in flat.items():
        if dims[name] == (name,) and (labels := _common(values)) is not None:
            told = np.array(words.get(name, ()))
            coords[name] = told[labels.astype(int)] if name in words else _exact(labels)
            continue
        called = f"{name}_values" if dims[name] == (name,) else name
        variables[called] = ((*outer_dims, *dims[name]), values.reshape(*outer, *values.shape[1:]))
    variables["diverged"] = (outer_dims, diverged.reshape(outer))
    known = {*variables, *coords, *(d for axes in dims.values() for d in axes)}
    settings = {n: v for n, v in settings_of(sweep, groups).items() if n not in known}
    ds = xr.Dataset(variables, coords | settings)
    _describe(ds, sweep, names)
    ds.attrs = {
        "study": sweep.study.name,
        "experiment": sweep.experiment.name,
        "title": sweep.study.title,
        "says": sweep.experiment.says,
        "scale": sweep.scale,
        "simulator": ", ".join(names),
        "precision": ", ".join(sorted({g.program.precision for g in groups})),
        **{name: json.dumps(told) for name, told in extend.of(sweep.study).items()},
        "settings": json.dumps(dict(sweep.fixed), default=str),
        "grid": json.dumps({a.name: list(a.labels) for a in sweep.axes}, default=str),
        "changed": ", ".join(sorted(sweep.given)),
        "seeds": _told(sweep.seeds),
        "cells": len(found),
        "missing": int((wanted & ~found).sum()),
        "skipped": int((~wanted).sum()),
        "diverged": int(diverged.sum()),
        **about,
    }
    return ds


def settings_of(
    sweep: Sweep, groups: Sequence[Group]
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Every parameter of a sweep over the axes along which it changes; those that are the same
    everywhere are scalars.

    Where simulators differ in their parameters, one that a point does not have is NaN (or no text).
    """
    points = math.prod(sweep.shape)
    found: dict[str, np.ndarray] = {}
    for group in groups:
        fixed, traced_names = dict(group.program.shape), traced(group.config)
        for name, par in pars(group.config).items():
            if name not in found:
                blank: Any = "" if par.type is str else np.nan
                found[name] = np.full(points, blank, object if par.type is str else float)
            at = traced_names.index(name) if name in traced_names else None
            found[name][group.points] = fixed[name] if at is None else group.values[:, at]
    table = {n: p for group in groups for n, p in pars(group.config).items()}
    coords = {}
    for name, values in found.items():
        kind = table[name].type
        if kind is str:
            values = values.astype(str)
        elif kind is not float and not np.isnan(values).any():
            values = values.astype(kind)
        coords[name] = _where_it_changes(values.reshape(sweep.shape), sweep)
    return coords


def _where_it_changes(values: np.ndarray, sweep: Sweep) -> tuple[tuple[str, ...], np.ndarray]:
    """An array over the grid without the axes along which it is constant."""
    dims = []
    for axis in sweep.axes:
        first = values.take([0], axis=len(dims))
        same = (values == first) | ((values != values) & (first != first))  # NaN equals NaN
        if np.all(same):
            values = first.squeeze(axis=len(dims))
        else:
            dims.append(axis.name)
    return tuple(dims), values


def _exact(labels: np.ndarray) -> np.ndarray:
    """Labels that were computed in single precision, as the numbers of six digits that they mean:
    then `sel(alpha=0.8)` finds them."""
    if labels.dtype != np.float32:
        return labels
    return np.array([float(f"{label:.6g}") for label in labels])


def labels_of(probes: type) -> dict[str, tuple[str, ...]]:
    """The labels of those probes that number their own dim in words."""
    fields = probes.__dataclass_fields__  # pyright: ignore[reportAttributeAccessIssue]
    return {n: told for n, f in fields.items() if (told := f.metadata.get("labels", ()))}


def misfit(
    probes: Mapping[str, Variable] | Mapping[str, np.ndarray], dims: Mapping[str, tuple[str, ...]]
) -> str:
    """What is wrong with a file that has not the probes of the study."""
    for name, axes in dims.items():
        if name not in probes:
            return f"it lacks the probe {name}"
        if len(probes[name].shape) != 1 + len(axes):
            return f"{name} is not the probe that it should be"
    return ""


def _other_shape(a: Sound, b: Sound, dims: Mapping[str, Any]) -> str:
    """The first probe that has another shape in one file than in another."""
    x, y = a.file.variables, b.file.variables
    if x is y:
        return ""
    return next((n for n in dims if x[n].shape[1:] != y[n].shape[1:]), "")


def _common(values: np.ndarray) -> np.ndarray | None:
    """What a probe that labels its own dim says, if all cells agree."""
    known = values[np.isfinite(values).all(axis=1)]
    return known[0] if len(known) and (known == known[0]).all() else None


def _told(seeds: Sequence[int]) -> str:
    """Which seeds, as `--seeds` takes them where they follow each other."""
    whole = list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]}:{seeds[-1] + 1}" if whole else ", ".join(map(str, seeds))


def _describe(ds: xr.Dataset, sweep: Sweep, simulators: Sequence[str]) -> None:
    """Labels: coordinates from parameters, variables from the descriptions of the probes."""
    for par in sweep.table.values():
        if par.name in ds.coords:
            ds[par.name].attrs = {"long_name": par.says, "symbol": par.symbol}
    for name in simulators:
        describe_probes(ds, sweep.study.simulators[name].probes)
    ds["seed"].attrs = {"long_name": "seed", "symbol": ""}


def describe_probes(ds: xr.Dataset, probes: type) -> xr.Dataset:
    """Labels the variables that have the name of a probe by its description."""
    for field in probes.__dataclass_fields__.values():  # pyright: ignore[reportAttributeAccessIssue]
        if field.name in ds.variables and "says" in field.metadata:
            about = field.metadata
            ds[field.name].attrs = {"long_name": about["says"], "symbol": about["symbol"]}
    return ds


def _provenance(about: list[dict[str, Any]]) -> dict[str, Any]:
    """Where the cells came from: joined, since they may come from several runs."""
    keys = ("version", "commit", "date", "jax", "numpy", "device", "devices", "backend", "lanes")
    joined = {}
    for key in (*keys, "fingerprint"):
        told = {a.get(key, "?") for a in about}
        joined[key] = ", ".join(sorted({name for text in told for name in text.split(", ")}))
    return {**joined, "seconds": math.fsum(a.get("seconds", 0) for a in about)}
