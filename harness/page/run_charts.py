"""The charts on the page of a run: the signals of metrics.log, of one run or of two drawn together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness.page.charts import COMPACT, LineChart, Series, line_chart
from harness.page.run_data import RunFiles

Keys = tuple[str, ...]  # of a number in nested records


@dataclass(frozen=True)
class Section:
    """A group of charts under a heading; `note` is a sentence about all of them."""

    identifier: str
    heading: str
    note: str
    grid: str
    charts: list[LineChart]


def chart_sections(runs: Sequence[RunFiles]) -> list[Section]:
    """Return the charts of the page in groups; a signal that no run has recorded has no chart."""
    wide = partial(_signal_chart, runs)
    small = partial(_signal_chart, runs, width=COMPACT)
    epochs = partial(_signal_chart, runs, x_label="epoch")
    # The learning rate stands beside the training loss: both run over steps, the others over epochs.
    loss = [
        wide("loss", "Training loss", "loss of the batch", scale="log"),
        wide("lr", "Learning rate", "learning rate", scale="auto"),
        epochs("val_loss", "Validation loss", "loss", scale="log"),
        epochs("val_accuracy", "Validation accuracy", "fraction correct", include=(0, 1)),
    ]
    gradients = [
        small("grad_norm", "Gradient norm", "2-norm over all parameters", scale="log"),
        small("grad_zero_fraction", "Zero gradient entries", "fraction of all", include=(0, 1)),
        small("stale_grad_ratio", "Distance from a fresh gradient", "relative distance", scale="auto", include=(0, 1)),
    ]  # fmt: skip
    activations = [
        line_chart(
            f"activation-{key}",
            f"Activation {word}",
            _series(runs, {f"{place} layer": ("activations", place, key) for place in ("first", "last")}),
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


def _signal_chart(
    runs: Sequence[RunFiles], signal: str, title: str, y_label: str, *, x_label: str = "step", **options: Any
) -> LineChart | None:
    series = _series(runs, {"": (signal,)}, x_label)
    identifier = f"chart-{signal.replace('_', '-')}"
    return line_chart(identifier, title, series, y_label=y_label, x_label=x_label, signal=signal, **options)


def _layer_charts(runs: Sequence[RunFiles]) -> list[LineChart | None]:
    """Return one panel a layer with the gradient norms of its parameters; all panels share the y axis."""
    names: dict[str, None] = {}
    for run in runs:
        for record in (*run.batches[:1], *run.batches[-1:]):
            names |= dict.fromkeys(record["grad_norm_by_parameter"])
    layers: dict[str, dict[str, Keys]] = {}
    for name in names:
        layer, _, parameter = name.rpartition(".")
        layers.setdefault(layer, {})[parameter] = ("grad_norm_by_parameter", name)
    panels = {layer: _series(runs, quantities) for layer, quantities in layers.items()}
    values = (y for series in panels.values() for one in series for _, y in one.points)
    finite = [y for y in values if y is not None and math.isfinite(y)]
    return [
        line_chart(
            f"layer-{index}",
            f"Layer {layer}" if layer else "Parameters",
            series,
            y_label="2-norm",
            scale="log",
            include=finite,
            width=COMPACT,
        )
        for index, (layer, series) in enumerate(panels.items())
    ]


def _series(runs: Sequence[RunFiles], quantities: dict[str, Keys], x: str = "step") -> list[Series]:
    """Return a line for each quantity of each run: colours tell runs apart, or else quantities."""
    series = []
    for q, (label, keys) in enumerate(quantities.items()):
        for r, run in enumerate(runs):
            records = run.batches if x == "step" else run.epochs
            name = ", ".join(word for word in (run.name if len(runs) > 1 else "", label) if word)
            points = [(record[x], _number(record, keys)) for record in records]
            look = len(runs) - 1 - r  # the last run looks as it does alone
            tone = look if len(runs) > 1 else q
            series.append(Series(name, points, tone, dash=q * len(runs) + look))
    return series


def _number(record: Any, keys: Keys) -> float | None:
    """Return the number under nested keys, or None where nothing was recorded."""
    for key in keys:
        record = None if record is None else record.get(key)
    return record  # type: ignore[no-any-return]
