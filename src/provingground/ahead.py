"""Programs compiled ahead: in the order in which sweeps need them, on all cores, while others run.

Tracing keeps Python busy, so one thread does it for all; the compiler does not, and has a thread
per core. A sweep asks which of its blocks can be called by now.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from provingground.engine import Block, Job
from provingground.machine import cores
from provingground.programs import is_compiled

Layout = tuple[int, int, int]  # group of a sweep, and the widths of the program that computes it
Ready = dict[Layout, "Future[None]"]  # done when the program is compiled


class Ahead:
    """Compiles the programs of some sweeps. Whatever fails here fails again, and is told, there.

    What the first one needs is found out when it runs, and then that of the others.
    """

    def __init__(self, jobs: Sequence[Job] = ()) -> None:
        self.tracing = ThreadPoolExecutor(1, "trace")
        self.compiling = ThreadPoolExecutor(cores(), "compile")
        self.over = False
        self.ready: dict[Any, Future[None]] = {}  # by name
        self.later = list(jobs[1:])
        self.planned: dict[int, Future[None]] = {id(job): Future() for job in self.later}

    def __enter__(self) -> "Ahead":
        return self

    def __exit__(self, *_: Any) -> None:
        self.over = True
        for pool in (self.tracing, self.compiling):
            pool.shutdown(wait=False, cancel_futures=True)

    def wait(self, job: Job) -> None:
        """Until it is known what a sweep needs, so that this is found out once."""
        if planned := self.planned.get(id(job)):
            planned.result()

    def order(self, job: Job, blocks: Iterable[Block]) -> Ready:
        """When the programs of some blocks are ready to be called; then it goes on to others.

        Those that are compiled already are not among them.
        """
        needed = firsts(blocks)
        names = {layout: name_of(job, block) for layout, block in needed.items()}
        for name, block in self._missing(job, needed.values()).items():
            self.tracing.submit(self._trace, job, block, self.ready[name])
        while self.later:
            self.tracing.submit(self._plan, self.later.pop(0))
        return {at: self.ready[name] for at, name in names.items() if name in self.ready}

    def _missing(self, job: Job, blocks: Iterable[Block]) -> dict[Any, Block]:
        """The programs, by name, that nobody asked for yet, each with a block that it computes."""
        found = {name_of(job, block): block for block in blocks}
        found = {
            name: block
            for name, block in found.items()
            if name is not None and name not in self.ready and not is_compiled(name)
        }
        self.ready |= {name: Future() for name in found}
        return found

    def _plan(self, job: Job) -> None:
        """Traces what a sweep misses, and lets it be compiled."""
        needed: dict[Any, Block] = {}
        try:
            if not self.over:
                needed = self._missing(job, firsts(job.missing()).values())
        except Exception:
            pass
        finally:
            self.planned[id(job)].set_result(None)
        for name, block in needed.items():
            self._trace(job, block, self.ready[name])

    def _trace(self, job: Job, block: Block, ready: "Future[None]") -> None:
        if self.over:
            return
        try:
            job.programs.lower(job.program(block), job.lanes_of(block))
            compiled = self.compiling.submit(_compile, job, block)
        except Exception:
            ready.set_result(None)
        else:
            compiled.add_done_callback(lambda _: ready.set_result(None))


def layout(block: Block) -> Layout:
    """What blocks of one program have in common."""
    return block.group, block.wide, block.deep


def firsts(blocks: Iterable[Block]) -> dict[Layout, Block]:
    """The first block of each program, in their order."""
    found: dict[Layout, Block] = {}
    for block in blocks:
        found.setdefault(layout(block), block)
    return found


def name_of(job: Job, block: Block) -> Any:
    """The name of the program of a block; None if it runs on the host."""
    return job.programs.name(job.program(block), block.wide, block.deep)


def _compile(job: Job, block: Block) -> None:
    job.programs.compiled(job.program(block), job.lanes_of(block))
