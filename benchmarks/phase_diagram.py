"""W1: the phase diagram of benign_overfitting, as the study runs it.

    python benchmarks/phase_diagram.py      # compares lane widths, interleaved

Ours trains in the span of the tokens, which gives the same trajectory for less work; cells of one
seed share weights, tokens and their products.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import numpy as np
import xarray as xr
from benchmarks.ladder import Cost, Target, Workload, timed

from provingground import registry
from provingground.keys import stream
from provingground.studies.benign_overfitting import model
from provingground.studies.benign_overfitting.model import Config
from provingground.widths import LANES

SNRS = [float(snr) for snr in np.geomspace(1, 100, 24) / 6.4]


def numbers(cfg: Config, key: Any) -> dict[str, jax.Array]:
    """Weights and noise tokens before their scale."""
    w = model.unit_weights(cfg, key)
    noise = model.unit_noise(cfg, stream(key, "data/noise"), cfg.samples)
    test = model.unit_noise(cfg, stream(key, "test/noise"), cfg.test_samples)
    return dict(w_q=w.w_q, w_k=w.w_k, w_v=w.w_v, w_o=w.w_o, noise=noise, test=test)


def cost(ds: xr.Dataset, cfg: Config) -> Cost:
    """Products of the span form: of each cell with its Gram matrix, and those of a seed once."""
    d, h, v, test = cfg.dim, cfg.key_width, cfg.value_width, cfg.test_samples * cfg.tokens
    seeds = ds.sizes["seed"]
    unique = 2 + (cfg.tokens - 1) * ds.samples
    cells = ds.stopped_at * 4 * unique**2 * h + 4 * test * unique * h
    shared = 4 * (unique + test) * d * h + 2 * unique**2 * d + 2 * test * unique * d
    drawn = (d + 1) * (2 * h + v) + (cfg.tokens - 1) * d * (ds.samples + cfg.test_samples)
    return Cost(float(cells.sum() + seeds * shared.sum()), float(seeds * drawn.sum()))


def about(ds: xr.Dataset) -> str:
    t = ds.stopped_at.values
    return f"steps: {t.min()} to {t.max()}, median {np.median(t):.0f}"


WORKLOAD = Workload(
    name="W1",
    says="phase diagram of benign overfitting, end to end",
    study=registry.study("benign_overfitting"),
    experiment="fig1a",
    settings={
        "tiny": dict(
            samples=[4, 20],
            snr=[SNRS[12], SNRS[20]],
            seeds=1,
            dim=256,
            key_width=128,
            value_width=128,
            test_samples=50,
        ),
        "quick": dict(samples=[2, 5, 8, 11, 14, 17, 20], snr=SNRS[::2], seeds=1),
        "full": dict(samples=list(range(2, 21)), snr=SNRS, seeds=3),
        "large": dict(samples=list(range(2, 21)), snr=SNRS, seeds=48),
    },
    measured=("test_loss", "stopped_at"),
    cost=cost,
    numbers=numbers,
    peers="benchmarks.peers.phase_diagram",
    targets={"cpu": Target(2.5, 1.2), "gpu": Target(100, 1.5)},
    about=about,
)


def widths(repetitions: int = 5) -> None:
    """The chosen lane width against others, interleaved."""
    chosen = LANES["serial" if jax.default_backend() == "cpu" else "wide"]
    tried = sorted({max(1, chosen // 4), chosen // 2, chosen, chosen * 2})

    def run(lanes: int) -> Any:
        return WORKLOAD.ours("full", samples=[8, 20], seeds=2, lanes=lanes)

    for lanes in tried:
        run(lanes)
    times = {lanes: [] for lanes in tried}
    for _ in range(repetitions):
        for lanes in tried:
            times[lanes].append(timed(lambda lanes=lanes: run(lanes)))
    for lanes, t in times.items():
        mark = "  <- chosen" if lanes == chosen else ""
        print(f"lanes {lanes:5d}: {np.median(t):.3g} s ({min(t):.3g} to {max(t):.3g}){mark}")


if __name__ == "__main__":
    widths()
