"""A row of the class with what its page shows, and the rows of what could not be scored."""

from collections.abc import Sequence

from grader.score.evidence import Evidence
from grader.score.exhibits import Exhibits
from grader.score.scoring import exhibits_of, flags_of, score_evidence
from grader.score.verdict import Flag, Model, SubmissionScore, rescored
from grader.score.weights import Weights
from grader.taken import Taken
from harness.hints import LEVELS
from harness.written.exercise import exercise_ids

WITHOUT_SANDBOX = "Students' code ran WITHOUT a sandbox (--trust-submissions): nothing kept it from lying."


class Graded(Model):
    """One row of the class, and what its page shows."""

    row: SubmissionScore
    exhibits: Exhibits


def graded_row(item: Taken, evidence: Evidence, weights: Weights, *, sandboxed: bool) -> Graded:
    """Score one submission; where a check is open, so is the row."""
    criteria = score_evidence(evidence, weights)
    told = common_flags(item.name, item.student, item.recipe, item.ignored)
    flags = (*sandbox_flags(sandboxed=sandboxed), *flags_of(evidence), *told, *hint_flags(item.hints))
    row = SubmissionScore(
        submission=item.name,
        student=item.student,
        recipe=item.recipe,
        status="not judged",
        total=None,
        criteria={},
        flags=flags,
        provenance={
            **sandbox_warning(sandboxed=sandboxed),
            "tarball_sha256": item.sha256,
            "seed": item.settings.seed,
            "dataset": item.settings.dataset,
            "sandbox": sandboxed,
            "same_platform_class": evidence.same_class,
            **({"hints": item.hints} if item.hints else {}),
            "tree_sha256": item.tree,
        },
    )
    return Graded(row=rescored(row, criteria), exhibits=exhibits_of(item.name, evidence, item.ignored))


def common_flags(name: str, student: str, exercise: str, ignored: Sequence[str]) -> tuple[Flag, ...]:
    """Return what an instructor should look at in a tarball of this name, whatever is in it."""
    flags = []
    if ignored:
        message = f"{len(ignored)} files that no submission has were not looked at."
        flags.append(Flag(id="ignored files", message=message))
    # A learning platform may put words of its own around a file's name.
    if f"{student}_{exercise}" not in name:
        message = f"Its manifest says {student} and {exercise}, and the file's name does not."
        flags.append(Flag(id="other name", message=message))
    return tuple(flags)


def hint_flags(hints: int) -> tuple[Flag, ...]:
    """Return what tells how many hints were asked for: a note of the student's own, which costs nothing."""
    if not hints:
        return ()
    message = f"{hints} of {LEVELS} were asked for, as the workspace noted it."
    return (Flag(id="hints", message=message),)


def sandbox_flags(*, sandboxed: bool) -> tuple[Flag, ...]:
    """Return the flag of what ran without a sandbox."""
    return () if sandboxed else (Flag(id="no sandbox", message=WITHOUT_SANDBOX),)


def sandbox_warning(*, sandboxed: bool) -> dict[str, str]:
    """Return what a row's provenance says first of what ran without a sandbox."""
    return {} if sandboxed else {"warning": WITHOUT_SANDBOX}


def nothing_to_show(name: str) -> Exhibits:
    """Return the exhibits of a submission that was not replayed."""
    return Exhibits(submission=name, broken_source=None, fixed_source=None, report=None)


def row_without_checks(
    name: str, student: str | None, recipe: str | None, status: str, reason: str
) -> SubmissionScore:
    """Return the row of a submission that was rejected, or that the grader failed on."""
    known = next((known for known in exercise_ids() if name.endswith(f"_{known}")), "")
    guessed_student, guessed_recipe = (name.removesuffix(f"_{known}"), known) if known else (name, "")
    return SubmissionScore.model_validate(
        {
            "submission": name,
            "student": student or guessed_student,
            "recipe": recipe or guessed_recipe,
            "status": status,
            "reason": reason,
            "total": 0.0 if status == "rejected" else None,
            "criteria": {},
            "provenance": {},
        }
    )
