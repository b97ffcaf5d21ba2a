"""Which changes of code count, and which do not."""

import contextvars
import dataclasses
import enum
import functools
import math
import os
import subprocess
import sys
import types
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import provingground as pg
from provingground import installed, reachable
from provingground.reachable import Unknowable, digest

_numbers = iter(range(10**9))


def module(text: str, **names: Any) -> Any:
    """A module of the user's, as if it were imported from a file."""
    made = types.ModuleType(f"written_{next(_numbers)}")
    vars(made).update(names)
    sys.modules[made.__name__] = made
    exec(compile(text, f"{made.__name__}.py", "exec"), vars(made))
    return made


def of(text: str, **names: Any) -> str:
    return digest(module(text, **names).simulate)


@pytest.fixture(autouse=True)
def _forget_modules():
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("written_"):
            del sys.modules[name]


HEADER = """
import functools
import jax, jax.numpy as jnp, numpy as np
"""


def changes(before: str, after: str, **names: Any) -> bool:
    return of(HEADER + before, **names) != of(HEADER + after, **names)


# ------------------------------------------------------------------------ what counts

COUNTS = {
    "arithmetic": ("def simulate(x): return x * 2", "def simulate(x): return x * 3"),
    "a helper": (
        "def f(x): return x\ndef simulate(x): return f(x)",
        "def f(x): return -x\ndef simulate(x): return f(x)",
    ),
    "a default": ("def simulate(x, y=1): return x + y", "def simulate(x, y=2): return x + y"),
    "a keyword's default": (
        "def simulate(x, *, y=1): return x + y",
        "def simulate(x, *, y=2): return x + y",
    ),
    "the order of parameters": (
        "def f(a, b): return a - b\ndef simulate(x): return f(a=x, b=1)",
        "def f(b, a): return b - a\ndef simulate(x): return f(a=x, b=1)",
    ),
    "a number": ("N = 1\ndef simulate(x): return x + N", "N = 2\ndef simulate(x): return x + N"),
    "the sign of zero": (
        "N = 0.0\ndef simulate(x): return x / N",
        "N = -0.0\ndef simulate(x): return x / N",
    ),
    "a type of number": (
        "N = 1\ndef simulate(x): return x + N",
        "N = 1.0\ndef simulate(x): return x + N",
    ),
    "an array": (
        "N = np.arange(3)\ndef simulate(x): return x + N",
        "N = np.arange(3) + 1\ndef simulate(x): return x + N",
    ),
    "the type of an array": (
        "N = np.arange(3)\ndef simulate(x): return x + N",
        "N = np.arange(3.)\ndef simulate(x): return x + N",
    ),
    "jax's array": (
        "N = jnp.arange(3)\ndef simulate(x): return x + N",
        "N = jnp.arange(3) + 1\ndef simulate(x): return x + N",
    ),
    "a list in a dict": (
        "D = {'a': [1, (2,)]}\ndef simulate(x): return x + D['a'][0]",
        "D = {'a': [1, (3,)]}\ndef simulate(x): return x + D['a'][0]",
    ),
    "what a function inside does": (
        "def simulate(x):\n    def f(y): return y + 1\n    return f(x)",
        "def simulate(x):\n    def f(y): return y + 2\n    return f(x)",
    ),
    "a helper of a function inside": (
        "def g(x): return x\ndef simulate(x):\n    return jax.lax.map(lambda y: g(y), x)",
        "def g(x): return -x\ndef simulate(x):\n    return jax.lax.map(lambda y: g(y), x)",
    ),
    "what a partial holds": (
        "def f(a, x): return a * x\nsimulate = functools.partial(f, 2)",
        "def f(a, x): return a * x\nsimulate = functools.partial(f, 3)",
    ),
    "what a jit holds": (
        "f = jax.jit(lambda x: x)\ndef simulate(x): return f(x)",
        "f = jax.jit(lambda x: -x)\ndef simulate(x): return f(x)",
    ),
    "what a vmap holds": (
        "f = jax.vmap(lambda x: x)\ndef simulate(x): return f(x)",
        "f = jax.vmap(lambda x: -x)\ndef simulate(x): return f(x)",
    ),
    "how a vmap maps": (
        "f = jax.vmap(jnp.sum, in_axes=0)\ndef simulate(x): return f(x)",
        "f = jax.vmap(jnp.sum, in_axes=1)\ndef simulate(x): return f(x)",
    ),
    "the gradient of a custom function": (
        "@jax.custom_jvp\ndef f(x): return x\nf.defjvp(lambda p, t: (p[0], t[0]))"
        "\ndef simulate(x): return f(x)",
        "@jax.custom_jvp\ndef f(x): return x\nf.defjvp(lambda p, t: (p[0], -t[0]))"
        "\ndef simulate(x): return f(x)",
    ),
    "a method": (
        "class A:\n    def f(self, x): return x\ndef simulate(x): return A().f(x)",
        "class A:\n    def f(self, x): return -x\ndef simulate(x): return A().f(x)",
    ),
    "a method of a base": (
        "class B:\n    def f(self, x): return x\nclass A(B): pass\n"
        "def simulate(x): return A().f(x)",
        "class B:\n    def f(self, x): return -x\nclass A(B): pass\n"
        "def simulate(x): return A().f(x)",
    ),
    "a property": (
        "class A:\n @property\n def f(self): return 1\ndef simulate(x): return A().f",
        "class A:\n @property\n def f(self): return 2\ndef simulate(x): return A().f",
    ),
    "what an object holds": (
        "class A: pass\na = A()\na.n = 1\ndef simulate(x): return x + a.n",
        "class A: pass\na = A()\na.n = 2\ndef simulate(x): return x + a.n",
    ),
    "which function of a package": (
        "def simulate(x): return jnp.sin(x)",
        "def simulate(x): return jnp.cos(x)",
    ),
    "which constant": ("def simulate(x): return np.pi", "def simulate(x): return np.e"),
    "what is imported inside": (
        "def simulate(x):\n    from math import floor as f\n    return f(x)",
        "def simulate(x):\n    from math import ceil as f\n    return f(x)",
    ),
    "what is caught": (
        "def simulate(x):\n    try: return 1 / x\n    except ZeroDivisionError: return x",
        "def simulate(x):\n    try: return 1 / x\n    except ValueError: return x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", COUNTS)
def test_it_counts(what):
    before, after = COUNTS[what]
    assert changes(before, after)
    assert not changes(before, before)


DOES_NOT = {
    "a remark": ("def simulate(x): return x", "# a remark\ndef simulate(x): return x  # yes"),
    "where it stands": (
        "def simulate(x): return x",
        "\n\n\ndef simulate(x):\n    return x",
    ),
    "what it says of itself": (
        "def simulate(x):\n    'one'\n    return x",
        "def simulate(x):\n    'another'\n    return x",
    ),
    "what is not used": ("def simulate(x): return x", "N = 3\ndef simulate(x): return x"),
    "an annotation": ("def simulate(x): return x", "def simulate(x: 'a') -> 'b': return x"),
}


@pytest.mark.parametrize("what", DOES_NOT)
def test_it_does_not_count(what):
    assert not changes(*DOES_NOT[what])


# --------------------------------------------------------------------------- patches


def test_a_patch_counts_and_taking_it_back_does_too():
    library = module("def f(x): return x\nN = 1")
    own = module("def simulate(x): return library.f(x) + library.N", library=library)
    before = digest(own.simulate)
    clean, library.f = library.f, lambda x: -x
    patched = digest(own.simulate)
    library.f = clean
    library.N = 2
    assert len({before, patched, digest(own.simulate)}) == 3
    library.N = 1
    assert digest(own.simulate) == before


def test_an_array_that_is_changed_in_place_counts():
    own = module("def simulate(x): return x + N", N=np.zeros(3))
    before = digest(own.simulate)
    own.N[1] = 1
    assert digest(own.simulate) != before


@pytest.mark.parametrize(
    "patch",
    [
        lambda old: lambda *args: 2 * old(*args),
        lambda old: functools.wraps(old)(lambda *args: 2 * old(*args)),
        lambda old: jax.jit(functools.wraps(old)(lambda *args: 2 * old(*args))),
        lambda old: functools.partial(old),
        lambda old: jax.vmap(lambda *args: 2 * old(*args)),
        lambda old: jnp.cos,
    ],
)
def test_what_is_put_into_an_installed_package_counts(monkeypatch, patch):
    own = module(HEADER + "def simulate(x): return jnp.sin(x)")
    whole = module(HEADER + "def simulate(x): return (lambda xp: xp.sin(x))(jnp)")
    before = digest(own.simulate), digest(whole.simulate)
    monkeypatch.setattr(jnp, "sin", patch(jnp.sin))
    assert digest(own.simulate) != before[0]
    assert digest(whole.simulate) != before[1]
    monkeypatch.undo()
    assert (digest(own.simulate), digest(whole.simulate)) == before


def test_a_version_counts(monkeypatch):
    before = of(HEADER + "def simulate(x): return jnp.sin(x)")
    version = installed.version_of
    monkeypatch.setattr(reachable, "version_of", lambda p: "99" if p == "jax" else version(p))
    assert of(HEADER + "def simulate(x): return jnp.sin(x)") != before


def test_what_is_installed():
    assert installed.version_of("jax") == jax.__version__
    assert installed.version_of("sklearn")  # a distribution of another name
    assert installed.version_of("math") == installed.PYTHON
    assert installed.version_of("test_reachable") is None
    assert installed.version_of("no_such_package") is None


def test_an_editable_package_is_read_not_named(tmp_path):
    """Its distribution is installed; its code is elsewhere and may change at any time."""
    library, project = tmp_path / "src", tmp_path / "site-packages"
    library.mkdir()
    about = project / "editable_one-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: editable_one\nVersion: 1.0\n")
    (project / "editable_one.pth").write_text(str(library))
    code = (
        "import site, sys; site.addsitedir(sys.argv[1]); import editable_one\n"
        "from provingground.installed import version_of\n"
        "from provingground.reachable import digest\n"
        "def simulate(x): return editable_one.f(x)\n"
        "print(version_of('editable_one'), digest(simulate))"
    )
    found = []
    for factor in (1, 2, 1):
        (library / "editable_one.py").write_text(f"def f(x): return x * {factor}")
        command = [sys.executable, "-B", "-c", code, str(project)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        found.append(done.stdout.split())
    assert [version for version, _ in found] == ["None"] * 3
    assert found[0] == found[2] != found[1]


# ------------------------------------------------------------------- what cannot be known

UNKNOWABLE = {
    "open": "def simulate(x): return open('a').read()",
    "the environment": "import os\ndef simulate(x): return os.environ['A']",
    "getenv": "import os\ndef simulate(x): return os.getenv('A')",
    "the clock": "import time\ndef simulate(x): return time.time()",
    "a date": "import datetime\ndef simulate(x): return datetime.datetime.now()",
    "a path": "from pathlib import Path\ndef simulate(x): return Path('a').read_text()",
    "a file of arrays": "def simulate(x): return np.load('a')",
    "chance": "def simulate(x): return np.random.normal()",
    "Python's chance": "import random\ndef simulate(x): return random.random()",
    "eval": "def simulate(x): return eval('x')",
    "globals": "N = 1\ndef simulate(x): return globals()['N']",
    "modules by name": "import sys\ndef simulate(x): return sys.modules['math']",
    "imports by name": "import importlib\ndef simulate(x): return importlib.import_module('a')",
    "a cache": "@functools.cache\ndef f(x): return x\ndef simulate(x): return f(x)",
    "a change of globals": "N = 1\ndef simulate(x):\n    global N\n    N = 2",
    "an iterator": "I = iter([1, 2])\ndef simulate(x): return next(I)",
    "an array of objects": "N = np.array([object()])\ndef simulate(x): return N[0]",
    "a set of functions": "S = {len, max}\ndef simulate(x): return S",
    "a module that is not there": "def simulate(x):\n    import no_such\n"
                                  "    return no_such.f(x)",
}  # fmt: skip


@pytest.mark.parametrize("what", UNKNOWABLE)
def test_it_cannot_be_known(what):
    with pytest.raises(Unknowable):
        of(HEADER + UNKNOWABLE[what])


def test_a_module_of_the_user_s_that_is_used_as_a_whole_cannot_be_known():
    other = module("def f(x): return x")
    with pytest.raises(Unknowable, match="as a whole"):
        of("def simulate(x): return getattr(other, 'f')(x)", other=other)


def test_a_traced_value_cannot_be_known():
    def inside(x):
        with pytest.raises(Unknowable, match="being traced"):
            digest(lambda: x)
        return x

    jax.make_jaxpr(inside)(1.0)


@pytest.mark.parametrize("what", ["open", "the environment", "the clock"])
def test_what_only_acts_may_be_allowed(what, monkeypatch):
    simulate = module(HEADER + UNKNOWABLE[what]).simulate
    before = digest(simulate, pure=False)
    monkeypatch.setenv("A", "another")
    assert digest(simulate, pure=False) == before


# --------------------------------------------------------------------------- kinds of things


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    a: int
    b: float


@dataclasses.dataclass(frozen=True)
class Record:
    name: str
    how: Any


class Number(float):
    pass


class Slotted:
    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n


VARIABLE = contextvars.ContextVar("VARIABLE", default=1)

THINGS = [
    None, True, 1, 1.0, math.nan, 1j, "a", b"a", ..., (), [], {}, (1,), [1], {1}, {"a": 1},
    {"a": 2},
    range(3), np.float32(1), np.float64(1), np.dtype("f4"), np.arange(2), jnp.arange(2),
    jnp.arange(3), jax.random.key(0), jax.random.key(1), Colour.RED, Colour.BLUE, Pair(1, 2.0),
    Pair(2, 2.0), Record("a", len), Record("a", max), Number(1), Number(2), Slotted(1), Slotted(2),
    int, Pair, Record, Colour, len, np.sin, np.cos, jnp.sin, "a".upper, "b".upper, str.upper,
    lambda: 1, lambda: 2, functools.partial(max, 1), functools.partial(max, 2), VARIABLE,
    jax.jit(lambda: 1), jax.tree.structure([1]), jax.tree.structure((1,)), frozenset({3}),
    types.MappingProxyType({"b": 1}), slice(1), slice(2),
]  # fmt: skip


def holding(thing):
    return digest(lambda: thing)


def test_different_things_differ():
    found = [holding(thing) for thing in THINGS]
    assert len(set(found)) == len(found)
    assert [holding(thing) for thing in THINGS] == found


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers() | st.text())
    ),
    max_leaves=8,
)


@given(values, values)
def test_values_count_as_values(a, b):
    same = repr((type(a), a)) == repr((type(b), b))
    assert (holding(a) == holding(b)) == same or sets(a) or sets(b)


def sets(value):
    """Whether there is a set in a value: its order, and so its repr, may vary."""
    inner = value.values() if isinstance(value, dict) else value
    return isinstance(value, frozenset) or (
        isinstance(value, (list, tuple, dict)) and any(map(sets, inner))
    )


def test_the_order_of_a_set_does_not_count():
    code = "from provingground.reachable import digest; S = {'a', 'b', 'c', 'd'}\n"
    code += "def f(x): return x in S or x in {'e', 'f', 'g'}\nprint(digest(f))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


def test_things_that_hold_each_other_end():
    own = module("def simulate(x): return L[0](x)\nL = [simulate]\nL.append(L)")
    assert digest(own.simulate) == digest(own.simulate)


def test_the_code_of_every_simulator_can_be_known():
    for study in pg.studies().values():
        for name, simulator in study.simulators.items():
            found = digest(simulator.simulate, simulator.config, simulator.probes)
            again = digest(simulator.simulate, simulator.config, simulator.probes)
            assert found == again, (study.name, name)
