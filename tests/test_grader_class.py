"""A class from tarballs to reports, in the real sandbox: `grader score` as an instructor runs it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.honest_class import HonestClass
from helpers.intake_archives import taken
from helpers.mini_experiments import edited
from helpers.sandbox_marks import needs_sandbox
from helpers.shared_data import link_shared_data, needs_shared_data
from helpers.special_cases import special_cases

from benchmarks.repack import repacked
from grader.cli import main
from grader.course.examples import broken_workspace, example_submission
from grader.replay.replay import Evaluation, Replay, SplitFigures
from grader.replay.replayer import Replayer
from grader.replay.replays import Replays, local_executor
from grader.replay.request import requests_of
from grader.sandbox import run_in_sandbox
from grader.score import self_test
from grader.score.evidence import Evidence
from grader.score.rubric import CRITERIA, Criterion, Weights, load_weights
from grader.score.scoring import score_evidence
from grader.score.self_test import self_test_problem, self_test_requests
from grader.score.verdict import CriterionScore
from harness.recipes.catalogue import load_recipe
from harness.run.options import RunOptions

RECIPE = "huge_lr"
BROKEN = load_recipe(RECIPE).broken_source()
Files = dict[str, bytes]


def grader(*words: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `grader` in a folder, with its own replay cache."""
    environment = {**os.environ, "TRAINWRECK_REPLAYS": str(cwd / "replays"), "COLUMNS": "80", **variables}
    return subprocess.run(
        [sys.executable, "-P", "-m", "grader", *map(str, words)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def classroom(honest: HonestClass, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `submissions/`, scored into `reports/` with one job and into `again/` with two jobs.

    The replays of the honest submissions are cached. The replays for ada and dan are cached only for the first scoring.
    """
    folder = tmp_path_factory.mktemp("class")
    out = folder / "submissions"
    tolerable = edited(BROKEN, ("lr=10.0", "lr=0.05"))
    example_submission(RECIPE, "bob", tolerable, honest.template, folder / "bob", out)
    good = honest.tarball("reference")
    special = {
        "ada_huge_lr": good,
        "cem_huge_lr": repacked(honest.tarball("masked"), student="cem"),
        "dan_huge_lr": repacked(honest.tarball("untouched"), student="dan"),
        **special_cases(good),
    }
    for name, data in special.items():
        (out / f"{name}.tar.gz").write_bytes(data)
    # File names that were not UTF-8, in the form that unzip leaves.
    for odd, content in ((b"ren\xe9_huge_lr.tar.gz", good), (b"zo\xeb_huge_lr.tar.gz", b"")):
        (out / os.fsdecode(odd)).write_bytes(content)
    honest.remember(folder / "replays")
    two = [
        requests_of(taken(out / f"{student}_huge_lr.tar.gz"), load_recipe(RECIPE))["fixed"]
        for student in ("ada", "dan")
    ]
    honest.remember(folder / "known", without=two)
    done = grader("score", "submissions", "--jobs", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    words = ("score", "submissions", "--jobs", "2", "--out", "again")
    done = grader(*words, cwd=folder, TRAINWRECK_REPLAYS=str(folder / "known"))
    assert done.returncode == 0, done.stderr
    return folder


def rows(reports: Path) -> dict[str, Any]:
    scores = json.loads((reports / "scores.json").read_text(encoding="utf-8"))
    return {row["submission"]: row for row in scores["submissions"]}


def replays_below(folder: Path) -> dict[Path, int]:
    """Return the modification time of each cached replay in a folder."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("replays/**/*.json")}


def files(reports: Path) -> Files:
    return {path.name: path.read_bytes() for path in sorted(reports.iterdir()) if path.is_file()}


@needs_sandbox
def test_the_verdicts_are_those_that_a_person_would_give(classroom: Path) -> None:
    found = rows(classroom / "reports")
    assert found["ada_huge_lr"]["total"] == 100
    assert found["ada_huge_lr"]["status"] == "graded"
    fixes = {name: row["criteria"]["fix"]["points"] for name, row in found.items() if row["criteria"]}
    assert fixes["bob_huge_lr"] >= 18
    assert fixes["cem_huge_lr"] <= 4
    assert fixes["dan_huge_lr"] == 0
    for row in found.values():
        if row["status"] == "graded":
            points = [row["criteria"][criterion]["points"] for criterion in CRITERIA]
            assert row["total"] == pytest.approx(sum(points))
    # Forged values in a log cost the points of the log, but no other points.
    checks = found["forger_huge_lr"]["criteria"]["reproducibility"]["checks"]
    assert [check["id"] for check in checks if check["points"] == 0] == ["fixed_log"]
    assert found["crash_huge_lr"]["criteria"]["fix"]["points"] == 0
    truncated = found["truncated_huge_lr"]
    assert (truncated["status"], truncated["total"]) == ("rejected", 0)
    assert truncated["reason"]
    # File names that are not UTF-8.
    assert found["ren\\xe9_huge_lr"]["total"] == 100
    assert found["zo\\xeb_huge_lr"]["status"] == "rejected"


@needs_sandbox
def test_copies_are_flagged_and_shown_to_the_instructor_alone(classroom: Path) -> None:
    found = rows(classroom / "reports")
    similar = {name for name, row in found.items() if "similar" in [flag["id"] for flag in row["flags"]]}
    assert {"ada_huge_lr", "ren\\xe9_huge_lr"} <= similar
    assert all(found[name]["status"] != "rejected" for name in similar)
    assert "ren\\xe9_huge_lr" in (classroom / "reports" / "similar.html").read_text()
    assert "similar" not in (classroom / "reports" / "ada_huge_lr.html").read_text().lower()


@needs_sandbox
def test_the_same_class_gives_the_same_bytes_whatever_the_jobs(classroom: Path) -> None:
    first, again = files(classroom / "reports"), files(classroom / "again")
    assert first.keys() == again.keys()
    assert first == again


@needs_sandbox
def test_a_decision_changes_its_submission_alone(classroom: Path, tmp_path: Path) -> None:
    out = shutil.copytree(classroom / "reports", tmp_path / "reports")
    before = files(out)
    (tmp_path / "reports.decisions.toml").write_text(
        '[[override]]\nsubmission = "cem_huge_lr"\ncheck = "fix.correct"\npoints = 6\ncomment = "Half of it."\n'
    )
    assert grader("score", "submissions", "--out", out, cwd=classroom).returncode == 0
    changed = {name for name, data in files(out).items() if before[name] != data}
    assert changed == {"cem_huge_lr.html", "gradebook.csv", "index.html", "scores.json"}
    old, new = rows(classroom / "reports"), rows(out)
    assert old.keys() == new.keys()
    assert {name for name in old if old[name] != new[name]} == {"cem_huge_lr"}
    check = new["cem_huge_lr"]["criteria"]["fix"]["checks"][0]
    assert (check["points"], check["comment"], check["rule"]["points"] <= 4) == (6, "Half of it.", True)
    assert "Half of it." in (out / "cem_huge_lr.html").read_text()


@pytest.mark.slow
@needs_sandbox
def test_without_a_sandbox_every_report_says_so(honest: HonestClass, tmp_path: Path) -> None:
    honest.remember(tmp_path / "replays")
    one = tmp_path / "submissions"
    one.mkdir()
    (one / "ada_huge_lr.tar.gz").write_bytes(honest.tarball("reference"))
    words = ("--trust-submissions", "--out", tmp_path / "reports")
    done = grader("score", one, *words, cwd=tmp_path, TRAINWRECK_REPLAYS=str(tmp_path / "replays"))
    assert done.returncode == 0
    assert "WITHOUT A SANDBOX" in done.stderr
    (row,) = rows(tmp_path / "reports").values()
    assert row["total"] == 100
    assert "no sandbox" in [flag["id"] for flag in row["flags"]]
    for name in ("index.html", "ada_huge_lr.html"):
        assert "WITHOUT a sandbox" in (tmp_path / "reports" / name).read_text()
    # Without a sandbox, the grader does not use replays from the sandbox. Ada's fix equals a program of the self-tests.
    assert len(list((tmp_path / "replays" / "no-sandbox").glob("*/*.json"))) == 6


@pytest.mark.slow
@needs_sandbox
@needs_shared_data
def test_a_submission_made_on_mnist_is_graded(
    honest: HonestClass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest.remember(tmp_path / "replays")
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("TRAINWRECK_DATA", str(link_shared_data(cache)))
    asked = RunOptions(dataset="mnist", epochs=1)
    template = broken_workspace(RECIPE, tmp_path / "template", asked)
    source = load_recipe(RECIPE).healthy_source()
    example_submission(RECIPE, "ada", source, template, tmp_path / "ada", tmp_path / "submissions")
    done = grader("score", "submissions", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = rows(tmp_path / "reports").values()
    assert row["criteria"]["reproducibility"]["points"] == 35
    assert row["criteria"]["fix"]["points"] == 20


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("score", "nowhere"), "There is no folder nowhere"),
        (("score", "."), "contains no .tar.gz file"),
        (("score",), "Missing argument"),
        (("export", "--format", "canvas"), "There is no reports/scores.json"),
        (("export", "--format", "excel"), "'excel' is not one of"),
        (("selfcheck", "--only", "huge_lt"), "did you mean huge_lr?"),
        (("nothing",), "No such command 'nothing'"),
    ],
)
def test_wrong_use_gets_one_sentence_and_exit_2(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["grader", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told


def test_without_bubblewrap_nothing_runs(tmp_path: Path) -> None:
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "ada_huge_lr.tar.gz").write_bytes(b"")
    done = grader("score", "submissions", cwd=tmp_path, PATH=str(tmp_path))
    assert done.returncode == 2
    assert "bubblewrap" in done.stderr
    assert not (tmp_path / "reports").exists()


@needs_sandbox
def test_a_recipe_that_is_not_graded_right_here_has_a_problem(
    classroom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Replays(local_executor(Replayer(run_in_sandbox, tmp_path), jobs=1), classroom / "replays")
    broken, reference, repeated, checks, *behaviours = map(known.of, self_test_requests(load_recipe(RECIPE)))

    def problem(**changed: Replay) -> str:
        replays = {"broken": broken, "reference": reference, "repeated": repeated, "checks": checks, **changed}
        return self_test_problem(load_recipe(RECIPE), [*replays.values(), *behaviours], load_weights())

    assert problem() == ""
    for run in ("broken", "reference", "repeated", "checks"):
        said = problem(**{run: Replay(status="XX", message="no disk")})
        assert said.startswith(f"The {run}")
        assert "of huge_lr failed on this machine (no disk)" in said
    worthless = {"heldout": SplitFigures(loss=2.3, accuracy=0.1)}
    assert repeated.evaluation is not None
    for changes, said in (
        ({"checkpoint_sha256": "0" * 64}, "reproducibility.fixed_checkpoint"),
        ({"evaluation": Evaluation(problem="it cannot be read")}, "the weights do not fit"),
        (
            {"evaluation": repeated.evaluation.model_copy(update=worthless)},
            "held-out accuracy by the trusted evaluator is 0.1,",
        ),
    ):
        assert said in problem(repeated=repeated.model_copy(update=changes))
    assert "The check learning-rate could not run" in problem(checks=checks.model_copy(update={"checks": ()}))
    # A rubric that accepts any experiment as a fix.
    perfect: list[dict[Criterion, CriterionScore]] = []

    def generous(evidence: Evidence, weights: Weights) -> dict[Criterion, CriterionScore]:
        perfect.append(score_evidence(evidence, weights))
        return perfect[0]

    monkeypatch.setattr(self_test, "score_evidence", generous)
    assert "The untouched experiment of huge_lr got 20.0 points" in problem()
