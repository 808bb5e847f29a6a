import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.grading import claim, evidence, replay, replay_with

from grader.intake.submission import Claim
from grader.replay.replay import Replay
from grader.score.diagnostics import judge_diagnostics
from grader.score.evidence import Evidence
from grader.score.reproducibility import judge_reproducibility, trusted_log
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import Symptom
from harness.run.settings import RunSettings
from harness.workspace.workspace import Run

pytestmark = pytest.mark.usefixtures("torch_as_found")
RECIPE = "huge_lr"
# Written under qemu-aarch64 with the wheels of PyTorch 2.8 and NumPy 2.4 for 64-bit Arm.
OTHER_MACHINE = Path(__file__).parent / "data" / "other_machine"


def points(of: Evidence) -> dict[str, float | None]:
    return {check.id: check.points for check in judge_reproducibility(of)}


WHOLE = {"archive": 3, "broken_log": 8, "broken_checkpoint": 7, "fixed_log": 9, "fixed_checkpoint": 8}


def test_an_honest_submission_earns_everything() -> None:
    assert points(evidence(RECIPE)) == WHOLE


@pytest.mark.parametrize("changes", [{"missing": ("run.html",)}, {"command_problem": "There is no command.txt."}])
def test_a_file_or_a_command_that_is_missing_costs_the_archive(changes: dict[str, Any]) -> None:
    assert points(evidence(RECIPE, **changes)) == {**WHOLE, "archive": 0}


def test_a_log_that_was_edited_costs_its_points_and_the_place_is_named() -> None:
    honest = evidence(RECIPE)
    lines = honest.fixed.log.splitlines(keepends=True)
    lines[7] = json.dumps({**json.loads(lines[7]), "loss": 0.01}) + "\n"
    claims = {**honest.claims, "fixed": claim(honest.fixed, log="".join(lines).encode())}
    forged = dataclasses.replace(honest, claims=claims)
    assert points(forged) == {**WHOLE, "fixed_log": 0}
    reason = judge_reproducibility(forged)[3].reason
    assert "line 8" in reason
    assert "loss" in reason


def test_another_checkpoint_costs_its_points_and_what_is_not_there_earns_nothing() -> None:
    honest = evidence(RECIPE)
    claims = {**honest.claims, "broken": claim(honest.broken, checkpoint_sha256="0" * 64)}
    assert points(dataclasses.replace(honest, claims=claims)) == {**WHOLE, "broken_checkpoint": 0}
    claims = {**honest.claims, "fixed": claim(honest.fixed, log=None, checkpoint_sha256=None)}
    found = points(dataclasses.replace(honest, claims=claims))
    assert found == {**WHOLE, "fixed_log": 0, "fixed_checkpoint": 0}


@pytest.mark.parametrize(("status", "expected"), [("RE", 0), ("TO", 0), ("XX", None)])
def test_a_replay_that_failed_is_lost_or_open(status: str, expected: float | None) -> None:
    fixed = Replay.model_validate({"status": status, "message": "why"})
    found = points(evidence(RECIPE, fixed=fixed))
    assert found == {**WHOLE, "fixed_log": expected, "fixed_checkpoint": expected}


def on_another_class(honest: Evidence, broken_log: bytes, **changes: Any) -> Evidence:
    """Return a submission from another platform class with this broken log."""
    claims: dict[Run, Claim] = {
        "broken": claim(honest.broken, log=broken_log, checkpoint_sha256="1" * 64),
        "fixed": claim(honest.fixed, checkpoint_sha256="0" * 64),
    }
    again: dict[Run, Replay] = {"broken": honest.broken, "fixed": honest.fixed}
    return dataclasses.replace(honest, **{"claims": claims, "same_class": False, "again": again, **changes})


def changed(log: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """Return a log after a change of each record's values."""
    lines = log.splitlines()
    return "".join(json.dumps({**json.loads(line), **change(json.loads(line))}) + "\n" for line in lines).encode()


def scaled(log: str, factor: float, since: int = 0) -> bytes:
    """Return a log whose losses are multiplied by a factor from the step `since` on."""

    def change(record: dict[str, Any]) -> dict[str, Any]:
        if record.get("step", 0) < since or isinstance(record.get("loss"), str):  # NaN stays
            return {}
        return {"loss": record["loss"] * factor} if "loss" in record else {"val_loss": record["val_loss"] * factor}

    return changed(log, change)


def test_another_platform_class_is_compared_by_its_figures() -> None:
    honest = evidence(RECIPE)
    drifted = scaled(honest.broken.log, 1 + 1e-6)
    there = on_another_class(honest, drifted)
    assert points(there) == WHOLE
    # If a run does not repeat here, similar values do not help. Without a second replay, the item stays open.
    other = honest.fixed.model_copy(update={"log_sha256": "2" * 64})
    restless = on_another_class(honest, drifted, again={**there.again, "fixed": other})
    assert points(restless) == {**WHOLE, "fixed_log": WHOLE["fixed_log"], "fixed_checkpoint": 0}
    assert points(on_another_class(honest, drifted, again={}))["broken_log"] is None
    # A healthy log in place of the broken log, or the reverse, is not within the bands.
    assert points(on_another_class(honest, honest.reference.log.encode()))["broken_log"] == 0
    swapped = {**there.claims, "fixed": claim(honest.broken, checkpoint_sha256="0" * 64)}
    assert points(on_another_class(honest, drifted, claims=swapped))["fixed_log"] == 0


@pytest.mark.parametrize("run", ["broken", "fixed"])
def test_the_log_of_an_emulated_arm_processor_is_within_the_bands(run: Run) -> None:
    honest = evidence(RECIPE)
    log = (OTHER_MACHINE / f"{RECIPE}.{run}.log").read_bytes()
    assert log != honest.replay(run).log.encode()
    there = on_another_class(honest, honest.broken.log.encode())
    there = dataclasses.replace(there, claims={**there.claims, run: claim(honest.replay(run), log=log)})
    assert points(there) == WHOLE
    assert trusted_log(there, run) == log.decode()
    assert trusted_log(dataclasses.replace(there, same_class=True), run) == honest.replay(run).log


def another_fix() -> Replay:
    return replay(RECIPE, load_recipe(RECIPE).healthy_source().replace("lr=0.1", "lr=0.09"))


def another_seed() -> Replay:
    recipe = load_recipe(RECIPE)
    return replay_with(recipe, recipe.healthy_source(), RunSettings(seed=7, dataset=recipe.dataset))


FORGED: dict[str, Callable[[str], bytes]] = {
    "of another fix": lambda log: another_fix().log.encode(),
    "of another seed": lambda log: another_seed().log.encode(),
    "scaled by 2 %": lambda log: scaled(log, 1.02),
    "invented from step 40 on": lambda log: scaled(log, 1.05, since=40),
    "with a validation of its own": lambda log: changed(
        log, lambda record: {"val_accuracy": 0.99} if "val_accuracy" in record else {}
    ),
    "without its last epoch": lambda log: b"".join(log.encode().splitlines(keepends=True)[:-1]),
    "cut short": lambda log: log.encode()[:-9],
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_log_of_another_machine_earns_nothing(name: str) -> None:
    honest = evidence(RECIPE)
    claims = {**honest.claims, "fixed": claim(honest.fixed, log=FORGED[name](honest.fixed.log))}
    forged = on_another_class(honest, honest.broken.log.encode(), claims=claims)
    found = points(forged)
    assert (found["fixed_log"], found["fixed_checkpoint"]) == (0, 8 if found["fixed_checkpoint"] else 0)
    reason = judge_reproducibility(forged)[3].reason
    assert reason.startswith("The values from your machine may differ a little from ours, but")
    assert trusted_log(forged, "fixed") == honest.fixed.log


def test_where_a_gpu_draws_its_own_dropout_the_instructor_decides() -> None:
    honest = evidence(RECIPE)
    there = on_another_class(honest, scaled(honest.broken.log, 1.02))
    assert points(there)["broken_log"] == 0
    recipe = there.recipe.model_copy(update={"title": "with dropout"})
    object.__setattr__(recipe, "broken_source", lambda: "nn.Dropout(0.1)")
    assert points(dataclasses.replace(there, recipe=recipe))["broken_log"] is None


def with_field(log: str, name: str, value: object) -> bytes:
    lines = log.splitlines(keepends=True)
    lines[0] = json.dumps({**json.loads(lines[0]), name: value}) + "\n"
    return "".join(lines).encode()


@pytest.mark.parametrize(
    ("name", "value"), [("loss", "abc"), ("loss", 10**400), ("step", [1]), ("epoch", None), ("activations", 3)]
)
def test_a_claimed_log_that_is_refused_costs_its_points_with_a_reason(name: str, value: object) -> None:
    honest = evidence(RECIPE)
    forged = on_another_class(honest, with_field(honest.broken.log, name, value))
    assert points(forged) == {**WHOLE, "broken_log": 0, "broken_checkpoint": 0}
    assert "the log cannot be read" in judge_reproducibility(forged)[1].reason
    complete = judge_diagnostics(forged, False)[0]
    assert complete.points == 0
    assert "metrics.log, line 1" in complete.reason


def test_a_blank_line_or_other_line_ends_cost_the_log_and_say_where() -> None:
    honest = evidence(RECIPE)
    log = honest.broken.log
    first, rest = log.split("\n", 1)
    for text, where, unreadable in (
        (f"\n{log}", "metrics.log, line 1 is blank", "line 1 is not a record of a run (the line is blank)"),
        (f"{first}\n\n{rest}", "metrics.log, line 2 is blank", "line 2 is not a record of a run (the line is blank)"),
        (
            f"{first}\n \t\n{rest}",
            "metrics.log, line 2 is blank",
            "line 2 is not a record of a run (the line is blank)",
        ),
        (f"{log}\n", "metrics.log has", "the line is blank"),
        (log.replace("\n", "\r\n"), "metrics.log, line 1 (step 0) is written differently", "Each of "),
        (f"\r\n{log}", "metrics.log, line 1 is blank", "line 1 is not a record of a run (the line is blank)"),
    ):
        claims = {**honest.claims, "broken": claim(honest.broken, log=text.encode())}
        forged = dataclasses.replace(honest, claims=claims)
        repeats = judge_reproducibility(forged)[1]
        assert (repeats.points, repeats.reason.startswith(where)) == (0, True), repeats.reason
        assert unreadable in judge_diagnostics(forged, False)[0].reason
        found = judge_reproducibility(on_another_class(honest, text.encode()))[1]
        assert found.points == (8 if unreadable == "Each of " else 0)


@pytest.mark.parametrize("name", ["loss", "val_loss", "val_loss_repeated", "val_accuracy_eval_mode", "step", "epoch"])
@pytest.mark.parametrize("value", [None, "NaN", "absent"])
def test_a_number_that_no_log_has_is_judged(name: str, value: object) -> None:
    honest = evidence(RECIPE)
    lines = [json.loads(line) for line in honest.broken.log.splitlines()]
    for record in lines:
        record |= {"val_loss_repeated": 1.0, name: value} if "step" not in record or name == "loss" else {}
        if value == "absent":
            record.pop(name, None)
    text = "".join(f"{json.dumps(record)}\n" for record in lines)
    symptom = Symptom(signal="eval_disagreement", reduce="max", above=5.0, says="evaluations disagree")
    recipe = honest.recipe.model_copy(update={"symptoms": (symptom,)})
    forged = dataclasses.replace(on_another_class(honest, text.encode()), recipe=recipe)
    assert None not in points(forged).values()
    # Suspicious code may write the same log in the sandbox.
    if name not in ("step", "epoch"):
        own = honest.fixed.model_copy(update={"log": text})
        again = {"broken": honest.broken, "fixed": own}
        assert points(on_another_class(honest, text.encode(), fixed=own, again=again))["fixed_log"] == 0
        assert len(judge_diagnostics(dataclasses.replace(honest, fixed=own), None)) == 6


def test_only_the_symptoms_of_the_data_set_that_was_used_are_compared() -> None:
    honest = evidence(RECIPE)
    last = honest.broken.records()[-1]["val_loss"]

    def drift(record: dict[str, Any]) -> dict[str, Any]:
        """Let values drift as in a run that diverges, until the last validation differs."""
        if "loss" in record:
            return {"loss": record["loss"] * (1 + min(0.5, 1e-7 * 2.0 ** record["step"]))}
        return {"val_loss": last + 1000} if record["epoch"] == 4 else {}

    symptom = Symptom(signal="val_loss", reduce="max", above=last + 500, says="the loss is enormous")
    drifted = on_another_class(honest, changed(honest.broken.log, drift))
    for dataset, expected in (("digits", 0), ("mnist", 8)):
        declared = symptom.model_copy(update={"dataset": dataset})
        recipe = honest.recipe.model_copy(update={"symptoms": (declared,)})
        assert points(dataclasses.replace(drifted, recipe=recipe))["broken_log"] == expected
