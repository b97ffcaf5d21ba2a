"""The two ways a request can end badly, the nearest valid name, and being asked to stop."""

import functools
import os
import traceback
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, NoReturn, ParamSpec, TypeVar

LONGEST = 80  # letters of what was given that a message repeats


class InputError(ValueError):
    """What was asked for makes no sense. Raised before any work; the command line exits with 2."""


class RunError(RuntimeError):
    """Work that was asked for could not be finished. Finished work is kept; exit code 3."""


class StoreError(RunError):
    """A store that cannot be read or written, or that contradicts itself."""


def unknown(kind: str, name: Any, allowed: Iterable[str]) -> InputError:
    """An error that names what was wrong, what is allowed and the nearest valid name."""
    names = list(allowed)
    text = name if isinstance(name, str) else repr(name)
    near = get_close_matches(text[:LONGEST], names, n=1, cutoff=0.4)
    hint = f"; did you mean '{near[0]}'?" if near else "."
    given = shortened(name if isinstance(name, str) else text)
    return InputError(f"unknown {kind} {given}{hint} Known: {', '.join(names) or 'none'}.")


def shortened(given: Any) -> str:
    """What was given, for a message: as Python writes it, and no longer than a line."""
    try:
        text = repr(given)
    except ValueError:  # of a whole number with thousands of digits
        text = f"a {type(given).__name__}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 15]} ... {text[-10:]}"


def place_of(error: BaseException) -> str:
    """Where an error comes from, for a message: the last place that is not in a library."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "site-packages" not in f.filename]
    return f" ({ours[-1].filename}, line {ours[-1].lineno})" if ours else ""


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


class Terminated(KeyboardInterrupt):
    """Another process (a scheduler that wants the machine back) asked this one to end soon."""


_asked: list[type[KeyboardInterrupt]] = []


def stop(how: type[KeyboardInterrupt]) -> NoReturn:
    """Raises a request to stop, from a signal's handler.

    Python drops what is raised while it deletes an object, so the request is also kept for those
    who look for it with `heed`.
    """
    _asked.append(how)
    raise how


def heed() -> None:
    """Raises a request to stop that was dropped when it came."""
    if _asked:
        raise _asked[-1]
