"""The two ways a request can end badly, and the nearest valid name."""

import functools
import os
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

OURS = str(Path(__file__).parent) + os.sep
STUDIES = OURS + "studies" + os.sep
LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
LONGEST = 80  # letters of what was given that a message repeats


class InputError(ValueError):
    """What was asked for makes no sense. Raised before any work; the command line exits with 2."""


class RunError(RuntimeError):
    """Work that was asked for could not be finished. Finished work is kept; exit code 3."""


class StoreError(RunError):
    """A store that cannot be read or written, or that contradicts itself."""


class DataMissing(RunError):
    """Data sets that are not here, or damaged, and those of them that can be fetched: by name."""

    def __init__(self, told: str, data: str, fetched: str) -> None:
        super().__init__(told)
        self.data, self.fetched = data, fetched

    @property
    def command(self) -> str:
        """What gets them, if anything does."""
        return f"proving data get {self.fetched}" if self.fetched else ""


def unknown(kind: str, name: Any, allowed: Iterable[str], meant: Sequence[str] = ()) -> InputError:
    """An error that names what was wrong, what is allowed and the nearest valid name.

    What may be `meant` comes before the nearest name.
    """
    names = list(allowed)
    text = name if isinstance(name, str) else repr(name)
    near = [*meant] or nearest(text, names)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    given = shortened(name if isinstance(name, str) else text)
    return InputError(f"unknown {kind} {given}{hint} Known: {', '.join(names) or 'none'}.")


def nearest(text: str, names: Iterable[str]) -> list[str]:
    """The name that a text was meant for, if any: one that differs from it in a letter of three,
    begins with it, or begins as it does (four letters, and half of them).

    >>> nearest("sampels", ["scale", "samples"]), nearest("benign", ["benign_overfitting"])
    (['samples'], ['benign_overfitting'])
    >>> nearest("scale", ["steps", "samples"]), nearest("toyy", ["toy"])
    ([], ['toy'])
    >>> nearest("logit", ["linear", "logistic"])
    ['logistic']
    """
    wanted = text[:LONGEST].lower()
    letters = {name: _different(wanted, name.lower()) for name in names}
    most = min(max(1, len(wanted) // 3), len(wanted) - 1)
    close = [name for name, differ in letters.items() if differ <= most]
    same = {name: _alike(wanted, name.lower()) for name in letters}
    half = [name for name, n in same.items() if n >= max(4, max(len(name), len(wanted)) / 2)]
    begun = half + [name for name, n in same.items() if n == len(wanted) > 2]
    return sorted(close, key=lambda name: letters[name])[:1] or begun[:1]


def _alike(a: str, b: str) -> int:
    """With how many letters two texts begin alike."""
    pairs = zip(a, b, strict=False)
    return next((n for n, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))


def _different(a: str, b: str) -> int:
    """How many letters are to be put in, left out, replaced, or swapped with the next to make one
    text the other."""
    older, before, row = [], [], list(range(len(b) + 1))
    for i, letter in enumerate(a):
        older, before, row = before, row, [i + 1]
        for j, other in enumerate(b):
            row.append(min(before[j] + (letter != other), before[j + 1] + 1, row[j] + 1))
            if i and j and (letter, a[i - 1]) == (b[j - 1], other):
                row[-1] = min(row[-1], older[j - 1] + 1)
    return row[-1]


def shortened(given: Any) -> str:
    """What was given, for a message: as Python writes it, and no longer than a line."""
    try:
        text = repr(given)
    except ValueError:  # of a whole number with thousands of digits
        text = f"a {type(given).__name__}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 15]} ... {text[-10:]}"


def place_of(error: BaseException) -> str:
    """Where an error comes from, for a message: the last place in the user's code, else in that of
    a study, else in ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f.filename.startswith(OURS)]
    studies = [f for f in ours if f.filename.startswith(STUDIES)]
    for found in (_users(frames), studies, ours):
        if found:
            return f" ({found[-1].filename}, line {found[-1].lineno})"
    return ""


def told(error: BaseException) -> str:
    """An error of code that a user may have written: what, and where. One that is meant for users
    says what is wrong by itself, and needs a place only in code of their own."""
    if isinstance(error, InputError):
        theirs = _users(traceback.extract_tb(error.__traceback__))
        return str(error).rstrip(".") + (place_of(error) if theirs else "")
    return f"{type(error).__name__}: {error}{place_of(error)}"


def _users(frames: Sequence[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Places that are neither ours nor in a library."""
    known = (OURS, *LIBRARIES, "<frozen")
    return [
        f for f in frames if not f.filename.startswith(known) and "site-packages" not in f.filename
    ]


P = ParamSpec("P")
R = TypeVar("R")


def told_shortly(function: Callable[P, R]) -> Callable[P, R]:
    """A function for users: what it says of wrong input does not end a page of our own calls.

    `PROVING_TRACEBACK=1` shows them. An error of the user's own code keeps its traceback.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except InputError as error:
            if os.environ.get("PROVING_TRACEBACK"):
                raise
            raise error.with_traceback(None) from None
        except RunError as error:
            if os.environ.get("PROVING_TRACEBACK"):
                raise
            raise error.with_traceback(None) from error.__cause__

    return call
