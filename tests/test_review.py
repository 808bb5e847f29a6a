"""`grader review`: a page whose decisions are saved to the disk at once."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from helpers.made_up_class import HOSTILE, changed, make_row, scores_of
from helpers.page_reader import Page
from helpers.reviewing import reviewing

from grader.cli import cli
from grader.course.decisions import apply_decisions, decisions_path, load_decisions
from grader.course.review import decide, find_open_items
from grader.course.review_page import ReviewServer
from grader.intake.folder import Arrival
from grader.report.text import MARKER
from grader.report.write import check_reports_folder, write_reports
from grader.score.deadlines import LatePolicy, Schedule
from grader.score.scores_file import SCORES, read_scores, scores_json
from grader.score.verdict import SubmissionScore, open_item
from harness.errors import UserError
from harness.page.local_server import open_in_browser


def test_a_submission_without_checks_gets_a_total(tmp_path: Path) -> None:
    more: dict[str, object] = {"status": "not judged", "total": None, "reason": "It failed on it."}
    [item] = find_open_items([make_row("bob_huge_lr", "bob", "huge_lr", {}, criteria={}, **more)])
    with pytest.raises(UserError, match="from 0 to 100"):
        decide(tmp_path / "reports", item, "101", "by hand", "Prof. Ada")
    decide(tmp_path / "reports", item, "40", "by hand", "Prof. Ada")
    (decision,) = load_decisions(tmp_path / "reports")
    assert (decision.total, decision.check, decision.who) == (40, None, "Prof. Ada")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReviewServer]:
    """Serve the review of three submissions: two with open items, and a hostile one."""
    with reviewing(tmp_path / "reports") as server:
        yield server


def ask(server: ReviewServer, path: str, form: dict[str, str] | None = None, **headers: str) -> tuple[int, str, str]:
    """Return the status, the text, and the final address of a request."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    body = None if form is None else urlencode(form)
    connection.request("GET" if form is None else "POST", path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, answer.headers.get("Location", "")


def links(text: str) -> list[str]:
    """Return the addresses of the items on the page of a queue."""
    return re.findall(r'<th scope="row"><a href="([^"]+)"', text)


def test_a_decision_is_on_the_disk_before_the_page_says_so_and_can_be_undone(server: ReviewServer) -> None:
    base = f"/{server.token}/"
    first, second, third = links(ask(server, base)[1])
    assert "3 of 3 are open" in ask(server, base)[1]
    form = {"token": server.token, "act": "save", "points": "7,5", "comment": "Half of it."}
    status, _, leads = ask(server, first, form)
    (decision,) = load_decisions(server.out)
    assert (decision.points, decision.comment, decision.who) == (7.5, "Half of it.", "Prof. Ada")
    assert decision.sha256 == "ada" * 16, "it is about this tarball alone"
    assert (status, leads.partition("?")[0]) == (303, second)
    shown = ask(server, leads)[1]
    assert "fix.correct: The cause is gone, ada: 7.5 of 12, decided." in shown
    assert '<button id="undo"' in shown
    undo = {"token": server.token, "act": "undo"}
    for state in ("Open", "7.5 of 12, decided", "Open"):
        _, _, leads = ask(server, first, undo)
        assert f"ada: {state}." in ask(server, leads)[1]
    assert [one.withdrawn for one in load_decisions(server.out)] == [None, True, None, True]
    for item in (second, first):
        ask(server, item, {"token": server.token, "act": "accept", "comment": ""})
    assert 'id="accept"' in ask(server, first)[1]
    assert 'id="accept"' not in ask(server, third)[1], "nothing of it was judged"
    assert "This item cannot be accepted" in ask(server, third, {"token": server.token, "act": "accept"})[1]
    leads = ask(server, third, {**form, "points": "100"})[2]
    assert "There is no open item." in ask(server, leads)[1]
    assert "History (5)" in ask(server, first)[1]
    scores = apply_decisions(read_scores(server.out), load_decisions(server.out))
    assert {row.student: row.total for row in scores.submissions if row.student != HOSTILE} == {"ada": 100, "bob": 100}


def test_a_browser_gets_the_name_of_a_private_file_and_no_secret(
    server: ReviewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, str, int]] = []

    def open_page(address: str) -> bool:
        path = Path(address.removeprefix("file://"))
        opened.append((address, path.read_text(), path.stat().st_mode & 0o777))
        return True

    monkeypatch.setattr("webbrowser.open", open_page)
    for screen, count in ((":0", 1), ("", 1)):
        monkeypatch.setenv("DISPLAY", screen)
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        with open_in_browser(server.address, server.out, "review", marker=MARKER):
            check_reports_folder(server.out)
        assert len(opened) == count
    ((address, text, mode),) = opened
    assert server.token not in address
    assert server.address in text
    assert mode == 0o600
    assert not [*server.out.glob("review-*")]


def test_a_stale_page_replaces_no_decision_and_shows_both(server: ReviewServer) -> None:
    first = links(ask(server, f"/{server.token}/")[1])[0]

    def form_of(page: str, points: str, comment: str, act: str = "save") -> dict[str, str]:
        (seen,) = set(re.findall(r'name="seen" value="([^"]*)"', page))
        return {"token": server.token, "act": act, "points": points, "comment": comment, "seen": seen}

    one = other = ask(server, first)[1]
    assert ask(server, first, form_of(one, "7", "Half."))[0] == 303
    decisions = decisions_path(server.out).read_bytes()
    status, page, _ = ask(server, first, form_of(other, "3", "A quarter."))
    assert (status, decisions_path(server.out).read_bytes()) == (409, decisions)
    meanwhile = "Prof. Ada has made another decision in the meantime: 7 points. Half."
    for words in (meanwhile, "7 of 12, decided", 'value="3"', "A quarter."):
        assert words in page
    assert ask(server, first, form_of(other, "", "", "undo"))[0] == 409
    assert ask(server, first, form_of(page, "3", "A quarter."))[0] == 303
    assert [one.points for one in load_decisions(server.out)] == [7, 3]
    # The class is scored again after the student has handed in another file.
    page = ask(server, first)[1]
    text = (server.out / SCORES).read_text().replace("adaadaadaadaada", "newnewnewnewnew")
    (server.out / SCORES).write_text(text)
    assert "the student now has another file" in ask(server, first, form_of(page, "9", "Fine."))[1]
    assert len(load_decisions(server.out)) == 2


def test_what_does_not_fit_is_shown_again_with_what_was_typed(server: ReviewServer) -> None:
    item = links(ask(server, f"/{server.token}/")[1])[0]
    for points, comment, act, problem in (
        ("99", "my <b>words", "save", "Give a number from 0 to 12"),
        ("nan", "my <b>words", "save", "Give a number from 0 to 12"),
        ("+2", "my <b>words", "save", "The item is open"),
        ("3", "", "save", "Write a comment"),
        ("3", "my <b>words", "accept", "You typed points"),
        ("", "", "undo", "no decision to undo"),
    ):
        status, text, _ = ask(server, item, {"token": server.token, "act": act, "points": points, "comment": comment})
        assert (status, problem in text, comment.replace("<b>", "&lt;b&gt;") in text) == (409, True, True)
    path = decisions_path(server.out)
    path.write_text("override = [", encoding="utf-8")
    status, text, _ = ask(server, item, {"token": server.token, "act": "save", "points": "3", "comment": "x"})
    assert (status, "is not TOML" in text, path.read_text()) == (409, True, "override = [")


def test_everything_can_be_decided_and_the_total_too(server: ReviewServer) -> None:
    base = f"/{server.token}/"
    totals = links(ask(server, f"{base}?all=1")[1])
    ada = next(one for one in totals if "ada" in ask(server, one)[1])
    page = ask(server, ada)[1]
    check = re.search(r'href="([^"]+/explanation\.form\?all=1)"', page)
    assert check is not None
    leads = ask(server, check[1], {"token": server.token, "act": "save", "points": "-9", "comment": "Copied."})[2]
    assert "explanation.form: The check explanation.form, ada: -6 of 3, decided." in ask(server, leads)[1]
    ask(server, ada, {"token": server.token, "act": "save", "points": "40", "comment": "By hand."})
    assert [row.total for row in now(server) if row.student == "ada"] == [40]
    assert "2 of 3 are open" in ask(server, base)[1]  # a decided total closes its open items


def now(server: ReviewServer) -> tuple[SubmissionScore, ...]:
    return apply_decisions(read_scores(server.out), load_decisions(server.out)).submissions


def test_nobody_else_can_ask_or_decide(server: ReviewServer) -> None:
    base = f"/{server.token}/"
    item = links(ask(server, base)[1])[0]
    form = {"token": server.token, "act": "accept", "points": "", "comment": "x"}
    assert server.server_address[0] == "127.0.0.1"
    for status in (
        ask(server, "/")[0],
        ask(server, "/wrong/")[0],
        ask(server, base, Host="evil.example")[0],
        ask(server, base, Host=f"127.0.0.1.evil.example:{server.server_port}")[0],
        ask(server, item, {**form, "token": "wrong"})[0],
        ask(server, item, {name: value for name, value in form.items() if name != "token"})[0],
        ask(server, item, form, Host="evil.example")[0],
        ask(server, item, form, **{"Sec-Fetch-Site": "cross-site"})[0],
        ask(server, item, form, Origin="http://127.0.0.1:1")[0],
        ask(server, item.replace(server.token, "x"), form)[0],
    ):
        assert status == 403
    assert ask(server, item, {**form, "comment": "x" * 200_000})[0] == 413
    assert ask(server, f"{base}../../etc/passwd")[0] == 404
    assert load_decisions(server.out) == ()


def test_the_pages_are_escaped_and_load_nothing(server: ReviewServer) -> None:
    for path in (f"/{server.token}/", f"/{server.token}/?all=1", *links(ask(server, f"/{server.token}/")[1])):
        source = ask(server, path)[1]
        page = Page(source)
        assert "form-action 'self'" in page.policy and "default-src 'none'" in page.policy
        assert len(page.all("script")) == 1 and not page.all("link")
        assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
        assert len(set(page.ids)) == len(page.ids)
        assert "\u202e" not in source


def test_what_the_reason_names_is_marked_in_report_and_diff(server: ReviewServer) -> None:
    item = links(ask(server, f"/{server.token}/")[1])[0]
    source = ask(server, item)[1]
    assert "<mark>1523.4</mark>" in source and "<mark>build_optimizer</mark>" in source
    (line,) = re.findall(r"<tr data-marked=\"\".*?</tr>", source)
    assert "lr=0.1" in line
    assert "Versions and hashes behind this score" not in source


def test_anonymous_pages_name_nobody(tmp_path: Path) -> None:
    with reviewing(tmp_path / "reports", anonymous=True) as server:
        queue = ask(server, f"/{server.token}/")[1]
        for source in (queue, *(ask(server, one)[1] for one in links(queue))):
            assert "Submission " in source
            assert not re.search(r"\b(ada|bob)\b", source)
        keys = [one.split("/")[2] for one in links(queue)]
        assert keys == sorted(keys)


def test_new_scores_are_seen_while_the_review_goes_on(server: ReviewServer) -> None:
    item = links(ask(server, f"/{server.token}/")[1])[0]
    write_reports(scores_of(make_row("zoe_huge_lr", "zoe", "huge_lr", {})), {}, server.out)
    assert "There is no open item." in ask(server, f"/{server.token}/")[1]
    assert ask(server, item)[0] == 404


@pytest.mark.parametrize(("decisions", "ends"), [("", "Nothing was decided."), ("# Mine.\n", "Your decisions are in")])
def test_the_command_names_the_address_and_ends_kindly(server: ReviewServer, decisions: str, ends: str) -> None:
    if decisions:
        decisions_path(server.out).write_text(decisions, encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if "DISPLAY" not in key}
    words = [sys.executable, "-m", "grader", "review", str(server.out), "--who", "Ada"]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        try:
            address = command.stdout.readline().split()[-1]
            with urlopen(address, timeout=20) as answer:
                assert b"3 of 3 are open" in answer.read()
            command.send_signal(signal.SIGINT)
            said, errors = command.communicate(timeout=20)
        finally:
            command.kill()  # otherwise the block waits forever if the tests were started without SIGINT
    assert (command.returncode, errors) == (0, "")
    assert ends in said


def test_without_scores_it_says_what_to_name(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["review", str(tmp_path)])
    assert isinstance(done.exception, UserError) and "name the folder that grader score wrote" in str(done.exception)


def test_points_after_lateness_stand_beside_those_before_it(server: ReviewServer) -> None:
    due = datetime(2026, 10, 27, 23, 59)
    late = LatePolicy(points_per_day=10)
    arrival = Arrival(file="x", submitted_at=datetime(2026, 10, 28, 12, tzinfo=UTC))
    row = make_row("ada_huge_lr", "ada", "huge_lr", changed("fix.correct", open_item, "?"), arrival=arrival)
    schedule = Schedule(time_zone="Europe/Berlin", due=due, late=late, feedback=due, solution=due)
    scores = replace(scores_of(row), schedule=schedule)
    (server.out / SCORES).write_bytes(b"".join(scores_json(scores)))
    base = f"/{server.token}/"
    (item,) = links(ask(server, base)[1])
    ask(server, item, {"token": server.token, "act": "save", "points": "0", "comment": "No."})
    assert "88 of 100, 78 after the deduction for lateness" in ask(server, f"{base}?all=1")[1]
    page = ask(server, item)[1]
    assert re.search(r"No\. <span class=\"soft\">Prof\. Ada \d{4}-\d\d-\d\d \d\d:\d\d CES?T \(holds\)", page)
    (total,) = links(ask(server, f"{base}?all=1")[1])
    ask(server, total, {"token": server.token, "act": "save", "points": "90", "comment": "So be it."})
    assert "90 of 100, decided" in ask(server, f"{base}?all=1")[1], "lateness takes nothing from a total that you set"
