"""Pages as they are sent: made one at a time, kept as long as they are true, within bounds."""

import asyncio
import gzip
import hashlib
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

SECONDS_KEPT = 3.0  # a page at least
MOST_BYTES = 48 * 2**20  # of all pages that are kept
PACKED = ("text/", "application/json", "image/svg+xml")  # what becomes shorter


class Page(Protocol):
    """What stands at a path."""

    @property
    def body(self) -> bytes: ...
    @property
    def media(self) -> str: ...


class Pages(Protocol):
    """A route table; see `pages.Atlas`."""

    def page(self, path: str) -> Page: ...
    def stamp(self, path: str) -> str: ...


class Body(NamedTuple):
    """A page, whole and (maybe) packed."""

    stamp: str
    media: str
    plain: bytes
    packed: bytes
    tag: str
    made: float

    @property
    def size(self) -> int:
        return len(self.plain) + len(self.packed)


class Bodies:
    """The pages of an atlas. They are made in one thread: drawing knows no other."""

    def __init__(self, atlas: Pages) -> None:
        self.atlas = atlas
        self.kept: OrderedDict[str, Body] = OrderedDict()
        self.size = 0
        self.hand = ThreadPoolExecutor(1, "pages")
        self.making: dict[str, asyncio.Future[Body]] = {}
        self.renewing = 0

    async def get(self, path: str) -> Body:
        """The page at a path; a KeyError for one that is not of the atlas.

        One that may have changed is made anew while the old one is sent, now and then.
        """
        kept = self.kept.get(path)
        stamp = self.atlas.stamp(path)
        if kept is not None:
            self.kept.move_to_end(path)
            if kept.stamp == stamp or time.monotonic() - kept.made < SECONDS_KEPT:
                return kept
        making = self.making.get(path)
        if making is None:
            making = asyncio.get_running_loop().run_in_executor(self.hand, self._made, path, stamp)
            self.making[path] = making
            making.add_done_callback(lambda done: self._keep(path, done))
        if kept is not None:
            return kept
        return await asyncio.shield(making)

    def forget(self, prefix: str) -> None:
        """Makes the pages below a path anew when they are asked for next."""
        for path in [path for path in self.kept if path.startswith(prefix)]:
            self.size -= self.kept.pop(path).size

    def close(self) -> None:
        self.hand.shutdown(wait=False, cancel_futures=True)

    def _made(self, path: str, stamp: str) -> Body:
        page = self.atlas.page(path)
        packed = gzip.compress(page.body, 5, mtime=0) if page.media.startswith(PACKED) else b""
        tag = f'"{hashlib.sha256(page.body).hexdigest()[:24]}"'
        return Body(stamp, page.media, page.body, packed, tag, time.monotonic())

    def _keep(self, path: str, done: "asyncio.Future[Body]") -> None:
        self.making.pop(path, None)
        if done.cancelled() or done.exception() is not None:
            return
        body = done.result()
        if path in self.kept:
            self.size -= self.kept.pop(path).size
        self.kept[path] = body
        self.size += body.size
        while self.size > MOST_BYTES and len(self.kept) > 1:
            self.size -= self.kept.popitem(last=False)[1].size
