"""The closed forms of Theorem 2 for a drawn teacher: no training, no data."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from provingground.config import probe

from . import theory
from .data import Config, teacher_of, world

__all__ = ["Config", "Probes", "simulate"]


class Probes(eqx.Module):
    r"""Hidden constants are 1. As in Table 4.1, powers of $\tau$, $\kappa$, $\eta$ and $K$ are left
    out; $\tau$ is told beside."""

    complexity: Float[Array, ""] = probe("sample complexity", r"\mathcal{B}")
    rate: Float[Array, ""] = probe("convergence rate", "q")
    error: Float[Array, ""] = probe("parameter error", r"\mathcal{E}_w")
    risk: Float[Array, ""] = probe("average risk", r"\mathcal{E}")
    group_risk: Float[Array, "group"] = probe("group risk", r"\mathcal{E}_l")
    curvature: Float[Array, ""] = probe("sum of the groups' curvatures", "R")
    tau: Float[Array, ""] = probe("largest over smallest s.d.", r"\tau")


@jax.jit
def drawn(cfg: Config, key: Key[Array, ""]) -> Float[Array, "d K"]:
    """The teacher."""
    return teacher_of(cfg, world(cfg, key)[0])


def simulate(cfg: Config, key: Key[Array, ""]) -> Probes:
    """(C.93) to (C.100) at the teacher that other simulators draw too, in double precision."""
    with jax.enable_x64(True):
        w = drawn(jax.tree.map(jnp.asarray, cfg), key)
        groups = theory.groups_of(cfg)
        forms = theory.closed_forms(groups, theory.teacher_of(w, groups))
        return Probes(*(jnp.asarray(v, float) for v in forms.table))
