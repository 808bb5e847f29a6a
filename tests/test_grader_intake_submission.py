import gzip
import hashlib
import json
import tarfile
import tracemalloc
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from helpers.intake_archives import (
    COMMAND,
    COMMANDS,
    contents,
    manifest,
    member,
    packed,
    parsed,
    taken,
    whole,
    with_members,
    written,
)
from helpers.made_up_runs import make_workspace

from grader.intake.archive import Rejected, read_tarball
from grader.intake.submission import Submission
from grader.replay.request import Role, requests_of
from harness.recipes.catalogue import load_recipe
from harness.run.settings import RunSettings
from harness.student.hand_in import submit
from harness.submission.archive import FILES, build_submission
from harness.submission.limits import REPORT_BYTES, TARBALL_BYTES


def holds(submission: Submission, files: dict[str, bytes]) -> bool:
    """Return whether the submission contains the seven of these files that a score needs."""
    logs = {f"runs/{run}/metrics.log": claim.log for run, claim in submission.claims.items()}
    held = {**submission.files, **logs}
    return len(held) == 7 and held.items() <= files.items()


def refused(tmp_path: Path, data: bytes) -> Rejected:
    with pytest.raises(Rejected) as caught:
        taken(written(tmp_path, data))
    assert caught.value.message.endswith(".")
    assert caught.value.message.isprintable()
    assert str(caught.value) == caught.value.message
    return caught.value


def test_a_whole_submission_is_taken(tmp_path: Path) -> None:
    data = packed(whole())
    submission = taken(written(tmp_path, data, "Smith, Jr._huge_lr.tar.gz"))
    assert submission.name == "Smith, Jr._huge_lr"
    assert submission.sha256 == hashlib.sha256(data).hexdigest()
    assert holds(submission, whole())
    assert (submission.missing, submission.ignored) == ((), ())
    assert (submission.manifest.student, submission.manifest.recipe) == ("ada", "huge_lr")


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_what_else_lies_in_it_is_named_and_left(tmp_path: Path, form: int) -> None:
    long = "/".join(["a" * 60, "b" * 60, "c" * 60])  # too long for a header
    members = [member(name, b"x") for name in (long, "notes.txt", "runs/broken/best.pt", "ü/y")]
    folder = member("runs/", type=tarfile.DIRTYPE)
    submission = taken(written(tmp_path, with_members(folder, *members, form=form)))
    assert submission.ignored[0].startswith("a" * 60)
    assert submission.ignored[1:] == ("notes.txt", "runs/broken/best.pt", "ü/y")
    assert holds(submission, whole())


def test_one_packed_by_hand_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    for name, content in whole().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    path = tmp_path / "ada_huge_lr.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, ".")
    assert holds(taken(path), whole())


@pytest.mark.parametrize("student", ["Smith, Jr.", "=1+1", "Zoë 日本", "O'Brien <b>", "x" * 64, "../../etc"])
def test_a_student_may_have_any_name_that_can_be_seen(tmp_path: Path, student: str) -> None:
    assert taken(written(tmp_path, packed(whole(student=student)))).manifest.student == student


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["a//b"], "absolute name"),
        (["a/./b"], "absolute name"),
        (["report.md"], "duplicate name"),
        (["x" * 99 + "/" + "y" * 99 + "/" + "z" * 99], "name too long"),
    ],
)
def test_names_that_are_not_plain_or_not_different_are_refused(tmp_path: Path, names: list[str], code: str) -> None:
    data = with_members(*(member(name, b"x") for name in names), form=tarfile.PAX_FORMAT)
    refusal = refused(tmp_path, data)
    assert (refusal.code, refusal.student, refusal.recipe) == (code, "ada", "huge_lr")


@pytest.mark.parametrize(
    "record", [b"9 a=b\n", b"6 a=b", b"x", b"99999 a=b\n", b"2 \n", b"-6 a=b\n", b"5 ab\n", b"0 \n"]
)
def test_a_pax_header_that_is_none_is_refused(tmp_path: Path, record: bytes) -> None:
    data = with_members(member("x", record, type=tarfile.XHDTYPE), member("strange", b"x"))
    assert refused(tmp_path, data).code == "damaged archive"


def test_an_archive_may_have_the_limit_and_no_byte_more() -> None:
    data = bytes(TARBALL_BYTES)
    assert read_tarball(BytesIO(data)) == data
    with pytest.raises(Rejected, match="larger than 64 MiB"):
        read_tarball(BytesIO(data + b"x"))


def test_a_bomb_is_never_unpacked(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(2**28), mtime=0)
    tracemalloc.start()
    assert refused(tmp_path, bomb).code == "unpacks too large"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * TARBALL_BYTES


@pytest.mark.parametrize("run", ["broken", "fixed"])
def test_a_log_that_is_nested_too_deeply_is_refused(tmp_path: Path, run: str) -> None:
    files = contents(**{f"runs__{run}__metrics.log": b'{"a":' * 101 + b"1" + b"}" * 101})
    assert refused(tmp_path, packed({**files, "manifest.json": manifest(files)})).code == "no log"


@pytest.mark.parametrize(
    "data",
    [
        manifest({})[:-1] + b', "seed": 42}',
        *(manifest({}, seed=seed) for seed in (42.0, "42", True, -1, 2**32)),
        *(manifest({}, files={"report.md": digest}) for digest in ("abc", "A" * 64, "0" * 64 + "\n")),
        *(manifest({}, student=student) for student in ("", " ", "x" * 65, "a\u200bb", "\ud800", 7, None)),
        manifest({}, files=[]),
        manifest({}, dataset_digest="x"),
        manifest({}, format_version="1"),
        *(
            json.dumps({key: value for key, value in json.loads(manifest({})).items() if key != missing}).encode()
            for missing in json.loads(manifest({}))
        ),
    ],
)
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, data: bytes) -> None:
    assert refused(tmp_path, packed({**contents(), "manifest.json": data})).code == "manifest"


@pytest.mark.parametrize(("name", "limit"), [("experiment", 64 * 1024), ("report", REPORT_BYTES)])
def test_a_text_that_is_too_large_is_refused(tmp_path: Path, name: str, limit: int) -> None:
    files = contents(**{name: b"#" * (limit + 1)})
    assert refused(tmp_path, packed({**files, "manifest.json": manifest(files)})).code == "text too large"


def test_any_other_file_may_be_missing_and_is_named(tmp_path: Path) -> None:
    files = {"experiment.py": contents()["experiment.py"]}
    submission = taken(written(tmp_path, packed({**files, "manifest.json": manifest(files)})))
    assert set(submission.missing) == set(FILES) - {"experiment.py", "manifest.json"}


def with_commands(tmp_path: Path, commands: bytes | None, **changed: Any) -> Submission:
    files = contents(command=commands)
    return taken(written(tmp_path, packed({**files, "manifest.json": manifest(files, **changed)})))


OPTIONS = b"digits --epochs 3 --batch 8"


@pytest.mark.parametrize(
    ("commands", "changes"),
    [
        (COMMANDS, {}),
        (COMMANDS.replace(b"digits", OPTIONS).replace(b"\n", b"\r\n"), {"epochs": 3, "batch_size": 8}),
        (COMMANDS.replace(b"digits", b"digits --device cuda"), {}),
    ],
)
def test_the_settings_of_both_runs_are_read(tmp_path: Path, commands: bytes, changes: dict[str, int]) -> None:
    submission = with_commands(tmp_path, commands)
    assert submission.command_problem == ""
    assert submission.settings == replace(RunSettings(seed=42, dataset="digits"), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "commands",
    [
        None,
        b"",
        COMMAND.encode(),
        COMMANDS + b"rm -rf /\n",
        *(
            COMMANDS.replace(old, new)
            for old, new in (
                (b" --script experiment.py", b""), (b"experiment.py", b"../other.py"), (b"huge_lr", b"loss_sum"),
                (b"--seed 42", b"--seed 43"), (b"digits", b"mnist"), (b"python ", b"python3 "), (b"trainer", b"x"),
                *((b"digits", b"digits " + more) for more in (
                    b"--epochs 1001", b"--epochs 0", b"--epochs 03", b"--epochs=3", b"--epochs 3 --epochs 4",
                    b"--verify", b"--batch 65537", b"--batch 8 --epochs 3", b"--clip-norm 1", b"--device cpu",
                    b"--device tpu", b"; ls", "--epochs ٣".encode(), b"--numerics native", b"--max-steps 3",
                    b"\x1b[31m", b"", b"x" * 5000,
                )),
            )
        ),
        COMMANDS.replace(b"digits", b"digits --epochs 3", 1),
    ],
)  # fmt: skip
def test_commands_that_the_harness_does_not_write_are_a_problem(tmp_path: Path, commands: bytes | None) -> None:
    submission = with_commands(tmp_path, commands)
    assert submission.command_problem.endswith(".") and submission.command_problem.isprintable()
    assert submission.settings.device == "cpu" and (submission.settings.epochs or 0) <= 1000


def test_the_submission_that_the_harness_makes_is_taken_as_it_is(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "work")
    path = submit(workspace, "ada", tmp_path).path
    submission = taken(path)
    assert holds(submission, build_submission(workspace, "ada"))
    assert (submission.missing, submission.ignored) == ((), ())
    assert f"{submission.sha256}  {path.name}\n" == path.with_name(f"{path.name}.sha256").read_text()


@pytest.mark.parametrize("ours", ["reference", "broken"])
def test_ours_is_run_in_place_of_a_program_that_differs_by_comments_only(ours: Role) -> None:
    recipe = load_recipe("huge_lr")
    source = {"reference": recipe.healthy_source(), "broken": recipe.broken_source()}[ours]
    for more, same in (("# mine\n", True), ("MINE = 1\n", False)):
        files = contents(experiment=f"{source}\n{more}".encode())
        asked = requests_of(parsed("ada_huge_lr", packed({**files, "manifest.json": manifest(files)})), recipe)
        assert (asked["fixed"] == asked[ours]) == asked["fixed"].trusted == same
