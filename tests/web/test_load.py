"""Many readers at once, beside cells that are trained live and a client that takes nothing.

How quick pages are is measured by `benchmarks/serve.py`, on a machine that does nothing else.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import serve

from provingground.atlas import live

pytestmark = pytest.mark.web

READERS = 50
TESTS = Path(__file__).resolve().parents[1]


def test_fifty_readers_beside_live_cells_get_their_pages(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    )
    store = tmp_path / "store"
    command = [sys.executable, "-m", "serving", str(store), "toy"]
    with ThreadPoolExecutor() as apart:  # Playwright's loop may run in this thread
        told = apart.submit(serve.load, "toy/risk", READERS, 10, store, command).result()
    assert [name for name in serve.broken(told) if name != "p95, seconds"] == [], told["which"]
    assert told["pages"] > READERS
    assert told["live cells"] >= 1
    assert told["frames"] > 0
    assert told["jobs remembered"] <= live.MOST_KEPT


def test_what_is_promised_is_compared():
    kept = dict.fromkeys(serve.PROMISED, 0.0)
    assert serve.broken(kept) == []
    assert serve.broken(kept | {"errors": 1}) == ["errors"]
    assert serve.broken(kept | {"largest deviation": None}) == []
    assert serve.broken(kept | {"largest deviation": float("nan")}) == ["largest deviation"]
