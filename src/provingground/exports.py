"""Verdicts as tables for other programs: Markdown, CSV, LaTeX."""

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import fields

from provingground.reprs import bounds
from provingground.stats import Estimate
from provingground.verdict import Met, Verdict

# Letters of statements that pdflatex does not know, and those that mean something to LaTeX.
GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "η": "eta", "κ": "kappa",
    "λ": "lambda", "μ": "mu", "ρ": "rho", "σ": "sigma", "τ": "tau", "ψ": "psi", "Ω": "Omega",
    "≤": "le", "≥": "ge", "→": "to", "×": "times", "‖": "|", "√": "surd", "≪": "ll", "−": "-",
}  # fmt: skip
LATEX = {c: f"\\{c}" for c in "&%$#_{}"}
LATEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
LATEX |= {"<": "$<$", ">": "$>$", "|": "$|$"}
LATEX |= {c: f"$\\{name}$" if name.isalpha() else f"${name}$" for c, name in GREEK.items()}
LATEX["‖"] = r"$\|$"


def markdown(verdicts: Sequence[Verdict]) -> str:
    """A table in Markdown, a row per claim."""
    rows = [["claim", "says", "measured, 95% interval", "bound", "verdict"], ["---"] * 5]
    for v in verdicts:
        name = f"`{v.study}/{v.experiment}/{v.claim}`" + (f" at {v.at}" if v.at else "")
        rest = f"{v.says} ({v.source})", str(v.estimate), bounds(v), _verdict(v)
        rows.append([name, *map(_escaped_markdown, rest)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def comma_separated(verdicts: Sequence[Verdict]) -> str:
    """All fields as CSV, with a head. Numbers have all their digits, or are `inf` or `nan`."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    names = [field.name for field in fields(Verdict)]
    parts = {
        "estimate": Estimate._fields,
        "within": ("within_low", "within_high"),
        "conditions": [f"conditions_{name}" for name in Met._fields],
    }
    more = ("surprise",)
    table.writerow([*(part for n in names for part in parts.get(n, (n,))), *more])
    for v in verdicts:
        row = []
        for name in names:
            value = getattr(v, name)
            if name in parts:
                row += value if value is not None else [None] * len(parts[name])
            else:
                row.append(value)
        flat = (", ".join(x) if isinstance(x, tuple) else x for x in row)
        table.writerow([*(float(x) if isinstance(x, float) else x for x in flat),
                        *(getattr(v, name) for name in more)])  # fmt: skip
    return text.getvalue()


def latex(verdicts: Sequence[Verdict]) -> str:
    """A table in LaTeX for the package booktabs: experiments as headings, a row per claim."""
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{tabular}{lp{0.4\textwidth}lll}",
        r"\toprule",
        r"claim & says & measured, 95\% interval & bound & verdict \\",
    ]
    group = ""
    for v in verdicts:
        if group != (group := f"{v.study}/{v.experiment}"):
            heading = rf"\texttt{{{_escaped_latex(group)}}}"
            lines += [r"\midrule", rf"\multicolumn{{5}}{{l}}{{{heading}}} \\"]
        words = _escaped_latex(f"{v.says} ({v.source})")
        numbers = [_escaped_latex(text, "$-$") for text in (str(v.estimate), bounds(v))]
        name = rf"\texttt{{{_escaped_latex(v.claim)}}}"
        lines.append(" & ".join([name, words, *numbers, _verdict(v)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


# By the ending of a file.
TABLES: dict[str, Callable[[Sequence[Verdict]], str]] = {
    ".md": markdown,
    ".csv": comma_separated,
    ".tex": latex,
}


def _verdict(v: Verdict) -> str:
    if v.surprise:
        return f"{v.verdict} (surprise)"
    return f"{v.verdict} (as expected)" if v.verdict == "fails" else v.verdict


def _escaped_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~$])", r"\\\1", " ".join(text.split()))


def _escaped_latex(text: str, minus: str = "-") -> str:
    return "".join(minus if c == "-" else LATEX.get(c, c) for c in " ".join(text.split()))
