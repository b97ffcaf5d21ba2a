"""Which packages are installed, and which version of them."""

import contextlib
import importlib.metadata
import importlib.util
import itertools
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PYTHON = ".".join(map(str, sys.version_info[:2]))


@cache
def version_of(package: str) -> str | None:
    """The version of an installed package; None if it is not installed, or editable.

    Installed means that it lies where its distribution's list of files lies. That of an editable
    one lies elsewhere.
    """
    if package in sys.stdlib_module_names:
        return PYTHON
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    folders = {Path(p).resolve().parent for p in places if p}
    if not any(any(folder.glob("*.dist-info")) for folder in folders):
        return None
    for name in itertools.chain([package], _distributions(package)):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            about = importlib.metadata.distribution(name)
            if Path(str(about.locate_file(""))).resolve() in folders and about.read_text("RECORD"):
                return about.version
    return None


def _distributions(package: str) -> Iterator[str]:
    """The distributions of a package that has not their name, which takes a while to find out."""
    yield from _all_distributions().get(package, ())


_all_distributions = cache(importlib.metadata.packages_distributions)


def top_of(module: object) -> str:
    return str(module).partition(".")[0]
