from grader.report.curves import curve_charts
from grader.score.exhibits import Curve

BROKEN = Curve(
    run="broken",
    loss=((0, 2.3), (1, 80.0), (2, "NaN"), (3, "Infinity"), (4, None)),
    validation=((0, "NaN", 0.1), (1, "NaN", 0.1)),
)
FIXED = Curve(run="fixed", loss=((0, 2.3), (1, 1.0)), validation=((0, 0.5, 0.8), (1, 0.2, 0.95)))


def test_all_runs_are_in_one_plot_on_a_log_axis() -> None:
    reference = FIXED.model_copy(update={"run": "reference"})
    loss, val_loss, accuracy = curve_charts((BROKEN, FIXED, reference))
    for chart in (loss, val_loss, accuracy):
        assert [one.key for one in chart.series] == ["broken", "fixed", "reference"]
        assert len({one.tone for one in chart.series}) == len({one.dash for one in chart.series}) == 3
    assert loss.y_label.endswith("log axis")
    assert val_loss.y_label.endswith("log axis")
    assert "log" not in accuracy.y_label


def test_what_is_not_finite_is_marked() -> None:
    loss, val_loss, _ = curve_charts((BROKEN, FIXED))
    assert [mark.label for mark in loss.marks] == ["first NaN: step 2"]
    assert [mark.label for mark in val_loss.marks] == ["first NaN: epoch 0"]
    assert loss.bands


def test_points_in_disorder_and_absurd_steps_are_no_fault() -> None:
    curve = FIXED.model_copy(update={"loss": ((10**400, 1.0), (5, 2.0), (-(10**30), 1.0), (1, 3.0))})
    loss, *_ = curve_charts((curve,))
    assert loss.x_ticks[0][1] == "1"
    assert "from 3 at step 1 to 2 at step 5" in loss.description


def test_no_curve_no_chart() -> None:
    assert curve_charts(()) == ()
    assert curve_charts((Curve(run="fixed", loss=(), validation=()),)) == ()
    assert len(curve_charts((Curve(run="fixed", loss=((0, 1.0),), validation=((0, 1.0, None),)),))) == 2
