"""`<submission>.html`: one submission, to hand to the student; a pure view of its score and exhibits."""

from collections.abc import Mapping
from dataclasses import dataclass

from grader.report.code_lines import highlighted_lines, plain_lines
from grader.report.curves import curve_charts
from grader.report.page_template import render
from grader.report.source_diff import SourceDiff, source_diff
from grader.report.student_markdown import shown_report
from grader.report.text import MISSING
from grader.score.exhibits import Exhibits, Number
from grader.score.verdict import Criterion, CriterionScore, SubmissionScore
from harness.page.chart_axes import number_text
from harness.page.run_page_data import number

Facts = Mapping[str, str | int | float | bool | None]


@dataclass(frozen=True)
class JudgedCriterion:
    """A criterion under its name, and how much of it is earned: 0 to 1, None while it is open."""

    name: Criterion
    score: CriterionScore
    share: float | None


def render_submission_page(
    row: SubmissionScore, exhibits: Exhibits | None, *, recipe_title: str, provenance: Facts
) -> str:
    """Return the page. `provenance` is that of the whole class; exhibits that are missing are left out."""
    exhibits = exhibits or Exhibits(
        submission=row.submission, broken_source=None, fixed_source=None, report=None
    )
    facts = {**row.provenance, **provenance}
    return render(
        "submission.html.j2",
        {
            "row": row,
            "recipe_title": recipe_title,
            "criteria": _criteria(row),
            "warning": facts.get("warning"),
            "exhibits": exhibits,
            "diff": _diff(exhibits),
            "source": _source(exhibits),
            "charts": curve_charts(exhibits.curves),
            "measurements": [(one, measured(one.value)) for one in exhibits.measurements],
            "report": None if exhibits.report is None else shown_report(exhibits.report),
            "provenance": sorted(facts.items()),
        },
        pictures=True,
    )


def measured(value: Number) -> str:
    """Return a measured number in six digits, by its name where it is not finite, a dash where there is none."""
    figure = number(value)
    return MISSING if figure is None else number_text(figure)


def _criteria(row: SubmissionScore) -> list[JudgedCriterion]:
    return [
        JudgedCriterion(name, score, None if score.points is None else score.points / max(score.max, 1e-9))
        for name, score in row.criteria.items()
    ]


def _diff(exhibits: Exhibits) -> SourceDiff | None:
    if exhibits.broken_source is None or exhibits.fixed_source is None:
        return None
    return source_diff(exhibits.broken_source, exhibits.fixed_source)


def _source(exhibits: Exhibits) -> tuple[str, ...]:
    """Return the lines of the fixed experiment where there is nothing to compare it with."""
    if exhibits.broken_source is not None or exhibits.fixed_source is None:
        return ()
    return highlighted_lines(tuple(plain_lines(exhibits.fixed_source)))
