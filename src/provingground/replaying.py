"""One cell again, step by step."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from provingground import api, extend, grid, planning, reprs
from provingground.errors import InputError, shortened, told_shortly, unknown
from provingground.identity import program_hash, running
from provingground.keys import seed_key
from provingground.programs import data_of, probe_dims, single
from provingground.reprs import shown
from provingground.results import describe_probes
from provingground.study import Study, points
from provingground.train import taped
from provingground.words import leaves


@shown(reprs.replay)
class Replay(NamedTuple):
    """One cell again: its probes, the trajectory of its last training, and the weights at its end.

    `probes` is what the study's simulator returns, with every step where it records some.
    `trajectory` is what the `probe=` of the last `iterate` or `descend` measured at each step, up
    to the one at which it stopped; without a `probe=` it is empty.
    """

    probes: xr.Dataset
    trajectory: xr.Dataset
    weights: Any


@told_shortly
def replay(
    ds: xr.Dataset,
    seed: int | None = None,
    *,
    study: Study | None = None,
    probes: Any = None,
    parts: Mapping[str, Callable[..., Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
    **where: Any,
) -> Replay:
    """Runs one cell of a Dataset again, probing every step, and keeps its last weights.

    The cell is told by its place on each axis, by name or (as a dict) in `settings`, and by its
    seed (default: the first). `study` is
    needed for a study of your own that is not listed, and `probes` and `parts` if it was run with
    any.

    The variables of the trajectory have the names that the training's `probe=` gives them in a
    dict. A lone array has the name of the only probe of the study with its values, else "probe".

    Example:
        `pg.replay(ds, snr=10.0, samples=8, seed=1).trajectory.train_loss.plot()`
    """
    owner, which = api.origin(ds, study)
    axes = json.loads(ds.attrs["grid"])
    cell = planning.together(settings, where)
    for name in cell:
        if name not in axes:
            raise unknown("axis", name, axes)
    place = {}
    for name, labels in axes.items():
        if name not in cell and len(labels) > 1:
            raise InputError(f"say which {name}: one of {', '.join(map(str, labels))}")
        wanted = cell.get(name, labels[0])
        place[name] = wanted if isinstance(wanted, str) else _nearest(name, labels, wanted)
    place |= _designed(ds, place, grid.declared(owner, which, ds.attrs["scale"])[0])
    fixed = json.loads(ds.attrs["settings"])
    seed = _seed(ds, seed)
    sweep = grid.plan(owner, which, ds.attrs["scale"], fixed | place, [seed])
    sweep = extend.changed(sweep, extend.changes(probes, parts))
    owner = sweep.study
    point = next(sweep.points())
    simulator = owner.simulators[point.program.simulator]
    data = data_of(owner, point.program.data)
    if program_hash(owner, point, data) not in ds.attrs["fingerprint"]:
        raise InputError(
            f"the Dataset was computed by another version of {owner.name} (or of jax); "
            "if it is a study of your own, say study=...; if it was run with probes or parts, say "
            "these"
        )

    if simulator.host:
        found = single(owner, point, seed)
        dims = probe_dims(simulator.probes)
        alone = xr.Dataset({n: (dims[n], v) for n, v in found.items()})
        alone = describe_probes(alone, simulator.probes)
        return Replay(probes=alone, trajectory=xr.Dataset(), weights=None)

    def again(key: Any) -> Any:
        with taped() as tape:
            rest = () if data is None else (data,)
            return simulator.simulate(point.config, key, *rest), list(tape)

    key = seed_key(owner.name, seed)
    with running("", point.program.precision):
        found, tape = jax.jit(again)(key)
    trace = tape[-1] if tape else None
    whole = {n: (d, np.asarray(getattr(found, n))) for n, d in probe_dims(simulator.probes).items()}
    trajectory = xr.Dataset() if trace is None else _trajectory(trace, whole)
    return Replay(
        probes=describe_probes(xr.Dataset(whole), simulator.probes),
        trajectory=describe_probes(trajectory, simulator.probes),
        weights=None if trace is None else trace.last,
    )


def _seed(ds: xr.Dataset, wanted: int | None) -> int:
    """One of the seeds of a Dataset."""
    known = np.atleast_1d(ds["seed"].to_numpy()).tolist() if "seed" in ds.coords else []
    if wanted is None and known:
        return known[0]
    if wanted not in known:
        told = reprs.listed([str(each) for each in known]) or "none"
        raise InputError(f"seed = {shortened(wanted)} is not in the Dataset; it has {told}")
    return known[known.index(wanted)]


def _designed(
    ds: xr.Dataset, place: Mapping[str, Any], declared: Mapping[str, Any]
) -> dict[str, Any]:
    """The point of a design that was given to an experiment, with its settings."""
    changed = ds.attrs["changed"].split(", ")
    return {
        axis: points([{n: ds[n].sel({axis: at}).item() for n in changed if axis in ds[n].dims}])
        for axis, at in place.items()
        if axis not in declared and axis not in changed
    }


def _nearest(name: str, labels: Sequence[Any], wanted: Any) -> Any:
    """The label that is meant by a number, which need not have all its digits."""
    if isinstance(wanted, (int, float, np.number)) and not isinstance(labels[0], str):
        near = min(labels, key=lambda label: abs(label - wanted))
        if np.isclose(near, wanted, rtol=1e-3):
            return near
    raise InputError(f"{name} = {shortened(wanted)} is not on the axis: {labels}")


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _trajectory(trace: Any, probes: Mapping[str, tuple[Any, np.ndarray]]) -> xr.Dataset:
    """Every probe at every step, up to the step at which the training stopped.

    A lone array has the name of the only one of the `probes` with its values, else "probe".
    """
    probes = {name: probe for name, probe in probes.items() if name != "step"}  # the coordinate
    until = int(trace.stopped_at) + 1
    found = {name: np.asarray(leaf) for name, leaf in leaves(trace.probes, "").items()}
    if "" in found:
        same = [name for name, (_, values) in probes.items() if _same(values, found[""])]
        found = {same[0] if len(same) == 1 else "probe": found[""]}
    return xr.Dataset(
        {
            n: (("step", *(f"{n}_{i}" for i in range(1, v.ndim))), v[:until])
            for n, v in found.items()
        },
        coords={"step": np.asarray(trace.step)[:until]},
    )
