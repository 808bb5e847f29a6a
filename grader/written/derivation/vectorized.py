"""The checks of vectorization: operations of Python are counted, and may not grow with samples or entries."""

from grader.score.exhibits import Finding
from grader.score.verdict import Check, full, lost, open_check
from grader.written.derivation.cases import LARGE, LARGER, ORDINARY, TITLES, WIDE, WIDER
from grader.written.derivation.compare import TOLERANCE
from grader.written.derivation.seen import Seen
from grader.written.derivation.told import shown
from harness.written.derivation.finite_differences import relative_error

_ARRAYS = "Write it with operations on whole arrays: matrix products, sums along an axis, broadcasting."


def judge_vectorization(seen: Seen) -> tuple[Check, ...]:
    """Return the two checks; a gradient that is not right earns nothing by being made without a loop."""
    return (
        _judge(seen, "samples", "No loop over the samples", (LARGE, LARGER)),
        _judge(seen, "entries", "No loop over the entries of a gradient", (WIDE, WIDER)),
    )


def _judge(seen: Seen, id: str, title: str, cases: tuple[str, str]) -> Check:
    share = len(seen.derived) / len(seen.judged.problem.gradients)
    if share == 0:
        return lost(id, title, 1, "It counts for right gradients, and there is none.", _ARRAYS)
    if wrong := _wrong_there(seen, cases):
        return lost(id, title, 1, wrong, _ARRAYS)
    for stage in seen.judged.problem.stages:
        if seen.growth(*cases, stage):
            few, many = (seen.called(case).steps[stage] for case in cases)
            counts = (
                f"{few} instructions of Python with {TITLES[cases[0]]}, and {many} with {TITLES[cases[1]]}"
            )
            return lost(id, title, 1, f"{stage} takes {counts}: it loops.", _ARRAYS)
    if seen.suspicions:
        reason = (
            f"No loop was counted, but the count is not believed of this file: {seen.suspicions[0].message}."
            " The instructor decides."
        )
        return open_check(id, title, 1, reason)
    if share < 1:
        reason = f"No loop, but only {len(seen.derived)} of {len(seen.judged.problem.gradients)} gradients are right."
        return lost(id, title, 1, reason, "Mend the gradients that are wrong.", points=share)
    return full(
        id, title, 1, f"As many instructions of Python with {TITLES[cases[0]]} as with {TITLES[cases[1]]}."
    )


def _wrong_there(seen: Seen, cases: tuple[str, str]) -> str:
    """Return why a count cannot be taken for that of right gradients, or "": what is counted must be right as well."""
    for case in cases:
        if problems := seen.called(case).problems:
            return f"With {TITLES[case]}, {next(iter(problems.values()))}."
        for output in sorted(seen.derived):
            right = seen.right(output)[case] * seen.scale(output, case)
            if relative_error(seen.found(output)[case], right) >= TOLERANCE:
                return f"With {TITLES[case]}, {shown(seen, output)} is not right."
    return ""


def counted(seen: Seen) -> Finding:
    """Return the table of counts."""
    cases = (ORDINARY, LARGE, LARGER, WIDE, WIDER)
    rows = tuple(
        (stage, *(str(seen.called(case).steps.get(stage, "")) for case in cases))
        for stage in seen.judged.problem.stages
    )
    columns = ("Function", *(TITLES[case].capitalize() for case in cases))
    return Finding(
        caption="Instructions of Python, as the process of the answer counted them",
        columns=columns,
        rows=rows,
    )
