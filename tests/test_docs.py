"""The documentation: links lead somewhere, commands exist, and all of its code runs.

Code that is not to be run as it stands says so: its fence is ```sh excerpt.
"""

import ast
import doctest
import importlib
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import typer

import provingground as pg
from provingground.cli import app
from provingground.studies import SKELETON, STUDIES

ROOT = Path(__file__).parents[1]
STUDY_PAGES = sorted((ROOT / "src").glob("provingground/studies/*/README.md"))
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")), *STUDY_PAGES]
SLOW = pytest.mark.slow
named = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def blocks(page: Path, language: str, excerpts: bool = False) -> list[str]:
    """The fenced blocks of a language that are to be run, or with excerpts all of them."""
    found = re.findall(
        rf"^```{language}( excerpt)?\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
    )
    return [text for mark, text in found if excerpts or not mark]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made on the web."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@named
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if link.startswith("https://"):
            continue
        target, _, anchor = link.partition("#")
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), link
        assert not anchor or anchor in anchors(found), link


@named
def test_python_is_python(page: Path) -> None:
    for block in blocks(page, "python", excerpts=True):
        ast.parse(block)


@named
def test_commands_and_their_options_exist(page: Path) -> None:
    commands = typer.main.get_command(app).commands  # pyright: ignore
    for line in "".join(blocks(page, "sh", excerpts=True)).splitlines():
        if not line.startswith("proving "):
            continue
        name, *rest = line.partition("#")[0].split()[1:]
        known = {option for p in commands[name].params for option in p.opts}
        assert {word for word in rest if word.startswith("--")} <= known, line


def test_every_study_is_named() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    named = re.findall(r"^- \[(\w+)\]\(\.\./src/provingground/studies/", index, re.MULTILINE)
    assert named == [*STUDIES, SKELETON]


def test_pictures_are_small() -> None:
    for picture in (ROOT / "docs").rglob("*.png"):
        assert picture.stat().st_size < 300_000, picture.name


def run_as_cells(cells: list[str], name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs blocks one after another in a module without a file, as a notebook does."""
    notebook = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, notebook)
    for cell in cells:
        exec(compile(cell, f"<{name}>", "exec"), vars(notebook))
    return notebook


def test_the_study_of_one_cell_works_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    every = blocks(ROOT / "docs" / "own_study.md", "python")
    first, *rest = [block for block in every if not block.startswith("# ")]
    assert first == every[0]
    notebook = run_as_cells([first, *rest], "notebook_of_docs", monkeypatch)
    assert notebook.ds.sizes["steps"] == 2
    text = (ROOT / "docs" / "own_study.md").read_text()
    told = text[text.index("1 claim: 1 holds") :].partition("\n```")[0]
    assert_alike(repr(pg.check(notebook.study)), told)


NUMBER = re.compile(r"-?\d+\.\d+")


def assert_alike(found: str, told: str) -> None:
    """The same words, and numbers that differ in the last digits at most, as machines do."""
    assert NUMBER.sub("#", found).split() == NUMBER.sub("#", told).split()
    for a, b in zip(NUMBER.findall(found), NUMBER.findall(told), strict=True):
        assert float(a) == pytest.approx(float(b), rel=2e-3)


def test_the_quickstart_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = blocks(ROOT / "docs" / "quickstart.md", "python")
    notebook = run_as_cells(cells, "notebook_of_quickstart", monkeypatch)
    (told,) = re.findall(r"print\(law.slope\)  # (.*)", "".join(cells))
    assert_alike(str(notebook.law.slope), told)
    assert (tmp_path / "risk.png").exists()


@pytest.mark.slow
def test_what_the_quickstart_prints_is_what_is_printed() -> None:
    text = (ROOT / "docs" / "quickstart.md").read_text()
    told = text[text.index("  claim           verdict") :].partition("\n```")[0]
    command = [sys.executable, "-m", "provingground.cli", "check", "toy"]
    env = {**os.environ, "COLUMNS": "80"}
    assert_alike(subprocess.check_output(command, env=env, text=True), told)


@pytest.mark.slow
def test_the_walk_through_works_as_written(tmp_path: Path) -> None:
    def proving(*words: str) -> str:
        command = [sys.executable, "-m", "provingground.cli", *words]
        studies = {"PROVING_STUDIES": "linear_attention/linear_attention"}
        env = {**os.environ, **studies, "COLUMNS": "80"}
        if words[0] == "new":
            del env["PROVING_STUDIES"]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    proving("new", "linear_attention")
    files = {
        block.partition("\n")[0].removeprefix("# "): block
        for block in blocks(ROOT / "docs" / "own_study.md", "python")
        if block.startswith("# ")
    }
    assert set(files) == {
        "__init__.py",
        "model.py",
        "theory.py",
        "figures/__init__.py",
        "figures/prompt_length.py",
    }
    for name, text in files.items():
        path = tmp_path / "linear_attention" / "linear_attention" / name
        assert path.exists() or path.name == "prompt_length.py"
        path.write_text(text)
    assert "prompt_length" in proving("list")
    text = (ROOT / "docs" / "own_study.md").read_text()
    told = text[text.index("  claim           verdict ") :].partition("\n```")[0]
    assert_alike(proving("check", "linear_attention"), told)
    proving("figure", "linear_attention/prompt_length", "--seeds", "3", "--out", "prompt.png")
    assert (tmp_path / "prompt.png").exists()


def proving_at(folder: Path) -> dict[str, str]:
    """An environment with a store of its own, in which `proving` is a command."""
    command = folder / "bin" / "proving"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m provingground.cli "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PROVING_STORE": str(folder / "store")}


def ran(folder: Path, *command: str) -> str:
    """What a command prints that runs in a folder, with a store of its own, and succeeds."""
    done = subprocess.run(
        command, cwd=folder, env=proving_at(folder), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_probes_and_parts_work_as_written(tmp_path: Path) -> None:
    script = "\n".join(blocks(ROOT / "docs" / "extend.md", "python"))
    out = ran(tmp_path, sys.executable, "-c", script).splitlines()
    assert "('samples', 'noise', 'seed', 'rank')" in out
    assert "dict_keys(['activation', 'optimiser'])" in out
    assert '{"activation": "tanh"}' in out
    by_hand, stored = (
        float(x) for x in out[out.index("dict_keys(['activation', 'optimiser'])") - 1].split()
    )
    assert by_hand == pytest.approx(stored, rel=1e-4)


@pytest.mark.slow
def test_the_fork_works_as_written(tmp_path: Path) -> None:
    (script,) = blocks(ROOT / "docs" / "extend.md", "sh")
    out = ran(tmp_path, "sh", "-ec", script)
    assert "finding_takes_steps" in out.partition("numbers that moved")[2]
    (short,) = (b for b in blocks(ROOT / "README.md", "sh") if "proving fork" in b)
    assert all(line in script for line in short.splitlines())


# Pages whose code has a test of its own above, which also looks at what it gives.
LOOKED_AT = {
    "python": ("own_study.md", "quickstart.md", "extend.md"),
    "sh": ("own_study.md", "extend.md"),
}
SHORT = ("training.md", "vocabulary.md", "statistics.md")


def with_code(language: str) -> list[Any]:
    """The other pages that have code to run; what takes seconds is marked."""
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)), marks=() if page.name in SHORT else SLOW)
        for page in PAGES
        if page.name not in LOOKED_AT[language] and blocks(page, language)
    ]


@pytest.mark.parametrize("page", with_code("python"))
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    script = "\n\n".join(blocks(page, "python"))
    if page == ROOT / "README.md":  # the picture at the top, on the coarser grid
        assert script.count('scale="paper"') == 1
        script = script.replace('scale="paper"', 'scale="quick"')
    (tmp_path / "page.py").write_text(script)
    ran(tmp_path, sys.executable, "page.py")
    for picture in re.findall(r'(?:save|savefig)\((?:fig, )?"([^"]+)"\)', script):
        assert (tmp_path / picture).stat().st_size > 5000


@pytest.mark.parametrize("page", with_code("sh"))
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    ran(tmp_path, "sh", "-ec", "\n".join(blocks(page, "sh")))


WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    for path in sorted((ROOT / "src").rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_the_examples_of_docstrings_are_right(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted
    assert not found.failed
