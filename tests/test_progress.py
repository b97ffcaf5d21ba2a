"""How far a sweep has come: lines in a log, a bar in a notebook."""

import sys
import types

import pytest

import tiny as small
from provingground import api, planning, progress
from provingground.progress import TRAINING, Pace, reporting
from tiny import tiny


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told to go on."""

    class Clock:
        now = 1000.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_a_log_gets_a_line_every_ten_seconds(clock, capsys):
    with reporting(None, "tiny/first") as tell:
        for second in range(65):
            clock.now = 1000.0 + second
            what = TRAINING if second > 15 else "compiled 3 of 8 programs"
            tell(max(0, second - 15) * 10, 640, what)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "tiny/first  0/640 cells  compiled 3 of 8 programs",
        "tiny/first  50/640 cells  10 cells/s  about 59 s left",
        "tiny/first  150/640 cells  10 cells/s  about 49 s left",
        "tiny/first  250/640 cells  10 cells/s  about 39 s left",
        "tiny/first  350/640 cells  10 cells/s  about 29 s left",
        "tiny/first  450/640 cells  10 cells/s  about 19 s left",
    ]


def test_short_work_and_unasked_for_progress_say_nothing(clock, capsys):
    for asked in (None, True, False):
        with reporting(asked, "tiny/first") as tell:
            for done in range(19):
                tell(done, 18, TRAINING)
                clock.now += 0.4 if asked is not False else 40
    assert capsys.readouterr() == ("", "")


def test_a_function_of_the_user_is_told_as_it_is():
    told = []
    with reporting(lambda *args: told.append(args), "tiny/first") as tell:
        tell(1, 2, "x")
    assert told == [(1, 2, "x")]


def test_the_speed_is_that_of_the_last_minute(clock):
    pace, told = Pace(), ""
    for second in range(200):
        clock.now = float(second)
        told = pace(second if second < 100 else 100 + 10 * (second - 100), 10_000, TRAINING)
    assert told == "1090/10000 cells  10 cells/s  about 14.8 min left"
    assert pace(1, 50, TRAINING) == "1/50 cells"  # the next stage of a refined sweep


def test_a_notebook_has_a_bar_that_ends_as_a_line(clock, monkeypatch):
    shown = []

    class Handle:
        update = shown.append

    def display(picture, display_id):
        assert display_id
        shown.append(picture)
        return Handle

    shell = types.SimpleNamespace(kernel=object())
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell  # pyright: ignore[reportAttributeAccessIssue]
    of_display = types.ModuleType("IPython.display")
    of_display.display = display  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", of_display)
    with reporting(None, "a<b/first") as tell:
        tell(0, 18, "tracing")
        assert shown == []  # it may be that all is stored
        clock.now += 1
        tell(6, 18, TRAINING)
        tell(7, 18, TRAINING)
        clock.now += 1
        tell(18, 18, TRAINING)
    assert [repr(picture) for picture in shown] == [
        "a<b/first  6/18 cells",
        "a<b/first  18/18 cells  12 cells/s",
        "a<b/first  18 cells in 2 s",
    ]
    assert 'value="6" max="18"' in shown[0]._repr_html_()
    assert "a&lt;b" in shown[0]._repr_html_()
    shown.clear()
    with reporting(None, "stored") as tell:
        tell(0, 18, "tracing")
        tell(0, 0, TRAINING)
    assert shown == []
    del shell.kernel  # a terminal
    assert progress._notebook() is None


def test_compiling_and_the_place_in_a_check_are_told(store, monkeypatch, clock, capsys):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", -1.0)
    monkeypatch.setattr("provingground.programs._COMPILED", {})
    study = tiny(grid={"rate": [0.1], "width": [2, 3, 4]})
    jobs = [planning.job(study, "first", store=store, seeds=seeds) for seeds in (1, 2)]
    list(api.finish_all(jobs))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "(1 of 2) tiny/first  0/3 cells  tracing"
    assert lines[1].startswith("(1 of 2) tiny/first  0/3 cells  compiled ")
    assert lines[1].endswith(" of 3 programs")
    assert "(1 of 2) tiny/first  3/3 cells" in {line[:30] for line in lines}
    assert lines[-1].startswith("(2 of 2) tiny/first  3/3 cells")


def test_one_sweep_has_no_place(store, monkeypatch, clock, capsys):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", -1.0)
    small.api.run(tiny(), "first", store=store, seeds=1)
    assert capsys.readouterr().err.startswith("tiny/first  0/6 cells  tracing\n")


def test_workers_that_end_together_are_not_taken_for_fast(clock):
    """Two cells of a minute each, done within a millisecond by two workers."""
    pace, told = Pace(), ""
    for clock.now, done in ((60.0, 1), (60.001, 2), (90.0, 2)):
        told = pace(done, 5, TRAINING)
    assert told == "2/5 cells  0.0333 cells/s  about 90 s left"
