"""Every page of every study in a browser: without errors, on a wide screen and on a phone, by
keyboard alone, from a folder, for those who use a screen reader."""

import os
import re
import subprocess
import sys
from functools import partial

import pytest
from axe_playwright_python.sync_playwright import Axe

from showing import PHONE, SITE, WIDE, atlas_in, shown, widths
from shown import grid_of, hostile

pytestmark = pytest.mark.web

SERIOUS = ("serious", "critical")
MOST_SECONDS = 0.2  # of computing, to draw a phase diagram of two thousand cells anew


@pytest.fixture
def atlas_of(tmp_path):
    """The atlas of some studies, from made-up Datasets."""
    return partial(atlas_in, tmp_path)


@pytest.fixture(scope="module")
def atlas(tmp_path_factory):
    """Two studies, all of which is judged."""
    found = atlas_in(tmp_path_factory.mktemp("pages"), "toy", "benign_overfitting")
    found.warm()
    return found


# ----------------------------------------------------------------------- pages of all kinds


def test_front_pages_load_without_errors_at_both_widths(chromium, atlas):
    with shown(chromium, atlas) as page:
        for path in ("index.html", "claims.html", "findings.html"):
            page.goto(SITE + path)
            assert widths(page) <= PHONE["width"], path
            assert page.trouble == [], path


def test_what_is_not_stored_has_a_page_too(chromium, tmp_path):
    from provingground.atlas.pages import Atlas
    from provingground.store import Store

    with shown(chromium, Atlas(Store(tmp_path / "none"), studies=["toy"])) as page:
        page.goto(f"{SITE}toy/risk/index.html")
        assert "proving run toy/risk" in page.inner_text("#missing")
        page.goto(f"{SITE}toy/index.html")
        page.select_option("select[name=experiment]", "")
        assert page.trouble == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", [
    "index.html", "claims.html", "findings.html", "benign_overfitting/index.html",
    "benign_overfitting/coverage.html", "benign_overfitting/fig1b/index.html",
    "benign_overfitting/fig1b/cell.html#b.snr=2", "toy/risk/index.html",
])  # fmt: skip
def test_axe_finds_nothing_serious(path, scheme, chromium, atlas):
    with shown(chromium, atlas, color_scheme=scheme) as page:
        page.goto(SITE + path)
        page.wait_for_timeout(300)
        found = [v for v in Axe().run(page).response["violations"] if v["impact"] in SERIOUS]
        told = [(v["id"], [n["html"][:150] for n in v["nodes"][:3]]) for v in found]
        assert told == []


def test_axe_sees_what_is_wrong(chromium, atlas_of):
    """The negative control of the test above."""
    with shown(chromium, atlas_of("toy")) as page:
        page.goto(f"{SITE}claims.html")
        page.evaluate("document.querySelector('label select').parentElement.firstChild.remove()")
        found = [v["id"] for v in Axe().run(page).response["violations"]]
        assert "select-name" in found


# ---------------------------------------------------------------------------- interaction


def test_by_keyboard_alone_from_the_front_into_a_cell(chromium, atlas):
    def tab_to(page, script):
        for _ in range(80):
            page.keyboard.press("Tab")
            outline = "getComputedStyle(document.activeElement)"
            seen = page.evaluate(f"[{outline}.outlineStyle, {outline}.strokeWidth]")
            if page.evaluate(script):
                assert seen[0] != "none" or seen[1] == "3px"  # the focus is seen
                return
        raise AssertionError(f"not reached by Tab: {script}")

    with shown(chromium, atlas) as page:
        page.goto(f"{SITE}index.html")
        tab_to(page, "document.activeElement.matches('a[href^=benign]')")
        page.keyboard.press("Enter")
        page.wait_for_url("**/benign_overfitting/index.html")
        tab_to(page, "document.activeElement.textContent === 'fig1b'")
        page.keyboard.press("Enter")
        page.wait_for_url("**/fig1b/index.html")
        tab_to(page, "document.activeElement.name === '_show'")
        page.keyboard.press("ArrowDown")
        tab_to(page, "document.activeElement.dataset.i === '0'")
        page.keyboard.press("ArrowRight")
        assert "samples 12" in page.inner_text("#reading")
        page.keyboard.press("Enter")
        page.wait_for_url("**/cell.html#samples=12*")
        tab_to(page, "document.activeElement.id === 'compare'")
        page.keyboard.press("Enter")
        page.wait_for_selector(".one + .one")
        page.keyboard.press("Shift+Tab")
        assert page.trouble == []


def test_a_view_is_in_its_address(chromium, atlas_of):
    with shown(chromium, atlas_of("toy")) as page:
        page.goto(f"{SITE}toy/risk/index.html")
        page.select_option("select[name=_show]", "train_loss")
        page.select_option("select[name=_x]", "step")
        page.select_option("select[name=seed]", "1")
        drawn, address = page.inner_html("#drawing"), page.url
        page.goto(f"{SITE}index.html")
        page.goto(address)
        assert page.inner_html("#drawing") == drawn
        assert page.input_value("select[name=_show]") == "train_loss"


def test_a_hash_of_nonsense_is_borne(chromium, atlas_of):
    with shown(chromium, atlas_of("toy")) as page:
        for text in ("_show=__proto__&_x=constructor&seed=x", "%E0%A4%A", "&&==&", "samples=1e999"):
            for name in ("index.html", "cell.html"):
                page.goto(f"{SITE}toy/risk/{name}#{text}")
                page.wait_for_selector("svg.chart")
        assert page.trouble == []


def test_two_thousand_cells_are_drawn_and_walked_without_lag(chromium, atlas_of):
    with shown(chromium, atlas_of(grid_of(50, 40))) as page:
        page.goto(f"{SITE}tiny/first/index.html")
        assert page.locator("#drawing rect.cell").count() == 2000
        tools = page.context.new_cdp_session(page)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})

        def computed():
            """The seconds that the page computed so far: others on the machine do not count."""
            told = tools.send("Performance.getMetrics")["metrics"]
            return {each["name"]: each["value"] for each in told}["TaskDuration"]

        began = computed()
        for _ in range(5):
            page.evaluate("() => { atlas.redraw(); document.body.offsetHeight; }")
        drawn = computed()
        assert 0 < (drawn - began) / 5 < MOST_SECONDS
        page.focus("[data-i='0'][data-j='0']")
        for _ in range(20):
            page.keyboard.press("ArrowRight")
        walked = computed()
        assert 0 < (walked - drawn) / 20 < MOST_SECONDS / 2
        assert page.evaluate("document.activeElement.dataset.i") == "20"


def test_hostile_texts_run_nothing(chromium, atlas_of):
    atlas = atlas_of(hostile())
    with shown(chromium, atlas) as page:
        for path in ("index.html", "claims.html", "findings.html", "tiny/index.html",
                     "tiny/first/index.html", "tiny/first/cell.html",
                     "tiny/first/index.html#variant=__proto__"):  # fmt: skip
            page.goto(SITE + path)
            page.wait_for_timeout(100)
            assert page.evaluate("window.hit") is None, path
            assert page.locator("img[src=x]").count() == 0, path
            assert page.evaluate("({}).labels") is None
        page.goto(f"{SITE}tiny/first/index.html")
        assert page.evaluate(
            "atlas.fill(JSON.parse('{\"labels\": {\"__proto__\": 1}, \"seeds\": [0]}'))"
        ) is False  # fmt: skip
        page.goto(f"{SITE}tiny/index.html")
        page.select_option("select[name=experiment]", "first")
        page.wait_for_selector("#axes input, #axes select")
        assert page.evaluate("window.hit") is None
        assert page.trouble == []


# ------------------------------------------------------------------------- from a folder


def test_the_site_works_from_a_folder(chromium, frozen):
    context = chromium.new_context(viewport=WIDE)
    page, trouble = context.new_page(), []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda said: trouble.append(said.text) if said.type == "error" else None)
    page.goto((frozen / "index.html").as_uri())
    page.click("text=Least squares by gradient descent")
    page.click("table a:text-is('risk')")
    page.wait_for_selector("#drawing circle")
    page.wait_for_selector(".strips .row:has-text('on its own curve')")
    page.select_option("select[name=_show]", "train_loss")
    assert "_show=train_loss" in page.url
    page.click("#drawing circle >> nth=0")
    page.wait_for_selector(".one polyline")
    page.click("text=Claims")
    page.select_option("select[name=verdict]", "holds")
    assert page.inner_text("#shown")
    assert trouble == []
    context.close()


def test_the_three_lines_that_are_copied_give_the_figure(chromium, frozen, toy_store, tmp_path):
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto((frozen / "toy" / "risk" / "index.html").as_uri())
    page.click("button[data-copies=code]")
    page.wait_for_selector("button:text-is('Copied')")
    page.set_content("<textarea></textarea>")
    page.focus("textarea")
    page.keyboard.press("Control+V")
    lines = page.input_value("textarea")
    context.close()
    assert len(lines.strip().splitlines()) == 3
    environment = {"PROVING_STORE": str(toy_store.path)}

    subprocess.run([sys.executable, "-c", lines], check=True, cwd=tmp_path,
                   env={**os.environ, **environment})  # fmt: skip
    assert (tmp_path / "risk.png").read_bytes().startswith(b"\x89PNG")


def test_all_links_of_a_page_in_a_folder_lead_to_files(chromium, frozen):
    context = chromium.new_context()
    page = context.new_page()
    for path in frozen.rglob("*.html"):
        page.goto(path.as_uri())
        every = "all => all.map(a => a.href || a.src)"
        for link in page.eval_on_selector_all("a[href], img[src]", every):
            if link.startswith("file://"):
                where = re.sub(r"[#?].*", "", link).removeprefix("file://")
                assert (frozen / where).is_file(), (path, link)
    context.close()


def test_conditions_are_asked_of_a_server(page, address):
    page.goto(f"{address}/toy/index.html")
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    before = page.inner_text("#predictions")
    page.fill("#settings input[name=noise]", "3")
    changed = "old => document.querySelector('#predictions').innerText !== old"
    page.wait_for_function(changed, arg=before)
    page.wait_for_selector("#told:has-text('conditions hold here')")
