"""Reads the files of a run for its page; a file that is not there yet leaves its part empty."""

import base64
import binascii
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.files import stored_zlib
from harness.run.metrics_log import batch_records, epoch_records, read_metrics_log, read_object
from harness.workspace import INPUT_SHEET, META, METRICS_LOG, RESULT

Record = Mapping[str, Any]


@dataclass(frozen=True)
class InputImage:
    """One input as the model saw it: a PNG as a data URI, and its label (None in a regression)."""

    source: str
    label: str | None


@dataclass(frozen=True)
class RunFiles:
    """The content of one run's folder. `problem` says why `images` is empty although inputs.json exists."""

    name: str
    batches: Sequence[Record]
    epochs: Sequence[Record]
    result: Record
    provenance: Record
    images: Sequence[InputImage]
    image_size: tuple[int, int]  # height, width
    problem: str


def read_run(run_dir: Path) -> RunFiles:
    """Read the folder of a run, finished or not.

    Raises `UserError` for a file that is there and does not hold what it should.
    """
    log_path = run_dir / METRICS_LOG
    records = read_metrics_log(log_path) if log_path.exists() else []
    provenance = _read_object(run_dir / META)
    images, size, problem = read_images(_read_object(run_dir / INPUT_SHEET))
    return RunFiles(
        name=str(provenance.get("run") or run_dir.name),
        batches=batch_records(records),
        epochs=epoch_records(records),
        result=_read_object(run_dir / RESULT),
        provenance=provenance,
        images=images,
        image_size=size,
        problem=problem,
    )


def number(value: object) -> float | None:
    """Return a number of the log as a float, the strings "NaN" and "Infinity" too; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else None


def look_up(record: Record, *keys: str) -> float | None:
    """Return the number under nested keys of a record, or None if any of them is missing."""
    value: object = record
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return number(value)


def _read_object(path: Path) -> Record:
    """Return the JSON object in a file, or an empty one if there is no file."""
    try:
        return read_object(path) if path.exists() else {}
    except UserError as error:
        raise UserError(f"{error}: run the experiment again to write it anew.") from None


def read_images(inputs: Record) -> tuple[list[InputImage], tuple[int, int], str]:
    """Return the images of inputs.json, their (height, width), and why there are none if the file exists."""
    if not inputs:
        return [], (0, 0), ""
    shape = inputs.get("shape")
    if not isinstance(shape, list) or len(shape) != 4 or not all(isinstance(n, int) and n > 0 for n in shape):
        return [], (0, 0), f"The inputs of shape {shape} are not images."
    count, channels, height, width = shape
    try:
        pixels = base64.b64decode(str(inputs.get("pixels")), validate=True)
    except (binascii.Error, ValueError):
        pixels = b""
    if len(pixels) != count * channels * height * width:
        problem = f"inputs.json does not hold the pixels of {count} images: run the experiment again."
        return [], (0, 0), problem
    labels = inputs.get("labels")
    if not isinstance(labels, list) or len(labels) != count:
        labels = [None] * count
    size = len(pixels) // count
    images = []
    for index, label in enumerate(labels):
        png = encode_png(pixels[index * size : (index + 1) * size], channels, height, width)
        source = "data:image/png;base64," + base64.b64encode(png).decode("ascii")
        images.append(InputImage(source, None if label is None else str(label)))
    return images, (height, width), ""


def encode_png(planes: bytes, channels: int, height: int, width: int) -> bytes:
    """Return channel planes (channels, height, width), one byte a pixel, as a PNG whose bytes never change.

    Three channels are RGB; otherwise the first channel is drawn in grey.
    """
    area = height * width
    pixels = bytearray(planes[:area])
    colour_type, depth = 0, 1
    if channels == 3:
        colour_type, depth, pixels = 2, 3, bytearray(len(planes))
        for channel in range(3):
            pixels[channel::3] = planes[channel * area : (channel + 1) * area]
    stride = width * depth
    # Filter 0 in front of every row: the bytes as they are.
    rows = b"".join(b"\0" + pixels[start : start + stride] for start in range(0, len(pixels), stride))
    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", stored_zlib(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
