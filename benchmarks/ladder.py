"""The harness: one set of trainings, run by the engine and by what a user would write instead.

A `Workload` holds a study, the settings of its sweep and a ladder of peers (`rungs`). Ours and the
peers first get the same weights and data and must agree; then each draws its own, and they are
timed in turns (ours, rung 1, rung 2, ours, ...), so that a busy moment hits all of them. Before
that, peers choose their batch sizes and the like by measuring.
"""

import atexit
import functools
import importlib
import importlib.util
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
import xarray as xr
from jax.experimental.compilation_cache import compilation_cache

import provingground as pg
from provingground.errors import DataMissing
from provingground.keys import seed_key
from provingground.programs import data_of
from provingground.study import Experiment, Prediction, Simulator, Study, Trainings

Scale = Literal["tiny", "quick", "full", "large"]  # large: full with 16 times the trainings
Trial = tuple[Any, int]  # a Config and a seed
Source = Callable[[Sequence[Trial]], Any]  # weights and data of some trainings, stacked
Results = dict[str, np.ndarray]  # one row per training

TORCH = importlib.util.find_spec("torch") is not None
TOLERANCE = 1e-3
_FOLDERS: list[str] = []
_PROGRAMS = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, _PROGRAMS, ignore_errors=True)


class Cost(NamedTuple):
    """What the sweep needs at least, by our algebra: the floor under its time."""

    flops: float
    normals: float


class Target(NamedTuple):
    """How many times faster than the PyTorch loop, and than the best rung, a sweep should be."""

    loop: float | None
    best: float | None


@dataclass(frozen=True)
class Rung:
    """A peer: runs some trainings with numbers from a source, and returns what ours measures.

    It is linear in the number of trainings, so a slow one is timed on `1 / share` of them. Of the
    `choices`, arguments of `run` with the values to try, it takes the best on this machine.
    """

    run: Callable[..., Results]
    note: str
    share: Mapping[Scale, int] = field(default_factory=dict)
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    scales: tuple[Scale, ...] = ("tiny", "quick", "full")

    def with_choices(self, chosen: Mapping[str, Any]) -> "Rung":
        """The rung with nothing left to choose; its note says what was chosen."""
        told = [f"{name} {value}" for name, value in chosen.items()]
        run = functools.partial(self.run, **chosen)
        return replace(self, run=run, note=", ".join([self.note, *told]), choices={})


@dataclass(frozen=True)
class Workload:
    """One rung ladder: what is trained, at which sizes, against which peers."""

    name: str
    says: str
    study: Study
    experiment: str
    settings: Mapping[Scale, Mapping[str, Any]]
    measured: tuple[str, ...]  # the probes that must agree
    cost: Callable[[xr.Dataset, Any], Cost]  # of a Dataset and one of its Configs
    numbers: Callable[[Any, Any], Any]  # what ours draws: a function of cfg and key
    peers: str  # the module with `RUNGS` and `draw`
    targets: Mapping[str, Target]
    trainings_per_cell: int = 1
    extras: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    about: Callable[[xr.Dataset], str] = lambda ds: ""

    def lacks(self) -> str:
        """Why it cannot run here: the data that are not here, and the command that gets them."""
        try:
            data_of(self.study, self.study.experiment(self.experiment).trainings.data)
        except DataMissing as missing:
            return str(missing)
        return ""

    def ours(self, scale: Scale, **more: Any) -> xr.Dataset:
        """The sweep, by the engine, into a fresh store; programs are kept for the process."""
        with compiled_in(_PROGRAMS), tempfile.TemporaryDirectory() as store:
            settings = dict(self.settings[scale]) | more
            return pg.run(self.study, self.experiment, store=store, progress=False, **settings)

    def rungs(self, scale: Scale) -> dict[str, Rung]:
        rungs: dict[str, Rung] = importlib.import_module(self.peers).RUNGS if TORCH else {}
        return {n: r for n, r in rungs.items() if scale in r.scales}

    def draw(self) -> Source:
        return importlib.import_module(self.peers).draw

    def given(self, trials: Sequence[Trial]) -> Any:
        """The numbers that ours draws, as tensors for the peers."""
        from benchmarks.peers import tensor

        found = [self.numbers(cfg, seed_key(self.study.name, seed)) for cfg, seed in trials]
        return jax.tree.map(lambda *rows: tensor(np.stack(rows)), *found)

    def trials(self, scale: Scale) -> list[Trial]:
        """The cells of a sweep, seeds last."""
        settings = dict(self.settings[scale])
        seeds = range(settings.pop("seeds"))
        axes = {n: v if isinstance(v, list) else [v] for n, v in settings.items()}
        make = self.study.simulator(self.study.experiment(self.experiment).trainings.simulator)[
            1
        ].config
        return [
            (make(**dict(zip(axes, values, strict=True))), seed)
            for *values, seed in itertools.product(*axes.values(), seeds)
        ]

    def reference(self) -> Results:
        """What ours finds in a few small trainings."""
        ds = self.ours("tiny")
        return {n: np.stack([cell(ds[n], t) for t in self.trials("tiny")]) for n in self.measured}

    def deviation(self, rung: Rung, reference: Results) -> float:
        """The largest deviation of a rung from ours, weights and data being the same."""
        theirs = rung.run(self.trials("tiny"), self.given)
        return max(deviation(reference[n], theirs[n]) for n in self.measured)


@contextmanager
def compiled_in(folder: Path) -> Iterator[None]:
    """Within the block jax keeps compiled programs in a folder; inside of another, in its."""
    before = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    if before in _FOLDERS:
        yield
        return
    _FOLDERS.append(str(folder))
    compilation_cache.reset_cache()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    try:
        yield
    finally:
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", before)
        _FOLDERS.remove(str(folder))


def cell(values: xr.DataArray, trial: Trial) -> np.ndarray:
    """The probe of one training."""
    cfg, seed = trial
    at = {n: getattr(cfg, str(n)) for n in values.dims if hasattr(cfg, str(n))}
    return values.sel(at | {"seed": seed}).values


def deviation(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest deviation over the largest value; NaN counts as infinite."""
    gap = np.abs(ours.astype(float) - theirs).max() / np.abs(ours).max()
    return float(gap) if np.isfinite(gap) else float("inf")


def study(
    name: str, says: str, config: type, probes: type, **simulators: Callable[..., Any]
) -> Study:
    """A study with nothing but simulators, and an experiment of the same name for each."""
    return Study(
        name,
        says,
        "",
        {n: Simulator(config, simulate, probes) for n, simulate in simulators.items()},
        lambda cfg: Prediction((), {}),
        tuple(
            Experiment(
                n,
                says,
                Trainings({}, 1, simulator=n),
                (),
                lambda ds: None,
            )
            for n in simulators
        ),
    )


# ------------------------------------------------------------------------------ timing


class Timing(NamedTuple):
    """Seconds of the repetitions (scaled up to all trainings), and of the first call beyond."""

    seconds: list[float]
    compile: float
    share: int = 1
    note: str = ""

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))


def timed(function: Callable[[], Any]) -> float:
    """Seconds of a call whose result has reached the host."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


class Ready(NamedTuple):
    """A rung with its choices made: how far it is from ours, and the seconds that this took."""

    rung: Rung
    deviation: float
    seconds: float


def prepared(work: Workload, scale: Scale) -> tuple[dict[str, Ready], dict[str, str]]:
    """The rungs of a scale; and of those that fail here, why."""
    found, failed = {}, {}
    rungs = work.rungs(scale)
    reference = work.reference() if rungs else {}
    for name, rung in rungs.items():
        start = time.perf_counter()
        try:
            best = rung.with_choices(chosen(rung, work.trials(scale), work.draw()))
            gap = work.deviation(best, reference)
            found[name] = Ready(best, gap, time.perf_counter() - start)
        except Exception as error:  # whatever a compiler or a device may raise
            failed[name] = reason(error)
        release()
    return found, failed


def reason(error: Exception) -> str:
    """In one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]


def chosen(rung: Rung, trials: Sequence[Trial], source: Source) -> dict[str, Any]:
    """The fastest value of each choice, one after another, the first of the others until then.

    How a step is written and how many seeds go together depend on each other: all pairs of these
    are tried. What fails, for want of memory perhaps, is not taken; if all fail, the rung does.
    """
    seeds = len({seed for _, seed in trials})
    choices = {n: list(values) for n, values in rung.choices.items()}
    if "seeds" in choices:  # not more than there are
        choices["seeds"] = list(dict.fromkeys(min(k, seeds) for k in choices["seeds"]))
    best = {n: values[0] for n, values in choices.items()}
    pair = [n for n in ("form", "seeds") if n in choices]
    for names in (pair, *([n] for n in choices if n not in pair)):
        tries = [
            dict(zip(names, values, strict=True))
            for values in itertools.product(*(choices[n] for n in names))
        ]
        seconds, failure = {}, None
        for i, some in enumerate(tries) if len(tries) > 1 else ():
            try:
                seconds[i] = seconds_per_training(rung, best | some, trials, source)
            except Exception as error:
                failure = error.with_traceback(None)  # which would hold on to memory
        if failure and not seconds:
            raise failure
        best |= tries[min(seconds, key=seconds.__getitem__, default=0)]
    return best


def seconds_per_training(
    rung: Rung, choice: dict[str, Any], trials: Sequence[Trial], source: Source
) -> float:
    """Of one batch, all settings of as many seeds as go together; the better of two calls."""
    first = set(itertools.islice(dict.fromkeys(s for _, s in trials), choice.get("seeds", 1)))
    some = [trial for trial in trials if trial[1] in first]
    try:
        rung.run(some, source, **choice)
        return min(timed(lambda: rung.run(some, source, **choice)) for _ in range(2)) / len(some)
    finally:
        release()


def release() -> None:
    """The device's memory, of what peers keep."""
    if TORCH:
        importlib.import_module("benchmarks.peers.repeat").release()


def race(
    work: Workload, scale: Scale, rungs: Mapping[str, Ready], repetitions: int
) -> tuple[dict[str, Timing], xr.Dataset, dict[str, str]]:
    """Ours, its variants and the rungs in turns; our Dataset; and why rungs failed.

    First calls compile: apart, and with them the choices of the rungs.
    """
    trials = work.trials(scale)
    found: list[xr.Dataset] = []
    runs: dict[str, Callable[[], Any]] = {"ours": lambda: found.append(work.ours(scale))}
    for name, more in work.extras.items() if scale != "large" else ():
        runs[f"ours, {name}"] = lambda more=more: work.ours(scale, **more)
    first = {name: timed(run) for name, run in runs.items()}
    shares, notes, failed = dict.fromkeys(runs, 1), dict.fromkeys(runs, ""), {}
    for name, (rung, _, seconds) in rungs.items():
        some = spread(trials, rung.share.get(scale, 1))
        # where nothing compiles, a single training is enough to warm up
        warm = some if "large" in rung.scales else trials[:1]
        try:
            spent = timed(lambda rung=rung, warm=warm: rung.run(warm, work.draw()))
        except Exception as error:
            failed[name] = reason(error)
            continue
        runs[name] = lambda rung=rung, some=some: rung.run(some, work.draw())
        shares[name], notes[name] = len(trials) // len(some), rung.note
        if warm is some:
            first[name] = seconds + spent
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repetitions):
        for name, run in runs.items():
            times[name].append(timed(run) * shares[name])
    release()
    return (
        {
            name: Timing(s, max(0.0, first.get(name, 0) - np.median(s)), shares[name], notes[name])
            for name, s in times.items()
        },
        found[0],
        failed,
    )


def spread(trials: list[Trial], share: int) -> list[Trial]:
    """One training of every `share` in a row, now early and now late among them."""
    share = next(k for k in range(min(share, len(trials)), 0, -1) if len(trials) % k == 0)
    return [trials[i * share + (7 * i + share // 2) % share] for i in range(len(trials) // share)]
