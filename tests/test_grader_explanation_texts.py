"""Model explanations of every recipe: each label earns what it must, and the order of points is sensible."""

import pytest
from explanations import judged, recipe_and_lexicon, report, total

from grader.score.solutions import SOLUTIONS, load_texts
from grader.score.verdict import Check
from grader.selfcheck.labels import BANDS, complaint
from harness.recipe import recipe_ids

RECIPES = recipe_ids()
# What is held back is judged by `grader selfcheck` alone: who makes the rules is not to look at it.
HELD_BACK = (False,)
TEXTS = [
    (recipe, text.id) for recipe in RECIPES for text in load_texts(recipe) if text.held_back in HELD_BACK
]

EVERY_BUG = """\
# Symptom
The run does not train well, the loss is not what it should be.

# Root cause
There are several causes. The learning rate is too large. The loss is summed instead of averaged. There is a second
softmax in the model. The labels are shuffled and do not match the images. zero_grad is missing, so gradients
accumulate. model.eval() is never called. The gradients underflow in float16 because the loss is not scaled.

# Fix
I set lr to 0.1, used reduction mean, removed the softmax, returned the labels, added zero_grad, added model.eval()
and the GradScaler.

# Verification
It trains well now and the accuracy is good.
"""
HEDGED = (
    "It might be that the learning rate is too high, or maybe the labels are shuffled. Perhaps zero_grad is missing."
    " It could also be that the softmax is applied twice. Possibly the loss is summed. Or model.eval() is not called."
    " Or the gradients underflow in float16, so the loss is not good. I changed all of this, and now it works."
)
LISTED = """\
- learning rate too large
- labels shuffled
- zero_grad missing
- softmax twice
- loss summed instead of averaged
- model.eval() forgotten
- gradient underflow in float16
- bad initialization
"""
NO_CAUSE = """\
# Symptom
The run does not train well, the loss is not what it should be.

# Root cause
I looked at the whole experiment for a long time, step by step, and at the curves as well, until I saw what was going
on in there.

# Fix
I changed the line.

# Verification
It trains well now and the accuracy is good.
"""


def points(checks: dict[str, Check], *ids: str) -> float:
    found = [checks[name].points for name in ids]
    assert None not in found
    return sum(p for p in found if p is not None)


@pytest.mark.parametrize(("recipe", "name"), TEXTS)
def test_a_model_text_earns_what_its_label_says(recipe: str, name: str) -> None:
    text = next(text for text in load_texts(recipe) if text.id == name)
    checks = judged(report(text.body, text.layer), recipe)
    assert (total(checks) is None) == (text.label == "open"), checks
    assert complaint(text.label, tuple(checks.values())) == "", checks


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_has_a_text_of_each_kind(recipe: str) -> None:
    labels = {text.label for text in load_texts(recipe)}
    # A text that names every bug is below, for every recipe.
    assert labels >= set(BANDS) - {"rival beside", "false numbers", "every bug"}
    assert labels & {"rival beside", "false numbers"}


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_model_report_earns_everything(recipe: str) -> None:
    checks = judged((SOLUTIONS / recipe / "report.md").read_text(encoding="utf-8"), recipe)
    assert {check.outcome for check in checks.values()} == {"passed"}, checks
    assert total(checks) == 15


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("text", [EVERY_BUG, HEDGED, LISTED], ids=["told", "hedged", "listed"])
def test_naming_every_bug_earns_less_than_naming_none(recipe: str, text: str) -> None:
    layer = recipe_and_lexicon(recipe)[0].area
    everything, none = judged(report(text, layer), recipe), judged(report(NO_CAUSE, layer), recipe)
    assert points(everything, "cause", "chain") == 0
    assert points(none, "cause", "chain") == 2  # the layer alone
    assert points(everything, *everything) == 0 < points(none, *none)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("other", RECIPES)
def test_the_model_report_of_another_recipe_names_the_wrong_cause(recipe: str, other: str) -> None:
    if recipe == other:
        return
    checks = judged((SOLUTIONS / other / "report.md").read_text(encoding="utf-8"), recipe)
    assert points(checks, "cause") <= 2
    assert points(checks, "chain") == 0


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_exercise_repeated_explains_nothing(recipe: str) -> None:
    found, lexicon = recipe_and_lexicon(recipe)
    assert total(judged(report(lexicon.prompt, found.area), recipe)) == 0
