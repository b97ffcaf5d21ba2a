"""The ways weights move: `iterate` a step, `descend` a loss, or `flow` along its gradient."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from provingground.errors import InputError
from provingground.lanes import LaneMode as LaneMode  # for the engine
from provingground.lanes import Loop, by_lane, lanes_run, run, run_until

State = TypeVar("State")
Weights = TypeVar("Weights")

_tape: ContextVar["list[Trace] | None"] = ContextVar("tape", default=None)


class Trace(eqx.Module, Generic[State]):
    """What a training leaves: the last state, and the probes taken at the chosen steps."""

    last: State
    probes: Any
    step: Int[Array, "step"]
    stopped_at: Int[Array, ""]


@contextmanager
def taped() -> Iterator[list[Trace]]:
    """Within the block every training probes every step, and its `Trace` is put on the tape."""
    tape: list[Trace] = []
    token = _tape.set(tape)
    try:
        with lanes_run("wide"):
            yield tape
    finally:
        _tape.reset(token)


def log_steps(steps: int, count: int) -> np.ndarray:
    """`count` probe steps from 0 to `steps`: 0, then evenly spaced in the logarithm.

    Early steps that would coincide are thinned towards even spacing, so the steps are distinct.

    >>> log_steps(100, 6)
    array([  0,   1,   3,  10,  32, 100])
    """
    if count > steps + 1:
        raise InputError(f"{count} distinct probe steps do not fit into steps = {steps}")
    spaced = np.geomspace(steps, 1, count - 1)[::-1] if count > 1 else []
    chosen = np.concatenate([[0 if count > 1 else steps], spaced]).round().astype(int)
    for i in range(1, count):  # push duplicates up by one
        chosen[i] = max(chosen[i], chosen[i - 1] + 1)
    return np.minimum(chosen, steps - np.arange(count)[::-1])


def iterate(
    step: Callable[[State, Int[Array, ""]], State],
    state: State,
    *,
    steps: ArrayLike,
    probe: Callable[[State], Any] = lambda state: (),
    at: ArrayLike | Sequence[int] | None = None,
    until: Callable[[State], Bool[Array, ""]] | None = None,
) -> Trace[State]:
    r"""Repeats $s_{t+1} = \mathrm{step}(s_t, t)$ for `steps` steps, or `until` a condition is met.

    Args:
        step: maps the state after $t$ steps, and $t$, to the state after $t+1$.
        state: $s_0$, any pytree of arrays.
        steps: how many steps at most; may be traced.
        probe: what to measure; taken at the steps `at` and stacked along a first axis.
        at: the steps to probe at, ascending (default: the last one). After an early stop the
            last state is probed again.
        until: stops as soon as this holds of the state; $s_0$ is asked first.

    Example:
        `iterate(lambda x, t: x / 2, jnp.array(1.0), steps=3).last` is 0.125.
    """
    tape = _tape.get()
    if tape is not None:
        at = np.arange(int(steps) + 1)  # pyright: ignore[reportArgumentType]
    at = jnp.asarray([steps] if at is None else at, dtype=jnp.int32)
    if until is None:
        loop = Loop(step, lambda _: jnp.array(False), probe)
        t, last, probes = by_lane(lambda state: run(loop, state, at), state)
    else:
        t, last, probes = run_until(Loop(step, until, probe), state, at)
    trace = Trace(last=last, probes=probes, step=at, stopped_at=t)
    if tape is not None:
        tape.append(trace)
    return trace


def descend(
    loss: Callable[..., Float[Array, ""]],
    weights: Weights,
    rule: optax.GradientTransformation,
    *,
    steps: ArrayLike,
    probe: Callable[[Weights], Any] = lambda weights: (),
    at: ArrayLike | Sequence[int] | None = None,
    until: Callable[[Float[Array, ""], Weights], Bool[Array, ""]] | None = None,
    batch: Callable[[Int[Array, ""]], Any] | None = None,
    frozen: Callable[[Weights], Any] | None = None,
) -> Trace[Weights]:
    r"""Minimises a loss by an optax rule, e.g. $w_{t+1} = w_t - \eta \nabla L(w_t)$.

    Args:
        loss: maps the weights, and with `batch` the batch of step $t$, to a scalar.
        weights: $w_0$.
        rule: any optax rule, such as `optax.sgd(cfg.lr)`.
        steps, probe, at: as in `iterate`; the probe sees the weights.
        until: stops as soon as this holds of the loss and the weights, without an extra
            evaluation: the loss is a by-product of the gradient. A loss that is no longer finite
            stops the training too; it has diverged, and its loss says so.
        batch: maps $t$ to the data of step $t$ (online training).
        frozen: picks the weights that stay, e.g. `lambda w: (w.query, w.key)`.
    """
    free = jax.tree.map(eqx.is_inexact_array, weights)
    if frozen is not None:
        free = eqx.tree_at(frozen, free, replace_fn=lambda _: False)
    trained, fixed = eqx.partition(weights, free)

    def graded(trained, t):
        def of_trained(trained):
            return loss(eqx.combine(trained, fixed), *(() if batch is None else (batch(t),)))

        return jax.value_and_grad(of_trained)(trained)

    def moved(trained, memory, grads):
        with jax.numpy_dtype_promotion("standard"):  # optax mixes types, as Adam its count
            change, memory = rule.update(grads, memory, trained)
        return optax.apply_updates(trained, change), memory

    def step(state, t):
        trained, memory = state
        return moved(trained, memory, graded(trained, t)[1])

    def step_ahead(state, t):
        """The state holds its own loss and gradient, for `until` to see."""
        trained, memory = moved(state[0], state[1], state[2][1])
        return trained, memory, graded(trained, t + 1)

    def whole(state: Any) -> Any:
        return eqx.combine(state[0], fixed)

    start = trained, rule.init(trained)
    how: dict[str, Any] = dict(steps=steps, probe=lambda state: probe(whole(state)), at=at)
    if until is None:  # the gradient stands in the program once, which compiles faster
        trace = iterate(step, start, **how)
    else:
        first = graded(trained, jnp.array(0, jnp.int32))
        trace = iterate(
            step_ahead,
            (*start, first),
            until=lambda s: until(s[2][0], whole(s)) | ~jnp.isfinite(s[2][0]),
            **how,
        )
    trace = Trace(whole(trace.last), trace.probes, trace.step, trace.stopped_at)
    if (tape := _tape.get()) is not None:
        tape[-1] = trace
    return trace


def flow(
    loss: Callable[[Weights], Float[Array, ""]],
    weights: Weights,
    *,
    times: Float[Array, "step"],
    probe: Callable[[Weights], Any] = lambda weights: weights,
    rtol: float = 1e-5,
    atol: float = 1e-7,
    max_steps: int = 100_000,
) -> Any:
    r"""Gradient flow $\dot w = -\nabla L(w)$ from time 0, probed at `times` (ascending).

    Solved by an adaptive Runge-Kutta method of order 5 (`diffrax.Tsit5`).

    Example:
        `flow(lambda w: w**2 / 2, jnp.array(1.0), times=jnp.array([1.0]))` is about `[exp(-1)]`.
    """
    import diffrax  # takes half a second, and few studies need it

    term = diffrax.ODETerm(lambda t, w, _: jax.tree.map(jnp.negative, jax.grad(loss)(w)))
    solution = diffrax.diffeqsolve(
        term,
        diffrax.Tsit5(),
        t0=0.0,
        t1=times[-1],
        dt0=None,
        y0=weights,
        saveat=diffrax.SaveAt(ts=times, fn=lambda t, w, _: probe(w)),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        max_steps=max_steps,
    )
    return solution.ys
