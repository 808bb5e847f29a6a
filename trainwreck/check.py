"""The base class of checks. A check is a class with handlers that are named like events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from trainwreck.finding import Finding, Outcome
from trainwreck.places import Place, here

if TYPE_CHECKING:
    from collections.abc import Generator

    from torch import Tensor, nn

    from trainwreck.events import AnyOptimizer, BackwardPass, LoaderUse, LossCall, ModelCall, SchedulerUse
    from trainwreck.state import Watch
    from trainwreck.trial import Probe, Trial

_MOST_LINES = 8  # of one outcome that are reported


class Check:
    """One property of sound training, seen from the events of a watched script.

    A subclass has a docstring, whose first line states the property, `name`, the `question` that it answers, and its
    `outcomes`. It overrides the handlers of the events that it needs. `watch` gives the state of the training.
    """

    name: ClassVar[str]
    question: ClassVar[str]
    outcomes: ClassVar[dict[str, Outcome]]

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.findings: dict[tuple[str, Place | None], Finding] = {}  # by outcome, and by the line if it has one

    def handles(self, event: str) -> bool:
        """Return whether the check has a handler of its own for an event."""
        return getattr(type(self), event) is not getattr(Check, event)

    def tell(self, outcome: str, text: str, place: Place | str | None = None) -> None:
        """Report an outcome, once for each line: with the values that decided, and by default at the running line."""
        where = here() if place is None else Place(place) if isinstance(place, str) else place
        key = outcome, where if where.line else None
        if key not in self.findings and sum(told == outcome for told, _ in self.findings) < _MOST_LINES:
            level = self.outcomes[outcome].level
            self.findings[key] = Finding(self.name, outcome, level, text, where, self.watch.step)

    # The events, in the order of a training step.

    def on_call(self, call: ModelCall) -> None:
        """A network was called."""

    def on_loss(self, loss: LossCall) -> None:
        """A loss function of torch was called."""

    def on_operation(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """An operation was called.

        name: "dropout", "detach", "squash" (a sigmoid or softmax), "idle term" (a loss without gradients is added to a
        value with gradients), "reshape" (the sizes of a tensor change their order) or "cut" (a new leaf is made from
        values with gradients); outside of networks also "difference", "product", "comparison", "maximum" or
        "threshold", "gradient norm" (of what `torch.autograd.grad` gives for one value of each example), "selection"
        (a tensor without gradients is indexed by another one), "hits sum", "hits mean" or "selected hits" (by an index
        or a mask) of a comparison of predictions and labels, and "masked losses" of an evaluation. args: its arguments;
        for a maximum, the values and the dimension; for hits, the predictions and the labels, and the index; for
        losses, the targets and the mask. result: of a squash, the name of the function; of an idle term, the place of
        the loss; of a cut, the leaf.
        """

    def on_batch(self, use: LoaderUse, batch: Any, number: int) -> None:
        """A data loader gives batch `number` of an epoch, from 0."""

    def on_load(self, module: nn.Module, state: Any, place: Place) -> None:
        """A module loads a state."""

    def on_state(self, module: nn.Module, state: Any, place: Place) -> None:
        """The script takes the state of a module during the training."""

    def on_fill_state(self, module: nn.Module, state: Any, place: Place) -> None:
        """The script lets a module write its state into a dictionary that has values."""

    def on_transform(self, data: Any, name: str, value: Any, place: Place) -> None:
        """The script is about to give a data set another transform, as its attribute `name`."""

    def on_print(self, values: tuple[Any, ...], place: Place) -> None:
        """The script prints values after an update."""

    def on_fill(self, is_random: bool, tensor: Tensor, place: Place) -> None:
        """A tensor is filled with random numbers, or with other values."""

    def on_save(self, saved: Any, place: Place) -> None:
        """`torch.save` stores an object."""

    def on_score(self, score: Tensor, call: ModelCall) -> None:
        """A distribution gives the log-probability of a sample of its own. call: the latest call of a network."""

    def on_average(self, model: nn.Module) -> None:
        """An `AveragedModel` is updated."""

    def before_backward(self, backward: BackwardPass) -> None:
        """A backward pass begins."""

    def after_backward(self, backward: BackwardPass) -> None:
        """A backward pass has ended."""

    def on_clip(self, parameters: list[Tensor]) -> None:
        """`clip_grad_norm_` or `clip_grad_value_` is called."""

    def on_scaler(self, method: str, scaler: Any, optimizer: AnyOptimizer | None) -> None:
        """A method of an enabled `GradScaler` is called: "scale", "unscale_", "step" or "update"."""

    def on_schedule(self, use: SchedulerUse) -> None:
        """A scheduler has made a step."""

    def on_skipped_step(self, optimizer: AnyOptimizer) -> None:
        """A `GradScaler` skips an update, because a gradient is not finite."""

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """An optimizer uses its gradients next."""

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """An optimizer has changed its weights."""

    def on_repeated_closure(self, optimizer: AnyOptimizer) -> None:
        """An optimizer calls its closure once more within one step."""

    def at_end(self) -> None:
        """The watched part of the training has ended."""

    def trials(self) -> Generator[Trial | Probe, Any, None]:
        """Yield trials and probes, and get the answer of each: what a child process found."""
        yield from ()
