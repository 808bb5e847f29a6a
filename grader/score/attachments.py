"""Records for the page of a submission, in addition to its score: sources, report, measurements, questions."""

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from grader.replay.replay import JsonNumber

_NO_OTHERS = ConfigDict(extra="forbid")


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measurement that helps to judge the fix: the outcome of a check, a symptom, or a metric."""

    name: str
    value: JsonNumber | str
    wanted: str  # the values of a correct fix: "below 1.0", "not above 50"
    good: bool


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class AnswerTable:
    """A table of findings about an answer file. Every row has one cell for each column."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Question:
    """A question to ask a student in person, and the content of a good answer. Only the instructor sees it."""

    asks: str
    answer: str


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Attachments:
    """Everything that the page of one submission shows in addition to its score. The student's texts are untrusted.

    answer_file: the name of the answer file of a written exercise, else "". For a written exercise, `fixed_source` is
    the text of this file, and `findings` has the tables about it.
    """

    submission: str
    broken_source: str | None = None
    fixed_source: str | None = None
    report: str | None = None
    answer_file: str = ""
    findings: tuple[AnswerTable, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    symptom: str = ""  # the symptoms of the broken run, in the recipe's words
    questions: tuple[Question, ...] = ()  # questions to ask the student in person
