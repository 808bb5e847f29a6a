import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.instrument_matrix import (
    PAGE,
    Matrix,
    alarms,
    confused,
    main,
    measure,
    section,
    subjects,
    table,
)
from harness.checks.checks import load_checks
from harness.recipe import recipe_ids

SOUND = {check.id: next(o.id for o in check.outcomes if o.sound) for check in load_checks()}


@pytest.mark.slow
def test_the_page_has_the_outcomes_that_the_instruments_give() -> None:
    """A reduced matrix, measured now, beside the whole one in the page."""
    checks = ["overfit", "first_loss", "loss_form", "gradients", "gradcheck"]
    names = ["digits_mlp", "loss_sum", "missing_zero_grad"]
    assert confused(measured := measure(names, [42], checks)) == []
    assert list(alarms(measured)) == []
    rows = [row.strip("| ").split(" | ") for row in PAGE.read_text().splitlines() if row.startswith("| ")]
    head = next(row for row in rows if row[0] == "check")
    assert head[1:] == list(subjects())
    assert set(recipe_ids()) < set(head)
    for check in checks:
        row = dict(zip(head, next(row for row in rows if row[0] == check), strict=True))
        for name in names:
            assert row[name].strip("*") == measured[name][42][check], (check, name)


def test_recipes_with_the_same_outcomes_are_named_and_healthy_ones_may_be_alike() -> None:
    clue = {**SOUND, "overfit": "stalls"}
    other = {**SOUND, "overfit": "diverges"}
    apart = {"a": {1: clue, 2: clue}, "b": {1: other}, "digits_mlp": {1: SOUND}, "shapes_cnn": {1: SOUND}}
    assert confused(apart) == []
    # On another seed it looks as one of the others does.
    assert confused({**apart, "a": {1: clue, 2: other}}) == [("a", "b")]
    assert confused({**apart, "b": {1: other, 2: SOUND}}) == [("b", "digits_mlp"), ("b", "shapes_cnn")]
    assert "No recipe has the outcomes of another one" in section(apart)
    assert "Not told apart: a and b." in section({**apart, "a": {1: other}})


def test_a_false_alarm_is_named_with_its_seed() -> None:
    matrix = {"a": {1: SOUND}, "digits_mlp": {1: SOUND, 2: {**SOUND, "data": "overlap"}}}
    assert list(alarms(matrix)) == ["digits_mlp, seed 2: data overlap"]
    assert "False alarms: digits_mlp, seed 2: data overlap." in section(matrix)
    (row,) = (row for row in table(matrix) if row.startswith("| data "))
    assert row == "| data | sound | sound (1), **overlap** (1) |"


@pytest.mark.parametrize(("words", "seeds"), [((), [42, 1, 2]), (("--seed", "7"), [7])])
def test_the_command_measures_under_the_seeds_that_are_asked_for(
    words: tuple[str, ...], seeds: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(names: Sequence[str], asked: Sequence[int]) -> Matrix:
        assert names == list(subjects())
        return {name: dict.fromkeys(asked, SOUND) for name in names}

    monkeypatch.setattr("benchmarks.instrument_matrix.measure", measured)
    done = CliRunner().invoke(main, [*words, "--json", str(tmp_path / "matrix.json")])
    assert done.exit_code == 1  # here no recipe can be told from another
    assert f"seeds {', '.join(map(str, seeds))}, on its own data" in done.output
    matrix = json.loads((tmp_path / "matrix.json").read_text())
    assert {tuple(map(int, by_seed)) for by_seed in matrix.values()} == {tuple(seeds)}
