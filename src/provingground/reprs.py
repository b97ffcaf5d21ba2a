"""How things show themselves: a short text anywhere, a table in a notebook.

A *page* is a title and what stands below it: lines of text, and tables. HTML is escaped, needs
nothing from elsewhere, and takes its colours from the notebook's theme.
"""

import html as _html
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from provingground.atlas.records import counts
from provingground.compare import bound
from provingground.terminal import folded, plain, tabled, width
from provingground.words import cost, count, leaves, number

if TYPE_CHECKING:
    import xarray as xr

    from provingground.api import Overview
    from provingground.claims import Claim
    from provingground.grid import Sweep
    from provingground.replaying import Replay
    from provingground.stats import Boundary, Estimate, Everywhere, Law
    from provingground.study import Condition, Experiment, Prediction, Study
    from provingground.verdict import Verdict

T = TypeVar("T")
MOST_VALUES = 12  # of an axis that are listed
UNKNOWN = 100_000  # columns, of who knows what: text is not folded
WORDS = ("axes", "values", "quick", "paper", "is", "says")  # columns of text that may be folded
# Seen on white and on black alike; the words beside them say the same.
MARKS = {
    "holds": ("✓", "#2c9a4b"),
    "fails": ("✗", "#d9534f"),
    "unknown": ("?", "#b8860b"),
    "yes": ("✓", "#2c9a4b"),
    "no": ("✗", "#d9534f"),
}
MARKED = ("verdict", "satisfied")
LEFT = "text-align:left;vertical-align:top"


class Table(NamedTuple):
    """Rows of text, where a text alone is the heading of the rows below it.

    Plain text shows the first `short` columns, and below the rows of some numbers their `notes`. A
    `folded` table is opened by a click on its title.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str] | str]
    short: int | None = None
    folded: str = ""
    notes: Mapping[int, str] = {}


Page = Sequence[str | Table]  # the title first


def shown(
    page: Callable[[Any], Page], line: Callable[[Any], str] | None = None
) -> Callable[[type[T]], type[T]]:
    """Lets a class show itself by its page; as plain text by a `line`, where that is given."""

    def given(cls: type[T]) -> type[T]:
        def __repr__(self: Any) -> str:
            return plain(line(self)) if line is not None else as_text(page(self))

        def _repr_html_(self: Any) -> str:
            return as_html(page(self))

        cls.__repr__ = __repr__
        cls._repr_html_ = _repr_html_  # pyright: ignore[reportAttributeAccessIssue]
        return cls

    return given


# --------------------------------------------------------------------------- two forms


def as_text(page: Page) -> str:
    """A page as a few lines, folded to the width that is there, if it is known."""
    wide = width(sys.stdout, otherwise=UNKNOWN)
    lines: list[str] = []
    for block in page:
        if isinstance(block, Table):
            lines += _text_table(block, wide)
        elif block:
            lines += folded(plain(block), wide)
    return "\n".join(lines)


def _text_table(table: Table, wide: int) -> list[str]:
    if table.short == 0 or not table.rows:
        return []
    columns = [f"  {table.columns[0]}", *table.columns[1 : table.short]]
    rows: list[list[str]] = []
    for place, row in enumerate(table.rows):
        if isinstance(row, str):
            rows.append([f"{plain(row)}:"])
        else:
            first, *rest = map(plain, row[: table.short])
            rows += [[f"  {first}", *rest]]
        if place in table.notes:
            rows.append([f"      {plain(table.notes[place])}"])
    lines = tabled(columns, rows, wide, WORDS)
    return lines if any(table.columns) else lines[1:]


def as_html(page: Page) -> str:
    """A page for a notebook."""
    title, *rest = page
    assert isinstance(title, str)
    parts = [f"<div><b>{_escaped(title)}</b>"]
    for block in rest:
        if not isinstance(block, Table):
            parts.append(f"<div>{_escaped(block)}</div>")
        elif block.rows and block.folded:
            summary = f"<summary>{_escaped(block.folded)}</summary>"
            parts.append(f"<details>{summary}{_html_table(block)}</details>")
        elif block.rows:
            parts.append(_html_table(block))
    return "\n".join([*parts, "</div>"])


def _html_table(table: Table) -> str:
    head = "".join(f'<th style="{LEFT}">{_escaped(c)}</th>' for c in table.columns)
    lines = ["<table>", f"<thead><tr>{head}</tr></thead>" if any(table.columns) else "", "<tbody>"]
    for row in table.rows:
        if isinstance(row, str):
            wide = f'colspan="{len(table.columns)}" style="{LEFT}"'
            lines.append(f"<tr><th {wide}>{_escaped(row)}</th></tr>")
        else:
            cells = (_cell(c, text) for c, text in zip(table.columns, row, strict=True))
            lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join([*filter(None, lines), "</tbody></table>"])


def _cell(column: str, text: str) -> str:
    mark = ""
    if column in MARKED and (word := text.partition(",")[0]) in MARKS:
        letter, colour = MARKS[word]
        mark = f'<span style="color:{colour}">{letter}</span> '
    return f'<td style="{LEFT}">{mark}{_escaped(text)}</td>'


def _escaped(text: str) -> str:
    return _html.escape(plain(text))


# --------------------------------------------------------------------------- words


def _values(given: Any) -> list[str] | None:
    """The values of an axis; None of a fixed setting."""
    given = getattr(given, "settings", getattr(given, "values", given))  # cases, other variables
    if hasattr(given, "__array__"):
        given = given.tolist()
    if isinstance(given, str) or not isinstance(given, Iterable):
        return None
    return [number(v, 4) for v in given]


def listed(values: Sequence[str]) -> str:
    """Values of an axis, the ends of it where they are many.

    >>> listed(list("ab")), listed([str(n) for n in range(40)])
    ('a, b', '0, 1, 2, ..., 39 (40 values)')
    """
    if len(values) <= MOST_VALUES:
        return ", ".join(values)
    return f"{', '.join(values[:3])}, ..., {values[-1]} ({len(values)} values)"


# --------------------------------------------------------------------------- verdicts


def estimate(e: "Estimate") -> Page:
    return [str(e), "value and 95% interval"]


def verdict_line(v: "Verdict") -> str:
    told = f"{v.study}/{v.experiment} {named(v)}: {v.estimate}, {bounds(v)}: {decision(v)}"
    return told + f". {v.note}" * bool(v.note and v.verdict == "unmeasured")


def named(v: "Verdict") -> str:
    """A claim, and where it was asked if that is not where it was declared."""
    return f"{v.claim} at {v.at}" if v.at else v.claim


def bounds(v: "Verdict | Claim") -> str:
    """The bounds of a claim and the theory's value."""
    return bound(*v.within, v.theory)


def decision(v: "Verdict") -> str:
    """A verdict; whether it was expected, and agrees with the theory, where that needs a word."""
    foreseen = v.verdict == v.expected == "fails"
    told = v.verdict + (", SURPRISE" if v.surprise else ", as expected" * foreseen)
    differs = v.verdict == "holds" and v.agrees is False
    return told + ", differs from theory" * differs


def verdict(v: "Verdict") -> Page:
    return verdicts([v])


def verdicts(found: "Sequence[Verdict]") -> Page:
    skipped = getattr(found, "skipped", ())
    told = [f"not judged: {s.at}, since {s.why}" for s in skipped]
    return [counts(found), *told, _judged(found)]


def _judged(found: "Sequence[Verdict]", group: str = "") -> Table:
    """Verdicts under the names of their experiments, but for one that is known."""
    rows, notes = [], {}
    for name, conditions, some in grouped(found):
        if name != group:
            rows.append(name + f" ({conditions})" * bool(conditions))
        for v in some:
            if v.note and v.verdict in ("unknown", "unmeasured"):
                notes[len(rows)] = v.note
            rows.append((named(v), str(v.estimate), bounds(v), decision(v), _says(v)))
    columns = ("claim", "measured", "bound", "verdict", "says")
    return Table(columns, rows, short=4, notes=notes)


def grouped(found: "Iterable[Verdict]") -> "Iterator[tuple[str, str, list[Verdict]]]":
    """Verdicts by experiment: its name, how the conditions stand for all of them, and they."""
    from provingground.verdict import at_all  # whose verdicts show themselves by this module

    for name, some in groupby(found, lambda v: f"{v.study}/{v.experiment}"):
        several = list(some)
        yield name, at_all(v.conditions for v in several), several


def _says(v: "Verdict") -> str:
    """What a claim says, its note, and how many seeds would decide it."""
    parts = [v.says, v.note, v.details]
    if v.verdict == "unknown" and (need := v.seeds_needed) and need > v.seeds:
        parts.append(f"About {need} seeds would decide it")
    return ". ".join(part.rstrip(". ") for part in parts if part)


def everywhere(found: "Everywhere") -> Page:
    rows = [
        (setting, str(alone), str(together))
        for setting, alone, together in zip(*found, strict=True)
    ]
    if len(rows) > MOST_VALUES:
        rows = [*rows[:3], ("...", "", ""), rows[-1]]
    told = f"{count(len(found.settings), 'setting')}, one estimate each"
    return [told, Table(("", "95% each", "95% together"), rows)]


# --------------------------------------------------------------------------- fits


def law(fit: "Law") -> Page:
    curve = "C x^s" if fit.kind == "power" else "C + s x"
    return [f"{fit.kind} law y = {curve}, fitted for x from {_ends(fit.window)}", _constants(fit)]


def _ends(window: tuple[float, float]) -> str:
    return " to ".join(number(float(end), 4) for end in window)


def _constants(fit: "Law") -> Table:
    return Table(("", ""), [("s", str(fit.slope)), ("C", str(fit.constant))])


def boundary(found: "Boundary") -> Page:
    from provingground.stats import Estimate  # which shows itself by a page of this module

    of, along = str(found.points.value.dims[0]), found.points.attrs.get("along", "threshold")
    columns = (found.points[name].to_numpy().tolist() for name in (of, "value", "low", "high"))
    rows = [(number(z, 4), str(Estimate(*at))) for z, *at in zip(*columns, strict=True)]
    if len(rows) > MOST_VALUES:
        rows = [*rows[:3], ("...", ""), rows[-1]]
    law, left = found.law, found.left_out
    return [
        f"boundary {along} = C {of}^s, fitted for {of} from {_ends(law.window)}",
        _constants(law),
        f"{count(found.points.sizes[of], 'threshold')}, {left} left out of the fit",
        Table((of, along), rows),
    ]


# --------------------------------------------------------------------------- one cell


def replay(again: "Replay") -> Page:
    parts = {
        "probes": _variables(again.probes),
        "trajectory": _variables(again.trajectory),
        "weights": [
            (name, _size(leaf), "") for name, leaf in leaves(again.weights, "array").items()
        ],
    }
    rows = []
    for part, listed in parts.items():
        rows += [part, *(listed or [("(none)", "", "")])]
    return ["one cell again", Table(("", "size", "is"), rows)]


def _variables(ds: "xr.Dataset") -> list[Sequence[str]]:
    told = []
    for name, da in ds.data_vars.items():
        size = ", ".join(f"{dim} {n}" for dim, n in da.sizes.items())
        told.append((str(name), size or "a number", da.attrs.get("long_name", "")))
    return told


def _size(leaf: Any) -> str:
    return " x ".join(map(str, getattr(leaf, "shape", ()))) or "a number"


# --------------------------------------------------------------------------- theory


def condition_line(c: "Condition") -> str:
    met = f"{'met' if c.satisfied else 'violated'}, margin {c.margin:.3g}"
    return f"{c.name}: {c.left:.4g} {c.relation} {c.right:.4g} {met}"


def condition(c: "Condition") -> Page:
    return conditions([c])


def conditions(found: "Sequence[Condition]") -> Page:
    met = sum(c.satisfied for c in found)
    return [f"{count(len(found), 'condition')}, {met} satisfied", _sides(found)]


def _sides(found: "Sequence[Condition]") -> Table:
    columns = ("condition", "left", "", "right", "margin", "satisfied", "in words")
    rows = [
        (c.name, f"{c.left:.4g}", c.relation, f"{c.right:.4g}", f"{c.margin:.3g}",
         "yes" if c.satisfied else "no", c.says)
        for c in found
    ]  # fmt: skip
    return Table(columns, rows, short=6)


def prediction(p: "Prediction") -> Page:
    rows = [(name, f"{value:.6g}", p.says.get(name, "")) for name, value in p.values.items()]
    return [*conditions(p.conditions), Table(("prediction", "value", "is"), rows, short=2)]


# --------------------------------------------------------------------------- studies


def study(s: "Study") -> Page:
    rows = []
    for e in s.experiments:
        scale = "paper" if e.trainings.paper_only else "quick"
        axes = {name: _values(given) for name, given in e.trainings.settings(scale).items()}
        told = ", ".join(f"{n} ({len(v)})" for n, v in axes.items() if v is not None)
        rows.append((e.name, told, str(e.trainings.seeds_at(scale)), str(len(e.claims)), e.says))
    experiments = Table(("experiment", "axes", "seeds", "claims", "says"), rows, short=4)
    return [f"{s.name}: {s.title}", s.cite, experiments, *_parameters(s)]


def _parameters(s: "Study") -> Iterable[Table]:
    columns = ("parameter", "symbol", "default", "takes", "is")
    for name, simulator in s.simulators.items():
        rows = [
            (p.name, f"${p.symbol}$" if p.symbol else "", number(p.default), p.allowed, p.says)
            for p in simulator.config.pars.values()  # pyright: ignore[reportAttributeAccessIssue]
        ]
        about = ", ".join(filter(None, (simulator.says, simulator.precision)))
        yield Table(columns, rows, short=0, folded=f"parameters of the simulator {name} ({about})")


def experiment(e: "Experiment") -> Page:
    quick, paper = e.trainings.settings("quick"), e.trainings.settings("paper")
    rows = [
        (name, "axis" if _values(paper[name]) else "fixed", _told(quick[name]), _told(paper[name]))
        for name in paper
    ]
    seeds = e.trainings.seeds_at
    rows.append(("seed", "", str(seeds("quick")), str(seeds("paper"))))
    if all(a == b for *_, a, b in rows):
        grid = Table(("setting", "is", "values"), [row[:3] for row in rows])
    else:
        grid = Table(("setting", "is", "quick", "paper"), rows)
    return [f"{e.name}: {e.says}", grid, claims(e.claims)]


def _told(given: Any) -> str:
    values = _values(given)
    return number(given) if values is None else listed(values)


def claims(found: Sequence[Any]) -> Table:
    """The claims of an experiment that was not judged."""
    rows = [(c.name, bounds(c), c.source, c.says) for c in found]
    return Table(("claim", "bound", "source", "says"), rows, short=2)


def probe_dims(sweep: "Sweep") -> list[tuple[str, str]]:
    """The dims along which single trainings are measured, with the probes that have them."""
    from provingground import programs

    along: dict[str, list[str]] = {}
    for name in dict.fromkeys(point.program.simulator for point in sweep.points()):
        for probe, dims in programs.probe_dims(sweep.study.simulators[name].probes).items():
            for dim in dims:
                along.setdefault(dim, [])
                if dim != probe and probe not in along[dim]:
                    along[dim].append(probe)
    return [(f"{dim} (measured)", f"dim of {_few(names)}") for dim, names in along.items()]


def _few(names: Sequence[str], most: int = 4) -> str:
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"


def overview(o: "Overview") -> Page:
    rows = [(a.name, listed([number(v, 4) for v in a.labels])) for a in o.sweep.axes]
    rows.append(("seed", count(len(o.sweep.seeds), "seed")))
    rows += [(f"{name} (fixed)", number(value)) for name, value in o.sweep.fixed.items()]
    rows += probe_dims(o.sweep)
    name, which = f"{o.sweep.study.name}/{o.sweep.experiment.name}", o.sweep.experiment
    return [
        f"{name}: {which.says}",
        Table(("axis", "values"), rows),
        f"{o.sweep.scale}: {cost(o.cost, which.trainings.refine is not None)}",
        *([f"nothing can be run: {o.skipped.why}"] if o.skipped else []),
        claims(which.claims_at(o.sweep.scale)) if o.verdicts is None else _judged(o.verdicts, name),
    ]


def studies(found: "Mapping[str, Study]") -> Page:
    rows = [
        (
            name,
            s.title,
            ", ".join(e.name for e in s.experiments),
            str(sum(len(e.claims) for e in s.experiments)),
        )
        for name, s in found.items()
    ]
    title = count(len(found), "study").replace("studys", "studies")
    return [title, Table(("study", "paper", "experiments", "claims"), rows, short=2)]
