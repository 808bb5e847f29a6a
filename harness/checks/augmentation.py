"""Gives `prepare_batch` the same example many times, twice, and looks at what chance makes of it.

Random augmentation must draw anew for every example and every batch. Loader workers that start from one seed draw the
same numbers: examples at a fixed distance in the batch are changed alike, and no curve shows it. A generator that is
seeded inside of `prepare_batch` draws the same for every batch. So does one change for the whole batch, if numbers are
drawn for each batch and 20 batches are changed alike.

Source of the bounds: with 25 different changes, as of a move by up to two pixels, two draws agree in 4 % of all cases,
with a mirror image in 50 %. Examples that agree in all of 64 pairs, though a tenth of all pairs differs, have the same
draws (the chance of it with fair coins is 2 to the power of -64).
"""

import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Finding, short
from harness.checks.core.subject import Subject, Trial

COPIES = 128
FARTHEST = 8
CHANGES = 0.1
BATCHES = 20


def measure(subject: Subject) -> Finding:
    """Prepare copies of the first training example, twice, and compare what came out."""
    trial = subject.trial()
    inputs = trial.inputs[:1].expand(COPIES, *trial.inputs.shape[1:])
    labels = trial.labels[:1].expand(COPIES, *trial.labels.shape[1:])
    first, second = (trial.prepare(inputs.clone(), labels.clone())[0].detach() for _ in range(2))
    changed = 1 - _equal(first[:1].expand_as(first[1:]), first[1:])
    figures: dict[str, Cell] = {"copies that differ from the first one": changed}
    if len(first) == len(inputs) and not changed and first.shape == inputs.shape and not torch.equal(first, inputs):
        return _one_change(trial, figures)
    if len(first) != COPIES or changed < CHANGES:
        return Finding("none", f"{changed:.0%} of equal examples come out unlike the first", figures)
    most = max(_pairs(first, gap) for gap in range(1, FARTHEST + 1))
    again = _equal(first, second)
    outcome = "repeats" if again == 1.0 else "same-draws" if most == 1.0 else "independent"
    return Finding(
        outcome,
        f"neighbours come out alike in {short(most)} of cases at most, the next batch in {short(again)}",
        {**figures, "neighbours that come out alike, at most": most, "examples alike in the next batch": again},
    )


def _one_change(trial: Trial, figures: dict[str, Cell]) -> Finding:
    """Judge a change that is the same for all copies of a batch: does every batch get it, though numbers are drawn?"""
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
    return Finding(outcome, f"{sum(again)} of {BATCHES} more batches are changed as the first one", figures)


def _equal(one: Tensor, other: Tensor) -> float:
    """Return the share of rows that are equal to the bit."""
    return float((one == other).flatten(1).all(dim=1).double().mean())


def _pairs(prepared: Tensor, gap: int) -> float:
    """Return the share of examples that equal the one `gap` places on, in blocks of twice that length."""
    blocks = prepared[: COPIES // (2 * gap) * 2 * gap].unflatten(0, (-1, 2, gap))
    return _equal(blocks[:, 0].flatten(0, 1), blocks[:, 1].flatten(0, 1))
