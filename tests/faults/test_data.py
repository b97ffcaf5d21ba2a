"""A run without its data and without a network; data damaged later; two that fetch at once."""

import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import provingground as pg
from provingground import registry
from provingground.data import real
from provingground.errors import DataMissing

HERE = Path(__file__).parent
CLAIMS = "needing/alone/positive"


class Command:
    """The command line with the study `needing`, a folder of data, and no network."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder.parent / "store"

    def __call__(self, *args: object) -> tuple[int, str, str]:
        made = subprocess.run(
            [sys.executable, "-m", "provingground.cli", *map(str, args)],
            capture_output=True,
            text=True,
            timeout=150,
            env={
                **os.environ,
                "PROVING_STUDIES": str(HERE / "needing"),
                "PROVING_DATA": str(self.folder),
                "PROVING_STORE": str(self.store),
                "HTTPS_PROXY": "http://127.0.0.1:9",  # where nobody listens
                "HTTP_PROXY": "http://127.0.0.1:9",
                "COLUMNS": "200",
            },
        )
        assert "Traceback" not in made.stderr
        return made.returncode, made.stdout, made.stderr


@pytest.fixture
def proving(tmp_path):
    return Command(tmp_path / "data")


def test_check_names_what_it_skips_and_judges_the_rest(proving, tmp_path):
    record = tmp_path / "record.json"
    code, out, told = proving("check", "needing", "--json", "--save", record)
    assert code == 0, told
    assert "not judged, since their data are not here: 1 experiment" in told
    assert "needing/digits: the data set 'mnist' is not here; `proving data get mnist`" in told
    for text in (out, record.read_text()):
        found = json.loads(text)
        assert [v["experiment"] for v in found["verdicts"]] == ["alone"]
        (skipped,) = found["skipped"]
        assert (skipped["study"], skipped["experiment"]) == ("needing", "digits")
        assert skipped["command"] == "proving data get mnist"
    page = tmp_path / "report.html"
    code, out, told = proving("report", "needing", "--out", page)
    assert code == 0, told
    assert "Not judged, since their data are not here" in page.read_text()
    assert "proving data get mnist" in page.read_text()
    assert "not in the report: needing/digits: the data set 'mnist' is not here" in told


def test_a_check_of_nothing_else_does_not_pass(proving):
    code, _, told = proving("check", "needing/digits")
    assert code == 3
    assert "proving data get mnist" in told


@pytest.mark.parametrize("command", [("run",), ("figure", "--out", "x.png")])
def test_run_and_figure_end_with_the_command_that_gets_it(proving, command, tmp_path):
    name, *options = command
    options = [tmp_path / o if o.endswith(".png") else o for o in options]
    code, _, told = proving(name, "needing/digits", *options)
    assert code == 3
    assert "the data set 'mnist' is not here; `proving data get mnist` fetches it" in told
    assert not (tmp_path / "x.png").exists()


def test_show_needs_no_data(proving):
    code, out, told = proving("show", "needing/digits")
    assert code == 0, told
    assert "6 cells" in out
    assert "data set: mnist" in out
    assert "nothing can be run: the data set 'mnist' is not here; `proving data get mnist`" in out


def test_without_a_network_nothing_is_fetched_and_nothing_is_left(proving):
    code, _, told = proving("data", "get", "mnist")
    assert code == 3
    assert "mnist could not be fetched, and nothing was kept" in told
    assert "no connection" in told
    assert not [p for p in proving.folder.rglob("*") if p.is_file()]
    code, out, _ = proving("data")
    assert code == 0
    assert "not here  11.6 MB" in out


def test_an_unknown_data_set_is_bad_input(proving):
    code, _, told = proving("data", "get", "mnost")
    assert code == 2
    assert "did you mean 'mnist'" in told


def kept(folder, arrays):
    """Arrays as `proving data get` keeps them."""
    (folder / "mnist").mkdir(parents=True)
    np.savez(folder / "mnist" / "new.npz", allow_pickle=False, **arrays)
    content = (folder / "mnist" / "new.npz").read_bytes()
    path = folder / "mnist" / f"mnist.{real.checksum(content)[:16]}.npz"
    (folder / "mnist" / "new.npz").rename(path)
    return path


DIGITS = {"x_train": np.full((2, 28, 28), 7, np.uint8)}


def test_cells_know_their_data_and_a_damaged_file_is_told(proving, tmp_path):
    path = kept(proving.folder, DIGITS)
    out = tmp_path / "run.nc"
    code, _, told = proving("run", "needing/digits", "--out", out)
    assert code == 0, told
    assert proving("check", "needing")[0] == 0
    path.write_bytes(path.read_bytes()[:-9])
    code, _, told = proving("run", "needing/digits")
    assert code == 3
    assert f"'mnist' is damaged ({path} is damaged" in told
    assert "`proving data get mnist` fetches it" in told
    code, listed, told = proving("data")
    assert "damaged   11.6 MB" in listed
    assert f"{path} is damaged" in told
    code, listed, told = proving("verify")
    assert code == 0, told
    assert "whether cells of needing are stale is not known: the data set 'mnist'" in listed


def forget(study: Any) -> None:
    """What this process has read of data."""
    study.data["mnist"].cache_clear()
    real._loaded.cache_clear()


@pytest.fixture
def needing(monkeypatch, tmp_path):
    monkeypatch.setenv("PROVING_STUDIES", str(HERE / "needing"))
    monkeypatch.setenv("PROVING_DATA", str(tmp_path / "data"))
    study = registry.study("needing")
    forget(study)
    yield study
    forget(study)


def test_in_python_verdicts_name_what_was_skipped(needing, store):
    found = pg.check(needing, store=store, progress=False)
    assert [v.experiment for v in found] == ["alone"]
    assert [s.at for s in found.skipped] == ["needing/digits"]
    assert "not judged: needing/digits, since the data set 'mnist' is not here" in repr(found)
    with pytest.raises(DataMissing, match="proving data get mnist"):
        pg.run(needing, "digits", store=store, progress=False)


def test_other_data_are_other_cells(needing, store, tmp_path):
    path = kept(tmp_path / "data", DIGITS)
    first = pg.run(needing, "digits", store=store, progress=False)
    assert first.attrs["data"].startswith("mnist ")
    assert first.attrs["data_forms"] == "mnist: published"
    path.unlink()
    path.parent.rmdir()
    kept(tmp_path / "data", {"x_train": DIGITS["x_train"] + 1})
    forget(needing)
    second = pg.run(needing, "digits", store=store, progress=False)
    assert second.attrs["data"] != first.attrs["data"]
    assert float(second.end.mean()) > float(first.end.mean()) + 0.5


FETCH = """
import sys
from provingground.data import fetch, real
from provingground.data.sets import DataSet, File, Form
url, sha256 = sys.argv[1:]
form = Form((File("dots/dots.npz", sha256, (url,)),), real.formats.npz)
real.SETS = {"dots": DataSet("dots", "Dots", "Nobody", "none", 0.1, (form,))}
fetch.get("dots")
print(real.load("dots")["x"].sum())
"""


def test_two_processes_that_fetch_at_once_keep_one_file(tmp_path, monkeypatch):
    np.savez(tmp_path / "dots.npz", x=np.arange(1000))
    content = (tmp_path / "dots.npz").read_bytes()
    both = threading.Barrier(2, timeout=120)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            both.wait()  # until the other one asks too
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/dots.npz"
    plain = {n: v for n, v in os.environ.items() if not n.lower().endswith("_proxy")}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", FETCH, url, real.checksum(content)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**plain, "PROVING_DATA": str(tmp_path / "data")},
        )
        for _ in range(2)
    ]
    ends = [process.communicate(timeout=150) for process in started]
    server.shutdown()
    server.server_close()
    assert [process.returncode for process in started] == [0, 0], ends
    assert [out.strip() for out, _ in ends] == ["499500", "499500"]
    assert len([p for p in (tmp_path / "data").rglob("*") if p.is_file()]) == 1
