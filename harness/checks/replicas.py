"""Compare the replicas of a data-parallel network: do they stay equal, and does each replica get its own examples?

A network with a `ModuleList` called `replicas` counts as data-parallel: each replica gets a part of the batch, and
`train_step` averages the gradients of all replicas. So all replicas make equal steps and stay equal. If the gradients
are not averaged, each replica trains alone on less data, but the training curve looks good. If two replicas get the
same examples, the batch is smaller than it seems.
"""

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Finding, short
from harness.checks.core.subject import Subject

# figure                               | healthy | broken | bound     | source
# distance of weights / largest weight | 0       | 0.01   | SAME 1e-6 | one step without averaged gradients
#                                      |         | 0.01   |           | different initial weights
STEPS = 4
SAME = 1e-6


def measure(subject: Subject) -> Finding:
    """Make the first steps, record the inputs of each replica, and compare the weights of the replicas."""
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
        f" together they get {share:.0%} of a batch",
        {
            "replicas": len(replicas),
            "greatest distance of a weight at first": at_first,
            "greatest distance of a weight": apart,
            "share of a batch that they see": share,
        },
    )


def _distance(replicas: nn.ModuleList) -> float:
    """Return the largest difference of a weight between any replica and the first one, over the largest weight."""
    weights = [torch.cat([p.detach().double().flatten() for p in replica.parameters()]) for replica in replicas]
    largest = max(float(own.abs().max()) for own in weights)
    return max(float((own - weights[0]).abs().max()) for own in weights) / largest
