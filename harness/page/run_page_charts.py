"""Which charts the page of a run shows: the signals of metrics.log, of one run or of two drawn together."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.page.chart_axes import make_axis
from harness.page.chart_paths import Marker, Point
from harness.page.charts import COMPACT, LineChart, Series, line_chart
from harness.page.run_page_data import Record, RunFiles, look_up

Read = Callable[[Record], float | None]


@dataclass(frozen=True)
class Quantity:
    """Something that a record holds, and how its line looks; `label` is empty where a chart has only one."""

    label: str
    read: Read
    marker: Marker | None = None
    line: bool = True


def loss_charts(runs: Sequence[RunFiles]) -> list[LineChart]:
    """Return the training loss by step, and the validation loss and accuracy by epoch."""
    charts = [
        line_chart(
            "training-loss",
            "Training loss",
            _by_step(runs, [_signal("loss")]),
            y_label="loss of the batch",
            signal="loss",
            scale="log",
        ),
        line_chart(
            "val-loss",
            "Validation loss",
            _by_epoch(runs, "val_loss"),
            y_label="loss",
            x_label="epoch",
            signal="val_loss",
            scale="log",
        ),
        line_chart(
            "val-accuracy",
            "Validation accuracy",
            _by_epoch(runs, "val_accuracy"),
            y_label="fraction correct",
            x_label="epoch",
            signal="val_accuracy",
            include=(0.0, 1.0),
        ),
    ]
    return [chart for chart in charts if chart]


def learning_rate_charts(runs: Sequence[RunFiles]) -> list[LineChart]:
    """Return the learning rate that the optimizer used, on a log axis where the two runs are far apart."""
    series = _by_step(runs, [_signal("lr")])
    peaks = [
        max((y for _, y in one.points if y is not None and math.isfinite(y)), default=0.0) for one in series
    ]
    far_apart = min(peaks, default=0.0) > 0 and max(peaks) / min(peaks) >= 20
    chart = line_chart(
        "learning-rate",
        "Learning rate",
        series,
        y_label="learning rate",
        signal="lr",
        scale="log" if far_apart else "linear",
        include=() if far_apart else (0.0, 1.1 * max(peaks, default=0.0)),
    )
    return [chart] if chart else []


def gradient_charts(runs: Sequence[RunFiles]) -> list[LineChart]:
    """Return the norm of the whole gradient, its share of exact zeros, and its distance from a fresh one."""
    charts = [
        line_chart(
            "grad-norm",
            "Gradient norm",
            _by_step(runs, [_signal("grad_norm")]),
            y_label="2-norm over all parameters",
            signal="grad_norm",
            scale="log",
            frame=COMPACT,
        ),
        line_chart(
            "grad-zeros",
            "Zero gradient entries",
            _by_step(runs, [_signal("grad_zero_fraction")]),
            y_label="fraction of all entries",
            signal="grad_zero_fraction",
            include=(0.0, 1.0),
            frame=COMPACT,
        ),
        line_chart(
            "stale-grad",
            "Distance from a fresh gradient",
            _by_step(runs, [_signal("stale_grad_ratio")]),
            y_label="relative distance",
            signal="stale_grad_ratio",
            scale="auto",
            include=(0.0, 1.0),
            frame=COMPACT,
        ),
    ]
    return [chart for chart in charts if chart]


def layer_charts(runs: Sequence[RunFiles]) -> list[LineChart]:
    """Return one panel a layer with the gradient norms of its parameters; all panels share the y axis."""
    names: dict[str, None] = {}
    for run in runs:
        for record in (*run.batches[:1], *run.batches[-1:]):
            by_parameter = record.get("grad_norm_by_parameter")
            names.update(dict.fromkeys(by_parameter if isinstance(by_parameter, dict) else ()))
    layers: dict[str, list[tuple[str, str]]] = {}
    for name in names:
        layer, _, parameter = name.rpartition(".")
        layers.setdefault(layer, []).append((parameter, name))
    panels = {
        layer: _by_step(
            runs,
            [Quantity(parameter, _nested("grad_norm_by_parameter", name)) for parameter, name in parameters],
        )
        for layer, parameters in layers.items()
    }
    values = (y for series in panels.values() for one in series for _, y in one.points)
    axis = make_axis([y for y in values if y is not None and math.isfinite(y)], "log")
    charts = [
        line_chart(
            f"layer-{index}",
            f"Layer {layer}" if layer else "Parameters",
            series,
            y_label="2-norm",
            frame=COMPACT,
            y_axis=axis,
        )
        for index, (layer, series) in enumerate(panels.items())
    ]
    return [chart for chart in charts if chart]


def activation_charts(runs: Sequence[RunFiles]) -> list[LineChart]:
    """Return mean and variance of the outputs of the first and the last layer."""
    charts = [
        line_chart(
            f"activation-{key}",
            f"Activation {word}",
            _by_step(
                runs,
                [
                    Quantity(f"{place} layer", _nested("activations", place, key))
                    for place in ("first", "last")
                ],
            ),
            y_label=f"{word} over the batch",
            signal="activations",
            scale="auto" if key == "mean" else "log",
        )
        for key, word in (("mean", "mean"), ("var", "variance"))
    ]
    return [chart for chart in charts if chart]


def _signal(key: str) -> Quantity:
    return Quantity("", _nested(key))


def _nested(*keys: str) -> Read:
    return lambda record: look_up(record, *keys)


def _by_step(runs: Sequence[RunFiles], quantities: Sequence[Quantity]) -> list[Series]:
    return _series(runs, quantities, lambda run: [(int(record["step"]), record) for record in run.batches])


def _by_epoch(runs: Sequence[RunFiles], key: str) -> list[Series]:
    """Return a quantity of the epochs, with the further evaluations of the last epoch's weights beside it."""
    quantities = [
        Quantity("", _nested(key), marker="dot"),
        Quantity("same weights, evaluated again", _nested(f"{key}_repeated"), marker="ring", line=False),
        Quantity("same weights, in eval mode", _nested(f"{key}_eval_mode"), marker="square", line=False),
    ]
    series = _series(runs, quantities, lambda run: [(int(record["epoch"]), record) for record in run.epochs])
    return [one for one in series if one.line or any(y is not None for _, y in one.points)]


def _series(
    runs: Sequence[RunFiles],
    quantities: Sequence[Quantity],
    records_of: Callable[[RunFiles], list[tuple[int, Record]]],
) -> list[Series]:
    """Return the lines of a chart, each with its own dashes: colour tells runs apart, or else quantities."""
    series = []
    together = len(runs) > 1
    for q, quantity in enumerate(quantities):
        for r, run in enumerate(runs):
            points: list[Point] = [(x, quantity.read(record)) for x, record in records_of(run)]
            words = [run.name, quantity.label] if together else [quantity.label]
            # Extra markers stand in the legend once, whichever run they belong to.
            key = None if quantity.line or not together else (quantity.label if r == 0 else "")
            series.append(
                Series(
                    label=", ".join(word for word in words if word),
                    points=points,
                    tone=len(runs) - 1 - r if together else (0 if quantity.marker else q),
                    dash=q * len(runs) + len(runs) - 1 - r,
                    marker=quantity.marker,
                    line=quantity.line,
                    key=key,
                )
            )
    return series
