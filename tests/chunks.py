"""A small chunk to put into stores, and how to look for it."""

import hashlib
from pathlib import Path

import numpy as np

from provingground.store import MARKER, Store

IDS = ["a" * 32, "b" * 32, "0123456789abcdef" * 2]
PROBES = {
    "curve": (("step",), np.arange(6.0, dtype=np.float32).reshape(3, 2)),
    "double": ((), np.array([1 / 3, np.nan, np.inf])),
    "count": ((), np.array([1, -2, 3], np.int32)),
    "flag": ((), np.array([True, False, True])),
}
ABOUT = {"fingerprint": "f", "seconds": 1.5, "words": "µ → ∞"}


def put(store: Store, cells=IDS, about=ABOUT) -> Path:
    return store.put("s", cells, {n: (d, a[: len(cells)]) for n, (d, a) in PROBES.items()}, about)


def found(store: Store) -> dict[str, tuple[Path, int]]:
    """File and row of each of the cells that a store has by now."""
    index = store.look("s")
    places = zip(IDS, *index.where(np.array(IDS, "S32")), strict=True)
    return {c: (store.path / "s" / index.files[f], int(r)) for c, f, r in places if f >= 0}


def files(store: Store) -> list[Path]:
    """All files but the marker."""
    return sorted(p for p in store.path.rglob("*") if p.is_file() and p.name != MARKER)


def renamed_to_match(path: Path) -> Path:
    """The file under the name that its content asks for."""
    return path.rename(path.with_name(f"{hashlib.sha256(path.read_bytes()).hexdigest()}.nc"))
