"""A cell from the slider to the store, while somebody watches; each handler has its test."""

import json
import re

import numpy as np
import pytest

import tiny
from provingground import api
from provingground.store import Store
from serving import started

pytestmark = pytest.mark.web

DONE = "stored: "


@pytest.fixture
def toy(page, address):
    """The page of an experiment, with its form."""
    page.goto(f"{address}/toy/risk/index.html")
    page.wait_for_selector("#live-cost:not(:empty)")
    return page


def says(page, where, pattern):
    """Waits until a line of the form says something."""
    page.wait_for_function(
        "([id, pattern]) => new RegExp(pattern).test(document.getElementById(id).textContent)",
        arg=[where, pattern],
    )
    return page.inner_text(f"#{where}")


def finished(page):
    """Waits until a cell is trained, and gives the status."""
    return says(page, "live-status", "^(stored|cancelled)|ended|failed")


def trained(page, button="#live-run"):
    """Trains what is set."""
    page.evaluate("document.getElementById('live-status').textContent = ''")
    page.click(button)
    return finished(page)


def settings(page, **given):
    for name, value in given.items():
        if not page.locator(f"#live [name={name}]").is_visible():
            page.click("#live summary")
        page.fill(f"#live [name={name}]", str(value))


def test_a_cell_goes_from_the_slider_through_the_stream_into_the_store(toy, toy_store, monkeypatch):
    slider = toy.locator("#live input[type=range]").first
    name = toy.locator("#live input[type=number]").first.get_attribute("name")
    before = toy.input_value(f"#live [name={name}]")
    slider.focus()
    for _ in range(7):
        slider.press("ArrowRight")
    after = toy.input_value(f"#live [name={name}]")
    assert after != before
    assert slider.get_attribute("aria-valuetext") == after
    settings(toy, noise=0.77)
    toy.fill("#live-seeds", "2")
    toy.click("#live-run")
    toy.wait_for_selector("#live-watching:not([hidden]) polyline")
    told = finished(toy)
    assert told.startswith(DONE + "2 cells")
    assert "agrees with what is stored" in told
    deviation = re.search(r"stored to ([0-9.]+e.[0-9]+|[0-9.]+|the last digit)", told)
    assert deviation
    text = deviation[1].replace("−", "-")
    assert text == "the last digit" or float(text) <= 1e-5
    assert int(toy.get_attribute("#live-lines", "data-points")) > 20
    computed = tiny.count_computed(monkeypatch)
    chosen = {"samples": int(after), "noise": 0.77} if name == "samples" else None
    assert chosen
    ds = api.run("toy/risk", seeds=2, settings=chosen, store=Store(toy_store.path), progress=False)
    assert computed == []  # the very cells are stored
    *row, look = toy.locator("#live-results tbody tr").first.locator("td").all_inner_texts()
    *names, _ = toy.locator("#live-results th").all_inner_texts()
    assert look == "not on the grid"
    assert row[:3] == [after, "0.77", "2"]
    scalars = [v for v in ds.data_vars.values() if v.dims == ("samples", "noise", "seed")]
    means = [float(v.mean()) for v in scalars if v.name != "diverged"]
    shown = [float(text.replace("−", "-")) for text in row[3:]]
    assert len(names) == len(row)
    np.testing.assert_allclose(sorted(shown), sorted(means[: len(shown)]), rtol=1e-3)


def test_a_number_moves_its_slider_and_the_estimate(toy):
    settings(toy, samples=190)
    slider = toy.locator("#live input[type=range]").first
    assert slider.get_attribute("aria-valuetext") == "190"
    low = int(slider.input_value())
    settings(toy, samples=31)
    assert int(slider.input_value()) < low
    says(toy, "live-cost", "new shape")
    toy.fill("#live-seeds", "3")
    says(toy, "live-cost", "^3 cells")


def test_what_is_out_of_range_is_told_in_the_words_of_the_command_line(toy):
    toy.locator("#live-form").evaluate("form => { form.noValidate = true; }")
    settings(toy, samples=-4)
    says(toy, "live-cost", "not allowed")
    assert "whole numbers from 1" in toy.inner_text("#live-cost")
    toy.click("#live-run")
    says(toy, "live-status", "not allowed")
    toy.trouble[:] = [each for each in toy.trouble if "400" not in each]


def test_a_new_value_needs_no_compiling_and_the_page_says_so(toy):
    settings(toy, samples=30, noise=0.61)
    trained(toy)
    toy.evaluate("document.getElementById('live-cost').textContent = ''")
    settings(toy, noise=0.62)
    says(toy, "live-cost", "of training")
    assert "compiling" not in toy.inner_text("#live-cost")


def test_another_probe_can_be_watched(toy):
    settings(toy, samples=30, noise=0.63)
    trained(toy)
    label = toy.get_attribute("#live-lines", "aria-label")
    assert label
    toy.evaluate(
        """() => { const list = document.getElementById("live-watch");
        document.getElementById("live-lines").replaceChildren();
        list.dispatchEvent(new Event("input", { bubbles: true })); }"""
    )
    assert toy.locator("#live-lines polyline").count() >= 1


def test_steps_can_be_even_in_the_logarithm(toy):
    settings(toy, samples=30, noise=0.64)
    trained(toy)
    before = toy.get_attribute("#live-lines polyline", "points")
    toy.check("[name=live-log]")
    assert toy.get_attribute("#live-lines polyline", "points") != before


def test_the_grid_fills_the_figure_and_can_be_cancelled(page, address, chromium):
    page.goto(f"{address}/toy/risk/index.html")
    page.wait_for_selector("#live-cost:not(:empty)")
    page.evaluate("""() => { window.filled = 0;
        document.addEventListener("atlas:filled", () => { window.filled += 1; }); }""")
    told = trained(page, "#live-fill")
    assert told.startswith(DONE)
    assert page.evaluate("window.filled") >= 15
    link = page.locator("#live-results tbody a").first.get_attribute("href")
    assert link
    assert link.startswith("cell.html#samples=")
    settings(page, samples=3000, dim=40, noise=0.5)
    page.fill("#live-seeds", "64")
    page.click("#live-run")
    page.wait_for_selector("#live-cancel:not([hidden])")
    page.click("#live-cancel")
    assert finished(page).startswith("cancelled")
    assert page.is_hidden("#live-cancel")
    settings(page, samples=30, dim=10, noise=0.5)
    page.fill("#live-seeds", "1")
    assert trained(page).startswith(DONE)


def test_an_empty_diagram_fills_in_while_one_watches(page, tmp_path):
    with started(["-m", "serving", str(tmp_path / "empty"), "toy"]) as address:
        page.goto(f"{address}/toy/risk/index.html")
        page.wait_for_selector("#live-fill")
        assert page.locator("#drawing").count() == 0
        page.click("#live-fill")
        page.wait_for_selector("#drawing svg")  # it was opened anew once there was something
        jobs = ()
        for _ in range(600):
            jobs = page.request.get(f"{address}/api/jobs").json()["jobs"]
            if all(job["state"] not in ("waiting", "running") for job in jobs):
                break
            page.wait_for_timeout(100)
        assert [job["state"] for job in jobs] == ["done"]
        page.reload()
        page.wait_for_selector("#drawing svg")
        assert page.locator("#missing").count() == 0


def test_a_page_that_is_opened_meanwhile_watches_too(page, address, chromium):
    page.goto(f"{address}/toy/risk/index.html")
    page.wait_for_selector("#live-cost:not(:empty)")
    settings(page, samples=44, noise=0.5)
    page.click("#live-run")
    page.wait_for_selector("#live-cancel:not([hidden])")
    page.goto(f"{address}/toy/risk/index.html")
    page.wait_for_selector("#live-cancel:not([hidden])")
    assert finished(page).startswith(DONE)


def test_the_form_begins_where_the_view_is(page, address):
    page.goto(f"{address}/toy/risk/index.html#noise=2&samples=80")
    page.wait_for_selector("#live-cost:not(:empty)")
    assert page.input_value("#live [name=noise]") == "2"
    assert page.input_value("#live [name=samples]") == "80"


def test_the_keyboard_is_enough(toy):
    toy.locator("#live input[type=number]").first.focus()
    for _ in range(40):
        toy.keyboard.press("Tab")
        if toy.evaluate("document.activeElement.id") == "live-run":
            break
    assert toy.evaluate("document.activeElement.id") == "live-run"
    outline = toy.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    toy.keyboard.press("Enter")
    assert finished(toy).startswith(DONE)


def test_a_phone_has_room_for_it(phone, address):
    phone.goto(f"{address}/toy/risk/index.html")
    phone.wait_for_selector("#live-cost:not(:empty)")
    width = phone.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


def test_axe_finds_nothing_serious_while_a_cell_is_there(toy):
    from axe_playwright_python.sync_playwright import Axe

    trained(toy)
    found = Axe().run(toy).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in serious] == []


EVIL = '</script><script>window.hit = 1</script><img src=x onerror="window.hit = 1">'


def test_hostile_answers_stay_texts(page, address):
    cell = {"labels": {EVIL: EVIL}, "seeds": [EVIL], "probes": {EVIL: [1]}}
    told = [
        {"event": "waiting", "says": EVIL},
        {"event": "phase", "what": "watching", "seed": EVIL, "labels": [[EVIL, EVIL]]},
        {"event": "__proto__"},
        {"event": "constructor", "cells": 1},
        {"event": "frame", "training": 0, "step": 1, "steps": 2, "probes": {"__proto__": 2}},
        {"event": "frame", "training": 0, "step": 2, "steps": 2, "probes": {EVIL: [[1, 2]] * 2}},
        {"event": "cells", "cells": [cell]},
        {"event": "failed", "says": EVIL},
    ]  # fmt: skip
    stream = "".join(f"data: {json.dumps(each)}\n\n" for each in told) + "event: end\ndata: {}\n\n"
    page.route("**/api/estimate", lambda route: route.fulfill(json={"says": EVIL}))
    page.route("**/api/jobs", lambda route: route.fulfill(json={"job": 1, "jobs": []}))
    page.route(
        "**/api/jobs/1/events",
        lambda route: route.fulfill(body=stream, content_type="text/event-stream"),
    )
    page.goto(f"{address}/toy/risk/index.html")
    assert says(page, "live-cost", "script") == EVIL
    page.click("#live-run")
    assert says(page, "live-status", "window.hit") == EVIL
    assert page.locator("#live-results td").first.inner_text() == EVIL
    page.wait_for_timeout(300)
    assert page.evaluate("window.hit") is None
    assert page.evaluate("({}).polluted") is None
    assert page.locator("#live img, #live script").count() == 0
