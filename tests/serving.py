"""The atlas served to tests: from a thread of this process, on a port of its own."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx

from provingground.atlas import server
from provingground.atlas.pages import Atlas

PATIENCE = 60.0  # seconds, on a busy machine


@contextmanager
def served(store, studies=("toy",), host="127.0.0.1", token="", **options):
    """The address of a server of some studies, while the block runs."""
    atlas = Atlas(store, studies=list(studies), live=True, **options)
    listening = server.bound(host, 0)
    ready = threading.Event()
    made = server.prepared(atlas, listening, host=host, token=token, ready=ready.set)
    thread = threading.Thread(target=made.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        found = Served(f"http://127.0.0.1:{listening.getsockname()[1]}", made, atlas)
        with found.client:
            yield found
    finally:
        made.should_exit = True
        thread.join(PATIENCE)
        listening.close()
        assert not thread.is_alive()


@contextmanager
def started(command):
    """The address that a command says it serves the atlas at, while it runs by itself."""
    tests = Path(__file__).parent
    folders = os.pathsep.join([str(tests.parent / "src"), str(tests)])
    environment = {**os.environ, "PYTHONPATH": folders}
    made = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert made.stdout is not None
        line = made.stdout.readline()
        assert line.startswith("atlas: "), line
        yield line.removeprefix("atlas: ").strip().rstrip("/")
    finally:
        made.terminate()
        made.communicate()


class Served:
    """A server, and how its own pages would talk to it."""

    def __init__(self, address, made, atlas):
        self.address, self.made, self.atlas = address, made, atlas
        self.client = httpx.Client(base_url=address, timeout=PATIENCE, headers={"origin": address})
        self.site = made.config.app.app.state.site

    @property
    def port(self):
        return int(self.address.rpartition(":")[2])

    def get(self, path, **options):
        return self.client.get(path, **options)

    def post(self, path, **body):
        return self.client.post(path, json=body)

    def ask(self, *settings, experiment="toy/risk", seeds="1"):
        return self.post("/api/jobs", experiment=experiment, settings=list(settings), seeds=seeds)

    def heard(self, number, after=0):
        """All that is told of a job, until it ends."""
        headers = {"last-event-id": str(after)} if after else {}
        found = []
        with self.client.stream("GET", f"/api/jobs/{number}/events", headers=headers) as answer:
            assert answer.status_code == 200
            for line in answer.iter_lines():
                if line == "event: end":
                    return found
                if line.startswith("data: "):
                    found.append(json.loads(line.removeprefix("data: ")))
        return found

    def wait(self, number, *states):
        end, state = time.monotonic() + PATIENCE, ""
        while time.monotonic() < end:
            state = {j["job"]: j["state"] for j in self.get("/api/jobs").json()["jobs"]}[number]
            if state in states:
                return state
            time.sleep(0.05)
        raise AssertionError(f"job {number} is {state}, not {states}")


if __name__ == "__main__":  # in a process of its own: STORE STUDY ...
    atlas = Atlas(sys.argv[1], studies=sys.argv[2:], live=True)
    listening = server.bound("127.0.0.1", 0)
    port = listening.getsockname()[1]

    def ready():
        print(f"atlas: http://127.0.0.1:{port}/", flush=True)

    server.serve(atlas, listening, host="127.0.0.1", token="", ready=ready)
