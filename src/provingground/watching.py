"""One cell again, told of while it trains: a segmented replay.

The program of a cell is traced as it is, without anything of the study or the trainings changed.
In its equations the scan of every training, whose steps are those to probe at, is given further
steps, at each of which it tells what it probes. The steps that were there before see the same
states, so that the probes at the end are those of the cell.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from provingground import identity
from provingground.grid import Point
from provingground.identity import typed
from provingground.keys import seed_key
from provingground.machine import keep_compiled_programs
from provingground.programs import probe_dims, single
from provingground.study import Study
from provingground.train import overheard
from provingground.words import leaves

SMALL = 1e-6  # see `deviation`
FRAMES = 64  # at which a training tells of itself, beside its own steps
_INLINED = ("jit", "pjit", "closed_call", "core_call", "custom_vmap_call", "custom_jvp_call")


class Frame(NamedTuple):
    """What a training says at a step: its probes by name. `training` numbers those of a cell."""

    training: int
    step: int
    steps: int
    probes: dict[str, np.ndarray]


Tell = Callable[[Frame], None]


class Watched:
    """A cell's program that tells of its trainings. Values share it, as in the engine."""

    def __init__(self, study: Study, point: Point, data: Any, frames: int = FRAMES) -> None:
        self.study, self.point, self.data, self.frames = study, point, data, frames
        self.simulator = study.simulators[point.program.simulator]
        self.names: dict[int, list[str]] = {}  # of what the scan of a number tells
        self.tell: Tell = lambda frame: None
        self._compiled: Any = None

    def compile(self) -> None:
        """Traces and compiles the program, unless that was done."""
        if self._compiled is not None or self.simulator.host:
            return
        args = self._arguments(self.point.config, 0)
        keep_compiled_programs()
        with identity.running("", self.point.program.precision):
            self._compiled = jax.jit(self._telling).lower(*args).compile()

    def run(self, config: Any, seed: int, tell: Tell) -> dict[str, np.ndarray]:
        """The probes of a cell; `tell` hears of every frame on the way."""
        if self.simulator.host:
            return single(self.study, self.point._replace(config=config), seed)
        self.compile()
        self.tell = tell
        precision = self.point.program.precision
        with identity.precision_of(precision):
            found = jax.block_until_ready(self._compiled(*self._arguments(config, seed)))
            jax.effects_barrier()
        names = probe_dims(self.simulator.probes)
        return {n: np.asarray(found[n]) for n in names}

    def _arguments(self, config: Any, seed: int) -> tuple[Any, ...]:
        precision = self.point.program.precision
        with identity.precision_of(precision):
            key = seed_key(self.study.name, seed)
            rest = () if self.data is None else (self.data,)
            return (typed(config, precision), key, *rest)

    def _telling(self, *args: Any) -> dict[str, Any]:
        names = probe_dims(self.simulator.probes)
        tapes: list[Any] = []

        def overheard_simulate(*args: Any) -> Any:
            with overheard() as tape:
                found = self.simulator.simulate(*args)
            tapes[:] = [None if trace is None else trace.probes for trace in tape]
            return {n: jnp.asarray(getattr(found, n)) for n in names}, tapes

        closed, shapes = jax.make_jaxpr(overheard_simulate, return_shape=True)(*args)
        hooks = _Hooks(self)
        flat = hooks.evaluate(closed.jaxpr, closed.consts, jax.tree.leaves(args))
        found, heard = jax.tree.unflatten(jax.tree.structure(shapes), flat)
        known = {id(value): name for name, value in found.items()}
        for probes in heard:
            for name, value in leaves(probes, "").items():
                hooks.name(value, name or known.get(id(value), "probe"))
        for name, value in found.items():  # a training inside of a map has no tape
            hooks.name(value, name)
        self.names = hooks.names
        return found


class _Hooks:
    """Evaluates equations anew, with trainings that tell of themselves."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.count = 0
        self.told: dict[int, tuple[int, int]] = {}  # by what a scan gives: its number, its place
        self.names: dict[int, list[str]] = {}
        self.keep: list[Any] = []  # so that no two things have had one id

    def name(self, value: Any, name: str) -> None:
        """Names what a scan tells, unless it has a name."""
        if (place := self.told.get(id(value))) is not None and not self.names[place[0]][place[1]]:
            self.names[place[0]][place[1]] = name

    def evaluate(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        known |= dict(zip(jaxpr.invars, args, strict=True))

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, core.Literal) else known[atom]

        for equation in jaxpr.eqns:
            values = [read(atom) for atom in equation.invars]
            known |= dict(zip(equation.outvars, self._found(equation, values), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _found(self, equation: Any, values: list[Any]) -> list[Any]:
        if is_training(equation):
            return self._training(equation, values)
        inner = _inside(equation)
        if inner is not None and any(map(is_training, _equations(inner.jaxpr))):
            return self.evaluate(inner.jaxpr, inner.consts, values)
        with equation.ctx.manager:
            given = equation.primitive.get_bind_params(equation.params)
            found = equation.primitive.bind(*values, **given)
        return list(found) if equation.primitive.multiple_results else [found]

    def _training(self, equation: Any, values: list[Any]) -> list[Any]:
        params, number = equation.params, self.count
        self.count += 1
        consts = values[: params["num_consts"]]
        start = values[params["num_consts"] : -1]
        body, at = core.jaxpr_as_fun(params["jaxpr"]), jnp.asarray(values[-1])
        stops, places = with_frames(at, self.watched.frames)

        def advance(carry: Any, stop: Any) -> Any:
            found = body(*consts, *carry, stop)
            after, seen = found[: len(start)], found[len(start) :]
            jax.debug.callback(self._heard, number, after[0], stops[-1], *seen)
            return list(after), list(seen)

        last, seen = jax.lax.scan(advance, list(start), stops)
        seen = [x[places] for x in seen]
        self.names[number] = [""] * len(seen)
        self.keep += seen
        self.told |= {id(x): (number, i) for i, x in enumerate(seen)}
        return [*last, *seen]

    def _heard(self, number: Any, step: Any, steps: Any, *seen: Any) -> None:
        names = self.watched.names.get(int(number), [])
        probes = {n: np.asarray(x) for n, x in zip(names, seen, strict=True) if n}
        self.watched.tell(Frame(int(number), int(step), int(steps), probes))


def with_frames(at: Any, frames: int) -> tuple[Any, Any]:
    """Steps to probe at with further ones between 0 and the last, in order; and where the former
    are among them. Half of the further ones are even in the logarithm."""
    share = jnp.asarray(np.linspace(0, 1, frames), float)
    last = at[-1].astype(share.dtype)
    grown = jnp.expm1(share * jnp.log1p(last))
    spread = jnp.where(jnp.arange(frames) % 2 == 0, grown, share * last)
    more = jnp.clip(jnp.round(spread).astype(at.dtype), 0, at[-1])
    stops = jnp.sort(jnp.concatenate([at, more]))
    return stops, jnp.searchsorted(stops, at, side="left")


def is_training(equation: Any) -> bool:
    """Whether an equation is the scan of `lanes.run` over its steps, of one training."""
    if equation.primitive.name != "scan":
        return False
    params = equation.params
    body = params["jaxpr"].jaxpr
    carried = equation.invars[params["num_consts"] : params["num_consts"] + params["num_carry"]]
    over = equation.invars[params["num_consts"] + params["num_carry"] :]
    return (
        len(over) == 1
        and over[0].aval.ndim == 1
        and over[0].aval.dtype == np.int32
        and bool(carried)
        and carried[0].aval.shape == ()
        and carried[0].aval.dtype == np.int32
        and any(e.primitive.name == "while" for e in body.eqns)
    )


def _inside(equation: Any) -> Any:
    """The closed equations of a call that may be written out in its place."""
    if equation.primitive.name not in _INLINED:
        return None
    names = ("jaxpr", "call_jaxpr", "call")
    found = next((equation.params[n] for n in names if n in equation.params), None)
    return found if hasattr(found, "consts") else None


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        if (inner := _inside(equation)) is not None:
            yield from _equations(inner.jaxpr)


def deviation(found: dict[str, np.ndarray], stored: dict[str, np.ndarray]) -> float:
    """By how much two sets of probes differ at most, relative to the largest number of each.

    A probe that is nowhere above a millionth (a loss of 1e-15) is compared to that: the digits of
    what is left of rounding are nobody's.
    """
    most = 0.0
    for name, values in found.items():
        a, b = np.asarray(values, float), np.asarray(stored[name], float)
        if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return math.inf
        a, b = a[np.isfinite(a)], b[np.isfinite(b)]
        if len(a):
            most = max(most, float(np.max(np.abs(a - b)) / max(np.max(np.abs(b)), SMALL)))
    return most
