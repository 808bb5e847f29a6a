"""The callback for Hugging Face: `Trainer(..., callbacks=[trainwreck.transformers.Watch()])`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from trainwreck.finding import DEFAULT_STEPS
from trainwreck.session import Session, raise_alarms, report_text

try:
    from transformers import TrainerCallback
except ModuleNotFoundError as error:
    if error.name != "transformers":
        raise
    raise ModuleNotFoundError("trainwreck.transformers needs Transformers: pip install transformers") from None

if TYPE_CHECKING:
    from trainwreck.finding import Finding


class Watch(TrainerCallback):  # type: ignore[misc]
    """Watches the first `steps` updates of `trainer.train`, then takes its hooks out and prints the findings.

    With `strict`, the training ends with `trainwreck.Unsound` if a check found an alarm. Raises `ValueError` at
    the start of the training if `steps` is less than 1.
    """

    def __init__(self, steps: int = DEFAULT_STEPS, *, strict: bool = False) -> None:
        self.steps, self.strict = steps, strict
        self._session = Session()

    @property
    def findings(self) -> list[Finding]:
        """The findings so far."""
        return self._session.findings

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Put the hooks in."""
        self._session.begin(self.steps)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Print the findings once all updates to watch were made."""
        self._only_train(control)
        if self._session.is_over:
            self._end(state)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Let a child that makes a trial go on with the next epoch."""
        self._only_train(control)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Take the hooks out, if the training was shorter than what was to be watched."""
        self._end(state)

    def _only_train(self, control: Any) -> None:
        """Keep a child that makes a trial from writing a checkpoint, and from losing time."""
        if self._session.is_trial:
            control.should_save = control.should_evaluate = control.should_log = False

    def _end(self, state: Any) -> None:
        report = self._session.end()
        if report is not None and state.is_world_process_zero:
            print(report_text(report), file=sys.stderr)
        if report is not None and self.strict:
            raise_alarms(self.findings)
