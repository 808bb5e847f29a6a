"""Whether the numbers of a report's text agree with the logs."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from grader.score.document import Document, read_lines
from grader.score.logged import ROUGHLY, LoggedValues
from grader.score.number_words import OTHER_RATE, OTHER_RUN
from grader.score.sentences import Sentence
from grader.score.stance_words import COMPARISON
from grader.score.stated import Stated, stated_numbers
from grader.score.verdict import Check, full, lost, open_check
from grader.score.written_numbers import digits_of, may_agree, value_of
from harness.run.metrics_log import Record
from harness.submission.cited_numbers import agrees

ID, TITLE, POINTS = "numbers", "Every number in the text agrees with the logs", 3.0
Verdict = Literal["true", "untrue", "neutral"]

# ln 10, the lower bound ln(e + 9) - 1 and the bound ln(1 + 9/e) that it equals, chance, and what float16 can hold.
CONSTANTS = (
    math.log(10), math.log(math.e + 9) - 1, math.e, 0.0, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0, 255.0, 256.0,
    2.0**-24, 2.0**-25, 2.0**-14, 65504.0, 65536.0, 1e-8, 6.1e-5, 2.0**16,
)  # fmt: skip
_IN_SOURCE = re.compile(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_PARAGRAPH = re.compile(r"(\d{1,2}(?:\.\d{1,2}){1,2})[.)]?\s+(?=[A-Z`])")
_POWER_OF_TEN = re.compile(r"1[eE][+-]?\d{1,3}")
_HALF_AN_ORDER = math.sqrt(10)
_TINY = 1e-3  # a constant below this is written with its power of ten: 0.0001 is not 6.1e-5
_SIGNIFICANT = 3  # digits by which a number without a signal beside it is still found in a log
_REMEDY = (
    "Take the numbers from metrics.log, rounded to the digits you write, and say of which signal each is."
)


def judge_numbers(
    document: Document, logs: tuple[Sequence[Record], Sequence[Record]], sources: tuple[str, str]
) -> Check:
    """Judge every number that is said of a signal; `logs` and `sources` are of the broken and the fixed run.

    A number is true if one of the logs holds it for that signal, at the precision given. One that counts
    something, or stands in a source, or is a constant of this field, says nothing about a log.
    """
    known = _known(sources)
    logged = LoggedValues(*logs)
    true: list[Stated] = []
    untrue: list[Stated] = []
    numbers = _numbers(document)
    elsewhere = {id(number.sentence) for number in numbers if _is_of_another_rate(number, logged)}
    # "I ran it with a batch size of 32; the first loss was 2.31."
    elsewhere |= {
        id(second)
        for first, second in pairwise(document.sentences)
        if first.text.endswith((";", ":")) and _is_of_another_run(first)
    }
    places = _numbered_paragraphs(document)
    for number in numbers:
        verdict = _judge(number, logged, known)
        if verdict == "untrue" and (id(number.sentence) in elsewhere or places.issuperset(number.written)):
            continue
        (true if verdict == "true" else untrue if verdict == "untrue" else []).append(number)
    if untrue and not all(logs):
        quoted = ", ".join(number.quote for number in untrue[:3])
        return open_check(
            ID, TITLE, POINTS, f"A log of the replay is missing, so {quoted} cannot be compared."
        )
    if untrue:
        return _untrue(true, untrue)
    if true:
        quoted = ", ".join(number.quote for number in true[:3])
        more = f" and {len(true) - 3} more" if len(true) > 3 else ""
        return full(
            ID, TITLE, POINTS, f"All numbers that can be compared agree with the logs: {quoted}{more}."
        )
    if not any(logs):
        return open_check(ID, TITLE, POINTS, "There is no log of the replay to compare the text with.")
    reason = "No number in the text is untrue, but none can be compared with a log either."
    return lost(ID, TITLE, POINTS, reason, _REMEDY, points=1.0)


def _untrue(true: list[Stated], untrue: list[Stated]) -> Check:
    quoted = "; ".join(f"{number.quote} in {number.sentence.quoted(100)}" for number in untrue[:3])
    reason = f"Neither log holds {quoted}."
    # One slip among many true numbers is a slip.
    slip = len(untrue) == 1 and len(true) >= 3
    if slip:
        reason += f" {len(true)} others agree."
    return lost(ID, TITLE, POINTS, reason, _REMEDY, points=1.0 if slip else 0.0)


def _numbers(document: Document) -> list[Stated]:
    found = [number for sentence in document.sentences for number in stated_numbers(sentence)]
    return found + [n for line in read_lines(document.code) for n in stated_numbers(line, close=True)]


def _numbered_paragraphs(document: Document) -> set[str]:
    """Return the numbers of paragraphs, "1.2 The same weights ...", to which "(1.2)" may refer."""
    return {match[1] for s in document.sentences if (match := _PARAGRAPH.match(s.text))}


def _known(sources: tuple[str, str]) -> list[float]:
    found = set(CONSTANTS)
    for source in sources:
        for match in _IN_SOURCE.finditer(source[:100_000]):
            found.add(float(match[0]))
    return sorted(found)


def _judge(number: Stated, logged: LoggedValues, known: list[float]) -> Verdict:
    signals = number.signals or ()
    if number.counts:
        return "neutral"
    if not signals:
        # Said of nothing in particular: true if a log has it, to enough digits not to be chance.
        precise = [w for w in number.written if digits_of(w) >= _SIGNIFICANT]
        return "true" if any(logged.hold(logged.signals, w) for w in precise) else "neutral"
    if any(_holds(number.bound, signals, written, number.other_end, logged) for written in number.written):
        return "true"
    if any(logged.hold(number.others, written) for written in number.written):
        return "true"
    known = known if any("e" in w for w in number.written) else [v for v in known if not 0 < v < _TINY]
    if any(may_agree(w, value) and agrees(w, value) for w in number.written for value in known):
        return "neutral"
    return "neutral" if _is_of_another_run(number.sentence) else "untrue"


def _holds(
    bound: str, signals: tuple[str, ...], written: str, other_end: tuple[str, ...], logged: LoggedValues
) -> bool:
    if logged.hold(signals, written):
        return True
    value = value_of(written)
    if _POWER_OF_TEN.fullmatch(written):  # an order of magnitude
        return logged.hold_within(signals, value / _HALF_AN_ORDER, value * _HALF_AN_ORDER)
    if bound == "between":
        # 9 % goes with 10 %, not with 10.
        ends = [value_of(end) for end in other_end if end.endswith("%") == written.endswith("%")]
        return any(logged.hold_within(signals, *sorted((value, end))) for end in ends)
    if bound == "above":
        return logged.hold_within(signals, value, math.inf)
    if bound == "below":
        return logged.hold_within(signals, -math.inf, value)
    if bound == "about":
        return logged.hold_within(signals, *sorted((value * (1 - ROUGHLY), value * (1 + ROUGHLY))))
    return False


def _is_of_another_rate(number: Stated, logged: LoggedValues) -> bool:
    """Say whether a sentence tells of a learning rate that neither run had: "With lr = 1.0 the loss still ..."."""
    if number.signals != ("lr",) or number.counts or any(logged.hold(("lr",), w) for w in number.written):
        return False
    return bool(number.sentence.find(OTHER_RATE))


def _is_of_another_run(sentence: Sentence) -> bool:
    return bool(sentence.find(OTHER_RUN) or sentence.find(COMPARISON))
