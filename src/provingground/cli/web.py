"""Commands that show the atlas: serve, site."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from provingground.cli.base import app
from provingground.cli.options import ScaleOption, StoreOption
from provingground.errors import InputError
from provingground.terminal import duration, say, show_text

MEBIBYTE = 2**20


@app.command(short_help="Show the atlas in a browser, with cells trained while you watch.")
def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen at; beyond this machine with a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free one.")] = 8420,
    scale: ScaleOption = "quick",
    store: StoreOption = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    token: Annotated[
        bool, typer.Option("--token", help="Ask for a token on this machine too.")
    ] = False,
) -> None:
    """Show the atlas in a browser, until interrupted.

    Pages show what is stored; what is not can be trained from them, on this machine.
    """
    try:
        from provingground.atlas import server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "h11", "anyio"):
            raise
        raise InputError("`proving serve` needs: pip install 'provingground[web]'") from None
    import secrets
    import socket

    from provingground.atlas.pages import Atlas

    listening = server.bound(host, port)
    secret = secrets.token_urlsafe(32) if token or host not in server.LOOPBACK else ""
    known = socket.gethostname() if host in ("0.0.0.0", "::") else host
    named = f"[{known}]" if ":" in known else known
    address = f"http://{named}:{listening.getsockname()[1]}/"
    address += f"?token={secret}" * bool(secret)
    atlas = Atlas(store, scale=scale, live=True)  # pyright: ignore[reportArgumentType]

    def ready() -> None:
        show_text(f"atlas: {address}")
        say(f"store: {atlas.shelf.store.path}; Ctrl-C ends it, what is finished is stored")
        if not no_open and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(address)

    server.serve(atlas, listening, host=host, token=secret, ready=ready)


@app.command(short_help="Write the atlas as a folder of files.")
def site(
    out: Annotated[Path, typer.Option(help="A new or empty folder.", show_default=False)],
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="STUDY", help="Default: all.", show_default=False),
    ] = None,
    scale: ScaleOption = "quick",
    store: StoreOption = None,
) -> None:
    """Write the atlas as files, from stored results: for any web server, or none."""
    from provingground.atlas.site import ready
    from provingground.atlas.site import site as freeze

    ready(out)
    made = freeze(out, scale=scale, studies=targets, store=store, tell=say)  # pyright: ignore
    say(f"{made.files} files, {made.size / MEBIBYTE:.3g} MiB, in {duration(made.seconds)}")
    show_text(f"site: {made.path / 'index.html'}")
