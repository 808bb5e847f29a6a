"""An assignment from its kit to its scores: content of the kit, personal seeds, and cases that the grader knows."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers.commands import mistake, run_command, succeed
from helpers.courses import COURSE, POOLED, write_course
from helpers.sandbox_marks import needs_sandbox

from benchmarks.repack import repacked
from grader.cli import cli
from grader.course.course import Course, check_course, read_course
from grader.course.kit import TASKS, answers_in, assignment_files, build_kit
from grader.course.log import read_log
from grader.replay.request import trusted_requests
from grader.score.self_test import reference_report
from harness.checks.core.outcomes import outcomes_of, trips_of
from harness.errors import UserError
from harness.recipes.cases import CaseTable, case_of
from harness.recipes.catalogue import SUITE, Catalogue, load_recipe
from harness.recipes.recipe import experiment_source, load_recipes
from harness.run.options import RunOptions
from harness.student.exercise import start_exercise, verify_exercise
from harness.student.hand_in import submit
from harness.written.exercise import FileExercise, load_exercise
from harness.written.workspace import start_file_exercise

OWN = ("experiment.py", "recipe.toml", "PROMPT.md")


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return read_course(write_course(tmp_path))


def test_a_kit_holds_the_cases_of_its_assignment_and_nothing_else_of_any_exercise(course: Course) -> None:
    one, two = (assignment_files(course, course.find(week)) for week in ("week-1", "week-2"))
    exercises = {name for name in one if name.startswith("exercises/")}
    assert exercises == {f"exercises/{case}/{name}" for case in ("a1", "a2", "a3") for name in OWN}
    differ = {name for name in one.keys() | two.keys() if one.get(name) != two.get(name)}
    assert {name for name in differ if not name.startswith("exercises/")} == {"README.md", "Makefile", TASKS}
    for files in (one, two):  # a task for VS Code exists exactly if the help of the Makefile names its command
        tasks = {task["command"].split()[1] for task in json.loads(files[TASKS])["tasks"]}
        named = {*re.findall(r"^#:   make ([a-z-]+)", files["Makefile"].decode(), re.MULTILINE)}
        assert [verb in tasks for verb in ("hint", "triage")] == [verb in named for verb in ("hint", "triage")]
    texts = "\n".join(one[name].decode() for name in ("README.md", "Makefile", *exercises))
    told = (
        "huge_lr",
        "broadcast_loss",
        "frozen_layer",
        "split_contamination",
        "b1",
        "Second week",
        "{",
        "mystery",
        "hint",
    )
    plain = re.sub(r"exercises/\S+/experiment.py|def .*", "", texts)
    readme = one["README.md"].decode()
    assert [word for word in told if word in readme] == []
    assert [word for word in told[:6] if word in plain] == []
    for name in re.findall(r"\]\(([\w/.-]+)\)", readme):
        assert name in one
    assert one["exercises/a3/experiment.py"].decode() == experiment_source("orders_mlp")
    assert "hints" in two["exercises/b1/recipe.toml"].decode()
    assert "hints" not in one["exercises/a1/recipe.toml"].decode()
    assert "make hint" in two["README.md"].decode()


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("exercises/a1/PROMPT.md", "Look at frozen_layer", "the name of the break of a2"),
        ("README.md", "SGD(model[-1].parameters(),", "an edit of a2"),
        ("README.md", "SGD(model.parameters(),", "an edit of a2"),
        ("exercises/a3/recipe.toml", load_recipe("broadcast_loss").cause, "the cause of a1"),
        ("exercises/a3/recipe.toml", load_recipe("broadcast_loss").hints[2], "a hint of a1"),
        ("exercises/a1/experiment.py", experiment_source("strength_reg"), "the healthy text of a1"),
    ],
)
def test_what_gives_an_answer_away_is_found(name: str, text: str, what: str, course: Course, tmp_path: Path) -> None:
    week = course.find("week-1")
    files = assignment_files(course, week)
    build_kit(tmp_path / "kit.tar.gz", {**files, name: files[name] + text.encode()})
    words = ["kit", "--course", str(tmp_path / "course.toml"), "--assignment", "week-1", "--inside"]
    done = CliRunner().invoke(cli, [*words, str(tmp_path / "kit.tar.gz")])
    assert done.exit_code == 1, done.output
    assert f"REVEALED: {name} contains {what}" in done.output
    build_kit(tmp_path / "kit.tar.gz", files)
    done = CliRunner().invoke(cli, [*words, str(tmp_path / "kit.tar.gz")])
    assert done.exit_code == 0, done.output
    assert "exercises/a1/experiment.py" in done.output
    assert "GIVEN AWAY" not in done.output


def test_a_kit_that_would_give_an_answer_away_is_not_built(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    case = course.cases(course.find("week-1"))[0]
    monkeypatch.setattr(type(case), "broken_source", type(case).healthy_source)
    with pytest.raises(UserError, match=r"exercises/a1/experiment.py contains the healthy text of a1"):
        assignment_files(course, course.find("week-1"))
    assert list(answers_in({"docs/x.md": case.cause.encode()}, [case], hints=False)) != []


def test_every_break_can_be_handed_out(course: Course) -> None:
    assignment = course.find("week-1")
    own = {name: content for name, content in assignment_files(course, assignment).items() if "/" not in name}
    for recipe in load_recipes()[0]:
        case = case_of("a1", [recipe])
        files = {**own, "exercises/a1/recipe.toml": case.for_kit(with_hints=False).encode()}
        files["exercises/a1/experiment.py"] = case.broken_source().encode()
        assert list(answers_in(files, [case], hints=False)) == [], recipe.id


def unpacked_kit(folder: Path, course: Course) -> dict[str, Any]:
    """Build and unpack the kit of the first week. Return the options to run its commands."""
    build_kit(folder / "kit.tar.gz", assignment_files(course, course.find("week-1")))
    subprocess.run(["tar", "-xzf", folder / "kit.tar.gz", "-C", folder], check=True)
    venv.create(folder / ".venv", symlinks=True)
    packages = folder / ".venv/lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (packages / "kit.pth").write_text(f"{folder / 'trainwreck'}\n{sysconfig.get_path('purelib')}\n")
    return {"cwd": folder / "trainwreck", "program": (str(folder / ".venv/bin/python"), "-P", "-m", "harness")}


@pytest.mark.slow
def test_a_student_has_one_case_of_a_pool_and_figures_without_outcomes(tmp_path: Path) -> None:
    file = write_course(tmp_path, POOLED.replace("opens", 'triage = "figures"\npredict = true\nopens', 1))
    course = read_course(file)
    there = unpacked_kit(tmp_path, course)
    own = next(case for case in course.cases(course.find("week-1")) if case.pool).case_of("ada")
    other = {"a3": "a4", "a4": "a3"}[own]
    readme = (there["cwd"] / "README.md").read_text()
    assert "one of `a3`, `a4`: `make exercise BREAK=a3 STUDENT=ada`" in readme
    assert "and shows the measured values" in readme
    told = f"Each student gets one of the cases a3, a4. The case for ada is {own}: "
    assert told in mistake("exercise", other, "--student", "ada", **there)
    assert not (there["cwd"] / "work" / other).exists()
    shown = succeed("exercise", own, "--student", "ada", **there)
    assert f"{own}: predict first" in shown
    assert f"make predict BREAK={own}" in shown
    assert not (there["cwd"] / "work" / own / "runs").exists()
    assert f"First predict what the run of {own} will do" in mistake("triage", own, **there)
    said = ("--loss", "falls", "--half-rate", "same", "--check", "none", "--why", "It looks sound.")
    assert f"make exercise BREAK={own}" in succeed("predict", own, *said, **there)
    assert "You predicted" in succeed("exercise", own, **there)
    listed = succeed("exercises", **there)
    assert own in listed
    assert other not in listed
    shown = succeed("first-loss", own, **there)
    assert "decide for yourself whether they show a fault." in shown
    assert "Its possible outcomes: which one do the measurements show?" in shown
    walk = succeed("triage", own, **there)
    assert not [word for word in ("sound", "Sound", "wrong", "read:") if word in walk]
    case = next(case for case in course.cases(course.find("week-1")) if case.id == own)
    for target in ((own,), (f"work/{own}/experiment.py", "--dataset", case.dataset)):
        found = json.loads(succeed("first-loss", *target, "--json", **there))
        assert "sound" not in found
        assert not {"outcome", "reading", "summary", "next", "sound"} & found["checks"][0].keys()
        assert found["checks"][0]["figures"]
    report = there["cwd"] / "work" / own / "report.md"
    text = (
        "---\ndiagnosis:\n  - cause: healthy\nruled_out:\n  - {cause: huge_lr, check: first_loss, outcome: above}\n"
        "  - {cause: loss_sum, check: loss_form, outcome: sums}\nevidence:\n"
        "  - {run: broken, signal: loss, step: 0, value: 1}\n---\n# Symptom\nNone.\n"
    )
    report.write_text(text)
    succeed("verify", own, **there)
    told_of = run_command("check", own, **there).stdout
    assert "your course does not show the outcomes of checks" in " ".join(told_of.split())
    assert "it finds" not in told_of
    stranger = next(name for name in ("s1", "s2", "s3", "s4", "s5", "s6") if case.case_of(name) == other)
    assert f"The case for {stranger} is {other}: " in mistake("submit", own, "--student", stranger, **there)


def test_an_assignment_without_checks_needs_faults_that_the_log_shows(tmp_path: Path) -> None:
    file = write_course(tmp_path, COURSE.replace("opens", 'triage = "off"\nopens', 1))
    with pytest.raises(UserError, match='a3 is healthy, so students need the checks: write triage = "fig'):
        check_course(file)
    text = COURSE.replace("opens", 'triage = "off"\nopens', 1).replace(
        '"orders_mlp"\n', '"orders_mlp"\nbreaks = ["x"]\n'
    )
    shown = next(one.id for one in load_recipes()[0] if one.experiment == "orders_mlp" and one.symptoms)
    course = read_course(write_course(tmp_path, text.replace('["x"]', f'["{shown}"]', 1)))
    there = unpacked_kit(tmp_path, course)
    assert "triage" not in (there["cwd"] / "README.md").read_text()
    assert "make triage" not in (there["cwd"] / "Makefile").read_text().partition("help:")[0]
    assert "harness show a1 --step 0" in succeed("exercise", "a1", "--student", "ada", **there)
    for words in (("triage", "a1"), ("overfit", "a1"), ("data", "work/a1/experiment.py")):
        assert "Your course has switched off the checks for a1" in mistake(*words, **there)


def test_a_student_gives_the_login_once(course: Course, tmp_path: Path) -> None:
    there = unpacked_kit(tmp_path, course)
    kit = there["cwd"]
    assert "for example make exercise BREAK=a1 STUDENT=ada" in mistake("exercise", "a1", **there)
    assert "remove SEED= (--seed)" in mistake("exercise", "a1", "--student", "ada", "--seed", "7", **there)
    shown = succeed("exercise", "a1", "--student", "ada", **there)
    assert "make hint" not in shown
    assert "Stuck?" not in (kit / "work/a1/PROMPT.md").read_text()
    case = course.cases(course.find("week-1"))[0]
    made = json.loads((kit / "work/a1/workspace.json").read_text())
    assert made["settings"]["seed"] == case.seed_of("ada") != case.seed_of("bob")
    assert "exists already" in succeed("exercise", "a1", **there)
    assert "was made with seed" in mistake("exercise", "a1", "--student", "bob", **there)
    assert "name the cause healthy" in succeed("verify", "a1", **there)  # perhaps nothing is broken
    (kit / "work/a1/experiment.py").write_text(case.healthy_source())
    shown = succeed("verify", "a1", **there)
    assert "Decide for yourself whether the experiment is fixed" in shown
    assert "gives no hints for a1" in mistake("hint", "a1", "--level", "1", **there)
    assert "contains no solutions" in mistake("reveal", "a1", "--yes", **there)
    assert "do not have the seed that belongs to bob" in mistake("submit", "a1", "--student", "bob", **there)
    listed = succeed("exercises", **there)
    assert "Cases of your course" in listed
    assert "mystery" not in listed
    done = run_command("submit", "a1", **there)
    assert "Your login is missing" not in done.stdout + done.stderr


def test_the_grader_knows_the_cases_of_one_course_at_a_time(course: Course, tmp_path: Path) -> None:
    first, second = course.cases(course.find("week-1")), course.cases(course.find("week-2"))
    assert SUITE.holds("huge_lr")
    assert not SUITE.holds("a1")
    catalogue = Catalogue(first)
    assert catalogue.ids() == ["a1", "a2", "a3"]
    assert not catalogue.holds("huge_lr")
    assert not catalogue.holds("mystery-1-1")
    assert not catalogue.holds("b1")
    assert catalogue.find("a1") == first[0]
    assert trips_of(first[1]) == {**trips_of("frozen_layer"), **trips_of("split_contamination")}
    assert outcomes_of(first[2])
    (other,) = second
    other = other.model_copy(update={"id": "a1"})  # another course has another a1
    assert trusted_requests(other) != trusted_requests(first[0])
    assert trips_of(other) == {}
    with pytest.raises(UserError, match="There is no exercise 'a1'"):
        load_recipe("a1")
    for case in (*first, *second):  # in the form that a worker of a cluster receives
        sent = CaseTable.model_validate(json.loads(json.dumps(case.table.model_dump()))).case()
        assert (sent.broken_source(), sent.healthy_source(), sent.seed, sent.dataset) == (
            case.broken_source(), case.healthy_source(), case.seed, case.dataset,
        )  # fmt: skip


@needs_sandbox
def test_submissions_of_an_assignment_are_scored(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, work = tmp_path / "submissions", tmp_path / "work"
    cases = course.cases(course.find("week-1"))
    catalogue = Catalogue(cases)
    start_exercise("a1", work, RunOptions(), student="ada", bar=False, catalogue=catalogue)
    (work / "a1/experiment.py").write_text(cases[0].healthy_source())
    workspace = verify_exercise("a1", work, RunOptions(), bar=False, catalogue=catalogue)
    broken, fixed = ((workspace.run_folder(run) / "metrics.log").read_text() for run in ("broken", "fixed"))
    workspace.report.write_text(reference_report(cases[0], broken, fixed))
    data = submit(workspace, "ada", out).path.read_bytes()
    (out / "bob_a1.tar.gz").write_bytes(repacked(data, student="bob"))
    (out / "cem_b1.tar.gz").write_bytes(repacked(data, student="cem", change=_of_another_week))
    in_time, late = (datetime(2026, 10, day, tzinfo=UTC).timestamp() for day in (26, 29))
    for path in out.iterdir():
        os.utime(path, (late, late) if path.name == "bob_a1.tar.gz" else (in_time, in_time))
    monkeypatch.setenv("TRAINWRECK_REPLAYS", str(tmp_path / "replays"))
    file = tmp_path / "course.toml"
    words = ["score", str(out), "--out", str(tmp_path / "reports"), "--jobs", "1", "--course", str(file)]
    words.append("--trust-file-dates")
    kit = ["kit", "--course", str(file), "--assignment", "week-1", "--out", str(tmp_path / "kit.tar.gz")]
    done = CliRunner().invoke(cli, [*words, "--assignment", "week-1"])
    assert done.exit_code == 0, done.output
    assert "so the grader cannot see whether a case has changed" in done.output
    assert "week-1.lock.json stores the version" in CliRunner().invoke(cli, kit).output
    lock = (tmp_path / "week-1.lock.json").read_bytes()
    assert "lock" not in CliRunner().invoke(cli, kit).output
    assert (tmp_path / "week-1.lock.json").read_bytes() == lock
    done = CliRunner().invoke(cli, [*words, "--assignment", "week-1"])
    assert "whether a case has changed" not in done.output
    assert "(2 graded, 1 rejected, 0 not judged), 7 missing" in done.output
    rows = {row["submission"]: row for row in json.loads((tmp_path / "reports/scores.json").read_text())["submissions"]}
    assert (rows["ada_a1"]["total"], rows["ada_a1"]["late"]) == (100, None)
    assert (rows["bob_a1"]["total"], rows["bob_a1"]["late"]) == (80, {"days": 2, "cost": 20})
    assert "2 days late: minus 20 points." in (tmp_path / "reports/bob_a1.html").read_text()
    assert [flag["id"] for flag in rows["ada_a1"]["flags"]] == ["similar"]
    assert [flag["id"] for flag in rows["bob_a1"]["flags"]] == ["other seed", "similar"]
    assert "The grader has no exercise b1" in rows["cem_b1"]["reason"]
    assert rows["cem_a1 (missing)"]["status"] == "missing"
    assert (tmp_path / "reports/index.html").read_text().count("missing") >= 7
    done = CliRunner().invoke(cli, words)
    assert "Name an assignment: choose from week-1, week-2" in str(done.exception)
    # The case is edited after the hand-out. The grader must still accept correct fixes of the old case.
    text = file.read_text()
    file.write_text(text.replace('breaks = ["broadcast_loss"]', "breaks = []"))
    for made_again, why in (
        (False, "was changed after your kit was built"),
        (True, "The submission was made with the kit of"),
    ):
        if made_again:
            said = CliRunner().invoke(cli, kit).output
            assert re.search(r"a1 has changed since .* \(different experiment\)", said)
        done = CliRunner().invoke(cli, [*words, "--assignment", "week-1"])
        assert (done.exit_code, "a1: The case has changed" in done.output) == (1, not made_again)
        rows = json.loads((tmp_path / "reports/scores.json").read_text())["submissions"]
        row = next(row for row in rows if row["submission"] == "ada_a1")
        assert (row["status"], row["flags"][0]["id"], row["total"]) == (
            "not judged", "other version of the case", None,
        )  # fmt: skip
        assert why in row["reason"]
    scored = [entry for entry in read_log(tmp_path / "reports") if entry.did == "score"]
    assert [entry.counts.get("not judged", 0) for entry in scored] == [0, 0, 2, 2]
    assert {entry.inputs["submissions"] for entry in scored} == {scored[0].inputs["submissions"]}
    assert len({entry.inputs["course"] for entry in scored}) == 2
    done = CliRunner().invoke(cli, ["log", str(tmp_path / "reports")])
    assert "ada_a1: 100 -> not judged" in done.output
    assert max(map(len, done.output.splitlines())) <= 120
    file.write_text(text)
    (tmp_path / "week-1.lock.json").write_bytes(lock.replace(b'"suite": "', b'"suite": "0.0.'))
    done = CliRunner().invoke(cli, [*words, "--assignment", "week-1"])
    assert "was built with version 0.0." in done.output
    assert "ada_a1: not judged -> 100" in done.output
    (tmp_path / "week-1.lock.json").write_text("{}")
    assert "is damaged" in str(CliRunner().invoke(cli, [*words, "--assignment", "week-1"]).exception)


def _of_another_week(members: dict[str, bytes]) -> None:
    members["manifest.json"] = members["manifest.json"].replace(b'"recipe": "a1"', b'"recipe": "b1"')


@needs_sandbox
def test_each_assignment_has_reports_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = partial(mistake, cwd=tmp_path, program=(sys.executable, "-m", "grader"))
    write_course(tmp_path)
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "ada_a1.tar.gz").write_bytes(b"no archive")
    for week in ("week-1", "week-2"):
        assert CliRunner().invoke(cli, ["score", "submissions", "--assignment", week]).exit_code == 0
    scores = {week: json.loads(Path("reports", week, "scores.json").read_text()) for week in ("week-1", "week-2")}
    assert {week: (found["course"], found["assignment"]) for week, found in scores.items()} == {
        week: ("ml", week) for week in scores
    }
    files = {path: path.read_bytes() for path in sorted(Path("reports").rglob("*.*"))}
    said = refused("score", "submissions", "--assignment", "week-2", "--out", "reports/week-1")
    assert (
        "reports/week-1 contains the scores of week-1 of ml, which the scores of week-2 of ml must not overwrite"
        in said
    )
    assert "contains the scores of week-1 of ml, which the scores of submissions without an assignment" in refused(
        "score", "submissions", "--out", "reports/week-1"
    )
    assert "name one of these folders: reports/week-1, reports/week-2" in refused("export", "--format", "csv")
    said = refused("export", "--format", "csv", "--assignment", "week-2", "--out", "reports/week-1")
    assert "reports/week-1 contains the scores of week-1, not of week-2" in said
    for newer, why in (('"grader": "99.0.0"', "Version 99.0.0"), ('"grade": "x"', "cannot read")):
        text = files[Path("reports/week-1/scores.json")].decode()
        key = '"grader"' if "99" in newer else '"format_version"'
        changed = re.sub(rf"{key}: [^,]*", newer, text, count=1)
        Path("reports/week-1/scores.json").write_text(changed)
        assert why in refused("score", "submissions", "--assignment", "week-1")
        Path("reports/week-1/scores.json").write_text(text)
    assert {path: path.read_bytes() for path in files} == files
    assert CliRunner().invoke(cli, ["export", "--format", "csv", "--assignment", "week-1"]).exit_code == 0
    assert Path("reports/week-1/export/csv/grades.csv").is_file()


@needs_sandbox
def test_written_exercises_are_part_of_an_assignment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAINWRECK_REPLAYS", str(tmp_path / "replays"))
    start = COURSE.index('[[assignment.case]]\nid = "b1"')
    file = write_course(tmp_path, COURSE[:start] + 'written = ["decision_tree"]\n')
    read = read_course(file)
    files = assignment_files(read, read.find("week-2"))
    assert {name for name in files if name.startswith("exercises/")} == {
        f"exercises/decision_tree/{name}" for name in ("judge.toml", "PROMPT.md", "tree.yaml")
    }
    assert "- `decision_tree`" in files["README.md"].decode()
    assert "BREAK=decision_tree" in files["Makefile"].decode()
    # Its prompt names causes, but the same in every kit, so it does not reveal the case.
    cases = '[[assignment.case]]\nid = "b1"\nexperiment = "digits_mlp"\nbreaks = ["missing_zero_grad"]\n'
    file.write_text(COURSE[:start] + 'written = ["decision_tree"]\n' + cases)
    again = read_course(file)
    assert b"missing_zero_grad" in assignment_files(again, again.find("week-2"))["exercises/decision_tree/PROMPT.md"]
    file.write_text(COURSE[:start] + 'written = ["decision_tree"]\n')
    (tmp_path / "submissions").mkdir()
    for student, exercise in (("ada", "decision_tree"), ("bob", "layernorm")):
        loaded = load_exercise(exercise)
        assert isinstance(loaded, FileExercise)
        workspace, _ = start_file_exercise(loaded, tmp_path / "work")
        submit(workspace, student, tmp_path / "submissions")
    done = CliRunner().invoke(cli, ["score", "submissions", "--assignment", "week-2", "--jobs", "1"])
    assert done.exit_code == 1, done.output
    rows = {row["submission"]: row for row in json.loads(Path("reports/week-2/scores.json").read_text())["submissions"]}
    assert rows["ada_decision_tree"]["status"] == "graded"
    assert rows["bob_decision_tree (missing)"]["status"] == "missing"
    assert rows["bob_layernorm"]["reason"] == "layernorm does not belong to this assignment."


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('written = ["decision_treee"]', "'decision_treee' is not a written exercise: did you mean decision_tree"),
        ("", "has no exercise: add an [[assignment.case]] or written"),
    ],
)
def test_an_assignment_without_an_exercise_is_refused(line: str, said: str, tmp_path: Path) -> None:
    start = COURSE.index('[[assignment.case]]\nid = "b1"')
    with pytest.raises(UserError) as error:
        read_course(write_course(tmp_path, f"{COURSE[:start]}{line}\n"))
    assert said in str(error.value)
