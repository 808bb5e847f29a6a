"""A report as the explanation's rules read it: its layer, its words, its text; whatever of that can be read."""

import re
from dataclasses import dataclass

from grader.score.document import Document, read_document
from grader.score.sentences import printable
from harness.errors import UserError
from harness.recipe import Area
from harness.submission.front_matter import split_report
from harness.submission.report_body import count_words, read_body
from harness.submission.student_report import parse_report

_NAME = "report.md"
# A report is 500 words; what goes beyond this many characters, pictures taken out, is not looked at.
_CHARACTERS = 64 * 1024
# A pattern may look at every rest of a line from every place in it: long lines are cut.
_LINE = 2_000
_PICTURE = re.compile(r"data:[A-Za-z0-9+/=;,.%-]{100,}")


@dataclass(frozen=True)
class Reading:
    """What could be read of a report; `layer_problem` says why there is no layer, if there is none."""

    layer: Area | None
    layer_problem: str
    words: int
    document: Document


def read_explanation(text: str) -> Reading:
    """Return what a report holds. It reads any text: what cannot be read is missing in the result."""
    text = _PICTURE.sub("data:", text)[:_CHARACTERS]
    layer, problem, body = _front(text)
    body = "\n".join(piece for line in body.split("\n") for piece in _pieces(line))
    try:
        words = read_body(body, _NAME, 1).words
    except UserError:  # a code block without an end: its words count, as nobody can say where it ends
        words = count_words(body)
    return Reading(layer, problem, words, read_document(body))


def _front(text: str) -> tuple[Area | None, str, str]:
    """Return the layer or None, why there is none, and the text under the front matter."""
    try:
        matter, body, _ = split_report(text, _NAME)
    except UserError as error:
        return None, printable(str(error)), text
    try:
        return parse_report(f"---\n{matter}\n---\n", _NAME).layer, "", body
    except UserError as error:
        return None, printable(str(error)), body


def _pieces(line: str) -> list[str]:
    return [line[at : at + _LINE] for at in range(0, len(line), _LINE)] or [""]
