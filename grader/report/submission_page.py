"""Render `<submission>.html`: one submission's score and what it rests on, to hand to the student."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from grader.report.markdown import shown_report
from grader.report.source_code import highlighted_lines, plain_lines, source_diff
from grader.report.template import render
from grader.report.text import MISSING
from grader.score.exhibits import Curve, Exhibits, Number
from grader.score.verdict import CriterionScore, SubmissionScore
from harness.page.charts import COMPACT, LineChart, Marker, Point, Series, line_chart, number_text
from harness.page.run_data import number

Facts = Mapping[str, str | int | float | bool | None]

# Colour and dashes of each run; broken and fixed look as in the student's own run.html.
_LOOKS = {"broken": 1, "fixed": 0, "reference": 2}
_MOST_STEPS = 2**53  # a float cannot hold every whole number beyond this
_DOTS_UP_TO = 40  # points of a curve


def render_submission(
    row: SubmissionScore, exhibits: Exhibits | None, *, title: str = "", provenance: Facts | None = None
) -> str:
    """Return the page as HTML: a pure function, the same bytes for the same input.

    exhibits: what the page shows beside the score; with None it shows the score alone. title: the recipe's.
    provenance: that of the whole class; a "warning" in it stands on top.
    """
    exhibits = exhibits or Exhibits(
        submission=row.submission, broken_source=None, fixed_source=None, report=None
    )
    facts = {**row.provenance, **(provenance or {})}
    broken, fixed = exhibits.broken_source, exhibits.fixed_source
    compared = broken is not None and fixed is not None
    return render(
        "submission.html.j2",
        {
            "row": row,
            "title": title,
            "criteria": [(name, score, _share(score)) for name, score in row.criteria.items()],
            "warning": facts.get("warning"),
            "exhibits": exhibits,
            "diff": source_diff(broken or "", fixed or "") if compared else None,
            "source": () if compared else highlighted_lines(tuple(plain_lines(fixed or ""))),
            "charts": curve_charts(exhibits.curves),
            "measurements": [(one, measured(one.value)) for one in exhibits.measurements],
            "report": None if exhibits.report is None else shown_report(exhibits.report, exhibits.numbers),
            "provenance": sorted(facts.items()),
        },
        pictures=True,
    )


def measured(value: Number | str) -> str:
    """Return an outcome as it is, a number with six digits, its name if it is not finite, a dash for None."""
    if isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        return value
    figure = number(value)
    return MISSING if figure is None else number_text(figure)


@lru_cache(maxsize=256)  # many students hand in the same fix
def curve_charts(curves: tuple[Curve, ...]) -> tuple[LineChart, ...]:
    """Return charts of training loss by step, and of validation loss and accuracy by epoch, all runs together."""
    charts = (
        line_chart(
            "training-loss",
            "Training loss",
            [_series(curve, curve.loss) for curve in curves],
            y_label="loss of the batch",
            scale="log",
            frame=COMPACT,
        ),
        line_chart(
            "validation-loss",
            "Validation loss",
            [_series(curve, ((epoch, loss) for epoch, loss, _ in curve.validation)) for curve in curves],
            y_label="loss",
            x_label="epoch",
            scale="log",
            frame=COMPACT,
        ),
        line_chart(
            "validation-accuracy",
            "Validation accuracy",
            [_series(curve, ((epoch, right) for epoch, _, right in curve.validation)) for curve in curves],
            y_label="fraction correct",
            x_label="epoch",
            include=(0.0, 1.0),
            frame=COMPACT,
        ),
    )
    return tuple(chart for chart in charts if chart)


def _share(score: CriterionScore) -> float | None:
    """Return how much of a criterion is earned, 0 to 1; None while a check is open."""
    return None if score.points is None else score.points / max(score.max, 1e-9)


def _series(curve: Curve, points: Iterable[tuple[int, Number]]) -> Series:
    positions: list[Point] = [
        (x, number(y)) for x, y in sorted(points, key=lambda point: point[0]) if abs(x) < _MOST_STEPS
    ]
    look = _LOOKS[curve.run]
    marker: Marker | None = "dot" if len(positions) <= _DOTS_UP_TO else None
    return Series(label=curve.run, points=positions, tone=look, dash=look, marker=marker)
