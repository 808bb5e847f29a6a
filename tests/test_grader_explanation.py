"""The four checks of an explanation together: parts, layers, what cannot be judged, and hostile reports."""

import time

import pytest
from explanations import judged, report, total
from hypothesis import given
from hypothesis import strategies as st

GOOD = """\
# Symptom
The loss goes from 2.30 to 6305.9 in two steps.

# Root cause
The learning rate of 10 is far too large, so each step overshoots and the loss explodes.

# Fix
I put lr=0.1 back, so that steps are small again.

# Verification
The validation accuracy is 0.942 in the fixed run.
"""


def test_a_good_report_earns_everything_and_is_quoted() -> None:
    checks = judged(report(GOOD))
    assert list(checks) == ["parts", "cause", "chain", "numbers"]
    assert [check.max for check in checks.values()] == [2, 6, 4, 3]
    assert total(checks) == 15
    assert '"learning rate of 10' in checks["cause"].reason
    assert "each step overshoots" in checks["chain"].reason
    assert "I put lr=0.1 back" in checks["chain"].reason
    assert "6305.9" in checks["numbers"].reason
    assert all(check.remedy == "" for check in checks.values())


def test_the_wrong_layer_costs_the_layer() -> None:
    checks = judged(report(GOOD, "model"))
    assert checks["cause"].points == 4
    assert "model, is not the one" in checks["cause"].reason
    assert checks["cause"].remedy == "The layer is optimizer."


def test_without_front_matter_the_text_is_judged_and_the_layer_lost() -> None:
    for text in (
        GOOD,
        report(GOOD, "[]"),
        report(GOOD, "nonsense"),
        "---\nroot_cause_layer: optimizer\n" + GOOD,
    ):
        checks = judged(text)
        assert checks["cause"].points == 4
        assert "layer could not be read" in checks["cause"].reason
        assert checks["chain"].points == 4


def test_a_code_block_without_an_end_does_not_hide_the_text_above_it() -> None:
    checks = judged(report(GOOD + "\n```\nloss 6305.9\n"))
    assert total(checks) == 15


@pytest.mark.parametrize(
    "text", [None, "", report(""), report("# Symptom\n\n# Root cause\n\n# Fix\n"), "---\n---\n"]
)
def test_nothing_earns_nothing(text: str | None) -> None:
    checks = judged(text)
    assert total(checks) == 0
    assert all(check.remedy for check in checks.values())


def test_more_than_500_words_lose_the_length_only() -> None:
    checks = judged(report(GOOD + "\n" + "and so on it went " * 100))
    assert checks["parts"].points == 0
    assert "500 are allowed" in checks["parts"].reason
    assert checks["cause"].points == 6


@pytest.mark.parametrize("part", ["Symptom", "Root cause", "Fix", "Verification"])
def test_a_missing_part_costs_a_quarter(part: str) -> None:
    sections = GOOD.split("# ")
    checks = judged(report("# ".join(s for s in sections if not s.startswith(part))))
    assert checks["parts"].points == 1.5
    assert f"missing: {part.lower()}" in checks["parts"].reason


def test_an_empty_part_is_missing() -> None:
    body = GOOD.replace("The validation accuracy is 0.942 in the fixed run.\n", "")
    assert judged(report(body))["parts"].points == 1.5


def test_paragraphs_are_parts_too() -> None:
    body = "\n\n".join(section.split("\n", 1)[1].strip() for section in GOOD.split("# ") if section)
    assert judged(report(body))["parts"].points == 2


def test_a_rival_beside_the_cause_leaves_the_layer_only() -> None:
    body = GOOD.replace("explodes.\n", "explodes. The labels are shuffled as well.\n")
    checks = judged(report(body))
    assert checks["cause"].points == 2
    assert '"labels are shuffled"' in checks["cause"].reason
    assert judged(report(body, "model"))["cause"].points == 0


def test_two_rivals_beside_the_cause_leave_nothing_of_it() -> None:
    body = GOOD.replace("explodes.\n", "explodes. The labels are shuffled as well. zero_grad is missing.\n")
    assert judged(report(body))["cause"].points == 0


def test_a_cause_ruled_out_is_not_named() -> None:
    checks = judged(
        report("The loss explodes, but the learning rate is not too large. I do not know why it does that.")
    )
    assert checks["cause"].points == 2  # the layer
    assert "rules the cause out" in checks["cause"].reason
    assert checks["chain"].points == 0


OTHER_WORDS = """\
# Symptom
The loss shoots up in the first epoch, and after that the network is dead for good, as one can see in the curves.

# Root cause
The weights fly away at once, because each of these moves is gigantic compared with what the surface permits there.

# Fix
I made the moves a good deal shorter.

# Verification
It trains well.
"""


def test_a_claim_in_words_that_the_rules_do_not_know_is_left_to_the_instructor() -> None:
    checks = judged(report(OTHER_WORDS))
    assert [checks[name].outcome for name in ("cause", "chain")] == ["could not judge", "could not judge"]
    assert checks["cause"].points is None
    assert checks["parts"].points == 2


def test_the_same_claim_under_the_wrong_layer_is_lost() -> None:
    checks = judged(report(OTHER_WORDS, "data"))
    assert checks["cause"].points == 0
    assert checks["chain"].points == 0


def test_a_text_in_another_language_is_left_to_the_instructor() -> None:
    text = "Die Lernrate ist mit 10 zu hoch, und deshalb wird das Netz nicht besser. Ich habe sie auf 0.1 gesetzt."
    checks = judged(report(text))
    assert [check.outcome for check in checks.values()][:3] == ["could not judge"] * 3
    assert "English" in checks["cause"].reason


def test_a_chain_has_two_links() -> None:
    body = GOOD.replace(", so each step overshoots and the loss explodes", "").replace(
        "The loss goes from 2.30 to 6305.9 in two steps.",
        "It went wrong at once, in the second step already.",
    )
    checks = judged(report(body))
    assert checks["chain"].points == 2
    assert "No sentence ties what was observed" in checks["chain"].reason
    unfixed = GOOD.replace("I put lr=0.1 back, so that steps are small again.", "I mended it with care.")
    assert judged(report(unfixed))["chain"].points == 2


def test_the_same_report_gives_the_same_checks() -> None:
    assert judged(report(GOOD)) == judged(report(GOOD))


SIZE = 256 * 1024
HOSTILE = {
    "pictures": "![", "tags": "<img ", "fences": "```\n", "words": "loss ", "digits": "9", "brackets": "(",
    "causes": "the learning rate is too large ", "underscores": "_", "links": "[a](", "lines": "\n", "bullets": "- a\n",
    "headings": "# a\n", "controls": "\x1b[31m loss", "overrides": "\u202e", "powers": "10^", "addresses": "http://",
    "comments": "<!--", "labels": "Cause: ", "humps": "aB", "numbers": "loss 1.2345 ", "dashes": "---\n",
    "nots": "not ",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_report_is_read_and_quoted_safely(name: str) -> None:
    piece = HOSTILE[name]
    checks = judged(report(piece * (SIZE // len(piece))))
    for check in checks.values():
        assert check.reason.isprintable()
        assert len(check.reason) < 4000


def test_a_long_text_of_causes_is_judged_at_once() -> None:
    begun = time.process_time()
    for recipe in ("huge_lr", "missing_zero_grad"):
        judged(report("lr was 10 " * 2000), recipe)
    assert time.process_time() - begun < 4


@given(st.text(max_size=300))
def test_any_report_is_judged(text: str) -> None:
    for whole in (text, report(text)):
        checks = judged(whole)
        for check in checks.values():
            assert check.reason.isprintable()
            assert check.points is None or 0 <= check.points <= check.max
            assert (check.outcome == "passed") == (check.points == check.max)
