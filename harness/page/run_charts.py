"""The charts on the page of a run: the signals of metrics.log, of one run or of two drawn together."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness.page.charts import COMPACT, LineChart, Marker, Series, line_chart, make_axis
from harness.page.run_data import Record, RunFiles, look_up


@dataclass(frozen=True)
class Section:
    """A group of charts under a heading; `note` is a sentence about all of them."""

    identifier: str
    heading: str
    note: str
    grid: str
    charts: list[LineChart]


@dataclass(frozen=True)
class _Quantity:
    """A number of a record, by its nested keys, and how its line looks; `label` is empty if a chart has only one."""

    label: str
    keys: tuple[str, ...]
    marker: Marker | None = None
    line: bool = True


def chart_sections(runs: list[RunFiles]) -> list[Section]:
    """Return the charts of the page in groups; a signal that no run has recorded has no chart."""
    small = partial(_step_chart, runs, frame=COMPACT)
    # The learning rate stands beside the training loss: both run over steps, the others over epochs.
    loss = [
        _step_chart(runs, "training-loss", "Training loss", "loss", "loss of the batch", scale="log"),
        _learning_rate_chart(runs),
        _epoch_chart(runs, "val-loss", "Validation loss", "val_loss", "loss", scale="log"),
        _epoch_chart(
            runs, "val-accuracy", "Validation accuracy", "val_accuracy", "fraction correct", include=(0, 1)
        ),
    ]
    gradients = [
        small("grad-norm", "Gradient norm", "grad_norm", "2-norm over all parameters", scale="log"),
        small("grad-zeros", "Zero gradient entries", "grad_zero_fraction", "fraction of all", include=(0, 1)),
        small(
            "stale-grad", "Distance from a fresh gradient", "stale_grad_ratio", "relative distance",
            scale="auto", include=(0, 1),
        ),
    ]  # fmt: skip
    activations = [
        line_chart(
            f"activation-{key}",
            f"Activation {word}",
            _by_step(
                runs,
                [_Quantity(f"{place} layer", ("activations", place, key)) for place in ("first", "last")],
            ),
            y_label=f"{word} over the batch",
            signal="activations",
            scale="linear" if key == "mean" else "log",
        )
        for key, word in (("mean", "mean"), ("var", "variance"))
    ]
    by_layer = "grad_norm_by_parameter in the log, the 2-norm of each gradient; all panels share one axis."
    layers = "Outputs of the first layer that has parameters, and of the last, while training."
    return [
        Section(identifier, heading, note, grid, [chart for chart in charts if chart])
        for identifier, heading, note, grid, charts in (
            ("loss", "Loss and learning rate", "", "grid-2", loss),
            ("gradients", "Gradients", "As the optimizer used them.", "grid-3", gradients),
            ("layers", "Gradient norm by layer", by_layer, "grid-3", _layer_charts(runs)),
            ("activations", "Activations", layers, "grid-2", activations),
        )
    ]


def _step_chart(
    runs: list[RunFiles], identifier: str, title: str, signal: str, y_label: str, **options: Any
) -> LineChart | None:
    series = _by_step(runs, [_Quantity("", (signal,))])
    return line_chart(identifier, title, series, y_label=y_label, signal=signal, **options)


def _epoch_chart(
    runs: list[RunFiles], identifier: str, title: str, signal: str, y_label: str, **options: Any
) -> LineChart | None:
    """Return a quantity of the epochs, with the further evaluations of the last epoch's weights beside it."""
    quantities = [
        _Quantity("", (signal,), marker="dot"),
        _Quantity("same weights, evaluated again", (f"{signal}_repeated",), marker="ring", line=False),
        _Quantity("same weights, in eval mode", (f"{signal}_eval_mode",), marker="square", line=False),
    ]
    series = _series(runs, quantities, lambda run: [(int(record["epoch"]), record) for record in run.epochs])
    series = [one for one in series if one.line or any(y is not None for _, y in one.points)]
    return line_chart(identifier, title, series, y_label=y_label, x_label="epoch", signal=signal, **options)


def _learning_rate_chart(runs: list[RunFiles]) -> LineChart | None:
    """Return the learning rate that the optimizer used, on a log axis if the two runs are far apart."""
    rates = [[look_up(record, "lr") for record in run.batches] for run in runs]
    peaks = [max((y for y in ys if y is not None and math.isfinite(y)), default=0.0) for ys in rates]
    far_apart = min(peaks) > 0 and max(peaks) / min(peaks) >= 20
    include = () if far_apart else (0.0, 1.1 * max(peaks))
    scale = "log" if far_apart else "linear"
    return _step_chart(
        runs, "learning-rate", "Learning rate", "lr", "learning rate", scale=scale, include=include
    )


def _layer_charts(runs: list[RunFiles]) -> list[LineChart | None]:
    """Return one panel a layer with the gradient norms of its parameters; all panels share the y axis."""
    names: dict[str, None] = {}
    for run in runs:
        for record in (*run.batches[:1], *run.batches[-1:]):
            by_parameter = record.get("grad_norm_by_parameter")
            names.update(dict.fromkeys(by_parameter if isinstance(by_parameter, dict) else ()))
    layers: dict[str, list[_Quantity]] = {}
    for name in names:
        layer, _, parameter = name.rpartition(".")
        layers.setdefault(layer, []).append(_Quantity(parameter, ("grad_norm_by_parameter", name)))
    panels = {layer: _by_step(runs, quantities) for layer, quantities in layers.items()}
    values = (y for series in panels.values() for one in series for _, y in one.points)
    axis = make_axis([y for y in values if y is not None and math.isfinite(y)], "log")
    return [
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


def _by_step(runs: Sequence[RunFiles], quantities: Sequence[_Quantity]) -> list[Series]:
    return _series(runs, quantities, lambda run: [(int(record["step"]), record) for record in run.batches])


def _series(
    runs: Sequence[RunFiles],
    quantities: Sequence[_Quantity],
    records_of: Callable[[RunFiles], list[tuple[int, Record]]],
) -> list[Series]:
    """Return the lines of a chart, each with its own dashes: colour tells runs apart, or else quantities."""
    series = []
    together = len(runs) > 1
    for q, quantity in enumerate(quantities):
        for r, run in enumerate(runs):
            words = [run.name, quantity.label] if together else [quantity.label]
            # Extra markers stand in the legend once, whichever run they belong to.
            key = None if quantity.line or not together else (quantity.label if r == 0 else "")
            series.append(
                Series(
                    label=", ".join(word for word in words if word),
                    points=[(x, look_up(record, *quantity.keys)) for x, record in records_of(run)],
                    tone=len(runs) - 1 - r if together else (0 if quantity.marker else q),
                    dash=q * len(runs) + len(runs) - 1 - r,
                    marker=quantity.marker,
                    line=quantity.line,
                    key=key,
                )
            )
    return series
