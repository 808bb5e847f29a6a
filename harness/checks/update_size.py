"""Compare the length of the first updates with the length of the weights that they change, for each matrix.

A usual update is a hundredth or a thousandth as long as the weights. An update that is longer than the weights
overwrites them. The learning rate alone does not show this fault: a rate of 0.1 is usual for SGD, but not for Adam,
which moves each weight by about the learning rate, whatever the gradient is. The check makes 10 steps of the run and
takes the longest update.

Matrices that start at zero do not count, because training must replace their values. The check accepts long updates if
the loss halves within these steps. Then the initial weights were short compared with the final weights, for example in
a network for a table with two columns.
"""

import math

from harness.checks.core.finding import Finding, Table, short
from harness.checks.core.subject import Subject, worst

# figure                       | healthy      | broken    | bound        | source
# longest update / its weights | 0.005 to 0.7 | 3.7       | REWRITES 1.5 | Adam with the learning rate of SGD
#                              |              | 40 to 300 |              | three faults (below)
#
# Measured over ten seeds. The healthy values come from the healthy experiments and their correct variants; the larger
# values occur with momentum. The values from 40 to 300 occur with a loss that is a sum, with inputs that are not
# normalized, and with a learning rate that is a hundred times too large.
STEPS = 10
REWRITES = 1.5
LAST, HELPED = 3, 0.5


def measure(subject: Subject) -> Finding:
    """Make the first steps of the run, and compare the weights before and after each step."""
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
