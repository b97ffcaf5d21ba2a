"""The code that would run if a function were called now, as one hash.

From a function the walk goes on to its defaults and closure, to the globals that its code names,
to attributes of modules, and from there to all that these reach, whatever file they come from: a
study, a library of the user's, a notebook's cell, a patch. Packages that are installed (not
editable) count by name and version, and so does Python's library. Line numbers, names of files
and the order of sets do not count.

Where the code alone does not tell what would run (it reads files, the clock or the environment,
keeps results in a cache, looks names up by text), the walk says so: `Unknowable`.
"""

import builtins
import contextvars
import dataclasses
import enum
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from provingground.installed import PYTHON, top_of, version_of
from provingground.naming import Chain, Import, names_of

# What these do does not follow from the code that calls them.
IMPURE_MODULES = {
    "os", "posix", "nt", "time", "datetime", "random", "_random", "secrets", "uuid", "pathlib",
    "io", "_io", "socket", "subprocess", "tempfile", "glob", "shutil", "sys", "importlib",
    "inspect", "gc", "urllib", "http", "threading", "_thread", "platform", "linecache", "pkgutil",
}  # fmt: skip
IMPURE = {
    *(f"builtins.{n}" for n in ("open", "input", "eval", "exec", "compile", "globals", "locals")),
    *(f"builtins.{n}" for n in ("vars", "__import__", "breakpoint", "dir")),
    *(f"numpy.{n}" for n in ("load", "loadtxt", "genfromtxt", "fromfile", "memmap")),
}
CHECKERS = {"jaxtyping", "beartype"}  # what they wrap does what it did
SEEDED = {"default_rng", "Generator", "SeedSequence", "PCG64", "Philox", "RandomState"}
# Entries of a class or object that say nothing of what it does, or follow from the others.
ASIDE = {
    "__module__", "__name__", "__doc__", "__dict__", "__weakref__", "__annotations__",
    "__qualname__", "__firstlineno__", "__static_attributes__", "__annotate__", "__annotate_func__",
    "__annotations_cache__", "__abstractmethods__", "_abc_impl", "__match_args__",
    "__dataclass_params__", "__parameters__", "__orig_bases__",
}  # fmt: skip


class Unknowable(Exception):
    """Why code does not determine what would run."""


def digest(*roots: Any, pure: bool = True) -> str:
    """The hash of all code and values that can be reached from some functions or classes.

    With `pure=False` calls that read files, the clock or the environment are allowed, and count by
    their names.
    """
    walk = _Walk({"provingground", *(str(getattr(r, "__module__", "")) for r in roots)}, pure)
    for root in roots:
        walk.visit(root)
    return hashlib.sha256("\n".join(walk.found).encode()).hexdigest()


# ------------------------------------------------------------------------- pieces of code


def _home(function: types.FunctionType) -> str:
    """The module whose globals a function uses; empty if they are no module's."""
    name = function.__globals__.get("__name__", "")
    home = sys.modules.get(name)
    return name if home is not None and vars(home) is function.__globals__ else ""


def _functions(thing: Any, depth: int = 3) -> Iterator[types.FunctionType]:
    """The functions that a callable is made of: itself, what it wraps, holds, or (a class) has."""
    inner: list[Any] = []
    if isinstance(thing, types.FunctionType):
        yield thing
        for cell in thing.__closure__ or ():
            inner += _content(cell)
    elif isinstance(thing, type):
        inner += [v for v in vars(thing).values() if isinstance(v, types.FunctionType)]
    if (wrapped := getattr(thing, "__wrapped__", None)) is not None:
        inner.append(wrapped)
    for other in inner if depth else ():
        if callable(other) and not isinstance(other, type):
            yield from _functions(other, depth - 1)


def _offered(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _content(cell: types.CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # not filled yet
        return []


# ------------------------------------------------------------------------------- the walk

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
_BUILT_IN = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.MethodWrapperType,
)
_WORDS: tuple[Any, ...] = (
    typing.TypeVar,
    types.GenericAlias,
    types.UnionType,
    type(typing.Any),
    re.Pattern,
    range,
)


class _Walk:
    """Goes through all that can be reached, and writes down what it finds."""

    def __init__(self, near: Iterable[str], pure: bool) -> None:
        self.near = {top_of(name) for name in near}  # packages that are read even if installed
        self.pure = pure
        self.found: list[str] = []
        self.seen: dict[int, tuple[int, Any]] = {}  # the things stay alive, and so their numbers

    def visit(self, thing: Any) -> None:
        """Writes down a value, and all that it reaches."""
        if isinstance(thing, _PLAIN) and type(thing) in _PLAIN:
            self.found.append(repr(thing))
        elif isinstance(thing, (np.generic, np.dtype)):
            self.found.append(f"{getattr(thing, 'dtype', thing)} {thing!r}")
        elif isinstance(thing, (np.ndarray, jax.Array)):
            self._array(thing)
        elif type(thing) is tuple:
            self._many("tuple", thing)
        elif isinstance(thing, (set, frozenset)):
            if not all(type(x) in _PLAIN for x in thing):
                raise Unknowable("it uses a set of things without an order")
            self._many("set", sorted(thing, key=repr))
        elif id(thing) in self.seen:
            self.found.append(f"again {self.seen[id(thing)][0]}")
        else:
            self.seen[id(thing)] = len(self.seen), thing
            self._thing(thing)

    def _many(self, kind: str, things: Iterable[Any]) -> None:
        things = list(things)
        self.found.append(f"{kind} {len(things)}")
        for thing in things:
            self.visit(thing)

    def _array(self, array: Any) -> None:
        if isinstance(array, Tracer):
            raise Unknowable("it holds a value that is being traced")
        if isinstance(array, jax.Array) and jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
            array = jax.random.key_data(array)
        plain = np.asarray(array)
        if plain.dtype.hasobject:
            raise Unknowable("it holds an array of objects")
        content = hashlib.sha256(np.ascontiguousarray(plain).tobytes()).hexdigest()
        self.found.append(f"array {plain.dtype} {plain.shape} {content}")

    def _thing(self, thing: Any) -> None:
        if name := self._installed(thing):
            self.found.append(name)
        elif isinstance(thing, types.FunctionType):
            self._function(thing)
        elif isinstance(thing, type):
            self._class(thing)
        elif isinstance(thing, (list, tuple)):
            self.visit(type(thing))
            self._many("items", thing)
        elif isinstance(thing, (dict, types.MappingProxyType)):
            self.visit(type(thing))
            self._many("items", (x for item in thing.items() for x in item))
        elif isinstance(thing, slice):
            self._many("slice", (thing.start, thing.stop, thing.step))
        elif isinstance(thing, types.CodeType):
            self._code(thing)
        elif isinstance(thing, types.MethodType):
            self._many("method", (thing.__func__, thing.__self__))
        elif isinstance(thing, _BUILT_IN):
            self._many(f"built in {thing.__name__}", (_owner(thing),))
        elif isinstance(thing, functools.partial):
            self._many("partial", (thing.func, thing.args, thing.keywords))
        elif isinstance(thing, (staticmethod, classmethod)):
            self._many(type(thing).__name__, (thing.__func__,))
        elif isinstance(thing, property):
            self._many("property", (thing.fget, thing.fset))
        elif isinstance(thing, functools.cached_property):
            self._many("cached property", (thing.func,))
        elif isinstance(thing, dataclasses.Field):
            known = thing.default, thing.default_factory, thing.metadata
            self._many(f"field {thing.name} {thing.init}", known)
        elif isinstance(thing, enum.Enum):
            self._many(f"member {thing.name}", (type(thing), thing.value))
        elif isinstance(thing, contextvars.ContextVar):
            self._many(f"variable {thing.name}", (thing.get(None),))
        elif isinstance(thing, _WORDS) or type(thing).__module__ == "typing":
            self.found.append(repr(thing))
        elif isinstance(thing, jax.tree_util.PyTreeDef):
            self.found.append(str(thing))
        elif isinstance(thing, types.ModuleType):
            self._module(thing)
        elif isinstance(thing, functools._lru_cache_wrapper):
            raise Unknowable(f"{_called(thing)} keeps its results in a cache")
        elif type(thing).__name__ == "PjitFunction":
            self._many("jit", (thing.__wrapped__,))
        else:
            self._object(thing)

    # ------------------------------------------------------------------------ by name

    def _installed(self, thing: Any) -> str:
        """The name and version of what an installed package offers under its own name.

        Empty where something else was put in its place, or into it.
        """
        module = getattr(thing, "__module__", None)
        if isinstance(thing, types.BuiltinFunctionType) and module is None:
            module = type(thing.__self__).__module__  # a method of something built in
        name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
        if isinstance(thing, np.ufunc):
            module = "numpy"
        if not (isinstance(module, str) and isinstance(name, str)):
            return ""
        package = top_of(module)
        if package in self.near or (version := version_of(package)) is None:
            return ""
        if thing is not _offered(module, name):
            name = name.rpartition(".")[2]  # jax.Array has a name with dots
            if thing is not _offered(module, name):
                return ""
        if self._holds_other_code(thing):
            return ""
        self._check_pure(f"{module}.{name}")
        return f"{module}.{name} {version}"

    def _holds_other_code(self, thing: Any) -> bool:
        """Whether a function, or a method of a class, is not of an installed package."""
        homes = {top_of(home) for f in _functions(thing) if (home := _home(f))}
        return any(home in self.near or not version_of(home) for home in homes)

    def _module(self, module: types.ModuleType) -> None:
        """A module that is used as a whole: of an installed one, what was put into it counts."""
        version = version_of(package := top_of(module.__name__))
        if package in self.near or version is None or package in IMPURE_MODULES:
            raise Unknowable(f"the module {module.__name__} is used as a whole")
        self.found.append(f"module {module.__name__} {version}")
        for name, value in sorted(vars(module).items()):
            if callable(value) and not isinstance(value, type):
                self.found.append(f"{name} {getattr(value, '__qualname__', '')}")
                if self._holds_other_code(value) or isinstance(value, functools.partial):
                    self.visit(value)

    def _check_pure(self, name: str) -> None:
        random = name.startswith("numpy.random.") and name.split(".")[-1] not in SEEDED
        if self.pure and (top_of(name) in IMPURE_MODULES or name in IMPURE or random):
            raise Unknowable(f"it uses {name}")

    # ------------------------------------------------------------------------- by code

    def _function(self, function: types.FunctionType) -> None:
        home = _home(function)
        if top_of(home) in CHECKERS and (checked := function.__dict__.get("__wrapped__")):
            self.visit(checked)
            return
        far = bool(home) and top_of(home) not in self.near and version_of(top_of(home))
        if far:  # made by an installed package around something else, such as a vmap
            self.found.append(f"{home} {function.__code__.co_qualname} {far}")
        self.visit(function.__defaults__)
        self.visit(tuple(sorted((function.__kwdefaults__ or {}).items())))
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for cell in cells.values():
            for content in _content(cell):
                if not isinstance(content, types.ModuleType):  # of which some names are used
                    self.visit(content)
        if (wrapped := function.__dict__.get("__wrapped__")) is not None:
            self.visit(wrapped)
        if not far:
            self._code(function.__code__, function.__doc__)
            self._names(function, cells)

    def _code(self, code: types.CodeType, doc: str | None = None) -> None:
        """What a code object does, without where it stands and what it says of itself."""
        constants = list(code.co_consts)
        if doc is not None and constants[:1] == [doc]:
            constants[0] = None
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        self.found.append(f"code {code.co_code.hex()} {code.co_exceptiontable.hex()} {counts}")
        self.found.append(repr(names))
        for constant in constants:
            if isinstance(constant, types.CodeType):
                self._code(constant)
            else:
                self.visit(constant)

    def _names(self, function: types.FunctionType, cells: Mapping[str, types.CellType]) -> None:
        """What the names in a function's code stand for just now."""
        names = names_of(function.__code__)
        if names.writes:
            raise Unknowable(f"{_called(function)} changes global variables")
        scope = function.__globals__
        for chain in sorted(names.of_globals):
            if chain[0] in scope:
                self._follow(scope[chain[0]], chain)
            elif hasattr(builtins, chain[0]):
                self._follow(getattr(builtins, chain[0]), chain)
        for chain in sorted(names.of_variables):
            if chain[0] in names.imports:
                wanted = names.imports[chain[0]]
                module = _imported(wanted, scope.get("__package__") or scope.get("__name__"))
                path = (wanted.module, wanted.name) if wanted.name else (wanted.module,)
                self._follow(module, (*path, *chain[1:]))
            elif chain[0] in cells:
                for content in _content(cells[chain[0]]):
                    if isinstance(content, types.ModuleType):
                        self._follow(content, chain)

    def _follow(self, thing: Any, chain: Chain) -> None:
        """Goes from a module, or from what an object holds, along the attributes that are taken."""
        self.found.append(".".join(chain))
        for name in chain[1:]:
            if isinstance(thing, types.ModuleType):
                if not hasattr(thing, name):
                    return  # it will be missed, or made, when the code runs
                thing = getattr(thing, name)
            elif name in getattr(thing, "__dict__", ()) and not _computed(thing, name):
                thing = vars(thing)[name]
            else:
                break
        self.visit(thing)

    # ----------------------------------------------------------------------- by content

    def _class(self, kind: type) -> None:
        if not kind.__flags__ & _MADE_BY_A_STATEMENT:
            self.found.append(f"built in {kind.__module__}.{kind.__qualname__} {PYTHON}")
            return
        self._many(f"class {kind.__name__}", kind.__mro__[1:])
        for name, value in sorted(vars(kind).items()):
            if name not in ASIDE and not isinstance(value, _SLOTS):
                self.found.append(name)
                self.visit(value)

    def _object(self, thing: Any) -> None:
        """Something of any other kind: its class, and what it holds."""
        kind = type(thing)
        self._check_pure(name := f"{kind.__module__}.{kind.__qualname__}")
        if top_of(name) in IMPURE_MODULES:  # such as the environment: not what it holds just now
            self.found.append(name)
            return
        held = {k: v for k, v in getattr(thing, "__dict__", {}).items() if k not in ASIDE}
        for base in kind.__mro__:
            names = vars(base).get("__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                    held[name] = getattr(thing, name)
        slots = any("__slots__" in vars(base) for base in kind.__mro__)
        if not (hasattr(thing, "__dict__") or slots or kind is object):
            raise Unknowable(f"it holds a {kind.__module__}.{kind.__qualname__}")
        self.visit(kind)
        for base in (int, float, complex, str, bytes):  # a number or text of a class of its own
            if isinstance(thing, base):
                self.found.append(repr(base(thing)))  # pyright: ignore
        self._many("holds", (x for item in sorted(held.items()) for x in item))


_MADE_BY_A_STATEMENT = 1 << 9  # Python's own flag of classes that are not built in
# How fields are found, which follows from their names.
_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType, type(vars(Import)["level"]))


def _computed(thing: Any, name: str) -> bool:
    """Whether an attribute is not simply what an object holds under that name."""
    return isinstance(thing, type) or isinstance(vars(type(thing)).get(name), property)


def _owner(built_in: Any) -> Any:
    """Whose method something built in is, or the module it is a function of."""
    owner = getattr(built_in, "__objclass__", None) or built_in.__self__
    return owner.__name__ if isinstance(owner, types.ModuleType) else owner


def _called(thing: Any) -> str:
    return getattr(thing, "__qualname__", type(thing).__qualname__)


def _imported(wanted: Import, package: Any) -> Any:
    """The module that code imports when it runs."""
    name = "." * wanted.level + wanted.module
    try:
        module = importlib.import_module(name, package if wanted.level else None)
        if wanted.name and not hasattr(module, wanted.name):
            importlib.import_module(f"{module.__name__}.{wanted.name}")
    except ImportError as error:
        raise Unknowable(f"it imports {name}: {error}") from error
    return module
