"""Compare the answers of `predict` for raw validation examples with the answers of the network in eval mode.

`predict` receives raw examples. It must prepare them as `load_data` does, put the network into eval mode, and turn
outputs into classes as training does: it takes the class with the largest logit or, if there is a single logit, class 1
if its probability is above one half. If `predict` merges or quantizes weights, rounding errors are allowed, but they
must not change the answers. The check measures after a short training, and passes the network to `predict` in training
mode, as training leaves it.

Rounding changes an answer only if the network is undecided between two classes. So the check gives each different
answer a cost: the probability of the network's own answer minus the probability of the answer of `predict`. It divides
the sum of these costs by the network's total lead: the sum, over all examples, of the difference between the two
largest probabilities.
"""

import copy

import torch
from torch import Tensor

from harness.checks.core.finding import Finding, short
from harness.checks.core.subject import Subject

# figure                       | healthy  | broken   | bound       | source
# cost of other answers / lead | <= 0.005 | >= 0.019 | SAME 0.0065 | healthy: also weights in 4 or 8 bits
#                              |          | 0.008    |             | clipping or a lower rate hides the fault
#
# Measured over ten seeds of the healthy experiments that have a `predict`, and of their correct variants.
STEPS = 60
SAME = 0.0065


def measure(subject: Subject) -> Finding:
    """Compare the answers for validation examples after some steps and, if they differ, also before training."""
    if not subject.trial().experiment.serves:
        return Finding("not-served", "the experiment has no function predict", {})
    share, cost, accuracy = _compare_served(subject, STEPS)
    text = (
        f"{share:.1%} of the served classes are the network's own; the others cost {cost:.2%} of its lead;"
        f" accuracy as served {short(accuracy)}"
    )
    values = {"share of equal answers": share, "cost of the others": cost, "accuracy as served": accuracy}
    if cost <= SAME:
        return Finding("same", text, values)
    values["cost before training"] = before = _compare_served(subject, 0)[1]
    return Finding(
        "departs" if before <= SAME else "differs", f"{text}; before training, the cost is {before:.2%}", values
    )


def _compare_served(subject: Subject, steps: int) -> tuple[float, float, float]:
    """Train for some steps; return the share of equal answers, the cost of the others, and the served accuracy."""
    trial = subject.trial()
    for batch in trial.batches(steps):
        trial.step(*batch)
    with torch.no_grad():
        likely = _probabilities(copy.deepcopy(trial.model).eval()(trial.validation[0]).double())
        served = trial.experiment.predict(trial.model.train(), trial.served.inputs)
    answers = likely.argmax(dim=1)
    if len(served) != len(answers):
        return 0.0, 1.0, 0.0
    share, accuracy = (float((served == one).double().mean()) for one in (answers, trial.served.labels))
    return share, _cost(likely, served.long()), accuracy


def _probabilities(outputs: Tensor) -> Tensor:
    """Return probabilities (B, C) from logits (B, C). A single logit (B, 1) belongs to the second of two classes."""
    if outputs.shape[1] == 1:
        return torch.cat([torch.sigmoid(-outputs), torch.sigmoid(outputs)], dim=1)
    return torch.softmax(outputs, dim=1)


def _cost(likely: Tensor, served: Tensor) -> float:
    """Return how much less probable the served classes (B,) are than the best classes, relative to the total lead."""
    first, second = likely.topk(2, dim=1).values.T
    given = likely.gather(1, served.clamp(0, likely.shape[1] - 1).unsqueeze(1))[:, 0]
    return float((first - given).sum() / (first - second).sum().clamp(min=1e-12))
