"""The examples run as they are, at sizes small enough for a test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_phase_diagram_runs_and_writes_its_figures(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "phase_diagram.py"],
        cwd=tmp_path,
        env={**os.environ, "EXAMPLE_SIZE": "small"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "critical SNR = C N^s with s = -" in done.stdout
    assert "momentum: critical SNR" in done.stdout
    pictures = {p.name: p.stat().st_size for p in (tmp_path / "figures").iterdir()}
    assert set(pictures) == {"phase_diagram.png", "replay.png", "momentum.png"}
    assert all(10_000 < size < 300_000 for size in pictures.values())
