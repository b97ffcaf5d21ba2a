"""The atlas on this machine: its pages, and cells that are trained while one watches."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from provingground.atlas import asking
from provingground.atlas.bodies import Bodies
from provingground.atlas.guard import Guard, Refused
from provingground.atlas.live import Full, Job, Live
from provingground.atlas.pages import Atlas
from provingground.atlas.reading import Reading
from provingground.atlas.thinker import Thinker
from provingground.errors import InputError, RunError, place_of
from provingground.terminal import say

MOST_CONNECTIONS = 256
SECONDS_TO_ASK = 10.0
SECONDS_TO_TAKE = 20.0  # for a client to take what is ready for it
SECONDS_KEPT_ALIVE = 15
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass
class Site:
    """What answers requests: the pages, and the queue of cells."""

    atlas: Atlas
    bodies: Bodies
    live: Live
    thinking: asyncio.Semaphore  # of estimates at a time
    thinker: Thinker

    async def page(self, request: Request) -> Response:
        path = request.path_params["path"]
        path += "index.html" * (not path or path.endswith("/"))
        try:
            body = await self.bodies.get(path)
        except KeyError:
            return plain("there is no such page", 404)
        except (InputError, RunError) as error:
            return plain(str(error), 500)
        headers = {"etag": body.tag, "cache-control": "no-cache", "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == body.tag:
            return Response(status_code=304, headers=headers)
        content = body.plain
        if body.packed and "gzip" in request.headers.get("accept-encoding", ""):
            content, headers["content-encoding"] = body.packed, "gzip"
        return Response(content, media_type=None, headers=headers | {"content-type": body.media})

    # ----------------------------------------------------------------------- asking

    async def jobs(self, request: Request) -> Response:
        if request.method != "POST":
            return JSONResponse({"jobs": [job.summary() for job in self.live.jobs.values()]})
        asked, known = await self._asked(request)
        shown = asked.scale == self.atlas.shelf.scale
        async with self.thinking:
            shown = shown and await run_in_threadpool(self.live.shows, asked)
        try:
            job = self.live.put(asked, known, shown)
        except Full as full:
            return told(str(full), 503)
        return JSONResponse(job.summary(), 202)

    async def estimate(self, request: Request) -> Response:
        return JSONResponse((await self._asked(request))[1]._asdict())

    async def _asked(self, request: Request) -> tuple[asking.Asked, asking.Estimate]:
        asked = asking.asked(await body_of(request))
        async with self.thinking:
            return asked, await run_in_threadpool(self.live.estimated, asked)

    async def conditions(self, request: Request) -> Response:
        return JSONResponse(await self.thinker.conditions(await body_of(request)))

    async def cancel(self, request: Request) -> Response:
        job = self._job(request)
        await self.live.cancel(job)
        return JSONResponse(job.summary())

    async def events(self, request: Request) -> Response:
        job = self._job(request)
        last = request.headers.get("last-event-id", "0")
        after = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else 0
        events = self.live.watch(job, after)
        try:
            first = await anext(events, None)
        except Full as full:
            return told(str(full), 503)

        async def stream() -> AsyncIterator[str]:
            try:
                if first is not None:
                    yield event(*first)
                async for place, text in events:
                    yield event(place, text)
                yield "event: end\ndata: {}\n\n"
            finally:
                await events.aclose()  # pyright: ignore[reportAttributeAccessIssue]

        return StreamingResponse(
            stream(), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    def _job(self, request: Request) -> Job:
        job = self.live.jobs.get(request.path_params["number"])
        if job is None:
            raise Refused(404, "there is no such request")
        return job


def event(place: int, text: str) -> str:
    """A server-sent event; a remark where there is nothing to say."""
    return f"id: {place}\ndata: {text}\n\n" if text else ": still here\n\n"


def told(says: str, status: int) -> Response:
    return JSONResponse({"error": says}, status)


def plain(says: str, status: int) -> Response:
    return Response(f"{says}\n", status, media_type="text/plain; charset=utf-8")


async def body_of(request: Request) -> Any:
    try:
        return asking.strict(await request.body())
    except (ValueError, RecursionError):
        raise InputError("the request is not JSON") from None


async def _wrong(request: Request, error: Exception) -> Response:
    return told(str(error), 400 if isinstance(error, InputError) else 409)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    closing = {"connection": "close"} if error.status in (408, 413) else {}
    return JSONResponse({"error": error.says}, error.status, headers=closing)


async def _broken(request: Request, error: Exception) -> Response:
    say(f"proving: {request.url.path}: {type(error).__name__}: {error}{place_of(error)}")
    return plain("this page cannot be made; the terminal of the server says why", 500)


async def _gone(request: Request, error: Exception) -> Response:
    return plain("", 400)


def application(atlas: Atlas) -> Starlette:
    """The atlas as an ASGI application, without its guard."""
    bodies = Bodies(atlas)
    live = Live(atlas.shelf.store, lambda *of: reading.changed(*of))
    reading = Reading(atlas, bodies, lambda: live.running)
    thinker = Thinker()
    site = Site(atlas, bodies, live, asyncio.Semaphore(2), thinker)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await live.start()
        between = asyncio.create_task(reading.run())
        try:
            yield
        finally:
            between.cancel()
            await live.close()
            await thinker.close()
            bodies.close()

    answers: dict[type[Exception], Callable[..., Awaitable[Response]]] = {
        InputError: _wrong,
        RunError: _wrong,
        Refused: _refused,
        ClientDisconnect: _gone,
        Exception: _broken,
    }
    app = Starlette(
        lifespan=lifespan,
        exception_handlers=answers,  # pyright: ignore[reportArgumentType]
        routes=[
            Route("/api/jobs", site.jobs, methods=["GET", "POST"]),
            Route("/api/jobs/{number:int}/events", site.events),
            Route("/api/jobs/{number:int}/cancel", site.cancel, methods=["POST"]),
            Route("/api/estimate", site.estimate, methods=["POST"]),
            Route("/api/conditions", site.conditions, methods=["POST"]),
            Route("/{path:path}", site.page),
        ],
    )
    app.state.site = site
    return app


# ------------------------------------------------------------------------------ the server


class Protocol(H11Protocol):
    """HTTP, whose requests have to arrive in time, and whose answers have to be taken."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._late = self.loop.call_later(SECONDS_TO_ASK, self._look)
        self._full: asyncio.TimerHandle | None = None

    def _look(self) -> None:
        """Ends a connection on which no request has come, or half of one for too long."""
        if self.transport.is_closing():
            return
        if self.cycle is None or (self.cycle.response_complete and self.conn.trailing_data[0]):
            self.transport.abort()
            return
        self._late = self.loop.call_later(SECONDS_TO_ASK, self._look)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._full = self.loop.call_later(SECONDS_TO_TAKE, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._has_taken()

    def _has_taken(self) -> None:
        if self._full is not None:
            self._full.cancel()
            self._full = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._late.cancel()
        self._has_taken()
        super().connection_lost(exc)


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens; a port that is taken is told."""
    found: socket.socket | None = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.socket(family, socket.SOCK_STREAM)
        if os.name == "posix":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        return found
    except (OSError, OverflowError, UnicodeError) as error:
        if found is not None:
            found.close()
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot listen at {host}, port {port}: {why}") from None


def guarded(atlas: Atlas, host: str, port: int, token: str) -> Guard:
    """The application, for those who may ask."""
    loopback = host in LOOPBACK
    hosts = LOOPBACK if loopback else (*LOOPBACK, host, socket.gethostname())
    return Guard(application(atlas), port=port, hosts=hosts, anywhere=not loopback, token=token)


def prepared(
    atlas: Atlas, listening: socket.socket, *, host: str, token: str, ready: Callable[[], None]
) -> uvicorn.Server:
    """A server that is yet to run; `ready` is called once it answers."""
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        guarded(atlas, host, port, token),
        http=Protocol,
        ws="none",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=SECONDS_KEPT_ALIVE,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=32 * 1024,
    )
    return _Server(config, ready)


def serve(
    atlas: Atlas, listening: socket.socket, *, host: str, token: str, ready: Callable[[], None]
) -> None:
    """Answers until it is interrupted."""
    server = prepared(atlas, listening, host=host, token=token, ready=ready)
    server.run(sockets=[listening])
    if not server.started:
        raise RunError("the server could not be started")


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.ready()
