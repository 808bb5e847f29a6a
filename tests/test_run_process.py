import fcntl
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.commands import edit, snapshot

from harness.errors import UserError
from harness.run.settings import RunJob, RunSettings
from harness.student.run_process import (
    JOB_FILE,
    locked_job_file,
    partial_folder,
    prepare_partial,
    publish,
    refuse_foreign_folder,
)


def job_in(folder: Path, **changes: object) -> RunJob:
    settings = RunSettings(seed=1, dataset="digits")
    job = RunJob(settings, "huge_lr", "digits_mlp", "Title", "broken", "EPOCHS = 1\n", str(folder))
    return replace(job, **changes)  # type: ignore[arg-type]


def prepare(job: RunJob) -> Path:
    partial = partial_folder(Path(job.folder))
    with locked_job_file(partial) as job_file:
        prepare_partial(job, partial, job_file)
    return partial


def test_a_run_begins_in_an_empty_folder_with_its_job_and_source(tmp_path: Path) -> None:
    job = job_in(tmp_path / "runs/broken")
    partial = prepare(job)
    (partial / "metrics.log").write_text("{}\n")
    (partial / "folder").mkdir()
    assert prepare(job) == partial
    assert sorted(snapshot(partial)) == ["experiment.py", JOB_FILE]
    assert RunJob.from_json((partial / JOB_FILE).read_text()) == job
    assert (partial / "experiment.py").read_text() == job.source


def test_a_resumed_run_keeps_all_but_what_was_being_written(tmp_path: Path) -> None:
    job = job_in(tmp_path / "broken")
    partial = prepare(job)
    (partial / "checkpoint.pt").write_bytes(b"weights")
    before = snapshot(partial)
    (partial / ".checkpoint.pt.17").write_bytes(b"wei")
    prepare(replace(job, resume=True))
    assert snapshot(partial) == before


@pytest.mark.parametrize(
    ("find", "replace", "message"),
    [
        ("EPOCHS = 1", "EPOCHS = 2", r"was started with another experiment\.py: start the run without --resume"),
        ('"seed": 1', '"seed": 2', "was started with other settings"),
        ('{"settings"', "{", r"job\.json is damaged: start the run without --resume"),
    ],
)
def test_another_run_is_not_gone_on_with(find: str, replace: str, message: str, tmp_path: Path) -> None:
    job = job_in(tmp_path / "broken", resume=True)
    partial = prepare(job)
    edit(partial / JOB_FILE, find, replace)
    before = snapshot(partial)
    with pytest.raises(UserError, match=message):
        prepare(job)
    assert snapshot(partial) == before


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    job = job_in(tmp_path / "broken")
    partial = prepare(job)
    with (partial / JOB_FILE).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UserError, match=r"Another process is writing .*broken\.partial: wait until"):
            prepare(job)
    prepare(job)


def finished(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_a_finished_run_takes_its_name_and_keeps_what_a_person_put_there(tmp_path: Path) -> None:
    finished(tmp_path / "fixed", result="old", mine="notes")
    finished(tmp_path / "fixed.old", mine="a copy that a person made")
    partial = finished(tmp_path / "fixed.partial", result="new")
    (partial / JOB_FILE).write_text("{}")
    publish(partial, tmp_path / "fixed")
    assert snapshot(tmp_path) == {
        "fixed/result": b"new",
        "fixed/mine": b"notes",
        "fixed.old/mine": b"a copy that a person made",
    }


def test_a_folder_that_is_no_run_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_foreign_folder(tmp_path / "new")
    refuse_foreign_folder(finished(tmp_path / "empty"))
    refuse_foreign_folder(finished(tmp_path / "run", **{"metrics.log": ""}))
    with pytest.raises(UserError, match="thesis contains files that are not part of a run: choose a new folder"):
        refuse_foreign_folder(finished(tmp_path / "thesis", chapter="one"))
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file is a file, and a run needs a folder"):
        refuse_foreign_folder(tmp_path / "file")
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(UserError, match="choose a new folder for the run"):
        refuse_foreign_folder(Path.cwd())
