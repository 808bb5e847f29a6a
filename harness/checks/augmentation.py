"""Pass 128 copies of one training example through `prepare_batch`, twice, and compare how they are changed.

Random augmentation must use new random numbers for every example and every batch. Three faults are possible. No
training curve shows them:

- Loader workers start from the same seed and get the same numbers: examples at a fixed distance in the batch are
changed alike.

- `prepare_batch` seeds a generator itself: every batch is changed in the same way.

- `prepare_batch` draws one random change for the whole batch, but 20 more batches get the same change.
"""

import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Finding, short
from harness.checks.core.subject import Subject, Trial

# figure                                       | healthy | broken    | bound       | source
# pairs at one distance that are changed alike | 4 %     | all of 64 | all         | 25 different changes, such as moves
# the same, for a mirror image                 | 50 %    | all of 64 | all         | fair coins: 2^-64 at random
# copies that differ from the first one        |         |           | CHANGES 0.1 | below it: no random augmentation
COPIES = 128
FARTHEST = 8  # the largest distance in the batch at which pairs are compared
CHANGES = 0.1
BATCHES = 20


def measure(subject: Subject) -> Finding:
    """Prepare copies of the first training example, twice, and compare the results."""
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
    """Judge a change of the whole batch: it repeats if it draws random numbers and all batches are changed alike."""
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
    """Return the share of rows that are equal bit by bit."""
    return float((one == other).flatten(1).all(dim=1).double().mean())


def _pairs(prepared: Tensor, gap: int) -> float:
    """Return the share of examples that equal the example `gap` places later, in blocks of `2 * gap` examples."""
    blocks = prepared[: COPIES // (2 * gap) * 2 * gap].unflatten(0, (-1, 2, gap))
    return _equal(blocks[:, 0].flatten(0, 1), blocks[:, 1].flatten(0, 1))
