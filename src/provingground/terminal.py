"""What is printed: only text, whatever the names in it hold, on whatever is there to print on."""

import contextlib
import io
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence

from provingground.errors import RunError

# Everything that can move the cursor, change colours or turn the direction of writing.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """A text with its control characters written out: names must not act on a terminal.

    >>> plain("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def say(text: str) -> None:
    """A remark on stderr. One that cannot be delivered is dropped, and so are those after it."""
    try:
        print(plain(text), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        sys.stderr = _Nowhere()


def show_text(text: str) -> None:
    """A result on stdout."""
    with _delivered():
        sys.stdout.write(plain(text) + "\n")


def show_table(*columns: str, rows: Iterable[Sequence[str]], edge: bool = True) -> None:
    """A table on stdout, as wide as the terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, box=None, pad_edge=edge)
    for row in rows:
        table.add_row(*(plain(text) for text in row))
    here, drawn = sys.stdout.isatty(), io.StringIO()
    width = shutil.get_terminal_size().columns if here else 160
    console = Console(file=drawn, force_terminal=here, width=width, markup=False, emoji=False)
    console.print(table, highlight=False)
    with _delivered():
        sys.stdout.write(drawn.getvalue())


def flush() -> None:
    """Delivers what was shown."""
    with _delivered():
        sys.stdout.flush()


def any_letter(mark: str, otherwise: str = "") -> str:
    """A mark, where stdout can print it."""
    try:
        mark.encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return otherwise
    return mark


def prepare() -> None:
    """Makes stdin, stdout and stderr usable: closed ones lead nowhere, and no letter fails.

    Otherwise the next file that is opened takes the number of a closed one, and what a library
    prints goes into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
                os.set_inheritable(number, True)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _Nowhere())
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


class _Nowhere(io.TextIOBase):
    """A stream that takes everything and keeps nothing."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)


@contextlib.contextmanager
def _delivered() -> Iterator[None]:
    """A result that cannot be printed is an error; one that nobody reads any more is not."""
    try:
        yield
    except BrokenPipeError:
        sys.stdout = _Nowhere()
        raise
    except OSError as error:
        sys.stdout = _Nowhere()  # or it fails again at the end
        raise RunError(f"cannot write to standard output: {error.strerror or error}") from error
