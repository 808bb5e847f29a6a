"""Compares the length of the first updates with that of the weights they change, matrix by matrix.

An update that is a hundredth or a thousandth as long as its weights is usual; one that is longer than they are replaces
them, so that nothing which they held is left. A rate alone does not tell: 0.1 is usual for SGD, while Adam moves each
weight by about its rate, whatever the gradient. The check makes 10 steps of the run and takes the longest update.
Matrices that begin at zero are left out: they are meant to be replaced. If the loss halves within these steps, the
weights were short beside what they have to become, such as those of two columns.

Sources of the bound (1.5), over ten seeds: the longest update of healthy experiments and their sound variants is 0.005
to 0.7 of its weights, those with momentum in the upper part; Adam with the rate of SGD rewrites a layer 3.7 times in
one step, sums of a loss, inputs that are not normalized and rates a hundred times too large 40 to 300 times.
"""

import math

from harness.checks.core.finding import Finding, Table, short
from harness.checks.core.subject import Subject, worst

STEPS = 10
REWRITES = 1.5
LAST, HELPED = 3, 0.5


def measure(subject: Subject) -> Finding:
    """Make the first steps of the run, and compare the weights before and after each."""
    trial = subject.trial()
    matrices = {name: p for name, p in trial.model.named_parameters() if p.dim() > 1 and p.any()}
    ratios: dict[str, list[float]] = {name: [] for name in matrices}
    losses: list[float] = []
    for batch in trial.batches(STEPS):
        before = {name: matrix.detach().double().clone() for name, matrix in matrices.items()}
        losses.append(float(trial.step(*batch)))
        for name, matrix in matrices.items():
            ratios[name].append(float((matrix.detach() - before[name]).norm() / before[name].norm().clamp(min=1e-30)))
    if not math.isfinite(losses[0]):
        return Finding("not-finite", "the first loss is not finite", {})
    longest = worst([worst(found) for found in ratios.values()] or [0.0])
    rows = tuple((name, found[0], worst(found), found[-1]) for name, found in ratios.items())
    return Finding(
        "short" if longest < REWRITES or min(losses[-LAST:]) < HELPED * min(losses[:LAST]) else "rewrites",
        f"the longest of {STEPS} updates is {short(longest)} times as long as its weights",
        {"longest update over its weights": longest},
        tables=(Table("Updates over weights", ("matrix", "first", "longest", "last"), rows),),
    )
