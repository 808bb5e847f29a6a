"""Render `<submission>.html`: one submission's score and what it rests on, to hand to the student."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from grader.report.markdown import shown_report
from grader.report.template import pill, render
from grader.report.text import MISSING, clipped, plain_lines, source_diff
from grader.score.exhibits import Curve, Exhibits, Number
from grader.score.identity import own_flags
from grader.score.verdict import SubmissionScore
from harness.page.charts import COMPACT, LineChart, Point, Series, line_chart, number_text
from harness.page.run_data import number

Facts = Mapping[str, str | int | float | bool | None]

# Colour and dashes of each run; broken and fixed look as in the student's own run.html.
_LOOKS = {"broken": 1, "fixed": 0, "reference": 2}
_MOST_STEPS = 2**53  # a float cannot hold every whole number beyond this


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
    kinds = [line.kind for lines in diff or () for line in lines]
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
            "removed": kinds.count("removed"),
            "added": kinds.count("added"),
            "source": [] if compared else plain_lines(fixed or ""),
            "charts": curve_charts(exhibits.curves),
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


@lru_cache(maxsize=256)  # many students hand in the same fix
def curve_charts(curves: tuple[Curve, ...]) -> tuple[LineChart, ...]:
    """Return charts of training loss by step, and of validation loss and accuracy by epoch, all runs together."""
    loss = [_series(curve, curve.loss) for curve in curves]
    val_loss = [_series(curve, ((epoch, loss) for epoch, loss, _ in curve.validation)) for curve in curves]
    accuracy = [_series(curve, ((epoch, right) for epoch, _, right in curve.validation)) for curve in curves]
    charts = (
        line_chart(
            "training-loss", "Training loss", loss, y_label="loss of the batch", scale="log", width=COMPACT
        ),
        line_chart(
            "validation-loss", "Validation loss", val_loss,
            x_label="epoch", y_label="loss", scale="log", width=COMPACT,
        ),
        line_chart(
            "validation-accuracy", "Validation accuracy", accuracy,
            x_label="epoch", y_label="fraction correct", include=(0.0, 1.0), width=COMPACT,
        ),
    )  # fmt: skip
    return tuple(chart for chart in charts if chart)


def _series(curve: Curve, points: Iterable[tuple[int, Number]]) -> Series:
    positions: list[Point] = [
        (x, number(y)) for x, y in sorted(points, key=lambda point: point[0]) if abs(x) < _MOST_STEPS
    ]
    return Series(curve.run, positions, tone=_LOOKS[curve.run], dash=_LOOKS[curve.run])


def _cells(rows: Iterable[Iterable[str]], limit: int) -> list[list[str]]:
    return [[clipped(cell, limit) for cell in row] for row in rows]
