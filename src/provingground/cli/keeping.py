"""Commands that keep things in order: verify, upgrade, diff, bench, new, fork, data."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from provingground import compare, outputs
from provingground.cli.base import app
from provingground.cli.options import StoreOption
from provingground.errors import InputError, RunError, unknown
from provingground.terminal import say, show_table, show_text, show_words


@app.command(short_help="Check every file of the store.")
def verify(
    studies: Annotated[
        list[str] | None, typer.Argument(metavar="STUDY", show_default=False)
    ] = None,
    store: StoreOption = None,
    adopt: Annotated[
        bool,
        typer.Option("--adopt", help="Rerun a few stale cells and keep all if they agree."),
    ] = False,
) -> None:
    """Check every file of the store; after an upgrade, adopt results that still agree.

    Exit code 3 when anything is wrong.
    """
    from provingground import inspection, planning, registry, upkeep

    owners = {name: registry.study(name) for name in studies or ()}
    kept = planning.store_at(store)
    if not kept.exists():
        raise InputError(f"there is no store at {kept.path}")
    problems = [*map(str, inspection.foreign(kept)), *map(str, inspection.damaged_notes(kept))]
    for name in studies or inspection.studies(kept):
        try:
            owner = owners.get(name) or registry.study(name)
        except InputError:
            chunks = [len(chunk.cells) for chunk in kept.chunks(name)]
            kept.set_aside()
            show_text(f"{name}: {len(chunks)} files, {sum(chunks)} cells, of a study not known")
            continue
        state = upkeep.verify(owner, kept, adopt=adopt)
        problems += state.problems
        show_text(
            f"{name}: {state.chunks} files, {state.cells} cells, {state.stale} stale"
            + (f", {state.adopted} adopted, {state.refused} differ" if adopt else "")
        )
        for remark in state.remarks:
            show_text(remark)
    if left := inspection.leftovers(kept):
        show_text(f"{left} files of processes that are no more; the next run removes them")
    for problem in problems:
        say(f"proving: {problem}")
    if problems or kept.said:
        raise typer.Exit(3)


@app.command(short_help="Make a store of version 0.1.0 one of this version.")
def upgrade(store: StoreOption = None) -> None:
    """Make a store of version 0.1.0, every file of which is sound, one of this version."""
    from provingground import inspection, planning
    from provingground.store import OLD_FOLDERS

    kept = planning.store_at(store)
    found = inspection.upgrade(kept)
    for one in found:
        say(f"proving: {one}")
    if found:
        raise RunError(
            f"{len(found)} files of {kept.path} are not of a store, or damaged; nothing was "
            "changed. Move them away and try again."
        )
    show_text(f"{kept.path} is a store of this version")
    if old := [name for name in OLD_FOLDERS if (kept.path / name).is_dir()]:
        show_text(f"not used any more, and may be deleted by hand: {', '.join(old)}")


@app.command(short_help="Compare two results.")
def diff(
    a: Annotated[
        Path,
        typer.Argument(help="A Dataset (.nc), a record (.json), or a folder of records."),
    ],
    b: Annotated[Path, typer.Argument(help="Another of the same kind.")],
    every: Annotated[
        bool, typer.Option("--all", help="List everything that differs in the claims.")
    ] = False,
) -> None:
    """Compare two results: verdicts that changed, numbers that moved, and a count of the rest.

    Exit code 1 when a verdict changed, a claim of the first is missing from the second, or two
    Datasets have no cell in common.
    """
    found = compare.difference(a, b, every)
    show_text("\n".join(found.lines))
    if found.changed:
        raise typer.Exit(1)


@app.command(short_help="Time the engine against PyTorch, side by side.")
def bench(
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="Published and 16 times larger sizes, or small ones."),
    ] = False,
    size: Annotated[
        str | None,
        typer.Option(help="With --full: only `full` or only `large`.", show_default=False),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="One of the workloads W1 to W6. Repeatable.", show_default=False),
    ] = None,
    repetitions: Annotated[int, typer.Option(help="Times each side runs, in turns.")] = 3,
    markdown: Annotated[bool, typer.Option("--markdown", help="Tables for a document.")] = False,
    out: Annotated[
        Path | None, typer.Option("--json", help="Write the numbers.", show_default=False)
    ] = None,
) -> None:
    """Time the engine against what a user would write instead, side by side.

    The peers are in PyTorch; without it the engine is timed alone.
    """
    root = Path(__file__).resolve().parents[3]
    if not (root / "benchmarks" / "run.py").exists():
        raise InputError("the benchmarks come with the sources, not with the installed package")
    outputs.check(out)
    sys.path.insert(0, str(root))
    from benchmarks import run

    for name in only or ():
        if name not in run.WORKLOADS:
            raise unknown("workload", name, run.WORKLOADS)
    if size and size not in run.SIZES:
        raise unknown("size", size, run.SIZES)
    if size and not full:
        raise InputError("--size goes with --full")
    if repetitions < 1:
        raise InputError(f"repetitions = {repetitions} is not allowed: whole numbers from 1")
    sizes: list[run.Scale] = [s for s in run.SIZES if s == (size or s)] if full else ["quick"]
    run.bench(sizes, only, repetitions, out, markdown)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the study, in letters, digits and _.")],
    folder: Annotated[Path, typer.Option(help="Where to put it.")] = Path("."),
) -> None:
    """Start a study of your own from the skeleton."""
    from provingground.fork import scaffold

    path = scaffold(name, folder)
    show_text(
        f"made {path}\n"
        f"try:  proving --study-path {path} check {name}\n"
        f"or install it (pip install {path.parent.resolve()}) and its entry point is found"
    )


@app.command(short_help="Copy a study, with its tests, to change it.")
def fork(
    study: Annotated[str, typer.Argument(help="The study to copy.")],
    name: Annotated[str, typer.Argument(help="Name of the copy, in letters, digits and _.")],
    folder: Annotated[Path, typer.Option(help="Where to put it.")] = Path("."),
) -> None:
    """Copy a study, with its tests, into a package of your own, to change it."""
    from provingground.fork import fork as make

    package, tests = make(study, name, folder)
    proving = f"proving --study-path {package}"
    tested = (
        f"test:    python -m pytest {tests}"
        if tests
        else f"without tests: none of {study} are beside its sources here"
    )
    show_text(
        f"made {package}, a copy of {study}\n{tested}\n"
        f"before:  {proving} check {name} --headline --save before.json\n"
        f"change:  a line of {package / 'model.py'}\n"
        f"after:   {proving} check {name} --headline --save after.json\n"
        "compare: proving diff before.json after.json"
    )


# ---------------------------------------------------------------------------------- data

data_app = typer.Typer(help="List the data sets that figures on real data need, or get one.")
app.add_typer(data_app, name="data", short_help="List the data sets, or get one.")


@data_app.callback(invoke_without_command=True)
def data(ctx: typer.Context) -> None:
    """List the data sets with their size, licence and source, and whether they are here.

    They are looked for in $PROVING_DATA, else in the user's cache.
    """
    if ctx.invoked_subcommand is not None:
        return
    from provingground.data import real

    where, rows, wrong = real.folder(), [], []
    for each in real.SETS.values():
        found = real.look(each, where)
        wrong += real.remarks(each, found)
        state = (
            "here" if found.read
            else "damaged" if found.wrong
            else "in part" if found.lacking
            else "not here"
        )  # fmt: skip
        rows.append(
            (each.name, state, f"{each.size:g} MB", each.licence, f"{each.title}. {each.cite}")
        )
    show_table("data set", "is", "size", "licence", "about", rows=rows, words=("licence", "about"))
    for told in wrong:
        say(f"proving: {told}")
    say(f"they are looked for in {where}; `proving data get NAME` fetches one{real.away()}")


@data_app.command("get")
def get_data(
    names: Annotated[list[str], typer.Argument(metavar="NAME ...", show_default=False)],
) -> None:
    """Fetch data sets, check them, and keep them as plain arrays. What is here stays."""
    from provingground.data import fetch, real

    wanted = dict.fromkeys(real.known(name) for name in names)  # a wrong one is told before work
    failed = []
    for each in wanted:
        try:
            where = fetch.get(each.name)
        except RunError as error:
            if len(wanted) == 1:
                raise
            failed.append(each.name)
            say(f"proving: {error}")
            continue
        show_text(f"{each.name} is here, in {where}")
        show_words(f"{each.title}. {each.cite}; licence: {each.licence}", "  ")
    if failed:
        raise RunError(f"{len(failed)} of {len(wanted)} are not here: {', '.join(failed)}")
