"""The server over real sockets: pages, live cells, and those who wish it ill."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np
import pytest

import tiny
from provingground import api
from provingground.atlas import asking, live, reading, server, thinker, worker
from provingground.atlas.bodies import Bodies
from provingground.atlas.shelf import Shelf
from provingground.errors import InputError
from provingground.store import Store
from serving import PATIENCE, served

pytestmark = pytest.mark.web

KIND = {"content-type": "application/json"}
SETTING = ("samples=30", "noise=0.5")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with the headline of a study."""
    found = Store(tmp_path_factory.mktemp("served") / "store")
    api.run("toy/risk", seeds=3, store=found, progress=False)
    return found


@pytest.fixture(scope="module")
def site(store):
    with served(store) as found:
        yield found


# ---------------------------------------------------------------------------------- pages


def test_every_page_is_served_as_it_would_be_frozen(site):
    paths = list(site.atlas.paths())
    assert len(paths) > 10
    for path in paths:
        answer = site.get(f"/{path}")
        assert answer.status_code == 200, path
        assert answer.content == site.atlas.page(path).body, path
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_folder_is_its_index_and_what_is_known_is_not_sent_again(site):
    answer = site.get("/")
    assert answer.content == site.get("/index.html").content
    assert site.get("/toy/").status_code == 200
    again = site.get("/index.html", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    plain = site.get("/toy/risk/data.js", headers={"accept-encoding": "identity"})
    packed = site.get("/toy/risk/data.js", headers={"accept-encoding": "gzip"})
    assert plain.content == packed.content
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"])
    assert not site.client.head("/index.html").content


@pytest.mark.parametrize(
    "path",
    ["/nothing.html", "/toy/nothing/index.html", "/toy/risk/cells/9999.js", "/static/../pages.py",
     "/static/nothing.js", "/api/nothing", "/toy/risk/cells/0.js.js", "/provingground",
     "/api/jobs/999/events"],
)  # fmt: skip
def test_what_is_not_of_the_atlas_is_not_there(site, path):
    assert site.get(path).status_code in (404, 405)


def raw(site, text, wait=5.0):
    """What comes back for bytes that no library would send."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=wait) as link:
        link.sendall(text)
        found = b""
        try:
            while part := link.recv(65536):
                found += part
        except (TimeoutError, ConnectionResetError):
            pass
    return found


@pytest.mark.parametrize(
    "path",
    ["/../../../../etc/passwd", "/static/../../../../etc/passwd", "/static/%2e%2e/%2e%2e/pages.py",
     "/%2fetc/passwd", "//etc/passwd", "/static/..%5c..%5cpages.py", "/toy/%00", "/%c0%ae%c0%ae/x",
     "http://evil.example/etc/passwd", "/static/....//pages.py"],
)  # fmt: skip
def test_no_path_of_a_raw_request_leads_out(site, path):
    host = f"Host: 127.0.0.1:{site.port}\r\nConnection: close\r\n\r\n"
    answer = raw(site, f"GET {path} HTTP/1.1\r\n{host}".encode("latin-1"))
    assert answer.split(b" ")[1] in (b"400", b"404")
    assert b"root:" not in answer
    assert b"import" not in answer


def test_what_is_no_request_is_refused_and_the_server_goes_on(site):
    host = f"Host: 127.0.0.1:{site.port}\r\n".encode()
    for text in (
        b"\x00\x01\x02\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # no Host
        b"GET / HTTP/1.1\r\n" + host + b"X: " + b"x" * 200_000 + b"\r\n\r\n",
        b"POST /api/jobs HTTP/1.1\r\n" + host + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
        b"POST /api/jobs HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ):
        answer = raw(site, text, wait=2.0)
        assert answer == b"" or answer.split(b" ")[1][:1] == b"4"
    assert site.get("/").status_code == 200


# ------------------------------------------------------------------------------ live cells


def test_a_live_cell_streams_and_is_stored_as_the_engine_would(site, store, monkeypatch):
    computed = tiny.count_computed(monkeypatch)
    answer = site.ask("samples=33", "noise=0.7", seeds="2")
    assert answer.status_code == 202
    told = site.heard(answer.json()["job"])
    events = [each["event"] for each in told]
    assert events[0] == "waiting"
    assert events[-1] == "done"
    frames = [each for each in told if each["event"] == "frame"]
    assert len(frames) > 20
    assert [f["step"] for f in frames] == sorted(f["step"] for f in frames)
    (same,) = [each["deviation"] for each in told if each["event"] == "same"]
    assert same <= 1e-5
    settings = {"samples": 33, "noise": 0.7}
    ds = api.run("toy/risk", seeds=2, store=Store(store.path), settings=settings, progress=False)
    assert computed == []
    (cells,) = [each["cells"] for each in told if each["event"] == "cells"]
    assert cells[0]["labels"] == {"samples": 33, "noise": 0.7}
    assert cells[0]["probes"]
    for name, values in cells[0]["probes"].items():
        np.testing.assert_allclose(values, ds[name].values.reshape(np.shape(values)), 1e-4)
    last = frames[-1]["probes"]["train_loss"]
    np.testing.assert_allclose(last, ds.train_loss.isel(seed=0).values.ravel()[-1], 1e-4)


def test_the_same_cell_elsewhere_has_the_very_numbers(site, store, tmp_path, monkeypatch):
    site.heard(site.ask("samples=35", "noise=0.7").json()["job"])
    how = {"samples": 35, "noise": 0.7, "seeds": 1, "progress": False}
    computed = tiny.count_computed(monkeypatch)
    ours = api.run("toy/risk", store=Store(store.path), **how)
    assert computed == []
    alone = api.run("toy/risk", store=tmp_path, **how)
    assert computed == [1]
    assert ours.attrs["fingerprint"] == alone.attrs["fingerprint"]
    for name in alone.data_vars:
        np.testing.assert_array_equal(ours[name], alone[name])


def test_a_new_value_compiles_nothing_and_a_new_shape_says_so(site):
    site.heard(site.ask("samples=30", "noise=0.81").json()["job"])
    same = site.post(
        "/api/estimate", experiment="toy/risk", settings=["samples=30", "noise=0.82"], seeds="1"
    )
    told = same.json()
    assert (told["new"], told["compiling"]) == (0, 0)
    assert "compiling" not in told["says"]
    assert told["seconds"] >= 0
    wide = site.post(
        "/api/estimate",
        experiment="toy/risk",
        settings=["samples=30", "noise=1", "dim=17"],
        seeds="1",
    )
    assert wide.json()["new"] == 1
    assert "compiling" in wide.json()["says"]
    heard = site.heard(site.ask("samples=30", "noise=0.82").json()["job"])
    assert "compiling" not in [each.get("what") for each in heard]


def test_what_was_told_is_told_again_from_any_place(site):
    number = site.ask("samples=30", "noise=0.85").json()["job"]
    whole = site.heard(number)
    assert site.heard(number) == whole
    assert site.heard(number, after=5) == whole[5:]


def test_the_grid_fills_in_as_cells_finish(tmp_path, monkeypatch):
    with served(tmp_path) as site:
        number = site.post("/api/jobs", experiment="toy/risk", seeds="2").json()["job"]
        told = site.heard(number)
        cells = [c for each in told if each["event"] == "cells" for c in each["cells"]]
        assert len({tuple(c["labels"].values()) for c in cells}) == len(cells) == 15
        assert told[-1]["event"] == "done"
        computed = tiny.count_computed(monkeypatch)
        api.run("toy/risk", seeds=2, store=tmp_path, progress=False)
        assert computed == []


@pytest.mark.parametrize(
    "body",
    [
        {"experiment": "toy/risk", "settings": ["samples=-1"]},
        {"experiment": "toy/risk", "settings": ["samples=1e99"]},
        {"experiment": "toy/risk", "settings": ["noise=nan"]},
        {"experiment": "toy/risk", "settings": ["__proto__=1"]},
        {"experiment": "toy/risk", "settings": ["samples"]},
        {"experiment": "toy/risk", "settings": ["samples=1:9:999999999"]},
        {"experiment": "toy/risk", "settings": ["samples=30", "samples=40"]},
        {"experiment": "toy/risk", "settings": "samples=30"},
        {"experiment": "toy/risk", "settings": [1]},
        {"experiment": "toy/risk", "settings": ["samples=30"] * 100},
        {"experiment": "toy/risk", "settings": ["samples=" + "1" * 10_000]},
        {"experiment": "toy/risk", "seeds": "0"},
        {"experiment": "toy/risk", "seeds": "-1"},
        {"experiment": "toy/risk", "seeds": "1000000000"},
        {"experiment": "toy/risk", "seeds": True},
        {"experiment": "toy/risk", "seeds": [1]},
        {"experiment": "toy/risk", "scale": "huge"},
        {"experiment": "toy/risk", "store": "/tmp/elsewhere"},
        {"experiment": "../risk"},
        {"experiment": "nothing/risk"},
        {"experiment": "toy/nothing"},
        {"experiment": "toy/risk/../../x"},
        {"experiment": None},
        {},
        [],
        "toy/risk",
        None,
    ],
)
def test_what_the_command_line_would_refuse_is_refused(site, body):
    for path in ("/api/jobs", "/api/estimate"):
        answer = site.client.post(path, content=json.dumps(body), headers=KIND)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]
    assert all(job["state"] != "waiting" for job in site.get("/api/jobs").json()["jobs"])


@pytest.mark.parametrize(
    "body", [b"", b"{", b"NaN", b'{"seeds": Infinity}', b"[" * 60_000, b"\xff\xfe", b"1" * 60_000]
)
def test_what_is_no_json_is_refused(site, body):
    answer = site.client.post(
        "/api/jobs", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400


def test_conditions_are_those_of_the_command_line(site):
    told = site.post("/api/conditions", study="toy", settings={"samples": 13}).json()
    known = api.conditions("toy", samples=13)
    assert [c["margin"] for c in told["conditions"]] == [c.margin for c in known]
    assert [c["satisfied"] for c in told["conditions"]] == [c.satisfied for c in known]
    for body in ({"study": "toy", "settings": {"samples": -1}}, {"study": "toy/risk"}, {"study": 1},
                 {"study": "toy", "settings": []}, {"study": "toy", "settings": {"samples": [1]}},
                 {"study": "toy", "settings": {"__proto__": 1}}, []):  # fmt: skip
        assert site.client.post("/api/conditions", json=body).status_code == 400


def test_margins_without_end_are_told_as_such(site):
    """JSON has no word for them; a page is not to take "nothing" for the one or the other."""
    assert [asking.figure(x) for x in (2, float("inf"), -float("inf"), float("nan"))] == [
        2.0, "Infinity", "-Infinity", "NaN"]  # fmt: skip
    told = site.post("/api/conditions", study="vision_transformer", settings={}).json()
    known = api.conditions("vision_transformer")
    assert not np.isfinite([c.margin for c in known]).all()
    for found, condition in zip(told["conditions"], known, strict=True):
        assert float(found["margin"]) == pytest.approx(condition.margin)
        assert float(found["right"]) == pytest.approx(condition.right)


HEAVY = """
import dataclasses, time
from provingground.studies.toy import STUDY as TOY

def theory(cfg):
    if cfg.samples == 101:
        time.sleep(3600)
    if cfg.samples == 102:
        return [bytearray(2**28) for _ in range(64)]
    if cfg.samples == 103:
        raise TypeError("complex")
    return TOY.theory(cfg)

STUDY = dataclasses.replace(TOY, name="heavy", theory=theory)
"""


def test_a_theory_that_takes_too_much_ends_and_the_next_is_answered(store, tmp_path, monkeypatch):
    folder = tmp_path / "heavy_theory"
    folder.mkdir()
    (folder / "__init__.py").write_text(HEAVY)
    monkeypatch.setenv("PROVING_STUDIES", str(folder))
    monkeypatch.setattr(thinker, "SECONDS", 5.0)

    def told(samples):
        answer = site.post("/api/conditions", study="heavy", settings={"samples": samples})
        return answer.status_code, answer.json().get("error", "")

    with served(store) as site:
        assert told(50) == (200, "")
        first = site.site.thinker.process.pid
        wrong = [(101, "over 5 s"), (103, "TypeError: complex")]
        if sys.platform == "linux":  # elsewhere nothing bounds the memory of a process
            wrong.append((102, "memory"))
        for samples, words in wrong:
            status, error = told(samples)
            assert (status, words in error) == (409, True), error
            assert told(50) == (200, "")
        assert not alive(first)
        last = site.site.thinker.process.pid
    assert not alive(last)


def test_what_is_stored_by_others_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "SECONDS_BETWEEN_LOOKS", 0.2)
    with served(tmp_path) as site:
        assert site.get("/toy/risk/data.js").status_code == 404
        api.run("toy/risk", store=tmp_path, progress=False, seeds=128)
        end = time.monotonic() + PATIENCE
        while site.get("/toy/risk/data.js").status_code == 404 and time.monotonic() < end:
            time.sleep(0.1)
        assert site.get("/toy/risk/data.js").status_code == 200
        while not site.atlas.shelf.judged().get("toy/risk") and time.monotonic() < end:
            time.sleep(0.1)
        assert len(site.atlas.shelf.judged()["toy/risk"]) == 2


def test_a_cell_that_was_trained_here_is_judged_again_and_no_others(store, monkeypatch):
    monkeypatch.setattr(reading, "SECONDS_BETWEEN_LOOKS", 0.2)
    with served(store) as site:
        end = time.monotonic() + PATIENCE
        while "toy/risk" not in site.atlas.shelf.judged() and time.monotonic() < end:
            time.sleep(0.1)
        forgotten = []
        forget = site.atlas.forget
        monkeypatch.setattr(site.atlas, "forget", lambda *of: forgotten.append(of) or forget(*of))
        site.heard(site.ask("samples=30", "noise=0.97").json()["job"])
        time.sleep(1)
        assert forgotten == []  # it is beside the grid, which is as it was
        site.heard(site.ask("samples=30", "noise=0.5").json()["job"])
        assert set(forgotten) == {("toy", "risk")}
        while "toy/risk" not in site.atlas.shelf.judged() and time.monotonic() < end:
            time.sleep(0.1)
        assert "toy/risk" in site.atlas.shelf.judged()


# ------------------------------------------------------------------- cancelling and killing


def slowly(monkeypatch):
    """Makes the next worker one that never ends its first order."""
    said = '{"event": "phase", "what": "tracing"}'
    code = f"import sys; [print({said!r}, flush=True) for _ in sys.stdin]"
    create = live.asyncio.create_subprocess_exec

    async def sleeping(*args, **options):
        return await create(sys.executable, "-c", code, **options)

    monkeypatch.setattr(live.asyncio, "create_subprocess_exec", sleeping)


def test_cancelling_ends_the_worker_and_the_next_one_works(tmp_path, monkeypatch):
    with monkeypatch.context() as slow:
        slowly(slow)
        with served(tmp_path) as site:
            first, second = (site.ask(*SETTING, seeds=str(n)).json()["job"] for n in (1, 2))
            site.wait(first, "running")
            worker = site.site.live.process.pid
            slow.undo()
            assert site.post(f"/api/jobs/{first}/cancel").json()["state"] == "cancelled"
            assert site.heard(first)[-1]["event"] == "cancelled"
            assert site.heard(second)[-1]["event"] == "done"
            assert not alive(worker)
            assert site.post(f"/api/jobs/{second}/cancel").json()["state"] == "done"
            assert site.post("/api/jobs/99/cancel").status_code == 404


def test_what_is_cancelled_while_its_worker_starts_is_not_ordered(store, monkeypatch):
    """Else the worker would train it after all, and tell of it in the name of the next."""
    ordered = []

    class Worker:
        returncode, stdin, stdout = None, None, None

    async def tried():
        starting, go = asyncio.Event(), asyncio.Event()

        async def started(*args):
            starting.set()
            await go.wait()
            ordered.append(args)
            return Worker()

        monkeypatch.setattr(live.processes, "started", started)
        queue = live.Live(store)
        known = asking.Estimate(1, 1, 1, 1, None, None, "")
        job = queue.put(asking.Asked("toy/risk"), known)
        job.state = "running"
        work = asyncio.create_task(queue._carried_out(job))
        await starting.wait()
        await queue.cancel(job)
        go.set()
        await work  # nothing is written: there is no pipe

    asyncio.run(tried())
    assert len(ordered) == 1


def test_a_server_gives_no_number_of_an_earlier_one(store):
    """A page that was left open would hear of another request."""
    known = asking.Estimate(1, 1, 1, 1, None, None, "")

    async def number(at):
        queue = live.Live(store)
        assert queue._count >= at
        return queue.put(asking.Asked("toy/risk"), known).number

    before = int(time.time())
    assert asyncio.run(number(before)) > before


def test_lines_about_finished_cells_are_short_whatever_seeds_and_probes_they_have(
    store, monkeypatch
):
    """A line that is too long ends the worker."""
    wide = {f"wide {n}": np.zeros((300, 64, 16)) for n in range(60)}
    few = worker._few({**wide, "long": np.zeros((300, 64, 17)), "last": np.zeros((300, 64))})
    assert {"wide 0", "last"} <= set(few) < {*wide, "last"}
    assert list(worker._few({"a": np.zeros((2, 10**5)), "b": np.zeros((2, 9))})) == ["b"]

    monkeypatch.setattr(worker, "NUMBERS_AT_A_TIME", 100)
    order = {"target": "toy/risk", "scale": "quick", "settings": [], "seeds": "3", "watch": False}
    told = []
    worker.Worker(str(store.path)).work(order, lambda event, **more: told.append((event, more)))
    parts = [more["cells"] for event, more in told if event == "cells"]
    assert sum(map(len, parts)) == 15
    assert len(parts) > 1
    for cell in (cell for part in parts for cell in part):
        assert "test_loss" in cell["probes"]
    sizes = [sum(len(list(_numbers(cell["probes"]))) for cell in part) for part in parts]
    assert max(sizes) <= 100


def _numbers(told):
    """All numbers in nested lists and objects."""
    if isinstance(told, dict | list):
        for each in told.values() if isinstance(told, dict) else told:
            yield from _numbers(each)
    else:
        yield told


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_queue_and_the_watchers_are_bounded(tmp_path, monkeypatch):
    slowly(monkeypatch)
    with served(tmp_path) as site:
        first = site.ask(*SETTING).json()["job"]
        site.wait(first, "running")
        for n in range(live.MOST_WAITING):
            assert site.ask(*SETTING, seeds=str(n + 2)).status_code == 202
        full = site.ask(*SETTING, seeds="50")
        assert (full.status_code, "wait" in full.json()["error"]) == (503, True)
        again = site.ask(*SETTING)
        assert (again.status_code, again.json()["job"]) == (202, first)
        monkeypatch.setattr(live, "MOST_WATCHERS", 2)
        links = [site.client.stream("GET", f"/api/jobs/{first}/events") for _ in range(3)]
        answers = [link.__enter__() for link in links]
        assert sorted(a.status_code for a in answers) == [200, 200, 503]
        for link in links:
            link.__exit__(None, None, None)
        end = time.monotonic() + PATIENCE
        while site.site.live.watchers and time.monotonic() < end:
            time.sleep(0.05)
        assert site.site.live.watchers == 0


def test_a_worker_that_is_killed_is_told_and_another_goes_on(tmp_path, monkeypatch):
    with served(tmp_path) as site:
        site.heard(site.ask(*SETTING).json()["job"])
        number = site.post("/api/jobs", experiment="toy/risk", seeds="128").json()["job"]
        site.wait(number, "running")
        os.kill(site.site.live.process.pid, signal.SIGKILL)
        told = site.heard(number)
        assert told[-1]["event"] == "failed"
        assert "stored" in told[-1]["says"]
        assert (
            site.heard(site.post("/api/jobs", experiment="toy/risk", seeds="128").json()["job"])[
                -1
            ]["event"]
            == "done"
        )
        computed = tiny.count_computed(monkeypatch)
        api.run("toy/risk", seeds=128, store=tmp_path, progress=False)
        assert computed == []


def start(folder, *more):
    """`proving serve` as a process of its own, and its address."""
    command = [sys.executable, "-m", "provingground.cli", "serve", "--no-open", "--port", "0"]
    made = subprocess.Popen(
        [*command, "--store", str(folder), *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert made.stdout is not None
    line = made.stdout.readline()
    assert line.startswith("atlas: http://"), made.stderr and made.stderr.read()
    return made, line.removeprefix("atlas: ").strip()


def test_a_server_that_is_killed_leaves_a_sound_store_and_no_worker(tmp_path):
    import httpx

    made, address = start(tmp_path)
    try:
        client = httpx.Client(
            base_url=address, headers={"origin": address.rstrip("/")}, timeout=PATIENCE
        )
        body = {"experiment": "toy/risk", "seeds": "128"}
        assert client.post("/api/jobs", json=body).status_code == 202
        end = time.monotonic() + PATIENCE
        while not list(tmp_path.glob("toy/*.nc")) and time.monotonic() < end:
            time.sleep(0.02)
        workers = children(made.pid)
        client.close()
    finally:
        made.send_signal(signal.SIGKILL)
        made.communicate()
    end = time.monotonic() + PATIENCE
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.1)
    assert workers
    assert not any(map(alive, workers))
    kept = Store(tmp_path)
    assert list(kept.chunks("toy"))
    assert not kept.damaged
    ds = api.run("toy/risk", seeds=128, store=tmp_path, progress=False)
    assert not ds.attrs["missing"]


def children(pid):
    """The processes that a process started."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if fields[1] == str(pid):
            found.append(int(entry))
    return found


def test_serving_ends_well_and_says_where_it_was(tmp_path):
    made, address = start(tmp_path, "--token")
    assert "?token=" in address
    made.send_signal(signal.SIGINT)
    _, told = made.communicate(timeout=PATIENCE)
    assert made.returncode == 130
    assert "Traceback" not in told


def test_without_the_extra_the_command_says_what_to_install():
    code = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['proving', 'serve', '--no-open'];"
        "from provingground.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'provingground[web]'" in done.stderr


def test_the_site_is_frozen_from_the_command_line(store, tmp_path):
    command = [sys.executable, "-m", "provingground.cli", "site", "toy", "--out"]
    command += [str(tmp_path / "site"), "--store", str(store.path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").is_file()
    assert str(tmp_path / "site" / "index.html") in done.stdout
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept.txt").write_text("mine")
    command[5] = str(tmp_path / "mine")
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2
    assert [f.name for f in (tmp_path / "mine").iterdir()] == ["kept.txt"]


def test_a_port_that_is_taken_and_a_host_that_is_none_are_told():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(InputError, match="cannot listen"):
            server.bound("127.0.0.1", other.getsockname()[1])
    for host in ("no such host", "300.1.1.1", "x" * 300):
        with pytest.raises(InputError, match="cannot listen"):
            server.bound(host, 0)


def test_beyond_this_machine_there_is_a_token(tmp_path):
    made, address = start(tmp_path, "--host", "0.0.0.0")
    made.send_signal(signal.SIGINT)
    made.communicate(timeout=PATIENCE)
    assert "?token=" in address


# --------------------------------------------------------------------------- slow clients


def test_half_a_request_is_not_waited_for(store, monkeypatch):
    monkeypatch.setattr(server, "SECONDS_TO_ASK", 0.3)
    with served(store) as site:
        start = time.monotonic()
        for text in (b"", b"GET / HTTP/1.1\r\nHost: 127", b"GET / HTTP/1.1\r\n"):
            assert raw(site, text, wait=20) == b""
        assert time.monotonic() - start < 15
        assert site.get("/").status_code == 200


def test_who_takes_nothing_is_sent_away_and_holds_nobody_up(store, monkeypatch):
    monkeypatch.setattr(server, "SECONDS_TO_TAKE", 0.5)
    with served(store) as site, contextlib.ExitStack() as links:
        number = site.ask("samples=30", "noise=0.93").json()["job"]
        host = f"Host: 127.0.0.1:{site.port}\r\n\r\n"
        for path in ("/toy/risk/data.js", f"/api/jobs/{number}/events") * 3:
            link = links.enter_context(socket.create_connection(("127.0.0.1", site.port)))
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            link.settimeout(1)
            with contextlib.suppress(OSError):  # asks for far more than fits on the way
                link.sendall(f"GET {path} HTTP/1.1\r\n{host}".encode() * 3000)
        assert site.heard(number)[-1]["event"] == "done"
        assert site.get("/toy/risk/index.html").status_code == 200
        end = time.monotonic() + PATIENCE
        while len(site.made.server_state.connections) > 1 and time.monotonic() < end:
            time.sleep(0.1)
        assert len(site.made.server_state.connections) <= 1
        assert site.site.live.watchers == 0


# ------------------------------------------------------------------------------- the parts


def test_pages_that_are_kept_are_bounded_and_made_anew_when_they_change(monkeypatch):
    from provingground.atlas import bodies

    class Made(NamedTuple):
        body: bytes
        media: str

    class Pages:
        made, version = 0, 0

        def page(self, path: str) -> Made:
            if path == "no":
                raise KeyError(path)
            Pages.made += 1
            return Made(b"x" * 1000, "image/png")

        def stamp(self, path: str) -> str:
            return str(Pages.version)

    async def tried():
        kept = Bodies(Pages())
        await asyncio.gather(*(kept.get("a/b") for _ in range(20)))
        assert Pages.made == 1
        Pages.version += 1
        await kept.get("a/b")
        assert Pages.made == 1
        monkeypatch.setattr(bodies, "SECONDS_KEPT", 0.0)
        assert (await kept.get("a/b")).stamp == "0"
        while kept.making:
            await asyncio.sleep(0.01)
        assert (await kept.get("a/b")).stamp == "1"
        assert Pages.made == 2
        kept.forget("a/")
        await kept.get("a/b")
        assert Pages.made == 3
        monkeypatch.setattr(bodies, "MOST_BYTES", 5000)
        for n in range(50):
            await kept.get(f"a/{n}")
        assert kept.size <= 5000
        assert kept.size == sum(body.size for body in kept.kept.values())
        for _ in range(2):
            with pytest.raises(KeyError):
                await kept.get("no")
        kept.close()

    asyncio.run(tried())


def test_an_experiment_that_breaks_leaves_the_others_to_be_judged(store, monkeypatch, capsys):
    monkeypatch.setattr(reading, "SECONDS_BETWEEN_LOOKS", 0.05)
    known = Shelf._read

    def broken(shelf, study, experiment):
        if study.name == "toy":
            raise ZeroDivisionError("of this one")
        return known(shelf, study, experiment)

    monkeypatch.setattr(Shelf, "_read", broken)
    with served(store, studies=("toy", "vision_transformer")) as site:
        wanted, end = len(site.atlas.shelf.names()) - 1, time.monotonic() + PATIENCE
        while len(site.atlas.shelf.judged()) < wanted and time.monotonic() < end:
            time.sleep(0.05)
        assert len(site.atlas.shelf.judged()) == wanted
        assert "of this one" in capsys.readouterr().err


def test_what_is_told_of_a_long_job_is_bounded(monkeypatch):
    monkeypatch.setattr(live, "MOST_BYTES", 10_000)
    known = asking.Estimate(1, 1, 1, 1, None, None, "")
    job = live.Job(1, asking.Asked("toy/risk"), known)

    async def told():
        for n in range(10_000):
            job.tell({"event": "frame", "step": n, "probes": {}})
        job.tell({"event": "done"})

    asyncio.run(told())
    assert job.size < 11_000
    assert sum('"cut"' in text for text in job.told) == 1
    assert '"done"' in job.told[-1]
