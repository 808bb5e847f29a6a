"""One training run of the self-check: what is asked of a process that trains, and what it answers."""

from dataclasses import dataclass

from grader.score.verdict import Model
from harness.run.metrics_log import Record


@dataclass(frozen=True)
class Trial:
    """An experiment of the suite's own to train on a data set from a seed, and the checks to make."""

    source: str
    dataset: str
    seed: int
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What came of a trial, in the process with this id; `problem` says why it did not come to its end.

    `records` are those of the log without the figures of single parameters and layers, `checks` the outcomes
    by name, `warnings` what the guardrails said.
    """

    process: int
    problem: str
    log_sha256: str
    checkpoint_sha256: str
    records: list[Record]
    checks: dict[str, str]
    warnings: list[str]

    def repeats(self, other: "Outcome") -> bool:
        """Say whether both left the same log and the same checkpoint, in two different processes."""
        mine, others = ((o.log_sha256, o.checkpoint_sha256) for o in (self, other))
        return mine == others and self.process != other.process and not (self.problem or other.problem)


class KeptOutcome(Model):
    """An outcome as it is remembered: its fields as JSON."""

    outcome: str
