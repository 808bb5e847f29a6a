"""Observe `evaluate`: call it twice, with a fixed mode or a substitute network, and record its inputs and outputs."""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from harness.checks.core.subject import Trial

_OFF = 1e-3  # in deviations of the inputs; rounding to another precision changes an input less
LossAndAccuracy = tuple[float, float | None]  # the accuracy is None for a regression


class StandInNetwork(nn.Module):
    """A small network with batch norm and dropout that can take the place of the experiment's network in `evaluate`.

    It accepts any inputs, and its outputs have the shape of the outputs of the experiment's network."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        inputs = next(trial.batches())[0]
        with torch.no_grad():
            outputs = copy.deepcopy(trial.model).eval()(inputs)
        self.by_place = outputs.dim() == 3 and outputs.shape[:2] == inputs.shape[:2]
        self.shape = outputs.shape[2:] if self.by_place else outputs.shape[1:]
        self.norm, self.drop = nn.BatchNorm1d(16), nn.Dropout(0.5)
        self.head = nn.Linear(16, math.prod(self.shape))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return outputs in the shape that the experiment's own network returns."""
        places = inputs.shape[:2] if self.by_place else inputs.shape[:1]
        values = inputs.to(self.head.weight.dtype).reshape(math.prod(places), 1, -1)
        features = nn.functional.adaptive_avg_pool1d(values, 16).flatten(1)
        found: Tensor = self.head(self.drop(self.norm(features)))
        return found.reshape(*places, *self.shape)


@contextmanager
def hold_mode(model: nn.Module, *, training: bool) -> Iterator[None]:
    """Keep a network in training or in eval mode, even if its `train()` or `eval()` is called."""

    def hold(module: nn.Module, _inputs: object) -> None:
        module.training = training

    handles = [module.register_forward_pre_hook(hold) for module in model.modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def record_inputs(model: nn.Module) -> Iterator[list[object]]:
    """Yield a list that collects the first argument of each call of a network."""
    noted: list[object] = []
    handle = model.register_forward_pre_hook(lambda _model, inputs: noted.append(*inputs[:1] or (None,)))
    try:
        yield noted
    finally:
        handle.remove()


def record_evaluation(
    network: nn.Module, written: Callable[[nn.Module], LossAndAccuracy]
) -> tuple[list[Tensor], list[object], LossAndAccuracy]:
    """Return the outputs and inputs of a network for each call during `evaluate`, and the reported metrics.

    The list of outputs is empty if an output is not a tensor, or if the shapes differ in more than the number of
    examples, for example because texts have different lengths.
    """
    model = copy.deepcopy(network).train()
    noted: list[object] = []
    model.register_forward_hook(lambda _model, _inputs, output: noted.append(output))
    with record_inputs(model) as given:
        figures = written(model)
    outputs = [output.detach().float() for output in noted if isinstance(output, Tensor)]
    alike = len(outputs) == len(noted) and len({output.shape[1:] for output in outputs}) <= 1
    return outputs if alike else [], given, figures


def share_changed(given: list[object], loaded: Tensor) -> float | None:
    """Return the share of a network's input rows that are not in the loaded split; None if the share is unknown."""
    rows = [part.detach().flatten(1) for part in given if isinstance(part, Tensor) and part.dim() > 1]
    known, width = loaded.flatten(1), loaded[0].numel()
    if len(rows) < len(given) or any(part.shape[1] != width for part in rows):
        return None
    found = torch.cat(rows).to(known.dtype) if rows else known[:0]
    off = torch.ones(len(found), dtype=torch.bool)
    if len(found) == len(known):  # in another precision, rows in the same order are almost equal
        off = (found - known).double().abs().amax(dim=1) > _OFF * max(float(known.double().std()), 1e-12)
    own = {row.numpy().tobytes() for row in known}
    strange = [row.contiguous().numpy().tobytes() not in own for row in found[off]]
    return sum(strange) / max(len(found), 1)


@contextmanager
def record_old_copies(start: nn.Module, model: nn.Module) -> Iterator[list[nn.Module]]:
    """Yield a list of the called networks that have the model's shapes, trained weights, and initial buffers."""
    found: list[nn.Module] = []
    shapes = [parameter.shape for parameter in model.parameters()]
    places = [
        place
        for place, (old, new) in enumerate(zip(start.buffers(), model.buffers(), strict=True))
        if old.is_floating_point() and not torch.equal(old, new)
    ]

    def note(module: nn.Module, _inputs: object) -> None:
        parameters, buffers = list(module.parameters()), list(module.buffers())
        if [parameter.shape for parameter in parameters] != shapes or len(buffers) != len(list(start.buffers())):
            return
        kept = list(start.buffers())
        learnt = not all(map(torch.equal, parameters, start.parameters()))
        if learnt and all(torch.equal(buffers[place], kept[place]) for place in places):
            found.append(module)

    handle = register_module_forward_pre_hook(note) if places else None
    try:
        yield found
    finally:
        if handle is not None:
            handle.remove()


def evaluate_twice(
    model: nn.Module, evaluate: Callable[[nn.Module], LossAndAccuracy]
) -> tuple[LossAndAccuracy, LossAndAccuracy, float]:
    """Evaluate a network twice; return both results and the largest change of any buffer."""
    before = [buffer.clone() for buffer in model.buffers()]
    first, second = evaluate(model), evaluate(model)
    moved = [
        float(torch.where(new == old, 0.0, (new.double() - old.double()).abs()).max())  # a mask contains -inf
        for old, new in zip(before, model.buffers(), strict=True)
        if old.numel()
    ]
    return first, second, max(moved, default=0.0)


def loss_distance(first: LossAndAccuracy, second: LossAndAccuracy) -> float:
    """Return the difference of two losses; 0 if both results are equal (NaN counts as equal to NaN)."""
    return 0.0 if is_equal(first, second) else abs(second[0] - first[0]) or 1.0


def is_equal(first: LossAndAccuracy, second: LossAndAccuracy) -> bool:
    """Return whether two results are equal; NaN counts as equal to NaN."""
    return all(one == other or repr(one) == repr(other) for one, other in zip(first, second, strict=True))


def metric_distance(first: LossAndAccuracy, second: LossAndAccuracy) -> float:
    """Return the difference of the accuracies, or for a regression the relative difference of the losses."""
    if first[1] is not None and second[1] is not None:
        return abs(first[1] - second[1])
    return abs(first[0] - second[0]) / max(abs(second[0]), 1e-12)
