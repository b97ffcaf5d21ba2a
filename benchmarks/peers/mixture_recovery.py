"""W3 in PyTorch: the network as written, and an expert's form with the gradient written out.

Letters in shapes: C cells (data sets), and those of `benchmarks.mixture_recovery`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from benchmarks.ladder import Results, Rung, Scale, Source, Trial
from benchmarks.mixture_recovery import step_size
from benchmarks.peers import DEVICE, WIDE, chunks, compiled, host, joined, randn, tensor
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.functional import binary_cross_entropy


def draw(trials: Sequence[Trial]) -> dict[str, Tensor]:
    cfg, cells = trials[0][0], len(trials)
    n, d, k = cfg.samples, cfg.dim, cfg.neurons
    return dict(
        teacher=randn(cells, k, d),
        directions=randn(cells, cfg.inits, k, d),
        noise=randn(cells, n, d),
        group=randn(cells, n).sign(),
        label=torch.rand(cells, n, device=DEVICE),
    )


def network(w: Tensor, x: Tensor) -> Tensor:
    """The probability of the label 1: [n d] inputs and [K d] weights."""
    return torch.sigmoid(x @ w.mT).mean(-1)


def prepared(trials: Sequence[Trial], drawn: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Inputs [C n d], labels [C n], initial weights [C I K d], teachers, step sizes [C]."""
    mean = tensor(np.array([cfg.mean for cfg, _ in trials], np.float32)).view(-1, 1, 1)
    x = drawn["noise"] + mean * drawn["group"][..., None]
    y = (drawn["label"] < network(drawn["teacher"], x)).float()
    far = drawn["directions"]
    far = trials[0][0].distance * far / far.flatten(2).norm(dim=-1)[..., None, None]
    rates = tensor(np.array([step_size(cfg) for cfg, _ in trials], np.float32))
    return x, y, drawn["teacher"][:, None] + far, drawn["teacher"], rates


def results(loss: Tensor, w: Tensor, teacher: Tensor) -> Results:
    """Losses [C I] and relative errors of the weights [C I K d]."""
    error = (w - teacher[:, None]).flatten(2).norm(dim=-1) / teacher.flatten(1).norm(dim=-1)[
        :, None
    ]
    return {"train_loss": host(loss), "error": host(error)}


def loop(trials: Sequence[Trial], source: Source) -> Results:
    """One training after another, by autograd and SGD."""
    found = []
    for cfg, seed in trials:
        x, y, start, teacher, rates = prepared([(cfg, seed)], source([(cfg, seed)]))
        x, y, weights, losses = x[0], y[0], [], []
        for first in start[0]:
            w = first.clone().requires_grad_()
            optimiser = torch.optim.SGD([w], lr=float(rates[0]))
            for _ in range(cfg.steps):
                optimiser.zero_grad()
                binary_cross_entropy(network(w, x), y).backward()
                optimiser.step()
            with torch.no_grad():
                losses.append(binary_cross_entropy(network(w, x), y))
            weights.append(w)
        found.append(results(torch.stack(losses)[None], torch.stack(weights)[None], teacher))
    return joined(found)


def vmapped(trials: Sequence[Trial], source: Source) -> Results:
    """The same loss under `torch.func.vmap`, over initialisations and data sets."""

    def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return binary_cross_entropy(network(w, x), y)

    def mapped(function: Any) -> Any:
        return vmap(vmap(function, in_dims=(0, None, None)))

    found = []
    for some in chunks(trials, 1024 if WIDE else 4):
        x, y, w, teacher, rates = prepared(some, source(some))
        graded = mapped(grad(loss))
        for _ in range(some[0][0].steps):
            w = w - rates.view(-1, 1, 1, 1) * graded(w, x, y)
        found.append(results(mapped(loss)(w, x, y), w, teacher))
    return joined(found)


def step(w: Tensor, x: Tensor, rates: Tensor, neurons: int) -> Tensor:
    """Signs of the labels are in the inputs x [C n d]; w holds the rows (K I) of each cell."""
    s = torch.sigmoid(w @ x.mT)
    p = s.unflatten(1, (neurons, -1)).sum(1, keepdim=True)
    slope = (s * (1 - s)).unflatten(1, (neurons, -1)).div_(p).flatten(1, 2)
    return torch.baddbmm(w, slope, rates * x)


def batched(trials: Sequence[Trial], source: Source, step: Callable[..., Tensor] = step) -> Results:
    """All initialisations of a data set in one product, some data sets at once."""
    found = []
    for some in chunks(trials, 1024 if WIDE else 4):
        cfg = some[0][0]
        k, n = cfg.neurons, cfg.samples
        x, y, start, teacher, rates = prepared(some, source(some))
        x = x * (2 * y - 1)[..., None]
        w = start.transpose(1, 2).flatten(1, 2)
        rates = (rates / n).view(-1, 1, 1)
        for _ in range(cfg.steps):
            w = step(w, x, rates, k)
        p = torch.sigmoid(w @ x.mT).unflatten(1, (k, -1)).mean(1)
        found.append(results(-p.log().mean(-1), w.unflatten(1, (k, -1)).transpose(1, 2), teacher))
    return joined(found)


def batched_compiled(trials: Sequence[Trial], source: Source) -> Results:
    return batched(trials, source, compiled(step))


SHARE: dict[Scale, int] = {"quick": 20, "full": 40}
RUNGS = {
    "PyTorch loop": Rung(loop, "autograd, one initialisation at a time", SHARE),
    "torch.func.vmap": Rung(vmapped, "over initialisations and data sets", SHARE),
    "hand-batched": Rung(batched, "initialisations in one product, as ours"),
    "hand-batched, compiled": Rung(batched_compiled, "torch.compile of its step", full_only=True),
}
