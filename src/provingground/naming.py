"""What a piece of code names: globals, attributes taken of them, and imports."""

import dis
import types
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

Chain = tuple[str, ...]  # a name, and the attributes that are taken of it at once


class Import(NamedTuple):
    """A module (and a name of it) that code imports when it runs."""

    level: int
    module: str
    some: bool  # names of it, not the module itself
    name: str = ""


class Names(NamedTuple):
    """What code looks up, that of functions inside of it included."""

    of_globals: frozenset[Chain]
    of_variables: frozenset[Chain]  # of the functions around it, and those that hold imports
    imports: Mapping[str, Import]  # by variable
    writes: bool  # to global variables


LOADS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "STORE_FAST_LOAD")
BETWEEN = ("CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "RESUME", "PUSH_NULL", "SWAP")


@lru_cache(maxsize=20_000)
def names_of(code: types.CodeType) -> Names:
    inside = [names_of(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    of_globals = {chain for names in inside for chain in names.of_globals}
    of_variables = {chain for names in inside for chain in names.of_variables}
    imports = {k: v for names in inside for k, v in names.imports.items()}
    writes = any(names.writes for names in inside)
    chain: list[str] = []
    into = of_globals
    constants: list[Any] = [0, None]
    module = held = None  # what is being imported, and what of it is about to be named
    for step in dis.get_instructions(code):
        kind, value = step.opname, step.argval
        if kind in BETWEEN:
            continue
        if kind in ("LOAD_ATTR", "LOAD_METHOD") and chain:
            chain.append(value)
            continue
        if chain:
            into.add(tuple(chain))
            chain = []
        if kind in ("LOAD_GLOBAL", "LOAD_NAME"):
            chain, into = [value], of_globals
        elif kind.startswith(LOADS):
            *before, last = value if isinstance(value, tuple) else (value,)
            of_variables |= {(name,) for name in before}
            chain, into = [last], of_variables
        elif kind in ("LOAD_CONST", "LOAD_SMALL_INT"):
            constants = [constants[1], value]
        elif kind == "IMPORT_NAME":
            level, names = constants
            module = Import(level or 0, value, bool(names))
            held = module if names or level else module._replace(module=value.partition(".")[0])
        elif kind == "IMPORT_FROM" and module is not None:  # also of `import a.b as c`
            held = module._replace(name=value) if module.some else module
        elif kind.startswith("STORE_") and held is not None:
            imports[value] = held
            held = None
        writes |= kind in ("STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_STAR")
    if chain:
        into.add(tuple(chain))
    kept = {c for c in of_variables if c[0] in imports or c[0] in code.co_freevars}
    return Names(frozenset(of_globals), frozenset(kept), imports, writes)
