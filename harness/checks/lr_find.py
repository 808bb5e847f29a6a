"""Smith's range test: one step at each learning rate, from far too small to far too large, and the loss it leaves."""

import math
from dataclasses import dataclass
from typing import Literal

from harness.checks.evidence import Evidence, Line, Plot, short
from harness.checks.mechanisms import learning_rate
from harness.checks.subject import Subject

FIRST, LAST = 1e-6, 100.0
STEPS = 96  # twelve a decade
# As in fastai's learning-rate finder: a moving average with bias correction, and an end where the loss has risen to
# four times its least.
SMOOTHING = 0.9
RISEN = 4.0
# A loss that no rate brings down by a twentieth has no least to speak of. Labels that tell nothing: 0.999.
FALLS = 0.95
# Suggested is a tenth of the rate with the least loss. Healthy experiments use 0.3 to 12 times that, over ten seeds.
FAR_BELOW = 0.01

Outcome = Literal["within", "above", "below", "flat"]


@dataclass(frozen=True)
class LrFind:
    """Rates tried, the loss at each and its moving average; `used` is the highest rate of the experiment's schedule."""

    rates: list[float]
    losses: list[float]
    smooth: list[float]
    used: float

    @property
    def best(self) -> int:
        """Where the moving average is least."""
        return min(range(len(self.smooth)), key=lambda index: self.smooth[index])

    @property
    def suggested(self) -> float:
        """A tenth of the rate with the least loss (fastai's "minimum")."""
        return self.rates[self.best] / 10

    @property
    def limit(self) -> float:
        """The rate at which the loss had risen again, or the last one tried."""
        return self.rates[-1]

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        if self.smooth[self.best] > FALLS * self.smooth[0]:
            return "flat"
        if self.used >= self.limit:
            return "above"
        return "below" if self.used < FAR_BELOW * self.suggested else "within"


def measure(subject: Subject) -> LrFind:
    """Train with a rate that grows by the same factor each step, without the schedule (Smith, arXiv:1506.01186)."""
    used = learning_rate(subject.bench())
    bench = subject.bench()
    bench.scheduler = None
    groups = bench.optimizer.param_groups
    highest = max(float(group["lr"]) for group in groups) or 1.0
    shares = [float(group["lr"]) / highest for group in groups]
    rates: list[float] = []
    losses: list[float] = []
    smooth: list[float] = []
    average = 0.0
    for step, batch in zip(range(STEPS + 1), bench.batches(), strict=False):
        rate = FIRST * (LAST / FIRST) ** (step / STEPS)
        for group, share in zip(groups, shares, strict=True):
            group["lr"] = rate * share
        loss = float(bench.step(*batch))
        average = SMOOTHING * average + (1 - SMOOTHING) * loss
        rates.append(rate)
        losses.append(loss)
        if not math.isfinite(loss):
            break
        smooth.append(average / (1 - SMOOTHING ** (step + 1)))
        if smooth[-1] > RISEN * min(smooth):
            break
    return LrFind(rates, losses, smooth or [losses[0]], used)


def show(measured: LrFind) -> Evidence:
    """Return the curve and the suggestion."""
    flat = measured.outcome == "flat"
    suggested = None if flat else measured.suggested
    marks = [(measured.used, f"used: {measured.used:.3g}")]
    if suggested is not None:
        marks.append((suggested, f"suggested: {suggested:.3g}"))
    points = tuple(zip(measured.rates, measured.losses, strict=True))
    return Evidence(
        what=f"{len(measured.rates)} steps, the rate from {FIRST:g} up by the same factor each",
        outcome=measured.outcome,
        said=f"used {short(measured.used)}, suggested {short(suggested)}, too high from {short(measured.limit)}",
        figures={
            "highest rate of the schedule": measured.used,
            "suggested": suggested,
            "rate of the least loss": None if flat else measured.rates[measured.best],
            "loss risen again at": measured.limit,
            "least smoothed loss": measured.smooth[measured.best],
        },
        plots=(
            Plot(
                title="Loss",
                x_label="learning rate",
                y_label="loss",
                lines=(
                    Line(label="loss", points=points),
                    Line(label="smoothed", points=tuple(zip(measured.rates, measured.smooth, strict=False))),
                ),
                marks=tuple(marks),
                scale="log",
                log_x=True,
            ),
        ),
    )
