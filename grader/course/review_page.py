"""`grader review` in a browser: a server for this machine only, whose pages show open items and store decisions.

The address and each form contain a secret. The server uses no cookies, so that other pages in the browser cannot decide
in the instructor's name. It refuses requests for another host name (DNS rebinding). The pages load no other files, and
run only our script. When the browser gets the answer to a decision, the decision is already on the disk.
"""

import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

import click

from grader.course.decisions import apply_decisions, decisions_path, load_decisions
from grader.course.lateness import with_lateness
from grader.course.requests import RegradeRequest, read_requests
from grader.course.review import OpenItem, decide, find_open_items, items_of, row_key, seen_of, undo
from grader.report.excerpts import excerpts
from grader.report.pages import format_decision_time
from grader.report.text import MARKER, file_stem, points, render
from grader.score.deadlines import local_time
from grader.score.scores_file import SCORES, read_scores
from grader.score.verdict import Decided, Scores, SubmissionScore
from harness.errors import UserError
from harness.page.local_server import LocalHandler, LocalServer, open_in_browser

_COMMENTS = {"accept": "Your instructor has accepted this.", "reject": "Your instructor has not accepted this."}
_ABOUT_CODE = (
    "not checked by machine",
    "other settings",
    "other platform",
)  # the flags that do not reveal who the student is


def serve(out: Path, who: str, *, anonymous: bool = False) -> None:
    """Serve the review pages for these reports until Ctrl-C. If there is a screen, open the first page in a browser.

    who: the name that is stored with each decision. anonymous: whether the pages hide the names of students. Raises
    `UserError` if there are no scores, or if the decisions cannot be read.
    """
    with ReviewServer(out, who, anonymous=anonymous) as server:
        click.echo(f"Review at {server.address}\nOnly this machine can open it. Press Ctrl-C to stop.")
        # The marker lets the next grader score recognize the file as its own.
        with open_in_browser(server.address, out, "review", marker=MARKER), suppress(KeyboardInterrupt):
            server.serve_forever()
    if (path := decisions_path(out)).is_file():
        click.echo(f"\nYour decisions are in {path}. Next: to apply them, run the same grader score command again.")
    else:
        click.echo("\nNothing was decided.")


class ReviewServer(LocalServer):
    """The server of the review pages, on a free port of 127.0.0.1."""

    def __init__(self, out: Path, who: str, *, anonymous: bool) -> None:
        self.out, self.who, self.anonymous = out, who, anonymous
        self.desk(everything=False)  # read the files now, so that errors in them appear at once
        super().__init__(_Handler)

    @property
    def address(self) -> str:
        """The address of the page that lists the open items."""
        return f"{self.origin}/{self.token}/"

    def desk(self, *, everything: bool) -> "_Desk":
        """Read the scores, decisions and requests again, and return the queue of items.

        everything: whether the queue contains all submissions, or only open items.
        """
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
    """Return the scores without decisions. If the file changes, `version` changes, so the cache is not used."""
    return apply_decisions(read_scores(out), ())


class _Desk:
    """The queue of the review: open items or the totals of all submissions, together with the decisions so far."""

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
        """Return the item with this key, even if it is not in the queue. Return None if there is no such item."""
        row = self.rows.get(key.partition("/")[0])
        return next((item for item in items_of(row) if item.key == key), None) if row else None

    def place(self, item: OpenItem) -> int | None:
        """Return the position of the item in the queue.

        If the item is not in the queue, return the position of another item of its submission, or None.
        """
        keys = [one.key for one in self.items]
        same = [place for place, one in enumerate(self.items) if one.row is item.row]
        return keys.index(item.key) if item.key in keys else next(iter(same), None)

    def next_open(self, item: OpenItem) -> OpenItem | None:
        """Return the next open item in the queue, or None. After the end of the queue, search from its beginning."""
        place = self.place(item) or 0
        return next((one for one in self.items[place:] + self.items[:place] if one.key in self.open), None)

    def name(self, row: SubmissionScore) -> str:
        """Return the name that the pages show for a submission: the student, or a code if the review is anonymous."""
        return f"Submission {row_key(row)[:6]}" if self.anonymous else row.student

    def state(self, item: OpenItem) -> str:
        """Return the current state of an item in a few words, such as "Open" or "3 of 5, decided"."""
        now = self.points(item)
        if now is None:
            return "Open"
        by_hand = any(one.state == "holds" for one in self.history(item))
        after = self.late.get(item.row.submission) if item.check is None else None
        late = "" if after is None else f", {points(after)} after the deduction for lateness"
        return f"{points(now)} of {points(item.most)}{late}{', decided' if by_hand else ''}"

    def points(self, item: OpenItem) -> float | None:
        """Return the current points of an item, or None if it is open."""
        row = self.now[item.row.submission]
        return next(
            (one.row.total if one.check is None else one.check.points for one in items_of(row) if one.key == item.key),
            None,
        )

    def history(self, item: OpenItem) -> list[Decided]:
        """Return all decisions about an item, the newest last."""
        return [one for one in self.decided if (one.submission, one.about) == (item.row.submission, item.about)]


class _Handler(LocalHandler):
    server: ReviewServer

    def answer(self, body: bytes) -> None:
        """Return a page, or store the decision in a form and redirect the browser to the next open item."""
        fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
        self._answer({key: values[-1] for key, values in fields.items()})

    def _answer(self, form: Mapping[str, str]) -> None:
        """Check that a request comes from our page, and answer it. form: the fields of a form; {} for a GET request."""
        address = urlsplit(self.path)
        token, _, key = unquote(address.path).removeprefix("/").partition("/")
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        posted = self.command == "POST"
        if not self.is_allowed(self.server.token, token, form.get("token", "") if posted else token):
            return self.send_text(
                HTTPStatus.FORBIDDEN, "The address is wrong: open the address that grader review printed."
            )
        try:
            desk = self.server.desk(everything="all" in query)
            item = desk.find(key)
            if key and item is None:
                return self.send_text(
                    HTTPStatus.NOT_FOUND, "This submission or item does not exist any more: go back to the queue."
                )
            if posted and item is not None:
                return self._keep(desk, item, form)
            page = self._page(desk, item, desk.find(query.get("done", "")), {}, "")
        except UserError as problem:
            return self.send_text(HTTPStatus.CONFLICT, f"{problem} Then load this page again.")
        except Exception:
            traceback.print_exc()
            return self.send_text(HTTPStatus.INTERNAL_SERVER_ERROR, "This is a bug in the grader: see the terminal.")
        self.send_text(HTTPStatus.OK, page, kind="text/html")

    def _keep(self, desk: "_Desk", item: OpenItem, form: Mapping[str, str]) -> None:
        """Store the decision in a form. If a field is invalid, show the form again with the values that were typed."""
        words, comment, act = (form.get(name, "").strip() for name in ("points", "comment", "act"))
        out, who, seen = self.server.out, self.server.who, form.get("seen")
        try:
            if act == "undo":
                undo(out, item, who, seen)
            elif act == "save":
                decide(out, item, words, comment, who, seen)
            elif words:
                raise UserError("You typed points: use Save, or empty the field for points first.")
            elif item.accepted is None:
                raise UserError("This item cannot be accepted or rejected: type the points.")
            else:
                given = points(item.accepted) if act == "accept" else "0"
                decide(out, item, given, comment or _comment(item, act), who, seen)
        except UserError as problem:
            # Read the files again: if another person has decided the item, the page must show that decision.
            desk = self.server.desk(everything=desk.everything)
            page = self._page(desk, item, None, {"points": words, "comment": comment}, str(problem))
            return self.send_text(HTTPStatus.CONFLICT, page, kind="text/html")
        desk = self.server.desk(everything=desk.everything)
        stays = act == "undo" or desk.everything or desk.place(item) is None
        after = item if stays else desk.next_open(item)
        query = urlencode({**({"all": "1"} if desk.everything else {}), "done": item.key})
        self.send_text(HTTPStatus.SEE_OTHER, "", Location=f"{self._base}{quote(after.key) if after else ''}?{query}")

    @property
    def _base(self) -> str:
        return f"/{self.server.token}/"

    def _page(
        self, desk: "_Desk", item: OpenItem | None, done: OpenItem | None, given: Mapping[str, str], problem: str
    ) -> str:
        """Return the page of an item or, if `item` is None, the page of the queue.

        done: the item that was just decided, or None. given: the values that were typed. problem: an error message.
        """
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
            heading = "All submissions" if desk.everything else "Open items"
            context |= {
                "heading": heading,
                "title": f"Review: {heading}",
                "place": f"{count} submissions" if desk.everything else f"{left} of {count} are open",
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


def _comment(item: OpenItem, act: str) -> str:
    """Return the comment for a decision without a typed comment. act: "accept" or "reject"."""
    if item.check is None:
        return (
            "Your instructor counts this as on time." if act == "accept" else "Your instructor counts this as too late."
        )
    return _COMMENTS["accept" if act == "accept" else "reject"]


def _matter_key(item: OpenItem) -> str:
    """Return the key of the report's front matter that a rubric item judges, or "" if there is no such key."""
    criterion, _, check = item.about.partition(".")
    return {"diagnostics": "evidence", "explanation": check}.get(criterion, "")
