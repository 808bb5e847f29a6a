"""A replay: what the grader itself saw when it ran an experiment."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from pydantic import Field, JsonValue

from grader.sandbox import Status
from grader.score.exhibits import Number
from grader.score.verdict import Model
from harness.run.metrics_log import Record, log_lines, parse_log


class CheckResult(Model):
    """What a check found in the replay: one of its outcomes, and the figures that decided."""

    check: str
    outcome: str
    figures: Mapping[str, Number | str | bool] = Field(default_factory=dict)


class SplitFigures(Model):
    """Loss and accuracy (None for a regression) on one split."""

    loss: Number
    accuracy: Number


class Evaluation(Model):
    """What the trusted evaluator found about replayed weights; `problem` says why they could not be evaluated.

    own_network: it is another network than the recipe's own, and what it put out for images without labels was judged.
    """

    heldout: SplitFigures | None = None
    validation: SplitFigures | None = None
    training: SplitFigures | None = None
    own_network: bool = False
    problem: str = ""


class Replay(Model):
    """One experiment, run by the grader. Where `status` is not OK, `message` says why and there are no figures.

    `XX` is a fault of ours or of the machine; every other status is the experiment's own doing.
    """

    status: Status
    message: str = ""
    log: str = ""
    log_sha256: str | None = None
    checkpoint_sha256: str | None = None
    checks: tuple[CheckResult, ...] = ()
    platform: dict[str, JsonValue] | None = None
    evaluation: Evaluation | None = None

    def records(self) -> Sequence[Record]:
        """Return the records of the log; they are shared, so nobody may change them."""
        return _records(self.log)


@lru_cache(maxsize=8)
def _records(log: str) -> Sequence[Record]:
    return tuple(parse_log(log_lines(log), "the replayed metrics.log"))
