"""The harness: one set of trainings, run by the engine and by what a user would write instead.

A `Workload` holds a study, the settings of its sweep and a ladder of peers (`rungs`). Ours and the
peers first get the same weights and data and must agree; then each draws its own, and they are
timed in turns (ours, rung 1, rung 2, ours, ...), so that a busy moment hits all of them.
"""

import importlib
import importlib.util
import itertools
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
import xarray as xr

import provingground as pg
from provingground.keys import seed_key
from provingground.study import Experiment, Prediction, Simulator, Study

Scale = Literal["tiny", "quick", "full"]
Trial = tuple[Any, int]  # a Config and a seed
Source = Callable[[Sequence[Trial]], Any]  # weights and data of some trainings, stacked
Results = dict[str, np.ndarray]  # one row per training

TORCH = importlib.util.find_spec("torch") is not None
TOLERANCE = 1e-3


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

    It is linear in the number of trainings, so a slow one is timed on `1 / share` of them.
    """

    run: Callable[[Sequence[Trial], Source], Results]
    note: str
    share: Mapping[Scale, int] = field(default_factory=dict)
    full_only: bool = False


@dataclass(frozen=True)
class Workload:
    """One rung ladder: what is trained, at which sizes, against which peers."""

    name: str
    says: str
    study: Study
    experiment: str
    settings: Mapping[Scale, Mapping[str, Any]]
    measured: tuple[str, ...]  # the probes that must agree
    cost: Callable[[xr.Dataset], Cost]
    numbers: Callable[[Any, Any], Any]  # what ours draws: a function of cfg and key
    peers: str  # the module with `RUNGS` and `draw`
    targets: Mapping[str, Target]
    trainings_per_cell: int = 1
    extras: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    about: Callable[[xr.Dataset], str] = lambda ds: ""

    def ours(self, scale: Scale, **more: Any) -> xr.Dataset:
        """The sweep, by the engine, into a fresh store."""
        with tempfile.TemporaryDirectory() as store:
            settings = dict(self.settings[scale]) | more
            return pg.run(self.study, self.experiment, store=store, progress=False, **settings)

    def rungs(self, scale: Scale) -> dict[str, Rung]:
        rungs: dict[str, Rung] = importlib.import_module(self.peers).RUNGS if TORCH else {}
        return {n: r for n, r in rungs.items() if scale != "quick" or not r.full_only}

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
        make = self.study.simulator(self.study.experiment(self.experiment).simulator)[1].config
        return [
            (make(**dict(zip(axes, values, strict=True))), seed)
            for *values, seed in itertools.product(*axes.values(), seeds)
        ]

    def agreement(self, scale: Scale = "tiny") -> dict[str, float]:
        """The largest relative deviation of every rung from ours, with equal weights and data."""
        ds, trials = self.ours(scale), self.trials(scale)
        ours = {n: np.stack([cell(ds[n], t) for t in trials]) for n in self.measured}
        found = {}
        for name, rung in self.rungs("full").items():
            theirs = rung.run(trials, self.given)
            found[name] = max(deviation(ours[n], theirs[n]) for n in self.measured)
        return found


def cell(values: xr.DataArray, trial: Trial) -> np.ndarray:
    """The probe of one training."""
    cfg, seed = trial
    at = {n: getattr(cfg, n) for n in values.dims if n != "seed" and hasattr(cfg, str(n))}
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
            Experiment(n, says, {}, 1, (), lambda ds: None, simulator=n) for n in simulators
        ),
    )


# ------------------------------------------------------------------------------ timing


class Timing(NamedTuple):
    """Seconds of the repetitions (scaled up to all trainings), and of the first call beyond."""

    seconds: list[float]
    compile: float
    share: int = 1

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))


def timed(function: Callable[[], Any]) -> float:
    """Seconds of a call whose result has reached the host."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def race(work: Workload, scale: Scale, repetitions: int) -> tuple[dict[str, Timing], xr.Dataset]:
    """Ours, extras and rungs in turns; and our Dataset. The first call is apart."""
    trials, rungs = work.trials(scale), work.rungs(scale)
    runners: dict[str, Callable[[], Any]] = {"ours": lambda: work.ours(scale)}
    for name, more in work.extras.items():
        runners[f"ours, {name}"] = lambda more=more: work.ours(scale, **more)
    shares = dict.fromkeys(runners, 1)
    for name, rung in rungs.items():
        shares[name] = min(rung.share.get(scale, 1), len(trials))
        some = spread(trials, shares[name])
        runners[name] = lambda rung=rung, some=some: rung.run(some, work.draw())
    ds = work.ours(scale)
    first = {name: timed(run) for name, run in runners.items() if name != "ours"}
    raise NotImplementedError(ds, first)


def spread(trials: list[Trial], share: int) -> list[Trial]:
    """Every `share`-th training, so that the part is like the whole."""
    return trials[share // 2 :: share]
