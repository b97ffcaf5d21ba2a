"""The benchmark ladder at miniature size: ours against plain numpy, the peers against ours."""

import functools
import importlib.util
import io
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import ladder, run
from benchmarks.early_stopping import WORKLOAD as EARLY
from benchmarks.ladder import Rung, cell, chosen, deviation, spread
from benchmarks.mixture_recovery import WORKLOAD as MIXTURE
from benchmarks.mixture_recovery import step_size
from benchmarks.noisy_digits import WORKLOAD as DIGITS
from benchmarks.online_sgd import WORKLOAD as ONLINE
from benchmarks.online_sgd import support
from benchmarks.phase_diagram import WORKLOAD as PHASE
from benchmarks.run import WORKLOADS
from benchmarks.tiny_networks import WORKLOAD as TINY
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provingground import grid
from provingground.data import real
from provingground.keys import seed_key
from provingground.studies.benign_overfitting import digits
from provingground.studies.benign_overfitting.model import signal_norm


@pytest.fixture(scope="module", autouse=True)
def made_digits(tmp_path_factory):
    """Made images in the place of MNIST: for each class a shade of every pixel, and noise."""
    rng = np.random.default_rng(0)
    shades = rng.integers(0, 160, (10, 28, 28))

    def images(n):
        y = rng.integers(0, 10, n)
        return (shades[y] + rng.integers(0, 96, (n, 28, 28))).astype(np.uint8), y.astype(np.uint8)

    (x_train, y_train), (x_test, y_test) = images(200), images(60)
    content = io.BytesIO()
    np.savez(content, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    folder = tmp_path_factory.mktemp("data") / "mnist"
    folder.mkdir()
    name = f"mnist.{real.checksum(content.getvalue())[:16]}.npz"
    (folder / name).write_bytes(content.getvalue())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROVING_DATA", str(folder.parent))
        digits.mnist.cache_clear()
        yield
    digits.mnist.cache_clear()


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def softmax(z, axis):
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def first(work):
    """Config, numbers (float64) and results of the first training at miniature size."""
    ds, trial = work.ours("tiny"), work.trials("tiny")[0]
    drawn = work.numbers(trial[0], seed_key(work.study.name, trial[1]))
    numbers = {n: np.asarray(v, float) for n, v in drawn.items()}
    return trial[0], numbers, {n: cell(ds[n], trial) for n in work.measured}


def close(found, wanted, within=1e-4):
    for name, value in wanted.items():
        assert deviation(found[name], np.asarray(value)) < within, name


# Each reference is the network as its paper writes it, one training, in float64.


@pytest.mark.slow
def test_phase_diagram_as_written():
    cfg, given, found = first(PHASE)
    w_q, w_k, w_v = (cfg.init_scale * given[n] for n in ("w_q", "w_k", "w_v"))

    def data(noise):
        y = 1.0 - 2.0 * (np.arange(len(noise)) % 2)
        x = np.concatenate([np.zeros_like(noise[:, :1]), cfg.noise * noise], axis=1)
        x[:, 1] *= cfg.noise_big / cfg.noise
        x[np.arange(len(y)), 0, (y < 0).astype(int)] = float(signal_norm(cfg))
        return x, y

    def forward(x, y):
        q, k, v = x @ w_q, x @ w_k, x @ w_v @ given["w_o"]
        p = softmax(q @ k.swapaxes(1, 2), 2)
        f = np.einsum("nls,ns->n", p, v) / cfg.tokens
        return q, k, v, p, f, np.log1p(np.exp(-y * f)).mean()

    (x, y), steps = data(given["noise"]), 0
    while (at := forward(x, y))[-1] > cfg.eps:
        q, k, v, p, f, _ = at
        g = (-y * sigmoid(-y * f) / (len(y) * cfg.tokens))[:, None, None]
        p_bar = g * v[:, None, :]
        s_bar = p * (p_bar - (p * p_bar).sum(2, keepdims=True))
        w_q = w_q - cfg.lr * np.einsum("nld,nlh->dh", x, s_bar @ k)
        w_k = w_k - cfg.lr * np.einsum("nld,nlh->dh", x, s_bar.swapaxes(1, 2) @ q)
        w_v = w_v - cfg.lr * np.outer(np.einsum("ns,nsd->d", (g * p).sum(1), x), given["w_o"])
        steps += 1
    close(found, {"test_loss": forward(*data(given["test"]))[-1], "stopped_at": steps})


@pytest.mark.slow
def test_tiny_networks_token_by_token():
    cfg, given, found = first(TINY)
    d, m, tokens = cfg.dim, cfg.patterns, cfg.tokens
    w_q, w_k, w_v = np.stack([np.eye(d)] * 3)
    for w, unit, scale in zip(
        (w_q, w_k, w_v),
        given["units"],
        (cfg.key_error, cfg.key_error, cfg.value_error),
        strict=True,
    ):
        w[:, :m] += scale * unit.T
    w_o, a = cfg.hidden * given["hidden"], given["readout"]

    def forward(x):
        p = softmax(x @ w_q.T @ w_k @ x.swapaxes(1, 2), 2)
        v = p @ x @ w_v.T
        z = v @ w_o.T
        return p, v, z, np.einsum("nlm,lm->n", np.maximum(z, 0), a) / tokens

    def data(ids):
        return np.eye(d)[ids.astype(int)], np.repeat([1.0, -1.0], len(ids) // 2)

    x, y = data(given["tokens"])
    for _ in range(cfg.steps):
        p, v, z, f = forward(x)
        g = -y * (y * f < 1) / (len(y) * tokens)
        z_bar = g[:, None, None] * a * (z > 0)
        v_bar = z_bar @ w_o
        p_bar = v_bar @ w_v @ x.swapaxes(1, 2)
        s_bar = p * (p_bar - (p * p_bar).sum(2, keepdims=True))
        grads = (
            np.einsum("nld,nle->de", s_bar @ x @ w_k.T, x),
            np.einsum("nsd,nse->de", s_bar.swapaxes(1, 2) @ x @ w_q.T, x),
            np.einsum("nld,nle->de", v_bar, p @ x),
            np.einsum("nlm,nld->md", z_bar, v),
        )
        w_q, w_k, w_v, w_o = (
            w - cfg.lr * g for w, g in zip((w_q, w_k, w_v, w_o), grads, strict=True)
        )
    x_test, y_test = data(given["test"])
    own = np.where(y[:, None] > 0, x[..., 0], x[..., 1])
    wanted = {
        "train_loss": np.maximum(1 - y * forward(x)[3], 0).mean(),
        "test_loss": np.maximum(1 - y_test * forward(x_test)[3], 0).mean(),
        "attention": np.einsum("nls,ns->nl", forward(x)[0], own).mean(),
    }
    close(found, wanted)


@pytest.mark.slow
def test_mixture_recovery_one_initialisation_at_a_time():
    cfg, given, found = first(MIXTURE)
    x = given["noise"] + cfg.mean * given["group"][:, None]
    y = (given["label"] < sigmoid(x @ given["teacher"].T).mean(1)).astype(float)
    losses, errors = [], []
    for direction in given["directions"]:
        w = given["teacher"] + cfg.distance * direction / np.linalg.norm(direction)
        for _ in range(cfg.steps):
            s = sigmoid(x @ w.T)
            h = s.mean(1)
            w = w + step_size(cfg) * ((y - h) / (h * (1 - h)) * (s * (1 - s)).T) @ x / s.size
        h = sigmoid(x @ w.T).mean(1)
        losses.append(-np.mean(y * np.log(h) + (1 - y) * np.log(1 - h)))
        errors.append(np.linalg.norm(w - given["teacher"]) / np.linalg.norm(given["teacher"]))
    close(found, {"train_loss": losses, "error": errors})


def test_online_sgd_with_a_positional_code():
    cfg, given, found = first(ONLINE)
    d, tokens, p = cfg.dim, cfg.tokens, given["position"]
    s_star, v_star = support(cfg) / 3, given["teacher"]
    w_v, w_kq = np.zeros((cfg.outputs, d)), np.zeros((tokens, tokens))
    for z in given["batches"]:
        z = z.reshape(-1, cfg.batch, tokens).swapaxes(0, 1)
        x, noise = z[:, :d], z[:, d:]
        y = np.maximum(v_star @ x @ s_star, 0) + cfg.noise * noise
        s = softmax(p.T @ w_kq @ p / tokens**0.5, 0)
        f = w_v @ x @ s
        r = np.where(f >= 0, f - y, 0) / cfg.batch
        s_bar = np.einsum("nmi,nmj->ij", w_v @ x, r)
        a_bar = s * (s_bar - (s * s_bar).sum(0)) / tokens**0.5
        w_v = w_v - cfg.lr * np.einsum("nmj,ndj->md", r, x @ s)
        w_kq = w_kq - cfg.lr * p @ a_bar @ p.T
    s = softmax(p.T @ w_kq @ p / tokens**0.5, 0)
    wanted = {
        "value_error": np.linalg.norm(w_v - v_star) / np.linalg.norm(v_star),
        "leak": s[s_star == 0].sum() / tokens,
    }
    close(found, wanted)


@pytest.mark.slow
def test_who_draws_does_not_change_the_numbers():
    shared, own = ONLINE.ours("tiny"), ONLINE.ours("tiny", draws="own")
    fixed = ONLINE.ours("tiny", draws="fixed")
    assert deviation(shared.leak.values, own.leak.values) < 1e-5
    assert deviation(shared.leak.values, fixed.leak.values) > 1e-5


@pytest.mark.slow
def test_early_stopping_stops_where_a_plain_loop_does():
    cfg, given, found = first(EARLY)

    def data(noise):
        y = 1.0 - 2.0 * (np.arange(len(noise)) % 2)
        x = noise.copy()
        x[:, 0, 0] += cfg.snr * y
        x[:, 0, 1] += cfg.snr
        return x, y

    def loss(x, y):
        a = softmax(x @ query, 1)
        f = (a * (x @ value)).sum(1)
        return a, f, np.log1p(np.exp(-y * f)).mean()

    x, y = data(given["noise"])
    query, value, steps = np.zeros(cfg.dim), np.zeros(cfg.dim), 0
    while (at := loss(x, y))[2] > cfg.eps:
        a, f, _ = at
        g = (-y * sigmoid(-y * f) / len(y))[:, None] * a
        slope = np.einsum("nl,nld->d", g * (x @ value - f[:, None]), x)
        query, value = query - cfg.lr * slope, value - cfg.lr * np.einsum("nl,nld->d", g, x)
        steps += 1
    close(found, {"test_loss": loss(*data(given["test"]))[2], "stopped_at": steps})


@pytest.mark.slow
def test_noisy_digits_head_by_head():
    cfg, given, found = first(DIGITS)
    images, h = digits.mnist(), cfg.width // cfg.heads
    a, b = cfg.snr / (1 + cfg.snr), cfg.noise / (1 + cfg.snr)
    heads = [(i, j) for i in range(cfg.layers) for j in range(cfg.heads)]
    matrices = ("w_q", "w_k", "w_v", "w_o")
    whole = ("read_in", "positions", "w_in", "b_in", "read_out")
    w = {n: given[n] for n in whole} | {(n, *at): given[n][at] for n in matrices for at in heads}

    def framed(x, noise):
        """Patch by patch, as the paper's picture has it."""
        found = np.zeros((len(x), 16, 49))
        for t in range(16):
            up, left = 7 * (t // 4), 7 * (t % 4)
            rows, columns = np.mgrid[up : up + 7, left : left + 7].reshape(2, 49)
            outside = (np.minimum(rows, columns) < 4) | (np.maximum(rows, columns) >= 24)
            found[:, t] = a * x[:, rows, columns] / 255 + b * outside * noise[:, t]
        return found

    def forward(x):
        z, kept = x @ w["read_in"].T + w["positions"], {}
        for i in range(cfg.layers):
            added = 0
            for at in heads[i * cfg.heads : (i + 1) * cfg.heads]:
                q, k, v = (z @ w[n, *at].T for n in ("w_q", "w_k", "w_v"))
                p = softmax(q @ k.swapaxes(1, 2) / h**0.5, 2)
                kept[at] = z, q, k, v, p
                added = added + p @ v @ w["w_o", *at].T
            z = z + added
        u = z.mean(1)
        s = np.maximum(u @ w["w_in"].T + w["b_in"], 0)
        return kept, u, s, s @ w["read_out"].T

    def gradient(x, y):
        kept, u, s, f = forward(x)
        f_bar = (softmax(f, 1) - np.eye(10)[y]) / len(y)
        s_bar = f_bar @ w["read_out"] * (s > 0)
        g: dict = {"read_out": f_bar.T @ s, "b_in": s_bar.sum(0), "w_in": s_bar.T @ u}
        z_bar = np.repeat((s_bar @ w["w_in"] / 16)[:, None], 16, axis=1)
        for i in reversed(range(cfg.layers)):
            added = 0
            for at in heads[i * cfg.heads : (i + 1) * cfg.heads]:
                z, q, k, v, p = kept[at]
                o_bar = z_bar @ w["w_o", *at]
                p_bar = o_bar @ v.swapaxes(1, 2)
                l_bar = p * (p_bar - (p * p_bar).sum(2, keepdims=True)) / h**0.5
                bars = (l_bar @ k, l_bar.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ o_bar)
                g["w_o", *at] = np.einsum("ntd,nth->dh", z_bar, p @ v)
                for n, bar in zip(matrices, bars, strict=False):
                    g[n, *at] = np.einsum("nth,ntd->hd", bar, z)
                    added = added + bar @ w[n, *at]
            z_bar = z_bar + added
        return g | {"positions": z_bar.sum(0), "read_in": np.einsum("ntd,nti->di", z_bar, x)}

    chosen, m, v = given["chosen"].astype(int), dict.fromkeys(w, 0.0), dict.fromkeys(w, 0.0)
    x, y = framed(images.x_train[chosen], given["noise"]), images.y_train[chosen]
    for t in range(cfg.steps):
        at = np.floor(given["batches"][t] * cfg.samples).astype(int)
        for n, g in gradient(x[at], y[at]).items():
            m[n], v[n] = 0.9 * m[n] + 0.1 * g, 0.999 * v[n] + 0.001 * g**2
            rate = cfg.rate * (1 - t / cfg.steps) / (1 - 0.9 ** (t + 1))
            w[n] = w[n] - rate * m[n] / (np.sqrt(v[n] / (1 - 0.999 ** (t + 1))) + 1e-8)

    def loss(x, y):
        f = forward(x)[-1]
        return -np.log(softmax(f, 1)[np.arange(len(y)), y]).mean()

    n, seen = cfg.test_images, np.arange(cfg.test_images) % cfg.samples
    unseen = framed(images.x_test[:n], given["test"]), images.y_test[:n]
    close(found, {"train_loss": loss(x[seen], y[seen]), "test_loss": loss(*unseen)})


# ------------------------------------------------------------------------------ the harness


@pytest.fixture
def torch(monkeypatch):
    """PyTorch on one thread, where a CUDA graph of some steps is nothing but these steps."""
    torch = pytest.importorskip("torch")
    from benchmarks.peers import repeat

    def record(run, first):
        first()
        return run

    monkeypatch.setattr(repeat, "record", record)
    monkeypatch.setattr(repeat, "Compiled", lambda mode: repeat.Eager())
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about itself
        yield torch
    repeat.release()


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_the_peers_agree_with_ours(name, torch):
    rungs, failed = ladder.prepared(WORKLOADS[name], "tiny")
    assert failed == {}
    assert list(rungs) == ["PyTorch loop", "torch.func.vmap", "hand-batched"]
    assert max(rung.deviation for rung in rungs.values()) < 1e-4


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("W1", [dict(lanes=3), dict(pad=2), dict(seeds=3, pad=16, every=7)]),
        ("W2", [dict(seeds=1), dict(seeds=2, form="sums")]),
        ("W3", [dict(seeds=1), dict(seeds=2, form="sums")]),
        ("W4", [dict(seeds=1), dict(seeds=2, ahead=7)]),
        (
            "W5",
            [
                dict(seeds=1, every=20),
                dict(seeds=2, every=7),
                dict(seeds=2, form="sums"),
                dict(seeds=1, form="shared"),
                dict(seeds=2, form="shared", every=7),
            ],
        ),
        ("W6", [dict(lanes=3), dict(seeds=2), dict(seeds=2, ahead=7)]),
    ],
)
def test_no_choice_of_an_expert_changes_the_numbers(name, choices, torch):
    from benchmarks.peers.repeat import Eager, Graphs

    work = WORKLOADS[name]
    reference = work.reference()
    batched = importlib.import_module(work.peers).batched
    for choice in choices:
        for repeat in (Eager(), Graphs("default")):
            rung = Rung(functools.partial(batched, repeat=repeat, **choice), "")
            assert work.deviation(rung, reference) < 1e-4, (choice, repeat)


def test_the_peers_count_the_errors_that_ours_does(torch):
    """But for an image between two classes."""
    ds, trials = DIGITS.ours("tiny"), DIGITS.trials("tiny")
    wanted = np.stack([cell(ds.test_error, trial) for trial in trials])
    assert 0 < wanted.min() < wanted.max()
    for name, rung in DIGITS.rungs("tiny").items():
        found = rung.run(trials, DIGITS.given)["test_error"]
        assert np.abs(found - wanted).max() < 1.5 / trials[0][0].test_images, name


@given(
    stops=st.integers(1, 4).flatmap(
        lambda groups: st.lists(
            st.lists(st.integers(0, 30), min_size=groups, max_size=groups), min_size=1, max_size=20
        )
    ),
    every=st.integers(1, 9),
    graphs=st.booleans(),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_training_goes_on_until_it_is_done(torch, stops, every, graphs):
    """Among any others, dropped or kept to fill up, for 25 steps at most, beside its own group."""
    from benchmarks.peers.repeat import Descent, Eager, Graphs, train_until_done

    widths = []

    def step(x, steps, wanted, factor):
        widths.append(len(x))
        go = steps < wanted
        by_group = (factor[:, None] * x.view(len(factor), -1)).flatten()
        return torch.where(go, by_group + wanted, x), steps + go

    wanted = torch.tensor(stops, dtype=torch.float32).T
    groups, start = len(wanted), (torch.ones(wanted.numel()), torch.zeros(wanted.numel()))
    factor = 0.5 ** torch.arange(1, groups + 1)
    repeat = Graphs("default") if graphs else Eager()
    descent = Descent(step, (wanted.flatten(),), (factor,))
    found = train_until_done(repeat, descent, start, 25, every, groups)
    x, steps = (v.view(groups, -1).T for v in found)
    for i, row in enumerate(stops):
        for g, stop in enumerate(row):
            value = 1.0
            for _ in range(min(stop, 25)):
                value = 0.5 ** (g + 1) * value + stop
            assert steps[i, g] == min(stop, 25)
            assert abs(x[i, g] - value) < 1e-4
    if graphs:  # few batch sizes, each of which has a graph of its own
        assert len(set(widths)) <= 16
    else:  # as wide as the group with the most trainings left, at every look
        left = [
            max(sum(v >= t for v in column) for column in zip(*stops, strict=True))
            for t in range(0, 25, every)
        ]
        assert widths[::every] == [groups * n for n in (len(stops), *left[1:]) if n]


def test_a_graph_gets_what_changes_between_calls(torch):
    from benchmarks.peers.repeat import Descent, Eager, Graphs

    def step(x, drawn, lane, shared):
        return (x * lane + drawn * shared,)

    for seed in range(3):
        torch.manual_seed(seed)
        x, lane, shared, fresh = (torch.randn(*s) for s in ((4,), (4,), (1,), (5, 4)))
        descent = Descent(step, (lane,), (shared,))
        plain = Eager()(descent, Eager()(descent, (x,), 5, (fresh,)), 5, (fresh + 1,))
        state = Graphs("default")(descent, (x,), 5, (fresh,))
        assert torch.equal(Graphs("default")(descent, state, 5, (fresh + 1,))[0], plain[0])


def seconds(monkeypatch, spent):
    """Measuring a choice takes as long as `spent` says; it may also fail."""

    def measured(rung, choice, trials, source):
        if isinstance(found := spent(choice), Exception):
            raise found
        return found

    monkeypatch.setattr(ladder, "seconds_per_training", measured)


def test_the_fastest_choice_is_taken_one_after_another(monkeypatch):
    trials = [(None, seed) for seed in range(10)]
    rung = Rung(lambda *_: {}, "note", choices={"every": (50, 20), "seeds": (4, 1, 16, 64)})
    seconds(
        monkeypatch, lambda c: {50: 1, 20: 2}[c["every"]] + {4: 0.3, 1: 0.2, 10: 0.1}[c["seeds"]]
    )
    assert chosen(rung, trials, lambda some: None) == {
        "every": 50,
        "seeds": 10,
    }  # there are not more
    assert rung.with_choices({"every": 50, "seeds": 10}).note == "note, every 50, seeds 10"


def test_a_form_may_be_the_fastest_with_other_seeds_than_the_first(monkeypatch):
    spent = {("own", 4): 2, ("own", 1): 3, ("shared", 4): 4, ("shared", 1): 1}
    choices = {"form": ("own", "shared"), "every": (50, 20), "seeds": (4, 1)}
    seconds(monkeypatch, lambda c: spent[c["form"], c["seeds"]] + c["every"])
    found = chosen(Rung(lambda *_: {}, "", choices=choices), [(None, s) for s in range(9)], print)
    assert found == {"form": "shared", "every": 20, "seeds": 1}


def test_a_choice_that_fails_is_not_taken(monkeypatch):
    trials = [(None, seed) for seed in range(10)]
    rung = Rung(lambda *_: {}, "", choices={"seeds": (1, 8)})
    seconds(monkeypatch, lambda c: MemoryError("no room") if c["seeds"] == 8 else 1.0)
    assert chosen(rung, trials, lambda some: None) == {"seeds": 1}
    seconds(monkeypatch, lambda c: MemoryError("no room"))
    with pytest.raises(MemoryError):
        chosen(rung, trials, lambda some: None)


def test_a_choice_is_measured_on_one_batch_of_all_settings():
    seen = []
    rung = Rung(lambda some, source, seeds: seen.append(some) or {}, "")
    trials = [(cfg, seed) for cfg in "ab" for seed in range(5)]
    ladder.seconds_per_training(rung, {"seeds": 2}, trials, lambda some: None)
    assert seen == [[("a", 0), ("a", 1), ("b", 0), ("b", 1)]] * 3


def test_a_peer_that_fails_is_named_with_its_reason_and_left_out(monkeypatch, capsys):
    def broken(trials, source):
        raise RuntimeError("\n  no compiler here\nand much more")

    def right(trials, source):
        return reference if len(trials) == len(EARLY.trials("tiny")) else {}

    def late(trials, source):
        return right(trials, source) if source == EARLY.given else broken(trials, source)

    reference = EARLY.reference()
    rungs = {"broken": Rung(broken, ""), "right": Rung(right, ""), "late": Rung(late, "")}
    monkeypatch.setattr(ladder.Workload, "rungs", lambda self, scale: rungs)
    monkeypatch.setattr(ladder.Workload, "draw", lambda self: lambda trials: None)
    found = run.measure(EARLY, "tiny", 1, {"flops": 1e11, "normals": 1e8}, False)
    why = "RuntimeError: no compiler here"
    assert found["failed"] == {"broken": why, "late": why}
    assert found["best_rung"] == "right"
    assert f"Left out: broken failed here. {why}" in capsys.readouterr().out


def test_a_part_of_the_trainings_is_spread_over_all():
    trials = [(None, i) for i in range(24)]
    assert [i for _, i in spread(trials, 6)] == [3, 10, 17, 18]
    assert len(spread(trials, 7)) == 4  # a divisor, so that times scale up exactly
    assert spread(trials, 1) == trials
    assert len(spread(trials, 100)) == 1


def test_a_diverged_peer_deviates_infinitely():
    assert deviation(np.ones(2), np.array([1.0, np.nan])) == np.inf


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_settings_of_every_scale_are_allowed(name):
    work = WORKLOADS[name]
    for scale in ("tiny", "quick", "full", "large"):
        assert len(work.trials(scale)) >= 4


@pytest.mark.parametrize("name", list(WORKLOADS))
@pytest.mark.parametrize("scale", ["tiny", "quick", "full", "large"])
def test_the_trainings_of_the_peers_are_those_of_the_sweep(name, scale):
    """What the experiment sets at its own scale does not reach into them."""
    work, settings = WORKLOADS[name], dict(WORKLOADS[name].settings[scale])
    seeds = settings.pop("seeds")
    experiment = work.study.experiment(work.experiment)
    sweep = grid.plan(work.study, experiment, "quick", settings, seeds, yes=True)
    swept = {(point.config, seed) for point in sweep.points() for seed in sweep.seeds}
    assert swept == set(work.trials(scale))


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_the_large_size_has_16_times_the_trainings_of_the_full_one(name):
    full, large = WORKLOADS[name].trials("full"), WORKLOADS[name].trials("large")
    assert len(set(large)) == 16 * len(full)
    shapes = [
        {tuple(v for v in vars(cfg).values() if not isinstance(v, float)) for cfg, _ in trials}
        for trials in (full, large)
    ]
    assert shapes[0] == shapes[1]


def test_the_runner_prints_a_summary_and_writes_json(tmp_path, capsys, monkeypatch):
    """Without torch: ours alone is timed, and says so."""
    monkeypatch.setattr(ladder, "TORCH", False)
    monkeypatch.setattr(run, "TORCH", False)
    limits = {"jax": {"flops": 1e11, "bytes": 1e10, "normals": 1e8}}
    monkeypatch.setattr(run, "ceilings", lambda: limits)
    file = tmp_path / "found.json"
    args = ["--tiny", "--only", "W5", "--repetitions", "1", "--markdown", "--json", str(file)]
    assert run.main(args) == 0
    told = capsys.readouterr().out
    assert "no torch" in told
    assert "### Summary, tiny" in told
    size = json.loads(file.read_text())["sizes"]["tiny"]
    assert size["workloads"]["W5"]["loop"] is None
    assert size["mean_best"] is None


def test_a_workload_without_its_data_is_named_as_skipped(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PROVING_DATA", str(tmp_path))
    digits.mnist.cache_clear()
    monkeypatch.setattr(run, "ceilings", lambda: {"jax": {"flops": 1e11}})
    measured = []

    def measure(work, *rest):
        measured.append(work.name)
        return dict(
            trainings=7,
            share_of_ceiling=0.1,
            times={"ours": {"seconds": [1.0]}},
            loop=None,
            best=None,
            best_rung="",
        )

    monkeypatch.setattr(run, "measure", measure)
    file, args = tmp_path / "found.json", ["--repetitions", "1", "--json"]
    assert run.main([*args, str(file)]) == 0
    assert measured == [name for name in WORKLOADS if name != "W6"]
    told, record = capsys.readouterr().out, json.loads(file.read_text())
    why = "the data set 'mnist' is not here; `proving data get mnist` fetches it (11.6 MB)"
    assert told.count(f"W6 is skipped: {why}") == 2
    assert record["skipped"] == {"W6": why}
    assert run.main(["--only", "W6", *args, str(file)]) == 0
    assert "Summary" not in capsys.readouterr().out
    assert json.loads(file.read_text())["sizes"]["quick"]["workloads"] == {}


@pytest.mark.parametrize(
    ("more", "sizes"),
    [([], ["full", "large"]), (["--size", "full"], ["full"]), (["--size", "large"], ["large"])],
)
def test_a_full_run_measures_two_sizes(more, sizes, tmp_path, capsys, monkeypatch):
    ratios = {"W2": [2.0, 4.0, 3.0], "W5": [12.0]}

    def measure(work, scale, repetitions, limits, markdown):
        best = [r / (4 if scale == "large" else 1) for r in ratios[work.name]]
        return {
            "trainings": 7,
            "share_of_ceiling": 0.015,
            "times": {"ours": {"seconds": [1.0]}},
            "loop": None,
            "best": best,
            "best_rung": "graphs",
        }

    monkeypatch.setattr(run, "measure", measure)
    monkeypatch.setattr(run, "ceilings", lambda: {"jax": {"flops": 1e11}})
    file = tmp_path / "found.json"
    assert run.main(["--full", *more, "--only", "W2", "W5", "--json", str(file)]) == 0
    found = json.loads(file.read_text())["sizes"]
    means = {"full": 6.0, "large": 1.5}
    assert list(found) == sizes
    told = capsys.readouterr().out
    for size in sizes:
        assert found[size]["mean_best"] == pytest.approx(means[size])
        assert f"Summary, {size}" in told
        assert f"Geometric mean of best / ours: {means[size]:g}" in told
    assert told.count("1.5%") == 2 * len(sizes)  # of the ceiling


def test_a_size_goes_with_a_full_run():
    with pytest.raises(SystemExit):
        run.main(["--size", "large"])


def test_without_torch_there_are_no_rungs(monkeypatch):
    monkeypatch.setattr(ladder, "TORCH", importlib.util.find_spec("no_such_module") is not None)
    assert ladder.prepared(TINY, "full") == ({}, {})
