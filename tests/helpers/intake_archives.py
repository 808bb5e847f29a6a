"""Submissions for the tests: a complete one, and parts for hostile ones."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.intake.submission import Submission, parse_submission
from harness.submission.archive import FILES, SUFFIX, deterministic_tar_gz

COMMAND = "python -m harness.trainer --seed 42 --break huge_lr --dataset digits"
COMMANDS = f"# runs/broken\n{COMMAND}\n\n# runs/fixed\n{COMMAND} --script experiment.py\n".encode()


def contents(**changed: bytes | None) -> dict[str, bytes]:
    """Return the files of a submission without its manifest. None removes a file."""
    files = {name: f"the content of {name}\n".encode() for name in FILES if name != "manifest.json"}
    files["command.txt"] = COMMANDS
    for name, content in changed.items():
        path = name.replace("__", "/")
        path = {"experiment": "experiment.py", "report": "report.md", "command": "command.txt"}.get(path, path)
        if content is None:
            del files[path]
        else:
            files[path] = content
    return files


def manifest(files: Mapping[str, bytes], /, **changed: Any) -> bytes:
    record = {
        "format_version": 1,
        "student": "ada",
        "recipe": "huge_lr",
        "seed": 42,
        "dataset": "digits",
        "dataset_digest": "0" * 64,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())},
    }
    return json.dumps({**record, **changed}, indent=1).encode()


def whole(**changed: Any) -> dict[str, bytes]:
    """Return all files of a submission. A keyword may replace the manifest."""
    files = contents()
    return {**files, "manifest.json": manifest(files, **changed)}


def written(tmp_path: Path, data: bytes, name: str = "ada_huge_lr.tar.gz") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def parsed(name: str, data: bytes) -> Submission:
    """Return the submission from the bytes of a tarball. Raises `Rejected`."""
    submission = parse_submission(name, data)
    assert isinstance(submission, Submission)
    return submission


def taken(path: Path) -> Submission:
    """Return the submission from a tarball. Raises `Rejected`."""
    return parsed(path.name.removesuffix(SUFFIX), path.read_bytes())


def packed(files: Mapping[str, bytes]) -> bytes:
    return deterministic_tar_gz(files)


def member(name: str, content: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar_of(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    """Return an uncompressed tar archive of a complete submission, followed by these members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, encoding="utf-8", errors="surrogateescape") as tar:
        for name, content in whole().items():
            info, _ = member(name, content)
            tar.addfile(info, io.BytesIO(content))
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def with_members(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    return gzip.compress(tar_of(*members, form=form), mtime=0)
