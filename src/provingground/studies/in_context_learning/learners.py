"""Classifiers fitted on the context of a prompt, beside the trained transformer (Figure 6.4).

This runs on the host: scikit-learn with its defaults, on the very prompts that the transformer
sees, out of domain.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from provingground.config import config, par, probe
from provingground.keys import stream

from . import model
from .mechanism import WIDEST
from .model import activations, attend, draw, initial_weights, train
from .prompts import Prompt, out_of_domain

ALPHAS = (0.8, 0.6)  # alpha' of Figures 6.4(a) and (b)
LENGTHS = (10, 20, 40, 80)


def logistic_regression() -> Any:
    from sklearn.linear_model import LogisticRegression  # scikit-learn takes a second to import

    return LogisticRegression()


def support_vectors(kernel: str) -> Any:
    from sklearn.svm import SVC

    return SVC(kernel=kernel)  # pyright: ignore[reportArgumentType]


def nearest_neighbours(count: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(count)


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "logistic": logistic_regression,
    "SVM, Gaussian": partial(support_vectors, "rbf"),
    "SVM, linear": partial(support_vectors, "linear"),
    "1-NN": partial(nearest_neighbours, 1),
    "3-NN": partial(nearest_neighbours, 3),
}
LEARNERS = ("ICL", *CLASSIFIERS)


@config
class Config(model.Config):
    """As `model.Config`, with defaults that keep the host's work short."""

    width: int = par(100, "m", "neurons", low=1, value=True, pad=100)
    steps: int = par(500, "T", "steps at most", low=1, value=True)
    test_samples: int = par(20, r"N_{\mathrm{te}}", "test prompts", low=2)


class Probes(eqx.Module):
    """Errors of all learners on the same prompts, out of domain."""

    test_error: Float[Array, "alpha_prime length learner"] = probe("classification error")
    alpha_prime: Float[Array, "alpha_prime"] = probe("fraction of decisive patterns", r"\alpha'")
    length: Int[Array, "length"] = probe("context examples", "l_{ts}")
    learner: Int[Array, "learner"] = probe("in context, or fitted", labels=LEARNERS)


@jax.jit
def in_context(
    cfg: Config, key: Key[Array, ""]
) -> tuple[Prompt, Float[Array, "length alpha_prime B"]]:
    """Trains a transformer; test prompts for each fraction, and its outputs at each length."""
    w = train(cfg, key, initial_weights(cfg, key)).last
    of = out_of_domain(cfg.dim, cfg.beta, cfg.n_relevant, WIDEST, cfg.kappa_max_ood)
    n, most, test = cfg.test_samples, max(LENGTHS), stream(key, "test/learners")
    prompts = jax.vmap(lambda alpha: draw(test, n, most, most, alpha, of))(jnp.array(ALPHAS))

    def at(length: Int[Array, ""]) -> Float[Array, "alpha_prime B"]:
        exists = jnp.arange(most, dtype=jnp.int32) < length
        see = jax.vmap(jax.vmap(lambda p: attend(w, p, exists)[0]))
        return jax.vmap(lambda attended: activations(w, attended) @ w.a)(see(prompts))

    return prompts, jax.lax.map(at, jnp.array(LENGTHS, jnp.int32))


def fitted_label(
    make: Callable[[], Any], x: NDArray[Any], y: NDArray[Any], query: NDArray[Any]
) -> float:
    """What a classifier fitted on the context says of the query; the only class if there is one."""
    if np.ptp(y) == 0:
        return float(y[0])
    neighbours = getattr(classifier := make(), "n_neighbors", 1)
    if neighbours > len(y):
        classifier.set_params(n_neighbors=len(y))
    return float(classifier.fit(x, y).predict(query[None, :])[0])


def errors(p: Any, length: int) -> NDArray[Any]:
    """The error of each classifier on prompts (of NumPy arrays) cut to a length."""
    found = []
    with threadpool_limits(1):  # these fits are too small to share: measured 25 times slower
        for make in CLASSIFIERS.values():
            said = [
                fitted_label(make, x[:length], y[:length], query)
                for x, y, query in zip(p.x, p.y, p.x_query, strict=True)
            ]
            found.append(np.mean(p.label * np.array(said) <= 0))
    return np.array(found)


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """One training, and all learners on the same prompts."""
    prompts, f = in_context(jax.tree.map(jnp.asarray, cfg), key)
    wrong = np.zeros((len(ALPHAS), len(LENGTHS), len(LEARNERS)), np.float32)
    for i in range(len(ALPHAS)):
        p = jax.tree.map(lambda x, i=i: np.asarray(x[i]), prompts)
        for j, n in enumerate(LENGTHS):
            wrong[i, j, 0] = np.mean(p.label * np.asarray(f[j, i]) <= 0)
            wrong[i, j, 1:] = errors(p, n)
    return Probes(
        test_error=jnp.asarray(wrong),
        alpha_prime=jnp.array(ALPHAS),
        length=jnp.array(LENGTHS, jnp.int32),
        learner=jnp.arange(len(LEARNERS), dtype=jnp.int32),
    )
