"""Workers in other processes, on this machine or on a cluster, through Dask's executor.

Names travel, not objects: a worker is sent the names of study, experiment and settings, plans the
same sweep, checks that it comes to the same identities, and computes some blocks of it. Where it
sees the store, it writes the chunk there itself, else it sends it back.
"""

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from provingground import extend, grid, registry
from provingground.chunk import Ids
from provingground.errors import InputError, RunError
from provingground.grid import Point
from provingground.identity import Identity, cell_ids, program_hash, what_runs
from provingground.machine import Machine, here
from provingground.store import Store

if TYPE_CHECKING:
    from provingground.engine import Block, Finished, Job

SECONDS_TO_ANSWER = 20.0
_CAPACITY: dict[int, tuple[float, int]] = {}


# ------------------------------------------------------------------ on the coordinator


@contextmanager
def local(workers: int, *, dashboard: bool = False) -> Iterator[Executor]:
    """An executor of worker processes on this machine. A worker that dies is replaced.

    Example:
        `with cluster.local(4) as workers: pg.run("toy/risk", executor=workers)`
    """
    if workers < 1:
        raise InputError(f"workers = {workers} is not allowed: whole numbers from 1")
    distributed = _distributed()
    try:
        made = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:8787" if dashboard else "127.0.0.1:0",
            scheduler_kwargs={"dashboard": dashboard},
            memory_limit=None,
            silence_logs=50,
            preload=[__name__],
        )
    except (OSError, RuntimeError) as error:  # such as Dask's configuration asking for TLS
        raise RunError(f"no workers could be started: {error}") from error
    with made, distributed.Client(made, set_as_default=False) as client:
        yield client.get_executor()


@contextmanager
def connected(scheduler: str) -> Iterator[Executor]:
    """An executor of the workers of a running Dask scheduler, such as `tcp://host:8786`.

    For `tls://` addresses the certificates are those of Dask's configuration.
    """
    distributed = _distributed()
    try:
        client = distributed.Client(scheduler, timeout=SECONDS_TO_ANSWER, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise RunError(f"no scheduler answers at {scheduler}: {error}") from error
    with client:
        yield client.get_executor()


def _distributed() -> Any:
    try:
        import dask.config
        import distributed
    except ImportError as error:
        raise InputError(
            "workers in other processes need Dask: pip install 'provingground[cluster]'"
        ) from error
    # One task per worker at a time: what else it held would share the blame for its death.
    dask.config.set(  # pyright: ignore[reportPrivateImportUsage]
        {
            "distributed.scheduler.worker-saturation": 1.0,
            "distributed.scheduler.allowed-failures": 1,  # another chance comes from `dispatch`
            "distributed.deploy.lost-worker-timeout": "1 day",  # a restart may be slow
        }
    )
    return distributed


def capacity(executor: Executor) -> int:
    """How many batches an executor works on at once, asked every few seconds."""
    if (fixed := getattr(executor, "_max_workers", None)) is not None:
        return fixed
    asked, known = _CAPACITY.get(id(executor), (-1e9, 0))
    if time.monotonic() - asked > 5:
        client = executor._client  # pyright: ignore[reportAttributeAccessIssue]
        with answered():
            known = sum(client.nthreads().values())
        _CAPACITY[id(executor)] = time.monotonic(), known
    return known


@contextmanager
def answered() -> Iterator[None]:
    """Who is asked must be there: a scheduler that was killed, or a pool that broke, is told."""
    try:
        yield
    except (BrokenExecutor, CancelledError, OSError, RuntimeError) as error:
        if isinstance(error, RunError):
            raise
        why = str(error).rstrip(".") or type(error).__name__
        raise RunError(f"the workers are gone: {why}. Finished cells are stored.") from error


def dashboard(executor: Executor) -> str:
    """Where Dask's dashboard is."""
    return executor._client.dashboard_link  # pyright: ignore[reportAttributeAccessIssue]


def machine(executor: Executor) -> Machine:
    """What the workers run on; they are taken to be alike."""
    with answered():
        one = executor.submit(here).result()
    return one._replace(workers=max(1, capacity(executor)))


def can_be_found(job: "Job") -> None:
    """Refuses a study that a worker could not find by its name."""
    name = job.study.name
    if extend.of(job.study):
        raise InputError(
            "workers find a study by its name, and are sent no functions: run with probes and "
            f"parts in this process, or change a fork of the study (`proving fork {name} NAME`)"
        )
    try:
        found = registry.study(name)
    except InputError:
        found = None
    if found is not job.study:
        raise InputError(
            f"workers find a study by its name, and '{name}' is not this one: give it a name of "
            "its own and list it by an entry point or --study-path"
        )


def order(job: "Job", blocks: Sequence["Block"], cells: Ids, lock: str) -> str:
    """What a worker needs to know to compute some blocks of a job."""
    sweep = job.sweep
    program = job.groups[blocks[0].group].program
    return json.dumps(
        {
            "studies": os.pathsep.join(map(str, registry.folders())),
            "plan": [sweep.study.name, sweep.experiment.name, sweep.scale],
            "settings": {**sweep.fixed, **{a.name: list(a.labels) for a in sweep.axes}},
            "seeds": sweep.seeds,
            "blocks": [[b.group, b.rows.tolist(), b.seeds.tolist(), *b[3:]] for b in blocks],
            "cells": cells.astype(str).tolist(),
            "identity": job.identities[program],
            "store": str(job.store.path.resolve()),
            "lock": [lock, job.store.locks.holder(lock)],
        }
    )


# ----------------------------------------------------------------------- on the worker


def dask_setup(worker: Any) -> None:
    """A worker of `local` leaves it to the coordinator what an interrupt from the keyboard means,
    which the terminal sends to all of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def work(text: str) -> "Finished":
    """Computes the blocks of an order, unless an earlier worker has stored them.

    Dask gives an order again if its worker dies before the result was fetched from it.
    """
    from provingground.engine import Block, Finished

    order = json.loads(text)
    lock, holder = order["lock"]
    store = Store(Path(order["store"]))
    store.must_stay()
    shared = bool(holder) and store.locks.holder(lock) == holder
    job = _job(
        order["studies"],
        json.dumps([order["plan"], order["settings"], order["seeds"]]),
        str(store.path) if shared else None,
    )
    blocks = [
        Block(group, np.array(rows, np.int32), np.array(seeds, np.int32), wide, deep)
        for group, rows, seeds, wide, deep in order["blocks"]
    ]
    cells = np.array(order["cells"], "S32")
    _check(job, blocks, cells, order)
    if shared and store.locks.is_signed(lock):  # and the worker died before that was known
        return Finished(b"", 0, 0.0, 0, 0.0)
    finished = job.chunk(blocks, cells)
    if shared:
        try:
            store.put_packed(job.study.name, finished.content)
            store.locks.sign(lock)
            return finished._replace(content=b"")
        except RunError:  # visible, but not writable from here
            pass
    return finished


@cache
def _job(studies: str, plan: str, store: str | None) -> "Job":
    """The job of an order, kept for the next one."""
    from provingground.engine import Job

    if studies:
        os.environ["PROVING_STUDIES"] = studies
    (name, experiment, scale), settings, seeds = json.loads(plan)
    owner = registry.study(name)
    sweep = grid.plan(owner, owner.experiment(experiment), scale, settings, seeds, yes=True)
    job = Job(sweep, Store() if store is None else Store(Path(store)))
    job.identities = {}  # each is looked at when its first order comes
    return job


def _check(job: "Job", blocks: Sequence["Block"], cells: Ids, order: dict[str, Any]) -> None:
    """Refuses an order that means something else here than where it came from."""
    group = job.groups[blocks[0].group]
    ordered = Identity(*order["identity"])
    known = job.identities.get(group.program)
    if known is None:
        known = _identity(job, Point(group.program, group.config), ordered)
        job.identities[group.program] = known
    if known.lowered != ordered.lowered:
        raise RunError(f"a worker has another version of {job.study.name}, or of its libraries")
    mine = []
    for block in blocks:
        rows = group._replace(points=group.points[block.rows], values=group.values[block.rows])
        seeds = [job.sweep.seeds[i] for i in block.seeds]
        mine.append(cell_ids(job.study, rows, known.fingerprint, job.data_digest, seeds).T.ravel())
    if not np.array_equal(np.concatenate(mine), cells):
        raise RunError(f"a worker reads the settings or the data of {job.study.name} differently")


def _identity(job: "Job", point: Point, ordered: Identity) -> Identity:
    """The identity of a program here; it is lowered only where its code is not that of there."""
    runs = what_runs(job.study, point.program, job.data, job.data_digest)
    if ordered.known and runs == ordered.runs:
        return ordered
    lowered = program_hash(job.study, point, job.data)
    return Identity(ordered.fingerprint, lowered, runs or f"lowered {lowered}", bool(runs))
