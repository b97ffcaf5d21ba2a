"""How an expert's step is repeated: as it is, compiled, or replayed as a CUDA graph."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

State = tuple[Tensor, ...]
MODES = ("default", "max-autotune-no-cudagraphs")


class Descent(NamedTuple):
    """A step, what belongs to each training (lanes, like a state: trainings along the first axis)
    and what all share: the next state is `step(*state, *fresh, *lanes, *shared)`."""

    step: Callable[..., State]
    lanes: tuple[Tensor, ...]
    shared: tuple[Any, ...] = ()


class Repeat(Protocol):
    """Some steps in a row; `fresh` holds what is new at each of them, along its first axis."""

    @property
    def widths(self) -> int:
        """How many batch sizes are worth having while trainings finish; 0: any."""
        ...

    def __call__(
        self, descent: Descent, state: State, steps: int, fresh: Sequence[Tensor] = ()
    ) -> State: ...


class Eager:
    """The step as it is, kernel by kernel."""

    widths = 0

    def __call__(
        self, descent: Descent, state: State, steps: int, fresh: Sequence[Tensor] = ()
    ) -> State:
        for t in range(steps):
            state = descent.step(*state, *(f[t] for f in fresh), *descent.lanes, *descent.shared)
        return state


class Compiled(NamedTuple):
    """`torch.compile` of the step, for any number of trainings."""

    mode: str
    widths: int = 0

    def __call__(
        self, descent: Descent, state: State, steps: int, fresh: Sequence[Tensor] = ()
    ) -> State:
        step = compiled(descent.step, self.mode)
        for v in (*state, *descent.lanes):
            torch._dynamo.maybe_mark_dynamic(v, 0)
        for t in range(steps):
            now = [f[t] for f in fresh]
            for v in now:
                torch._dynamo.maybe_mark_dynamic(v, 0)
            state = step(*state, *now, *descent.lanes, *descent.shared)
        return state


@functools.cache
def compiled(step: Callable[..., State], mode: str) -> Callable[..., State]:
    torch._dynamo.config.recompile_limit = 64  # one for each shape of a training
    return torch.compile(step, mode=mode)


class Graphs(NamedTuple):
    """Some compiled steps as one CUDA graph, so that no kernel waits for Python.

    A graph belongs to shapes, and is kept. The state that is returned is valid until the next call.
    """

    mode: str
    widths: int = 8

    def __call__(
        self, descent: Descent, state: State, steps: int, fresh: Sequence[Tensor] = ()
    ) -> State:
        arguments = (*state, *fresh, *descent.lanes, *descent.shared)
        shapes = [tuple(v.shape) if isinstance(v, Tensor) else v for v in arguments]
        key = (descent.step, self.mode, steps, *shapes)
        if key not in _KEPT:
            _KEPT[key] = Captured(Compiled(self.mode), descent, state, steps, fresh)
        return _KEPT[key](descent, state, fresh)


def own(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(v.clone().contiguous() if isinstance(v, Tensor) else v for v in values)


def copy(values: Sequence[Any], into: Sequence[Any]) -> None:
    for mine, value in zip(into, values, strict=True):
        if isinstance(mine, Tensor) and mine is not value:
            mine.copy_(value)


class Captured:
    """Some steps over tensors of their own, into which arguments are copied where they changed."""

    def __init__(
        self, repeat: Repeat, descent: Descent, state: State, steps: int, fresh: Sequence[Tensor]
    ) -> None:
        self.given, self.state, self.fresh = descent, own(state), own(fresh)
        mine = self.mine = Descent(descent.step, own(descent.lanes), own(descent.shared))

        def run() -> None:
            copy(repeat(mine, self.state, steps, self.fresh), into=self.state)

        # the state that a step returns may be laid out otherwise than the first: three of them
        self.replay = record(run, lambda: repeat(mine, self.state, min(steps, 3), self.fresh))

    def __call__(self, descent: Descent, state: State, fresh: Sequence[Tensor]) -> State:
        copy(state, into=self.state)
        copy(fresh, into=self.fresh)
        if descent is not self.given:
            copy((*descent.lanes, *descent.shared), into=(*self.mine.lanes, *self.mine.shared))
            self.given = descent
        self.replay()
        return self.state


_KEPT: dict[Any, Captured] = {}


def record(run: Callable[[], None], first: Callable[[], Any]) -> Callable[[], None]:
    """The kernels that `run` starts, as a CUDA graph; `first` compiles what is to be compiled."""
    stream = capturing()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        first()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # other threads, those of jax, may use the device meanwhile
    with torch.cuda.graph(graph, memory(), stream, capture_error_mode="thread_local"):
        run()
    return graph.replay


@functools.cache
def capturing() -> Any:
    return torch.cuda.Stream()


@functools.cache
def memory() -> Any:
    """One pool: graphs run one after another and leave nothing in it."""
    return torch.cuda.graph_pool_handle()


def release() -> None:
    """Forgets graphs, and gives unused memory back."""
    _KEPT.clear()
    memory.cache_clear()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


# ------------------------------------------------------------------------------ whole trainings


def train(repeat: Repeat, descent: Descent, state: State, steps: int, every: int = 50) -> State:
    """All steps, some at once."""
    for t in range(0, steps, every):
        state = repeat(descent, state, min(every, steps - t))
    return state


def train_until_done(
    repeat: Repeat, descent: Descent, state: State, steps: int, every: int, groups: int = 1
) -> State:
    """Until each is done: the last of a state counts the steps of those who are not.

    After every few steps those who are done are dropped, equally many of each group (trainings
    that follow each other and share something); where only some batch sizes are worth having, or
    other groups have more left, a few of them stay to fill up. They do not move.
    """
    left = torch.arange(len(state[-1]), device=state[-1].device)
    unit = max(1, len(left) // groups // repeat.widths) if repeat.widths else 1
    last = tuple(torch.empty_like(v) for v in state)
    for t in range(0, steps, every):
        state = repeat(descent, state, min(every, steps - t))
        going = (state[-1] == t + every).view(groups, -1)
        width = -(-int(going.sum(1).max()) // unit) * unit
        if width >= going.shape[1]:
            continue
        for kept, now in zip(last, state, strict=True):
            kept[left] = now
        if width == 0:
            return last
        order = going.int().argsort(dim=1, descending=True, stable=True)[:, :width]
        order = torch.arange(len(left), device=left.device).view(groups, -1).gather(1, order)
        order = order.flatten()
        left, state = left[order], tuple(v[order] for v in state)
        descent = descent._replace(lanes=tuple(v[order] for v in descent.lanes))
    for kept, now in zip(last, state, strict=True):
        kept[left] = now
    return last
