"""Judge a decision tree: follow the tree for every broken recipe and for a healthy experiment.

Each experiment gives the outcomes that were measured on it (`solutions/<id>/measured.toml`, `solutions/sound.toml`). If
the outcome of a check depends on the seed, the tree must handle all sound outcomes of this check. The outcomes come
from these files, so no check runs, and a new recipe needs no change here.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import yaml

from grader.score.attachments import AnswerTable
from grader.score.rubric import Criterion
from grader.written.judgement import Judgement, checks_of
from harness.checks import check_names, load_check
from harness.checks.core.outcomes import outcomes_of, outcomes_of_healthy, trips_of
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.written.decision_tree import CASES, HEALTHY, UNKNOWN, Tree, Walk, parse_tree, walk
from harness.written.derivation_judge import AnswerCheck

TripsOfOne = Mapping[str, str]
# For an experiment, the outcomes of its checks that do not find its break. The healthy experiments are several.
Measured = Mapping[str, Sequence[Mapping[str, str]]]
TreeVerdict = Literal["right", "wrong", "a guess", "not concluded"]

# If a tree takes four times as many minutes as the reference tree, it gets no points for its cost. Such a tree runs
# nearly every check for every experiment.
SLOWEST = 4.0


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


def experiments() -> dict[str, TripsOfOne]:
    """Return, for each measured recipe, the checks that find its break, and their outcomes; {} for `healthy`.

    Raises `UserError` if no recipe was measured.
    """
    found: dict[str, TripsOfOne] = {}
    for recipe in CASES:
        try:
            found[recipe] = trips_of(recipe)
        except UserError:
            continue
    if not found:
        raise UserError("No recipe has a measured.toml: run grader selfcheck --write, which writes these files.")
    return {**found, HEALTHY: {}}


def measured_outcomes(known: Iterable[str]) -> Measured:
    """Return the measured outcomes of each experiment. `healthy` has the outcomes of all healthy ones in `CASES`."""
    sound = dict.fromkeys(load_recipe(recipe).experiment for recipe in CASES)
    return {truth: [*map(outcomes_of_healthy, sound)] if truth == HEALTHY else [outcomes_of(truth)] for truth in known}


_LOOK = "The table below shows the walk of each experiment, and which other experiments take the same walk."
_CHEAPER = "Begin with checks that separate many experiments in few minutes. Remove checks that change no conclusion."
# For the id of each rubric item: the criterion, the title, and the remedy.
_CHECKS: Mapping[str, tuple[Criterion, str, str]] = {
    "tree": ("form", "The tree has no loop, and its conclusions depend on checks", ""),
    "breaks": ("conclusions", "For each broken experiment, outcomes of checks lead to the right cause", _LOOK),
    "healthy": ("conclusions", "For a healthy experiment, outcomes of checks lead to the conclusion healthy", _LOOK),
    "minutes": ("cost", "The checks before the right conclusions take few minutes", _CHEAPER),
}


def judge_tree(text: str, file: str, known: Mapping[str, TripsOfOne] | None = None) -> Judgement:
    """Judge the text of a tree. If `known` is given, use these experiments instead of `experiments()`."""
    measured = measured_outcomes(experiments()) if known is None else {}
    known = experiments() if known is None else known
    found, reference = list[TreeEnd](), arrivals(reference_tree(known), known, measured)
    try:
        tree = parse_tree(text, file)
        nothing, remedy = tree.flaw(), "Let the conclusion depend on the outcome of a check."
        found = [] if nothing else arrivals(tree, known, measured)
    except UserError as error:
        nothing, remedy = str(error), "Run make check, which reads the tree like the grader, and names the wrong line."
    breaks = [one for one in found if one.truth != HEALTHY]
    if not nothing and not any(one.verdict == "right" for one in breaks):
        nothing = "The tree never uses an outcome to find the cause of a broken experiment."
        remedy = "Use checks whose outcomes differ between the experiments. The table below shows the walks."
    if nothing:
        judged = dict.fromkeys(_CHECKS, (0.0, nothing))
    else:
        judged = {
            "tree": (1.0, "The tree has no loop, and its conclusions depend on outcomes."),
            "breaks": _share(breaks),
            "healthy": _share([one for one in found if one.truth == HEALTHY]),
            "minutes": _cost(found, reference),
        }
    findings = [
        AnswerCheck(criterion, id, title, judged[id][1], remedy if nothing else how, judged[id][0])
        for id, (criterion, title, how) in _CHECKS.items()
    ]
    table = (_table(found, reference),) if found else ()
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


def reference_tree(known: Mapping[str, TripsOfOne]) -> Tree:
    """Return a tree that separates all experiments that checks can separate.

    Each node uses the check that gives the most information per minute. This is the greedy choice of the algorithm ID3
    (Quinlan, "Induction of Decision Trees", 1986), with the information gain divided by the minutes of the check.
    """
    nodes: dict[str, object] = {}

    def build(group: Sequence[str]) -> dict[str, str]:
        """Add the nodes for these experiments, and return the step that leads to them."""
        if all(known[truth] == known[group[0]] for truth in group):
            return {"conclude": HEALTHY if HEALTHY in group else group[0]}
        check = max(check_names(), key=lambda name: _gain(group, known, name) / load_check(name).minutes)
        name = f"node_{len(nodes) + 1}_{check}"[:40]
        nodes[name] = {}
        parts = _parts(group, known, check)
        outcomes = {}
        for outcome in load_check(check).outcomes:
            part = parts.get(None if outcome.sound else outcome.id)
            step = build(part) if part else {"conclude": UNKNOWN}
            outcomes[outcome.id] = {"means": outcome.reading[:200], **step}
        nodes[name] = {"check": check, "outcomes": outcomes}
        return {"go": name}

    start = build(list(known)).get("go", "")
    return Tree.model_validate({"start": start, "nodes": nodes})


def reference_text() -> str:
    """Return the reference tree as YAML."""
    tree = reference_tree(experiments()).model_dump(exclude_none=True)
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=110)


def _parts(group: Sequence[str], known: Mapping[str, TripsOfOne], check: str) -> dict[str | None, list[str]]:
    """Return the experiments, grouped by the outcome of a check. The key None stands for all sound outcomes."""
    parts: dict[str | None, list[str]] = {}
    for truth in group:
        parts.setdefault(known[truth].get(check), []).append(truth)
    return parts


def _gain(group: Sequence[str], known: Mapping[str, TripsOfOne], check: str) -> float:
    """Return the information gain of a check, in bits: the entropy of the parts into which it splits the group."""
    shares = [len(part) / len(group) for part in _parts(group, known, check).values()]
    return -sum(share * math.log2(share) for share in shares)


def _share(found: Sequence[TreeEnd]) -> tuple[float, str]:
    """Return the fraction of right conclusions, and a reason that lists the experiments with other conclusions."""
    right = sum(one.verdict == "right" for one in found)
    reason = f"Right conclusions: {right} of {len(found)}."
    for verdict, words in (("wrong", "Wrong"), ("a guess", "Guessed"), ("not concluded", "No conclusion")):
        if missed := ", ".join(one.truth for one in found if one.verdict == verdict):
            reason += f" {words}: {missed}."
    return right / len(found), reason


def _cost(found: Sequence[TreeEnd], reference: Sequence[TreeEnd]) -> tuple[float, str]:
    """Return the fraction of the points for the cost, and a reason with the minutes to right conclusions."""
    pairs = [(mine, its) for mine, its in zip(found, reference, strict=True) if mine.verdict == "right"]
    minutes = sum(mine.minutes for mine, _ in pairs) / len(pairs)
    its_minutes = sum(its.minutes for _, its in pairs) / len(pairs)
    pace = min(1.0, max(0.0, (SLOWEST - minutes / its_minutes) / (SLOWEST - 1)))
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
