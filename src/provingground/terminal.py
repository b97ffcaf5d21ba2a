"""What is printed: only text, whatever the names in it hold, on whatever is there to print on."""

import contextlib
import io
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TextIO

from provingground.errors import RunError

WIDE = 160  # columns, where nobody says how many there are
NARROWEST = 20
ROOM = 30  # columns that words want beside the rest of a row, or else they go below it
GAP, BELOW = "  ", "    "
KEEP = "\u00a0"  # a space at which a text is not folded; a plain one when it is printed

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
        text = plain(text)
        if wide := width(sys.stderr, otherwise=0):
            text = "\n".join(part for line in text.split("\n") for part in _heading(line, wide))
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        sys.stderr = _Nowhere()


def show_text(text: str) -> None:
    """A result on stdout, as it is."""
    with _delivered():
        sys.stdout.write(plain(text) + "\n")


def show_words(text: str, indent: str = "") -> None:
    """Sentences on stdout, folded between words to the width that is there."""
    show_text("\n".join(folded(plain(text), width(sys.stdout), indent)))


def show_table(
    *columns: str, rows: Iterable[Sequence[str]], words: Sequence[str] | None = None
) -> None:
    """A table on stdout, as wide as the terminal (see `tabled`)."""
    rows = [[plain(text) for text in row] for row in rows]
    head, *lines = tabled(columns, rows, width(sys.stdout), words)
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        head = f"\x1b[1m{head}\x1b[0m"
    with _delivered():
        sys.stdout.write("\n".join([head, *lines]) + "\n")


def width(stream: TextIO, otherwise: int = WIDE) -> int:
    """The columns of a stream: `$COLUMNS`, else those of the terminal, else many."""
    if stream.isatty() or os.environ.get("COLUMNS"):
        return max(NARROWEST, shutil.get_terminal_size((WIDE, 24)).columns)
    return otherwise


def folded(text: str, width: int, indent: str = "", below: str | None = None) -> list[str]:
    """Lines of a text, folded between words. A word that is too long stays whole. Lines but the
    first of a paragraph may have another indent, that of what stands `below`."""
    return [
        line.replace(KEEP, " ")
        for paragraph in text.split("\n")
        for line in textwrap.wrap(
            paragraph,
            width,
            initial_indent=indent,
            subsequent_indent=indent if below is None else below,
            break_long_words=False,
            break_on_hyphens=False,
        )
        or [""]
    ]


def tabled(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    words: Sequence[str] | None = None,
) -> list[str]:
    """The lines of a table: its head, then its rows. Nothing is cut, and only `words` are folded.

    `words` are the columns that may be folded, between words (default: the last one). Columns
    stand side by side as long as they fit, the last one also where it has to be folded; what does
    not fit comes below its row, indented. A row of one text is a heading, or a note.

    >>> rows = [("one", "1", "some longer words"), ("eleven", "11", "words")]
    >>> print("\\n".join(tabled(("name", "n", "says"), rows, 34)))
    name    n   says
    one     1   some longer words
    eleven  11  words
    >>> print("\\n".join(tabled(("name", "n", "says"), rows, 20)))
    name    n
    one     1
        some longer
        words
    eleven  11
        words
    """
    words = columns[-1:] if words is None else words
    wide = [
        max([_letters(name), *(_letters(row[i]) for row in rows if 1 < len(row) > i)])
        for i, name in enumerate(columns)
    ]
    beside, used = 0, 0  # how many columns stand side by side, and how wide they are
    while beside < len(columns):
        left = width - used
        is_last = beside == len(columns) - 1 and columns[beside] in words
        if beside and wide[beside] > left and not (is_last and left >= ROOM):
            break
        wide[beside] = min(wide[beside], left) if is_last else wide[beside]
        used += wide[beside] + len(GAP)
        beside += 1

    def lines(row: Sequence[str]) -> Iterator[str]:
        parts = [[text] for text in row[:beside]]
        if beside == len(row) == len(columns) and columns[-1] in words:
            parts[-1] = folded(row[-1], wide[-1])
        for line in zip_longest(*parts, fillvalue=""):
            yield GAP.join(_padded(*each) for each in zip(line, wide, strict=False)).rstrip()

    def below(row: Sequence[str]) -> Iterator[str]:
        rest = list(zip(columns, row, strict=False))[beside:]
        if short := [f"{name} {text}" for name, text in rest if name not in words and text]:
            yield from folded(GAP.join(short), width, BELOW)
        for name, text in rest:
            if name in words and text:
                yield from folded(text, width, BELOW)

    drawn = [GAP.join(columns[i].ljust(wide[i]) for i in range(beside)).rstrip()]
    for row in rows:
        drawn += _heading(row[0], width) if len(row) == 1 else [*lines(row), *below(row)]
    return drawn


def _heading(text: str, width: int) -> list[str]:
    """A line of its own, folded to itself."""
    before = text[: len(text) - len(text.lstrip(" "))]
    return folded(text.lstrip(" "), width, before, max(before, BELOW))


def _padded(text: str, wide: int) -> str:
    return text + " " * (wide - _letters(text))


def _letters(text: str) -> int:
    """How many columns a text takes."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def duration(seconds: float) -> str:
    """A time, as one says it.

    >>> duration(0.123), duration(75), duration(500), duration(9000)
    ('0.12 s', '75 s', '8.3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


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
