"""Commands that look at studies: list, show, conditions, cite."""

from collections.abc import KeysView, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from provingground import compare, reprs
from provingground.cli.base import app
from provingground.cli.options import ScaleOption, StoreOption
from provingground.cli.verdicts import show_verdicts
from provingground.errors import unknown
from provingground.terminal import KEEP, say, show_table, show_text, show_words
from provingground.words import cost, count, number, symbol, with_letters

if TYPE_CHECKING:
    from provingground.study import Study

Rows = KeysView[tuple[str, ...]]


@app.command("list")
def list_studies() -> None:
    """List the studies with their experiments."""
    from provingground import registry

    rows = [(name, title, " ".join(names)) for name, title, names in registry.listings()]
    show_table("study", "paper", "experiments", rows=rows, words=("paper", "experiments"))


@app.command(short_help="Show a study, or an experiment with its forecast.")
def show(
    target: Annotated[str, typer.Argument(metavar="STUDY[/EXPERIMENT]", show_default=False)],
    scale: ScaleOption = "quick",
    store: StoreOption = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time one call of programs without a timing.")
    ] = False,
) -> None:
    """Show a study (paper, parameters, experiments) or an experiment (grid, claims, forecast)."""
    from provingground.study import SCALES

    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    name, _, experiment = target.partition("/")
    if experiment:
        _show_experiment(name, experiment, scale, store, measure)
    else:
        _show_study(name)


def _show_study(name: str) -> None:
    from provingground import grid, registry
    from provingground.study import SCALES

    study = registry.study(name)
    show_words(f"{study.name}: {study.title}\n{study.cite}\n")
    rows = []
    for e in study.experiments:
        cells = [
            "-"
            if s == "quick" and e.trainings.paper_only
            else str(grid.plan(study, e, s, yes=True).cells)
            for s in SCALES
        ]
        rows.append((e.name, *cells, str(len(e.claims)), e.says))
    show_words("Experiments, with their cells at the scales quick and paper")
    show_table("experiment", "quick", "paper", "claims", "says", rows=rows)
    _show_simulators(study)


def _show_simulators(study: "Study") -> None:
    """The parameters of the first simulator; of each other, how its own differ from those above."""
    above: dict[str, Rows] = {}
    for name, simulator in study.simulators.items():
        says = f": {simulator.says}" if simulator.says else ""
        show_words(f"\nSimulator {name}{says} ({simulator.precision})")
        takes = _parameters(simulator.config)
        near = max(above, key=lambda other: len(takes & above[other]), default="")
        new = takes - above[near] if near else takes
        if near and new != takes:
            names = {row[0] for row in takes}
            lost = ", ".join(row[0] for row in above[near] if row[0] not in names)
            but = f", without {lost}" * bool(lost) + ", but for these:" * bool(new)
            show_words(f"takes what {near} takes{but}", "  ")
        if new:
            rows = [row for row in takes if row in new]
            show_table("parameter", "default", "symbol", "is, and takes", rows=rows)
        above[name] = takes


def _parameters(config: type) -> "Rows":
    """What is shown of each parameter of a Config, in their order."""
    from provingground.config import pars

    return dict.fromkeys(
        (p.name, number(p.default), symbol(p.symbol), f"{with_letters(p.says)}; {p.allowed}")
        for p in pars(config).values()
    ).keys()


def _show_experiment(
    name: str, experiment: str, scale: str, store: Path | None, measure: bool
) -> None:
    from provingground import api
    from provingground.data import real
    from provingground.machine import here

    if measure:
        say("timing one call of each program without a timing ...")
    seen = api.show(
        name,
        experiment,
        scale=scale,  # pyright: ignore[reportArgumentType]
        store=store,
        measure=measure,
    )
    assert isinstance(seen, api.Overview)
    sweep, forecast = seen.sweep, seen.cost
    show_words(f"{sweep.study.name}/{sweep.experiment.name}: {sweep.experiment.says}\n")
    rows = [(a.name, _labels(a.labels)) for a in sweep.axes]
    rows.append(("seed", count(len(sweep.seeds), "seed")))
    rows += [(f"{fixed} (fixed)", number(value)) for fixed, value in sweep.fixed.items()]
    rows += reprs.probe_dims(sweep)
    show_table("axis", "values", rows=rows)
    lanes = f"{count(forecast.lanes, 'training')} a call on {here()}"
    if forecast.memory:
        lanes += f", {forecast.memory / 2**20:.0f} MiB of arrays"
    show_words(f"\nAt scale {scale}: {cost(forecast, sweep.trainings.refine is not None)}; {lanes}")
    if name := sweep.trainings.data:
        sets = real.read_by(name, sweep.study.data[name])
        what = "data sets" if len(sets) > 1 else "data set" if sets else "data of the study's own"
        show_words(f"{what}: {', '.join(sets) or name}")
    if seen.skipped is not None:
        show_words(f"nothing can be run: {seen.skipped.why}")
    if forecast.untimed:
        show_words("--measure times one call of each program that is not timed yet")
    show_text("")
    if seen.verdicts is None:
        rows = [
            (c.name, compare.bound(*c.within, c.theory), f"{c.says} ({c.source})")
            for c in sweep.experiment.claims_at(sweep.scale)
        ]
        show_table("claim", "bound", "says", rows=rows)
        return
    show_verdicts(seen.verdicts)
    for v in (v for v in seen.verdicts if v.verdict == "unknown"):
        need = v.seeds_needed
        show_words(f"{v.claim}: " + (f"about {need} seeds would decide it" if need else
                                     "more seeds alone would not decide it"))  # fmt: skip


def _labels(labels: Sequence[Any]) -> str:
    """The values of an axis. None is folded."""
    texts = [number(label, 4).replace(" ", KEEP) for label in labels]
    return ("; " if any("," in text for text in texts) else ", ").join(texts)


@app.command(short_help="Judge the conditions of the theorem at a setting.")
def conditions(
    study: Annotated[str, typer.Argument(metavar="STUDY", show_default=False)],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set a parameter. Repeatable.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Each condition of the theorem at a setting: both sides, margin, satisfied or not."""
    from provingground import api, registry
    from provingground.config import pars
    from provingground.parsing import parse_settings

    owner = registry.study(study)
    config = owner.simulator()[1].config
    settings = parse_settings(set_ or [], {}, pars(config))
    prediction = api.theory(owner, settings=settings)
    rows = [
        (c.name, "yes" if c.satisfied else "no", f"{c.margin:.3g}",
         f"{c.left:.4g} {c.relation} {c.right:.4g}", c.says)
        for c in prediction.conditions
    ]  # fmt: skip
    values = [
        (name, f"{value:.6g}", prediction.says.get(name, ""))
        for name, value in prediction.values.items()
    ]
    show_words(f"{owner.name}: {owner.title}\n{owner.cite}\n")
    if rows:
        show_words("What is assumed; a margin below 1: violated by that factor")
        show_table("condition", "satisfied", "margin", "sides", "statement", rows=rows)
    if values:
        show_words("\nWhat is predicted")
        show_table("prediction", "value", "is", rows=values)
    show_words("\nThe setting (--set changes it)")
    given = [
        (name, number(settings.get(name, p.default)), symbol(p.symbol), with_letters(p.says))
        for name, p in pars(config).items()
    ]
    show_table("parameter", "value", "symbol", "is", rows=given)


@app.command()
def cite(
    studies: Annotated[
        list[str] | None,
        typer.Argument(metavar="STUDY", help="Default: all.", show_default=False),
    ] = None,
) -> None:
    """Print the papers of studies as BibTeX."""
    from provingground import registry

    chosen = map(registry.study, studies) if studies else registry.studies().values()
    show_text("\n\n".join([_entry(study) for study in chosen]))


def _entry(study: "Study") -> str:
    """What a study says of its paper, as BibTeX."""
    if study.bibtex:
        return study.bibtex.strip()
    return f"@misc{{{study.name},\n  title = {{{study.title}}},\n  note = {{{study.cite}}},\n}}"
