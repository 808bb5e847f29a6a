import dataclasses
import json
from typing import Any

import pytest
from helpers.grading import claim, evidence

from grader.replay.replay import Replay
from grader.score.diagnostics import judge_diagnostics
from grader.score.evidence import Evidence

pytestmark = pytest.mark.usefixtures("torch_as_found")
RECIPE = "huge_lr"
WHOLE = {"broken_complete": 8, "fixed_complete": 4, "broken_cited": 6, "key_signal": 6, "recovery": 4, "shown": 2}


def points(of: Evidence, accepted: bool | None = True) -> dict[str, float | None]:
    return {check.id: check.points for check in judge_diagnostics(of, accepted)}


def report(*lines: str, body: str = "# Symptom\n\nIt explodes.\n\n```\nstep 1: loss 31.8\n```\n") -> str:
    """Return a report with this evidence, and with a diagnosis that cites a check but no value."""
    cited = "".join(f"  - {{{line}}}\n" for line in lines)
    first = "    first_wrong: {check: audit, outcome: all-move}\n"
    diagnosis = f"diagnosis:\n  - cause: huge_lr\n    where: build_optimizer\n{first}"
    return f"---\n{diagnosis}ruled_out: []\nevidence:\n{cited}---\n\n{body}"


def cited(of: Evidence, run: str, signal: str) -> str:
    """Return a line of evidence with the value from the log of this test's own training."""
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
    lines[5] = json.dumps({**json.loads(lines[5]), "activations": {}}) + "\n"
    claims = {**plain.claims, "broken": claim(plain.broken, log="".join(lines).encode())}
    found = judge_diagnostics(dataclasses.replace(plain, claims=claims), True)[0]
    assert found.points == 0
    assert "step 5" in found.reason


@pytest.mark.parametrize("log", [b"", b"\xff\xfe", b"{}\n", b'{"step": 0}\n', b'{"step": {}, "grad_mean": 3}\n', None])
def test_a_log_that_is_none_or_ends_early_is_not_complete(log: bytes | None) -> None:
    plain = honest()
    half = plain.fixed.log.encode()[: len(plain.fixed.log) * 2 // 5]
    early = half[: half.rindex(b"\n") + 1]
    claims = {**plain.claims, "fixed": claim(plain.fixed, log=early if log is None else log)}
    assert points(dataclasses.replace(plain, claims=claims)) == {**WHOLE, "fixed_complete": 0}


def scored(*lines: str, **changes: Any) -> dict[str, float | None]:
    """Return the points of a report with this evidence."""
    return points(honest(report=report(*lines), **changes))


def test_cited_numbers_are_held_against_the_replay_and_not_the_claim() -> None:
    plain = honest()
    log = with_values(plain.broken, loss=0.123).log.encode()
    claims = {**plain.claims, "broken": claim(plain.broken, log=log)}
    lie = "run: broken, signal: loss, step: 3, value: 0.123"
    found = scored(lie, cited(plain, "fixed", "val_accuracy"), claims=claims)
    assert (found["broken_cited"], found["key_signal"]) == (0, 0)


def test_a_key_signal_departs_from_the_healthy_run() -> None:
    plain = honest()
    recovered, departs = cited(plain, "fixed", "val_accuracy"), cited(plain, "broken", "loss")
    same = f"run: broken, signal: loss, step: 0, value: {plain.reference.records()[0]['loss']!r}"
    assert scored(same, recovered) == {**WHOLE, "key_signal": 0}
    assert scored(cited(plain, "broken", "optimizer_steps"), recovered) == {**WHOLE, "key_signal": 0}
    assert scored(cited(plain, "broken", "lr"), recovered) == WHOLE
    assert scored(same, departs, recovered) == WHOLE, "it is enough if one number tells"
    without = scored(same, recovered, reference=Replay(status="XX", message="why"))
    assert without["key_signal"] is None, "without a healthy run nothing can be said"
    off_by_one = departs.replace("step: 3", "step: 4")
    assert scored(off_by_one, recovered) == {**WHOLE, "broken_cited": 0}, "a slip of the step costs once"


def test_a_fault_that_no_log_shows_asks_for_no_telling_value() -> None:
    plain = evidence(RECIPE)
    silent = dataclasses.replace(plain, broken=plain.fixed, reference=plain.fixed)
    lines = cited(silent, "broken", "loss"), cited(silent, "fixed", "val_accuracy")
    found = dataclasses.replace(silent, report=report(*lines), recipe=plain.recipe.model_copy(update={"symptoms": ()}))
    assert not found.recipe.symptoms
    shown = ("key_signal", "recovery")
    for accepted, recovery in ((True, 4), (None, None), (False, 0)):
        assert [points(found, accepted)[row] for row in shown] == [6, recovery]
    told = dataclasses.replace(found, recipe=plain.recipe)
    assert [points(told)[row] for row in shown] == [0, 0], "under these settings the fault does not show: its symptoms"


@pytest.mark.parametrize(("broken", "fixed", "expected"), [(1e-12, 0.0, 4), (0.0, 0.0, 0), (0.0, 1e-3, 0)])
def test_an_exact_zero_is_a_recovery_however_small_it_was(broken: float, fixed: float, expected: float) -> None:
    plain = honest()
    runs = {
        "broken": with_values(plain.broken, stale_grad_ratio=broken),
        "fixed": with_values(plain.fixed, stale_grad_ratio=fixed),
    }
    line = f"run: fixed, signal: stale_grad_ratio, step: 3, value: {fixed}"
    assert scored(cited(plain, "broken", "loss"), line, **runs)["recovery"] == expected


def test_a_number_of_a_run_that_did_not_recover_shows_no_recovery() -> None:
    plain = honest()
    assert points(dataclasses.replace(plain, broken=plain.fixed))["recovery"] == 0
    ill = dataclasses.replace(plain, fixed=plain.broken)
    lines = cited(plain, "broken", "loss"), cited(ill, "fixed", "val_accuracy")
    assert scored(*lines, fixed=plain.broken)["recovery"] == 0


@pytest.mark.parametrize(("accepted", "expected"), [(True, 4), (None, None), (False, 0)])
def test_recovery_counts_only_with_a_right_fix(accepted: bool | None, expected: float | None) -> None:
    assert points(honest(), accepted) == {**WHOLE, "recovery": expected}


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


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('{"step": 1, "epoch": 0, "loss": 31.84}', 2),
        ("| Schritt | Verlust |\n| --- | --- |\n| 1 | 31,84 |", 2),
        ("  - {run: broken, signal: lr, step: 0, value: 10}", 2),
        ("│ validation accuracy │ 9.7 % │ 94.2 % │", 2),
        ("step 1: activations.first.var is {first_var}", 2),
        ("step 0: loss 2.3025", 0),  # as in a healthy run
        ("step 2: loss 31.84", 0),  # of a different step
        ("step 1: loss 31.9", 0),  # of no step
        ("epoch 4: val_accuracy 0.94", 0),  # of the fixed run
        ("step 3: 1", 0),  # a number that fits any log
    ],
)
def test_a_snippet_counts_if_the_broken_run_has_its_values_and_no_healthy_one(lines: str, expected: float) -> None:
    plain = honest()
    lines = lines.replace("{first_var}", repr(plain.broken.records()[1]["activations"]["first"]["var"]))
    body = lines if lines.startswith("| S") else f"```\n{lines}\n```"
    cited_values = (cited(plain, "broken", "loss"), cited(plain, "fixed", "val_accuracy"))
    text = report(*cited_values, body=f"# Symptom\n\n{body}\n")
    assert points(dataclasses.replace(plain, report=text))["shown"] == expected
    silent = dataclasses.replace(plain, report=text, recipe=plain.recipe.model_copy(update={"symptoms": ()}))
    assert points(silent)["shown"] == 2, "if the log shows nothing, figures of a check do"
    without = dataclasses.replace(plain, report=text, reference=Replay(status="XX", message="why"))
    assert points(without)["shown"] is None


def with_values(fixed: Replay, **values: float) -> Replay:
    """Return the replay with other values of these signals in its log."""
    records = [json.loads(line) for line in fixed.log.splitlines()]
    changed = [{**record, **{k: v for k, v in values.items() if k in record}} for record in records]
    log = "".join(json.dumps(record) + "\n" for record in changed)
    return fixed.model_copy(update={"log": log, "checkpoint_sha256": "0" * 64})
