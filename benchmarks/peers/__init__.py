"""The peers, in PyTorch: float32 without TF32, on the device that jax uses."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
import torch

torch.set_float32_matmul_precision("highest")
DEVICE = "cuda" if torch.cuda.is_available() and jax.default_backend() == "gpu" else "cpu"
WIDE = DEVICE == "cuda"  # a GPU wants many trainings at once, a CPU as many as fit its cache


def tensor(values: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(values), device=DEVICE)


def host(values: torch.Tensor) -> np.ndarray:
    """On the host, so that the clock waits for the device."""
    return values.detach().cpu().numpy()


def randn(*shape: int) -> torch.Tensor:
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


@functools.cache
def compiled(step: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.compile`, with room for one graph per batch size."""
    torch._dynamo.config.recompile_limit = 64
    return torch.compile(step)
