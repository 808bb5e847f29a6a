"""`grader demo`: make an invented course, score its submissions, store a decision, score again, and export the scores.

`demo_class/` contains the course file, a table of the submissions to make, and sentences for the reports. The demo
makes a real run for each submission.
"""

import csv
import io
import re
import shutil
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from grader.course.course import COURSE, Assignment, Course, check_course, read_course
from grader.course.decisions import Decision, decisions_path, keep_decision
from grader.course.examples import broken_workspace, edits_of, example_submission
from grader.course.export import ExportOptions, Format, run_export
from grader.course.lock import note_kit
from grader.report.gradebook import csv_bytes
from grader.report.write import INDEX
from grader.score.scores_file import read_scores
from grader.session import ScoreOptions
from harness.errors import UserError
from harness.recipes.cases import Case
from harness.recipes.catalogue import Catalogue
from harness.recipes.recipe import HEALTHY
from harness.submission.archive import SUFFIX

CLASS = Path(__file__).with_name("demo_class")
_EVERY = 10  # the number of submissions between two lines of progress
_FIRST = 6  # the number of submissions that are scored first, so that there is soon a page to look at
_STUDENT, _CASE, _ADDED = (
    "bjork",
    "a1",
    5.0,
)  # the decision of the demo: this student gets additional points for this case
_COMMENT = "In the office hour she named the cause at once."
_PLATFORMS: tuple[Format, ...] = ("moodle", "canvas")  # the platforms of the two assignments
_FORMATS: tuple[Format, ...] = ("csv", "json", "pages")
_COLUMNS = ("login", "name", "email", "section")
_TO_LOOK_AT = """
Open these two pages in a browser:
  {first}
  {second}
Look at these things: the flags "similar" and "other seed" (isaac handed in ada's file), the flag "other name" (maria's
file names joao), the rejected files, the points lost to lateness, the total that the instructor decided (bjork), and
similar.html in the same folder.
The submissions are in {submissions}. The exported files are in the folder export/ of the reports."""


class Planned(NamedTuple):
    """A submission that the demo makes for a student and a case.

    number: the position of the student in the class. kind: how the submission is made, as a word of
    `demo_class/class.csv`. of: with the kind "copy", the login of the student whose file is copied; with "as", the
    login under which the file is made; otherwise "". days: the number of days that the submission is late.
    """

    number: int
    login: str
    name: str
    case: str
    kind: str
    of: str
    days: int


@dataclass(frozen=True)
class _Week:
    """An assignment of the demo, with the paths of its files and the platform on which students hand in."""

    folder: Path
    course: Course
    assignment: Assignment
    platform: Format

    @property
    def submissions(self) -> Path:
        return self.folder / "submissions" / self.assignment.id

    @property
    def times(self) -> Path:
        return self.folder / f"{self.assignment.id}.times.csv"

    @property
    def reports(self) -> Path:
        return self.folder / "reports" / self.assignment.id


def run_demo(folder: Path, score: Callable[[Path, ScoreOptions], int], *, jobs: int) -> int:
    """Make a course in `folder`, score it, store a decision, score again, and export. Return the status of `score`.

    score: a function that scores a folder of submissions. Raises `UserError` if `folder` exists and is not an earlier
    demo.
    """
    marker = folder / ".demo"
    if folder.exists() and any(folder.iterdir()) and not marker.exists():
        raise UserError(f"{folder} exists and is not an earlier demo: choose another folder with --out.")
    for name in ("submissions", "work", "reports"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    marker.touch()
    say = partial(Console(stderr=True).print, markup=False, highlight=False, soft_wrap=True)
    file = write_course(folder)
    say("\n".join(check_course(file)))
    course = read_course(file)

    def score_week(week: _Week) -> int:
        words = f"--course {file} --assignment {week.assignment.id} --times {week.times} --out {week.reports}"
        say(f"\n$ grader score {week.submissions} {words}")
        return score(
            week.submissions,
            ScoreOptions(week.reports, jobs, course=file, assignment=week.assignment.id, times=week.times),
        )

    weeks = [
        _Week(folder, course, assignment, platform)
        for assignment, platform in zip(course.assignment, _PLATFORMS, strict=True)
    ]
    for week in weeks:
        note_kit(course, week.assignment)
    say("Making the first submissions, with a real run for each ...")
    make_class(weeks[0], jobs, say, most=_FIRST)
    score_week(weeks[0])
    say(
        f"\nYou can already open {weeks[0].reports / INDEX}, which shows the first submissions. To make no further"
        " submissions, press Ctrl-C."
    )
    shutil.rmtree(folder / "work")
    for week in weeks:
        say(f"\nMaking the submissions of {week.assignment.id} ...")
        make_class(week, jobs, say)
    shutil.rmtree(folder / "work", ignore_errors=True)
    status = max(score_week(week) for week in weeks)
    first = weeks[0].reports
    rows = (row for row in read_scores(first).submissions if not row.not_counting)
    # If the user pressed Ctrl-C, the submission of this student may be missing.
    for row in (row for row in rows if (row.student, row.recipe) == (_STUDENT, _CASE) and row.status == "graded"):
        keep_decision(first, Decision(submission=row.submission, add=_ADDED, comment=_COMMENT, who="demo"))
        say(f"\nDecision: {_STUDENT} gets {_ADDED:g} points more for {_CASE}. It is stored in {decisions_path(first)}.")
    score_week(weeks[0])
    for week in weeks:
        _export(week, file, say)
    pages = (str(week.reports / INDEX) for week in weeks)
    say(_TO_LOOK_AT.format(**dict(zip(("first", "second"), pages, strict=True)), submissions=folder / "submissions"))
    return status


def _export(week: _Week, file: Path, say: Callable[[str], object]) -> None:
    """Fill in the table of the platform, and export the scores in all formats that need no platform."""
    table = week.folder / f"{week.platform}.csv"
    table.write_bytes(csv_bytes(_table(week)))
    cases = tuple(case.id for case in week.assignment.case)
    filled = ExportOptions(out=week.reports, gradebook=table, course=file, exercises=cases)
    words = f" --gradebook {table} --course {file} --exercise {' --exercise '.join(cases)}"
    for platform, options in ((week.platform, filled), *((name, ExportOptions(out=week.reports)) for name in _FORMATS)):
        say(f"\n$ grader export --format {platform} --out {week.reports}{words if options is filled else ''}")
        run_export(platform, options)


def write_course(folder: Path) -> Path:
    """Write the course file and the roster to a folder, and return the path of the course file."""
    shutil.copyfile(CLASS / COURSE.name, folder / COURSE.name)
    lines = [[row[name] for name in _COLUMNS] for row in _students()]
    (folder / "roster.csv").write_bytes(csv_bytes([_COLUMNS, *lines]))
    return folder / COURSE.name


def _students() -> list[dict[str, str]]:
    with (CLASS / "class.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def plan_case(case: str) -> Iterator[Planned]:
    """Yield the submissions that the class hands in for a case."""
    for number, row in enumerate(_students()):
        if row[case]:
            words, _, days = row[case].partition("@")
            kind, _, of = words.partition(":")
            yield Planned(number, row["login"], row["name"], case, kind, of, int(days or 0))


def make_class(week: _Week, jobs: int, say: Callable[[str], object], most: int | None = None) -> None:
    """Write the submissions of an assignment, named as in the platform's download, and a CSV with their times.

    most: the maximum number of submissions to make. If the user presses Ctrl-C, only finished submissions are written.
    """
    cases = {case.id: case for case in week.course.cases(week.assignment)}
    plan = [item for case in cases for item in plan_case(case)]
    made: dict[tuple[str, str], Sequence[tuple[str, bytes]]] = {}
    own = [item for item in plan if item.kind != "copy"][:most]
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(_files, item, cases[item.case], week.folder / "work") for item in own]
        try:
            for item, files in zip(own, waiting, strict=True):
                made[item.login, item.case] = files.result()
                if len(made) % _EVERY == 0:
                    say(f"  {len(made)} of {len(plan)}")
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            say(f"  Stopped early, with {len(made)} of {len(plan)} submissions.")
    times = []
    for item in plan:
        for turn, (name, data) in enumerate(made.get((item.of if item.kind == "copy" else item.login, item.case), ())):
            place = (_in_moodle if week.platform == "moodle" else _in_canvas)(item, name, turn)
            path = week.submissions / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            # The time is some hours before the due date, or before the end of a late day. A second attempt is an hour
            # later.
            before = timedelta(hours=2 + 7 * item.number % 20 - turn)
            until = week.assignment.due.replace(tzinfo=week.course.zone) + timedelta(days=item.days)
            times.append((place, (until - before).isoformat()))
    week.times.write_bytes(csv_bytes([("file", "time"), *sorted(times)]))


def _files(item: Planned, case: Case, work: Path) -> list[tuple[str, bytes]]:
    """Make the files that a student hands in one after the other. Return the name and the content of each file."""
    sources = edits_of(case)
    if item.kind == "script":
        return [("experiment.py", sources["right"].encode())]
    folder = work / f"{item.login}_{item.case}"
    catalogue = Catalogue([case])
    template = broken_workspace(case.id, folder / "template", student=item.login, catalogue=catalogue)

    def make_file(kind: str) -> tuple[str, bytes]:
        name = item.of if item.kind == "as" else item.login
        report = partial(rewrite_report, number=item.number, mistaken=kind != "right")
        path = example_submission(
            case.id, name, sources[kind], template, folder / kind, folder, report=report, catalogue=catalogue
        )
        return path.name, path.read_bytes()

    if item.kind == "twice":
        return [make_file("wrong"), make_file("right")]
    name, data = make_file(item.kind if item.kind in sources else "right")
    if item.kind == "broken":
        data = data[: len(data) // 2]
    elif item.kind == "zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(name, data)
        name, data = f"{name.removesuffix(SUFFIX)}.zip", packed.getvalue()
    return [(name, data)]


def rewrite_report(report: str, *, number: int, mistaken: bool) -> str:
    """Return a report with its sentences replaced, so that each student of the demo has different sentences.

    report: a report that earns all points. mistaken: whether the new report names a wrong cause.
    number: the student's position in the class, below 49. It selects the sentences, so that the reports of two students
    share at most one sentence. If the report says that nothing is wrong, the new one has no facts, and has two short
    sentences that all such reports share.
    """
    _, matter, body = report.split("---\n", 2)
    row, column = divmod(number, 7)
    pools = tomllib.loads((CLASS / "sentences.toml").read_text(encoding="utf-8")).values()
    words = [pool[(row * place + column) % 7] for place, pool in enumerate(pools)]
    nothing_found = f"cause: {HEALTHY}" in matter and not mistaken
    if nothing_found:
        words[2:] = "I edited nothing.", "Equal runs."
    told = iter(words)
    paragraphs = body.split("\n\n")
    for at, paragraph in enumerate(paragraphs):
        if paragraph.strip()[:1] not in ("#", "`", ""):
            left_out = nothing_found or (mistaken and paragraph.startswith("In `"))
            facts = "" if left_out else paragraph.partition(": ")[2]
            paragraphs[at] = f"{next(told)} {facts[:1].upper()}{facts[1:]}".strip()
    return f"---\n{_mistaken(matter) if mistaken else matter}---\n" + "\n\n".join(paragraphs) + "\n"


def _mistaken(matter: str) -> str:
    """Return the front matter with a wrong diagnosis: the cause and a ruled-out cause are exchanged."""
    cause, *_, rival = re.findall(r"cause: (\w+)", matter)
    if cause != HEALTHY:
        return re.sub(
            rf"cause: ({cause}|{rival})\b", lambda match: f"cause: {rival if match[1] == cause else cause}", matter
        )
    found = re.findall(r"run: broken, (.*)}", matter)[0]
    wrong = f"cause: {rival}\n    where: build_model\n    first_wrong: {{{found}}}"
    return re.sub(rf"  - {{cause: {rival}.*\n", "", matter.replace(f"cause: {HEALTHY}", wrong))


def _in_moodle(item: Planned, name: str, turn: int) -> str:
    """Return the path that a file has in Moodle's download."""
    return f"{item.name}_{7000 + item.number}_assignsubmission_file/{name}"


def _in_canvas(item: Planned, name: str, turn: int) -> str:
    """Return the path that a file has in Canvas' download. If it is a second file for a case, its name has a number."""
    given, _, last = item.name.partition(" ")
    sender = re.sub(r"[\s'_-]", "", f"{last}{given}".lower())
    late = "_LATE" if item.days else ""
    stem, dot, ending = name.partition(".")
    again = f"-{turn}" if turn else ""
    return f"{sender}{late}_{500 + item.number}_{item.number}{item.case[1:]}{turn}_{stem}{again}{dot}{ending}"


def _table(week: _Week) -> Iterator[Sequence[str]]:
    """Yield the lines of the table that the platform exports before there are grades."""
    if week.platform == "canvas":
        yield "Student", "ID", "SIS User ID", "SIS Login ID", "Section", f"{week.assignment.title} (2002)"
        yield "    Points Possible", "", "", "", "", "20.00"
    else:
        yield (
            "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum grade", "Last modified (grade)",
            "Feedback comments",
        )  # fmt: skip
    for number, row in enumerate(_students()):
        if week.platform == "canvas":
            yield row["name"], f"{500 + number}", "", row["login"], row["section"], ""
        else:
            yield f"Participant {7000 + number}", row["name"], row["email"], "", "", "20.00", "-", ""
