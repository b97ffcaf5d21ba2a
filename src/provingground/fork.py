"""A study, or the skeleton of one, copied into a package of its own, to be changed."""

import re
import sys
from collections.abc import Iterator
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

import provingground
from provingground import registry
from provingground.errors import InputError
from provingground.studies import SKELETON, STUDIES
from provingground.upkeep import new_package, project

KEPT = (".py", ".md")
PYTEST = """
[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
markers = [
    "claims: runs a quick experiment other than the headline",
    "slow: takes long",
    "records: traces all simulators",
]
"""
CONFTEST = '''\
"""Tests run with strict promotion of dtypes and ranks, in a store of their own."""

import os
import tempfile
from pathlib import Path

# Before anything imports jax.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["PROVING_STORE"] = tempfile.mkdtemp(prefix="proving-tests-")
os.environ["PROVING_STUDIES"] = str(Path(__file__).parents[1] / "{name}")

import hypothesis
import jax
import pytest

from provingground.store import Store

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
hypothesis.settings.register_profile("fork", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.load_profile("fork")


@pytest.fixture
def store(tmp_path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture
def double():
    """64 bits."""
    with jax.enable_x64(True):
        yield
'''
FOREWORD = """\
*`{name}` is a copy of the study `{old}`{version}, made by `proving fork`. What follows is the page
of the original. Random numbers depend on a study's name, so the copy draws others, and its numbers
differ from the original's as those of other seeds do.*

"""


class Fork(NamedTuple):
    """What was made: the package, and the tests of the original, if they were at hand."""

    package: Path
    tests: Path | None


def fork(study: str, name: str, folder: Path) -> Fork:
    """Copies a study into `folder/name`, as a package with its own entry point and its tests."""
    module, source, tests = _sources(study)
    if name == study:
        raise InputError(f"a fork of '{study}' needs a name of its own")
    return new_package(name, folder, lambda home: _copy(home, study, name, module, source, tests))


def _sources(study: str) -> tuple[str, Traversable, Path]:
    """The module of a study, its folder, and where its tests would be."""
    if study in (*STUDIES, SKELETON):
        tests = Path(provingground.__file__).parents[2] / "tests" / "studies"
        module = f"provingground.studies.{study}"
        return module, resources("provingground.studies").joinpath(study), tests
    known = registry.study(study)
    module = next(iter(known.simulators.values())).config.__module__.partition(".")[0]
    init = getattr(sys.modules.get(module), "__file__", None)
    if getattr(sys.modules[module], "STUDY", None) is not known or init is None:
        raise InputError(f"the study '{study}' is no folder of its own, so there is none to copy")
    return module, Path(init).parent, Path(init).parents[1] / "tests"


def scaffold(name: str, folder: Path) -> Path:
    """Copies the skeleton study into `folder/name`, as a package with its own entry point."""
    module, source, _ = _sources(SKELETON)

    def copy(home: Path) -> Path:
        package, about = _package(home, SKELETON, name, module, source)
        (home / "pyproject.toml").write_text(about, encoding="utf-8")
        return package

    return new_package(name, folder, copy)


def _package(
    home: Path, old: str, name: str, module: str, source: Traversable, foreword: str = ""
) -> tuple[Path, str]:
    """A copy of a study's sources under a new name, and the text of its `pyproject.toml`."""
    package = home / name
    for path, file in _files(source):
        target = package / path
        target.parent.mkdir(parents=True, exist_ok=True)
        text = _renamed(file.read_text(encoding="utf-8"), old, name, module)
        if path == Path("README.md"):
            text = foreword + _unlinked(text)
        target.write_text(text, encoding="utf-8")
    packages = [".".join((name, *p.parent.relative_to(package).parts))
                for p in sorted(package.rglob("__init__.py"))]  # fmt: skip
    return package, project(name, packages)


def _copy(home: Path, old: str, name: str, module: str, source: Traversable, tests: Path) -> Fork:
    foreword = FOREWORD.format(old=old, name=name, version=_version(module))
    package, about = _package(home, old, name, module, source, foreword)
    given = tests / f"test_{old}.py"
    if found := given.is_file():
        (home / "tests").mkdir()
        text = _renamed(given.read_text(encoding="utf-8"), old, name, module)
        (home / "tests" / f"test_{name}.py").write_text(text, encoding="utf-8")
        (home / "tests" / "conftest.py").write_text(CONFTEST.format(name=name), encoding="utf-8")
        about += PYTEST
    (home / "pyproject.toml").write_text(about, encoding="utf-8")
    return Fork(package, home / "tests" if found else None)


def _files(folder: Traversable, path: Path = Path()) -> Iterator[tuple[Path, Traversable]]:
    """The sources in a folder and those inside of it, with their places."""
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir() and each.name.isidentifier() and each.name != "__pycache__":
            yield from _files(each, path / each.name)
        elif each.name.endswith(KEPT):
            yield path / each.name, each


def _renamed(text: str, old: str, name: str, module: str) -> str:
    """Sources under the new name: imports, the name where it is quoted, and commands.

    Keys of tests stay, and with them the random numbers that these were written for.
    """
    text = re.sub(rf"\b{re.escape(module)}\b(?=\.| import)", name, text)
    text = re.sub(rf"(?<!seed_key\()([\"'`]){old}(?=[\"'`/])", rf"\g<1>{name}", text)
    return re.sub(rf"(\bproving [a-z]+ ){old}\b", rf"\g<1>{name}", text)


def _unlinked(text: str) -> str:
    """A page without pictures and links that lead out of the study's folder."""
    text = re.sub(r"^!\[[^\]]*\]\(\.\./[^)]*\)\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\g<1>", text)


def _version(module: str) -> str:
    own = module.startswith("provingground.")
    return f" of Proving Ground {provingground.__version__}" if own else ""
