"""The program `proving`: its own options, and how a command ends."""

import atexit
import contextlib
import gc
import io
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from provingground import __version__
from provingground.errors import InputError, RunError, place_of
from provingground.stopping import Terminated, stop
from provingground.terminal import flush, prepare, say, show_text


class Commands(typer.core.TyperGroup):
    """The commands; an interrupt says that nothing finished is lost."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as asked:
            say("proving: interrupted; finished cells are stored, run again to go on")
            raise typer.Exit(143 if isinstance(asked, Terminated) else 130) from None


app = typer.Typer(
    name="proving",
    cls=Commands,
    help="Run, check and draw the learning theory of transformers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        show_text(f"proving {__version__}")
        raise typer.Exit


@app.callback()
def options(
    study_path: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER", help="Folder of a study of your own. Repeatable.", show_default=False
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if study_path:
        from provingground import registry

        whole = [str(registry.folder_of(str(path))) for path in study_path]
        paths = [os.environ.get("PROVING_STUDIES", ""), *whole]
        os.environ["PROVING_STUDIES"] = os.pathsep.join(filter(None, paths))
    if os.environ.get("PROVING_STUDIES"):
        from provingground import registry

        registry.folders()  # a wrong one is told at once, whatever the command


def _stop(number: int, frame: Any) -> None:
    stop(Terminated if number == signal.SIGTERM else KeyboardInterrupt)


def main() -> None:
    """The entry point: exit code 2 for bad input, 3 for a failed run (1 is a check's verdict)."""
    # What imports make stays; looking for garbage in it takes a third of a short command's time.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is to be ignored
        signal.signal(signal.SIGINT, _stop)
    prepare()
    try:
        code = app(standalone_mode=False) or 0
        flush()
    except _Misuse as error:
        code = _misused(error)
    except (InputError, RunError) as error:
        if os.environ.get("PROVING_TRACEBACK"):
            say("".join(traceback.format_exception(error)))
        say(f"proving: {error}")
        code = 2 if isinstance(error, InputError) else 3
    except BrokenPipeError:
        code = 0
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Exception as error:
        _tell_of(error)
        code = 3
    if code in (130, 143):
        # Interrupted: threads may be deep in a training, which nothing can break off but the end.
        with contextlib.suppress(OSError, RunError):
            flush()
        os._exit(code)
    sys.exit(code)


_Misuse: Any = typer.BadParameter.__base__  # of whichever click typer comes with


def _misused(error: Any) -> int:
    """Tells of a command line that cannot be read."""
    told = io.StringIO()
    error.show(file=told)
    say(told.getvalue().rstrip("\n"))
    return error.exit_code


def _tell_of(error: Exception) -> None:
    """Tells of an error that was not foreseen: what, and where."""
    if os.environ.get("PROVING_TRACEBACK"):
        say("".join(traceback.format_exception(error)))
    say(
        f"proving: {type(error).__name__}: {error}{place_of(error)}. What was finished is stored; "
        "PROVING_TRACEBACK=1 shows where it came from"
    )
