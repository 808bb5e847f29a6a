"""Make artificial inputs, labels and weights for probes, and a network with fixed outputs."""

import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from harness.behaviour.projections import draw_normal
from harness.checks.core.subject import Trial
from harness.run.evaluation import IGNORED


def draw_batch(trial: Trial, rows: int, seed: int = 3) -> tuple[Tensor, Tensor]:
    """Return random inputs and labels with the shape and type of the training split."""
    return _like(trial.inputs, trial.labels, output_shape(trial), rows, seed)


def draw_validation_batch(trial: Trial, rows: int) -> tuple[Tensor, Tensor]:
    """Return random inputs and labels with the shape and type of the validation split."""
    return _like(*trial.validation, output_shape(trial), rows, 6)


def _like(inputs: Tensor, labels: Tensor, outputs: Sequence[int], rows: int, seed: int) -> tuple[Tensor, Tensor]:
    shape = (rows, *inputs.shape[1:])
    generator = torch.Generator().manual_seed(seed)
    if inputs.is_floating_point():
        drawn = torch.randn(shape, generator=generator)
    else:  # texts of different lengths, padded with zeros
        drawn = torch.randint(1, int(inputs.max()) + 1, shape, generator=generator)
        if bool((inputs == 0).any(dim=1).all()) or bool((inputs[:, -1] == 0).any()):
            lengths = torch.randint(shape[1] // 2, shape[1] + 1, (rows, 1), generator=generator)
            drawn = torch.where(torch.arange(shape[1]) < lengths, drawn, 0)
    targets = _targets(labels, outputs, drawn, rows, generator)
    return drawn, targets


def _targets(labels: Tensor, outputs: Sequence[int], inputs: Tensor, rows: int, generator: torch.Generator) -> Tensor:
    shape = (rows, *labels.shape[1:])
    if not labels.is_floating_point():
        classes = outputs[-1] if outputs and outputs[-1] > 1 else 2
        drawn = torch.randint(0, classes, shape, generator=generator)
        if labels.dim() > 1 and bool((labels == IGNORED).any()):
            drawn = torch.where(inputs == 0, IGNORED, drawn)
        return drawn
    finite = labels[labels.isfinite()]
    if bool(((finite == 0) | (finite == 1)).all()):
        return (torch.rand(shape, generator=generator) < 0.4).to(labels.dtype)
    if labels.dim() == 2 and len(outputs) == 1 and labels.shape[1] == outputs[0] + 1:  # a class and other targets
        drawn = torch.randn(shape, generator=generator)
        drawn[:, 0] = torch.randint(0, outputs[0], (rows,), generator=generator).to(labels.dtype)
        return drawn
    return torch.randn(shape, generator=generator).to(labels.dtype) * float(finite.double().std())


def output_shape(trial: Trial) -> tuple[int, ...]:
    """Return the shape of the network's output for one example."""
    model = copy.deepcopy(trial.model).eval()
    with torch.no_grad():
        outputs = model(trial.inputs[:2])
    return tuple(outputs.shape[1:])


def outputs_for(labels: Tensor, shape: Sequence[int]) -> Tensor:
    """Return network outputs (B, *shape) that predict the given labels: logits of 1 or -1, or one-hot rows.

    If the network outputs more numbers than there are targets, such as a variance for each mean, the others are 0.
    """
    if labels.is_floating_point():
        if labels.dim() == 2 and len(shape) == 1 and labels.shape[1] == shape[0] + 1:
            return nn.functional.one_hot(labels[:, 0].long(), shape[0]).float()
        found = labels.reshape(len(labels), -1).float()
        if (more := math.prod(shape) - found.shape[1]) > 0:
            found = nn.functional.pad(found, (0, more))
        found = found.reshape(len(labels), *shape)
        return 2 * found - 1 if bool(((found == 0) | (found == 1)).all()) else found
    known = labels.clamp(min=0)
    if not shape or shape[-1] == 1:
        return (2 * known.float() - 1).reshape(len(labels), *shape)
    return nn.functional.one_hot(known, shape[-1]).float()


class StandIn(nn.Module):
    """A network with a fixed output for each row of inputs.

    Its dropout and batch norm show whether it is in training or in eval mode.
    """

    def __init__(self, inputs: Tensor, outputs: Tensor, network: nn.Module) -> None:
        super().__init__()
        object.__setattr__(self, "_network", network)  # not a submodule
        self.anchor = nn.Parameter(torch.zeros(1))
        self.dropout, self.norm = nn.Dropout(0.5), nn.BatchNorm1d(1)
        self._answers = {bytes_of(row): output for row, output in zip(inputs, outputs, strict=True)}
        self._unknown = torch.zeros_like(outputs[0])

    def forward(self, inputs: Tensor, *_: object) -> Tensor:
        """Return the fixed output for each row of inputs, or zeros for an unknown row."""
        outputs = torch.stack([self._answers.get(bytes_of(row), self._unknown) for row in inputs])
        if self.training:
            self.norm(inputs.reshape(-1, 1).float())
        return self.dropout(outputs) if self.training else outputs

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator over the layers of the experiment's network, if it is a sequence."""
        return iter(self.__dict__["_network"])

    def __len__(self) -> int:
        return len(self.__dict__["_network"])

    def __getitem__(self, index: int) -> Any:
        return self.__dict__["_network"][index]

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the experiment's network, because `evaluate` may need it for an additional metric."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_network"], name)


def bytes_of(row: Tensor) -> bytes:
    """Return the values of a tensor as bytes, so that tensors can be compared."""
    return row.detach().contiguous().numpy().tobytes()


def _floats(model: nn.Module) -> dict[str, Tensor]:
    """Return {name: tensor} for the non-empty floating-point parameters and buffers of a network."""
    named = itertools.chain(model.named_parameters(), model.named_buffers())
    return {name: tensor for name, tensor in named if tensor.is_floating_point() and tensor.numel()}


@torch.no_grad()
def give_weights(model: nn.Module, seed: int = 0) -> None:
    """Overwrite weights and running statistics with fixed random values.

    If two parameters with different entries have equal values, for example because weights are tied, they stay equal.
    """
    given: dict[bytes, int] = {}
    for place, (name, tensor) in enumerate(_floats(model).items()):
        if not isinstance(tensor, nn.Parameter) and not name.endswith(("running_mean", "running_var")):
            continue
        is_drawn = bool((tensor != tensor.flatten()[0]).any())
        number = given.setdefault(bytes_of(tensor), place) if is_drawn else place
        drawn = draw_normal(tensor.shape, 1000 * (seed + 1) + number)
        if name.endswith("running_var"):
            drawn = 0.5 + drawn.abs()
        elif tensor.dim() > 1:
            drawn = drawn / math.sqrt(tensor[0].numel())
        else:
            drawn = 0.1 * drawn + (1.0 if name.endswith("weight") else 0.0)
        tensor.copy_(drawn)
