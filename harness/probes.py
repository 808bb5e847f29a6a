"""Mechanism probes: they call an experiment's functions on inputs of our choice to see whether the cause is gone.

Each returns one figure that is about 0 (or, for the learning rate, small) where the mechanism is sound.
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.batches import deterministic_minibatches
from harness.errors import UserError
from harness.evaluation import evaluate_in_eval_mode
from harness.experiment import Experiment, TensorData
from harness.numerics import canonical_setup
from harness.recipe import Probe
from harness.recorder import Recorder

_STEPS = 6
# A shuffle that happens to one batch in five escapes 30 draws once in 800.
_PAIRING_DRAWS = 30
# With fewer examples a shuffle within the batch would have next to nothing to mix.
_FEWEST_PAIRED = 16
# Gradients are accumulated over a few batches; who steps more seldom is taken at each batch's word.
_MOST_ACCUMULATED = 8
# Scaling needs a few steps to settle, and gradients shrink as the loss does: look at the second half.
_UNDERFLOW_STEPS = 40


@dataclass(frozen=True)
class ProbeResult:
    """What a probe measured, and whether that stays below its bound (a NaN does not)."""

    probe: Probe
    value: float
    passed: bool


class Bench:
    """An experiment set up on its training data, to be stepped and looked at."""

    def __init__(self, experiment: Experiment, data: TensorData, seed: int) -> None:
        canonical_setup(seed)
        self.experiment = experiment
        (self.inputs, self.labels), self.validation = experiment.load_data(data)
        self.batch_size = min(experiment.batch_size, len(self.inputs))
        self.steps = experiment.epochs * (len(self.inputs) // self.batch_size)
        self.model = experiment.build_model()
        self.optimizer = experiment.build_optimizer(self.model)
        self.scheduler = experiment.build_scheduler(self.optimizer, self.steps)
        self.rng = torch.Generator().manual_seed(seed)

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield prepared training batches, epoch after epoch."""
        while True:
            for inputs, labels in deterministic_minibatches(
                self.inputs, self.labels, self.batch_size, self.rng, drop_last=True
            ):
                yield self.experiment.prepare_batch(inputs, labels, self.rng)

    def step(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Make one training step of the experiment and of its schedule, and return the loss."""
        self.model.train()
        loss = self.experiment.train_step(self.model, self.optimizer, inputs, labels)
        if self.scheduler is not None:
            self.scheduler.step()
        return loss


def run_probe(probe: Probe, experiment: Experiment, data: TensorData, seed: int) -> ProbeResult:
    """Measure one mechanism of an experiment. Raises `UserError` for what the experiment does wrong meanwhile."""
    value = _PROBES[probe.kind](Bench(experiment, data, seed))
    return ProbeResult(probe, value, value < probe.below)


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
        images, given = bench.experiment.prepare_batch(inputs.clone(), labels.clone(), bench.rng)
        brightness = images.flatten(1).median(dim=1).values
        by_brightness = given[brightness.argsort(stable=True)]
        wrong.append((by_brightness != labels.sort().values).double().mean().item())
    return _worst(wrong)


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
    return _worst(rates)


def stale_gradient(bench: Bench) -> float:
    """Return the largest relative distance between the gradient used and a fresh one."""
    with Recorder(bench.model) as recorder:
        ratios: list[float] = [
            recorder.end_batch(bench.step(inputs, labels))["stale_grad_ratio"]
            for _, (inputs, labels) in zip(range(_STEPS), bench.batches(), strict=False)
        ]
    return _worst(ratios)


@contextmanager
def _fresh_gradients(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect what backward passes add to each parameter, before anything clears, scales or clips it."""
    gradients: dict[str, Tensor] = {}

    def collect(name: str) -> Callable[[Tensor], None]:
        def add(gradient: Tensor) -> None:
            gradients[name] = gradients[name] + gradient if name in gradients else gradient.clone()

        return add

    handles = [p.register_hook(collect(name)) for name, p in model.named_parameters() if p.requires_grad]
    try:
        yield gradients
    finally:
        for handle in handles:
            handle.remove()


def mean_cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy of what a network puts out: probabilities as such, all else as logits."""
    # Softmax and sigmoid alike; the equal logits of a network that starts at zero are no probabilities.
    probabilities = bool(((outputs >= 0) & (outputs <= 1)).all()) and bool((outputs != outputs[0, 0]).any())
    if probabilities:
        return F.nll_loss(outputs.clamp(min=1e-30).log(), labels)
    return F.cross_entropy(outputs, labels)


def loss_gradient(bench: Bench) -> float:
    """Return the relative distance between the gradient of a training step and that of the mean cross-entropy.

    The larger one of two steps, on a whole batch and on half of it: a mean is one whatever the size. Where the
    optimizer steps on every k-th batch, a batch counts for 1 / k of the mean that it steps on.
    """
    batches = bench.batches()
    inputs, labels = next(batches)
    half = max(len(labels) // 2, 1)
    stepped: list[int] = []
    call = 0
    counter = bench.optimizer.register_step_pre_hook(lambda *_: stepped.append(call))
    pairs = []
    for part in (inputs, labels), (inputs[:half], labels[:half]):
        pairs.append(_gradients(bench, *part))
        call += 1
    while call < 2 * _MOST_ACCUMULATED and len(set(stepped)) < 2:
        bench.step(*next(batches))
        call += 1
    counter.remove()
    # Several optimizers' steps in one call are one; calls are in their order.
    apart = [later - earlier for earlier, later in pairwise(dict.fromkeys(stepped))]
    share = 1 / apart[0] if apart else 1.0
    return _worst([_distance(found, expected, share) for found, expected in pairs])


def _worst(values: list[float]) -> float:
    """Return the largest value, or NaN where one of them is: the largest would hide it."""
    return math.nan if any(math.isnan(value) for value in values) else max(values)


def _gradients(bench: Bench, inputs: Tensor, labels: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the gradients of a training step, and those of the mean cross-entropy at the same weights."""
    reference = copy.deepcopy(bench.model).train()
    state = torch.get_rng_state()
    with _fresh_gradients(bench.model) as found:
        bench.step(inputs, labels)
    torch.set_rng_state(state)
    with _fresh_gradients(reference) as expected:
        mean_cross_entropy(reference(inputs), labels).backward()
    return found, expected


def _distance(found: dict[str, Tensor], expected: dict[str, Tensor], share: float) -> float:
    """Return the relative distance of gradients from a share of others."""
    difference, length = 0.0, 0.0
    for name, gradient in expected.items():
        own = found.get(name, torch.zeros_like(gradient))
        difference += float((own - share * gradient).double().square().sum())
        length += float((share * gradient).double().square().sum())
    if length == 0.0:  # a network that died in the step before has no gradient to be off from
        return 0.0 if difference == 0.0 else math.inf
    return float((difference / length) ** 0.5)


def gradient_underflow(bench: Bench) -> float:
    """Return how many more gradient entries are exactly zero than in float32, as a fraction of all (median)."""
    excess = []
    with Recorder(bench.model) as recorder:
        for index, (inputs, labels) in zip(range(_UNDERFLOW_STEPS), bench.batches(), strict=False):
            reference = copy.deepcopy(bench.model).train()
            record = recorder.end_batch(bench.step(inputs, labels))
            if index >= _UNDERFLOW_STEPS // 2:
                excess.append(
                    (record["grad_zero_fraction"] or 0.0) - _float32_zeros(bench, reference, inputs, labels)
                )
    return median(excess)


def _float32_zeros(bench: Bench, model: nn.Module, inputs: Tensor, labels: Tensor) -> float:
    model.zero_grad()
    bench.experiment.compute_loss(model(inputs), labels).backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    zeros = sum(int((gradient == 0).sum()) for gradient in gradients)
    return zeros / sum(gradient.numel() for gradient in gradients)


def _trained(bench: Bench) -> nn.Module:
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
    apart = [_between_evaluations(bench, _trained(bench))]
    # An evaluation that is made for the experiment's network alone cannot take ours.
    with suppress(UserError):
        apart.append(_between_evaluations(bench, _network_with_modes(bench)))
    return _worst(apart)


def _network_with_modes(bench: Bench) -> nn.Module:
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


def _between_evaluations(bench: Bench, model: nn.Module) -> float:
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
    model = _trained(bench)
    trusted = evaluate_in_eval_mode(bench.experiment, copy.deepcopy(model), *bench.validation)
    reported = bench.experiment.evaluate(model, *bench.validation)
    if reported["val_accuracy"] is not None and trusted["val_accuracy_eval_mode"] is not None:
        return float(abs(reported["val_accuracy"] - trusted["val_accuracy_eval_mode"]))
    loss, own = float(reported["val_loss"] or 0.0), float(trusted["val_loss_eval_mode"])
    return abs(loss - own) / max(abs(own), 1e-12)


_PROBES: dict[str, Callable[[Bench], float]] = {
    "batch_pairing": batch_pairing,
    "learning_rate": learning_rate,
    "stale_gradient": stale_gradient,
    "loss_gradient": loss_gradient,
    "gradient_underflow": gradient_underflow,
    "evaluation_mode": evaluation_mode,
    "evaluation_repeats": evaluation_repeats,
}
