"""A study with two experiments, of which the second needs a data set."""

from functools import cache

import equinox as eqx
from jaxtyping import Array, Float

from provingground import plot, stats
from provingground.claims import above, claim
from provingground.config import config, par, probe
from provingground.data import real
from provingground.keys import normal, stream
from provingground.study import Condition, Experiment, Prediction, Simulator, Study, Trainings


@cache
def mnist():
    return {"mean": real.load("mnist")["x_train"].mean(dtype=float).astype("float32")}


@config
class Config:
    rate: float = par(1.0, "r", "rate", low=0)


class Probes(eqx.Module):
    end: Float[Array, ""] = probe("its end")


def simulate(cfg, key, data=None):
    start = 1.0 if data is None else data["mean"]
    return Probes(cfg.rate * (start + 0.01 * normal(stream(key, "start"), ())))


@claim("Theorem 1", above(0))
def positive(ds):
    """the end is positive"""
    return stats.mean(ds.end)


def draw(ds):
    fig, (ax,) = plot.figure()
    plot.curve(ax, ds.end, "rate")
    return fig


def experiment(name, data):
    return Experiment(name, "s", Trainings({"rate": [1.0, 2.0]}, 3, data=data), (positive,), draw)


def theory(cfg):
    return Prediction((Condition("rate", cfg.rate, ">=", 0, "it is one"),), {"rate": cfg.rate})


STUDY = Study(
    "needing",
    "Means of a data set",
    "Nobody, 2026",
    {"scaled": Simulator(Config, simulate, Probes)},
    theory,
    (experiment("alone", ""), experiment("digits", "mnist")),
    data={"mnist": mnist},
)
