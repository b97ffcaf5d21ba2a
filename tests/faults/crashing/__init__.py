"""A study that shrinks a number. At the rate 13 it takes its process with it, at 14 it raises.

How long a cell takes, and whether the two rates do harm, is said by the environment, so that a run
in trouble and one without have the same cells.
"""

import os
import signal
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from provingground import plot
from provingground.config import config, par, probe
from provingground.keys import normal, stream
from provingground.study import Experiment, Prediction, Simulator, Study, Trainings


@config
class Config:
    rate: float = par(1.0, "r", "rate", low=0)


class Probes(eqx.Module):
    last: Float[Array, ""] = probe("its end")


def strike(rate):
    """What takes a training its time, those with rates above 1 the second number of seconds."""
    short, long = map(float, os.environ.get("CRASHING_SECONDS", "0 0").split())
    if rate > 1 and (mark := os.environ.get("CRASHING_MARK")):
        Path(mark).touch()
    time.sleep(long if rate > 1 else short)
    if not os.environ.get("CRASHING_TAME"):
        if rate == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        if rate == 14:
            raise ValueError("fourteen is too many")
    return np.asarray(rate)


def simulate(cfg, key):
    x = normal(stream(key, "data"), (3,))
    kind = jax.ShapeDtypeStruct((), jnp.result_type(cfg.rate))
    rate = jax.pure_callback(strike, kind, cfg.rate, vmap_method="sequential")
    return Probes(jnp.sum(x**2) * jnp.exp(-rate))


def draw(ds):
    fig, (ax,) = plot.figure(title="Its end")
    ax.plot(ds["rate"], ds["last"].mean("seed"))
    return fig


STUDY = Study(
    name="crashing",
    title="A study that is in the way of its own process",
    cite="nobody",
    simulators={"one": Simulator(Config, simulate, Probes)},
    theory=lambda cfg: Prediction((), {}),
    experiments=(
        Experiment(
            "first",
            "Its end.",
            Trainings({"rate": [1.0, 2.0, 3.0, 4.0]}, 6),
            (),
            figure=draw,
        ),
    ),
)
