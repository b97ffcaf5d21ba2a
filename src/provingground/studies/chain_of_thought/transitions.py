"""What test examples are (section 7.3.2): definitions on transition matrices, of numpy or of jax.

`a` is $A_k$ (K, m, m), `task` the maps $f_k$ (K, m).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


def k_step(a: Any) -> Any:
    r"""$B^f = \prod_k A_k^f$."""
    b = a[0]
    for step in a[1:]:
        b = b @ step
    return b


def composed(task: Any) -> Any:
    r"""$f = f_K \circ \dots \circ f_1$ as a map."""
    f = task[0]
    for step in task[1:]:
        f = step[f]
    return f


def tau(a: Any, task: Any) -> Any:
    r"""(7.17): the smallest probability, over inputs, of the whole true chain."""
    at = np.arange(a.shape[-1], dtype=task.dtype)
    p = a[0][at, task[0]]
    z = task[0]
    for step, f in zip(a[1:], task[1:], strict=True):
        p = p * step[z, f[z]]
        z = f[z]
    return p.min()


def tau_io(a: Any) -> Any:
    r"""(7.18): $\tau_o^f = \min_i \max_j B_{ij}$."""
    return k_step(a).max(axis=-1).min()


def _primacy(a: Any, best: Any) -> Any:
    """The largest primacy of rows of a matrix, given the outputs that should lead.

    For outputs other than those only: (7.12) read for the best one itself would force zero.
    """
    at = np.arange(a.shape[-1], dtype=best.dtype)
    others = a * (best[:, None] != at[None, :]).astype(a.dtype)
    return 1 - (others.max(axis=-1) / a[at, best]).max()


def primacy(a: Any, task: Any) -> Any:
    r"""(7.12): the largest $\rho$ with $A_k(i, j^*) \ge A_k(i, j)/(1-\rho)$ for $j \ne j^*$."""
    found = _primacy(a[0], task[0])
    for step, f in zip(a[1:], task[1:], strict=True):
        of_step = _primacy(step, f)
        found = (found + of_step - abs(found - of_step)) / 2  # the smaller, in numpy and jax
    return found


def primacy_io(a: Any) -> Any:
    r"""(7.13): the primacy of $B^f$, whose best output is its own most probable one."""
    b = k_step(a)
    return _primacy(b, b.argmax(axis=-1))


def feasible_inputs(a: Any, task: Any) -> Any:
    """For which inputs the true output is the most probable one end to end."""
    return k_step(a).argmax(axis=-1).astype(task.dtype) == composed(task)


def icl_feasible(a: Any, task: Any) -> Any:
    """Condition 7.3.2 (7.21): that holds for all inputs."""
    return feasible_inputs(a, task).all()


def realised(task: Int[Array, "S T K m"], a: Float[Array, "S T K m m"]) -> dict[str, Array]:
    """What the matrices of some settings are, whatever was asked for; means over tasks."""

    def each(task: Int[Array, "K m"], a: Float[Array, "K m m"]) -> dict[str, Array]:
        return dict(
            tau=tau(a, task),
            rho=primacy(a, task),
            tau_io=tau_io(a),
            rho_io=primacy_io(a),
            infeasible=jnp.mean(~feasible_inputs(a, task), dtype=a.dtype),
        )

    found = jax.vmap(jax.vmap(each))(task, a)
    return {name: v.mean(axis=1) for name, v in found.items()}
