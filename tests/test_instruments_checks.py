import importlib
from typing import get_args

import pytest

from harness.checks.checks import checked_ids, find_check, load_checks, run_checks, triage_checks
from harness.checks.table import INSTRUMENTS
from harness.errors import UserError
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

# In the order of the method; a tree that a student wrote names them, so none may change its name.
TRIAGE = (
    "overfit", "data", "first_loss", "loss_form", "lr_tenth", "gradients", "amp_off", "activations", "modes", "repeat",
)  # fmt: skip


def test_the_walk_is_the_method_in_its_order() -> None:
    assert tuple(check.id for check in triage_checks()) == TRIAGE


@pytest.mark.parametrize("check", load_checks(), ids=lambda check: check.id)
def test_what_the_code_finds_is_what_the_data_declare(check: object) -> None:
    found = find_check(getattr(check, "id"))  # noqa: B009
    module = importlib.import_module(f"harness.checks.{found.id}")
    assert {outcome.id for outcome in found.outcomes} == set(get_args(module.Outcome))
    assert found.id in INSTRUMENTS
    assert "{exercise}" in found.command
    assert found.command_for("huge_lr").count("huge_lr") == 1


def test_every_outcome_says_where_to_go_on() -> None:
    ids = {check.id for check in load_checks()}
    for check in load_checks():
        assert any(outcome.sound for outcome in check.outcomes), check.id
        for outcome in check.outcomes:
            assert outcome.next or outcome.look, (check.id, outcome.id)
            assert set(outcome.next) <= ids - {check.id}, (check.id, outcome.id)


def test_ids_come_in_the_order_of_the_method_and_once() -> None:
    assert checked_ids(["data", "overfit", "data"]) == ("overfit", "data")
    with pytest.raises(UserError, match="did you mean overfit"):
        checked_ids(["overfi"])


@pytest.mark.slow
def test_outcomes_come_from_a_process_of_their_own() -> None:
    recipe = load_recipe("loss_sum")
    settings = RunSettings(seed=7, dataset=recipe.dataset)
    found = run_checks(recipe.broken_source(), settings, ["loss_form", "first_loss"])
    assert found == {"first_loss": "high", "loss_form": "grows"}
    assert list(found) == ["first_loss", "loss_form"]
    healthy = run_checks(recipe.healthy_source(), settings, ["loss_form", "first_loss"])
    assert healthy == {"first_loss": "chance", "loss_form": "agrees"}
