"""The records of what a training does: calls of networks, losses, backward passes, loaders, parameters."""

import weakref
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trainwreck.places import Place


@dataclass(eq=False)
class LoaderUse:
    """How the script uses one data loader.

    training, evaluating: the number of batches that a backward pass followed, and of those that a network got without
    one. epochs: the number of times that the script began to read it. last: the latest batch. kept: a copy of a batch,
    for trials. names: the names that the script has for it.
    """

    loader: Any
    names: frozenset[str] = frozenset()
    training: int = 0
    evaluating: int = 0
    epochs: int = 0
    last: Any = None
    kept: Any = None

    @property
    def length(self) -> int:
        """The number of batches of an epoch, or 0 if the loader does not know it."""
        try:
            return len(self.loader)
        except TypeError:
            return 0


@dataclass(eq=False)
class ModelCall:
    """A call of a network by the script, outside of any other network.

    with_gradients: whether autograd records it. training: the mode of the network. layers: the dropout and batch norm
    layers that ran, each with its mode. loaders: the loaders that gave a batch since the previous call. output_shapes:
    the shapes of the outputs. outputs: weak references to the outputs. nodes: the numbers of the nodes that made the
    outputs.
    """

    network: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    with_gradients: bool
    training: bool
    place: Place
    loaders: tuple[LoaderUse, ...] = ()
    layers: list[tuple[nn.Module, bool]] = field(default_factory=list)
    output_shapes: tuple[tuple[int, ...], ...] = ()
    outputs: tuple[weakref.ref[Tensor], ...] = ()
    nodes: frozenset[int] = frozenset()

    def has_made(self, tensor: Tensor) -> bool:
        """Return whether a tensor is an output of this call, or a view of one."""
        alive = [output for ref in self.outputs if (output := ref()) is not None]
        return any(_storage(tensor) == _storage(output) != 0 for output in alive)


def is_in_training_mode(network: nn.Module) -> bool:
    """Return the mode of a network. A wrapper, such as DistributedDataParallel, has the mode of the network in it.

    A script may call `eval()` on the network inside and ask the wrapper, which then still has its old mode.
    """
    while [name for name, _ in network.named_children()] == ["module"]:
        network = next(network.children())
    return network.training


@dataclass(eq=False)
class LossCall:
    """A call of one of torch's loss functions, `name` in `torch.nn.functional`.

    outputs, targets: its first two arguments. options: the others by name. value: the result. call: the latest call of
    a network. is_direct: whether the outputs are those of this call as they are.
    """

    name: str
    outputs: Tensor
    targets: Tensor
    options: dict[str, Any]
    value: Tensor
    place: Place
    call: ModelCall | None = None
    is_direct: bool = False

    @property
    def with_gradients(self) -> bool:
        """Whether autograd records the loss, so that training may use it."""
        return self.value.requires_grad


@dataclass(eq=False)
class KeptLoss:
    """A copy of the targets of a loss, for probes. Fields are as in `LossCall`.

    is_whole: whether the update was made for this loss alone. is_drawn: whether the targets are random numbers, which
    are others in each update.
    """

    name: str
    targets: Tensor
    options: dict[str, Any]
    place: Place
    is_direct: bool = False
    is_whole: bool = False
    is_drawn: bool = False


@dataclass(eq=False)
class KeptCall:
    """A copy of a network's inputs, for probes, with the losses that compared its outputs.

    has_foreign_norms: whether the call has used batch norm layers that are no parts of the network.
    """

    network: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    losses: list[KeptLoss] = field(default_factory=list)
    has_foreign_norms: bool = False


@dataclass(eq=False)
class BackwardPass:
    """A backward pass: its number, the tensors that it starts from, and the tensors that get gradients (by `id`).

    nodes: the numbers of the nodes of its graph.
    """

    number: int
    roots: list[Tensor]
    leaves: dict[int, Tensor]
    place: Place
    nodes: Set[int]

    def follows(self, call: ModelCall) -> bool:
        """Return whether the pass goes through the outputs of a call, as far as these have numbered nodes."""
        return not call.nodes or not self.nodes.isdisjoint(call.nodes)


@dataclass(eq=False)
class SchedulerUse:
    """How the script uses one scheduler of learning rates.

    place: where it was made, or else made a step first. stepped_at: where it made its latest step. steps: the number of
    updates before each of its steps. The step of its constructor does not count.
    """

    scheduler: Any
    place: Place
    stepped_at: Place
    steps: list[int] = field(default_factory=list)


@dataclass(eq=False)
class ParameterState:
    """A tensor that gets gradients or belongs to an optimizer.

    start: the first entries as they were when the tensor was first seen. backwards: the number of backward passes that
    gave it a gradient. in_step: whether an optimizer that has made a step owns it.
    """

    tensor: Tensor
    start: Tensor
    backwards: int = 0
    in_step: bool = False

    def has_moved(self) -> bool:
        """Return whether the first entries differ from the start."""
        return not bool((self.start == first_entries(self.tensor)).all())


@dataclass(eq=False)
class Noise:
    """A tensor of random numbers of this update, or a tensor that was computed from one.

    kind: "drawn", "scaled" (a product with a drawn one) or "mixed" (a sum with one of both). name: the function that
    drew it. place: where it was drawn. is_joined: whether it became a part of another tensor, such as an input.
    """

    tensor: weakref.ref[Tensor]
    kind: str
    name: str
    place: Place
    is_joined: bool = False


@dataclass(eq=False)
class HandMadeOptimizer:
    """Stands for an optimizer where a script changes its weights itself."""

    param_groups: list[dict[str, Any]]


AnyOptimizer = Optimizer | HandMadeOptimizer
_ENTRIES = 4096


def first_entries(tensor: Tensor) -> Tensor:
    """Return a view of at most 4096 entries of a tensor, so that a copy needs little memory."""
    return tensor.detach().reshape(-1)[:_ENTRIES]


def _storage(tensor: Tensor) -> int:
    """Return the address of the values, or 0 for a sparse tensor."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0
