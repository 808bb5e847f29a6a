"""Reads the largest learning rate that any optimizer uses, in the first steps and over the whole schedule.

The rates of the first six steps are read when an optimizer steps, whichever optimizer that is; the rates of
the later steps are those of the schedule. A rate is right only together with its optimizer: about 0.1 for SGD
with momentum, 0.001 for Adam. `harness lr-find` shows the range for the experiment at hand.

Source of the bound: no usual rate of any optimizer reaches 1. The defaults of torch.optim are 0.001 to 0.01,
and only Adadelta, which sets its own step, has 1.0; Smith's range tests (arXiv:1506.01186) of plain networks
end below 1.
"""

from harness.checks.core.finding import Check, Finding, Limit, Line, Plot, mechanism, short, sound
from harness.checks.core.subject import Subject, worst

CHECK = Check(
    order=50,
    question="Is every learning rate of the schedule a usual one?",
    minutes=2,
    outcomes=(
        sound("usual", "Every rate is below 1, but it may still be wrong for its optimizer.", "lr_tenth"),
        mechanism(
            "too-large",
            "A rate is 1 or more, above what usual optimizers use: the updates overshoot whatever the gradient says.",
            look="the rate in build_optimizer, and build_scheduler",
            in_log=Limit("lr", below=1.0),
        ),
    ),
)
LARGEST = 1.0
STEPS = 6


def measure(subject: Subject) -> Finding:
    """Make the first steps of the run, then step its schedule to the end."""
    rates = rates_of(subject)
    largest = worst(rates)
    return Finding(
        f"the rates of the first {STEPS} steps, and of the schedule to the end of the run",
        "usual" if largest < LARGEST else "too-large",
        f"largest rate {short(largest)}",
        {"largest rate": largest, "rate of the first step": rates[0]},
        plots=(Plot("Learning rate", "rate", (Line.over_steps("rate", rates),), scale="auto"),),
    )


def rates_of(subject: Subject) -> list[float]:
    """Return the largest learning rate of each step of the run; the first steps are made, the others only scheduled."""
    trial = subject.trial()
    rates = [float(record["lr"] or 0.0) for record in trial.records(trial.batches(STEPS))]
    if trial.scheduler is not None:
        for _ in range(trial.steps - STEPS):
            trial.scheduler.step()
            rates.append(worst([float(group["lr"]) for group in trial.optimizer.param_groups]))
    return rates
