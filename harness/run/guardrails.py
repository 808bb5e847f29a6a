"""Watches the batch records of a run and says, once for each kind, that training has gone wrong.

The soft limits rest on 48 sound runs: three healthy experiments over ten seeds, and with other learning rates,
optimizers, batch sizes and 30 epochs. All but one of them stayed below 5.4 for the loss in the first batches (limit
6), 1.5 after them (limit 3), 3.4 for the gradient norm (limit 10), and a variance of 211 for the last layer's output
(limit 10,000). The exception is the regression at twice its learning rate: its loss rises 26 times before it falls.
Of the broken runs, a learning rate x 100 and gradients that are never cleared are found on every seed within 32
steps, a summed loss on 9 seeds of 10.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal

from harness.errors import UserError
from harness.run.metrics_log import Record
from harness.run.settings import GuardrailMode

Level = Literal["hard", "soft"]

RECENT = 5  # batches whose median counts as "now": one odd batch is no drift
START = 10  # batches at the start whose median gradient norm is the run's own yardstick
LOSS_RISE = 3.0
# A model that starts well, such as one whose last layer begins at zero, first gets worse: Adam's first steps have
# full length whatever the size of the gradient.
EARLY_LOSS_RISE = 6.0
EARLY = 20
LOSS_FLOOR = 0.25  # share of the first loss below which no rise counts: a small loss may jump on a hard batch
GRADIENT_RISE = 10.0
# Compared with the first batch alone: a learning rate far too high has blown up the next ones already.
VARIANCE_RISE = 100.0
# Logits of a healthy classifier start with a variance near 0.1 and grow by far more than 100 times; a standard
# deviation of 100, though, leaves softmax only zeros and ones. Regression targets that large should be standardized.
VARIANCE_FLOOR = 1e4


@dataclass(frozen=True)
class GuardrailFinding:
    """What a guardrail saw, and of which kind; `step` counts over the whole run. A hard one ends a strict run."""

    step: int
    level: Level
    message: str
    kind: str


class Guardrails:
    """Checks one batch record after the other; a resumed run checks those of its log first."""

    def __init__(self, mode: GuardrailMode) -> None:
        self.mode = mode
        self._reported: set[str] = set()
        self._loss = _LossRise()
        self._norm = _RiseFromStart(START)
        self._variance = _RiseFromStart(1)

    def check(self, record: Record) -> list[GuardrailFinding]:
        """Check one batch record and return new findings, each kind at most once a run.

        Raises `UserError` in strict mode for a hard finding.
        """
        if self.mode == "off":
            return []
        step = record["step"]
        new = [GuardrailFinding(step, *sign) for sign in self._signs(record) if sign[2] not in self._reported]
        self._reported.update(finding.kind for finding in new)
        hard = next((finding for finding in new if finding.level == "hard"), None)
        if hard is not None and self.mode == "strict":
            raise UserError(
                f"step {step}: {hard.message}; the run was stopped because guardrails are strict"
                " (use --guardrails warn to run on)"
            )
        return new

    def _signs(self, record: Record) -> Iterator[tuple[Level, str, str]]:
        """Yield level, message and kind of each rule that the record breaks."""
        loss, norm = record["loss"], record["grad_norm"]
        if not math.isfinite(loss):
            yield "hard", f"the loss is {loss}", "loss"
        if record["optimizer_steps"] > 0 and loss != 0.0 and not norm:
            found = "no parameter has a gradient" if norm is None else "every gradient is exactly 0"
            yield "hard", f"the optimizer stepped, but {found}", "gradient"
        if said := self._loss.rise(loss):
            yield "soft", f"the median loss of the last {RECENT} batches has risen {said}", "loss rise"
        if said := self._norm.rise(norm, GRADIENT_RISE):
            message = f"the median gradient norm of the last {RECENT} batches has grown {said}"
            yield "soft", message, "gradient rise"
        last = record["activations"]["last"]
        if said := self._variance.rise(last and last["var"], VARIANCE_RISE, VARIANCE_FLOOR):
            message = f"the median variance of the last layer's output over {RECENT} batches has grown {said}"
            yield "soft", message, "variance rise"


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
        before, now = self._earlier[len(self._earlier) // 2], _middle(self._recent)
        reference = max(before, LOSS_FLOOR * self._first)
        limit = EARLY_LOSS_RISE if len(self._earlier) + RECENT <= EARLY else LOSS_RISE
        return f"to {now:.3g}, from {before:.3g} before" if now > limit * reference > 0.0 else None


class _RiseFromStart:
    """A quantity over the last few batches against its median over the first `batches`."""

    def __init__(self, batches: int) -> None:
        self._batches = batches
        self._start: list[float] = []
        self._level = 0.0
        self._recent: deque[float] = deque(maxlen=RECENT)

    def rise(self, value: float | None, factor: float, floor: float = 0.0) -> str | None:
        """Add a value and return in words how far it has grown, if that is more than `factor` and above `floor`."""
        if value is None or not math.isfinite(value):
            return None
        if len(self._start) < self._batches:
            self._start.append(value)
            self._level = median(self._start)
            return None
        self._recent.append(value)
        if len(self._recent) < RECENT:
            return None
        now = _middle(self._recent)
        return (
            f"to {now:.3g}, from {self._level:.3g} at first"
            if now > max(factor * self._level, floor)
            else None
        )


def _middle(recent: deque[float]) -> float:
    """Return the median of `RECENT` values, an odd number; `statistics.median` is much slower."""
    return sorted(recent)[RECENT // 2]
