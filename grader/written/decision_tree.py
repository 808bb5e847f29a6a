"""Judge a decision tree: follow the tree for every broken recipe and for a healthy experiment.

Each experiment gives the outcomes that were measured on it (`solutions/<id>/measured.toml`, `solutions/sound.toml`). If
the outcome of a check depends on the seed, the tree must handle all sound outcomes of this check. The outcomes come
from these files, so no check runs, and a new recipe needs no change here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from grader.score.attachments import AnswerTable
from grader.written.judgement import Judgement, checks_of
from grader.written.known_answers import solution_of
from harness.checks import load_check
from harness.checks.core.outcomes import outcomes_of, outcomes_of_healthy, trips_of
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.written.comparison import AnswerCheck
from harness.written.decision_tree import HEALTHY, UNKNOWN, Tree, Walk, parse_tree, walk
from harness.written.exercise import DecisionTree

TripsOfOne = Mapping[str, str]
# For an experiment, the outcomes of its checks that do not find its break. The healthy experiments are several.
Measured = Mapping[str, Sequence[Mapping[str, str]]]
TreeVerdict = Literal["right", "wrong", "a guess", "not concluded"]


@dataclass(frozen=True)
class TreeEnd:
    """The walks through the tree with the outcomes of one experiment, and the verdict on their conclusions.

    truth: the id of the experiment. others: other experiments that have a walk with the same outcomes.
    """

    truth: str
    walks: tuple[Walk, ...]
    verdict: TreeVerdict
    others: tuple[str, ...]

    @property
    def minutes(self) -> float:
        """The minutes of the longest walk."""
        return max(walked.minutes for walked in self.walks)


def experiments(exercise: DecisionTree) -> dict[str, TripsOfOne]:
    """Return, for each measured recipe, the checks that find its break, and their outcomes; {} for `healthy`.

    Raises `UserError` if no recipe was measured.
    """
    found: dict[str, TripsOfOne] = {}
    for recipe in exercise.experiments:
        try:
            found[recipe] = trips_of(recipe)
        except UserError:
            continue
    if not found:
        raise UserError("No recipe has a measured.toml: run grader selfcheck --write, which writes these files.")
    return {**found, HEALTHY: {}}


def measured_outcomes(known: Iterable[str]) -> Measured:
    """Return the measured outcomes of each experiment. `healthy` has the outcomes of all healthy ones."""
    sound = dict.fromkeys(load_recipe(recipe).experiment for recipe in known if recipe != HEALTHY)
    return {truth: [*map(outcomes_of_healthy, sound)] if truth == HEALTHY else [outcomes_of(truth)] for truth in known}


def judge_tree(exercise: DecisionTree, text: str) -> Judgement:
    """Judge the text of a tree by the measured outcomes, and by the minutes of the reference tree."""
    known = experiments(exercise)
    reference = parse_tree(solution_of(exercise), exercise.experiments, exercise.file)
    return judge_walks(exercise, text, known, measured_outcomes(known), reference)


def judge_walks(
    exercise: DecisionTree, text: str, known: Mapping[str, TripsOfOne], measured: Measured, reference: Tree
) -> Judgement:
    """Judge the text of a tree by its walks for the experiments in `known`."""
    found, its_ends = list[TreeEnd](), arrivals(reference, known, measured)
    try:
        tree = parse_tree(text, exercise.experiments, exercise.file)
        nothing, remedy = tree.flaw(), "Let the conclusion depend on the outcome of a check."
        found = [] if nothing else arrivals(tree, known, measured)
    except UserError as error:
        nothing, remedy = str(error), "Run make check, which reads the tree like the grader, and names the wrong line."
    breaks = [one for one in found if one.truth != HEALTHY]
    if not nothing and not any(one.verdict == "right" for one in breaks):
        nothing = "The tree never uses an outcome to find the cause of a broken experiment."
        remedy = "Use checks whose outcomes differ between the experiments. The table below shows the walks."
    judged: dict[str, tuple[float, str]] = {}
    if not nothing:
        judged = {
            "form.tree": (1.0, "The tree has no loop, and its conclusions depend on outcomes."),
            "conclusions.breaks": _share(breaks),
            "conclusions.healthy": _share([one for one in found if one.truth == HEALTHY]),
            "cost.minutes": _cost(found, its_ends, exercise.slowest),
        }
    findings = []
    for item in exercise.item:
        points, reason = judged.get(item.id, (0.0, nothing))
        findings.append(
            AnswerCheck(item.criterion, item.name, item.title, reason, remedy if nothing else item.remedy, points)
        )
    table = (_table(found, its_ends),) if found else ()
    return Judgement(checks=checks_of(findings), findings=table)


def arrivals(tree: Tree, known: Mapping[str, TripsOfOne], measured: Measured | None = None) -> list[TreeEnd]:
    """Follow a tree without loops for every experiment. Return the walks and the verdict for each experiment.

    `measured` has the outcomes of the checks that do not find the break. Without it, they are any sound outcomes.

    A conclusion is right if it names the experiment, or another experiment with the same outcomes of all checks. But if
    a different experiment takes the same walk, the conclusion is a guess, because the checks on this walk do not
    separate the two experiments.
    """
    walks = {truth: _walks(tree, trips, (measured or {}).get(truth, ({},))) for truth, trips in known.items()}
    found = []
    for truth, trips in known.items():
        alike = {other for other, its in known.items() if its == trips}
        mine = {walked.steps for walked in walks[truth]}
        others = [other for other in known if other not in alike and mine & {walked.steps for walked in walks[other]}]
        concluded = {walked.conclusion for walked in walks[truth]}
        verdict: TreeVerdict = "wrong"
        if UNKNOWN in concluded:
            verdict = "not concluded"
        elif concluded <= alike:
            verdict = "a guess" if others else "right"
        found.append(TreeEnd(truth, walks[truth], verdict, tuple(others)))
    return found


def _walks(tree: Tree, trips: TripsOfOne, measured: Sequence[Mapping[str, str]]) -> tuple[Walk, ...]:
    """Return the different walks of one experiment.

    `trips` has the outcomes of the checks that find the break, and `measured` other outcomes. For the checks in
    neither, try every combination of sound outcomes.
    """
    walks: dict[tuple[tuple[str, str, str], ...], Walk] = {}
    for outcomes in measured:
        names = sorted({node.check for node in tree.nodes.values()} - trips.keys() - outcomes.keys())
        for choice in product(*map(sound_outcomes, names)):
            walked = walk(tree, {**dict(zip(names, choice, strict=True)), **outcomes, **trips}.__getitem__)
            walks[walked.steps] = walked
    return tuple(walks.values())


def sound_outcomes(check: str) -> tuple[str, ...]:
    """Return the sound outcomes of a check."""
    return tuple(outcome.id for outcome in load_check(check).outcomes if outcome.sound)


def _share(found: Sequence[TreeEnd]) -> tuple[float, str]:
    """Return the fraction of right conclusions, and a reason that lists the experiments with other conclusions."""
    right = sum(one.verdict == "right" for one in found)
    reason = f"Right conclusions: {right} of {len(found)}."
    for verdict, words in (("wrong", "Wrong"), ("a guess", "Guessed"), ("not concluded", "No conclusion")):
        if missed := ", ".join(one.truth for one in found if one.verdict == verdict):
            reason += f" {words}: {missed}."
    return right / len(found), reason


def _cost(found: Sequence[TreeEnd], reference: Sequence[TreeEnd], slowest: float) -> tuple[float, str]:
    """Return the fraction of the points for the cost, and a reason with the minutes to right conclusions.

    A tree that takes `slowest` times the minutes of the reference tree runs nearly every check for every experiment.
    """
    pairs = [(mine, its) for mine, its in zip(found, reference, strict=True) if mine.verdict == "right"]
    minutes = sum(mine.minutes for mine, _ in pairs) / len(pairs)
    its_minutes = sum(its.minutes for _, its in pairs) / len(pairs)
    pace = min(1.0, max(0.0, (slowest - minutes / its_minutes) / (slowest - 1)))
    reason = (
        f"The checks before a right conclusion take {minutes:.3g} minutes on average. The reference tree takes"
        f" {its_minutes:.3g} minutes for the same experiments."
    )
    return pace * len(pairs) / len(found), reason


def _table(found: Sequence[TreeEnd], reference: Sequence[TreeEnd]) -> AnswerTable:
    rows = []
    for mine, its in zip(found, reference, strict=True):
        for walked in mine.walks:
            verdict: str = mine.verdict
            if verdict == "a guess":
                verdict = f"a guess: the same walk as {', '.join(mine.others)}"
            minutes = f"{walked.minutes:g}", f"{its.minutes:g}"
            rows.append((mine.truth, walked.path, *minutes, walked.conclusion, verdict))
    columns = ("Experiment", "Walk", "Minutes", "Reference", "Concludes", "Verdict")
    return AnswerTable(
        caption="The walk of each experiment, with the minutes of its checks", columns=columns, rows=tuple(rows)
    )
