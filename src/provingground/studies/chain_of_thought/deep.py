"""Three layers and several heads: the same prompts, and attention of every layer and head.

Letters in shapes: T columns of a prompt as tokens, d pattern dimension (tokens have 2d), L layers,
H heads, N prompts. Attention-only layers with residuals; the read-out is the lower half of the
query's token, as $W_V = (0\\ I)$ in the one-layer model.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from provingground.config import config, par, probe
from provingground.errors import InputError
from provingground.keys import stream, uniform
from provingground.nets.transformer import (
    Shape,
    Weights,
    block,
    initial_weights,
    layer_norm,
    sinusoidal,
    visible,
)
from provingground.train import descend, log_steps

from .data import Prompt, permutation, prompt_from
from .inference import TYPES, draw_batch, noise_of, span_patterns
from .network import one_hot
from .suites import draw_tests, even

TOKEN_TYPES = (*TYPES, "itself")


@config
class Config:
    """The parameters of Figures 7.7 and F.1."""

    layers: int = par(3, "L", "layers", low=1)
    heads: int = par(2, "H", "heads", low=1)
    hidden: int = par(0, "m", "neurons of each MLP; 0: attention only", low=0)
    norm: bool = par(False, "LN", "layer norm before every part")
    positions: str = par(
        "step", "c", "positional encoding", choices=("step", "sinusoidal", "learned")
    )  # orthonormal by step, or by column: the usual one, or trained
    sees_itself: bool = par(True, "i = i", "tokens attend to themselves")
    alpha: float = par(0.4, r"\alpha", "training examples with the query's input", low=0, high=1)
    examples: int = par(10, "l", "examples in a prompt", low=1)
    n_patterns: int = par(20, "M", "training patterns", low=3)
    n_steps: int = par(2, "K", "reasoning steps", low=2)
    dim: int = par(30, r"d_{\mathcal{X}}", "pattern dimension", low=20)
    lr: float = par(1e-3, r"\eta", "step size of Adam", low=0)
    batch: int = par(48, "B", "prompts per step", low=1)
    steps: int = par(2000, "T", "training steps", low=1)
    record: int = par(13, "n_t", "recorded steps", low=2)
    query_std: float = par(0.1, r"\sigma_{QK}", "s.d. of initial queries and keys", low=0)
    value_std: float = par(0.065, r"\sigma_{VO}", "s.d. of initial values and outputs", low=0)
    n_patterns_test: int = par(10, "M'", "test patterns", low=2)
    noise: float = par(0.2, r"\|\delta\|", "norm of the noise of test examples", low=0)
    test_samples: int = par(160, "n'", "test prompts", low=1)


class Probes(eqx.Module):
    """What a training of a deeper network reports; the last type is the query's own column."""

    test_loss: Float[Array, "step"] = probe("loss on held-out prompts", r"\ell")
    test_error: Float[Array, "step"] = probe("test error of a step, on new patterns")
    attention: Float[Array, "step layer head type"] = probe("attention on a type of columns")
    step: Int[Array, "step"] = probe("training step", "t")
    layer: Int[Array, "layer"] = probe("layer")
    type: Int[Array, "type"] = probe("type of column", labels=TOKEN_TYPES)


# ---------------------------------------------------------------------------- prompts


def shuffled_prompt(cfg: Config, u: Float[Array, "draws"], k: Int[Array, ""]) -> Prompt:
    """A training prompt with its examples in random order: positions must not give them away."""
    n, steps = cfg.examples, cfg.n_steps
    p = prompt_from(cfg, u[n:], k)
    order = jnp.append(permutation(u[:n]), jnp.array(n, jnp.int32))

    def shuffle(x: Int[Array, "T"]) -> Int[Array, "T"]:
        return x.reshape(n + 1, steps)[order].reshape(-1)

    return p._replace(inputs=shuffle(p.inputs), outputs=shuffle(p.outputs))


def draw_shuffled(cfg: Config, key: Key[Array, ""], count: int) -> Prompt:
    u = uniform(key, (count, cfg.n_patterns + 1 + 2 * cfg.examples))
    k = jnp.arange(count, dtype=jnp.int32) % cfg.n_steps
    return jax.vmap(lambda u, k: shuffled_prompt(cfg, u, k))(u, k)


def sequence(
    cfg: Config,
    inputs: Float[Array, "T d"],
    outputs: Float[Array, "T d"],
    known: Bool[Array, "T"],
) -> Float[Array, "T two_d"]:
    """The tokens of a prompt; outputs that are not known yet are zero."""
    step = jnp.arange(len(inputs), dtype=jnp.int32) % cfg.n_steps
    x = jnp.concatenate([inputs, jnp.where(known[:, None], outputs, 0.0)], axis=1)
    if cfg.positions == "sinusoidal":
        return x + sinusoidal(*x.shape)
    if cfg.positions == "learned":  # added where the weights are, in `network`
        return x
    return x + one_hot(cfg.n_patterns + step, x.shape[1])


# ---------------------------------------------------------------------------- network


def network(
    cfg: Config, w: Weights, x: Float[Array, "T two_d"], query: Int[Array, ""]
) -> tuple[Float[Array, "d"], Float[Array, "L H T"]]:
    """The output at the query's token, and its attention in every layer and head."""
    allowed = visible(len(x))
    if not cfg.sees_itself:  # as in (7.2); the first token has nothing else to look at
        first = jnp.arange(len(x)) == 0
        allowed = allowed & (~jnp.eye(len(x), dtype=bool) | (first[:, None] & first[None, :]))
    if w.positions is not None:
        x = x + w.positions
    z, p = jax.lax.scan(lambda z, b: block(b, z, allowed), x, w.blocks)
    return layer_norm(z, w.gain)[query, cfg.dim :], p[:, :, query]


def loss_of(cfg: Config, w: Weights, prompts: Prompt) -> Float[Array, ""]:
    def one(p: Prompt) -> Float[Array, ""]:
        x = sequence(cfg, one_hot(p.inputs, cfg.dim), one_hot(p.outputs, cfg.dim), p.exists)
        f, _ = network(cfg, w, x, cfg.examples * cfg.n_steps + p.query_step)
        return jnp.sum((one_hot(p.label, cfg.dim) - f) ** 2) / 2

    return jnp.mean(jax.vmap(one)(prompts))


# --------------------------------------------------------------------------- training


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """Adam on all weights; attention of each layer and head on prompts with new patterns."""
    k, d, n, m = cfg.n_steps, cfg.dim, cfg.examples, cfg.n_patterns_test
    if cfg.n_patterns + k > d:
        raise InputError(f"{cfg.n_patterns} patterns and {k} encodings do not fit into dim = {d}.")
    columns = (n + 1) * k if cfg.positions == "learned" else 0
    shape = Shape(cfg.layers, cfg.heads, 2 * d, cfg.hidden, cfg.norm, positions=columns)
    std = {"w_q": 1.0, "w_k": 1.0, "w_v": 1.0, "w_o": 1.0}
    unit = initial_weights(shape, key, std)
    scale = {"w_q": cfg.query_std, "w_k": cfg.query_std, "w_v": cfg.value_std, "w_o": cfg.value_std}
    start = eqx.tree_at(
        lambda w: [getattr(w.blocks, name) for name in scale],
        unit,
        [size * getattr(unit.blocks, name) for name, size in scale.items()],
    )
    mu = span_patterns(key, m, cfg.n_patterns, d)
    tests = draw_tests(key, [even(k, 0.5, 0.8)], k, m, 8)
    batch = draw_batch(key, tests, cfg.test_samples, n)
    noise = noise_of(stream(key, "test/noise"), (n, cfg.test_samples, k + 1), mu, cfg.noise)
    held_out = draw_shuffled(cfg, stream(key, "test/held_out"), 256)
    steps = jnp.arange(k, dtype=jnp.int32)

    def tested(
        w: Weights,
        y: Int[Array, "l y"],
        truth: Int[Array, "y"],
        noise: Float[Array, "l y d"],
        q: Int[Array, ""],
    ) -> tuple[Bool[Array, ""], Float[Array, "L H type"]]:
        """Whether step q of a correct chain errs, and where it looks."""
        x = jnp.concatenate([mu[y] + noise, mu[truth][None]])
        inputs, outputs = x[:, :-1].reshape(-1, d), x[:, 1:].reshape(-1, d)
        known = jnp.concatenate([jnp.ones(n * k, bool), steps < q])
        f, p = network(cfg, w, sequence(cfg, inputs, outputs, known), n * k + q)
        same = jnp.append(y[:, :-1], truth[:-1]) == truth[q]
        at, place = jnp.tile(steps, n + 1) == q, jnp.arange((n + 1) * k)
        itself = place == n * k + q
        kinds = jnp.stack([at & same, at & ~same, ~at & same, ~at & ~same]) & ~itself[None]
        kinds = jnp.concatenate([kinds, itself[None]]).astype(p.dtype)
        return jnp.argmax(mu @ f) != truth[q + 1], jnp.einsum("aht,ct->ahc", p, kinds)

    def along(w: Weights) -> dict[str, Array]:
        of_steps = jax.vmap(tested, in_axes=(None, None, None, None, 0))
        of_prompts = jax.vmap(of_steps, in_axes=(None, 0, 0, 1, None))
        wrong, by_type = of_prompts(w, batch.y[0], batch.truth[0], noise, steps)
        return dict(
            test_loss=loss_of(cfg, w, held_out),
            test_error=jnp.mean(wrong, dtype=by_type.dtype),
            attention=by_type.mean(axis=(0, 1)),
        )

    fresh = stream(key, "batch")
    trace = descend(
        lambda w, prompts: loss_of(cfg, w, prompts),
        start,
        optax.adam(cfg.lr),
        steps=cfg.steps,
        at=log_steps(cfg.steps, cfg.record),
        batch=lambda t: draw_shuffled(cfg, jax.random.fold_in(fresh, t), cfg.batch),
        probe=along,
    )
    return Probes(
        **trace.probes,
        step=trace.step,
        layer=jnp.arange(1, cfg.layers + 1, dtype=jnp.int32),
        type=jnp.arange(len(TOKEN_TYPES), dtype=jnp.int32),
    )
