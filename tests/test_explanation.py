"""The points for the explanation: from the recorded logs of real recipes, for reports in any language."""

from typing import Any

import pytest
from helpers.recorded_logs import LOGS, recorded_evidence, recorded_replay

from grader.replay.replay import Replay
from grader.score import explanation
from grader.score.diagnostics import judge_diagnostics
from grader.score.explanation import judge_explanation
from grader.score.self_test import own_evidence
from harness.recipes.cases import CaseTable
from harness.recipes.catalogue import load_recipe
from harness.submission.log_values import LogValues, load_causes, no_first_sign
from harness.submission.places import places_of

RECIPES = [path.name.removesuffix(".log.gz") for path in sorted(LOGS.iterdir())]
RECIPES = [name for name in RECIPES if name in load_causes()]
WHOLE = {"cause": 3, "where": 2, "first_wrong": 3, "ruled_out": 4, "form": 3}
MATTER = """\
---
diagnosis:
  - cause: {cause}
    where: {where}
    first_wrong: {{{first_wrong}}}
ruled_out:
{ruled_out}
evidence:
  - {{run: broken, signal: loss, step: 2, value: 6305.9}}
  - {{run: fixed, signal: val_accuracy, epoch: 4, value: 94.16 %}}
---
"""
RIVALS = (
    "{cause: loss_sum, signal: loss, step: 0, value: 2.3025}",
    "{cause: unnormalized_input, signal: loss, step: 1, value: 31.84}",
)
GERMAN = """
## Symptom

Der `loss` ist bei Schritt 1 schon 31,84 und bei Schritt 2 6.305,9.

## Ursache

Die Lernrate ist hundertmal zu groß.

## Behebung

Ich habe sie auf ein Zehntel gesetzt.

## Nachweis

Die `val_accuracy` erreicht 94,16 %.
"""
CHINESE = (
    "# 症状\n\n`loss`在第1步为31.84，第2步为6305.9。\n\n# 原因\n\n学习率太大，权重越过了最小值。\n\n"
    "# 修复\n\n把学习率改回去。\n\n# 验证\n\n`val_accuracy`达到0.9416。\n"
)


def report(body: str = GERMAN, **changes: Any) -> str:
    front = {
        "cause": "huge_lr",
        "where": "build_optimizer",
        "first_wrong": "signal: loss, step: 1, value: 31.84",
        "ruled_out": "\n".join(f"  - {line}" for line in changes.pop("rivals", RIVALS)),
        **changes,
    }
    return MATTER.format(**front) + body


def points(text: str | None, accepted: bool | None = True, **changes: Any) -> dict[str, float | None]:
    evidence = recorded_evidence("huge_lr", report=text, **changes)
    return {check.id: check.points for check in judge_explanation(evidence, accepted)}


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_reference_report_earns_everything(recipe: str) -> None:
    evidence = recorded_evidence(recipe)
    assert {check.id: check.points for check in judge_explanation(evidence, True)} == WHOLE
    cited = [check for check in judge_diagnostics(evidence, True) if check.id != "recovery"]
    assert [check.reason for check in cited if check.points != check.max] == []


@pytest.mark.parametrize("body", [GERMAN, CHINESE], ids=["German", "Chinese"])
def test_a_report_in_any_language_earns_everything(body: str) -> None:
    assert points(report(body)) == WHOLE


def test_nonsense_with_the_right_words_earns_nothing_for_them() -> None:
    body = "# Symptom\nlearning rate\n# Cause\ntoo large huge_lr\n# Fix\nlr\n# Verification\nbuild_optimizer\n"
    found = points(report(body, cause="loss_sum", where="evaluate", first_wrong="signal: loss, step: 60, value: 1",
                          rivals=["{cause: huge_lr, signal: loss, step: 0, value: 2.3025}"]))  # fmt: skip
    assert found == {**dict.fromkeys(WHOLE, 0), "form": 3}
    assert points("learning rate too large") == dict.fromkeys(WHOLE, 0)
    assert points(None) == dict.fromkeys(WHOLE, 0)
    assert points("") == dict.fromkeys(WHOLE, 0)


def test_where_may_be_a_class_or_a_method() -> None:
    source = load_recipe("causal_mask_missing").broken_source()
    names = places_of(source)
    assert names["CausalSelfAttention"] == names["CausalSelfAttention.forward"] == "CausalSelfAttention"
    assert names["build_model"] == "build_model"
    assert "forward" not in names, "several classes have one"
    assert places_of("class A:\n    def f(self): pass\n")["f"] == "A"
    assert places_of("not ( python") == {}


def test_several_causes_are_no_diagnosis() -> None:
    second = "  - {cause: loss_sum, where: compute_loss, first_wrong: {signal: loss, step: 1, value: 31.84}}\n"
    text = report().replace("ruled_out:\n", f"{second}ruled_out:\n", 1)
    assert (points(text)["cause"], points(text)["where"]) == (0, 0)


def test_where_is_the_broken_function_or_one_that_was_rightly_edited() -> None:
    for written in (
        "build_optimizer()", "experiment.py, build_optimizer",
        "line 24 in build_optimizer", "model.py:build_optimizer",
    ):  # fmt: skip
        assert points(report(where=written))["where"] == 2
    assert points(report(where="build_optimizer, build_model"))["where"] == 0, "two guesses"
    healthy = load_recipe("huge_lr").broken_source()
    elsewhere = healthy.replace("def train_step", "def train_step_of_mine", 1)
    there = report(where="train_step")
    for accepted, expected in ((True, 2), (None, None), (False, 0)):
        assert points(there, accepted, source=elsewhere)["where"] == expected
    assert points(report(where="evaluate"), True, source=elsewhere)["where"] == 0
    assert points(there, True, source="not ( python")["where"] == 0


@pytest.mark.parametrize(
    ("first_wrong", "expected"),
    [
        ("signal: loss, step: 2, value: 31.84", 3),  # off by one
        ("signal: lr, step: 0, value: 10", 3),
        ("signal: val_accuracy, epoch: 0, value: 0.1", 3),
        ("signal: loss, step: 0, value: 2.3025", 0),  # as in a healthy run
        ("signal: loss, step: 1, value: 31.9", 0),  # not in the log
        ("signal: val_accuracy, epoch: 4, value: 0.10", 0),  # long after the first sign
        ("signal: no_such, step: 1, value: 1", 0),
        ("check: lr_find, outcome: recovers", 0),  # the log shows a sign
    ],
)
def test_the_first_sign_is_near_the_first_departure_of_its_signal(first_wrong: str, expected: float) -> None:
    assert points(report(first_wrong=first_wrong))["first_wrong"] == expected


def test_a_value_is_wrong_too_if_a_right_fix_elsewhere_changes_it() -> None:
    evidence = recorded_evidence("huge_lr")
    text = report(first_wrong="signal: lr, step: 0, value: 10")
    as_reference = {"reference": evidence.broken}  # the reference keeps the learning rate
    for accepted, earned in ((True, (3, 6)), (False, (0, 0))):
        changed = recorded_evidence("huge_lr", report=text, **as_reference)
        assert points(text, accepted, **as_reference)["first_wrong"] == earned[0]
        [key] = (check for check in judge_diagnostics(changed, accepted) if check.id == "key_signal")
        assert key.points == earned[1]


def test_a_small_difference_is_a_first_sign_where_it_begins() -> None:
    def run(*losses: float) -> LogValues:
        return LogValues([{"step": step, "epoch": step // 30, "loss": loss} for step, loss in enumerate(losses)])

    healthy = run(*[1.0] * 40)

    def signs(*losses: float) -> list[int]:
        return [place for place in range(40) if not no_first_sign("loss", place, run(*losses), healthy)]

    slow = (1.0, *[1.02] * 14, *[1.05] * 5, *[3.0] * 20)
    assert signs(*slow) == list(range(1, 22)), "until the difference is ten times as large, and one step more"
    assert signs(1.0, *[3.0] * 39) == [1, 2], "of a fault that is clear at once"
    assert signs(1.0, *[1.02] * 39) == list(range(1, 31)), "in the epoch in which it begins, and one step more"
    assert signs(*[1.02] * 10, *[1.3] * 15, *[3.0] * 15) == list(range(27)), "nobody sees two hundredths"
    said = {place: no_first_sign("loss", place, run(*slow), healthy) for place in (0, 35)}
    assert said[0] == "a healthy run has nearly the same value there (1 instead of 1)"
    assert said[35] == "loss is already wrong from step 1 on"


def test_a_check_stands_in_where_no_signal_shows_the_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanation, "trips_of", lambda _: {"audit": "some-rest"})
    evidence = recorded_evidence("huge_lr")
    for outcome, expected in (("some-rest", 3), ("all-move", 0)):
        text = report(first_wrong=f"check: audit, outcome: {outcome}")
        assert points(text, reference=evidence.broken)["first_wrong"] == expected


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (RIVALS[1], 4),
        ("{cause: Missing-Zero grad, signal: stale_grad_ratio, step: 0, value: 0}", 4),
        ("{cause: label_permute, signal: loss, step: 2, value: 6305.9}", 4),  # an observation
        (RIVALS[0], 2),  # the same twice
        ("{cause: huge_lr, signal: loss, step: 0, value: 2.3025}", 2),  # the cause itself
        ("{cause: healthy, signal: loss, step: 1, value: 31.84}", 2),
        ("{cause: bad_luck, signal: loss, step: 1, value: 31.84}", 2),
        ("{cause: missing_zero_grad, signal: stale_grad_ratio, step: 0, value: 0.2}", 2),  # not the value in the log
        ("{cause: label_permute, signal: val_accuracy, epoch: 4, value: 0.10}", 2),  # allowed
        ("{cause: missing_zero_grad, signal: loss, step: 1, value: 31.84}", 2),  # a different signal
        ("{cause: forgotten_eval, signal: eval_buffer_change, epoch: 0, value: 0}", 2),  # nothing suggests it
    ],
)
def test_a_rival_is_ruled_out_by_a_true_fact_that_contradicts_it(second: str, expected: float) -> None:
    assert points(report(rivals=(RIVALS[0], second)))["ruled_out"] == expected


def test_a_rival_is_ruled_out_by_the_outcome_of_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "huge_lr": {"loss_form": "agrees", "lr_find": "above", "data": "sound", "serving": "not-served"},
        "loss_sum": {"loss_form": "grows", "lr_find": "above", "serving": "differs"},
        "label_permute": {"lr_find": "flat", "data": "sound", "loss_form": "no-reference"},
        "missing_zero_grad": {"lr_find": "within"},
    }
    monkeypatch.setattr(explanation, "outcomes_of", lambda recipe: found[recipe.id])
    monkeypatch.setattr("harness.checks.core.outcomes.outcomes_of", lambda recipe: found.get(recipe, {}))

    def ruled_out(cause: str, check: str, outcome: str) -> float | None:
        second = f"{{cause: {cause}, check: {check}, outcome: {outcome}}}"
        return points(report(rivals=(RIVALS[1], second)))["ruled_out"]

    assert ruled_out("loss_sum", "loss_form", "agrees") == 4
    assert ruled_out("loss_sum", "loss-form", "agrees") == 4
    assert ruled_out("missing_zero_grad", "lr_find", "above") == 4, "it is sound there"
    assert ruled_out("loss_sum", "loss_form", "grows") == 2, "untrue of this run"
    assert ruled_out("loss_sum", "lr_find", "above") == 2, "it does not contradict"
    assert ruled_out("label_permute", "data", "sound") == 2, "both are sound"
    assert ruled_out("label_permute", "loss_form", "agrees") == 2, "there nothing could be judged"
    assert ruled_out("loss_sum", "serving", "not-served") == 2, "here nothing could be judged"
    assert ruled_out("missing_zero_grad", "loss_form", "agrees") == 2, "the seed decides there"
    assert ruled_out("loss_sum", "audit", "all-move") is None, "what it finds is not recorded"


def test_the_first_loss_stands_for_its_check(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"huge_lr": {"first_loss": "chance"}, "label_permute": {"first_loss": "high"}}
    monkeypatch.setattr(explanation, "outcomes_of", lambda recipe: found[recipe.id])
    monkeypatch.setattr("harness.checks.core.outcomes.outcomes_of", lambda recipe: found.get(recipe, {}))
    for cause, step, expected in (("label_permute", 0, 4), ("missing_zero_grad", 0, 2)):
        second = f"{{cause: {cause}, signal: loss, step: {step}, value: 2.3025}}"
        assert points(report(rivals=(RIVALS[0], second)))["ruled_out"] == expected


def test_the_form_is_four_filled_headings_and_500_words() -> None:
    assert points(report(GERMAN + "wort " * 500))["form"] == 0
    assert points(report(GERMAN.replace("## Nachweis", "")))["form"] == 0
    assert points(report("# A\n\n# B\n\n# C\n\n# D\n"))["form"] == 0


def test_without_logs_the_instructor_decides() -> None:
    broken = points(report(), broken=Replay(status="XX", message="why"))
    assert (broken["cause"], broken["first_wrong"], broken["ruled_out"]) == (3, None, None)
    assert points(report(), reference=Replay(status="XX", message="why"))["first_wrong"] is None


def test_a_healthy_run_is_proved_by_causes_of_four_areas_and_two_checks() -> None:
    case = CaseTable(id="a1", experiment="digits_mlp").case()
    run = recorded_replay("digits_mlp")
    loss, val_loss = run.records()[0]["loss"], run.records()[-1]["val_loss"]
    checks = {
        "pipeline": "cause: blank_pixels, check: data, outcome: sound",
        "model": "cause: double_softmax, check: loss-form, outcome: agrees",
        "optimizer": "cause: huge_lr, check: learning-rate, outcome: usual",
        "evaluation": "cause: forgotten_eval, check: modes, outcome: agree",
    }
    values = {
        "loop": "cause: missing_zero_grad, signal: stale_grad_ratio, step: 0, value: 0",
        "pipeline": f"cause: unnormalized_input, signal: loss, step: 0, value: {loss!r}",
        "data": f"cause: label_noise, signal: val_loss, epoch: 4, value: {val_loss!r}",
    }
    foreign = "cause: forgotten_eval, signal: eval_buffer_change, epoch: 0, value: 0"  # of another experiment

    def ruled_out(*lines: str) -> float | None:
        rivals = "".join(f"  - {{{line}}}\n" for line in lines) or "  []\n"
        cited = "evidence:\n  - {run: broken, signal: loss, step: 2, value: 1}\n"
        text = f"---\ndiagnosis:\n  - cause: healthy\nruled_out:\n{rivals}{cited}---\n{GERMAN}"
        found = judge_explanation(own_evidence(case, case.broken_source(), run, run, run, text), True)
        return {check.id: check.points for check in found}["ruled_out"]

    assert ruled_out(*checks.values()) == 4
    assert ruled_out(values["loop"], values["pipeline"], checks["model"], checks["optimizer"]) == 4
    assert ruled_out(*values.values(), checks["model"]) == 3, "one check"
    assert ruled_out(*values.values()) == 2, "no check"
    assert ruled_out(values["pipeline"], *checks.values()) == 4, "a check of an area goes before a value"
    assert ruled_out(checks["pipeline"], "cause: split_norm_mismatch, check: preparation, outcome: alike") == 1, (
        "one area"
    )
    assert ruled_out(foreign, *list(checks.values())[:3]) == 3
    assert ruled_out(*[foreign.replace("epoch: 0", f"epoch: {epoch}") for epoch in range(5)]) == 0
    late = [
        "cause: bad_luck, check: data, outcome: sound",
        *(f"cause: luck_{n}, check: data, outcome: sound" for n in "abc"),
    ]
    assert ruled_out(*late, *checks.values()) == 2, "the first six are read"
    assert ruled_out() == 0
