"""How far a sweep has come: a bar at a terminal or in a notebook, else a line now and then.

Work tells of itself by calls of (cells done, cells in all, what it is at).
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from provingground.terminal import duration, say

Tell = Callable[[int, int, str], None]
Progress = bool | Tell | None  # as users ask for it: None is True where somebody looks
TRAINING = "training"  # what needs not be said
SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_PICTURES = 0.2  # of a notebook's bar
ROOM = 52  # columns that a terminal must have beside a name, or else it goes above


@contextmanager
def reporting(progress: Progress, title: str) -> Iterator[Tell]:
    """What work should tell how far it is.

    A function that the user gave; nothing for False; else a bar where stderr is a terminal, and in
    a notebook; else lines on stderr, of work that takes long.
    """
    if callable(progress):
        yield progress
    elif progress is False:
        yield lambda done, total, what: None
    elif sys.stderr.isatty():
        with _bar(title) as tell:
            yield tell
    elif (display := _notebook()) is not None:
        with _shown(title, display) as tell:
            yield tell
    else:
        yield _lines(title)


def _lines(title: str) -> Tell:
    """A line every ten seconds, for a log."""
    pace, last = Pace(), time.monotonic()

    def tell(done: int, total: int, what: str) -> None:
        nonlocal last
        told = pace(done, total, what)
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            say(f"{title}  {told}")

    return tell


@contextmanager
def _bar(title: str) -> Iterator[Tell]:
    """A bar on a terminal, gone when the work is done. Names are not cut."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    console = Console(stderr=True)
    if console.width >= len(title) + ROOM:
        columns = (
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            BarColumn(bar_width=20 if console.width > 100 else 6),
            TextColumn("{task.fields[told]}", markup=False, table_column=Column(ratio=1)),
        )
    else:
        columns = (TextColumn("{task.description}\n  {task.fields[told]}", markup=False),)
    with Bar(*columns, console=console, transient=True, expand=True) as bar:
        task, pace = bar.add_task(title, total=None, told=""), Pace()

        def tell(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, told=pace(done, total, what))

        yield tell


def _notebook() -> Callable[..., Any] | None:
    """What shows things in a notebook, if this is one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if not hasattr(shell, "kernel"):
        return None
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    return display


class _Picture:
    """A line of text with a bar, as a notebook shows it; `text` is for where there is no HTML."""

    def __init__(self, text: str, done: int = 0, total: int = 0) -> None:
        self.text, self.done, self.total = text, done, total

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        bar = f'<progress value="{self.done}" max="{self.total}"></progress> ' * bool(self.total)
        return f"<div>{bar}<small>{escape(self.text)}</small></div>"


@contextmanager
def _shown(title: str, display: Callable[..., Any]) -> Iterator[Tell]:
    """A bar in the output of a notebook's cell; at the end a line of what was run, if anything."""
    start = last = time.monotonic()
    pace, cells, handle = Pace(), 0, None

    def tell(done: int, total: int, what: str) -> None:
        nonlocal last, cells, handle
        told, now = pace(done, total, what), time.monotonic()
        cells = max(cells, done)
        if now - last >= SECONDS_BETWEEN_PICTURES:
            last, picture = now, _Picture(f"{title}  {told}", done, total)
            if handle is None:
                handle = display(picture, display_id=True)
            else:
                handle.update(picture)

    try:
        yield tell
    finally:
        if handle is not None:
            taken = duration(time.monotonic() - start)
            handle.update(_Picture(f"{title}  {cells} cells in {taken}"))


class Pace:
    """Puts into words how far work is, how fast it goes, and how long it will take.

    The speed is that of the last minute, from when the first cells were done.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[float, int]] = []  # when so many cells were done
        self.total = 0

    def __call__(self, done: int, total: int, what: str) -> str:
        now = time.monotonic()
        if total != self.total:  # the next stage of a refined sweep
            self.seen, self.total = [], total
        if done and (not self.seen or done > self.seen[-1][1]):
            self.seen.append((now, done))
        while len(self.seen) > 2 and now - self.seen[0][0] > 60:
            del self.seen[0]
        parts = [f"{done}/{total} cells"]
        if what != TRAINING:  # such as compiling, which says nothing of the speed
            parts.append(what)
        elif len(self.seen) > 1:
            (begin, first), (end, last) = self.seen[0], self.seen[-1]
            # Workers that end together are not fast: since then nothing was done.
            since = end if now - end < (end - begin) / (len(self.seen) - 1) else now
            speed = (last - first) / max(since - begin, 1e-6)
            parts.append(f"{speed:.3g} cells/s")
            if done < total:
                parts.append(f"about {duration((total - done) / speed)} left")
        return "  ".join(parts)
