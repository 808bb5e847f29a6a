"""The record of a replay: the results that the grader got when it ran an experiment in the sandbox."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field, JsonValue

from grader.sandbox import RunStatus
from harness.formats.toml_file import StrictModel
from harness.run.metrics_log import Record, parse_log

# A number in a log. A non-finite number is written as text, because JSON cannot represent it.
JsonNumber = float | Literal["NaN", "Infinity", "-Infinity"] | None


class CheckResult(StrictModel):
    """The result of a check: its outcome and the values that decided, or the problem why it could not run."""

    check: str
    outcome: str = ""
    figures: Mapping[str, JsonNumber | str | bool] = Field(default_factory=dict)
    problem: str = ""


class SplitFigures(StrictModel):
    """Loss and accuracy on one split. If the experiment is a regression, the accuracy is None."""

    loss: JsonNumber
    accuracy: JsonNumber


class Evaluation(StrictModel):
    """The metrics of a replay's weights, computed without student code, or the `problem` with these weights."""

    heldout: SplitFigures | None = None
    validation: SplitFigures | None = None
    problem: str = ""


class Replay(StrictModel):
    """The result of a run, of checks, or of measuring a behaviour. If `status` is not OK, `message` says why.

    The replay of a run has a log, a checkpoint and an evaluation of its weights. Other replays have only `checks` or
    only `behaviour`.

    status: `XX` if the grader, the machine or the settings made the replay fail. Any other failure is the experiment's.
    lasting: for XX, whether another attempt would fail, too.
    seconds: the time of all runs for this replay. It counts against the time limit of a submission.
    """

    status: RunStatus
    message: str = ""
    log: str = ""
    log_sha256: str | None = None
    checkpoint_sha256: str | None = None
    checks: tuple[CheckResult, ...] = ()
    behaviour: Mapping[str, Mapping[str, Sequence[float | str]]] | None = None
    platform: dict[str, JsonValue] | None = None
    evaluation: Evaluation | None = None
    lasting: bool = False
    seconds: float = 0.0

    def records(self) -> Sequence[Record]:
        """Return the records in the log. Do not change the records, because other callers get the same objects."""
        return parse_log(self.log, "the replayed metrics.log")
