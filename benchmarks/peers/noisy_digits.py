"""W6 in PyTorch: the network as written, without the norms that the map switches off, and an
expert's batch of trainings with the gradient written out.

Letters in shapes: B trainings, S seeds, R settings, P weights of a training, and those of the
study.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from benchmarks.ladder import Results, Rung, Source, Trial
from benchmarks.noisy_digits import Config, tokens
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
from benchmarks.peers.repeat import Descent, Repeat
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn.functional import cross_entropy, one_hot, scaled_dot_product_attention
from torch.optim.lr_scheduler import LambdaLR

from provingground.data import real
from provingground.studies.benign_overfitting import digits
from provingground.studies.benign_overfitting.digits import CLASSES

AT_ONCE = 88 if WIDE else 4  # settings of a seed in one `vmap`
BETAS, EPS = (0.9, 0.999), 1e-8  # Adam's usual ones, on all sides


def draw(trials: Sequence[Trial]) -> dict[str, Tensor]:
    """Weights normal with the s.d. of the study, and which images, their noise and the batches."""
    cfg, n = trials[0][0], len(trials)
    a, d, f = cfg.heads, cfg.width, cfg.hidden
    h, pixels = d // a, cfg.patch**2

    def normal(*shape: int) -> Tensor:
        return randn(n, *shape) * shape[-1] ** -0.5

    images = len(digits.mnist().y_train)
    return dict(
        read_in=normal(d, pixels),
        positions=0.02 * randn(n, tokens(cfg), d),
        w_q=normal(cfg.layers, a, h, d),
        w_k=normal(cfg.layers, a, h, d),
        w_v=normal(cfg.layers, a, h, d),
        w_o=normal(cfg.layers, a, d, h) * a**-0.5,
        w_in=normal(f, d),
        b_in=torch.zeros(n, f, device=DEVICE),
        read_out=normal(CLASSES, f),
        chosen=torch.stack([torch.randperm(images, device=DEVICE)[: cfg.pool] for _ in trials]),
        noise=randn(n, cfg.pool, tokens(cfg), pixels),
        test=randn(n, cfg.test_images, tokens(cfg), pixels),
        batches=torch.rand(n, cfg.steps, cfg.batch, device=DEVICE),
    )


# ------------------------------------------------------------------------------------- images


@cache
def all_images(folder: Path) -> tuple[Tensor, ...]:
    """All digits on the device: those for training and their classes, those for the test."""
    found = digits.mnist()
    return tuple(tensor(v) for v in (found.x_train, found.y_train, found.x_test, found.y_test))


class Images(NamedTuple):
    """Patches of images, the noise on their frames, and their classes."""

    x: Tensor
    noise: Tensor
    y: Tensor

    def framed(self, snr: Any, at: Tensor | slice = slice(None)) -> Tensor:
        """Images [... T i] in their frames."""
        return (snr * self.x[at] + self.noise[at]) / (1 + snr)


def patches(cfg: Config, x: Tensor) -> Tensor:
    """Images [n e e] of 256 shades as patches [n T i], row by row."""
    k, p = cfg.coarse, cfg.patch
    x = x.float() / 255
    x = x.unflatten(2, (-1, k)).unflatten(1, (-1, k)).mean((2, 4))
    x = x.unflatten(2, (-1, p)).unflatten(1, (-1, p))
    return x.transpose(2, 3).flatten(3).flatten(1, 2)


def prepared(cfg: Config, drawn: dict[str, Tensor]) -> tuple[Images, Images]:
    """Images of one seed: the pool that is trained on, and those of the test."""
    x_train, y_train, x_test, y_test = all_images(real.folder())
    n, chosen = cfg.test_images, drawn["chosen"].long()
    frame = cfg.noise * tensor(digits.frame(cfg.coarse, cfg.patch))
    return (
        Images(patches(cfg, x_train[chosen]), frame * drawn["noise"], y_train[chosen].long()),
        Images(patches(cfg, x_test[:n]), frame * drawn["test"], y_test[:n].long()),
    )


def batches(cfg: Config, drawn: dict[str, Tensor]) -> Tensor:
    """The images of all steps [t b], from the first N of the pool."""
    return (drawn["batches"] * cfg.samples).long()


def first(cfg: Config) -> Tensor:
    """The training images that are looked at in the end: from the beginning, again if too few."""
    return torch.arange(cfg.test_images, device=DEVICE) % cfg.samples


# ----------------------------------------------------------------------- as the paper writes it


class Attention(nn.Module):
    """Heads side by side; `fused` takes PyTorch's own kernel, which `vmap` cannot."""

    def __init__(self, cfg: Config, drawn: dict[str, Tensor], layer: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = cfg.heads, fused
        self.qkv = nn.Linear(cfg.width, 3 * cfg.width, bias=False)
        self.out = nn.Linear(cfg.width, cfg.width, bias=False)
        self.qkv.weight.data, self.out.weight.data = merged(drawn, layer)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if self.fused:
            z = scaled_dot_product_attention(q, k, v)
        else:
            z = torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, dim=-1) @ v
        return self.out(z.transpose(1, 2).flatten(2))


def merged(drawn: dict[str, Tensor], layer: int) -> tuple[Tensor, Tensor]:
    """Queries, keys and values of all heads [... 3d d], and the outputs [... d d]."""
    qkv = [drawn[n][..., layer, :, :, :].flatten(-3, -2) for n in ("w_q", "w_k", "w_v")]
    return torch.cat(qkv, dim=-2), drawn["w_o"][..., layer, :, :, :].transpose(-3, -2).flatten(-2)


class Network(nn.Module):
    def __init__(self, cfg: Config, drawn: dict[str, Tensor], fused: bool = True) -> None:
        super().__init__()
        self.read_in = nn.Linear(cfg.patch**2, cfg.width, bias=False)
        self.positions = nn.Parameter(drawn["positions"].clone())
        self.layers = nn.ModuleList(Attention(cfg, drawn, i, fused) for i in range(cfg.layers))
        self.hidden = nn.Linear(cfg.width, cfg.hidden)
        self.read_out = nn.Linear(cfg.hidden, CLASSES, bias=False)
        self.read_in.weight.data = drawn["read_in"].clone()
        self.hidden.weight.data = drawn["w_in"].clone()
        self.hidden.bias.data = drawn["b_in"].clone()
        self.read_out.weight.data = drawn["read_out"].clone()

    def forward(self, x: Tensor) -> Tensor:
        z = self.read_in(x) + self.positions
        for layer in self.layers:
            z = z + layer(z)
        return self.read_out(torch.relu(self.hidden(z.mean(-2))))


class Adam:
    """PyTorch's, in one kernel, with a step size that falls linearly to nothing."""

    def __init__(self, weights: Iterable[Tensor], cfg: Config) -> None:
        self.rule = torch.optim.Adam(weights, lr=cfg.rate, betas=BETAS, eps=EPS, fused=True)
        self.rate = LambdaLR(self.rule, lambda t: 1 - t / cfg.steps)

    def step(self) -> None:
        self.rule.step()
        self.rate.step()


def evaluate(net: Network, cfg: Config, pool: Images, unseen: Images) -> list[Tensor]:
    """Training loss, test loss and test error."""
    with torch.no_grad():
        at = first(cfg)
        fit = cross_entropy(net(pool.framed(cfg.snr, at)), pool.y[at])
        f = net(unseen.framed(cfg.snr))
        return [fit, cross_entropy(f, unseen.y), (f.argmax(-1) != unseen.y).float().mean()]


def results(rows: Sequence[Sequence[Tensor]]) -> Results:
    names = ("train_loss", "test_loss", "test_error")
    return {n: host(torch.stack([r[i] for r in rows])) for i, n in enumerate(names)}


def loop(trials: Sequence[Trial], source: Source) -> Results:
    """One training after another: a module, autograd, fused Adam and attention."""
    rows = []
    for cfg, seed in trials:
        drawn = {n: v[0] for n, v in source([(cfg, seed)]).items()}
        pool, unseen = prepared(cfg, drawn)
        net = Network(cfg, drawn)
        optimiser = Adam(net.parameters(), cfg)
        for at in batches(cfg, drawn):
            optimiser.rule.zero_grad()
            cross_entropy(net(pool.framed(cfg.snr, at)), pool.y[at]).backward()
            optimiser.step()
        rows.append(evaluate(net, cfg, pool, unseen))
    return results(rows)


def vmapped(trials: Sequence[Trial], source: Source) -> Results:
    """The same module, `torch.func.vmap` over settings of a seed, which share their images."""
    done: dict[Trial, dict[str, np.ndarray]] = {}
    for seed in dict.fromkeys(seed for _, seed in trials):
        same = [trial for trial in trials if trial[1] == seed]
        drawn = {n: v[0] for n, v in source(same[:1]).items()}
        pool, unseen = prepared(same[0][0], drawn)
        for some in chunks(same, AT_ONCE):
            found = at_once([cfg for cfg, _ in some], drawn, pool, unseen)
            done |= {t: {n: v[i : i + 1] for n, v in found.items()} for i, t in enumerate(some)}
    return joined([done[trial] for trial in trials])


def at_once(
    configs: Sequence[Config], drawn: dict[str, Tensor], pool: Images, unseen: Images
) -> Results:
    """Some settings of a seed, by `vmap`."""
    cfg = configs[0]
    nets = [Network(c, drawn, fused=False) for c in configs]
    weights = {n: w.detach() for n, w in stack_module_state(nets)[0].items()}  # pyright: ignore[reportArgumentType]
    snr, chosen = of_lanes(configs, "snr", 1), torch.stack([batches(c, drawn) for c in configs], 1)

    def loss(w: dict[str, Tensor], snr: Tensor, at: Tensor) -> Tensor:
        return cross_entropy(functional_call(nets[0], w, (pool.framed(snr, at),)), pool.y[at])

    optimiser, graded = Adam(weights.values(), cfg), vmap(grad(loss))
    for at in chosen:
        slopes = graded(weights, snr, at)
        for n, w in weights.items():
            w.grad = slopes[n]
        optimiser.step()
    for i, net in enumerate(nets):
        net.load_state_dict({n: w[i] for n, w in weights.items()})
    return results([evaluate(n, c, pool, unseen) for n, c in zip(nets, configs, strict=True)])


# ------------------------------------------------------------------------------- the expert's


class Sizes(NamedTuple):
    """What the weights of a training consist of, one after another."""

    d: int
    pixels: int
    tokens: int
    layers: int
    heads: int
    hidden: int


def views(w: Tensor, size: Sizes) -> list[Tensor]:
    """The matrices [B ...] of weights [B P]."""
    d, f = size.d, size.hidden
    shapes = [(d, size.pixels), (size.tokens, d), *[(3 * d, d), (d, d)] * size.layers]
    shapes += [(f, d), (1, f), (CLASSES, f)]
    parts = w.split([rows * columns for rows, columns in shapes], dim=1)
    return [part.unflatten(1, shape) for part, shape in zip(parts, shapes, strict=True)]


def framed(signal: Tensor, noise: Tensor, x: Tensor, drawn: Tensor, size: Sizes) -> Tensor:
    """Images in their frames, [B bT i], from their rows [B b Ti]."""
    return (signal * x + noise * drawn).unflatten(2, (size.tokens, -1)).flatten(1, 2)


def apart(qkv: Tensor, batch: int, size: Sizes) -> tuple[Tensor, ...]:
    """Rows [B bT 3d] as queries, keys and values [B b H T h]."""
    by_head = qkv.unflatten(2, (3, size.heads, -1)).unflatten(1, (batch, size.tokens))
    return by_head.permute(3, 0, 1, 4, 2, 5).unbind(0)


def beside(by_head: Tensor) -> Tensor:
    """The heads [B b H T h] of each token beside each other, [B bT d]."""
    return by_head.transpose(2, 3).flatten(3).flatten(1, 2)


def forward(w: Sequence[Tensor], x: Tensor, size: Sizes) -> tuple[Tensor, list[Any]]:
    """Outputs [B b c] for images [B bT i], and what the way back needs."""
    read_in, positions, *layers, w_in, b_in, read_out = w
    batch, kept = x.shape[1] // size.tokens, []
    z = (x @ read_in.mT).unflatten(1, (batch, -1)) + positions[:, None]
    z = z.flatten(1, 2)
    for qkv, out in zip(layers[::2], layers[1::2], strict=True):
        q, k, v = apart(z @ qkv.mT, batch, size)
        p = torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, dim=-1)
        o = beside(p @ v)
        kept.append((z, q, k, v, p, o))
        z = torch.baddbmm(z, o, out.mT)
    u = z.unflatten(1, (batch, -1)).mean(2)
    hidden = torch.relu(torch.baddbmm(b_in, u, w_in.mT))
    return hidden @ read_out.mT, [*kept, u, hidden]


def slopes(w: Tensor, x: Tensor, y: Tensor, size: Sizes) -> Tensor:
    """The gradient [B P] of the mean cross-entropy; y: classes as unit vectors [B b c]."""
    parts = views(w, size)
    _, _, *layers, w_in, _, read_out = parts
    f, (*kept, u, hidden) = forward(parts, x, size)
    batch = f.shape[1]
    f_bar = (torch.softmax(f, dim=-1) - y) / batch
    hidden_bar = f_bar @ read_out * (hidden > 0)
    found = [f_bar.mT @ hidden, hidden_bar.sum(1), hidden_bar.mT @ u]  # the last matrices first
    u_bar = hidden_bar @ w_in / size.tokens
    z_bar = u_bar[:, :, None].expand(-1, -1, size.tokens, -1).flatten(1, 2)
    for i in reversed(range(size.layers)):
        (qkv, out), (z, q, k, v, p, o) = layers[2 * i : 2 * i + 2], kept[i]
        found.append(z_bar.mT @ o)
        o_bar = (z_bar @ out).unflatten(2, (size.heads, -1)).unflatten(1, (batch, size.tokens))
        o_bar = o_bar.transpose(2, 3)
        p_bar = o_bar @ v.mT
        s_bar = p * (p_bar - (p * p_bar).sum(-1, keepdim=True)) * q.shape[-1] ** -0.5
        bar = torch.cat([beside(m) for m in (s_bar @ k, s_bar.mT @ q, p.mT @ o_bar)], dim=-1)
        found.append(bar.mT @ z)
        z_bar = torch.baddbmm(z_bar, bar, qkv)
    found += [z_bar.unflatten(1, (batch, -1)).sum(1), z_bar.mT @ x]
    return torch.cat([g.flatten(1) for g in reversed(found)], dim=1)


def step(
    w: Tensor,
    m: Tensor,
    v: Tensor,
    at: Tensor,
    rate: Tensor,
    growth: Tensor,
    signal: Tensor,
    noise: Tensor,
    all_x: Tensor,
    all_noise: Tensor,
    all_y: Tensor,
    size: Sizes,
) -> tuple[Tensor, ...]:
    """Adam on weights [B P] with their moments, for the images `at` [B b] of all pools.

    rate, growth: step size and factor of the second moment, with Adam's corrections [1 1].
    """
    x = framed(signal, noise, all_x[at], all_noise[at], size)
    g = slopes(w, x, all_y[at], size)
    m = torch.lerp(m, g, 1 - BETAS[0])
    v = torch.lerp(v, g * g, 1 - BETAS[1])
    return w - rate * m / (torch.sqrt(growth * v) + EPS), m, v


def batched(
    trials: Sequence[Trial],
    source: Source,
    repeat: Repeat,
    seeds: int = 1,
    lanes: int | None = None,
    ahead: int = 50,
) -> Results:
    """All settings (or some) of a few seeds at once, which share images and what chooses them."""

    def run(configs: list[Config], some: Sequence[int]) -> dict[str, Tensor]:
        cfg = configs[0]
        drawn = source([(cfg, seed) for seed in some])
        both = [prepared(cfg, {n: v[s] for n, v in drawn.items()}) for s in range(len(some))]
        pool, unseen = (stacked([pair[i] for pair in both]) for i in range(2))
        found = [
            trained(few, drawn, pool, unseen, repeat, ahead)
            for few in chunks(configs, lanes or len(configs))
        ]
        return {n: torch.cat([f[n] for f in found], dim=1) for n in found[0]}

    return by_seeds(trials, seeds, run)


def stacked(by_seed: Sequence[Images]) -> Images:
    """The images of all seeds one after another, each in a row; classes as unit vectors."""
    x, noise = (torch.cat([images[i].flatten(1) for images in by_seed]) for i in range(2))
    return Images(x, noise, one_hot(torch.cat([images.y for images in by_seed]), CLASSES).float())


def trained(
    configs: Sequence[Config],
    drawn: dict[str, Tensor],
    pool: Images,
    unseen: Images,
    repeat: Repeat,
    ahead: int,
) -> dict[str, Tensor]:
    """What is measured of all settings with all seeds [S R]."""
    cfg, seeds, r = configs[0], len(drawn["noise"]), len(configs)
    size = Sizes(cfg.width, cfg.patch**2, tokens(cfg), cfg.layers, cfg.heads, cfg.hidden)
    pairs = [matrix for i in range(cfg.layers) for matrix in merged(drawn, i)]
    start = [drawn["read_in"], drawn["positions"], *pairs]
    start += [drawn[n] for n in ("w_in", "b_in", "read_out")]
    w = torch.cat([m.flatten(1) for m in start], dim=1).repeat_interleave(r, dim=0)

    snr = of_lanes(configs, "snr", seeds)[:, None, None]
    signal, noise = snr / (1 + snr), 1 / (1 + snr)
    t = np.arange(1, cfg.steps + 1)
    rate = cfg.rate * (1 - (t - 1) / cfg.steps) / (1 - BETAS[0] ** t)
    rate, growth = (
        tensor(v.astype(np.float32))[:, None, None] for v in (rate, 1 / (1 - BETAS[1] ** t))
    )
    descent = Descent(step, (signal, noise), (*pool, size))
    state = (w, torch.zeros_like(w), torch.zeros_like(w))
    samples = of_lanes(configs, "samples", 1)[:, None]  # R 1
    seed = torch.arange(seeds, device=DEVICE)[:, None, None]
    for i in range(0, cfg.steps, ahead):
        now = slice(i, i + ahead)
        u = drawn["batches"][:, now].transpose(0, 1)[:, :, None]  # t S 1 b
        at = ((u * samples).long() + cfg.pool * seed).flatten(1, 2)
        state = repeat(descent, state, len(at), (at, rate[now], growth[now]))

    weights = views(state[0], size)

    def tested(images: Images, at: Tensor) -> list[Tensor]:
        """Loss and error on images [B n], not more of them at once than a step has."""
        found = []
        for few in at.split(cfg.batch, dim=1):
            x = framed(signal, noise, images.x[few], images.noise[few], size)
            f, y = forward(weights, x, size)[0], images.y[few]
            loss = torch.logsumexp(f, dim=-1) - (f * y).sum(-1)
            found.append(torch.stack([loss, (f.argmax(-1) != y.argmax(-1)).float()]))
        return list(torch.cat(found, dim=2).mean(2).unflatten(1, (seeds, r)))

    n = torch.arange(cfg.test_images, device=DEVICE)
    seen = (n % samples).long() + cfg.pool * seed  # S R n
    new = (n + cfg.test_images * seed).expand(-1, r, -1)
    test_loss, test_error = tested(unseen, new.flatten(0, 1))
    return {
        "train_loss": tested(pool, seen.flatten(0, 1))[0],
        "test_loss": test_loss,
        "test_error": test_error,
    }


RUNGS = {
    "PyTorch loop": Rung(loop, "as written", share={"quick": 3, "full": 88}),
    "torch.func.vmap": Rung(
        vmapped,
        "as written, settings of a seed",
        share={"quick": 1} if WIDE else {"quick": 3, "full": 16},
    ),
    **experts(
        batched,
        "gradient written out, images and batches shared as ours",
        {"seeds": (4, 1, 16)} if WIDE else {"lanes": (12, 4)},
    ),
}
