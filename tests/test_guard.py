"""Who may not ask gets nothing: other names and sites, other methods, too much, too slowly."""

import asyncio
import json
from typing import Any

import pytest

from provingground.atlas import guard
from provingground.atlas.guard import HEADERS, LARGEST_BODY, Guard

HOST = b"127.0.0.1:8420"


async def inner(scope, receive, send):
    """Answers with how much was sent to it."""
    size, more = 0, True
    while more and scope["method"] == "POST":
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"x-frame-options", b"ALLOW")]}
    )
    await send({"type": "http.response.body", "body": str(size).encode()})


async def silent():
    """A client that says nothing more."""
    return {"type": "http.disconnect"}


def guarded(app=inner, token="", anywhere=False, hosts=("127.0.0.1", "localhost", "::1")):
    return Guard(app, port=8420, hosts=hosts, anywhere=anywhere, token=token)


def ask(app, path="/", method="GET", body: Any = (b"",), query: Any = b"", **headers: Any):
    """Status, headers and body of an answer. Headers by name, `_` for `-`; None leaves one out."""
    known = {"host": HOST.decode(), **headers}
    raw = [
        (name.replace("_", "-").encode(), str(value).encode("latin-1"))
        for name, value in known.items()
        if value is not None
    ]
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": query, "headers": raw, "scheme": "http",
    }  # fmt: skip
    parts = list(body)
    found = []

    async def receive():
        part = parts.pop(0)
        if part is None:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message):
        found.append(message)

    asyncio.run(app(scope, receive, send))
    start, content = found[0], b"".join(m.get("body", b"") for m in found[1:])
    return start["status"], dict(start["headers"]), content


OURS = {"origin": "http://127.0.0.1:8420", "content_type": "application/json"}


def post(app, path: Any = "/api/jobs", **headers: Any):
    return ask(app, path, "POST", **{**OURS, **headers})


def test_own_pages_may_ask():
    app = guarded()
    assert ask(app)[0] == 200
    assert ask(app, host="localhost:8420")[0] == 200
    assert ask(app, host="[::1]:8420")[0] == 200
    assert ask(app, "/toy/risk/index.html")[0] == 200
    assert ask(app, "/toy/risk/data.js", method="HEAD")[0] == 200
    assert post(app, body=[b"{}"])[::2] == (200, b"2")


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example:8420", "evil.example", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:84200",
     "127.0.0.1:8420.evil.example", "127.0.0.1:8420@evil", "evil@127.0.0.1:8420", "[::2]:8420",
     "192.168.1.2:8420", "127.0.0.1:8420 ", "127.0.0.1:08420", "localhost.evil:8420", "127.1:8420"],
)  # fmt: skip
def test_a_name_that_leads_here_by_rebinding_gets_nothing(host):
    status, headers, _ = ask(guarded(), host=host)
    assert status == 421 or host == "127.0.0.1:08420"  # which is the same number
    assert headers[b"content-security-policy"]


def test_a_host_that_stands_twice_is_refused():
    app, found = guarded(), []

    async def send(message):
        found.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "query_string": b"",
             "headers": [(b"host", HOST), (b"host", b"evil.example")]}  # fmt: skip
    asyncio.run(app(scope, silent, send))
    assert found[0]["status"] == 400


def test_beyond_this_machine_addresses_are_names_and_others_are_not():
    app = guarded(anywhere=True, hosts=("lab.example",))
    assert ask(app, host="192.168.1.2:8420")[0] == 200
    assert ask(app, host="lab.example:8420")[0] == 200
    assert ask(app, host="evil.example:8420")[0] == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": None},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "https://127.0.0.1:8420"},
        {"origin": "http://127.0.0.1:8420.evil.example"},
        {"origin": "http://localhost:8420"},  # another name than that of the page
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_another_site_cannot_order_anything(headers):
    assert post(guarded(), body=[b"{}"], **headers)[0] == 403


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "json"])
def test_a_form_of_another_site_cannot_be_an_order(kind):
    assert post(guarded(), body=[b"{}"], content_type=kind)[0] == 415


@pytest.mark.parametrize("path", ["/toy/risk/data.js", "/static/core.js", "/api/jobs"])
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_cannot_load_data_as_a_script(path, site):
    asked = {"sec_fetch_site": site, "sec_fetch_mode": "no-cors", "sec_fetch_dest": "script"}
    assert ask(guarded(), path, **asked)[0] == 403
    assert ask(guarded(), path, origin="http://evil.example")[0] == 403


def test_a_link_on_another_site_may_be_followed_but_not_framed():
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert ask(guarded(), "/toy/index.html", sec_fetch_dest="document", **link)[0] == 200
    assert ask(guarded(), "/toy/index.html", sec_fetch_dest="iframe", **link)[0] == 403
    assert ask(guarded(), "/api/jobs", sec_fetch_dest="document", **link)[0] == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_other_methods_are_refused(method):
    for path in ("/", "/api/jobs"):
        status, headers, _ = ask(guarded(), path, method, **OURS)
        assert (status, b"GET" in headers[b"allow"]) == (405, True)


def test_pages_take_no_orders():
    assert post(guarded(), "/index.html", body=[b"{}"])[0] == 405


@pytest.mark.parametrize(
    "path",
    ["/../etc/passwd", "/toy/../../etc/passwd", "/..", "/toy/..", "//etc/passwd", "/toy//risk",
     "/toy/\x00", "/toy\\risk", "/./index.html", "/.git/config", "/toy/risk/data.js\n", "/C:/x",
     "/toy/ü", "/toy/<script>", "/toy/..%2f", "/toy/%2e%2e/x", "/%00", "/-x", "/a/.b"],
)  # fmt: skip
def test_no_path_leads_out(path):
    status, _, body = ask(guarded(), path)
    assert status == 404
    assert b"script" not in body


def test_a_path_that_was_encoded_is_refused():
    app, found = guarded(), []

    async def send(message):
        found.append(message)

    scope = {"type": "http", "method": "GET", "path": "/toy/index.html", "query_string": b"",
             "raw_path": b"/toy%2Findex.html", "headers": [(b"host", HOST)]}  # fmt: skip
    asyncio.run(app(scope, silent, send))
    assert found[0]["status"] == 404


@pytest.mark.parametrize("said", [True, False])
def test_a_long_body_is_refused_whether_its_length_is_said_or_not(said):
    parts = [b"x" * (LARGEST_BODY // 2)] * 3
    length = {"content_length": 3 * (LARGEST_BODY // 2)} if said else {}
    assert post(guarded(), body=parts, **length)[0] == 413


@pytest.mark.parametrize("length", ["-1", "ten", "1e3", "²", "9" * 5000])
def test_a_length_that_is_no_number_is_refused(length):
    assert post(guarded(), body=[b"{}"], content_length=length)[0] in (400, 413)


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(guard, "SECONDS_TO_ASK", 0.05)
    assert post(guarded(), body=[b"{", None])[0] == 408


def test_every_answer_has_the_headers_once_also_a_refusal():
    for status, headers in (ask(guarded())[:2], ask(guarded(), host="evil")[:2]):
        assert status in (200, 421)
        for name, value in HEADERS:
            assert headers[name] == value
    policy = dict(HEADERS)[b"content-security-policy"]
    assert b"unsafe" not in policy
    assert b"default-src 'none'" in policy


# ------------------------------------------------------------------------------ the token


TOKEN = "correct-horse-battery-staple"


def test_without_the_token_nothing_is_said():
    app = guarded(token=TOKEN)
    for headers in ({}, {"cookie": "proving_8420=wrong"}, {"cookie": "other=" + TOKEN},
                    {"cookie": "proving_8420="}, {"cookie": "proving_8420=ü"}, {"cookie": ";;=,"},
                    {"authorization": "Bearer " + TOKEN}):  # fmt: skip
        status, _, body = ask(app, "/api/jobs", **headers)
        assert status == 401
        assert TOKEN.encode() not in body
    for query in (
        b"token=",
        b"token=wrong",
        b"token=" + TOKEN.encode() + b"x",
        b"TOKEN=" + TOKEN.encode(),
    ):
        assert ask(app, query=query)[0] == 401
    assert post(app, body=[b"{}"], query=b"token=" + TOKEN.encode())[0] == 401


def test_the_token_goes_into_a_cookie_and_out_of_the_address():
    app = guarded(token=TOKEN)
    status, headers, _ = ask(app, "/toy/index.html", query=b"a=1&token=" + TOKEN.encode())
    assert (status, headers[b"location"]) == (303, b"/toy/index.html?a=1")
    cookie = headers[b"set-cookie"].decode()
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    kept = cookie.partition(";")[0]
    assert ask(app, cookie=kept)[0] == 200
    assert post(app, body=[b"{}"], cookie=kept)[0] == 200
    assert post(app, body=[b"{}"], cookie=kept, origin="http://evil.example")[0] == 403
    assert ask(app, cookie=kept, host="evil.example:8420")[0] == 421


@pytest.mark.parametrize(
    "others",
    ['seen={"tour": 1}', "theme=dark mode", "consent", "name=J\xfcrgen", 'half="quote', "path=/"],
)
def test_cookies_of_other_servers_of_the_machine_hide_none(others):
    app = guarded(token=TOKEN)
    ours = "proving_8420=" + TOKEN
    for cookies in (f"{others}; {ours}", f"{ours}; {others}", f"proving_8420=old; {ours}"):
        assert ask(app, cookie=cookies)[0] == 200
    assert ask(app, cookie=f"{others}; other{ours}")[0] == 401


def test_tokens_are_compared_in_constant_time(monkeypatch):
    seen = []
    compare = guard.hmac.compare_digest
    monkeypatch.setattr(guard.hmac, "compare_digest", lambda a, b: seen.append(a) or compare(a, b))
    ask(guarded(token=TOKEN), query=b"token=guess")
    assert b"guess" in seen


def test_too_many_fields_of_a_query_are_refused_quietly():
    query = b"&".join(b"a=1" for _ in range(1000))
    assert ask(guarded(token=TOKEN), query=query)[0] in (400, 401)


def test_what_was_asked_is_not_repeated():
    status, headers, body = ask(guarded(), "/<script>alert(1)</script>", host="<script>")
    assert status in (404, 421)
    assert b"<" not in body
    assert headers[b"content-type"].startswith(b"text/plain")
    assert json.dumps(body.decode())
