"""Whether a number that a report cites is the one in the log, at the precision at which it was written."""

import decimal
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from harness.errors import UserError
from harness.plain_yaml import shown
from harness.recipe import suggestion
from harness.run.metrics_log import Record, batch_records, epoch_records
from harness.symptoms import signal_values

BATCH_SIGNALS = ("loss", "lr", "grad_norm", "grad_zero_fraction", "stale_grad_ratio", "optimizer_steps")
# Those of one parameter or layer are given by a dotted path: grad_mean.1.weight, activations.last.var.
NESTED_SIGNALS = ("grad_mean", "grad_norm_by_parameter", "activations")
EPOCH_SIGNALS = (
    "val_loss",
    "val_accuracy",
    "eval_buffer_change",
    "val_loss_repeated",
    "val_accuracy_repeated",
    "val_loss_eval_mode",
    "val_accuracy_eval_mode",
)
# What the recipes compute from an epoch's record (`harness.symptoms`), and a student may compute too.
DERIVED_SIGNALS = ("eval_mode_gain", "eval_disagreement")

_NUMBER = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,3}))?(?:\s*(%))?", re.ASCII)
_NON_FINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
# A float64 has at most 767 significant digits and exponents down to -324: nothing here is ever rounded.
_EXACT = decimal.Context(prec=2000, Emax=10**6, Emin=-(10**6))


class Citation(Protocol):
    """Where a cited number is said to stand: `harness.submission.student_report.Evidence` is one."""

    @property
    def signal(self) -> str:
        """The name of the quantity in the log."""

    @property
    def step(self) -> int | None:
        """The step of a batch, or None."""

    @property
    def epoch(self) -> int | None:
        """The epoch, or None."""


def written_number(text: str) -> tuple[decimal.Decimal, decimal.Decimal] | float:
    """Return a number as written and the unit of its last digit, or the float that NaN or an infinity names.

    A per cent sign divides both by 100: `93.1%` is 0.931, with a unit of 0.001. Raises `ValueError` for a
    text that is not one number in ASCII digits (no `1_000`, no `1,000`, no `0x1F`).
    """
    if len(text) > 64:
        raise ValueError("a number of more than 64 characters")
    words = text.strip()
    sign = -1.0 if words.startswith("-") else 1.0
    name = words[1:] if words[:1] in ("+", "-") else words
    non_finite = _NON_FINITE.get(name.lower().removeprefix("."))
    if non_finite is not None:
        return sign * non_finite
    match = _NUMBER.fullmatch(words)
    if match is None:
        raise ValueError("not a number")
    mantissa = decimal.Decimal(match[1] + match[2])
    shift = int(match[3] or 0) - (2 if match[4] else 0)
    last_digit = int(mantissa.as_tuple().exponent) + shift
    value = mantissa.scaleb(shift, _EXACT)
    if not value:
        last_digit = min(last_digit, 0)  # 0e9 says no less than 0
    return value, decimal.Decimal(1).scaleb(last_digit, _EXACT)


def agrees(written: str | float, true: float) -> bool:
    """Say whether a number as written is the true one, rounded to the digits that were written.

    At most half a unit of the last digit may lie between them: `0.93` agrees with 0.9312, `0.930` does not.
    `18000` is exact to the unit, `1.8e4` to the thousand. NaN agrees with NaN, an infinity with the same one.
    A text that is no number agrees with nothing.
    """
    try:
        number = written_number(written if isinstance(written, str) else repr(written))
    except ValueError:
        return False
    if isinstance(number, float):
        return number == true or (math.isnan(number) and math.isnan(true))
    if not math.isfinite(true):
        return False
    value, unit = number
    # A person rounds what the log prints, a program the number itself: they differ in the 16th digit.
    printed, exact = decimal.Decimal(repr(float(true))), decimal.Decimal(float(true))
    distances = [_EXACT.subtract(value, number).copy_abs() for number in (printed, exact)]
    return _EXACT.multiply(min(distances), decimal.Decimal(2)) <= unit


def cited_value(records: Sequence[Record], citation: Citation) -> float:
    """Return what the log holds where a report cites it: a signal of batches by step, of epochs by epoch.

    Raises `UserError`, without the name of the file, for a signal, step or epoch that the log does not have.
    """
    signal = citation.signal
    top = signal.split(".", 1)[0]
    of_batches = top in BATCH_SIGNALS or top in NESTED_SIGNALS
    if not of_batches and top not in EPOCH_SIGNALS and top not in DERIVED_SIGNALS:
        known = (*BATCH_SIGNALS, *NESTED_SIGNALS, *EPOCH_SIGNALS, *DERIVED_SIGNALS)
        raise UserError(f"the log has no signal {shown(signal)!r}: {suggestion(top, known)}")
    if of_batches and citation.step is None:
        raise UserError(f"{shown(signal)} is written once a batch: cite it with step:, not epoch:.")
    if not of_batches and citation.epoch is None:
        raise UserError(f"{shown(signal)} is written once an epoch: cite it with epoch:, not step:.")
    if of_batches:
        record = _find(batch_records(records), "step", citation.step)
    else:
        record = _find(epoch_records(records), "epoch", citation.epoch)
    if signal in DERIVED_SIGNALS:
        derived = signal_values([record], signal)
        value: Any = derived[0][1] if derived else None
    else:
        value = _walk(record, signal)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"the log holds no number for {shown(signal)} there: cite another place or signal.")
    return float(value)


def _find(records: Sequence[Record], key: str, index: int | None) -> Record:
    for record in records:
        if record.get(key) == index:
            return record
    if not records:
        raise UserError(f"the log has no {key} at all: make the run again.")
    numbers = [record[key] for record in records]
    raise UserError(f"the log has no {key} {index}: choose one from {numbers[0]} to {numbers[-1]}.")


def _walk(record: Record, path: str) -> Any:
    """Return the value at a dotted path; the names of parameters hold dots too."""
    value: Any = record
    rest = path
    while rest and isinstance(value, Mapping):
        if rest in value:
            return value[rest]
        head, _, tail = rest.partition(".")
        if head not in value or not tail:
            known = [str(key) for key in value]
            raise UserError(f"the log has no {shown(path)!r} there: {suggestion(rest, known)}")
        value, rest = value[head], tail
    return value if not rest else None
