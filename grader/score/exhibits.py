"""The record of what a submission's page shows beside the score: sources, curves, hashes, the report."""

from typing import Literal

from grader.sandbox import Status
from grader.score.verdict import Model
from harness.workspace import Run

ChartedRun = Literal["broken", "fixed", "reference"]
HashedFile = Literal["metrics.log", "checkpoint.pt"]
Process = Literal["broken run", "fixed run", "reference run", "answer"]
# A number of a log; a non-finite one by its name, as strict JSON needs it.
Number = float | Literal["NaN", "Infinity", "-Infinity"] | None


class Curve(Model):
    """The curves of one replay: (step, training loss) of at most 200 batches, (epoch, loss, accuracy) of each epoch."""

    run: ChartedRun
    loss: tuple[tuple[int, Number], ...]
    validation: tuple[tuple[int, Number, Number], ...]


class HashComparison(Model):
    """A file's SHA-256 as claimed and as replayed, None if the file is missing.

    `agree` is None if the hashes need not agree (another platform class).
    """

    run: Run
    file: HashedFile
    claimed: str | None
    replayed: str | None
    agree: bool | None


class ReplayOutcome(Model):
    """How one process of the grader ended: OK, RE, SG, TO, OL, ML or XX, with a sentence."""

    what: Process
    status: Status
    message: str = ""


class Measurement(Model):
    """One figure that decided about the fix: a check's outcome, a symptom, or the trusted evaluator's."""

    name: str
    value: Number | str
    wanted: str  # "below 1.0", "not above 50"
    good: bool


class Table(Model):
    """A table of what was found in an answer that is one file: a caption, headings, and rows of as many cells."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class CitedNumber(Model):
    """A number in the report's text, text[start:end], that the grader looked up in the logs."""

    start: int
    end: int
    verdict: Literal["verified", "refuted"]


class Exhibits(Model):
    """Everything the page of one submission shows beside its score. All text is the student's own: untrusted.

    answer_file: the name of the file if the answer is one file; then `fixed_source` is its text, and `findings` are
    the tables about it.
    """

    submission: str
    broken_source: str | None = None
    fixed_source: str | None = None
    report: str | None = None
    numbers: tuple[CitedNumber, ...] = ()
    answer_file: str = ""
    findings: tuple[Table, ...] = ()
    curves: tuple[Curve, ...] = ()
    hashes: tuple[HashComparison, ...] = ()
    replays: tuple[ReplayOutcome, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    ignored_files: tuple[str, ...] = ()
    symptom: str = ""  # what the broken run shows, in the recipe's words
