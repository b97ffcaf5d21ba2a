"""Verdicts as Markdown, CSV and LaTeX."""

import csv
import io
import re

from hypothesis import given
from hypothesis import strategies as st

from provingground import exports
from provingground.stats import Estimate
from provingground.verdict import Verdict

NAMES = st.from_regex(r"[a-z0-9_]{1,12}", fullmatch=True)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=40)
NUMBERS = st.floats()
VERDICTS = st.lists(
    st.builds(
        Verdict,
        study=NAMES,
        experiment=NAMES,
        claim=NAMES,
        source=WORDS,
        says=WORDS,
        estimate=st.builds(Estimate, NUMBERS, NUMBERS, NUMBERS),
        within=st.tuples(NUMBERS, NUMBERS),
        verdict=st.sampled_from(["holds", "fails", "unknown"]),
        expected=st.sampled_from(["holds", "fails"]),
        headline=st.booleans(),
        cells=st.integers(0, 99),
        diverged=st.integers(0, 99),
        seeds=st.integers(0, 99),
        note=WORDS,
    ),
    max_size=4,
)


@given(VERDICTS)
def test_csv_reads_back_with_all_fields(verdicts):
    rows = list(csv.DictReader(io.StringIO(exports.comma_separated(verdicts), newline="")))
    assert len(rows) == len(verdicts)
    for row, v in zip(rows, verdicts, strict=True):
        assert None not in row
        for name in ("study", "experiment", "claim", "source", "says", "verdict", "expected",
                     "note"):  # fmt: skip
            assert row[name] == getattr(v, name)
        for name in ("headline", "cells", "diverged", "seeds", "surprise"):
            assert row[name] == str(getattr(v, name))
        numbers = dict(zip(("value", "low", "high"), v.estimate, strict=True))
        numbers |= dict(zip(("within_low", "within_high"), v.within, strict=True))
        assert {n: repr(float(row[n])) for n in numbers} == {n: repr(x) for n, x in numbers.items()}


@given(VERDICTS)
def test_markdown_has_five_columns_whatever_is_in_them(verdicts):
    lines = exports.markdown(verdicts).split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(verdicts) + 2
    for line in lines:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 6
    for line, v in zip(lines[2:], verdicts, strict=True):
        assert f"`{v.study}/{v.experiment}/{v.claim}`" in line
        words = line.split("`")[2]
        assert not re.search(r"(?<!\\)(?:\\\\)*[*_<\[]", words)


@given(VERDICTS)
def test_latex_has_no_letter_that_means_something_unescaped(verdicts):
    text = exports.latex(verdicts)
    lines = text.splitlines()
    assert lines[0] == r"% \usepackage{booktabs}"
    assert (lines[2], lines[-2:]) == (r"\toprule", [r"\bottomrule", r"\end{tabular}"])
    rows = [line for line in lines if line.startswith(r"\texttt")]
    assert len(rows) == len(verdicts)
    for row in rows:
        assert row.endswith(r" \\")
        bare = re.sub(r"\\[&%$#_{}|]|\\\\$", "", row)  # escaped, and the end of the row
        assert bare.count("&") == 4
        assert not re.search(r"[%#~^_]", bare)
        assert bare.count("$") % 2 == 0
        assert bare.count("{") == bare.count("}")
        commands = set(re.findall(r"\\([a-zA-Z]+)", bare))
        assert commands <= {"texttt", "textbackslash", "textasciitilde", "textasciicircum",
                            *exports.GREEK.values()}  # fmt: skip


def test_what_papers_say_survives():
    v = Verdict("a_b", "fig1", "c_d", "(3.9)", "at 50% N^2 | α_* > 0.1 & more", Estimate(-1, -2, 3),
                (float("-inf"), 2.0), "fails", "holds", True, 1, 0, 3)  # fmt: skip
    assert exports.latex([v]).splitlines()[-3] == (
        r"\texttt{c\_d} & at 50\% N\textasciicircum{}2 $|$ $\alpha$\_* $>$ 0.1 \& more ((3.9)) & "
        r"$-$1 [$-$2, 3] & $<$ 2 & fails (surprise) \\"
    )
    assert exports.markdown([v]).splitlines()[2] == (
        r"| `a_b/fig1/c_d` | at 50% N^2 \| α\_\* \> 0.1 & more ((3.9)) | -1 \[-2, 3\] | \< 2 | "
        "fails (surprise) |"
    )
