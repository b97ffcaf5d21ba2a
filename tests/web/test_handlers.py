"""Every handler of the atlas's scripts does something, and its test fails without it."""

import re
from importlib.resources import files
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Error

from showing import SITE, Answers, shown
from shown import made_up

pytestmark = pytest.mark.web

TOY, MAP, DEEP = "toy/risk", "benign_overfitting/fig1b", "in_context_learning/fig6_3b"
CHECKS = {}


def check(script, handler, path):
    """Registers what shows that a handler works, on a page."""

    def made(test):
        CHECKS[script, handler, test.__name__] = (path, test)
        return test

    return made


@pytest.fixture(scope="module")
def atlases(tmp_path_factory):
    """The atlas as it is frozen, and as it is served."""
    from provingground.store import Store

    store = Store(tmp_path_factory.mktemp("handlers") / "store")
    studies = ["toy", "benign_overfitting", "in_context_learning"]
    return {live: made_up(studies, store, live=live) for live in (False, True)}


@pytest.mark.parametrize(("script", "handler"), [
    (path.name, name)
    for path in sorted(files("provingground.atlas").joinpath("static").iterdir(), key=str)
    if path.name.endswith(".js")
    for name in re.findall(r'\bon\([^"]*"\w[\w:]*", "([\w-]+)"', path.read_text(encoding="utf-8"))
])  # fmt: skip
def test_every_handler_is_checked(script, handler):
    assert (script, handler) in {names[:2] for names in CHECKS}


def test_every_handler_is_registered_by_name():
    for path in files("provingground.atlas").joinpath("static").iterdir():
        text = path.read_text(encoding="utf-8") if path.name.endswith(".js") else ""
        assert text.count("addEventListener") == (1 if path.name == "core.js" else 0), path.name


# ------------------------------------------------------------------------------- checks


def stays(page, form):
    """Whether a form that is submitted leaves the page as it is."""
    sent = "dispatchEvent(new Event('submit', {cancelable: true}))"
    return not page.evaluate(f"document.getElementById('{form}').{sent}")


@check("core.js", "copy", f"{TOY}/index.html")
def copy(page):
    page.click("button[data-copies=code]")
    page.wait_for_selector("button:text-is('Copied')")
    told = page.evaluate("navigator.clipboard.readText()")
    assert told == page.inner_text("#code")


@check("core.js", "slider-label", f"{TOY}/index.html#_show=train_loss&_x=samples&_y=noise")
def slider_label(page):
    before = page.inner_text("label.slider output")
    page.locator("label.slider input").press("Home")
    assert page.inner_text("label.slider output") != before
    assert page.inner_text("label.slider output") == "0"
    assert page.get_attribute("label.slider input", "aria-valuetext") == "0"


@check("chart.js", "arrows", f"{MAP}/index.html")
def arrows(page):
    page.focus("rect[data-i='0'][data-j='0']")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    at = page.evaluate("[document.activeElement.dataset.i, document.activeElement.dataset.j]")
    assert at == ["1", "1"]
    assert page.locator("[data-i][tabindex='0']").count() == 1


@check("chart.js", "enter", f"{MAP}/index.html")
def enter(page):
    page.focus("rect[data-i='0'][data-j='0']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/cell.html#samples=8&snr=*")


@check("chart.js", "focus-reads", f"{MAP}/index.html")
def focus_reads(page):
    page.focus("rect[data-i='0'][data-j='0']")
    assert "samples 8, snr" in page.inner_text("#reading")


@check("chart.js", "hover-reads", f"{MAP}/index.html")
def hover_reads(page):
    page.hover("rect[data-i='2'][data-j='1']")
    assert "samples 20, snr" in page.inner_text("#reading")


@check("chart.js", "click-opens", f"{MAP}/index.html")
def click_opens(page):
    page.click("rect[data-i='2'][data-j='1']")
    page.wait_for_url("**/cell.html#samples=20&snr=*&seed=0")
    page.wait_for_selector(".one h2:has-text('samples 20')")


@check("figure.js", "controls", f"{MAP}/index.html")
def controls(page):
    page.select_option("select[name=_show]", "test_loss")
    assert "_show=test_loss" in page.url
    assert "test loss" in page.get_attribute("rect[data-i='0'][data-j='0']", "aria-label")
    page.select_option("select[name=_as]", "lines")
    page.wait_for_selector("polyline")
    page.select_option("select[name=seed]", "2")
    assert "seed=2" in page.url
    page.check("input[name=x]")
    assert re.search(r"_log=(\w\+)?x", page.url)


@check("figure.js", "controls", f"{DEEP}/index.html")
def slice_(page):
    before = page.inner_html("#drawing svg")
    page.locator("#controls input[type=range]").first.press("Home")
    assert page.inner_html("#drawing svg") != before
    name = page.locator("#controls input[type=range]").first.get_attribute("name")
    assert f"{name}=" in page.url


@check("figure.js", "no-submit", f"{MAP}/index.html")
def figure_no_submit(page):
    assert stays(page, "controls")


@check("figure.js", "address", f"{MAP}/index.html")
def figure_address(page):
    page.evaluate("location.hash = '#_show=test_loss&seed=3'")
    page.wait_for_function("document.querySelector('select[name=_show]').value === 'test_loss'")
    assert page.input_value("select[name=seed]") == "3"


@check("figure.js", "filled", f"{MAP}/index.html#seed=1")
def filled(page):
    probe = page.input_value("select[name=_show]")
    labels = "labels: {samples: 8, snr: atlas.dim('snr').labels[0]}"
    assert page.evaluate(f"atlas.fill({{{labels}, seeds: [1], probes: {{{probe}: [77.5]}}}})")
    assert "77.5" in page.get_attribute("rect[data-i='0'][data-j='0']", "aria-label")
    assert not page.evaluate("atlas.fill({labels: {samples: 9}, seeds: [1], probes: {}})")


@check("figure.js", "table", f"{MAP}/index.html")
def table(page):
    page.click("#as-table summary")
    page.wait_for_selector("#table td")
    assert page.locator("#table tbody tr").count() == 3
    assert page.locator("#table tbody td").count() == 33


@check("figure.js", "save", f"{MAP}/index.html")
def save(page):
    with page.expect_download() as got:
        page.click("#save")
    assert got.value.suggested_filename.startswith("benign_overfitting_fig1b")
    assert "<svg" in got.value.path().read_text()


@check("figure.js", "save", f"{MAP}/index.html")
def save_a_file_of_its_own(page):
    """It is XML, whatever stands in it, and shows no trace of the pointer."""
    page.hover("rect[data-i='2'][data-j='1']")
    assert page.locator("#drawing .cursor").count() == 1
    page.evaluate("document.querySelector('#drawing text').textContent = 'a\u00a0& <b>'")
    with page.expect_download() as got:
        page.click("#save")
    saved = ElementTree.parse(got.value.path()).getroot()
    assert "a\u00a0& <b>" in list(saved.itertext())
    assert [each for each in saved.iter() if each.get("class") == "cursor"] == []


@check("figure.js", "resize", f"{MAP}/index.html")
def resize(page):
    before = page.get_attribute("#drawing svg", "viewBox")
    page.set_viewport_size({"width": 800, "height": 800})
    page.wait_for_function(
        "old => document.querySelector('#drawing svg').getAttribute('viewBox') !== old", arg=before
    )


@check("cell.js", "cell-resize", f"{MAP}/cell.html")
def cell_resize(page):
    page.wait_for_selector(".one polyline")
    before = page.get_attribute(".probe .chart", "viewBox")
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function(
        "old => document.querySelector('.probe .chart').getAttribute('viewBox') !== old", arg=before
    )


@check("cell.js", "places", f"{MAP}/cell.html")
def places(page):
    page.wait_for_selector(".one")
    page.select_option("select[name=samples]", "1")
    page.wait_for_selector(".one h2:has-text('samples 12')")
    assert "samples=12" in page.url
    page.click("input[name=_log]")
    assert "_log=" in page.url


@check("cell.js", "no-submit", f"{MAP}/cell.html")
def cell_no_submit(page):
    assert stays(page, "places")


@check("cell.js", "compare", f"{MAP}/cell.html#samples=12&seed=1")
def compare(page):
    page.click("#compare")
    page.wait_for_selector(".one + .one")
    assert "b.samples=20" in page.url
    page.click("#compare")
    page.wait_for_selector(".one + .one", state="detached")


def test_two_cells_are_drawn_on_the_same_axes(chromium, atlases):
    with shown(chromium, atlases[False]) as page:
        page.goto(f"{SITE}{MAP}/cell.html#samples=12&b.samples=20")
        page.wait_for_selector(".one + .one polyline")
        ticks = page.evaluate(
            "[...document.querySelectorAll('.one')].map(one => [...one.querySelectorAll('.probe')]"
            ".map(p => [...p.querySelectorAll('text')].map(t => t.textContent).join()))"
        )
        assert len(ticks[0]) > 3
        assert ticks[0] == ticks[1]


@check("cell.js", "address", f"{MAP}/cell.html")
def cell_address(page):
    page.wait_for_selector(".one")
    page.evaluate("location.hash = '#samples=20'")
    page.wait_for_selector(".one h2:has-text('samples 20')")


@check("cell.js", "cell-slices", f"{DEEP}/cell.html")
def cell_slices(page):
    figure = page.locator("figure.small:has(.slider)").first
    before = figure.locator("polyline").first.get_attribute("points")
    figure.locator(".slider input").first.press("Home")
    assert figure.locator("polyline").first.get_attribute("points") != before


@check("cell.js", "cell-table", f"{MAP}/cell.html")
def cell_table(page):
    page.locator(".probe summary").first.click()
    page.wait_for_selector(".probe details td")


@check("study.js", "settings", "benign_overfitting/index.html")
def settings(page):
    before = page.inner_text("#margins tbody")
    page.select_option("select[name=experiment]", "fig1b")
    page.wait_for_selector("#axes input[name=snr]")
    there = page.inner_text("#margins tbody")
    assert there != before
    page.locator("#axes input[name=snr]").press("Home")
    assert page.inner_text("#margins tbody") != there
    assert "conditions hold here" in page.inner_text("#told")
    page.select_option("select[name=experiment]", "")
    assert page.inner_text("#margins tbody") == before


@check("study.js", "no-submit", "benign_overfitting/index.html")
def study_no_submit(page):
    assert stays(page, "settings")


@check("claims.js", "filter", "claims.html")
def claims_filter(page):
    page.select_option("select[name=study]", "benign_overfitting")
    page.fill("input[name=text]", "critical SNR falls")
    assert page.locator("#claims tbody tr:visible").count() == 1
    assert page.inner_text("#shown").startswith("1 of")
    assert "study=benign_overfitting" in page.url


@check("claims.js", "no-submit", "claims.html")
def claims_no_submit(page):
    assert stays(page, "filter")


@check("claims.js", "address", "claims.html")
def claims_address(page):
    page.evaluate("location.hash = '#kind=corrected&verdict=holds'")
    page.wait_for_function("document.querySelector('select[name=kind]').value === 'corrected'")
    seen = page.locator("#claims tbody tr:visible")
    assert {row.get_attribute("data-kind") for row in seen.all()} <= {"corrected"}


# ---------------------------------------------------------------------- what trains

PAGE = f"{TOY}/index.html"


def asked(page, path, count=1):
    """What the page sends to a path of the server, once it was sent so often."""
    page.wait_for_function("() => true")
    for _ in range(200):
        if len(found := page.answers.bodies(path)) >= count:
            return found[-1]
        page.wait_for_timeout(page.patience / 200)
    raise AssertionError(f"nothing was sent to {path}")


def frames(*values):
    told = {"event": "frame", "training": 0, "steps": 10}
    return [told | {"step": 5 * n, "probes": value} for n, value in enumerate(values)]


@check("live.js", "live-slider", PAGE)
def live_slider(page):
    before = page.input_value("#live [name=samples]")
    page.locator("#live input[type=range]").first.press("ArrowRight")
    after = page.input_value("#live [name=samples]")
    assert after != before
    settings = asked(page, "api/estimate", 2)["settings"]
    assert f"samples={after}" in settings


@check("live.js", "live-number", PAGE)
def live_number(page):
    before = page.locator("#live input[type=range]").first.input_value()
    page.fill("#live [name=samples]", "199")
    assert page.locator("#live input[type=range]").first.input_value() != before
    assert "samples=199" in asked(page, "api/estimate", 2)["settings"]


@check("live.js", "live-choice", f"{MAP}/index.html")
def live_choice(page):
    page.click("#live summary")
    page.select_option("#live [name=init]", "gaussian")
    assert "init=gaussian" in asked(page, "api/estimate", 2)["settings"]


@check("live.js", "live-seeds", PAGE)
def live_seeds(page):
    page.fill("#live-seeds", "3")
    assert asked(page, "api/estimate", 2)["seeds"] == "3"


@check("live.js", "live-run", PAGE)
def live_run(page):
    page.evaluate(  # without its handler the form would leave the page
        "document.getElementById('live-form').addEventListener('submit', e => e.preventDefault())"
    )
    page.click("#live-run")
    sent = asked(page, "api/jobs")
    assert sent["experiment"] == TOY
    assert sent["seeds"] == "1"
    assert [text.partition("=")[0] for text in sent["settings"]] == ["samples", "noise"]


@check("live.js", "live-fill", PAGE)
def live_fill(page):
    page.click("#live-fill")
    assert asked(page, "api/jobs") == {"experiment": TOY, "scale": "quick", "settings": []}


@check("live.js", "live-cancel", PAGE)
def live_cancel(page):
    page.answers.going = True
    page.click("#live-run")
    page.click("#live-cancel")
    asked(page, "api/jobs/1/cancel")


@check("live.js", "live-told", PAGE)
def live_told(page):
    page.answers.told = [{"event": "failed", "says": "it did not work"}]
    page.click("#live-run")
    page.wait_for_selector("#live-status.attention:text-is('it did not work')")


@check("live.js", "live-end", PAGE)
def live_end(page):
    page.answers.told = [{"event": "failed", "says": "it did not work"}]
    page.click("#live-run")
    page.wait_for_selector("#live-status:text-is('it did not work')")
    page.wait_for_selector("#live-cancel", state="hidden")


@check("live.js", "live-lost", PAGE)
def live_lost(page):
    page.answers.told, page.answers.going = [{"event": "running"}], True  # and no more
    page.click("#live-run")
    page.wait_for_selector("#live-status.attention:has-text('connection to the server was lost')")


@check("live.js", "live-anew", PAGE)
def live_anew(page):
    page.evaluate("location.hash = '#_show=train_loss'; window.old = true")
    page.answers.told = [{"event": "done", "cells": 1}]
    page.click("#live-run")
    page.click("#live-status button")
    page.wait_for_function("window.old === undefined")
    assert page.url.endswith("#_show=train_loss")


def test_a_request_that_the_server_has_forgotten_is_no_longer_watched(chromium, atlases):
    """It was started anew, say; then numbers of requests do not mean others."""
    with shown(chromium, atlases[True]) as page:
        page.goto(SITE + PAGE)
        page.route("**/api/jobs/1/events", lambda route: route.fulfill(status=404, body="no"))
        page.click("#live-run")
        page.wait_for_selector("#live-status.attention:has-text('knows this request no more')")
        page.wait_for_selector("#live-cancel", state="hidden")


@check("live.js", "live-watch", PAGE)
def live_watch(page):
    page.answers.told = frames(
        {"train_loss": 1.0, "test_loss": 3.0}, {"train_loss": 0.5, "test_loss": 2}
    )
    page.click("#live-run")
    page.wait_for_selector("#live-lines[aria-label^='training loss']")
    page.select_option("#live-watch", "test_loss")
    page.wait_for_selector("#live-lines[aria-label^='excess risk']")


@check("live.js", "live-log", PAGE)
def live_log(page):
    page.answers.told = frames(*({"train_loss": 1.0 / n} for n in (1, 2, 3, 4)))
    page.click("#live-run")
    page.wait_for_selector("#live-lines[data-points='4'] polyline")
    before = page.get_attribute("#live-lines polyline", "points")
    page.check("[name=live-log]")
    assert page.get_attribute("#live-lines polyline", "points") != before


@check("live.js", "live-resize", PAGE)
def live_resize(page):
    page.answers.told = frames({"train_loss": 1.0}, {"train_loss": 0.5})
    page.click("#live-run")
    page.wait_for_selector("#live-lines polyline")
    before = page.get_attribute("#live-lines", "viewBox")
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function(
        "old => document.getElementById('live-lines').getAttribute('viewBox') !== old", arg=before
    )


def test_a_cell_that_is_not_of_the_experiment_takes_no_place_of_its_figure(chromium, atlases):
    """One with another dimension, say, though its labels are those of a place on the grid."""
    cell = {"labels": {"samples": 30, "noise": 0.5}, "seeds": [0], "probes": {"test_loss": [77.5]}}
    for declared, look in ((False, "not on the grid"), (True, "open")):
        answers = Answers([{"event": "cells", "cells": [cell | {"declared": declared}]}])
        with shown(chromium, atlases[True], answers=answers) as page:
            page.goto(f"{SITE}{PAGE}#_show=test_loss&seed=0&noise=0.5")
            page.click("#live-run")
            page.wait_for_selector(f"#live-results td:last-child:has-text('{look}')")
            marks = page.locator("#drawing [aria-label*='77.5']").count()
            assert marks == int(declared)


def test_a_form_asks_at_the_scale_of_the_page_also_where_nothing_is_stored(chromium, tmp_path):
    from provingground.atlas.pages import Atlas
    from provingground.store import Store

    for scale in ("quick", "paper"):
        atlas = Atlas(Store(tmp_path), studies=["toy"], scale=scale, live=True)
        with shown(chromium, atlas) as page:
            page.patience = 60_000
            page.goto(SITE + PAGE)
            page.click("#live-fill")
            assert asked(page, "api/jobs")["scale"] == scale


def test_names_of_parameters_with_indices_stay_lines_of_text(chromium, atlases):
    with shown(chromium, atlases[True]) as page:
        page.goto(f"{SITE}benign_overfitting/index.html")
        below = page.locator("#settings sub")
        assert below.count() > 0
        layout = "all => all.map((each) => getComputedStyle(each.parentElement).display)"
        assert "flex" not in below.evaluate_all(layout)


each = pytest.mark.parametrize(("script", "handler", "name"), list(CHECKS))
RIGHTS = ["clipboard-read", "clipboard-write"]


@each
def test_a_handler_works(script, handler, name, chromium, atlases):
    path, test = CHECKS[script, handler, name]
    with shown(chromium, atlases[script == "live.js"], permissions=RIGHTS) as page:
        page.patience = 60_000
        page.goto(SITE + path)
        test(page)
        assert page.trouble == []


@each
def test_without_its_handler_a_check_fails(script, handler, name, chromium, atlases):
    path, test = CHECKS[script, handler, name]
    live = script == "live.js"
    with shown(chromium, atlases[live], without=handler, patience=1200, permissions=RIGHTS) as page:
        page.patience = 1200
        page.goto(SITE + path, timeout=60_000)
        with pytest.raises((AssertionError, Error)):
            test(page)
