"""Define the names of the signals (measured quantities) in `metrics.log`, and format their values for reports."""

import math
from typing import Literal

BATCH_SIGNALS = ("loss", "lr", "grad_norm", "grad_zero_fraction", "stale_grad_ratio", "optimizer_steps")
# Signals with a value for each parameter or layer. A value has a dotted name: grad_mean.1.weight, activations.last.var.
NESTED_SIGNALS = ("grad_mean", "grad_norm_by_parameter", "activations")
EPOCH_SIGNALS = (
    "val_loss",
    "val_accuracy",
    "eval_buffer_change",
    "val_loss_repeated",
    "val_accuracy_repeated",
    "val_loss_eval_mode",
    "val_accuracy_eval_mode",
    "val_accuracy_served",
)
# Signals that `harness.run.symptoms` computes from the record of an epoch.
DERIVED_SIGNALS = ("eval_mode_gain", "eval_disagreement")
SIGNALS = (*BATCH_SIGNALS, *NESTED_SIGNALS, *EPOCH_SIGNALS, *DERIVED_SIGNALS)

# Scripts log validation figures under names of their own, which start with this.
OF_SCRIPTS = "val_"

PlaceKind = Literal["step", "epoch"]


def place_of(signal: str) -> PlaceKind | None:
    """Return "step" if a log has one value of the signal for each step, "epoch" if one for each epoch, else None."""
    top = signal.split(".", 1)[0]
    if top in (*BATCH_SIGNALS, *NESTED_SIGNALS):
        return "step"
    return "epoch" if top in SIGNALS or top.startswith(OF_SCRIPTS) else None


def is_fraction(signal: str) -> bool:
    """Return whether the values of a signal are fractions, which people also write as percentages."""
    return any(word in signal for word in ("accuracy", "dice", "retrieval")) or signal in (
        "grad_zero_fraction",
        "eval_mode_gain",
        "eval_disagreement",
    )


def number_text(value: float) -> str:
    """Return a number as text with six significant digits, as a student may cite it.

    NaN and infinities become names.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.6g}"


def evidence_line(run: str, signal: str, kind: str, place: object, value: str) -> str:
    """Return a line that cites a value as evidence in report.md. kind: step or epoch. value: from `number_text`."""
    return f"  - {{run: {run}, signal: {signal}, {kind}: {place}, value: {value}}}"
