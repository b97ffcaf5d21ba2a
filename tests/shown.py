"""Atlases for tests: of made-up Datasets, and of a study all of whose texts are hostile."""

import base64
import dataclasses
import re
from html.parser import HTMLParser

from madeup import madeup
from provingground import api, stats
from provingground.atlas.pages import Atlas
from provingground.atlas.shelf import Drawn, Entry
from provingground.claims import Claim
from provingground.study import Condition, Experiment, Prediction, Scale, cases
from tiny import ONE, tiny

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
HIT = "<script>window.hit=1</script>"
EVIL = f'</script>{HIT}"><img src=x onerror="window.hit=1"> \\u2028 & $x$ {{{{7*7}}}}'
LABELS = ("__proto__", EVIL, "constructor")


def made_up(studies, store, scale: Scale = "quick", figures=False, **options):
    """An atlas whose Datasets are noise: every page of a study without a training."""
    atlas = Atlas(store, scale=scale, studies=studies, records=store.path / "none", **options)

    def read(study, experiment):
        ds = madeup(study, experiment, scale)
        entry = Entry(study, experiment, ds, tuple(api.verdicts(study, experiment, ds)))
        if not figures:
            entry.__dict__["figure"] = Drawn(PIXEL, b"<svg/>", (1.0, 1.0))
        return entry

    atlas.shelf._read = read
    return atlas


def hostile():
    """A study whose title, statements, labels, claims and theory are markup."""
    grid = {"variant": cases({label: {"rate": 0.1 * n} for n, label in enumerate(LABELS, 1)})}
    claim = Claim("one", EVIL, ONE.measure, (0, 1e9), EVIL, note=EVIL,
                  rivals={EVIL: lambda ds: ds * 2})  # fmt: skip
    owner = tiny(grid=grid)
    trainings = dataclasses.replace(owner.experiments[0].trainings, grid=grid)
    first = Experiment("first", EVIL, trainings, (claim,), lambda ds: None)
    said = Prediction((Condition(EVIL, 1.0, "<=", 2.0, EVIL),), {EVIL: 1.0}, {EVIL: EVIL}, (EVIL,))
    return dataclasses.replace(owner, title=EVIL, cite=EVIL, statement=EVIL, bibtex=EVIL,
                               theory=lambda cfg: said, experiments=(first,))  # fmt: skip


def grid_of(columns, rows, seeds=3):
    """A study with a phase diagram of so many cells."""
    rates = [0.1 + 0.01 * n for n in range(columns)]
    axes = {"rate": rates, "count": list(range(1, rows + 1))}
    mean = Claim("one", "the end is there", lambda ds: stats.mean(ds["last"]), (0, 1e9), "T")
    owner = tiny(grid=axes)
    trainings = dataclasses.replace(owner.experiments[0].trainings, grid=axes, seeds=seeds)
    first = Experiment("first", "A large map.", trainings, (mean,), lambda ds: None)
    return dataclasses.replace(owner, experiments=(first,))


class Parts(HTMLParser):
    """What a page refers to, its anchors, its tags and its words."""

    def __init__(self, page):
        super().__init__()
        self.links, self.resources, self.ids, self.tags, self.text = [], [], [], [], ""
        self.attributes = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]
        self.ids += [found["id"]] if "id" in found else []
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        self.resources += [found[n] for n in ("src",) if n in found]
        self.resources += [found["href"]] if tag == "link" else []

    def handle_data(self, data):
        self.text += data


def led_to(path, link):
    """The path of the site that a relative link leads to, and the anchor there."""
    to, _, anchor = link.partition("#")
    parts = path.split("/")[:-1]
    for part in to.split("/") if to else ():
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return ("/".join(parts) if to else path), anchor


def broken_links(pages):
    """What the pages of a site (bodies by path) refer to that is not there."""
    parts = {p: Parts(body.decode()) for p, body in pages.items() if p.endswith(".html")}
    found = []
    for path, part in parts.items():
        for link in part.links + part.resources:
            if re.match(r"https?://|data:", link):
                continue
            to, anchor = led_to(path, link)
            there = to in pages
            if there and anchor and to in parts and "=" not in anchor:
                there = anchor in parts[to].ids
            if not there:
                found.append((path, link))
    return found
