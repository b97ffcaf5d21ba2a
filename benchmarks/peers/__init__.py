"""The peers, in PyTorch: float32 without TF32, on the device that jax uses."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import torch
from benchmarks.ladder import Results, Rung, Source, Trial
from benchmarks.peers.repeat import MODES, Compiled, Eager, Graphs
from torch import Tensor

torch.set_float32_matmul_precision("highest")
DEVICE = "cuda" if torch.cuda.is_available() and jax.default_backend() == "gpu" else "cpu"
WIDE = DEVICE == "cuda"  # a GPU wants many trainings at once, a CPU as many as fit its cache


def tensor(values: Any) -> Tensor:
    return torch.tensor(np.asarray(values), device=DEVICE)


def host(values: Tensor) -> np.ndarray:
    """On the host, so that the clock waits for the device."""
    return values.detach().cpu().numpy()


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, device=DEVICE)


def chunks(trials: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for i in range(0, len(trials), size):
        yield trials[i : i + size]


def joined(rows: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Results of several batches as those of all trainings."""
    return {name: np.concatenate([r[name] for r in rows]) for name in rows[0]}


def grid_of(trials: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Configs and seeds of trainings that are all pairs of them, seeds fastest."""
    seeds = list(dict.fromkeys(seed for _, seed in trials))
    configs = list(dict.fromkeys(cfg for cfg, _ in trials))
    assert [(c, s) for c in configs for s in seeds] == list(trials)
    return configs, seeds


def by_seeds(
    trials: Sequence[Trial],
    seeds_at_once: int,
    run: Callable[[list[Any], Sequence[int]], dict[str, Tensor]],
) -> Results:
    """All settings of some seeds at once: `run` gives [S C ...] for S seeds and C Configs."""
    configs, seeds = grid_of(trials)
    found = [run(configs, some) for some in chunks(seeds, seeds_at_once)]
    together = {n: torch.cat([f[n] for f in found]).transpose(0, 1) for n in found[0]}
    return {n: host(v.flatten(0, 1)) for n, v in together.items()}


def of_lanes(configs: Sequence[Any], name: str, seeds: int) -> Tensor:
    """A setting of each training: that of each Config, again for every seed."""
    return tensor(np.array([getattr(c, name) for c in configs], np.float32)).repeat(seeds)


def experts(
    batched: Callable[..., Results],
    note: str,
    choices: Mapping[str, Sequence[Any]],
    forms: Sequence[str] = (),
    modes: Sequence[str] = MODES,
) -> dict[str, Rung]:
    """What an expert would write: as it is, compiled, and (on a GPU) replayed from CUDA graphs.

    `choices` (batch sizes) are measured for each of them; all ways to write a step (`forms`) and to
    compile it (`modes`), for those that are compiled.
    """
    written = {"form": forms} if forms else {}
    more = {**choices, **written, "mode": modes if WIDE else MODES[:1]}

    def plain(trials: Sequence[Trial], source: Source, **chosen: Any) -> Results:
        return batched(trials, source, Eager(), **chosen)

    def compiled(trials: Sequence[Trial], source: Source, mode: str, **chosen: Any) -> Results:
        return batched(trials, source, Compiled(mode), **chosen)

    def graphs(trials: Sequence[Trial], source: Source, mode: str, **chosen: Any) -> Results:
        return batched(trials, source, Graphs(mode), **chosen)

    rungs = {
        "hand-batched": Rung(
            plain, note, choices=choices, scales=("tiny", "quick", "full", "large")
        ),
        "hand-batched, compiled": Rung(
            compiled, "torch.compile", choices=more, scales=("full", "large")
        ),
        "hand-batched, graphs": Rung(
            graphs, "compiled steps replayed", choices=more, scales=("full", "large")
        ),
    }
    return rungs if WIDE else {n: r for n, r in rungs.items() if "graphs" not in n}
