"""What a server does between requests: it judges what is stored, and sees what others store."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from provingground.atlas.bodies import Bodies
from provingground.terminal import say

if TYPE_CHECKING:
    from provingground.atlas.pages import Atlas

SECONDS_BETWEEN_LOOKS = 3.0
SECONDS_FOR_A_PAGE = 20.0


class Reading:
    """Keeps the pages of an atlas true, an experiment at a time, while nobody waits for a page."""

    def __init__(self, atlas: "Atlas", bodies: Bodies, busy: Callable[[], bool]) -> None:
        self.atlas, self.bodies, self.busy = atlas, bodies, busy
        self.seen = self.times()
        self.ours: set[str] = set()  # studies of which cells were trained here since
        self.failed: set[str] = set()

    def times(self) -> dict[str, int]:
        """When something was last stored of each study."""
        found = {}
        for study in self.atlas.shelf.studies:
            try:
                found[study] = (self.atlas.shelf.store.path / study).stat().st_mtime_ns
            except OSError:
                found[study] = 0
        return found

    async def changed(self, target: str, shown: bool) -> None:
        """Cells of an experiment were trained here: makes its page anew if it shows them."""
        study, _, experiment = target.partition("/")
        self.ours.add(study)
        if not shown or study not in self.atlas.shelf.studies:
            return
        self.forget(study, experiment)
        with contextlib.suppress(Exception):  # who asks for the page is told what is wrong
            async with asyncio.timeout(SECONDS_FOR_A_PAGE):
                for name in ("index.html", "data.js"):
                    await self.bodies.get(f"{target}/{name}")

    def forget(self, study: str, experiment: str) -> None:
        self.atlas.forget(study, experiment)
        self.bodies.forget(f"{study}/{experiment}/")
        self.failed.discard(f"{study}/{experiment}")

    def look(self) -> None:
        """Forgets the studies of which somebody else stored something."""
        now = self.times()
        for study in [s for s in now if now[s] != self.seen.get(s) and s not in self.ours]:
            for experiment in self.atlas.shelf.experiments(study):
                self.forget(study, experiment.name)
        self.seen = now
        self.ours.clear()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)  # the first page is not to wait
        while True:
            judged = self.atlas.shelf.judged()
            for name in [n for n in self.atlas.shelf.names() if n not in judged]:
                while self.bodies.making or self.busy():
                    await asyncio.sleep(0.1)
                if name in self.failed:
                    continue
                try:
                    await loop.run_in_executor(self.bodies.hand, self.atlas.shelf.verdicts, name)
                except Exception as error:  # of one experiment; a study may be anybody's
                    self.failed.add(name)
                    say(f"proving: {name} cannot be judged: {error}")
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            if not self.busy():
                self.look()
