"""The server of `harness serve`: it sends the page, and answers the requests of the page with JSON.

The address contains a secret, and the page gets it as a cookie, too. Only requests with this cookie are answered, so
neither other users of the machine nor other web pages can read or start anything.
"""

import json
import signal
import traceback
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import click
from markupsafe import Markup

from harness.console.command_line import FAULT, describe_error
from harness.errors import UserError
from harness.page.live_charts import uplot_script, uplot_style
from harness.page.local_server import LocalHandler, LocalServer, open_in_browser
from harness.page.run_page import TEMPLATES as PAGE_TEMPLATES
from harness.page.run_page import content_policy, page_environment
from harness.practice.case import (
    claim,
    next_hint,
    read_case,
    read_certificate,
    read_curves,
    read_queue,
    reveal,
    save_experiment,
)
from harness.practice.job import JOBS
from harness.practice.jobs import JobQueue
from harness.recipes.catalogue import SUITE
from harness.run.files import RUN_PAGE
from harness.workspace.workspace import RUNS, make_work, open_workspace

TEMPLATES = Path(__file__).parent / "templates"
_WRONG = "The address is wrong: open the address that harness serve printed."
# The page of a run has a script of its own. In a sandbox, this script cannot use our cookie.
_SANDBOX = "sandbox allow-scripts allow-popups; frame-ancestors 'none'"


def serve(work: Path, *, port: int = 0, browser: bool = True) -> None:
    """Serve the page until Ctrl-C or SIGTERM, which also end the running job.

    port: 0 chooses a free port. browser: whether to open the page in a browser, if there is a screen. Raises
    `UserError` if the port is in use.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a container that stops sends it
    with PracticeServer(work, port) as server:
        click.echo(f"Practise at {server.address}\nOnly this machine can open it. Press Ctrl-C to stop.")
        with suppress(KeyboardInterrupt):
            if browser:
                make_work(work)
                with open_in_browser(server.address, work, ".serve"):
                    server.serve_forever()
            else:
                server.serve_forever()
    click.echo(f"\nYour work is in {work}.")


class PracticeServer(LocalServer):
    """The server of the page."""

    def __init__(self, work: Path, port: int = 0) -> None:
        self.work, self.jobs = work, JobQueue(work)
        super().__init__(_PageHandler, port)

    @property
    def address(self) -> str:
        """The address of the page, with the secret."""
        return f"{self.origin}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The name of the cookie. Cookies do not depend on ports, but this machine may have several servers."""
        return f"trainwreck-{self.server_port}"

    def server_close(self) -> None:
        """End the running job, and close the port."""
        self.jobs.stop()
        super().server_close()


class _PageHandler(LocalHandler):
    server: PracticeServer
    most_bytes = 2_000_000

    def answer(self, body: bytes) -> None:
        """Send the page, the page of a run, or the data that the page asks for."""
        address = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(address.query).items()}
        names = [unquote(name) for name in address.path.strip("/").split("/")]
        is_page = self.command == "GET" and names == [""]
        secret = self.server.token
        # The page itself sets the cookie: browsers do not send a strict cookie after a redirect from another site.
        given = query["token"] if is_page and "token" in query else self._cookie()
        if not self.is_allowed(secret, given):
            return self.send_text(HTTPStatus.FORBIDDEN, _WRONG)
        if is_page:
            cookie = f"{self.server.cookie}={secret}; HttpOnly; SameSite=Strict; Path=/"
            return self.send_text(HTTPStatus.OK, page(), kind="text/html", Set_Cookie=cookie)
        try:
            found = self._do(names, _read_object(body))
        except Exception as error:
            known = describe_error(error, "harness")
            if known is None:
                traceback.print_exc()
            return self._send_json({"error": (known or (FAULT, 3))[0]}, HTTPStatus.CONFLICT)
        if isinstance(found, str):
            headers = {"Content_Security_Policy": _SANDBOX}
            return self.send_text(HTTPStatus.OK, found, kind="text/html", **headers)
        self._send_json(found, HTTPStatus.NOT_FOUND if found is None else HTTPStatus.OK)

    def _cookie(self) -> str:
        with suppress(CookieError):
            if found := SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie):
                return found.value
        return ""

    def _send_json(self, value: Any, status: HTTPStatus) -> None:
        self.send_text(status, json.dumps(value, allow_nan=False), kind="application/json")

    def _do(self, names: list[str], given: dict[str, Any]) -> Any:
        """Return plain data for JSON, the text of a page, or None if there is no such address."""
        match self.command, *names:
            case "GET", "queue", level if level.isdecimal():
                return read_queue(self.server.work, int(level[:3]))
            case "GET", "certificate", level if level.isdecimal():
                return read_certificate(self.server.work, int(level[:3]))
            case "GET", "job":
                return {"job": self.server.jobs.state()}
            case "POST", "stop":
                self.server.jobs.stop()
                return {"job": self.server.jobs.state()}
            case method, "case", name, *rest:
                SUITE.find(name)  # refuses every name that is not an exercise, before it becomes a part of a path
                return self._do_case(method, name, rest, given)
        return None

    def _do_case(self, method: str, name: str, rest: list[str], given: dict[str, Any]) -> Any:
        work, jobs = self.server.work, self.server.jobs
        match method, *rest:
            case ["GET"]:
                pass
            case "GET", "curves":
                return read_curves(name, work)
            case "GET", "run", run if run in RUNS:
                return (open_workspace(work, name).run_folder(run) / RUN_PAGE).read_text(encoding="utf-8")
            case "POST", "save":
                save_experiment(name, work, str(given.get("text", "")), str(given.get("seen", "")))
            case "POST", "hint":
                next_hint(name, work)
            case "POST", "claim":
                says = claim(name, work)
                return {**read_case(name, work, jobs.triage(name)), "says": says}
            case "POST", "reveal":
                if question := reveal(name, work, yes=given.get("yes") is True):
                    return {"question": question}
            case "POST", verb if verb in JOBS:
                jobs.start(verb, name, check=str(given.get("check", "")), resume=given.get("resume") is True)
                return {"job": jobs.state()}
            case _:
                return None
        return read_case(name, work, jobs.triage(name))


def _read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a request. It is empty if the request has no body. Raises `UserError` otherwise."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UserError("The request is not a JSON object: load the page again.")
    return found


@cache
def page() -> str:
    """Return the page, which loads no other files."""
    style = (PAGE_TEMPLATES / "run.css").read_text(encoding="utf-8") + uplot_style()
    style += (TEMPLATES / "practice.css").read_text(encoding="utf-8")
    script = f"{uplot_script()}\n{(TEMPLATES / 'practice.js').read_text(encoding='utf-8')}"
    environment = page_environment(TEMPLATES, PAGE_TEMPLATES)
    return environment.get_template("practice.html.j2").render(
        policy=content_policy(style, script, requests=True), style=Markup(style), script=Markup(script)
    )
