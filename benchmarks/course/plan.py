"""The plan of a course: who hands in which fix, who claims what is untrue, and who attacks."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from random import Random

from grader.score.solutions import Variant, load_variants
from harness.recipe import recipe_ids

SEED = 1
STUDENTS = 300
# Of each recipe so many fixes are handed in: with seven recipes some 60 distinct ones.
FIXES = 9
# The fix of rank r comes 1 / r**TAIL times as often as the first (Zipf). At 2, with 300 students, six in ten hand in
# the reference, and the last rank is that of two or three of them: a few fixes are seen once.
TAIL = 2.0
# One submission in ten claims what is not true, and one in fifty is hostile.
CLAIM_EVERY, CLAIM_AT = 10, 3
ATTACK_EVERY, ATTACK_AT = 50, 17

CLAIMS = ("better log", "other checkpoint", "other run", "wrong hash")
# Those that the intake refuses take turns with those that run. None takes all the memory that a run may have: the row
# of the worker's memory would then show that limit, and not what a worker needs.
ATTACKS = (
    "early exit", "traversal", "tampering", "truncated", "crash", "bomb", "forks", "huge log", "prints", "link", "zip",
)  # fmt: skip
# An endless loop costs the whole limit of processor time, 120 s: a course has one, and not before this attack.
LOOP, LOOP_AT = "loop", 24

_NAMES = (
    "ada", "alan", "barbara", "claude", "donald", "edsger", "emmy", "frances", "grace", "hedy", "ida", "john",
    "karen", "katherine", "kurt", "leslie", "lynn", "margaret", "mary", "niklaus", "radia", "richard", "robin",
    "shafi", "sophie", "stephen", "tim", "tony", "vint", "yann",
)  # fmt: skip
_ROUND = ("full", "masking", "wrong", "alternative", "overreach")


@dataclass(frozen=True)
class Entry:
    """One submission of the course.

    fix: id in `variants.toml` of the recipe. other_fix: whose run an untrue claim borrows.
    claim: one of `CLAIMS`, attack: one of `ATTACKS` or `LOOP`; "" for none, and never both.
    """

    index: int
    student: str
    recipe: str
    fix: str
    other_fix: str
    claim: str = ""
    attack: str = ""

    @property
    def name(self) -> str:
        """What its tarball is called, without the ending."""
        return f"{self.student}_{self.recipe}"

    def random(self, seed: int, what: str) -> Random:
        """Return the dice of this submission for one purpose: the same whoever else is in the course."""
        return Random(f"{seed} {self.name} {what}")


def planned(students: int = STUDENTS, seed: int = SEED) -> list[Entry]:
    """Return the submissions in the order in which they are handed in.

    The first submissions of a course are those of a smaller one with the same seed.
    """
    pairs = ((number, recipe) for number in range(students) for recipe in recipe_ids())
    return [_entry(index, number, recipe, seed) for index, (number, recipe) in enumerate(pairs)]


def _entry(index: int, number: int, recipe: str, seed: int) -> Entry:
    student = f"{_NAMES[number % len(_NAMES)]}{number:03d}"
    dice = Random(f"{seed} {student} {recipe}")
    fixes = fixes_of(recipe)
    (fix,) = dice.choices(fixes, [1 / rank**TAIL for rank in range(1, len(fixes) + 1)])
    # Repairs may end with equal weights; the second fix masks the symptom, and ends like none of them.
    other = fixes[0] if fix is fixes[1] else fixes[1]
    nth, claims = divmod(index, CLAIM_EVERY)
    claim = CLAIMS[nth % len(CLAIMS)] if claims == CLAIM_AT else ""
    nth, attacks = divmod(index, ATTACK_EVERY)
    attack = ""
    if attacks == ATTACK_AT:
        attack = LOOP if nth == LOOP_AT else ATTACKS[nth % len(ATTACKS)]
    return Entry(index, student, recipe, fix.id, other.id, claim, attack)


@cache
def fixes_of(recipe: str) -> tuple[Variant, ...]:
    """Return the fixes of a recipe that students hand in, by rank: the reference first, then verdicts in turn."""
    known = [variant for variant in load_variants(recipe) if not variant.held_back]
    piles = [[variant for variant in known if variant.verdict == verdict] for verdict in _ROUND]
    ranked = [pile.pop(0) for pile in _turns(piles)]
    return tuple(ranked[:FIXES])


def _turns(piles: list[list[Variant]]) -> Iterable[list[Variant]]:
    for pile in cycle(piles):
        if not any(piles):
            return
        if pile:
            yield pile
