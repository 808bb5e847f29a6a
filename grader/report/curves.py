"""The curves of a submission: the broken, the fixed and the reference run, drawn together."""

from collections.abc import Iterable
from functools import lru_cache

from grader.score.exhibits import Curve, Number
from harness.page.chart_paths import Marker, Point
from harness.page.charts import COMPACT, LineChart, Series, line_chart
from harness.page.run_page_data import number

# Colour and dashes of each run; the first two are those of the student's own run.html.
_LOOKS = {"broken": 1, "fixed": 0, "reference": 2}
_MOST = 2**53  # beyond it a step is no whole number of a float any more


@lru_cache(maxsize=256)  # many hand in the same fix
def curve_charts(curves: tuple[Curve, ...]) -> tuple[LineChart, ...]:
    """Return training loss by step, and validation loss and accuracy by epoch, of what was recorded."""
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


def _series(curve: Curve, points: Iterable[tuple[int, Number]]) -> Series:
    positions: list[Point] = [
        (x, number(y)) for x, y in sorted(points, key=lambda point: point[0]) if abs(x) < _MOST
    ]
    look = _LOOKS[curve.run]
    marker: Marker | None = "dot" if len(positions) <= 40 else None
    return Series(label=curve.run, points=positions, tone=look, dash=look, marker=marker)
