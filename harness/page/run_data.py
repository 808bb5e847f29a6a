"""Read the files of a finished run for its page."""

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.files import stored_zlib
from harness.run.files import DETAILS_LOG, INPUT_SHEET, META, METRICS_LOG, RESULT
from harness.run.metrics_log import (
    batch_records,
    epoch_records,
    from_strict,
    log_lines,
    read_metrics_log,
    read_object,
    strict_json,
)

PageRecord = Mapping[str, Any]


@dataclass(frozen=True)
class InputImage:
    """One input of the model: a picture (a PNG as a data URI), its size, and its label (None in a regression)."""

    source: str
    height: int
    width: int
    label: str | None


@dataclass(frozen=True)
class RunFiles:
    """The content of one run's folder.

    The inputs are in `images`, or in `rows` (as words, with the label last), or unavailable. details: the records of
    batches in `details.log`. confusion: the last record with a confusion matrix, or None.
    """

    name: str
    batches: Sequence[PageRecord]
    epochs: Sequence[PageRecord]
    result: PageRecord
    provenance: PageRecord
    images: Sequence[InputImage]
    rows: Sequence[Sequence[str]]
    details: Sequence[PageRecord] = ()
    confusion: PageRecord | None = None

    @property
    def label(self) -> str:
        """The name of the run on a page. The run "fixed" is called "your run", because it may still be broken."""
        return "your run" if self.name == "fixed" else self.name


def read_run(run_dir: Path) -> RunFiles:
    """Read the folder of a finished run. Raises `UserError` if a file is invalid."""
    try:
        records = read_metrics_log(run_dir / METRICS_LOG)
        result, provenance, sheet = (read_object(run_dir / name) for name in (RESULT, META, INPUT_SHEET))
        details = read_details(run_dir / DETAILS_LOG)
    except UserError as error:
        raise UserError(f"{str(error).rstrip('.')}: run the experiment again to write a new one.") from None
    batches, epochs = batch_records(records), epoch_records(records)
    rows = [
        (str(index), *row, label)
        for index, (row, label) in enumerate(zip(sheet.get("rows", ()), sheet["labels"] or (), strict=False))
    ]
    confusion = next((record for record in reversed(details) if "confusion" in record), None)
    return RunFiles(
        str(provenance["run"]),
        batches,
        epochs,
        result,
        provenance,
        read_images(sheet),
        rows,
        [record for record in details if "step" in record],
        confusion,
    )


def read_details(path: Path) -> list[PageRecord]:
    """Return the records of a `details.log`, or [] if there is none, as in runs of earlier versions.

    Raises `UserError` if a line is not a JSON object. The message has no remedy; callers add it.
    """
    if not path.is_file():
        return []
    try:
        records = [from_strict(strict_json(line.encode())) for line in log_lines(path.read_text(encoding="utf-8"))]
    except ValueError:
        raise UserError(f"{path} is not a log of JSON objects") from None
    if not all(isinstance(record, dict) for record in records):
        raise UserError(f"{path} is not a log of JSON objects")
    return records


def number(value: object) -> float | None:
    """Return a number from the log as a float. "NaN" and "Infinity" also become floats.

    Return None for any other value.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else None


def read_images(sheet: PageRecord) -> list[InputImage]:
    """Return the images in an input sheet, the file with the first inputs that `harness.run.setup` makes."""
    if not sheet["pixels"]:
        return []
    count, channels, height, width = sheet["shape"]
    pixels = base64.b64decode(sheet["pixels"])
    size = channels * height * width
    images = []
    for index, label in enumerate(sheet["labels"] or [None] * count):
        png = encode_png(pixels[index * size : (index + 1) * size], channels, height, width)
        source = "data:image/png;base64," + base64.b64encode(png).decode("ascii")
        images.append(InputImage(source, height, width, label))
    return images


def encode_png(planes: bytes, channels: int, height: int, width: int) -> bytes:
    """Return an image as a PNG. `planes` has the pixels of 1 or 3 channels in turn, one byte each.

    Equal pixels give equal bytes.
    """
    area, stride = height * width, channels * width
    pixels = bytearray(channels * area)
    for channel in range(channels):
        pixels[channel::channels] = planes[channel * area : (channel + 1) * area]
    # Every row starts with filter 0, which means that its bytes are unchanged.
    rows = b"".join(b"\0" + pixels[start : start + stride] for start in range(0, len(pixels), stride))
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", stored_zlib(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
