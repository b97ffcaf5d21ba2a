"""What is printed, and where."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provingground import terminal
from provingground.errors import RunError


class Full(io.StringIO):
    def write(self, text):
        raise OSError(28, "No space left on device")

    def flush(self):
        raise OSError(28, "No space left on device")


class Unread(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


@pytest.fixture
def streams(monkeypatch):
    """Sets the streams."""

    def use(**kinds):
        for name, stream in kinds.items():
            monkeypatch.setattr(sys, name, stream)

    return use


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Größe \u2713\n\tsize", "Größe \u2713\n\tsize"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\rb\x08\x07\x00\x7f", "a\\rb\\x08\\x07\\x00\\x7f"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202egpj.exe", "abc\\u202egpj.exe"),
    ],
)
def test_control_characters_are_written_out(capsys, text, shown):
    assert terminal.plain(text) == shown
    terminal.say(text)
    terminal.show_text(text)
    assert capsys.readouterr() == (shown + "\n", shown + "\n")


def test_tables_are_text(capsys):
    terminal.show_table("a", "b", rows=[("x\x1b[2J", "[bold]y[/bold] :smile:"), ("z",)])
    out = capsys.readouterr().out
    assert "x\\x1b[2J" in out
    assert "[bold]y[/bold] :smile:" in out
    assert "\x1b" not in out


NAMES = st.from_regex(r"[a-z_0-9]{1,30}", fullmatch=True)
WORDS = st.lists(NAMES, max_size=12).map(" ".join)


@given(st.lists(st.tuples(NAMES, NAMES, WORDS), max_size=5), st.integers(20, 120))
def test_tables_cut_and_lose_nothing(rows, width):
    head, *lines = terminal.tabled(("name", "number", "says"), rows, width)
    assert head.startswith("name")
    shown = [word for line in lines for word in line.split() if word != "number"]
    assert sorted(shown) == sorted(
        w for row in rows for w in " ".join(row).split() if w != "number"
    )
    starts = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert starts == [name for name, _, _ in rows]
    for line in lines:  # only names make a line too long, and then it is one name alone
        assert len(line) <= width or len(line.split()) == 1 or line.startswith("    number ")


def test_headings_stand_alone():
    rows = [("study/experiment with a long name:",), ("  claim", "holds", "words")]
    drawn = terminal.tabled(("  claim", "verdict", "says"), rows, 60)
    assert drawn == ["  claim  verdict  says", rows[0][0], "  claim  holds    words"]


def test_remarks_are_folded_between_words_at_a_terminal(streams, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    told = Terminal()
    streams(stderr=told)
    monkeypatch.setenv("COLUMNS", "40")
    terminal.say("unknown study. Known: benign_overfitting, teacher_student, vision_transformer")
    lines = told.getvalue().splitlines()
    assert max(map(len, lines)) <= 40
    assert "teacher_student," in " ".join(lines).split()


def test_what_cannot_be_delivered(streams):
    streams(stdout=Full(), stderr=Full())
    terminal.say("dropped")
    terminal.say("dropped too")
    with pytest.raises(RunError, match="standard output: No space left"):
        terminal.show_text("a result")
    terminal.flush()
    streams(stdout=Unread())
    with pytest.raises(BrokenPipeError):
        terminal.show_table("a", rows=[("b",)])
    terminal.flush()


def test_streams_that_are_closed_lead_nowhere(streams):
    streams(stdout=None, stderr=None)
    terminal.prepare()
    terminal.say("nothing")
    terminal.show_text("nothing")


def test_letters_that_cannot_be_printed(streams):
    printed = io.BytesIO()
    streams(stdout=io.TextIOWrapper(printed, "ascii", write_through=True))
    terminal.prepare()
    terminal.show_text("Größe")
    assert printed.getvalue() == b"Gr\\xf6\\xdfe\n"
    assert terminal.any_letter("✓ ") == ""
    assert terminal.any_letter("+", "-") == "+"
