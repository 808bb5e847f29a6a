"""Looks at the replicas of a network that trains data-parallel: are they equal, and does each see its own examples?

A network with a `ModuleList` called `replicas` is data-parallel: each replica gets its share of a batch, the gradients
are averaged, and equal steps keep the replicas equal. Without the average each replica trains alone on less data, and
its curve looks well. If two replicas see the same examples, the batch is smaller than it seems.

Source of the bound: replicas that take the same steps stay equal to the bit; without the average they are 0.01 apart
after a step, with other first weights as far apart as these (1e-6 of the largest weight).
"""

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Finding, short
from harness.checks.core.subject import Subject

STEPS = 4
SAME = 1e-6


def measure(subject: Subject) -> Finding:
    """Make the first steps, note what each replica is given, and compare the replicas' weights."""
    trial = subject.trial()
    replicas = getattr(trial.model, "replicas", None)
    if not isinstance(replicas, nn.ModuleList) or len(replicas) < 2:
        return Finding("no-replicas", "the network has no list of modules called replicas", {})
    at_first = _distance(replicas)
    given: list[Tensor] = []
    handles = [replica.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0])) for replica in replicas]
    seen = []
    for inputs, labels in trial.batches(STEPS):
        given.clear()
        trial.step(inputs, labels)
        rows = torch.cat([part.flatten(1) for part in given])
        seen.append(len(rows.unique(dim=0)) / max(len(inputs.flatten(1).unique(dim=0)), 1))
    for handle in handles:
        handle.remove()
    apart, share = _distance(replicas), min(seen)
    outcome = "equal" if apart <= SAME else "drift-apart" if at_first <= SAME else "begin-apart"
    return Finding(
        outcome if share >= 1.0 else "same-examples",
        f"{len(replicas)} replicas, {short(at_first)} apart at first and {short(apart)} after {STEPS} steps;"
        f" together they see {share:.0%} of a batch",
        {
            "replicas": len(replicas),
            "greatest distance of a weight at first": at_first,
            "greatest distance of a weight": apart,
            "share of a batch that they see": share,
        },
    )


def _distance(replicas: nn.ModuleList) -> float:
    """Return how far replicas are from the first one: the greatest difference of a weight over the largest weight."""
    weights = [torch.cat([p.detach().double().flatten() for p in replica.parameters()]) for replica in replicas]
    largest = max(float(own.abs().max()) for own in weights)
    return max(float((own - weights[0]).abs().max()) for own in weights) / largest
