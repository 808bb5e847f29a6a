"""The record of a replay: the results that the grader got when it ran an experiment."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field, JsonValue

from grader.sandbox import RunStatus
from harness.formats.toml_file import StrictModel
from harness.run.metrics_log import Record, parse_log

# A number of a log. A non-finite number is written by its name, because strict JSON has no form for it.
JsonNumber = float | Literal["NaN", "Infinity", "-Infinity"] | None


class CheckResult(StrictModel):
    """The result of a check: one of its outcomes and the values that decided, or why it could not run."""

    check: str
    outcome: str = ""
    figures: Mapping[str, JsonNumber | str | bool] = Field(default_factory=dict)
    problem: str = ""


class SplitFigures(StrictModel):
    """Loss and accuracy on one split; the accuracy of a regression is None."""

    loss: JsonNumber
    accuracy: JsonNumber


class Evaluation(StrictModel):
    """The trusted evaluator's metrics for replayed weights, or the `problem` with these weights."""

    heldout: SplitFigures | None = None
    validation: SplitFigures | None = None
    problem: str = ""


class Replay(StrictModel):
    """The result of a run, of checks or of a behaviour. If `status` is not OK, `message` says why.

    A run has a log, a checkpoint and their evaluation. The other kinds have only `checks` or `behaviour`.
    status: `XX` if the cause is the grader, the machine or the settings. Otherwise the cause is the experiment.
    lasting: for XX, whether another attempt would fail, too.
    seconds: the time of all runs of this replay, which counts against the time of a submission.
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
        """Return the records of the log. They are shared: do not change them."""
        return parse_log(self.log, "the replayed metrics.log")
