"""`proving fork`: copies that import, run and are tested."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from provingground import fork as forking
from provingground.errors import InputError
from provingground.fork import fork
from provingground.registry import study
from provingground.studies import SKELETON, STUDIES

EVERY = (*STUDIES, SKELETON)
TESTS = Path(__file__).parent / "studies"


def proving(*words: str, at: Path, code: int = 0, studies: str = "") -> str:
    """What a command prints; on stderr where it fails."""
    env = os.environ | {"PROVING_STORE": str(at / "store"), "PROVING_STUDIES": studies}
    command = [sys.executable, "-m", "provingground.cli", *words]
    done = subprocess.run(command, cwd=at, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


@pytest.mark.parametrize("name", EVERY)
def test_a_fork_has_all_of_a_study_but_its_name(name, tmp_path):
    package, tests = fork(name, "copy_of_it", tmp_path)
    source = Path(forking.__file__).parent / "studies" / name
    files = {p.relative_to(source) for p in source.rglob("*") if p.suffix in (".py", ".md")}
    assert {p.relative_to(package) for p in package.rglob("*") if p.is_file()} == files
    text = "".join(p.read_text() for p in package.rglob("*.py"))
    assert 'name="copy_of_it"' in text
    assert not re.search(rf"[\"'`]{name}[\"'`/]|provingground\.studies", text)
    page = (package / "README.md").read_text()
    assert page.startswith(f"*`copy_of_it` is a copy of the study `{name}` of Proving Ground")
    assert "](../" not in page
    about = (tmp_path / "copy_of_it" / "pyproject.toml").read_text()
    assert 'copy_of_it = "copy_of_it:STUDY"' in about
    assert about.count('"copy_of_it.figures"') == (source / "figures" / "__init__.py").is_file()
    assert (tests is not None) == (TESTS / f"test_{name}.py").is_file()
    if tests is not None:
        assert "provingground.studies" not in (tests / "test_copy_of_it.py").read_text()


IMPORT = """
import json, os, sys
from provingground import registry
names = json.loads(sys.argv[1])
found = {n: registry.study(n) for n in names}
print(json.dumps({
    n: [s.name, s.title, sorted(s.simulators), [e.name for e in s.experiments],
        [c.name for e in s.experiments for c in e.claims],
        sorted({type(s).__module__} | {v.simulate.__module__.split(".")[0]
               for v in s.simulators.values() if hasattr(v.simulate, "__module__")})]
    for n, s in found.items()
}))
"""


def test_all_forks_import_and_are_their_own(tmp_path):
    forks = {f"my_{name}": fork(name, f"my_{name}", tmp_path).package for name in EVERY}
    env = os.environ | {"PROVING_STUDIES": os.pathsep.join(map(str, forks.values()))}
    command = [sys.executable, "-c", IMPORT, json.dumps(list(forks))]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name, (own, title, simulators, experiments, claims, homes) in json.loads(
        done.stdout
    ).items():
        original = study(name.removeprefix("my_"))
        assert own == name
        assert title == original.title
        assert simulators == sorted(original.simulators)
        assert experiments == [e.name for e in original.experiments]
        assert claims == [c.name for e in original.experiments for c in e.claims]
        assert name in homes


def test_a_fork_is_listed_runs_and_can_be_forked_again(tmp_path):
    said = proving("fork", "toy", "mine", at=tmp_path)
    assert "proving --study-path mine/mine check mine" in said
    assert "without tests" in said
    inner = "mine/mine"
    assert re.search(r"^mine\s+Least squares", proving("list", at=tmp_path, studies=inner), re.M)
    few = ["--set", "samples=30", "--set", "steps=20", "--seeds", "2", "--out", "mine.nc"]
    proving("run", "mine/risk", *few, at=tmp_path, studies=inner)
    assert (tmp_path / "mine.nc").exists()
    assert {p.name for p in (tmp_path / "store").iterdir()} >= {"mine"}
    proving("fork", "mine", "yours", "--folder", "deep/er", at=tmp_path, studies=inner)
    init = tmp_path / "deep" / "er" / "yours" / "yours" / "__init__.py"
    assert 'name="yours"' in init.read_text()
    assert "yours" in proving("list", at=tmp_path, studies=str(init.parent))


@pytest.mark.slow
def test_the_tests_of_a_fork_are_collected_and_pass(tmp_path):
    _, tests = fork("benign_overfitting", "benign_copy", tmp_path)
    assert tests is not None
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not claims", str(tests)]
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    done = subprocess.run(
        command, cwd=tests.parent, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) > 20


def test_tests_that_are_not_at_hand_are_left_out(tmp_path, monkeypatch):
    elsewhere = tmp_path / "a" / "b" / "c" / "__init__.py"
    monkeypatch.setattr(forking.provingground, "__file__", str(elsewhere))
    package, tests = fork("benign_overfitting", "copy_of_it", tmp_path)
    assert tests is None
    assert not (package.parent / "tests").exists()
    assert "pytest" not in (package.parent / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("benign_overfiting", "copy", "did you mean 'benign_overfitting'"),
        ("../toy", "copy", "unknown study"),
        ("toy", "toy", "needs a name of its own"),
        ("toy", "benign_overfitting", "there is a study 'benign_overfitting' already"),
        ("toy", "Copy", "no name for a study"),
        ("toy", "../copy", "no name for a study"),
        ("toy", "json", "Python has taken it"),
    ],
)
def test_what_cannot_be_forked_is_refused(tmp_path, old, new, says):
    with pytest.raises(InputError, match=says):
        fork(old, new, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_exists_is_not_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept").write_text("kept")
    said = proving("fork", "toy", "mine", at=tmp_path, code=2)
    assert "exists already" in said
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["kept"]
