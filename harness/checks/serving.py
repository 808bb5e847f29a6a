"""Compares what `predict` serves for raw validation examples with what the network answers in eval mode.

`predict` gets examples as they are stored. It must prepare them as `load_data` does, put the network into eval mode,
and turn its outputs into classes as training means them: the largest logit or, of a single logit, a probability above
one half. Merged or quantized weights may round, but not answer otherwise. The check measures after a short training,
and serves a network in training mode, as training leaves it. An experiment that keeps the weights of its best epoch
serves those: after the end of the first epoch they are the network's own.

Source of the bound: over ten seeds, healthy `predict` functions agree in all answers, with weights in 8 bits in 97 %
and more; faults agree in 94.2 % at most (0.95).
"""

import copy

import torch
from torch import Tensor

from harness.checks.core.finding import Check, Finding, mechanism, short, sound, unjudged
from harness.checks.core.subject import Subject

CHECK = Check(
    order=145,
    question="Is what is served what the network answers?",
    minutes=2,
    outcomes=(
        unjudged("not-served", "The experiment has no predict: nothing is served.", "modes"),
        sound("same", "What is served is what the network answers: predict is ruled out.", "modes"),
        mechanism(
            "differs",
            "For raw examples, other classes are served than the network answers.",
            look="predict: how it prepares the examples and decides; build_model, end_epoch: which weights it serves",
        ),
    ),
)
STEPS = 60
SAME = 0.95


def measure(subject: Subject) -> Finding:
    """Make some steps and an end of the epoch; compare the answers for the validation examples."""
    trial = subject.trial()
    if not trial.experiment.serves:
        return Finding("not-served", "the experiment has no function predict", {})
    for batch in trial.batches(STEPS):
        trial.step(*batch)
    metrics = trial.experiment.evaluate(copy.deepcopy(trial.model), *trial.validation)
    trial.experiment.end_epoch(trial.model, metrics)
    with torch.no_grad():
        answers = _classes(copy.deepcopy(trial.model).eval()(trial.validation[0]))
        served = trial.experiment.predict(trial.model.train(), trial.served.inputs)
    share = float((served == answers).double().mean()) if len(served) == len(answers) else 0.0
    accuracy = float((served == trial.served.labels).double().mean())
    return Finding(
        "same" if share >= SAME else "differs",
        f"{share:.1%} of the served classes are the network's own; accuracy as served {short(accuracy)}",
        {"share of equal answers": share, "accuracy as served": accuracy},
    )


def _classes(outputs: Tensor) -> Tensor:
    """Return the classes (B,) of logits (B, C), or of one logit (B, 1) for the second of two classes."""
    return (outputs[:, 0] > 0).long() if outputs.shape[1] == 1 else outputs.argmax(dim=1)
