"""Lists of terms in every form, and the exercise retold: they explain nothing; notes in few words do."""

import pytest
from explanations import judged, recipe_and_lexicon, report, total

from harness.recipe import recipe_ids

RECIPES = recipe_ids()
TERMS = {
    "amp_no_scaling": ["float16", "AMP", "GradScaler", "underflow", "loss scaling", "zero gradient"],
    "double_softmax": [
        "softmax",
        "logits",
        "cross_entropy",
        "double softmax",
        "probabilities",
        "lower bound",
    ],
    "forgotten_eval": [
        "model.eval()",
        "dropout",
        "batch norm",
        "train mode",
        "running statistics",
        "missing eval",
    ],
    "huge_lr": ["learning rate", "lr", "overshoot", "divergence", "SGD", "steps", "weights"],
    "label_permute": ["labels", "permutation", "randperm", "shuffled labels", "pairing", "mismatch"],
    "loss_sum": ["reduction", "sum", "mean", "batch size", "factor 64", "cross_entropy"],
    "missing_zero_grad": ["zero_grad", "accumulate", "stale gradients", "missing zero_grad", "train_step"],
}
BETWEEN = [", ", " / ", " | ", "; ", " - ", "\n- ", " + ", " and ", "\n", " ", ". "]


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("recipe", RECIPES)
def test_terms_under_headings_explain_nothing_whatever_stands_between_them(recipe: str, between: str) -> None:
    layer, terms = recipe_and_lexicon(recipe)[0].area, between.join(TERMS[recipe])
    for body in (
        terms,
        f"# Symptom\nloss{between}accuracy\n# Root cause\n{terms}\n# Fix\nrepair{between}change\n"
        f"# Verification\nfixed run{between}loss",
    ):
        assert total(judged(report(body, layer), recipe)) == 0


@pytest.mark.parametrize(
    ("recipe", "note"),
    [
        ("huge_lr", "Learning rate 10, 100x too high."),
        ("huge_lr", "lr 10 instead of 0.1, overshoot, dead ReLUs, loss 6306"),
        ("missing_zero_grad", "Missing optimizer.zero_grad() call in train_step."),
        ("missing_zero_grad", "Missing zero_grad."),
        ("double_softmax", "Softmax twice: model, loss."),
        ("amp_no_scaling", "No GradScaler, fp16, gradients underflow to zero."),
    ],
)
def test_a_note_of_a_few_words_names_the_cause(recipe: str, note: str) -> None:
    body = f"# Symptom\nLoss bad, 2.3025.\n# Root cause\n{note}\n# Fix\nRepaired it.\n# Verification\nTrains well."
    check = judged(report(body, recipe_and_lexicon(recipe)[0].area), recipe)["cause"]
    assert check.points == 6, check.reason


RETOLD = {
    "huge_lr": "A handful of steps later the loss, which was the expected ln 10 = 2.303, is in the thousands, and the"
    " network seems to be dead after that: accuracy stays where a guess would be.",
    "amp_no_scaling": "Since the forward pass runs under float16 autocast, the training stalls at several times the"
    " loss, and what happens to very small numbers in float16 is nothing infinite.",
    "missing_zero_grad": "The first steps look promising, then the loss climbs, and a smaller learning rate does not"
    " stop it: the gradient that the optimizer uses at a step is to be measured.",
}


@pytest.mark.parametrize("recipe", RETOLD)
def test_the_exercise_rearranged_explains_nothing(recipe: str) -> None:
    layer = recipe_and_lexicon(recipe)[0].area
    body = f"# Symptom\nSee the log.\n# Root cause\n{RETOLD[recipe]}\n# Fix\nI made the smallest edit."
    assert total(judged(report(body, layer), recipe)) == 0
    # With an explanation of one's own behind it, whatever its words, it is read.
    own = " What is added up there overshoots the valley like a pendulum that nobody brakes."
    assert total(judged(report(body.replace("\n# Fix", f"{own}\n# Fix"), layer), recipe)) != 0
