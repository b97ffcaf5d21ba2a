"""Cells that pages ask for: a short queue, and a worker process that may be killed at any time."""

import asyncio
import contextlib
import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from provingground.atlas import processes
from provingground.atlas.asking import Asked, Estimate, estimate
from provingground.errors import InputError, RunError
from provingground.store import Store

WORKER = "provingground.atlas.worker"
MOST_WAITING = 8
MOST_KEPT = 32  # jobs that are remembered
MOST_BYTES = 2**22  # of what is told of a job
MOST_WATCHERS = 64  # streams at a time, of all jobs
LONGEST_JOB = 3600.0  # seconds
SECONDS_BETWEEN_BEATS = 10.0

State = Literal["waiting", "running", "done", "failed", "cancelled"]
ENDED = ("done", "failed", "cancelled")


class Full(RunError):
    """There is no room for what was asked; later there may be."""


@dataclass
class Job:
    """What was asked for, and all that is to be told of it."""

    number: int
    asked: Asked
    estimate: Estimate
    shown: bool = True  # whether pages show any of its cells
    state: State = "waiting"
    told: list[str] = field(default_factory=list)
    size: int = 0
    cut: bool = False  # whether there was too much to tell
    began: bool = False  # whether cells of it were stored
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def tell(self, event: dict[str, Any]) -> None:
        """Adds to what is told; frames and cells of very long jobs are left out."""
        text = json.dumps(event)
        if self.size + len(text) > MOST_BYTES and event["event"] in ("frame", "cells", "progress"):
            if self.cut:
                return
            self.cut, text = True, json.dumps({"event": "cut"})
        self.size += len(text)
        self.told.append(text)
        self.moved.set()
        self.moved = asyncio.Event()

    def summary(self) -> dict[str, Any]:
        return {
            "job": self.number,
            "experiment": self.asked.target,
            "scale": self.asked.scale,
            "settings": list(self.asked.settings),
            "seeds": self.asked.seeds,
            "state": self.state,
            "cells": self.estimate.cells,
            "says": self.estimate.says,
        }


async def _nothing(target: str, shown: bool) -> None:
    """What is done where there are no pages."""


class Live:
    """The queue and its worker. All but `estimated` belongs to the loop of the server.

    `changed` hears of experiments of which cells were stored, and whether pages show them.
    """

    def __init__(
        self, store: Store, changed: Callable[[str, bool], Awaitable[None]] = _nothing
    ) -> None:
        self.store, self.changed = store, changed
        self.jobs: OrderedDict[int, Job] = OrderedDict()
        self.watchers = 0
        self.warm: set[str] = set()  # programs that the worker has compiled
        self.watched: dict[str, tuple[float, float]] = {}
        self.process: processes.Process | None = None
        self._count = int(time.time())  # no number of an earlier server is given again
        self._new = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._work())

    async def close(self) -> None:
        """Ends the worker at once. What is finished is in the store."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._kill()

    @property
    def running(self) -> bool:
        """Whether a request is worked at."""
        return any(job.state == "running" for job in self.jobs.values())

    # ----------------------------------------------------------------------- asking

    def estimated(self, asked: Asked) -> Estimate:
        """What it would take, without tracing or training anything."""
        planned = asked.planned(self.store, trace=False)
        return estimate(planned, sorted(self.warm), dict(self.watched))

    def shows(self, asked: Asked) -> bool:
        """Whether any of the cells belongs to the experiment as it is declared."""
        try:
            some = asked.planned(self.store, trace=False).ids
            whole = asked._replace(settings=(), seeds=None).planned(self.store, trace=False).ids
        except (InputError, RunError):  # what is not known, or is very much
            return True
        return bool(np.isin(some, whole).any())

    def put(self, asked: Asked, known: Estimate, shown: bool = True) -> Job:
        """Lines up a request; the same request that waits or runs already is not lined up twice."""
        going = [job for job in self.jobs.values() if not job.ended]
        for job in going:
            if job.asked == asked:
                return job
        if sum(job.state == "waiting" for job in going) >= MOST_WAITING:
            raise Full(f"{MOST_WAITING} requests wait already; cancel one, or try again later")
        self._count += 1
        job = self.jobs[self._count] = Job(self._count, asked, known, shown)
        for number in [n for n, old in self.jobs.items() if old.ended]:
            if len(self.jobs) <= MOST_KEPT:
                break
            del self.jobs[number]
        job.tell({"event": "waiting", "says": known.says, "cells": known.cells, "left": known.left})
        self._new.set()
        return job

    async def cancel(self, job: Job) -> None:
        """Takes a request back; the worker of one that runs is killed."""
        if job.ended:
            return
        running = job.state == "running"
        self._end(job, "cancelled")
        if running:
            await self._kill()

    def _end(self, job: Job, state: State, **told: Any) -> None:
        if not job.ended:
            job.state = state
            job.tell({"event": state, **told})

    # --------------------------------------------------------------------- watching

    async def watch(self, job: Job, after: int = 0) -> AsyncIterator[tuple[int, str]]:
        """What is told of a job, from a place on; now and then an empty text while nothing is."""
        if self.watchers >= MOST_WATCHERS:
            raise Full("too many watch already")
        self.watchers += 1
        try:
            place = max(0, after)
            while True:
                moved = job.moved
                while place < len(job.told):
                    text, place = job.told[place], place + 1
                    yield place, text
                if job.ended and place >= len(job.told):
                    return
                try:
                    await asyncio.wait_for(moved.wait(), SECONDS_BETWEEN_BEATS)
                except TimeoutError:
                    yield place, ""
        finally:
            self.watchers -= 1

    # --------------------------------------------------------------------- the work

    async def _work(self) -> None:
        """Works off the queue, one request after the other."""
        await self._started()  # so that the first request finds it awake
        while True:
            job = next((j for j in self.jobs.values() if j.state == "waiting"), None)
            if job is None:
                self._new.clear()
                await self._new.wait()
                continue
            job.state = "running"
            job.tell({"event": "running"})
            try:
                async with asyncio.timeout(LONGEST_JOB):
                    await self._carried_out(job)
            except TimeoutError:
                self._end(job, "failed", says="it took longer than an hour; `proving run` may")
                await self._kill()
            except OSError as error:
                self._end(job, "failed", says=f"no worker can be started: {error.strerror}")
                await self._kill()

    async def _carried_out(self, job: Job) -> None:
        process = await self._started()
        if job.ended:  # it was taken back in the meantime
            return
        assert process.stdin is not None
        assert process.stdout is not None
        order = job.asked._asdict() | {"job": job.number}
        with contextlib.suppress(OSError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            await process.stdin.drain()
        while not job.ended:
            try:
                line = await process.stdout.readline()
            except ValueError:  # a line that is too long is no message
                line = b""
            if job.ended:
                return
            if not line:
                says = "the worker ended; what was finished is stored, run again to go on"
                self._end(job, "failed", says=says)
                await self._kill()
                return
            await self._heard(job, json.loads(line))

    async def _heard(self, job: Job, told: dict[str, Any]) -> None:
        event = told.pop("event")
        if event == "ready":
            return
        if event == "watched":
            program, compiling = told["program"], told["compiling"]
            known = self.watched.get(program, (0.0, 0.0))[0]
            self.watched[program] = max(compiling, known), told["seconds"]
            while len(self.watched) > 1000:
                del self.watched[next(iter(self.watched))]
        if event == "compiled":
            self.warm |= set(told["programs"])
            return
        if event in ("done", "failed"):
            if job.shown:
                job.tell({"event": "phase", "what": "judging"})
            await self.changed(job.asked.target, job.shown)
            self._end(job, event, **told)
            return
        if event == "cells" and not job.began:
            job.began = True
            await self.changed(job.asked.target, job.shown)
        job.tell({"event": event, "at": round(time.time(), 3), **told})

    async def _started(self) -> processes.Process:
        """The worker, started where there is none."""
        if self.process is None or self.process.returncode is not None:
            await self._kill()
            self.process = await processes.started(WORKER, str(self.store.path))
        return self.process

    async def _kill(self) -> None:
        """Ends the worker and all that it started."""
        process, self.process = self.process, None
        self.warm = set()
        if process is not None:
            await processes.killed(process)
