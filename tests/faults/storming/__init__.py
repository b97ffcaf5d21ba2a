"""A study of plain NumPy, so that a run of it takes next to no time. It keeps what it draws."""

import equinox as eqx
import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from provingground import plot, stats
from provingground.claims import Claim
from provingground.config import config, par, probe
from provingground.study import Experiment, Prediction, Simulator, Study, Trainings

DRAWN: list[xr.Dataset] = []


@config
class Config:
    rate: float = par(1.0, "r", "rate", low=0)


class Probes(eqx.Module):
    curve: Float[Array, "step"] = probe("a curve")
    last: Float[Array, ""] = probe("its end")


def simulate(cfg, key):
    noise = np.asarray(jax.random.key_data(key), np.float64) % 97 / 97
    curve = np.exp(-cfg.rate * np.arange(60) / 30) + noise.mean()
    return Probes(curve.astype(np.float32), curve[-1].astype(np.float32))  # pyright: ignore


def draw(ds):
    DRAWN.append(ds)
    fig, (ax,) = plot.figure(title="Its end")
    ax.plot(ds["rate"], ds["last"].mean("seed"))
    return fig


POSITIVE = Claim("positive", "the end is positive", lambda ds: stats.mean(ds["last"]), (0, 9), "-")

STUDY = Study(
    name="storming",
    title="A study for foul weather",
    cite="nobody",
    simulators={"one": Simulator(Config, simulate, Probes, host=True)},
    theory=lambda cfg: Prediction((), {}),
    experiments=(
        Experiment(
            "first",
            "Its end.",
            Trainings({"rate": [1.0, 2.0, 3.0]}, 4),
            (POSITIVE,),
            figure=draw,
        ),
    ),
)
