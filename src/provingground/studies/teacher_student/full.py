"""The student with attention over [X; P] (Figure 1): all blocks of its matrices are trained.

Letters in shapes: d token dimension, D tokens, M output rows, N samples of a batch.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from provingground.config import probe
from provingground.keys import normal, stream
from provingground.train import iterate

from .data import Config, Number, Teacher, activation, bilinear, teacher_of
from .model import online, over_norm, record_steps, report, squared_loss


class Probes(eqx.Module):
    """What the training of the full student reports: the size (RMS) of its blocks, and them."""

    test_loss: Float[Array, "step"] = probe("excess loss", r"L - L_{\mathrm{opt}}")
    cosine: Float[Array, "step"] = probe("cosine of the left block and V*")
    left: Float[Array, "step"] = probe("RMS of the X block of the values")
    right: Float[Array, "step"] = probe("RMS of the P block of the values")
    xx: Float[Array, "step"] = probe("RMS of block XX")
    xp: Float[Array, "step"] = probe("RMS of block XP")
    px: Float[Array, "step"] = probe("RMS of block PX")
    pp: Float[Array, "step"] = probe("RMS of block PP")
    w_v: Float[Array, "output row"] = probe("value matrix", r"\tilde W_V")
    w_kq: Float[Array, "row column"] = probe("key-query matrix", r"\tilde W_{KQ}")
    energy: Float[Array, ""] = probe("teacher energy", r"\mathcal{V} = \sum_m\|v_m\|^2")
    stopped_at: Int[Array, ""] = probe("last step", "T")
    step: Int[Array, "step"] = probe("step", "t")


class FullWeights(eqx.Module):
    w_v: Float[Array, "M dD"]
    w_kq: Float[Array, "dD dD"]


def full_network(
    w: FullWeights, x: Float[Array, "d N D"], pos: Float[Array, "D D"], kappa: Number
) -> Float[Array, "M N D"]:
    r"""$\sigma\big(\tilde W_VZ\,\mathrm{softmax}(Z^\top\tilde W_{KQ}Z/\sqrt D)\big)$ (2.5)
    with $Z = [X; P]$."""
    n = len(pos)
    z = jnp.concatenate([x, jnp.broadcast_to(pos[:, None], (n, x.shape[1], n))])
    logits = jnp.einsum("anj,ani->nji", z, jnp.einsum("ab,bni->ani", w.w_kq, z))
    s = jax.nn.softmax(logits / n**0.5, axis=1)
    return activation(jnp.einsum("mnj,nji->mni", jnp.einsum("ma,anj->mnj", w.w_v, z), s), kappa)


def simulate(cfg: Config, key: Key[Array, ""], data: Teacher | None = None) -> Probes:
    """Figure 1: online gradient descent on all blocks, from zero. P = I, which costs no
    generality: another P only turns the blocks."""
    teacher = teacher_of(cfg, key, data)
    v_star, n = teacher.v_star, len(teacher.support)
    (m, d), pos = v_star.shape, jnp.eye(n)
    x_test = normal(stream(key, "test"), (d, cfg.test_samples, n))
    y_test = activation(bilinear(v_star, x_test, teacher.s_star), cfg.kappa)

    def rms(block: Float[Array, "..."]) -> Float[Array, ""]:
        return jnp.mean(block**2) ** 0.5

    def measure(w: FullWeights) -> dict[str, Float[Array, ""]]:
        left, kq = w.w_v[:, :d], w.w_kq
        norms = jnp.linalg.norm(left) * jnp.linalg.norm(v_star)
        return dict(
            test_loss=squared_loss(full_network(w, x_test, pos, cfg.kappa), y_test),
            cosine=over_norm(jnp.sum(left * v_star), norms),
            left=rms(left),
            right=rms(w.w_v[:, d:]),
            xx=rms(kq[:d, :d]),
            xp=rms(kq[:d, d:]),
            px=rms(kq[d:, :d]),
            pp=rms(kq[d:, d:]),
        )

    def loss(
        w: FullWeights, x: Float[Array, "d N D"], y: Float[Array, "M N D"]
    ) -> Float[Array, ""]:
        return squared_loss(full_network(w, x, pos, cfg.kappa), y)

    trace = iterate(
        online(cfg, teacher, loss, stream(key, "batch")),
        FullWeights(jnp.zeros((m, d + n)), jnp.zeros((d + n, d + n))),
        steps=cfg.steps,
        at=record_steps(cfg)[1],
        probe=measure,
    )
    return Probes(
        **report(cfg, trace),
        w_v=trace.last.w_v,
        w_kq=trace.last.w_kq,
        energy=jnp.sum(v_star**2),
    )
