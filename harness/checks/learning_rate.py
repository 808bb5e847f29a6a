"""Read the largest learning rate that any optimizer uses, and make steps at this rate without the run's train_step.

In the first six steps, the check reads the learning rate of each optimizer that makes a step. It takes later rates from
the schedule. The right learning rate depends on the optimizer: about 0.1 for SGD with momentum, about 0.001 for Adam.
`harness lr-find` shows the useful range for this experiment.

If `train_step` clips or divides the gradient, a learning rate that is too high may do no visible harm. So the check
makes 80 plain steps without `train_step`: they use the optimizer, the largest rate of the schedule, the mean loss, and
its unmodified gradient. (The check limits the gradient only to 5 times the usual norm, because an outlier among the
examples says nothing about the rate.) If these steps do not reduce the loss, the check repeats them with a tenth and a
hundredth of the rate.

Adam and similar optimizers divide the gradient by its root mean square plus `eps`, so that each weight moves by about
the learning rate. If `eps` is larger than the root mean square, the updates are shorter. Then the optimizer works like
gradient descent with a tiny learning rate. A higher learning rate would hide this fault, but not repair it.
"""

import inspect
import math
from collections.abc import Callable
from statistics import median

import torch

from harness.checks.core.finding import Finding, short
from harness.checks.core.loss import kind_of, range_of, stable_loss
from harness.checks.core.subject import Subject, Trial, as_vector, reference_gradients, worst
from harness.errors import UserError
from harness.run.setup import advance_schedule

# figure                                    | healthy       | broken | bound              | source
# largest learning rate                     | 0.001 to 0.01 |        | LARGEST 1          | defaults of torch.optim
# loss after plain steps / first loss       | <= 0.5        | 1      | LEARNS_NOTHING 0.8 | digits at ten times the rate
# loss at a tenth of the rate / at the rate |               | 0.2    | BETTER 0.3         | the same network
# entries that eps outweighs                | <= 56 %       | 100 %  | HELD_BACK 80 %     | start of a warm-up; eps 1.0
#
# No usual learning rate reaches 1. Only Adadelta and L-BFGS have the default 1.0, and they choose the length of their
# steps themselves. Smith's range tests of usual networks (arXiv:1506.01186) end below 1. The healthy values come from
# the healthy experiments and their correct variants.
LARGEST = 1.0
STEPS = 6
PLAIN_STEPS = 80
LAST = 10
LONGEST = 5.0
LEARNS_NOTHING, BETTER = 0.8, 0.3
HELD_BACK = 0.8


def measure(subject: Subject) -> Finding:
    """Make the first steps of the run, advance its schedule to the end, and make plain steps without train_step."""
    trial = subject.trial()
    rates, held_back = rates_of(trial), _share_below_eps(trial.optimizer)
    largest = worst(rates)
    sets_its_own = isinstance(subject.trial().optimizer, torch.optim.Adadelta | torch.optim.LBFGS)
    own, lower = _plain_losses(subject, 1.0), None
    if not _level(own) < LEARNS_NOTHING * own[0]:
        lower = min(_level(_plain_losses(subject, factor)) for factor in (0.1, 0.01))
    overshoots = lower is not None and lower < BETTER * _level(own)
    summary = f"largest learning rate {short(largest)}; loss after {PLAIN_STEPS} plain steps {short(_level(own))}"
    if not (largest < LARGEST or sets_its_own) or overshoots:
        outcome = "too-large"
        if overshoots:
            summary += f", and {short(lower)} at a lower rate"
    elif held_back > HELD_BACK:
        outcome, summary = "held-back", f"{summary}; eps outweighs {held_back:.0%} of the entries"
    else:
        outcome = "usual"
    return Finding(
        outcome,
        summary,
        {
            "largest rate": largest,
            "rate of the first step": rates[0],
            "loss of the first plain step": own[0],
            "loss after plain steps": _level(own),
            "the same at a tenth or a hundredth of the rate": lower,
            "entries that eps outweighs": held_back,
        },
    )


def rates_of(trial: Trial) -> list[float]:
    """Return the largest learning rate of each step: measured in the first steps, then taken from the schedule."""
    first = min(STEPS, trial.steps)
    rates = [
        float(_next_rate(trial.optimizer) if record["lr"] is None else record["lr"])  # None: no step
        for record in trial.records(trial.batches(first))
    ]
    if trial.scheduler is not None:
        for _ in range(trial.steps - first):
            rates.append(_next_rate(trial.optimizer))
            advance_schedule(trial.scheduler)
    return rates


def _peaks(trial: Trial) -> list[float]:
    """Return the largest learning rate that the schedule sets for each group of parameters."""
    rates = []
    for _ in range(trial.steps):
        rates.append([float(group["lr"]) for group in trial.optimizer.param_groups])
        if trial.scheduler is None:
            break
        _step(trial, lambda: 0.0)  # there are no gradients, so no weight moves
        advance_schedule(trial.scheduler)
    return [worst([*group]) for group in zip(*rates, strict=True)]


def _next_rate(optimizer: torch.optim.Optimizer) -> float:
    return worst([float(group["lr"]) for group in optimizer.param_groups])


def _share_below_eps(optimizer: torch.optim.Optimizer) -> float:
    """Return the share of entries whose root mean square gradient is below eps; 0 if the optimizer has no eps."""
    below = every = 0
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter, {})
            square = state.get("exp_avg_sq", state.get("square_avg"))
            if square is None or "eps" not in group:
                continue
            # Correct Adam's bias, because its running mean starts at zero.
            known = 1 - group["betas"][1] ** float(state["step"]) if "betas" in group else 1.0
            roots = (square.detach().double() / known).sqrt()
            below += int(((roots > 0) & (roots < group["eps"])).sum())
            every += int((roots > 0).sum())
    return below / every if every else 0.0


def _plain_losses(subject: Subject, factor: float) -> list[float]:
    peaks, trial = _peaks(subject.trial()), subject.trial()
    for group, peak in zip(trial.optimizer.param_groups, peaks, strict=True):
        group["lr"] = factor * peak
    losses, form = [], None
    limit = LONGEST * _usual_norm(subject)
    for inputs, labels in trial.batches(PLAIN_STEPS):
        outputs = trial.model.train()(inputs)
        form = form or stable_loss(kind_of(outputs, labels), range_of(trial.model, inputs, outputs))
        loss = (form or trial.experiment.compute_loss)(outputs, labels)
        trial.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trial.model.parameters(), limit)
        _step(trial, loss.item)  # with the loss, which L-BFGS evaluates again
        losses.append(loss.item())
    return losses


def _step(trial: Trial, loss: Callable[[], float]) -> None:
    """Make a step of a trial's optimizer, whose `step` may take a closure or nothing.

    Raises `UserError` if a hook of the experiment fails.
    """
    closure = (loss,) if inspect.signature(trial.optimizer.step).parameters else ()
    try:
        trial.optimizer.step(*closure)
    except Exception as error:
        raise UserError(
            f"{trial.experiment.path}: the optimizer's step, called outside train_step, raised"
            f" {type(error).__name__}: {error}. Perhaps a hook of the optimizer depends on train_step."
        ) from error


def _usual_norm(subject: Subject) -> float:
    """Return the median gradient norm of the first batches at the initial weights."""
    trial = subject.trial()
    norms = []
    for inputs, labels in trial.batches(LAST):
        gradients = reference_gradients(trial.model, trial.experiment.compute_loss, inputs, labels)
        norms.append(float(as_vector(gradients, gradients).norm()))
    return median(norms)


def _level(losses: list[float]) -> float:
    """Return the median of the last losses, or infinity if one of them is not finite."""
    last = losses[-LAST:]
    return median(last) if all(map(math.isfinite, last)) else math.inf
