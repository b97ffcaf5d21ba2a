"""Blocks -> batches -> any Executor -> store: locks, retries, progress, and how to stop."""

import hashlib
import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import nullcontext, suppress
from typing import NamedTuple

import numpy as np

from provingground import cluster, extend
from provingground.ahead import Ahead, Ready, layout
from provingground.chunk import Ids
from provingground.engine import Block, Finished, Job, Timing
from provingground.errors import InputError, RunError, place_of
from provingground.locks import receipt
from provingground.progress import TRAINING, Tell
from provingground.stopping import Gate, Terminated, heed
from provingground.widths import tune

CHUNK_SECONDS = 1.0  # what a file holds, about: short enough to lose, long enough to be worth it
CHUNK_BYTES = 2**25
RENEW_SECONDS = 60.0
SECONDS_TO_END = 2.5  # after SIGTERM


class Batch(NamedTuple):
    """Blocks of one program that one worker computes and one file holds."""

    blocks: list[Block]
    cells: list[Ids]  # of each block
    alone: bool = False  # nothing else in work, to see whether it is what kills workers

    @property
    def size(self) -> int:
        return sum(map(len, self.cells))


def run(
    job: Job,
    executor: Executor | None = None,
    progress: Tell | None = None,
    ahead: Ahead | None = None,
) -> None:
    """Computes and stores what is missing. Finished blocks are never computed again.

    Work goes to threads of this process, or to another executor's processes, which are sent
    names (see `cluster`). Interrupted once, it finishes what is in work; twice, it stops at once.
    `ahead` compiles the programs of this sweep and of others.
    """
    with nullcontext(ahead) if ahead else Ahead() as compiling:
        work = _Work(job, executor, progress or (lambda done, total, what: None), compiling)
        with Gate() as work.gate:  # a request to stop comes where the work can be left
            _go_through(work)
        work.report()


def is_local(executor: Executor | None) -> bool:
    """Whether work is done by threads of this process."""
    return executor is None or isinstance(executor, ThreadPoolExecutor)


def _go_through(work: "_Work") -> None:
    try:
        work.until_done()
    except KeyboardInterrupt as stop:
        work.finish_flying(SECONDS_TO_END if isinstance(stop, Terminated) else None)
        raise
    finally:
        work.leave()


class _Work:
    def __init__(self, job: Job, executor: Executor | None, tell: Tell, ahead: Ahead) -> None:
        self.job, self.tell = job, tell
        self.gate = Gate()
        self.own = executor is None
        self.remote = not is_local(executor)
        with Gate():
            job.store.open()
        if self.remote:
            assert executor is not None
            cluster.can_be_found(job)
            tell(0, job.sweep.cells, "waiting for a worker")
            job.machine = cluster.machine(executor)
        tell(0, job.sweep.cells, "tracing")
        ahead.wait(job)
        todo = job.missing()
        if not self.remote and job.lanes is None and tune(job, todo):
            todo = job.missing()
        self.ready: Ready = {} if self.remote else ahead.order(job, todo)
        self.pool = executor or ThreadPoolExecutor(job.workers)
        self.queue = deque(todo)
        job.store.set_aside()
        self.total = sum(b.cells for b in self.queue)
        self.suspects: deque[Block] = deque()  # of having killed a worker
        self.elsewhere: list[Block] = []  # in work by other processes
        self.flying: dict[Future[Finished], Batch] = {}
        self.held: set[str] = set()
        # By group: seconds, cells, bytes, memory, seconds of compiling.
        self.spent: dict[int, list[float]] = {}
        self.failed: list[tuple[Block, Exception]] = []
        self.done = 0
        self.over = threading.Event()
        if self.queue:
            threading.Thread(target=self._renew, daemon=True).start()

    def until_done(self) -> None:
        self._tell()
        while self.queue or self.suspects or self.elsewhere or self.flying:
            with self.gate.opened():
                heed()
            self._submit()
            compiling = [f for f in self.ready.values() if not f.done()] if self.queue else []
            if self.flying or compiling:
                both = [*self.flying, *compiling]
                with self.gate.opened():
                    done, _ = wait(both, timeout=1.0, return_when=FIRST_COMPLETED)
                for future in self.flying.keys() & done:
                    self._collect(future)
                self._tell()
            elif self.elsewhere and not self.queue:
                self.tell(self.done, self.total, "waiting for another process")
                self._look_elsewhere()

    # -------------------------------------------------------------------- giving out

    def _submit(self) -> None:
        while len(self.flying) <= self._capacity() and (blocks := self._next()):
            if batch := self._locked(blocks):
                self._send(batch)
        if self.suspects and not self.queue and not self.flying:
            block = self.suspects.popleft()
            cells = self.job.cells(block)
            self.job.store.look(self.job.study.name)
            if self.job.stored(cells).all():  # its worker died after it had stored them
                self._finished([cells])
            else:
                self._send(Batch([block], [cells], alone=True))

    def _capacity(self) -> int:
        """How many batches are in work, beside one that waits."""
        if not self.remote:
            return self.job.workers
        with self.gate.opened():  # a scheduler may be long in answering
            return cluster.capacity(self.pool)

    def _next(self) -> list[Block]:
        """Blocks of one program that together take about a second, fewer towards the end.

        The first whose program is compiled; none while all that are left are being compiled.
        """
        place = next((i for i, block in enumerate(self.queue) if self._is_ready(block)), None)
        if place is None:
            return []
        first = self.queue[place]
        count = 1
        if known := self.spent.get(first.group):
            seconds, cells, size, *_ = known
            share = first.cells / cells
            fair = len(self.queue) // (2 * self._capacity() or 1)
            long, large = CHUNK_SECONDS / (seconds * share + 1e-9), CHUNK_BYTES / (size * share + 1)
            count = int(min(long, large, fair))
        taken = []
        while not taken or (
            len(taken) < count
            and place < len(self.queue)
            and self.queue[place].group == first.group
        ):
            taken.append(self.queue[place])
            del self.queue[place]
        return taken

    def _is_ready(self, block: Block) -> bool:
        compiled = self.ready.get(layout(block))
        return compiled is None or compiled.done()

    def _locked(self, blocks: list[Block]) -> Batch | None:
        """Those blocks that no other process has, and that none has stored meanwhile."""
        mine: list[tuple[Block, Ids]] = []
        for block in blocks:
            cells = self.job.cells(block)
            if self.job.store.lock(_name(cells)):
                self.held.add(_name(cells))
                mine.append((block, cells))
            else:
                self.elsewhere.append(block)
        if not mine:
            return None
        self.job.store.look(self.job.study.name)
        left = []
        for block, cells in mine:
            if self.job.stored(cells).all():
                self._finished([cells])
            else:
                left.append((block, cells))
        return Batch([b for b, _ in left], [c for _, c in left]) if left else None

    def _send(self, batch: Batch) -> None:
        cells = np.concatenate(batch.cells)
        try:
            if self.remote:
                order = cluster.order(self.job, batch.blocks, cells, _name(batch.cells[0]))
                future = self.pool.submit(cluster.work, order)
            else:
                future = self.pool.submit(self.job.chunk, batch.blocks, cells)
        except (BrokenExecutor, OSError) as error:
            raise RunError(f"the workers are gone: {error}. Finished cells are stored.") from error
        self.flying[future] = batch

    # ------------------------------------------------------------------- taking back

    def _collect(self, future: Future[Finished]) -> None:
        batch = self.flying.pop(future)
        try:
            finished = future.result()
        except (InputError, RunError):
            raise
        except (Exception, CancelledError) as error:
            self._failed(batch, error)
            return
        if finished.content:
            self.job.store.put_packed(self.job.study.name, finished.content)
        if finished.size:  # else it was stored before
            known = self.spent.setdefault(batch.blocks[0].group, [0.0, 0, 0, 0, 0.0])
            for i, more in enumerate((finished.seconds, batch.size, finished.size)):
                known[i] += more
            known[3] = max(known[3], finished.memory)
            known[4] = max(known[4], finished.compiling)
        self._finished(batch.cells)

    def _tell(self) -> None:
        """Tells how far it is, and with the compiling as long as programs are waited for."""
        compiled = sum(future.done() for future in self.ready.values())
        waiting = self.queue and compiled < len(self.ready)
        what = f"compiled {compiled} of {len(self.ready)} programs" if waiting else TRAINING
        self.tell(self.done, self.total, what)

    def _finished(self, blocks: Iterable[Ids]) -> None:
        for cells in blocks:
            self.done += len(cells)
            self._release(_name(cells))

    def _failed(self, batch: Batch, error: BaseException) -> None:
        """A batch that failed is tried again block by block; one that may have killed its worker
        alone, since whatever else was on that worker is under the same suspicion."""
        killed = isinstance(error, (BrokenExecutor, CancelledError)) or _is_killed(error)
        if (killed and not batch.alone) or len(batch.blocks) > 1:
            self.suspects.extend(batch.blocks)
        else:
            self.failed.append((batch.blocks[0], error))  # pyright: ignore[reportArgumentType]
            self._release(_name(batch.cells[0]))

    def _look_elsewhere(self) -> None:
        """Blocks of other processes: done by now, still theirs, or given up and so ours."""
        with self.gate.opened():
            time.sleep(0.3)
        looked, self.elsewhere = self.elsewhere, []
        for block in looked:
            cells = self.job.cells(block)
            if self.job.stored(cells).all():
                self.done += len(cells)
            elif batch := self._locked([block]):
                self._send(batch)

    def report(self) -> None:
        """Keeps the timings, and speaks of what failed."""
        for group, (seconds, cells, _, memory, compiling) in self.spent.items():
            timing = Timing(seconds / cells, int(memory), round(compiling, 3))
            self.job.remember(self.job.groups[group].program, timing)
        if self.failed:
            block, error = self.failed[0]
            program = self.job.groups[block.group].program
            failed = sum(b.cells for b, _ in self.failed)
            rest = ", all others are stored" if failed < self.total else ""
            raise RunError(
                f"{failed} of {self.total} cells failed{rest}. The first: {program.simulator} with "
                f"{dict(program.shape)}: {type(error).__name__}: {error}{place_of(error)}"
                f"{extend.told(self.job.study)}. PROVING_TRACEBACK=1 shows all"
            ) from error

    # ---------------------------------------------------------------------- stopping

    def finish_flying(self, seconds: float | None) -> None:
        """Waits for what is in work, not longer than so many seconds, and stores it."""
        for future in list(self.flying):
            if future.cancel():
                del self.flying[future]
        self.tell(self.done, self.total, "finishing what is in work, interrupt again to stop")
        with self.gate.opened():
            done, _ = wait(self.flying, timeout=seconds)
        for future in done:
            self._collect(future)

    def leave(self) -> None:
        self.over.set()
        for future in self.flying:
            future.cancel()
        for name in list(self.held):
            self._release(name)
        if self.remote:  # of workers that were killed there may be files half written
            with suppress(RunError):
                self.job.store.open()
        self.job.store.locks.close()
        if self.own:
            self.pool.shutdown(wait=False, cancel_futures=True)

    def _release(self, name: str) -> None:
        self.held.discard(name)
        self.job.store.locks.release(name)
        if self.remote:
            self.job.store.locks.release(receipt(name))

    def _renew(self) -> None:
        while not self.over.wait(RENEW_SECONDS):
            self.job.store.locks.renew(list(self.held))


def _name(cells: Ids) -> str:
    """Under which name a block is locked."""
    return hashlib.sha256(cells.tobytes()).hexdigest()[:32]


def _is_killed(error: BaseException) -> bool:
    return type(error).__name__ == "KilledWorker"  # of Dask, which need not be installed
