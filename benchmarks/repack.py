"""Change the files in a submission, and adapt its manifest."""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable

from harness.submission.archive import deterministic_tar_gz

Members = dict[str, bytes]


def repacked(data: bytes, *, student: str, change: Callable[[Members], object] | None = None) -> bytes:
    """Return a copy of a submission with another student's name and changed files, and with a matching manifest."""
    members = members_of(data)
    if change is not None:
        change(members)
    manifest = json.loads(members.pop("manifest.json"))
    manifest["student"] = student
    manifest["files"] = {name: hashlib.sha256(members[name]).hexdigest() for name in sorted(members)}
    members["manifest.json"] = (json.dumps(manifest, indent=1) + "\n").encode()
    return deterministic_tar_gz(members)


def members_of(data: bytes) -> Members:
    """Return {name: content} for the files in a tarball."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = {item.name: archive.extractfile(item) for item in archive.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}
