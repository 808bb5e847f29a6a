"""The causes that a report may name: their list, their file in a kit, and values of other runs that contradict them."""

import json
import math
from pathlib import Path

import pytest
from helpers.commands import mistake, succeed
from helpers.made_up_runs import make_workspace
from helpers.recorded_logs import LOGS, log_bytes

from harness.recipes.recipe import load_recipes
from harness.run.metrics_log import parse_log
from harness.submission.log_values import Cause, LogValues, causes_file, find_contradicted, load_causes
from harness.submission.report import Sign, parse_report

RECORDED = sorted({path.name.removesuffix(".log.gz") for path in LOGS.iterdir()} & load_causes().keys())


def test_every_recipe_is_a_cause_with_its_symptoms_and_healthy_is_one_too(tmp_path: Path) -> None:
    known = load_causes()
    said = succeed("causes", cwd=tmp_path).splitlines()
    shown_causes = [" ".join(filter(None, (name, cause.area, cause.says))) for name, cause in known.items()]
    assert [" ".join(line.split()) for line in said[:-1]] == shown_causes
    assert list(known) == [*(recipe.id for recipe in load_recipes()[0]), "healthy"]
    shown = {recipe.id: (recipe.symptoms, recipe.observations) for recipe in load_recipes()[0]}
    assert {name: (cause.symptom, cause.observation) for name, cause in known.items()} == shown | {"healthy": ((), ())}


def test_a_kit_has_the_same_causes_and_names_the_exercise_of_none() -> None:
    table = json.loads(causes_file())
    assert {name: Cause.model_validate_json(json.dumps(entry)) for name, entry in table.items()} == load_causes()
    assert all(set(entry) <= {"says", "area", "symptom", "observation"} for entry in table.values())


@pytest.mark.parametrize("name", RECORDED)
def test_no_value_of_a_run_contradicts_its_own_cause(name: str) -> None:
    records = parse_log(log_bytes(name).decode(), name)
    log = LogValues(records)
    symptoms = load_causes()[name].symptom
    for signal in {symptom.signal for symptom in symptoms}:
        for place, value in log.of(signal).items():
            kind = "epoch" if signal.startswith(("val", "eval")) else "step"
            sign = Sign.model_validate({"signal": signal, kind: str(place), "value": repr(value)})
            assert find_contradicted(sign, symptoms, records, log) is None


def test_nested_signals_are_found_by_their_path_and_are_not_among_the_names() -> None:
    activations = {"first": {"mean": 0.5, "var": None}, "last": {"mean": 2}}
    log = LogValues([{"step": 4, "loss": 1.0, "grad_mean": {"0.weight": 3.0}, "activations": activations}])
    assert log.names() == ["loss"]
    assert log.of("grad_mean.0.weight") == {4: 3.0}
    assert log.of("activations.last.mean") == {4: 2.0}
    assert log.of("activations.first.var") == {}
    assert log.of("grad_mean") == {}
    assert log.names() == ["loss"]


def test_a_signal_that_two_logs_have_once_is_compared_wherever_they_end() -> None:
    def ending(epochs: int, served: float) -> LogValues:
        records = [{"epoch": epoch, "val_loss": 1.0} for epoch in range(epochs)]
        return LogValues([*records, {"epoch": epochs, "val_loss": 1.0, "val_accuracy_served": served}])

    early, late = ending(2, 0.1), ending(5, 0.9)
    assert early.beside("val_accuracy_served", 2, late) == 0.9
    assert list(early.departures("val_accuracy_served", late)) == [2]
    assert early.beside("val_accuracy_served", 5, late) is None
    assert late.beside("val_loss", 4, early) is None


def test_harness_show_prints_lines_of_evidence_that_are_ready_to_copy(tmp_path: Path) -> None:
    make_workspace(tmp_path / "work")
    said = succeed("show", "huge_lr", "--step", "2", cwd=tmp_path).splitlines()
    lines = [line for line in said if line.startswith("  - {")]
    assert lines[0].startswith("  - {run: broken, signal: loss, step: 2, value: ")
    assert said[-1] == "Next: in work/huge_lr/report.md, paste the lines that you need under evidence:"
    fixed = succeed("show", "huge_lr", "--epoch", "1", "--run", "fixed", "--signal", "val_accuracy", cwd=tmp_path)
    lines.append(fixed.splitlines()[0])
    matter = "---\ndiagnosis: []\nruled_out: []\nevidence:\n" + "\n".join(lines) + "\n---\n"
    assert len(parse_report(matter).evidence) == len(lines)
    nested = succeed("show", "huge_lr", "--step", "0", "--signal", "grad_mean.1.weight", cwd=tmp_path)
    assert "signal: grad_mean.1.weight, step: 0, value: " in nested


def test_evidence_names_a_value_that_is_not_finite_as_the_log_does() -> None:
    log = LogValues([{"step": 3, "loss": math.nan, "grad_norm": -math.inf, "lr": 0.1}])
    lines = list(log.evidence("broken", 3, None))
    assert lines == [
        "  - {run: broken, signal: loss, step: 3, value: NaN}",
        "  - {run: broken, signal: grad_norm, step: 3, value: -Infinity}",
        "  - {run: broken, signal: lr, step: 3, value: 0.1}",
    ]
    matter = "---\ndiagnosis: []\nruled_out: []\nevidence:\n" + "\n".join(lines) + "\n---\n"
    assert all(log.agrees(one.value, one.signal, 3) for one in parse_report(matter).evidence)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give either --step N or --epoch N"),
        (("--step", "1", "--epoch", "1"), "give either --step N or --epoch N"),
        (("--step", "99"), "has no step 99: choose one from 0 to 11"),
        (("--step", "1", "--signal", "los"), "the log has no signal 'los': did you mean loss?"),
        (("--step", "1", "--signal", "val_loss"), "val_loss has one value for an epoch"),
        (("--step", "-1"), "'-1' is not a whole number"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    make_workspace(tmp_path / "work")
    assert message in mistake("show", "huge_lr", *words, cwd=tmp_path)
