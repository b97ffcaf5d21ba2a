"""W4 in PyTorch: the student as written, and an expert's batch over step sizes.

Letters in shapes: S seeds, R step sizes, and those of `benchmarks.online_sgd`.
"""

from collections.abc import Sequence

import numpy as np
import torch
from benchmarks.ladder import Results, Rung, Source, Trial
from benchmarks.online_sgd import Config, support
from benchmarks.peers import (
    DEVICE,
    WIDE,
    by_seeds,
    experts,
    grid_of,
    host,
    of_lanes,
    randn,
    tensor,
)
from benchmarks.peers.repeat import Descent, Repeat
from torch import Tensor, nn
from torch.func import grad, vmap


def draw(trials: Sequence[Trial]) -> dict[str, Tensor]:
    """Teacher and positional code; batches are drawn step by step."""
    cfg, b = trials[0][0], len(trials)
    return dict(
        teacher=randn(b, cfg.outputs, cfg.dim),
        position=torch.linalg.qr(randn(b, cfg.tokens, cfg.tokens))[0],
    )


def relu(x: Tensor) -> Tensor:
    """With the derivative 1 at 0: training starts there."""
    return torch.where(x >= 0, x, 0.0)


def attention(w_kq: Tensor, position: Tensor) -> Tensor:
    return torch.softmax(position.mT @ w_kq @ position / len(position) ** 0.5, dim=0)


def errors(w_v: Tensor, s: Tensor, teacher: Tensor) -> dict[str, Tensor]:
    """Of value matrices [... M d] and attention matrices [... D D]."""
    off = tensor(support(Config(tokens=s.shape[-1])) == 0)
    error = (w_v - teacher).flatten(-2).norm(dim=-1) / teacher.flatten(-2).norm(dim=-1)
    return {"value_error": error, "leak": (s * off).sum((-1, -2)) / s.shape[-1]}


def results(w_v: Tensor, s: Tensor, teacher: Tensor) -> Results:
    return {n: host(v) for n, v in errors(w_v, s, teacher).items()}


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
        return drawn["batches"][0, t].view(-1, cfg.batch, cfg.tokens).transpose(0, 1)
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


def labels(cfg: Config, z: Tensor, teacher: Tensor, s_star: Tensor) -> Tensor:
    """Labels of some steps, [k S MN D], from their numbers [k S dM ND]."""
    clean = (teacher @ z[:, :, : cfg.dim]).unflatten(-1, (-1, cfg.tokens)).flatten(2, 3)
    noise = z[:, :, cfg.dim :].unflatten(-1, (-1, cfg.tokens)).flatten(2, 3)
    return relu(clean @ s_star) + cfg.noise * noise


def step(
    w_v: Tensor, logits: Tensor, x: Tensor, y: Tensor, rates: Tensor, by_row: Tensor
) -> tuple[Tensor, Tensor]:
    """w_v: [S RM d], logits: [S R D D], x: [S d ND], y: [S MN D]."""
    seeds, r, tokens, _ = logits.shape
    n = x.shape[-1] // tokens
    s = torch.softmax(logits / tokens**0.5, dim=-2)
    u = (w_v @ x).view(seeds, r, -1, tokens)
    f = u @ s
    slope = torch.where(f >= 0, f - y[:, None], 0.0)
    s_bar = u.mT @ slope / n
    a_bar = s * (s_bar - (s * s_bar).sum(-2, keepdim=True)) / tokens**0.5
    v_bar = (slope @ s.mT).view(seeds, w_v.shape[1], -1) @ x.mT / n
    return w_v - by_row * v_bar, logits - rates * a_bar


def batched(
    trials: Sequence[Trial], source: Source, repeat: Repeat, seeds: int, ahead: int = 20
) -> Results:
    """All step sizes of some seeds, batches and labels shared as in ours, drawn some steps ahead.

    The gradient is written out.
    """

    def run(configs: list[Config], some: Sequence[int]) -> dict[str, Tensor]:
        cfg, r = configs[0], len(configs)
        drawn = source([(cfg, seed) for seed in some])
        s_star, rates = tensor(support(cfg) / 3), of_lanes(configs, "lr", 1).view(-1, 1, 1)
        by_row = rates.expand(-1, cfg.outputs, 1).reshape(-1, 1)
        descent = Descent(step, (), (rates, by_row))
        state = (
            torch.zeros(len(some), r * cfg.outputs, cfg.dim, device=DEVICE),
            torch.zeros(len(some), r, cfg.tokens, cfg.tokens, device=DEVICE),
        )
        rows, columns = cfg.dim + cfg.outputs, cfg.batch * cfg.tokens
        fresh = torch.empty(ahead, len(some), rows, columns, device=DEVICE)
        for t in range(0, cfg.steps, ahead):
            steps = min(ahead, cfg.steps - t)
            if "batches" in drawn:
                z = drawn["batches"][:, t : t + steps].transpose(0, 1).contiguous()
            else:
                z = fresh[:steps].normal_()
            y = labels(cfg, z, drawn["teacher"], s_star)
            state = repeat(descent, state, steps, (z[:, :, : cfg.dim], y))
        w_v, logits = state
        s = torch.softmax(logits / cfg.tokens**0.5, dim=-2)
        return errors(w_v.unflatten(1, (r, -1)), s, drawn["teacher"][:, None])

    return by_seeds(trials, seeds, run)


RUNGS = {
    "PyTorch loop": Rung(loop, "autograd, each draws its own", share={"quick": 12, "full": 48}),
    "torch.func.vmap": Rung(vmapped, "over step sizes, which share batches"),
    **experts(
        batched,
        "draws and labels shared as ours",
        {"seeds": (8, 2, 32, 128) if WIDE else (1, 2)},
    ),
}
