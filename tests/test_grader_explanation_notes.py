"""Right explanations in few words, with slips or in broken English, and texts that look like them"
" and are none."""

import pytest
from explanations import judged, recipe_and_lexicon, report, total

from grader.score.verdict import Check

RIGHT = [
    (
        "huge_lr",
        "[symptom] 2.30 -> 31.8 -> 6306, then dead (acc .097)\n[root cause] lr=10. way too big,"
        " weights overshoot, relus"
        " die\n[fix] lr=0.1\n[verification] acc .942, step-2 loss 2.22",
    ),
    (
        "huge_lr",
        "ok this was the lr lol. its 10 in the sgd line, thats like a hundred times to much so the"
        " weights just fly off and"
        " loss goes from 2.3 to 6306. then all relus r dead.\n\nchanged it to .1 and reran, now acc"
        " is 0.9416",
    ),
    (
        "huge_lr",
        "- Symptom: loss 2.3025 -> 6305.92.\n- Cause: `torch.optim.SGD(model.parameters(), lr=10.0,"
        " momentum=0.9)`. Rate"
        " 100x too high: step overshoots, loss diverges.\n- Fix: `lr=0.1`.\n- Check: acc 0.942.",
    ),
    (
        "loss_sum",
        "Symptom. loss[0] = 147.36 = 64 * 2.3025.\nRoot cause. Sum over batch, no division by N:"
        " loss and grads scale with"
        " N=64 and the step is too large.\nFix. Mean.\nVerification. loss[0] = 2.3025, acc = 0.9416.",
    ),
    (
        "double_softmax",
        "Symptom: floor at ~1.5 (min 1.5134)\nWhy: probabilities fed to cross_entropy, which expects"
        " logits; best case"
        " -log(e/(e+9)) = 1.461\nChange: model returns logits\nAfter: min 0.0182, acc 0.9416",
    ),
    (
        "missing_zero_grad",
        "S: loss 1.43 @ 7, 52.3 @ 83; stale_grad_ratio 113.6 max.\nRC: no zero_grad => gradients add"
        " up over all batches =>"
        " steps too long => swings.\nF: optimizer.zero_grad() before backward.\nV: ratio 0; acc 0.9416.",
    ),
    (
        "amp_no_scaling",
        "- what: loss stalls at 2.8e-7\n- why: no GradScaler; grads of ~1e-8 underflow in fp16\n- how fixed:"
        " scaler.scale(loss).backward(); scaler.step(opt); scaler.update()\n- result: zero fraction"
        " .017; loss 4.7e-8",
    ),
    (
        "forgotten_eval",
        "Problem: the two evaluations give 0.6607 and 0.6592.\nDiagnosis: the model stay in mode"
        " train when is evaluated."
        " The dropout is not disable, for this reason the value change each time.\nTherapy: insert"
        " of model.eval().\n"
        "Result: 0.4496 for two times.",
    ),
    (
        "label_permute",
        "The loss don't move (2.3063). Because in the prepare_batch they do labels[order] and order"
        " is random, so label of"
        " image 1 go to image 30. Network is learning wrong answers. I removed order, now image and"
        " label is together."
        " Accuracy 0.9416.",
    ),
]
NONE = [
    ("amp_no_scaling", "fp16 -> underflow -> GradScaler -> zero gradients -> loss scaling -> autocast"),
    (
        "huge_lr",
        "The learning rate, the step size, the overshoot, the divergence, the gradient, the"
        " optimizer, the SGD.",
    ),
    ("huge_lr", "learning rate lr overshoot divergence SGD too large"),
]
BESIDE = [
    ("double_softmax", "The model ends in a softmax, and cross_entropy applies another, so the loss has a floor."
     " The other cause is that gradients are not cleared: old ones pile up, and this is why the loss jumps."),
    ("huge_lr", "lr = 10 is a hundred times too large, steps overshoot. What is more, gradients are not clipped."),
    ("label_permute", "The labels are shuffled and the images are not, so nothing is learned. At the same time"
     " the learning rate is too small for this network."),
]  # fmt: skip


def checks_of(recipe: str, text: str) -> dict[str, Check]:
    return judged(report(text, recipe_and_lexicon(recipe)[0].area), recipe)


@pytest.mark.parametrize(("recipe", "text"), RIGHT)
def test_notes_and_broken_english_name_and_link_the_cause(recipe: str, text: str) -> None:
    checks = checks_of(recipe, text)
    assert {name: check.points for name, check in checks.items()} == {
        "parts": 2, "cause": 6, "chain": 4, "numbers": 3
    }, checks  # fmt: skip


@pytest.mark.parametrize(("recipe", "text"), NONE)
def test_terms_with_arrows_articles_or_nothing_between_them_are_a_list(recipe: str, text: str) -> None:
    assert total(checks_of(recipe, text)) == 0


@pytest.mark.parametrize(("recipe", "text"), BESIDE)
def test_another_cause_told_in_other_words_is_beside_the_right_one(recipe: str, text: str) -> None:
    assert checks_of(recipe, text)["cause"].points == 2


def test_the_contrary_of_the_cause_is_a_wrong_one() -> None:
    text = "There's no softmax at the output, so what cross_entropy receives are no probabilities."
    check = checks_of("double_softmax", text)["cause"]
    assert check.points == 0
    assert "contrary" in check.reason


def test_a_figure_of_the_fixed_run_verifies_the_fix() -> None:
    told = "The loss explodes since the rate of 10 is too large. I set lr=0.1. "
    assert "verification: " in checks_of("huge_lr", told + "Then 2.2208 came out.")["parts"].reason
    assert "missing: verification" in checks_of("huge_lr", told + "Then 6305.9 came out.")["parts"].reason
