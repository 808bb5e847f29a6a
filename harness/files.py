"""Write files atomically, with digests; find cache folders; encode zlib and gzip data without compression."""

import hashlib
import os
import secrets
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from harness.errors import UserError

BLOCK_SIZE = 65535  # the size of the largest uncompressed block, whose length has 16 bits (RFC 1951, section 3.2.4)

# The header of a zlib stream (RFC 1950): deflate with a 32 KiB window, fastest level, check bits (a multiple of 31).
_ZLIB_HEADER = b"\x78\x01"
# The header of a gzip file (RFC 1952): magic number, deflate, no flags (so no file name), no time, no extra flags,
# unknown system.
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


def cache_folder(variable: str, name: str = "") -> Path:
    """Return the folder in an environment variable, by default `trainwreck/<name>` in the user's cache folder."""
    if chosen := os.environ.get(variable):
        return Path(chosen).expanduser()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says to ignore relative paths.
    home = shared if shared.is_absolute() else Path("~/.cache").expanduser()
    return home / "trainwreck" / name


def sha256_path(path: Path) -> Path:
    """Return the path of a file's digest: `<path>.sha256`."""
    return path.with_name(f"{path.name}.sha256")


def sha256_line(data: bytes, name: str) -> str:
    """Return the line for a digest file that `sha256sum -c` can verify."""
    return f"{hashlib.sha256(data).hexdigest()}  {PurePosixPath(name).name}\n"


def scratch_path(path: Path) -> Path:
    """Return a new hidden path in the folder of `path`, for a temporary file. Each call returns a different path."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def read_text(path: Path, limit: int, *, missing: str, too_large: str) -> str:
    """Return the text of a file that a person wrote. The file may have at most `limit` bytes.

    Raises `UserError` if the file is missing, too large, or not UTF-8. `missing` and `too_large` are the remedies in
    the first two messages.
    """
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        raise UserError(f"There is no {path}: {missing}.") from None
    if len(data) > limit:
        raise UserError(f"{path} is larger than {limit // 1024} KiB: {too_large}.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line} is not UTF-8 text: save the file as UTF-8.") from None


def write_whole(files: Mapping[Path, bytes], *, durable: bool = True) -> None:
    """Write files atomically: each file appears whole or not at all.

    All files are complete under temporary names before the first file gets its final name. So if the disk is full or
    the process is killed, the old files remain. If `durable`, wait until the data are on the disk, so that this is also
    true after a loss of power. Raises `OSError` if a folder cannot be written to.
    """
    scratches = {scratch_path(path): path for path in files}
    try:
        for scratch, path in scratches.items():
            with scratch.open("wb") as file:
                file.write(files[path])
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
        for scratch, path in scratches.items():
            scratch.replace(path)
    finally:
        for scratch in scratches:
            scratch.unlink(missing_ok=True)


def write_with_sha256(path: Path, data: bytes) -> None:
    """Write a file, and next to it `<path>.sha256`, with which `sha256sum -c` can verify the file."""
    write_whole({path: data, sha256_path(path): sha256_line(data, path.name).encode()})


def stored_zlib(data: bytes) -> bytes:
    """Return `data` as an uncompressed zlib stream (RFC 1950).

    Compressed bytes would differ between releases of zlib.
    """
    return b"".join((_ZLIB_HEADER, *_stored_blocks(data), struct.pack(">I", zlib.adler32(data))))


def stored_gzip(data: bytes) -> bytes:
    """Return `data` as an uncompressed gzip file (RFC 1952) with time 0, no file name, and system 255 (unknown)."""
    trailer = struct.pack("<II", zlib.crc32(data), len(data) % 2**32)
    return b"".join((_GZIP_HEADER, *_stored_blocks(data), trailer))


def _stored_blocks(data: bytes) -> Iterator[bytes]:
    """Yield the uncompressed blocks of a deflate stream.

    Empty data give one empty block, because the format needs a last block.
    """
    view = memoryview(data)
    last_start = max(len(data) - 1, 0) // BLOCK_SIZE * BLOCK_SIZE
    for start in range(0, last_start + 1, BLOCK_SIZE):
        block = view[start : start + BLOCK_SIZE]
        yield struct.pack("<BHH", start == last_start, len(block), len(block) ^ 0xFFFF)
        yield bytes(block)
