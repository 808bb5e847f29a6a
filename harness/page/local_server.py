"""A web server for this machine only, and the rules by which it refuses requests of other machines and other pages.

The server listens on 127.0.0.1. Its address contains a secret. It refuses requests for another host name (DNS
rebinding) and requests that another web page sends.
"""

import os
import secrets
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.errors import UserError

_HOSTS = ("127.0.0.1", "localhost")  # the allowed host names; the port may be different, because of a tunnel
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the rest of the policy is in the head of the page
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class LocalServer(ThreadingHTTPServer):
    """A server on a port of 127.0.0.1, with a new secret `token`.

    port: 0 chooses a free port. Raises `UserError` if the port is in use.
    """

    daemon_threads = True

    def __init__(self, handler: type["LocalHandler"], port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__(("127.0.0.1", port), handler)
        except OSError as error:
            raise UserError(f"Port {port} cannot be used ({error.strerror}): choose another one with --port.") from None

    @property
    def origin(self) -> str:
        """The scheme, host and port of the server."""
        return f"http://127.0.0.1:{self.server_port}"


class LocalHandler(BaseHTTPRequestHandler):
    """Answers requests to a `LocalServer`. Subclasses define `answer`."""

    timeout = 60  # a connection without data is closed after this number of seconds
    most_bytes = 100_000  # the largest body of a request
    server_version, sys_version = "trainwreck", ""

    def handle(self) -> None:
        """Answer a connection. Ignore that the browser has closed it."""
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Do not print requests, because the user works in the terminal."""

    def do_GET(self) -> None:
        """Answer a request without a body."""
        self.answer(b"")

    def do_POST(self) -> None:
        """Answer a request with a body."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > self.most_bytes:
            return self.send_text(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The form is too large.")
        self.answer(self.rfile.read(int(length)))

    def answer(self, body: bytes) -> None:
        """Send the answer to a request with this body."""
        raise NotImplementedError

    def is_allowed(self, token: str, *tokens: str) -> bool:
        """Return whether a request names our host, knows our secret, and does not come from another web page.

        token: the secret of the server. tokens: the secrets in the request, which must all be equal to `token`.
        """
        known = all(secrets.compare_digest(one.encode("utf-8", "replace"), token.encode()) for one in tokens)
        is_ours = self.headers.get("Host", "").partition(":")[0] in _HOSTS
        return is_ours and known and (self.command == "GET" or self._is_from_our_page())

    def _is_from_our_page(self) -> bool:
        """Return whether no header of a request says that another page sent it."""
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "" if origin == "null" else "same-origin")
        # A page without a referrer sends the origin "null" with its forms.
        is_same = origin in (None, "null") or urlsplit(origin).netloc == self.headers.get("Host")
        return site == "same-origin" and is_same

    def send_text(self, status: HTTPStatus, text: str, *, kind: str = "text/plain", **headers: str) -> None:
        """Send a text with the headers that all pages have. In the names of `headers`, an underscore is a hyphen."""
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        about = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": f"{len(body)}"}
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {**_HEADERS, **about, **own}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def open_in_browser(address: str, folder: Path, name: str, *, marker: str = "") -> Iterator[None]:
    """If there is a screen, open an address in a browser. Delete the file for this at the end of the `with` block.

    All users of this machine can see the command line of the browser, so the address must not be in it. Instead, the
    browser opens a file that redirects to the address, and that only its owner can read. The file is in `folder`, and
    its name begins with `name`, because some browsers cannot read temporary files. marker: a tag for its head.
    """
    # Without a screen, a text browser would take over the terminal.
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield
        return
    door = folder / f"{name}-{secrets.token_hex(4)}.html"
    try:
        with os.fdopen(os.open(door, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(f'{marker}<meta http-equiv="refresh" content="0; url={address}">\n')
        webbrowser.open(door.resolve().as_uri())
        yield
    finally:
        door.unlink(missing_ok=True)
