"""W4 in PyTorch: the student as written, and an expert's batch over step sizes.

Letters in shapes: S seeds, R step sizes, and those of `benchmarks.online_sgd`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from benchmarks.ladder import Results, Rung, Source, Trial
from benchmarks.online_sgd import Config, support
from benchmarks.peers import DEVICE, WIDE, chunks, compiled, grid_of, host, randn, tensor
from torch import Tensor, nn
from torch.func import grad, vmap


def draw(trials: Sequence[Trial]) -> dict[str, Tensor]:
    """Teacher and positional code; batches are drawn step by step."""
    cfg, b = trials[0][0], len(trials)
    return dict(
        teacher=randn(b, cfg.outputs, cfg.dim),
        position=torch.linalg.qr(randn(b, cfg.tokens, cfg.tokens))[0],
    )


def fresh(cfg: Config, drawn: dict[str, Tensor], t: int) -> Tensor:
    """Inputs and label noise of a step: [S dM ND]."""
    if "batches" in drawn:
        return drawn["batches"][:, t]
    return randn(len(drawn["teacher"]), cfg.dim + cfg.outputs, cfg.batch * cfg.tokens)


def relu(x: Tensor) -> Tensor:
    """With the derivative 1 at 0: training starts there."""
    return torch.where(x >= 0, x, 0.0)


def attention(w_kq: Tensor, position: Tensor) -> Tensor:
    return torch.softmax(position.mT @ w_kq @ position / len(position) ** 0.5, dim=0)


def results(w_v: Tensor, s: Tensor, teacher: Tensor) -> Results:
    """Of value matrices [... M d] and attention matrices [... D D]."""
    off = tensor(support(Config(tokens=s.shape[-1])) == 0)
    error = (w_v - teacher).flatten(-2).norm(dim=-1) / teacher.flatten(-2).norm(dim=-1)
    return {"value_error": host(error), "leak": host((s * off).sum((-1, -2)) / s.shape[-1])}


# ----------------------------------------------------------------------- as the paper writes it


class Student(nn.Module):
    def __init__(self, cfg: Config, position: Tensor) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros(cfg.outputs, cfg.dim, device=DEVICE))
        self.key_query = nn.Parameter(torch.zeros(cfg.tokens, cfg.tokens, device=DEVICE))
        self.register_buffer("position", position)

    def forward(self, x: Tensor) -> Tensor:
        return student(self.value, self.key_query, self.position, x)  # pyright: ignore


def student(w_v: Tensor, w_kq: Tensor, position: Tensor, x: Tensor) -> Tensor:
    """Samples first: x is [N d D]."""
    return relu(w_v @ x @ attention(w_kq, position))


def batch(cfg: Config, z: Tensor, teacher: Tensor, s_star: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs [N d D] and labels [N M D] from the numbers of a step [N dM D]."""
    x, noise = z[:, : cfg.dim], z[:, cfg.dim :]
    return x, relu(teacher @ x @ s_star) + cfg.noise * noise


def samples_first(cfg: Config, drawn: dict[str, Tensor], t: int) -> Tensor:
    """The numbers of a step as [N dM D]: drawn like that, or (given ones) put in order."""
    if "batches" in drawn:
        return fresh(cfg, drawn, t)[0].view(-1, cfg.batch, cfg.tokens).transpose(0, 1)
    return randn(cfg.batch, cfg.dim + cfg.outputs, cfg.tokens)


def loop(trials: Sequence[Trial], source: Source) -> Results:
    """One training after another: a module, autograd, SGD."""
    found = []
    for cfg, seed in trials:
        drawn = source([(cfg, seed)])
        teacher, s_star = drawn["teacher"][0], tensor(support(cfg) / 3)
        net = Student(cfg, drawn["position"][0])
        optimiser = torch.optim.SGD(net.parameters(), lr=cfg.lr)
        for t in range(cfg.steps):
            x, y = batch(cfg, samples_first(cfg, drawn, t), teacher, s_star)
            optimiser.zero_grad()
            ((net(x) - y) ** 2).sum((1, 2)).mean().div(2).backward()
            optimiser.step()
        with torch.no_grad():
            s = attention(net.key_query, drawn["position"][0])
            found.append(results(net.value, s, teacher))
    return {n: np.stack([f[n] for f in found]) for n in found[0]}


def vmapped(trials: Sequence[Trial], source: Source) -> Results:
    """`torch.func.vmap` over the step sizes of a seed, which share their batches."""
    configs, seeds = grid_of(trials)
    cfg, found = configs[0], []
    s_star = tensor(support(cfg) / 3)
    rates = tensor(np.array([c.lr for c in configs], np.float32)).view(-1, 1, 1)

    def loss(w_v: Tensor, w_kq: Tensor, position: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return ((student(w_v, w_kq, position, x) - y) ** 2).sum((1, 2)).mean() / 2

    graded = vmap(grad(loss, argnums=(0, 1)), in_dims=(0, 0, None, None, None))
    for seed in seeds:
        drawn = source([(cfg, seed)])
        teacher, position, s_star = (
            drawn["teacher"][0],
            drawn["position"][0],
            tensor(support(cfg) / 3),
        )
        w_v = torch.zeros(len(configs), cfg.outputs, cfg.dim, device=DEVICE)
        w_kq = torch.zeros(len(configs), cfg.tokens, cfg.tokens, device=DEVICE)
        for t in range(cfg.steps):
            x, y = batch(cfg, samples_first(cfg, drawn, t), teacher, s_star)
            g_v, g_kq = graded(w_v, w_kq, position, x, y)
            w_v, w_kq = w_v - rates * g_v, w_kq - rates * g_kq
        s = vmap(attention, in_dims=(0, None))(w_kq, position)
        found.append(results(w_v, s, teacher))
    return {n: np.stack([f[n] for f in found], axis=1).ravel() for n in found[0]}


# ------------------------------------------------------------------------------- the expert's


def step(
    w_v: Tensor,
    logits: Tensor,
    rates: Tensor,
    z: Tensor,
    teacher: Tensor,
    s_star: Tensor,
    noise: float,
) -> tuple[Tensor, Tensor]:
    """w_v: [S RM d], logits: [S R D D], rates: [R 1 1], z: [S dM ND]."""
    seeds, r, tokens, _ = logits.shape
    d = w_v.shape[-1]
    x, n = z[:, :d], z.shape[-1] // tokens
    y = (teacher @ x).view(seeds, 1, -1, tokens) @ s_star
    y = relu(y) + noise * z[:, d:].reshape(seeds, 1, -1, tokens)
    s = torch.softmax(logits / tokens**0.5, dim=-2)
    u = (w_v @ x).view(seeds, r, -1, tokens)
    f = u @ s
    slope = torch.where(f >= 0, f - y, 0.0)
    s_bar = u.mT @ slope / n
    a_bar = s * (s_bar - (s * s_bar).sum(-2, keepdim=True)) / tokens**0.5
    v_bar = (slope @ s.mT).view(seeds, w_v.shape[1], -1) @ x.mT / n
    by_row = rates.expand(-1, w_v.shape[1] // r, 1).reshape(-1, 1)
    return w_v - by_row * v_bar, logits - rates * a_bar


def batched(trials: Sequence[Trial], source: Source, step: Callable[..., Any] = step) -> Results:
    """All step sizes of some seeds, batches and labels shared as in ours, gradient written out."""
    configs, seeds = grid_of(trials)
    cfg, r, found = configs[0], len(configs), []
    rates = tensor(np.array([c.lr for c in configs], np.float32)).view(-1, 1, 1)
    s_star = tensor(support(cfg) / 3)
    for some in chunks(seeds, 64 if WIDE else 1):
        drawn = source([(cfg, seed) for seed in some])
        teacher = drawn["teacher"]
        w_v = torch.zeros(len(some), r * cfg.outputs, cfg.dim, device=DEVICE)
        logits = torch.zeros(len(some), r, cfg.tokens, cfg.tokens, device=DEVICE)
        for t in range(cfg.steps):
            z = fresh(cfg, drawn, t)
            w_v, logits = step(w_v, logits, rates, z, teacher, s_star, cfg.noise)
        s = torch.softmax(logits / cfg.tokens**0.5, dim=-2)
        found.append(results(w_v.unflatten(1, (r, -1)), s, teacher[:, None]))
    return {n: np.concatenate([f[n] for f in found]).T.ravel() for n in found[0]}


def batched_compiled(trials: Sequence[Trial], source: Source) -> Results:
    return batched(trials, source, compiled(step))


RUNGS = {
    "PyTorch loop": Rung(loop, "autograd, each draws its own", share={"quick": 12, "full": 48}),
    "torch.func.vmap": Rung(vmapped, "over step sizes, which share batches"),
    "hand-batched": Rung(batched, "draws and labels shared as ours"),
    "hand-batched, compiled": Rung(batched_compiled, "torch.compile of its step", full_only=True),
}
