"""Pass 128 copies of one training example through `prepare_batch` twice, and compare how it changes the copies.

Random augmentation must draw new random numbers for every example and every batch. Three faults break this rule, and no
training curve shows them:

- All loader workers start from the same seed, so they draw the same numbers. Then examples at a fixed distance in the
batch are changed in the same way.

- `prepare_batch` seeds a generator in every call. Then every batch is changed in the same way.

- `prepare_batch` draws one random change for a whole batch, and 20 further batches get the same change.
"""

import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Finding, short
from harness.checks.core.subject import Subject, Trial

# figure                                       | healthy | broken    | bound       | source
# pairs at one distance that are changed alike | 4 %     | all of 64 | all         | 25 possible changes, such as moves
# the same pairs, for a random mirror image    | 50 %    | all of 64 | all         | 64 equal coin flips: 2^-64
# copies that differ from the first one        |         |           | CHANGES 0.1 | below 0.1: no random augmentation
COPIES = 128
FARTHEST = 8  # the largest distance between two examples that are compared
CHANGES = 0.1
BATCHES = 20


def measure(subject: Subject) -> Finding:
    """Prepare many copies of the first training example twice, and compare the prepared copies."""
    trial = subject.trial()
    inputs = trial.inputs[:1].expand(COPIES, *trial.inputs.shape[1:])
    labels = trial.labels[:1].expand(COPIES, *trial.labels.shape[1:])
    first, second = (trial.prepare(inputs.clone(), labels.clone())[0].detach() for _ in range(2))
    changed = 1 - _equal(first[:1].expand_as(first[1:]), first[1:])
    figures: dict[str, Cell] = {"copies that differ from the first one": changed}
    if len(first) == len(inputs) and not changed and first.shape == inputs.shape and not torch.equal(first, inputs):
        return _one_change(trial, figures)
    if len(first) != COPIES or changed < CHANGES:
        return Finding("none", f"{changed:.0%} of equal examples become different from the first one", figures)
    most = max(_pairs(first, gap) for gap in range(1, FARTHEST + 1))
    again = _equal(first, second)
    outcome = "repeats" if again == 1.0 else "same-draws" if most == 1.0 else "independent"
    return Finding(
        outcome,
        f"changed alike: neighbours {short(most)} at most, the same place in the next batch {short(again)}",
        {**figures, "neighbours that come out alike, at most": most, "examples alike in the next batch": again},
    )


def _one_change(trial: Trial, figures: dict[str, Cell]) -> Finding:
    """Return the finding for augmentation that changes all examples of a batch alike: is each batch different?"""
    inputs, labels = trial.inputs[:COPIES], trial.labels[:COPIES]
    first = trial.prepare(inputs.clone(), labels.clone())[0].detach()
    before = [generator.get_state() for generator in trial.generators.values()]
    again = [torch.equal(trial.prepare(inputs.clone(), labels.clone())[0].detach(), first) for _ in range(BATCHES)]
    drawn = any(
        not torch.equal(generator.get_state(), state)
        for generator, state in zip(trial.generators.values(), before, strict=True)
    )
    outcome = "none" if not drawn else "repeats" if all(again) else "independent"
    figures |= {"batches changed as the first one": sum(again), "numbers are drawn": drawn}
    return Finding(outcome, f"{sum(again)} of {BATCHES} more batches are changed like the first one", figures)


def _equal(one: Tensor, other: Tensor) -> float:
    """Return the share of rows that are equal bit by bit in both tensors."""
    return float((one == other).flatten(1).all(dim=1).double().mean())


def _pairs(prepared: Tensor, gap: int) -> float:
    """Divide the batch into pairs of examples at the distance `gap`, and return the share of equal pairs."""
    blocks = prepared[: COPIES // (2 * gap) * 2 * gap].unflatten(0, (-1, 2, gap))
    return _equal(blocks[:, 0].flatten(0, 1), blocks[:, 1].flatten(0, 1))
