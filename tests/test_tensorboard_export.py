"""The export, read back with TensorBoard's own reader."""

import io
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import mistake, snapshot, succeed
from helpers.made_up_runs import make_workspace, read_lines, write_lines
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from harness.run.metrics_log import from_strict
from harness.student.tensorboard_export import export_tensorboard
from harness.workspace.workspace import Workspace

NESTED = {"grad_mean": "1.weight", "grad_norm_by_parameter": "3.bias", "activations": "last.var"}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Return a finished workspace. Its broken run has NaN, infinities, a missing value, and a value beyond float32."""
    workspace = make_workspace(tmp_path / "work")
    records = read_lines(workspace, "broken")
    records[0] |= {"loss": "-Infinity", "grad_norm": "Infinity", "stale_grad_ratio": None}
    records[1] |= {"loss": 1e300, "lr": 0.1}
    records[1]["grad_mean"]["1.weight"] = "Infinity"
    write_lines(workspace, "broken", records)
    return workspace


def read_events(folder: Path) -> EventAccumulator:
    return EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0}).Reload()


def scalars_of_log(workspace: Workspace, run: str) -> dict[str, list[tuple[int, float]]]:
    """Return (step, float32) of each required tag, read from the log by separate code."""
    series: dict[str, list[tuple[int, float]]] = {}
    step = -1

    def add(tag: str, value: Any) -> None:
        if value is not None:
            with np.errstate(over="ignore"):
                series.setdefault(tag, []).append((step, float(np.float32(value))))

    for record in map(from_strict, read_lines(workspace, run)):
        step = record.pop("step", step)
        del record["epoch"]
        for name, value in record.items():
            if name == "activations":
                for layer, figures in value.items():
                    for kind, figure in figures.items():
                        add(f"activations/{layer}.{kind}", figure)
            elif name in NESTED:
                for parameter, figure in value.items():
                    add(f"{name}/{parameter}", figure)
            else:
                add(name, value)
    return series


@pytest.mark.parametrize("run", ["broken", "fixed"])
def test_tensorboard_reads_every_number_of_the_log(run: str, workspace: Workspace, tmp_path: Path) -> None:
    assert export_tensorboard(workspace, tmp_path / "out") == ["broken", "fixed"]
    events, expected = read_events(tmp_path / "out" / run), scalars_of_log(workspace, run)
    assert set(events.Tags()["scalars"]) == set(expected) > {f"{table}/{name}" for table, name in NESTED.items()}
    for tag, values in expected.items():
        found = [(event.step, event.value) for event in events.Scalars(tag)]
        np.testing.assert_array_equal(found, values, err_msg=tag)  # NaN equals NaN


def test_numbers_that_are_not_finite_survive(workspace: Workspace, tmp_path: Path) -> None:
    export_tensorboard(workspace, tmp_path)
    events = read_events(tmp_path / "broken")
    loss = [event.value for event in events.Scalars("loss")]
    assert loss[:2] == [-math.inf, math.inf]  # 1e300 is beyond float32
    assert math.isnan(loss[-1])
    assert events.Scalars("grad_norm")[0].value == math.inf
    assert events.Scalars("stale_grad_ratio")[0].step == 1  # step 0 has no record of this signal


def test_an_epoch_has_the_step_of_its_last_batch(workspace: Workspace, tmp_path: Path) -> None:
    export_tensorboard(workspace, tmp_path)
    events = read_events(tmp_path / "fixed")
    assert [event.step for event in events.Scalars("val_loss")] == [5, 11]
    assert [event.step for event in events.Scalars("val_loss_repeated")] == [11]
    assert [event.step for event in events.Scalars("loss")] == list(range(12))


def test_the_inputs_are_images_with_their_labels(workspace: Workspace, tmp_path: Path) -> None:
    export_tensorboard(workspace, tmp_path)
    events = read_events(tmp_path / "broken")
    tags = events.Tags()["images"]
    assert len(tags) == 24
    assert {"inputs/00 0", "inputs/13 3"} <= set(tags)
    (event,) = events.Images("inputs/01 1")
    assert (event.step, event.width, event.height) == (0, 28, 28)
    image = Image.open(io.BytesIO(event.encoded_image_string))
    assert np.asarray(image).ravel().tolist() == [index % 251 for index in range(784, 1568)]


def test_equal_runs_give_equal_bytes_in_files_of_the_same_name(workspace: Workspace, tmp_path: Path) -> None:
    for name in ("one", "other"):
        export_tensorboard(workspace, tmp_path / name)
    files = snapshot(tmp_path / "one")
    assert files == snapshot(tmp_path / "other")
    assert set(files) == {f"{run}/events.out.tfevents.0.trainwreck" for run in ("broken", "fixed")}


def test_an_export_replaces_the_earlier_one_and_nothing_else(workspace: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "out"
    theirs = {"notes.txt": b"mine", "fixed/events.out.tfevents.17.laptop": b"", "third/events.out.tfevents.1.x": b""}
    for name, content in theirs.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    export_tensorboard(workspace, out)
    before = snapshot(out)
    write_lines(workspace, "broken", read_lines(workspace, "broken")[:3])
    shutil.rmtree(workspace.run_folder("fixed"))
    assert export_tensorboard(workspace, out) == ["broken"]
    after = snapshot(out)
    events = {f"{run}/events.out.tfevents.0.trainwreck" for run in ("broken", "fixed")}
    assert set(before) == {*theirs, *events}
    assert set(after) == {*theirs, "broken/events.out.tfevents.0.trainwreck"}
    assert {name: after[name] for name in theirs} == theirs
    assert len(read_events(out / "broken").Scalars("loss")) == 3


def test_the_command_says_where_it_wrote_and_how_to_look(workspace: Workspace, tmp_path: Path) -> None:
    said = succeed("export-tensorboard", "huge_lr", cwd=tmp_path)
    assert said.splitlines() == [
        "work/huge_lr/tensorboard contains the broken and fixed runs.",
        "Next: tensorboard --logdir work/huge_lr/tensorboard (restart tensorboard after each export)",
    ]
    shutil.rmtree(workspace.run_folder("fixed"))
    said = succeed("export-tensorboard", "huge_lr", "--out", "a folder", cwd=tmp_path)
    assert said.startswith("a folder contains the broken run.\nNext: tensorboard --logdir 'a folder' ")
    assert set(snapshot(tmp_path / "a folder")) == {"broken/events.out.tfevents.0.trainwreck"}


def test_without_tensorboard_it_says_what_to_install(workspace: Workspace, tmp_path: Path) -> None:
    code = "import sys; sys.modules['tensorboard'] = None; import harness.cli; harness.cli.main()"
    said = mistake("export-tensorboard", "huge_lr", cwd=tmp_path, program=(sys.executable, "-c", code))
    assert said.startswith(f"An export needs the package tensorboard: install it with {sys.executable} -m pip install ")
    assert said.endswith("[tensorboard]'")
    assert not (workspace.folder / "tensorboard").exists()


def test_what_cannot_be_exported_is_said_in_one_sentence(workspace: Workspace, tmp_path: Path) -> None:
    assert "did you mean huge_lr?" in mistake("export-tensorboard", "huge", cwd=tmp_path)
    assert "There is no workspace" in mistake("export-tensorboard", "label_permute", cwd=tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/broken").write_text("a file where the folder must be")
    said = mistake("export-tensorboard", "huge_lr", "--out", "out", cwd=tmp_path)
    assert "out/broken" in said
    (workspace.run_folder("broken") / "inputs.json").write_text("{")
    said = mistake("export-tensorboard", "huge_lr", cwd=tmp_path)
    assert "inputs.json is not JSON: run the experiment again" in said
    for run in ("broken", "fixed"):
        shutil.rmtree(workspace.run_folder(run))
    said = mistake("export-tensorboard", "huge_lr", cwd=tmp_path)
    assert said == "work/huge_lr has no finished run: make exercise BREAK=huge_lr makes the broken run."
