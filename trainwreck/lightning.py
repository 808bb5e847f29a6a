"""The callback for `lightning` and `pytorch_lightning`: `Trainer(callbacks=[trainwreck.lightning.Watch()])`."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from trainwreck.finding import DEFAULT_STEPS
from trainwreck.session import Session, raise_alarms, report_text

if TYPE_CHECKING:
    from trainwreck.finding import Finding

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _base() -> Any:
    """Return the class `Callback` of the package that the program has imported, else of one that is installed."""
    for name in sorted(_PACKAGES, key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(name).Callback
        except ModuleNotFoundError as error:
            if error.name not in (name, name.partition(".")[0]):
                raise
    raise ModuleNotFoundError("trainwreck.lightning needs Lightning: pip install lightning")


_Callback: Any = _base()


class Watch(_Callback):  # type: ignore[misc]
    """Watches the first `steps` updates of `trainer.fit`, then takes its hooks out and prints the findings.

    With `strict`, the training ends with `trainwreck.Unsound` if a check found an alarm. Raises `ValueError` at
    the start of the training if `steps` is less than 1.
    """

    def __init__(self, steps: int = DEFAULT_STEPS, *, strict: bool = False) -> None:
        super().__init__()
        self.steps, self.strict = steps, strict
        self._session = Session()

    @property
    def findings(self) -> list[Finding]:
        """The findings so far."""
        return self._session.findings

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Put the hooks in."""
        self._session.begin(self.steps)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Print the findings once all updates to watch were made."""
        if self._session.is_over:
            self._end(trainer)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Take the hooks out, if the training was shorter than what was to be watched."""
        self._end(trainer)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Take the hooks out, and leave the exception alone."""
        self._session.end()

    def _end(self, trainer: Any) -> None:
        report = self._session.end()
        if report is not None and trainer.is_global_zero:
            print(report_text(report), file=sys.stderr)
        if report is not None and self.strict:
            raise_alarms(self.findings)
