"""W3 in PyTorch: the network as written, and an expert's form with the gradient written out.

Letters in shapes: C cells (data sets), and those of `benchmarks.mixture_recovery`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from benchmarks.ladder import Results, Rung, Scale, Source, Trial
from benchmarks.mixture_recovery import Config, step_size
from benchmarks.peers import DEVICE, WIDE, by_seeds, chunks, experts, host, joined, randn, tensor
from benchmarks.peers.repeat import Descent, Repeat, train
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


def error(w: Tensor, teacher: Tensor) -> Tensor:
    """Relative errors of the weights [C I K d]."""
    off = (w - teacher[:, None]).flatten(2).norm(dim=-1)
    return off / teacher.flatten(1).norm(dim=-1)[:, None]


def results(loss: Tensor, w: Tensor, teacher: Tensor) -> Results:
    """Losses [C I] and relative errors of the weights [C I K d]."""
    return {"train_loss": host(loss), "error": host(error(w, teacher))}


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


# ------------------------------------------------------------------------------- the expert's


def products(w: Tensor, x: Tensor, scaled: Tensor, neurons: int) -> tuple[Tensor]:
    """Inputs [C d n] with the signs of the labels, and times step sizes; w: rows (K I) [C KI d]."""
    s = torch.sigmoid(w @ x)
    p = s.unflatten(1, (neurons, -1)).sum(1, keepdim=True)
    slope = (s * (1 - s)).unflatten(1, (neurons, -1)) / p
    return (torch.baddbmm(w, slope.flatten(1, 2), scaled.mT),)


def sums(w: Tensor, x: Tensor, scaled: Tensor, neurons: int) -> tuple[Tensor]:
    """The same term by term, for a compiler to fuse: nothing as large as [I n] need be written."""
    rows, d = w.unflatten(1, (neurons, -1)).unbind(1), range(w.shape[-1])

    def product(row: Tensor) -> Tensor:
        terms = [row[:, :, j, None] * x[:, None, j] for j in d]
        return sum(terms[1:], terms[0])

    s = [torch.sigmoid(product(row)) for row in rows]
    p = sum(s[1:], s[0])
    slope = [v * (1 - v) / p for v in s]
    step = [torch.stack([(v * scaled[:, None, j]).sum(-1) for j in d], dim=-1) for v in slope]
    return (w + torch.cat(step, dim=1),)


FORMS = {"products": products, "sums": sums}


def batched(
    trials: Sequence[Trial], source: Source, repeat: Repeat, seeds: int, form: str = "products"
) -> Results:
    """All initialisations of a data set in one product, those of some seeds at once."""

    def run(configs: list[Config], some: Sequence[int]) -> dict[str, Tensor]:
        cfg, k = configs[0], configs[0].neurons
        drawn = source([(cfg, seed) for seed in some])
        drawn = {n: v.repeat_interleave(len(configs), 0) for n, v in drawn.items()}
        lanes = [(cfg, seed) for seed in some for cfg in configs]
        x, y, start, teacher, rates = prepared(lanes, drawn)
        x = (x * (2 * y - 1)[..., None]).mT.contiguous()
        scaled = (rates / cfg.samples).view(-1, 1, 1) * x
        descent = Descent(FORMS[form], (x, scaled), (k,))
        (w,) = train(repeat, descent, (start.transpose(1, 2).flatten(1, 2),), cfg.steps)
        p = torch.sigmoid(w @ x).unflatten(1, (k, -1)).mean(1)
        found = {
            "train_loss": -p.log().mean(-1),
            "error": error(w.unflatten(1, (k, -1)).transpose(1, 2), teacher),
        }
        return {n: v.unflatten(0, (len(some), -1)) for n, v in found.items()}

    return by_seeds(trials, seeds, run)


SHARE: dict[Scale, int] = {"quick": 20, "full": 40}
RUNGS = {
    "PyTorch loop": Rung(loop, "autograd, one initialisation at a time", SHARE),
    "torch.func.vmap": Rung(vmapped, "over initialisations and data sets", SHARE),
    **experts(
        batched,
        "initialisations in one product, as ours",
        {"seeds": (20, 5, 80, 320) if WIDE else (2, 1, 4)},
        forms=tuple(FORMS),
    ),
}
