"""Examines a derivation: draws its inputs, calls it in the sandbox, asks autograd, and judges."""

from collections.abc import Mapping

from grader.replay.replayer import Replayer
from grader.score.exhibits import Finding, ReplayOutcome
from grader.score.verdict import Check, Criterion, Flag, lost
from grader.written.answers.examination import Examination
from grader.written.derivation.cases import ORDINARY, PLAIN, draw_cases
from grader.written.derivation.checks import judge_form, judge_forward, judge_gradients
from grader.written.derivation.compare import worst_error
from grader.written.derivation.plain_numpy import derivation_suspicions
from grader.written.derivation.problems import JUDGED
from grader.written.derivation.run import AnswerRun, AutogradFailed, expected_outputs, run_answer
from grader.written.derivation.seen import Seen
from grader.written.derivation.told import shown
from grader.written.derivation.vectorized import counted, judge_vectorization
from harness.written.derivation.finite_differences import relative_error
from harness.written.exercise import Derivation, FileExercise

_FAULT_OF_OURS = 3  # the exit status of `inside/derive.py`


def examine_derivation(exercise: FileExercise, text: str, replayer: Replayer) -> Examination:
    """Examine the text of a derivation (`grader.written.answers.examination.Kind`)."""
    assert isinstance(exercise, Derivation)
    judged, suspicions = JUDGED[exercise.problem], derivation_suspicions(text)
    cases = draw_cases(judged.problem, text)
    run = run_answer(judged.problem, exercise.file, text, cases, replayer)
    if fault := _fault(run, plain=not suspicions):
        return Examination(
            checks={}, fault=f"It could not be called, through no fault of its author's: {fault}"
        )
    try:
        expected = expected_outputs(judged.problem, cases, replayer)
    except AutogradFailed as error:
        return Examination(checks={}, fault=f"What is right could not be found out: {error}")
    return judge_derivation(Seen(judged, run, cases, expected, suspicions), text)


def judge_derivation(seen: Seen, text: str) -> Examination:
    """Judge what was seen of a text: a pure function."""
    run = seen.run
    checks: dict[Criterion, tuple[Check, ...]] = {
        "form": judge_form(seen, text),
        "forward": judge_forward(seen),
        "gradients": judge_gradients(seen),
        "vectorization": judge_vectorization(seen),
    }
    if not run.cases:
        checks = _all_lost(checks, _why_nothing(run))
    return Examination(
        checks=checks,
        flags=tuple(Flag(id="suspicious code", message=f"{item.message}.") for item in seen.suspicions[:10]),
        findings=(_outputs(seen), counted(seen)) if run.cases else (),
        outcomes=(ReplayOutcome(what="answer", status=run.status, message=run.message or run.problem),),
    )


def _fault(run: AnswerRun, *, plain: bool) -> str:
    """Return what of ours broke, or "": plain code raises no signals, and cannot say that we broke."""
    broke = run.status == "XX" or (plain and (run.status == "SG" or run.exit_code == _FAULT_OF_OURS))
    return f"{run.status}: {run.message}" if broke else ""


def _why_nothing(run: AnswerRun) -> str:
    if run.problem:
        return f"{run.problem}."
    return f"The process that called it did not come to its end ({run.status}): {run.message}."


def _all_lost(
    checks: Mapping[Criterion, tuple[Check, ...]], reason: str
) -> dict[Criterion, tuple[Check, ...]]:
    remedy = "Hand in a file that make check can call."
    return {
        name: tuple(lost(check.id, check.title, 1, reason, remedy) for check in of)
        for name, of in checks.items()
    }


def _outputs(seen: Seen) -> Finding:
    """Return the table of outputs: how far each is from autograd and differences, and which mistake it looks like."""
    rows = []
    for output in seen.judged.problem.outputs:
        found, right = seen.found(output), seen.right(output)
        error = worst_error(found, right, PLAIN)
        by_differences = ""
        if output in seen.differences and ORDINARY in found:
            by_differences = _told(relative_error(found[ORDINARY], seen.differences[output]))
        wrong = seen.factors[output] != "mean"
        rows.append(
            (shown(seen, output), _told(error), by_differences, seen.looks_like(output) if wrong else "")
        )
    columns = ("Output", "From autograd, at most", "From finite differences", "Looks like")
    caption = "Relative errors in float64, over a small batch, equal sizes, one sample and a large batch"
    return Finding(caption=caption, columns=columns, rows=tuple(rows))


def _told(error: float) -> str:
    """Return an error; one that is infinite is that of something missing, or of another shape."""
    return f"{error:.1e}" if error < float("inf") else "no number"
