"""Which studies there are, and what becomes of those that cannot be."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import provingground as pg
from provingground import registry
from provingground.errors import InputError
from provingground.studies import STUDIES
from provingground.studies.benign_overfitting import STUDY as BENIGN
from provingground.studies.toy import STUDY as TOY

OWN = """
import dataclasses
from provingground.studies.toy import STUDY as TOY
STUDY = dataclasses.replace(TOY, name={name!r})
"""


class Entry(NamedTuple):
    """An entry point of another package."""

    name: str
    value: str = "elsewhere:STUDY"
    loads: Any = TOY

    def load(self):
        return self.loads


@pytest.fixture
def registered(monkeypatch):
    def register(*entries):
        monkeypatch.setattr(registry, "_entries", lambda: entries)

    return register


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Makes folders with studies and names them all."""
    made: list[Path] = []

    def make(path: str, text: str) -> Path:
        at = tmp_path / path
        at.mkdir(parents=True)
        (at / "__init__.py").write_text(text)
        made.append(at)
        monkeypatch.setenv("PROVING_STUDIES", ":".join(map(str, made)))
        return at

    before = set(sys.modules)
    yield make
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {at.name for at in made}:
            del sys.modules[name]


# ----------------------------------------------------------------------------- by name


def test_studies_are_known_by_name():
    assert pg.studies()["benign_overfitting"] is BENIGN
    assert "toy" not in pg.studies()
    assert registry.study("toy") is TOY
    with pytest.raises(InputError, match="did you mean 'benign_overfitting'"):
        registry.study("benign_overfiting")


def test_a_study_is_loaded_without_the_others(monkeypatch):
    loaded = []
    monkeypatch.setattr(registry, "_listed", lambda name: loaded.append(name) or TOY)
    assert registry.study("syntax_semantics") is TOY
    assert loaded == ["syntax_semantics"]


def test_listing_imports_neither_jax_nor_a_study():
    code = (
        "import sys; from provingground import cli\n"
        "sys.argv = ['proving', 'list']\n"
        "try: cli.main()\n"
        "finally: print([m for m in ('jax', 'numpy', 'xarray') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(name in done.stdout for name in STUDIES)


# ----------------------------------------------------------------------- other packages


def test_other_packages_register_studies(registered):
    registered(Entry("other"))
    assert pg.studies()["other"] is TOY
    assert registry.listings()[-1].title == TOY.title


def test_an_entry_point_does_not_replace_one_of_the_projects(registered, capsys):
    registered(Entry("benign_overfitting", "evil_twin:STUDY"))
    assert pg.studies()["benign_overfitting"] is BENIGN
    assert registry.study("benign_overfitting") is BENIGN
    told = capsys.readouterr().err
    assert told.count("evil_twin:STUDY") == 1
    assert "one of the project's" in told


def test_of_two_packages_the_first_is_used_and_the_second_named(registered, capsys):
    registered(Entry("other", "a:STUDY"), Entry("other", "b:STUDY"), Entry("other", "a:STUDY"))
    assert pg.studies()["other"] is TOY
    assert "of b:STUDY is not used" in capsys.readouterr().err


def test_an_entry_point_that_is_no_study_is_named(registered):
    registered(Entry("other", loads=3))
    with pytest.raises(InputError, match="elsewhere:STUDY is no study"):
        registry.study("other")


# ------------------------------------------------------------------------------ folders


def test_a_folder_is_a_study(folder):
    folder("own_study", OWN.format(name="own_study"))
    assert pg.studies()["own_study"].name == "own_study"
    assert registry.study("own_study") is registry.study("own_study")
    assert registry.listings()[-1].name == "own_study"


def test_a_folder_that_is_named_twice_is_one_study(folder, monkeypatch):
    at = folder("own_twice", OWN.format(name="own_twice"))
    monkeypatch.setenv("PROVING_STUDIES", f"{at}:{at}/../{at.name}")
    assert registry.study("own_twice").name == "own_twice"


def test_a_folder_without_a_study_is_named(folder, tmp_path, monkeypatch):
    folder("own_three", "STUDY = 3")
    with pytest.raises(InputError, match=r"own_three: its __init__.py defines no STUDY"):
        pg.studies()
    monkeypatch.setenv("PROVING_STUDIES", str(tmp_path))
    with pytest.raises(InputError, match=r"there is no __init__.py in it; did you mean .*own_thr"):
        pg.studies()
    monkeypatch.setenv("PROVING_STUDIES", "away")
    where = (
        rf"no study in away, which \$PROVING_STUDIES names: there is no folder {Path.cwd()}/away"
    )
    with pytest.raises(InputError, match=f"{where}; the path is taken from the current folder"):
        pg.studies()
    for nowhere in ("~no_such_user/x", "x" * 300, "a\0b"):
        monkeypatch.setattr(registry.os, "environ", {"PROVING_STUDIES": nowhere})
        with pytest.raises(InputError, match="no study in"):
            pg.studies()


@pytest.mark.parametrize("name", ["benign_overfitting", "toy"])
def test_a_folder_does_not_replace_one_of_the_projects(folder, name):
    at = folder("own_twin", OWN.format(name=name))
    for use in (pg.studies, registry.listings, lambda: registry.study("toy")):
        with pytest.raises(InputError, match=f"{at} is called '{name}'.*one of the project's"):
            use()


def test_two_folders_with_studies_of_one_name_are_both_named(folder):
    first = folder("own_first", OWN.format(name="same"))
    second = folder("own_second", OWN.format(name="same"))
    with pytest.raises(InputError, match=f"{second} is called 'same'.*{first}"):
        pg.studies()


def test_two_folders_of_one_basename_are_both_named(folder):
    first = folder("here/own_base", OWN.format(name="a"))
    second = folder("there/own_base", OWN.format(name="b"))
    with pytest.raises(InputError, match=f"'own_base': {first} and {second}"):
        pg.studies()


@pytest.mark.parametrize("name", ["json", "numpy", "provingground", "sys", "torch_geometric-2"])
def test_a_folder_with_the_name_of_a_module_is_refused(folder, name):
    folder(name, OWN.format(name="own"))
    with pytest.raises(InputError, match=r"name of another module|can import"):
        registry.folders()
    assert "STUDY" not in vars(json)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\ny = x.z\n", r"AttributeError: 'int' object has no .*__init__\.py, line 2\)"),
        ("x = 1\ndef f(:\n", r"SyntaxError: .*line 2"),
        ("import sys\nsys.exit(0)\n", r"it calls sys.exit\(0\) .*line 2"),
        ("import no_such_module\n", r"ModuleNotFoundError: .*line 1"),
        (OWN.format(name="Bad-Name"), r"InputError: study name 'Bad-Name'"),
        ("raise GeneratorExit\n", r"GeneratorExit"),
    ],
)
def test_a_study_that_cannot_be_imported_names_itself(folder, text, says):
    at = folder("own_broken", text)
    with pytest.raises(InputError, match=f"the study in {at} cannot be imported: {says}"):
        pg.studies()
    assert "own_broken" not in sys.modules


def test_an_interrupted_import_is_an_interrupt(folder):
    folder("own_interrupted", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        pg.studies()


def test_an_import_that_takes_long_says_what_it_is(folder, monkeypatch, capsys):
    monkeypatch.setattr(registry, "SECONDS_TO_IMPORT", 0.05)
    at = folder("own_slow", "import time; time.sleep(0.5)\n" + OWN.format(name="own_slow"))
    assert registry.study("own_slow")
    assert f"importing the study in {at}" in capsys.readouterr().err
    time.sleep(0.1)
    assert registry.study("own_slow")
    assert capsys.readouterr().err == ""
