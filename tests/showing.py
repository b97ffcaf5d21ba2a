"""Pages of an atlas in a browser without a server, under the policy that the server sends."""

import json
from contextlib import contextmanager

from provingground.atlas.guard import POLICY
from provingground.store import Store
from shown import made_up

SITE = "https://atlas.test/"
WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
PATIENCE = 60_000  # milliseconds, on a busy machine
ON = "const on = (target, type, name, handler) =>"


class Answers:
    """What a server would say to live pages: the events of one job, and what it was asked."""

    def __init__(self, told=()):
        self.told, self.asked, self.going = list(told), [], False

    def bodies(self, path):
        """What was sent to a path, oldest first."""
        return [body for where, body in self.asked if where == path]

    def answer(self, route, path):
        if route.request.method == "POST":
            self.asked.append((path, json.loads(route.request.post_data or "null")))
        if path == "api/jobs/1/events":
            lines = "".join(f"data: {json.dumps(each)}\n\n" for each in self.told)
            body = lines + "event: end\ndata: {}\n\n" * (not self.going)
            route.fulfill(body=body, content_type="text/event-stream")
        elif path == "api/estimate":
            route.fulfill(json={"says": f"estimate {len(self.bodies(path))}"})
        elif path == "api/conditions":
            route.fulfill(json={"conditions": [], "values": []})
        else:
            route.fulfill(json={"job": 1, "jobs": []})


@contextmanager
def shown(chromium, atlas, size=WIDE, without="", patience=PATIENCE, answers=None, **options):
    """A page whose addresses are the atlas's paths; `without` is a handler that is taken away.

    Live pages hear `answers`. What was `taken` are the bytes of all that was loaded.
    """
    context = chromium.new_context(viewport=size, **options)
    context.set_default_timeout(patience)

    def answer(route):
        path = route.request.url.removeprefix(SITE).partition("#")[0].partition("?")[0]
        if path.startswith("api/"):
            page.answers.answer(route, path)
            return
        try:
            found = atlas.page(path)
        except KeyError:
            route.fulfill(status=404, body="")
            return
        body = found.body
        page.taken += len(body)
        if without and path == "static/core.js":
            text = body.decode()
            assert ON in text
            told = f'{ON} name === "{without}" ? undefined :'
            body = text.replace(ON, told).encode()
        route.fulfill(body=body, content_type=found.media, headers={
            "content-security-policy": POLICY, "content-type": found.media})  # fmt: skip

    context.route(f"{SITE}**", answer)
    page = context.new_page()
    page.trouble, page.answers, page.taken = [], answers or Answers(), 0
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.on("console", lambda said: page.trouble.append(said.text)
            if said.type in ("error", "warning") else None)  # fmt: skip
    try:
        yield page
    finally:
        context.close()


def atlas_in(folder, *studies, **options):
    """The atlas of some studies, from made-up Datasets."""
    found = made_up(list(studies), Store(folder / "store"), **options)
    found._rivals = lambda entry: []  # these take long, and are the same for every study
    return found


def widths(page):
    """How wide the page is on a phone, where nothing may need scrolling sideways."""
    page.set_viewport_size(PHONE)
    page.wait_for_timeout(60)
    found = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size(WIDE)
    return found
