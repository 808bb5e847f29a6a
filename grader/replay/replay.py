"""The record of a replay: what the grader saw when it ran an experiment."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field, JsonValue

from grader.sandbox import RunStatus
from harness.formats.toml_file import StrictModel
from harness.run.metrics_log import Record, parse_log

JsonNumber = float | Literal["NaN", "Infinity", "-Infinity"] | None


class CheckResult(StrictModel):
    """What a check found: one of its outcomes and the figures that decided, or why it could not be made."""

    check: str
    outcome: str = ""
    figures: Mapping[str, JsonNumber | str | bool] = Field(default_factory=dict)
    problem: str = ""


class SplitFigures(StrictModel):
    """Loss and accuracy on one split; the accuracy of a regression is None."""

    loss: JsonNumber
    accuracy: JsonNumber


class Evaluation(StrictModel):
    """The trusted evaluator's figures for replayed weights; `problem` says why there are none."""

    heldout: SplitFigures | None = None
    validation: SplitFigures | None = None
    problem: str = ""


class Replay(StrictModel):
    """One experiment, run or examined by the grader. If `status` is not OK, `message` says why, without any figures.

    A run has a log, a checkpoint and their evaluation; the other kinds have `checks` or `behaviour` alone.
    `XX` is our fault, the machine's or the settings'; every other status is the experiment's own. `lasting` says of XX
    that another attempt would end alike. `seconds` is what all its runs used of the time of a submission.
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


# A number of a log; a non-finite one by its name, as strict JSON needs it.
