"""W2 in PyTorch: the network of the paper on tokens, and an expert's reduced form.

Letters in shapes: B trainings, S seeds, R step sizes, and those of `benchmarks.tiny_networks`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from benchmarks.ladder import Results, Rung, Source, Trial
from benchmarks.peers import (
    DEVICE,
    WIDE,
    by_seeds,
    chunks,
    experts,
    host,
    of_lanes,
    randn,
    tensor,
)
from benchmarks.peers.repeat import Descent, Repeat, train
from benchmarks.tiny_networks import Config, counts, roles
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn.functional import one_hot, softmax

CHUNK = 32 if WIDE else 2


def draw(trials: Sequence[Trial]) -> dict[str, Tensor]:
    cfg, n = trials[0][0], len(trials)
    units = randn(n, 3, cfg.patterns, cfg.dim)
    ordered = tensor(roles(cfg))

    def tokens(samples: int) -> Tensor:
        place = torch.rand(n, samples, cfg.tokens, device=DEVICE).argsort(-1)
        half = samples // 2
        return torch.cat([ordered[0][place[:, :half]], ordered[1][place[:, half:]]], dim=1)

    return dict(
        units=units / units.norm(dim=-1, keepdim=True),
        hidden=randn(n, cfg.width, cfg.dim),
        readout=randn(n, cfg.tokens, cfg.width).sign() / cfg.width**0.5,
        tokens=tokens(cfg.samples),
        test=tokens(cfg.test_samples),
    )


# ------------------------------------------------------------ the network, token by token


class Transformer(nn.Module):
    """One head, a ReLU layer, a frozen read-out for each position."""

    def __init__(self, cfg: Config, drawn: dict[str, Tensor]) -> None:
        super().__init__()
        d, m, error = cfg.dim, cfg.patterns, drawn["units"].transpose(1, 2)
        self.query, self.key, self.value = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.hidden = nn.Linear(d, cfg.width, bias=False)
        for layer, e, scale in (
            (self.query, error[0], cfg.key_error),
            (self.key, error[1], cfg.key_error),
            (self.value, error[2], cfg.value_error),
        ):
            layer.weight.data = torch.eye(d, device=DEVICE)
            layer.weight.data[:, :m] += scale * e
        self.hidden.weight.data = cfg.hidden * drawn["hidden"]
        self.register_buffer("readout", drawn["readout"])

    def attention(self, x: Tensor) -> Tensor:
        return softmax(self.query(x) @ self.key(x).transpose(-1, -2), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.hidden(self.attention(x) @ self.value(x)))
        return torch.einsum("nlm,lm->n", h, self.readout) / x.shape[-2]


def labels(n: int) -> Tensor:
    return torch.ones(n, device=DEVICE).index_fill_(0, torch.arange(n // 2, n, device=DEVICE), -1.0)


def hinge(f: Tensor) -> Tensor:
    return torch.relu(1 - labels(len(f)) * f).mean()


def evaluate(net: Any, x: Tensor, x_test: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Losses, and the attention on tokens of the own class's pattern."""
    minus = labels(len(x)) < 0
    own = torch.where(minus[:, None], x[..., 1], x[..., 0])
    on = (net.attention(x) * own[:, None, :]).sum(-1).mean()
    return hinge(net(x)), hinge(net(x_test)), on


def results(rows: Sequence[Any]) -> Results:
    names = ("train_loss", "test_loss", "attention")
    return {n: host(torch.stack([r[i] for r in rows])) for i, n in enumerate(names)}


def loop(trials: Sequence[Trial], source: Source) -> Results:
    """One training after another: a module, autograd, SGD."""
    rows = []
    for cfg, seed in trials:
        drawn = {n: v[0] for n, v in source([(cfg, seed)]).items()}
        x, x_test = (one_hot(drawn[n].long(), cfg.dim).float() for n in ("tokens", "test"))
        net = Transformer(cfg, drawn)
        optimiser = torch.optim.SGD(net.parameters(), lr=cfg.lr)
        for _ in range(cfg.steps):
            optimiser.zero_grad()
            hinge(net(x)).backward()
            optimiser.step()
        with torch.no_grad():
            rows.append(evaluate(net, x, x_test))
    return results(rows)


def vmapped(trials: Sequence[Trial], source: Source) -> Results:
    """The same module, `torch.func.vmap` over a few trainings."""
    found = []
    for some in chunks(trials, CHUNK):
        cfg, drawn = some[0][0], source(some)
        nets = [
            Transformer(c, {n: v[i] for n, v in drawn.items()}) for i, (c, _) in enumerate(some)
        ]
        x, x_test = (one_hot(drawn[n].long(), cfg.dim).float() for n in ("tokens", "test"))
        weights, buffers = stack_module_state(nets)  # pyright: ignore[reportArgumentType]
        weights = {n: w.detach() for n, w in weights.items()}
        lr = tensor(np.array([c.lr for c, _ in some], np.float32))
        net = nets[0]

        def loss(w: Any, b: Any, x: Tensor, net: Any = net) -> Tensor:
            return hinge(functional_call(net, (w, b), (x,)))

        graded = vmap(grad(loss))
        for _ in range(cfg.steps):
            g = graded(weights, buffers, x)
            for n, w in weights.items():
                w -= lr.view(-1, 1, 1) * g[n]
        for i, trained in enumerate(nets):
            trained.load_state_dict({n: w[i] for n, w in (weights | buffers).items()})
            with torch.no_grad():
                found.append(evaluate(trained, x[i], x_test[i]))
    return results(found)


# ------------------------------------------------------------------ the expert's reduced form


def step(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    hidden: Tensor,
    sums: Tensor,
    lr: Tensor,
    log_counts: Tensor,
    sign: Tensor,
    by_product: bool,
) -> tuple[Tensor, ...]:
    """Descent in the span of the patterns for all seeds and step sizes, gradient written out.

    query, key, value: [S R M d], hidden: [S R m d], sums of read-outs: [S 2 n Mm]; sign: of the
    two classes.
    """
    s, r, m, _ = query.shape
    n = sums.shape[2]
    p = softmax((query @ key.mT)[:, :, None] + log_counts, dim=-1)
    flat = p.reshape(s, r, 2 * m, m)
    v = flat @ value
    # as sums of terms, a compiler can fuse them with what follows
    z = v @ hidden.mT if by_product else (v[:, :, :, None] * hidden[:, :, None]).sum(-1)
    h = torch.relu(z).view(s, r, 2, -1).transpose(1, 2)  # S 2 R Mm
    f = h @ sums.mT  # S 2 R n
    g = -sign * (sign * f < 1) / (2 * n)
    z_bar = (g @ sums).transpose(1, 2).reshape(z.shape) * (z > 0)
    v_bar = z_bar @ hidden
    p_bar = (v_bar @ value.mT).view(p.shape)
    s_bar = (p * (p_bar - (p * p_bar).sum(-1, keepdim=True))).sum(2)
    hidden_bar = z_bar.mT @ v if by_product else (z_bar[..., None] * v[:, :, :, None]).sum(2)
    return (
        query - lr * (s_bar @ key),
        key - lr * (s_bar.mT @ query),
        value - lr * (flat.mT @ v_bar),
        hidden - lr * hidden_bar,
    )


def batched(
    trials: Sequence[Trial], source: Source, repeat: Repeat, seeds: int, form: str = "products"
) -> Results:
    """All step sizes of some seeds at once, which share weights and data."""

    def run(configs: list[Config], some: Sequence[int]) -> dict[str, Tensor]:
        cfg, rates = configs[0], len(configs)
        drawn = source([(cfg, seed) for seed in some])
        lr = of_lanes(configs, "lr", 1).view(1, -1, 1, 1)
        log_counts = tensor(np.log(counts(cfg)))[:, None]

        def summed(tokens: Tensor) -> Tensor:
            at = one_hot(tokens.long(), cfg.patterns).float().mT.flatten(1, 2)
            sums = at @ drawn["readout"] / cfg.tokens
            return sums.view(len(some), 2, tokens.shape[1] // 2, -1)

        eye, units = torch.eye(cfg.patterns, cfg.dim, device=DEVICE), drawn["units"]
        start = (
            eye + cfg.key_error * units[:, 0],
            eye + cfg.key_error * units[:, 1],
            eye + cfg.value_error * units[:, 2],
            cfg.hidden * drawn["hidden"],
        )
        sums = summed(drawn["tokens"])
        sign = torch.tensor([1.0, -1.0], device=DEVICE).view(1, 2, 1, 1)
        descent = Descent(step, (sums,), (lr, log_counts, sign, form == "products"))
        w = tuple(m[:, None].repeat(1, rates, 1, 1) for m in start)
        query, key, value, hidden = train(repeat, descent, w, cfg.steps)
        p = softmax((query @ key.mT)[:, :, None] + log_counts, dim=-1)
        h = torch.relu(p.flatten(2, 3) @ value @ hidden.mT).view(len(some), rates, 2, -1)

        def loss(sums: Tensor) -> Tensor:
            return torch.relu(1 - sign * (h.transpose(1, 2) @ sums.mT)).mean((1, 3))

        own = torch.stack([p[:, :, 0, :, 0], p[:, :, 1, :, 1]], dim=2)
        return {
            "train_loss": loss(sums),
            "test_loss": loss(summed(drawn["test"])),
            "attention": (own * tensor(counts(cfg))).sum(-1).mean(-1) / cfg.tokens,
        }

    return by_seeds(trials, seeds, run)


RUNGS = {
    "PyTorch loop": Rung(loop, "token level", share={"quick": 96, "full": 96}),
    "torch.func.vmap": Rung(vmapped, "token level", share={"quick": 48, "full": 48}),
    **experts(
        batched,
        "reduced form, draws shared as ours",
        {"seeds": (16, 4, 64) if WIDE else (1, 2)},
        forms=("products", "sums"),
    ),
}
