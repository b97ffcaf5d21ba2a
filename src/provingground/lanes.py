"""How a batch of trainings runs: one lane after another, in step, or repacked as lanes finish.

A *lane* is one training among those that `vmap` runs together.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int

# How a batch of trainings runs: "serial" one lane after another (CPUs: each stops when it is done
# and stays in cache), "wide" all lanes in step (GPUs). Set by the engine while it traces.
LaneMode = Literal["serial", "wide"]
_lane_mode: ContextVar[LaneMode] = ContextVar("lane_mode", default="wide")
# Whether the lane that is traced exists. Serial programs are laid out for a few standard widths, so
# that sweeps of all sizes share them; lanes that only fill up the width are skipped.
_exists: ContextVar[Bool[Array, ""] | bool] = ContextVar("exists", default=True)

# Wide lanes that stop early are packed into half the width as soon as they fit, and so on down to
# the narrowest. Each width is compiled. Measured on an H200 with stopping times from 40 to 2000
# (a quarter of all lane-steps is needed): 2.3 times faster than waiting, in quarters 1.7 times;
# widths below 128 gain nothing.
SHRINK = 2
NARROWEST = 128
# Lanes are packed row by row (those of a seed), so that what a row shares stays shared; where rows
# are shorter than this, all together.
LEAST_IN_A_ROW = 8


@contextmanager
def lanes_run(mode: LaneMode) -> Iterator[None]:
    """Within the block, programs are traced for serial or wide lanes."""
    token = _lane_mode.set(mode)
    try:
        yield
    finally:
        _lane_mode.reset(token)


@contextmanager
def lane_exists(exists: Bool[Array, ""]) -> Iterator[None]:
    """Within the block, what runs lane by lane runs only if this one exists."""
    token = _exists.set(exists)
    try:
        yield
    finally:
        _exists.reset(token)


def when(condition: Bool[Array, ""], function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` if the condition holds, else zeros, for nothing."""
    closed = eqx.filter_closure_convert(function, *args)  # traced once
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(closed, *args))
    return jax.lax.cond(condition, lambda *args: closed(*args), lambda *_: zeros, *args)


def by_lane(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)`, but where lanes are serial, batching it loops over the lanes.

    Under `vmap` whatever surrounds it (drawing weights and data, products with shared matrices)
    is batched or shared, while each lane's own work, such as a training with its own number of
    steps or a large intermediate result, stays in cache.
    """
    args = jax.tree.map(jnp.asarray, args)
    if _lane_mode.get() == "wide":
        return function(*args)
    closed = eqx.filter_closure_convert(function, *args)
    arrays, rest = eqx.partition(closed, eqx.is_array)

    @custom_vmap
    def lane(exists: Bool[Array, ""], arrays: Any, args: Any) -> Any:
        return when(exists, eqx.combine(arrays, rest), *args)

    @lane.def_vmap
    def _(size: int, batched: Any, *given: Any) -> Any:
        if not any(jax.tree.leaves(batched[1:])):  # all lanes share it
            exists = jnp.any(given[0]) if batched[0] else given[0]
            found = lane(exists, *given[1:])
            return found, jax.tree.map(lambda _: False, found)
        own, shared = eqx.partition(list(given), batched)
        found = jax.lax.map(lambda own: lane(*eqx.combine(own, shared)), own)
        return found, jax.tree.map(lambda _: True, found)

    return lane(jnp.asarray(_exists.get()), arrays, args)


# ---------------------------------------------------------------------------- one training


class Loop(NamedTuple):
    """What repeats in a training; see `train.iterate`."""

    step: Callable[[Any, Int[Array, ""]], Any]
    until: Callable[[Any], Bool[Array, ""]]
    probe: Callable[[Any], Any]


def run(loop: Loop, state: Any, at: Int[Array, "step"]) -> tuple[Int[Array, ""], Any, Any]:
    """Where the training stopped, its last state, and its probes at the steps `at`."""

    def advance(carry, stop):
        before, state, seen = carry
        t, state = jax.lax.while_loop(
            lambda c: (c[0] < stop) & ~loop.until(c[1]),
            lambda c: (c[0] + 1, loop.step(c[1], c[0])),
            (jnp.maximum(before, 0), state),
        )
        seen = jax.lax.cond(t > before, lambda: loop.probe(state), lambda: seen)
        return (t, state, seen), seen

    start = (jnp.array(-1, jnp.int32), state, blank(loop, state))
    (t, last, _), probes = jax.lax.scan(advance, start, at)
    return t, last, probes


def blank(loop: Loop, state: Any) -> Any:
    """Room for a probe before the first is taken."""
    seen = jax.eval_shape(loop.probe, state)
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), seen)


# ----------------------------------------------------------- many, leaving the finished behind


def run_until(loop: Loop, state: Any, at: Int[Array, "step"]) -> tuple[Int[Array, ""], Any, Any]:
    """`run(loop, state, at)`, but where lanes are wide, batching it leaves finished lanes behind.

    A batched `while_loop` computes all lanes until the slowest is done. Here they are packed into
    narrower batches as they finish. What the loop closes over becomes an argument, so that a
    lane's own constants can move with it. Each `vmap` around adds an axis to one common batch,
    since batching the packing itself would take every branch of its `switch`.
    """
    state = jax.tree.map(jnp.asarray, state)
    if _lane_mode.get() == "serial":
        return by_lane(lambda state: run(loop, state, at), state)
    # As in a `while_loop`, a start of weak type takes the type that the step gives it.
    after = jax.eval_shape(loop.step, state, jnp.array(0, jnp.int32))
    state = jax.tree.map(lambda x, y: x.astype(y.dtype) if x.weak_type else x, state, after)
    consts, code = _opened(loop, state)

    def over(lanes: tuple[int, ...], held: Any) -> Callable[..., Any]:
        @custom_vmap
        def run_all(consts: list[Array], state: Any, at: Array) -> Any:
            batch = Batch(code, consts, lanes, held[0])
            if len(widths(lanes)) == 1:
                return batch.each(run, *held[1:])(state, at)
            return repacked(batch, state, at, *held[1:])

        @run_all.def_vmap
        def _(size: int, batched: Any, *args: Any) -> Any:
            both = jax.tree.map(lambda new, axes: np.append(new, axes), batched, held)
            found = over((size, *lanes), both)(*args)
            return found, jax.tree.map(lambda _: True, found)

        return run_all

    no_axes = jax.tree.map(lambda _: np.zeros(0, bool), [consts, state, at])
    return over((), no_axes)(consts, state, at)


def _opened(loop: Loop, state: Any) -> tuple[list[Any], Callable[[list[Any]], Loop]]:
    """What a loop closes over, each array once, and the loop as a function of that."""
    closed = Loop(
        eqx.filter_closure_convert(loop.step, state, jnp.array(0, jnp.int32)),
        eqx.filter_closure_convert(loop.until, state),
        eqx.filter_closure_convert(loop.probe, state),
    )
    arrays, rest = eqx.partition(closed, eqx.is_array)
    leaves, tree = jax.tree.flatten(arrays)
    once = {id(x): x for x in leaves}
    place = [list(once).index(id(x)) for x in leaves]

    def code(consts: list[Any]) -> Loop:
        return eqx.combine(jax.tree.unflatten(tree, [consts[i] for i in place]), rest)

    return list(once.values()), code


def rows(lanes: tuple[int, ...]) -> int:
    """How many rows of lanes are packed each by itself: along the last axis, or all as one."""
    return math.prod(lanes[:-1]) if lanes and lanes[-1] >= LEAST_IN_A_ROW else 1


def widths(lanes: tuple[int, ...]) -> list[int]:
    """The widths in which a row of lanes may run, the whole row first."""
    found = [math.prod(lanes) // rows(lanes)]
    narrowest = -(-NARROWEST // rows(lanes))
    while found[-1] >= 2 * narrowest:
        found.append(max(narrowest, -(-found[-1] // SHRINK)))
    return found


class Batch(NamedTuple):
    """The loops of many lanes, along several axes (seeds, points).

    `held` says for each array of constants which of these axes it has: one without any is shared
    by all lanes, one with the first alone by the lanes of a seed.
    """

    code: Callable[[list[Array]], Loop]
    consts: list[Array]
    lanes: tuple[int, ...]
    held: list[np.ndarray]

    def each(self, function: Callable[..., Any], *held: Any) -> Callable[..., Any]:
        """`function(loop, *args)` for all lanes; `held` are the axes that `args` have."""

        def mapped(consts: list[Array], *args: Any) -> Any:
            return function(self.code(consts), *args)

        for k in reversed(range(len(self.lanes))):
            axes = jax.tree.map(lambda has, k=k: 0 if has[k] else None, (self.held, *held))
            mapped = jax.vmap(mapped, in_axes=axes, axis_size=self.lanes[k])
        return partial(mapped, self.consts)

    def take(self, index: tuple[Int[Array, "..."], ...]) -> "Batch":
        """The lanes at an index into all axes, of the shape in which they are laid out then.

        What all lanes share stays shared, and where rows stay, also what the lanes of a row share.
        """
        lanes = index[0].shape
        consts, held = [], []
        for x, has in zip(self.consts, self.held, strict=True):
            if has[-1] or (has.any() and len(lanes) < len(self.lanes)):
                x = _taken(x, tuple(i for i, one in zip(index, has, strict=True) if one))
                has = np.ones(len(lanes), bool)
            consts.append(x)
            held.append(has[: len(lanes)])
        return Batch(self.code, consts, lanes, held)


class Lane(NamedTuple):
    """A training on its way: it goes until it is done, or at the next step to probe at."""

    t: Int[Array, "..."]
    state: Any
    done: Bool[Array, "..."]
    stop: Int[Array, "..."]

    @property
    def going(self) -> Bool[Array, "..."]:
        return ~self.done & (self.t < self.stop)


def begin(loop: Loop, state: Any, at: Int[Array, "step"]) -> tuple[Lane, Any, Int[Array, "step"]]:
    """A lane before its first step, room for its probes, and where they are taken."""
    t = jnp.array(-1, jnp.int32)
    return Lane(t, state, loop.until(state), t), blank(loop, state), at


def stride(loop: Loop, lane: Lane, t: Int[Array, ""]) -> Lane:
    """One step of a lane that goes. A lane that does not is computed in vain, and stays."""
    state = loop.step(lane.state, t)
    return _where(lane.going, Lane(lane.t + 1, state, loop.until(state), lane.stop), lane)


def look(loop: Loop, lane: Lane, before: Int[Array, ""], seen: Any) -> Any:
    """The probe of a lane that moved, else what was seen before."""
    return _where(lane.t > before, loop.probe(lane.state), seen)


# Places of lanes are in bounds, and none occurs twice: nothing need be computed to make sure.
_SOUND: Any = dict(unique_indices=True, mode="promise_in_bounds", wrap_negative_indices=False)


def _taken(x: Array, index: tuple[Int[Array, "..."], ...]) -> Array:
    return x.at[index].get(**_SOUND | {"unique_indices": False})  # what lanes share, they all take


def _where(condition: Bool[Array, ""], new: Any, old: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), new, old)


def repacked(
    batch: Batch, state: Any, at: Int[Array, "..."], state_held: Any, at_held: np.ndarray
) -> tuple[Int[Array, "..."], Any, Any]:
    """`run` for all lanes, in segments, each as wide as the lanes that still go need it."""
    ladder, many = widths(batch.lanes), rows(batch.lanes)
    in_step = not at_held.any()  # lanes with common stops have a common t while they go

    def needed(going: Bool[Array, "..."]) -> Int[Array, ""]:
        """The width into which the lanes that go fit."""
        return jnp.max(jnp.sum(going.reshape(many, -1), axis=1))

    def steps(fewer: int, batch: Batch, lane: Lane) -> Lane:
        """Steps until the lanes that go fit into a width of `fewer`."""
        every = np.ones(len(batch.lanes), bool)
        step = batch.each(stride, every, every & (not in_step))
        return jax.lax.while_loop(
            lambda lane: needed(lane.going) > fewer,
            lambda lane: step(lane, jnp.max(lane.t) if in_step else lane.t),
            lane,
        )

    def packed(width: int, fewer: int, order: Int[Array, "rows lanes"], lane: Lane) -> Lane:
        """The same where the lanes that go fit into a width: they move there for these steps."""
        if many == 1:
            index = jnp.unravel_index(order[0, :width], batch.lanes)
        else:
            first = order[:, :width].reshape(*batch.lanes[:-1], width)
            index = (*jnp.indices(first.shape)[:-1], first)
        some = steps(fewer, batch.take(index), jax.tree.map(lambda x: _taken(x, index), lane))
        return jax.tree.map(lambda x, y: x.at[index].set(y, **_SOUND), lane, some)

    whole = lambda order, lane: steps(ladder[1], batch, lane)  # noqa: E731
    segments = [whole, *(partial(packed, *pair) for pair in pairwise([*ladder[1:], 0]))]

    def segment(lane: Lane) -> Lane:
        narrow = needed(lane.going) <= jnp.array(ladder[1:])
        order = jnp.argsort(~lane.going.reshape(many, -1), axis=1, stable=True)
        return jax.lax.switch(jnp.sum(narrow), segments, order, lane)

    def advance(carry: Any, stop: Int[Array, "..."]) -> Any:
        lane, seen = carry
        before, lane = lane.t, lane._replace(t=jnp.maximum(lane.t, 0), stop=stop)
        lane = jax.lax.while_loop(lambda lane: jnp.any(lane.going), segment, lane)
        probe = batch.each(look, *[np.ones(len(batch.lanes), bool)] * 3)
        moved = jnp.any(lane.t > before)
        seen = jax.lax.cond(moved, lambda: probe(lane, before, seen), lambda: seen)
        return (lane, seen), seen

    lane, seen, stops = batch.each(begin, state_held, at_held)(state, at)
    (lane, _), probes = jax.lax.scan(advance, (lane, seen), jnp.moveaxis(stops, -1, 0))
    return lane.t, lane.state, jax.tree.map(lambda x: jnp.moveaxis(x, 0, len(batch.lanes)), probes)
