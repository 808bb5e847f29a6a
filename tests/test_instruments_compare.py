from pathlib import Path

import pytest
from runs import MINI, edited, mini_run

from harness.checks.compare import OUTCOMES, measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")


def test_two_runs_part_where_the_edit_first_acts(tmp_path: Path) -> None:
    mini_run(tmp_path / "a")
    mini_run(tmp_path / "b", edited(MINI, ("momentum=0.9", "momentum=0.8")))
    measured = measure(tmp_path / "a", tmp_path / "b", ("a", "b"))
    # Momentum adds nothing to the first update.
    assert measured.first is not None
    assert (measured.first.place, measured.first.quantity) == ("step 2", "loss")
    evidence = show(measured)
    assert evidence.outcome == "differs"
    assert {row[0] for row in evidence.tables[0].rows} > {"loss", "grad_norm"}
    assert [line.label for line in evidence.plots[0].lines] == ["a", "b"]
    assert OUTCOMES[evidence.outcome].look


def test_a_run_and_its_repetition_are_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        mini_run(tmp_path / name)
    measured = measure(tmp_path / "a", tmp_path / "b", ("a", "b"))
    assert (measured.outcome, measured.first, measured.beside) == ("same", None, ())
    assert show(measured).tables == ()
