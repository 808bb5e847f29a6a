"""Both pages: rules for every page that is handed out, for any content from a student."""

import base64
import hashlib
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from helpers.made_up_class import HOSTILE, RUBRIC, TITLES, changed, made_up_class, make_attachments, make_row, scores_of
from helpers.page_reader import Page

from grader.intake.folder import Arrival
from grader.report.pages import hardest, item_losses, means, render_class_page, render_submission, when_chart
from grader.report.text import MARKER
from grader.score.attachments import Attachments, Measurement
from grader.score.deadlines import LatePolicy, Schedule
from grader.score.verdict import Flag, Lateness, RuleVerdict, Scores, SubmissionScore, lost, open_item
from harness import __version__

SCORES, EXHIBITS = made_up_class(40)
ROWS = {row.submission: row for row in SCORES.submissions}
REJECTED = next(row for row in SCORES.submissions if row.status == "rejected")
DECIDED = next(row for row in SCORES.submissions for one in row.criteria.values() for check in one.checks if check.rule)
SHOWN = make_attachments("s")


def page_of(row: SubmissionScore, attachments: Attachments | None = None, title: str = "A title") -> Page:
    return Page(render_submission(row, attachments, title=title, provenance={"grader": __version__}))


def hostile_row() -> SubmissionScore:
    rule = RuleVerdict(outcome="failed", points=0.0, reason=HOSTILE)
    changes = changed("fix.minimal", lost, HOSTILE, HOSTILE) | changed("fix.correct", open_item, HOSTILE)
    decided = lost("cause", HOSTILE, 3, HOSTILE, HOSTILE, points=2)
    changes["explanation.cause"] = replace(decided, rule=rule, comment=HOSTILE)
    return make_row(
        HOSTILE,
        HOSTILE,
        HOSTILE,
        changes,
        reason=HOSTILE,
        flags=(Flag(id=HOSTILE, message=HOSTILE),),
        provenance={HOSTILE: HOSTILE, "warning": HOSTILE},
    )


def hostile_attachments() -> Attachments:
    return Attachments(
        submission=HOSTILE,
        broken_source=f"a = 1\n{HOSTILE}\n",
        fixed_source=f"a = 2\n# {HOSTILE}\n\x00\u2028'''{HOSTILE}",
        report=f"---\n{HOSTILE}\n---\n# {HOSTILE}\n\n[x](javascript:alert(1)) ![{HOSTILE}](http://evil.example/x.png)",
        measurements=(Measurement(name=HOSTILE, value="-Infinity", wanted=HOSTILE, good=False),),
        symptom=HOSTILE,
    )


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Return pages of every kind, by name."""
    hostile = Scores(provenance={HOSTILE: HOSTILE, "warning": HOSTILE}, submissions=(hostile_row(),))
    found = {
        "class": "".join(render_class_page(SCORES)),
        "class of nobody": "".join(render_class_page(Scores(provenance={}, submissions=()))),
        "hostile class": "".join(render_class_page(hostile)),
        "hostile": render_submission(
            hostile_row(), hostile_attachments(), title=HOSTILE, provenance={"warning": HOSTILE}
        ),
    }
    for row in SCORES.submissions[:17]:
        found[row.submission] = render_submission(
            row, EXHIBITS.get(row.submission), title=TITLES[row.recipe], provenance=SCORES.provenance
        )
    return found


def test_every_page_loads_nothing_and_is_for_all_readers(pages: dict[str, str]) -> None:
    for name, source in pages.items():
        page = Page(source)
        page.check()
        assert source.startswith("<!DOCTYPE html>"), name
        assert MARKER in source[:1024], name
        assert str(Path(__file__).resolve().parent.parent) not in source, name
        assert page.all("i") == [], name
        assert not [key for _, attributes in page.tags for key in attributes if key == "style"]
        for attributes in page.all("a"):
            href = str(attributes["href"])
            if href.startswith(("http:", "https:")):  # a link in a report
                assert attributes["rel"] == "nofollow noopener noreferrer", name
            else:
                assert re.fullmatch(r"#[\w-]+|[\w.-]+\.html", href), (name, href)
                assert href[:1] != "#" or [one for _, one in page.tags if one.get("id") == href[1:]], (name, href)


def test_the_policy_allows_our_style_and_the_one_script_by_their_hashes(pages: dict[str, str]) -> None:
    for name, source in pages.items():
        page = Page(source)
        hashes = {}
        for kind, texts in page.code.items():
            expected = 1 if kind == "style" or "class" in name else 0
            assert len(page.all(kind)) == expected, (name, kind)
            sums = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
            hashes[kind] = "".join(f"'sha256-{one}'" for one in sums)
        policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {hashes['style']}"
        more = f"; script-src {hashes['script']}" if hashes["script"] else "; img-src data:"
        assert page.policy == policy + more, name


def test_hostile_text_is_shown_and_does_nothing(pages: dict[str, str]) -> None:
    for name, least in (("hostile", 20), ("hostile class", 7)):
        page = Page(pages[name])
        assert page.words.count('<script>alert("1")</script>') >= least
        assert "<U+202E>evil<U+001B>[31m" in page.words
        for character in "\u202e\x1b\x00\u2028":
            assert character not in pages[name]
        assert len(pages[name]) < 120_000


def test_the_same_scores_give_the_same_bytes_without_torch() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests'); sys.stdout.reconfigure(encoding='utf-8')\n"
        "from test_report_pages import *\n"
        "s, e = made_up_class(20)\n"
        "print(''.join(render_class_page(s)))\n"
        "for row in s.submissions:\n"
        "    print(render_submission(row, e.get(row.submission), provenance=s.provenance))\n"
        "print(render_submission(hostile_row(), hostile_attachments()))\n"
        "assert not {'torch', 'numpy'} & set(sys.modules)\n"
    )
    outputs = set()
    for seed in ("0", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        outputs.add(done.stdout)
    assert len(outputs) == 1


class TestClassPage:
    page = Page("".join(render_class_page(SCORES)))

    def test_the_counts_stand_on_top(self) -> None:
        counts = [sum(row.status == status for row in ROWS.values()) for status in ("graded", "rejected", "not judged")]
        graded, rejected, unjudged = counts
        assert f"Graded {graded} of 40 Rejected {rejected} of 40 Not judged {unjudged} of 40" in self.page.words
        assert min(counts) > 0

    def test_open_cases_flags_and_decisions_are_all_there(self) -> None:
        for row in SCORES.submissions:
            expected = [flag.message for flag in row.flags]
            if row.status == "rejected" or (row.status == "not judged" and not row.criteria):
                expected.append(row.reason)
            for name, criterion in row.criteria.items():
                for check in criterion.checks:
                    if check.outcome == "could not judge":
                        expected.append(f"{name}.{check.id}: {check.reason}")
                    if check.rule:
                        expected.append(f"{name}.{check.id}: 2 of 3; the rubric gave —.")
            for words in expected:
                assert f"{row.student} {row.recipe} : {words}" in self.page.words

    def test_totals_stand_against_hours_after_each_students_own_due_date(self) -> None:
        due = datetime(2026, 10, 27, 12)
        late = LatePolicy(extensions={"bob": datetime(2026, 10, 28, 12)})
        schedule = Schedule(time_zone="Europe/Berlin", due=due, late=late, feedback=due, solution=due)
        moment = datetime(2026, 10, 28, 11, tzinfo=UTC)
        rows = [
            make_row(f"{name}_a", name, "a", {}, arrival=Arrival(file="x", submitted_at=moment))
            for name in ("ada", "bob")
        ]
        scores = Scores(provenance={}, submissions=tuple(rows), schedule=schedule)
        chart = when_chart(scores)
        assert chart is not None
        (mark,) = chart.marks
        dots = re.findall(r"M([\d.]+) ([\d.]+)h0", chart.lines[0].dots)
        in_time, late_by_a_day = (float(x) for x, _ in dots)
        assert in_time == mark.x < late_by_a_day, "bob is in time, ada a day late"
        assert {float(y) for _, y in dots} == {chart.top}
        page = Page("".join(render_class_page(scores)))
        page.check()
        assert "2 submissions, 1 of them after the due date." in page.words
        assert "2026-10-28 12:00 CET" in page.words and "UTC" not in page.words
        assert "Hardest exercises" not in page.words, "there is one exercise"
        plain = "".join(render_class_page(replace(scores, schedule=None)))
        assert "hours after 2026-10-28 11:00 UTC" in plain and ">due<" not in plain
        assert when_chart(SCORES) is None, "no time is known"

    def test_a_roster_tells_what_a_student_is_called(self) -> None:
        people = {"ada": ("Ada <i>Lovelace</i>", "B"), "nobody": ("Nobody", "")}
        rows = [make_row("1", "Ada", "a", {}), make_row("2", "bob", "a", {}), make_row("3", "cem", "a", {})]
        page = "".join(render_class_page(Scores(provenance={}, submissions=tuple(rows)), people=people))
        assert page.count('<span class="soft">Ada &lt;i&gt;Lovelace&lt;/i&gt;</span>') == 1
        assert "Nobody" not in page

    def test_the_hardest_cases_come_first(self) -> None:
        wrong = changed("fix.correct", lost, "", "") | changed("fix.minimal", lost, "", "")
        rows = [
            make_row("1", "s", "easy", {}),
            make_row("2", "s", "hard", wrong),
            make_row("3", "s", "hard", {}),
            make_row("4", "s", "hard", wrong),
            make_row("5", "s", "hard", changed("fix.correct", open_item, "")),
            make_row("6", "s", "hard", {}, status="missing", total=None, criteria={}),
        ]
        assert hardest(rows) == [("hard", 4, "80.0", "1 of 3"), ("easy", 1, "100.0", "1 of 1")]
        assert "Hardest exercises" in self.page.words


class TestSubmissionPage:
    def test_every_check_has_its_reason_and_what_would_have_earned_it(self) -> None:
        changes = changed("fix.minimal", lost, "It is big.", "Be small.", points=2.5)
        changes |= changed("fix.correct", lost, "It is wrong.", "Be right.")
        words = page_of(make_row("s", "ada", "steep", changes)).words
        assert "Total 82.5 of 100 points" in words
        assert "Fix 2.5 of 20" in words
        assert "(partly earned) 2.5 of 8 It is big. To earn the other points: Be small." in words
        assert "(failed) 0 of 12 It is wrong. To earn the points: Be right." in words
        assert words.count("It agrees with the replay") == sum(map(len, RUBRIC.values())) - 2

    def test_an_override_stands_beside_what_the_rule_said(self) -> None:
        words = page_of(DECIDED).words
        assert "The grader said: could not judge. The report offers two causes" in words
        assert "Your instructor decided: 2 of 3. Right cause, but hedged" in words

    def test_the_page_shows_what_the_score_rests_on(self) -> None:
        page = page_of(make_row("s", "ada", "steep", {}), SHOWN)
        for words in (
            "1 line removed, 2 added.",
            "\N{MINUS SIGN} removed return torch.optim.SGD(model.parameters(), lr=10.0",
            "+ added return torch.optim.SGD(model.parameters(), lr=0.1",
            "largest rate 0.1 below 1.0 met",
            "not above 50 not met",
            "diagnosis: - {cause: steep, where: build_optimizer",
        ):
            assert words in page.words

    def test_a_warning_stands_on_every_page(self) -> None:
        row = make_row("a", "a", "r", {})
        scores = Scores(provenance={"warning": "Graded without a sandbox."}, submissions=(row,))
        page = render_submission(row, None, provenance=scores.provenance)
        for source in (page, "".join(render_class_page(scores))):
            assert "Warning Graded without a sandbox." in Page(source).words


# --- figures of the class ---

CLASS = [
    make_row("1", "s", "a", {}),
    make_row("2", "s", "a", changed("fix.minimal", lost, "", "", points=2.0)),
    make_row("3", "s", "b", changed("fix.minimal", lost, "", "") | changed("fix.correct", lost, "", "", points=4.0)),
    make_row("4", "s", "b", changed("fix.minimal", open_item, "")),
    REJECTED,
]


def test_what_cost_points_stands_by_how_much_lateness_too() -> None:
    less = changed("fix.minimal", lost, "", "", points=5.5) | changed("explanation.form", open_item, "")
    row = make_row("1", "s", "a", changed("fix.correct", lost, "", "") | less, late=Lateness(days=1, cost=10))
    words = Page(render_submission(row, None)).words
    places = [words.index(part) for part in ("The cause is gone : −12", "was 1 day late: −10", ": open", ": −2.5")]
    assert places == sorted(places)


def test_means_by_recipe_and_of_all_graded() -> None:
    a, b, (every, graded, figures) = means(CLASS)
    assert a == ("a", 2, [97, 35, 30, 17, 15])
    assert b == ("b", 1, [84, 35, 30, 4, 15])
    assert (every, graded) == ("All exercises", 3)
    assert figures == pytest.approx([278 / 3, 35, 30, 38 / 3, 15])
    assert means([]) == means([REJECTED]) == [("All exercises", 0, [None] * 5)]


def test_the_check_most_often_lost_comes_first() -> None:
    first, second, *others = item_losses(CLASS)
    assert first[0].endswith("(fix.minimal)")
    assert first[1:] == ("2 of 3", "4.7", 1)
    assert second[0].endswith("(fix.correct)")
    assert second[1:] == ("1 of 4", "2.0", 0)
    assert {lost.split()[0] for _, lost, _, _ in others} == {"0"}
    [one] = [one for one in item_losses([CLASS[3]]) if one[0].endswith("(fix.minimal)")]
    assert one[1:] == ("0 of 0", "0.0", 1)


def test_what_does_not_count_is_in_no_figure_of_the_class() -> None:
    good = make_row("ada_steep", "ada", "steep", {}, total=90.0)
    second = make_row("ada_steep-1", "ada", "steep", {}, total=10.0, not_counting="ada_steep counts.")
    page = "".join(render_class_page(scores_of(good, second)))
    assert "<dt>Mean total</dt><dd>90" in page
    assert "means and charts leave out 1 submission that does not count" in page
    assert "does not count" not in "".join(render_class_page(scores_of(good)))


def test_a_submission_that_waits_for_its_time_is_among_those_that_wait() -> None:
    row = make_row("ada_steep", "ada", "steep", {})
    waits = replace(row, status="not judged", total=None, untimed=True, reason="Nothing tells when it came in.")
    page = "".join(render_class_page(Scores(provenance={}, submissions=(waits,))))
    part = page.partition("Open: decide these with grader review")[2]
    assert "Nothing tells when it came in." in part


def test_cases_that_are_not_drawn_are_not_shown() -> None:
    row = make_row("ada_steep", "ada", "steep", {})
    other = make_row("ada_asleep (not drawn)", "ada", "asleep", {}, status="not drawn", total=None, criteria={})
    page = "".join(render_class_page(Scores(provenance={}, submissions=(row, other), pools=(("asleep", "steep"),))))
    assert "not drawn" not in page
    assert "<title>The class: 1 row<" in page
