"""Being asked to stop: from the keyboard, by a scheduler, or by a notebook."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


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


class Gate:
    """Requests to stop, let through at chosen places only: else they would come between any two
    lines of the main thread, between making a lock and noting that it was made, say."""

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._waiting: list[int] = []
        self._open = True

    def _handle(self, number: int, frame: Any) -> None:
        if self._open:
            self._handlers[number](number, frame)
        else:
            self._waiting.append(number)

    def _let_in(self) -> None:
        while self._waiting:
            number = self._waiting.pop()
            self._handlers[number](number, None)

    def __enter__(self) -> "Gate":
        if threading.current_thread() is threading.main_thread():  # no other one is asked
            found = {number: signal.getsignal(number) for number in SIGNALS}
            self._handlers = {n: handler for n, handler in found.items() if callable(handler)}
            self._open = False
            for number in self._handlers:
                signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._let_in()

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """A place where a request is heeded at once, also one that came before."""
        was, self._open = self._open, True
        try:
            self._let_in()
            yield
        finally:
            self._open = was
