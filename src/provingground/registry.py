"""Which studies there are: those of the project, of other packages, and of the user's folders.

Other packages register an entry point of the group `provingground.studies`; folders are named by
`$PROVING_STUDIES` (or `proving --study-path`), each a package with a `STUDY`. What the project's
own studies are called and hold is kept in an index, so that listing them imports none of them:

    python -m provingground.registry

rewrites it.
"""

import importlib
import importlib.util
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from provingground import reprs
from provingground.errors import InputError, nearest, unknown
from provingground.studies import SKELETON, STUDIES
from provingground.terminal import say

if TYPE_CHECKING:
    from provingground.study import Study

GROUP = "provingground.studies"
INDEX = Path(__file__).parent / "studies" / "index.json"
SECONDS_TO_IMPORT = 10.0  # after which it is said what is being imported


class Listing(NamedTuple):
    """What a list shows of a study."""

    name: str
    title: str
    experiments: list[str]


@reprs.shown(reprs.studies)
class Studies(dict[str, "Study"]):
    """Studies by name, which show themselves as a table."""


def studies() -> Studies:
    """All studies by name: those of the project, then those of other packages and folders."""
    return Studies({name: load() for name, load in _known().items() if name != SKELETON})


def names() -> list[str]:
    """What all studies are called; those of the project are not imported."""
    return list(_known())


def study(name: str) -> "Study":
    """A study by name; no other of the project's is imported."""
    known = _known()
    if name not in known:
        shown = [n for n in known if n != SKELETON]
        raise unknown("study", name, shown, meant=having(name) or nearest(name, known))
    return known[name]()


def having(experiment: str) -> list[str]:
    """The experiments of all studies that have a name, as `"study/experiment"`; three at most."""
    found = [f"{s.name}/{experiment}" for s in listings() if experiment in s.experiments]
    return found[:3]


def listings() -> list[Listing]:
    """All studies as a list shows them; those of the project are not imported."""
    index = json.loads(INDEX.read_text(encoding="utf-8"))
    others = (load() for name, load in _known().items() if name not in index and name != SKELETON)
    return [Listing(name, *index[name]) for name in STUDIES] + [_listing(s) for s in others]


def folders() -> list[Path]:
    """The folders of the user's studies. Refuses what is none, and two that Python would mix up."""
    found: dict[str, Path] = {}
    for text in filter(None, os.environ.get("PROVING_STUDIES", "").split(os.pathsep)):
        folder = folder_of(text, ", which $PROVING_STUDIES names")
        other = found.setdefault(folder.name, folder)
        if other != folder:
            raise InputError(
                f"two folders of studies are called '{folder.name}': {other} and {folder}; "
                "rename one of them"
            )
        _must_be_importable(folder)
    return list(found.values())


# ------------------------------------------------------------------------------ loading


def _known() -> "dict[str, Callable[[], Study]]":
    """How each study is loaded, so that one of them is imported without the others."""
    known: dict[str, Callable[[], Study]] = {n: partial(_listed, n) for n in (*STUDIES, SKELETON)}
    origin = dict.fromkeys(known, "one of the project's")
    for entry in _entries():
        if origin.setdefault(entry.name, entry.value) == entry.value:
            known[entry.name] = partial(_entered, entry)
        else:
            _say_once(
                f"the study '{entry.name}' of {entry.value} is not used: there is another of that "
                f"name, {origin[entry.name]}"
            )
    taken: dict[str, str] = {name: "one of the project's" for name in (*STUDIES, SKELETON)}
    for folder in folders():  # of which one may stand for an installed copy
        found = _study_in(folder)
        if (other := taken.setdefault(found.name, str(folder))) != str(folder):
            raise InputError(
                f"the study in {folder} is called '{found.name}', and so is another ({other}); "
                "give it a name of its own"
            )
        known[found.name] = lambda found=found: found
    return known


def _entries() -> tuple[EntryPoint, ...]:
    """The entry points of all packages, read again where one was installed or removed."""
    return _entries_of(tuple((place, _changed(place)) for place in sys.path))


@lru_cache(maxsize=4)
def _entries_of(places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _changed(place: str) -> int:
    """When something was last put into a folder, or taken out."""
    try:
        return os.stat(place or ".").st_mtime_ns
    except OSError:
        return 0


@cache
def _say_once(text: str) -> None:
    say(f"proving: {text}")


def _listed(name: str) -> "Study":
    module = f"provingground.studies.{name}"
    if (known := sys.modules.get(module)) is not None and hasattr(known, "STUDY"):
        return known.STUDY
    with _importing(f"study '{name}'"):
        return importlib.import_module(module).STUDY


def _entered(entry: Any) -> "Study":
    with _importing(f"study '{entry.name}' of {entry.value}"):
        return _checked(entry.load(), f"{entry.value} is no study")


def folder_of(text: str, named: str = "") -> Path:
    """A folder that may hold a study; `named` says who names it."""
    try:
        folder = Path(text).expanduser().resolve()
        there = (folder / "__init__.py").is_file()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"no study in {text}{named}: {error}") from None
    if not there:
        raise InputError(f"no study in {text}{named}: {_why_none(folder, text)}")
    return folder


def _why_none(folder: Path, text: str) -> str:
    """What is wrong with a folder without a study."""
    if not folder.exists():
        from_here = "; the path is taken from the current folder" * (text[:1] not in ("/", "~"))
        return f"there is no folder {folder}{from_here}"
    inside = sorted(path.parent for path in folder.glob("*/__init__.py"))
    meant = f"; did you mean {Path(text) / inside[0].name}?" if inside else ""
    return f"there is no __init__.py in it{meant}"


def _must_be_importable(folder: Path) -> None:
    """Refuses a folder whose name Python would take for that of another module."""
    name = folder.name
    if not name.isidentifier():
        raise InputError(f"no study in {folder}: its name must be one that Python can import")
    loaded = sys.modules.get(name)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
    else:
        spec = importlib.util.find_spec(name)
        file = None if spec is None else spec.origin
        if file is None:  # none, or a folder that is no package
            return
    if file is not None and Path(file).resolve() == folder / "__init__.py":
        return
    if loaded is None and name in {entry.name for entry in _entries()}:
        return  # an installed copy of it: the folder is used
    raise InputError(
        f"the folder {folder} has the name of another module ({file or 'a part of Python'}); "
        "rename it"
    )


def _study_in(folder: Path) -> "Study":
    """The study of a folder that is a package with a `STUDY`."""
    name, init = folder.name, folder / "__init__.py"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, init, submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            with _importing(f"study in {folder}"):
                spec.loader.exec_module(module)
        except BaseException:
            for part in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
                del sys.modules[part]
            raise
    found = getattr(sys.modules[name], "STUDY", None)
    return _checked(found, f"no study in {folder}: its __init__.py defines no STUDY")


def _checked(found: Any, otherwise: str) -> "Study":
    from provingground.study import Study

    if not isinstance(found, Study):
        raise InputError(otherwise)
    return found


@contextmanager
def _importing(what: str) -> Any:
    """Says what takes long to import; and whatever ends the import ends as bad input."""
    timer = threading.Timer(SECONDS_TO_IMPORT, say, [f"proving: importing the {what} ..."])
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        why = f"it calls sys.exit({error.code!r})" if isinstance(error, SystemExit) else (
            f"{type(error).__name__}: {error}"
        )  # fmt: skip
        raise InputError(f"the {what} cannot be imported: {why}{_place(error)}") from error
    finally:
        timer.cancel()


def _place(error: BaseException) -> str:
    """Where an import failed: the last line outside of Python's own machinery."""
    if isinstance(error, SyntaxError):
        return ""  # it says so itself
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith("<frozen") and frame.filename != __file__:
            return f" ({frame.filename}, line {frame.lineno})"
    return ""


# -------------------------------------------------------------------------------- index


def _listing(found: "Study") -> Listing:
    return Listing(found.name, found.title, [e.name for e in found.experiments])


def index_text() -> str:
    """The index as it should be: title and experiments of each of the project's studies."""
    index = {name: _listing(_listed(name))[1:] for name in STUDIES}
    return json.dumps(index, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    INDEX.write_text(index_text(), encoding="utf-8")
