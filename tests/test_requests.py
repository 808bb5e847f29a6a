"""Regrade requests: from the form on a student's page, through an email, to the queue of the review."""

import html
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from helpers.made_up_class import changed, make_attachments, make_row
from helpers.reviewing import reviewing
from test_review import ask, links

from grader.course.decisions import load_decisions
from grader.course.forget import forget
from grader.course.requests import parse, read_requests, requests_path, take_in
from grader.report.pages import render_submission
from grader.score.verdict import SubmissionScore, lost
from harness.errors import UserError

LOST = changed("fix.minimal", lost, "Large.", "Less.", points=2.0)


def row() -> SubmissionScore:
    """Return the row of ada, as in `reviewing`."""
    return replace(make_row("ada_huge_lr", "ada", "huge_lr", LOST), provenance={"tarball_sha256": "ada" * 16})


def mail(about: str, why: str, *, quoted: bool = False) -> str:
    """Return an email with the filled-in form of ada's page."""
    page = render_submission(row(), make_attachments("ada_huge_lr"))
    assert "explanation.form" in page, "the name of each check is on the page"
    form = html.unescape(re.findall(r"(?s)-- regrade request --.*?-- end of request --", page)[0])
    text = f"Dear all,\n{form}\nYours, Ada\n".replace("about: ", f"about: {about}").replace("why: ", f"why: {why}")
    return re.sub("(?m)^", "> ", text) if quoted else text


@pytest.mark.parametrize("quoted", [False, True])
def test_a_mail_becomes_an_item_of_the_queue_until_it_is_decided(tmp_path: Path, quoted: bool) -> None:
    with reviewing(tmp_path / "reports") as server:
        before = len(links(ask(server, f"/{server.token}/")[1]))
        (tmp_path / "mail.txt").write_text(mail("explanation.form", "It has <b>four</b>\nheadings.", quoted=quoted))
        assert take_in(server.out, tmp_path / "mail.txt")[:2] == (1, 0)
        assert take_in(server.out, tmp_path / "mail.txt")[:2] == (0, 1), "the same mail again is no second request"
        items = links(ask(server, f"/{server.token}/")[1])
        (item,) = [one for one in items if "explanation.form" in one]
        assert len(items) == before + 1
        page = ask(server, item)[1]
        assert "The student asks for a regrade" in page
        assert "It has &lt;b&gt;four&lt;/b&gt; headings." in page
        form = {"token": server.token, "act": "save", "points": "2", "comment": "Two of them are empty."}
        assert ask(server, item, form)[0] == 303
        assert len(load_decisions(server.out)) == 1
        assert len(links(ask(server, f"/{server.token}/")[1])) == before
        assert len(read_requests(server.out)) == 1, "what somebody wrote stays"


def test_a_request_about_another_file_or_an_unknown_check_is_about_the_total(tmp_path: Path) -> None:
    with reviewing(tmp_path / "reports") as server:
        before = links(ask(server, f"/{server.token}/")[1])
        other = mail("fix.minimal", "Look.").replace("file: ada", "file: bad")
        unknown = mail("fix.beauty", "Look.")
        (tmp_path / "mails").mkdir()
        (tmp_path / "mails" / "all.txt").write_text(other + unknown + mail("", ""))
        (tmp_path / "mails" / "note.txt").write_text("Dear all, please look again.")
        assert take_in(server.out, tmp_path / "mails") == (2, 0, [tmp_path / "mails" / "note.txt"])
        items = links(ask(server, f"/{server.token}/")[1])
        (item,) = [one for one in items if one not in before]
        page = ask(server, item)[1]
        assert "(About fix.minimal, of another file.) Look." in page
        assert "(About fix.beauty.) Look." in page
        form = {"token": server.token, "act": "save", "points": "50", "comment": "I looked."}
        assert ask(server, item, form)[0] == 303
        assert links(ask(server, f"/{server.token}/")[1]) == before
        (tmp_path / "mails" / "note.txt").unlink()
        (tmp_path / "mails" / "all.txt").write_text("Dear all, please look again.")
        with pytest.raises(UserError, match="contains no regrade request"):
            take_in(server.out, tmp_path / "mails")


def test_the_total_may_be_meant_and_who_is_forgotten_asks_nothing(tmp_path: Path) -> None:
    with reviewing(tmp_path / "reports") as server:
        (tmp_path / "mail.txt").write_text(mail("", "All of it."))
        take_in(server.out, tmp_path / "mail.txt")
        assert any("the%20total" in one for one in links(ask(server, f"/{server.token}/")[1]))
        forget("ada", server.out)
        assert b"ada" not in requests_path(server.out).read_bytes()


def test_a_long_or_endless_form_takes_no_time() -> None:
    begins = "-- regrade request --\nsubmission: a\nfile: \nabout: \nwhy: "
    for text in (begins[:22] * 20_000, begins + "x\n" * 99_000, begins * 20_000):
        assert [*parse(text, datetime.now(UTC))] == []
