"""Make the first 40 steps of the run twice, with mixed precision and without it (AMP = False), and compare them.

If mixed precision is set up correctly, the network learns as well as in full precision, and almost no gradient entries
become zero. The check compares two values of both runs: the median loss of the last 10 steps, and the share of gradient
entries that are exactly zero (the median over the second half of the steps).
"""

from statistics import median

import torch
from torch import nn

from harness.checks.core.finding import Finding, percent, short
from harness.checks.core.subject import Subject
from harness.run.metrics_log import Record

# figure                                              | healthy | broken | bound          | source
# zero gradient entries beyond those without autocast | <= 0.01 | >= 0.5 | MORE_ZEROS 0.1 | float16 without scaler
# last loss / last loss without autocast              |         |        | WORSE 3        | not measured
STEPS = 40
LAST = 10
MORE_ZEROS = 0.1
WORSE = 3.0


def measure(subject: Subject) -> Finding:
    """If the run uses autocast, make the first steps with and without it; compare losses and zero gradients."""
    if not _uses_autocast(subject):
        return Finding("no-autocast", "no layer computes in a lower precision", {"autocast": False})
    runs = {name: _steps(subject, disable_amp=off) for name, off in (("as it is", False), ("AMP off", True))}
    loss = {name: float(median(r["loss"] for r in records[-LAST:])) for name, records in runs.items()}
    zeros = {
        name: float(median(r["grad_zero_fraction"] or 0.0 for r in records[STEPS // 2 :]))
        for name, records in runs.items()
    }
    lost = not zeros["as it is"] - zeros["AMP off"] <= MORE_ZEROS
    worse = not loss["as it is"] <= WORSE * loss["AMP off"]
    return Finding(
        "better-without" if lost or worse else "same",
        "; ".join(f"{name}: loss {short(loss[name])}, zeros {percent(zeros[name])}" for name in runs),
        {
            **{f"loss at the end, {name}": loss[name] for name in runs},
            **{f"zero gradient entries, {name}": zeros[name] for name in runs},
        },
    )


def _uses_autocast(subject: Subject) -> bool:
    """Return whether the constant AMP is true and at least one layer outputs half precision in the first step."""
    trial = subject.trial()
    if not trial.experiment.uses_amp:
        return False
    kinds: set[torch.dtype] = set()

    def note(_layer: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, torch.Tensor):
            kinds.add(output.dtype)

    for layer in trial.model.modules():
        layer.register_forward_hook(note)
    trial.step(*next(trial.batches()))
    return bool(kinds & {torch.float16, torch.bfloat16})


def _steps(subject: Subject, *, disable_amp: bool) -> list[Record]:
    trial = subject.trial(disable_amp=disable_amp)
    return list(trial.records(trial.batches(STEPS)))
