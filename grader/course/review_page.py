"""`grader review` in a browser: a page of this machine alone, which shows what waits and keeps what is decided.

The address holds a secret, and each form holds it again. No cookie is set, so no other page can decide in the
instructor's name, and a page of another host name (DNS rebinding) is refused by that name. The pages load nothing, and
run no script but ours. A decision is on the disk before the browser hears of it.
"""

import os
import secrets
import traceback
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

import click

from grader.course.decisions import apply_decisions, decisions_path, load_decisions
from grader.course.lateness import with_lateness
from grader.course.requests import RegradeRequest, read_requests
from grader.course.review import OpenItem, decide, find_open_items, items_of, row_key, seen_of, undo
from grader.private import write_private
from grader.report.excerpts import excerpts
from grader.report.pages import format_decision_time
from grader.report.text import MARKER, file_stem, points, render
from grader.score.schedule import local_time
from grader.score.verdict import SCORES, Decided, Scores, SubmissionScore, read_scores
from harness.errors import UserError

_HOSTS = ("127.0.0.1", "localhost")  # with any port: a tunnel ends at another one
_LARGEST = 100_000  # bytes of a form
_COMMENTS = {"accept": "Your instructor looked at it and accepts it.", "reject": "Your instructor does not accept it."}
_ABOUT_CODE = ("not checked by machine", "other settings", "other platform")  # flags that name nobody
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page itself has the rest
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def serve(out: Path, who: str, *, anonymous: bool = False) -> None:
    """Serve the review of these reports, and open it in a browser if there is a screen, until Ctrl-C.

    Raises `UserError` if there are no scores, or the decisions cannot be read.
    """
    with ReviewServer(out, who, anonymous=anonymous) as server:
        click.echo(f"Review at {server.address}\nOnly this machine can open it. Ctrl-C ends it.")
        with _open_in_browser(server.address, out), suppress(KeyboardInterrupt):
            server.serve_forever()
    if (path := decisions_path(out)).is_file():
        click.echo(f"\nYour decisions are in {path}. Next: the same grader score as before applies them.")
    else:
        click.echo("\nNothing was decided.")


@contextmanager
def _open_in_browser(address: str, out: Path) -> Iterator[None]:
    """Open an address in a browser, if there is a screen, for the time of the block.

    Everybody on this machine can read the arguments of a browser. So it gets the name of a file that only its owner
    reads, and that leads to the address. It lies beside the pages, because some browsers see no temporary files.
    """
    # Without a screen a browser would take the terminal.
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield
        return
    door = out / f"review-{secrets.token_hex(4)}.html"
    write_private(door, f'{MARKER}<meta http-equiv="refresh" content="0; url={address}">\n'.encode())
    try:
        webbrowser.open(door.resolve().as_uri())
        yield
    finally:
        door.unlink(missing_ok=True)


class ReviewServer(ThreadingHTTPServer):
    """Listens on a free port of 127.0.0.1."""

    def __init__(self, out: Path, who: str, *, anonymous: bool) -> None:
        self.out, self.who, self.anonymous = out, who, anonymous
        self.token = secrets.token_urlsafe(24)
        self.desk(everything=False)  # raises if nothing can be reviewed
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        """The address of the queue."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def desk(self, *, everything: bool) -> "_Desk":
        """Return what there is to decide, as the files are now."""
        stat = (self.out / SCORES).stat() if (self.out / SCORES).exists() else None
        scores = _read(self.out, stat and (stat.st_mtime_ns, stat.st_ino))
        decisions = load_decisions(self.out)
        abouts = {row.submission: (row, {item.about for item in items_of(row)}) for row in scores.submissions}
        asked = [
            one.place_at_row(*abouts[one.submission]) for one in read_requests(self.out) if one.submission in abouts
        ]
        asked = [one for one in asked if one.waits(decisions)]
        return _Desk(scores, apply_decisions(scores, decisions), asked, everything, self.anonymous)


@lru_cache(maxsize=1)
def _read(out: Path, version: object) -> Scores:
    """Return the scores as the rules gave them; version: another one for other scores."""
    return apply_decisions(read_scores(out), ())


class _Desk:
    """The queue: what the rules leave open, or the total of every submission; and how it is decided now."""

    def __init__(
        self, rule: Scores, now: Scores, asked: Sequence[RegradeRequest], everything: bool, anonymous: bool
    ) -> None:
        self.everything, self.anonymous, self.zone = everything, anonymous, now.zone
        self.now = {row.submission: row for row in now.submissions}
        self.decided = [replace(one, when=format_decision_time(one.when, now.zone)) for one in now.decisions]
        counted = with_lateness(now.submissions, now.schedule) if now.schedule else ()
        self.late = {row.submission: row.total for row in counted if row.late}
        self.rows = {row_key(row): row for row in rule.submissions}
        rows = [self.rows[key] for key in sorted(self.rows)] if anonymous else list(rule.submissions)
        self.asked: dict[str, list[RegradeRequest]] = {}
        by_name = {row.submission: row for row in rows}
        for one in asked:
            row = by_name.get(one.submission)
            for item in items_of(row) if row else ():
                if item.about == one.about:
                    self.asked.setdefault(item.key, []).append(one)
        self.items = [items_of(row)[0] for row in rows] if everything else find_open_items(rows)
        known = {item.key for item in self.items}
        self.items += [
            item for row in rows for item in items_of(row) if item.key in self.asked and item.key not in known
        ]
        self.open = {item.key for item in find_open_items(now.submissions)} | self.asked.keys()

    def find(self, key: str) -> OpenItem | None:
        """Return the item of an address, in the queue or not."""
        row = self.rows.get(key.partition("/")[0])
        return next((item for item in items_of(row) if item.key == key), None) if row else None

    def place(self, item: OpenItem) -> int | None:
        """Return where the item, or else its submission, stands in the queue."""
        keys = [one.key for one in self.items]
        same = [place for place, one in enumerate(self.items) if one.row is item.row]
        return keys.index(item.key) if item.key in keys else next(iter(same), None)

    def next_open(self, item: OpenItem) -> OpenItem | None:
        """Return the first item behind this one, or else before it, that is not decided."""
        place = self.place(item) or 0
        return next((one for one in self.items[place:] + self.items[:place] if one.key in self.open), None)

    def name(self, row: SubmissionScore) -> str:
        """Return what the pages call a submission."""
        return f"Submission {row_key(row)[:6]}" if self.anonymous else row.student

    def state(self, item: OpenItem) -> str:
        """Return how an item stands, in a few words."""
        now = self.points(item)
        if now is None:
            return "Open"
        by_hand = any(one.state == "holds" for one in self.history(item))
        after = self.late.get(item.row.submission) if item.check is None else None
        late = "" if after is None else f", {points(after)} after lateness"
        return f"{points(now)} of {points(item.most)}{late}{', decided' if by_hand else ''}"

    def points(self, item: OpenItem) -> float | None:
        """Return the points of an item as they stand now."""
        row = self.now[item.row.submission]
        return next(
            (one.row.total if one.check is None else one.check.points for one in items_of(row) if one.key == item.key),
            None,
        )

    def history(self, item: OpenItem) -> list[Decided]:
        """Return all decisions about an item, the latest last."""
        return [one for one in self.decided if (one.submission, one.about) == (item.row.submission, item.about)]


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    timeout = 60  # seconds that a silent browser keeps a thread
    server_version, sys_version = "trainwreck", ""

    def handle(self) -> None:
        with suppress(ConnectionError):  # the browser has left
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is the instructor's."""

    def do_GET(self) -> None:
        """Show the queue or an item."""
        self._answer({})

    def do_POST(self) -> None:
        """Keep a decision, and lead to what is next."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LARGEST:
            return self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The form is too large.")
        body = self.rfile.read(int(length)).decode("utf-8", "replace")
        form = {key: values[-1] for key, values in parse_qs(body, keep_blank_values=True).items()}
        self._answer(form)

    def _answer(self, form: Mapping[str, str]) -> None:
        """Check whose request it is, and answer it; form: {} if nothing is to be kept."""
        address = urlsplit(self.path)
        token, _, key = unquote(address.path).removeprefix("/").partition("/")
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        posted = self.command == "POST"
        if not self._is_ours(token, form.get("token", "") if posted else token):
            return self._send(HTTPStatus.FORBIDDEN, "Open the address that grader review printed.")
        try:
            desk = self.server.desk(everything="all" in query)
            item = desk.find(key)
            if key and item is None:
                return self._send(
                    HTTPStatus.NOT_FOUND, "There is no such submission or check now: go back to the queue."
                )
            if posted and item is not None:
                return self._keep(desk, item, form)
            page = self._page(desk, item, desk.find(query.get("done", "")), {}, "")
        except UserError as problem:
            return self._send(HTTPStatus.CONFLICT, f"{problem} Then load this page again.")
        except Exception:
            traceback.print_exc()
            return self._send(HTTPStatus.INTERNAL_SERVER_ERROR, "Our fault: the terminal says more.")
        self._send(HTTPStatus.OK, page, kind="text/html")

    def _is_ours(self, *tokens: str) -> bool:
        """Return whether a request names this host and our secret, and no other page has sent it."""
        secret = self.server.token.encode()
        host = self.headers.get("Host", "").partition(":")[0]
        from_here = self.headers.get("Sec-Fetch-Site", "same-origin") == "same-origin" or self.command == "GET"
        known = all(secrets.compare_digest(token.encode("utf-8", "replace"), secret) for token in tokens)
        return host in _HOSTS and from_here and known

    def _keep(self, desk: "_Desk", item: OpenItem, form: Mapping[str, str]) -> None:
        """Keep what a form says; what does not fit is shown again, with what was typed."""
        words, comment, act = (form.get(name, "").strip() for name in ("points", "comment", "act"))
        out, who, seen = self.server.out, self.server.who, form.get("seen")
        try:
            if act == "undo":
                undo(out, item, who, seen)
            elif act == "save":
                decide(out, item, words, comment, who, seen)
            elif words:
                raise UserError("You typed points: save them, or empty the field first.")
            elif item.accepted is None:
                raise UserError("There is nothing to accept or to reject here: type the points.")
            else:
                given = points(item.accepted) if act == "accept" else "0"
                decide(out, item, given, comment or _comment(item, act), who, seen)
        except UserError as problem:
            # As the files are now: what somebody else has decided stands beside what was typed.
            desk = self.server.desk(everything=desk.everything)
            page = self._page(desk, item, None, {"points": words, "comment": comment}, str(problem))
            return self._send(HTTPStatus.CONFLICT, page, kind="text/html")
        desk = self.server.desk(everything=desk.everything)
        stays = act == "undo" or desk.everything or desk.place(item) is None
        after = item if stays else desk.next_open(item)
        query = urlencode({**({"all": "1"} if desk.everything else {}), "done": item.key})
        self._send(HTTPStatus.SEE_OTHER, "", Location=f"{self._base}{quote(after.key) if after else ''}?{query}")

    @property
    def _base(self) -> str:
        return f"/{self.server.token}/"

    def _page(
        self, desk: "_Desk", item: OpenItem | None, done: OpenItem | None, given: Mapping[str, str], problem: str
    ) -> str:
        """Return the page of an item, or of the queue; done: the item that was decided just now."""
        undoing = done or (item if item and desk.history(item) else None)
        context: dict[str, Any] = {
            "base": self._base,
            "query": "?all=1" if desk.everything else "",
            "token": self.server.token,
            "anonymous": desk.anonymous,
            "item": item,
            "problem": problem,
            "done": f"{done.title}, {desk.name(done.row)}: {desk.state(done)}." if done else "",
            "undo": undoing,
            "undo_seen": seen_of(self.server.out, undoing) if undoing else "",
            "seen": seen_of(self.server.out, item) if item else "",
            "before": None,
        }
        count, left = len(desk.items), sum(one.key in desk.open for one in desk.items)
        if item is None:
            heading = "Every submission" if desk.everything else "What waits for you"
            context |= {
                "heading": heading,
                "title": f"Review: {heading}",
                "place": f"{count} submissions" if desk.everything else f"{left} of {count} wait",
                "after": next((one for one in desk.items if desk.everything or one.key in desk.open), None),
                "rows": [
                    (one, desk.name(one.row), desk.state(one), "warn" if one.key in desk.open else "")
                    for one in desk.items
                ],
            }
        else:
            place = desk.place(item)
            near = dict(enumerate(desk.items)) if place is not None else {}
            report = self.server.out / f"{file_stem(item.row.submission)}.html"
            heading = f"{desk.name(item.row)}: {item.row.recipe}"
            flags = [flag for flag in item.row.flags if flag.id in _ABOUT_CODE or not desk.anonymous]
            context |= {
                "heading": heading,
                "title": f"{heading}: {item.about}",
                "place": f"{'' if place is None else f'{place + 1} of '}{count} in the queue, {left} open",
                "before": near.get((place or 0) - 1),
                "after": near.get((place or 0) + 1),
                "state": desk.state(item),
                "given": {"points": "", "comment": "", **given},
                "history": desk.history(item),
                "asked": [(local_time(one.received, desk.zone), one.why) for one in desk.asked.get(item.key, ())],
                "flags": flags,
                "others": [(one, desk.state(one)) for one in items_of(item.row)],
                "evidence": excerpts(
                    report.read_text(encoding="utf-8") if report.is_file() else "", item.reason, _matter_key(item)
                ),
            }
        return render("review.html.j2", context, script="review.js", pictures=True, forms="review.css")

    def _send(self, status: HTTPStatus, text: str, *, kind: str = "text/plain", **headers: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        about = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": f"{len(body)}"}
        for name, value in {**_HEADERS, **about, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _comment(item: OpenItem, act: str) -> str:
    """Return the comment of a decision that was made by one key."""
    if item.check is None:
        return "Your instructor counts it as in time." if act == "accept" else "Your instructor counts it as too late."
    return _COMMENTS["accept" if act == "accept" else "reject"]


def _matter_key(item: OpenItem) -> str:
    """Return the key of the front matter that a check reads, or ""."""
    criterion, _, check = item.about.partition(".")
    return {"diagnostics": "evidence", "explanation": check}.get(criterion, "")
