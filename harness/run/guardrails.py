"""Check the log records of a run during training, and report each kind of problem once.

In strict mode, a hard finding ends the run.

The limits of the rise of the loss are based on 48 correct runs: three healthy experiments with ten seeds, and with
other learning rates, optimizers, batch sizes and 30 epochs. In 47 of these runs the loss rose by less than a factor of
5.4 in the first batches (the limit is 6), and by less than a factor of 1.5 afterwards (the limit is 3). The exception
is the regression with twice its usual learning rate: its loss rises by a factor of 26 before it falls.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from harness.errors import UserError
from harness.run.metrics_log import Record
from harness.run.settings import DEFAULT_POLICY, GuardrailPolicy

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


# The largest gradient norm that strict mode accepts, relative to the first. In the healthy experiments, with their
# own seeds, it is at most 9.6 (without digits_lora, whose run was stopped early). Their gradient norm is at most 17.7,
# but 215 for digits_vae, which sums its loss over the pixels: that experiment needs `--gradient-bound`, so only strict
# mode has such a bound.
GRADIENT_GROWTH = 30.0
SMALL_BATCH = 8  # with fewer examples in a batch, the statistics of batch norm are mostly noise

# The kinds of findings, as `--allow` names them. "hard" means that strict mode ends the run.
KINDS: dict[str, tuple[Severity, str]] = {
    "loss": ("hard", "The loss is not finite."),
    "logits": ("hard", "The outputs of the network are not all finite."),
    "gradient": ("hard", "A gradient is not finite, or no parameter has a gradient, or all gradients are 0."),
    "gradient-norm": ("hard", "The gradient norm is above a bound. Only strict mode looks at this."),
    "gradient-growth": ("hard", f"The gradient norm is {GRADIENT_GROWTH:g} times the first. Only strict mode looks."),
    "loss-rise": ("soft", "The loss has risen."),
    "batch-norm-small": ("soft", f"Batch norm trains on fewer than {SMALL_BATCH} examples in a batch."),
}


class GuardrailStop(UserError):
    """A guardrail ended the run. `Experiment.call` does not turn it into a mistake of a line of the experiment."""


@dataclass(frozen=True)
class GuardrailFinding:
    """A problem in a run. `step` is counted from the start of the run. A problem of level "hard" ends a strict run."""

    step: int
    level: Severity
    message: str
    kind: str


class Guardrails:
    """Checks the batch records of a run in order. If a run is resumed, the records in its log are checked first."""

    def __init__(self, policy: GuardrailPolicy = DEFAULT_POLICY) -> None:
        self._policy = policy
        self._reported: set[str] = set()
        self._loss = _LossRise()
        self._first_norm: float | None = None

    def check(self, record: Record) -> list[GuardrailFinding]:
        """Check one batch record and return new findings. Each kind of problem is reported at most once a run.

        The loss is None if it is not known yet.
        """
        signs = [sign for sign in self._signs(record) if sign[0] not in self._reported]
        self._reported.update(kind for kind, _ in signs)
        return [make_finding(record["step"], kind, message) for kind, message in signs]

    def _signs(self, record: Record) -> Iterator[tuple[str, str]]:
        """Yield kind and message of each problem in the record that the policy does not allow."""
        if self._policy.mode == "off":
            return
        signs = [*self._finiteness(record), *self._gradients(record)]
        if record["loss"] is not None and (said := self._loss.rise(record["loss"])):
            signs.append(("loss-rise", f"the median loss of the last {RECENT} batches has risen {said}"))
        yield from (sign for sign in signs if not self._policy.allows(sign[0]))

    def _finiteness(self, record: Record) -> Iterator[tuple[str, str]]:
        """Yield the first kind of non-finite value that the policy does not allow. The others are its consequences."""
        last = (record.get("activations") or {}).get("last")
        values = {
            "loss": ("the loss is", record["loss"]),
            "logits": ("the mean output of the network is", last["mean"] if last else None),
            "gradient": ("the gradient norm is", record["grad_norm"] if record["optimizer_steps"] else None),
        }
        for kind, (words, value) in values.items():
            if value is not None and not math.isfinite(value) and not self._policy.allows(kind):
                yield kind, f"{words} {value}"
                return

    def _gradients(self, record: Record) -> Iterator[tuple[str, str]]:
        loss, norm = record["loss"], record["grad_norm"]
        if not record["optimizer_steps"]:
            return
        if not norm and loss != 0.0:
            found = "no parameter has a gradient" if norm is None else "every gradient is exactly 0"
            yield "gradient", f"the optimizer made a step, but {found}"
        if self._policy.mode != "strict" or not norm or not math.isfinite(norm):
            return
        if norm > self._policy.gradient_bound:
            yield "gradient-norm", f"the gradient norm is {norm:.4g}, above the bound {self._policy.gradient_bound:g}"
        if self._first_norm is None:
            self._first_norm = norm
        elif norm > GRADIENT_GROWTH * self._first_norm:
            first = self._first_norm
            yield "gradient-growth", f"the gradient norm is {norm:.4g}, {norm / first:.0f} times the first, {first:.4g}"


def make_finding(step: int, kind: str, message: str) -> GuardrailFinding:
    """Return a finding with the level of its kind."""
    return GuardrailFinding(step, KINDS[kind][0], message, kind)


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
