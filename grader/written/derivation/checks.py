"""The checks of form, of the forward pass and of the gradients, each worth 1."""

from collections.abc import Iterator

import numpy as np

from grader.score.verdict import Check, full, lost, open_check
from grader.written.derivation.cases import AGAIN, ORDINARY, PLAIN
from grader.written.derivation.compare import EXACT, TOLERANCE
from grader.written.derivation.plain_numpy import imported_others
from grader.written.derivation.problems import Special
from grader.written.derivation.seen import Seen
from grader.written.derivation.told import shown, wrong_output
from harness.written.derivation.finite_differences import relative_error

_NOTHING = "Nothing that it returns is right yet, so this does not count."
_BY_HAND = "Write down the shapes of all factors, then compare with finite differences: make check does."
_PLAIN_FIRST = "Mend what is wrong in the plain cases first."


def judge_form(seen: Seen, source: str) -> tuple[Check, ...]:
    """Return the checks of what is imported, of shapes, and of a second call; they count where something is right."""
    checks = (_numpy(seen, source), _shapes(seen), _repeats(seen))
    if any(factor is not None for factor in seen.factors.values()):
        return checks
    return tuple(
        lost(check.id, check.title, 1, _NOTHING, "Write the forward pass first.") for check in checks
    )


def _numpy(seen: Seen, source: str) -> Check:
    id, title = "numpy", "NumPy alone is used"
    if others := imported_others(source):
        return lost(id, title, 1, f"{others.capitalize()}.", "Import numpy, and math if need be.")
    if seen.suspicions:
        return open_check(id, title, 1, f"{_doubt(seen)} The instructor decides.")
    return full(id, title, 1, "It imports nothing else.")


def _doubt(seen: Seen) -> str:
    return f"The file does what a derivation has no need of: {seen.suspicions[0].message}."


def _shapes(seen: Seen) -> Check:
    id, title = "shapes", "Every output has its shape"
    wrong = [
        output
        for output in seen.judged.problem.outputs
        if any(
            case not in seen.found(output) or seen.found(output)[case].shape != seen.right(output)[case].shape
            for case in PLAIN
        )
    ]
    if not wrong:
        return full(id, title, 1, "As the docstrings say, in every case.")
    share = 1 - len(wrong) / len(seen.judged.problem.outputs)
    names = ", ".join(shown(seen, output) for output in wrong)
    return lost(id, title, 1, f"Not there, or of another shape: {names}.", _BY_HAND, points=share)


def _repeats(seen: Seen) -> Check:
    id, title = "repeats", "A second call gives the same, and inputs stay as they are"
    first, second = seen.called(ORDINARY), seen.called(AGAIN)
    changed = sorted({name for called in seen.run.cases.values() for name in called.changed})
    if changed:
        return lost(
            id, title, 1, f"It writes into {changed[0]}.", "Work on a copy: z = x.copy(), or z = x + 0."
        )
    for output, array in first.arrays.items():
        if output not in second.arrays or not np.array_equal(array, second.arrays[output], equal_nan=True):
            reason = f"Called with the same inputs again, {shown(seen, output)} is another."
            return lost(id, title, 1, reason, "Keep nothing from one call to the next but in the cache.")
    return full(id, title, 1, "Called with the same inputs again, it gives the same bytes.")


def judge_forward(seen: Seen) -> tuple[Check, ...]:
    """Return the checks of the forward pass."""
    id, title = "values", "The forward pass gives what it should"
    outputs = seen.judged.forward
    wrong = [output for output in outputs if seen.factors[output] is None]
    if wrong:
        reason = " ".join(f"{output}: {wrong_output(seen, output)}" for output in wrong)
        share = 1 - len(wrong) / len(outputs)
        values = lost(
            id, title, 1, reason, "Write each line of the docstring's formulas as one line.", points=share
        )
    else:
        verb = "agree" if len(outputs) > 1 else "agrees"
        summed = [output for output in outputs if seen.factors[output] != "mean"]
        but = f", but for the division by the batch size in {summed[0]}" if summed else ""
        error = max(map(seen.error, outputs))
        values = full(id, title, 1, f"{' and '.join(outputs)} {verb} with torch to {error:.1e}{but}.")
    return (values, *_specials(seen, "forward"))


def judge_gradients(seen: Seen) -> tuple[Check, ...]:
    """Return a check for each gradient, that of the mean over the batch where there is one, those of single cases."""
    checks = [_gradient(seen, output, name) for output, name in seen.judged.problem.gradients.items()]
    if seen.judged.over_batch:
        checks.append(_mean(seen))
    return (*checks, *_specials(seen, "gradients"))


def _gradient(seen: Seen, output: str, name: str) -> Check:
    title = f"The gradient of {name}"
    if output in seen.measured:
        how = (
            "as differences do, and a formula in float64 does to 1e-15"
            if seen.error(output) > EXACT
            else "but backward calls forward or loss for each entry of something"
        )
        reason = f"It was measured by differences and not derived: it agrees with autograd to {seen.error(output):.1e}"
        return lost(name, title, 1, f"{reason}, {how}.", "Derive it with the chain rule, from the loss back.")
    if seen.factors[output] is not None:
        differences = seen.differences[output] * seen.scale(output, ORDINARY)
        off = relative_error(seen.found(output)[ORDINARY], differences)
        if off < TOLERANCE:
            but = "" if seen.factors[output] == "mean" else ", but for the division by the batch size"
            reason = f"It agrees with autograd to {seen.error(output):.1e}, with finite differences to {off:.1e}{but}."
            return full(name, title, 1, reason)
    reason = wrong_output(seen, output)
    if seen.called(ORDINARY).evaluations >= seen.cases.inputs[ORDINARY][name].size:
        reason += " It calls forward or loss for each entry: a gradient is to be derived, and not measured."
    if any(seen.factors[forward] is None for forward in seen.judged.forward):
        reason += " The forward pass is not right either: mend that first."
    return lost(name, title, 1, reason, _BY_HAND)


def _mean(seen: Seen) -> Check:
    id, title = "mean", "Loss and gradients are means over the batch"
    factors = {output: factor for output, factor in seen.factors.items() if output not in ("logits",)}
    if not any(factors[output] for output in seen.derived):
        return lost(id, title, 1, "No gradient is right, whatever it is divided by.", _BY_HAND)
    wrong = [output for output, factor in factors.items() if factor in ("sum", "twice")]
    if wrong:
        names = ", ".join(shown(seen, output) for output in wrong)
        what = (
            "is not divided by the batch size"
            if factors[wrong[0]] == "sum"
            else "is divided by the batch size twice"
        )
        reason = f"What {what}: {names}. With one sample it is right, with more it is not."
        return lost(id, title, 1, reason, "Divide once, where the gradient begins: at the logits.")
    return full(id, title, 1, "With one sample, a few and many.")


def _specials(seen: Seen, criterion: str) -> Iterator[Check]:
    for special in seen.judged.specials:
        if special.criterion == criterion:
            yield _special(seen, special)


def _special(seen: Seen, special: Special) -> Check:
    id, title = special.id, special.title
    looked_at = [
        output
        for output in special.outputs
        if seen.factors[output] is not None and output not in seen.measured
    ]
    if not looked_at:
        reason = "It is looked at where the plain cases are right, and here none is."
        return lost(id, title, 1, reason, _PLAIN_FIRST)
    for output in looked_at:
        found, right = seen.found(output), seen.right(output)
        scaled = {special.case: right[special.case] * seen.scale(output, special.case)}
        if (
            special.case not in found
            or relative_error(found[special.case], scaled[special.case]) >= TOLERANCE
        ):
            return lost(id, title, 1, wrong_output(seen, output, (special.case,)), special.remedy)
    if len(looked_at) < len(special.outputs):
        names = ", ".join(shown(seen, output) for output in looked_at)
        share = len(looked_at) / len(special.outputs)
        return lost(
            id,
            title,
            1,
            f"Looked at and right: {names}; the others are wrong in plain cases.",
            _PLAIN_FIRST,
            points=share,
        )
    return full(id, title, 1, "All that it concerns is right there as well.")
