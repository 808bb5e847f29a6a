"""Which instrument has which id: each is a function from a subject to evidence."""

from collections.abc import Callable
from typing import Any

from harness.checks import (
    activations,
    amp_off,
    anomaly,
    audit,
    data,
    first_loss,
    gradcheck,
    gradients,
    loss_form,
    lr_find,
    lr_tenth,
    modes,
    overfit,
    repeat,
    repro,
)
from harness.checks.evidence import Evidence
from harness.checks.subject import Subject

INSTRUMENTS: dict[str, Callable[..., Evidence]] = {
    "overfit": lambda subject, **options: overfit.show(overfit.measure(subject, **options)),
    "data": lambda subject: data.show(data.measure(subject)),
    "first_loss": lambda subject: first_loss.show(first_loss.measure(subject)),
    "loss_form": lambda subject: loss_form.show(loss_form.measure(subject)),
    "lr_tenth": lambda subject: lr_tenth.show(lr_tenth.measure(subject)),
    "gradients": lambda subject, **options: gradients.show(gradients.measure(subject, **options)),
    "amp_off": lambda subject: amp_off.show(amp_off.measure(subject)),
    "activations": lambda subject, **options: activations.show(activations.measure(subject, **options)),
    "modes": lambda subject: modes.show(modes.measure(subject)),
    "repeat": lambda subject: repeat.show(repeat.measure(subject)),
    "lr_find": lambda subject: lr_find.show(lr_find.measure(subject)),
    "gradcheck": lambda subject: gradcheck.show(gradcheck.measure(subject)),
    "anomaly": lambda subject: anomaly.show(anomaly.measure(subject)),
    "repro": lambda subject, **options: repro.show(repro.measure(subject, **options)),
    "reproduce": lambda subject, **options: repro.show_reproduced(repro.reproduce(subject, **options)),
    "audit": lambda subject, **options: audit.show(audit.measure(subject, **options)),
}


def look(instrument: str, subject: Subject, **options: Any) -> Evidence:
    """Hold one instrument to an experiment. Raises `UserError` for what the experiment does wrong meanwhile."""
    return INSTRUMENTS[instrument](subject, **options)
