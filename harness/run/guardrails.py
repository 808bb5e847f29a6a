"""Watches the batch records of a run and says, once for each kind, that training has gone wrong.

The soft limits rest on 48 sound runs: three healthy experiments over ten seeds, and with other learning rates,
optimizers, batch sizes and 30 epochs (docs/guardrails.md has each). All but one of them stayed below 5.4 for the loss
in the first batches (limit 6), 1.5 after them (limit 3), 3.4 for the gradient norm (limit 10), and a variance of 211
for the last layer's output (limit 10,000). The exception is the regression at twice its learning rate: its loss rises
26 times before it falls. Of the broken runs, a learning rate x 100 and gradients that are never cleared are found on
every seed within 32 steps, a summed loss on 9 seeds of 10.
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
class Finding:
    """What a guardrail saw: `step` counts from 0 over the whole run; a `hard` finding ends a strict run.

    `quantity` is the name in the log of what it is about.
    """

    step: int
    level: Level
    message: str
    quantity: str = field(default="", compare=False)


class GuardrailStop(UserError):
    """A hard finding in strict mode: the run stops here."""


class Guardrails:
    """Checks one batch record after the other; see `check` for the rules.

    `mode` is "off" (no checks), "warn" (findings are collected in `findings`) or "strict" (a hard one also raises
    `GuardrailStop`). The state follows from the records alone: a resumed run replays its log first. Raises
    `ValueError` for another mode.
    """

    def __init__(self, mode: Mode) -> None:
        if mode not in ("off", "warn", "strict"):
            raise ValueError(f'guardrails are {mode!r}: choose "off", "warn" or "strict"')
        self.mode = mode
        self.findings: list[Finding] = []
        self._reported: set[str] = set()
        self._levels = Levels()

    def check(self, record: Mapping[str, Any]) -> list[Finding]:
        """Check one batch record of metrics.log; return new findings, each kind at most once a run.

        Non-finite numbers may be floats or the log's strings. The rules, with the median of the last `RECENT`
        batches as "now":

        - hard: the loss is not finite;
        - hard: the optimizer stepped without any gradient (none, or all exactly 0) although the loss is not 0;
        - soft: the loss now is `LOSS_RISE` times the median of all before it (`EARLY_LOSS_RISE` times in the
          first `EARLY` batches); that median counts as at least `LOSS_FLOOR` of the first loss;
        - soft: the gradient norm now is `GRADIENT_RISE` times the median of the first `START` batches;
        - soft: the variance of the last layer's output now is `VARIANCE_RISE` times that of the first batch,
          and above `VARIANCE_FLOOR`.

        Raises `GuardrailStop` in strict mode for a hard finding, which is in `findings` by then.
        """
        if self.mode == "off":
            return []
        new = []
        for kind, quantity, level, message in self._violations(record):
            if kind not in self._reported:
                self._reported.add(kind)
                new.append(Finding(int(record["step"]), level, message, quantity))
        self.findings += new
        hard = next((finding for finding in new if finding.level == "hard"), None)
        if hard is not None and self.mode == "strict":
            raise GuardrailStop(
                f"step {hard.step}: {hard.message}; the run was stopped because guardrails are strict"
                " (use --guardrails warn to run on)"
            )
        return new

    def replay(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Check the batch records among these, in order; raises `GuardrailStop` as `check` does."""
        for record in records:
            if "step" in record:
                self.check(record)

    def _violations(self, record: Mapping[str, Any]) -> Iterator[tuple[str, str, Level, str]]:
        """Yield (kind, quantity, level, message)."""
        loss, norm = _number(record.get("loss")), _number(record.get("grad_norm"))
        if loss is not None and not math.isfinite(loss):
            yield "loss", "loss", "hard", f"the loss is {loss}"
        if record.get("optimizer_steps", 1) > 0 and loss != 0.0 and not norm:
            found = "no parameter has a gradient" if norm is None else "every gradient is exactly 0"
            yield "gradient", "grad_norm", "hard", f"the optimizer stepped, but {found}"
        levels = self._levels
        levels.add(record)
        limit = EARLY_LOSS_RISE if levels.early else LOSS_RISE
        if (rise := levels.loss) is not None and rise.above(limit):
            said = rise.said("loss of the last {} batches has risen", "before")
            yield "loss rise", "loss", "soft", said
        if (rise := levels.gradient) is not None and rise.above(GRADIENT_RISE):
            said = rise.said("gradient norm of the last {} batches has grown", "at first")
            yield "gradient rise", "grad_norm", "soft", said
        if (rise := levels.variance) is not None and rise.above(VARIANCE_RISE) and rise.now > VARIANCE_FLOOR:
            said = rise.said("variance of the last layer's output over {} batches has grown", "at first")
            yield "variance rise", "activations.last.var", "soft", said


class Rise(NamedTuple):
    """The median of the last `RECENT` values, an earlier one, and the reference that the rule compares with."""

    now: float
    before: float
    reference: float

    def above(self, factor: float) -> bool:
        """Return whether it is now more than so many times the reference."""
        return self.now > factor * self.reference

    def said(self, what: str, when: str) -> str:
        """Return the rise in words."""
        return f"the median {what.format(RECENT)} to {self.now:.3g}, from {self.before:.3g} {when}"


class Levels:
    """What the soft rules look at, after each batch: loss, gradient norm, variance of the last layer's output.

    Each is None while there is too little to compare, and if the last value is missing or not finite.
    """

    def __init__(self) -> None:
        self._first_loss: float | None = None
        self._recent_losses: deque[float] = deque()
        self._earlier_losses: list[float] = []  # sorted
        self._starts = {"gradient": _Start(START), "variance": _Start(1)}
        self.loss: Rise | None = None
        self.gradient: Rise | None = None
        self.variance: Rise | None = None

    @property
    def early(self) -> bool:
        """Whether the run is still in its first `EARLY` batches."""
        return len(self._earlier_losses) + len(self._recent_losses) <= EARLY

    def add(self, record: Mapping[str, Any]) -> None:
        """Add one batch record."""
        self.loss = self._add_loss(_number(record.get("loss")))
        self.gradient = self._starts["gradient"].add(_number(record.get("grad_norm")))
        last = (record.get("activations") or {}).get("last") or {}
        self.variance = self._starts["variance"].add(_number(last.get("var")))

    def _add_loss(self, loss: float | None) -> Rise | None:
        """Compare the loss of the last few batches with the median of all before them."""
        if loss is None or not math.isfinite(loss):
            return None
        if self._first_loss is None:
            self._first_loss = loss
        self._recent_losses.append(loss)
        if len(self._recent_losses) <= RECENT:
            return None
        insort(self._earlier_losses, self._recent_losses.popleft())
        before = self._earlier_losses[len(self._earlier_losses) // 2]
        reference = max(before, LOSS_FLOOR * self._first_loss)
        return Rise(_middle(self._recent_losses), before, reference) if reference > 0.0 else None


class _Start:
    """A quantity over the last few batches against its median over the first `start_batches`."""

    def __init__(self, start_batches: int) -> None:
        self._start_batches = start_batches
        self._start: list[float] = []
        self._level = 0.0
        self._recent: deque[float] = deque(maxlen=RECENT)

    def add(self, value: float | None) -> Rise | None:
        if value is None or not math.isfinite(value):
            return None
        if len(self._start) < self._start_batches:
            self._start.append(value)
            self._level = median(self._start)
            return None
        self._recent.append(value)
        full = len(self._recent) == RECENT
        return Rise(_middle(self._recent), self._level, self._level) if full else None


def _middle(recent: deque[float]) -> float:
    """Return the median of `RECENT` values, an odd number; `statistics.median` is much slower."""
    return sorted(recent)[RECENT // 2]


def _number(value: object) -> float | None:
    # float() reads the log's "NaN", "Infinity" and "-Infinity" too.
    return float(value) if isinstance(value, int | float | str) else None
