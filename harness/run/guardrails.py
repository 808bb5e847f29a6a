"""Watches the batch records of a run and says, once for each kind, that training has gone wrong.

The limits rest on 48 sound runs: three healthy experiments over ten seeds, and with other learning rates, optimizers,
batch sizes and 30 epochs. All but one of them stayed below 5.4 for the loss in the first batches (limit 6), and below
1.5 after them (limit 3). The exception is the regression at twice its learning rate: its loss rises 26 times before
it falls.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from harness.run.metrics_log import Record

Severity = Literal["hard", "soft"]

RECENT = 5  # batches whose median counts as "now": one odd batch is no drift
LOSS_RISE = 3.0
# A model that starts well, such as one whose last layer begins at zero, first gets worse: Adam's first steps have
# full length whatever the size of the gradient.
EARLY_LOSS_RISE = 6.0
EARLY = 20
LOSS_FLOOR = 0.25  # share of the first loss below which no rise counts: a small loss may jump on a hard batch


@dataclass(frozen=True)
class GuardrailFinding:
    """What a guardrail saw, and of which kind; `step` counts over the whole run. A hard one is always a bug."""

    step: int
    level: Severity
    message: str
    kind: str


class Guardrails:
    """Checks one batch record after the other; a resumed run checks those of its log first."""

    def __init__(self) -> None:
        self._reported: set[str] = set()
        self._loss = _LossRise()

    def check(self, record: Record) -> list[GuardrailFinding]:
        """Check one batch record and return new findings, each kind at most once a run."""
        signs = [sign for sign in self._signs(record) if sign[2] not in self._reported]
        self._reported.update(kind for _, _, kind in signs)
        return [GuardrailFinding(record["step"], *sign) for sign in signs]

    def _signs(self, record: Record) -> Iterator[tuple[Severity, str, str]]:
        """Yield level, message and kind of each rule that the record breaks."""
        loss, norm = record["loss"], record["grad_norm"]
        if not math.isfinite(loss):
            yield "hard", f"the loss is {loss}", "loss"
        if record["optimizer_steps"] > 0 and loss != 0.0 and not norm:
            found = "no parameter has a gradient" if norm is None else "every gradient is exactly 0"
            yield "hard", f"the optimizer stepped, but {found}", "gradient"
        if said := self._loss.rise(loss):
            yield "soft", f"the median loss of the last {RECENT} batches has risen {said}", "loss rise"


class _LossRise:
    """The losses so far: the last few against the median of all before them."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._recent: deque[float] = deque()
        self._earlier: list[float] = []  # sorted

    def rise(self, loss: float) -> str | None:
        """Add a loss and return in words how far it has risen, if that is too far."""
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
