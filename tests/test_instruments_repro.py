import json
import subprocess
from pathlib import Path

import pytest
from instrument_subjects import mini_subject, real_subject
from runs import CHANCE, MINI, edited

from harness.checks.failure import find_failure
from harness.checks.repro import measure, reproduce, show, show_reproduced
from harness.checks.repro_files import read_failure, read_settings
from harness.checks.subject import Subject
from harness.errors import UserError
from harness.submission.archive import deterministic_tar_gz

pytestmark = pytest.mark.usefixtures("torch_as_found")

EXPLODES = edited(MINI, ("lr=0.05", "lr=1e20"))
FORGETFUL = edited(CHANCE, ("    model.eval()\n", ""))


@pytest.mark.parametrize(
    ("source", "quantity", "sudden", "lines"),
    [(EXPLODES, "loss", True, 1), (FORGETFUL, "eval_buffer_change", True, 2), (CHANCE, "val_loss", False, 2)],
    ids=["explodes", "evaluation", "healthy"],
)
def test_the_step_goes_the_same_way_where_it_is_unpacked(
    source: str, quantity: str, sudden: bool, lines: int, tmp_path: Path
) -> None:
    subject = mini_subject(source)
    made = tmp_path / "made"
    made.mkdir()
    packed = measure(subject, folder=str(made))
    assert (packed.failure.quantity, packed.failure.sudden) == (quantity, sudden)
    assert show(packed).outcome == ("packed" if sudden else "nothing-sudden")
    tarball = tmp_path / "repro.tar.gz"
    tarball.write_bytes(deterministic_tar_gz({f"repro/{path.name}": path for path in made.iterdir()}))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["tar", "-xzf", tarball, "-C", elsewhere], check=True)
    folder = elsewhere / "repro"
    assert read_failure(folder) == packed.failure
    assert read_settings(folder) == subject.settings
    found = reproduce(_unpacked(folder, subject), folder=str(folder))
    assert found.outcome == "same"
    assert found.found.count("\n") == lines
    assert found.value == packed.failure.value or found.value != found.value
    assert str(packed.failure.step) in (folder / "README.md").read_text()


def _unpacked(folder: Path, subject: Subject) -> Subject:
    source = (folder / "experiment.py").read_text()
    return Subject(folder / "experiment.py", source, read_settings(folder), subject.data)


def test_an_edited_script_does_not_fail_the_same_way(tmp_path: Path) -> None:
    subject = mini_subject(FORGETFUL)
    measure(subject, folder=str(tmp_path))
    mended = Subject(subject.path, CHANCE, subject.settings, subject.data)
    found = reproduce(mended, folder=str(tmp_path))
    assert found.outcome == "differs"
    assert "epoch 0" in str(show_reproduced(found).figures["first difference"])


def test_a_recipe_fails_at_the_step_that_its_log_shows_and_a_healthy_run_at_none(tmp_path: Path) -> None:
    before, moment, failure = find_failure(real_subject("huge_lr"), tmp_path)
    assert (failure.step, failure.quantity) == (2, "loss")
    assert failure.value == pytest.approx(6306, abs=1)
    assert [record["step"] for record in before] == [0, 1]
    assert moment.before["step"] == 2
    before, moment, failure = find_failure(real_subject("huge_lr", healthy=True), tmp_path)
    assert (failure.step, failure.quantity, failure.sudden) == (99, "val_loss", False)
    assert len(before) == 99 + 4
    assert before[-1]["step"] == 98


def test_a_step_can_be_asked_for(tmp_path: Path) -> None:
    packed = measure(mini_subject(), folder=str(tmp_path), step=7)
    assert (packed.failure.step, packed.failure.sudden) == (7, False)
    assert len((tmp_path / "before.log").read_text().splitlines()) == packed.lines_before == 8
    with pytest.raises(UserError, match="has 15 steps, counted from 0: there is no step 15"):
        measure(mini_subject(), folder=str(tmp_path), step=15)


def test_what_is_no_reproducer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no job\.json"):
        read_settings(tmp_path)
    measure(mini_subject(), folder=str(tmp_path), step=1)
    job = json.loads((tmp_path / "job.json").read_text())
    other: tuple[object, ...] = (
        {**job, "format_version": 2}, {**job, "settings": {"seed": 1, "what": 2}}, [], {"failure": {}},
    )  # fmt: skip
    for broken in other:
        (tmp_path / "job.json").write_text(json.dumps(broken))
        with pytest.raises(UserError, match="no job of a reproducer"):
            read_failure(tmp_path)
