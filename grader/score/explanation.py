"""The explanation: four parts, the right cause and no other beside it, one chain, and numbers that are true."""

from collections.abc import Sequence

from grader.score import cause, chain, parts, true_numbers
from grader.score.cause import judge_cause
from grader.score.causes import CATCH_ALL, Causes, find_causes, told
from grader.score.chain import judge_chain
from grader.score.claims import find_claims
from grader.score.document import Document
from grader.score.lexicon import Lexicon
from grader.score.parts import judge_parts
from grader.score.prompt import only_retells, read_prompt, without_prompt
from grader.score.prose import kind_of_text
from grader.score.reading import Reading, read_explanation
from grader.score.true_numbers import judge_numbers
from grader.score.verdict import Check, lost, open_check
from harness.recipe import Recipe
from harness.run.metrics_log import Record

_CHECKS = tuple((rule.ID, rule.TITLE, rule.POINTS) for rule in (parts, cause, chain, true_numbers))
_WRITE = "Write in sentences what you saw, what caused it, what you changed, and how you know that it worked."


def judge_explanation(
    report_text: str | None,
    recipe: Recipe,
    lexicon: Lexicon,
    *,
    broken_log: Sequence[Record],
    fixed_log: Sequence[Record],
    broken_source: str,
    fixed_source: str,
) -> tuple[Check, ...]:
    """Judge a report's text by the rules of one recipe: the checks `parts`, `cause`, `chain` and `numbers`.

    The logs are those of the grader's own replay; one that is empty leaves open what would have to be compared
    with it. What is no explanation earns nothing: no report, a list of terms, the exercise's own words, or so
    many causes at once that none is named. What the rules cannot decide is left to the instructor.
    """
    if report_text is None:
        return _nothing("There is no report.", _WRITE)
    reading = read_explanation(report_text)
    kind = kind_of_text(reading.document, lexicon.prompt)
    if kind == "not in English":
        return _not_english(reading, recipe, (broken_log, fixed_log), (broken_source, fixed_source), lexicon)
    if kind == "nothing":
        return _nothing("The report says nothing under its headings.", _WRITE)
    if kind != "prose":
        quoted = reading.document.sentences[0].quoted()
        return _nothing(f"The text is {kind}, beginning with {quoted}: it explains nothing.", _WRITE)
    prompt = read_prompt(lexicon.prompt)
    own = without_prompt(reading.document, prompt)
    causes = find_causes(own, lexicon)
    named = [mention.sentence for mention in causes.named]
    if only_retells(reading.document, prompt, [*named, *find_claims(own, lexicon)]):
        return _nothing(
            "Where the cause is to be told, the text repeats the exercise and adds nothing.", _WRITE
        )
    if causes.is_catch_all:
        return _nothing(
            f"{len(causes.all_rivals)} causes are named that this run does not have: {told(causes.all_rivals)}."
            f" A text that names {CATCH_ALL} or more wrong causes explains nothing, whatever else is in it.",
            f"Name the one cause that you found. It was: {lexicon.says}.",
        )
    judged_cause = judge_cause(own, lexicon, causes, reading.layer, recipe.area, reading.layer_problem)
    return (
        judge_parts(own, reading.words, lexicon.fix, causes.named, (broken_log, fixed_log)),
        judged_cause,
        _chain(own, lexicon, causes, judged_cause, other_layer=reading.layer not in (None, recipe.area)),
        judge_numbers(reading.document, (broken_log, fixed_log), (broken_source, fixed_source)),
    )


def _chain(
    document: Document, lexicon: Lexicon, causes: Causes, judged: Check, *, other_layer: bool
) -> Check:
    if judged.outcome == "could not judge":
        reason = "Whether the cause is linked cannot be said before it is clear whether it is named."
        return open_check(chain.ID, chain.TITLE, chain.POINTS, reason)
    if causes.rivals and other_layer:
        # Two causes and the other one's layer: what the text blames is not the right one.
        reason = f"The layer that is named goes with another cause, {told(causes.rivals)}: what is linked is that one."
        return lost(chain.ID, chain.TITLE, chain.POINTS, reason, f"The cause was: {lexicon.says}.")
    return judge_chain(document, lexicon, causes)


def _nothing(reason: str, remedy: str) -> tuple[Check, ...]:
    return tuple(lost(id, title, points, reason, remedy) for id, title, points in _CHECKS)


def _not_english(
    reading: Reading,
    recipe: Recipe,
    logs: tuple[Sequence[Record], Sequence[Record]],
    sources: tuple[str, str],
    lexicon: Lexicon,
) -> tuple[Check, ...]:
    reason = "The text does not seem to be in English, and the rules know English words only; please read it."
    layer = reading.layer or "not readable"
    judged = judge_parts(reading.document, reading.words, lexicon.fix, (), logs)
    return (
        judged if judged.outcome == "passed" else open_check(parts.ID, parts.TITLE, parts.POINTS, reason),
        open_check(
            cause.ID, cause.TITLE, cause.POINTS, f"{reason} Layer: {layer}, the right one: {recipe.area}."
        ),
        open_check(chain.ID, chain.TITLE, chain.POINTS, reason),
        judge_numbers(reading.document, logs, sources),
    )
