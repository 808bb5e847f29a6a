"""The stored progress: what solves an exercise, and what does not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from helpers.made_up_runs import complete_run, make_workspace

from harness.recipes.mysteries import load_hidden, mystery_name
from harness.run.settings import RunSettings
from harness.student import attempts, goal
from harness.student.debrief import describe_overfitting
from harness.student.exercise import judge_attempt
from harness.student.goal import GoalItem
from harness.student.overview import list_exercises, show_progress
from harness.student.solution import question_before
from harness.student.summary import attempt_views, claim_rows
from harness.workspace.progress import note_begin, note_explained, note_progress, note_score, note_solved, progress_of
from harness.workspace.workspace import create_workspace

Capture = pytest.CaptureFixture[str]


def judged(monkeypatch: pytest.MonkeyPatch, *, reached: bool) -> None:
    """Let every attempt get this result, without measuring it."""
    item = GoalItem(says="no symptom in loss any more", reached=reached, found="max loss is 2.3")
    monkeypatch.setattr(goal, "judge", lambda *_: [item])


def test_only_a_fix_solves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = make_workspace(tmp_path)
    judged(monkeypatch, reached=False)
    judge_attempt(workspace)
    assert (progress_of(workspace.folder).solved, workspace.state()) == (None, "tried")
    assert not next(row for row in list_exercises(tmp_path)[0] if row.id == "huge_lr").done
    judged(monkeypatch, reached=True)
    judge_attempt(workspace)
    solved = progress_of(workspace.folder).solved
    assert solved is not None and solved.causes == ("huge_lr",) and solved.attempts == 1
    assert workspace.state() == "solved"
    assert next(row for row in list_exercises(tmp_path)[0] if row.id == "huge_lr").done
    judged(monkeypatch, reached=False)
    judge_attempt(workspace)
    assert progress_of(workspace.folder).solved == solved, "a later experiment changes nothing"
    assert question_before(workspace.exercise, workspace.folder) == "", "verify has shown the solution"


@pytest.mark.parametrize(
    ("is_healthy", "reached", "is_judged"), [(False, True, True), (False, False, False), (True, True, False)]
)
def test_an_edit_of_a_case_that_leaves_the_log_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_healthy: bool, reached: bool, is_judged: bool
) -> None:
    """It counts if it fixes the case. Otherwise no verdict tells whether the case is broken at all."""
    names = (mystery_name(1, number) for number in range(1, 100))
    name = next(name for name in names if load_hidden(name).is_healthy == is_healthy)
    workspace = create_workspace(
        tmp_path, name, load_hidden(name).broken_source(), RunSettings(seed=42, dataset="digits")
    )
    for run, source in (("broken", load_hidden(name).broken_source()), ("fixed", "edited = True\n")):
        complete_run(workspace.run_folder(run), run, source)
    workspace.experiment.write_text("edited = True\n")
    judged(monkeypatch, reached=reached)
    said: list[GoalItem] = []
    attempt = judge_attempt(workspace, said.append)
    assert attempt is not None
    assert bool(attempt.criteria) == bool(said) == is_judged
    assert (progress_of(workspace.folder).solved is not None) == is_judged


def test_the_time_runs_from_the_first_start_to_the_first_fix(tmp_path: Path) -> None:
    folder = tmp_path / "huge_lr"
    note_progress(folder, begun=datetime.now(UTC) - timedelta(minutes=90), hints=2, wrong_claims=1)
    note_begin(folder)
    note_solved(folder, ("huge_lr",), 4)
    solved = progress_of(folder).solved
    assert solved is not None
    assert solved.minutes == pytest.approx(90, abs=0.2)
    assert (solved.attempts, solved.hints) == (5, 2)
    note_solved(tmp_path / "loss_sum", ("loss_sum",), 1)
    unknown = progress_of(tmp_path / "loss_sum").solved
    assert unknown is not None and unknown.minutes is None


def test_progress_shows_solved_explained_and_scored(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    workspace = make_workspace(tmp_path)
    note_progress(workspace.folder, begun=datetime.now(UTC) - timedelta(minutes=12))
    note_solved(workspace.folder, ("huge_lr",), 2)
    note_explained(workspace.folder)
    note_score(workspace.folder, 96.5)
    show_progress(tmp_path)
    said = capsys.readouterr().out
    day = f"{datetime.now(UTC):%d %b}"
    row = next(line for line in said.splitlines() if line.startswith("huge_lr"))
    assert row.split() == ["huge_lr", "huge_lr", *day.split(), "12", "min", "2", "0", *day.split(), "96.5"]
    assert "Level 1  ░" in said, "an exercise whose name tells the fault fills no level"
    assert max(map(len, said.splitlines()[:-2])) <= 80


def test_an_older_file_is_still_read(tmp_path: Path) -> None:
    (tmp_path / ".progress").mkdir()
    (tmp_path / ".progress" / "huge_lr.json").write_text('{"format_version": 1, "hints": 2, "handed_in": "a.tar.gz"}')
    known = progress_of(tmp_path / "huge_lr")
    assert (known.hints, known.handed_in, known.solved) == (2, "a.tar.gz", None)


def test_the_history_shows_claims_and_calls_no_edit_of_a_sound_case_a_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (mystery_name(1, number) for number in range(1, 100))
    name = next(name for name in names if load_hidden(name).is_healthy)
    broken = load_hidden(name).broken_source()
    workspace = create_workspace(tmp_path, name, broken, RunSettings(seed=42, dataset="digits"))
    for run, source in (("broken", broken), ("fixed", "edited = True\n")):
        complete_run(workspace.run_folder(run), run, source)
    attempts.keep_attempt(workspace, [GoalItem(says="log", reached=True, found="healthy")])
    assert [view.cells[1] for view in attempt_views(workspace)] == ["healthy before and after your edit"]
    note_progress(workspace.folder, wrong_claims=2)
    assert [row[:2] for row in claim_rows(workspace)] == [("claim", "wrong: something is broken")] * 2
    note_solved(workspace.folder, ("healthy",), 1)
    assert claim_rows(workspace)[-1][:2] == ("claim", "right: nothing is broken")


def test_a_healthy_run_that_overfits_says_so() -> None:
    def said(*losses: float) -> str:
        return describe_overfitting(
            [{"kind": "epoch", "epoch": at, "val_loss": loss} for at, loss in enumerate(losses)]
        )

    assert "lowest after epoch 1, at 0.5, and ends at 1.8" in said(0.5, 0.9, 1.8)
    assert said(0.5, 0.52, 0.55) == said(0.9, 0.8, 0.5, 0.82) == said() == ""
