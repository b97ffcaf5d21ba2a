"""Tests run with strict promotion of dtypes and ranks, each session with a store of its own."""

import gc
import os
import tempfile
from itertools import count
from pathlib import Path

# Before anything imports jax: subprocesses of tests inherit these too.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.pop("COLUMNS", None)  # to which text is folded
# Results of a check that ran before the tests may be shared with them.
os.environ["PROVING_STORE"] = os.environ.get("PROVING_TEST_STORE") or tempfile.mkdtemp(
    prefix="proving-tests-"
)
# What one test compiled no other compiles again, nor the processes that tests start.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="proving-compiled-")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

import hypothesis
import jax
import pytest

from provingground.store import Store

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.load_profile("ci")


@pytest.fixture
def store(tmp_path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture(scope="session")
def shared_store() -> Store:
    """One store for tests that only need results to be there."""
    return Store()


@pytest.fixture
def double():
    """64 bits."""
    with jax.enable_x64(True):
        yield


# A compiled program takes some tens of the 65,530 memory maps that Linux allows a process, which
# aborts where it gets no more.
MAPS = Path("/proc/self/maps")
MANY_MAPS = 20_000
_tests = count(1)


def pytest_runtest_teardown() -> None:
    """Frees compiled programs now and then."""
    if next(_tests) % 10 == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MANY_MAPS:
        from provingground import programs  # not before the types of its imports are checked

        programs.forget_compiled()
        jax.clear_caches()
        gc.collect()
