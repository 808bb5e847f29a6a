"""The checks of vectorization: operations of Python are counted, and may not grow with samples or entries."""

from grader.derivation.cases import LARGE, ORDINARY, TITLES, WIDE
from grader.derivation.seen import Seen
from grader.exhibits import Finding
from grader.score import Check, full, lost, open_check

_ARRAYS = "Write it with operations on whole arrays: matrix products, sums along an axis, broadcasting."


def judge_vectorization(seen: Seen) -> tuple[Check, ...]:
    """Return the two checks; a gradient that is not right earns nothing by being made without a loop."""
    return (
        _judge(seen, "samples", "No loop over the samples", LARGE, "more samples"),
        _judge(seen, "entries", "No loop over the entries of a gradient", WIDE, "more entries"),
    )


def _judge(seen: Seen, id: str, title: str, case: str, what: str) -> Check:
    share = len(seen.derived) / len(seen.judged.problem.gradients)
    if share == 0:
        return lost(id, title, 1, "It counts for right gradients, and there is none.", _ARRAYS)
    called = seen.called(case)
    if called.problems:
        words = next(iter(called.problems.values()))
        return lost(id, title, 1, f"With {TITLES[case]}, {words}.", _ARRAYS)
    for stage in seen.judged.problem.stages:
        if grown := seen.growth(case, stage):
            before = seen.least_steps(stage)
            counts = f"{before} instructions of Python with a small batch, and {before + grown}"
            return lost(id, title, 1, f"{stage} takes {counts} with {TITLES[case]}: it loops.", _ARRAYS)
    if seen.suspicions:
        reason = (
            f"No loop was counted, but the count is not believed of this file: {seen.suspicions[0].message}."
            " The instructor decides."
        )
        return open_check(id, title, 1, reason)
    if share < 1:
        reason = f"No loop, but only {len(seen.derived)} of {len(seen.judged.problem.gradients)} gradients are right."
        return lost(id, title, 1, reason, "Mend the gradients that are wrong.", points=share)
    return full(id, title, 1, f"As many instructions of Python with {what} as with few.")


def counted(seen: Seen) -> Finding:
    """Return the table of counts."""
    cases = (ORDINARY, LARGE, WIDE)
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
