"""Make an oral card: questions about a student's log and edit, with answers that only the instructor sees.

Students who did the work themselves can answer these questions in a few minutes, without preparation. They may look at
their log, which contains every number that the questions ask for.
"""

import hashlib
from collections.abc import Iterator, Sequence

from grader.score.attachments import Question
from grader.score.evidence import Evidence
from grader.score.explanation import functions_edited, places_of_causes
from harness.checks.core.outcomes import trips_of
from harness.errors import UserError
from harness.recipes.recipe import Recipe
from harness.run.metrics_log import Record, batch_records
from harness.run.signals import number_text
from harness.student.prediction import QUESTIONS, answers_of, course_of

_SHOWN_PLACES = 4


def oral_card(evidence: Evidence) -> tuple[Question, ...]:
    """Return the questions about a submission; () if a run did not finish. Equal submissions get equal questions."""
    if evidence.broken.status != "OK" or evidence.fixed.status != "OK":
        return ()
    return tuple(_questions(evidence))


def _questions(evidence: Evidence) -> Iterator[Question]:
    recipe = evidence.recipe
    yield from _about_prediction(evidence)
    broken, fixed = evidence.broken.records(), evidence.fixed.records()
    chosen = int.from_bytes(hashlib.sha256(evidence.source.encode()).digest()[:4], "big")
    batches = [(one, two) for one, two in zip(broken, fixed, strict=False) if "loss" in one and "loss" in two]
    later = batches[len(batches) // 2 :]
    if later:
        one, two = later[chosen % len(later)]
        yield Question(
            asks=f"At step {one['step']} the loss of your broken run is {_shorten(one['loss'])}. About how large is the"
            " loss of your fixed run at this step, and why?",
            answer=f"{_shorten(two['loss'])}. {_cause(evidence)}",
        )
    if edited := functions_edited(evidence):
        yield Question(
            asks=f"You changed {', '.join(sorted(edited)[:_SHOWN_PLACES])}. Which line was wrong, and what did it do?",
            answer=_cause(evidence),
        )
        if edited & _holds(recipe):
            yield Question(
                asks="If you put the wrong line back, which signal in the log would show the fault first?",
                answer="; ".join(symptom.says for symptom in recipe.symptoms) or "None: only a check shows this fault.",
            )
    else:
        yield Question(
            asks="You changed nothing. Which value of your log would be different if something were broken?",
            answer="Any value that rules out a cause is a good answer. The report must rule out four causes.",
        )
    if trips := _trips(evidence):
        listed = ", ".join(f"{name.replace('_', '-')} ({outcome})" for name, outcome in trips.items())
        yield Question(asks="Name a check that finds the fault. What does it measure?", answer=f"One of: {listed}.")
    yield from _about_gradients(fixed)


def _cause(evidence: Evidence) -> str:
    cause = evidence.recipe.cause.rstrip(".")
    places = _holds(evidence.recipe)
    return f"{cause[:1].upper()}{cause[1:]}." + (f" The cause is in {' and '.join(sorted(places))}." if places else "")


def _holds(recipe: Recipe) -> frozenset[str]:
    """Return the functions that contain the causes; an empty set if nothing is broken."""
    return frozenset() if recipe.is_healthy else frozenset().union(*places_of_causes(recipe).values())


def _trips(evidence: Evidence) -> dict[str, str]:
    try:
        found = [trips_of(cause) for cause in evidence.recipe.causes] if not evidence.recipe.is_healthy else []
    except UserError:  # the recipe was never measured
        return {}
    return {name: outcome for one in found for name, outcome in one.items()}


def _about_prediction(evidence: Evidence) -> Iterator[Question]:
    said = evidence.prediction
    if said is None or any(getattr(said, name) not in known for name, (_, known) in QUESTIONS.items()):
        return
    losses = [float(record["loss"]) for record in batch_records(evidence.broken.records())]
    happened = QUESTIONS["loss"][1][course_of(losses)]
    listed = ", ".join(f"{name.replace('_', '-')} ({outcome})" for name, outcome in _trips(evidence).items())
    words = "; ".join(f"{asks[:1].lower()}{asks[1:]} {answer}" for _, asks, answer in answers_of(said))
    yield Question(
        asks=f'Before the run you predicted: {words}. Your reason: "{said.why}". What was wrong in this prediction,'
        " and why?",
        answer=f"{QUESTIONS['loss'][0]} {happened}. Checks that find the fault: {listed or 'none'}.",
    )


def _about_gradients(records: Sequence[Record]) -> Iterator[Question]:
    norms = [record["grad_norm"] for record in records if isinstance(record.get("grad_norm"), float)]
    if len(norms) > 1:
        yield Question(
            asks="In your fixed run, is the gradient norm larger at the first or at the last step?"
            " How large is the norm at the last step, within a factor of ten?",
            answer=f"{_shorten(norms[0])} at the first step, {_shorten(norms[-1])} at the last step.",
        )


def _shorten(value: object) -> str:
    return number_text(value) if isinstance(value, float | int) else str(value)
