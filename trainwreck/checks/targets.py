"""The loss depends on every column of the targets and on every example of the batch."""

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, LossCall, ModelCall, Noise
from trainwreck.finding import Outcome
from trainwreck.patience import patient
from trainwreck.places import Place
from trainwreck.state import graph_leaves
from trainwreck.trees import tensors
from trainwreck.trial import Trial

_COLUMNS = 8  # the most columns that are tried
_UPDATES = 6
_SECONDS = patient(5.0)  # of training in the first trial
_ROWS, _MOST_INPUTS = 64, 100_000
_PLACE = "from the batch to the loss"
_OF_VALUES = ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss")
_UNIFORM = ("rand", "rand_like")
_FLAGS, _TIMES = 8, 4  # flags, and updates with an unused one
_SHAPES = ("View", "Squeeze", "Reshape", "Expand")  # nodes of a graph that change no value


class Targets(Check):
    """The loss of the script changes with its targets, no input is the target, and no gradient flows through it.

    In children, the loop goes on for one update with the same batch. All targets are changed, or one column, or the
    targets of one example.
    """

    name = "targets"
    question = "Does the loss depend on all targets?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "column-unused": Outcome(
            "advice",
            "The loss does not depend on a column of the targets.",
            "Look at the indices and shapes before the loss.",
        ),
        "example-unused": Outcome(
            "advice",
            "The loss does not depend on the targets of one example.",
            "Look for an index, a mask or a filter that drops examples.",
        ),
        "in-inputs": Outcome(
            "advice",
            "Each target is one of the inputs of its example, so the network can copy it.",
            "Leave the column of the target out of the inputs, or let the target begin after the window of the inputs.",
            "target_leakage",
        ),
        "drawn": Outcome(
            "advice",
            "The target of a loss is drawn at random for each update, and nothing else uses it.",
            "Compare the output with the random tensor that went into the inputs.",
        ),
        "uniform-noise": Outcome(
            "advice",
            "The network learns to predict noise from 0 to 1, whose mean is not 0.",
            "Draw the noise with torch.randn or randn_like.",
        ),
        "noisy": Outcome(
            "advice",
            "The target of a loss is a sum with noise that the network gets as an input, so it learns to copy it.",
            "Compare the output with the noise, or with the tensor before the noise was added.",
        ),
        "flag-unused": Outcome(
            "advice",
            "The script makes a tensor of zeros and ones from the examples of each batch, and never uses it.",
            "If it says where an episode ends, multiply the value of the next state by 1 - done.",
        ),
        "with-gradient": Outcome(
            "advice",
            "The target of a loss is computed from the network that is trained, and the gradient flows through it.",
            "Compute the target under torch.no_grad(), or detach it.",
        ),
        "vary": Outcome(
            "alarm",
            "The same inputs get other targets each time.",
            "Look for a permutation or a random choice between the batch and the loss.",
            "label_permute",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._unused: dict[Place, int] = {}  # the updates with an unused flag
        self._copied: dict[Place, tuple[int, set[int]]] = {}  # rows, and the columns of inputs that equal the target

    def on_loss(self, loss: LossCall) -> None:
        """Look at where targets come from, and for a column of the inputs that equals the targets."""
        self._judge_origin(loss)
        if not loss.with_gradients or loss.call is None or self._copied.get(loss.place, (0, set()))[0] >= _ROWS:
            return
        targets, given = loss.targets.detach(), next(tensors((loss.call.args, loss.call.kwargs)), None)
        rows = targets.size(0) if targets.dim() else 0
        if given is None or not given.is_floating_point() or given.dim() < 2 or given.layout is not torch.strided:
            return
        if rows < 2 or targets.numel() != rows or given.size(0) != rows or given[0].numel() > _MOST_INPUTS:
            return
        inputs, column = given.detach().flatten(1), targets.flatten().to(given.dtype)
        if inputs.size(1) < 2 or targets.requires_grad or bool((column == column[0]).all()):
            return
        equal = set((inputs == column[:, None]).all(0).nonzero().flatten().tolist())
        seen, before = self._copied.get(loss.place, (0, equal))
        self._copied[loss.place] = (seen + rows, before & equal)

    def _judge_origin(self, loss: LossCall) -> None:
        if not loss.with_gradients or loss.call is None or not loss.outputs.requires_grad:
            return
        drawn = self.watch.drawn.get(id(loss.targets))
        if drawn is not None and drawn() is loss.targets:
            self.tell("drawn", f"{loss.name} of shape {tuple(loss.targets.shape)}", loss.place)
        elif (noise := self.watch.noise.get(id(loss.targets))) is not None and noise.tensor() is loss.targets:
            self._judge_noise(noise, loss, loss.call)
        if loss.targets.requires_grad and loss.name in _OF_VALUES and _is_bootstrapped(loss.targets):
            leaves = graph_leaves([loss.targets]).keys() & graph_leaves([loss.outputs]).keys()
            if leaves:
                self.tell("with-gradient", f"the target depends on {len(leaves)} parameters", loss.place)

    def _judge_noise(self, noise: Noise, loss: LossCall, call: ModelCall) -> None:
        """Look at a target that is noise, or a sum with noise."""
        given = list(tensors((call.args, call.kwargs)))
        is_input = any(one is loss.targets for one in given)
        shape = f"{loss.name} of shape {tuple(loss.targets.shape)}"
        if noise.kind == "drawn" and noise.name in _UNIFORM and not is_input:
            self.tell("uniform-noise", f"{shape}, drawn by {noise.name}", noise.place)
        # With a further input, such as the number of the step: an autoencoder may get noisy inputs as they are.
        if noise.kind == "mixed" and (noise.is_joined or (is_input and len(given) > 1)):
            self.tell("noisy", shape, loss.place)

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """Look for tensors of zeros and ones that the update did not use."""
        places = set()
        for ref, place in self.watch.made.values():
            flags = ref()
            if flags is not None and flags.numel() == flags.size(0) >= _FLAGS and flags.unique().tolist() == [0, 1]:
                places.add(place)
        for place in places:
            self._unused[place] = self._unused.get(place, 0) + 1
            if self._unused[place] == _TIMES:
                self.tell("flag-unused", f"in {_TIMES} updates", place)

    def at_end(self) -> None:
        """Say whether a column of the inputs equals the targets."""
        for place, (rows, columns) in self._copied.items():
            if columns and rows >= _ROWS:
                self.tell("in-inputs", f"input {min(columns)} equals the target of {rows} examples", place)

    def trials(self) -> Generator[Trial, Any, None]:
        """Change the targets of the batch, and compare the next loss with the loss for the unchanged batch."""
        trained = [use for use in self.watch.loaders.values() if use.training]
        if len(self.watch.optimizers) != 1 or len(trained) > 1:
            return
        steady = yield Trial(steps=_UPDATES, same_batch=True, dropout=False)
        if not steady:
            return
        if steady["targets_vary"]:
            self.tell("vary", f"{_UPDATES} updates with the same batch", steady["targets_vary"])
            return
        targets = _targets_of(trained[0].kept) if trained else None
        own = steady["losses"][:1]
        if targets is None or not own or not (yield from self._is_equal(own, torch.clone)):
            return  # no targets, or the loss is random, so that a difference says nothing
        if steady["seconds"] > _SECONDS or (yield from self._is_equal(own, _changed)):
            return  # too slow; or the targets are not used, as in an autoencoder
        columns = targets.size(1) if targets.dim() == 2 and targets.is_floating_point() else 0
        for column in range(columns if 1 < columns <= _COLUMNS else 0):
            if (yield from self._is_equal(own, partial(_changed_at, dim=1, index=column))):
                self.tell("column-unused", f"column {column} of {columns}", _PLACE)
        for row in (0, targets.size(0) - 1) if targets.size(0) > 1 else ():
            if (yield from self._is_equal(own, partial(_changed_at, dim=0, index=row))):
                self.tell("example-unused", f"example {row} of {targets.size(0)}", _PLACE)

    def _is_equal(self, own: list[float], change: Callable[[Tensor], Tensor]) -> Generator[Trial, Any, bool]:
        answer = (yield self._trial(change)) or {}
        return bool(answer.get("losses", [])[:1] == own)

    @staticmethod
    def _trial(change: Callable[[Tensor], Tensor]) -> Trial:
        return Trial(steps=1, same_batch=True, dropout=False, edit=partial(_edited, change=change))


def _is_bootstrapped(target: Tensor) -> bool:
    """Return whether a target is a sum with a multiple, such as a reward and a discounted value.

    A target that is an output as it is may be meant, as in a loss between two views.
    """
    node: Any = target.grad_fn
    while node is not None and any(name in node.name() for name in _SHAPES):
        node = node.next_functions[0][0]
    if node is None or not node.name().startswith(("Add", "Sub")):
        return False
    return any(inner is not None and inner.name().startswith("Mul") for inner, _ in node.next_functions)


def _edited(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return a batch of two parts with changed targets."""
    return type(batch)([batch[0], change(batch[1])])


def _targets_of(batch: Any) -> Tensor | None:
    """Return the second part of a batch of two parts, if it is a tensor with a value for each example."""
    if not isinstance(batch, tuple | list) or len(batch) != 2 or not isinstance(batch[1], Tensor):
        return None
    return batch[1] if batch[1].dim() and batch[1].numel() else None


def _changed(targets: Tensor) -> Tensor:
    """Return other targets: for classes other ones that occur, for numbers 1 minus the number, or a larger one."""
    if targets.is_floating_point():
        shares = bool(((targets >= 0) & (targets <= 1)).all())
        return 1 - targets if shares and bool((targets != 0.5).all()) else targets * 0.5 + 0.25
    if targets.dtype == torch.bool:
        return ~targets
    kinds = targets.unique()
    following = torch.searchsorted(kinds, targets) + 1
    changed: Tensor = kinds[following % kinds.numel()]
    return changed


def _changed_at(targets: Tensor, dim: int, index: int) -> Tensor:
    """Return targets that are changed at one index of one dimension."""
    new = targets.clone()
    new.select(dim, index).copy_(_changed(targets).select(dim, index))
    return new
