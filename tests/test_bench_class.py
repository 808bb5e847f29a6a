from collections import Counter

from benchmarks.bench_class import plan, problems
from grader.score.known_edits import known_fixes
from grader.score.verdict import SubmissionScore
from harness.recipe import load_recipe, recipe_ids


def test_a_class_is_the_same_each_time_and_has_its_proportions() -> None:
    entries = plan(500)
    assert entries == plan(500)
    assert entries[:50] == plan(50)
    kinds = Counter(entry.kind for entry in entries)
    assert (kinds["truncated"], kinds["raises"], kinds["forged"]) == (5, 5, 40)
    assert {entry.fix.recipe.id for entry in entries} == set(recipe_ids())
    for recipe in recipe_ids():
        wanted = {fix.verdict for fix in known_fixes(load_recipe(recipe))[0]} - {"sound"}
        assert {entry.fix.verdict for entry in entries if entry.fix.recipe.id == recipe} <= wanted


def test_a_missing_row_and_one_without_a_verdict_are_noticed() -> None:
    first, second = plan(2)
    row = SubmissionScore(
        submission=second.name, student="x", recipe="r", status="not judged", reason="Lost.", total=None, criteria={},
        provenance={},
    )  # fmt: skip
    assert list(problems([first, second], {second.name: row})) == [
        f"{first.name} has no row",
        f"{second.name} is not judged: Lost.",
    ]
