"""What pages of other sites, in the very browser, get from a server: nothing."""

from urllib.parse import urlsplit

import pytest

from showing import PATIENCE

pytestmark = pytest.mark.web

EVIL = "http://evil.test/"
TRIES = """async (at) => {
  const tries = {
    read: () => fetch(at + "/api/jobs").then((a) => a.text()),
    blind: () => fetch(at + "/api/jobs", { mode: "no-cors", method: "POST", body: "{}" }),
    json: () => fetch(at + "/api/jobs", {
      method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ experiment: "toy/risk", seeds: "1" }),
    }),
    script: () => new Promise((done, failed) => {
      window.atlas = { add: done, addTheory: done };
      const script = document.createElement("script");
      script.src = at + "/toy/risk/data.js";
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    }),
    picture: () => new Promise((done, failed) => {
      const image = new Image();
      image.onload = done;
      image.onerror = failed;
      image.src = at + "/toy/risk/figure.png";
    }),
  };
  const got = [];
  for (const [name, act] of Object.entries(tries)) {
    await act().then((answer) => got.push([name, answer?.type ?? "loaded"]), () => {});
  }
  return got;
}"""


def jobs(page, address):
    return page.request.get(f"{address}/api/jobs").json()["jobs"]


@pytest.fixture
def other(chromium):
    """A page of another site."""
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    context.route(f"{EVIL}**", lambda route: route.fulfill(body="<html>", content_type="text/html"))
    page = context.new_page()
    page.goto(EVIL)
    yield page
    context.close()


def test_a_page_of_another_site_reads_and_orders_nothing(other, address):
    before = jobs(other, address)
    got = dict(other.evaluate(TRIES, address))
    assert set(got) <= {"blind"}  # which was sent, refused, and cannot be read
    assert got.get("blind", "opaque") == "opaque"
    assert jobs(other, address) == before


def test_a_form_of_another_site_orders_nothing(other, address):
    before = jobs(other, address)
    other.set_content(
        f'<form method="post" enctype="text/plain" action="{address}/api/jobs">'
        """<input name='{"experiment": "toy/risk", "x": "' value='"}'></form>"""
    )
    with other.expect_navigation():
        other.evaluate("document.forms[0].submit()")
    assert "another site" in other.content()
    assert jobs(other, address) == before


def test_a_page_cannot_be_framed_by_another_site(other, address):
    other.set_content(f'<iframe src="{address}/index.html"></iframe>')
    other.wait_for_timeout(500)
    assert all("Proving Ground" not in frame.content() for frame in other.frames[1:])


def test_a_name_that_is_bound_anew_to_this_machine_gets_nothing(chromium, binary, address):
    port = urlsplit(address).port
    browser = chromium.browser_type.launch(
        executable_path=binary,
        args=["--no-sandbox", "--host-resolver-rules=MAP rebound.test 127.0.0.1"],
    )
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    answer = page.goto(f"http://rebound.test:{port}/")
    assert answer is not None
    assert answer.status == 421
    told = page.evaluate("fetch('/api/jobs').then((answer) => answer.status)")
    assert told == 421
    browser.close()


def test_the_policy_holds_in_the_browser(chromium, address):
    """Were markup to get into a page after all, nothing of it would run or be sent."""
    context = chromium.new_context()
    heard = []

    def hear(route):
        heard.append(route.request.url)
        route.fulfill(body="", headers={"access-control-allow-origin": "*"})

    context.route(f"{EVIL}**", hear)
    page = context.new_page()
    page.goto(f"{address}/toy/risk/index.html")
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.hit = 1";
      document.body.append(script);
      const box = document.createElement("div");
      box.innerHTML = '<b id="styled" style="position: fixed">x</b>'
        + '<img src="data:," onerror="window.hit = 2">';
      document.body.append(box);
    }""")
    page.wait_for_timeout(300)
    assert page.evaluate("window.hit") is None
    assert page.evaluate("getComputedStyle(document.getElementById('styled')).position") == "static"
    sent = page.evaluate(f"fetch('{EVIL}').then(() => 'sent', () => 'refused')")
    assert (sent, heard) == ("refused", [])
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.src = "data:,window.hit=3";
      document.body.append(script);
    }""")
    page.wait_for_timeout(100)
    assert page.evaluate("window.hit") is None
    context.close()
