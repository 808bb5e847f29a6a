"""A scheduler makes its steps as often as its horizon means."""

from typing import Any, ClassVar

from torch.optim.lr_scheduler import LambdaLR

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, SchedulerUse
from trainwreck.finding import Outcome

_LEAST_UPDATES = 8
_MANY_BATCHES = 2
_EACH = 0.8  # the share of updates with a step from which a scheduler counts as stepped with each update
_GONE, _SMALL = 1e-2, 0.2  # the factors of the learning rate after one epoch from which it is too small, or may be
_HORIZONS = ("CosineAnnealingLR", "OneCycleLR", "PolynomialLR", "LinearLR")
_HORIZON_KEYS = ("T_max", "total_steps", "total_iters")


class Schedule(Check):
    """A learning rate follows its schedule: it ends with the training, and the scheduler steps after the optimizer."""

    name = "schedule"
    question = "Does the scheduler step as often as its horizon means?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "ends-in-first-epoch": Outcome(
            "alarm",
            "The schedule ends within the first epoch: its horizon counts epochs, and it is stepped with each update.",
            "Step it once in an epoch, or give it the number of updates.",
            "schedule_in_epochs",
        ),
        "never-ends": Outcome(  # no alarm: a training that stops early may end so, too
            "advice",
            "The training ends long before its schedule: the horizon counts updates, and each epoch makes one step.",
            "Step it with each update, or give it the number of epochs.",
            "rate_stays_low",
        ),
        "falls-in-first-epoch": Outcome(
            "advice",
            "The scheduler steps with each update, and the learning rate falls below a fifth within an epoch.",
            "Step the scheduler once in an epoch, or give it a factor nearer to 1.",
            "schedule_in_epochs",
        ),
        "steps-first": Outcome(
            "alarm",
            "The scheduler steps before the optimizer, so the first learning rate is never used.",
            "Call scheduler.step() after optimizer.step().",
        ),
        "never-steps": Outcome(
            "advice",
            "A scheduler was made and never stepped in two epochs, so the learning rate stays as it is.",
            "Call scheduler.step().",
        ),
        "factor-is-a-rate": Outcome(
            "advice",
            "The function of LambdaLR gives a learning rate. It must give a factor of the learning rate.",
            "Divide the function's result by the learning rate of the optimizer.",
            "rate_multiplied_twice",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._skipped = False
        self._rates: dict[int, list[float]] = {}

    def on_skipped_step(self, optimizer: AnyOptimizer) -> None:
        """A scaler that skips the first update explains a scheduler that seems to step first."""
        self._skipped = True

    def on_schedule(self, use: SchedulerUse) -> None:
        """Look at a step that comes before the first update."""
        optimizer = getattr(use.scheduler, "optimizer", None)
        if optimizer is None or self.watch.step or self._skipped or getattr(optimizer, "_opt_called", False):
            return
        self.tell("steps-first", f"{type(use.scheduler).__name__} steps before the first update", use.stepped_at)

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """Note the learning rate of the update."""
        self._rates.setdefault(id(optimizer), []).append(float(optimizer.param_groups[0].get("lr", 0.0)))

    def at_end(self) -> None:
        """Compare the steps of each scheduler with the updates and with the length of an epoch."""
        for use in self.watch.schedulers.values():
            self._judge_horizon(use)
            self._judge_factor(use)

    def _judge_horizon(self, use: SchedulerUse) -> None:
        watch, scheduler, steps = self.watch, use.scheduler, use.steps
        trained = [one for one in watch.loaders.values() if one.training]
        if not steps:
            if trained and all(one.epochs > 2 for one in trained) and watch.step >= _LEAST_UPDATES:
                self.tell("never-steps", f"{type(scheduler).__name__} in {watch.step} updates", use.place)
            return
        length = max((one.length for one in trained), default=0)
        self._judge_end(use, length)
        if watch.step < _LEAST_UPDATES or len(steps) < _EACH * (watch.step - 1) or not length:
            return
        batches = max(1, round(sum(one.training for one in trained) / watch.step))
        updates = length / batches
        name = type(scheduler).__name__
        horizon = next((getattr(scheduler, key) for key in _HORIZON_KEYS if getattr(scheduler, key, None)), 0)
        gamma, size = getattr(scheduler, "gamma", None), getattr(scheduler, "step_size", 1)
        if name in _HORIZONS and horizon and horizon < updates and not (name == "LinearLR" and _rises(scheduler)):
            text = f"{name} ends after {horizon} steps; an epoch has {updates:.0f} updates"
            self.tell("ends-in-first-epoch", text, use.stepped_at)
        elif (
            isinstance(gamma, float) and isinstance(size, int) and (factor := float(gamma ** (updates / size))) < _SMALL
        ):
            outcome = "ends-in-first-epoch" if factor < _GONE else "falls-in-first-epoch"
            self.tell(outcome, f"{name}: a factor of {factor:.1g} after an epoch", use.stepped_at)

    def _judge_end(self, use: SchedulerUse, length: int) -> None:
        """Compare the horizon with all steps of the scheduler, if the script has come to its end.

        length: the number of batches of an epoch, as the script knows it.
        """
        steps, epochs = len(use.steps), len(set(use.steps))
        horizon = next((getattr(use.scheduler, key) for key in _HORIZON_KEYS if getattr(use.scheduler, key, None)), 0)
        if not self.watch.ended or length < _MANY_BATCHES or steps < 2 or epochs < steps:
            return
        if self.watch.step > steps and horizon == steps * length:
            text = f"{type(use.scheduler).__name__} of {horizon} steps makes {steps}; an epoch has {length} batches"
            self.tell("never-ends", text, use.stepped_at)

    def _judge_factor(self, use: SchedulerUse) -> None:
        if not isinstance(use.scheduler, LambdaLR):
            return
        base, rates = float(use.scheduler.base_lrs[0]), self._rates.get(id(use.scheduler.optimizer), [])
        # A warm-up may begin with the same factor, and goes up.
        if len(rates) < 2 or base >= 1 or rates[-1] > rates[0]:
            return
        if abs(rates[0] / base - base) < 1e-6 * base:
            self.tell("factor-is-a-rate", f"a learning rate of {base:g} becomes {rates[0]:g}", use.place)


def _rises(scheduler: Any) -> bool:
    return bool(scheduler.start_factor < scheduler.end_factor)
