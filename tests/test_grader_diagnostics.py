import dataclasses
import json
from typing import Any

import pytest
from grading import claim, evidence, replay

from grader.replay.replay import Evaluation, Replay, SplitFigures
from grader.score.belief import flattery
from grader.score.diagnostics import judge_diagnostics
from grader.score.evidence import Evidence
from grader.syntax.plain_edit import Suspicion
from harness.recipe import load_recipe

pytestmark = pytest.mark.usefixtures("torch_as_found")
RECIPE = "huge_lr"
WHOLE = {
    "broken_complete": 8,
    "fixed_complete": 4,
    "broken_cited": 6,
    "key_signal": 6,
    "recovery": 4,
    "shown": 2,
}


def points(of: Evidence) -> dict[str, float | None]:
    return {check.id: check.points for check in judge_diagnostics(of)}


def report(*lines: str, body: str = "# Symptom\n\nIt explodes.\n\n```\nloss 2.30\n```\n") -> str:
    """A report with this evidence, and a diagnosis that cites a check and no value."""
    cited = "".join(f"  - {{{line}}}\n" for line in lines)
    first = "    first_wrong: {check: audit, outcome: all-move}\n"
    diagnosis = f"diagnosis:\n  - cause: huge_lr\n    where: build_optimizer\n{first}"
    return f"---\n{diagnosis}ruled_out: []\nevidence:\n{cited}---\n\n{body}"


def cited(of: Evidence, run: str, signal: str) -> str:
    """A line of evidence with the number that the log of the test's own training holds."""
    records = of.replay(run).records()  # type: ignore[arg-type]
    record = records[3] if signal in records[3] else records[-1]
    place = f"step: {record['step']}" if "step" in record else f"epoch: {record['epoch']}"
    return f"run: {run}, signal: {signal}, {place}, value: {record[signal]!r}"


def honest(**changes: Any) -> Evidence:
    plain = evidence(RECIPE)
    lines = (cited(plain, "broken", "loss"), cited(plain, "fixed", "val_accuracy"))
    return dataclasses.replace(plain, **{"report": report(*lines), **changes})


def test_an_honest_submission_earns_everything() -> None:
    assert points(honest()) == WHOLE


def test_a_log_without_one_batchs_activations_is_not_complete() -> None:
    plain = honest()
    lines = plain.broken.log.splitlines(keepends=True)
    record = json.loads(lines[5])
    record["activations"] = {"first": record["activations"]["first"]}
    lines[5] = json.dumps(record) + "\n"
    claims = {**plain.claims, "broken": claim(plain.broken, log="".join(lines).encode())}
    found = judge_diagnostics(dataclasses.replace(plain, claims=claims))
    assert found[0].points == 0
    assert "step 5" in found[0].reason


@pytest.mark.parametrize(
    "log", [b"", b"\xff\xfe", b"{}\n", b"[1]\n", b'{"step": 0}\n', b'{"step": {}, "grad_mean": 3}\n']
)
def test_a_log_that_is_none_is_not_complete(log: bytes) -> None:
    plain = honest()
    claims = {**plain.claims, "fixed": claim(plain.fixed, log=log)}
    assert points(dataclasses.replace(plain, claims=claims)) == {**WHOLE, "fixed_complete": 0}


def test_a_log_that_ends_early_is_not_complete() -> None:
    plain = honest()
    records = plain.fixed.log.splitlines(keepends=True)
    half = "".join(records[: len(records) * 2 // 5])
    claims = {**plain.claims, "fixed": claim(plain.fixed, log=half.encode())}
    assert points(dataclasses.replace(plain, claims=claims))["fixed_complete"] == 0


def test_cited_numbers_are_held_against_the_replay_and_not_the_claim() -> None:
    plain = honest()
    lie = "run: broken, signal: loss, step: 3, value: 0.123"
    records = [json.loads(line) for line in plain.broken.log.splitlines()]
    records[3]["loss"] = 0.123
    log = "".join(f"{json.dumps(record)}\n" for record in records).encode()
    claims = {**plain.claims, "broken": claim(plain.broken, log=log)}
    text = report(lie, cited(plain, "fixed", "val_accuracy"))
    found = points(dataclasses.replace(plain, claims=claims, report=text))
    assert (found["broken_cited"], found["key_signal"]) == (0, 0)


def test_a_true_number_that_tells_nothing_is_no_key_signal() -> None:
    plain = honest()
    text = report(cited(plain, "broken", "optimizer_steps"), cited(plain, "fixed", "val_accuracy"))
    found = points(dataclasses.replace(plain, report=text))
    assert (found["broken_cited"], found["key_signal"]) == (6, 0)


def test_a_number_that_a_healthy_run_has_there_as_well_is_no_key_signal() -> None:
    plain = honest()
    first = plain.broken.records()[0]["loss"]
    assert first == plain.reference.records()[0]["loss"]
    same = f"run: broken, signal: loss, step: 0, value: {first!r}"
    recovered = cited(plain, "fixed", "val_accuracy")
    found = points(dataclasses.replace(plain, report=report(same, recovered)))
    assert (found["broken_cited"], found["key_signal"]) == (6, 0)
    # It is enough if another number tells; without a healthy run nothing can be said.
    both = report(same, cited(plain, "broken", "loss"), recovered)
    assert points(dataclasses.replace(plain, report=both))["key_signal"] == 6
    alone = dataclasses.replace(
        plain, report=report(same, recovered), reference=Replay(status="XX", message="why")
    )
    assert points(alone)["key_signal"] is None


def test_a_step_that_is_off_by_one_costs_once() -> None:
    plain = honest()
    loss = plain.broken.records()[3]["loss"]
    text = report(
        f"run: broken, signal: loss, step: 4, value: {loss!r}", cited(plain, "fixed", "val_accuracy")
    )
    assert points(dataclasses.replace(plain, report=text)) == {**WHOLE, "broken_cited": 0}


@pytest.mark.parametrize(("broken", "fixed", "expected"), [(1e-12, 0.0, 4), (0.0, 0.0, 0), (0.0, 1e-3, 0)])
def test_an_exact_zero_is_a_recovery_however_small_it_was(
    broken: float, fixed: float, expected: float
) -> None:
    plain = honest()
    runs = [
        told(run, "stale_grad_ratio", value) for run, value in ((plain.broken, broken), (plain.fixed, fixed))
    ]
    line = f"run: fixed, signal: stale_grad_ratio, step: 3, value: {fixed}"
    text = report(cited(plain, "broken", "loss"), line)
    assert (
        points(dataclasses.replace(plain, report=text, broken=runs[0], fixed=runs[1]))["recovery"] == expected
    )


@pytest.mark.parametrize(("signal", "expected"), [("grad_mean", 0), ("val_accuracy", 6), ("lr", 6)])
def test_a_key_signal_departs_from_the_healthy_run(signal: str, expected: float) -> None:
    plain = honest()
    line = "run: broken, signal: grad_mean, step: 0, value: 1" if signal == "grad_mean" else ""
    text = report(line or cited(plain, "broken", signal), cited(plain, "fixed", "val_accuracy"))
    assert points(dataclasses.replace(plain, report=text))["key_signal"] == expected


def test_a_number_that_the_broken_run_has_there_as_well_shows_no_recovery() -> None:
    plain = honest()
    same = dataclasses.replace(plain, broken=plain.fixed)
    assert points(plain)["recovery"] == 4
    assert points(same)["recovery"] == 0


def test_a_fixed_run_that_did_not_recover_shows_no_recovery() -> None:
    plain = honest()
    ill = dataclasses.replace(plain, fixed=plain.broken)
    text = report(cited(plain, "broken", "loss"), cited(ill, "fixed", "val_accuracy"))
    assert points(dataclasses.replace(ill, report=text))["recovery"] == 0


def test_recovery_by_suspicious_code_waits_for_the_instructor_unless_the_bytes_tell() -> None:
    suspicion = (Suspicion(line=1, message="line 1 changes torch.nn"),)
    assert points(honest(suspicions=suspicion)) == WHOLE
    plain = honest()
    other = plain.fixed.model_copy(update={"checkpoint_sha256": "0" * 64})
    assert points(honest(suspicions=suspicion, fixed=other)) == {**WHOLE, "recovery": None}
    assert points(honest(fixed=other)) == WHOLE


@pytest.mark.parametrize("text", [None, "", "no front matter", "---\n[\n---\n"])
def test_without_a_report_nothing_is_cited(text: str | None) -> None:
    lost = dict.fromkeys(("broken_cited", "key_signal", "recovery", "shown"), 0)
    assert points(honest(report=text)) == {**WHOLE, **lost}


def test_a_replay_that_failed_through_us_leaves_the_numbers_open() -> None:
    found = points(honest(broken=Replay(status="XX", message="why")))
    assert (found["broken_cited"], found["key_signal"], found["recovery"]) == (None, None, None)


def test_a_picture_from_elsewhere_shows_nothing() -> None:
    plain = evidence(RECIPE)
    lines = (cited(plain, "broken", "loss"), cited(plain, "fixed", "val_accuracy"))
    text = report(*lines, body="# Symptom\n\n![](https://example.org/plot.png)\n")
    assert points(dataclasses.replace(plain, report=text))["shown"] == 0


def told(fixed: Replay, signal: str, value: float, *, last: bool = False) -> Replay:
    """The replay of a fix whose log has another number for a signal, in every record or in the last."""
    records = [json.loads(line) for line in fixed.log.splitlines()]
    for record in records[-1:] if last else records:
        if signal in record:
            record[signal] = value
    log = "".join(json.dumps(record) + "\n" for record in records)
    return fixed.model_copy(update={"log": log, "checkpoint_sha256": "0" * 64})


def unhealthy(fixed: Replay) -> Replay:
    """The same weights, as the trusted evaluator would find ones that learnt nothing."""
    figures = SplitFigures(loss=2.31, accuracy=0.1)
    return fixed.model_copy(
        update={"evaluation": Evaluation(heldout=figures, validation=figures, training=figures)}
    )


@pytest.mark.parametrize("signal", ["val_accuracy", "val_loss", "loss"])
def test_a_recovery_that_the_evaluator_does_not_find_waits_for_the_instructor(signal: str) -> None:
    """`return {"val_loss": 0.2, "val_accuracy": 0.94}` is plain code, and so is a step that returns 0.3."""
    honest_run = replay(RECIPE, load_recipe(RECIPE).healthy_source())
    worse = {"val_accuracy": 0.1, "val_loss": 2.3, "loss": 2.3}
    lying = unhealthy(honest_run)
    for other, value in worse.items():
        if other != signal:
            lying = told(lying, other, value)
    found = evidence(RECIPE, fixed=told(lying, "no such signal", 0.0))
    assert "the trusted evaluator finds" in flattery(found)
    # What says no more than is found flatters nobody.
    assert flattery(evidence(RECIPE, fixed=told(lying, signal, worse[signal]))) == ""
    assert flattery(evidence(RECIPE, fixed=told(honest_run, "no such signal", 0.0))) == ""


def test_a_recovery_that_was_made_up_is_open() -> None:
    lying = unhealthy(told(replay(RECIPE, load_recipe(RECIPE).healthy_source()), "no such signal", 0.0))
    found = {check.id: check for check in judge_diagnostics(evidence(RECIPE, fixed=lying))}
    assert found["recovery"].points is None
    assert "The instructor decides" in found["recovery"].reason


def test_a_network_that_the_evaluator_does_not_know_shows_no_recovery_by_its_own_word() -> None:
    fixed = told(replay(RECIPE, load_recipe(RECIPE).healthy_source()), "no such signal", 0.0)
    unknown = fixed.model_copy(update={"evaluation": Evaluation(problem="it has 6 tensors")})
    assert "does not know the network" in flattery(evidence(RECIPE, fixed=unknown))
