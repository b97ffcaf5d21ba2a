"""Datasets without trainings: real settings and labels, made-up numbers."""

import jax
import numpy as np
import pytest
import xarray as xr
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.interpreters import partial_eval

from provingground import grid, identity
from provingground.errors import DataMissing
from provingground.keys import seed_key
from provingground.programs import data_of, probe_dims, single
from provingground.results import labelled


def madeup(owner, experiment, scale, draw=0) -> xr.Dataset:
    """The Dataset of an experiment as it would be if its probes were noise.

    Floats are uniform in (0, 1), whole numbers from 1 to 9. Labels, the probes that are named like
    their dim, are those of a training. Of a simulator on the host one cell is run, at its least.
    """
    sweep = grid.plan(owner, experiment, scale, yes=True)
    groups, rng = sweep.groups(), np.random.default_rng(draw)
    cells = sweep.cells
    flat = {}
    first = min(groups, key=lambda g: g.program.simulator)  # whose probes a Dataset holds
    for name, (shape, kind, labels) in known_probes(owner, sweep, first).items():
        if labels is not None:
            flat[name] = np.broadcast_to(labels, (cells, *shape))
        elif np.issubdtype(kind, np.bool_):
            flat[name] = rng.integers(0, 2, (cells, *shape)).astype(bool)
        elif np.issubdtype(kind, np.integer):
            flat[name] = rng.integers(1, 10, (cells, *shape)).astype(kind)
        else:
            flat[name] = rng.uniform(size=(cells, *shape)).astype(kind)
    there = np.ones(cells, bool)
    return labelled(sweep, groups, flat, there, there, {"device": "none", "seconds": 0.0})


def known_probes(owner, sweep, group):
    """Shape and kind of every probe, and what those say that label a dim."""
    simulator = owner.simulators[group.program.simulator]
    dims = probe_dims(simulator.probes)
    point = next(p for p in sweep.points() if p.program.simulator == group.program.simulator)
    try:
        data = data_of(owner, group.program.data)
    except DataMissing as missing:
        pytest.skip(str(missing))
    if simulator.host:
        found = {n: np.asarray(v) for n, v in single(owner, point, 0).items()}
        return {n: (v.shape, v.dtype, v if dims[n] == (n,) else None) for n, v in found.items()}
    rest = () if data is None else (data,)
    with identity.precision_of(group.program.precision):
        key = seed_key(owner.name, 0)
        args = identity.typed((point.config, key), group.program.precision)
        made, shapes = jax.make_jaxpr(lambda *a: vars(simulator.simulate(*a)), return_shape=True)(
            *args, *rest
        )
        names = sorted(shapes)  # jax puts the keys of a dict in order
        wanted = [n in dims and dims[n] == (n,) for n in names]
        less, used = partial_eval.dce_jaxpr(made.jaxpr, wanted)
        flat = jax.tree.leaves((*args, *rest))
        some = [x for x, needed in zip(flat, used, strict=True) if needed]
        values = jaxpr_as_fun(ClosedJaxpr(less, made.consts))(*some)
    labels = dict(zip([n for n, w in zip(names, wanted, strict=True) if w], values, strict=True))
    return {
        n: (shapes[n].shape, shapes[n].dtype, np.asarray(labels[n]) if n in labels else None)
        for n in dims
    }
