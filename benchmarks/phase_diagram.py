"""The phase diagram of benign_overfitting: the engine against a plain PyTorch loop.

The peer is what a researcher would write: `nn.Linear`, autograd, SGD, stop at training loss
0.01, one cell after another, all cores. Both sides run in float32 with the same stopping rule.
First both get the same weights and data, and must agree; then each draws its own, trains, tests
and (the engine) stores. Compilation is reported apart.

    python benchmarks/phase_diagram.py              # a part of the map, about 3 minutes on 2 cores
    python benchmarks/phase_diagram.py --full       # N = 2..20, 24 SNRs, 3 seeds: 1368 cells
    python benchmarks/phase_diagram.py --widths     # also the lane width, 5 interleaved repetitions

PyTorch is needed for this script alone.
"""

import argparse
import json
import platform
import tempfile
import time
from typing import Any

import jax
import numpy as np
import torch
from torch import nn

import provingground as pg
from provingground import engine, machine
from provingground.keys import seed_key, stream
from provingground.studies.benign_overfitting import model
from provingground.studies.benign_overfitting.model import Config

STUDY = "benign_overfitting/fig1a"
SNRS = list(np.geomspace(1, 100, 24) / 6.4)
DEVICE = "cuda" if torch.cuda.is_available() and jax.default_backend() == "gpu" else "cpu"


# ------------------------------------------------------------------------- the PyTorch loop


class Transformer(nn.Module):
    def __init__(self, d: int, h: int, v: int) -> None:
        super().__init__()
        self.query = nn.Linear(d, h, bias=False)
        self.key = nn.Linear(d, h, bias=False)
        self.value = nn.Linear(d, v, bias=False)
        self.output = nn.Linear(v, 1, bias=False)
        for layer in (self.query, self.key, self.value):
            layer.weight.data /= 16
        self.output.weight.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        p = torch.softmax(self.query(x) @ self.key(x).transpose(1, 2), dim=-1)
        return (p @ self.output(self.value(x))).mean(dim=(1, 2))


def torch_data(cfg: Config, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.tensor([1.0, -1.0], device=DEVICE).repeat(n)[:n]
    x = torch.randn(n, cfg.tokens, cfg.dim, device=DEVICE) * cfg.noise
    x[:, 1] *= cfg.noise_big / cfg.noise
    x[:, 0] = 0
    norm = float(model.signal_norm(cfg))
    x[y > 0, 0, 0], x[y < 0, 0, 1] = norm, norm
    return x, y


def torch_cell(cfg: Config, given: Any = None) -> tuple[float, int, float]:
    """Test loss, steps, and the seconds of training alone."""
    net = Transformer(cfg.dim, cfg.key_width, cfg.value_width).to(DEVICE)
    x, y = torch_data(cfg, cfg.samples)
    test = None
    if given is not None:
        weights, (x, y), test = given
        for layer, w in zip((net.query, net.key, net.value, net.output), weights, strict=True):
            layer.weight.data = w
    optimiser = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=cfg.lr)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    start, steps = time.perf_counter(), 0
    for steps in range(cfg.steps + 1):  # noqa: B007
        loss = nn.functional.softplus(-y * net(x)).mean()
        if loss.item() <= cfg.eps:
            break
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    training = time.perf_counter() - start
    with torch.no_grad():
        x, y = test or torch_data(cfg, cfg.test_samples)
        return nn.functional.softplus(-y * net(x)).mean().item(), steps, training


def same_numbers(cfg: Config, seed: int) -> Any:
    """The weights and data of a cell of ours, for the peer."""

    def tensor(a: Any) -> torch.Tensor:
        return torch.tensor(np.array(a), device=DEVICE)

    key = seed_key("benign_overfitting", seed)
    w = model.unit_weights(cfg, key)
    scale = model.token_scale(cfg)[:, None]

    def data(name: str, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        y = model.labels(cfg, stream(key, f"{name}/label"), n)
        z = model.unit_noise(cfg, stream(key, f"{name}/noise"), n)
        return tensor(model.unit_tokens(y, z) * scale), tensor(y)

    weights = [tensor(m.T / 16) for m in (w.w_q, w.w_k, w.w_v)] + [tensor(w.w_o[None])]
    return weights, data("data", cfg.samples), data("test", cfg.test_samples)


# ------------------------------------------------------------------------------ measuring


def engine_seconds(lanes: int | None = None, **settings: Any) -> float:
    """Seconds of a sweep into a fresh store, programs already compiled."""
    with tempfile.TemporaryDirectory() as store:
        start = time.perf_counter()
        pg.run(STUDY, store=store, lanes=lanes, progress=False, **settings)
        return time.perf_counter() - start


def agreement(samples: list[int], snrs: list[float]) -> None:
    with tempfile.TemporaryDirectory() as store:
        ds = pg.run(STUDY, store=store, samples=samples, snr=snrs, seeds=1, progress=False)
    gaps, steps = [], []
    for n in samples:
        for snr in snrs:
            cfg = Config(samples=n, snr=snr)
            loss, taken, _ = torch_cell(cfg, same_numbers(cfg, 0))
            ours = ds.sel(samples=n, snr=snr).isel(seed=0)
            gaps.append(abs(loss - float(ours.test_loss)) / float(ours.test_loss))
            steps.append(taken - int(ours.stopped_at))
    print(
        f"agreement on {len(gaps)} cells with equal weights and data: test loss within "
        f"{max(gaps):.1e} (relative), steps differ by at most {max(map(abs, steps))}"
    )


def compare(samples: list[int], snrs: list[float], seeds: int) -> dict[str, float]:
    settings: dict[str, Any] = dict(samples=samples, snr=snrs, seeds=seeds)
    cells = len(samples) * len(snrs) * seeds
    cold = engine_seconds(**settings)
    warm = engine_seconds(**settings)
    # Without training (any loss will do) the sweep costs drawing, testing and storing.
    engine_seconds(**settings, eps=1e9)
    idle = engine_seconds(**settings, eps=1e9)
    start, training = time.perf_counter(), 0.0
    for n in samples:
        for snr in snrs:
            for _ in range(seeds):
                training += torch_cell(Config(samples=n, snr=snr))[2]
    loop = time.perf_counter() - start
    found = {
        "cells": cells,
        "compile_seconds": cold - warm,
        "engine_seconds": warm,
        "engine_training_seconds": warm - idle,
        "torch_seconds": loop,
        "torch_training_seconds": training,
        "ratio_end_to_end": loop / warm,
        "ratio_training": training / (warm - idle),
    }
    print(
        f"{cells} cells: engine {warm:.1f} s (training {warm - idle:.1f} s, compilation apart "
        f"{cold - warm:.1f} s), PyTorch loop {loop:.1f} s (training {training:.1f} s)\n"
        f"ratio end to end {loop / warm:.1f}, training alone {training / (warm - idle):.1f}"
    )
    return found


def widths(samples: list[int], snrs: list[float], seeds: int, repetitions: int) -> dict[str, Any]:
    """Chosen against fixed lane widths, interleaved."""
    chosen = engine.LANES["serial" if jax.default_backend() == "cpu" else "wide"]
    tried = sorted({max(1, chosen // 4), chosen // 2, chosen, chosen * 2})
    settings: dict[str, Any] = dict(samples=samples, snr=snrs, seeds=seeds)
    for lanes in tried:
        engine_seconds(lanes, **settings)
    times: dict[int, list[float]] = {lanes: [] for lanes in tried}
    for _ in range(repetitions):
        for lanes in tried:
            times[lanes].append(engine_seconds(lanes, **settings))
    medians = {lanes: float(np.median(t)) for lanes, t in times.items()}
    best = min(medians.values())
    for lanes, t in times.items():
        mark = "  <- chosen" if lanes == chosen else ""
        print(f"lanes {lanes:5d}: {medians[lanes]:.2f} s ({min(t):.2f} to {max(t):.2f}){mark}")
    print(f"chosen width: {100 * (medians[chosen] / best - 1):.0f}% over the best")
    return {"medians": medians, "chosen": chosen, "over_best": medians[chosen] / best - 1}


def floor(samples: list[int], snrs: list[float], seeds: int) -> dict[str, float]:
    """What the arithmetic alone would take: FLOPs of the span form at the measured product rate."""
    n = 2048
    a = jax.numpy.ones((n, n))
    with jax.default_matmul_precision("highest"):
        product = jax.jit(lambda a: a @ a).lower(a).compile()
    jax.block_until_ready(product(a))
    start = time.perf_counter()
    jax.block_until_ready([product(a) for _ in range(5)])
    rate = 5 * 2 * n**3 / (time.perf_counter() - start)
    with tempfile.TemporaryDirectory() as store:
        ds = pg.run(STUDY, store=store, samples=samples, snr=snrs, seeds=seeds, progress=False)
    unique = 2 + 15 * ds.samples
    training = float((ds.stopped_at * 4 * unique**2 * 512).sum())
    testing = float((4 * 1600 * unique * 512 * len(snrs) * seeds).sum())
    print(
        f"floor: {(training + testing) / 1e9:.0f} GFLOP of per-cell products "
        f"({training / 1e9:.0f} training) at {rate / 1e9:.0f} GFLOP/s: "
        f"{(training + testing) / rate:.2f} s"
    )
    return {"gflop": (training + testing) / 1e9, "gflops": rate / 1e9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="the whole map, 1368 cells")
    parser.add_argument("--widths", action="store_true", help="compare lane widths")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", help="write the numbers to this file")
    args = parser.parse_args()
    samples, snrs, seeds = ([2, 5, 8, 11, 14, 17, 20], SNRS[::4], 1)
    if args.full:
        samples, snrs, seeds = (list(range(2, 21)), SNRS, 3)
    jax.config.update("jax_compilation_cache_dir", tempfile.mkdtemp())
    print(
        f"{platform.machine()}, {machine.here()}, jax "
        f"{jax.__version__}, torch {torch.__version__} ({torch.get_num_threads()} threads)"
    )
    agreement([4, 20], [SNRS[12], SNRS[20]])
    found: dict[str, Any] = dict(compare(samples, snrs, seeds))
    found["floor"] = floor(samples, snrs, seeds)
    if args.widths:
        found["widths"] = widths([8, 20], SNRS, 2, args.repetitions)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
