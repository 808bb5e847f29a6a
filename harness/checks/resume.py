"""Makes the first steps twice, once interrupted and resumed through the experiment's own checkpoint, and compares.

A run that goes on from its checkpoint must make the same steps as one that was never interrupted. What is not saved
begins anew: the moments of an optimizer, the place in a schedule, the state of the random generator. The loss seldom
shows it. The table has the distance of the weights, relative to how far training has moved them, after each step behind
the interruption.

Source of the bound: a complete checkpoint gives equal bits. Over ten seeds, ten steps after a restart without the
optimizer's state the distance is 0.065 and more, without the generator's 0.02 and more (1e-6).
"""

import torch
from torch import Tensor

from harness.checks.core.finding import Finding, Table, short
from harness.checks.core.subject import Subject, Trial

STEPS = 10
SAME = 1e-6


def measure(subject: Subject) -> Finding:
    """Make the steps up to the interruption and some more, with it and without."""
    at = subject.experiment().interrupted_at
    if at is None:
        return Finding("not-resumed", "no save_checkpoint and load_checkpoint with INTERRUPTED_AT", {})
    if at >= (steps := subject.trial().steps):
        return Finding("not-resumed", f"INTERRUPTED_AT is {at}, and the run has {steps} steps", {})
    # One after the other: both draw from the same random generator.
    start, whole = _course(subject.trial(), at)
    _, cut = _course(subject.trial(interrupted=True), at)
    rows = tuple(
        (at + index, loss, other_loss, float((own - other).norm()) / max(float((own - start).norm()), 1e-12))
        for index, ((loss, own), (other_loss, other)) in enumerate(zip(whole, cut, strict=True))
    )
    distance, (_, loss, other_loss, _) = rows[-1][-1], rows[0]
    departs = "departs" if loss == other_loss else "other-draws"
    return Finding(
        "continues" if distance <= SAME else departs,
        f"interrupted before step {at}; {STEPS} steps later the weights are {short(distance)} apart",
        {"interrupted before step": at, "distance of the weights": distance},
        tables=(Table("Behind the interruption", ("step", "loss", "loss, interrupted", "distance"), rows),),
    )


def _course(trial: Trial, at: int) -> tuple[Tensor, list[tuple[float, Tensor]]]:
    """Return the first weights, and loss and weights of each step behind the interruption."""
    start, found = _weights(trial), []
    for step, batch in enumerate(trial.batches(at + STEPS)):
        loss = float(trial.step(*batch))
        if step >= at:
            found.append((loss, _weights(trial)))
    return start, found


def _weights(trial: Trial) -> Tensor:
    return torch.cat([parameter.detach().double().flatten() for parameter in trial.model.parameters()])
