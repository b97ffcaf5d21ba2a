"""The student of Figures 4 and 5: it learns the first layer of a network that reads MNIST.

Letters in shapes: n images, d pixels of a patch, D patches, J groups of K patches, M kernels.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from provingground.config import probe
from provingground.keys import stream
from provingground.train import descend, log_steps

from . import convolution
from .convolution import Config, Mnist, Reader, accuracy, convolved

__all__ = ["Config", "Probes", "simulate"]


class Probes(eqx.Module):
    """What the distillation of one teacher reports."""

    loss: Float[Array, "step"] = probe("training MSE over that at the start")
    test_loss: Float[Array, "step"] = probe("test MSE over that at the start")
    cosine: Float[Array, "step"] = probe("cosine of the values", r"\cos(W_V, V^*)")
    seen_cosine: Float[Array, "step"] = probe(
        "cosine of the values in the metric of the patches", r"\cos_\Sigma(W_V, V^*)"
    )
    weight: Float[Array, "step key"] = probe("weight of a key in its own group, over the teacher's")
    scores: Float[Array, "key query"] = probe("attention score", "S")
    support: Float[Array, "key query"] = probe("support of the teacher's scores", "KS^*")
    ink: Float[Array, "key"] = probe("mean square of the pixels of a patch", r"E\|x_i\|^2/d")
    w_v: Float[Array, "output pixel"] = probe("value matrix", "W_V")
    v_star: Float[Array, "output pixel"] = probe("kernels of the teacher", "V^*")
    image: Float[Array, "row column"] = probe("one of the images")
    accuracy: Float[Array, ""] = probe("test accuracy of the teacher")
    student_accuracy: Float[Array, ""] = probe("test accuracy with the student's layer instead")
    step: Int[Array, "step"] = probe("step", "t")


class Weights(eqx.Module):
    """$W_V$, and one column of the logits for each group.

    Queries of one group have the same column in $S^*$, so they have the same gradients, and start
    and stay equal.
    """

    value: Float[Array, "M d"]
    logits: Float[Array, "D J"]


def attention(w: Weights, alike: int) -> Float[Array, "D J"]:
    r"""$S = \mathrm{softmax}(A/\sqrt D)$, a column for each group.

    A column stands for K that are `alike`: of its gradient each has the K-th part.
    """
    fixed = jax.lax.stop_gradient(w.logits)
    each = fixed + (w.logits - fixed) / alike
    return jax.nn.softmax(each / len(w.logits) ** 0.5, axis=0)


def cosine(
    a: Float[Array, "M d"], b: Float[Array, "M d"], metric: Float[Array, "d d"]
) -> Float[Array, ""]:
    r"""$\langle A, B\rangle/(\|A\|\|B\|)$ with $\langle A, B\rangle = \mathrm{tr}(A\Sigma B^\top)$,
    and 0 where one of them is zero."""
    ab, aa, bb = (jnp.sum((x @ metric) * y) for x, y in ((a, b), (a, a), (b, b)))
    return ab / jnp.where(aa * bb > 0, (aa * bb) ** 0.5, 1.0)


def distil(
    cfg: Config,
    teacher: Reader,
    x: Float[Array, "n d D"],
    test: Float[Array, "m d D"],
    key: Key[Array, ""],
) -> Any:
    """Descent on the mean squared error from zero; the teacher labels the images."""
    s_star, metric = convolution.pooling(cfg), second_moment(x)
    kappa, alike = cfg.kappa, cfg.pool**2

    def taught(x: Float[Array, "n d D"]) -> Float[Array, "n M J"]:
        return convolved(teacher.v_star, x @ s_star, kappa)

    def error(w: Weights, x: Float[Array, "n d D"]) -> Float[Array, ""]:
        f = convolved(w.value, x @ attention(w, alike), kappa)
        return alike * jnp.sum((f - taught(x)) ** 2) / (2 * len(x))

    seen = x[: len(test)]
    start = Weights(jnp.zeros_like(teacher.v_star), jnp.zeros(s_star.shape))
    first, test_first = error(start, seen), error(start, test)

    def measure(w: Weights) -> dict[str, Float[Array, ""]]:
        return dict(
            loss=error(w, seen) / first,
            test_loss=error(w, test) / test_first,
            cosine=cosine(w.value, teacher.v_star, jnp.eye(len(metric))),
            seen_cosine=cosine(w.value, teacher.v_star, metric),
            weight=jnp.sum(s_star * attention(w, 1), axis=1) * alike**2,
        )

    draws = stream(key, "batches")
    return descend(
        error,
        start,
        optax.adam(cfg.rate) if cfg.rule == "adam" else optax.sgd(cfg.rate),
        steps=cfg.steps,
        at=log_steps(cfg.steps, cfg.record),
        probe=measure,
        batch=lambda t: x[convolution.some(draws, t, cfg.batch, len(x))],
    )


def second_moment(x: Float[Array, "n d D"]) -> Float[Array, "d d"]:
    r"""$\Sigma = E\,xx^\top$ over all patches of all images."""
    return jnp.einsum("nai,nbi->ab", x, x) / (x.shape[0] * x.shape[2])


def simulate(cfg: Config, key: Key[Array, ""], data: Mnist) -> Probes:
    """Section 4.2: a network learns to read digits, then a student learns its first layer.

    The digits of a seed are drawn, the network and the student start anew. With `rolled` the
    student's images are rolled around; the network has learned on the others.
    """
    side, s_star = convolution.side(cfg), convolution.pooling(cfg)
    train, labels = convolution.drawn(data.train, cfg.images, stream(key, "data/subset"))
    test, test_labels = convolution.drawn(data.test, cfg.test_images, stream(key, "data/test"))
    images, test_images = (convolution.resized(part, side) for part in (train, test))
    x, x_test = (convolution.patches(part, cfg.kernel) for part in (images, test_images))
    teacher = convolution.reader(cfg, x @ s_star, labels, key)

    keys = stream(key, "roll"), stream(key, "roll/test")
    images, moved = (
        convolution.rolled(part, cfg.rolled, k)
        for part, k in zip((images, test_images), keys, strict=True)
    )
    x, x_moved = (convolution.patches(part, cfg.kernel) for part in (images, moved))
    trace = distil(cfg, teacher, x, x_moved, key)
    s, group = attention(trace.last, 1), convolution.groups(cfg)

    def read(v: Float[Array, "M d"], s: Float[Array, "D J"]) -> Float[Array, ""]:
        return accuracy(teacher.read, convolved(v, x_test @ s, cfg.kappa), test_labels)

    return Probes(
        **trace.probes,
        scores=s[:, group],
        support=(s_star * cfg.pool**2)[:, group],
        ink=jnp.mean(x**2, axis=(0, 1)),
        w_v=trace.last.value,
        v_star=teacher.v_star,
        image=images[0],
        accuracy=read(teacher.v_star, s_star),
        student_accuracy=read(trace.last.value, s),
        step=trace.step,
    )
