"""Serve the page of `harness serve` for the tests, and ask it as the page does."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from harness.practice.server import PracticeServer


@contextmanager
def practising(work: Path) -> Iterator[PracticeServer]:
    """Serve the page for a folder of workspaces."""
    with PracticeServer(work) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask_port(port: int, token: str, path: str, given: object = None, **headers: str) -> tuple[int, Any]:
    """Return the status of a request and its answer, read as JSON if it is JSON. given: the body, or None for GET."""
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    body = given if given is None or isinstance(given, str) else json.dumps(given)
    headers = {"Cookie": f"trainwreck-{port}={token}", **headers}
    with suppress(BrokenPipeError):  # a server answers a body that is too long before it has read the body
        connection.request("GET" if given is None else "POST", path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, json.loads(text) if answer.headers["Content-Type"].startswith("application/json") else text


def ask(server: PracticeServer, path: str, given: object = None, **headers: str) -> tuple[int, Any]:
    """Ask a server of this process, with its cookie."""
    return ask_port(server.server_port, server.token, path, given, **headers)


def wait_for_job(server: PracticeServer, seconds: float = 600) -> dict[str, Any]:
    """Return the job when it has ended."""
    end = time.monotonic() + seconds
    while True:
        job: dict[str, Any] = ask(server, "/job")[1]["job"]
        if job["status"] != "running":
            return job
        assert time.monotonic() < end, job
        time.sleep(0.05)
