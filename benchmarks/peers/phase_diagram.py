"""W1 in PyTorch: the network as written, and an expert's batch in the span of the tokens.

Letters in shapes: B trainings, R signal-to-noise ratios, U unique tokens, and those of the study.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
import torch
from benchmarks.ladder import Results, Rung, Source, Trial
from benchmarks.peers import DEVICE, WIDE, chunks, experts, host, randn, tensor
from benchmarks.peers.repeat import MODES, Descent, Repeat, train_until_done
from torch import Tensor, nn
from torch.func import grad_and_value, vmap
from torch.nn.functional import softplus

from provingground.studies.benign_overfitting import model
from provingground.studies.benign_overfitting.model import Config


def draw(trials: Sequence[Trial]) -> dict[str, Tensor]:
    """Weights uniform as those of `nn.Linear`, and standard normal noise."""
    cfg, b = trials[0][0], len(trials)
    d, h, v = cfg.dim, cfg.key_width, cfg.value_width

    def uniform(*shape: int, fan: int) -> Tensor:
        return torch.empty(b, *shape, device=DEVICE).uniform_(-(fan**-0.5), fan**-0.5)

    return dict(
        w_q=uniform(d, h, fan=d),
        w_k=uniform(d, h, fan=d),
        w_v=uniform(d, v, fan=d),
        w_o=uniform(v, fan=v),
        noise=randn(b, cfg.samples, cfg.tokens - 1, d),
        test=randn(b, cfg.test_samples, cfg.tokens - 1, d),
    )


def labels(n: int) -> Tensor:
    return 1.0 - 2.0 * (torch.arange(n, device=DEVICE) % 2)


def tokens(cfg: Config, noise: Tensor) -> Tensor:
    """Samples [N M d]: token 1 is the signal, token 2 has the big noise."""
    y, norm = labels(len(noise)), float(model.signal_norm(cfg))
    x = torch.cat([torch.zeros_like(noise[:, :1]), noise * cfg.noise], dim=1)
    x[:, 1] *= cfg.noise_big / cfg.noise
    x[:, 0, 0], x[:, 0, 1] = norm * (y > 0), norm * (y < 0)
    return x


def loss_of(f: Tensor) -> Tensor:
    return softplus(-labels(f.shape[-1]) * f).mean(-1)


def by_samples(trials: Sequence[Trial]) -> Iterator[list[Trial]]:
    """Trainings with equally many samples, whose arrays can be stacked."""
    ordered = sorted(trials, key=lambda trial: trial[0].samples)
    for _, same in groupby(ordered, key=lambda trial: trial[0].samples):
        yield list(same)


def in_order(trials: Sequence[Trial], done: dict[Trial, tuple[float, float]]) -> Results:
    return {
        name: np.array([done[trial][i] for trial in trials])
        for i, name in enumerate(("test_loss", "stopped_at"))
    }


# ----------------------------------------------------------------------- as the paper writes it


class Transformer(nn.Module):
    def __init__(self, cfg: Config, drawn: dict[str, Tensor]) -> None:
        super().__init__()
        d, h, v = cfg.dim, cfg.key_width, cfg.value_width
        self.query = nn.Linear(d, h, bias=False)
        self.key = nn.Linear(d, h, bias=False)
        self.value = nn.Linear(d, v, bias=False)
        self.output = nn.Linear(v, 1, bias=False)
        for layer, name in ((self.query, "w_q"), (self.key, "w_k"), (self.value, "w_v")):
            layer.weight.data = cfg.init_scale * drawn[name].T.contiguous()
        self.output.weight.data = drawn["w_o"][None]
        self.output.weight.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        p = torch.softmax(self.query(x) @ self.key(x).mT, dim=-1)
        return (p @ self.output(self.value(x))).mean(dim=(1, 2))


def loop(trials: Sequence[Trial], source: Source) -> Results:
    """One training after another: a module, autograd, SGD."""
    done = {}
    for cfg, seed in trials:
        drawn = {n: v[0] for n, v in source([(cfg, seed)]).items()}
        net, x = Transformer(cfg, drawn), tokens(cfg, drawn["noise"])
        optimiser = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=cfg.lr)
        step = 0
        for step in range(cfg.steps + 1):  # noqa: B007
            loss = loss_of(net(x))
            if loss.item() <= cfg.eps:
                break
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            done[cfg, seed] = (loss_of(net(tokens(cfg, drawn["test"]))).item(), step)
    return in_order(trials, done)


def vmapped(trials: Sequence[Trial], source: Source) -> Results:
    """`torch.func.vmap` over a few trainings of equal size, until the last one is done."""

    def loss(w: tuple[Tensor, ...], w_o: Tensor, x: Tensor) -> Tensor:
        w_q, w_k, w_v = w
        p = torch.softmax((x @ w_q) @ (x @ w_k).mT, dim=-1)
        return loss_of((p @ (x @ w_v @ w_o)[..., None]).mean(dim=(1, 2)))

    graded, done = vmap(grad_and_value(loss)), {}
    for same in by_samples(trials):
        for some in chunks(same, 128 if WIDE else 4):
            drawn, cfg = source(some), some[0][0]
            x = torch.stack([tokens(c, n) for (c, _), n in zip(some, drawn["noise"], strict=True)])
            w = tuple(cfg.init_scale * drawn[n] for n in ("w_q", "w_k", "w_v"))
            stopped = torch.zeros(len(some), device=DEVICE)
            for t in range(cfg.steps):
                g, value = graded(w, drawn["w_o"], x)
                go = (value > cfg.eps).float()
                if t % 4 == 0 and not go.any():
                    break
                rate = (cfg.lr * go).view(-1, 1, 1)
                w = tuple(a - rate * b for a, b in zip(w, g, strict=True))
                stopped += go
            x = torch.stack([tokens(c, n) for (c, _), n in zip(some, drawn["test"], strict=True)])
            test = vmap(loss)(w, drawn["w_o"], x)
            done |= dict(zip(some, zip(host(test), host(stopped), strict=True), strict=True))
    return in_order(trials, done)


# ------------------------------------------------------------------------------- the expert's


def split(rows: Tensor, y: Tensor) -> Tensor:
    """Rows of the unique tokens [R U c] as tokens of the samples [R N M c]."""
    r, _, c = rows.shape
    signal = torch.where((y > 0)[:, None], rows[:, None, 0], rows[:, None, 1])
    return torch.cat([signal[:, :, None], rows[:, 2:].view(r, len(y), -1, c)], dim=2)


def merged(by_sample: Tensor, y: Tensor) -> Tensor:
    """The transpose of `split`: gradients of samples, summed for each unique token."""
    signal = by_sample[:, :, 0]
    plus, minus = (signal * (y > 0)[:, None]).sum(1), (signal * (y < 0)[:, None]).sum(1)
    return torch.cat([torch.stack([plus, minus], 1), by_sample[:, :, 1:].flatten(1, 2)], dim=1)


def step(
    c: Tensor,
    c_v: Tensor,
    stopped: Tensor,
    initial: Tensor,
    initial_v: Tensor,
    gram: Tensor,
    weight: Tensor,
    value_rate: Tensor,
    y: Tensor,
    rate: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """Descent on the coefficients of queries beside keys [R U 2h], and of values [R U 1].

    weight: that of each sample in the mean [R N], 0 for those that fill up.
    """
    q, k = split(torch.baddbmm(initial, gram, c), y).chunk(2, dim=-1)
    v = split(torch.baddbmm(initial_v, gram, c_v), y)
    p = torch.softmax(q @ k.mT, dim=-1)
    m = -y * (p @ v).mean(dim=(2, 3))
    go = (softplus(m) * weight).sum(-1) > eps
    g = (-y * weight * torch.sigmoid(m) * go[:, None] / v.shape[2])[..., None, None]
    p_bar = g * v.mT
    s_bar = p * (p_bar - (p * p_bar).sum(-1, keepdim=True))
    bar = merged(torch.cat([s_bar @ k, s_bar.mT @ q], dim=-1), y)
    v_bar = merged((g * p).sum(2)[..., None], y)
    return c - rate * bar, c_v - value_rate * v_bar, stopped + go


def batched(
    trials: Sequence[Trial],
    source: Source,
    repeat: Repeat,
    seeds: int = 1,
    lanes: int | None = None,
    pad: int = 1,
    every: int = 4,
) -> Results:
    """In the span of the tokens; trainings of one seed share draws and products, as in ours.

    Samples are filled up to a multiple of `pad`, so that more trainings go together.
    """

    def filled(trial: Trial) -> int:
        return -(-trial[0].samples // pad) * pad

    done = {}
    for n, group in groupby(sorted(trials, key=filled), key=filled):
        same = list(group)
        cfg = replace(same[0][0], samples=n)
        for some in chunks(list(dict.fromkeys(seed for _, seed in same)), seeds):
            shared = products(cfg, source([(cfg, seed) for seed in some]))
            configs = list(dict.fromkeys(c for c, _ in same))
            for few in chunks(configs, lanes or len(configs)):
                found = in_span(cfg, few, shared, repeat, every)
                done |= {
                    (c, seed): tuple(found[:, s, i])
                    for s, seed in enumerate(some)
                    for i, c in enumerate(few)
                }
    return in_order(trials, done)


def products(cfg: Config, drawn: dict[str, Tensor]) -> dict[str, Tensor]:
    """What depends on the seed alone: products of unit tokens with weights and each other."""
    signals = torch.eye(2, cfg.dim, device=DEVICE).expand(len(drawn["noise"]), -1, -1)
    unit = torch.cat([signals, drawn["noise"].flatten(1, 2)], dim=1)
    signal = signals[:, torch.arange(cfg.test_samples) % 2]
    x = torch.cat([signal[:, :, None], drawn["test"]], dim=2).flatten(1, 2)
    both = torch.cat([drawn["w_q"], drawn["w_k"]], dim=-1)
    value = drawn["w_v"] @ drawn["w_o"][..., None]
    return {
        "gram": unit @ unit.mT,
        "overlap": x @ unit.mT,
        "norm": (drawn["w_o"] ** 2).sum(-1),
        "train": unit @ both,
        "train_v": unit @ value,
        "test": x @ both,
        "test_v": x @ value,
    }


def in_span(
    cfg: Config,
    configs: Sequence[Config],
    shared: dict[str, Tensor],
    repeat: Repeat,
    every: int,
) -> np.ndarray:
    """Test losses and numbers of steps of all settings with all seeds: [2 S R]."""
    n, seeds, r = cfg.samples, len(shared["norm"]), len(configs)
    scale = tensor(np.array([model.token_scale(c) for c in configs], np.float32))  # R M
    role = [0, 0, *list(range(1, cfg.tokens)) * n]
    on_train, on_test = scale[:, role, None], scale.repeat(1, cfg.test_samples)[..., None]

    def of_each(by_seed: Tensor) -> Tensor:
        return by_seed.flatten(0, 1)  # trainings: settings of the first seed, of the second, ...

    gram = of_each(on_train * shared["gram"][:, None] * on_train.mT)
    start = [of_each(cfg.init_scale * on_train * shared[i][:, None]) for i in ("train", "train_v")]
    samples = tensor(np.array([c.samples for c in configs], np.float32))[:, None]
    weight = ((torch.arange(n, device=DEVICE) < samples) / samples).repeat(seeds, 1)
    value_rate = cfg.lr * shared["norm"].repeat_interleave(r).view(-1, 1, 1)
    state = (*(torch.zeros_like(m) for m in start), torch.zeros(seeds * r, device=DEVICE))
    descent = Descent(
        step,
        (*start, gram, weight, value_rate),
        (labels(n), cfg.attention_rate * cfg.lr, cfg.eps),
    )
    c, c_v, stopped = train_until_done(repeat, descent, state, cfg.steps, every)

    def tested(s: int) -> Tensor:
        """Losses of the settings of a seed."""
        rows, rows_v = (
            on_test * (cfg.init_scale * shared[i][s] + shared["overlap"][s] @ (on_train * x))
            for i, x in (("test", c[s * r : (s + 1) * r]), ("test_v", c_v[s * r : (s + 1) * r]))
        )
        by_sample = (cfg.test_samples, cfg.tokens)
        q, k = rows.unflatten(1, by_sample).chunk(2, dim=-1)
        p = torch.softmax(q @ k.mT, dim=-1)
        return loss_of((p @ rows_v.unflatten(1, by_sample)).mean(dim=(2, 3)))

    losses = torch.stack([tested(s) for s in range(seeds)])
    return host(torch.stack([losses, stopped.view(seeds, r)]))


RUNGS = {
    "PyTorch loop": Rung(loop, "as written", share={"quick": 7, "full": 36}),
    "torch.func.vmap": Rung(
        vmapped, "as written, until the last is done", share={"quick": 7, "full": 36}
    ),
    **experts(
        batched,
        "span form, drops who is done",
        {"seeds": (3, 1, 8), "pad": (4, 2)} if WIDE else {"lanes": (6, 12, 24)},
        modes=MODES[:1],  # the large products are those of cuBLAS
    ),
}
