"""A study changed from outside: probes of one's own, and other parts of its training.

A *part* is a keyword-only argument of `simulate` with a function as its default, such as
`activation=jax.nn.relu`. A *probe* is a function of the last weights. Both are wrapped around the
simulator (`Changed`), and all else follows: the user's functions are code that `simulate` reaches,
so a changed program is a changed cell, and no cell of the study as it is stands for it.
"""

import dataclasses
import inspect
import json
import keyword
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Shaped

from provingground.config import probe
from provingground.errors import InputError, shortened, unknown
from provingground.grid import Group, Sweep
from provingground.identity import returned
from provingground.programs import data_of, probe_dims
from provingground.study import Simulator, Study
from provingground.train import overheard

TAKES = ("weights", "cfg", "key", "data")  # what a probe may ask for, by name
KINDS = "a number, or an array of numbers"
NO_WEIGHTS = (
    "it trains no weights by `iterate` or `descend` (it is a closed form, a recursion, a flow, or "
    "runs on the host), and a probe is a function of the last weights"
)
HIDDEN_WEIGHTS = (
    "it trains inside of a map or loop of its own, so there is no one training whose last weights "
    "a probe could be given"
)


def parts(simulator: Simulator) -> dict[str, Callable[..., Any]]:
    """What may be replaced in a simulator's training, by name, with what is there by default."""
    known = inspect.signature(simulator.simulate).parameters.values()
    return {p.name: p.default for p in known if p.kind is p.KEYWORD_ONLY and callable(p.default)}


# ------------------------------------------------------------------------------ what runs


class Probe(NamedTuple):
    """A function of the last weights, and which of `TAKES` it is given."""

    function: Callable[..., Any]
    takes: tuple[str, ...]

    def __call__(self, **given: Any) -> Any:
        if len(self.takes) == 1:  # whatever its name
            return self.function(given[self.takes[0]])
        return self.function(**{name: given[name] for name in self.takes})


@dataclass(frozen=True, eq=False)
class Changed:
    """A training with some parts replaced, and measured by more probes at its end."""

    simulate: Callable[..., Any]
    parts: Mapping[str, Callable[..., Any]]
    probes: Mapping[str, Probe]
    own: tuple[str, ...]  # the simulator's own probes
    made: Callable[..., Any]  # the class of all of them

    def __call__(self, cfg: Any, key: Any, *data: Any) -> Any:
        with overheard() as tape:
            found = self.simulate(cfg, key, *data, **self.parts)
        if not self.probes:
            return found
        training = tape[-1] if tape else None
        if training is None:
            raise InputError(HIDDEN_WEIGHTS if tape else NO_WEIGHTS)
        given = dict(weights=training.last, cfg=cfg, key=key, data=data[0] if data else None)
        more = {name: _measured(name, probe, given) for name, probe in self.probes.items()}
        return self.made(**{name: getattr(found, name) for name in self.own}, **more)


def _measured(name: str, probe: Probe, given: Mapping[str, Any]) -> Array:
    """What a probe makes of the weights."""
    try:
        value = jnp.asarray(probe(**given))
    except Exception as error:
        weights = eqx.tree_pformat(given["weights"], width=10_000)
        raise InputError(
            f"the probe '{name}' fails with {type(error).__name__}: {error}; it has to return "
            f"{KINDS}, and the weights are {weights}"
        ) from error
    if value.dtype.kind not in "biuf":
        raise InputError(f"the probe '{name}' returns {value.dtype}, not {KINDS}")
    if not value.size:
        raise InputError(f"the probe '{name}' returns an array of the shape {value.shape}: nothing")
    return value


# -------------------------------------------------------------------------- what is given


class Changes(NamedTuple):
    """What a user gave: probes and parts by name."""

    probes: Mapping[str, Probe]
    parts: Mapping[str, Callable[..., Any]]


def changes(probes: Any, parts: Any) -> Changes:
    """Probes (a function, several, or a dict of them) and parts (a dict), checked by themselves."""
    if probes is None or isinstance(probes, Mapping):
        given = list((probes or {}).items())
    else:
        several = probes if isinstance(probes, Sequence) else [probes]
        given = [(_name_of(function), function) for function in several]
    found: dict[str, Probe] = {}
    for name, function in given:
        if not callable(function):
            raise InputError(
                f"probes: {shortened(function)} is no function; give a function of the weights, a "
                "list of such, or a dict of names and functions"
            )
        fit = isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)
        if not fit or keyword.iskeyword(name) or name.startswith("config_"):
            raise InputError(
                f"a probe cannot be called {shortened(name)}; give it another name, as in "
                "probes={'norm': ...}"
            )
        if name in found:
            raise InputError(f"there are two probes called '{name}'; give them names in a dict")
        found[name] = Probe(function, _takes(name, function))
    if parts is not None and not isinstance(parts, Mapping):
        raise InputError(
            f"parts = {shortened(parts)} is not allowed: a dict of names and functions, such as "
            "{'activation': jnp.tanh}"
        )
    for name, function in (parts or {}).items():
        if not callable(function):
            raise InputError(f"parts: {name} = {shortened(function)} is no function")
    return Changes(found, dict(parts or {}))


def _name_of(function: Any) -> str:
    """What a function is called; of a `partial`, the function inside."""
    name = getattr(function, "__name__", None)
    return name or _name_of(getattr(function, "func", type(function)))


def _told(function: Any) -> str:
    """A part in words: its name, and of a `partial` also the numbers that it sets."""
    set_ = getattr(function, "keywords", {})
    plain = [f"{k}={v}" for k, v in set_.items() if isinstance(v, (bool, int, float, str))]
    rest = ["..."] if len(plain) < len(set_) else []
    return f"{_name_of(function)}({', '.join(plain + rest)})" if set_ else _name_of(function)


def _takes(name: str, function: Any) -> tuple[str, ...]:
    """What a probe asks for by the names of its arguments; a lone argument is the weights."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # something built in
        return ("weights",)
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p for p in known if p.default is p.empty and p.kind not in many]
    names = tuple(p.name for p in needed)
    if len(needed) == 1 and needed[0].kind is not inspect.Parameter.KEYWORD_ONLY:
        return names if names[0] in TAKES else ("weights",)
    if names and all(n in TAKES for n in names):
        return names
    raise InputError(
        f"the probe '{name}' takes ({', '.join(names)}); it may take one argument, the weights, or "
        f"several by name out of {', '.join(TAKES)}"
    )


# ------------------------------------------------------------------------------ planning


def changed(sweep: Sweep, given: Changes, trace: bool = True) -> Sweep:
    """A sweep whose simulators have other parts and more probes.

    The dims of a probe are said by its return type (`Float[Array, "neuron"]`), or seen by tracing
    the training; without `trace` only where the type does not say them.
    """
    if not (given.probes or given.parts):
        return sweep
    study, groups = sweep.study, sweep.groups()
    new: dict[str, Simulator] = {}
    for name in dict.fromkeys(group.program.simulator for group in groups):
        of_it = [group for group in groups if group.program.simulator == name]
        try:
            new[name] = _changed(sweep, name, of_it, given, trace)
        except InputError as error:
            raise InputError(
                f"the simulator '{name}' of {study.name}: {error}"
            ) from error.__cause__
    study = dataclasses.replace(study, simulators={**study.simulators, **new})
    return dataclasses.replace(sweep, study=study)


def _changed(
    sweep: Sweep, name: str, groups: Sequence[Group], given: Changes, trace: bool
) -> Simulator:
    simulator = sweep.study.simulators[name]
    known = parts(simulator)
    for part in given.parts:
        if part not in known:
            raise unknown("part", part, known)
    own = {p: f for p, f in given.parts.items() if f is not known[p]}
    if not (own or given.probes):
        return simulator
    made = simulator.probes
    training = Changed(simulator.simulate, own, given.probes, tuple(probe_dims(made)), made)
    if given.probes:
        if simulator.host:
            raise InputError(NO_WEIGHTS)
        _must_be_free(sweep, made, given.probes)
        dims = {n: _declared(p.function) for n, p in given.probes.items()}
        if trace or None in dims.values():
            dims |= _seen(sweep, training, groups, dims)
        made = _with(made, given.probes, dims)
        training = dataclasses.replace(training, made=made)
    told = {"parts": {p: _told(f) for p, f in own.items()}, "probes": list(given.probes)}
    return dataclasses.replace(
        simulator, simulate=training, probes=made, changes=json.dumps(told, sort_keys=True)
    )


def _must_be_free(sweep: Sweep, probes: type, given: Mapping[str, Probe]) -> None:
    """Refuses a probe with the name of something that the Dataset has already."""
    known = probe_dims(probes)
    taken = {*known, *(dim for dims in known.values() for dim in dims), *sweep.table}
    taken |= {"seed", "diverged", *(axis.name for axis in sweep.axes)}
    for name in given:
        if name in taken:
            raise InputError(
                f"a probe cannot be called '{name}': the Dataset has that already; give it another "
                f"name, as in probes={{'my_{name}': ...}}"
            )


def _declared(function: Any) -> tuple[str, ...] | None:
    """The dims that a function's return type names; None if it does not."""
    said = None
    with suppress(Exception):  # whatever names cannot be looked up
        said = getattr(typing.get_type_hints(function).get("return"), "dim_str", None)
    dims = None if said is None else tuple(said.split())
    return dims if dims is not None and all(map(str.isidentifier, dims)) else None


def _seen(
    sweep: Sweep,
    training: Changed,
    groups: Sequence[Group],
    declared: Mapping[str, tuple[str, ...] | None],
) -> dict[str, tuple[str, ...]]:
    """The dims of probes, from the shapes that they have: declared ones, or numbered."""
    shaped = dataclasses.replace(training, made=dict)
    data = data_of(sweep.study, sweep.trainings.data)
    first: dict[str, tuple[int, ...]] = {}
    for group in groups:
        try:
            found = returned(sweep.study, shaped, group.program, group.config, data)
        except InputError:
            raise
        except Exception:  # the training itself fails: it is told when it is compiled
            return {n: dims or () for n, dims in declared.items()}
        for name in declared:
            shape = first.setdefault(name, found[name].shape)
            if found[name].shape != shape:
                raise InputError(
                    f"the probe '{name}' has the shape {found[name].shape} with "
                    f"{dict(group.program.shape)}, and {shape} with {dict(groups[0].program.shape)}"
                    ": one Dataset cannot hold both; return a number, or sweep less"
                )
        if not any(first.values()):  # single numbers have one shape everywhere
            break
    dims = {}
    for name, said in declared.items():
        rank = len(first[name])
        dims[name] = tuple(f"{name}_{i}" for i in range(1, rank + 1)) if said is None else said
        if len(dims[name]) != rank:
            raise InputError(
                f"the probe '{name}' returns the shape {first[name]}; its type names the dims "
                f"({', '.join(dims[name])})"
            )
    axes = {"seed", *(axis.name for axis in sweep.axes)}
    for name, of_it in dims.items():
        if (twice := [d for d in of_it if d in axes]) or len(set(of_it)) < len(of_it):
            raise InputError(f"the probe '{name}' cannot have the dims {of_it}: {twice or 'twice'}")
    return dims


def _with(
    probes: type, given: Mapping[str, Probe], dims: Mapping[str, tuple[str, ...] | None]
) -> type:
    """The class of a simulator's probes and of more."""
    kinds: dict[str, Any] = {n: probes.__annotations__[n] for n in probe_dims(probes)}
    known = getattr(probes, "__dataclass_fields__", {})
    fields = {n: probe(**known[n].metadata) for n in kinds if n in known and known[n].metadata}
    for name, (function, _) in given.items():
        kinds[name] = Shaped[Array, " ".join(dims[name] or ())]
        says = (getattr(function, "__doc__", None) or "").strip().partition("\n")[0]
        fields[name] = probe(says or name)
    body = {"__annotations__": kinds, "__module__": probes.__module__, **fields}
    return types.new_class(probes.__name__, (eqx.Module,), {}, lambda space: space.update(body))


def told(study: Study) -> str:
    """The functions that stand in the place of parts, for a message about a training that failed:
    what they return goes wrong in the study's code, not in theirs."""
    found = [s.simulate.parts for s in study.simulators.values() if isinstance(s.simulate, Changed)]
    places = [f"{name} = {_place(function)}" for name, function in (found or [{}])[0].items()]
    return f"; with {', '.join(places)} in place of its own" * bool(places)


def _place(function: Any) -> str:
    """A function, and where it is written, if it is in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    at = f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
    return _told(function) + at


def of(study: Study) -> dict[str, Any]:
    """What was changed in a study, as names: its `parts` and `probes`; empty if it is as it is."""
    told = (simulator.changes for simulator in study.simulators.values())
    return next((json.loads(text) for text in told if text), {})
