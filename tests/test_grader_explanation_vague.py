"""Texts that say nothing of their own are failed at once; what may be a cause in other words waits."""

import pytest
from explanations import judged, recipe_and_lexicon, report, total

from grader.score.claims import admits
from grader.score.document import read_document
from harness.recipe import recipe_ids

RECIPES = recipe_ids()
VAGUE = [
    "There is a mistake somewhere in the code.",
    "I do not know what exactly is wrong, but after my change it works.",
    "The training does not work as it should because of a bug.",
    "I think that it has to do with the settings, but I could not find out what it is.",
    "The values in the log are strange, and the training suffers from that. I am not sure why.",
    "Probably a hyperparameter is not chosen well; I tried a few things until it looked better.",
    "There is a difference between the broken and the healthy experiment, and it causes the bad result.",
    "Honestly I have no clue why this happens; the curves just look wrong.",
]
OTHER_WORDS = {
    "amp_no_scaling": "The arithmetic has a hole around the origin, and most of the slopes fall into it.",
    "double_softmax": "The scores are squashed at the exit and the criterion squashes them a second time.",
    "forgotten_eval": "The switch between learning and being graded is never flipped.",
    "huge_lr": "One correction hurls the parameters to the other end of the landscape.",
    "label_permute": "Answers and questions were dealt out like playing cards.",
    "loss_sum": "It quotes the price of the crate where the price of an apple is meant.",
    "missing_zero_grad": "Every correction drags all earlier ones along.",
}


def judged_cause(recipe: str, cause: str) -> float | None:
    body = f"# Symptom\nIt is bad.\n# Root cause\n{cause}\n# Fix\nI corrected it.\n# Verification\nIt is better now."
    checks = judged(report(body, recipe_and_lexicon(recipe)[0].area), recipe)
    assert (total(checks) is None) == (checks["cause"].points is None)
    return checks["cause"].points


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("cause", VAGUE)
def test_what_could_be_said_of_any_experiment_has_the_layer_alone(recipe: str, cause: str) -> None:
    assert judged_cause(recipe, cause) == 2


@pytest.mark.parametrize("recipe", RECIPES)
def test_an_explanation_in_other_words_is_never_failed(recipe: str) -> None:
    assert judged_cause(recipe, OTHER_WORDS[recipe]) in (None, 6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I am not sure which part of the code is responsible.", True),
        ("What makes it grow I did not find out.", True),
        ("More I cannot say with certainty.", True),
        ("I did not know why at first, but then I saw it.", False),
        ("The network does not learn anything.", False),
    ],
)
def test_that_the_cause_was_not_found(text: str, expected: bool) -> None:
    assert admits(read_document(text).sentences[0]) == expected
