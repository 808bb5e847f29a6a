"""What was seen of one answer: its run, what is right, and which outputs are, by what factor, and by what means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from grader.syntax.plain_code import Suspicion
from grader.written.derivation.cases import ORDINARY, PLAIN, WIDER, Cases
from grader.written.derivation.compare import EXACT, POWERS, By, Factor, factor_of, worst_error
from grader.written.derivation.problems import Judged
from grader.written.derivation.recognise import Recogniser
from grader.written.derivation.run import AnswerRun, Called
from harness.written.derivation.finite_differences import central_differences
from harness.written.derivation.problem import Array


@dataclass(frozen=True)
class Seen:
    """One answer that was called, with everything that its checks rest on."""

    judged: Judged
    run: AnswerRun
    cases: Cases
    expected: Mapping[str, Mapping[str, Array]]
    suspicions: tuple[Suspicion, ...]

    def found(self, output: str) -> By:
        """Return an output of the answer, by case, where it is there."""
        return {
            case: called.arrays[output] for case, called in self.run.cases.items() if output in called.arrays
        }

    def right(self, output: str) -> By:
        """Return what an output must be, by case."""
        return {case: outputs[output] for case, outputs in self.expected.items()}

    def called(self, case: str) -> Called:
        """Return what came of one case."""
        return self.run.cases.get(case, Called())

    @cached_property
    def factors(self) -> Mapping[str, Factor | None]:
        """By what factor each output is right in all plain cases; None where it is wrong."""
        over_batch = self.judged.over_batch
        batch = {case: len(inputs["x"]) if over_batch else 1 for case, inputs in self.cases.inputs.items()}
        return {
            output: factor_of(self.found(output), self.right(output), batch, PLAIN)
            for output in self.judged.problem.outputs
        }

    def scale(self, output: str, case: str) -> float:
        """Return by what an output is too large in a case, where it is right but for the batch size."""
        power = POWERS[self.factors[output] or "mean"]
        return float(len(self.cases.inputs[case]["x"]) ** power)

    def error(self, output: str) -> float:
        """Return the largest relative error of an output over the plain cases, but for the batch size."""
        right = {case: array * self.scale(output, case) for case, array in self.right(output).items()}
        return worst_error(self.found(output), right, PLAIN)

    @cached_property
    def differences(self) -> Mapping[str, Array]:
        """The gradients of the small batch by central differences of our own forward pass."""
        problem, formula, inputs = self.judged.problem, self.judged.formula, self.cases.inputs[ORDINARY]

        def objective(given: Mapping[str, Array]) -> float:
            return problem.objective(formula(given, frozenset()), given)

        return {
            output: central_differences(objective, inputs, name) for output, name in problem.gradients.items()
        }

    @cached_property
    def measured(self) -> frozenset[str]:
        """The gradients that are right, and were measured by differences instead of derived.

        Who measures calls forward or loss for every entry; or has gradients that are less exact than the forward pass,
        which a formula in the same precision never is.
        """
        right = {output for output in self.judged.problem.gradients if self.factors[output] is not None}
        inexact = {output for output in right if self.error(output) > EXACT}
        if self.called(WIDER).evaluations > self.called(ORDINARY).evaluations:
            return frozenset(inexact or right)
        exact_before = all(self.error(output) < EXACT for output in self.judged.forward)
        return frozenset(inexact) if exact_before else frozenset()

    @property
    def derived(self) -> frozenset[str]:
        """The gradients that are right, but perhaps for the batch size, and derived."""
        right = {output for output in self.judged.problem.gradients if self.factors[output] is not None}
        return frozenset(right - self.measured)

    def growth(self, case: str, larger: str, stage: str) -> int:
        """Return how many more instructions a stage takes in the larger case of two.

        0 where they are fewer than the samples, or than the entries of the smallest gradient, by which that case is
        larger: what loops over them takes at least one instruction for each.
        """
        more = self.called(larger).steps.get(stage, 0) - self.called(case).steps.get(stage, 0)
        return more if more >= self._excess(case, larger) else 0

    def _excess(self, case: str, larger: str) -> int:
        small, large = self.cases.inputs[case], self.cases.inputs[larger]
        if len(small["x"]) != len(large["x"]):
            return len(large["x"]) - len(small["x"])
        return min(large[name].size - small[name].size for name in self.judged.problem.gradients.values())

    @cached_property
    def recogniser(self) -> Recogniser:
        """Tries the usual mistakes on these cases."""
        return Recogniser(self.judged.formula, self.judged.mistakes, self.cases)

    def looks_like(self, output: str, cases: Sequence[str] = PLAIN) -> str:
        """Return which of the usual mistakes an output looks like, as a sentence, or ""."""
        outputs = {name: self.found(name) for name in self.judged.problem.outputs}
        return self.recogniser.told(self.recogniser.mistakes_in(output, outputs, cases))
