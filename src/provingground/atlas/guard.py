"""What stands between a browser and the atlas: who may ask, how, how much, and how slowly."""

import asyncio
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 64 * 1024
SECONDS_TO_ASK = 10.0  # for a body to arrive
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
PATH = re.compile(r"/(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*(?:[A-Za-z0-9_][A-Za-z0-9_.-]*)?")


class Refused(Exception):
    """A request that is not answered, with the status that says why."""

    def __init__(self, status: int, says: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(says)
        self.status, self.says, self.headers = status, says, list(headers)


class Guard:
    """Lets through to an application what comes from its own pages.

    `hosts` are the names that this server is asked by, besides addresses where `anywhere`; with a
    `token` only those who know it get anything.
    """

    def __init__(
        self, app: App, *, port: int, hosts: Iterable[str], anywhere: bool, token: str = ""
    ) -> None:
        self.app, self.port, self.anywhere, self.token = app, port, anywhere, token
        self.hosts = {host.lower() for host in hosts}
        self.cookie = f"proving_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        send = _with_headers(send)
        try:
            self.checked(scope)
            await self.app(scope, bounded(scope, receive), send)
        except Refused as refused:
            await refuse(scope, send, refused)

    # ------------------------------------------------------------------------- checks

    def checked(self, scope: Scope) -> None:
        """Refuses a request that may not be answered."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)

        def one(name: bytes) -> str:
            values = headers.get(name, [])
            if len(values) > 1:
                raise Refused(400, "a header stands twice")
            return values[0].decode("latin-1") if values else ""

        if not self.is_ours(one(b"host")):
            raise Refused(421, "this server is not asked by that name")
        method, path = scope["method"], scope["path"]
        api = path.startswith("/api/")
        if method not in (("GET", "HEAD", "POST") if api else ("GET", "HEAD")):
            allowed = b"GET, HEAD, POST" if api else b"GET, HEAD"
            raise Refused(405, "that method is not allowed", [(b"allow", allowed)])
        raw = scope.get("raw_path") or path.encode()
        if not PATH.fullmatch(path) or b"%" in raw or ".." in path:
            raise Refused(404, "there is no such page")
        site, origin = one(b"sec-fetch-site"), one(b"origin")
        opened = one(b"sec-fetch-mode") == "navigate" and one(b"sec-fetch-dest") == "document"
        if site in ("cross-site", "same-site") and (api or method == "POST" or not opened):
            raise Refused(403, "another site asks for that")
        ours = f"http://{one(b'host')}".lower()
        if origin and origin.lower() != ours:
            raise Refused(403, "another site asks for that")
        if method == "POST":
            if not origin:
                raise Refused(403, "it is not said which site asks for that (Origin)")
            kind = one(b"content-type").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise Refused(415, "requests are JSON")
            length = one(b"content-length")
            if length and not (length.isascii() and length.isdigit()):
                raise Refused(400, "the length of the request is not understood")
            if length and int(length[:20]) > LARGEST_BODY:
                raise Refused(413, "the request is too long")
        if self.token:
            self._must_know(scope, one(b"cookie"))

    def is_ours(self, host: str) -> bool:
        """Whether a Host is one of this server: then no other name leads here unseen."""
        match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+)(?::([0-9]{1,5}))?", host)
        if not match or int(match[2] or 80) != self.port:
            return False
        name = match[1].strip("[]").lower().removesuffix(".")
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.anywhere

    def _must_know(self, scope: Scope, cookies: str) -> None:
        """Sees that a client knows the token; once it has said it, its cookie does."""
        try:
            query = parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=50)
        except ValueError:
            raise Refused(400, "the address is not understood") from None
        said = dict(query).get("token")
        if said is not None and scope["method"] == "GET" and self._fits(said):
            rest = urlencode([(n, v) for n, v in query if n != "token"])
            cookie = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            where = scope["path"] + (f"?{rest}" if rest else "")
            headers = [(b"location", where.encode()), (b"set-cookie", cookie.encode())]
            raise Refused(303, "", headers)
        if not any(map(self._fits, named(self.cookie, cookies))):
            raise Refused(401, "open the address with the token that `proving serve` told")

    def _fits(self, said: str) -> bool:
        return hmac.compare_digest(said.encode(), self.token.encode())


def named(name: str, cookies: str) -> list[str]:
    """The values of a cookie. Those of all ports of a machine come together, in any form."""
    pairs = (cookie.partition("=") for cookie in cookies.split(";"))
    return [value.strip() for found, _, value in pairs if found.strip() == name]


# ------------------------------------------------------------------------ time and size


def bounded(scope: Scope, receive: Receive) -> Receive:
    """A body that is neither longer nor slower than a request of a page."""
    size = 0
    done = False

    async def limited() -> Message:
        nonlocal size, done
        if done:  # from here on only a client that goes away is heard of
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), SECONDS_TO_ASK)
        except TimeoutError:
            raise Refused(408, "the request did not arrive in time") from None
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            done = not message.get("more_body", False)
            if size > LARGEST_BODY:
                raise Refused(413, "the request is too long")
        return message

    return limited


def _with_headers(send: Send) -> Send:
    async def safe(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name for name, _ in HEADERS}
            rest = [(n, v) for n, v in message.get("headers", []) if n.lower() not in known]
            message = {**message, "headers": [*rest, *HEADERS]}
        await send(message)

    return safe


async def refuse(scope: Scope, send: Send, refused: Refused) -> None:
    """Answers in a line of plain text; what was asked is not repeated."""
    body = f"{refused.says}\n".encode() if refused.says else b""
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *refused.headers,
    ]
    if refused.status in (408, 413):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
