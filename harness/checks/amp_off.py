"""The same steps with mixed precision and without."""

from dataclasses import dataclass
from statistics import median
from typing import Literal

from harness.checks.evidence import Evidence, Line, Plot, Table, short
from harness.checks.subject import Subject
from harness.run.metrics_log import Record
from harness.run.recorder import Recorder

STEPS = 40
LAST = 10
# Zero gradient entries with autocast beyond those without, median over the second half: the bound of the exercises'
# own probe. Healthy: 0.01 at most; unscaled float16 gradients: 0.5 and more.
MORE_ZEROS = 0.1
# Loss at the end with autocast over that without.
BETTER = 3.0

Outcome = Literal["no-autocast", "same", "better-without"]


@dataclass(frozen=True)
class AmpOff:
    """The records of the first steps with the constant AMP as it is, and with AMP off; none where it is not set."""

    records: list[Record]
    without: list[Record]

    @staticmethod
    def loss(records: list[Record]) -> float:
        """Return the median loss of the last steps."""
        return float(median(record["loss"] for record in records[-LAST:]))

    @staticmethod
    def zeros(records: list[Record]) -> float:
        """Return the median share of zero gradient entries over the second half."""
        return float(median(record["grad_zero_fraction"] or 0.0 for record in records[len(records) // 2 :]))

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        if not self.without:
            return "no-autocast"
        lost = self.zeros(self.records) - self.zeros(self.without) > MORE_ZEROS
        worse = not self.loss(self.records) <= BETTER * self.loss(self.without)
        return "better-without" if lost or worse else "same"


def measure(subject: Subject, *, steps: int = STEPS) -> AmpOff:
    """Make the first steps of the run, and once more with the constant AMP set to False, where there is one."""
    if not subject.experiment().uses_amp:
        return AmpOff([], [])
    return AmpOff(_steps(subject, steps, disable_amp=False), _steps(subject, steps, disable_amp=True))


def _steps(subject: Subject, steps: int, *, disable_amp: bool) -> list[Record]:
    bench = subject.bench(subject.experiment(disable_amp=disable_amp))
    with Recorder(bench.model) as recorder:
        return [
            {"step": step, **recorder.end_batch(bench.step(*batch))}
            for step, batch in zip(range(steps), bench.batches(), strict=False)
        ]


def show(measured: AmpOff) -> Evidence:
    """Return both curves."""
    if not measured.records:
        what = "the constant AMP: there is none, or it is off already"
        return Evidence(what=what, outcome=measured.outcome, said="AMP is off", figures={"AMP": False})
    runs = {"as it is": measured.records, "AMP off": measured.without}
    return Evidence(
        what=f"the first {len(measured.records)} steps of the run, with AMP as it is and off",
        outcome=measured.outcome,
        said="; ".join(
            f"{name}: loss {short(AmpOff.loss(r))}, zeros {short(AmpOff.zeros(r))}"
            for name, r in runs.items()
        ),
        figures={
            **{f"loss at the end, {name}": AmpOff.loss(records) for name, records in runs.items()},
            **{f"zero gradient entries, {name}": AmpOff.zeros(records) for name, records in runs.items()},
        },
        tables=(
            Table(
                caption=f"Loss: median of the last {LAST} steps; zeros: median of the second half",
                columns=("precision", "loss", "zero gradient entries"),
                rows=tuple((name, AmpOff.loss(r), AmpOff.zeros(r)) for name, r in runs.items()),
            ),
        ),
        plots=(
            Plot(
                title="Loss by precision",
                x_label="step",
                y_label="loss",
                lines=tuple(
                    Line(label=name, points=tuple((r["step"], r["loss"]) for r in records))
                    for name, records in runs.items()
                ),
                scale="log",
            ),
        ),
    )
