"""Two runs compared: the first difference, and what the runs were made from."""

import json
import math
from pathlib import Path

import pytest
from commands import succeed
from page_reader import Page
from run_files import make_workspace
from runs import MINI, edited, mini_run

from harness.checks.lab.differences import compare_runs, differences, first_difference
from harness.run.metrics_log import Record

pytestmark = pytest.mark.usefixtures("torch_as_found")


def batch(step: int, loss: float, **more: object) -> Record:
    return {"step": step, "epoch": 0, "loss": loss, **more}


def test_equal_logs_have_no_difference() -> None:
    log = [batch(0, 1.0, grad_norm=None), batch(1, math.nan)]
    assert first_difference(log, [dict(record) for record in log]) is None


def test_the_first_quantity_in_the_order_of_the_log_is_named() -> None:
    first = [batch(0, 1.0), batch(1, 2.0, grad_mean={"a": 1.0, "b": 4.0}), batch(2, 3.0)]
    second = [batch(0, 1.0), batch(1, 2.0, grad_mean={"a": 1.0, "b": 5.0}), batch(2, 9.0)]
    found = first_difference(first, second)
    assert found is not None
    assert (found.place, found.quantity, found.first, found.second) == ("step 1", "grad_mean.b", 4.0, 5.0)
    assert found.distance == 0.25
    assert [difference.quantity for difference in differences(first[2], second[2])] == ["loss"]


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [(0.0, 2.0, 2.0), (1.0, math.nan, math.inf), (1.0, None, None), (None, 1.0, None), (-2.0, -1.0, 0.5)],
)
def test_distance(first: float | None, second: float | None, distance: float | None) -> None:
    found = next(differences(batch(0, 0.0, lr=first), batch(0, 0.0, lr=second)))
    assert found.distance == distance


def test_a_log_that_ends_early_differs_at_its_end() -> None:
    log = [batch(0, 1.0), batch(1, 2.0), {"epoch": 0, "val_loss": 3.0}]
    for shorter, longer, values in ((log[:2], log, (None, 3.0)), (log, log[:2], (3.0, None))):
        found = first_difference(shorter, longer)
        assert found is not None
        assert (found.place, found.quantity, found.first, found.second) == ("epoch 0", "records", *values)


def test_two_runs_part_where_the_edit_first_acts(tmp_path: Path) -> None:
    mini_run(tmp_path / "a")
    mini_run(tmp_path / "b", edited(MINI, ("momentum=0.9", "momentum=0.8")))
    found = compare_runs(tmp_path / "a", tmp_path / "b", ("a", "b"))
    assert found.outcome == "differs"
    # Momentum adds nothing to the first update.
    assert (found.figures["first difference"], found.figures["quantity"]) == ("step 2", "loss")
    assert {row[0] for row in found.tables[0].rows} > {"loss", "grad_norm"}
    assert [line.label for line in found.plots[0].lines] == ["a", "b"]
    same = compare_runs(tmp_path / "a", tmp_path / "a", ("a", "again"))
    assert (same.outcome, same.tables) == ("same", ())


def test_two_runs_of_a_workspace_are_compared(tmp_path: Path) -> None:
    make_workspace(tmp_path / "work")
    said = succeed("compare", "huge_lr", "--html", "compared.html", cwd=tmp_path)
    assert said.startswith("huge_lr/broken and huge_lr/fixed\n")
    assert "differs: step 0, loss: 2.3 and 2.235" in said
    assert "source_sha256" in said
    Page((tmp_path / "compared.html").read_text())
    # A folder is one with a slash in its name or without.
    (tmp_path / "here").symlink_to(tmp_path / "work/huge_lr/runs/fixed")
    found = json.loads(succeed("compare", "huge_lr/fixed", "here", "--json", cwd=tmp_path))
    assert found["outcome"] == "same"
