"""Every page of every study opens without an error, on a wide screen and on a phone."""

import copy
from contextlib import ExitStack

import pytest

from provingground import registry
from showing import PHONE, SITE, WIDE, atlas_in, shown
from shown import broken_links

pytestmark = pytest.mark.web

SEEN = "circle, rect, polyline[points*=' ']"  # a mark, a cell or a curve of two points

MOST_BYTES = 1_000_000  # of a page with all that it loads

TOPS = ("index.html", "claims.html", "findings.html")
STUDIES = [*registry.names()]


def opened(page, path):
    """Opens a page until it is drawn; how wide it is."""
    page.taken = 0
    page.goto(SITE + path)
    if path.endswith("cell.html"):
        page.wait_for_selector(".one .probes", state="attached")
        assert (
            page.locator(".probe .chart").count()
            == page.locator(f".probe .chart:has({SEEN})").count()
        )
    elif path.count("/") == 2:
        page.wait_for_selector("#drawing svg :is(rect, circle)")
        assert "NaN" not in page.inner_html("#drawing"), path
    assert page.locator("h1").count() == 1
    assert page.trouble == [], path
    assert page.taken < MOST_BYTES, path
    return page.evaluate("document.documentElement.scrollWidth")


@pytest.mark.parametrize("study", STUDIES)
def test_every_page_loads_without_errors_at_both_widths(study, chromium, tmp_path):
    """Nor is any of their links broken."""
    atlas = atlas_in(tmp_path, study)
    served = copy.copy(atlas)
    served.live = True
    there = {f"static/{name}": b"" for name in ("atlas.css", *atlas.scripts)}
    with ExitStack() as stack:
        wide, phone = (stack.enter_context(shown(chromium, atlas, size)) for size in (WIDE, PHONE))
        trains = stack.enter_context(shown(chromium, served, PHONE))

        def seen(path):
            assert opened(wide, path) <= WIDE["width"], path
            # Where it is served a page is what it is in a folder, and offers to train besides.
            narrow = phone if path.endswith("cell.html") else trains
            assert opened(narrow, path) <= PHONE["width"], path
            there[path] = atlas.page(path).body

        for name in (e.name for e in atlas.shelf.experiments(study)):
            here = f"{study}/{name}"
            there |= {f"{here}/{file}": b"" for file in atlas._files(study, name)}
            seen(f"{here}/index.html")
            trains.wait_for_selector("#live-cost:not(:empty)")
            assert trains.answers.bodies("api/estimate")[-1]["experiment"] == here
            seen(f"{here}/cell.html")
        for path in (f"{study}/index.html", f"{study}/coverage.html", *TOPS):
            seen(path)
    assert broken_links(there) == []
