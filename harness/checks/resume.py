"""Make the first steps twice, once without interruption and once resumed from a checkpoint, and compare the weights.

A run that resumes from its checkpoint must make the same steps as a run that was never interrupted. If the checkpoint
lacks some state, this state starts again: for example the moments of an optimizer, the position in a schedule, or the
state of a random generator. The loss seldom shows this fault. For each step after the interruption, the table shows the
distance between the weights of both runs, divided by the distance that the weights have moved since the start of
training.
"""

import torch
from torch import Tensor

from harness.checks.core.finding import Finding, Table, short
from harness.checks.core.subject import Subject, Trial

# figure                                   | healthy | broken   | bound     | source
# distance of the weights, ten steps later | 0       | >= 0.065 | SAME 1e-6 | checkpoint without optimizer state
#                                          |         | >= 0.02  |           | checkpoint without generator state
#
# Measured over ten seeds. With a complete checkpoint, the weights are equal bit by bit.
STEPS = 10
SAME = 1e-6


def measure(subject: Subject) -> Finding:
    """Train until STEPS steps after the interruption, once without and once with it, and compare the weights."""
    at = subject.experiment().interrupted_at
    if at is None:
        return Finding("not-resumed", "save_checkpoint, load_checkpoint or INTERRUPTED_AT is missing", {})
    if at >= (steps := subject.trial().steps):
        return Finding("not-resumed", f"INTERRUPTED_AT is {at}, but the run has only {steps} steps", {})
    # Make the two runs one after the other, because both use the same random generator.
    start, whole = _course(subject.trial(), at)
    _, cut = _course(subject.trial(interrupted=True), at)
    rows = tuple(
        (at + index, loss, other_loss, float((own - other).norm()) / max(float((own - start).norm()), 1e-12))
        for index, ((loss, own), (other_loss, other)) in enumerate(zip(whole, cut, strict=True))
    )
    distance, (_, loss, other_loss, _) = rows[-1][-1], rows[0]
    departs = "departs" if loss == other_loss else "other-draws"
    outcome = "continues" if distance <= SAME else departs
    more = f"; the next loss is {short(other_loss)} instead of {short(loss)}" if outcome == "other-draws" else ""
    return Finding(
        outcome,
        f"interrupted before step {at}; {STEPS} steps later the weights are {short(distance)} apart{more}",
        {"interrupted before step": at, "distance of the weights": distance},
        tables=(Table("After the interruption", ("step", "loss", "loss, interrupted", "distance"), rows),),
    )


def _course(trial: Trial, at: int) -> tuple[Tensor, list[tuple[float, Tensor]]]:
    """Return the initial weights, and the loss and weights of each step after the interruption."""
    start, found = _weights(trial), []
    for step, batch in enumerate(trial.batches(at + STEPS)):
        loss = float(trial.step(*batch))
        if step >= at:
            found.append((loss, _weights(trial)))
    return start, found


def _weights(trial: Trial) -> Tensor:
    return torch.cat([parameter.detach().double().flatten() for parameter in trial.model.parameters()])
