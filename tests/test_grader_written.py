"""A class with answers that are one file: taken in, examined, scored and shown, beside submissions of runs."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from attacks.score_deriving import handed_in
from deriving import derivation, judged, solution
from made_up_class import make_row
from sandbox_marks import needs_sandbox

from grader.grade import score_folder
from grader.intake.names import Rejected
from grader.intake.submission import Answer, Submission, parse_submission
from grader.replay.replayer import Replayer
from grader.report.class_page import render_class_page
from grader.report.gradebook import gradebook
from grader.report.progress import Progress
from grader.report.submission_page import render_submission
from grader.sandbox import run_in_sandbox
from grader.score.verdict import CRITERIA, Scores, SubmissionScore, criteria_in
from grader.session import ScoreOptions
from grader.written import grade as grade_module
from grader.written.grade import AnswerGrader, grade_answer
from grader.written.judgement import Judgement, Run
from harness.submission.archive import deterministic_tar_gz, with_manifest
from harness.written.exercise import FileExercise, stub

EXERCISE = "backprop_mlp"
NEVER = Replayer(run_in_sandbox, Path("nowhere"))


def taken(text: str, student: str = "ada", exercise: str = EXERCISE, name: str | None = None) -> Answer:
    return Answer(name or f"{student}_{exercise}", "0" * 64, derivation(exercise), student, text, ())


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(exercise: FileExercise, text: str, run: Run) -> Judgement:
        return judged(exercise.id, text)

    monkeypatch.setattr(grade_module, "judge", judge)


# --- intake ---------------------------------------------------------------------------------------------------


def parsed(members: dict[str, bytes], **told: object) -> Submission | Answer:
    manifest = {"student": "ada", "recipe": EXERCISE, **told}
    return parse_submission("ada", deterministic_tar_gz(with_manifest(members, manifest)))


def test_an_answer_is_taken_with_its_text_and_nothing_else() -> None:
    found = parsed({"backprop.py": b"x = 1\n", "notes.txt": b"mine"})
    assert isinstance(found, Answer)
    assert (found.text, found.student, found.exercise.id) == ("x = 1\n", "ada", EXERCISE)
    assert found.ignored == ("notes.txt",)


@pytest.mark.parametrize(
    ("members", "told", "code"),
    [
        ({}, {}, "no answer"),
        ({"layernorm.py": b"x"}, {}, "no answer"),
        ({"backprop.py": b"\xff"}, {}, "not UTF-8"),
        ({"backprop.py": b"#" * 70_000}, {}, "text too large"),
        ({"backprop.py": b"x"}, {"seed": 42}, "manifest"),
        ({"backprop.py": b"x"}, {"student": "a\u202eb"}, "manifest"),
        ({"backprop.py": b"x"}, {"recipe": "backprop"}, "manifest"),
        ({"backprop.py": b"x"}, {"format_version": 2}, "format version"),
    ],
)
def test_what_is_no_answer_is_refused(members: dict[str, bytes], told: dict[str, object], code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        parsed(members, **told)
    assert refusal.value.code == code
    if code in ("no answer", "not UTF-8", "text too large"):
        assert (refusal.value.student, refusal.value.recipe) == ("ada", EXERCISE)


def test_another_text_than_the_manifest_says_is_refused() -> None:
    members = with_manifest({"backprop.py": b"x = 1\n"}, {"student": "ada", "recipe": EXERCISE})
    with pytest.raises(Rejected, match="another SHA-256"):
        parse_submission("ada", deterministic_tar_gz({**members, "backprop.py": b"x = 2\n"}))


# --- a class ----------------------------------------------------------------------------------------------------


class Counting(Progress):
    """Counts what it is told of the progress."""

    total = 0
    count = 0

    def begin(self, stage: str, total: int) -> None:
        self.total = total

    def done(self, name: str, seconds: float) -> None:
        self.count += 1


def grade(
    answers: list[Answer], memory: Path, *, trusted: bool = False, fresh: bool = False
) -> dict[str, SubmissionScore]:
    counted = Counting()
    grader = AnswerGrader(NEVER, memory, jobs=2, sandboxed=not trusted, fresh=fresh)
    scores = grader.grade(answers, counted)
    assert sorted(item.row.submission for item in scores) == sorted(answer.name for answer in answers)
    assert counted.count == counted.total == len({answer.text for answer in answers})
    return {item.row.submission: item.row for item in scores}


def test_each_text_is_examined_once_and_gives_the_same_to_all(in_this_process: None, tmp_path: Path) -> None:
    texts = {"ada": solution(EXERCISE), "bob": solution(EXERCISE), "cem": stub(derivation(EXERCISE))}
    answers = [taken(text, student) for student, text in texts.items()]
    rows = grade(answers, tmp_path)
    assert {name: row.total for name, row in rows.items()} == {
        "ada_backprop_mlp": 100,
        "bob_backprop_mlp": 100,
        "cem_backprop_mlp": 0,
    }
    assert rows["ada_backprop_mlp"].criteria == rows["bob_backprop_mlp"].criteria
    assert grade(answers[::-1], tmp_path / "other") == rows


def test_an_examination_is_remembered(
    in_this_process: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = grade([taken(solution(EXERCISE))], tmp_path)
    again: list[str] = []

    def judge(exercise: FileExercise, text: str, run: Run) -> Judgement:
        again.append(text)
        return judged(exercise.id, text)

    monkeypatch.setattr(grade_module, "judge", judge)
    assert grade([taken(solution(EXERCISE))], tmp_path) == rows
    assert again == []
    grade([taken(solution(EXERCISE) + "# mine\n")], tmp_path)
    assert again == [solution(EXERCISE) + "# mine\n"]
    assert grade([taken(solution(EXERCISE))], tmp_path, fresh=True) == rows
    assert again[1:] == [solution(EXERCISE), stub(derivation(EXERCISE)), solution(EXERCISE)]


def test_what_ran_without_a_sandbox_and_under_another_name_is_flagged(
    in_this_process: None, tmp_path: Path
) -> None:
    [row] = grade([taken(solution(EXERCISE), name="other")], tmp_path, trusted=True).values()
    assert [flag.id for flag in row.flags] == ["no sandbox", "other name"]
    assert "WITHOUT a sandbox" in str(row.provenance["warning"])


def test_our_own_fault_is_tried_once_more_and_is_never_a_zero(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    calls = []

    def broken(exercise: FileExercise, text: str, run: Run) -> Judgement:
        if text in (solution(EXERCISE), stub(derivation(EXERCISE))):  # the canaries
            return judged(exercise.id, text)
        calls.append(text)
        if text == "raise":
            raise RuntimeError("ours")
        return Judgement(checks={}, fault="the disk is gone")

    monkeypatch.setattr(grade_module, "judge", broken)
    rows = grade([taken("x"), taken("raise", "bob")], tmp_path)
    assert len(calls) == 4
    assert [(row.status, row.total) for row in rows.values()] == [("not judged", None)] * 2
    assert {row.reason for row in rows.values()} == {
        "the disk is gone",
        "The grader failed on it: RuntimeError.",
    }
    assert "RuntimeError: ours" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("examine", "said"),
    [
        (
            lambda text: stub(derivation(EXERCISE)),
            "backprop_mlp cannot be graded here: the reference solution got 0",
        ),
        (lambda text: solution(EXERCISE), "backprop_mlp cannot be graded here: the original file got 100"),
    ],
)
def test_an_exercise_whose_canary_comes_out_wrong_is_not_judged(
    examine: Callable[[str], str], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def judge(exercise: FileExercise, text: str, run: Run) -> Judgement:
        return judged(exercise.id, examine(text))

    monkeypatch.setattr(grade_module, "judge", judge)
    [score] = AnswerGrader(NEVER, tmp_path, jobs=1).grade([taken("x")], Counting())
    assert (score.row.status, score.row.total, score.row.student) == ("not judged", None, "ada")
    assert said in score.row.reason


# --- reports ----------------------------------------------------------------------------------------------------


def mixed(*, runs: bool) -> Scores:
    graded = grade_answer(taken(solution(EXERCISE)), judged(EXERCISE, solution(EXERCISE)), sandboxed=True)
    rows = [graded.row, *([make_row("bob_huge_lr", "bob", "huge_lr", {})] if runs else [])]
    return Scores(provenance={}, submissions=tuple(rows))


OWN = ("form", "forward", "gradients", "vectorization")


@pytest.mark.parametrize(("runs", "criteria"), [(True, (*CRITERIA, *OWN)), (False, OWN)])
def test_its_criteria_are_columns_behind_those_of_runs(runs: bool, criteria: tuple[str, ...]) -> None:
    scores = mixed(runs=runs)
    assert criteria_in(scores.submissions) == criteria
    header, ada, *others = csv.reader(io.StringIO(gradebook(scores).decode("utf-8-sig"), newline=""))
    assert tuple(header) == ("student", "recipe", "submission", "status", "total", *criteria, "flags")
    assert ada[-5:] == ["15", "20", "45", "20", ""]
    for other in others:
        assert other[-5:] == ["", "", "", "", ""]
    page = render_class_page(scores)
    for name in criteria:
        assert f'extra">{name.capitalize()}</th>' in page
    assert ("Reproducibility" in page) == runs


def test_the_page_shows_the_file_and_what_was_found_in_it() -> None:
    source = solution(EXERCISE).replace("dz1 = dh * (z1 > 0)", "dz1 = dh")
    graded = grade_answer(taken(source), judged(EXERCISE, source), sandboxed=True)
    page = render_submission(graded.row, graded.exhibits, title="By hand", provenance={})
    text = re.sub(r"<[^>]+>", "", page)
    assert "backprop.py, as it was handed in." in text
    assert "the gradient of W1" in text
    assert "Your fix" not in text
    assert "broken" not in text


# --- from tarballs to reports -----------------------------------------------------------------------------------


@pytest.mark.slow
@needs_sandbox
def test_a_folder_of_answers_is_scored_and_remembered(tmp_path: Path) -> None:
    submissions, out = tmp_path / "submissions", tmp_path / "reports"
    submissions.mkdir()
    texts = {
        "ada": solution(EXERCISE),
        "bob": solution(EXERCISE).replace("    dlogits /= len(y)\n", ""),
        "cem": "x =",
    }
    for student, text in texts.items():
        (submissions / f"{student}_{EXERCISE}.tar.gz").write_bytes(handed_in(text, student))
    options = ScoreOptions(out=out, jobs=2, engine="fresh", replays=tmp_path / "memory")
    assert score_folder(submissions, options) == 0
    scores = json.loads((out / "scores.json").read_text())
    assert {row["student"]: row["total"] for row in scores["submissions"]} == {
        "ada": 100,
        "bob": 94,
        "cem": 0,
    }
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert score_folder(submissions, options) == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
