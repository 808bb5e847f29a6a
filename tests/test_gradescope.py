"""The autograder for Gradescope: the files in its bundle, its messages, and a run in Gradescope's folders."""

import json
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.courses import COURSE, write_course
from helpers.made_up_class import HOSTILE, changed, make_row

from benchmarks.repack import repacked
from grader.course.course import read_course
from grader.course.examples import broken_workspace, example_submission
from grader.course.export import ExportOptions, run_export
from grader.course.gradescope import Settings, bundle, results, run
from grader.report.write import write_zip
from grader.score.identity import compare_rows
from grader.score.verdict import SubmissionScore, lost, open_item
from harness.errors import UserError
from harness.recipes.catalogue import Catalogue
from harness.submission.document import visible

if TYPE_CHECKING:
    from helpers.honest_class import HonestClass

VISIBILITIES = {"visible", "hidden", "after_due_date", "after_published"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}
TEXTS = ("output", "name")
STEEP = Settings(("steep",))
BOTH = Settings(("steep", "zigzag"), "visible")


def read_results(data: dict[str, Any]) -> dict[str, float | None]:
    """Return the score of each test. Fail if the file breaks a rule of Gradescope's specification."""
    assert data.keys() <= {
        "score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility",
        "stdout_visibility", "extra_data", "tests", "leaderboard",
    }  # fmt: skip
    assert isinstance(data["score"], float)
    assert isinstance(data["output"], str)
    assert {data.get("visibility", "visible"), data["stdout_visibility"]} <= VISIBILITIES
    assert {value for name, value in data.items() if name.endswith("_format")} <= FORMATS
    for test in data["tests"]:
        assert test.keys() <= {
            "score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags",
            "visibility", "extra_data",
        }  # fmt: skip
        assert all(isinstance(test[name], str) and test[name] == visible(test[name]) for name in TEXTS)
        assert test["visibility"] in VISIBILITIES
        assert test.get("status", "passed") in ("passed", "failed")
        assert 0 <= test.get("score", 0.0) <= test["max_score"]
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    return {test["name"]: test.get("score") for test in data["tests"]}


def row(recipe: str, changes: dict[str, Any] | None = None, student: str = "ada", **more: object) -> SubmissionScore:
    return make_row(f"{student}_{recipe}", student, recipe, changes or {}, **more)


def test_each_check_is_a_test() -> None:
    data = results([row("steep", changed("fix.minimal", lost, HOSTILE, "Be small.", points=2.5))], STEEP)
    found = read_results(data)
    assert data["score"] == 94.5
    assert found["Nothing else was changed"] == 2.5
    assert sum(value or 0.0 for value in found.values()) == 94.5
    [minimal] = [test for test in data["tests"] if test["name"] == "Nothing else was changed"]
    assert (minimal["max_score"], minimal["status"], minimal["visibility"]) == (8, "failed", "after_due_date")
    assert minimal["output"].endswith("Be small.")
    assert "belongs to ada." in data["output"]


def test_an_open_check_has_no_score_and_is_no_zero() -> None:
    data = results([row("steep", changed("fix.correct", open_item, "Who knows?"))], STEEP)
    assert read_results(data)["The cause is gone"] is None
    assert data["score"] == 88.0
    assert "must still decide some items" in data["output"]


def test_the_exercises_of_an_assignment_share_100_points() -> None:
    data = results([row("steep"), row("zigzag")], BOTH)
    assert data["score"] == 100.0
    assert "steep: The cause is gone" in read_results(data)
    data = results([row("steep"), row("other")], BOTH)
    assert data["score"] == 50.0
    assert read_results(data)["zigzag"] == 0.0
    assert "ada_other does not count" in data["output"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "No files were handed in for this exercise: hand in one file."),
        ([row("steep"), row("steep", student="bob")], "2 files were handed in for this exercise: hand in one file."),
        ([row("steep"), replace(row("steep"), submission="1_ada_steep")], "1_ada_steep"),
        ([row("steep", status="rejected", reason="Not an archive.", total=0.0, criteria={})], "Not an archive."),
    ],
)
def test_what_a_student_can_put_right_is_said_at_once(rows: list[SubmissionScore], said: str) -> None:
    data = results(compare_rows(rows), STEEP)
    found = read_results(data)
    if said == "1_ada_steep":  # the file with the plain name counts
        assert data["score"] == 100.0
        return
    assert found == {"steep": 0.0}
    assert data["score"] == 0.0
    assert said in data["tests"][0]["output"]
    assert data["tests"][0]["visibility"] == "visible"


def test_what_the_grader_cannot_judge_gives_no_result() -> None:
    with pytest.raises(UserError, match="cannot be judged: The sandbox did not start"):
        results(
            [row("steep", status="not judged", reason="The sandbox did not start.", total=None, criteria={})], STEEP
        )


def test_an_upload_without_a_tarball_is_told_what_to_hand_in(tmp_path: Path) -> None:
    for name in ("submission", "results"):
        (tmp_path / name).mkdir()
    (tmp_path / "submission" / "experiment.py").write_text("")
    run(STEEP, tmp_path)
    data = json.loads((tmp_path / "results" / "results.json").read_text())
    assert read_results(data) == {}
    assert "hand in the file that make submit wrote" in data["output"]


@pytest.mark.parametrize(("exercises", "said"), [((), "--exercise"), (("huge_lrr",), "huge_lr")])
def test_a_bundle_is_for_exercises_that_there_are(exercises: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        list(bundle(Settings(exercises)))


def unpacked(tmp_path: Path, settings: Settings, course: Path | None = None) -> Path:
    """Return a folder with an unpacked bundle, as Gradescope makes it."""
    root = tmp_path / "autograder"
    for name in ("source", "submission", "results"):
        (root / name).mkdir(parents=True)
    write_zip(tmp_path / "autograder.zip", bundle(settings, course))
    with zipfile.ZipFile(tmp_path / "autograder.zip") as pack:
        for member in pack.infolist():
            path = Path(pack.extract(member, root / "source"))
            path.chmod(member.external_attr >> 16 & 0o777)
    (root / "run_autograder").write_bytes((root / "source" / "run_autograder").read_bytes())
    (root / "run_autograder").chmod(0o755)
    return root


def test_a_bundle_has_its_scripts_at_the_root(tmp_path: Path) -> None:
    root = unpacked(tmp_path, Settings(("huge_lr",)))
    for name in ("setup.sh", "run_autograder"):
        assert (root / "source" / name).stat().st_mode & 0o111
        assert subprocess.run(["bash", "-n", root / "source" / name], check=False).returncode == 0
    assert not [path for path in (root / "source").rglob("*") if path.name == "__pycache__" or path.name[0] == "."]
    first = (tmp_path / "autograder.zip").read_bytes()
    write_zip(tmp_path / "again.zip", bundle(Settings(("huge_lr",))))
    assert (tmp_path / "again.zip").read_bytes() == first


def test_the_cases_of_a_course_are_packed_with_its_roster(tmp_path: Path) -> None:
    file = write_course(tmp_path).rename(tmp_path / "ml.toml")
    run_export("gradescope-autograder", ExportOptions(tmp_path / "reports", course=file, assignment="week-2"))
    with zipfile.ZipFile(tmp_path / "reports/export/gradescope-autograder/autograder.zip") as pack:
        packed = {name: pack.read(name) for name in ("gradescope.json", "course/course.toml", "course/roster.csv")}
    assert json.loads(packed["gradescope.json"])["exercises"] == ["b1"]
    assert packed["course/course.toml"] == COURSE.encode()
    # Logins and names, but no address, no section, and no grade from a gradebook that is used as a roster.
    assert packed["course/roster.csv"].splitlines() == [
        b'"login","name"', b'"ada","Ada Lovelace"', b'"bob","Bob"', b'"cem","Cem"',
    ]  # fmt: skip
    file.write_text(COURSE.replace("roster.csv", "../roster.csv"))
    with pytest.raises(UserError, match="move that file into the folder of"):
        list(bundle(Settings(("b1",), assignment="week-2"), file))


def run_in_a_clean_root(root: Path) -> dict[str, Any]:
    """Run a bundle where it can see only the installed packages and no other file of this repository."""
    venv.create(root / "venv", symlinks=True)
    packages = root / "venv" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    # Python searches a folder that a .pth file names, but ignores .pth files in that folder. One names this repository.
    (packages / "bundle.pth").write_text("/autograder/source\n/autograder/venv/installed\n")
    (root / "venv" / "installed").mkdir(exist_ok=True)
    # Do not mount a new /proc. Bubblewrap covers parts of it, so no sandbox inside could mount one.
    words = ["--bind", "/proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/root"]
    for place in ("/usr", "/etc/ld.so.cache", "/sys", sys.base_prefix):
        words += ["--ro-bind", place, place]
    for name in ("bin", "lib", "lib64"):
        words += ["--symlink", f"usr/{name}", f"/{name}"] if Path(f"/{name}").is_symlink() else []
    words += ["--bind", str(root), "/autograder", "--chdir", "/autograder", "--clearenv", "--setenv", "HOME", "/root"]
    words += ["--ro-bind", sysconfig.get_path("purelib"), "/autograder/venv/installed"]
    words += ["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "/autograder/run_autograder"]
    done = subprocess.run(["bwrap", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    data: dict[str, Any] = json.loads((root / "results" / "results.json").read_text())
    return data


@pytest.mark.slow
def test_a_submission_is_scored_in_a_clean_root(honest: "HonestClass", tmp_path: Path) -> None:
    root = unpacked(tmp_path, Settings(("huge_lr",), "visible"))
    (root / "submission" / "ada_huge_lr.tar.gz").write_bytes(honest.tarball("reference"))
    data = run_in_a_clean_root(root)
    found = read_results(data)
    assert data["score"] == 100.0
    assert len(found) > 10
    assert {test["status"] for test in data["tests"]} == {"passed"}


@pytest.mark.slow
def test_a_case_of_a_course_is_scored_under_the_students_own_seed(tmp_path: Path) -> None:
    file = write_course(tmp_path)
    course = read_course(file)
    assignment = course.find("week-2")
    catalogue = Catalogue(course.cases(assignment))
    template = broken_workspace("b1", tmp_path / "template", student="ada", catalogue=catalogue)
    source = catalogue.find("b1").broken_source()
    handed_in = example_submission("b1", "ada", source, template, tmp_path / "work", tmp_path, catalogue=catalogue)
    copied = repacked(handed_in.read_bytes(), student="bob")
    root = unpacked(tmp_path, Settings(("b1",), "visible", assignment="week-2"), file)
    (root / "submission" / "ada_b1.tar.gz").write_bytes(handed_in.read_bytes())
    data = run_in_a_clean_root(root)
    assert (data["score"], data["extra_data"]["flags"]) == (100.0, [])
    (root / "submission" / "ada_b1.tar.gz").rename(root / "submission" / "bob_b1.tar.gz").write_bytes(copied)
    [flag] = run_in_a_clean_root(root)["extra_data"]["flags"]
    assert "the seed" in flag and "belongs to ada, not to bob" in flag
