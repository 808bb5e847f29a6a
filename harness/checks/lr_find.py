"""Smith's range test (arXiv:1506.01186): one step at each of 97 learning rates from 1e-6 to 100, without the schedule.

The suggested rate is a tenth of the rate with the least loss. A rate within a decade or two of it is usual. A
rate at which the loss has risen again is too high for the updates, whether the rate is too high or the
gradients are too long.

Sources of the bounds: the loss is smoothed with a moving average with bias correction and the test ends at four times
the least loss, as in fastai's learning-rate finder. If no rate brings it down by 5 %, the test is made again with four
times as many steps, and each loss is divided by that of the same batch at rate zero, so that neither a slow start nor a
batch of outliers hides a fall. A loss that stays up again is flat (sound programs that need this: 0.85 of the first
loss at most; networks and labels that allow no training: 0.97 at least). Healthy experiments use 0.3 to 12 times the
suggested rate over ten seeds; below 0.01 of the rate at which nine tenths of the fall are done, over ten, counts as far
below.
"""

import itertools
import math
from collections.abc import Iterable, Iterator

from harness.checks.core.finding import Cell, Finding, Table, short
from harness.checks.core.subject import Subject, worst
from harness.checks.learning_rate import rates_of

FIRST, LAST = 1e-6, 100.0
STEPS, MORE_STEPS = 96, 384  # twelve a decade, and forty-eight
EVERY = 8  # of the steps that the table shows
SMOOTHING = 0.9
RISEN = 4.0
FALLS = 0.95
MOST_OF_FALL = 0.9
FAR_BELOW = 0.01


def measure(subject: Subject) -> Finding:
    """Train with a rate that grows by the same factor each step until the loss has risen again."""
    used = worst(rates_of(subject.trial()))
    rates, losses, smooth = _range_test(subject, STEPS)
    if not math.isfinite(losses[0]):
        return Finding("non-finite", f"the first loss is {short(losses[0])}", {"highest rate of the schedule": used})
    if _is_flat(smooth):
        # Two trials must not take turns: they share the state of chance.
        beside = list(_losses(subject, [0.0] * (MORE_STEPS + 1)))
        rates, losses, smooth = _range_test(subject, MORE_STEPS, beside)
    best = min(range(len(smooth)), key=smooth.__getitem__)
    suggested = rates[best] / 10
    if _is_flat(smooth):
        outcome = "flat"
    elif used >= rates[-1]:
        outcome = "above"
    else:
        # A network that has learnt all it can has its least loss at any later rate.
        fallen = smooth[0] - MOST_OF_FALL * (smooth[0] - smooth[best])
        enough = rates[next(at for at, loss in enumerate(smooth) if loss <= fallen)]
        outcome = "below" if used < FAR_BELOW * enough / 10 else "within"
    figures: dict[str, Cell] = {
        "highest rate of the schedule": used,
        "suggested": suggested,
        "rate of the least loss": rates[best],
        "loss risen again at": rates[-1],
        "least smoothed loss": smooth[best],
    }
    if outcome == "flat":
        figures |= {"suggested": None, "rate of the least loss": None}
    rows = zip(rates, losses, smooth, strict=False)  # a last loss that is not finite has no average
    return Finding(
        outcome,
        f"used {short(used)}, suggested {short(figures['suggested'])}, too high from {short(rates[-1])}",
        figures,
        tables=(Table("By rate", ("rate", "loss", "smoothed"), tuple(rows)[::EVERY]),),
    )


def _is_flat(smooth: list[float]) -> bool:
    return smooth[0] - min(smooth) < (1 - FALLS) * abs(smooth[0])


def _range_test(
    subject: Subject, steps: int, beside: Iterable[float] | None = None
) -> tuple[list[float], list[float], list[float]]:
    """Return the rates tried, the loss at each, and its moving average; of its share of the loss `beside`, if given."""
    rates: list[float] = []
    losses: list[float] = []
    smooth: list[float] = []
    average = 0.0
    planned = [FIRST * (LAST / FIRST) ** (step / steps) for step in range(steps + 1)]
    for rate, loss, own in zip(planned, _losses(subject, planned), beside or itertools.repeat(1.0), strict=False):
        rates.append(rate)
        losses.append(loss)
        if not math.isfinite(loss):
            break
        average = SMOOTHING * average + (1 - SMOOTHING) * (loss / own if own > 0 else 1.0)
        smooth.append(average / (1 - SMOOTHING ** len(losses)))
        if smooth[-1] > min(smooth) + (RISEN - 1) * abs(min(smooth)):
            break
    return rates, losses, smooth or losses


def _losses(subject: Subject, rates: Iterable[float]) -> Iterator[float]:
    """Yield the loss of a step at each rate, without the schedule."""
    trial = subject.trial()
    trial.scheduler = None
    groups = trial.optimizer.param_groups
    # A schedule may begin at zero: the rates that `build_optimizer` gave show the groups' shares.
    given = [float(group.get("initial_lr", group["lr"])) for group in groups]
    for rate, batch in zip(rates, trial.batches(MORE_STEPS + 1), strict=False):
        for group, own in zip(groups, given, strict=True):
            group["lr"] = rate * own / (max(given) or 1.0)
        yield float(trial.step(*batch))
