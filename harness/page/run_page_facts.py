"""The tables of the page of a run: its figures and its provenance, one column a run."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.page.chart_axes import number_text
from harness.page.run_page_data import Record, RunFiles, look_up, number

NONE = "none"
MISSING = "—"  # an em dash: nothing was recorded


@dataclass(frozen=True)
class Fact:
    """One row of a table: what it is, where it stands in the files, and its text for each run."""

    label: str
    signal: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether two runs disagree."""
        return len(set(self.values)) > 1


@dataclass(frozen=True)
class Message:
    """What a guardrail said, the first time, and at how many steps in all."""

    step: str
    level: str
    text: str
    count: int


def text_of(value: float | None) -> str:
    """Return a number as text, a dash where there is none."""
    return MISSING if value is None else number_text(value)


def first_non_finite_step(run: RunFiles) -> int | None:
    """Return the first step whose loss is not finite: as the run reported it, else from its log."""
    if "first_non_finite_step" in run.result:
        step = number(run.result["first_non_finite_step"])
        return None if step is None else int(step)
    for record in run.batches:
        loss = number(record.get("loss"))
        if loss is not None and not math.isfinite(loss):
            return int(record["step"])
    return None


def figures(runs: Sequence[RunFiles]) -> list[Fact]:
    """Return the figures of the runs in the order of looking at them, without rows that no run has."""
    rows: list[tuple[str, str, Callable[[RunFiles], str]]] = [
        ("Steps", "step", lambda run: str(len(run.batches))),
        ("Optimizer steps", "optimizer_steps", lambda run: text_of(_sum(run, "optimizer_steps"))),
        ("Training loss, first step", "loss", lambda run: text_of(_first(run.batches, "loss"))),
        ("Training loss, lowest", "loss", lambda run: text_of(_extreme(run.batches, min, "loss"))),
        ("Training loss, highest", "loss", lambda run: text_of(_extreme(run.batches, max, "loss"))),
        ("Training loss, last step", "loss", lambda run: text_of(_last(run.batches, "loss"))),
        ("First step without a finite loss", "loss", _first_non_finite_text),
        ("Validation loss, last epoch", "val_loss", _last_text("val_loss")),
        ("… same weights, evaluated again", "val_loss_repeated", _last_text("val_loss_repeated")),
        ("… same weights, in eval mode", "val_loss_eval_mode", _last_text("val_loss_eval_mode")),
        ("Validation accuracy, last epoch", "val_accuracy", _last_text("val_accuracy")),
        ("… same weights, evaluated again", "val_accuracy_repeated", _last_text("val_accuracy_repeated")),
        ("… same weights, in eval mode", "val_accuracy_eval_mode", _last_text("val_accuracy_eval_mode")),
        (
            "Change of the model's buffers by an evaluation, largest",
            "eval_buffer_change",
            lambda run: text_of(_extreme(run.epochs, max, "eval_buffer_change")),
        ),
        ("Learning rate, highest", "lr", lambda run: text_of(_extreme(run.batches, max, "lr"))),
        ("Gradient norm, first step", "grad_norm", lambda run: text_of(_first(run.batches, "grad_norm"))),
        ("Gradient norm, median", "grad_norm", lambda run: text_of(_median(run.batches, "grad_norm"))),
        ("Gradient norm, highest", "grad_norm", lambda run: text_of(_extreme(run.batches, max, "grad_norm"))),
        (
            "Gradient entries exactly zero, median fraction",
            "grad_zero_fraction",
            lambda run: text_of(_median(run.batches, "grad_zero_fraction")),
        ),
        (
            "Distance of the used gradient from a fresh one, median",
            "stale_grad_ratio",
            lambda run: text_of(_median(run.batches, "stale_grad_ratio")),
        ),
    ]
    facts = [Fact(label, signal, tuple(read(run) for run in runs)) for label, signal, read in rows]
    return [fact for fact in facts if set(fact.values) != {MISSING}]


def headline(runs: Sequence[RunFiles]) -> list[Fact]:
    """Return the few figures that stand at the top of the page."""
    rows: list[tuple[str, Callable[[RunFiles], str]]] = [
        ("Final training loss", lambda run: text_of(_last(run.batches, "loss"))),
        ("Validation loss", _last_text("val_loss")),
        ("Validation accuracy", _last_text("val_accuracy")),
        ("Steps", lambda run: str(len(run.batches))),
        ("Epochs", lambda run: str(len(run.epochs))),
        ("First step without a finite loss", _first_non_finite_text),
    ]
    facts = [Fact(label, "", tuple(read(run) for run in runs)) for label, read in rows]
    return [fact for fact in facts if set(fact.values) != {MISSING}]


def provenance(runs: Sequence[RunFiles]) -> list[Fact]:
    """Return what is recorded of where the runs come from, nested names joined by dots."""
    flat = [_flatten(run.provenance) | _checkpoint(run) for run in runs]
    names = dict.fromkeys(name for one in flat for name in one)
    return [Fact(name, "", tuple(one.get(name, MISSING) for one in flat)) for name in names]


def messages(run: RunFiles) -> list[Message]:
    """Return what the guardrails said, each message once, in the order of its first step."""
    grouped: dict[tuple[str, str], list[str]] = {}
    findings = run.result.get("guardrails")
    for finding in findings if isinstance(findings, list) else []:
        if isinstance(finding, dict):
            key = (str(finding.get("level", "")), str(finding.get("message", "")))
            grouped.setdefault(key, []).append(str(finding.get("step", "")))
    return [Message(steps[0], level, text, len(steps)) for (level, text), steps in grouped.items()]


def _values(records: Sequence[Record], *keys: str) -> list[float]:
    return [value for record in records if (value := look_up(record, *keys)) is not None]


def _first(records: Sequence[Record], key: str) -> float | None:
    return look_up(records[0], key) if records else None


def _last(records: Sequence[Record], key: str) -> float | None:
    return look_up(records[-1], key) if records else None


def _last_text(key: str) -> Callable[[RunFiles], str]:
    return lambda run: text_of(_last(run.epochs, key))


def _extreme(records: Sequence[Record], pick: Callable[[list[float]], float], key: str) -> float | None:
    """Return the least or greatest finite value; NaN if there are values and none is finite."""
    values = _values(records, key)
    finite = [value for value in values if math.isfinite(value)]
    return pick(finite) if finite else (math.nan if values else None)


def _median(records: Sequence[Record], key: str) -> float | None:
    """Return the middle value (the upper one of two), counting NaN as larger than everything."""
    values = sorted(_values(records, key), key=lambda value: (math.isnan(value), value))
    return values[len(values) // 2] if values else None


def _sum(run: RunFiles, key: str) -> float | None:
    values = _values(run.batches, key)
    return sum(values) if values else None


def _first_non_finite_text(run: RunFiles) -> str:
    step = first_non_finite_step(run)
    return NONE if step is None else str(step)


def _checkpoint(run: RunFiles) -> dict[str, str]:
    digest = run.result.get("checkpoint_sha256")
    return {"checkpoint_sha256": str(digest)} if digest else {}


def _flatten(record: Record, prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = MISSING if value is None else str(value)
    return flat
