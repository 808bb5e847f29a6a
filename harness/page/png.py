"""Grey and RGB images as PNG files whose bytes depend on the pixels alone."""

import struct
import zlib
from typing import TYPE_CHECKING, Any

from harness.files import stored_zlib

if TYPE_CHECKING:  # NumPy takes 0.1 s to import, and the page of a run holds its pixels as bytes
    import numpy as np
    import numpy.typing as npt

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPES = {1: 0, 3: 2}  # channels -> PNG colour type: grey, RGB


def encode_png(pixels: "npt.NDArray[np.uint8] | npt.NDArray[Any]") -> bytes:
    """Return a PNG of an array of uint8: (height, width) or (height, width, 1) grey, (height, width, 3) RGB.

    Raises `ValueError` for another dtype or shape, or an image without pixels.
    """
    if str(pixels.dtype) != "uint8" or pixels.ndim not in (2, 3):
        raise ValueError(f"a PNG needs uint8 (height, width[, 1 or 3]), not {pixels.dtype} {pixels.shape}")
    height, width = pixels.shape[:2]
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    return encode_png_bytes(pixels.tobytes(), width=width, height=height, channels=channels)


def encode_png_bytes(pixels: bytes, *, width: int, height: int, channels: int) -> bytes:
    """Return a PNG of `height` x `width` x `channels` bytes, row by row, channels innermost (1 grey, 3 RGB).

    Raises `ValueError` when the sizes do not fit together.
    """
    if channels not in _COLOUR_TYPES or width < 1 or height < 1 or len(pixels) != width * height * channels:
        raise ValueError(
            "a PNG needs width x height x (1 or 3) bytes, "
            f"not {len(pixels)} for {width} x {height} x {channels}"
        )
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    stride = width * channels
    # Filter 0 in front of every row: the bytes as they are.
    rows = b"".join(b"\0" + pixels[start : start + stride] for start in range(0, len(pixels), stride))
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", stored_zlib(rows)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
