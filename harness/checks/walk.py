"""A run that can be looked at between its batches, and gone on with from there: the very steps that `train` makes."""

import itertools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from torch import Tensor

from harness.checks.subject import Subject
from harness.run.checkpoint import canonical, restore_training_state, training_state
from harness.run.metrics_log import Record
from harness.run.recorder import Recorder
from harness.trainer import Training

State = dict[str, Any]


class Walk:
    """The run of a subject, batch by batch; use as a context manager. `folder` takes what a run writes on its way."""

    def __init__(self, subject: Subject, folder: Path) -> None:
        self.training = Training(subject.experiment(), subject.tensors(), subject.settings, folder, None)
        self._recorder = Recorder(self.training.model, clip_norm=subject.settings.clip_norm)
        self._batches: Iterator[tuple[Tensor, Tensor]] | None = None
        self._order = self.training.generators["order"].get_state()
        self._skipped = 0

    def __enter__(self) -> "Walk":
        self._recorder.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._recorder.__exit__(kind, error, traceback)

    @property
    def position(self) -> int:
        """The step that comes next."""
        return int(self.training.position["step"])

    @property
    def over(self) -> bool:
        """Whether the run has made all its steps."""
        return self.position >= self.training.steps

    def state(self) -> State:
        """Return all that is needed to go on from before the next batch, copied."""
        training = self.training
        state = training_state(**training.parts(), position=training.position)
        # The order of an epoch is drawn at its start: from there, and then past what has been trained on.
        state["generators"]["order"] = self._order
        copied: State = canonical(state | {"skipped": self._skipped})
        return copied

    def restore(self, state: Mapping[str, Any]) -> None:
        """Undo `state`, in a walk over the same subject. Raises `UserError` where it belongs to another."""
        training = self.training
        restore_training_state(state, **training.parts())
        training.position = {key: state[key] for key in training.position}
        self._order, self._skipped, self._batches = state["generators"]["order"], int(state["skipped"]), None

    def step(self) -> Record:
        """Train on the next batch; return its record of the log."""
        training = self.training
        if self._batches is None:
            batches = training.batches(training.generators["order"])
            self._batches = itertools.islice(batches, self._skipped, None)
            training.model.train()
        at = {"step": training.position["step"], "epoch": training.position["epoch"]}
        inputs, labels = next(self._batches)
        self._skipped += 1
        return {**at, **training.step(self._recorder, inputs, labels).record()}

    def end_epoch(self) -> Record | None:
        """Evaluate where an epoch has just ended, as the run does; return its record of the log, else None."""
        training = self.training
        if self._skipped < training.steps_per_epoch and not self.over:
            return None
        record = training.evaluate(last=self.over)
        training.position["epoch"] += 1
        self._batches, self._skipped = None, 0
        self._order = training.generators["order"].get_state()
        return record


def not_finite(walk: Walk, record: Record) -> str:
    """Say what of the step that was just made is not finite, if anything: loss, gradient, weights or statistics."""
    if not math.isfinite(record["loss"]):
        return f"the loss is {record['loss']}"
    norm = record["grad_norm"]
    # A gradient scaler leaves out the updates whose gradients overflow: they do no harm.
    scaled = bool(walk.training.experiment.scalers())
    if norm is not None and not math.isfinite(norm) and record["optimizer_steps"] and not scaled:
        return f"the norm of the gradient is {norm}"
    model = walk.training.model
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_floating_point() and not bool(tensor.detach().isfinite().all()):
            return f"{name} is not finite after the update"
    return ""
