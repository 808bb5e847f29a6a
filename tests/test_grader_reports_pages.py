"""Both pages: what must hold of any page that is handed out, whatever a student sent."""

import base64
import hashlib
import itertools
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from made_up_class import HOSTILE, changed, digest, made_up_class, make_exhibits, make_row
from page_reader import Page

from grader.course.overrides import Override, apply_overrides
from grader.report.class_page import render_class_page
from grader.report.page_names import page_stems
from grader.report.page_template import MARKER
from grader.report.submission_page import measured, render_submission_page
from grader.score.exhibits import Curve, Exhibits, HashComparison, Measurement, Number, ReplayOutcome
from grader.score.verdict import Check, Flag, RuleVerdict, Scores, SubmissionScore, lost, open_check

SCORES, EXHIBITS, TITLES = made_up_class(40)
ROWS = {row.submission: row for row in SCORES.submissions}


def page_of(row: SubmissionScore, exhibits: Exhibits | None = None, title: str = "A title") -> Page:
    return Page(render_submission_page(row, exhibits, recipe_title=title, provenance={"grader": "0.1.0"}))


def hostile_row() -> SubmissionScore:
    rule = RuleVerdict(outcome="failed", points=0.0, reason=HOSTILE)
    changes = changed("fix.minimal", lost, HOSTILE, HOSTILE) | changed("fix.correct", open_check, HOSTILE)
    changes["explanation.cause"] = Check(
        id="cause",
        title=HOSTILE,
        outcome="failed",
        points=4,
        max=6,
        reason=HOSTILE,
        rule=rule,
        comment=HOSTILE,
    )
    return make_row(
        HOSTILE,
        HOSTILE,
        HOSTILE,
        changes,
        reason=HOSTILE,
        flags=(Flag(id=HOSTILE, message=HOSTILE),),
        provenance={HOSTILE: HOSTILE, "warning": HOSTILE},
    )


def hostile_exhibits() -> Exhibits:
    return Exhibits(
        submission=HOSTILE,
        broken_source=f"a = 1\n{HOSTILE}\n",
        fixed_source=f"a = 2\n# {HOSTILE}\n\x00\u2028'''{HOSTILE}",
        report=f"---\n{HOSTILE}\n---\n# {HOSTILE}\n\n[x](javascript:alert(1)) ![{HOSTILE}](http://evil.example/x.png)",
        curves=(Curve(run="fixed", loss=((0, "NaN"),), validation=((0, None, 0.5),)),),
        hashes=(
            HashComparison(run="fixed", file="metrics.log", claimed=HOSTILE * 50, replayed=None, agree=False),
        ),
        replays=(ReplayOutcome(what="fixed run", status="RE", message=HOSTILE),),
        measurements=(Measurement(name=HOSTILE, value="-Infinity", wanted=HOSTILE, good=False),),
        ignored_files=(HOSTILE, "x" * 10_000),
        symptom=HOSTILE,
    )


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Return pages of every kind, by name."""
    hostile = Scores(provenance={HOSTILE: HOSTILE, "warning": HOSTILE}, submissions=(hostile_row(),))
    found = {
        "class": render_class_page(SCORES, TITLES),
        "class of nobody": render_class_page(Scores(provenance={}, submissions=()), {}),
        "hostile class": render_class_page(hostile, {HOSTILE: HOSTILE}),
        "hostile": render_submission_page(
            hostile_row(), hostile_exhibits(), recipe_title=HOSTILE, provenance={"warning": HOSTILE}
        ),
    }
    for row in SCORES.submissions[:17]:
        found[row.submission] = render_submission_page(
            row, EXHIBITS.get(row.submission), recipe_title=TITLES[row.recipe], provenance=SCORES.provenance
        )
    return found


def test_every_page_is_well_formed_and_loads_nothing(pages: dict[str, str]) -> None:
    for name, source in pages.items():
        page = Page(source)
        assert source.startswith("<!DOCTYPE html>"), name
        assert MARKER in source[:1024], name
        for tag in ("link", "iframe", "object", "embed", "form", "base", "i"):
            assert page.all(tag) == [], (name, tag)
        assert all(str(picture["src"]).startswith("data:image/") for picture in page.all("img")), name
        assert not [
            key for _, attributes in page.tags for key in attributes if key.startswith("on") or key == "style"
        ]
        assert not re.search(r"url\(|@import", "".join(page.code["style"])), name
        for attributes in page.all("a"):
            href = str(attributes["href"])
            if href.startswith(("http:", "https:")):  # of a report
                assert attributes["rel"] == "nofollow noopener noreferrer", name
            else:
                assert re.fullmatch(r"#\w+|[\w.-]+\.html", href), (name, href)


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


def test_a_reader_without_eyes_or_mouse_finds_the_way(pages: dict[str, str]) -> None:
    for name, source in pages.items():
        page = Page(source)
        assert len(set(page.ids)) == len(page.ids), name
        for _, attributes in page.tags:
            for key in ("aria-labelledby", "aria-describedby", "aria-controls"):
                assert attributes.get(key, page.ids[0]) in page.ids, (name, key)
        targets = {str(a["href"])[1:] for a in page.all("a") if str(a["href"]).startswith("#")}
        assert targets <= set(map(str, page.ids)), name
        assert len(targets) >= 2
        ours = [attributes for attributes in page.all("table") if "class" in attributes]
        assert len(page.all("caption")) == len(ours), name  # the other tables are of a student's report
        assert all(a.get("scope") in ("row", "col") for a in page.all("th")), name
        assert all(a.get("role") == "img" or a.get("aria-hidden") == "true" for a in page.all("svg")), name
        assert page.all("html") == [{"lang": "en"}]
        assert len(page.all("main")) == len(page.all("header")) == len(page.all("nav")) == 1
        assert page.levels[0] == 1
        assert page.levels.count(1) == 1
        assert all(after - before <= 1 for before, after in itertools.pairwise(page.levels)), name
        for tag in ("input", "select"):
            assert len(page.all(tag)) <= source.count("<label")


def test_hostile_text_is_shown_and_does_nothing(pages: dict[str, str]) -> None:
    for name, least in (("hostile", 20), ("hostile class", 8)):
        page = Page(pages[name])
        assert page.words.count('<script>alert("1")</script>') >= least
        assert "<U+202E>evil<U+001B>[31m" in page.words
        for character in "\u202e\x1b\x00\u2028":
            assert character not in pages[name]
        assert len(pages[name]) < 120_000


def test_the_same_scores_give_the_same_bytes() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests'); sys.stdout.reconfigure(encoding='utf-8')\n"
        "from test_grader_reports_pages import *\n"
        "s, e, t = made_up_class(20)\n"
        "print(render_class_page(s, t))\n"
        "for row in s.submissions:\n"
        "    print(render_submission_page(row, e.get(row.submission), recipe_title='', provenance=s.provenance))\n"
        "print(render_submission_page(hostile_row(), hostile_exhibits(), recipe_title='', provenance={}))\n"
    )
    outputs = set()
    for seed in ("0", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_the_reports_need_no_torch() -> None:
    code = (
        "import sys, grader.report.write; print([m for m in ('torch', 'numpy', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


class TestClassPage:
    page = Page(render_class_page(SCORES, TITLES))

    def test_the_counts_stand_on_top(self) -> None:
        counts = [
            sum(row.status == status for row in ROWS.values())
            for status in ("graded", "rejected", "not judged")
        ]
        graded, rejected, unjudged = counts
        assert (
            f"Graded {graded} of 40 Rejected {rejected} of 40 Not judged {unjudged} of 40" in self.page.words
        )
        assert min(counts) > 0

    def test_every_submission_is_a_row_that_leads_to_its_page(self) -> None:
        links = [str(a["href"]) for a in self.page.all("a") if not str(a["href"]).startswith("#")]
        stems = page_stems(ROWS)
        assert set(links) == {f"{stem}.html" for stem in stems.values()}
        assert links[-40:] == [f"{stems[row.submission]}.html" for row in SCORES.submissions]

    def test_open_cases_flags_and_overrides_are_all_there(self) -> None:
        for row in SCORES.submissions:
            for flag in row.flags:
                assert f"{row.student} {row.recipe} : {flag.message}" in self.page.words
            if row.status == "rejected" or (row.status == "not judged" and not row.criteria):
                assert f"{row.student} {row.recipe} : {row.reason}" in self.page.words
            for name, criterion in row.criteria.items():
                for check in criterion.checks:
                    if check.outcome == "could not judge":
                        assert (
                            f"{row.student} {row.recipe} : {name}.{check.id} {check.reason}"
                            in self.page.words
                        )
                    if check.rule:
                        assert (
                            f"{row.student} {row.recipe} : {name}.{check.id} 4 of 6 in place of no verdict."
                            in self.page.words
                        )

    def test_a_total_that_the_instructor_decided_is_an_override(self) -> None:
        override = Override(submission="emmy_double_softmax", total=40, comment="Mailed to me.", place="here")
        page = Page(render_class_page(apply_overrides(SCORES, (override,)), TITLES))
        overrides = page.words[page.words.rindex("Overrides") : page.words.rindex("Most often lost")]
        assert (
            "emmy double_softmax : the total. The instructor decided: 40 of 100. Mailed to me." in overrides
        )
        decided = sum(
            check.rule is not None
            for row in SCORES.submissions
            for one in row.criteria.values()
            for check in one.checks
        )
        assert f"{decided + 1} decisions of an instructor" in overrides
        assert "the total." not in self.page.words

    def test_a_total_alone_has_its_section_and_a_way_to_it(self) -> None:
        row = ROWS["emmy_double_softmax"].model_copy(
            update={"status": "graded", "total": 40.0, "reason": "Mine."}
        )
        page = Page(render_class_page(Scores(provenance={}, submissions=(row,)), TITLES))
        assert "#overrides" in [a["href"] for a in page.all("a")]
        assert "1 decision of an instructor emmy double_softmax : the total. Mine." in page.words

    def test_a_recipe_is_filtered_by_the_name_that_is_shown(self) -> None:
        odd = ("  two  blanks ", "x" * 200, "a\nb\u202e", "")
        rows = [make_row(f"s{i}", "s", recipe, {}) for i, recipe in enumerate(odd)]
        rows += [make_row("t", "t", "huge_lr", {})]
        page = Page(render_class_page(Scores(provenance={}, submissions=tuple(rows)), TITLES))
        values = [option["value"] for option in page.all("option") if option.get("value")]
        assert values == ["  two  blanks ", "a b<U+202E>", "huge_lr", f"{'x' * 80}… (120 more characters)"]
        assert "huge_lr: The loss explodes in the first epoch" in page.words

    def test_the_mean_has_one_form(self) -> None:
        rows = [
            make_row(str(i), "s", "huge_lr", changed("fix.minimal", lost, "", "", points=points))
            for i, points in enumerate((0.0, 0.1))
        ]
        words = Page(render_class_page(Scores(provenance={}, submissions=tuple(rows)), {})).words
        shown = re.findall(r"(?:Mean total|Median total|All recipes 2) ([\d.]+)", words)
        assert len(shown) == 3
        assert set(shown) == {f"{92.05:.1f}"}

    def test_the_check_most_often_lost_is_named(self) -> None:
        assert "Most often lost: Nothing else was changed ( fix.minimal ), by 22 of 36." in self.page.words

    def test_the_histogram_is_spoken(self) -> None:
        assert "50 to 60 points: 5." in self.page.words
        assert "90 to 100 points: 23." in self.page.words

    def test_a_class_of_nobody(self) -> None:
        words = Page(render_class_page(Scores(provenance={}, submissions=()), {})).words
        assert "Graded 0 of 0" in words
        assert "No check was judged." in words

    def test_a_class_in_which_nothing_was_lost(self) -> None:
        words = Page(
            render_class_page(Scores(provenance={}, submissions=(make_row("a", "a", "r", {}),)), {})
        ).words
        assert "No check was lost." in words
        assert "Not graded" not in words
        assert "Flags Something" not in words


class TestSubmissionPage:
    def test_every_check_has_its_reason_and_what_would_have_earned_it(self) -> None:
        changes = changed("fix.minimal", lost, "It is big.", "Be small.", points=2.5)
        changes |= changed("fix.correct", lost, "It is wrong.", "Be right.")
        words = page_of(make_row("s", "ada", "huge_lr", changes)).words
        assert "Total 82.5 of 100 points" in words
        assert "Fix 2.5 of 20" in words
        assert "(partly earned) 2.5 of 8 It is big. What would have earned the rest: Be small." in words
        assert "(failed) 0 of 12 It is wrong. What would have earned the points: Be right." in words
        assert words.count("It agrees with the replay") == 15

    def test_an_override_stands_beside_what_the_rule_said(self) -> None:
        words = page_of(ROWS["edsger_amp_no_scaling"]).words
        assert "The rule said: could not judge The report offers two causes" in words
        assert "Your instructor decided: 4 of 6 Right cause, but hedged" in words

    def test_the_diff_marks_lines_with_words_as_well(self) -> None:
        words = page_of(make_row("s", "ada", "huge_lr", {}), EXHIBITS["barbara_huge_lr"]).words
        assert "1 line removed, 2 added." in words
        assert "30 \N{MINUS SIGN} removed return torch.optim.SGD(model.parameters(), lr= 10.0" in words
        assert "31 + added return torch.optim.SGD(model.parameters(), lr= 0.1" in words

    def test_the_three_runs_are_drawn_and_measured(self) -> None:
        page = page_of(make_row("s", "ada", "huge_lr", {}), EXHIBITS["barbara_huge_lr"])
        assert len(page.all("figure")) == 3
        for run in ("broken", "fixed", "reference"):
            assert page.words.count(f"{run}: ") >= 3
        assert "probe learning_rate 0.1 below 1.0 met" in page.words
        assert "not above 50 not met" in page.words

    def test_hashes_claimed_and_replayed(self) -> None:
        words = page_of(make_row("s", "ada", "huge_lr", {}), EXHIBITS["barbara_huge_lr"]).words
        one, two = digest("barbara_huge_lr 1"), digest("barbara_huge_lr 2")
        assert f"broken metrics.log {one} both agree" in words
        assert f"fixed metrics.log {one} handed in {two} replayed differ" in words
        assert f"fixed checkpoint.pt {one} handed in — replayed not demanded" in words

    def test_without_exhibits_the_score_is_shown(self) -> None:
        words = page_of(ROWS["emmy_double_softmax"]).words
        assert "Rejected The archive holds ../../etc/passwd" in words
        for heading in ("Your fix", "Your report", "Replay"):
            assert heading not in words

    def test_an_unchanged_experiment_is_said_to_be_so(self) -> None:
        exhibits = EXHIBITS["barbara_huge_lr"]
        exhibits = exhibits.model_copy(update={"fixed_source": exhibits.broken_source})
        assert (
            "is the broken one, line by line" in page_of(make_row("s", "ada", "huge_lr", {}), exhibits).words
        )

    def test_a_fix_without_a_broken_one_is_shown_whole(self) -> None:
        exhibits = Exhibits(submission="s", broken_source=None, fixed_source="a = 1\nb = 2\n", report="")
        words = page_of(make_row("s", "ada", "huge_lr", {}), exhibits).words
        assert "1 a = 1 2 b = 2" in words
        assert "The report has no text." in words

    def test_a_warning_stands_on_every_page(self) -> None:
        scores = Scores(
            provenance={"warning": "Graded without a sandbox."}, submissions=(make_row("a", "a", "r", {}),)
        )
        row = scores.submissions[0]
        page = render_submission_page(row, None, recipe_title="", provenance=scores.provenance)
        for source in (page, render_class_page(scores, {})):
            assert "Warning Graded without a sandbox." in Page(source).words

    @pytest.mark.parametrize(
        ("value", "words"),
        [(None, "—"), ("NaN", "NaN"), ("-Infinity", "-Infinity"), (0.95741234, "0.957412"), (1e-9, "1e-09")],
    )
    def test_measured_numbers(self, value: Number, words: str) -> None:
        assert measured(value) == words

    def test_a_page_with_nothing_but_ignored_files_leads_to_them(self) -> None:
        exhibits = Exhibits(
            submission="s", broken_source=None, fixed_source=None, report=None, ignored_files=("notes.txt",)
        )
        page = page_of(make_row("s", "ada", "huge_lr", {}), exhibits)
        assert "#replay" in [a["href"] for a in page.all("a")]
        assert "notes.txt" in page.words

    def test_many_ignored_files_are_cut(self) -> None:
        exhibits = make_exhibits("s", "huge_lr", random.Random(0))
        exhibits = exhibits.model_copy(update={"ignored_files": tuple(f"file {i}" for i in range(500))})
        words = page_of(make_row("s", "ada", "huge_lr", {}), exhibits).words
        assert "file 49 450 more" in words
        assert "file 50" not in words


def test_no_absolute_path_of_this_machine(pages: dict[str, str]) -> None:
    root = str(Path(__file__).resolve().parent.parent)
    assert not [name for name, source in pages.items() if root in source]
