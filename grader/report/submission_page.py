"""Render `<submission>.html`: one submission's score and what it rests on, to hand to the student."""

from collections.abc import Iterable, Mapping

from grader.report.markdown import shown_report
from grader.report.template import pill, render
from grader.report.text import MISSING, clipped, plain_lines, source_diff
from grader.score.identity import own_flags
from grader.score.verdict import Exhibits, Number, SubmissionScore
from harness.page.charts import number_text
from harness.page.run_data import number

Facts = Mapping[str, str | int | float | bool | None]


def render_submission(
    row: SubmissionScore, exhibits: Exhibits | None, *, title: str = "", provenance: Facts | None = None
) -> str:
    """Return the page as HTML: a pure function, the same bytes for the same input.

    exhibits: what the page shows beside the score; with None it shows the score alone. title: the recipe's.
    provenance: the provenance of the whole class; a "warning" in it stands on top.
    """
    row = row.model_copy(update={"flags": own_flags(row)})
    exhibits = exhibits or Exhibits(submission=row.submission)
    facts = {**row.provenance, **(provenance or {})}
    broken, fixed = exhibits.broken_source, exhibits.fixed_source
    compared = broken is not None and fixed is not None
    diff = source_diff(broken or "", fixed or "") if compared else None
    kinds = [line[0] for line in diff or ()]
    return render(
        "submission.html.j2",
        {
            "row": row,
            "title": title,
            "warning": facts.get("warning"),
            "exhibits": exhibits,
            "findings": [
                (clipped(one.caption, 200), _cells([one.columns], 60)[0], _cells(one.rows[:200], 400))
                for one in exhibits.findings
            ],
            "diff": diff,
            "removed": kinds.count("-"),
            "added": kinds.count("+"),
            "source": [] if compared else plain_lines(fixed or ""),
            "measurements": [
                (
                    clipped(one.name, 300), measured(one.value), clipped(one.wanted, 200),
                    pill("met", "good") if one.good else pill("not met", "bad"),
                )
                for one in exhibits.measurements
            ],
            "report": None if exhibits.report is None else shown_report(exhibits.report),
            "provenance": fact_rows(facts),
        },
        pictures=True,
    )  # fmt: skip


def fact_rows(facts: Facts) -> list[tuple[str, str]]:
    """Return the rows of a table of provenance, sorted by name."""
    return [
        (clipped(name, 200), MISSING if value is None else clipped(str(value), 2000))
        for name, value in sorted(facts.items())
    ]


def measured(value: Number | str) -> str:
    """Return an outcome as it is, a number with six digits, its name if it is not finite, a dash for None."""
    if isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        return clipped(value, 100)
    figure = number(value)
    return MISSING if figure is None else number_text(figure)


def _cells(rows: Iterable[Iterable[str]], limit: int) -> list[list[str]]:
    return [[clipped(cell, limit) for cell in row] for row in rows]
