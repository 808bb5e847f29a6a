"""`grader demo`: a small class out of `solutions/`, with every kind of verdict, made, scored and shown."""

import gzip
import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from rich.console import Console

from grader.course.examples import broken_workspace, example_answer, example_submission, right_and_wrong
from grader.grade import score_folder
from grader.score.known_edits import known_fixes
from grader.session import ScoreOptions
from harness.errors import UserError
from harness.recipe import load_recipe, recipe_ids
from harness.submission.archive import deterministic_tar_gz
from harness.written.exercise import file_exercise_ids, find_file_exercise

Members = dict[str, bytes]

_NAMES = (
    "ada", "alan", "barbara", "claude", "donald", "edsger", "emmy", "frances", "grace", "hedy", "ida", "john",
    "karen", "katherine", "kurt", "leslie", "lynn", "margaret", "mary", "niklaus", "radia", "richard", "robin",
    "shafi", "sophie", "stephen", "tim", "tony", "vint", "whitfield", "yann", "yoshua", "zuse", "evelyn", "noether",
    "annie", "dorothy", "joan", "mae", "rosalind", "valerie",
)  # fmt: skip
# Of each recipe the first variant of these verdicts; the slower recipes have the first three only.
_VERDICTS = ("full", "masking", "wrong", "alternative", "overreach")
_SLOW = ("forgotten_eval", "amp_no_scaling")


def run_demo(folder: Path, *, jobs: int) -> int:
    """Make the class in `folder/submissions`, score it into `folder/reports`, and return the exit status of that.

    Raises `UserError` where the folder holds something else than an earlier demo.
    """
    marker = folder / ".demo"
    if folder.exists() and any(folder.iterdir()) and not marker.exists():
        raise UserError(f"{folder} is there and is no earlier demo: name another folder with --to.")
    for name in ("submissions", "reports"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    marker.touch()
    console = Console(stderr=True)
    with console.status("making a class of example submissions: every run is really made"):
        count = make_class(folder / "submissions", folder / "work", jobs)
    shutil.rmtree(folder / "work")
    console.print(f"{count} submissions in {folder / 'submissions'}; now they are scored.", highlight=False)
    options = ScoreOptions(out=folder / "reports", jobs=jobs, replays=folder / "replays")
    return score_folder(folder / "submissions", options)


def make_class(out: Path, work: Path, jobs: int) -> int:
    """Make the submissions, runs side by side, and return how many there are."""
    shutil.rmtree(work, ignore_errors=True)
    names = iter(_NAMES)
    tasks: list[Callable[[], object]] = []
    with ThreadPoolExecutor(jobs) as pool:
        templates = dict(
            zip(
                recipe_ids(),
                pool.map(lambda recipe: broken_workspace(recipe, work / "template"), recipe_ids()),
                strict=True,
            )
        )
        for recipe in recipe_ids():
            for verdict in _VERDICTS[:3] if recipe in _SLOW else _VERDICTS:
                fixes, _ = known_fixes(load_recipe(recipe))
                fix = next((item for item in fixes if item.verdict == verdict), None)
                if fix is not None:
                    tasks.append(_task(recipe, next(names), fix.source, templates[recipe], work, out))
        source = load_recipe("huge_lr").healthy_source()
        odd = _odd_source(source)
        tasks.append(_task("huge_lr", "curious", odd, templates["huge_lr"], work, out))
        tasks.append(_task("huge_lr", "vague", source, templates["huge_lr"], work, out, report=_vague))
        tasks += [
            partial(example_answer, exercise, student, answer, work / student, out)
            for exercise in filter(None, map(find_file_exercise, file_exercise_ids()))
            for answer, student in zip(right_and_wrong(exercise), names, strict=False)
        ]
        for done in [pool.submit(task) for task in tasks]:
            done.result()
    good = (out / "vague_huge_lr.tar.gz").read_bytes()
    for name, data in special_cases(good).items():
        (out / f"{name}.tar.gz").write_bytes(data)
    return len(list(out.glob("*.tar.gz")))


def _task(
    recipe: str,
    student: str,
    source: str,
    template: Path,
    work: Path,
    out: Path,
    *,
    report: Callable[[str], str] | None = None,
) -> Callable[[], object]:
    def make() -> object:
        return example_submission(recipe, student, source, template, work / student, out, report=report)

    return make


def _odd_source(healthy: str) -> str:
    """Return a right fix beside code that could reach the program that measures it."""
    return healthy.replace("import torch\n", "import sys\n\nimport torch\n", 1).replace("lr=0.1,", "lr=0.05,")


def _vague(report: str) -> str:
    head, _, _ = report.rpartition("---\n")
    return f"{head}---\n\nSomething was wrong with the training. I changed a value and now it works well.\n"


def special_cases(good: bytes) -> dict[str, bytes]:
    """Return archives that no student path makes: edited logs, odd names, hostile and broken tarballs."""
    cases = {
        "smith_huge_lr": repacked(good, student="Smith, Jr."),
        "formula_huge_lr": repacked(good, student="=1+1"),
        "forger_huge_lr": repacked(good, student="forger", change=_better_log),
        "crash_huge_lr": repacked(good, student="crash", change=_raising),
        "truncated_huge_lr": good[: len(good) // 2],
        "traversal_huge_lr": _with_member(good, "../../etc/cron.d/evil"),
        "archive_huge_lr": b"PK\x03\x04 not a tarball",
    }
    return cases


def _members(data: bytes) -> Members:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = {item.name: archive.extractfile(item) for item in archive.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


def repacked(data: bytes, *, student: str, change: Callable[[Members], None] | None = None) -> bytes:
    """Return the submission under another student's name, and with its members changed; the manifest agrees."""
    members = _members(data)
    if change is not None:
        change(members)
    manifest = json.loads(members.pop("manifest.json"))
    manifest["student"] = student
    manifest["files"] = {name: hashlib.sha256(members[name]).hexdigest() for name in sorted(members)}
    members["manifest.json"] = (json.dumps(manifest, indent=1) + "\n").encode()
    return deterministic_tar_gz(members)


def _better_log(members: Members) -> None:
    log = members["runs/fixed/metrics.log"].decode().splitlines()
    last = json.loads(log[-1])
    last["val_accuracy"] = 0.999
    members["runs/fixed/metrics.log"] = "\n".join([*log[:-1], json.dumps(last), ""]).encode()


def _raising(members: Members) -> None:
    source = members["experiment.py"].decode()
    members["experiment.py"] = source.replace("    optimizer.step()\n", "    optimizer.stpe()\n").encode()


def _with_member(data: bytes, name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content in {**_members(data), name: b"* * * * * root true\n"}.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)
