import hashlib
import json
import os
import re
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
import xarray as xr

import provingground as pg
from provingground import __version__, cli, grid, registry
from provingground.data import real
from provingground.data.sets import DataSet, File, Form
from provingground.errors import RunError
from provingground.store import Store
from provingground.studies.curse_of_attention.hourly import etth

SMALL = ["--set", "samples=70,80", "--set", "steps=40", "--seeds", "4"]


class Answer(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def proving(monkeypatch, capsys, tmp_path):
    """Calls the command line in this process."""
    monkeypatch.setenv("PROVING_STUDIES", "")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)

    def call(*args) -> Answer:
        monkeypatch.setattr(sys, "argv", ["proving", *map(str, args)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return Answer(int(end.value.code or 0), *capsys.readouterr())

    return call


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """A store in which the toy study has been checked, and a small run of it."""
    path = tmp_path_factory.mktemp("checked")
    pg.check("toy", store=path)
    pg.run("toy/risk", store=path, samples=[70, 80], steps=40, seeds=4)
    return path


def test_the_command_line_starts_without_the_slow_libraries():
    code = (
        "import sys, provingground.cli\n"
        "sys.argv = ['proving', '--help']\n"
        "try: provingground.cli.main()\n"
        "except SystemExit as end: print(end.code)\n"
        "slow = {'jax', 'numpy', 'xarray', 'matplotlib', 'scipy', 'equinox', 'pandas'}\n"
        "print(sorted(slow & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "conditions" in done.stdout
    assert done.stdout.splitlines()[-2:] == ["0", "[]"]


# ------------------------------------------------------------------------------- looking


def test_version_and_help(proving):
    assert proving("--version") == (0, f"proving {__version__}\n", "")
    told = proving("--help").out
    for command in ("list", "show", "conditions", "cite", "run", "check", "figure", "report",
                    "verify", "upgrade", "diff", "bench", "new"):  # fmt: skip
        assert re.search(rf"^  {command}  +[A-Z]", told, re.MULTILINE)
        code, out, err = proving(command, "--help")
        assert (code, err) == (0, "")
        assert f"proving {command} [OPTIONS]" in out.splitlines()[0]
    for option in ("--json", "--md", "--csv", "--latex", "--save"):
        assert option in proving("check", "--help").out
    assert "--measure" in proving("show", "--help").out


def test_list_names_studies_and_experiments(proving):
    code, out, _ = proving("list")
    assert code == 0
    assert "benign_overfitting" in out
    assert "fig1b" in out


def test_show_a_study(proving):
    code, out, _ = proving("show", "toy")
    assert code == 0
    for text in ("Least squares", "risk", "1920", "3840", "whole numbers from 1", "label noise"):
        assert text in out


def test_show_an_experiment_that_is_stored(proving, checked):
    code, out, _ = proving("show", "toy/risk", "--store", checked)
    assert code == 0
    assert "30, 50, 80, 120, 200" in out
    assert "At scale quick: 1920 cells, 1920 stored; nothing to run" in out
    assert "✓ holds" in out


def test_show_an_experiment_measures_only_if_asked(proving, tmp_path, monkeypatch):
    def work(*args, **options):
        raise RunError("it compiles")

    monkeypatch.setattr("provingground.programs.Programs._compile", work)
    monkeypatch.setattr("provingground.programs.Programs._lower", work)
    monkeypatch.setattr("provingground.identity._hashed", work)
    monkeypatch.setattr("provingground.identity._LOWERED", {})
    code, out, err = proving("show", "toy/risk", "--store", tmp_path / "store")
    assert (code, err) == (0, "")
    assert (
        "At scale quick: 1920 cells, 0 stored; 1920 cells to run with 5 programs, not timed on"
        in out
    )
    assert "--measure" in out
    assert re.search(
        r"^risk_law  +0.75 to 1.25 \(theory 1\)  +the mean .* \(Theorem 1\)$", out, re.MULTILINE
    )
    assert not (tmp_path / "store").exists()
    code, _, err = proving("show", "toy/risk", "--measure", "--store", tmp_path / "store")
    assert code == 3
    assert "it compiles" in err


def test_show_measures_if_asked_and_then_knows(proving, tmp_path):
    asked = ["show", "toy/risk", "--store", tmp_path]
    code, out, err = proving(*asked, "--measure")
    assert code == 0
    assert "timing one call of each program" in err
    assert re.search(r"about [\d.]+ (s|min) of training", out)
    assert "not timed" not in out
    assert re.search(r"about [\d.]+ (s|min) of training", proving(*asked).out)


def test_papers_are_cited_in_bibtex(proving):
    code, out, _ = proving("cite", "benign_overfitting", "toy")
    assert code == 0
    assert out.startswith("@inproceedings{jiang2024benign_overfitting,\n  author = {J. Jiang and ")
    assert "\n@misc{toy,\n  title = {Least squares by gradient descent},\n  note = {L. Brei" in out
    code, out, _ = proving("cite")
    assert code == 0
    assert len(re.findall("^@", out, re.MULTILINE)) == len(registry.STUDIES)
    keys = re.findall(r"^@\w+{(\w+),$", out, re.MULTILINE)
    assert len(set(keys)) == len(keys) == len(registry.STUDIES)
    for study in pg.studies().values():
        entry = study.bibtex
        assert entry.count("{") == entry.count("}")
        years = set(re.findall(r"year = {(\d+)}", entry))
        assert all(year in study.cite for year in years)
        words = re.sub(r"[{}\s]+", " ", entry)
        title = re.search(r"title = (.*?) ?, \w+ =", words)
        assert title
        assert title[1].strip().lower() in study.cite.lower()


def test_conditions_have_both_sides_and_a_margin(proving):
    code, out, _ = proving("conditions", "toy", "--set", "samples=6", "--set", "lr=0.25")
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["samples", "no", "0.5", "6", ">=", "12", "the"] in [row[:7] for row in rows]
    assert ["step", "size", "yes", "2", "0.25", "<=", "0.5"] in [row[:7] for row in rows]
    assert ["excess_risk", "inf"] in [row[:2] for row in rows]
    assert ["lr", "0.25", "η", "step", "size"] in rows


# ------------------------------------------------------------------------------- running


def test_run_writes_the_dataset(proving, checked, tmp_path):
    out = tmp_path / "ds.nc"
    code, printed, told = proving("run", "toy/risk", *SMALL, "--store", checked, "--out", out)
    assert (code, printed) == (0, "")
    assert "24 cells, 24 stored; nothing to run" in told
    with xr.open_dataset(out, engine="scipy") as ds:
        plain = pg.load("toy/risk", store=checked, samples=[70, 80], steps=40, seeds=4)
        np.testing.assert_array_equal(ds.test_loss, plain.test_loss)
        assert ds.attrs["cells"] == 24


def test_run_prints_the_dataset_and_counts_what_diverged(proving, tmp_path):
    code, out, err = proving("run", "toy/risk", *SMALL, "--set", "lr=1000", "--store", tmp_path)
    assert code == 0
    assert "<xarray.Dataset>" in out
    assert "24 cells, 0 stored; 24 cells to run with 1 program" in err
    assert "24 of 24 cells diverged" in err


def test_check_prints_one_json_object(proving, checked):
    code, out, _ = proving("check", "toy", "--json", "--store", checked)
    assert code == 0
    record = json.loads(out)
    assert list(record) == ["version", "scale", "device", "seconds", "skipped", "verdicts"]
    assert (record["version"], record["scale"]) == (__version__, "quick")
    assert [v["claim"] for v in record["verdicts"]] == ["risk_law", "noise_exponent"]
    first = record["verdicts"][0]
    assert list(first) == [
        "study", "experiment", "claim", "source", "says", "value", "low", "high", "within",
        "verdict", "expected", "surprise", "cells", "diverged", "kind", "bound", "theory", "agrees",
        "because", "measured", "seeds", "at", "decided_at", "conditions",
    ]  # fmt: skip
    assert (first["kind"], first["bound"], first["theory"]) == ("printed", "ours", 1.0)
    assert (first["measured"], first["seeds"]) == (True, 128)
    assert first["conditions"] == dict(satisfied=2, of=2, worst=1.25, vacuous=[])
    assert first["low"] <= first["value"] <= first["high"]
    assert (first["verdict"], first["surprise"], first["cells"]) == ("holds", False, 1920)


@pytest.mark.parametrize("command", ["check", "run", "figure"])
def test_a_sweep_is_planned_once(proving, checked, tmp_path, monkeypatch, command):
    planned = []
    plan = grid.plan
    monkeypatch.setattr(grid, "plan", lambda *a, **o: planned.append(a) or plan(*a, **o))
    out = {"check": "--save", "run": "--out", "figure": "--out"}[command]
    name = {"check": "v.json", "run": "ds.nc", "figure": "f.png"}[command]
    assert proving(command, "toy/risk", *SMALL, "--store", checked, out, name).code in (0, 1)
    assert len(planned) == 1
    assert (tmp_path / name).exists()


def test_all_is_planned_before_anything_runs(proving, tmp_path, monkeypatch):
    monkeypatch.setattr("provingground.dispatch.run", lambda *a: pytest.fail("it ran"))
    request = ["check", "toy", "benign_overfitting/fig1a", "--set", "noise=2", "--set", "steps=40",
               "--set", "lr=0.1", "--set", "dim=2"]  # fmt: skip
    code, _, err = proving(*request, "--store", tmp_path / "store")
    assert code == 2
    assert "dim" in err


def test_an_error_that_was_not_foreseen_is_one_line(proving, monkeypatch):
    def broken(*args, **options):
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr("provingground.planning.job", broken)
    code, _, err = proving("run", "toy/risk")
    assert code == 3
    assert err.startswith("proving: ZeroDivisionError: of ours (")
    assert len(err.splitlines()) == 1
    monkeypatch.setenv("PROVING_TRACEBACK", "1")
    assert "Traceback" in proving("run", "toy/risk").err


def test_check_prints_a_table_and_saves_the_verdicts(proving, checked, tmp_path):
    saved = tmp_path / "verdicts.json"
    code, out, err = proving("check", "toy", "--store", checked, "--save", saved)
    assert code == 0
    assert re.search(r"risk_law .*✓ holds .*\[.*\] .*0.75 to 1.25 ", out)
    assert "2 claims" in err
    record = json.loads(saved.read_text())
    names = ["version", "scale", "device", "seconds", "skipped", "verdicts", "provenance"]
    assert list(record) == names
    assert record["provenance"]["toy/risk"]["cells"] == 1920
    assert list(record["provenance"]["toy/risk"]["source"]) == ["code", "settings"]


@pytest.mark.parametrize(
    ("option", "ending", "start"),
    [
        ("--md", ".md", "| claim | says |"),
        ("--csv", ".csv", "study,experiment,claim,"),
        ("--latex", ".tex", "% \\usepackage{booktabs}\n\\begin{tabular}"),
    ],
)
def test_verdicts_as_tables(proving, checked, tmp_path, option, ending, start):
    saved = tmp_path / f"verdicts{ending}"
    code, out, err = proving("check", "toy", option, "--store", checked, "--save", saved)
    assert code == 0
    assert out.startswith(start)
    assert saved.read_text() == out
    assert out.count("mean excess risk") == 1
    assert err == f"1 experiment, 1920 cells, 1920 stored; nothing to run\nwrote {saved}\n"


def test_check_says_beforehand_what_it_will_take(proving, checked):
    code, _, err = proving("check", "toy", "--seeds", "129", "--store", checked)
    assert code == 0
    begin = "1 experiment, 1935 cells, 1920 stored; 15 cells to run with 5 programs, about "
    assert err.startswith(begin)
    assert re.search(r"about [\d.]+ s of training", err.splitlines()[0])


def test_a_surprise_is_exit_code_one(proving, checked):
    code, out, err = proving("check", "toy", *SMALL, "--set", "lr=0.001", "--store", checked)
    assert code == 1
    assert re.search(r"risk_law .*✗ fails, SURPRISE", out)
    assert re.search(r"not passed: \d claims? \(\d surprising", err)


def test_an_undecided_headline_is_exit_code_one(proving, checked):
    command = ("check", "toy", *SMALL, "--set", "lr=1000", "--store", checked, "--json")
    code, out, err = proving(*command)
    assert code == 1
    assert err.endswith("not passed: 2 claims (2 of a headline, and undecided)\n")
    assert [v["verdict"] for v in json.loads(out)["verdicts"]] == ["unknown"] * 2


def test_a_headline_that_cannot_be_measured_is_exit_code_one(proving, checked):
    code, out, err = proving("check", "toy", "--set", "noise=1", "--store", checked)
    assert code == 1
    assert err.endswith("not passed: 1 claim (1 unmeasured)\n")
    told = "could not be measured: a law needs two points of 'noise' in (1.0, 1.0); it has [1.0]"
    assert " ".join(out.split()).endswith(told)


def test_conditions_are_those_of_all_settings(proving, checked):
    small = [*SMALL, "--set", "dim=10,70", "--store", checked]
    _, out, _ = proving("check", "toy", *small)
    assert "toy/risk: 1 to 2 of 2 conditions, worst margin 0.97\n" in out


def test_headings_and_remarks_are_folded(proving, checked, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    out, err = proving("check", "toy", *SMALL, "--set", "dim=10,70", "--store", checked)[1:]
    assert "toy/risk: 1 to 2 of 2 conditions, worst\n    margin 0.97\n" in out
    assert max(map(len, err.splitlines())) <= 40


def test_what_is_named_twice_is_judged_once(proving, checked):
    code, out, err = proving("check", "toy/risk", "toy", "--store", checked)
    assert (code, out.count("risk_law")) == (0, 1)
    assert err.startswith("1 experiment, ")


def test_a_check_without_data_has_no_empty_table(proving, checked, monkeypatch, tmp_path):
    monkeypatch.setenv("PROVING_DATA", str(tmp_path / "none"))
    etth.cache_clear()  # another test may have read it
    code, out, err = proving("check", "curse_of_attention/fig1a", "--store", checked)
    assert (code, out) == (3, "")
    assert err.startswith("not judged, since their data are not here: 1 experiment\n")
    assert "'etth1' and 'etth2' are not here; `proving data get etth1 etth2` fetches" in err
    assert f"There is no folder {tmp_path / 'none'}, which $PROVING_DATA names" in err
    out = proving("show", "curse_of_attention/fig1a", "--store", checked).out
    assert "data sets: etth1, etth2\n" in out


def test_data_sets_are_tried_one_after_the_other(proving, monkeypatch, tmp_path):
    monkeypatch.setenv("PROVING_DATA", str(tmp_path))
    code, _, err = proving("data", "get", "textures", "ogbn_arxiv", "textures")
    assert code == 3
    assert "the data set 'textures' is not here" in err
    assert "the data set 'ogbn_arxiv' is not here" in err
    assert err.endswith("proving: 2 of 2 are not here: textures, ogbn_arxiv\n")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PROVING_DATA", str(tmp_path / "file"))
    code, _, err = proving("data")
    assert (code, "file, which is a file: name a folder" in err) == (2, True)


def test_a_data_set_of_which_a_part_is_here_says_what_is_lacking(proving, monkeypatch, tmp_path):
    monkeypatch.setenv("PROVING_DATA", str(tmp_path))
    (tmp_path / "dots").mkdir()
    (tmp_path / "dots" / "a.gz").write_bytes(b"a")
    files = tuple(File(f"dots/{n}.gz", hashlib.sha256(n.encode()).hexdigest()) for n in "ab")
    data = DataSet("dots", "Dots", "Nobody, 2026", "none", 0.1, (Form(files, lambda a, b: {}),))
    monkeypatch.setattr(real, "SETS", {"dots": data})
    out, err = proving("data")[1:]
    assert "in part  0.1 MB" in out
    assert f"there is no {tmp_path}/dots/b.gz with the SHA-256 {files[1].sha256}" in err
    assert "a.gz" not in err


def test_all_of_an_error_is_shown_where_it_is_asked_for(proving, monkeypatch):
    monkeypatch.setenv("PROVING_TRACEBACK", "1")
    assert "Traceback" in proving("run", "toi").err


# ------------------------------------------------------------------------------- drawing

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", STARTS)
def test_figures_are_drawn_from_what_is_stored(proving, checked, tmp_path, kind):
    out = tmp_path / f"risk.{kind}"
    assert proving("figure", "toy/risk", "--store", checked, "--out", out).code == 0
    assert out.read_bytes().startswith(STARTS[kind])


@pytest.mark.parametrize("options", [[], ["--seeds", "1000"], ["--set", "dim=7"]])
def test_a_figure_of_what_is_not_stored_is_exit_code_three(proving, checked, tmp_path, options):
    out = tmp_path / "risk.png"
    where = checked if options else tmp_path / "empty"
    code, _, err = proving("figure", "toy/risk", *options, "--store", where, "--out", out)
    assert code == 3
    assert "`proving run toy/risk`" in err
    assert "Traceback" not in err
    assert not out.exists()


def test_a_report_is_one_page(proving, checked, tmp_path):
    out = tmp_path / "report.html"
    code, printed, _ = proving("report", "toy", "--store", checked, "--out", out)
    assert (code, printed) == (0, f"report: {out}\n")
    page = out.read_text()
    assert "risk_law" in page
    assert "data:image/png;base64," in page


def test_a_report_says_what_it_leaves_out(proving, checked, tmp_path):
    out = tmp_path / "report.html"
    code, _, err = proving("report", "toy", "benign_overfitting/fig1a", "--store", checked,
                           "--out", out)  # fmt: skip
    assert code == 0
    assert "not in the report" in err
    assert "benign_overfitting/fig1a" in err
    code, _, err = proving("report", "toy", "--store", tmp_path / "empty", "--out", out)
    assert code == 3
    assert "proving check" in err


# ------------------------------------------------------------------------------- keeping


def test_verify_counts_and_names_what_is_broken(proving, tmp_path):
    pg.run("toy/risk", store=tmp_path, samples=[70, 80], steps=40, seeds=4)
    code, out, _ = proving("verify", "--store", tmp_path)
    assert code == 0
    assert re.fullmatch(r"toy: \d files, 24 cells, 0 stale\n", out)
    bad = next((tmp_path / "toy").glob("*.nc"))
    bad.write_bytes(bad.read_bytes()[:-9])
    code, out, err = proving("verify", "toy", "--adopt", "--store", tmp_path)
    assert code == 3
    assert "0 stale, 0 adopted, 0 differ" in out
    assert bad.name in err
    assert proving("verify", "--store", tmp_path).code == 0


def test_diff_tells_what_changed(proving, checked, tmp_path):
    a, b = tmp_path / "a.nc", tmp_path / "b.nc"
    for path, noise in ((a, "1.0"), (b, "2.0")):
        proving("run", "toy/risk", *SMALL, "--set", f"noise={noise}", "--store", checked,
                "--out", path)  # fmt: skip
    assert proving("diff", a, a) == (0, "no difference\n", "")
    code, out, _ = proving("diff", a, b)
    assert code == 1
    assert "no cell in common" in out
    assert "grid" in out
    assert "noise" in out


def test_diff_of_records_ends_with_one_if_a_verdict_changed(proving, checked, tmp_path):
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    proving("check", "toy", "--store", checked, "--save", a)
    record = json.loads(a.read_text())
    assert proving("diff", a, a) == (0, "2 claims: same verdict, same numbers\n", "")
    record["verdicts"][0]["value"] += 0.01
    b.write_text(json.dumps(record))
    code, out, _ = proving("diff", a, b, "--all")
    assert code == 0
    assert re.search(r"largest move 0\.\d+ of an\s+interval at toy/risk/risk_law\n", out)
    assert re.search(r"^  toy/risk/risk_law: value [\d.]+ -> [\d.]+$", out, re.MULTILINE)
    assert "risk_law: value" not in proving("diff", a, b).out
    record["verdicts"][0]["verdict"] = "fails"
    b.write_text(json.dumps(record))
    code, out, _ = proving("diff", tmp_path / "a.json", b)
    assert code == 1
    assert out.startswith("verdicts that changed: 1\n  toy/risk/risk_law\n    was  holds ")
    (tmp_path / "none").mkdir()
    assert proving("diff", a, tmp_path / "none").code == 2


def test_new_says_what_to_try(proving, tmp_path):
    code, out, _ = proving("new", "my_study", "--folder", tmp_path)
    assert code == 0
    assert f"proving --study-path {tmp_path / 'my_study' / 'my_study'} check my_study" in out


# --------------------------------------------------------------------------- bad requests


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ("run benign_overfiting/fig1a", "did you mean 'benign_overfitting'"),
        ("run toy/risc", "did you mean 'risk'"),
        ("run benign_overfitting", "say which experiment of benign_overfitting: one of fig1b"),
        ("show toi", "unknown study 'toi'; did you mean 'toy'"),
        ("show toyy", "did you mean 'toy'? Known: benign"),
        ("show fig1b", "did you mean 'benign_overfitting/fig1b'?"),
        ("check toy fig1b", "did you mean 'benign_overfitting/fig1b'?"),
        ("show benign", "did you mean 'benign_overfitting'?"),
        ("show toy --scale large", "unknown scale 'large'. Known"),
        ("show graph_transformer/encodings", "exists at scale 'paper' only; add --scale paper"),
        ("run toy/risk --set scale=3", "unknown parameter 'scale'. Known"),
        ("data get nope", "unknown data set 'nope'. Known"),
        ("run toy/risk --set steps=1.5e0", "whole numbers from 11"),
        ("run toy/risk --set steps=1e400", "whole numbers from 11"),
        ("run toy/risk --seeds 5:2", "seeds = 5:2 is not allowed: they go from the first up to"),
        ("check toy --seeds 5:7", "2 seeds do not make a verdict, which needs at least 3"),
        ("run toy/risk --design 0", "0 settings cannot be drawn"),
        ("check toy --off-slice 0", "0 settings cannot be drawn"),
        ("check toy --draw 3", "draw = 3 says nothing without"),
        ("check toy --workers 0", "workers = 0 is not allowed"),
        ("bench --only W9", "unknown workload 'W9'"),
        ("bench --full --size big", "unknown size 'big'"),
        ("bench --repetitions 0", "repetitions = 0 is not allowed"),
        ("bench --size full", "--size goes with --full"),
        ("check toy/risc", "did you mean 'risk'"),
        ("check toy --scale papper", "did you mean 'paper'"),
        ("run toy/risk --set sampels=3", "did you mean 'samples'"),
        ("run toy/risk --set samples=0", "whole numbers from 1"),
        ("run toy/risk --set samples=2.5", "whole numbers from 1"),
        ("run toy/risk --set samples=1:inf:3", "whole numbers from 1"),
        ("run toy/risk --set noise=-1", "numbers from 0"),
        ("run toy/risk --set noise=nan", "numbers from 0"),
        ("run toy/risk --set noise=much", "numbers from 0"),
        ("run toy/risk --set noise=1,nan", "numbers from 0"),
        ("run toy/risk --set noise=", "empty list"),
        ("run toy/risk --set noise=,", "empty list"),
        ("run toy/risk --set noise=1,1", "twice"),
        ("run toy/risk --set noise=0:1", "lo:hi:n"),
        ("run toy/risk --set noise=0:1:1000000000", "allowed"),
        ("run toy/risk --set noise", "write NAME=VALUES"),
        ("run toy/risk --seeds 1000000000", "allowed"),
        ("run toy/risk --seeds 1000000", "--yes"),
        ("run toy/risk --seeds 0", "at least one seed"),
        ("run toy/risk --seeds many", "their number, or a list"),
        ("run toy/risk --lanes 0", "lanes = 0 is not allowed"),
        ("run toy/risk --lanes 2147483648", "whole numbers from 1 to 2147483647"),
        ("run toy/risk --set noise=1 --set noise=2", "noise is set twice"),
        ("run toy/risk --set noise=1e39", "to 3.403e+38 in float32"),
        ("run toy/risk --out ds.txt", "ends in .nc"),
        ("run toy/risk --dashboard", "give --workers"),
        ("run toy/risk --workers 1 --scheduler x", "give one of them"),
        ("run toy/risk --scale small", "Known: quick, paper"),
        ("run toy/risk --set steps=5", "steps"),
        ("figure toy/risk --out risk.gif", ".png or .svg or .pdf"),
        ("figure toy/risk --out risk", ".png or .svg or .pdf"),
        ("run benign_overfitting/numerics --set numerics=halfstep", "did you mean 'half step'"),
        ("run benign_overfitting/numerics --set lr=0.1", "lr is set by numerics"),
        ("conditions toy --set noise=1,2", "one value for noise"),
        ("conditions toy --set nois=1", "did you mean 'noise'"),
        ("verify toi", "unknown study 'toi'"),
        ("cite toi", "unknown study 'toi'"),
        ("cite benign_overfiting", "did you mean 'benign_overfitting'"),
        ("check toy --md --csv", "--md and --csv"),
        ("check toy --save verdicts.txt", "ends in .json or .md or .csv or .tex"),
        ("diff a.nc b.nc", "no such file: a.nc"),
        ("diff . .", "there are no records (*.json) in ."),
        ("new Bad-Name", "a letter first"),
        ("new toy", "there is a study 'toy' already"),
        ("--study-path nowhere list", "no study in nowhere: there is no folder /"),
        ("run", "Missing argument"),
        ("rum toy/risk", "No such command"),
    ],
)
def test_a_request_that_makes_no_sense_is_exit_code_two(proving, tmp_path, request_, says):
    store = ["--store", tmp_path / "store"] if request_.split()[0] in ("run", "check") else []
    code, _, err = proving(*request_.split(), *store)
    assert code == 2
    assert says in err
    assert "Traceback" not in err
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "request_",
    [
        "run toy/risk --out nowhere/ds.nc",
        "check toy --save nowhere/verdicts.json",
        "figure toy/risk --out nowhere/risk.png",
        "report toy --out nowhere/report.html",
    ],
)
def test_a_folder_that_does_not_exist_is_named_before_any_work(proving, checked, request_):
    code, out, err = proving(*request_.split(), "--store", checked)
    assert (code, out) == (2, "")
    assert "nowhere" in err
    assert "does not exist" in err


def test_many_values_ask_before_they_are_listed(proving, monkeypatch):
    monkeypatch.setattr(np, "linspace", None)
    code, _, err = proving("run", "toy/risk", "--set", "noise=0:1:50000000")
    assert code == 2
    assert "--yes" in err


def test_a_store_that_cannot_be_one_is_exit_code_two(proving, tmp_path):
    (tmp_path / "file").write_text("in the way")
    for store in (tmp_path / "file", tmp_path / "file" / "store", tmp_path):
        code, _, err = proving("run", "toy/risk", *SMALL, "--store", store)
        assert code == 2
        assert "cannot be a store: Not a directory" in err or "is not a store" in err
        assert "Traceback" not in err


def test_an_interrupted_run_says_how_to_go_on(proving, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("provingground.planning.job", interrupt)
    monkeypatch.setattr(os, "_exit", sys.exit)
    code, _, err = proving("run", "toy/risk")
    assert code == 130
    assert "run again to go on" in err


def test_quarantined_files_are_named(proving, tmp_path):
    run = ["run", "toy/risk", *SMALL, "--store", tmp_path]
    proving(*run)
    before = pg.load("toy/risk", store=tmp_path, samples=[70, 80], steps=40, seeds=4)
    bad = next((tmp_path / "toy").glob("*.nc"))
    bad.write_bytes(b"")
    code, _, err = proving(*run)
    assert code == 0
    assert f"quarantined toy/{bad.name}" in err
    again = pg.load("toy/risk", store=Store(tmp_path), samples=[70, 80], steps=40, seeds=4)
    np.testing.assert_array_equal(again.test_loss, before.test_loss)
