"""A class with written answers and with submissions of runs: read, judged, scored and shown."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from attacks.score_deriving import handed_in
from helpers.made_up_class import make_row
from helpers.sandbox_marks import needs_sandbox
from helpers.written import judged, solution, written

from grader.grade import score_folder
from grader.intake.archive import Rejected
from grader.intake.submission import Answer, Submission, parse_submission
from grader.progress import ProgressBar
from grader.replay.replayer import Replayer
from grader.report.gradebook import COLUMNS, gradebook
from grader.report.pages import render_class_page, render_submission
from grader.sandbox import run_in_sandbox
from grader.score.identity import name_student
from grader.score.rubric import CRITERIA
from grader.score.verdict import Scores, SubmissionScore, criteria_in
from grader.session import ScoreOptions
from grader.written import grade as grade_module
from grader.written.grade import AnswerGrader, grade_answer
from grader.written.judgement import Judgement, RunCommand
from harness.submission.archive import deterministic_tar_gz, with_manifest
from harness.written.exercise import FileExercise, stub

EXERCISE = "backprop_mlp"
RIGHT, STUB = solution(EXERCISE), stub(written(EXERCISE))


def taken(text: str, student: str = "ada", name: str | None = None) -> Answer:
    return Answer(name or f"{student}_{EXERCISE}", "0" * 64, written(EXERCISE), student, text, ())


Judge = Callable[[str], Judgement]


@pytest.fixture
def judge_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Judge], list[str]]:
    """Return a function that replaces the sandbox by a judge, and returns the list of judged texts."""

    def replace(judge: Judge) -> list[str]:
        texts: list[str] = []

        def judge_text(exercise: FileExercise, text: str, run: RunCommand) -> Judgement:
            texts.append(text)
            return judge(text)

        monkeypatch.setattr(grade_module, "judge", judge_text)
        return texts

    return replace


def in_this_process(text: str) -> Judgement:
    return judged(EXERCISE, text)


# --- intake ---


def parsed(members: dict[str, bytes], **told: object) -> Submission | Answer:
    manifest = {"student": "ada", "recipe": EXERCISE, **told}
    return parse_submission("ada", deterministic_tar_gz(with_manifest(members, manifest)))


def test_an_answer_is_taken_with_its_text_and_nothing_else() -> None:
    found = parsed({"backprop.py": b"x = 1\n", "notes.txt": b"mine"})
    assert isinstance(found, Answer)
    assert (found.text, found.student, found.ignored) == ("x = 1\n", "ada", ("notes.txt",))


@pytest.mark.parametrize(
    ("members", "told", "code"),
    [
        ({"layernorm.py": b"x"}, {}, "no answer"),
        ({"backprop.py": b"\xff"}, {}, "not UTF-8"),
        ({"backprop.py": b"#" * 140_000}, {}, "text too large"),
        ({"backprop.py": b"x"}, {"seed": 42}, "manifest"),
        ({"backprop.py": b"x"}, {"recipe": "backprop"}, "manifest"),
        ({"backprop.py": b"x"}, {"format_version": 2}, "format version"),
    ],
)
def test_a_tarball_without_a_usable_answer_is_refused(
    members: dict[str, bytes], told: dict[str, object], code: str
) -> None:
    with pytest.raises(Rejected) as refusal:
        parsed(members, **told)
    assert refusal.value.code == code
    if code in ("no answer", "not UTF-8", "text too large"):
        assert (refusal.value.student, refusal.value.recipe) == ("ada", EXERCISE)


# --- a class ---


def grade(answers: list[Answer], memory: Path, **options: bool) -> dict[str, SubmissionScore]:
    never = Replayer(run_in_sandbox, Path("nowhere"))
    scores = AnswerGrader(never, memory, jobs=2, **options).grade(answers, ProgressBar())
    assert sorted(item.row.submission for item in scores) == sorted(answer.name for answer in answers)
    return {item.row.student: item.row for item in scores}


def test_each_text_is_judged_once_and_remembered(judge_by: Callable[[Judge], list[str]], tmp_path: Path) -> None:
    texts = judge_by(in_this_process)
    answers = [taken(RIGHT), taken(RIGHT, "bob"), taken(STUB, "cem"), taken(RIGHT + "# mine\n", "dot")]
    rows = grade(answers, tmp_path)
    assert {name: row.total for name, row in rows.items()} == {"ada": 100, "bob": 100, "cem": 0, "dot": 100}
    assert texts == [RIGHT, STUB, RIGHT + "# mine\n"]
    assert grade(answers[::-1], tmp_path) == rows
    assert len(texts) == 3


def test_a_run_without_a_sandbox_and_another_name_are_flagged(
    judge_by: Callable[[Judge], list[str]], tmp_path: Path
) -> None:
    judge_by(in_this_process)
    [row] = grade([taken(RIGHT, name="other")], tmp_path, sandboxed=False).values()
    assert [flag.id for flag in name_student(row, [EXERCISE]).flags] == ["no sandbox", "other name"]
    assert "WITHOUT a sandbox" in str(row.provenance["warning"])


def test_our_own_fault_is_never_a_zero_and_not_remembered(
    judge_by: Callable[[Judge], list[str]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(text: str) -> Judgement:
        if text in (RIGHT, STUB):  # the self-tests
            return in_this_process(text)
        if text == "raise":
            raise RuntimeError("ours")
        return Judgement(checks={}, fault="the disk is gone")

    texts = judge_by(broken)
    for turn in (1, 2):
        rows = grade([taken("x"), taken("raise", "bob")], tmp_path)
        assert len(texts) == 2 + 2 * turn
    assert [(row.status, row.total) for row in rows.values()] == [("not judged", None)] * 2
    reasons = {row.reason for row in rows.values()}
    assert reasons == {"the disk is gone", "The grader failed on this answer: RuntimeError."}
    assert "RuntimeError: ours" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("taken_for", "said"), [(STUB, "the reference solution got 0"), (RIGHT, "the original file got 100")]
)
def test_an_exercise_whose_canary_comes_out_wrong_is_not_judged(
    taken_for: str, said: str, judge_by: Callable[[Judge], list[str]], tmp_path: Path
) -> None:
    judge_by(lambda text: in_this_process(taken_for))
    row = grade([taken("x")], tmp_path)["ada"]
    assert (row.status, row.total) == ("not judged", None)
    assert f"backprop_mlp cannot be graded on this machine: {said}" in row.reason


# --- reports ---

OWN = ("form", "forward", "gradients")


@pytest.mark.parametrize(("runs", "criteria"), [(True, (*CRITERIA, *OWN)), (False, OWN)])
def test_its_criteria_are_columns_behind_those_of_runs(runs: bool, criteria: tuple[str, ...]) -> None:
    graded = grade_answer(taken(RIGHT), in_this_process(RIGHT), sandboxed=True)
    rows = [graded.row, *([make_row("bob_huge_lr", "bob", "huge_lr", {})] if runs else [])]
    scores = Scores(provenance={}, submissions=tuple(rows))
    assert criteria_in(scores.submissions) == criteria
    header, ada, *others = csv.reader(io.StringIO(gradebook(scores).decode("utf-8-sig"), newline=""))
    assert header == [*COLUMNS, *criteria, "limit", "lateness", "decided", "flags"]
    assert ada[-7:] == ["10", "30", "60", "", "", "", ""]
    assert [other[-7:] for other in others] == [[""] * 7] * runs
    page = "".join(render_class_page(scores))
    assert all(f">{name.capitalize()}</th>" in page for name in criteria)
    assert ("Reproducibility" in page) == runs


def test_the_page_shows_the_file_and_what_was_found_in_it() -> None:
    source = RIGHT.replace("dz1 = dh * (z1 > 0)", "dz1 = dh")
    graded = grade_answer(taken(source), in_this_process(source), sandboxed=True)
    text = re.sub(r"<[^>]+>", "", render_submission(graded.row, graded.attachments, title="By hand", provenance={}))
    assert "This is the submitted file backprop.py." in text
    assert "the gradient of W1" in text
    assert "Your fix" not in text


@pytest.mark.slow
@needs_sandbox
def test_a_folder_of_answers_is_scored_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWRECK_REPLAYS", str(tmp_path / "memory"))
    submissions, out = tmp_path / "submissions", tmp_path / "reports"
    submissions.mkdir()
    texts = {"ada": RIGHT, "bob": RIGHT.replace("    dlogits /= len(y)\n", ""), "cem": "x ="}
    for student, text in texts.items():
        (submissions / f"{student}_{EXERCISE}.tar.gz").write_bytes(handed_in(text, student))
    options = ScoreOptions(out=out, jobs=2, engine="fresh")
    assert score_folder(submissions, options) == 0
    scores = json.loads((out / "scores.json").read_text())["submissions"]
    assert {row["student"]: row["total"] for row in scores} == {"ada": 100, "bob": 40, "cem": 0}
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert score_folder(submissions, options) == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
