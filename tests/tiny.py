"""A study that trains in no time, with as many programs as a test wants."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import pytest
from jaxtyping import Array, Float, Int

from provingground import api, stats
from provingground.claims import Claim
from provingground.config import config, mask, par, probe, size
from provingground.engine import Job
from provingground.keys import normal, stream
from provingground.study import Experiment, Prediction, Simulator, Study, Trainings
from provingground.train import iterate


@config
class Config:
    count: int = par(5, "n", "things", low=1, value=True, pad=4)
    rate: float = par(0.5, r"\eta", "rate", low=0)
    width: int = par(2, "w", "width", low=1)


class Probes(eqx.Module):
    curve: Float[Array, "step"] = probe("a curve", "c")
    last: Float[Array, ""] = probe("its end")
    step: Int[Array, "step"] = probe("step", "t")


def trained(cfg, key, scale=1.0):
    """Shrinks some numbers for a while; they overflow from a rate of a hundred on."""
    x = normal(stream(key, "data"), (size(cfg, "count"), cfg.width)) * scale
    x = jnp.where(mask(cfg, "count")[:, None], x, 0.0)
    trace = iterate(lambda x, t: x * jnp.exp(cfg.rate) / 2, x, steps=4, at=[0, 1, 4], probe=jnp.sum)
    return Probes(trace.probes, jnp.sum(trace.last**2), trace.step)


GRID = {"rate": [0.1, 0.2, 0.3], "count": [3, 5]}
ONE = Claim("one", "the end is there", lambda ds: stats.mean(ds["last"]), (0, 1e9), "T")


def tiny(*more, how=trained, grid=GRID, data=None, **options):
    """A study of one experiment, with two simulators."""
    trainings = Trainings(grid, 3, **options)
    first = Experiment("first", "s", trainings, (ONE,), lambda ds: None)
    simulators = {
        "one": Simulator(Config, lambda *args: how(*args), Probes),
        "two": Simulator(Config, lambda *args: how(*args), Probes, precision="float64"),
    }
    predicted = Prediction((), {})
    return Study("tiny", "t", "c", simulators, lambda cfg: predicted, (first, *more), data or {})


def with_trainings(experiment, **changes):
    """An experiment with other trainings."""
    trainings = dataclasses.replace(experiment.trainings, **changes)
    return dataclasses.replace(experiment, trainings=trainings)


def run(study, store, experiment="first", **options):
    return api.run(study, experiment, store=store, progress=False, **options)


def apart_from_attrs(ds):
    return ds.drop_attrs()


def count_computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many cells each block has that is computed from now on."""
    found = []
    compute = Job.compute

    def counted(job, block):
        found.append(block.cells)
        return compute(job, block)

    monkeypatch.setattr(Job, "compute", counted)
    return found
