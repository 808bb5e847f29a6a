"""Check the log records of a run during training, and report each kind of problem once.

The limits are based on 48 correct runs: three healthy experiments with ten seeds, and with other learning rates,
optimizers, batch sizes and 30 epochs. In 47 of these runs the loss rose by less than a factor of 5.4 in the first
batches (the limit is 6), and by less than a factor of 1.5 afterwards (the limit is 3). The exception is the regression
with twice its usual learning rate: its loss rises by a factor of 26 before it falls.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from harness.run.metrics_log import Record

Severity = Literal["hard", "soft"]

RECENT = 5  # the current loss is the median over this number of batches, so one unusual batch is no rise
LOSS_RISE = 3.0
# In the first batches a larger rise is normal: a model that starts well, for example with a last layer of zeros, gets
# worse at first, because Adam's first steps have full length, however small the gradient is.
EARLY_LOSS_RISE = 6.0
EARLY = 20
LOSS_FLOOR = (
    0.25  # losses below this share of the first loss are not compared, because a hard batch can multiply a small loss
)


@dataclass(frozen=True)
class GuardrailFinding:
    """A problem in a run. `step` is counted from the start of the run. A problem of level "hard" is always a fault."""

    step: int
    level: Severity
    message: str
    kind: str


class Guardrails:
    """Checks the batch records of a run in order. If a run is resumed, the records in its log are checked first."""

    def __init__(self) -> None:
        self._reported: set[str] = set()
        self._loss = _LossRise()

    def check(self, record: Record) -> list[GuardrailFinding]:
        """Check one batch record and return new findings. Each kind of problem is reported at most once a run."""
        signs = [sign for sign in self._signs(record) if sign[2] not in self._reported]
        self._reported.update(kind for _, _, kind in signs)
        return [GuardrailFinding(record["step"], *sign) for sign in signs]

    def _signs(self, record: Record) -> Iterator[tuple[Severity, str, str]]:
        """Yield level, message and kind of each problem in the record."""
        loss, norm = record["loss"], record["grad_norm"]
        if not math.isfinite(loss):
            yield "hard", f"the loss is {loss}", "loss"
        if record["optimizer_steps"] > 0 and loss != 0.0 and not norm:
            found = "no parameter has a gradient" if norm is None else "every gradient is exactly 0"
            yield "hard", f"the optimizer made a step, but {found}", "gradient"
        if said := self._loss.rise(loss):
            yield "soft", f"the median loss of the last {RECENT} batches has risen {said}", "loss rise"


class _LossRise:
    """Compares the median of the most recent losses with the median of all earlier losses."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._recent: deque[float] = deque()
        self._earlier: list[float] = []  # sorted

    def rise(self, loss: float) -> str | None:
        """Add a loss.

        If the recent losses exceed the earlier losses by too much, return words that describe the rise, else None.
        """
        if not math.isfinite(loss):
            return None
        if self._first is None:
            self._first = loss
        self._recent.append(loss)
        if len(self._recent) <= RECENT:
            return None
        insort(self._earlier, self._recent.popleft())
        before, now = self._earlier[len(self._earlier) // 2], sorted(self._recent)[RECENT // 2]
        reference = max(before, LOSS_FLOOR * self._first)
        limit = EARLY_LOSS_RISE if len(self._earlier) + RECENT <= EARLY else LOSS_RISE
        return f"to {now:.3g}, from {before:.3g} before" if now > limit * reference > 0.0 else None
