"""A term with 30 students from a lecturer's view: no command loses or changes anything silently.

The term has two weeks, sections, an extension, an excused student, a group, a pool of cases, a written exercise, late,
unreadable and missing files, files without a time, decisions of two reviewers at once, a regrade request, exports into
gradebooks with existing grades, a case that is edited after the hand-out, an upgrade, a student who is forgotten, and a
restore from a backup.
"""

import csv
import io
import json
import re
import shutil
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.sandbox_marks import needs_sandbox

from benchmarks.repack import repacked
from grader.cli import cli
from grader.course.course import read_course
from grader.course.decisions import DecidedMeanwhile
from grader.course.examples import broken_workspace, example_submission
from grader.course.requests import take_in
from grader.course.review import decide, items_of, seen_of
from grader.score.scores_file import read_scores
from grader.score.verdict import Scores, SubmissionScore
from harness.recipes.catalogue import Catalogue
from harness.student.hand_in import submit
from harness.written.exercise import FileExercise, load_exercise
from harness.written.workspace import start_file_exercise

STUDENTS = [f"s{number:02}" for number in range(30)]
GONE, UNREADABLE, NOTHING, LATE, UNTIMED, EXTENDED, EXCUSED = (STUDENTS[at] for at in (7, 28, 29, 10, 11, 12, 4))
GROUP = (STUDENTS[5], STUDENTS[6])
WEEK = """
[[assignment]]
id = "{id}"
title = "{id}"
opens = 2026-10-20T08:00:00
due = 2026-10-27T23:59:00
{more}
[assignment.late]
points_per_day = 10
extensions = {{ {extended} = 2026-11-05T23:59:00 }}
{cases}
"""
CASE = """
[[assignment.case]]
id = "{id}"
experiment = "{experiment}"
breaks = {breaks}
{more}
"""
ONE = CASE.format(id="a1", experiment="strength_reg", breaks='["broadcast_loss"]', more="")
POOL = "".join(
    CASE.format(id=id, experiment=experiment, breaks="[]", more='pool = "b"')
    for id, experiment in (("b1", "orders_mlp"), ("b2", "strength_reg"))
)
WRITTEN = "decision_tree"
HEAD = """
format_version = 1
id = "term"
title = "A term"
time_zone = "Europe/Berlin"
secret = "a secret of this term"
roster = "roster.csv"
personal_seeds = false
"""
ALONE = ("*.lock.json", "*.log.jsonl")  # files that only our commands write


class Term:
    """The lecturer's folder, and the commands that run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str) -> str:
        """Run a command, compare the files before and after it, and return its output."""
        before = self.files()
        done = CliRunner().invoke(cli, words)
        said = f"{done.output}{done.exception or ''}"
        assert done.exit_code in (0, 1), said
        self._compare(before, words)
        return said

    def files(self) -> dict[str, bytes]:
        """Return every file by its path."""
        every = (path for path in self.folder.rglob("*") if path.is_file() and "replays" not in path.parts)
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in every}

    def _compare(self, before: Mapping[str, bytes], words: tuple[str, ...]) -> None:
        after = self.files()
        own = {"score": f"reports/{words[-1]}", "export": f"reports/{words[-1]}", "forget": "reports/"}.get(
            words[0], "-"
        )
        for name, content in before.items():
            if name.endswith(".log.jsonl") and words[0] != "forget":
                assert after[name].startswith(content), f"{words}: the log lost a line"
            elif words[0] == "kit" and name.endswith(".tar.gz.sha256"):
                continue
            elif not name.startswith(own):
                assert after.get(name) == content, f"{words} changed {name}"
            elif name.endswith((".decisions.toml", ".requests.jsonl")) and words[0] != "forget":
                assert after[name] == content, f"{words} changed {name}"

    def scores(self, week: str = "week-1") -> Scores:
        return read_scores(self.folder / "reports" / week)

    def rows(self, week: str = "week-1") -> dict[str, SubmissionScore]:
        """Return the row that counts for each student."""
        return {row.student: row for row in self.scores(week).submissions if not row.not_counting}


@pytest.fixture
def term(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Term]:
    """Return the lecturer's folder with the course and the students' submissions."""
    monkeypatch.setenv("TRAINWRECK_REPLAYS", str(tmp_path / "replays"))
    folder = tmp_path / "term"
    folder.mkdir()
    monkeypatch.chdir(folder)
    group = f'groups = [["{GROUP[0]}", "{GROUP[1]}"]]\nexcused = {{ {EXCUSED} = ["all"] }}'
    weeks = [("week-1", ONE, group), ("week-2", POOL, f'written = ["{WRITTEN}"]')]
    text = HEAD + "".join(WEEK.format(id=id, cases=cases, more=more, extended=EXTENDED) for id, cases, more in weeks)
    Path("course.toml").write_text(text)
    lines = [f"{name},Name of {name},{name}@example.org,{'ABC'[at % 3]}" for at, name in enumerate(STUDENTS)]
    Path("roster.csv").write_text("\n".join(["login,name,email,section", *lines, ""]))
    _hand_in(folder, tmp_path / "work")
    yield Term(folder)


def _hand_in(folder: Path, work: Path) -> None:
    """Make three runs, and hand them in under the names of all students."""
    course = read_course(folder / "course.toml")
    made: dict[tuple[str, str], bytes] = {}
    cases = {case.id: case for assignment in course.assignment for case in course.cases(assignment)}
    for given in cases.values():
        catalogue = Catalogue([given])
        # The template belongs to another student. The owner of a case from a pool does not matter here.
        owner = next(name for name in STUDENTS if given.case_of(name) == given.id)
        template = broken_workspace(given.id, work / "template", student=owner, catalogue=catalogue)
        sources = {"right": given.healthy_source(), "wrong": given.broken_source()}
        for kind, source in sources.items() if given.breaks else [("right", given.healthy_source())]:
            path = example_submission(given.id, owner, source, template, work / kind, work / "out", catalogue=catalogue)
            made[given.id, kind] = path.read_bytes()
    for week, first in (("week-1", "a1"), ("week-2", "b1")):
        place = folder / "submissions" / week
        place.mkdir(parents=True)
        for at, student in enumerate(STUDENTS):
            if student in (NOTHING, EXCUSED, GROUP[1]) and week == "week-1":
                continue
            kind = "wrong" if at % 5 == 3 and week == "week-1" else "right"
            case = cases[first].case_of(student)
            data = repacked(made[case, kind], student=student)
            (place / f"{student}_{case}.tar.gz").write_bytes(data[:500] if student == UNREADABLE else data)
    answer = load_exercise(WRITTEN)
    assert isinstance(answer, FileExercise)
    submit(start_file_exercise(answer, work)[0], STUDENTS[0], folder / "submissions/week-2")
    days = dict.fromkeys(STUDENTS, 27) | {LATE: 29, EXTENDED: 30}
    times = [f"{name},2026-10-{day}T23:00:00" for name, day in days.items() if name not in (UNTIMED, GROUP[1])]
    (folder / "times.csv").write_text("\n".join([*times, ""]))


def score(week: str) -> tuple[str, ...]:
    return ("score", f"submissions/{week}", "--jobs", "2", "--times", "times.csv", "--assignment", week)


def canvas(term: Term, cells: Mapping[str, str]) -> None:
    """Write an export of Canvas with these grades."""
    lines = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Week 1 (77)"]]
    lines.append(["    Points Possible", "", "", "", "", "100"])
    lines += [[name, str(100 + at), "", name, "", cells.get(name, "")] for at, name in enumerate(STUDENTS)]
    text = io.StringIO(newline="")
    csv.writer(text).writerows(lines)
    (term.folder / "canvas.csv").write_text(text.getvalue())


def imported(term: Term) -> dict[str, str]:
    """Return the grades that the import would set, by login."""
    path = term.folder / "reports/week-1/export/canvas/canvas.csv"
    rows = csv.DictReader(io.StringIO(path.read_text()))
    return {row["SIS Login ID"]: row["Week 1 (77)"] for row in rows if row["SIS Login ID"]}


@needs_sandbox
@pytest.mark.slow
def test_a_term_loses_nothing(term: Term) -> None:
    for week in ("week-1", "week-2"):
        assert f"{week}.lock.json" in term.run("kit", "--assignment", week)

    # --- week 1 ---
    said = term.run(*score("week-1"))
    rows = term.rows()
    assert Counter(row.status for row in rows.values()) == {
        "graded": 26, "not judged": 1, "rejected": 1, "missing": 1, "excused": 1,
    }, said  # fmt: skip
    assert rows[UNTIMED].untimed and "because lateness would cost points: 1." in said
    assert rows[LATE].late is not None and rows[LATE].total == 80
    assert rows[EXTENDED].late is None and rows[EXTENDED].total == 100
    assert rows[GROUP[1]].copy_of == f"{GROUP[0]}_a1" and rows[GROUP[1]].total == 100
    assert (rows[STUDENTS[3]].total or 100) < 60
    assert (rows[NOTHING].status, rows[EXCUSED].status, rows[UNREADABLE].status) == ("missing", "excused", "rejected")
    first = term.scores().submissions

    # --- week 2 gets a separate folder ---
    term.run(*score("week-2"))
    assert term.scores().submissions == first
    second = term.scores("week-2").submissions
    pooled = Counter(row.status for row in second if row.recipe in ("b1", "b2"))
    assert pooled == {"graded": 27, "not judged": 2, "rejected": 1, "not drawn": 30}, "two have no time"
    written = Counter(row.status for row in second if row.recipe == WRITTEN)
    assert written == {"graded": 1, "missing": 29}
    done = CliRunner().invoke(cli, [*score("week-2"), "--out", "reports/week-1"])
    assert "contains the scores of week-1 of term, which the scores of week-2 of term must" in str(done.exception)

    # --- grades go into a gradebook with existing grades ---
    canvas(term, {STUDENTS[0]: "55", STUDENTS[1]: "EX", STUDENTS[2]: "N/A"})
    export = ("export", "--format", "canvas", "--gradebook", "canvas.csv", "--exercise", "a1", "--assignment", "week-1")
    said = term.run(*export)
    assert "s00, Week 1 (77): kept 55" in said and "s01, Week 1 (77): kept EX" in said
    given = imported(term)
    assert not {STUDENTS[0], STUDENTS[1], STUDENTS[2], NOTHING, UNTIMED, UNREADABLE} & given.keys()
    assert (given[LATE], given[EXCUSED], given[GROUP[1]]) == ("80", "EX", "100")

    # --- two reviewers decide the same item at the same time ---
    reports = term.folder / "reports/week-1"
    total, *_ = items_of(rows[UNTIMED])
    seen = seen_of(reports, total)
    decide(reports, total, "100", "She told me on the 27th.", "ada", seen)
    with pytest.raises(
        DecidedMeanwhile, match=r"ada has made another decision in the meantime: 100 points\. She told me"
    ):
        decide(reports, total, "0", "Too late.", "bob", seen)
    said = term.run(*score("week-1"))
    assert f"{UNTIMED}_a1: not judged -> 100 (your decision about the total)" in said
    assert len(term.scores().changes) == 1

    # --- a student requests a regrade ---
    page = next(reports.glob("s08_a1*.html")).read_text()
    form = re.findall(r"(?s)-- regrade request --.*?-- end of request --", page)[0]
    Path("mail.txt").write_text(form.replace("why: ", "why: I fixed it."))
    assert take_in(reports, Path("mail.txt"))[:2] == (1, 0)
    decided = term.scores().submissions

    # --- a case is edited after the hand-out ---
    file = Path("course.toml")
    text = file.read_text()
    file.write_text(text.replace('["broadcast_loss"]', "[]"))
    said = term.run(*score("week-1"))
    assert "a1: The case has changed since the kit of" in said
    statuses = Counter(row.status for row in term.rows().values())
    assert statuses["graded"] == 1 and statuses["not judged"] == 26, "what a person decided holds"
    file.write_text(text)
    term.run(*score("week-1"))
    assert term.scores().submissions == decided

    # --- the suite is upgraded between two scorings ---
    path = reports / "scores.json"
    path.write_text(path.read_text().replace('"grader": "', '"grader": "0.0.'))
    said = term.run(*score("week-1"))
    assert "the rubric has changed since the last scoring: version 0.0." in said
    assert term.scores().submissions == decided
    path.write_text(path.read_text().replace('"grader": "', '"grader": "99.'))
    assert "is older" not in str(done.exception)
    done = CliRunner().invoke(cli, score("week-1"))
    assert "use the newer version" in str(done.exception)
    path.write_text(path.read_text().replace('"grader": "99.', '"grader": "'))

    # --- every student has a page ---
    term.run("export", "--format", "pages", "--assignment", "week-1")
    pages = {path.stem: path.read_text() for path in (reports / "export/pages").glob("*.html")}
    assert pages.keys() == set(STUDENTS)
    for student, words in (
        (NOTHING, "a1: missing"),
        (EXCUSED, "a1: excused"),
        (UNREADABLE, "the grader cannot read your file"),
    ):
        assert words in pages[student]

    # --- one student is forgotten, and the other students stay ---
    term.run("forget", GONE, "reports/week-1", "reports/week-2", "--yes")
    left = [name for name, content in term.files().items() if name.startswith("reports/") and GONE.encode() in content]
    assert left == []
    shutil.copytree("submissions", "before")
    for handed_in in Path("submissions").glob(f"*/{GONE}_*.tar.gz"):
        handed_in.unlink()
    Path("roster.csv").write_text(re.sub(f"(?m)^{GONE},.*\n", "", Path("roster.csv").read_text()))
    shutil.rmtree("before")
    said = term.run(*score("week-1"))
    assert [row for row in term.scores().submissions if row.student == GONE] == []

    # --- a restore from the backup gives the same scores ---
    (scores, log) = (path.read_bytes(), term.run("log", "reports/week-1"))
    assert log.count("score") >= 6 and "forget" in log
    with tarfile.open(term.folder.parent / "backup.tar.gz", "w:gz") as backup:
        for name in ("course.toml", "roster.csv", "times.csv", "submissions", "reports", "week-1.lock.json"):
            backup.add(name)
    for name in ("reports", "submissions"):
        shutil.rmtree(name)
    with tarfile.open(term.folder.parent / "backup.tar.gz") as backup:
        backup.extractall(filter="data")
    term.run(*score("week-1"))
    assert json.loads(path.read_bytes())["submissions"] == json.loads(scores)["submissions"]
    assert term.scores().changes == ()
    shutil.rmtree("reports/week-1")  # without the pages, the other files are enough to make them again
    term.run(*score("week-1"))
    assert json.loads(path.read_bytes())["submissions"] == json.loads(scores)["submissions"]
