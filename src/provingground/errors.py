"""The two ways a request can end badly, the nearest valid name, what is said on stderr, and being
asked to stop."""

import contextlib
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NoReturn


class InputError(ValueError):
    """What was asked for makes no sense. Raised before any work; the command line exits with 2."""


class RunError(RuntimeError):
    """Work that was asked for could not be finished. Finished work is kept; exit code 3."""


class StoreError(RunError):
    """A store that cannot be read or written, or that contradicts itself."""


def printable(text: object) -> str:
    """A text of which nothing acts on a terminal, such as the name of a stranger's file."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def say(text: str) -> None:
    """Tells the user something on stderr; where there is none, nobody."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(f"proving: {printable(text)}", file=sys.stderr, flush=True)


def unknown(kind: str, name: str, allowed: Iterable[str]) -> InputError:
    """An error that names what was wrong, what is allowed and the nearest valid name."""
    names = list(allowed)
    near = get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f"; did you mean '{near[0]}'?" if near else "."
    return InputError(f"unknown {kind} '{name}'{hint} Known: {', '.join(names) or 'none'}.")


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
