"""The three-layer, two-head decoder of Figure 6.3, on the same prompts.

The paper says "GPT-2, 3 layers, 2 heads". Ours: read-in of the tokens $(x_i; y_i)$ and $(x; 0)$,
pre-norm blocks, no positions (so that contexts of any length are defined), read-out of the last
token, hinge loss, Adam. Letters in shapes as in `nets.transformer` and `model.py`.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from provingground.config import config, par, probe, size
from provingground.keys import stream
from provingground.nets.losses import hinge
from provingground.nets.transformer import Shape, Weights, initial_weights, transformer
from provingground.train import Optimiser, by_lane, descend

from .mechanism import ALPHAS, DOMAINS, SUMS, WIDEST, Setting, settings
from .model import draw, error, training_domain
from .prompts import Prompt

LENGTHS = (5, 10, 20, 40)  # l_ts
LENGTH = LENGTHS.index(20)
KAPPAS = (0.5, 1.0, 2.0, 3.0, 5.0)  # K'


@config
class Config:
    """Parameters of the decoder; data as in `model.Config`, but with four rings of tasks."""

    alpha: float = par(0.8, r"\alpha", "fraction of decisive patterns in training contexts",
                       low=0, high=1)  # fmt: skip
    tokens: int = par(20, "l_{tr}", "context examples in training", low=1, value=True, pad=20)
    n_relevant: int = par(6, "M_1", "relevant patterns", low=3, value=True)
    n_tasks: int = par(24, r"|\mathcal{T}_{tr}|", "training tasks", low=1, value=True)
    dim: int = par(30, "d_X", "feature dimension", low=8)
    beta: float = par(3.0, r"\beta", "norm of the patterns", low=0)
    kappa_max: float = par(0.5, "K", "largest irrelevant part in training", low=0)
    kappa_max_ood: float = par(5.0, "K'", "largest irrelevant part out of domain", low=0)
    alpha_test: float = par(0.8, r"\alpha'", "fraction of decisive patterns in test contexts",
                            low=0, high=1)  # fmt: skip
    layers: int = par(3, "L", "layers", low=1)
    heads: int = par(2, "H", "heads", low=1)
    head_width: int = par(24, "d/H", "width of a head", low=1)
    mlp: int = par(4, "f/d", "hidden neurons over width (0: attention only)", low=0)
    lr: float = par(1e-3, r"\eta", "step size of Adam", low=0)
    batch: int = par(64, "B", "prompts per step", low=1)
    steps: int = par(2000, "T", "steps", low=1, value=True)
    test_samples: int = par(1000, r"N_{\mathrm{te}}", "test prompts", low=2)


class Probes(eqx.Module):
    """What one training of the decoder reports. Tests are on unseen tasks or out of domain."""

    train_loss: Float[Array, ""] = probe("training hinge loss")
    attention: Float[Array, "layer head"] = probe("attention on contexts with the query's pattern")
    test_loss: Float[Array, "domain alpha_prime length"] = probe("hinge loss")
    test_error: Float[Array, "domain alpha_prime length"] = probe("classification error")
    sum_loss: Float[Array, "kappa_prime coef_sum"] = probe("hinge loss out of domain")
    sum_error: Float[Array, "kappa_prime coef_sum"] = probe("classification error out of domain")
    domain: Int[Array, "domain"] = probe("in or out of domain", labels=DOMAINS)
    alpha_prime: Float[Array, "alpha_prime"] = probe("fraction of decisive patterns", r"\alpha'")
    length: Int[Array, "length"] = probe("context examples in the test", "l_{ts}")
    kappa_prime: Float[Array, "kappa_prime"] = probe("largest irrelevant part", "K'")
    coef_sum: Float[Array, "coef_sum"] = probe("coefficient sum", "S_1")


def shape_of(cfg: Config) -> Shape:
    d = cfg.heads * cfg.head_width
    return Shape(cfg.layers, cfg.heads, d, cfg.mlp * d, inputs=cfg.dim + 1, outputs=1)


def predict(
    w: Weights, p: Prompt, length: Int[Array, ""] | int
) -> tuple[Float[Array, ""], Float[Array, "L H"]]:
    """F for one prompt cut to a length, and the query's attention on its own pattern."""
    exists = p.exists & (jnp.arange(len(p.exists), dtype=jnp.int32) < length)
    tokens = jnp.concatenate([p.tokens, jnp.append(p.x_query, 0.0)[None, :]])
    y, attn = transformer(w, tokens, exists=jnp.append(exists, True))
    own = p.same_pattern.astype(attn.dtype)
    return y[-1, 0], attn[:, :, -1, :-1] @ own


def test_grid(cfg: Config) -> tuple[Setting, Int[Array, "tests"]]:
    """Domain, fraction and length of Figure 6.3(b), then irrelevant part and sum of 6.3(a)."""
    first = [(inside, a, n) for inside in (True, False) for a in ALPHAS for n in LENGTHS]
    then = [(k, s) for k in KAPPAS for s in SUMS]
    inside = np.array([i for i, _, _ in first] + [False] * len(then))
    sums = np.array([WIDEST] * len(first) + [s for _, s in then])
    length = np.array([n for _, _, n in first] + [LENGTHS[LENGTH]] * len(then), np.int32)
    alpha = jnp.append(jnp.array([a for _, a, _ in first]), jnp.full(len(then), cfg.alpha_test))
    kappa = jnp.append(jnp.full(len(first), cfg.kappa_max_ood), jnp.array([k for k, _ in then]))
    return settings(cfg, inside, alpha, sums, kappa), jnp.asarray(length)


def simulate(cfg: Config, key: Key[Array, ""], *, optimiser: Optimiser = optax.adam) -> Probes:
    """One training of the decoder by Adam, and all its tests."""
    batch_key, test_key = stream(key, "batch"), stream(key, "test")
    of = training_domain(cfg)
    longest = max(LENGTHS)

    def batch(t: Int[Array, ""]) -> Prompt:
        now = jax.random.fold_in(batch_key, t)
        return draw(now, cfg.batch, size(cfg, "tokens"), cfg.tokens, cfg.alpha, of)

    def outputs(w: Weights, p: Prompt, length: Int[Array, ""] | int) -> tuple[Array, Array]:
        return jax.vmap(lambda p: predict(w, p, length))(p)

    def loss(w: Weights, p: Prompt) -> Float[Array, ""]:
        return hinge(p.label, outputs(w, p, longest)[0]).mean()

    start = initial_weights(shape_of(cfg), key)
    trace = descend(loss, start, optimiser(cfg.lr), steps=cfg.steps, batch=batch)

    def at_end(w: Weights) -> dict[str, Array]:
        def tested(at: tuple[Setting, Array]) -> tuple[Array, Array, Array]:
            setting, length = at
            p = draw(test_key, cfg.test_samples, longest, longest, setting.alpha, setting.of)
            f, own = outputs(w, p, length)
            return hinge(p.label, f).mean(), error(p.label, f).mean(), own.mean(axis=0)

        lost, wrong, own = jax.lax.map(tested, test_grid(cfg))
        shape, sums = (2, len(ALPHAS), len(LENGTHS)), (len(KAPPAS), len(SUMS))
        n = math.prod(shape)
        return dict(
            train_loss=loss(w, batch(jnp.asarray(cfg.steps, jnp.int32) + 1)),
            attention=own[(len(ALPHAS) - 1) * len(LENGTHS) + LENGTH],
            test_loss=lost[:n].reshape(shape),
            test_error=wrong[:n].reshape(shape),
            sum_loss=lost[n:].reshape(sums),
            sum_error=wrong[n:].reshape(sums),
        )

    return Probes(
        **by_lane(at_end, trace.last),
        domain=jnp.arange(2, dtype=jnp.int32),
        alpha_prime=jnp.array(ALPHAS),
        length=jnp.array(LENGTHS, jnp.int32),
        kappa_prime=jnp.array(KAPPAS),
        coef_sum=jnp.array(SUMS),
    )
