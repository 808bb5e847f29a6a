"""What a student is told of an output that is not right: where, by how much, and which mistake it looks like."""

from collections.abc import Sequence

from grader.written.derivation.cases import PLAIN, TITLES
from grader.written.derivation.compare import Difference, first_difference
from grader.written.derivation.seen import Seen


def wrong_output(seen: Seen, output: str, cases: Sequence[str] = PLAIN) -> str:
    """Return the sentences on an output that is not right in all of these cases."""
    sentences = [problem_of(seen, output, cases)]
    difference = first_difference(output, seen.found(output), seen.right(output), cases)
    if difference is not None:
        sentences += [told_difference(seen, output, difference), seen.looks_like(output, cases)]
    return " ".join(filter(None, sentences))


def problem_of(seen: Seen, output: str, cases: Sequence[str]) -> str:
    """Return why an output is not there in the first of these cases that lacks it, as a sentence, or ""."""
    for case in cases:
        called = seen.called(case)
        if output not in called.arrays:
            words = next(reversed([*called.problems.values()]), "it was not returned")
            return f"With {TITLES[case]}, {words}."
    return ""


def told_difference(seen: Seen, output: str, difference: Difference) -> str:
    """Return where an output is wrong, and by how much."""
    with_case = f"With {TITLES[difference.case]}"
    if difference.place is None:
        shapes = [by[difference.case].shape for by in (seen.found(output), seen.right(output))]
        return f"{with_case}, its shape is {shapes[0]}, and {shapes[1]} is right."
    place = difference.place.replace(output, shown(seen, output), 1)
    error = f" (relative error {difference.error:.2g})" if difference.error < float("inf") else ""
    return f"{with_case}, {place} is {difference.found:.6g}, and {difference.right:.6g} is right{error}."


def shown(seen: Seen, output: str) -> str:
    """Return the name of an output as students read it: a gradient is named after what it is the gradient of."""
    name = seen.judged.problem.gradients.get(output)
    return output if name is None else f"the gradient of {name}"
