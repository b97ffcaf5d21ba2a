"""What a page may ask for: some cells of an experiment, in the words of the command line."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from provingground.errors import InputError, shortened

if TYPE_CHECKING:
    from provingground.engine import Forecast, Job
    from provingground.store import Store

MOST_CELLS = 20_000  # of one request
MOST_SETTINGS = 64
LONGEST_TEXT = 2_000


class Asked(NamedTuple):
    """An experiment, with settings and seeds as the command line takes them."""

    target: str
    scale: str = "quick"
    settings: tuple[str, ...] = ()
    seeds: str | None = None

    def planned(self, store: "Store", *, trace: bool = True) -> "Job":
        """The sweep, checked as on the command line; see `proving run`."""
        from provingground import grid, parsing, planning

        owner, which = planning.resolve(self.target)
        scale: Any = self.scale
        settings = parsing.parse_settings(self.settings, *grid.declared(owner, which, scale))
        seeds = parsing.parse_seeds(self.seeds, which.trainings.seeds_at(scale))
        cells = grid.plan(owner, which, scale, settings, seeds).cells
        if cells > MOST_CELLS:
            raise InputError(
                f"{cells} cells are more than the {MOST_CELLS} that a page may ask for; "
                "`proving run` takes any number"
            )
        return planning.job(
            owner, which.name, scale=scale, seeds=seeds, store=store, trace=trace, settings=settings
        )


def asked(body: Any) -> Asked:
    """What a request asks for, if it has the right form."""
    if not isinstance(body, Mapping):
        raise InputError("a request is an object with an experiment and its settings")
    if extra := [name for name in body if name not in ("experiment", *Asked._fields[1:])]:
        raise InputError(f"{shortened(extra[0])} is nothing that a request has")
    target, seeds = body.get("experiment"), body.get("seeds")
    settings, scale = body.get("settings", []), body.get("scale", "quick")
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        seeds = str(seeds)
    if not isinstance(settings, list) or len(settings) > MOST_SETTINGS:
        raise InputError(f"settings are a list of at most {MOST_SETTINGS} texts NAME=VALUES")
    texts = [target, scale, *settings, *([] if seeds is None else [seeds])]
    if not all(isinstance(text, str) and len(text) <= LONGEST_TEXT for text in texts):
        raise InputError("experiment, scale, settings and seeds are short texts")
    told = None if seeds is None else str(seeds)
    return Asked(str(target), str(scale), tuple(map(str, settings)), told)


def conditions(body: Any) -> dict[str, Any]:
    """The conditions and predictions of a study's theory at some settings, for a page."""
    from provingground import api, parsing, planning
    from provingground.config import pars

    if not isinstance(body, Mapping) or not isinstance(body.get("study"), str):
        raise InputError("a request is an object with a study and its settings")
    given = body.get("settings", {})
    if not isinstance(given, Mapping) or len(given) > MOST_SETTINGS:
        raise InputError(f"settings are an object of at most {MOST_SETTINGS} parameters")
    owner, experiment = planning.owner_of(body["study"])
    if experiment:
        raise InputError("conditions are those of a study")
    table = pars(owner.simulator()[1].config)
    texts = [f"{name}={_text(value)}" for name, value in given.items()]
    told = api.theory(owner, settings=parsing.parse_settings(texts, {}, table))
    return {
        "conditions": [
            {
                "name": c.name,
                "left": figure(c.left),
                "relation": c.relation,
                "right": figure(c.right),
                "margin": figure(c.margin),
                "satisfied": bool(c.satisfied),
                "says": c.says,
            }
            for c in told.conditions
        ],
        "values": [
            {"name": name, "value": figure(value), "says": told.says.get(name, "")}
            for name, value in told.values.items()
        ],
    }


def _text(value: Any) -> str:
    """A setting of JSON as it would be written on the command line."""
    if isinstance(value, (str, bool, int, float)) and len(text := str(value)) <= LONGEST_TEXT:
        return text
    raise InputError("each parameter takes one value")


def figure(value: Any) -> Any:
    """A number for JSON; one that is not finite, which JSON has not, as the word of scripts."""
    value = float(value)
    words = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    return value if math.isfinite(value) else words[str(value)]


def strict(text: bytes | str) -> Any:
    """JSON, and nothing that only Python takes for it."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


class Estimate(NamedTuple):
    """What an answer will take. Seconds are None where nothing was timed yet."""

    cells: int
    left: int
    programs: int
    new: int  # programs that the worker has not compiled
    seconds: float | None
    compiling: float | None
    says: str


def estimate(
    job: "Job", warm: Sequence[str], watched: Mapping[str, tuple[float, float]]
) -> Estimate:
    """What a sweep will take in a worker that has compiled the `warm` programs.

    `watched` are the seconds of compiling and running the replay of a cell, by program.
    """
    from provingground.terminal import duration
    from provingground.words import count

    forecast: Forecast = job.forecast()
    names = {digest(job, group.program) for group in job.groups}
    new = len(names - set(warm))
    first = watched.get(digest(job, job.groups[0].program))
    seconds = forecast.seconds
    if seconds is not None and first is not None:
        seconds += first[1]
    elif forecast.untimed or first is None:
        seconds = None if forecast.untimed else seconds
    compiling = 0.0 if not new else (forecast.compiling + first[0] if first else None)
    cells = count(forecast.cells, "cell")
    if not forecast.left:
        says = f"{cells}, stored: shown at once, and trained again only to watch"
    else:
        stored = f", {forecast.stored} stored" if forecast.stored else ""
        says = f"{cells}{stored}; "
        if new:
            took = f", about {duration(compiling)}" if compiling else ""
            shape = count(new, "new shape") if new > 1 else "a new shape"
            says += f"compiling ({shape}{took}), then "
        says += (
            "not timed on this machine yet"
            if seconds is None
            else f"about {duration(max(seconds, 0.05))} of training"
        )
    return Estimate(forecast.cells, forecast.left, len(names), new, seconds, compiling, says)


def digest(job: "Job", program: Any) -> str:
    """The name of a program, for the server and its worker."""
    changes = job.study.simulators[program.simulator].changes
    return f"{job.study.name} {program.digest()}{changes}"
