"""The record of what a submission's page shows beside the score: sources, measurements, the report."""

from typing import Literal

from grader.score.verdict import Model

# A number of a log; a non-finite one by its name, as strict JSON needs it.
Number = float | Literal["NaN", "Infinity", "-Infinity"] | None


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


class Exhibits(Model):
    """Everything the page of one submission shows beside its score. All text is the student's own: untrusted.

    answer_file: the name of the file if the answer is one file; then `fixed_source` is its text, and `findings` are
    the tables about it.
    """

    submission: str
    broken_source: str | None = None
    fixed_source: str | None = None
    report: str | None = None
    answer_file: str = ""
    findings: tuple[Table, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    symptom: str = ""  # what the broken run shows, in the recipe's words
