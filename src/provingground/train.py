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
from jax.extend.core import get_opaque_trace_state
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from provingground import lanes
from provingground.errors import InputError
from provingground.lanes import LaneMode as LaneMode  # for the engine
from provingground.lanes import Loop, lanes_run, run, run_until

# Parts of a training that a run may replace: keyword-only arguments of `simulate` (see `extend`).
Activation = Callable[..., Array]
Optimiser = Callable[..., optax.GradientTransformation]
State = TypeVar("State")
Weights = TypeVar("Weights")

_tape: ContextVar["Tape | None"] = ContextVar("tape", default=None)
_every_step: ContextVar[bool] = ContextVar("every_step", default=False)


class Trace(eqx.Module, Generic[State]):
    """What a training leaves: the last state, and the probes taken at the chosen steps."""

    last: State
    probes: Any
    step: Int[Array, "step"]
    stopped_at: Int[Array, ""]


class Tape(list["Trace | None"]):
    """The trainings of a simulation, in order; None for one inside of a map or loop of its own,
    whose weights are not those of one training."""

    def __init__(self) -> None:
        self.level = get_opaque_trace_state()

    def put(self, trace: Trace) -> None:
        self.append(trace if get_opaque_trace_state() == self.level else None)


@contextmanager
def _fresh_tape() -> Iterator[Tape]:
    tape = Tape()
    token = _tape.set(tape)
    try:
        yield tape
    finally:
        _tape.reset(token)


@contextmanager
def overheard() -> Iterator[Tape]:
    """Within the block the `Trace` of every training is put on a tape, and nothing else changes."""
    if (tape := _tape.get()) is not None:
        yield tape
        return
    with _fresh_tape() as tape:
        yield tape


@contextmanager
def taped() -> Iterator[Tape]:
    """Within the block every training probes every step, and its `Trace` is put on the tape."""
    token = _every_step.set(True)
    try:
        with lanes_run("wide"), _fresh_tape() as tape:
            yield tape
    finally:
        _every_step.reset(token)


def by_lane(function: Callable[..., Any], *args: Any) -> Any:
    """`lanes.by_lane(function, *args)`, out of which trainings are overheard."""
    if _every_step.get():  # a cell by itself, whose number of steps has to stay known
        return function(*args)
    if (tape := _tape.get()) is None:
        return lanes.by_lane(function, *args)

    def told(*args: Any) -> Any:
        with _fresh_tape() as heard:
            found = function(*args)
        return found, list(heard)

    found, heard = lanes.by_lane(told, *args)
    tape.extend(heard)
    return found


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
    if _every_step.get():
        at = np.arange(int(steps) + 1)  # pyright: ignore[reportArgumentType]
    at = jnp.asarray([steps] if at is None else at, dtype=jnp.int32)
    if until is None:
        loop = Loop(step, lambda _: jnp.array(False), probe)
        t, last, probes = lanes.by_lane(lambda state: run(loop, state, at), state)
    else:
        t, last, probes = run_until(Loop(step, until, probe), state, at)
    trace = Trace(last=last, probes=probes, step=at, stopped_at=t)
    if (tape := _tape.get()) is not None:
        tape.put(trace)
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
    if (tape := _tape.get()) and tape[-1] is not None:
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
