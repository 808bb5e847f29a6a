"""The right cause in many words, rivals that are none, wrong causes in the right words, and lists of every cause."""

import pytest
from explanations import judged, recipe_and_lexicon, report, total

from grader.score.verdict import Check
from harness.recipe import recipe_ids

RECIPES = recipe_ids()
FIXES = {
    "huge_lr": "I set lr to 0.1.",
    "double_softmax": "I removed the softmax layer.",
    "missing_zero_grad": "I added optimizer.zero_grad().",
    "label_permute": "I return the labels as they are.",
    "loss_sum": "I went back to the mean.",
    "forgotten_eval": "I added model.eval().",
    "amp_no_scaling": "I added a GradScaler.",
}


def checks(recipe: str, cause: str, fix: str = "", verification: str = "Now it trains.") -> dict[str, Check]:
    """Judge a report of four parts with this root cause, under the right layer."""
    body = (
        f"# Symptom\nThe loss is bad.\n# Root cause\n{cause}\n# Fix\n{fix or FIXES[recipe]}\n"
        f"# Verification\n{verification}\n"
    )
    return judged(report(body, recipe_and_lexicon(recipe)[0].area), recipe)


def points(recipe: str, cause: str, fix: str = "", verification: str = "Now it trains.") -> float | None:
    return checks(recipe, cause, fix, verification)["cause"].points


RIGHT = [
    # What the cause does is no cause beside it.
    ("huge_lr", "The rate of 10 is too large, so the weights jump away, the ReLUs die and the gradients vanish."),
    ("huge_lr", "The learning rate is too large. After three steps all ReLUs are dead and the gradient vanishes."),
    ("huge_lr", "The gradients vanish in the end because the learning rate is a hundred times too large."),
    ("huge_lr", "The learning rate is too high, so the network weights become too large and the network breaks."),
    ("huge_lr", "The learning rate is too large: the network makes too big jumps."),
    ("loss_sum", "The loss is summed, so the gradient is longer, and the learning rate of 0.1 is then too large."),
    ("loss_sum", "The loss is summed, not averaged. This makes the learning rate 64 times too high."),
    ("loss_sum", "The loss is summed instead of averaged, which makes the learning rate too large in effect."),
    ("loss_sum", "The reduction is sum, which multiplies the loss by 64. The batch size is too large for that."),
    ("missing_zero_grad", "zero_grad is missing. This has the effect of a learning rate that's too large."),
    ("missing_zero_grad", "Because gradients accumulate, we effectively train with a sum of the losses."),
    ("label_permute", "The labels of each batch are shuffled. The data is thus effectively corrupted."),
    ("label_permute", "The targets are put into a random order, so the data is noisy."),
    ("forgotten_eval", "model.eval() is missing, so statistics are updated with validation data: a data leak."),
    ("forgotten_eval", "evaluate() runs in train mode. Dropout with p=0.6 is too strong then."),
    ("amp_no_scaling", "The loss is not scaled. A scaler would skip steps when gradients overflow to inf."),
    ("double_softmax", "The last activation function is wrong: softmax should not be in the model."),
    # What is named is not offered.
    ("huge_lr", "lr is 10. This is way too much for SGD with momentum."),
    ("huge_lr", "The learning rate is too high. I checked that zero_grad is not missing."),
    ("huge_lr", "The learning rate is too high. There is no second softmax and no missing zero_grad."),
    ("huge_lr", "The learning rate is too high. When labels are shuffled, the loss stays flat; here it explodes."),
    ("huge_lr", "The learning rate is too high. With shuffled labels the loss would stay at 2.3."),
    ("huge_lr", "The learning rate is too large. Overflow did not happen."),
    ("missing_zero_grad", "zero_grad is never called. I looked at the scheduler too."),
    ("double_softmax", "The softmax is applied twice. The architecture stays otherwise."),
    # Other words.
    ("huge_lr", "The learning rate is set to 10.0 while 0.1 would be usual."),
    ("huge_lr", "The learning rate is 10. It cannot be the initialization, as the first loss is right."),
    ("huge_lr", "I suspect that the learning rate is too high. A summed loss would start at 147."),
    ("forgotten_eval", "Nothing switches off dropout before validating, therefore accuracy is too low."),
    ("forgotten_eval", "While it is evaluated, dropout and batch norm behave as in training."),
    ("forgotten_eval", "The validation is done with dropout on."),
    ("forgotten_eval", "torch.no_grad does not turn off dropout; model.eval() would be needed."),
    ("double_softmax", "There is one softmax too many, so that the loss has a floor."),
    ("double_softmax", "The softmax layer squashes the logits before cross_entropy, so the loss has a floor."),
    ("label_permute", "x and y do not match any more, because y is shuffled."),
    ("missing_zero_grad", "The gradients of the last batch are still there when the next one comes."),
]  # fmt: skip


@pytest.mark.parametrize(("recipe", "cause"), RIGHT)
def test_the_right_cause_is_seen_and_nothing_beside_it(recipe: str, cause: str) -> None:
    check = checks(recipe, cause)["cause"]
    assert check.points == 6, check.reason


@pytest.mark.parametrize(
    ("recipe", "verification"),
    [
        ("huge_lr", "The accuracy is good. There is slight overfitting, which is normal."),
        ("huge_lr", "A learning rate of 0.0001 would be too small."),
        ("loss_sum", "Accuracy is 0.94. The model is a bit too small for more."),
    ],
)
def test_remarks_under_another_heading_accuse_nobody(recipe: str, verification: str) -> None:
    cause = {"huge_lr": "The learning rate is too high.", "loss_sum": "The loss is summed."}[recipe]
    assert points(recipe, cause, verification=verification) == 6
    # Under the same heading they are causes.
    if "slight" in verification:
        assert points(recipe, f"{cause} {verification}") == 2


BESIDE = [
    ("huge_lr", "The learning rate is too high. Besides, the labels are shuffled."),
    ("huge_lr", "The learning rate is too high, and the loss is summed over the batch."),
    ("huge_lr", "The learning rate is too high, so the labels are shuffled."),
    ("huge_lr", "The learning rate is too high. Also the gradients are never cleared, so they accumulate."),
    ("missing_zero_grad", "zero_grad is missing, and the learning rate is too high."),
    ("label_permute", "The labels are permuted. The network is too small as well."),
    ("loss_sum", "The loss is summed. Another cause is the learning rate, which is too high."),
    ("forgotten_eval", "model.eval() is missing. Another reason is overfitting."),
    ("amp_no_scaling", "The loss is not scaled. Apart from this the network is too small."),
    ("amp_no_scaling", "The loss is not scaled, and float16 overflows to inf because of a problem in it."),
]  # fmt: skip


@pytest.mark.parametrize(("recipe", "cause"), BESIDE)
def test_a_cause_offered_beside_the_right_one_costs(recipe: str, cause: str) -> None:
    assert points(recipe, cause) == 2


WRONG = [
    ("huge_lr", "I could not find out why, but it happens at step 10 because of something.", ""),
    ("huge_lr", "At step 10 the loss is large, because the network does not learn.", ""),
    ("huge_lr", "The optimizer takes large steps.", "I changed it to 0.1."),
    ("huge_lr", "The momentum of 0.9 is the culprit: with it each update is large.", "I removed momentum."),
    ("huge_lr", "The learning rate is 10 times too small, so the loss explodes.", "I raised it to 100."),
    ("huge_lr", "The learning rate is 10 times smaller than it should be.", "I raised it."),
    ("huge_lr", "A learning rate that is too high would explode at once.", "I changed the seed."),
    ("double_softmax", "The model lacks a softmax in the last layer, so the loss cannot fall.", "I put one there."),
    ("double_softmax", "A softmax in the last layer is needed, so the loss is stuck.", "I changed it."),
    ("missing_zero_grad", "zero_grad is called in every step, so that momentum is lost.", "I removed zero_grad."),
    ("forgotten_eval", "There is no problem with model.eval(), the split is too small.", "I used more images."),
    ("forgotten_eval", "model.eval() is called too early, so accuracy differs.", "I removed model.eval()."),
    ("loss_sum", "The loss is averaged over the batch, and not summed.", "I use sum instead of mean."),
    ("loss_sum", "The loss should be summed but it is the mean.", "I set reduction to sum, not mean."),
    ("label_permute", "The labels are not random enough, so the loss stays.", "I shuffled the labels again."),
    ("amp_no_scaling", "No scaling of the inputs is done, so the loss stalls.", "I scaled the inputs."),
    ("amp_no_scaling", "The images need scaling to zero mean, and the scaler is missing.", "I scaled them."),
    ("missing_zero_grad", "The gradients explode since nothing clips them, they are added up.", "I clip them."),
]  # fmt: skip


@pytest.mark.parametrize(("recipe", "cause", "fix"), WRONG)
def test_a_wrong_cause_in_the_words_of_the_right_one_does_not_earn_it(
    recipe: str, cause: str, fix: str
) -> None:
    earned = points(recipe, cause, fix)
    assert earned is None or earned <= 2


OWN_WORDS = [
    ("missing_zero_grad", "Old .grad values are kept from batch to batch and mix with the new ones."),
    ("forgotten_eval", "Nobody tells the network that it is being tested now, hence its random masks stay."),
    ("double_softmax", "The output is normalized to a distribution, and the loss normalizes once more."),
    ("label_permute", "In prepare_batch the digits get new answers, as each of them moves to another place."),
    ("huge_lr", "What SGD multiplies the gradient with is wrong by two powers of ten, so it flies off."),
    ("amp_no_scaling", "Half precision knows nothing below 6e-8, and most of the derivatives are there."),
    ("loss_sum", "Nothing is shared out among the 64, as it should be, and everything is 64 times as big."),
    ("loss_sum", "Each of the 64 images counts in full, so the gradient is 64 times as long as it ought to be."),
]  # fmt: skip


@pytest.mark.parametrize(("recipe", "cause"), OWN_WORDS)
def test_words_that_the_rules_do_not_know_wait_for_the_instructor(recipe: str, cause: str) -> None:
    assert points(recipe, cause) in (None, 6)


@pytest.mark.parametrize(
    "cause",
    [
        "Something with the settings was wrong, so it did not work well and had to be changed in the end.",
        "There was a bug in the code, because a line was not right and somehow the training was bad in it.",
    ],
)
@pytest.mark.parametrize("recipe", RECIPES)
def test_what_could_be_said_of_any_experiment_stays_vague(recipe: str, cause: str) -> None:
    found = checks(recipe, cause, "I corrected it.")["cause"]
    assert found.points == 2
    assert "stays vague" in found.reason


def test_a_cause_that_only_the_fix_names_waits_where_the_root_cause_is_told_otherwise() -> None:
    found = checks("missing_zero_grad", "It is the optimizer, which forgets.", "I removed zero_grad.")
    assert [found[name].outcome for name in ("cause", "chain")] == ["could not judge", "could not judge"]
    assert "under Fix or Verification" in found["cause"].reason
    untold = "# Symptom\nThe loss swings.\n# Fix\nzero_grad was missing, so I added it.\n# Verification\nIt trains."
    assert judged(report(untold, "loop"), "missing_zero_grad")["cause"].points == 6


def test_a_suspicion_that_was_not_taken_back_is_no_answer_where_more_is_said() -> None:
    more = "Each of these moves is gigantic compared with what the surface permits there, so the weights fly away."
    assert points("huge_lr", f"At first I thought that the labels are shuffled. {more}") is None
    assert points("huge_lr", "I suspect that the labels are shuffled.") == 0


EVERY = [
    "the step size of SGD is far too large",
    "images and labels no longer match, because the labels get permuted",
    "the gradients pile up since nobody clears them",
    "there are two softmaxes, one of them in the model",
    "the loss adds up the errors of a batch in place of averaging",
    "the network is validated in train mode",
    "small gradients underflow in fp16 without a GradScaler",
]
LISTS = {
    "suspected": " ".join(f"I suspect that {cause}." for cause in EVERY),
    "assumed": " ".join(f"I assume {cause}." for cause in EVERY),
    "asked": " ".join(f"Could it be that {cause}?" for cause in EVERY),
    "often": " ".join(f"Often {cause}." for cause in EVERY),
    "when": " ".join(f"When {cause}, the loss is bad." for cause in EVERY),
    "if": " ".join(f"If {cause}, then the loss is bad." for cause in EVERY),
    "imagined": " ".join(f"If {cause}, then the loss would be bad." for cause in EVERY),
    "said": " ".join(f"I would say that {cause}." for cause in EVERY),
    "considered": "I considered that " + ", that ".join(EVERY) + ", which makes the loss bad.",
    "or": "I suspect that " + " or that ".join(EVERY) + ".",
    "chained": "The loss is bad because " + ", so ".join(EVERY) + ".",
    "bullets": "- " + "\n- ".join(EVERY),
    "bare": "learning rate, labels, softmax, zero_grad, reduction, model.eval, float16, initialization, momentum",
    "notes": "lr too high, labels shuffled, softmax twice. zero_grad missing, loss summed. eval forgotten, no scaler.",
}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_every_cause_earns_nothing_however_it_is_hedged(recipe: str, name: str) -> None:
    for fix in (FIXES[recipe], " ".join(FIXES.values())):
        assert total(checks(recipe, LISTS[name], fix)) == 0


NOTES = [
    ("huge_lr", "Loss 2.30, 31.8, 6305.9 in steps 0 to 2.", "Learning rate 10, way too high.", "lr=0.1"),
    ("huge_lr", "Loss explosion, 6305.9.", "lr 10, a hundred times too large: huge updates.", "Smaller rate, 0.1."),
    ("missing_zero_grad", "Swinging loss.", "No zero_grad in train_step, gradients piling up.", "zero_grad again"),
    ("loss_sum", "First loss 147.36.", "Sum instead of mean in compute_loss.", "reduction mean"),
    ("forgotten_eval", "Two losses.", "Missing model.eval() in evaluate, dropout still on.", "model.eval() on top"),
]  # fmt: skip


@pytest.mark.parametrize(("recipe", "symptom", "cause", "fix"), NOTES)
def test_notes_under_headings_are_no_list_of_terms(recipe: str, symptom: str, cause: str, fix: str) -> None:
    body = f"# Symptom\n{symptom}\n# Root cause\n{cause}\n# Fix\n{fix}\n# Verification\nAccuracy 0.94.\n"
    found = judged(report(body, recipe_and_lexicon(recipe)[0].area), recipe)
    assert (found["parts"].points, found["cause"].points) == (2, 6)
    # The same notes without headings claim nothing.
    plain = f"{symptom}, terms, words, {fix}, loss, rate"
    assert total(judged(report(plain, recipe_and_lexicon(recipe)[0].area), recipe)) == 0
