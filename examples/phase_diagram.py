"""A phase diagram from start to finish: run, estimate, draw, replay, and a rule of one's own.

Run it as a script or, cell by cell, in an editor that knows `# %%`. It takes a minute or two on two
cores and writes its pictures to the folder `figures`. With EXAMPLE_SIZE=small it takes seconds, at
sizes too small to mean much.
"""

# %% Sizes. Values (snr) share one compiled program; counts (samples) share one up to their padding.
import dataclasses
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import xarray as xr

import provingground as pg
from provingground import plot, stats
from provingground.config import mask, size
from provingground.keys import stream
from provingground.nets.losses import logistic
from provingground.studies.benign_overfitting import model, theory
from provingground.studies.benign_overfitting.model import Config, Probes
from provingground.study import Simulator
from provingground.train import descend, log_steps

SMALL = os.environ.get("EXAMPLE_SIZE") == "small"
SEEDS = 3 if SMALL else 6
SAMPLES = [6, 8] if SMALL else [4, 6, 8, 10, 12, 14, 16]
SNR = np.geomspace(5, 24, 4 if SMALL else 9).tolist()
NARROW: dict[str, Any] = dict(dim=64, key_width=16) if SMALL else dict(dim=256, key_width=64)
FIGURES = Path("figures")
FIGURES.mkdir(exist_ok=True)

# %% Run. What is stored already is not run again: start this file twice to see it.
sizes: dict[str, Any] = NARROW if SMALL else {}
ds = pg.run("benign_overfitting/fig1a", samples=SAMPLES, snr=SNR, seeds=SEEDS, **sizes)
print(ds)

# %% Where does the test loss cross 0.2? For each N a threshold, through them a power law.
boundary = stats.phase_boundary(ds.test_loss, along="snr", of="samples", level=0.2)
print(boundary.points.to_dataframe().round(2))
print(f"critical SNR = C N^s with s = {boundary.law.slope} and C = {boundary.law.constant}")
print("theory: s = -0.5, C =", theory.boundary_snr(1, Config().noise, Config().noise_big))

# %% Draw it.
fig, (ax,) = plot.figure(title="Benign and harmful overfitting", width=4.2)
plot.phase_diagram(
    ax,
    ds.test_loss,
    "samples",
    "snr",
    cut=0.2,
    log="y",
    theory={"derived: $R = 2$": lambda n: theory.boundary_snr(n, Config().noise, 4.0)},
    boundary=boundary.points,
)
plot.save(fig, FIGURES / "phase_diagram.png")

# %% Replay one benign cell: the same training again, probed at every step. Smaller steps show more.
slow = pg.run("benign_overfitting/fig1a", samples=8, snr=SNR[-1], lr=0.003, seeds=1, **sizes)
trajectory = pg.replay(slow, seed=0).trajectory.assign_coords(seed=0)
print(trajectory)
fig, (left, right) = plot.figure(1, 2, title="One training, $N = 8$, benign")
plot.curve(left, trajectory.train_loss, "step", log="y")
plot.curve(right, trajectory.attention_signal, "step", label="signal")
plot.curve(right, trajectory.attention_noise, "step", label="noise token 2")
left.set_ylabel("training loss")
right.set_ylabel("mean attention")
plot.save(fig, FIGURES / "replay.png")


# %% A rule of one's own: does momentum move the boundary? The study's pieces, another optimiser.
def simulate_momentum(cfg: Config, key: jax.Array) -> Probes:
    n, exists, scale = size(cfg, "samples"), mask(cfg, "samples"), model.token_scale(cfg)[:, None]
    y = model.labels(cfg, stream(key, "data/label"), n)
    x = model.unit_tokens(y, model.unit_noise(cfg, stream(key, "data/noise"), n)) * scale
    w, c = model.unit_weights(cfg, key), cfg.init_scale
    on_all = jax.vmap(model.network, in_axes=(None, 0))
    trace = descend(
        lambda w: model.mean_over(exists, logistic(y, on_all(w, x)[0])),
        model.Weights(c * w.w_q, c * w.w_k, c * w.w_v, w.w_o),
        optax.sgd(cfg.lr, momentum=0.9),
        steps=cfg.steps,
        at=log_steps(cfg.steps, cfg.record),
        until=lambda loss, _: loss <= cfg.eps,
        frozen=lambda w: w.w_o,
        probe=lambda w: model.measure(y, exists, x @ w.w_q, x @ w.w_k, x @ (w.w_v @ w.w_o)),
    )
    y_test = model.labels(cfg, stream(key, "test/label"), cfg.test_samples)
    z_test = model.unit_noise(cfg, stream(key, "test/noise"), cfg.test_samples)
    f, _ = on_all(trace.last, model.unit_tokens(y_test, z_test) * scale)
    return model.report(trace, w.w_o, y_test, f)


# %% Put it in under a name of its own, and run both: equal seeds share weights and data.
study = pg.studies()["benign_overfitting"]
own = dataclasses.replace(
    study, simulators={"momentum": Simulator(Config, simulate_momentum, Probes)}
)
setting: dict[str, Any] = dict(samples=8, snr=SNR, seeds=SEEDS, **NARROW)
rules = {
    "gradient descent": pg.run(study, "fig1a", **setting),
    "momentum": pg.run(own, "fig1a", **setting),
}
loss = xr.concat([r.test_loss.squeeze("samples") for r in rules.values()], "rule")
loss = loss.assign_coords(rule=list(rules))
for rule in rules:
    print(f"{rule}: critical SNR {stats.threshold(loss.sel(rule=rule), 'snr', 0.2)}")

fig, (ax,) = plot.figure(title="Test loss by rule, $N = 8$")
plot.curve(ax, loss, "snr", hue="rule", log="x")
plot.save(fig, FIGURES / "momentum.png")
