"""How scripts are judged: the checks of the library, and the behaviour in three observed runs."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from harness.behaviour.compare import Behaviour, differences, independent_aspects
from harness.canonical_setup import run_environment
from harness.checks import checks_for, load_check, run_checks, script_checks
from harness.checks.core.library import load_check_for
from harness.errors import UserError
from harness.recipes.recipe import experiment_source
from harness.run.settings import RunSettings
from trainwreck.catalogue import CHECKS

SCRIPT = experiment_source("orders_table")
SETTINGS = RunSettings(seed=42, dataset="shipments")
OWN = {"checkpoint", "resume"}  # the checks of scripts that the library does not have


def test_the_checks_of_scripts_are_those_of_the_library() -> None:
    kinds = {"alarm": "mechanism", "advice": "consequence", "note": "sound"}
    of_library = {name.replace("-", "_") for name in CHECKS} - {"repeat"}
    assert {*script_checks()} == of_library | OWN
    for name in of_library:
        check, own = script_checks()[name], CHECKS[name.replace("_", "-")]
        assert check.question == own.question
        expected = {"sound": "sound"} | {id: kinds[one.level] for id, one in own.outcomes.items()}
        assert {one.id: one.kind for one in check.outcomes} == expected
        assert {one.id for one in load_check(name).every_outcome} >= expected.keys()


def test_the_documentation_gives_their_number() -> None:
    text = (Path(__file__).parents[1] / "docs" / "harness.md").read_text(encoding="utf-8")
    assert f"measured by the {len(script_checks()) - len(OWN)} checks of the library" in " ".join(text.split())


def test_a_script_has_other_checks_than_an_experiment_with_functions() -> None:
    functions = experiment_source("digits_mlp")
    assert "lr_find" in checks_for(functions)
    assert "lr_find" not in checks_for(SCRIPT)
    assert "sound" in {one.id for one in load_check_for("gradients", SCRIPT).outcomes}
    assert "sound" not in {one.id for one in load_check_for("gradients", functions).outcomes}
    with pytest.raises(UserError, match="lr-find cannot measure a script"):
        run_checks(SCRIPT, SETTINGS, ["lr_find"])


def test_the_checks_find_a_fault_of_a_script_and_name_its_place() -> None:
    broken = SCRIPT.replace("            optimizer.zero_grad(set_to_none=True)\n", "")
    assert broken != SCRIPT
    found = run_checks(broken, SETTINGS, ["gradients", "modes"])
    assert {name: one.outcome for name, one in found.items()} == {"gradients": "stale", "modes": "sound"}
    assert "experiment.py" in str(found["gradients"].figures["place"])


def test_a_script_that_fails_is_the_students_mistake() -> None:
    with pytest.raises(UserError, match="ZeroDivisionError"):
        run_checks(SCRIPT.replace("        model.train()\n", "        1 / 0\n"), SETTINGS, ["modes"])


@cache
def behaviour(source: str) -> Behaviour:
    """Measure a script in a process of its own, as a student's machine does."""
    program = (
        "import json, sys\n"
        "from harness.behaviour.child import behaviour_of\n"
        "from harness.run.settings import RunSettings\n"
        "source = sys.stdin.read()\n"
        "print(json.dumps(behaviour_of(source, RunSettings(seed=42, dataset='shipments'))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=source,
        env=run_environment("portable", {**os.environ}),
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    found: Behaviour = json.loads(done.stdout.splitlines()[-1])
    return found


INDENT, CLEAR = 12 * " ", "optimizer.zero_grad(set_to_none=True)\n"
EDITS = {
    "another rate": ("LR = 3e-3\n", "LR = 2e-3\n", ("update rule",)),
    "the same gradient, cleared later": (
        f"{INDENT}{CLEAR}{INDENT}loss.backward()\n{INDENT}optimizer.step()\n",
        f"{INDENT}loss.backward()\n{INDENT}optimizer.step()\n{INDENT}{CLEAR}",
        (),
    ),
    "a metric of logits as probabilities": ("((logits > 0) ==", "((logits > 0.5) ==", ("validation",)),
    "a loss that is summed": (
        "F.binary_cross_entropy_with_logits(model(numbers, categories), labels)\n",
        'F.binary_cross_entropy_with_logits(model(numbers, categories), labels, reduction="sum")\n',
        ("losses",),
    ),
    "a state that a resumed run lacks": ('        order.set_state(ckpt["order"])\n', "", ("resuming",)),
    "a network in eval mode": ("        model.train()\n", "        model.eval()\n", ("modes", "outputs")),
}


@pytest.mark.parametrize("edit", [pytest.param(name, marks=pytest.mark.slow) for name in EDITS])
def test_an_edit_changes_the_aspect_that_it_is_about(edit: str) -> None:
    find, replace, aspects = EDITS[edit]
    assert SCRIPT.count(find) == 1
    found = independent_aspects(differences(behaviour(SCRIPT.replace(find, replace)), behaviour(SCRIPT)))
    assert found == aspects
