"""What is printed, and where."""

import io
import sys

import pytest

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
