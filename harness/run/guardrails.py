"""Watches the batch records of a run and says, once for each kind, when training has gone wrong.

The soft thresholds rest on 48 sound runs: three healthy experiments over ten seeds, and with other learning rates,
optimizers, batch sizes and 30 epochs (docs/guardrails.md, made by a script, has each of them). In the terms of the
rules below, the most that any but one of them reached was 5.4 for the loss in the first batches (limit 6), 1.5 after
them (limit 3), 3.4 for the gradient norm (limit 10), and a variance of the last layer's output of 211 (limit 10,000).
The one is the regression at twice its learning rate: its loss rises 26 times before it falls, and is reported. Of the
broken runs, a learning rate x 100 and gradients that are never cleared were reported on every seed, within 32 steps;
a summed loss on 9 seeds of 10.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal, NamedTuple

from harness.errors import UserError

Mode = Literal["off", "warn", "strict"]
Level = Literal["hard", "soft"]

# Batches whose median counts as "now": one odd batch is no drift.
RECENT = 5
# Batches at the start whose median gradient norm is the run's own yardstick.
START = 10
LOSS_RISE = 3.0
# A model that starts well, as one whose last layer begins at zero, first gets worse: Adam's first steps have
# full length whatever the size of the gradient.
EARLY_LOSS_RISE = 6.0
EARLY = 20
# A loss that has become small may jump on a hard batch; below this share of the first loss no rise counts.
LOSS_FLOOR = 0.25
GRADIENT_RISE = 10.0
VARIANCE_RISE = 100.0
# Logits of a healthy classifier start with a variance near 0.1 and grow by far more than 100 times; a
# standard deviation of 100, though, leaves softmax nothing but zeros and ones.
# The yardstick is the first batch alone: a learning rate far too high has blown up the next ones already. A
# regression to targets that large is reported as well; they should be standardized.
VARIANCE_FLOOR = 1e4


@dataclass(frozen=True)
class Finding:
    """What a guardrail saw: `step` counts from 0 over the whole run; `hard` findings end a strict run.

    `quantity` is what it is about, by its name in the log.
    """

    step: int
    level: Level
    message: str
    quantity: str = field(default="", compare=False)


_QUANTITIES = {
    "loss": "loss",
    "gradient": "grad_norm",
    "loss rise": "loss",
    "gradient rise": "grad_norm",
    "variance rise": "activations.last.var",
}


class GuardrailStop(UserError):
    """A hard finding in strict mode: the run stops here."""


class Guardrails:
    """Checks one batch record after the other; see `check` for the rules.

    `mode` is "off" (nothing is checked), "warn" (findings are collected in `findings`) or "strict" (a hard
    one also raises `GuardrailStop`). The state follows from the records alone: a resumed run replays its
    log first. Raises `ValueError` for another mode.
    """

    def __init__(self, mode: Mode) -> None:
        if mode not in ("off", "warn", "strict"):
            raise ValueError(f'guardrails are {mode!r}: choose "off", "warn" or "strict"')
        self.mode = mode
        self.findings: list[Finding] = []
        self._reported: set[str] = set()
        self._levels = Levels()

    def check(self, record: Mapping[str, Any]) -> list[Finding]:
        """Check one batch record of metrics.log; return what is new, each kind at most once a run.

        Non-finite numbers may be floats or the log's strings. The rules, with the median of the last `RECENT`
        batches as "now":

        - hard: the loss is not finite;
        - hard: the optimizer stepped without any gradient (none, or all exactly 0) though the loss is not 0;
        - soft: the loss now is `LOSS_RISE` times the median of all before it (`EARLY_LOSS_RISE` times in the
          first `EARLY` batches), and that median is taken as no less than `LOSS_FLOOR` of the first loss;
        - soft: the gradient norm now is `GRADIENT_RISE` times the median of the first `START` batches;
        - soft: the variance of the last layer's output now is `VARIANCE_RISE` times that of the first batch,
          and above `VARIANCE_FLOOR`.

        Raises `GuardrailStop` in strict mode, where a finding is hard; it is in `findings` by then.
        """
        if self.mode == "off":
            return []
        step = int(record["step"])
        new = []
        for kind, level, message in self._violations(record):
            if kind not in self._reported:
                self._reported.add(kind)
                new.append(Finding(step, level, message, _QUANTITIES[kind]))
        self.findings += new
        if self.mode == "strict":
            for finding in new:
                if finding.level == "hard":
                    raise GuardrailStop(
                        f"step {finding.step}: {finding.message}; the run was stopped, "
                        "because guardrails are strict (use --guardrails warn to run on)"
                    )
        return new

    def replay(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Check the records of a run so far, in order; epoch records, which have no `step`, are passed over.

        Raises `GuardrailStop` as `check` does: a strict run that was stopped stays stopped.
        """
        for record in records:
            if "step" in record:
                self.check(record)

    def _violations(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Level, str]]:
        loss, norm = _number(record.get("loss")), _number(record.get("grad_norm"))
        if loss is not None and not math.isfinite(loss):
            yield "loss", "hard", f"the loss is {loss}"
        if record.get("optimizer_steps", 1) > 0 and loss != 0.0 and not norm:
            found = "no parameter has a gradient" if norm is None else "every gradient is exactly 0"
            yield "gradient", "hard", f"the optimizer stepped, but {found}"
        levels = self._levels
        levels.add(record)
        if (rise := levels.loss) is not None and rise.above(EARLY_LOSS_RISE if levels.early else LOSS_RISE):
            yield (
                "loss rise",
                "soft",
                f"the median loss of the last {RECENT} batches has risen to {rise.now:.3g},"
                f" from {rise.before:.3g} before",
            )
        if (rise := levels.gradient) is not None and rise.above(GRADIENT_RISE):
            yield (
                "gradient rise",
                "soft",
                f"the median gradient norm of the last {RECENT} batches has grown to {rise.now:.3g},"
                f" from {rise.before:.3g} at first",
            )
        if (rise := levels.variance) is not None and rise.above(VARIANCE_RISE) and rise.now > VARIANCE_FLOOR:
            yield (
                "variance rise",
                "soft",
                f"the median variance of the last layer's output over {RECENT} batches has grown to {rise.now:.3g},"
                f" from {rise.before:.3g} at first",
            )


class Rise(NamedTuple):
    """The median of the last `RECENT` values, an earlier one, and what the rule compares the first with."""

    now: float
    before: float
    reference: float

    def above(self, factor: float) -> bool:
        """Say whether it is now more than so many times the reference."""
        return self.now > factor * self.reference


class Levels:
    """What the soft rules look at, after each batch: loss, gradient norm, variance of the last layer's output.

    Each is None while there is too little to compare, and where the last value is missing or not finite. `early`
    says that the run is still in its first `EARLY` batches.
    """

    def __init__(self) -> None:
        self._loss = _Loss()
        self._gradient = _Start(START)
        self._variance = _Start(1)
        self.loss: Rise | None = None
        self.gradient: Rise | None = None
        self.variance: Rise | None = None

    @property
    def early(self) -> bool:
        """Whether the loss may still be anywhere."""
        return self._loss.seen <= EARLY

    def add(self, record: Mapping[str, Any]) -> None:
        """Take in one batch record."""
        self.loss = self._loss.add(_number(record.get("loss")))
        self.gradient = self._gradient.add(_number(record.get("grad_norm")))
        last = (record.get("activations") or {}).get("last") or {}
        self.variance = self._variance.add(_number(last.get("var")))


class _Loss:
    """The loss of the last few batches against the median of all before them."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._recent: deque[float] = deque()
        self._earlier: list[float] = []  # sorted

    @property
    def seen(self) -> int:
        return len(self._earlier) + len(self._recent)

    def add(self, loss: float | None) -> Rise | None:
        if loss is None or not math.isfinite(loss):
            return None
        if self._first is None:
            self._first = loss
        self._recent.append(loss)
        if len(self._recent) <= RECENT:
            return None
        insort(self._earlier, self._recent.popleft())
        now, before = _middle(self._recent), self._earlier[len(self._earlier) // 2]
        reference = max(before, LOSS_FLOOR * self._first)
        return Rise(now, before, reference) if reference > 0.0 else None


class _Start:
    """A quantity over the last few batches against its level at the start of the run."""

    def __init__(self, start_batches: int) -> None:
        self._start_batches = start_batches
        self._start: list[float] = []
        self._level = 0.0  # their median, once they are all there
        self._recent: deque[float] = deque(maxlen=RECENT)

    def add(self, value: float | None) -> Rise | None:
        if value is None or not math.isfinite(value):
            return None
        if len(self._start) < self._start_batches:
            self._start.append(value)
            self._level = median(self._start)
            return None
        self._recent.append(value)
        if len(self._recent) < RECENT:
            return None
        return Rise(_middle(self._recent), self._level, self._level)


def _middle(recent: deque[float]) -> float:
    """Return the median of `RECENT` values, an odd number: `statistics.median` takes as long as a small layer."""
    return sorted(recent)[RECENT // 2]


def _number(value: object) -> float | None:
    # float() reads the log's "NaN", "Infinity" and "-Infinity" too.
    return float(value) if isinstance(value, int | float | str) else None
