"""Which of the usual mistakes an output looks like: each is made on purpose, and so are two at a time."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

from grader.written.derivation.cases import Cases
from grader.written.derivation.compare import By, same_values
from harness.written.derivation.problem import Array

Formula = Callable[[Mapping[str, Array], frozenset[str]], Mapping[str, Array]]
Mistakes = frozenset[str]


class Recogniser:
    """Tries the mistakes of one problem on the cases of one answer; what each gives is made once."""

    def __init__(self, formula: Formula, mistakes: Mapping[str, str], cases: Cases) -> None:
        self._formula = formula
        self._mistakes = mistakes
        self._cases = cases
        self._made: dict[tuple[str, Mistakes], Mapping[str, Array] | None] = {}

    def mistakes_in(self, name: str, outputs: Mapping[str, By], cases: Sequence[str]) -> Mistakes:
        """Return the mistakes with which an output is as it is in all these cases where it is there; none if unknown.

        One mistake is tried before two, in the order in which they are listed; and of those that explain this output,
        one that gives all the others as they are as well comes first.
        """
        there = [case for case in cases if case in outputs[name]]
        for count in (1, 2):
            explaining = [
                chosen
                for chosen in map(frozenset, combinations(self._mistakes, count))
                if self._explains(chosen, name, outputs[name], there)
            ]
            for chosen in explaining:
                if all(self._agrees(chosen, other, outputs[other], there) for other in outputs):
                    return chosen
            if explaining:
                return explaining[0]
        return frozenset()

    def told(self, mistakes: Mistakes) -> str:
        """Return what it looks as if, a whole sentence, or "" for none."""
        words = [self._mistakes[name] for name in self._mistakes if name in mistakes]
        return f"It looks as if {', and '.join(words)}." if words else ""

    def _explains(self, chosen: Mistakes, name: str, found: By, cases: Sequence[str]) -> bool:
        if not self._agrees(chosen, name, found, cases):
            return False
        pairs = [(self._outputs(case, chosen), self._outputs(case, frozenset())) for case in cases]
        return any(made and right and not same_values(made[name], right[name]) for made, right in pairs)

    def _agrees(self, chosen: Mistakes, name: str, found: By, cases: Sequence[str]) -> bool:
        """Say whether an output is, wherever it is there, as these mistakes make it."""
        for case in cases:
            made = self._outputs(case, chosen)
            if case in found and (made is None or not same_values(found[case], made[name])):
                return False
        return True

    def _outputs(self, case: str, chosen: Mistakes) -> Mapping[str, Array] | None:
        """Return what these mistakes give; None where the shapes do not allow them."""
        key = case, chosen
        if key not in self._made:
            try:
                with np.errstate(all="ignore"):
                    self._made[key] = self._formula(self._cases.inputs[case], chosen)
            except ValueError:
                self._made[key] = None
        return self._made[key]
