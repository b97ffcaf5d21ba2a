"""Trainings that call LAPACK on batches, on all threads; `test_faults` runs it as a process."""

import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import provingground as pg
from provingground.config import config, par, probe
from provingground.keys import normal, stream


@config
class Config:
    scale: float = par(1.0, "s", "scale", low=0)


class Probes(eqx.Module):
    size: Float[Array, ""] = probe("mean size")


def simulate(cfg, key):
    x = cfg.scale * normal(stream(key, "x"), (64, 48, 24))

    def step(x, _):
        q, r = jnp.linalg.qr(x)
        return q @ r + 0.001, None

    return Probes(jnp.abs(jax.lax.scan(step, x, length=40)[0]).mean())


if __name__ == "__main__":
    grid = {"scale": [1.0, 2.0, 3.0, 4.0]}
    study = pg.new_study("turns", Config, simulate, Probes, grid=grid, seeds=8)
    ds = pg.run(study, store=Path(sys.argv[1]), progress=False)
    print(int(ds["size"].notnull().sum()))
