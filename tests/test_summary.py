import json
import re
from pathlib import Path

import pytest
from helpers.made_up_runs import change_json, make_workspace

from harness.student.attempts import Attempt
from harness.student.goal import AS_HEALTHY, UNLIKE_HEALTHY, GoalItem
from harness.student.hand_in import Tarball
from harness.student.overview import show_exercises
from harness.student.summary import (
    run_figures,
    show_attempt,
    show_attempt_run,
    show_broken_run,
    show_checks,
    show_criterion,
    show_single_run,
    show_submission,
)
from harness.submission.check_run import could_not_judge, failed_item, passed_item
from harness.workspace.progress import note_progress
from harness.workspace.workspace import Workspace

Capture = pytest.CaptureFixture[str]
LONG = "a folder with a name [bold]that[/bold] is quite long, as those of courses are, and then some more"


def fixed_attempt(workspace: Workspace, reached: GoalItem) -> Attempt:
    """Return an attempt whose experiment has the reference fix."""
    folder = workspace.folder / "attempts" / "001"
    folder.mkdir(parents=True)
    (folder / "experiment.py").write_text(workspace.exercise.healthy_source(), encoding="utf-8")
    return Attempt(1, folder, (reached,))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Return a workspace in a folder with a long name that looks like markup."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return make_workspace(tmp_path / LONG)


def test_the_worst_gradient_norm_is_the_one_that_is_no_number(workspace: Workspace) -> None:
    figures = run_figures(workspace.run_folder("broken"))
    assert figures["largest gradient norm"] in ("nan", "inf")
    assert figures["first non-finite loss"] == "step 3"
    assert run_figures(workspace.run_folder("fixed"))["first non-finite loss"] == "none"


def test_paths_and_commands_can_be_copied(workspace: Workspace, tmp_path: Path, capsys: Capture) -> None:
    show_broken_run(workspace, made=False)
    reached = GoalItem(says="no symptom in loss any more", reached=True, found="max loss is 2.3")
    show_attempt_run(workspace)
    show_criterion(reached)
    show_attempt(workspace, fixed_attempt(workspace, reached))
    show_attempt(workspace, None)
    said = capsys.readouterr().out
    broken, fixed = workspace.run_folder("broken"), workspace.run_folder("fixed")
    for text in (
        f"{workspace.folder} exists already, so nothing in it was changed.\n",
        f"  1. look at {broken / 'run.html'} in a browser, and read {workspace.folder / 'PROMPT.md'}\n",
        f"  4. make verify BREAK=huge_lr WORK='{workspace.folder.parent}'\n",
        f"  look at both runs in {fixed / 'run.html'}\n",
        f"  to hand in for a grade: write {workspace.report}, then make check BREAK=huge_lr"
        f" WORK='{workspace.folder.parent}'\n",
        f"You have not edited {workspace.experiment} yet: both runs are the same.\n",
    ):
        assert text in said


@pytest.mark.parametrize(
    ("found", "by_check", "said"),
    [
        (UNLIKE_HEALTHY, False, "your instructor decides about fixes"),
        ("your edit switches off: dropout", False, "Not fixed yet."),
        ("too-large", True, "a check still finds the fault."),
    ],
)
def test_an_attempt_that_is_not_fixed_says_what_is_missing(
    found: str, by_check: bool, said: str, workspace: Workspace, capsys: Capture
) -> None:
    log = GoalItem(says="no symptom in loss", reached=True, found="max loss is 2.3")
    missed = GoalItem(says=AS_HEALTHY, reached=False, found=found, by_check=by_check)
    show_attempt(workspace, Attempt(1, workspace.folder, (log, missed)))
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_table_of_two_runs_has_no_digest_of_the_checkpoint(workspace: Workspace, capsys: Capture) -> None:
    """It differs if only `evaluate` was changed, because the checkpoint holds the metrics, too."""
    show_attempt_run(workspace)
    assert "checkpoint SHA-256" not in capsys.readouterr().out
    show_broken_run(workspace, made=True)
    assert "checkpoint SHA-256" in capsys.readouterr().out


def test_a_fixed_attempt_shows_what_there_is_to_learn(workspace: Workspace, capsys: Capture) -> None:
    reached = GoalItem(says="no symptom in loss any more", reached=True, found="max loss is 2.3")
    show_attempt(workspace, fixed_attempt(workspace, reached))
    said = capsys.readouterr().out
    for part in (
        f"The cause: {workspace.exercise.cause}",
        "`harness learning-rate huge_lr` finds too-large: ",
        "In the log: the loss passes 50 within 20 steps.",
        "Yours changes 1 line; the shortest known fix changes 1.",
        "What masks it, and why that is no fix",
        "Interview question",
        "the next exercise: make exercise BREAK=",
    ):
        assert part in said, part


def test_a_course_shows_no_solution_but_where_the_report_goes(
    workspace: Workspace, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = GoalItem(says="no symptom in loss any more", reached=True, found="max loss is 2.3")
    attempt = fixed_attempt(workspace, reached)
    recipe = workspace.exercise.model_copy(update={"course": "dl-2026"})
    monkeypatch.setattr(Workspace, "exercise", recipe)
    show_attempt(workspace, attempt)
    said = capsys.readouterr().out
    assert recipe.cause not in said
    assert f"2. write your findings into {workspace.report}" in said
    assert "A course kit contains no solution. Your report goes to your instructor with your runs." in said


def test_findings_are_shown_as_they_are(workspace: Workspace, capsys: Capture) -> None:
    findings = [{"step": 5, "level": "soft", "message": "the loss has risen to [361], from 2.3 before"}]
    change_json(workspace.run_folder("broken") / "result.json", guardrails=findings)
    show_broken_run(workspace, made=True)
    assert "  step 5: the loss has risen to [361], from 2.3 before" in capsys.readouterr().out


def test_the_list_shows_every_state(workspace: Workspace, capsys: Capture) -> None:
    show_exercises(workspace.folder.parent)
    said = capsys.readouterr().out
    assert re.search(r"^  huge_lr +tried +The loss explodes", said, re.MULTILINE)
    assert re.search(r"^  loss_sum {20,}The very first loss", said, re.MULTILINE)
    assert "Level 1: 0 of " in said
    note_progress(workspace.folder, handed_in="ada_huge_lr.tar.gz", score=96.5)
    show_exercises(workspace.folder.parent)
    said = capsys.readouterr().out
    assert re.search(r"^  huge_lr +handed in  96.5  The loss explodes", said, re.MULTILINE)
    assert "Level 1: 1 of " in said
    work = f" WORK='{workspace.folder.parent}'"
    assert f"Next:\n  make next{work}  # the next case, whose name does not tell the fault\n" in said


def test_checks_end_with_the_next_step(workspace: Workspace, capsys: Capture) -> None:
    wrong = failed_item("report: words", f"{workspace.report} has 501 words: leave some out.")
    assert not show_checks([passed_item("broken: files", "all there."), wrong], workspace)
    said = capsys.readouterr().out
    assert said.endswith(f"  make check BREAK=huge_lr WORK='{workspace.folder.parent}'\n")
    assert "fix the failed items" in said
    assert not show_checks([could_not_judge("walk", "no run: make one.")], workspace)
    said = capsys.readouterr().out
    assert "fix the failed items" not in said
    assert "or hand in your work as it is: make submit BREAK=huge_lr STUDENT=<your login>" in said
    assert show_checks([passed_item("broken: files", "all there.")], workspace)
    assert "  make submit BREAK=huge_lr STUDENT=<your login>" in capsys.readouterr().out


def test_a_path_in_a_check_is_whole(workspace: Workspace, capsys: Capture) -> None:
    path = "/home/ada/courses/deep-learning/2026/autumn/exercises/work/missing_zero_grad/runs/broken/metrics.log"
    show_checks([failed_item("broken: log", f"{path}, line 7: step 9 where step 6 belongs.")], workspace)
    assert f"{path}," in capsys.readouterr().out


def test_a_submission_is_told_with_what_may_cost_points(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "ada_huge_lr.tar.gz"
    path.write_bytes(b"x" * 2_000_000)
    show_submission(Tarball(path, "ab" * 32, (failed_item("report: words", "too [many]."),)))
    assert capsys.readouterr().out == (
        f"Written: {path} (2.0 MB, SHA-256 abababababababab) and its .sha256 file.\n"
        "Warning, report: words: too [many].\nNext:\n  hand in both files\n  for the next exercise: make next\n"
    )


def test_a_single_run_is_told_to_people_and_to_programs(workspace: Workspace, capsys: Capture) -> None:
    folder = workspace.run_folder("broken")
    result = json.loads((folder / "result.json").read_text())
    show_single_run(result, folder, as_json=True)
    assert json.loads(capsys.readouterr().out)["checkpoint_path"] == str(folder / "checkpoint.pt")
    show_single_run(result, folder, as_json=False)
    assert f"  look at {folder / 'run.html'} in a browser\n" in capsys.readouterr().out
