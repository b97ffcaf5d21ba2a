"""Whatever is typed on the command line: an exit code that means something, and no traceback."""

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from provingground import cli
from provingground.engine import Job
from provingground.errors import RunError

NUMBERS = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(["", " ", "nan", "-inf", "0x10", "1_000", "1e400", "１", "true", "None"]),
    st.text(max_size=6),
)
VALUES = st.one_of(
    NUMBERS,
    st.lists(NUMBERS, min_size=1, max_size=4).map(",".join),
    st.tuples(NUMBERS, NUMBERS, NUMBERS).map(":".join),
    st.tuples(NUMBERS, NUMBERS, st.integers(-3, 10**20)).map(lambda v: f"{v[0]}:{v[1]}:{v[2]}log"),
)
NAMES = st.one_of(
    st.sampled_from(["samples", "noise", "dim", "lr", "steps", "seeds", "risk", "scale", ""]),
    st.text(max_size=6),
)
SETTINGS = st.one_of(st.tuples(NAMES, VALUES).map("=".join), st.text(max_size=8))
TARGETS = st.one_of(
    st.sampled_from(["toy/risk", "toy/risk", "toy/risk", "toy", "toy/", "/", "", "toy/risk/x"]),
    st.text(max_size=12),
)
PATHS = st.one_of(
    st.sampled_from(["a.png", "a.nc", "", ".", "..", "/", "~", "~x/a.png", "x" * 300, "a/b.png"]),
    st.text(max_size=8),
)


@st.composite
def requests(draw):
    """A command with options, some of them allowed."""
    command = draw(st.sampled_from(["run", "run", "figure", "check", "conditions", "diff", "new"]))
    if command == "new":
        return [command, draw(NAMES)]
    if command == "diff":
        return [command, draw(PATHS), draw(PATHS)]
    found = [command, draw(TARGETS)]
    for text in draw(st.lists(SETTINGS, max_size=3)):
        found += ["--set", text]
    if command == "conditions":
        return found
    options = {"--seeds": NUMBERS, "--scale": NAMES, "--store": PATHS}
    if command != "figure":
        options |= {"--lanes": NUMBERS, "--workers": st.integers(-3, 0).map(str)}
    for name in draw(st.lists(st.sampled_from(list(options)), max_size=2)):
        found += [name, draw(options[name])]
    out = {"run": "--out", "check": "--save", "figure": "--out"}[command]
    return [*found, *([out, draw(PATHS)] if command == "figure" or draw(st.booleans()) else [])]


def answer(args: list[str]) -> tuple[int, str]:
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(told):
        patch.setattr(sys, "argv", ["proving", *args])
        with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as end:
            cli.main()
    return int(end.value.code or 0), told.getvalue()


@given(requests())
@example(["run", "toy/risk", "--set", "noise=-1:1e308:3log"])
@example(["run", "toy/risk", "--set", "noise=1e308:1e308:3"])
@example(["run", "toy/risk", "--lanes", "9" * 30])
@settings(max_examples=150)
def test_any_request_ends_well(args):
    def planned(*_, **__):
        raise RunError("it would run")

    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PROVING_STORE", f"{folder}/store")
        patch.setenv("PROVING_STUDIES", "")
        patch.setattr(Job, "forecast", planned)
        patch.setattr("provingground.dispatch.run", planned)
        code, told = answer(args)
        left = os.listdir(folder)
        patch.chdir(here)
    assert code in {0, 1, 2, 3}, told
    assert "Traceback" not in told
    assert "PROVING_TRACEBACK" not in told, told
    assert "\x1b" not in told
    assert code != 2 or left == [], told
