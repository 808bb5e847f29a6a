import pytest
from recorded_logs import log_bytes

from harness.recipe import load_recipe
from harness.submission.document import read_body
from harness.submission.log_values import log_values
from harness.submission.prose import judge_numbers, shows_log

LOGS = [log_values(log_bytes(name).decode()) for name in ("huge_lr", "digits_mlp")]
SOURCES = [load_recipe("huge_lr").broken_source(), load_recipe("huge_lr").healthy_source()]


def verdicts(text: str) -> dict[str, str]:
    return {number.text: number.verdict for number in judge_numbers(read_body(text), LOGS, SOURCES)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`loss` is 31.84 at step 1, and grad_norm is 470.03.", {"31.84": "true", "470.03": "true"}),
        (
            "Der `loss` beträgt in Schritt 2 6.305,9; `val_accuracy` 94,16 %.",
            {"6.305,9": "true", "94,16 %": "true"},
        ),
        ("`loss`在第1步为31.84，`val_accuracy`只有0.0777。", {"31.84": "true", "0.0777": "wrong"}),
        ("`val_accuracy` = 0.99", {"0.99": "wrong"}),
        ("0.94 `val_accuracy` in the end", {"0.94": "true"}),
        ("| `loss` | 5.55 |", {"5.55": "wrong"}),
        ("```\nloss 31.84 lr 7.7\n```", {"31.84": "true", "7.7": "wrong"}),
        ('```\n{"step": 1, "loss": 31.9, "lr": 10.0}\n```', {"31.9": "wrong", "10.0": "true"}),
        ("The loss is 5.55, I think.", {}),  # a plain word names no signal
        ("`loss` at step 7 of 100 explodes", {}),
        ("`loss` is a problem, and 5.55 is a number", {}),
    ],
)
def test_a_number_beside_a_signal_and_no_other_is_compared(text: str, found: dict[str, str]) -> None:
    assert verdicts(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "`loss` > 50.5",
        "`loss` ≈ 5.55",
        "`loss` between 5.55-7.77",
        "`grad_norm` grew 5.55× in a step",
        "`loss` starts near ln 10 = 2.303",
        "`lr` was 0.9",  # the momentum stands in the source
    ],
)
def test_a_bound_a_rough_figure_or_a_constant_is_neutral(text: str) -> None:
    assert set(verdicts(text).values()) <= {"neutral", "true"}


@pytest.mark.parametrize(
    "text",
    [
        "```\nstep 1 loss 31.84\n```",
        "~~~\n1 31.8425 10.0 38.9303\n~~~",
        "> loss 31.84",
        "| step | 0 | 1 |\n|---|---|---|\n| loss | 2.30 | 31.84 |",
        '```json\n{"step": 1, "epoch": 0, "loss": 31.84}\n```',
    ],
)
def test_a_snippet_of_any_form_shows_the_log(text: str) -> None:
    assert shows_log(read_body(text), LOGS)


@pytest.mark.parametrize(
    "text",
    [
        "```\nsee the numbers\n```",
        "```\nloss 99.9\n```",
        "    lr=0.1\n",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "`loss` is 31.84",  # a sentence is no snippet
        "",
    ],
)
def test_what_holds_no_line_of_the_log_shows_nothing(text: str) -> None:
    assert not shows_log(read_body(text), LOGS)


def test_a_text_of_numbers_alone_is_read_in_bounded_work() -> None:
    assert len(judge_numbers(read_body("`loss` 1.234567 " * 5_000), LOGS)) <= 400
    header = "| " + " | ".join(["loss"] * 500) + " |\n"
    assert len(judge_numbers(read_body(header + "1.5 2.5 3.5\n" * 500), LOGS)) <= 400
