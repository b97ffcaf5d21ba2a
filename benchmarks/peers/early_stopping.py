"""W5 in PyTorch: autograd one by one or under vmap, and an expert's batch that drops who is done.

Letters in shapes: B trainings, S seeds, and those of `benchmarks.early_stopping`.
"""

from collections.abc import Sequence

import numpy as np
import torch
from benchmarks.early_stopping import Config
from benchmarks.ladder import Results, Rung, Source, Trial
from benchmarks.peers import (
    DEVICE,
    WIDE,
    by_seeds,
    chunks,
    experts,
    host,
    joined,
    of_lanes,
    randn,
    tensor,
)
from benchmarks.peers.repeat import Descent, Repeat, train_until_done
from torch import Tensor, nn
from torch.func import grad_and_value, vmap
from torch.nn.functional import softplus


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
        x = inputs(some, drawn["noise"])
        lr = tensor(np.array([cfg.lr for cfg, _ in some], np.float32))[:, None]
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
            if t % 50 == 0 and not go.any():
                break
        test = vmap(loss_of)(query, value, inputs(some, drawn["test"]))
        found.append({"test_loss": host(test), "stopped_at": host(stopped)})
    return joined(found)


# ------------------------------------------------------------------------------- the expert's


def gradients(score: Tensor, value: Tensor, y: Tensor, eps: float) -> tuple[Tensor, ...]:
    """With respect to scores and values of the tokens [B L N]; and who goes on."""
    a = torch.softmax(score, dim=1)
    f = (a * value).sum(1)
    m = -y * f
    go = softplus(m).mean(-1) > eps
    g = (-y / len(y)) * torch.sigmoid(m) * go[:, None]
    to_value = g[:, None] * a
    return to_value * (value - f[:, None]), to_value, go


def tokens(w: Tensor, x: Tensor, n: int) -> tuple[Tensor, ...]:
    """Scores and values [B L N] by rows w [B 2 d], and x [B d LN] of each training or [S d LN] of
    each seed, whose trainings follow each other."""
    return (w.reshape(len(x), -1, w.shape[-1]) @ x).view(len(w), 2, -1, n).unbind(1)


def products(
    w: Tensor, stopped: Tensor, x: Tensor, lr: Tensor, y: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """A step of those who are not done. w: query and value [B 2 d]; x: [B d LN], samples last."""
    score, value = tokens(w, x, len(y))
    to_score, to_value, go = gradients(score, value, y, eps)
    slope = torch.stack([to_score, to_value], dim=1).flatten(2)
    return w - lr[:, None, None] * (slope @ x.mT), stopped + go


def sums(
    w: Tensor, stopped: Tensor, x: Tensor, lr: Tensor, y: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """The same, products of two rows as sums that a compiler can fuse: x is read twice."""
    score, value = ((w[:, i, :, None] * x).sum(1).unflatten(-1, (-1, len(y))) for i in (0, 1))
    to_score, to_value, go = gradients(score, value, y, eps)
    slope = [(bar.flatten(1)[:, None] * x).sum(-1) for bar in (to_score, to_value)]
    return w - lr[:, None, None] * torch.stack(slope, dim=1), stopped + go


def shared(
    w: Tensor, stopped: Tensor, lr: Tensor, snr: Tensor, x: Tensor, y: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """The same, all trainings of a seed in one product with its x [S d+2 LN], as in ours.

    The last two columns of w [B 2 d+2], for the signal, are SNR times the first two.
    """
    score, value = tokens(w, x, len(y))
    to_score, to_value, go = gradients(score, value, y, eps)
    slope = torch.stack([to_score, to_value], dim=1).view(len(x), -1, x.shape[-1])
    back, snr = (slope @ x.mT).view(w.shape), snr[:, None, None]
    first = back[..., :2] + snr * back[..., -2:]
    back = torch.cat([first, back[..., 2:-2], snr * first], dim=-1)
    return w - lr[:, None, None] * back, stopped + go


def with_signal(noise: Tensor) -> Tensor:
    """What trainings of a seed share [S d+2 LN]: the noise, and the signal over SNR."""
    signal = torch.zeros_like(noise[..., :2])
    signal[:, :, 0, 0], signal[:, :, 0, 1] = labels(noise.shape[1]), 1.0
    return torch.cat([noise, signal], dim=-1).permute(0, 3, 2, 1).flatten(2)


def batched(
    trials: Sequence[Trial],
    source: Source,
    repeat: Repeat,
    seeds: int,
    every: int = 50,
    form: str = "products",
) -> Results:
    """All settings of some seeds, which share draws; every few steps, who is done is dropped."""

    def run(configs: list[Config], some: Sequence[int]) -> dict[str, Tensor]:
        cfg, b, y = configs[0], len(configs) * len(some), labels(configs[0].samples)
        drawn = source([(cfg, seed) for seed in some])
        lr, snr = (of_lanes(configs, n, len(some)) for n in ("lr", "snr"))
        if form == "shared":
            x = with_signal(drawn["noise"])
            descent, groups = Descent(shared, (lr, snr), (x, y, cfg.eps)), len(some)
        else:
            lanes = [(cfg, seed) for seed in some for cfg in configs]
            noise = drawn["noise"].repeat_interleave(len(configs), 0)
            x = inputs(lanes, noise).permute(0, 3, 2, 1).flatten(2)
            step = {"products": products, "sums": sums}[form]
            descent, groups = Descent(step, (x, lr), (y, cfg.eps)), 1
        start = (torch.zeros(b, 2, x.shape[1], device=DEVICE), torch.zeros(b, device=DEVICE))
        w, stopped = train_until_done(repeat, descent, start, cfg.steps, every, groups)
        w = torch.cat([w[..., : cfg.dim], snr[:, None, None] * w[..., :2]], dim=-1)
        score, value = tokens(w, with_signal(drawn["test"]), cfg.test_samples)
        f = (torch.softmax(score, dim=1) * value).sum(1)
        loss = softplus(-labels(cfg.test_samples) * f).mean(-1)
        return {
            n: v.view(len(some), -1) for n, v in {"test_loss": loss, "stopped_at": stopped}.items()
        }

    return by_seeds(trials, seeds, run)


RUNGS = {
    "PyTorch loop": Rung(loop, "autograd, each stops by itself", share={"quick": 8, "full": 48}),
    "torch.func.vmap": Rung(vmapped, "until the last is done", share={"quick": 6, "full": 24}),
    **experts(
        batched,
        "drops who is done",
        {
            "form": ("products", "shared"),
            "seeds": (16, 64, 256, 512) if WIDE else (4, 2, 8),
            "every": (50, 20),
        },
        forms=("products", "sums", "shared"),
    ),
}
