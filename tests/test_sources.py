"""Which sources a record is of. Hashes are equal on all versions of Python and of the libraries."""

import dataclasses
import importlib
import json
import sys
from typing import Any

import pytest

from provingground import cli, grid, sources
from provingground.config import config
from provingground.sources import code_hash, renew, same_programs, source_of, staleness
from provingground.studies.toy import STUDY as TOY
from provingground.study import Refine, Scale, cases
from tiny import with_trainings

# --------------------------------------------------------------------------------- code

FILES = {
    "__init__.py": "",
    "new.py": "",
    "model.py": '''
"""A model."""
import jax.numpy as jnp
import numpy as np

from provingground import keys
from provingground.errors import InputError

from . import shapes
from .parts import bend as bent, Layer

WIDTH = 3
UNUSED = 4
TABLE = {}
TABLE["a"] = 1

class Base:
    size = 2

class Config(Base):
    """Parameters."""
    dim: int = WIDTH

def simulate(cfg, key, rate=0.5):
    """One training."""
    # a remark
    from .late import last
    if cfg.dim < 0:
        raise InputError(f"dim = {cfg.dim:>{WIDTH}}")
    x = keys.normal(key, (cfg.dim,))
    return jnp.sum(bent(x) * rate) + shapes.area(x) + last(x) + Layer().run(x)

def other(x):
    return np.sum(x)
''',
    "parts.py": '''
from .late import FACTOR

def bend(x):
    return [stretch(y) for y in x]

def stretch(x):
    return FACTOR * x

class Layer:
    def run(self, x):
        return x

def unused(x):
    return x
''',
    "shapes.py": '''
def area(x):
    return x ** 2

def volume(x):
    return x ** 3
''',
    "late.py": '''
FACTOR = 2.0

def last(x):
    return x
''',
}  # fmt: skip


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of a name of its own; the hash of its `simulate` after some texts are replaced."""
    name = f"written_{tmp_path.name}"
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.syspath_prepend(tmp_path)

    def write(files: dict[str, str]) -> None:
        for file, text in files.items():
            (folder / file).write_text(text)

    write(FILES)
    model: Any = importlib.import_module(f"{name}.model")

    def edited(*edits: tuple[str, str, str]) -> str:
        files = dict(FILES)
        for file, old, new in edits:
            assert old in files[file]
            files[file] = files[file].replace(old, new)
        write(files)
        return code_hash(model.simulate, model.Config)

    yield edited
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        del sys.modules[module]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("model.py", "rate=0.5", "rate=0.25"),
        ("model.py", "* rate", "/ rate"),
        ("model.py", "WIDTH = 3", "WIDTH = 5"),
        ("model.py", "size = 2", "size = 3"),
        ("model.py", "dim: int = WIDTH", "dim: float = WIDTH"),
        ("model.py", 'TABLE["a"] = 1', 'TABLE["a"] = 2'),  # done when the module is imported
        ("model.py", "import jax.numpy as jnp", "import numpy as jnp"),
        ("model.py", "import bend as bent", "import stretch as bent"),
        ("model.py", "shapes.area", "shapes.volume"),
        ("model.py", "dim < 0", "dim < 1"),
        ("parts.py", "FACTOR * x", "x * FACTOR"),
        ("parts.py", "import FACTOR", "import last as FACTOR"),
        ("parts.py", "        return x", "        return 2 * x"),
        ("shapes.py", "x ** 2", "x ** 3"),
        ("late.py", "FACTOR = 2.0", "FACTOR = 2.5"),
        ("late.py", "    return x", "    return -x"),
        ("model.py", "def other(x):\n", "def simulate(cfg, key):\n"),  # defined once more
        ("parts.py", "def bend(x):", "@staticmethod\ndef bend(x):"),
    ],
)
def test_what_a_simulator_does_counts(package, file, old, new):
    assert package((file, old, new)) != package()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("model.py", "# a remark", "# another"),
        ("model.py", '"""One training."""', ""),
        ("model.py", '"""A model."""', '"""A study."""'),
        ("model.py", "(cfg, key, rate=0.5)", "(cfg: Config, key, rate: float = 0.5) -> float"),
        ("model.py", "jnp.sum(bent(x) * rate)", "(\n    jnp.sum(\n        bent(x) * rate,\n  )\n)"),
        ("model.py", "rate=0.5", "rate=.50"),
        ("model.py", "UNUSED = 4", "UNUSED = 5"),
        ("model.py", "return np.sum(x)", "return np.mean(x)"),
        ("parts.py", "class Layer", "\n\nclass Layer"),
        ("parts.py", "def unused(x):\n    return x", ""),
        ("shapes.py", "x ** 3", "x ** 4"),
    ],
)
def test_how_it_is_told_and_what_it_does_not_use_do_not_count(package, file, old, new):
    assert package((file, old, new)) == package()


def test_a_definition_may_move_to_another_module(package):
    moved = "def stretch(x):\n    return FACTOR * x\n"
    assert package() == package(
        ("parts.py", moved, ""),
        ("parts.py", "from .late import FACTOR", "from .late import stretch"),
        ("late.py", "FACTOR = 2.0\n", f"FACTOR = 2.0\n\n{moved}"),
    )


def test_a_definition_may_move_to_a_module_that_nothing_else_uses(package):
    moved = "def stretch(x):\n    return FACTOR * x\n"
    assert package() == package(
        ("parts.py", moved, ""),
        ("parts.py", "from .late import FACTOR", "from .new import stretch"),
        ("new.py", "", f"from .late import FACTOR\n\n{moved}"),
    )


def test_two_definitions_that_change_places_are_seen(package):
    """Though the same texts are read."""
    both = ("shapes.py", "x ** 3", "x ** 3 + area(x)")
    turned = ("model.py", "shapes.area(x) + last(x)", "last(x) + shapes.volume(x)")
    assert package(both, turned) != package(both)


def test_code_that_stands_in_no_file_has_no_hash():
    simulator = TOY.simulators["descent"]

    def made(cfg, key):
        return simulator.simulate(cfg, key)

    study = dataclasses.replace(
        TOY, simulators={"descent": dataclasses.replace(simulator, simulate=made)}
    )
    found = source_of(grid.plan(study, TOY.experiments[0], "quick"))
    assert found["code"] == ""
    assert found["settings"] == source_of(grid.plan(TOY, TOY.experiments[0], "quick"))["settings"]


def test_the_hash_is_that_of_other_versions_of_python():
    """A piece of source in which syntax trees of Python 3.11 to 3.13 differ, hashed once by all."""
    text = (
        "def f(x: int, *, n=2) -> str:\n    '''What.'''\n"
        '    y: list[int] = [*x]\n    return f"{x:{n}}" "b" f"{y=!r:>{n}}" if y else u"\\u03b1"\n'
    )
    (definition,) = sources._parsed("package", text).defined["f"]
    assert definition.text == (
        "FunctionDef(name='f',args=arguments(args=[arg(arg='x')],kwonlyargs=[arg(arg='n')],"
        "kw_defaults=[Constant(value=2)]),body=[AnnAssign(target=Name(id='y'),"
        "annotation=Subscript(value=Name(id='list'),slice=Name(id='int')),"
        "value=List(elts=[Starred(value=Name(id='x'))]),simple=1),"
        "Return(value=IfExp(test=Name(id='y'),body=JoinedStr(values=[FormattedValue("
        "value=Name(id='x'),conversion=-1,format_spec=JoinedStr(values=[FormattedValue("
        "value=Name(id='n'),conversion=-1)])),Constant(value='by='),FormattedValue("
        "value=Name(id='y'),conversion=114,format_spec=JoinedStr(values=[Constant(value='>'),"
        "FormattedValue(value=Name(id='n'),conversion=-1)]))]),"
        "orelse=Constant(value='\\u03b1')))])"
    )
    assert definition.used == (("y",), ("list",), ("int",), ("x",), ("n",))


# ----------------------------------------------------------------------------- settings


def settings_of(scale: Scale = "paper", seeds=None, settings=None, **changes):
    experiment = with_trainings(TOY.experiments[0], **changes)
    return source_of(grid.plan(TOY, experiment, scale, settings, seeds))["settings"]


GRID = TOY.experiments[0].trainings.grid


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": "quick"},
        {"seeds": 5},
        {"settings": {"lr": 0.3}},
        {"settings": {"steps": 299}},
        {"settings": {"dim": 11}},
        {"grid": {**GRID, "noise": [0.5, 1.0, 2.0000001]}},
        {"refine": Refine("samples", "test_loss", 0.5)},
    ],
)
def test_settings_that_are_trained_count(changes):
    assert settings_of(**changes) != settings_of()


def test_what_labels_stand_for_counts():
    first, second = (
        settings_of(grid={"which": cases({"one": {"lr": lr}}), "samples": [30]})
        for lr in (0.1, 0.2)
    )
    assert first != second


def test_the_order_in_which_parameters_are_declared_does_not_count():
    simulator = TOY.simulators["descent"]
    fields = list(reversed(dataclasses.fields(simulator.config)))
    declared = {
        f.name: dataclasses.field(default=f.default, metadata=dict(f.metadata)) for f in fields
    }
    told = {"__annotations__": {f.name: f.type for f in fields}}
    turned = config(type("Config", (), told | declared))
    study = dataclasses.replace(
        TOY, simulators={"descent": dataclasses.replace(simulator, config=turned)}
    )
    assert list(turned.__annotations__) == [f.name for f in fields]
    found = source_of(grid.plan(study, TOY.experiments[0], "paper"))["settings"]
    assert found == settings_of()


def test_words_of_an_experiment_and_last_digits_do_not_count():
    noise = list(GRID["noise"])
    other = dataclasses.replace(TOY.experiments[0], says="other words", claims=())
    assert source_of(grid.plan(TOY, other, "paper"))["settings"] == settings_of()
    near = {**GRID, "noise": [x * (1 + 1e-14) for x in noise]}
    assert settings_of(grid=near) == settings_of()


# ------------------------------------------------------------------------------ records


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> str:
    """The record of a check of the toy study."""
    folder = tmp_path_factory.mktemp("saved")
    options = ["--store", str(folder / "store"), "--save", str(folder / "toy.json")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["proving", "check", "toy", *options])
        with pytest.raises(SystemExit) as end:
            cli.main()
    assert end.value.code == 0
    return (folder / "toy.json").read_text()


def changed(saved: str, **entries: Any) -> Any:
    """That record, some of what it says of the experiment changed."""
    record = json.loads(saved)
    record["provenance"]["toy/risk"] |= entries
    return record


def source(saved: str, **hashes: str) -> Any:
    return {"source": json.loads(saved)["provenance"]["toy/risk"]["source"] | hashes}


def test_a_saved_record_is_of_today_s_sources(saved):
    assert staleness(json.loads(saved)) == ({}, [])


@pytest.mark.parametrize(
    ("hashes", "what"),
    [
        ({"code": "0" * 40}, "code"),
        ({"settings": "0" * 40}, "settings"),
        ({"code": "0" * 40, "settings": "0" * 40}, "code and settings"),
    ],
)
def test_a_record_of_other_sources_is_stale(saved, hashes, what):
    assert staleness(changed(saved, **source(saved, **hashes))) == ({"toy/risk": what}, [])


def test_a_record_of_an_experiment_that_is_no_more_is_stale(saved):
    record = json.loads(saved)
    record["provenance"]["toy/gone"] = record["provenance"]["toy/risk"]
    ((at, why),) = staleness(record).stale.items()
    assert at == "toy/gone"
    assert why.startswith("unknown experiment 'gone'")


def test_a_record_without_sources_is_not_stale_but_unknown(saved):
    record = json.loads(saved)
    del record["provenance"]["toy/risk"]["source"]
    for unknown in (record, changed(saved, **source(saved, code=""))):
        assert staleness(unknown) == ({}, ["toy/risk"])
        assert renew(unknown) == []


def test_a_change_of_the_simulator_makes_the_record_stale(saved, monkeypatch):
    parsed = sources._parsed

    def edited(package: str, text: str) -> Any:
        return parsed(package, text.replace("/ cfg.dim**0.5", "/ cfg.dim"))

    monkeypatch.setattr(sources, "_parsed", edited)
    assert staleness(json.loads(saved)).stale == {"toy/risk": "code"}


def test_programs_are_compared_under_the_versions_of_the_record(saved):
    about = json.loads(saved)["provenance"]["toy/risk"]
    assert same_programs("toy/risk", "quick", about) is True
    for other in ("0" * 40, f"{about['fingerprint']}, {'0' * 40}"):
        assert same_programs("toy/risk", "quick", about | {"fingerprint": other}) is False
    for library in ("jax", "numpy"):
        assert same_programs("toy/risk", "quick", about | {library: "0.1"}) is None
    host = about | {"simulator": "learners"}
    assert same_programs("in_context_learning/fig6_4", "quick", host) is None


def test_other_code_that_gives_the_same_programs_renews_a_record(saved):
    other = source(saved, code="0" * 40)
    record = changed(saved, **other)
    assert renew(record) == ["toy/risk"]
    assert record == json.loads(saved)
    for reason in ({"jax": "0.1"}, {"fingerprint": "0" * 40}, source(saved, settings="0" * 40)):
        record = changed(saved, **other | reason)
        assert renew(record) == []
        assert staleness(record).stale


def test_the_command_renews_records_and_names_stale_ones(saved, tmp_path, monkeypatch, capsys):
    def told(**entries: Any) -> tuple[int, str]:
        path = tmp_path / "toy.json"
        path.write_text(json.dumps(changed(saved, **entries)))
        monkeypatch.setattr(sys, "argv", ["sources", str(path)])
        with pytest.raises(SystemExit) as end:
            sources.main()
        return int(end.value.code or 0), capsys.readouterr().out

    other = source(saved, code="0" * 40)
    code, out = told(**other)
    assert (code, (tmp_path / "toy.json").read_text()) == (0, saved)
    assert "toy/risk: renewed, other code gives the same programs" in out
    code, out = told(**other, jax="0.1")
    assert code == 1
    assert "1 of 1 experiments stale\n  toy/risk: code (made with jax 0.1, NumPy " in out
    assert (tmp_path / "toy.json").read_text() == json.dumps(changed(saved, **other, jax="0.1"))
    code, out = told(source=None)
    assert code == 0
    assert "sources not recorded: 1" in out
