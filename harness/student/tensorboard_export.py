"""`harness export-tensorboard`: export the finished runs of a workspace as event files for TensorBoard."""

import base64
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UserError, name_place
from harness.files import write_whole
from harness.page.run_data import InputImage, read_images
from harness.recipes.suite import install_command
from harness.run.files import INPUT_SHEET, METRICS_LOG
from harness.run.metrics_log import Record, numbers_of, read_metrics_log, read_object
from harness.workspace.workspace import RUNS, Run, Workspace

FOLDER = "tensorboard"  # in a workspace
# TensorBoard reads every file with "tfevents" in its name. The name is always the same, so a new export replaces an old
# one.
EVENTS = "events.out.tfevents.0.trainwreck"
_FORMAT = "brain.Event:2"  # the first record of every event file
_WALL_TIME = 0.0  # constant, so that equal runs give equal bytes


def export_tensorboard(workspace: Workspace, out: Path) -> list[Run]:
    """Write one event file for each finished run into `out/<run>/`. Return the names of the finished runs.

    The bytes depend only on the run and on the releases of tensorboard and protobuf. The file of an earlier export is
    replaced, or deleted if its run no longer exists. Other files in the folder are not touched. Raises `UserError` if
    there is no finished run, if a run cannot be read, or if tensorboard is missing, and `OSError` if the folder cannot
    be written to.
    """
    runs = [run for run in RUNS if workspace.has_run(run)]
    if not runs:
        raise UserError(
            f"{workspace.folder} has no finished run: {workspace.command('exercise')} makes the broken run."
        )
    files = {out / run / EVENTS: _event_file(workspace.run_folder(run)) for run in runs}
    with name_place(out):
        for path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(files, durable=False)
        for run in set(RUNS) - set(runs):
            (out / run / EVENTS).unlink(missing_ok=True)
    return runs


def _event_file(run: Path) -> bytes:
    """Return the event file of one run, as bytes."""
    records = read_metrics_log(run / METRICS_LOG)
    try:
        images = read_images(read_object(run / INPUT_SHEET))
    except UserError as error:
        raise UserError(f"{str(error).rstrip('.')}: run the experiment again to write a new one.") from None
    return encode_events(records, images)


def encode_events(records: Sequence[Record], images: Sequence[InputImage] = ()) -> bytes:
    """Return an event file with every number of a log, and with the inputs as images. Numbers are stored as float32.

    The tag of a number for one parameter or layer is, for example, `grad_norm_by_parameter/1.weight`. The numbers of an
    epoch are shown at the step of its last batch. Images are shown at step 0. Raises `UserError` if tensorboard is
    missing.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError:
        install = install_command("tensorboard")
        raise UserError(f"An export needs the package tensorboard: install it with {install}") from None
    file = io.BytesIO()
    writer = RecordWriter(file)

    def write(**fields: Any) -> None:
        writer.write(Event(wall_time=_WALL_TIME, **fields).SerializeToString(deterministic=True))

    write(file_version=_FORMAT)
    for number, image in enumerate(images):
        picture = Summary.Image(height=image.height, width=image.width, encoded_image_string=_png(image))
        tag = f"inputs/{number:02} {image.label or ''}".rstrip()
        write(summary=Summary(value=[Summary.Value(tag=tag, image=picture)]))
    step = 0
    for record in records:
        step = record.get("step", step)
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in _scalars(record)]
        write(step=step, summary=Summary(value=values))
    return file.getvalue()


def _scalars(record: Record) -> Iterator[tuple[str, float]]:
    for name, value in numbers_of(record):
        if value is not None and name not in ("step", "epoch"):
            yield name.replace(".", "/", 1), value


def _png(image: InputImage) -> bytes:
    return base64.b64decode(image.source.partition(",")[2])  # the source is a data URI
