"""What terminals of any width show: names are never cut or folded, so that they can be copied."""

import os
import pty
import re
import subprocess
import sys

import pytest

import provingground as pg
from provingground import cli, registry, terminal
from provingground.config import pars
from provingground.words import count, symbol

WIDTHS = (60, 80, 200)
STUDIES = {**pg.studies(), "toy": registry.study("toy")}
each_study = pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
each_width = pytest.mark.parametrize("columns", WIDTHS)


@pytest.fixture
def shown(monkeypatch, capsys, tmp_path):
    """The lines that a command shows at a width."""
    monkeypatch.setenv("PROVING_STUDIES", "")

    def call(columns, *args) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "argv", ["proving", *args])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
        return capsys.readouterr().out.splitlines()

    return call


def names_first(lines):
    """The first word of every line that starts one."""
    return [line.split()[0] for line in lines if line and not line.startswith("    ")]


@each_width
def test_list(shown, columns):
    lines = shown(columns, "list")
    words = " ".join(lines).split()
    for study in pg.studies().values():
        assert study.name in names_first(lines)
        assert all(e.name in words for e in study.experiments)
    assert max(map(len, lines)) <= columns


@each_width
@each_study
def test_show_a_study(shown, study, columns):
    lines = shown(columns, "show", study.name)
    first = names_first(lines)
    for experiment in study.experiments:
        assert experiment.name in first
    text = "\n".join(lines)
    words = re.findall(r"\w+", text)
    for name, simulator in study.simulators.items():
        assert f"Simulator {name}" in text
        assert all(parameter in words for parameter in pars(simulator.config))
    assert max(map(len, lines)) <= columns


@each_study
def test_no_table_is_shown_twice(shown, study):
    lines = shown(200, "show", study.name)
    simulators = "\n".join(lines).split("\nSimulator ")[1:]
    assert len(simulators) == len(study.simulators)
    rows = [row for text in simulators for row in re.findall(r"^\w+  +.*; .*$", text, re.MULTILINE)]
    assert {row.split()[0] for row in rows} >= set(pars(study.simulator()[1].config))
    assert len(set(rows)) == len(rows)


@each_width
@each_study
def test_show_an_experiment(shown, study, columns, tmp_path):
    for experiment in study.experiments:
        if columns != 80 and experiment is not study.experiments[0]:
            continue
        scale = "paper" if experiment.trainings.paper_only else "quick"
        target = f"{study.name}/{experiment.name}"
        store = str(tmp_path / "store")
        lines = shown(columns, "show", target, "--scale", scale, "--store", store)
        first = names_first(lines)
        assert lines[0].startswith(f"{target}: ")
        assert all(claim.name in first for claim in experiment.claims_at(scale))
        assert all(axis in first for axis in experiment.trainings.grid)
        assert max(map(len, lines)) <= columns


@each_width
@each_study
def test_conditions(shown, study, columns):
    lines = shown(columns, "conditions", study.name)
    first = names_first(lines)
    prediction = study.theory(study.simulator()[1].config())
    starts = [line[: len(c.name)] for c in prediction.conditions for line in lines]
    assert all(c.name in starts for c in prediction.conditions)
    assert all(name in first for name in prediction.values)
    assert all(name in first for name in pars(study.simulator()[1].config))
    assert max(map(len, lines)) <= columns


def test_a_terminal_of_eighty_columns():
    """As a person sees it: a terminal, without $COLUMNS."""
    there, here = pty.openpty()
    subprocess.run(["stty", "cols", "80", "rows", "24"], stdin=here, check=True)
    env = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "provingground.cli", "list"]
    with subprocess.Popen(command, stdout=here, stderr=here, stdin=here, env=env):
        os.close(here)
        text = b""
        try:
            while more := os.read(there, 4096):
                text += more
        except OSError:  # Linux's way to say that it is over
            pass
    os.close(there)
    plain = re.sub(r"\x1b\[\d*m", "", text.decode()).split("\r\n")
    assert "\x1b[1mstudy\x1b[0m" in text.decode()
    assert 70 < max(map(len, plain)) <= 80
    assert all(name in plain for name in registry.STUDIES)


# ------------------------------------------------------------------------------- width


@pytest.mark.parametrize(
    ("columns", "width"), [(None, 160), ("", 160), ("80", 80), ("x", 160), ("-3", 160), ("5", 20)]
)
def test_columns_are_honoured_in_a_pipe(monkeypatch, capsys, columns, width):
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    terminal.show_words("word " * 100)
    lines = capsys.readouterr().out.splitlines()
    assert width - 5 <= max(map(len, lines)) <= width


# ------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"\alpha_\#", "α_#"),
        (r"|\mathcal{T}_{tr}|", "|T_tr|"),
        (r"\mathcal D_{1..3}", "D_1..3"),
        (r"\tilde\sigma_p", "σ\u0303_p"),
        (r"\hat p_1", "p\u0302_1"),
        (r"\eta\lambda_{\max}", "ηλ_max"),
        (r"\|\delta\|", "‖δ‖"),
        (r"N_{\mathrm{test}}", "N_test"),
        (r"1-\lambda_{t+1}/\lambda_t", "1-λ_t+1/λ_t"),
        ("K'", "K'"),
    ],
)
def test_symbols_are_letters(latex, plain):
    assert symbol(latex) == plain


@each_study
def test_no_symbol_of_a_study_is_left_as_latex(study):
    for simulator in study.simulators.values():
        for p in pars(simulator.config).values():
            assert not re.search(r"[\\{}]", symbol(p.symbol))


def test_counts_are_of_things():
    assert [count(n, "cell") for n in (0, 1, 2)] == ["0 cells", "1 cell", "2 cells"]
