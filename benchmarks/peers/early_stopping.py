"""W5 in PyTorch: autograd one by one or under vmap, and an expert's batch that drops who is done.

Letters in shapes: B trainings, and those of `benchmarks.early_stopping`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from benchmarks.ladder import Results, Rung, Source, Trial
from benchmarks.peers import DEVICE, WIDE, chunks, compiled, host, joined, randn, tensor
from torch import Tensor, nn
from torch.func import grad_and_value, vmap
from torch.nn.functional import softplus

EVERY = 50  # steps between two looks at who is done


def draw(trials: Sequence[Trial]) -> dict[str, Tensor]:
    cfg, b = trials[0][0], len(trials)
    return dict(
        noise=randn(b, cfg.samples, cfg.tokens, cfg.dim),
        test=randn(b, cfg.test_samples, cfg.tokens, cfg.dim),
    )


def labels(n: int) -> Tensor:
    return 1.0 - 2.0 * (torch.arange(n, device=DEVICE) % 2)


def inputs(trials: Sequence[Trial], noise: Tensor) -> Tensor:
    """Tokens [B N L d]: the first one carries and marks the label."""
    snr = tensor(np.array([cfg.snr for cfg, _ in trials], np.float32))[:, None]
    x = noise.clone()
    x[:, :, 0, 0] += snr * labels(noise.shape[1])
    x[:, :, 0, 1] += snr
    return x


def outputs(query: Tensor, value: Tensor, x: Tensor) -> Tensor:
    return (torch.softmax(x @ query, dim=-1) * (x @ value)).sum(-1)


def loss_of(query: Tensor, value: Tensor, x: Tensor) -> Tensor:
    return softplus(-labels(x.shape[0]) * outputs(query, value, x)).mean()


class Attention(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.zeros(d, device=DEVICE))
        self.value = nn.Parameter(torch.zeros(d, device=DEVICE))

    def forward(self, x: Tensor) -> Tensor:
        return loss_of(self.query, self.value, x)


def loop(trials: Sequence[Trial], source: Source) -> Results:
    """One training after another, each until it is done: a module, autograd, SGD."""
    losses, stops = [], []
    for cfg, seed in trials:
        drawn = source([(cfg, seed)])
        x, x_test = (inputs([(cfg, seed)], drawn[n])[0] for n in ("noise", "test"))
        net = Attention(cfg.dim)
        optimiser = torch.optim.SGD(net.parameters(), lr=cfg.lr)
        step = 0
        for step in range(cfg.steps + 1):  # noqa: B007
            loss = net(x)
            if loss.item() <= cfg.eps:
                break
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            losses.append(net(x_test).item())
        stops.append(step)
    return {"test_loss": np.array(losses), "stopped_at": np.array(stops)}


def vmapped(trials: Sequence[Trial], source: Source) -> Results:
    """`torch.func.vmap` over a batch, which runs until the last one is done."""
    graded = vmap(grad_and_value(loss_of, argnums=(0, 1)))
    found = []
    for some in chunks(trials, 4096 if WIDE else 32):
        cfg, drawn = some[0][0], source(some)
        x, lr = inputs(some, drawn["noise"]), rates(some)
        query = torch.zeros(len(some), cfg.dim, device=DEVICE)
        value, stopped = torch.zeros_like(query), torch.zeros(len(some), device=DEVICE)
        for t in range(cfg.steps):
            (g_query, g_value), loss = graded(query, value, x)
            go = (loss > cfg.eps)[:, None] * lr
            query, value, stopped = (
                query - go * g_query,
                value - go * g_value,
                stopped + (go[:, 0] > 0),
            )
            if t % EVERY == 0 and not go.any():
                break
        test = vmap(loss_of)(query, value, inputs(some, drawn["test"]))
        found.append({"test_loss": host(test), "stopped_at": host(stopped)})
    return joined(found)


def rates(trials: Sequence[Trial]) -> Tensor:
    return tensor(np.array([cfg.lr for cfg, _ in trials], np.float32))[:, None]


def step(
    w: Tensor, stopped: Tensor, lr: Tensor, x: Tensor, y: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """A step of those who are not done. w: query and value [B 2 d]; x: [B d LN], samples last."""
    score, value = (w @ x).unflatten(-1, (-1, len(y))).unbind(1)
    a = torch.softmax(score, dim=1)
    f = (a * value).sum(1)
    m = -y * f
    go = softplus(m).mean(-1) > eps
    g = (-y / len(y)) * torch.sigmoid(m) * go[:, None]
    to_value = g[:, None] * a
    to_score = to_value * (value - f[:, None])
    slope = torch.stack([to_score, to_value], dim=1).flatten(2)
    return w - lr[..., None] * (slope @ x.mT), stopped + go


def batched(trials: Sequence[Trial], source: Source, step: Callable[..., Any] = step) -> Results:
    """A batch with the gradient written out; every 50 steps those who are done are dropped."""
    found = []
    for some in chunks(trials, 8192 if WIDE else 96):
        cfg, drawn = some[0][0], source(some)
        b, y = len(some), labels(cfg.samples)
        x = inputs(some, drawn["noise"]).permute(0, 3, 2, 1).flatten(2).contiguous()
        lr, w = rates(some), torch.zeros(b, 2, cfg.dim, device=DEVICE)
        stopped = torch.zeros(b, device=DEVICE)
        last, stops = torch.zeros_like(w), torch.zeros_like(stopped)
        left = torch.arange(b, device=DEVICE)
        for t in range(0, cfg.steps, EVERY):
            for _ in range(min(EVERY, cfg.steps - t)):
                w, stopped = step(w, stopped, lr, x, y, cfg.eps)
            last[left], stops[left] = w, stopped
            going = stopped == t + EVERY
            if not going.any():
                break
            left, w, stopped, lr, x = (v[going] for v in (left, w, stopped, lr, x))
        x_test = inputs(some, drawn["test"])
        f = outputs_of(last, x_test)
        test = softplus(-labels(cfg.test_samples) * f).mean(-1)
        found.append({"test_loss": host(test), "stopped_at": host(stops)})
    return joined(found)


def outputs_of(w: Tensor, x: Tensor) -> Tensor:
    score, value = torch.einsum("bkd,bnld->kbnl", w, x)
    return (torch.softmax(score, dim=-1) * value).sum(-1)


def batched_compiled(trials: Sequence[Trial], source: Source) -> Results:
    return batched(trials, source, compiled(step))


RUNGS = {
    "PyTorch loop": Rung(loop, "autograd, each stops by itself", share={"quick": 8, "full": 48}),
    "torch.func.vmap": Rung(vmapped, "until the last is done", share={"quick": 6, "full": 24}),
    "hand-batched": Rung(batched, "written-out gradient, drops who is done every 50 steps"),
    "hand-batched, compiled": Rung(batched_compiled, "torch.compile of its step", full_only=True),
}
