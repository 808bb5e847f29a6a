"""Run Smith's range test: one step at each of 97 learning rates from 1e-6 to 100, without the schedule.

The test is described in arXiv:1506.01186. The suggested learning rate is a tenth of the rate at which the loss is
lowest. Usual learning rates differ from the suggested one by a factor of up to 10, sometimes up to 100. If the loss has
already risen again at the learning rate of the run, the updates are too long, because the learning rate is too high or
the gradients are too long.

The loss is smoothed with a bias-corrected moving average, and the test ends when the loss reaches four times its lowest
value, as in fastai's learning-rate finder. If no rate reduces the loss by 5 %, the check repeats the test with four
times as many steps. In this longer test, it divides each loss by the loss of the same batch at learning rate zero, so
that neither a slow start nor a batch of outliers hides a fall of the loss. If the loss still does not fall, the outcome
is `flat`.
"""

import itertools
import math
from collections.abc import Iterable, Iterator

from harness.checks.core.finding import Cell, Finding, Table, short
from harness.checks.core.subject import Subject, worst
from harness.checks.learning_rate import rates_of

# figure                                | healthy   | broken  | bound          | source
# lowest loss / first loss, longer test | <= 0.85   | >= 0.97 | FALLS 0.95     | broken: no training is possible
# rate of the run / suggested rate      | 0.3 to 12 |         | FAR_BELOW 0.01 | healthy experiments, ten seeds
#
# FAR_BELOW is not relative to the suggested rate, but to a tenth of the rate at which the loss has made nine tenths of
# its fall. The longer test was measured on correct experiments that need it, and on broken experiments whose labels or
# network allow no training.
FIRST, LAST = 1e-6, 100.0
STEPS, MORE_STEPS = 96, 384  # twelve and forty-eight per decade
EVERY = 8  # the table shows every eighth step
SMOOTHING = 0.9
RISEN = 4.0
FALLS = 0.95
MOST_OF_FALL = 0.9
FAR_BELOW = 0.01


def measure(subject: Subject) -> Finding:
    """Train with a learning rate that grows by the same factor at each step, until the loss has risen again."""
    used = worst(rates_of(subject.trial()))
    rates, losses, smooth = _range_test(subject, STEPS)
    if not math.isfinite(losses[0]):
        return Finding("non-finite", f"the first loss is {short(losses[0])}", {"highest rate of the schedule": used})
    if _is_flat(smooth):
        # Two trials must not alternate, because they share the random generator.
        beside = list(_losses(subject, [0.0] * (MORE_STEPS + 1)))
        rates, losses, smooth = _range_test(subject, MORE_STEPS, beside)
    best = min(range(len(smooth)), key=smooth.__getitem__)
    suggested = rates[best] / 10
    if _is_flat(smooth):
        outcome = "flat"
    elif used >= rates[-1]:
        outcome = "above"
    else:
        # After the network has learnt everything, its lowest loss may come at any later rate.
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
    fall = (
        f"; divided by the loss without training, the loss falls from {short(smooth[0])} to {short(smooth[best])}"
        if outcome == "flat"
        else ""
    )
    return Finding(
        outcome,
        f"used {short(used)}, suggested {short(figures['suggested'])}, too high from {short(rates[-1])}{fall}",
        figures,
        tables=(Table("By rate", ("rate", "loss", "smoothed"), tuple(rows)[::EVERY]),),
    )


def _is_flat(smooth: list[float]) -> bool:
    return smooth[0] - min(smooth) < (1 - FALLS) * abs(smooth[0])


def _range_test(
    subject: Subject, steps: int, beside: Iterable[float] | None = None
) -> tuple[list[float], list[float], list[float]]:
    """Return the rates tried, the loss at each, and the moving average of the loss (divided by `beside`, if given)."""
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
    # A schedule may start at zero, so take the ratios between groups from the rates that `build_optimizer` set.
    given = [float(group.get("initial_lr", group["lr"])) for group in groups]
    for rate, batch in zip(rates, trial.batches(MORE_STEPS + 1), strict=False):
        for group, own in zip(groups, given, strict=True):
            group["lr"] = rate * own / (max(given) or 1.0)
        yield float(trial.step(*batch))
