"""Numbers of a text against the logs: true, untrue, and those that say nothing about a log."""

import pytest
from explanations import judged, recipe_and_lexicon, report, whole_log
from hypothesis import given
from hypothesis import strategies as st

from grader.score.document import read_document
from grader.score.explanation import judge_explanation
from grader.score.logged import LoggedValues
from grader.score.stated import stated_numbers

WHY = "The learning rate of 10 is too large, so the loss explodes. I put lr back to 0.1, and it works again."


def outcome(text: str, recipe: str = "huge_lr") -> tuple[str, float | None]:
    check = judged(report(f"{WHY} {text}"), recipe)["numbers"]
    return check.outcome, check.points


TRUE = [
    "The loss is 6305.9 at step 2.",
    "The loss is 6,305.92 at step 2.",
    "The loss is 6306 there.",
    "The loss is 6305 there.",  # digits cut off
    "The loss reaches 6.3k.",
    "The loss is 6.306e3 at most.",
    "The loss goes from 2.30 over 31.8 to 6306.",
    "The loss is above 5000 at its worst.",
    "The loss is about 6000 at its worst.",
    "The validation accuracy is 94.2 %.",
    "The validation accuracy is 94.2 percent.",
    "Its 0.942 accuracy is fine.",
    "grad_norm = 470.03 at step 2, grad_norm = 98.3 at step 3.",
    "The norm of the gradient is 470.",
    "An accuracy of 0.942 and a loss of 0.149 are what the fixed run ends with.",
    "The gradient is dead: 99.99 % of its entries are exactly zero.",
    "The mean of the first activation is -47.1 at step 2.",
    "The error rate is 5.8 % in the end.",
    "The classification error is 0.0584 now.",
    "The accuracy went from 9.7 to 94.2 percent.",
    "The accuracy lies between 9 and 11 %.",
    "The accuracy is 9-10 %.",
    "The accuracy varies from 8 % to 12 %.",
    "The accuracy is 94.2 %, an increase of 84.4 percentage points.",
    "The accuracy is 0.942 on 257 held-out images.",
    "The accuracy is 25 out of 257 = 0.0973.",
    "Loss at step 1: 31.8, step 2: 6305.9.",
    "Loss (step 3) = 422.5.",
    "After 1 step: a loss of 31.8.",
    "In the end it is 422.5 and the accuracy is 0.0973.",
    "The fixed run begins at 2.2208 in step 2 with a gradient norm of 0.853.",
    "94.2 % of the validation digits are recognised, and the loss is 0.149.",
    "The loss is 6'306 there.",
]
NEUTRAL = [
    "The first loss is ln 10 = 2.303, as it should be after 0 steps.",
    "It has 784 inputs, 128 hidden units and 10 classes.",
    "I looked at steps 3, 4 and 57 and at epoch 3 of the loss.",
    "The loss is 37 times larger than in the other one.",
    "The loss was 4.4 when I tried lr=1 as well.",
    "The loss would be 5555 with another seed.",
    "float16 and sha256 and model_v2.13.7 are no claims about a loss.",
    "The bound of the loss is ln(e + 9) - 1 = 1.461.",
    "With lr = 1.0 the loss still explodes to 12345.6.",
    "Using a rate of 0.3 gave an accuracy of 0.555.",
    "The accuracy of the fixed run is an improvement of 84.4 points.",
    "The loss of 20 different validation images is odd.",
    "The loss is a mean over 64 * 784 = 50176 squared errors.",
    "The loss is a mean of 64 x 784 terms, that is 50176 terms.",
    "The weights move by rate times gradient, and that first move is about 8.8 long (10 x 0.8778).",
    "The gradient with respect to the outputs is about 4e-8.",
    "The gradient is zero in 99 of the 120 rows.",
    "In the end max |G_t| = 77.7 (t = 13), and the accuracy is 0.942.",
    "1.2 The loss is told in 1.1, and the accuracy (1.2) as well.",
    "The best loss is ln(1+9e^-1) = 1.461.",
    "I ran it with a batch size of 32; the first loss was 2.44.",
    "The loss is 2.3ish at first.",
]
UNTRUE = [
    "The loss is 51234.5 at step 2.",
    "The loss is 6305.3 at step 2.",
    "The validation accuracy is 0.993.",
    "The validation accuracy is 99.3 %.",
    "grad_norm is 999.",
    "The loss never leaves 777.",
    "The loss is above 99999 at its worst.",
    "The loss is about 8000 at its worst.",
    "It reaches 0.993 accuracy.",
    "```\nstep 2 loss 51234.5\n```",
    '```\n{"step": 2, "loss": 51234.5}\n```',
    "The error rate is 3.3 % in the end.",
    "The accuracy is between 40 and 50 %.",
    "The accuracy varies from 60 % to 70 %.",
    "The accuracy is 0.97 on 257 held-out images.",
    "Loss at step 1: 99.9.",
    "The loss: step 1: 99.9, step 2: 1234.5.",
    "In epoch 4: 0.77 accuracy.",
    "With lr = 0.1 the loss still explodes to 12345.6.",
    "The learning rate is 7.",
    "The loss = 50176 there.",
    "Loss: 99.9 (step 0), 77.1 (step 1).",
    "99.3 % of the validation digits are recognised.",
    "In the fixed run the loss falls to 0.0001.",
    "The loss creeps up to a staggering 9000.",
]


@pytest.mark.parametrize("text", TRUE + NEUTRAL)
def test_numbers_that_agree_or_say_nothing_cost_nothing(text: str) -> None:
    assert outcome(text) == ("passed", 3)


@pytest.mark.parametrize("text", TRUE)
def test_a_true_number_is_enough(text: str) -> None:
    check = judged(report(f"The steps are far too big, and so it explodes. {text}"))["numbers"]
    assert check.outcome == "passed"


@pytest.mark.parametrize("text", UNTRUE)
def test_an_untrue_number_is_quoted_and_loses(text: str) -> None:
    check = judged(report(f"The steps are far too big, and so it explodes.\n\n{text}"))["numbers"]
    assert (check.outcome, check.points) == ("failed", 0)
    assert "Neither log holds" in check.reason


def test_one_slip_among_true_numbers_is_a_slip() -> None:
    text = "The loss is 2.3025, then 31.84, then 6305.9. The accuracy is 0.993."
    assert outcome(text) == ("failed", 1)
    assert outcome(f"{text} The gradient norm is 999.") == ("failed", 0)


def test_a_text_without_numbers_has_nothing_to_compare() -> None:
    check = judged(report("The steps are far too big, and so it explodes."))["numbers"]
    assert (check.outcome, check.points) == ("failed", 1)


def test_small_numbers_written_as_powers_of_ten() -> None:
    for text in (
        "The validation loss is 2.805e-7.",
        "The validation loss is 2.8 x 10^-7.",
        "val_loss = 2.8\u00d710\u207b\u2077",
    ):
        assert judged(report(f"It stalls. {text}"), "amp_no_scaling")["numbers"].outcome == "passed"
    assert judged(report("It stalls. val_loss is 9.9e-7."), "amp_no_scaling")["numbers"].outcome == "failed"


def test_with_a_log_missing_a_number_that_is_not_found_stays_open() -> None:
    recipe, lexicon = recipe_and_lexicon("huge_lr")

    def numbers(text: str, broken: bool, fixed: bool) -> str:
        checks = judge_explanation(
            report(text),
            recipe,
            lexicon,
            broken_log=whole_log("huge_lr") if broken else [],
            fixed_log=whole_log("digits_mlp") if fixed else [],
            broken_source=recipe.broken_source(),
            fixed_source=recipe.healthy_source(),
        )
        return next(check.outcome for check in checks if check.id == "numbers")

    assert numbers("It explodes: the loss is 6305.9.", True, False) == "passed"
    assert numbers("It explodes: the loss is 6305.9.", False, True) == "could not judge"
    assert numbers("It explodes: the loss is 51234.5.", False, False) == "could not judge"
    assert numbers("It explodes: the loss grows.", False, False) == "could not judge"
    assert numbers("It explodes: the loss is 51234.5.", True, True) == "failed"


def test_summaries_of_a_log_are_in_it() -> None:
    log = [{"step": i, "epoch": 0, "loss": float(i), "grad_norm": 1.0} for i in range(5)]
    logged = LoggedValues(log, [])
    assert logged.signals == ["grad_norm", "loss"]
    assert logged.hold(["loss"], "2.0")  # mean and median
    assert not logged.hold(["loss"], "2.5")
    assert logged.hold_within(["loss"], 3.5, 4.5)
    assert not logged.hold_within(["loss"], 4.1, 4.5)
    assert not logged.hold(["no_such_signal"], "2.0")


@given(st.text(alphabet="0123456789.,eE+-% kx^/_ lossacurycy:()", max_size=80))
def test_any_text_has_numbers_that_can_be_judged(text: str) -> None:
    for sentence in read_document(text).sentences:
        for number in stated_numbers(sentence):
            assert number.quote.isprintable()
            assert number.written
    assert judged(report(f"The loss explodes because it is so. {text}"))["numbers"].outcome in (
        "passed",
        "failed",
    )
