"""What one mechanism of training does, as a figure that is about 0 (or, for the learning rate, small) if it is sound.

Each function calls an experiment's functions on inputs of our choice. Probes judge by them whether a cause is gone;
instruments show them.
"""

import copy
from contextlib import suppress
from statistics import median

import torch
from torch import Tensor, nn

from harness.checks.workbench import Bench, worst
from harness.errors import UserError
from harness.run.evaluation import evaluate_in_eval_mode
from harness.run.experiment import Experiment
from harness.run.recorder import Recorder

_STEPS = 6
# A shuffle that happens to one batch in five escapes 30 draws once in 800.
_PAIRING_DRAWS = 30
# With fewer examples a shuffle within the batch would have next to nothing to mix.
_FEWEST_PAIRED = 16
# Scaling needs a few steps to settle, and gradients shrink as the loss does: look at the second half.
_UNDERFLOW_STEPS = 40


def batch_pairing(bench: Bench) -> float:
    """Return the fraction of examples that `prepare_batch` gives another example's label.

    Each example is an image of one grey value, the higher the label the brighter; whatever monotonic
    augmentation keeps of it, sorting by brightness must sort the labels.
    """
    labels = torch.arange(max(bench.batch_size, _FEWEST_PAIRED)) % 10
    inputs = (labels.to(bench.inputs.dtype) / 10).view(-1, *[1] * (bench.inputs.dim() - 1))
    inputs = inputs.expand(-1, *bench.inputs.shape[1:]).clone()
    wrong = []
    for _ in range(_PAIRING_DRAWS):
        images, given = bench.prepare(inputs.clone(), labels.clone())
        brightness = images.flatten(1).median(dim=1).values
        by_brightness = given[brightness.argsort(stable=True)]
        wrong.append((by_brightness != labels.sort().values).double().mean().item())
    return worst(wrong)


def learning_rate(bench: Bench) -> float:
    """Return the largest learning rate that an optimizer uses, over the whole schedule."""
    rates = []
    with Recorder(bench.model) as recorder:
        for _, (inputs, labels) in zip(range(_STEPS), bench.batches(), strict=False):
            rates.append(recorder.end_batch(bench.step(inputs, labels))["lr"] or 0.0)
    if bench.scheduler is not None:
        for _ in range(bench.steps - _STEPS):
            bench.scheduler.step()
            rates += [float(group["lr"]) for group in bench.optimizer.param_groups]
    return worst(rates)


def stale_gradient(bench: Bench) -> float:
    """Return the largest relative distance between the gradient used and a fresh one."""
    with Recorder(bench.model) as recorder:
        ratios: list[float] = [
            recorder.end_batch(bench.step(inputs, labels))["stale_grad_ratio"]
            for _, (inputs, labels) in zip(range(_STEPS), bench.batches(), strict=False)
        ]
    return worst(ratios)


def gradient_underflow(bench: Bench) -> float:
    """Return how many more gradient entries are exactly zero than in float32, as a fraction of all (median)."""
    excess = []
    with Recorder(bench.model) as recorder:
        for index, (inputs, labels) in zip(range(_UNDERFLOW_STEPS), bench.batches(), strict=False):
            reference = copy.deepcopy(bench.model).train()
            record = recorder.end_batch(bench.step(inputs, labels))
            if index >= _UNDERFLOW_STEPS // 2:
                excess.append(
                    (record["grad_zero_fraction"] or 0.0)
                    - float32_zero_fraction(bench.experiment, reference, inputs, labels)
                )
    return median(excess)


def float32_zero_fraction(experiment: Experiment, model: nn.Module, inputs: Tensor, labels: Tensor) -> float:
    """Return the share of gradient entries that are exactly zero without autocast; `model` keeps the gradient."""
    model.zero_grad()
    experiment.compute_loss(model(inputs), labels).backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    zeros = sum(int((gradient == 0).sum()) for gradient in gradients)
    return zeros / sum(gradient.numel() for gradient in gradients)


def trained(bench: Bench) -> nn.Module:
    """Return the network after a few steps, in training mode: its statistics are not those of the first batch."""
    for _, (inputs, labels) in zip(range(_STEPS), bench.batches(), strict=False):
        bench.step(inputs, labels)
    return bench.model.train()


def evaluation_repeats(bench: Bench) -> float:
    """Return how far two evaluations of the same weights lie apart, and what the first did to the weights.

    The larger of the relative distance of the two losses and the change of any buffer: 0, to the bit, for an
    evaluation that is one. The larger one of two networks, the experiment's and one of ours that has modes:
    whoever takes everything out of a network that has a mode sets none in its evaluation all the same.
    """
    apart = [between_evaluations(bench, trained(bench))]
    # An evaluation that is made for the experiment's network alone cannot take ours.
    with suppress(UserError):
        apart.append(between_evaluations(bench, network_with_modes(bench)))
    return worst(apart)


def network_with_modes(bench: Bench) -> nn.Module:
    """Return a classifier of images with batch norm and dropout, in training mode."""
    inputs, labels = bench.validation
    pixels = 16 * inputs.shape[1]
    model = nn.Sequential(
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.BatchNorm1d(pixels),
        nn.Dropout(0.5),
        nn.Linear(pixels, int(labels.max()) + 1),
    )
    return model.train()


def between_evaluations(bench: Bench, model: nn.Module) -> float:
    """Return how far two evaluations of one network lie apart, or how far its buffers moved, if that is more."""
    before = [buffer.clone() for buffer in model.buffers()]
    losses = [float(bench.experiment.evaluate(model, *bench.validation)["val_loss"] or 0.0) for _ in range(2)]
    moved = [
        float((new.double() - old.double()).abs().max())
        for old, new in zip(before, model.buffers(), strict=True)
        if old.numel()
    ]
    repeated = 0.0 if losses[0] == losses[1] else abs(losses[1] - losses[0]) / max(abs(losses[0]), 1e-12)
    return max([repeated, *moved])


def evaluation_mode(bench: Bench) -> float:
    """Return the distance between the accuracy that `evaluate` reports and that by our own hand in eval mode.

    Without an accuracy, the relative distance between the losses.
    """
    model = trained(bench)
    trusted = evaluate_in_eval_mode(bench.experiment, copy.deepcopy(model), *bench.validation)
    reported = bench.experiment.evaluate(model, *bench.validation)
    if reported["val_accuracy"] is not None and trusted["val_accuracy_eval_mode"] is not None:
        return float(abs(reported["val_accuracy"] - trusted["val_accuracy_eval_mode"]))
    loss, own = float(reported["val_loss"] or 0.0), float(trusted["val_loss_eval_mode"])
    return abs(loss - own) / max(abs(own), 1e-12)
