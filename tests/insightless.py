"""`make insightless`: what a script earns that understands nothing.

It hands in a report that is right in form: the first cause of the list, values of both logs, up to eight causes that
the log contradicts. The experiment is untouched, or has an edit that means nothing. On a healthy case it says
`healthy`. It knows what a student's kit holds, and makes no check. Without names, every recipe and every healthy case
is measured; that takes about 80 minutes on two cores.
"""

import argparse
import ast
import json
import math
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

from helpers.grading import behaviour, checks, replay

from grader.replay.replay import Replay
from grader.score.gates import limits_of
from grader.score.measurements import symptoms
from grader.score.rubric import load_weights
from grader.score.scoring import score_evidence, scored_row
from grader.score.self_test import own_evidence, reference_report
from grader.syntax.edit_size import functions_changed
from harness.behaviour.sound import Comparison, compare, read_sound_programs
from harness.canonical_setup import usable_cores
from harness.checks.core.outcomes import outcomes_of
from harness.errors import UserError
from harness.recipes.cases import Case, CaseTable, load_cases, sound_experiments
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import BEHAVIOUR, EXERCISES, HEALTHY, Recipe, load_recipes, recipe_ids
from harness.run.metrics_log import parse_log
from harness.run.signals import place_of
from harness.run.symptoms import judge_symptom, signal_values
from harness.submission.log_values import LogValues, load_causes, log_values
from harness.submission.places import places_of

UNTOUCHED, EDITED = 40.0, 45.0  # the most that it may earn
_TEXT = """
# Symptom

The values of the run are not right.

```
{snippet}
```

# Root cause

The cause is named above.

# Fix

I fixed it.

# Verification

The values are better now.
"""


@dataclass(frozen=True)
class Earned:
    """The total of one submission of the script, or of the reference."""

    case: str
    what: str
    total: float


def edits(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield edits that mean nothing, by name: the source of each. The first three change no byte of a run."""
    broken, healthy = recipe.broken_source(), recipe.healthy_source()
    yield "a name", re.sub(r"\baccuracy\b(?!\")", "share_right", broken)
    yield "a print", broken.replace("EPOCHS = ", 'print("ready")\nEPOCHS = ', 1)
    yield "an assert", broken.replace("EPOCHS = ", "assert 1 < 2\nEPOCHS = ", 1)
    yield "the batch size", re.sub(r"^(BATCH_SIZE = )(\d+)", lambda m: f"{m[1]}{int(m[2]) // 2}", broken, flags=re.M)
    yield "the epochs", re.sub(r"^(EPOCHS = )(\d+)", lambda m: f"{m[1]}{int(m[2]) + 1}", broken, flags=re.M)
    if elsewhere := _other_number(broken, functions_changed(healthy, broken)):
        yield "a number elsewhere", elsewhere


def _other_number(source: str, faulty: frozenset[str]) -> str:
    """Return the source with another number in a function that is not faulty, "" if there is none."""
    lines = source.splitlines(keepends=True)
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for kind in (float, int):
        for function in functions:
            for node in ast.walk(function) if function.name not in faulty else ():
                if not isinstance(node, ast.Constant) or type(node.value) is not kind or node.value in (0, 1):
                    continue
                line = lines[node.lineno - 1].encode()
                number = repr(node.value * 0.9 if kind is float else node.value + 1).encode()
                line = line[: node.col_offset] + number + line[node.end_col_offset :]
                return "".join([*lines[: node.lineno - 1], line.decode(), *lines[node.lineno :]])
    return ""


def script_report(
    recipe: Recipe, source: str, broken: Replay, fixed: Replay, cause: str, rivals: Sequence[str] | None = None
) -> str:
    """Return a report with this cause that is right in form; by default values of the log contradict the rivals."""
    rng = random.Random(f"{recipe.id} {cause}")
    log, where = log_values(broken.log), rng.choice(sorted(places_of(source)))
    step = rng.randrange(len(log.of("loss")))
    lines = [f"  - cause: {cause}\n"]
    if cause != HEALTHY:
        lines = [f"  - cause: {cause}\n    where: {where}\n    first_wrong: {{{_value(log, 'loss', min(step, 1))}}}\n"]
    if rivals is None:
        rivals = [line for rival, line in _contradicted(recipe.dataset, broken.log) if rival != cause]
        rng.shuffle(rivals)
    cited = [f"run: broken, {line}" for line in _last_values(log)]
    # Without a run of its own, it cites the broken run.
    cited += [f"run: fixed, {line}" for line in _last_values(log_values(fixed.log or broken.log))]
    matter = f"diagnosis:\n{''.join(lines)}ruled_out:\n{_listed(rivals[:8]) or '  []'}\nevidence:\n{_listed(cited)}\n"
    return f"---\n{matter}---\n" + _TEXT.format(snippet="\n".join(broken.log.splitlines()[-2:]))


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"  - {{{line}}}" for line in lines)


def _value(log: LogValues, signal: str, place: int) -> str:
    return f"signal: {signal}, {place_of(signal)}: {place}, value: {log.of(signal)[place]!r}"


def _last_values(log: LogValues) -> list[str]:
    """Return a line for the last value of each signal, and for the largest one."""
    found = [(name, list(log.of(name))[-1]) for name in log.names()]
    return [_value(log, name, place) for name, place in found]


@lru_cache(maxsize=4)
def _contradicted(dataset: str, log: str) -> Sequence[tuple[str, str]]:
    """Return each cause with a symptom that a value of the log contradicts, and the line that says so."""
    records, found = parse_log(log, "metrics.log"), []
    for cause, known in load_causes().items():
        for symptom in known.symptoms(dataset):
            start, end = symptom.steps or (0, math.inf)
            low = -math.inf if symptom.above is None else symptom.above
            high = math.inf if symptom.below is None else symptom.below
            values = [item for item in signal_values(records, symptom.signal) if start <= item[0] < end]
            values = {"first": values[:1], "last": values[-1:]}.get(symptom.reduce, values)
            place = next((place for place, value in values if not low < value < high), None)
            if place is not None and not judge_symptom(records, symptom).present:
                found.append((cause, f"cause: {cause}, {_value(log_values(log), symptom.signal, place)}"))
                break
    return found


def total(
    recipe: Recipe, source: str, runs: Mapping[str, Replay], report: str, compared: Comparison | None = None
) -> float:
    """Return the total of a submission; what waits for the instructor counts as if it were accepted.

    runs: broken, reference and fixed; with checks of the fixed experiment and of the reference if the bytes do not
    decide. compared: the fixed program beside the sound ones.
    """
    evidence = own_evidence(recipe, source, runs["broken"], runs["reference"], runs["fixed"], report)
    evidence = replace(evidence, comparison=compared)
    if "checks" in runs:
        evidence = replace(evidence, checks=(runs["checks"], runs["reference checks"]))
    weights = load_weights()
    criteria = score_evidence(evidence, weights)
    limits = tuple(limits_of(recipe, weights.gates))
    row = scored_row("ada_x", "ada", recipe.id, "", criteria, (), {}, sandboxed=True, limits=limits)
    if row.total is None:
        waits = [check.id for one in criteria.values() for check in one.checks if check.points is None]
        raise AssertionError(f"{recipe.id}: {waits} wait for the instructor")
    return row.total


def earned(recipe_id: str, only: Sequence[str] = ()) -> list[Earned]:
    """Return what the script earns for a recipe with each edit, or with these, beside the reference fix and report."""
    recipe = load_recipe(recipe_id)
    broken, reference = replay(recipe_id, recipe.broken_source()), replay(recipe_id, recipe.healthy_source())
    runs = {"broken": broken, "reference": reference}
    whole = reference_report(recipe, broken.log, reference.log)
    found = [Earned(recipe_id, "reference", total(recipe, recipe.healthy_source(), runs | {"fixed": reference}, whole))]
    guess = next(cause for cause in load_causes() if cause != recipe_id)
    for what, source in (("untouched", recipe.broken_source()), *edits(recipe)):
        if only and what not in only:
            continue
        same = what in ("untouched", "a name", "a print", "an assert")
        made = runs | {"fixed": broken if same else _run(recipe_id, source)}
        if not same and made["fixed"].status == "OK":
            left = (item for item in symptoms(recipe, recipe.dataset, made["fixed"], reference) if not item.good)
            if next(left, None) is None:
                sources = {"checks": source, "reference checks": recipe.healthy_source()}
                made |= {role: checks(recipe_id, text) for role, text in sources.items()}
        report = script_report(recipe, source, broken, made["fixed"], guess)
        ends = what != "untouched" and made["fixed"].status == "OK"
        # The behaviour of a program that changes no byte of a run is the one of the broken program.
        compared = _compared(recipe, recipe.broken_source() if same else source) if ends else None
        found.append(Earned(recipe_id, what, total(recipe, source, made, report, compared)))
        if what == "untouched":
            report = script_report(recipe, source, broken, broken, recipe_id)
            found.append(Earned(recipe_id, "untouched, lucky", total(recipe, source, made, report)))
    return found


def _compared(recipe: Recipe, source: str) -> Comparison | None:
    """Compare a program with the sound ones, whose behaviours the recipe stores."""
    found, sound = behaviour(recipe.id, source).behaviour, read_sound_programs(EXERCISES / recipe.id / BEHAVIOUR)
    return None if found is None or sound is None else compare(found, sound)


def _run(recipe_id: str, source: str) -> Replay:
    try:
        return replay(recipe_id, source)
    except UserError as error:
        return Replay(status="RE", message=str(error))


@cache
def sound_cases() -> Sequence[Case]:
    """Return every healthy experiment and decoy as a case of a course."""
    found = sound_experiments(load_cases().decoy, load_recipes()[0])
    tables = [
        CaseTable(id=f"s{number}", experiment=one.experiment, decoy=None if one.name == one.experiment else one.name)
        for number, one in enumerate(found)
    ]
    return [table.case("course") for table in tables]


def earned_on_healthy(name: str) -> list[Earned]:
    """Return what the script earns on a healthy case, or decoy, with a guess and with `healthy`."""
    [case] = [case for case in sound_cases() if case.sound == name]
    run = replay(case, case.broken_source())
    runs = {"broken": run, "reference": run, "fixed": run}
    source = case.broken_source()
    reports = {
        "reference": reference_report(case, run.log, run.log),
        "healthy": script_report(case, source, run, run, HEALTHY),
        "healthy, checks at random": script_report(case, source, run, run, HEALTHY, _random_checks(case)),
        "healthy, without rivals": script_report(case, source, run, run, HEALTHY, ()),
        "a guess": script_report(case, source, run, run, next(iter(load_causes()))),
    }
    return [Earned(name, what, total(case, source, runs, text)) for what, text in reports.items()]


def _random_checks(case: Case) -> Sequence[str]:
    """Return eight causes, each with the true outcome of a check: a script may make the checks without reading them."""
    rng, found = random.Random(case.sound), outcomes_of(case)
    causes = rng.sample(sorted(load_causes().keys() - {HEALTHY}), 8)
    chosen = ((cause, rng.choice(sorted(found))) for cause in causes)
    return [f"cause: {cause}, check: {check}, outcome: {found[check]}" for cause, check in chosen]


def table(rows: Sequence[Earned]) -> str:
    """Return the table of docs/trial.md: mean and largest total of each kind of submission."""
    lines = ["| submission | cases | mean | smallest | largest | of |", "| --- | --- | --- | --- | --- | --- |"]
    for what in dict.fromkeys(row.what for row in rows):
        totals = {row.case: row.total for row in rows if row.what == what}
        most = max(totals, key=lambda case: totals[case])
        figures = f"{fmean(totals.values()):.1f} | {min(totals.values()):g} | {totals[most]:g} | {most}"
        lines.append(f"| {what} | {len(totals)} | {figures} |")
    return "\n".join(lines)


def main() -> int:
    """Measure, print the table, and exit with 1 if the script earns too much or the reference not all."""
    parser = argparse.ArgumentParser(prog="make insightless", description=__doc__)
    parser.add_argument("names", nargs="*", help="these recipes and healthy experiments alone")
    parser.add_argument("--jobs", type=int, default=usable_cores())
    parser.add_argument("--json", type=Path, help="write all totals to this file")
    asked = parser.parse_args()
    recipes = [name for name in recipe_ids() if name in asked.names or not asked.names]
    sound = [case.sound for case in sound_cases() if case.sound in asked.names or not asked.names]
    with ProcessPoolExecutor(asked.jobs, get_context("spawn")) as pool:
        broken = [row for rows in pool.map(earned, recipes) for row in rows]
        healthy = [row for rows in pool.map(earned_on_healthy, sound) for row in rows]
    if asked.json:
        asked.json.write_text(json.dumps([[row.case, row.what, row.total] for row in (*broken, *healthy)]))
    print(f"Broken:\n\n{table(broken)}\n\nHealthy:\n\n{table(healthy)}")
    wrong = list(too_much(broken, healthy))
    print(*wrong, sep="\n")
    return 1 if wrong else 0


def too_much(broken: Sequence[Earned], healthy: Sequence[Earned]) -> Iterator[str]:
    """Yield what is not as it should be, as sentences."""
    for row in (*broken, *healthy):
        most = EDITED if row in broken and row.what != "untouched" else UNTOUCHED
        if row.what == "reference" and row.total != 100:
            yield f"{row.case}: the reference earns {row.total:g}, not 100."
        if row.what not in ("reference", "untouched, lucky") and row.total > most:
            yield f"{row.case}, {row.what}: the script earns {row.total:g}, at most {most:g} are allowed."


if __name__ == "__main__":
    sys.exit(main())
