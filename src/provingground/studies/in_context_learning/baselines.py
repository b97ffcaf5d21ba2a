"""Classifiers fitted on the context of a prompt, beside the trained transformer (Figure 6.4).

This runs on the host: scikit-learn with its defaults, on the very prompts that the transformer
sees, out of domain.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from provingground.keys import stream
from provingground.study import probe

from .mechanism import WIDEST
from .model import Config, activations, attend, draw, initial_weights, train
from .prompts import Prompt, out_of_domain

ALPHAS = (0.8, 0.6)  # alpha' of Figures 6.4(a) and (b)
LENGTHS = (10, 20, 40, 80)
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "logistic": LogisticRegression,
    "SVM, Gaussian": SVC,
    "SVM, linear": lambda: SVC(kernel="linear"),
    "1-NN": lambda: KNeighborsClassifier(1),
    "3-NN": lambda: KNeighborsClassifier(3),
}
LEARNERS = ("ICL", *CLASSIFIERS)


class Learners(eqx.Module):
    """Errors of all learners on the same prompts, out of domain."""

    test_error: Float[Array, "alpha_prime length learner"] = probe("classification error")
    alpha_prime: Float[Array, "alpha_prime"] = probe("fraction of decisive patterns", r"\alpha'")
    length: Int[Array, "length"] = probe("context examples", "l_{ts}")
    learner: Int[Array, "learner"] = probe("in context, or fitted: " + ", ".join(LEARNERS))


def in_context(
    cfg: Config, key: Key[Array, ""]
) -> tuple[list[Prompt], Float[Array, "alpha_prime length B"]]:
    """Trains a transformer; test prompts for each fraction, and its outputs at each length."""
    w = train(cfg, key, initial_weights(cfg, key)).last
    of = out_of_domain(cfg.dim, cfg.beta, cfg.n_relevant, WIDEST, cfg.kappa_max_ood)
    most, test = max(LENGTHS), stream(key, "test/learners")
    prompts = [draw(test, cfg.test_samples, most, most, alpha, of) for alpha in ALPHAS]

    def at(p: Prompt, length: int) -> Float[Array, "B"]:
        exists = jnp.arange(most, dtype=jnp.int32) < length
        attended, _ = jax.vmap(lambda p: attend(w, p, exists))(p)
        return activations(w, attended) @ w.a

    return prompts, jnp.stack([jnp.stack([at(p, n) for n in LENGTHS]) for p in prompts])


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


def simulate_learners(cfg: Config, key: Key[Array, ""]) -> Learners:
    """One training, and all learners on the same prompts."""
    prompts, f = jax.jit(in_context)(jax.tree.map(jnp.asarray, cfg), key)
    wrong = np.zeros((len(ALPHAS), len(LENGTHS), len(LEARNERS)), np.float32)
    for i, drawn in enumerate(prompts):
        p = jax.tree.map(np.asarray, drawn)
        wrong[i, :, 0] = np.mean(p.label * np.asarray(f)[i] <= 0, axis=1)
        for j, n in enumerate(LENGTHS):
            wrong[i, j, 1:] = errors(p, n)
    return Learners(
        test_error=jnp.asarray(wrong),
        alpha_prime=jnp.array(ALPHAS),
        length=jnp.array(LENGTHS, jnp.int32),
        learner=jnp.arange(len(LEARNERS), dtype=jnp.int32),
    )
