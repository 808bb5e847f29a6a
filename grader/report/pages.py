"""Render the HTML pages: `index.html` about the class, a page for each submission, and a page for each student."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from statistics import fmean, median
from typing import get_args

from markupsafe import Markup

from grader.replay.replay import JsonNumber
from grader.report.class_statistics import ITEM_COLUMNS, People, item_cells, items, matrix
from grader.report.markdown import shown_report
from grader.report.standing import StudentStanding
from grader.report.text import (
    MISSING,
    clip,
    file_stem,
    late_words,
    pill,
    plain_lines,
    points,
    render,
    render_pieces,
    source_diff,
    tenths,
)
from grader.score.attachments import Attachments
from grader.score.deadlines import Schedule, local_time
from grader.score.identity import SAME_STUDENT, own_flags
from grader.score.similarity import NOTHING_ALIKE, Likeness, groups_of
from grader.score.verdict import ABSENT, RowStatus, RubricItem, Scores, SubmissionScore, criteria_in
from harness.page.charts import WIDE, ChartSource, DrawnLine, LineChart, Mark, make_axis
from harness.page.run_data import number
from harness.recipes.personal import login
from harness.run.signals import number_text

# The first and the last line of a regrade request. `grader.course.requests` looks for these lines in mails.
REQUEST_BEGINS, REQUEST_ENDS = "-- regrade request --", "-- end of request --"
_BIN = 10  # the number of points that each bar of the histogram covers
_PLOT_HEIGHT = 200  # of the histogram, in units of its view box
_NAME_LIMIT = 80  # the maximum length of a recipe's name on the class page, whose filter compares these shortened names
_REASON_LIMIT = 500
_MOST_CRITERIA = 5  # if a rubric has more criteria than this, only the gradebook shows the criteria
_MOST_PAIRS = 200  # the maximum number of pairs of similar texts on a page
Facts = Mapping[str, str | int | float | bool | None]


@dataclass(frozen=True)
class PageRow:
    """A line in the table of submissions. It contains the score, and other values that the table shows.

    name: the student's name from the roster, or "". page: the file name of the submission's page. criteria: the points
    of each criterion; None if they are open, or if the rubric does not contain the criterion. arrival: the time of
    submission, and whether the submission counts.
    """

    score: SubmissionScore
    name: str
    recipe: str
    page: str
    criteria: tuple[float | None, ...]
    arrival: str


def render_class_page(
    scores: Scores, likeness: Likeness = NOTHING_ALIKE, people: People | None = None
) -> Iterator[str]:
    """Return the class page as HTML, in pieces. If there is similar work, this page links to `similar.html`.

    people: the name and the section of each student, by login (`harness.recipes.personal.login`).
    """
    people = people or {}
    every = criteria_in(scores.submissions)
    criteria = every if len(every) <= _MOST_CRITERIA else ()
    # Sort by name first, so that all rows of a student are together, even if the file names differ.
    shown = [row for row in scores.submissions if row.status != "not drawn"]
    by_name = sorted(shown, key=lambda row: (row.student or row.submission, row.recipe, row.submission))
    rows = [
        PageRow(
            score=row,
            name=people.get(login(row.student or ""), ("", ""))[0],
            recipe=clip(row.recipe, _NAME_LIMIT),
            page=f"{file_stem(row.submission)}.html",
            criteria=tuple(row.criteria[name].points if name in row.criteria else None for name in criteria),
            arrival=_shortly(row, scores.zone),
        )
        for row in by_name
    ]
    # The statistics of the class leave out attempts that do not count, and files whose student is unknown.
    counting = [row for row in scores.submissions if not row.not_counting]
    totals = [row.total for row in counting if row.status == "graded" and row.total is not None]
    statuses = Counter(row.status for row in shown)
    return render_pieces(
        "index.html.j2",
        {
            "rows": rows,
            "criteria": criteria,
            "counts": {
                status: statuses[status] for status in get_args(RowStatus) if statuses[status] or status not in ABSENT
            },
            "mean": fmean(totals) if totals else None,
            "median": median(totals) if totals else None,
            "bars": histogram(totals),
            "when": when_chart(replace(scores, submissions=tuple(counting))),
            "hardest": hardest(counting),
            "left_out": len(scores.submissions) - len(counting),
            "schedule": scores.schedule,
            **_by_student(scores, people),
            "item_columns": ITEM_COLUMNS,
            "items": _cells(map(item_cells, items(scores)), 60),
            "plot_height": _PLOT_HEIGHT,
            "mean_columns": ["Exercise", "n", "Total", *(name.capitalize() for name in every)],
            "means": [(clip(recipe, 60), graded, *map(tenths, figures)) for recipe, graded, figures in means(counting)],
            "lost": item_losses(counting),
            "groups": list(_groups(rows)),
            "recipes": sorted({row.recipe for row in rows if row.recipe}),
            "changes": [_wait_notes(one.submission, f"{one.before} → {one.after}", one.why) for one in scores.changes],
            "upgrade": clip(scores.upgrade, _REASON_LIMIT),
            "unfit": [one for one in scores.decisions if one.state == "not applied"],
            "decisions": [
                _wait_notes(
                    one.submission,
                    f"{one.about}: {one.says}. {one.comment}",
                    " · ".join(
                        word for word in (one.who, format_decision_time(one.when, scores.zone), one.state) if word
                    ),
                )
                for one in scores.decisions
            ],
            "provenance": fact_rows(scores.provenance),
            "warning": scores.provenance.get("warning"),
            "groups_alike": len(groups_of(likeness.pairs)),
            "similar": likeness != NOTHING_ALIKE,
        },
        script="index.js",
    )


def _by_student(scores: Scores, people: People) -> dict[str, object]:
    """Return two tables for the template: one of students by exercise, and one of sections."""
    columns, lines, sections = matrix(scores, people)
    return {
        "matrix_columns": [clip(name, 40) for name in columns],
        "matrix": _cells(lines, 80),
        "sections": _cells(sections, 40) if len(sections) > 1 else [],
    }


def render_similar_page(likeness: Likeness) -> str:
    """Return the page of similar work as HTML: pairs of similar texts, and passages that many students have."""
    groups = groups_of(likeness.pairs)
    left = _MOST_PAIRS
    shown = []
    for group in groups:
        shown.append((group, group.pairs[:left], len(group.pairs[left:]) + group.more))
        left = max(left - len(group.pairs), 0)
    return render("similar.html.j2", {"groups": shown, "common": likeness.common, "stem": file_stem})


def histogram(totals: Iterable[float]) -> list[tuple[int, float]]:
    """Return the number of submissions and the height of each of ten bars, from 0 to 100 points.

    The highest bar has the height of the plot.
    """
    last = 100 // _BIN - 1  # its bar includes 100
    counts = Counter(min(max(int(total // _BIN), 0), last) for total in totals)
    most = max(counts.values(), default=1)
    return [(counts[bar], round(counts[bar] / most * _PLOT_HEIGHT, 1)) for bar in range(last + 1)]


def means(rows: Sequence[SubmissionScore]) -> list[tuple[str, int, list[float | None]]]:
    """Return a line for each recipe, and a last line for all recipes together.

    A line contains the recipe, the number of graded submissions, and the mean total and mean points of each criterion.
    """
    every = criteria_in(rows)
    graded = [
        (row.recipe, [row.total, *(row.criteria[name].points if name in row.criteria else None for name in every)])
        for row in rows
        if row.status == "graded"
    ]
    groups = [
        *((name, [one for recipe, one in graded if recipe == name]) for name in sorted({name for name, _ in graded})),
        ("All exercises", [one for _, one in graded]),
    ]
    return [
        (recipe, len(group), [_mean(figures[at] for figures in group) for at in range(1 + len(every))])
        for recipe, group in groups
    ]


def item_losses(rows: Sequence[SubmissionScore]) -> list[tuple[str, str, str, int]]:
    """Return one line for each rubric item, the item on which submissions lost points most often first.

    A line contains the name, the number of submissions that lost points, the mean loss, and the number of submissions
    in which the item is open.
    """
    titles: dict[str, str] = {}
    missing: dict[str, list[float | None]] = defaultdict(list)
    for row in rows:
        for name in criteria_in([row]):
            for check in row.criteria[name].checks if name in row.criteria else ():
                titles.setdefault(f"{name}.{check.id}", check.title)
                missing[f"{name}.{check.id}"].append(None if check.points is None else check.max - check.points)
    ranked = []
    for address, every in missing.items():
        judged = [points for points in every if points is not None]
        lost = sum(points > 0 for points in judged)
        mean, share = (fmean(judged), lost / len(judged)) if judged else (0.0, 0.0)
        name = f"{clip(titles[address], 200)} ({address})"
        line = (name, f"{lost} of {len(judged)}", tenths(mean), len(every) - len(judged))
        ranked.append(((-share, -mean), line))
    return [line for _, line in sorted(ranked, key=lambda item: item[0])]


def hardest(rows: Sequence[SubmissionScore]) -> list[tuple[str, int, str, str]]:
    """Return one line for each recipe, the recipe with the lowest median total first.

    A line contains the name, the number of submissions, the median total, and the number of correct fixes.
    """
    ranked = []
    for recipe in sorted({row.recipe for row in rows if row.recipe}):
        found = [row for row in rows if row.recipe == recipe and row.is_there]
        totals = [row.total for row in found if row.status == "graded" and row.total is not None]
        fixes = (check for row in found if "fix" in row.criteria for check in row.criteria["fix"].checks)
        judged = [check.outcome == "passed" for check in fixes if check.id == "correct" and check.points is not None]
        middle, share = median(totals) if totals else None, fmean(judged) if judged else None
        fixed = f"{sum(judged)} of {len(judged)}" if judged else MISSING
        order = (101.0 if middle is None else middle, 1.0 if share is None else share)
        ranked.append((order, (clip(recipe, 60), len(found), tenths(middle), fixed)))
    return [line for _, line in sorted(ranked, key=lambda item: item[0])]


def when_chart(scores: Scores) -> LineChart | None:
    """Return a chart of the total points against the time of submission, or None if no time is known.

    The time is in hours after the student's due date. Without a course, it is in hours after the first submission.
    """
    schedule = scores.schedule
    found = [
        (row.arrival.submitted_at, row.student, row.total)
        for row in scores.submissions
        if row.status == "graded" and row.total is not None and row.arrival and row.arrival.submitted_at
    ]
    if not found:
        return None
    first = min(moment for moment, _, _ in found)
    points = [
        ((moment - (schedule.deadline(student) if schedule else first)).total_seconds() / 3600, total)
        for moment, student, total in found
    ]
    x_axis, y_axis = make_axis([0.0, *(x for x, _ in points)]), make_axis([0.0, 100.0, *(y for _, y in points)])
    left, right, top, bottom = LineChart.left, WIDE - 10, LineChart.top, LineChart.bottom

    def across(share: float) -> float:
        return round(left + share * (right - left), 1)

    def down(share: float) -> float:
        return round(bottom - share * (bottom - top), 1)

    places = sorted({(across(x_axis.position(x)), down(y_axis.position(y))) for x, y in points})
    late = sum(x > 0 for x, _ in points)
    return LineChart(
        identifier="when",
        title="Time of submission against total",
        signal="",
        description=f"{len(points)} submissions{f', {late} of them after the due date' if schedule else ''}.",
        x_label="hours after the due date" if schedule else f"hours after {local_time(first, scores.zone)}",
        y_label="total points",
        x_ticks=tuple((across(at), label) for at, label in x_axis.ticks),
        y_ticks=tuple((down(at), label) for at, label in y_axis.ticks),
        lines=(DrawnLine("", 0, "", 0, 0, path="", dots="".join(f"M{x} {y}h0" for x, y in places), dots_below=0),),
        marks=(Mark(across(x_axis.position(0.0)), "due", 1),) if schedule else (),
        message="",
        width=WIDE,
        source=ChartSource((), (), "", log=False, extent=None),
    )


def _shortly(row: SubmissionScore, zone: tzinfo) -> str:
    """Return a few words: when a submission arrived, whether it is late, and whether it counts if there are several."""
    words = [local_time(row.arrival.submitted_at, zone)] if row.arrival and row.arrival.submitted_at else []
    words += ["late"] if row.late or (row.arrival and row.arrival.late) else []
    several = any(flag.id == SAME_STUDENT for flag in row.flags)
    words += ["does not count"] if row.not_counting else ["counts"] if several else []
    return ", ".join(words)


def arrival_words(row: SubmissionScore, zone: tzinfo = UTC) -> str:
    """Return sentences that say how a submission arrived and whether it counts. They do not mention other students."""
    words = []
    if arrival := row.arrival:
        sender = " and ".join(one.name or one.email or one.id for one in arrival.senders)
        when = "The time of submission is unknown."
        if arrival.submitted_at is not None:
            when = f"Handed in at {local_time(arrival.submitted_at, zone, seconds=True)} ({arrival.time_from})."
        words = [f"{arrival.senders[0].platform}: sent by {sender}." if sender else "", when]
        words += [f"{arrival.senders[0].platform} marks it as late."] if arrival.late else []
    words += [late_words(row.late)] if row.late else []
    if row.not_counting:
        words.append(f"The submission does not count: {row.not_counting}")
    elif row.status != "rejected":
        words.append("The submission counts.")
    return " ".join(filter(None, words))


def format_decision_time(when: str, zone: tzinfo) -> str:
    """Return the time of a decision in the format of the pages. Return a text that is not an ISO time unchanged."""
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        return when
    return local_time(moment, zone) if moment.tzinfo else when


def _groups(rows: Sequence[PageRow]) -> Iterator[tuple[str, list[tuple[PageRow, str]]]]:
    """Yield the title and the rows of each group that the instructor should look at.

    The groups are open items, rejected files, one group for each flag, and decided items. Each row has an explanation.
    """
    checks = [
        (row, f"{name}.{check.id}", check)
        for row in rows
        for name, criterion in row.score.criteria.items()
        for check in criterion.checks
        if check.points is None or check.rule is not None
    ]
    waiting = [
        (row, f"{where}: {check.reason}")
        for row, where, check in checks
        if check.points is None and row.score.status == "not judged"
    ]
    named = {row.score.submission for row, _ in waiting}
    waiting += [
        (row, row.score.reason)
        for row in rows
        if row.score.status == "not judged" and row.score.submission not in named
    ]
    rejected = [(row, row.score.reason) for row in rows if row.score.status == "rejected"]
    flags: dict[str, list[tuple[PageRow, str]]] = {}
    for row in rows:
        for flag in row.score.flags:
            flags.setdefault(flag.id, []).append((row, flag.message))
    decided = [
        (row, f"{where}: {points(check.points)} of {points(check.max)}; the rubric gave {by_rule}. {check.comment}")
        for row, where, check in checks
        if check.rule is not None and (by_rule := points(check.rule.points))
    ]
    decided += [(row, row.score.reason) for row in rows if row.score.rule is not None]
    for title, lines in (
        ("Open: decide these with grader review, then run grader score again", waiting),
        ("Rejected: the grader cannot read the archive", rejected),
        *((f"Flag: {clip(id, 100).replace('_', ' ')}", flagged) for id, flagged in sorted(flags.items())),
        ("Decided by an instructor", decided),
    ):
        if lines:
            yield title, [(row, clip(words, _REASON_LIMIT)) for row, words in lines]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def render_submission(
    row: SubmissionScore,
    attachments: Attachments | None,
    *,
    title: str = "",
    provenance: Facts | None = None,
    schedule: Schedule | None = None,
    work: Markup | None = None,
) -> str:
    """Return the page of a submission as HTML. The same input always gives the same bytes.

    attachments: everything that the page shows in addition to the score; if None, the page shows only the score.
    title: the title of the recipe.
    provenance: versions and hashes that are the same for the whole class. If it has a "warning", the page shows it
    first.
    schedule: the dates of the assignment. If it is given, the page says when the student may see the page.
    work: for a student's page, the sections with the submitted files, which the page shows instead of the attachments.
    """
    row = replace(row, flags=own_flags(row))
    attachments = attachments or Attachments(submission=row.submission)
    facts = {**row.provenance, **(provenance or {})}
    broken, fixed = attachments.broken_source, attachments.fixed_source
    compared = broken is not None and fixed is not None
    diff = source_diff(broken or "", fixed or "") if compared else None
    kinds = [line[0] for line in diff or ()]
    return render(
        "submission.html.j2",
        {
            "row": row,
            "arrival": arrival_words(row, schedule.zone if schedule else UTC),
            "schedule": schedule,
            "work": work,
            "title": title,
            "warning": facts.get("warning"),
            "attachments": attachments,
            "findings": [
                (clip(one.caption, 200), _cells([one.columns], 60)[0], _cells(one.rows[:200], 400))
                for one in attachments.findings
            ],
            "lost": lost_points(row),
            "questions": attachments.questions,
            "request": _request_form(row) if row.criteria and row.submission.isprintable() else "",
            "diff": diff,
            "removed": kinds.count("-"),
            "added": kinds.count("+"),
            "source": [] if compared else plain_lines(fixed or ""),
            "measurements": [
                (
                    clip(one.name, 300), format_measurement(one.value), clip(one.wanted, 200),
                    pill("met", "good") if one.good else pill("not met", "bad"),
                )
                for one in attachments.measurements
            ],
            "report": None if attachments.report is None else shown_report(attachments.report),
            "provenance": fact_rows(facts),
        },
        pictures=True,
    )  # fmt: skip


def _request_form(row: SubmissionScore) -> str:
    """Return the text that a student fills in to ask for a regrade of a submission."""
    file = str(row.provenance.get("tarball_sha256") or "")[:12]
    lines = (REQUEST_BEGINS, f"submission: {row.copy_of or row.submission}", f"file: {file}", "about: ", "why: ")
    return "\n".join((*lines, REQUEST_ENDS))


def lost_points(row: SubmissionScore) -> list[tuple[str, RubricItem | None]]:
    """Return a pair (criterion, item) for each item that lost points, the largest loss first.

    If a limit of the rubric costs points, the list contains ("limit", None). If lateness costs points, it contains
    ("late", None).
    """
    every = ((name, check) for name, criterion in row.criteria.items() for check in criterion.checks)
    lost: list[tuple[float, str, RubricItem | None]] = [
        (check.max - (check.points or 0.0), name, check)
        for name, check in every
        if check.points is None or check.points < check.max
    ]
    lost += [(row.withheld, "limit", None)] if row.limit else []
    lost += [(row.late.cost, "late", None)] if row.late else []
    return [(name, check) for _, name, check in sorted(lost, key=lambda one: -one[0])]


# Matches a tag. In our pages, "<" in a text and quotes in an attribute are always escaped.
_TAG = re.compile(r"""(<[a-z](?:"[^"]*"|[^">])*>)""")
_ADDRESS = re.compile(r"""( (?:id|for|aria-labelledby|aria-describedby)="| href="#)([^"]+")""")


def render_student(student: StudentStanding, page: Callable[[SubmissionScore], str]) -> str:
    """Return a page that shows a student's status in each exercise, and all submissions that count.

    page: a function that returns the page of a submission as HTML.
    """
    parts = []
    for place, (exercise, standing) in enumerate(student.exercises.items(), start=1):
        main = page(standing.row).partition("<main>")[2].rpartition("</main>")[0] if standing.row else ""
        # The pages of all submissions use the same ids, so add a number to each id. Texts are escaped already.
        apart = rf"\g<1>{place}-\2"
        shown = Markup("".join(_ADDRESS.sub(apart, one) if one[:1] == "<" else one for one in _TAG.split(main)))
        parts.append((place, exercise, standing.words, shown))
    return render("student.html.j2", {"student": student.name, "parts": parts}, pictures=True)


def fact_rows(facts: Facts) -> list[tuple[str, str]]:
    """Return the rows of the provenance table, sorted by name."""
    return [
        (clip(name, 200), MISSING if value is None else clip(str(value), 2000)) for name, value in sorted(facts.items())
    ]


def format_measurement(value: JsonNumber | str) -> str:
    """Return a measured value as text: an outcome unchanged, a number with six digits, and None as a dash."""
    if isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        return clip(value, 100)
    figure = number(value)
    return MISSING if figure is None else number_text(figure)


def _wait_notes(*cells: str) -> list[str]:
    return [clip(cell, _REASON_LIMIT) for cell in cells]


def _cells(rows: Iterable[Iterable[str]], limit: int) -> list[list[str]]:
    return [[clip(cell, limit) for cell in row] for row in rows]
