"""A student alone at home: an exercise from the first command to the score, the solution, and the next exercise."""

import json
import re
import sys
import tarfile
from pathlib import Path

import pytest
from helpers.commands import edit, mistake, run_command, succeed

from grader.score.self_test import reference_report
from harness.recipes.catalogue import load_recipe

PRACTICE = (str(Path(sys.executable).with_name("grader")), "practice")


def log(folder: Path, run: str) -> str:
    return (folder / "runs" / run / "metrics.log").read_text()


@pytest.mark.slow
def test_from_the_first_attempt_to_the_solution(tmp_path: Path) -> None:
    folder = tmp_path / "work" / "huge_lr"
    assert "The experiment counts as fixed if\n" in succeed("exercise", "huge_lr", cwd=tmp_path)
    assert "You have not edited" in succeed("verify", "huge_lr", cwd=tmp_path)
    edit(folder / "experiment.py", "lr=10.0", "lr=2.0")
    said = succeed("verify", "huge_lr", cwd=tmp_path)
    assert "yours ┃" in said
    assert "Not fixed yet." in said
    edit(folder / "experiment.py", "lr=2.0", "lr=0.1")
    said = succeed("verify", "huge_lr", cwd=tmp_path)
    assert re.search(r"broken ┃ +yours ┃", said)
    assert "Fixed, as far as your machine can tell." in said
    said = succeed("history", "huge_lr", cwd=tmp_path)
    assert re.search(r"1 │ .*not yet", said)
    assert re.search(r"2 │ .*fixed", said)

    (folder / "report.md").write_text(
        reference_report(load_recipe("huge_lr"), log(folder, "broken"), log(folder, "fixed"))
    )
    first, again = (succeed("check", "huge_lr", cwd=tmp_path) for _ in range(2))
    assert first == again
    assert re.search(r"passed  fixed: goal +the log shows no symptom", first)
    said = succeed("huge_lr", cwd=tmp_path, program=PRACTICE)
    assert said.startswith("huge_lr: 100 of 100\n")
    assert (folder / "score" / "you_huge_lr.html").is_file()
    assert re.search(r"huge_lr +solved +100  ", succeed("exercises", cwd=tmp_path))

    assert "lr=10.0" in succeed("reveal", "huge_lr", cwd=tmp_path)
    succeed("submit", "huge_lr", "--student", "ada", cwd=tmp_path)
    with tarfile.open(tmp_path / "submissions" / "ada_huge_lr.tar.gz") as tar:
        member = tar.extractfile("manifest.json")
        assert member is not None
        assert json.load(member)["revealed"] is True


def test_a_solution_is_shown_after_a_confirmation_that_is_noted(tmp_path: Path) -> None:
    said = mistake("reveal", "huge_lr", cwd=tmp_path)
    assert said == (
        "You have not handed in huge_lr. Show its solution? Your submission will say that you saw it."
        " There is no terminal for your answer: add --yes (YES=1) to answer yes."
    )
    shown = succeed("reveal", "huge_lr", "--yes", cwd=tmp_path)
    assert "+    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)" in shown
    assert "\nWhat masks it, and why that is no fix\n" in shown
    assert json.loads((tmp_path / "work" / ".progress" / "huge_lr.json").read_text())["revealed"] is True


def test_a_score_that_would_tell_the_cause_asks_first(tmp_path: Path) -> None:
    succeed("exercise", "huge_lr", "--epochs", "1", cwd=tmp_path)
    said = mistake("huge_lr", cwd=tmp_path, program=PRACTICE)
    assert said.startswith("huge_lr is not fixed yet, and its score reveals the cause. Score it anyway?")
    assert not json.loads((tmp_path / "work" / ".progress" / "huge_lr.json").read_text()).get("revealed")


def test_a_workspace_that_could_not_be_handed_in_is_not_scored(tmp_path: Path) -> None:
    assert "There is no workspace work/huge_lr" in mistake("huge_lr", cwd=tmp_path, program=PRACTICE)
    assert run_command("exercise", "huge_lr", "--level", "2", cwd=tmp_path).returncode == 2
