"""The limits of a submission: `make check` gives a remedy for each, and the grader accepts all that passes it."""

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.made_up_runs import change_json, make_workspace, read_lines, seal, write_lines

from grader.intake.archive import Rejected
from grader.intake.submission import Answer, Submission, parse_submission
from harness.cli import cli
from harness.errors import UserError
from harness.run import settings as run_settings
from harness.run.settings import MOST_BATCH_SIZE, MOST_EPOCHS, RunSettings
from harness.student.hand_in import submit
from harness.submission import limits
from harness.submission.archive import FILES, SUFFIX, build_submission, deterministic_tar_gz, with_manifest
from harness.submission.check import check_workspace
from harness.submission.commands import COMMANDS
from harness.submission.program import Unparsable, parse_experiment
from harness.workspace.workspace import Workspace
from harness.written.exercise import find_file_exercise
from harness.written.workspace import file_items, start_file_exercise

META = "checkpoint.pt.meta.json"
# Fills a workspace up to a limit, plus this many bytes, nodes, ... 0 means exactly the limit.
Fill = Callable[[Workspace, int], object]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "work")


def program(workspace: Workspace, source: str) -> None:
    workspace.experiment.write_text(source)
    (workspace.run_folder("fixed") / "experiment.py").write_text(source)
    seal(workspace.run_folder("fixed"))


def of_program(fill: Callable[[str, int], str]) -> Fill:
    return lambda workspace, more: program(workspace, fill(workspace.experiment.read_text(), more))


def sized(source: str, more: int) -> str:
    return source + "#" * (limits.EXPERIMENT_BYTES + more - len(source))


def nodes_of(source: str) -> int:
    return sum(1 for _ in ast.walk(ast.parse(source)))


def noded(source: str, more: int) -> str:
    # A name has three nodes, and a number two.
    missing = limits.NODES + more - nodes_of(source)
    return source + "\na\n" * (missing % 2) + "\n0" * ((missing - 3 * (missing % 2)) // 2) + "\n"


def deep(source: str, more: int) -> str:
    return f"{source}\nDEEP = {'-' * (limits.DEPTH + more - 3)}1\n"


def long_integer(source: str, more: int) -> str:
    return f"{source}\nLONG = {hex(2 ** (limits.INTEGER_BITS + more - 1))}\n"


def dotted(source: str, more: int) -> str:
    return f"{source}\nimport {'a.' * (limits.DOTS + more - 1)}a\n"


def pad_file(name: str, limit: int, run: str = "fixed") -> Fill:
    def fill(workspace: Workspace, more: int) -> None:
        path = workspace.run_folder(run) / name
        path.write_bytes(b"x" * (limit + more))
        seal(workspace.run_folder(run))

    return fill


def pad_meta(workspace: Workspace, more: int) -> None:
    path = workspace.run_folder("fixed") / META
    change_json(path, note="")
    change_json(path, note="x" * (limits.META_BYTES + more - path.stat().st_size))


def pad_log(workspace: Workspace, more: int) -> None:
    path = workspace.run_folder("fixed") / "metrics.log"
    first, *lines = read_lines(workspace, "fixed")
    length = limits.LOG_BYTES + more - path.stat().st_size - len(', "": 0')
    first["grad_norm_by_parameter"]["x" * length] = 0
    write_lines(workspace, "fixed", [first, *lines])


def nest_log(workspace: Workspace, more: int) -> None:
    first, *lines = read_lines(workspace, "fixed")
    table: object = 0
    for _ in range(limits.LINE_BRACKETS + more - json.dumps(first).count("{")):
        table = {"a": table}
    first["grad_norm_by_parameter"]["a"] = table
    write_lines(workspace, "fixed", [first, *lines])


def pad_report(workspace: Workspace, more: int) -> None:
    picture = "\n![a](data:image/png;base64,iVBORw0KGgo{})\n"
    size = limits.REPORT_BYTES + more - workspace.report.stat().st_size - len(picture) + 2
    workspace.report.write_text(workspace.report.read_text() + picture.format("A" * size))


def pad_all(workspace: Workspace, more: int) -> None:
    pad_file("run.html", limits.FILE_BYTES - 1)(workspace, 0)
    files = [path for run in ("broken", "fixed") for path in workspace.run_folder(run).iterdir()]
    files = [path for path in files if path.name != "best.pt"]
    rest = workspace.run_folder("broken") / "run.html"
    files.remove(rest)
    size = sum(path.stat().st_size for path in [*files, workspace.experiment, workspace.report])
    rest.write_bytes(b"x" * (limits.FILES_BYTES + more - size))


def settings(**changes: int) -> Fill:
    def fill(workspace: Workspace, more: int) -> None:
        chosen = {name: value + more for name, value in changes.items()}
        made = RunSettings(seed=42, dataset="digits", **chosen)  # type: ignore[arg-type]
        for run, script in (("broken", None), ("fixed", "experiment.py")):
            change_json(workspace.run_folder(run) / META, command=made.command("huge_lr", script))

    return fill


# By the name of the limit: the function to reach it, the item of make check that fails above it, and its remedy.
CASES: dict[str, tuple[Fill, str, str]] = {
    "EXPERIMENT_BYTES": (of_program(sized), "experiment: size", "larger than 64 KiB: shorten it"),
    "NODES": (of_program(noded), "experiment: program", "more than 8000 nodes: shorten or simplify it"),
    "DEPTH": (of_program(deep), "experiment: program", "nested more than 100 deep: shorten or simplify it"),
    "INTEGER_BITS": (of_program(long_integer), "experiment: program", "integer of more than 4096 bits: shorten"),
    "DOTS": (of_program(dotted), "experiment: program", "a name with more than 100 dots: shorten"),
    "META_BYTES": (pad_meta, "fixed: size", "larger than 64 KiB: make the run again"),
    "LOG_BYTES": (pad_log, "fixed: size", "metrics.log is larger than 8 MiB: train for fewer epochs"),
    "LINE_BRACKETS": (nest_log, "fixed: size", "more than 100 brackets, which no run writes: make the run again"),
    "REPORT_BYTES": (pad_report, "report: front matter", "larger than 256 KiB: shorten it, or shrink the pictures"),
    "FILE_BYTES": (pad_file("checkpoint.pt", limits.FILE_BYTES), "fixed: size", "32 MiB: use a smaller network"),
    "FILES_BYTES": (pad_all, "archive: size", "more than 63 MiB together: use a smaller network"),
    "MOST_EPOCHS": (settings(epochs=MOST_EPOCHS), "archive: commands", "1000 epochs.*: start over with"),
    "MOST_BATCH_SIZE": (settings(batch_size=MOST_BATCH_SIZE), "archive: commands", "65536 examples .*: start over"),
}  # fmt: skip
# These limits follow from the other limits for any workspace. The tests below show it.
IMPLIED = {"MANIFEST_BYTES", "COMMANDS_BYTES", "TARBALL_BYTES", "MEMBERS", "NAME_BYTES", "EXTENSION_BYTES"}
OTHERS = {"ANSWER_BYTES", "STUDENT_CHARACTERS", "STUDENT_BYTES"}


def test_every_limit_is_tried() -> None:
    named = {name for name, value in vars(limits).items() if name.isupper() and isinstance(value, int)}
    named |= {name for name in vars(run_settings) if name.startswith("MOST_")}
    assert named - {"KIB", "MIB"} == CASES.keys() | IMPLIED | OTHERS


def taken(workspace: Workspace) -> Submission:
    data = deterministic_tar_gz(build_submission(workspace, "ada"))
    submission = parse_submission("ada_huge_lr", data)
    assert isinstance(submission, Submission)
    return submission


def grader_takes(workspace: Workspace) -> bool:
    """Return whether the grader accepts the submission that make submit would pack."""
    try:
        submission = taken(workspace)
        parse_experiment(submission.source)
    except (Rejected, Unparsable):
        return False
    return not submission.command_problem


@pytest.mark.parametrize("name", CASES)
def test_what_exceeds_a_limit_is_found_before_it_is_handed_in(workspace: Workspace, tmp_path: Path, name: str) -> None:
    fill, item, says = CASES[name]
    fill(workspace, 0)
    assert [one.id for one in check_workspace(workspace) if one.outcome == "failed"] == []
    assert grader_takes(workspace)
    submit(workspace, "ada", tmp_path / "out")

    other = make_workspace(tmp_path / "other")
    fill(other, 1)
    failed = {one.id: one for one in check_workspace(other) if one.outcome == "failed"}
    assert item in failed
    assert re.search(says, failed[item].message)
    if name != "FILES_BYTES":  # the archive may be a little larger
        assert not grader_takes(other)
    if failed[item].blocks:
        with pytest.raises(UserError, match=f"Not packed, {item}"):
            submit(other, "ada", tmp_path / "out")
    else:
        assert failed[item] in submit(other, "ada", tmp_path / "out").warnings


def test_what_make_submit_adds_fits_into_the_rest(workspace: Workspace) -> None:
    """If the files respect the limits, the manifest, the commands, headers and names do so, too."""
    pad_all(workspace, 0)
    settings(epochs=MOST_EPOCHS, batch_size=MOST_BATCH_SIZE)(workspace, 0)
    members = build_submission(workspace, "\u674e" * 42)
    assert len(members[COMMANDS]) < limits.COMMANDS_BYTES
    assert len(members["manifest.json"]) < limits.MANIFEST_BYTES
    assert len(deterministic_tar_gz(members)) < limits.TARBALL_BYTES
    assert len(FILES) < limits.MEMBERS
    assert max(map(len, FILES)) < min(limits.NAME_BYTES, limits.EXTENSION_BYTES)


@pytest.mark.parametrize("student", ["x" * limits.STUDENT_CHARACTERS, "\u674e" * (limits.STUDENT_BYTES // 3)])
def test_the_longest_login_is_taken_and_no_longer_one(workspace: Workspace, tmp_path: Path, student: str) -> None:
    path = submit(workspace, student, tmp_path).path
    assert len(f"{path.name}.sha256".encode()) <= limits.NAME_BYTES
    submission = parse_submission(path.name.removesuffix(SUFFIX), path.read_bytes())
    assert isinstance(submission, Submission) and submission.student == student
    with pytest.raises(UserError, match="use a login or an e-mail address of up to 64 characters"):
        submit(workspace, student + student[0], tmp_path)


def test_an_answer_may_have_the_limit_and_no_byte_more(tmp_path: Path) -> None:
    exercise = find_file_exercise("decision_tree")
    assert exercise is not None
    workspace, _ = start_file_exercise(exercise, tmp_path / "work")
    for more in (0, 1):
        workspace.answer.write_text("#" * (limits.ANSWER_BYTES + more))
        unread = [item for item in file_items(workspace) if item.id == "answer: file" and item.outcome == "failed"]
        assert bool(unread) == bool(more)
        facts = {"student": "ada", "recipe": exercise.id}
        data = deterministic_tar_gz(with_manifest({exercise.file: workspace.answer.read_bytes()}, facts))
        if more:
            assert "is larger than 128 KiB: shorten it" in unread[0].message
            with pytest.raises(Rejected, match="larger than 128 KiB: shorten it"):
                parse_submission("ada_decision_tree", data)
        else:
            assert isinstance(parse_submission("ada_decision_tree", data), Answer)


@pytest.mark.parametrize("option", ["--epochs", "--batch"])
def test_a_command_refuses_what_the_grader_does_not_replay(option: str, tmp_path: Path) -> None:
    asked = ["exercise", "huge_lr", option, "70000", "--work", str(tmp_path / "work")]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 2
    assert "is not a whole number from 1 to" in done.output
    assert not (tmp_path / "work").exists()
